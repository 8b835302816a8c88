/* eval_text.h - rows of the "evals" section as tables for a terminal. */
#ifndef SNAPMLA_HARNESS_VIEW_EVAL_TEXT_H
#define SNAPMLA_HARNESS_VIEW_EVAL_TEXT_H

#include "base/json.h"

/* Appends two tables for each task: its arms, and the comparisons with the baseline, if there are
 * any. @rows: the "evals" section; @color: heads in bold. SNAP_E_NOMEM. */
snap_status eval_view(const js *rows, bool color, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
