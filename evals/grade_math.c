/* grade_math.c - grades answers that are mathematical objects, for example MATH and HMMT. */
#include <string.h>

#include "base/buf.h"
#include "evals/grade_parts.h"
#include "evals/integer.h"
#include "evals/math/math_equal.h"

enum { kListMax = 64 };

static snap_status check_gold(const char *gold, snap_err *err) {
    math_verdict v;
    size_t n = strlen(gold);
    snap_status st = math_equal(gold, n, gold, n, MATH_FIELD, &v);
    if (st != SNAP_OK || v.outcome == MATH_EQUAL)
        return st;
    return err_set(err, SNAP_E_INPUT, "the gold answer cannot be graded (%s): '%.60s'", v.reason,
                   gold);
}

/* Removes punctuation of the sentence and Markdown characters around an answer. */
static span bare(span s) {
    for (size_t before = s.n + 1; s.n && s.n != before;) {
        before = s.n;
        s = span_trim(s);
        while (s.n && strchr("*_`", s.s[0]))
            s = (span){s.s + 1, s.n - 1};
        while (s.n && strchr(".,;*`", s.s[s.n - 1]) && !(s.n > 1 && s.s[s.n - 2] == '\\'))
            s.n--;
    }
    return s;
}

/* Compares an answer with the gold. If the gold cannot be parsed (a name), words are compared, and
 * other words are wrong. */
static math_outcome compare(const char *gold, span answer, math_policy policy,
                            const char **reason) {
    math_verdict v = {.outcome = MATH_UNPARSED, .reason = "internal"};
    if (math_equal(gold, strlen(gold), answer.s, answer.n, policy, &v) != SNAP_OK)
        return MATH_UNPARSED;
    *reason = v.reason;
    return v.outcome == MATH_UNPARSED && v.gold_unread ? MATH_DIFFERENT : v.outcome;
}

static void judge(grade_result *r, const char *gold, const char *rule, span answer,
                  math_policy policy) {
    static const grade_verdict verdicts[] = {[MATH_DIFFERENT] = GRADE_WRONG,
                                             [MATH_EQUAL] = GRADE_CORRECT,
                                             [MATH_UNPARSED] = GRADE_UNPARSED};
    r->rule = rule;
    r->verdict = verdicts[compare(gold, answer, policy, &r->reason)];
    grade_keep(r, answer);
}

/* Judges joined boxes as one list: "\boxed{1} and \boxed{2}" is "1, 2". More than kListMax boxes
 * are an empty list. */
static void judge_list(grade_result *r, const char *gold, const extraction *x, math_policy policy) {
    span parts[kListMax];
    size_t n = extract_list(x->answer, parts, kListMax);
    buf list = {0};
    for (size_t i = 0; i < n && n <= kListMax; i++) {
        (void)buf_puts(&list, i ? ", " : "");
        (void)buf_append(&list, parts[i].s, parts[i].n);
    }
    judge(r, gold, x->rule, (span){buf_str(&list), list.len}, policy);
    buf_release(&list);
}

/* True if the answer ends in a typed degree sign, as in 7°, and the gold has no such sign. */
static bool has_own_degree(const char *gold, span s) {
    static const char sign[] = "\u00b0";
    size_t n = sizeof(sign) - 1;
    return s.n > n && memcmp(s.s + s.n - n, sign, n) == 0 && !strstr(gold, sign);
}

/* Judges the content of a box. Nothing is removed from it, because the public graders do not accept
 * "3\sqrt{2}.", "**5**" or "7°" in a box. */
static void judge_box(grade_result *r, const char *gold, const extraction *x, math_policy policy) {
    if (has_own_degree(gold, span_trim(x->answer))) {
        r->rule = x->rule;
        r->reason = "a typed degree sign in a box";
        grade_keep(r, x->answer);
        return;
    }
    if (strcmp(x->rule, "boxed_list") == 0)
        judge_list(r, gold, x, policy);
    else
        judge(r, gold, x->rule, x->answer, policy);
}

/* Judges a stated answer. First the whole statement is judged. If it is not correct but states an
 * integer, as "5 apples" does, the integer is judged. If it cannot be parsed, as in "therefore
 * $\frac{1}{2}$, as was to be shown", the last formula in it counts. */
static void judge_stated(grade_result *r, const char *gold, const extraction *x,
                         math_policy policy) {
    extraction formula;
    char digits[INTEGER_MAX];
    judge(r, gold, x->rule, bare(x->answer), policy);
    if (r->verdict != GRADE_CORRECT && integer_parse(x->answer, digits))
        judge(r, gold, x->rule, (span){digits, strlen(digits)}, policy);
    if (r->verdict == GRADE_UNPARSED && extract_formula(x->answer, &formula))
        judge(r, gold, x->rule, bare(formula.answer), policy);
}

/* Judges an answer that is not declared: the last formula, or if there is none or it cannot be
 * parsed, the last number. */
static void guess(grade_result *r, const char *gold, span text, math_policy policy) {
    extraction x;
    if (extract_formula(text, &x))
        judge(r, gold, x.rule, bare(x.answer), policy);
    if (r->verdict != GRADE_UNPARSED)
        return;
    if (extract_last_number(text, &x) && !grade_part_of_expression(text, &x))
        judge(r, gold, x.rule, x.answer, policy);
}

static void search(grade_result *r, const char *gold, grade_input in, math_policy policy) {
    bool thinking;
    extraction x;
    span text = extract_visible(in.response, &thinking);
    extract_box box = extract_boxed(text, &x);
    r->open_box = box == EXTRACT_OPEN_BOX || box == EXTRACT_EARLIER_BOX;
    r->reason = grade_why_nothing(in, text, thinking);
    if (box == EXTRACT_OPEN_BOX)
        r->reason = "the last \\boxed is not closed";
    else if (box != EXTRACT_NO_BOX)
        judge_box(r, gold, &x, policy);
    else if (extract_stated(text, &x) && bare(x.answer).n)
        judge_stated(r, gold, &x, policy);
    else if (!in.truncated && !thinking)
        guess(r, gold, text, policy);
}

/* True if the whole text is a minus sign and the box: -\boxed{5}. */
static bool is_negated(span given, const extraction *x) {
    static const char box[] = "\\boxed{";
    size_t n = (size_t)(x->answer.s - given.s), len = sizeof(box) - 1;
    if (n + x->answer.n + 1 != given.n || n < len || memcmp(x->answer.s - len, box, len) != 0)
        return false;
    for (n -= len; n > 0 && given.s[n - 1] == ' '; n--)
        continue;
    return n == 1 && given.s[0] == '-';
}

static grade_result grade(const char *gold, grade_input in, math_policy policy) {
    grade_result r = {.verdict = GRADE_UNPARSED, .reason = "empty response"};
    span given = span_trim(in.response);
    extraction x;
    if (!in.extracted)
        search(&r, gold, in, policy);
    else if (extract_boxed(given, &x) == EXTRACT_BOX && !is_negated(given, &x))
        judge_box(&r, gold, &x, policy);
    else if (given.n)
        judge(&r, gold, "given", given, policy);
    return r;
}

static grade_result grade_field(const char *gold, grade_input in) {
    return grade(gold, in, MATH_FIELD);
}

static grade_result grade_strict(const char *gold, grade_input in) {
    return grade(gold, in, MATH_STRICT);
}

const grader grader_math_field = {
    .id = "math-field-4", .check_gold = check_gold, .grade = grade_field};
const grader grader_math_strict = {
    .id = "math-strict-4", .check_gold = check_gold, .grade = grade_strict};
