/* grade_math.c - grades answers that are mathematical objects, for example MATH and HMMT. */
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "evals/answer.h"
#include "evals/grade_parts.h"
#include "evals/integer.h"
#include "evals/math/math_equal.h"

enum { kListMax = 64, kBefore = 40 }; /* bytes before a box that are searched for a minus sign */

static snap_status check_gold(const char *gold, snap_err *err) {
    math_verdict v;
    size_t n = strlen(gold);
    snap_status st = math_equal(gold, n, gold, n, MATH_TRUTH, &v);
    if (st != SNAP_OK || v.outcome == MATH_EQUAL)
        return st;
    return err_set(err, SNAP_E_INPUT, "the gold answer cannot be graded (%s): '%.60s'", v.reason,
                   gold);
}

/* Compares an answer with the gold. If the gold cannot be parsed, for example because it is a name,
 * the words of both are compared, and different words are wrong. */
static math_outcome compare(const char *gold, span answer, math_policy policy, grade_result *r) {
    math_verdict v = {.outcome = MATH_UNPARSED, .reason = "internal"};
    if (math_equal(gold, strlen(gold), answer.s, answer.n, policy, &v) != SNAP_OK)
        return MATH_UNPARSED;
    r->reason = v.reason;
    r->undecided = v.undecided;
    return v.outcome == MATH_UNPARSED && v.gold_unread ? MATH_DIFFERENT : v.outcome;
}

static void judge(grade_result *r, const char *gold, const char *rule, span answer,
                  math_policy policy) {
    static const grade_verdict verdicts[] = {[MATH_DIFFERENT] = GRADE_WRONG,
                                             [MATH_EQUAL] = GRADE_CORRECT,
                                             [MATH_UNPARSED] = GRADE_UNPARSED};
    r->rule = rule;
    r->verdict = verdicts[compare(gold, answer, policy, r)];
    grade_keep(r, answer);
}

/* The letter of a gold that names an option, such as \text{(C)}; 0 if it is none. */
static char gold_letter(const char *gold) {
    static pattern option = {.regex = "^\\\\(?:text|textbf|mathrm)\\{ ?\\(?([A-J])\\)? ?\\}$"};
    span groups[PATTERN_GROUPS];
    return pattern_find(&option, (span){gold, strlen(gold)}, 0, groups) ? *groups[1].s : '\0';
}

/* Judges an answer that names an option, perhaps with its text: "\textbf{(C)}\ 12". False if the
 * gold is no option or the answer names none. */
