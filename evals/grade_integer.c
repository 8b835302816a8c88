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
    char before = x->answer.s > text.s ? x->answer.s[-1] : ' ';
    return before == '/' || before == '^' || before == '_' || before == '{';
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

/* The answer in a response; false, and *why, where it has none. */
static bool search(grade_input in, extraction *x, bool *open_box, const char **why) {
    bool thinking;
    span text = extract_visible(in.response, &thinking);
    extract_box box = extract_boxed(text, x);
    *open_box = box == EXTRACT_OPEN_BOX || box == EXTRACT_EARLIER_BOX;
    *why =
        box == EXTRACT_OPEN_BOX ? "the last \\boxed never closes" : why_nothing(in, text, thinking);
    if (box != EXTRACT_NO_BOX)
        return box != EXTRACT_OPEN_BOX;
    if (extract_stated(text, x) && integer_has_digit(x->answer))
        return true;
    return !in.truncated && !thinking && guess(text, x);
}

static grade_result grade_aime(const char *gold, grade_input in) {
    grade_result r = {.verdict = GRADE_UNPARSED, .reason = "empty response"};
    extraction x = {"given", span_trim(in.response)};
    bool found = in.extracted ? x.answer.n > 0 : search(in, &x, &r.open_box, &r.reason);
    if (found)
        judge(&r, gold, &x);
    return r;
}

const grader grader_aime = {"aime-1", check_gold, grade_aime};
