#include "harness/cmd/table.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *next_cell(table *t) {
    if (t->n == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 128;
        char(*cells)[TABLE_CELL] = realloc(t->cells, capacity * sizeof *cells);
        if (!cells) {
            t->failed = true;
            return NULL;
        }
        t->cells = cells;
        t->capacity = capacity;
    }
    return t->cells[t->n++];
}

void table_cell(table *t, const char *fmt, ...) {
    char *cell = next_cell(t);
    if (!cell)
        return;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(cell, TABLE_CELL, fmt, ap);
    va_end(ap);
}

void table_number(table *t, double x, int decimals) {
    if (isnan(x))
        table_cell(t, "-");
    else
        table_cell(t, "%.*f", decimals, x);
}

void table_science(table *t, double x) {
    if (isnan(x))
        table_cell(t, "-");
    else
        table_cell(t, "%.2e", x);
}

static bool is_number(const char *cell) {
    return isdigit((unsigned char)*cell) || *cell == '-' || *cell == '\0';
}

/* Characters, not bytes. */
static int width_of(const char *s) {
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static void layout(const table *t, int width[TABLE_COLUMNS], bool right[TABLE_COLUMNS]) {
    for (int c = 0; c < t->columns; c++) {
        width[c] = width_of(t->heads[c]);
        right[c] = t->n > 0;
    }
    for (size_t i = 0; i < t->n; i++) {
        size_t c = i % (size_t)t->columns;
        int w = width_of(t->cells[i]);
        width[c] = w > width[c] ? w : width[c];
        right[c] = right[c] && is_number(t->cells[i]);
    }
}

snap_status table_write(const table *t, bool color, buf *out, snap_err *err) {
    int width[TABLE_COLUMNS] = {0};
    bool right[TABLE_COLUMNS] = {false};
    layout(t, width, right);
    if (t->failed)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a table");
    size_t columns = (size_t)t->columns;
    for (size_t i = 0; i < columns + t->n; i++) {
        size_t c = i % columns;
        const char *cell = i < columns ? t->heads[c] : t->cells[i - columns];
        bool bold = color && i < columns;
        bool last = c + 1 == columns;
        int pad = width[c] - width_of(cell);
        (void)buf_printf(out, "%s%*s%s%*s%s%s", bold ? "\033[1m" : "", right[c] ? pad : 0, "", cell,
                         right[c] || last ? 0 : pad, "", bold ? "\033[0m" : "", last ? "\n" : "  ");
    }
    return buf_check(out, "a table", err);
}

void table_release(table *t) {
    free(t->cells);
    *t = (table){0};
}
