/* rows.h - converts the JSON of the Hugging Face rows API to JSON lines.
 *
 * Data sets that are published in Parquet only can be read through this API, at most 100 rows per
 * response: {"rows": [{"row": {...}}, ...], "num_rows_total": N}. Source: Hugging Face dataset
 * viewer documentation, "Download slices of rows". */
#ifndef SNAPMLA_HARNESS_FETCH_ROWS_H
#define SNAPMLA_HARNESS_FETCH_ROWS_H

#include <stdint.h>

#include "base/buf.h"

/* Appends one line for each row. SNAP_E_INPUT, naming @name, if the text has another form or no
 * rows, if rows are missing ("partial", "num_rows_total"), or if a row is cut short
 * ("truncated_cells"). SNAP_E_NOMEM if @out becomes too large. */
snap_status rows_to_lines(const char *text, size_t n, const char *name, buf *out,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Like rows_to_lines(), for one page of several. The page may lack the rows of the other pages.
 * *count is the number of rows in the page, at least one. *total is the number of rows of the whole
 * data set. */
snap_status rows_page_to_lines(const char *text, size_t n, const char *name, buf *out,
                               int64_t *count, int64_t *total, snap_err *err) SNAP_CHECK_RESULT;

#endif
