/* Answers that the last sentence marks or names: text in bold or code, and a name. */
#include <string.h>

#include "evals/answer_parts.h"

bool answer_is_limited(span before) {
    static pattern limit = {
        .flags = PATTERN_LONG,
        .regex = "(?i)(?:[0-9] [a-z]+,? and|\\b(?:almost|nearly|between [^.]{1,20} and|"
                 "to reach|to get to|short of|away from|"
                 "than|least|most|not|exceeds?|below|above|under|over|until|(?<!adds )(?<!add "
                 ")(?<!comes )up to|except|"
                 "without|no|each of (?:the|these|those)|divi(?:des|sible by)|(?:multiples?|"
                 "square|cube|half|root|(?<!by a )factor|power) of|out of|"
                 "(?:steps?|cases?|theorem|lemma|problem|section|figure|(?<!the )(?<!has )(?<!an "
                 ")equation|question|page|"
                 "exercise)(?: number)?)|[<>~\u2264\u2265\u2248\u00b1])[\\s$*(\\\\]*$"};
    return pattern_find(&limit, span_tail(before, 40), 0, NULL);
}

bool answer_is_end(span text, const extraction *x) {
    static pattern end = {.regex = "^[\\s.!*_`\"')}\\]]*+$"};
    return pattern_find(&end, span_from(text, x->answer.s + x->answer.n), 0, NULL);
}

/* True if what follows a text in bold only compares or locates it: "**17 minutes** earlier than the
 * bus", "**1/8** of 2 feet". These two need a @number. */
static bool is_addition(span rest, bool number) {
    static pattern of = {
        .regex = "(?i)^\\*\\* (?:[a-z]+ ){0,2}(?:of (?:the|these|those|them)|such)\\b[^*=]*$"};
    static pattern bracket = {.regex = "^\\*\\* \\([^()*=]*\\)[.!]?\\s*$"};
    static pattern period = {
        .regex =
            "(?i)^\\*\\* (?:[a-z]+ ){0,3}(?:in|per|for|over|during|within|each|every) "
            "(?:(?:[0-9]+|an?|one|the|that|this|those|these|two|three|four|five) )?(?:[a-z]+ )?"
            "(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|weekend|summer|morning)"
            "[.!]?\\s*$"};
    static pattern part = {.regex = "(?i)^\\*\\* of (?:an? )?[0-9]+ (?:[a-z]+ ?){1,3}[.!]?\\s*$"};
    static pattern substance = {
        .regex =
            "(?i)^\\*\\* of (?!(?:the|these|those|them|all|its|their|his|her|our|an?)\\b)[a-z]+"
            "(?: [a-z]+)?[.!]?\\s*$"};
    static pattern compared = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)^\\*\\* (?!.*\\b(?:is|are|was|or|not|but|if|unless|would|could|n't|each|until)\\b)"
            "(?:[a-z]+ ){0,2}(?:earlier|later|(?:long|short|old|young|tall|small|larg|great|heavi|"
            "light|fast|slow|high|low|bigg|cheap|furth|farth|wid|deep)e?r|more|less|fewer|before|"
            "after|per|altogether|in (?:total|all))(?![a-z])[^*=?,;0-9$]*$"};
    static pattern noun = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)^\\*\\* (?!.*\\b(?:is|are|was|were|will|has|have|had|not|n't|would|could|might|if|"
            "until|unless|than|before|after|times|but|or|more|fewer|less|cases?|steps?|each|too|"
            "wrong)\\b)[a-z][a-z' -]{2,60}[.!]?\\s*$"};
    return pattern_find(&of, rest, 0, NULL) ||
           (number &&
            (pattern_find(&bracket, rest, 0, NULL) || pattern_find(&period, rest, 0, NULL) ||
             pattern_find(&noun, rest, 0, NULL) || pattern_find(&part, rest, 0, NULL) ||
             pattern_find(&substance, rest, 0, NULL) || pattern_find(&compared, rest, 0, NULL)));
}

