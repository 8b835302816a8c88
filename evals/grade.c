#include "evals/grade_parts.h"

#include <string.h>

#include "base/buf.h"
#include "base/fault.h"
#include "base/text.h"

const char *grade_verdict_name(grade_verdict v) {
    static const char *const names[] = {"correct", "wrong", "unparsed"};
    return names[v];
}

snap_status grade_check_gold(const grader *g, const char *gold, snap_err *err) {
    fault_mark before = fault_begin();
    snap_status st = g->check_by ? g->check_by(g, gold, err) : g->check_gold(gold, err);
    return fault_result(before, st, err);
}

snap_status grade_response(const grader *g, const char *gold, grade_input in, grade_result *out,
                           snap_err *err) {
    fault_mark before = fault_begin();
    *out = g->grade_by ? g->grade_by(g, gold, in) : g->grade(gold, in);
    return fault_result(before, SNAP_OK, err);
}

bool grade_runs_programs(const grader *g) {
    return !g->grade && !g->grade_by && !g->by_model && !g->recorded;
}

int grade_metrics(const grader *g) {
    int n = 0;
    while (n < GRADE_METRICS && g->metrics[n])
        n++;
    return n ? n : 1;
}

void grade_keep(grade_result *r, span answer) {
    buf text = {0};
    text_append_utf8_lossy(&text, answer.s,
                           answer.n < GRADE_EXTRACTED_MAX ? answer.n : GRADE_EXTRACTED_MAX);
    const char *s = buf_str(&text);
    size_t n = 0, step;
    while (n < text.len && s[n] && (step = text_utf8_len(s + n, text.len - n)) > 0 &&
           n + step < GRADE_EXTRACTED_MAX)
        n += step;
    memcpy(r->extracted, s, n);
    r->extracted[n] = '\0';
    buf_release(&text);
}

const char *grade_why_nothing(grade_input in, span text, bool thinking) {
    if (thinking)
        return "the reasoning did not end";
    if (text_is_blank(text.s, text.n))
        return in.response.n == text.n ? "empty response" : "nothing after the reasoning";
    return in.truncated ? "cut off before an answer was stated" : "no answer found";
}

bool grade_part_of_expression(span text, const extraction *x) {
    char before = x->answer.s > text.s ? x->answer.s[-1] : ' ';
    return before == '/' || before == '^' || before == '_' || before == '{';
}
