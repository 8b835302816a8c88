/* cmd_fetch.c - the public data sets, from their official homes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/fetch/fetch.h"
#include "harness/share.h"
#include "harness/view/writers.h"

static const char *dir = "datasets", *mirror, *manifest_path;
static bool list, accepted;
static int64_t retries = 4;

static const opt options[] = {
    {OPT_STR, "dir", 'd', &dir, "DIR", "the data folder", 0, 0},
    {OPT_STR, "mirror", 'm', &mirror, "URL",
     "fetch from here, a copy of a data folder, instead of the official homes", 0, 0},
    {OPT_FLAG, "list", 'l', &list, NULL, "show the sets and what DIR holds of them, fetch nothing",
     0, 0},
    {OPT_FLAG, "accept-licences", 0, &accepted, NULL,
     "the licences and notices are known: don't show them", 0, 0},
    {OPT_INT, "retries", 0, &retries, "N",
     "attempts in a row, after the first, that may bring nothing", 0, 100},
    {OPT_STR, "manifest", 0, &manifest_path, "FILE",
     "another list of sets; default: the program's own datasets/manifest.json", 0, 0},
    {.type = OPT_END},
};

/* ---- which sets ---- */

typedef struct {
    manifest all;
    bool *chosen; /* [all.n] */
} choice;

static void choice_release(choice *c) {
    free(c->chosen);
    manifest_release(&c->all);
}

static snap_status unknown_name(const choice *c, const char *name, snap_err *err) {
    buf names = {0};
    for (size_t i = 0; i < c->all.n; i++)
        (void)buf_printf(&names, "%s%s", i ? ", " : "", c->all.sets[i].name);
    (void)err_set(err, SNAP_E_USAGE, "no data set '%s' in the manifest: it has %s", name,
                  buf_str(&names));
    buf_release(&names);
    return SNAP_E_USAGE;
}

static snap_status choose(choice *c, const opt_shared *shared, snap_err *err) {
    c->chosen = calloc(c->all.n + 1, sizeof *c->chosen);
    if (!c->chosen)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the data sets");
    for (int i = 0; i < shared->n_args; i++) {
        const manifest_set *s = manifest_find(&c->all, shared->args[i]);
        if (!s)
            return unknown_name(c, shared->args[i], err);
        c->chosen[s - c->all.sets] = true;
    }
    for (size_t i = 0; i < c->all.n && !shared->n_args; i++)
        c->chosen[i] = list || !c->all.sets[i].large;
    return SNAP_OK;
}

static snap_status load(choice *c, const opt_shared *shared, snap_err *err) {
    snap_status st;
    char *path = manifest_path ? strdup(manifest_path) : share_find("datasets/manifest.json");
    if (!path)
        TRY(err_set(err, SNAP_E_USAGE,
                    "datasets/manifest.json is nowhere: set SNAPMLA_SHARE to "
                    "the folder that holds datasets/, or give --manifest"));
    TRY(manifest_load(&c->all, path, err));
    TRY(choose(c, shared, err));
cleanup:
    free(path);
    return st;
}

/* ---- --list ---- */

/* What DIR holds of a set: the state that all its files share, else "partial". */
static snap_status set_state(const manifest_set *s, const char **out, snap_err *err) {
    snap_status st = SNAP_OK;
    fetch_state first = FETCH_ABSENT, state = FETCH_ABSENT;
    bool same = true, differs = false;
    for (size_t i = 0; i < s->n_files && st == SNAP_OK; i++) {
        st = fetch_look(&s->files[i], dir, &state, err);
        first = i ? first : state;
        same = same && state == first;
        differs = differs || state == FETCH_DIFFERS;
    }
    *out = fetch_state_name(differs ? FETCH_DIFFERS : same ? first : FETCH_PARTIAL);
    return st;
}

static int64_t set_bytes(const manifest_set *s) {
    int64_t sum = 0;
    for (size_t i = 0; i < s->n_files; i++) {
        if (s->files[i].bytes < 0)
            return -1;
        sum += s->files[i].bytes;
    }
    return sum;
}