void answer_add_marked(found_answer *a, span text, span sentence) {
    static pattern marked = {.regex = "\\*\\*([^*\\n]++)\\*\\*|`([^`\\n]++)`"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find_last(&marked, sentence, groups))
        return;
    extraction x = {"last_sentence", groups[groups[1].s ? 1 : 2]};
    span whole = answer_bare(sentence);
    bool alone = whole.s == x.answer.s;
    span core = answer_core(x.answer);
    span rest = span_from(sentence, x.answer.s + x.answer.n);
    bool ends = answer_is_end(text, &x) || is_addition(rest, answer_has_number(core));
    if (ends && !answer_is_limited((span){sentence.s, (size_t)(groups[0].s - sentence.s)}) &&
        (alone || answer_has_number(core) || core.n < 20))
        answer_add(a, x.rule, core);
}

void answer_add_marked_clause(found_answer *a, span sentence) {
    static pattern clause = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)^(?:hence|so|thus|therefore|finally|consequently|in conclusion)\\b[^*]*"
            "\\b(?:is|are|equals)\\s++\\*\\*([^*\\n]++)\\*\\*,?\\s++(?:and|while|whereas|with)"
            "\\s[^*]*$|^[^*:]*[a-z]\\s++\\*\\*([^*\\n]*[0-9][^*\\n]*+)\\*\\*(?: [a-z]+){0,4}?"
            "(?:,\\s++(?:and|or|while|whereas|compared|which is)|\\s++(?:while|whereas|compared))"
            "\\s(?!.*\\b(?:so|thus|hence|therefore|total|altogether|left|leaves|leaving|remain)\\b)"
            "[^*=]*$|^(?:(?:hence|so|thus|therefore|finally)\\b,?\\s++)?\\*\\*([^*0-9]++)\\*\\*"
            "\\s++"
            "(?:has|is|was|wins?|won|gets?|got|will)\\b(?! not)[^*0-9$]*$"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&clause, sentence, 0, groups))
        return;
    span marked = groups[groups[1].s ? 1 : groups[2].s ? 2 : 3];
    if (!groups[2].s || !answer_is_limited((span){sentence.s, (size_t)(marked.s - sentence.s)}))
        answer_add(a, "last_sentence", answer_core(marked));
}

void answer_add_name(found_answer *a, span sentence) {
    static pattern name = {
        .regex =
            "^(?:(?:So|Thus|Hence|Therefore|(?:By|With|[A-Z][a-z]+ing) [^,]{1,60}),? )?(?:we "
            "(?:see|find|conclude) that )?\\**([A-Z][a-z]+)\\**(?: "
            "\\([^()]*\\)|, not [A-Z][a-z]+,)? (?!.*\\b(?:and|while|whereas) [A-Z][a-z]+ "
            ")(?:(?:(?:will |must |"
            "always |can always )?(?:wins?|won)(?: the (?:race|game|match|contest|election|bet|"
            "tournament|competition))?|has (?:a|the) "
            "winning strategy)[.!*]*$|is [a-z]+er than (?:everyone|everybody|all|"
            "both)\\b[^0-9$]*$|(?:(?:would|will|must|should) "
            "(?!not\\b|never\\b)[a-z]+|(?!beats|says|thinks|believes|claims|knows|meets)[a-z]+s|"
            "(?!claimed|believed)[a-z]+ed|had|won|came|ran|got) (?:the |in )?"
            "(?:most|least|fewest|[a-z]+est|first|last|winner)\\b"
            "(?!.*\\b(?:if|unless|until|but|than|when|while|not|is|that|so)\\b)[^0-9$]*$)"};
    static pattern player = {
        .regex =
            "^(?:(?:So|Thus|Hence|Therefore),? )?[Tt]he (?:first|second|starting|other) player,? "
            "\\(?([A-Z][a-z]+)\\)?,? (?:has (?:a|the) winning strategy|(?:always "
            ")?wins)\\b[^0-9$]*$"};
    static pattern other = {
        .regex = "^(?:It|This|That|He|She|There|One|Which|What|Each|The|We|They|You|If|When|Since|"
                 "Then|Now|Here|Who|All|Both|None|Nobody|Someone|Everyone|Perhaps|Maybe|Neither)$"};
    span groups[PATTERN_GROUPS];
    if ((pattern_find(&name, sentence, 0, groups) || pattern_find(&player, sentence, 0, groups)) &&
        !pattern_find(&other, groups[1], 0, NULL))
        answer_add(a, "last_sentence", groups[1]);
}
