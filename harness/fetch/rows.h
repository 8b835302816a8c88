/* rows.h - the Hugging Face rows API's JSON as JSON lines.
 *
 * {"rows": [{"row": {...}}, ...], "num_rows_total": N}: sets published in Parquet only are served
 * so, up to 100 rows an answer. Source: Hugging Face dataset viewer documentation, "Download slices
 * of rows". */
#ifndef SNAPMLA_HARNESS_FETCH_ROWS_H
#define SNAPMLA_HARNESS_FETCH_ROWS_H

#include <stdint.h>

#include "base/buf.h"

/* Appends a line a row. SNAP_E_INPUT naming @name where the text is something else, where its rows
 * are not all there are ("partial", "num_rows_total"), or not whole ("truncated_cells"). */
snap_status rows_to_lines(const char *text, size_t n, const char *name, buf *out,
                          snap_err *err) SNAP_CHECK_RESULT;

/* The same of one answer of several: *count is how many rows it has, at least one, *total how many
 * there are in all. */
snap_status rows_page_to_lines(const char *text, size_t n, const char *name, buf *out,
                               int64_t *count, int64_t *total, snap_err *err) SNAP_CHECK_RESULT;

#endif
