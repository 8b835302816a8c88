/* text.c - writes a table as columns of text for a terminal. */
#include <ctype.h>

#include "harness/view/writers.h"

static bool is_number(const char *cell) {
    return isdigit((unsigned char)*cell) || *cell == '-' || *cell == '\0';
}

/* The width in characters, not bytes: counts all bytes except UTF-8 continuation bytes. */
static int width_of(const char *s) {
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

typedef struct {
    int width;
    bool right;
} layout;

static layout layout_of(const table *t, int c) {
    table_kind kind = t->columns[c].kind;
    layout l = {width_of(t->columns[c].head), kind == TABLE_NUMBER};
    bool numbers = t->n_rows > 0;
    for (size_t r = 0; r < t->n_rows; r++) {
        const char *cell = table_at(t, r, c);
        int w = width_of(cell);
        l.width = w > l.width ? w : l.width;
        numbers = numbers && is_number(cell);
    }
    l.right |= kind == TABLE_BY_CELLS && numbers;
    return l;
}

static void put_cell(const char *cell, layout l, bool last, bool bold, buf *out) {
    int pad = l.width - width_of(cell);
    (void)buf_printf(out, "%s%*s%s%*s%s%s", bold ? "\033[1m" : "", l.right ? pad : 0, "", cell,
                     l.right || last ? 0 : pad, "", bold ? "\033[0m" : "", last ? "\n" : "  ");
}

snap_status write_text(const table *t, bool color, buf *out, snap_err *err) {
    layout layouts[TABLE_COLUMNS_MAX];
    if (t->failed)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a table");
    for (int c = 0; c < t->n_columns; c++)
        layouts[c] = layout_of(t, c);
    for (int c = 0; c < t->n_columns; c++)
        put_cell(t->columns[c].head, layouts[c], c + 1 == t->n_columns, color, out);
    for (size_t r = 0; r < t->n_rows; r++)
        for (int c = 0; c < t->n_columns; c++)
            put_cell(table_at(t, r, c), layouts[c], c + 1 == t->n_columns, false, out);
    return buf_check(out, "a table", err);
}
