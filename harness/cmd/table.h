/* table.h - columns of text for a terminal: numbers to the right, words to the left. */
#ifndef SNAPMLA_HARNESS_CMD_TABLE_H
#define SNAPMLA_HARNESS_CMD_TABLE_H

#include <stdbool.h>

#include "base/buf.h"

enum { TABLE_COLUMNS = 16, TABLE_CELL = 96 };

typedef struct {
    const char *const *heads; /* [columns], borrowed */
    int columns;
    char (*cells)[TABLE_CELL]; /* [rows][columns], owned */
    size_t n, capacity;        /* cells */
    bool failed;               /* out of memory; table_write() reports it */
} table;

/* Adds the next cell, row by row. */
void table_cell(table *t, const char *fmt, ...) SNAP_PRINTF(2, 3);
/* A number in a general format of so many decimals; "-" for NaN. */
void table_number(table *t, double x, int decimals);
void table_science(table *t, double x); /* "1.25e-03"; "-" for NaN */

/* Appends the table; a column whose cells all begin with a digit, a sign or "-" is set to the right.
 * @color: heads in bold. SNAP_E_NOMEM. */
snap_status table_write(const table *t, bool color, buf *out, snap_err *err) SNAP_CHECK_RESULT;
void table_release(table *t);

#endif
