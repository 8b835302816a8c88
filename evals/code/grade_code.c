#include "evals/code/grade_code.h"

#include "base/fault.h"
#include "base/text.h"
#include "evals/code/fenced.h"
#include "evals/grade_parts.h"

judge_kind code_grader_kind(const grader *g) {
    return g == &grader_code_lcb ? JUDGE_LCB : JUDGE_REAL;
}

static bool find_program(const grader *g, grade_input in, extraction *x, const char **why) {
    bool thinking = false;
    span text = extract_visible(in.response, &thinking);
    if (in.extracted) {
        *x = (extraction){"given", in.response};
        return true;
    }
    *why = thinking || text_is_blank(text.s, text.n) ? grade_why_nothing(in, text, thinking)
           : in.truncated                            ? "cut off before a program was complete"
                                                     : "no fenced program";
    if (thinking)
        return false;
    return g == &grader_code_lcb ? fenced_last(text, x) : fenced_block(text, x);
}

snap_status code_grade_response(code_judge *j, const grader *g, grade_input in,
                                const code_tests *tests, code_grade *out, snap_err *err) {
    fault_mark before = fault_begin();
    extraction x;
    const char *why;
    *out = (code_grade){.grade = {.verdict = GRADE_UNPARSED}};
    if (!find_program(g, in, &x, &why)) {
        out->grade.reason = why;
        return fault_result(before, SNAP_OK, err);
    }
    out->ran = true;
    out->grade.rule = x.rule;
    grade_keep(&out->grade, x.answer);
    snap_status st = judge_program(j, x.answer, tests, &out->result, err);
    out->grade.verdict = out->result.outcome == CODE_PASSED ? GRADE_CORRECT : GRADE_WRONG;
    out->grade.reason = out->result.reason;
    return fault_result(before, st, err);
}

const char *code_grade_name(const code_grade *g) {
    return g->ran ? code_verdict(g->result.outcome) : grade_verdict_name(GRADE_UNPARSED);
}
