/* grade_code.h - `snapmla grade` where the answers are programs. */
#ifndef SNAPMLA_HARNESS_CMD_GRADE_CODE_H
#define SNAPMLA_HARNESS_CMD_GRADE_CODE_H

#include <signal.h>

#include "evals/task.h"

typedef struct {
    const task_spec *task;
    const grader *grader;
    int jobs; /* programs at once; 0: one a processor */
    const volatile sig_atomic_t *cancel;
} grade_code_options;

/* Judges every line of @text, called @name in messages, and appends a verdict a line to @out, in the same
 * order. A malformed line is an error before any program is run. */
snap_status grade_code(const grade_code_options *o, const buf *text, const char *name, buf *out,
                       snap_err *err) SNAP_CHECK_RESULT;

#endif