static snap_status list_row(const manifest_set *s, table *t, js *rows, snap_err *err) {
    const char *state;
    snap_status st = set_state(s, &state, err);
    if (st != SNAP_OK)
        return st;
    int64_t bytes = set_bytes(s);
    table_cell(t, "%s", s->name);
    table_cell(t, "%s", state);
    table_cell(t, "%lld", (long long)s->rows);
    table_number(t, bytes < 0 ? (double)NAN : (double)bytes, 0);
    table_cell(t, "%s", s->title);
    table_cell(t, "%s", s->licence);
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "name", s->name) && js_set_str(o, "state", state) &&
              js_set_int(o, "rows", s->rows) && js_set_bool(o, "large", s->large) &&
              js_set_new(o, "bytes", bytes < 0 ? js_new_null() : js_new_int(bytes)) &&
              js_set_int(o, "files", (int64_t)s->n_files) && js_set_str(o, "title", s->title) &&
              js_set_str(o, "licence", s->licence) && js_set_str(o, "home", s->home) &&
              js_set_new(o, "notice", js_new_str(s->notice));
    ok = js_push_new(rows, o) && ok;
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the list");
}

static snap_status show_list(const choice *c, bool json, snap_err *err) {
    static const char *const heads[] = {"set", "state", "rows", "bytes", "title", "licence"};
    table t = table_new(heads, 6);
    js *rows = js_new_array();
    buf out = {0};
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < c->all.n; i++)
        if (c->chosen[i])
            TRY(list_row(&c->all.sets[i], &t, rows, err));
    if (json) {
        TRY(js_write(rows, JS_PRETTY, &out, err));
        (void)buf_puts(&out, "\n");
    } else {
        TRY(write_text(&t, term_use_color(1), &out, err));
    }
    TRY(buf_check(&out, "the list", err));
    (void)fputs(buf_str(&out), stdout);
cleanup:
    buf_release(&out);
    table_release(&t);
    js_free(rows);
    return st;
}

/* ---- fetching ---- */

static void show_notices(const choice *c) {
    for (size_t i = 0; i < c->all.n; i++) {
        const manifest_set *s = &c->all.sets[i];
        if (!c->chosen[i])
            continue;
        (void)fprintf(stderr, "%s: %s\n  licence: %s\n", s->name, s->home, s->licence);
        if (s->notice)
            (void)fprintf(stderr, "  notice: %s\n", s->notice);
    }
}

static void done(void *ctx, const manifest_set *set, const manifest_file *f, fetch_state state) {
    js *rows = ctx;
    const char *name = fetch_state_name(state);
    if (!rows) {
        (void)printf("%-9s %s/%s\n", name, dir, f->path);
        (void)fflush(stdout);
        return;
    }
    js *o = js_new_object();
    (void)js_set_str(o, "set", set->name);
    (void)js_set_str(o, "path", f->path);
    (void)js_set_str(o, "state", name);
    (void)js_push_new(rows, o);
}

static snap_status fetch(const choice *c, bool json, snap_err *err) {
    fetch_options o = {.dir = dir,
                       .mirror = mirror,
                       .retries = (int)retries,
                       .wait_s = 1,
                       .cancel = &cmd_cancelled};
    js *rows = json ? js_new_array() : NULL;
    buf out = {0};
    snap_status st = fetch_sets(&c->all, c->chosen, &o, done, rows, err);
    if (json && js_write(rows, JS_PRETTY, &out, st == SNAP_OK ? err : NULL) == SNAP_OK)
        (void)puts(buf_str(&out));
    buf_release(&out);
    js_free(rows);
    return st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    choice c = {0};
    snap_status st = load(&c, shared, err);
    if (st == SNAP_OK && list) {
        st = show_list(&c, shared->json, err);
    } else if (st == SNAP_OK) {
        if (!accepted && !shared->quiet)
            show_notices(&c);
        st = fetch(&c, shared->json, err);
    }
    choice_release(&c);
    return st;
}

const opt_command cmd_fetch = {
    .name = "fetch",
    .summary = "bring the public data sets, checked, from their homes",
    .synopsis = "[options] [NAME...]",
    .about =
        "Brings the named data sets, each called as its task is, into the data folder; without a\n"
        "name all but the large ones. Every file is checked against the manifest's sha256 where\n"
        "that is known, and put in its place only when it is whole. A broken transfer goes on "
        "where\n"
        "it stopped. datasets/fetch.sh does the same with curl or wget. The sets belong to their\n"
        "authors: their licences and notices are shown.",
    .examples = "  snapmla fetch --list\n"
                "  snapmla fetch aime24 aime25 math500\n"
                "  snapmla fetch --dir ../data --mirror http://mirror.example/datasets gsm8k",
    .options = options,
    .max_args = -1,
    .run = run,
};
