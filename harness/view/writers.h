/* writers.h - writes a table in one format. Each function appends to a buffer. If memory is
 * exhausted, or was when the table was built, write_text() returns an error, and the others set the
 * field `failed` of the buffer. */
#ifndef SNAPMLA_HARNESS_VIEW_WRITERS_H
#define SNAPMLA_HARNESS_VIEW_WRITERS_H

#include "base/buf.h"
#include "harness/view/table.h"

/* Writes columns of text for a terminal. @color: heads in bold. SNAP_E_NOMEM. */
snap_status write_text(const table *t, bool color, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Writes heads and rows. The caller writes caption and note. */
void write_markdown(const table *t, buf *out);

/* Both functions also write the caption and the note. The table must have an id. */
void write_html(const table *t, buf *out);
void write_latex(const table *t, buf *out);

#endif
