/* Finds answers that the last sentence gives in certain phrases: "4 of the 10 numbers", "a 1 in 2
 * chance". */
#include <string.h>
#include <strings.h>

#include "evals/answer_parts.h"
#include "evals/integer.h"

#define SPELLED "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"

/* Adds the relation or set of "k must be greater than 4" and "All real numbers except 3". */
static void add_relation(found_answer *a, span sentence) {
    static pattern relation = {
        .flags = PATTERN_LONG,
        .regex = "(?i)(?:^|\\s)(\\$?[a-z]\\$? (?:must be|is|has to be|should be|"
                 "needs to be) (?:strictly )?"
                 "(?:(?:greater|less|larger|smaller|more) than(?: or equal to)?|at least|at most|"
                 "no more "
                 "than|no less than) \\$?-?[0-9][0-9./]*\\$?)[.!]?$|\\bfor (?:all |any |every "
                 ")?(?:real )?(\\$?[a-z]\\$? (?:strictly )?(?:greater|less|larger|smaller) "
                 "than(?: or equal to)? \\$?-?[0-9][0-9./]*\\$?)[.!]?$|(?:^|^(?:So|Thus|Hence|"
                 "Therefore),? "
                 "|\\b(?:is|are|includes?) )((?:the set of )?all real "
                 "(?:numbers|values)\\b[^.;]*)[.!]?$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&relation, sentence, 0, groups))
        answer_add(a, "relation", groups[groups[1].s ? 1 : groups[2].s ? 2 : 3]);
}

/* Adds the 4 of "Only 4 of the 10 numbers are prime." */
static void add_share(found_answer *a, span sentence) {
    static pattern share = {
        .regex = "(?i)(?:^|\\s)\\**([0-9]+)\\** (?:out )?of (?:the|these|those|all) [0-9]+ [a-z]"
                 "(?!.*(?:\\b(?:probability|chance|fraction|percent)|%))"};
    span groups[PATTERN_GROUPS];
    if (pattern_find_last(&share, sentence, groups) &&
        !answer_is_limited((span){sentence.s, (size_t)(groups[1].s - sentence.s)}))
        answer_add(a, "share", groups[1]);
}

/* The number of members of "1, 2 and 5" or "(1,2), (2,1)". */
static int count_members(span list) {
    int depth = 0, n = 1;
    for (size_t i = 0; i < list.n; i++) {
        char c = list.s[i];
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        bool word = list.n - i > 5 && memcmp(list.s + i, " and ", 5) == 0;
        n += depth == 0 && (c == ',' || (word && list.s[i - (i > 0)] != ','));
    }
    return n;
}

/* Adds the 3 of "There are three values: 1, 2 and 5." if three members follow. */
static void add_count(found_answer *a, span sentence) {
    static const char *const words[] = {"one",   "two",   "three", "four", "five",   "six",
                                        "seven", "eight", "nine",  "ten",  "eleven", "twelve"};
    static pattern counted = {
        .regex = "(?i)\\b(?:are|get|obtain|have|find|yields?|gives?|giving)\\s+(?:exactly |"
                 "only )?([0-9]{1,2}|" SPELLED ") (?:[a-z-]+ ){0,3}[a-z]+: ([^:]+?)[.!\\s]*$"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&counted, sentence, 0, groups))
        return;
    int members = count_members(groups[2]), n = 0;
    for (size_t i = 0; i < groups[1].n && integer_has_digit(groups[1]); i++)
        n = 10 * n + (groups[1].s[i] - '0');
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (groups[1].n == strlen(words[i]) && strncasecmp(groups[1].s, words[i], groups[1].n) == 0)
            n = (int)i + 1;
    if (n == members)
        answer_add(a, "count", groups[1]);
}

/* Adds the 5/8 of "So 5/8 remains." and "Five eighths of the cake is left." */
static void add_rest(found_answer *a, span sentence) {
    static pattern rest = {
        .regex =
            "(?i)(?:^|\\bso |, )((?:[0-9]+/[0-9]+|[0-9][0-9.,]*|\\$[^$]+\\$|" SPELLED
            "(?:[- ](?:half|halves|thirds?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|"
            "tenths?|elevenths?|twelfths?|sixteenths?|twentieths?|hundredths?))?))(?: "
            "[a-z]+)?(?: of (?:the|an?|his|her|their) [a-z ]{1,20})? (?:remains?|"
            "(?:is|are) "
            "(?:left|remaining|needed|required|shaded))(?: [a-z]+)?[.!]?$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&rest, sentence, 0, groups) &&
        !answer_is_limited((span){sentence.s, (size_t)(groups[1].s - sentence.s)}))
        answer_add(a, "last_sentence", groups[1]);
}

