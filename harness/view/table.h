/* table.h - a table before any format: columns with heads, and cells of plain text.
 *
 * Every table of the program is one of these, on a terminal as well as in a report. A writer
 * (writers.h) prints it as text, Markdown, HTML or LaTeX and escapes the cells for its format.
 * Cells are UTF-8 and hold what they say: no markup.
 *
 *   static const char *const heads[] = {"arm", "us"};
 *   table t = table_new(heads, 2);
 *   table_cell(&t, "%s", "fp8");     cells are added from left to right, row by row
 *   table_number(&t, 12.5, 1);
 *   st = write_text(&t, color, out, err);
 *   table_release(&t); */
#ifndef SNAPMLA_HARNESS_VIEW_TABLE_H
#define SNAPMLA_HARNESS_VIEW_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

typedef enum {
    TABLE_TEXT,     /* set to the left */
    TABLE_NUMBER,   /* set to the right */
    TABLE_VERDICT,  /* a word that HTML shows as a badge */
    TABLE_FLAGS,    /* words that HTML shows as warnings */
    TABLE_BY_CELLS, /* to the right where every cell begins with a digit or "-", or is empty */
} table_kind;

typedef struct {
    const char *head;  /* "µs" */
    const char *group; /* what adjacent columns have in common: "BF16"; "" = nothing */
    table_kind kind;
    bool paper; /* narrow enough to print: part of the LaTeX table */
} table_column;

/* TABLE_CELL: bytes of a cell that table_cell() makes, its NUL included; longer ones are cut. */
enum { TABLE_COLUMNS_MAX = 20, TABLE_CELL = 96 };

typedef struct {
    const char *id;      /* "speed": the HTML anchor, the LaTeX label; NULL on a terminal */
    const char *caption; /* what it shows, with units where columns don't have them */
    const char *note;    /* how to read it; "" = nothing to say */
    table_column columns[TABLE_COLUMNS_MAX];
    int n_columns;
    size_t n_rows;      /* complete rows */
    const char **cells; /* [n_rows][n_columns] */
    size_t n_cells, capacity;
    arena *mem; /* holds the cells, borrowed; NULL: `own` does */
    arena own;
    bool failed; /* out of memory; the writers report it */
} table;

/* A table without rows. @heads [n] are borrowed; columns are TABLE_BY_CELLS. */
table table_new(const char *const *heads, int n);
void table_release(table *t);

/* Adds the next cell: a copy of @text. */
void table_put(table *t, const char *text);
void table_cell(table *t, const char *fmt, ...) SNAP_PRINTF(2, 3);
/* A number with so many decimals; "-" for NaN. */
void table_number(table *t, double x, int decimals);
void table_science(table *t, double x); /* "1.25e-03"; "-" for NaN */

/* The text of a cell; "" where the table ends before it. */
const char *table_at(const table *t, size_t row, int column);

#endif
