#include "evals/code/grade_code.h"

#include "base/fault.h"
#include "base/text.h"
#include "evals/code/fenced.h"
#include "evals/code/program.h"
#include "evals/grade_parts.h"

judge_kind code_grader_kind(const grader *g) {
    return g == &grader_code_lcb ? JUDGE_LCB : JUDGE_REAL;
}

/* Stores the program of a response in @program and its rule in *rule. False if there is none; *why:
 * the reason for that. */
static bool find_program(const grader *g, grade_input in, const code_tests *tests, buf *program,
                         const char **rule, const char **why) {
    bool thinking = false;
    extraction x = {"given", in.response};
    if (in.extracted) {
        *rule = x.rule;
        return buf_append(program, in.response.s, in.response.n);
    }
    span text = extract_visible(in.response, &thinking);
    *why = thinking || text_is_blank(text.s, text.n) ? grade_why_nothing(in, text, thinking)
           : in.truncated                            ? "cut off before a program was complete"
                                                     : "no program";
    if (thinking)
        return false;
    if (g != &grader_code_lcb) {
        *rule = program_find(text, tests, !in.truncated, program);
        return *rule != NULL;
    }
    *rule = x.rule = "fenced";
    return fenced_last(text, &x) && buf_append(program, x.answer.s, x.answer.n);
}

snap_status code_grade_response(code_judge *j, const grader *g, grade_input in,
                                const code_tests *tests, code_grade *out, snap_err *err) {
    fault_mark before = fault_begin();
    const char *rule = NULL, *why = NULL;
    buf program = {0};
    snap_status st = SNAP_OK;
    *out = (code_grade){.grade = {.verdict = GRADE_UNPARSED}};
    out->ran = find_program(g, in, tests, &program, &rule, &why);
    out->grade.reason = why;
    TRY(buf_check(&program, "a program", err));
    if (out->ran) {
        span code = {buf_str(&program), program.len};
        out->grade.rule = rule;
        grade_keep(&out->grade, code);
        TRY(judge_program(j, code, tests, &out->result, err));
        out->grade.verdict = out->result.outcome == CODE_PASSED ? GRADE_CORRECT : GRADE_WRONG;
        out->grade.reason = out->result.reason;
    }
cleanup:
    buf_release(&program);
    return fault_result(before, st, err);
}

const char *code_grade_name(const code_grade *g) {
    return g->ran ? code_verdict(g->result.outcome) : grade_verdict_name(GRADE_UNPARSED);
}
