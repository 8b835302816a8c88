/* eval_text.h - the accuracies of a result as tables for a terminal. */
#ifndef SNAPMLA_HARNESS_VIEW_EVAL_TEXT_H
#define SNAPMLA_HARNESS_VIEW_EVAL_TEXT_H

#include "harness/record/results.h"

/* Appends the tables of each task: its arms, lengths of reasoning, comparisons with the baseline
 * and second opinions. All but the first appear only if the result has such values. A table of the
 * comparisons over all tasks follows, if there are any. @color: heads in bold. SNAP_E_NOMEM. */
snap_status eval_view(const results *r, bool color, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
