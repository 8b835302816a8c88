/* csv.h - reads comma-separated values (RFC 4180): quoted fields may hold commas, line ends and
 * doubled quotes.
 *
 * Also accepted: lines that end in LF alone, a byte order mark at the start, and empty lines, which
 * are skipped. Refused, with file, line and reason: a quote inside an unquoted field, text
 * after a closing quote, a quote that is never closed, a carriage return outside quotes that does
 * not end a line, a row whose number of fields differs from the first row's, a row with more than
 * CSV_FIELDS_MAX fields. Messages never quote the content, because it may be confidential. */
#ifndef SNAPMLA_BASE_CSV_H
#define SNAPMLA_BASE_CSV_H

#include <stddef.h>

#include "base/err.h"

enum { CSV_FIELDS_MAX = 1024 }; /* largest number of fields in one row */

/* One field. A NUL follows its n bytes, which may hold NULs themselves. Valid only while the
 * csv_row_fn runs. */
typedef struct {
    const char *s;
    size_t n;
} csv_field;

/* Called once for each row. @line is the line number, from 1, where the row starts. An error that
 * the function returns stops the reading. */
typedef snap_status (*csv_row_fn)(void *ctx, const csv_field *fields, size_t n, long line,
                                  snap_err *err);

/* Calls @fn for each row. An empty text has no rows. @name stands for the text in messages.
 * SNAP_E_INPUT with "name:line: reason", SNAP_E_NOMEM, and the errors of @fn. */
snap_status csv_each_row(const char *text, size_t n, const char *name, csv_row_fn fn, void *ctx,
                         snap_err *err) SNAP_CHECK_RESULT;

/**
 * csv_each_record - read the rows below a header line and select columns by name
 *
 * @columns: [n_columns] names, at most CSV_FIELDS_MAX; @fn gets the fields in this order
 *
 * Errors: those of csv_each_row(), and SNAP_E_INPUT if the header does not have each of the columns
 * exactly once. A text without rows is not an error.
 */
snap_status csv_each_record(const char *text, size_t n, const char *name,
                            const char *const *columns, size_t n_columns, csv_row_fn fn, void *ctx,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
