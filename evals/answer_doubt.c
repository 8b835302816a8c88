/* Finds \boxed{} answers that the response later takes back, and several such answers between which
 * it does not choose. */
#include <string.h>

#include "evals/answer_parts.h"
#include "evals/integer.h"

enum { kNear = 160 }; /* bytes around a box that are searched */

/* The text before the macro of a box. */
static span before_box(span text, const extraction *box) {
    size_t n = (size_t)(box->answer.s - text.s);
    const char *macro = box->answer.s;
    if (strcmp(box->rule, "boxed_list") != 0 && n)
        macro = memrchr(text.s, '\\', n);
    return (span){text.s, macro ? (size_t)(macro - text.s) : 0};
}

static span after_box(span text, const extraction *box) {
    const char *end = box->answer.s + box->answer.n;
    return (span){end, (size_t)(text.s + text.n - end)};
}

static span head_of(span s, size_t most) {
    return (span){s.s, s.n < most ? s.n : most};
}

static span tail_of(span s, size_t most) {
    return s.n > most ? (span){s.s + s.n - most, most} : s;
}

static bool same(span a, span b) {
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

/* True if the text between two boxes offers the second one as another possibility: "or perhaps",
 * "but it might also be". */
static bool offers_other(span gap) {
    static pattern offer = {
        .regex = "(?i)^(?!.*\\n\\s*\\n)(?s:.)*\\b(?:possibly|perhaps|maybe|might|could|may)\\b"
                 "(?!.*\\b(?:but|however|answer|correct|actually|so|hence|thus|therefore)\\b)"};
    return gap.n <= kNear && pattern_find(&offer, gap, 0, NULL);
}

bool answer_is_doubt(span s) {
    static pattern doubt = {
        .regex =
            "(?i)\\b(?:can(?:not|'t|\u2019t| not)|could(?:n't|n\u2019t| not)|un(?:sure|able|"
            "certain|decided|clear)|not (?:sure|certain|clear|able|know)|don(?:'|\u2019)t know|"
            "hard to|impossible to|no idea|ambiguous|torn between|depending on)\\b"
            "[^.!?\\n]{0,40}\\b(?:which|whether|what|how|decide|tell|choose|one)\\b|"
            "\\b(?:one|either) of (?:these|those|them|the two)\\b[^.!?\\n]{0,40}\\b(?:is|must|"
            "should|could|might|may)\\b|\\bor (?:possibly|perhaps|maybe)\\b"};
    return pattern_find(&doubt, s, 0, NULL);
}

bool answer_is_undecided(span text, const extraction *box) {
    static pattern other = {
        .regex = "(?i)^[}\\s$.,;*()\u2014-]*+(?:\\\\[)\\]])?[\\s,;(]*+(?:(?:or|and)\\s++)?"
                 "(?:possibly|perhaps|maybe|(?:(?:but )?it )?(?:might|could) (?:also )?be)\\b"};
    static pattern alternative = {.regex = "(?i)\\bor\\b"};
    span rest = head_of(after_box(text, box), kNear), before = before_box(text, box);
    extraction earlier;
    if (pattern_find(&other, rest, 0, NULL))
        return true;
    if (strcmp(box->rule, "boxed_list") == 0)
        return answer_is_doubt(rest);
    if (extract_boxed(before, &earlier) != EXTRACT_BOX || same(earlier.answer, box->answer))
        return false;
    const char *end = earlier.answer.s + earlier.answer.n;
    span gap = {end, (size_t)(before.s + before.n - end)};
    bool joined = gap.n <= kNear && pattern_find(&alternative, gap, 0, NULL);
    return offers_other(gap) || (joined && answer_is_doubt(rest));
}

/* True if the words before a box show that it is a draft: "my first result was". */
static bool is_draft(span before) {
    static pattern draft = {
        .regex = "(?i)\\b(?:(?:my|an?|the|our) (?:first|initial|original|earlier|previous|"
                 "preliminary|tentative|rough|naive|quick)|at first|initially|originally|"
                 "naively|first (?:got|found|thought|wrote|result|answer|guess|attempt)|"
                 "(?:wrong|incorrect|mistaken)(?:ly)?)\\b"
                 "(?:(?!\\b(?:but|however|yet)\\b)[^.!?\\n])*$"};
    return pattern_find(&draft, tail_of(before, kNear), 0, NULL);
}

/* Finds the last value after words such as "the correct value is", "correction:", "it should
 * be". */
static bool corrected(span s, extraction *x) {
    static pattern value = {
        .flags = PATTERN_LONG,
        .regex = "(?i)\\b(?:(?:(?:correct(?:ed)?|true|right|actual|proper) (?:final )?(?:value|"
                 "result|count|total|number|answer|solution)|(?<!if )(?<!that )it|that) (?:is|"
                 "should be|should have been|must be|becomes|equals)|it(?:'|\u2019)s|(?:correction|"
                 "edit|corrected(?: final)? (?:answer|result|value)):|i mean(?:t)?|make that|"
                 "sorry,|no,(?= *[-0-9$(\\\\]))"
                 "(?: actually| instead| therefore| thus| really)?[\\s:*]++([^\\n]+)"};
    static pattern stop = {.regex = "\\.(?:\\s|$)"};
    span groups[PATTERN_GROUPS], end[PATTERN_GROUPS];
    if (!pattern_find_last(&value, s, groups))
        return false;
    *x = (extraction){"answer", groups[1]};
    if (pattern_find(&stop, groups[1], 0, end))
        x->answer.n = (size_t)(end[0].s - groups[1].s);
    return true;
}

/* True if a statement has a value and does not only confirm another one. */
static bool has_value(const extraction *x) {
    static pattern confirms = {
        .regex = "(?i)^[\\s*_$]*+(?:indeed |still |really )?(?:correct|right|confirmed|unchanged|"
                 "the same|as (?:above|before|stated)|verified|valid|consistent|reasonable|"
                 "wrong|incorrect|mistaken|not\\b|false\\b|an? |(?:the one )?(?:above|boxed|in "
                 "the box))\\b"};
    static pattern name = {.regex = "^[\\s*_]*+[A-Za-z][a-z]++[\\s*_.!]*+$"};
    return !pattern_find(&confirms, x->answer, 0, NULL) &&
           (integer_has_digit(x->answer) || memchr(x->answer.s, '$', x->answer.n) ||
            memchr(x->answer.s, '\\', x->answer.n) || pattern_find(&name, x->answer, 0, NULL));
}

/* Finds the last statement of @s or, if that has no value or is not asserted, the last correction.
 * False if that has no value or is not asserted either. */
static bool asserted(span s, extraction *x) {
    if (extract_stated(s, x) && has_value(x) && answer_context_of(s, x->answer) == ANSWER_ASSERTED)
        return true;
    return corrected(s, x) && has_value(x) && answer_context_of(s, x->answer) == ANSWER_ASSERTED;
}

/* Finds the words that say that an answer is wrong. "Let me double-check" is not enough, nor are
 * words that are followed by a confirmation. */
static bool find_withdrawal(span s, span groups[PATTERN_GROUPS]) {
    static pattern wrong = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)\\b(?:that|this|it|which|my (?:answer|result)|the (?:above|answer|result|box|"
            "(?:above|boxed|previous) (?:answer|result|value)))(?:(?:'|\u2019)s|\\s+is|\\s+was)\\s+"
            "(?:actually |clearly |unfortunately |therefore |also )?"
            "(?:(?:wrong|incorrect|mistaken)(?! to\\b)|"
            "false\\b|not (?:right|correct|the (?:final |correct )?answer|it\\b)|(?:only |just )?a"
            "n? "
            "(?:mistake|error|intermediate|partial)\\b|(?:for|only) )"};
    static pattern stands = {
        .regex = "(?i)\\b(?:(?:is|was|are) (?:indeed |in fact |actually )?(?:right|correct|fine)"
                 "(?! ?(?:answer|value))|stands|holds|checks? out|confirmed|verified)\\b"};
    if (!pattern_find(&wrong, s, 0, groups))
        return false;
    const char *end = groups[0].s + groups[0].n;
    return !pattern_find(&stands, (span){end, (size_t)(s.s + s.n - end)}, 0, NULL);
}

/* Decides about an answer that may be taken back: revised if @s, the text after it, asserts another
 * value. */
static answer_revision revision_of(span s, extraction *x, bool withdrawn) {
    if (asserted(s, x))
        return ANSWER_REVISED;
    return withdrawn ? ANSWER_RETRACTED : ANSWER_KEPT;
}

static span from(span s, const char *at) {
    return (span){at, (size_t)(s.s + s.n - at)};
}

/* True for the "instead" of "If the sum is wanted instead, the answer is 7." */
static bool is_hypothetical(span s, span word) {
    static pattern condition = {.regex = "(?i)\\bif\\b[^.!?\\n]*$"};
    return (*word.s | 32) == 'i' && word.n == strlen("instead") &&
           pattern_find(&condition, (span){s.s, (size_t)(word.s - s.s)}, 0, NULL);
}

answer_revision answer_revise(span text, const extraction *box, extraction *x, span *after) {
    static pattern retraction = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)\\b(?:wait|actually|correction|edit|hmm+|sorry|oops|my mistake|on (?:second "
            "thought|reflection)|made an? "
            "(?:mistake|error|slip)|(?:is|was|isn't|not) (?:wrong|incorrect|right|correct|"
            "mistaken)|overlook(?:s|ed)?|forg[eo]ts?|neglect(?:s|ed)?|ignor(?:es|ed)|(?:double|"
            "over|under)-?\\s?count(?:s|ed)?|miss(?:es|ed)|fail(?:s|ed) to|left out|leaves out|"
            "does(?: not|n't) (?:account|include|consider|take)|re-?(?:check|consider|examin|"
            "comput|calculat)(?:e?d?|ing)|should (?:have been|instead be|actually be)|instead|"
            "(?:intermediate|partial) (?:result|value|answer|step)|no, that)\\b"};
    span rest = after_box(text, box), before = before_box(text, box), groups[PATTERN_GROUPS];
    enum { kShort = 8 }; /* a text of at most 8 bytes after a box takes nothing back */
    bool draft = is_draft(before), withdrawn = rest.n > kShort && find_withdrawal(rest, groups);
    answer_context context = answer_context_of(text, box->answer);
    *after = rest;
    if (context != ANSWER_ASSERTED)
        return revision_of(rest, x, true);
    bool retracted = rest.n > kShort && pattern_find(&retraction, rest, 0, groups) &&
                     !is_hypothetical(rest, groups[0]);
    if (retracted)
        *after = from(rest, groups[0].s);
    if (!draft && !retracted && !withdrawn)
        return rest.n > kShort && extract_stated(rest, x) && strcmp(x->rule, "final_answer") == 0 &&
                       has_value(x) && answer_context_of(rest, x->answer) == ANSWER_ASSERTED
                   ? ANSWER_REVISED
                   : ANSWER_KEPT;
    return revision_of(*after, x, withdrawn || (draft && retracted));
}

answer_revision answer_revise_stated(span text, const extraction *stated, extraction *x,
                                     span *after) {
    static pattern retraction = {
        .regex = "(?i)\\b(?:wait|correction|edit:|hmm+|sorry|oops|hold on|my mistake|no, |on (?:"
                 "second thought|reflection)|made an? (?:mistake|error|slip))"};
    span rest = from(text, stated->answer.s), groups[PATTERN_GROUPS], other[PATTERN_GROUPS];
    bool withdrawn = find_withdrawal(rest, groups);
    bool retracted = pattern_find(&retraction, rest, 0, other);
    if (!withdrawn && !retracted)
        return ANSWER_KEPT;
    const char *at =
        retracted && (!withdrawn || other[0].s < groups[0].s) ? other[0].s : groups[0].s;
    *after = from(text, at);
    return revision_of(*after, x, withdrawn);
}
