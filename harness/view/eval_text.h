/* eval_text.h - the accuracies of a result as tables for a terminal. */
#ifndef SNAPMLA_HARNESS_VIEW_EVAL_TEXT_H
#define SNAPMLA_HARNESS_VIEW_EVAL_TEXT_H

#include "harness/record/results.h"

/* Appends two tables for each task: its arms, and the comparisons with the baseline, if there are
 * any. A table for all tasks together follows, if the result has such comparisons. @color: heads in
 * bold. SNAP_E_NOMEM. */
snap_status eval_view(const results *r, bool color, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
