/* judge_parts.h - functions that the files of the judge share. */
#ifndef SNAPMLA_EVALS_CODE_JUDGE_PARTS_H
#define SNAPMLA_EVALS_CODE_JUDGE_PARTS_H

#include <pthread.h>

#include "evals/code/judge.h"

/* A list of changed assertions, one item per problem: see judge_unit.c. */
typedef struct twisted_tests twisted_tests;

struct code_judge {
    sandbox *box;
    judge_kind kind;
    double seconds;
    const volatile sig_atomic_t *cancel;
    buf real, lcb, unit, twist; /* Python drivers */
    pthread_mutex_t lock;       /* guards `twisted` */
    twisted_tests *twisted;
};

/* The time limit in seconds for all tests together. */
double judge_total_seconds(const code_judge *j, size_t tests);

/* Records why a program fails. @text comes from the program and may hold any bytes. */
void judge_fail(code_result *r, code_outcome outcome, size_t test, const char *what, span text);

/* The last line of a program's standard error that is not blank; empty if there is none. */
span judge_last_line(const buf *text);

/* The three ways to judge: one process per test, an imitation of LiveCodeBench's checker, and
 * assertions. */
snap_status judge_real(code_judge *j, span program, const code_tests *tests, code_result *out,
                       snap_err *err) SNAP_CHECK_RESULT;
snap_status judge_lcb(code_judge *j, span program, const code_tests *tests, code_result *out,
                      snap_err *err) SNAP_CHECK_RESULT;
snap_status judge_unit(code_judge *j, span program, const code_tests *tests, code_result *out,
                       snap_err *err) SNAP_CHECK_RESULT;

void judge_forget_twisted(code_judge *j); /* frees `twisted` */

/* Runs a job. Its driver writes "S" to the channel before it starts the program. If the job ended
 * by itself and the channel is empty, the job runs once more; SNAP_E_ENV if this happens again. */
snap_status judge_run_job(code_judge *j, const sandbox_job *job, sandbox_result *r,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
