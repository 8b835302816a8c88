/* grade_integer.c - sets whose answer is one integer (AIME). */
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "evals/extract.h"
#include "evals/grade.h"
#include "evals/integer.h"

static snap_status check_gold(const char *gold, snap_err *err) {
    char digits[INTEGER_MAX];
    if (integer_parse((span){gold, strlen(gold)}, digits))
        return SNAP_OK;
    return err_set(err, SNAP_E_INPUT, "the gold answer must be an integer, got '%.60s'", gold);
}

/* Copies what fits, malformed bytes replaced, no sequence cut in half. */
static void keep_extracted(grade_result *r, span answer) {
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

/* A verdict on what the model itself declared to be its answer. */
static void judge(grade_result *r, const char *gold, const extraction *x) {
    char want[INTEGER_MAX], got[INTEGER_MAX];
    r->rule = x->rule;
    keep_extracted(r, x->answer);
    r->verdict = GRADE_WRONG;
    if (!integer_parse(x->answer, got)) {
        r->reason = strcmp(x->rule, "boxed_list") == 0 ? "several answers" : "not an integer";
        return;
    }
    bool equal = integer_parse((span){gold, strlen(gold)}, want) && strcmp(want, got) == 0;
    r->verdict = equal ? GRADE_CORRECT : GRADE_WRONG;
    r->reason = equal ? "equal integers" : "different integers";
    keep_extracted(r, (span){got, strlen(got)});
}

/* "25/4" and "x^2" end in a digit that is no answer. */
static bool part_of_expression(span text, const extraction *x) {
    const char *before = x->answer.s;
    return before > text.s && memchr("/^_{", before[-1], 4);
}

/* Undeclared answers: the last formula if it is an integer, else the last number. */
static bool guess(span text, extraction *x) {
    char ignored[INTEGER_MAX];
    if (extract_inline_math(text, x) && integer_parse(x->answer, ignored))
        return true;
    return extract_last_number(text, x) && !part_of_expression(text, x);
}

static const char *why_nothing(grade_input in, span text, bool thinking) {
    if (thinking)
        return "the reasoning never ended";
    if (text_is_blank(text.s, text.n))
        return in.response.n == text.n ? "empty response" : "nothing after the reasoning";
    return in.truncated ? "cut off before an answer was stated" : "no answer found";
}

static grade_result grade_aime(const char *gold, grade_input in) {
    grade_result r = {.verdict = GRADE_UNPARSED};
    extraction x = {"given", span_trim(in.response)};
    bool thinking = false;
    span text = in.extracted ? x.answer : extract_visible(in.response, &thinking);
    extract_box found = in.extracted ? EXTRACT_NO_BOX : extract_boxed(text, &x);
    r.open_box = found == EXTRACT_OPEN_BOX || found == EXTRACT_EARLIER_BOX;
    if (found == EXTRACT_OPEN_BOX)
        r.reason = "the last \\boxed never closes";
    else if (found != EXTRACT_NO_BOX || (in.extracted && text.n))
        judge(&r, gold, &x);
    else if (!in.extracted && extract_stated(text, &x) && integer_has_digit(x.answer))
        judge(&r, gold, &x);
    else if (!in.extracted && !in.truncated && !thinking && guess(text, &x))
        judge(&r, gold, &x);
    else
        r.reason = why_nothing(in, text, thinking);
    return r;
}

const grader grader_aime = {"aime-1", check_gold, grade_aime};
