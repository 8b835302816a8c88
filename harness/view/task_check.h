/* task_check.h - the check of a task (eval/check_task.h) as text for a terminal. */
#ifndef SNAPMLA_HARNESS_VIEW_TASK_CHECK_H
#define SNAPMLA_HARNESS_VIEW_TASK_CHECK_H

#include "base/json.h"

/* Appends what check_task() found. SNAP_E_NOMEM. */
snap_status task_check_text(const js *check, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