static bool judge_option(grade_result *r, const char *gold, const char *rule, span answer) {
    extraction x;
    char letter = gold_letter(gold);
    if (!letter || !extract_bare_letter(answer, 'J', &x))
        return false;
    r->rule = rule;
    r->verdict = *x.answer.s == letter ? GRADE_CORRECT : GRADE_WRONG;
    r->reason = r->verdict == GRADE_CORRECT ? "the same option" : "a different option";
    grade_keep(r, answer);
    return true;
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

/* Appends "Median: **12**" as "\text{median}=12", "Mean: **12**" as "\mu=12", and other values
 * without marks of bold text. */
static void append_item(buf *list, span s) {
    static pattern label = {.regex = "(?i)^([a-z]{2,}(?: [a-z]+)*)[*_]* ?[:=][*_]* ?(?=\\S)"};
    static const char *const signs[][2] = {{"mean", "\\mu"}, {"standard deviation", "\\sigma"}};
    span groups[PATTERN_GROUPS];
    (void)buf_puts(list, list->len ? ", " : "");
    if (pattern_find(&label, s, 0, groups)) {
        const char *sign = NULL;
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (groups[1].n == strlen(signs[i][0]) &&
                strncasecmp(groups[1].s, signs[i][0], groups[1].n) == 0)
                sign = signs[i][1];
        (void)buf_puts(list, sign ? sign : "\\text{");
        for (size_t i = 0; !sign && i < groups[1].n; i++) {
            char c = groups[1].s[i];
            c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
            (void)buf_append(list, &c, 1);
        }
        (void)buf_puts(list, sign ? "=" : "}=");
        s = (span){groups[0].s + groups[0].n, s.n - groups[0].n};
    }
    s = answer_bare(s);
    (void)buf_append(list, s.s, s.n);
}

/* Judges lines such as "- $x_1 = 2$", or several values in bold, as one list. */
static void judge_lines(grade_result *r, const char *gold, const extraction *x,
                        math_policy policy) {
    static pattern line = {.regex = "(?:^|\\n)[\\s>*]*+(?:(?:[-+]|\u2022|[0-9]\\.) ++)?[$*\\s]*+"
                                    "([^\\n]*[^\\n\\s$*.,;])"};
    static pattern bold = {.regex = "\\*\\*([^*\\n]+)\\*\\*"};
    pattern *item = strcmp(x->rule, "marked_list") == 0 ? &bold : &line;
    span parts[PATTERN_GROUPS];
    buf list = {0};
    for (size_t at = 0; pattern_find(item, x->answer, at, parts);) {
        append_item(&list, parts[1]);
        at = (size_t)(parts[0].s + parts[0].n - x->answer.s);
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

#define LENGTH                                                                                     \
    "(?:(?:kilo|centi|milli)?met(?:er|re)s?|miles?|feet|foot|inch(?:es)?|yards?|km|cm|mm|ft)"
#define OTHER_UNIT                                                                                 \
    "(?:hours?|minutes?|seconds?|days?|weeks?|months?|years?|(?:kilo|milli)?grams?|kg|mg|pounds?|" \
    "ounces?|(?:milli)?lit(?:er|re)s?|mL|cents?|dollars?|euros?|degrees|radians)"

/* The unit after a box: "\boxed{100}$ kilometers". Empty if there is none. @exponent gets the 2 of
 * "\boxed{100}$ cm$^2$"; it is empty if there is none. */
static span unit_after(span text, const extraction *x, span *exponent) {
    static pattern unit = {
        .flags = PATTERN_LONG,
        .regex =
            "^(?:[}\\s$*~]|\\\\[)\\]]|\\\\[,;:! ]|\\\\(?:text|mathrm)\\{|\\\\q?quad(?![a-z]))*+"
            "((?:(?:square|cubic) )?" LENGTH "(?: per (?:hour|minute|second|day))?"
            "(?:\u00b2|\u00b3)?|" OTHER_UNIT "|[mgLh](?=[.,;]|\\s*$|\\}|\\$?\\^|\u00b2|\u00b3)"
            ")(?![A-Za-z])(?:(?:\\}|\\$|\\\\\\()*+\\^\\{?([23])(?![0-9]))?"};
    const char *end = x->answer.s + x->answer.n;
    span rest = {end, (size_t)(text.s + text.n - end)}, groups[PATTERN_GROUPS];
    bool found = pattern_find(&unit, rest, 0, groups);
    *exponent = found && groups[2].s ? groups[2] : (span){end, 0};
    return found ? groups[1] : (span){end, 0};
}

/* Judges a box whose unit stands after it, if the gold has a unit: refuses a wrong unit, and
 * accepts "\boxed{0.5}$ m" for 50 cm. */
static void judge_unit_after(grade_result *r, const char *gold, span text, const extraction *x) {
    span exponent, unit = unit_after(text, x, &exponent);
    buf answer = {0};
    math_verdict v = {.outcome = MATH_EQUAL};
    if (!unit.n || strcmp(x->rule, "boxed") != 0)
        return;
    (void)buf_append(&answer, x->answer.s, x->answer.n);
    (void)buf_puts(&answer, " \\text{ ");
    (void)buf_append(&answer, unit.s, unit.n);
    (void)buf_puts(&answer, exponent.n ? "}^" : "}");
    (void)buf_append(&answer, exponent.s, exponent.n);
    snap_status st = math_equal(gold, strlen(gold), buf_str(&answer), answer.len, MATH_TRUTH, &v);
    bool units = strstr(gold, "\\text") || strstr(gold, "\\circ") || strstr(gold, "\\$") ||
                 strcmp(v.reason ? v.reason : "", "different units") == 0;
    bool right = st == SNAP_OK && v.outcome == MATH_EQUAL;
    bool wrong = st == SNAP_OK && v.outcome == MATH_DIFFERENT;
    if (units && ((right && r->verdict == GRADE_WRONG) || (wrong && r->verdict == GRADE_CORRECT))) {
        r->verdict = right ? GRADE_CORRECT : GRADE_WRONG;
        r->reason = v.reason;
    }
    buf_release(&answer);
}

/* The number of an amount such as "$5.40" whose dollar sign is no mark of a formula; the sign is in
 * @s or before it in @text. Empty if it is no such amount. */
static span dollars_in(span text, span s) {
    static pattern amount = {.regex = "^\\$?([0-9][0-9.,]*)$"};
    const char *end = s.s + s.n, *stop = text.s + text.n;
    span groups[PATTERN_GROUPS];
    if (s.s <= text.s || end > stop || !pattern_find(&amount, s, 0, groups))
        return (span){end, 0};
    const char *sign = groups[1].s - 1;
    bool closed = end < stop && (*end == '$' || *end == '\\');
    bool display = sign > text.s && sign[-1] == '$';
    return *sign == '$' && !closed && !display ? groups[1] : (span){end, 0};
}

/* Judges a reading. A dollar sign before it belongs to the amount if the gold is a percentage or
 * has a unit with "cent" in its name. */
static void judge_amount(grade_result *r, const char *gold, span text, const extraction *x,
                         math_policy policy) {
    buf amount = {0};
    bool units = policy == MATH_TRUTH && (strstr(gold, "cent") || strchr(gold, '%'));
    span dollars = units ? dollars_in(text, x->answer) : (span){NULL, 0};
    if (dollars.n) {
        (void)buf_puts(&amount, "\\$");
        (void)buf_append(&amount, dollars.s, dollars.n);
    }
    judge(r, gold, x->rule, dollars.n ? (span){buf_str(&amount), amount.len} : x->answer, policy);
    buf_release(&amount);
}

/* True for rules that may find a text that is not the answer. If such a text is wrong, the next
 * reading counts. */
static bool is_one_of_several(const char *rule) {
    static const char *const rules[] = {"count", "class", "reply", "point", "out_of"};
    bool found = false;
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !found; i++)
        found = strcmp(rule, rules[i]) == 0;
    return found;
}

/* Judges the readings (candidates for the answer, best first) until one of them decides: the first
 * one that can be parsed. A wrong reading does not decide if it lists steps ("named_lines") or may
 * be something else than the answer (is_one_of_several()). If the response states the answer in
 * words, as "5 apples", and this reading is not judged correct, its integer is judged. Under
 * MATH_TRUTH this happens only if the reading cannot be parsed. */
static void judge_readings(grade_result *r, const char *gold, span text, const found_answer *a,
                           math_policy policy) {
    char digits[INTEGER_MAX];
    for (int i = 0; i < a->count; i++) {
        const extraction *x = &a->reading[i];
        bool lines = strcmp(x->rule, "named_lines") == 0;
        bool steps = lines || is_one_of_several(x->rule);
        if (policy == MATH_TRUTH && a->stated && i == 0 &&
            judge_option(r, gold, x->rule, x->answer))
            return;
        if (lines || strcmp(x->rule, "lines") == 0 || strcmp(x->rule, "marked_list") == 0)
            judge_lines(r, gold, x, policy);
        else
            judge_amount(r, gold, text, x, policy);
        if (strcmp(x->rule, "odds") == 0 && !strchr(gold, ':') && r->verdict == GRADE_CORRECT) {
            r->verdict = GRADE_WRONG;
            r->reason = "odds and no ratio";
        }
        bool retry =
            r->verdict == GRADE_UNPARSED || (r->verdict == GRADE_WRONG && policy != MATH_TRUTH);
        if (a->stated && i == 0 && retry && integer_parse(x->answer, digits))
            judge(r, gold, x->rule, (span){digits, strlen(digits)}, policy);
        if (r->verdict == GRADE_CORRECT || (r->verdict == GRADE_WRONG && !steps))
            return;
    }
}

/* The sentence of a box that is one \text: at least two words, as "\text{He is facing west.}", or
 * if @numeric, words with one number, as "\text{Ann has 5 books}". Empty if the box is something
 * else. */
static span boxed_sentence(span box, bool numeric) {
    static pattern count = {
        .regex = "^\\\\(?:text|textbf|mathrm)\\{\\s*([^{}\\\\$0-9]+ \\$?[0-9][0-9.,/]*%?"
                 "(?:[ .][^{}\\\\$0-9]*)?)\\}$"};
    static pattern sentence = {
        .regex =
            "^\\\\(?:text|textbf|mathrm)\\{\\s*([^{}\\\\$]+ [^{}\\\\$]*[^{}\\\\$\\s])\\s*\\}$"};
    span groups[PATTERN_GROUPS];
    return pattern_find(numeric ? &count : &sentence, box, 0, groups) ? groups[1]
                                                                      : (span){box.s, 0};
}

/* Judges a sentence in a box like a last sentence without a box. The verdict changes only if the
 * sentence states the gold. */
static void judge_boxed_sentence(grade_result *r, const char *gold, span box) {
    static const char macro[] = "\\text{";
    bool words = strncmp(gold, macro, sizeof macro - 1) == 0;
    span sentence = boxed_sentence(box, !words);
    found_answer a = {0};
    grade_result other = {.verdict = GRADE_UNPARSED};
    if (!sentence.n)
        return;
    answer_find(&a, (grade_input){.response = sentence}, 0);
    judge_readings(&other, gold, sentence, &a, MATH_TRUTH);
    if (other.verdict == GRADE_CORRECT) {
        r->verdict = GRADE_CORRECT;
        r->reason = other.reason;
    }
}

/* True if a minus sign that is no operator stands directly before the macro of a box:
 * "x = -\boxed{5}". */
static bool has_minus_before(span text, const extraction *x) {
    static pattern minus = {
        .regex = "(?:^|[=:({\\[$\\n]|\\\\\\(|\\bis)\\s*(?:-|\u2212)\\\\f?(?:box|boxed)\\{\\s*$"};
    size_t n = (size_t)(x->answer.s - text.s);
    span before = {text.s, n};
    if (n > kBefore)
        before = (span){x->answer.s - kBefore, kBefore};
    return strcmp(x->rule, "boxed") == 0 && pattern_find(&minus, before, 0, NULL);
}

/* Judges the content of a box as a negative value. */
static void judge_negative(grade_result *r, const char *gold, const extraction *x) {
    buf negative = {0};
    (void)buf_puts(&negative, "-(");
    (void)buf_append(&negative, x->answer.s, x->answer.n);
    (void)buf_puts(&negative, ")");
    judge(r, gold, x->rule, (span){buf_str(&negative), negative.len}, MATH_TRUTH);
    buf_release(&negative);
}

/* Judges the content of a box. Under MATH_FIELD and MATH_STRICT nothing is removed from it, because
 * the public graders do not accept "3\sqrt{2}.", "**5**" or "7°" in a box. */
static void judge_box(grade_result *r, const char *gold, const extraction *x, math_policy policy) {
    if (policy != MATH_TRUTH && has_own_degree(gold, span_trim(x->answer))) {
        r->rule = x->rule;
        r->reason = "a typed degree sign in a box";
        r->undecided = true;
        grade_keep(r, x->answer);
        return;
    }
    if (strcmp(x->rule, "boxed_list") == 0) {
        judge_list(r, gold, x, policy);
        return;
    }
    if (policy == MATH_TRUTH && judge_option(r, gold, x->rule, x->answer))
        return;
    span bare = policy == MATH_TRUTH ? answer_bare(x->answer) : x->answer;
    judge(r, gold, x->rule, bare.n ? bare : x->answer, policy);
    span core = policy == MATH_TRUTH ? answer_core(bare) : bare;
    if (r->verdict != GRADE_CORRECT && core.n && core.n < bare.n)
        judge(r, gold, x->rule, core, policy);
    if (r->verdict != GRADE_CORRECT && policy == MATH_TRUTH)
        judge_boxed_sentence(r, gold, bare);
}

static void search(grade_result *r, const char *gold, grade_input in, math_policy policy) {
    found_answer a;
    answer_find(&a, in, 0);
    r->open_box = a.open_box;
    r->reason = a.why;
    if (a.count && strncmp(a.reading[0].rule, "boxed", 5) == 0) {
        if (policy == MATH_TRUTH && has_minus_before(in.response, &a.reading[0]))
            judge_negative(r, gold, &a.reading[0]);
        else
            judge_box(r, gold, &a.reading[0], policy);
        if (policy == MATH_TRUTH)
            judge_unit_after(r, gold, in.response, &a.reading[0]);
    } else
        judge_readings(r, gold, in.response, &a, policy);
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
    r.undecided = r.undecided && r.extracted[0];
    return r;
}

static grade_result grade_field(const char *gold, grade_input in) {
    return grade(gold, in, MATH_FIELD);
}

static grade_result grade_strict(const char *gold, grade_input in) {
    return grade(gold, in, MATH_STRICT);
}

static grade_result grade_truth(const char *gold, grade_input in) {
    return grade(gold, in, MATH_TRUTH);
}

const grader grader_math_truth = {
    .id = "math-truth-6", .mathematical = true, .check_gold = check_gold, .grade = grade_truth};
const grader grader_math_field = {
    .id = "math-field-10", .mathematical = true, .check_gold = check_gold, .grade = grade_field};
const grader grader_math_strict = {
    .id = "math-strict-10", .mathematical = true, .check_gold = check_gold, .grade = grade_strict};
