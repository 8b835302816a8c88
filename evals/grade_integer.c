/* grade_integer.c - grades answers that are one integer, for example AIME and GSM8K. */
#include <string.h>

#include "evals/answer.h"
#include "evals/grade_parts.h"
#include "evals/integer.h"
#include "evals/math/math_equal.h"

static snap_status check_gold(const char *gold, snap_err *err) {
    char digits[INTEGER_MAX];
    if (integer_parse((span){gold, strlen(gold)}, digits))
        return SNAP_OK;
    return err_set(err, SNAP_E_INPUT, "the gold answer must be an integer, got '%.60s'", gold);
}

/* Judges an answer that is an expression, such as 70+3 or \frac{146}{2}. */
static void judge_expression(grade_result *r, const char *gold, span s) {
    math_verdict v = {.outcome = MATH_UNPARSED};
    if (math_equal(gold, strlen(gold), s.s, s.n, MATH_TRUTH, &v) != SNAP_OK)
        v.outcome = MATH_UNPARSED;
    static const char *const reasons[] = {[MATH_DIFFERENT] = "not the integer",
                                          [MATH_EQUAL] = "an expression equal to the integer",
                                          [MATH_UNPARSED] = "not an integer"};
    r->verdict = v.outcome == MATH_EQUAL ? GRADE_CORRECT : GRADE_WRONG;
    r->undecided = v.undecided && r->extracted[0];
    r->reason = reasons[v.outcome];
}

/* True if a word such as "thousand" follows a digit: "15 thousand" is not 15. */
static bool has_scale(span s) {
    static pattern scale = {.regex = "(?i)[0-9] (?:thousand|million|billion|trillion)\\b"};
    return pattern_find(&scale, s, 0, NULL);
}

/* Judges one reading. False if it cannot be parsed; the verdict is then GRADE_WRONG. */
static bool judge(grade_result *r, const char *gold, const extraction *x) {
    char want[INTEGER_MAX], got[INTEGER_MAX];
    r->rule = x->rule;
    r->undecided = false;
    grade_keep(r, x->answer);
    if (strcmp(x->rule, "boxed_list") == 0) {
        r->verdict = GRADE_WRONG;
        r->reason = "several answers";
    } else if (has_scale(x->answer) || !integer_parse(x->answer, got)) {
        judge_expression(r, gold, answer_core(x->answer));
    } else {
        bool equal = integer_parse((span){gold, strlen(gold)}, want) && strcmp(want, got) == 0;
        r->verdict = equal ? GRADE_CORRECT : GRADE_WRONG;
        r->reason = equal ? "equal integers" : "different integers";
        grade_keep(r, (span){got, strlen(got)});
    }
    return strcmp(r->reason, "not an integer") != 0;
}

static grade_result grade(const char *gold, grade_input in, unsigned flags) {
    grade_result r = {.verdict = GRADE_UNPARSED, .reason = "empty response"};
    if (in.extracted) {
        extraction given = {"given", span_trim(in.response)};
        if (given.answer.n)
            (void)judge(&r, gold, &given);
        return r;
    }
    found_answer a;
    answer_find(&a, in, flags | ANSWER_DIGITS);
    r.open_box = a.open_box;
    r.reason = a.why;
    for (int i = 0; i < a.count && !judge(&r, gold, &a.reading[i]); i++)
        continue;
    return r;
}

static grade_result grade_aime(const char *gold, grade_input in) {
    return grade(gold, in, 0);
}

const grader grader_aime = {
    .id = "aime-8", .mathematical = true, .check_gold = check_gold, .grade = grade_aime};

/* ---- GSM8K ---- */

const char *grade_gsm8k_gold(const char *answer) {
    for (const char *next; (next = strstr(answer, "####"));)
        answer = next + strlen("####");
    return answer;
}

static snap_status check_gsm8k(const char *gold, snap_err *err) {
    return check_gold(grade_gsm8k_gold(gold), err);
}

static grade_result grade_gsm8k(const char *gold, grade_input in) {
    extraction x;
    if (in.extracted && extract_hashes(in.response, &x))
        in.response = x.answer;
    return grade(grade_gsm8k_gold(gold), in, ANSWER_HASHES);
}

const grader grader_gsm8k = {
    .id = "gsm8k-8", .mathematical = true, .check_gold = check_gsm8k, .grade = grade_gsm8k};
