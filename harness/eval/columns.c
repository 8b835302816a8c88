#include "harness/eval/columns.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

enum { kNarrowest = 32, kGap = 3, kTab = 4, kMost = 64 };

/* ---- characters ---- */

typedef struct {
    uint32_t lo, hi;
} range;

static bool is_in(const range *r, size_t n, uint32_t c) {
    for (size_t i = 0; i < n; i++)
        if (c >= r[i].lo && c <= r[i].hi)
            return true;
    return false;
}

/* How many cells a character takes on a terminal, from ranges that approximate Unicode: two for
 * East Asian Width W and F, none for combining marks, joiners and variation selectors, otherwise
 * one. */
static int cells_of(uint32_t c) {
    static const range wide[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                                 {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                 {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
    static const range marks[] = {{0x300, 0x36F}, {0x200B, 0x200D}, {0xFE00, 0xFE0F}};
    if (is_in(marks, sizeof marks / sizeof *marks, c))
        return 0;
    return is_in(wide, sizeof wide / sizeof *wide, c) ? 2 : 1;
}

/* A character as it is printed. */
typedef struct {
    const char *s;
    size_t n, from; /* bytes of s; bytes of the input that it replaces */
    int cells;
} glyph;

static glyph glyph_at(const char *s, size_t left) {
    size_t n = text_utf8_len(s, left);
    if (*s == '\t')
        return (glyph){"    ", kTab, 1, kTab};
    uint32_t c = n ? text_code_point(s, n) : 0;
    if (!n || text_is_harmful(c))
        return (glyph){"\xEF\xBF\xBD", 3, n ? n : 1, 1};
    return (glyph){s, n, n, cells_of(c)};
}

/* ---- lines ---- */

/* Bytes of the next line of the text, which takes at most @width cells. It is broken after a space
 * if possible. */
static size_t line_length(const char *s, size_t left, int width) {
    size_t at = 0, space = 0;
    int cells = 0;
    while (at < left && s[at] != '\n') {
        glyph g = glyph_at(s + at, left - at);
        if (cells + g.cells > width)
            return space ? space : at ? at : g.from;
        cells += g.cells;
        at += g.from;
        if (s[at - 1] == ' ')
            space = at;
    }
    return at;
}

/* Appends a line without trailing spaces, tabs and carriage returns. Returns its cells. */
static int put_line(const char *s, size_t n, buf *out) {
    int cells = 0;
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r'))
        n--;
    for (size_t at = 0; at < n;) {
        glyph g = glyph_at(s + at, n - at);
        (void)buf_append(out, g.s, g.n);
        cells += g.cells;
        at += g.from;
    }
    return cells;
}

typedef struct {
    const char *s;
    size_t left;
} cursor;

/* Appends the next line of a column and moves the cursor past it. Returns the line's cells. */
static int put_next(cursor *c, int width, buf *out) {
    if (!c->left)
        return 0;
    size_t n = line_length(c->s, c->left, width);
    int cells = put_line(c->s, n, out);
    n += n < c->left && c->s[n] == '\n';
    c->s += n;
    c->left -= n;
    return cells;
}

static bool any_left(const cursor *c, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (c[i].left)
            return true;
    return false;
}

static void side_by_side(cursor *c, size_t n, int width, buf *out) {
    while (any_left(c, n)) {
        buf row = {0};
        for (size_t i = 0; i < n; i++) {
            int cells = put_next(&c[i], width, &row);
            for (; i + 1 < n && cells < width + kGap; cells++)
                (void)buf_puts(&row, " ");
        }
        size_t len = row.len;
        while (len && buf_str(&row)[len - 1] == ' ')
            len--;
        text_append_shown_printf(out, "%.*s", (int)len, buf_str(&row));
        (void)buf_puts(out, "\n");
        out->failed |= row.failed;
        buf_release(&row);
    }
}

void columns_write(const char *const *texts, size_t n, int width, buf *out) {
    cursor c[kMost];
    n = n < kMost ? n : kMost;
    for (size_t i = 0; i < n; i++)
        c[i] = (cursor){texts[i], strlen(texts[i])};
    int each = n ? (width - kGap * ((int)n - 1)) / (int)n : 0;
    if (each >= kNarrowest) {
        side_by_side(c, n, each, out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        (void)buf_puts(out, i ? "\n" : "");
        side_by_side(&c[i], 1, width < kNarrowest ? kNarrowest : width, out);
    }
}
