#include "evals/answer.h"

#include <string.h>

#include "evals/answer_parts.h"
#include "evals/grade_parts.h"
#include "evals/integer.h"

enum { kDenial = 40 }; /* bytes before a box that are searched for "not" */

void answer_add(found_answer *a, const char *rule, span s) {
    if (s.n && a->count < ANSWER_READINGS)
        a->reading[a->count++] = (extraction){rule, s};
}

/* ---- which statements give no value ---- */

/* True if a statement gives no value: "not 5", "at most 7", "unknown". */
static bool is_denial(span s) {
    static pattern denial = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)^[\\s*_$]*+(?:not|n't|never|neither\\s+\\S|unknown|cannot|more than|less than|few"
            "er "
            "than|greater than|at most|at least|between|either|one of|nearly|almost)\\b|"
            "\\b(?:only if|unless)\\b|\\?[\\s*_)$]*+$|"
            "^(?:anything but|(?:the |an? |its )?(?:divisor|factor|multiple|reciprocal|"
            "negati(?:ve|on)|inverse|opposite|complement|conjugate) of)\\b|"
            "\\bbut (?:that|this|it) (?:is|was) (?:wrong|incorrect|not)\\b|"
            "(?<!attained)(?<!achieved)(?<!reached)\\s(?:if|when) \\$?[a-z]\\$? (?:is|=|<|>)"};
    return pattern_find(&denial, s, 0, NULL);
}

/* True if the words before a statement in its sentence show that it is only supposed: "suppose the
 * answer is 5", "if n is even, the answer is 5". */
static bool is_supposed(span text, const char *statement) {
    enum { kMost = 160 };
    static pattern supposed = {
        .regex = "(?i)\\b(?:whether|suppose|assum(?:e|ing)|(?:might|may|would|could) (?:think|say|"
                 "guess|expect)|unclear|unless|not (?:sure|clear|certain)|don't know|common "
                 "(?:mistake|error)|if the "
                 "answer (?:is|were)|key says)\\b[^.!?]*$|(?<![a-z])(?:if|when|for) "
                 "\\$?[a-z]\\$? ?(?:=|is\\b|<|>)[^.!?]*$"};
    size_t n = (size_t)(statement - text.s);
    span before = {text.s, n};
    if (n > kMost)
        before = (span){statement - kMost, kMost};
    const char *line = before.n ? memrchr(before.s, '\n', before.n) : NULL;
    if (line)
        before = (span){line + 1, (size_t)(statement - line - 1)};
    return pattern_find(&supposed, before, 0, NULL);
}

/* The statement without the letters of Asian and some other scripts at its end, because these may
 * belong to a verb: "647입니다". */
static span without_foreign_words(span s) {
    size_t n = s.n;
    for (size_t i = s.n; i && ((unsigned char)s.s[i - 1] >= 0x80 || s.s[i - 1] == ' '); i--) {
        unsigned char lead = (unsigned char)s.s[i - 1];
        if (lead == 0xE0 || lead == 0xE1 || (lead >= 0xE3 && lead <= 0xED))
            n = i - 1;
        else if (lead >= 0xC0)
            break;
    }
    return answer_bare((span){s.s, n});
}

/* The number without the brackets around it: "Answer: [3,628,800]". */
static span without_number_brackets(span s) {
    static pattern number = {.regex = "^\\[[0-9]{1,3}(?:,[0-9]{3}){2,}\\]$"};
    return pattern_find(&number, s, 0, NULL) ? (span){s.s + 1, s.n - 2} : s;
}

/* True if the text of a statement before @formula introduces the formula as the answer, or has
 * digits or LaTeX itself. */
static bool names_formula(span s, span formula) {
    static pattern words = {
        .flags = PATTERN_LONG,
        .regex = "(?i)^(?:.*\\b(?:is|are|be|equals?|gives?|namely|exactly|get|have|equal to)\\b|"
                 ".*[:=]|(?:[\\s*_,]*+\\b(?:the|an?|our|value|values|number|numbers|set|sets|point|"
                 "points|interval|pair|ordered|triple|tuple|vector|matrix|expression|function|"
                 "equation|line|fraction|integer|angle|ratio|list|union|polynomial|formula|simply|"
                 "just|exactly|precisely|only|all|both|either|approximately|about|option|choice|"
                 "interval|solution|solutions|root|roots|quantity|sum|product|total|amount|price|"
                 "area|volume|length|distance|probability|time|speed|rate|cost|of|to|by|in|as|for|"
                 "and|or|so|thus|that|there|we|it|indeed|actually|really|therefore|hence|then|now|"
                 "clearly|simplified|final|correct|exact|real|complex|integers|inequality|"
                 "[a-z])\\b)*+)[\\s*_$(\\\\,;\\[]*+$"};
    static pattern formal = {.regex = "[\\\\$]|[0-9]"};
    static pattern spelled = {
        .regex =
            "(?i)\\b(?:is|equals|:)\\s+[*_]*(?:one|two|three|four|five|six|seven|eight|nine|"
            "ten|half)"
            "(?:[- ](?:half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|"
            "ninths?|tenths?))?[*_]*[,:;]?\\s*[$(]*$"};
    span before = {s.s, (size_t)(formula.s - s.s)};
    return pattern_find(&formal, (span){before.s, before.n > 2 ? before.n - 2 : 0}, 0, NULL) ||
           pattern_find(&words, before, 0, NULL) || pattern_find(&spelled, before, 0, NULL);
}

