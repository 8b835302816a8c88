/* writers.h - one function for each format. Each appends to a buffer, whose `failed` says whether
 * memory ran out. */
#ifndef SNAPMLA_HARNESS_VIEW_WRITERS_H
#define SNAPMLA_HARNESS_VIEW_WRITERS_H

#include "base/buf.h"
#include "harness/view/table.h"

/* ---- a table ---- */

/* Columns of text for a terminal. @color: heads in bold. SNAP_E_NOMEM, also where the table has
 * failed. */
snap_status write_text(const table *t, bool color, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Head and rows; caption and note are the caller's. */
void write_markdown(const table *t, buf *out);

/* With caption and note. Needs an id. */
void write_html(const table *t, buf *out);
void write_latex(const table *t, buf *out);

#endif
