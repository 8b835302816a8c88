/* table.h - a table that is independent of any output format: columns with heads, and cells of
 * plain text.
 *
 * Tables on a terminal and tables in a report have this type. A writer (writers.h) prints a table
 * as text, Markdown, HTML or LaTeX. All but the writer of text escape the cells for their format.
 * A cell is plain text, in which nothing is markup.
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
    TABLE_TEXT,     /* aligned to the left */
    TABLE_NUMBER,   /* aligned to the right */
    TABLE_VERDICT,  /* text that HTML shows as a badge */
    TABLE_FLAGS,    /* text that HTML shows as a warning */
    TABLE_BY_CELLS, /* on a terminal to the right if every cell is empty or begins with a digit or
                       "-"; otherwise to the left */
} table_kind;

typedef struct {
    const char *head;  /* "µs" */
    const char *group; /* common head of adjacent columns: "BF16"; "" = none */
    table_kind kind;
    bool paper; /* the column is also in the LaTeX table, which has less space */
} table_column;

/* TABLE_CELL: table_cell() cuts its text to so many bytes, including the NUL. table_put() has no
 * limit. */
enum { TABLE_COLUMNS_MAX = 24, TABLE_CELL = 96 };

typedef struct {
    const char *id;      /* "speed": HTML anchor and LaTeX label; other formats do not use it */
    const char *caption; /* title, with the units that the columns do not name */
    const char *note;    /* explanation below the table; "" = none */
    bool whole;          /* HTML shows all rows, without a vertical scroll bar */
    table_column columns[TABLE_COLUMNS_MAX];
    int n_columns;
    size_t n_rows;      /* complete rows */
    const char **cells; /* [n_rows][n_columns] */
    size_t n_cells, capacity;
    arena *mem; /* memory of the cells, borrowed; NULL: they are in `own` */
    arena own;
    bool failed; /* memory was exhausted; the writers report it */
} table;

/* Returns a table without rows. @heads [n] are borrowed. All columns are TABLE_BY_CELLS. */
table table_new(const char *const *heads, int n);
void table_release(table *t);

/* Adds the next cell. @text may come from outside: text_show() makes it safe to print. */
void table_put(table *t, const char *text);
void table_cell(table *t, const char *fmt, ...) SNAP_PRINTF(2, 3);
/* Adds a number with @decimals decimals; "-" for NaN. */
void table_number(table *t, double x, int decimals);
void table_science(table *t, double x); /* "1.25e-03"; "-" for NaN */

/* Makes the last column the first one. */
void table_last_to_front(table *t);

/* The text of a cell; "" if the cell does not exist. */
const char *table_at(const table *t, size_t row, int column);

#endif
