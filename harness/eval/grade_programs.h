/* grade_programs.h - grades recorded answers that are programs. */
#ifndef SNAPMLA_HARNESS_EVAL_GRADE_PROGRAMS_H
#define SNAPMLA_HARNESS_EVAL_GRADE_PROGRAMS_H

#include <signal.h>

#include "evals/task.h"

typedef struct {
    const task_spec *task;
    const grader *grader;
    int jobs; /* how many programs run at once; 0 = one per processor */
    const volatile sig_atomic_t *cancel;
} grade_programs_options;

/* Grades every line of @text that is not blank and appends one verdict for each to @out, in the
 * same order. @name: name of the text in messages. If a line is malformed, no program is run. */
snap_status grade_programs(const grade_programs_options *o, const buf *text, const char *name,
                           buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