/* Adds the "Friday" of "100 days later it is a Friday." */
static void add_day(found_answer *a, span sentence) {
    static pattern day = {
        .regex = "(?:\\b(?:it|this|that) (?:is|was|will be|would be)|\\b(?:falls?|fell|be)(?= on))"
                 "(?: on)?(?: an?)? \\**((?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|"
                 "February|March|"
                 "April|May|June|July|August|September|October|November|December)\\**[.!]?$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&day, sentence, 0, groups))
        answer_add(a, "last_sentence", groups[1]);
}

/* Adds the "False" of "False, because 2 is a counterexample." */
static void add_verdict(found_answer *a, span sentence) {
    static pattern verdict = {
        .regex = "(?i)^[*\\s]*(yes|no|true|false)\\b[*]*,? (?:because|since|as)\\b"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&verdict, sentence, 0, groups))
        answer_add(a, "first_word", groups[1]);
}

/* Adds the "1 in 2" of "There is a 1 in 2 chance." */
static void add_chance(found_answer *a, span sentence) {
    static pattern chance = {
        .regex = "(?i)\\ba ([0-9]+ (?:in|out of) [0-9]+) (?:chance|probability)\\b[^0-9]*$|"
                 "\\b(?:probability|chances?)\\b[^0-9$]* (?:is|are|of|equals) "
                 "([0-9]+ (?:in|out of) [0-9]+)[.!*\\s]*$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&chance, sentence, 0, groups))
        answer_add(a, "last_sentence", groups[groups[1].s ? 1 : 2]);
}

/* Adds "$x = k\pi$ for some integer $k$" with its parameter. */
static void add_family(found_answer *a, span sentence) {
    static pattern family = {
        .regex = "(?i)((?:\\$[^$]*=[^$]*\\$|[a-z](?:\\([a-z]\\))? ?= ?[^,;=$]+),?\\s+(?:for|where|"
                 "with)\\s[^=;]*)$"};
    span groups[PATTERN_GROUPS];
    if (answer_names_parameter(answer_bare(sentence)) && pattern_find(&family, sentence, 0, groups))
        answer_add(a, "family", answer_bare(groups[1]));
}

/* Adds the 4 of "So in 4 years, Tom is twice as old." */
static void add_leading_time(found_answer *a, span sentence) {
    static pattern time = {
        .regex = "(?i)^(?:so |thus |hence |therefore,? )?(?:in|after) ([0-9]+ (?:seconds?|"
                 "minutes?|hours?|"
                 "days?|weeks?|months?|years?)), [^0-9$?]*$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&time, sentence, 0, groups))
        answer_add(a, "leading_time", groups[1]);
}

/* Adds the 75 of "His score is 75 out of 100." */
static void add_out_of(found_answer *a, span sentence) {
    static pattern part = {
        .regex =
            "(?i)\\b(?:is|are|was|were|has|have|got|scored|answered|gets?) \\**"
            "([0-9]+)(?: [a-z]+)? out of (?:the |these |a total of )?[0-9]+(?: [a-z]+)?\\**[.!]?$"};
    static pattern chance = {.regex = "(?i)\\b(?:probability|chances?|odds|fraction|ratio)\\b"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&part, sentence, 0, groups) && !pattern_find(&chance, sentence, 0, NULL))
        answer_add(a, "out_of", groups[1]);
}

/* Adds the "n is odd" of "This is possible exactly when n is odd." */
static void add_property(found_answer *a, span sentence) {
    static pattern property = {
        .regex =
            "(?i)\\b(?:exactly|precisely|(?:if )?and only) (?:when|if) (\\$?[a-z]\\$? is (?:an? )?"
            "(?:odd|even|prime|composite|a perfect (?:square|cube)|(?:divisible by|a multiple of) "
            "\\$?[0-9]+\\$?))[.!]?$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&property, sentence, 0, groups))
        answer_add(a, "relation", groups[1]);
}

/* Adds the 60% of "So 60% of the pupils walk to school." and the 5 of "5 pupils did not vote." */
static void add_leading_share(found_answer *a, span sentence) {
    static pattern percentage = {
        .regex = "(?i)^(?:(?:so|thus|hence|therefore|this means|in total),? (?:that )?)?\\**"
                 "([0-9][0-9.]*\\s?\\\\?%)\\** of (?:the|all|his|her|their|its|these|those) "
                 "(?:[0-9][0-9,]* )?(?!.*\\b(?:or|if|would|more|less|than)\\b)[^0-9$*]*[.!]?$"};
    static pattern subject = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)^(?:(?:so|thus|hence|therefore|in total),? )?\\**([0-9][0-9,]*)\\**"
            "(?: out of (?:the )?[0-9][0-9,]*)? (?!is\\b|was\\b|does\\b|divides\\b|"
            "times\\b|fails\\b|has\\b|can|would\\b|will\\b|plus\\b|minus\\b|and\\b|or\\b|to\\b|"
            "of\\b|more\\b|less\\b|ways\\b|cases\\b)[a-z]{3,}(?: [a-z]+){0,2} (?:did|do|were|are|"
            "have|had|passed|remain|stayed|survived|left|came|can|will)\\b"
            "(?!.*\\b(?:or|if|unless)\\b)[^0-9$*]*$|"
            "^([0-9][0-9,]*) out of (?:the )?[0-9][0-9,]* [a-z]+ [a-z]+[.!]?$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&percentage, sentence, 0, groups) ||
        pattern_find(&subject, sentence, 0, groups))
        answer_add(a, "last_sentence", groups[groups[1].s ? 1 : 2]);
}