/* True if a statement is made under a condition: "5 if the dice were fair". */
static bool is_conditional(span s) {
    static pattern condition = {.regex = "(?i)\\bif\\b.*\\b(?:were|had|would)\\b"};
    return pattern_find(&condition, s, 0, NULL);
}

/* The statement without a bracket of numbers at its end: "8 players per team (48 / 6)". */
static span without_last_bracket(span s) {
    static pattern bracket = {.regex = "(?<=[a-z]) \\([^()]*\\)$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&bracket, s, 0, groups))
        s.n = (size_t)(groups[0].s - s.s);
    return s;
}

/* Adds the bold text at the start of a statement, whose first marks were removed: "350** for 5
 * nights". */
static void add_bold(found_answer *a, const char *rule, span s) {
    static pattern bold = {
        .regex = "^([^*\\n]*[0-9])\\*\\* (?:[a-z]+ )?(?:for|in|per|over|after|from|of|because|"
                 "since)\\b(?!.*\\bthan\\b)"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&bold, s, 0, groups))
        answer_add(a, rule, groups[1]);
}

/* Adds the amount that a statement in words gives: "Sam has 42 pages left out of 66". */
static void add_stated_amount(found_answer *a, span text, span s) {
    static pattern comparison = {.regex = "(?i)\\b(?:than|twice|half|times)\\b"};
    enum { kMost = 200 };
    span whole = without_last_bracket(s);
    if (s.n <= kMost && !pattern_find(&comparison, s, 0, NULL))
        answer_add_amount(a, text, whole, whole.n < s.n);
}

/* Adds the readings of a statement. False if it states nothing. A denial has no readings, and
 * nothing is guessed instead. */
static bool add_stated(found_answer *a, span text, const extraction *stated, unsigned flags) {
    static pattern dots = {.regex = "^\\.{2,}\\s*(?=[$0-9\\\\])"};
    static pattern amount = {.regex = "(?i)^\\$?[0-9][0-9,.]* (?!out of\\b)[a-z]{3,}"};
    extraction x = {0};
    bool label = strcmp(stated->rule, "label") == 0;
    span s = answer_without_contrast(answer_bare(stated->answer)), groups[PATTERN_GROUPS];
    if (pattern_find(&dots, s, 0, groups))
        s = span_from(s, s.s + groups[0].n);
    s = label ? without_foreign_words(s) : s;
    a->stated = is_denial(s) || answer_is_doubt(s) || is_supposed(text, stated->answer.s);
    if (a->stated)
        return true;
    s = without_number_brackets(answer_core(s));
    if (!s.n || ((flags & ANSWER_DIGITS) && !answer_has_number(s)))
        return false;
    a->stated = true;
    if (answer_context_of(text, s) != ANSWER_ASSERTED || is_conditional(s))
        return true;
    bool formula = extract_formula(s, &x);
    span inner = answer_bare(x.answer);
    bool foreign = formula && label; /* words of another language may follow the formula */
    formula = foreign || (formula && names_formula(s, inner) &&
                          answer_context_of(s, inner) == ANSWER_ASSERTED);
    add_bold(a, stated->rule, s);
    bool counted = pattern_find(&amount, s, 0, NULL);
    if (counted)
        add_stated_amount(a, text, s);
    answer_add(a, stated->rule, foreign ? inner : s);
    if (formula)
        answer_add(a, stated->rule, foreign ? s : inner);
    if (!counted)
        add_stated_amount(a, text, s);
    if (answer_only_number(s, &x) && answer_context_of(text, x.answer) == ANSWER_ASSERTED)
        answer_add(a, stated->rule, x.answer);
    return true;
}

/* Shortens the text to what comes before a statement about an answer of others ("a common answer is
 * 5"), a denial or a confirmation ("the answer is consistent"), if that states another answer. */
