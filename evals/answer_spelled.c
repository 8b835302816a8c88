/* Answers that the last sentence spells out: "She has ten apples left over.", "The function
 * f(x) = x is odd." */
#include <string.h>

#include "evals/answer_parts.h"

#define ONES "one|two|three|four|five|six|seven|eight|nine"
#define WORD                                                                                       \
    "(?:zero|" ONES "|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|thirty|"  \
    "forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand)"
#define FRACTION                                                                                   \
    "(?:[- ](?:half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|"         \
    "ninths?|tenths?|elevenths?|twelfths?|sixteenths?|twentieths?|hundredths?)\\b|"                \
    " and (?:a half|a quarter|three quarters)\\b)"
#define NUMBER                                                                                     \
    "\\b((?:(?:negative|minus) )?" WORD "\\b(?:[- ]" WORD "\\b|(?<=hundred|thousand) and " WORD    \
    "\\b)*+" FRACTION "?(?: per ?cent)?)"

/* True if the words around the number show that it counts nothing that was to be found: "the
 * three sides", "in two hours", "one of them", "two cases". */
static bool is_aside(span before, span number, span after) {
    static pattern determiner = {
        .regex = "(?i)\\b(?:(?<!take )(?<!takes )(?<!took )(?<!cost )(?<!costs )"
                 "(?<!give )(?<!gives )(?<!leave )(?<!leaves )(?:its|his|her|their)|"
                 "the|these|those|this|that|all|any|both|other|another|in|after|within|"
                 "every|each|of|per|first|last|next|previous|by|base|step|case|"
                 "our|your|my|with|from|for|at|between|when|if)[\\s*]*$|-$"};
    static pattern thing = {
        .regex = "(?i)^[*]*(?:-[a-z]| [a-z]+ths\\b|,? (?:times|cases?|steps?|digits?|terms?|"
                 "sides?|variables?|"
                 "equations?|conditions?|possibilities|(?:or|and|to|by|from) " WORD ")\\b)"};
    static pattern one = {.regex = "(?i)^one$"};
    static pattern only = {.regex = "(?i)\\b(?:exactly|only|just)[\\s*]*$"};
    static pattern of = {.regex = "(?i)^[*]* (?:of|more|another|can|way)\\b"};
    bool single = pattern_find(&one, number, 0, NULL);
    return pattern_find(&determiner, before, 0, NULL) || pattern_find(&thing, after, 0, NULL) ||
           (single && (!pattern_find(&only, before, 0, NULL) || pattern_find(&of, after, 0, NULL)));
}

void answer_add_spelled(found_answer *a, span sentence) {
    static pattern number = {.flags = PATTERN_LONG | PATTERN_CASELESS, .regex = NUMBER};
    static pattern sign = {.regex = "[0-9$\\\\?]|\xC2[\xBC-\xBE]"};
    span groups[PATTERN_GROUPS], other[PATTERN_GROUPS];
    if (pattern_find(&sign, sentence, 0, NULL) || pattern_count(&number, sentence) != 1 ||
        !pattern_find(&number, sentence, 0, groups))
        return;
    span before = {sentence.s, (size_t)(groups[1].s - sentence.s)};
    span after = span_from(sentence, groups[1].s + groups[1].n);
    static pattern unit = {.regex =
                               "(?i)^ (?:hour|minute|second|day|week|month|year|cent|dollar|mile|"
                               "inche|feet|met(?:er|re)|kilomet(?:er|re))s?\\b"};
    if (answer_is_limited(before) || is_aside(before, groups[1], after))
        return;
    if (pattern_find(&unit, after, 0, other))
        answer_add(a, "spelled", (span){groups[1].s, groups[1].n + other[0].n});
    answer_add(a, "spelled", groups[1]);
}

void answer_add_class(found_answer *a, span sentence) {
    static pattern class = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)\\b(?:is|are|was|represents?|describes?|forms?|called|(?:falls?|be) on)\\s++"
            "(?:(?:always|indeed|thus|therefore|also|clearly|then|most "
            "likely)\\s++)?(?:(?:an?|the)\\s++)?"
            "[*_]*+(?!not\\b|neither\\b|never\\b|no\\b|nor\\b|correct|right\\b|valid|verified|done)"
            "([a-z]{3,}+(?: (?!with\\b)[a-z]{3,}+)?)[*_]*+(?: with (?:sides?|radius|cent(?:er|re)|"
            "vertex|vertices|foc(?:us|i)|an?|the)\\b[^.]*)?[.!]?[*_\\s]*$"};
    static pattern limit = {
        .regex = "(?i)\\b(?:series|integral|sequence|product|sum|it) (?:therefore |thus |also )?"
                 "(diverges|converges)[.!*]*$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find_last(&class, span_tail(sentence, 120), groups) &&
        !answer_has_number(groups[1]))
        answer_add(a, "class", groups[1]);
    static pattern neither = {.regex = "(?i)\\bis (neither)(?: [a-z]+ nor [a-z]+)?[.!*]*$"};
    if (pattern_find(&limit, sentence, 0, groups) || pattern_find(&neither, sentence, 0, groups))
        answer_add(a, "class", groups[1]);
}