/* Adds the 7 of "The remainder is 7 when the number is divided by 12." */
static void add_remainder(found_answer *a, span sentence) {
    static pattern remainder = {
        .regex = "(?i)^[^0-9]*\\b(?:remainder (?:is|of|must be|will be)|leaves (?:a )?remainder) "
                 "\\$?([0-9]+)\\$? (?:when|if|after|upon|on) [^.]*\\b(?:divid|division)"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&remainder, sentence, 0, groups))
        answer_add(a, "amount", groups[1]);
}

/* Adds the 118 of "We find that 118 satisfies all the conditions." */
static void add_found(found_answer *a, span sentence) {
    static pattern found = {
        .regex = "(?i)^(?:(?:so|thus|hence|therefore),? )?(?:we|i) (?:find|see|conclude|know) that "
                 "\\$?(-?[0-9][0-9,]*)\\$? (?:satisfies|works|does|suffices|is attainable)\\b"
                 "(?!.*\\b(?:not|no|none|only|but)\\b)[^0-9$]*$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&found, sentence, 0, groups))
        answer_add(a, "amount", groups[1]);
}

/* Adds the 3 of "Mia has 3 times as many stamps as Ron." */
static void add_multiple(found_answer *a, span sentence) {
    static pattern times = {
        .regex =
            "(?i)\\b(?:is|are|was|has|have|had|takes?|costs?|weighs?|earns?|makes?) (?:exactly |"
            "about )?([0-9][0-9.]*) times (?:as (?:many|much|[a-z]+)|the|more|[a-z]+er)\\b"
            "(?![^.]*\\b(?:is|or|if|so|which)\\b)[^0-9.;:]*[.!]?$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&times, sentence, 0, groups))
        answer_add(a, "amount", groups[1]);
}

void answer_add_phrases(found_answer *a, span sentence, bool words) {
    add_relation(a, sentence);
    add_share(a, answer_main_clause(sentence));
    add_leading_share(a, sentence);
    add_count(a, sentence);
    add_multiple(a, sentence);
    add_found(a, sentence);
    add_remainder(a, sentence);
    add_rest(a, answer_main_clause(sentence));
    add_day(a, sentence);
    add_chance(a, sentence);
    add_leading_time(a, sentence);
    add_out_of(a, sentence);
    add_property(a, sentence);
    add_family(a, sentence);
    if (words)
        add_verdict(a, sentence);
}

/* Adds the "No" of "No. The series diverges." */
void answer_add_reply(found_answer *a, span text) {
    static pattern reply = {
        .regex = "(?i)^[*\\s]*(yes|no|true|false)\\b[*]*(?:[.,:;!]| (?:\u2014|\u2013|-) )"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&reply, text, 0, groups))
        answer_add(a, "reply", groups[1]);
}

/* Marks the ratio of "The odds are 1 : 2", which is no quotient. */
void answer_mark_odds(found_answer *a, span sentence) {
    static pattern odds = {.regex = "(?i)\\bodds\\b"};
    static pattern ratio = {.regex = "(?i)^[\\s$(]*[0-9]+\\s*(?::|to)\\s*[0-9]+[\\s$)]*$"};
    if (!pattern_find(&odds, sentence, 0, NULL))
        return;
    for (int i = 0; i < a->count; i++)
        if (pattern_find(&ratio, a->reading[i].answer, 0, NULL))
            a->reading[i].rule = "odds";
}
