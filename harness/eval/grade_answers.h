/* grade_answers.h - judges recorded answers again, without generating. */
#ifndef SNAPMLA_HARNESS_EVAL_GRADE_ANSWERS_H
#define SNAPMLA_HARNESS_EVAL_GRADE_ANSWERS_H

#include <signal.h>

#include "base/buf.h"

typedef struct {
    const char *task;        /* the task whose grader judges */
    const char *math_policy; /* "field", "strict"; NULL: field */
    const char *judge;       /* of programs: "real", "lcb"; NULL: real */
    int jobs;                /* programs at once; 0 = one per processor */
    const volatile sig_atomic_t *cancel;
} grade_options;

/**
 * grade_answers - judge every line of a file of answers
 *
 * @path: one JSON object per line (`snapmla grade --help` describes it); "-" = standard input
 * @out:  one verdict per line, appended in the same order
 *
 * SNAP_E_USAGE for an unknown task, policy or judge, and for a task that another model judges;
 * SNAP_E_INPUT naming a malformed line; SNAP_E_ENV where programs cannot be run safely. On an error
 * @out is incomplete.
 */
snap_status grade_answers(const char *path, const grade_options *o, buf *out,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
