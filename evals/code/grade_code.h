/* grade_code.h - grades a response that is a program. */
#ifndef SNAPMLA_EVALS_CODE_GRADE_CODE_H
#define SNAPMLA_EVALS_CODE_GRADE_CODE_H

#include "evals/code/judge.h"
#include "evals/grade.h"

typedef struct {
    grade_result grade; /* unparsed: no program was found, so nothing was run */
    code_result result; /* valid only if ran */
    bool ran;
} code_grade;

/* The judge that a grader needs: JUDGE_LCB for grader_code_lcb, otherwise JUDGE_REAL. */
judge_kind code_grader_kind(const grader *g);

/**
 * code_grade_response - find the program in a response and run it
 *
 * @in: if `extracted` is set, the response is the program. Otherwise the program is what
 *      comes after the reasoning: fenced_last() for grader_code_lcb, as in LiveCodeBench's
 *      runner, and program_find() for the other graders
 *
 * Fails like judge_program(). If `ran` is set, grade.reason points into @out.
 */
snap_status code_grade_response(code_judge *j, const grader *g, grade_input in,
                                const code_tests *tests, code_grade *out,
                                snap_err *err) SNAP_CHECK_RESULT;

/* "pass", "wrong", "timeout" or "error"; "unparsed" if nothing was run. */
const char *code_grade_name(const code_grade *g);

#endif
