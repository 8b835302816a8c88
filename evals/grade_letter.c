/* grade_letter.c - multiple choice with four options (GPQA). */
#include <string.h>

#include "evals/grade_parts.h"

static const char kLastOption = 'D';

static snap_status check_gold(const char *gold, snap_err *err) {
    if (gold[0] >= 'A' && gold[0] <= kLastOption && !gold[1])
        return SNAP_OK;
    return err_set(err, SNAP_E_INPUT, "the gold answer must be a letter A..%c", kLastOption);
}

/* The letter in a response; false, and *why, where it has none. */
static bool search(grade_input in, extraction *x, bool *open_box, const char **why) {
    bool thinking;
    extraction ignored;
    span text = extract_visible(in.response, &thinking);
    extract_box box = extract_boxed(text, &ignored);
    *open_box = box == EXTRACT_OPEN_BOX || box == EXTRACT_EARLIER_BOX;
    *why = box == EXTRACT_OPEN_BOX ? "the last \\boxed never closes"
                                   : grade_why_nothing(in, text, thinking);
    return box != EXTRACT_OPEN_BOX &&
           extract_letter(text, kLastOption, !in.truncated && !thinking, x);
}

static grade_result grade_letter(const char *gold, grade_input in) {
    grade_result r = {.verdict = GRADE_UNPARSED, .reason = "not a letter"};
    extraction x = {.rule = "given"};
    bool found = in.extracted ? extract_bare_letter(in.response, kLastOption, &x)
                              : search(in, &x, &r.open_box, &r.reason);
    if (!found)
        return r;
    r.extracted[0] = x.answer.s[0] >= 'a' ? (char)(x.answer.s[0] - 'a' + 'A') : x.answer.s[0];
    r.rule = x.rule;
    bool same = r.extracted[0] == gold[0];
    r.verdict = same ? GRADE_CORRECT : GRADE_WRONG;
    r.reason = same ? "the same letter" : "another letter";
    return r;
}

const grader grader_letter = {"letter-1", check_gold, grade_letter};
