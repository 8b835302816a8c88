/* eval_plan.h - the plan of an evaluation (eval/power.h) as a table for a terminal. */
#ifndef SNAPMLA_HARNESS_VIEW_EVAL_PLAN_H
#define SNAPMLA_HARNESS_VIEW_EVAL_PLAN_H

#include "base/json.h"

/* Appends the rows of power_plan() as a table. @color: heads in bold. SNAP_E_NOMEM. */
snap_status eval_plan_text(const js *rows, bool color, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
