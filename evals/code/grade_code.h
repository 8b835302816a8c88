/* grade_code.h - from a response to a verdict, where the answer is a program. */
#ifndef SNAPMLA_EVALS_CODE_GRADE_CODE_H
#define SNAPMLA_EVALS_CODE_GRADE_CODE_H

#include "evals/code/judge.h"
#include "evals/grade.h"

typedef struct {
    grade_result grade; /* unparsed: no program was found, nothing was run */
    code_result result; /* meaningless where nothing was run */
    bool ran;
} code_grade;

/* The judge that a grader stands for. */
judge_kind code_grader_kind(const grader *g);

/**
 * code_grade_response - find the program in a response, and run it
 *
 * @in: `extracted`: the response is the program. Else it is the last fenced block behind the reasoning:
 *      for grader_code_lcb what lies between the last two fences, whatever they are, as in
 *      LiveCodeBench's runner; for the others the last block that is opened and closed
 *
 * Errors as judge_program()'s. grade.reason points into @out.
 */
snap_status code_grade_response(code_judge *j, const grader *g, grade_input in,
                                const code_tests *tests, code_grade *out,
                                snap_err *err) SNAP_CHECK_RESULT;

/* "pass", "wrong", "timeout", "error"; "unparsed" where nothing was run. */
const char *code_grade_name(const code_grade *g);

#endif
