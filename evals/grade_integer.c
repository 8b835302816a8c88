/* grade_integer.c - grades answers that are one integer, for example AIME and GSM8K. */
#include <string.h>

#include "evals/grade_parts.h"
#include "evals/integer.h"

static snap_status check_gold(const char *gold, snap_err *err) {
    char digits[INTEGER_MAX];
    if (integer_parse((span){gold, strlen(gold)}, digits))
        return SNAP_OK;
    return err_set(err, SNAP_E_INPUT, "the gold answer must be an integer, got '%.60s'", gold);
}

/* Sets the verdict for an extracted answer. */
static void judge(grade_result *r, const char *gold, const extraction *x) {
    char want[INTEGER_MAX], got[INTEGER_MAX];
    r->rule = x->rule;
    grade_keep(r, x->answer);
    r->verdict = GRADE_WRONG;
    if (!integer_parse(x->answer, got)) {
        r->reason = strcmp(x->rule, "boxed_list") == 0 ? "several answers" : "not an integer";
        return;
    }
    bool equal = integer_parse((span){gold, strlen(gold)}, want) && strcmp(want, got) == 0;
    r->verdict = equal ? GRADE_CORRECT : GRADE_WRONG;
    r->reason = equal ? "equal integers" : "different integers";
    grade_keep(r, (span){got, strlen(got)});
}

/* Finds an answer that is not declared: the last formula if it is an integer, else the last number
 * if it is not a part of an expression. */
static bool guess(span text, extraction *x) {
    char ignored[INTEGER_MAX];
    if (extract_inline_math(text, x) && integer_parse(x->answer, ignored))
        return true;
    return extract_last_number(text, x) && !grade_part_of_expression(text, x);
}

/* Finds the answer in a response. False if there is none. *why: the reason for that. */
static bool search(grade_input in, bool hashes, extraction *x, bool *open_box, const char **why) {
    bool thinking;
    span text = extract_visible(in.response, &thinking);
    extract_box box = extract_boxed(text, x);
    *open_box = box == EXTRACT_OPEN_BOX || box == EXTRACT_EARLIER_BOX;
    *why = box == EXTRACT_OPEN_BOX ? "the last \\boxed is not closed"
                                   : grade_why_nothing(in, text, thinking);
    if (box != EXTRACT_NO_BOX)
        return box != EXTRACT_OPEN_BOX;
    if (hashes && extract_hashes(text, x) && integer_has_digit(x->answer))
        return true;
    if (extract_stated(text, x) && integer_has_digit(x->answer))
        return true;
    return !in.truncated && !thinking && guess(text, x);
}

static grade_result grade(const char *gold, grade_input in, bool hashes) {
    grade_result r = {.verdict = GRADE_UNPARSED, .reason = "empty response"};
    extraction x = {"given", span_trim(in.response)};
    bool found = in.extracted ? x.answer.n > 0 : search(in, hashes, &x, &r.open_box, &r.reason);
    if (found)
        judge(&r, gold, &x);
    return r;
}

static grade_result grade_aime(const char *gold, grade_input in) {
    return grade(gold, in, false);
}

const grader grader_aime = {.id = "aime-2", .check_gold = check_gold, .grade = grade_aime};

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
    return grade(grade_gsm8k_gold(gold), in, true);
}

const grader grader_gsm8k = {.id = "gsm8k-2", .check_gold = check_gsm8k, .grade = grade_gsm8k};
