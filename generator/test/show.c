#include "generator/test/show.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum { kShown = 60 }; /* most bytes shown of a body, of raw bytes and of header lines */

static bool is_plain(char c) {
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x7f && c != '|';
}

/* Appends text for one table cell: no line breaks, no bars. */
static void put_text(buf *out, const char *s, size_t limit) {
    for (size_t i = 0; s[i] && i < limit; i++)
        (void)buf_printf(out, "%c", is_plain(s[i]) ? s[i] : ' ');
}

/* Appends the last kShown bytes of a body, or of its first @cut bytes, in quotes. */
static void put_end(buf *out, const char *body, size_t cut) {
    size_t n = cut ? cut : strlen(body), from = n > kShown ? n - kShown : 0;
    (void)buf_printf(out, ", \"%s", from ? "..." : "");
    put_text(out, body + from, n - from);
    (void)buf_puts(out, "\"");
}

static void put_reply(buf *out, const reply *r) {
    static const char *const ends[] = {"", ", then closed", ", then reset", ", then silence"};
    if (r->raw) {
        (void)buf_printf(out, "no HTTP: \"");
        put_text(out, r->raw, kShown);
        (void)buf_printf(out, "\"%s", ends[r->end]);
        return;
    }
    (void)buf_printf(out, "%d", r->status ? r->status : 200);
    if (r->type && strcmp(r->type, "text/event-stream") == 0)
        (void)buf_puts(out, " stream");
    else if (r->type)
        (void)buf_printf(out, " %s", *r->type ? r->type : "without type");
    if (r->headers) {
        (void)buf_puts(out, ", ");
        put_text(out, r->headers, kShown);
    }
    put_end(out, r->body ? r->body : "", r->cut);
    if (r->fill)
        (void)buf_printf(out, " and %zu bytes", r->fill);
    if (r->cut)
        (void)buf_printf(out, ", cut after %zu bytes", r->cut);
    if (r->pause_ns)
        (void)buf_printf(out, ", %d bytes every %lld ms", r->step,
                         (long long)(r->pause_ns / 1000000));
    (void)buf_printf(out, "%s%s", r->forever ? ", for ever" : "", ends[r->end]);
}

void show_row(const reply *r, const char *outcome, int attempts) {
    buf row = {0};
    if (!getenv("SHOW_FIGURES"))
        return;
    (void)buf_printf(&row, "\n| %s | ", CU_get_current_test()->pName);
    if (r)
        put_reply(&row, r);
    (void)buf_puts(&row, " | ");
    put_text(&row, outcome, 200);
    if (attempts)
        (void)buf_printf(&row, " | %d |\n", attempts);
    else
        (void)buf_puts(&row, " | |\n");
    (void)fputs(buf_str(&row), stdout);
    buf_release(&row);
}
