/* grade_answers.h - grades recorded answers again, without generating. */
#ifndef SNAPMLA_HARNESS_EVAL_GRADE_ANSWERS_H
#define SNAPMLA_HARNESS_EVAL_GRADE_ANSWERS_H

#include <signal.h>

#include "base/buf.h"

typedef struct {
    const char *task;        /* the task whose grader is used: its name, or the path of its file */
    const char *math_policy; /* "truth", "field", "strict"; NULL: truth */
    const char *judge;       /* the judge of programs: "real", "lcb"; NULL: "real" */
    int jobs;                /* how many programs run at once; 0 = one per processor */
    const volatile sig_atomic_t *cancel;
} grade_options;

/**
 * grade_answers - grade every line of a file of answers
 *
 * @path: one JSON object per line (`snapmla grade --help` describes it); "-" = standard input
 * @out:  one verdict per line, appended in the same order
 *
 * Blank lines are skipped. SNAP_E_USAGE: no task, an unknown task, policy or judge, a task that a
 * model or another program judges, or a row whose 'code' and 'response' are ambiguous.
 * SNAP_E_INPUT: a malformed line; the message names it. SNAP_E_ENV: programs cannot be isolated
 * here. Also the errors of reading the file, SNAP_E_CANCELLED and SNAP_E_NOMEM. After an error @out
 * is incomplete.
 */
snap_status grade_answers(const char *path, const grade_options *o, buf *out,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
