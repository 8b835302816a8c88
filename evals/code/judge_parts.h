/* judge_parts.h - what the files of the judge share. */
#ifndef SNAPMLA_EVALS_CODE_JUDGE_PARTS_H
#define SNAPMLA_EVALS_CODE_JUDGE_PARTS_H

#include "evals/code/judge.h"

struct code_judge {
    sandbox *box;
    judge_kind kind;
    double seconds;
    const volatile sig_atomic_t *cancel;
    buf real, lcb, unit; /* drivers */
};

/* All tests have this long together. */
double judge_total_seconds(const code_judge *j, size_t tests);

/* Records why a program fails: @text is the program's own, so it may be anything. */
void judge_fail(code_result *r, code_outcome outcome, size_t test, const char *what, span text);

/* The last line of a program's standard error that says something. */
span judge_last_line(const buf *text);

/* Each of the three ways. */
snap_status judge_real(code_judge *j, span program, const code_tests *tests, code_result *out,
                       snap_err *err) SNAP_CHECK_RESULT;
snap_status judge_lcb(code_judge *j, span program, const code_tests *tests, code_result *out,
                      snap_err *err) SNAP_CHECK_RESULT;
snap_status judge_unit(code_judge *j, span program, const code_tests *tests, code_result *out,
                       snap_err *err) SNAP_CHECK_RESULT;

/* Runs a job whose driver says "S" before it touches the program; once more where it did not come so
 * far. SNAP_E_ENV when it did not then either. */
snap_status judge_run_job(code_judge *j, const sandbox_job *job, sandbox_result *r,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
