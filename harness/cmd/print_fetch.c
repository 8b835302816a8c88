#include "harness/cmd/print_fetch.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "harness/cmd/print.h"

/* Writes the column "sha256": whether the manifest has the checksums of a set. */
static void put_sums(table *t, int64_t unverified, int64_t files) {
    if (!unverified)
        table_put(t, "known");
    else if (unverified == files)
        table_put(t, "UNVERIFIED");
    else
        table_cell(t, "UNVERIFIED: %lld of %lld", (long long)unverified, (long long)files);
}

snap_status print_fetch_list(const fetch_choice *c, const char *dir, bool json, snap_err *err) {
    static const char *const heads[] = {"set",   "state", "sha256", "rows",
                                        "bytes", "title", "licence"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    js *rows = NULL;
    snap_status st;
    TRY(fetch_list(c, dir, &rows, err));
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        table_cell(&t, "%s", js_get_str(row, "name"));
        table_cell(&t, "%s", js_get_str(row, "state"));
        put_sums(&t, js_get_int(row, "unverified", 0), js_get_int(row, "files", 0));
        table_cell(&t, "%lld", (long long)js_get_int(row, "rows", 0));
        table_number(&t, js_get_num(row, "bytes", (double)NAN), 0);
        table_cell(&t, "%s", js_get_str(row, "title"));
        table_cell(&t, "%s", js_get_str(row, "licence"));
    }
    TRY(json ? print_json(rows, err) : print_table(&t, err));
cleanup:
    table_release(&t);
    js_free(rows);
    return st;
}

static void show_line(const char *what, const char *text) {
    buf line = {0};
    text_append_shown_printf(&line, "%s: %s", what, text);
    (void)fprintf(stderr, "%s\n", buf_str(&line));
    buf_release(&line);
}

void print_fetch_notices(const fetch_choice *c) {
    for (size_t i = 0; i < c->all.n; i++) {
        const manifest_set *s = &c->all.sets[i];
        if (!c->chosen[i])
            continue;
        show_line(s->name, s->home);
        show_line("  licence", s->licence);
        if (s->notice)
            show_line("  notice", s->notice);
    }
}
