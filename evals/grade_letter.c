/* grade_letter.c - grades multiple choice: four options (GPQA), up to ten (MMLU-Pro), and four with
 * the letter in a JSON field or as for GPQA (MMLU-Redux). */
#include <string.h>

#include "evals/grade_parts.h"

static snap_status check_letter(const char *gold, char last, snap_err *err) {
    if (gold[0] >= 'A' && gold[0] <= last && !gold[1])
        return SNAP_OK;
    return err_set(err, SNAP_E_INPUT, "the gold answer must be a letter A..%c", last);
}

/* Finds the last field "answer": "C". The closing quote of the key and the quotes of the value may
 * be missing. */
static bool find_field(span text, char last, extraction *x) {
    static pattern field = {.regex = "\"answer\"?\\s{0,9}:\\s{0,9}\"?\\s{0,9}\\(?([A-Za-z])"
                                     "(?=\\s{0,9}[\\).:\"},]|\\s)"};
    span groups[PATTERN_GROUPS];
    extraction letter;
    if (!pattern_find_last(&field, text, groups) || !extract_bare_letter(groups[1], last, &letter))
        return false;
    *x = (extraction){"answer_field", letter.answer};
    return true;
}

/* Finds the letter in a response. False if there is none. *why: the reason for that. */
static bool search(grade_input in, char last, bool fields, extraction *x, bool *open_box,
                   const char **why) {
    bool thinking;
    extraction ignored;
    span text = extract_visible(in.response, &thinking);
    extract_box box = extract_boxed(text, &ignored);
    *open_box = box == EXTRACT_OPEN_BOX || box == EXTRACT_EARLIER_BOX;
    *why = box == EXTRACT_OPEN_BOX ? "the last \\boxed is not closed"
                                   : grade_why_nothing(in, text, thinking);
    if (fields && find_field(text, last, x))
        return true;
    return box != EXTRACT_OPEN_BOX && extract_letter(text, last, !in.truncated && !thinking, x);
}

static grade_result judge(const char *gold, grade_input in, char last, bool fields) {
    grade_result r = {.verdict = GRADE_UNPARSED, .reason = "not a letter"};
    extraction x = {.rule = "given"};
    bool found = in.extracted ? extract_bare_letter(in.response, last, &x)
                              : search(in, last, fields, &x, &r.open_box, &r.reason);
    if (!found)
        return r;
    r.extracted[0] = x.answer.s[0] >= 'a' ? (char)(x.answer.s[0] - 'a' + 'A') : x.answer.s[0];
    r.rule = x.rule;
    bool same = r.extracted[0] == gold[0];
    r.verdict = same ? GRADE_CORRECT : GRADE_WRONG;
    r.reason = same ? "the same letter" : "a different letter";
    return r;
}

static snap_status check_four(const char *gold, snap_err *err) {
    return check_letter(gold, 'D', err);
}

static snap_status check_ten(const char *gold, snap_err *err) {
    return check_letter(gold, 'J', err);
}

static grade_result grade_four(const char *gold, grade_input in) {
    return judge(gold, in, 'D', false);
}

static grade_result grade_ten(const char *gold, grade_input in) {
    return judge(gold, in, 'J', false);
}

static grade_result grade_field(const char *gold, grade_input in) {
    return judge(gold, in, 'D', true);
}

const grader grader_letter = {.id = "letter-5", .check_gold = check_four, .grade = grade_four};
const grader grader_ten_letters = {
    .id = "ten-letters-5", .check_gold = check_ten, .grade = grade_ten};
const grader grader_letter_field = {
    .id = "letter-field-5", .check_gold = check_four, .grade = grade_field};
