/* csv.h - comma-separated values as RFC 4180 has them: quoted fields may hold commas, line ends and
 * doubled quotes.
 *
 * Accepted beyond the RFC: lines that end in LF alone, a byte order mark in front, blank lines.
 * Refused with file, line and reason: a quote inside an unquoted field, text behind a closing
 * quote, a quote that never closes, a carriage return that ends no line, a row with another number
 * of fields than the first. Messages never quote the content: it may be confidential. */
#ifndef SNAPMLA_BASE_CSV_H
#define SNAPMLA_BASE_CSV_H

#include <stddef.h>

#include "base/err.h"

enum { CSV_FIELDS_MAX = 1024 }; /* of a row */

/* NUL-terminated, and may hold NULs of its own; borrowed for the call. */
typedef struct {
    const char *s;
    size_t n;
} csv_field;

/* Called for each row; @line is the one it starts in, from 1. An error stops the walk. */
typedef snap_status (*csv_row_fn)(void *ctx, const csv_field *fields, size_t n, long line,
                                  snap_err *err);

/* SNAP_E_INPUT with "name:line: reason". An empty text has no rows. */
snap_status csv_each_row(const char *text, size_t n, const char *name, csv_row_fn fn, void *ctx,
                         snap_err *err) SNAP_CHECK_RESULT;

/**
 * csv_each_record - the rows below a header, with the columns asked for
 *
 * @columns: [n_columns] names, at most CSV_FIELDS_MAX; a row's fields come in this order
 *
 * SNAP_E_INPUT also for a column that the header lacks or has twice.
 */
snap_status csv_each_record(const char *text, size_t n, const char *name,
                            const char *const *columns, size_t n_columns, csv_row_fn fn, void *ctx,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
