/* Boxes that a response takes back, and boxes between which it does not choose. */
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
                 "(?:wrong|incorrect|mistaken)(?:ly)?)\\b[^.!?\\n]*$"};
    return pattern_find(&draft, tail_of(before, kNear), 0, NULL);
}

/* The value after "the correct value is". */
static bool corrected(span s, extraction *x) {
    static pattern value = {
        .regex = "(?i)\\b(?:(?:correct(?:ed)?|true|right|actual|proper) (?:final )?(?:value|result|"
                 "count|total|number|answer|solution)|it) (?:is|should be|must be|becomes|equals)"
                 "(?: actually| instead| therefore| thus)?[\\s:*]++([^\\n]+)"};
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
                 "(?:the one )?(?:above|boxed|in the box))\\b"};
    static pattern name = {.regex = "^[\\s*_]*+[A-Z][a-z]++[\\s*_.!]*+$"};
    return !pattern_find(&confirms, x->answer, 0, NULL) &&
           (integer_has_digit(x->answer) || memchr(x->answer.s, '$', x->answer.n) ||
            memchr(x->answer.s, '\\', x->answer.n) || pattern_find(&name, x->answer, 0, NULL));
}

answer_revision answer_revise(span text, const extraction *box, extraction *x, span *after) {
    static pattern retraction = {
        .regex =
            "(?i)\\b(?:wait|actually|correction|sorry|oops|my mistake|on second thought|made an? "
            "(?:mistake|error|slip)|(?:is|was|isn't|not) (?:wrong|incorrect|right|correct|"
            "mistaken)|overlook(?:s|ed)?|forg[eo]ts?|neglect(?:s|ed)?|ignor(?:es|ed)|(?:double|"
            "over|under)-?\\s?count(?:s|ed)?|miss(?:es|ed)|fail(?:s|ed) to|left out|leaves out|"
            "does(?: not|n't) (?:account|include|consider|take)|re-?(?:check|consider|examin|"
            "comput|calculat)(?:e?d?|ing)|should (?:have been|instead be|actually be)|instead)\\b"};
    span rest = after_box(text, box), groups[PATTERN_GROUPS];
    bool draft = is_draft(before_box(text, box));
    bool retracted = pattern_find(&retraction, rest, 0, groups);
    if (!draft && !retracted)
        return ANSWER_KEPT;
    *after = retracted ? (span){groups[0].s, (size_t)(rest.s + rest.n - groups[0].s)} : rest;
    if ((extract_stated(*after, x) && has_value(x)) || (corrected(*after, x) && has_value(x)))
        return ANSWER_REVISED;
    return draft && retracted ? ANSWER_RETRACTED : ANSWER_KEPT;
}
