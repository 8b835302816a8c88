#include "harness/view/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

table table_new(const char *const *heads, int n) {
    table t = {.caption = "", .note = ""};
    for (; t.n_columns < n && t.n_columns < TABLE_COLUMNS_MAX; t.n_columns++)
        t.columns[t.n_columns] = (table_column){heads[t.n_columns], "", TABLE_BY_CELLS, true};
    return t;
}

void table_release(table *t) {
    arena_release(&t->own);
    *t = (table){0};
}

/* Doubles the capacity. An arena cannot free the old array, so small steps would waste memory. */
static bool grow(table *t, arena *mem) {
    size_t capacity = t->capacity ? 2 * t->capacity : 128;
    const char **cells = arena_alloc(mem, capacity, sizeof *cells);
    if (!cells)
        return false;
    if (t->n_cells)
        memcpy(cells, t->cells, t->n_cells * sizeof *cells);
    t->cells = cells;
    t->capacity = capacity;
    return true;
}

void table_put(table *t, const char *text) {
    arena *mem = t->mem ? t->mem : &t->own;
    buf shown = {0};
    text_append_shown(&shown, text);
    const char *copy = shown.failed ? NULL : arena_strdup(mem, buf_str(&shown));
    buf_release(&shown);
    if (!copy || (t->n_cells == t->capacity && !grow(t, mem))) {
        t->failed = true;
        return;
    }
    t->cells[t->n_cells++] = copy;
    t->n_rows = t->n_cells / (size_t)t->n_columns;
}

void table_cell(table *t, const char *fmt, ...) {
    char text[TABLE_CELL];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    table_put(t, text);
}

void table_number(table *t, double x, int decimals) {
    if (isnan(x))
        table_put(t, "-");
    else
        table_cell(t, "%.*f", decimals, x);
}

void table_science(table *t, double x) {
    if (isnan(x))
        table_put(t, "-");
    else
        table_cell(t, "%.2e", x);
}

void table_last_to_front(table *t) {
    const int last = t->n_columns - 1;
    if (last < 1)
        return;
    table_column column = t->columns[last];
    memmove(t->columns + 1, t->columns, (size_t)last * sizeof *t->columns);
    t->columns[0] = column;
    for (size_t r = 0; r < t->n_rows; r++) {
        const char **row = t->cells + r * (size_t)t->n_columns, *cell = row[last];
        memmove(row + 1, row, (size_t)last * sizeof *row);
        row[0] = cell;
    }
}

const char *table_at(const table *t, size_t row, int column) {
    size_t i = row * (size_t)t->n_columns + (size_t)column;
    return i < t->n_cells ? t->cells[i] : "";
}
