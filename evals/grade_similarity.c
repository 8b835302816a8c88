/* grade_similarity.c - grades texts that must be repeated (MRCR). The first line of the gold is a
 * prefix with which the answer must begin, and the rest is the right text. */
#include <string.h>

#include "base/fault.h"
#include "base/text.h"
#include "evals/extract.h"
#include "evals/grade.h"
#include "evals/similarity.h"

static const double kFound = 0.9; /* smallest ratio of a correct answer */

/* An answer is not compared if it has more characters than kLonger times those of the right text
 * plus kSlack. Its ratio would be far below kFound. */
enum { kLonger = 16, kSlack = 1000 };

static snap_status check_gold(const char *gold, snap_err *err) {
    const char *line = strchr(gold, '\n');
    if (line && line > gold && line[1])
        return SNAP_OK;
    return err_set(err, SNAP_E_INPUT,
                   "the gold must be a prefix, a line end and the text that follows it");
}

static span without_prefix(span text, span prefix) {
    if (text.n < prefix.n || memcmp(text.s, prefix.s, prefix.n) != 0)
        return text;
    return (span){text.s + prefix.n, text.n - prefix.n};
}

/* The number of characters, as similarity_ratio() counts them. */
static size_t characters_of(span text) {
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += ((unsigned char)text.s[i] & 0xC0) != 0x80;
    return n;
}

static grade_result grade(const char *gold, grade_input in) {
    const span prefix = {gold, strcspn(gold, "\n")};
    const span right =
        without_prefix((span){gold + prefix.n + 1, strlen(gold + prefix.n + 1)}, prefix);
    span answer = in.extracted ? in.response : extract_visible(in.response, NULL);
    grade_result r = {.verdict = GRADE_UNPARSED, .reason = "empty response"};
    double ratio = 0;
    r.also[0] = (grade_score){0, 1};
    if (text_is_blank(answer.s, answer.n))
        return r;
    r.verdict = GRADE_WRONG;
    r.rule = "whole";
    r.reason = "the answer does not begin with the prefix";
    if (answer.n < prefix.n || memcmp(answer.s, prefix.s, prefix.n) != 0)
        return r;
    answer = without_prefix(answer, prefix);
    r.reason = "the answer is far longer than the right text";
    if (characters_of(answer) > kLonger * characters_of(right) + kSlack)
        return r;
    if (similarity_ratio(answer, right, &ratio, NULL) != SNAP_OK)
        return r; /* grade_response() returns the fault */
    r.also[0].value = ratio;
    r.verdict = ratio >= kFound ? GRADE_CORRECT : GRADE_WRONG;
    r.reason = ratio >= kFound ? "the right text" : "another text";
    return r;
}

const grader grader_similarity = {.id = "similarity-1",
                                  .check_gold = check_gold,
                                  .grade = grade,
                                  .metrics = {"found", "ratio", NULL}};