static bool skip_others(span *text, const extraction *x) {
    extraction earlier;
    static pattern confirms = {
        .regex =
            "(?i)^[\\s*_]*+(?:indeed |therefore |also )?(?:consistent|correct|verified|reasonable|"
            "plausible|confirmed|valid|unique|right)\\b"};
    if (answer_context_of(*text, x->answer) != ANSWER_OF_OTHERS &&
        !is_denial(answer_bare(x->answer)) && !pattern_find(&confirms, x->answer, 0, NULL))
        return false;
    span before = {text->s, (size_t)(x->answer.s - text->s)};
    const char *stop = before.n ? memrchr(before.s, '.', before.n) : NULL;
    const char *line = before.n ? memrchr(before.s, '\n', before.n) : NULL;
    stop = line > stop ? line : stop;
    before.n = stop ? (size_t)(stop + 1 - before.s) : 0;
    if (!before.n || !extract_stated(before, &earlier))
        return false;
    *text = before;
    return true;
}

/* Adds the last statement of the text that is not about an answer of others, or the statement with
 * which the text replaces it. False if it states nothing. */
static bool add_last_stated(found_answer *a, span text, unsigned flags) {
    enum { kStatements = 4 };
    extraction x = {0}, later = {0};
    span search = text, after = {0};
    for (int i = 0; i < kStatements; i++) {
        if (!extract_stated(search, &x))
            return false;
        if (!skip_others(&search, &x))
            break;
    }
    answer_revision revision = answer_revise_stated(text, &x, &later, &after);
    if (revision == ANSWER_RETRACTED) {
        a->stated = true;
        return true;
    }
    return (revision == ANSWER_REVISED && add_stated(a, text, &later, flags)) ||
           add_stated(a, text, &x, flags);
}

/* Replaces a box that its sentence denies by the box before it in this sentence: "it is \boxed{3}
 * and not \boxed{6}". */
static void skip_denied_box(span text, extraction *box) {
    static pattern denial = {
        .regex = "(?i)\\b(?:not|rather than|instead of)[\\s$(\\\\]*(?:boxed|fbox)\\{\\s*$"};
    span before = {text.s, (size_t)(box->answer.s - text.s)}, groups[PATTERN_GROUPS];
    extraction earlier;
    if (strcmp(box->rule, "boxed") != 0 ||
        !pattern_find(&denial, span_tail(before, kDenial), 0, groups))
        return;
    before.n = (size_t)(groups[0].s - text.s);
    if (extract_boxed(before, &earlier) != EXTRACT_BOX)
        return;
    span gap = span_from(before, earlier.answer.s + earlier.answer.n);
    if (gap.n <= kDenial && !memchr(gap.s, '\n', gap.n))
        *box = earlier;
}

/* Adds the answer of a box, or the answer with which the text replaces it. */
static void add_boxed(found_answer *a, span text, const extraction *box, unsigned flags) {
    extraction later = {0};
    span after = {0};
    answer_revision revision = ANSWER_KEPT;
    if (answer_is_undecided(text, box)) {
        a->stated = true;
        a->why = "the response does not choose between its answers";
        return;
    }
    if (!a->open_box)
        revision = answer_revise(text, box, &later, &after);
    if (revision == ANSWER_REVISED && add_stated(a, text, &later, flags))
        return;
    if (revision == ANSWER_RETRACTED)
        answer_guess(a, after, flags);
    else
        answer_add(a, box->rule, box->answer);
}

void answer_find(found_answer *out, grade_input in, unsigned flags) {
    *out = (found_answer){0};
    extraction x = {0};
    bool thinking;
    span text = extract_visible(in.response, &thinking);
    extract_box box = extract_boxed(text, &x);
    out->open_box = box == EXTRACT_OPEN_BOX || box == EXTRACT_EARLIER_BOX;
    out->why = box == EXTRACT_OPEN_BOX ? "the last \\boxed is not closed"
                                       : grade_why_nothing(in, text, thinking);
    if (box == EXTRACT_OPEN_BOX)
        return;
    bool hashes = box == EXTRACT_NO_BOX && (flags & ANSWER_HASHES) && extract_hashes(text, &x) &&
                  integer_has_digit(x.answer);
    if (box == EXTRACT_BOX)
        skip_denied_box(text, &x);
    if (box != EXTRACT_NO_BOX)
        add_boxed(out, text, &x, flags);
    else if (hashes)
        answer_add(out, x.rule, x.answer);
    else if (!add_last_stated(out, text, flags) && !in.truncated && !thinking)
        answer_guess(out, text, flags);
}
