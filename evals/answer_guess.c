/* Guesses an answer that the response does not declare, from its last sentence, formula or
 * number. */
#include <string.h>

#include "evals/answer_parts.h"
#include "evals/grade_parts.h"
#include "evals/integer.h"

enum {
    kMoreWords = 10, /* limit of words after a guessed answer, if a full stop ends them */
    kUnitWords = 2,  /* limit of words after a guessed answer without a full stop */
    kShortLine = 80, /* limit in bytes of an answer that is a line */
    kUnitTail = 40,  /* bytes at the end that are searched for a unit */
    kTail = 400,     /* bytes at the end that are searched for a formula that is cut off */
};

/* True if the text ends in a word or a sign that no sentence ends in. */
static bool is_open_word(span s) {
    static pattern word = {.regex = "(?i)(?:^|\\W)(?:but|the|an?|of|we|and|or|so|that|is|are|for|"
                                    "(?:for|of|in|from|to|with) each|"
                                    "now|to|with|then|since|if|because|as|than|in|by|this|which|it|"
                                    "from|where|when|at|on|be|has|have|must|not|gives|"
                                    "yields|equals|means|implies|how|what|also|next|first)$"};
    static pattern inches = {.regex = "=\\s*[0-9][0-9./]*\\s?in$"};
    if (pattern_find(&inches, span_tail(s, kUnitTail), 0, NULL))
        return false;
    return pattern_find(&word, s, 0, NULL) || (s.n && strchr(":,", s.s[s.n - 1]));
}

/* True for "So his cousin is 55 - 8 = 47 years old now". */
static bool ends_in_now(span sentence) {
    static pattern now = {.regex = "(?i)[0-9] [a-z]+(?: [a-z]+)? now$"};
    return pattern_find(&now, span_tail(sentence, kUnitTail), 0, NULL);
}

/* True if only a few words follow @x, so that the text seems to end with the answer: nothing but
 * punctuation, a few words and a full stop, or one or two words. */
static bool ends_text(span text, const extraction *x) {
    enum { kMost = 160 };
    static pattern stop = {.regex = "(?:[.!?]|\u3002|\u0964)[\\s*_$\"')\\]}`]*+$"};
    static pattern words = {.regex = "[a-zA-Z\x80-\xFF]++"};
    span rest = span_trim(span_from(text, x->answer.s + x->answer.n));
    if (rest.n > kMost)
        return false;
    size_t n = pattern_count(&words, rest);
    if (n <= kUnitWords)
        return !is_open_word(rest);
    return n <= kMoreWords && pattern_find(&stop, rest, 0, NULL);
}

/* True if the sentence states no answer: a question, a condition, something that is not known. */
static bool is_undecided(span s) {
    static pattern doubt = {
        .regex =
            "(?i)\\?|\\b(?:maybe|perhaps|might|unsure|not (?:sure|certain|know)|guess\\b|suppose|"
            "assum|for (?:example|instance)|other than|unless|otherwise|let us|let's|"
            "would have been|(?:step|case) [0-9]+[.]?$)"};
    static pattern premise = {
        .regex = "(?i)^\\s*when\\s[^,?$]*+(?:\\$[^$]*\\$[^,?$]*+)*+,"
                 "(?!.*\\b(?:if|would|might|could|not)\\b)[^?]*\\b(?:is|are|equals|becomes)\\b"
                 "\\s*\\$[^$]*\\$[.]?$"};
    if (answer_is_calculation(s) || pattern_find(&premise, s, 0, NULL))
        return pattern_find(&doubt, s, 0, NULL);
    static pattern open = {
        .regex =
            "(?i)\\?[\\s*\"')]*$|(?:problem|step|case|theorem|question|exercise|example|section) "
            "[0-9]+[\\s.]*$|^\\s*(?:if|when(?![^,]*\\bdivid(?:ed?|ing)\\b[^,]*,)|let [a-z$]|let "
            "us (?:assume|suppose)|suppose|assum|"
            "for (?:example|instance)|consider|take)\\b|\\b(?:can(?:not|'t)|can not|could|may "
            "(?:be|have|not|equal)|might|maybe|perhaps|impossible|unclear|unsure|whether|suppose|"
            "assum(?:e|ing)|(?<!which )(?:lies?|is|falls) between|"
            "not (?:sure|certain|enough(?!, so)|know)|is(?:n't| not) (?:the|our|my) (?:(?:final|"
            "correct|"
            "right|"
            "desired) )?(?:answer|result|solution)|no way|unable|not able|guess|unknown|don't know|"
            "does(?: not|n't) exist|if the|(?<!if and )only if|even though|although|so far|"
            "partial(?! fraction)|ran out|"
            "mistake|depends on|for (?:example|instance)|people say|(?:some|others) say|other "
            "than|(?:left|remain(?:s|ing)?|need|have) to (?:be|check|consider|show|verify|count)|"
            "cases?\\**+ (?:left )?to (?:check|consider|examine|try)|"
            "we (?:still|must still|now) (?:need|have|consider|continue)|we continue|are (?:both |"
            "all |"
            "each )?(?:possible|plausible|candidates))\\b"};
    return pattern_find(&open, s, 0, NULL);
}

/* True if the words after a number deny that it is the answer: "24 is too large". */
static bool is_denied(span after) {
    static pattern denial = {
        .regex =
            "(?i)^[\\s$*)]*(?:is(?:n't| not\\b)|is too\\b|is (?:an?|the|only an?) (?:upper|lower) "
            "bound|divides\\b|(?:st|nd|rd|th)\\b|times\\b|terms\\b|cases\\b|"
            "remaining\\b|digits\\b)"};
    return pattern_find(&denial, after, 0, NULL);
}

/* True if the signs around a number show that it is only a part of an expression: 3 + 4i, 4:45. */
static bool is_in_expression(span text, const extraction *x) {
    static pattern before = {.regex =
                                 "(?:[/^_{(\\[<>+:\xC2\xB1\xC3\x97\xE2\x89\x88\xB7\x9A]|[a-z0-9)] ?"
                                 "(?:-|(?<!\\*)\\*(?!\\*))|\xE2"
                                 "[\x80-\xBF][\x80-\xBF]|[0-9\x80-\xBF],)[ *]*$"};
    static pattern after = {
        .regex = "^(?:[a-zA-Z^_/:!)\\]}|\xC2\xCF]|\xE2[\x80-\xBF]| ?[+*=<>-] ?[0-9a-z(])"};
    span left = {text.s, (size_t)(x->answer.s - text.s)};
    return grade_part_of_expression(text, x) ||
           pattern_find(&before, span_tail(left, 8), 0, NULL) ||
           pattern_find(&after, span_from(text, x->answer.s + x->answer.n), 0, NULL);
}

/* ---- the last sentence ---- */

/* Adds the 5 of "In short: 5 is the final answer." */
static bool add_subject(found_answer *a, span sentence) {
    static pattern subject = {
        .regex =
            "(?i)^(?:[A-Za-z ,]{0,40}[:,]\\s|(?:hence|so|thus|therefore|finally)\\s)?(.+?)\\s++"
            "(?:is|are)\\s++(?:therefore |thus |indeed )?(?:what (?:we|you|i|was|were)\\b|(?:the|o"
            "ur|"
            "my)\\s++"
            "(?:(?:final|correct|required|desired)\\s++)*(?:answer|result|solution)s?\\b)"
            "[^$]{0,40}$"};
    static pattern unique = {
        .regex =
            "(?i)^(?:(?:hence|so|thus|therefore|finally),?\\s+)?(?:(?:we|i) (?:conclude|find|"
            "see|get|have|know)\\s+(?:that\\s+)?)?(.+?)\\s++(?:is|are)\\s++(?:therefore |thus |"
            "indeed )?the (?:unique|only|sole)\\s+(?:possible |such |real |positive |integer )*"
            "(?:function|solution|answer|pair|triple|tuple|value|number|integer|polynomial|root)"
            "s?(?: that works)?[.!*\\s]*$"};
    static pattern object = {
        .regex =
            "(?i)\\b(?:get|obtain|giv(?:es?|ing)|yield(?:s|ing)?|have|arrive at|(?:end|come) up wi"
            "th|"
            "settle on|choose|go(?:ing)? with|select|pick|"
            "left with|reach|report|take)(?: us)?\\s++([^,]+?)\\s++(?:as|for|to be)\\s++"
            "(?:the|our|my)\\s++(?:final |correct )?(?:answer|result|solution)\\b[^$]{0,40}$"};
    span groups[PATTERN_GROUPS];
    span result = answer_main_clause(sentence);
    if (!pattern_find(&object, sentence, 0, groups) && !pattern_find(&subject, result, 0, groups) &&
        !pattern_find(&subject, sentence, 0, groups) && !pattern_find(&unique, sentence, 0, groups))
        return false;
    static pattern clause = {.regex =
                                 "(?i)[a-z]{2,}\\s++[a-z]{2,}.*\\b(?:is|are|equals)\\b|, which$"};
    span found = answer_core(groups[1]);
    if (pattern_find(&clause, found, 0, NULL))
        return false;
    answer_add(a, "last_sentence", found);
    return true;
}

/* Adds the text after the last verb that states a value, and after the last equals sign: "The sum
 * is 7/3." Adds nothing if the sentence has a formula in dollar signs. */
static void add_predicate(found_answer *a, span sentence) {
    static pattern verb = {
        .regex = "(?i)\\b(?:(?:equal|equals|evaluates?|(?:con|di)verges?|simplif(?:y|ies)|"
                 "reduces?|comes?|"
                 "amounts?|adds up|sums?|tends|comes? out|turns? out|works? out|boils down|goes) "
                 "(?:to|as|at)(?: be)?|left with|is|are|was|equals?|becomes?|costs?|weighs?|"
                 "measures?|shows?|gives?(?: us)?|"
                 "yields?|get|obtain|has|have|at|be|find|totals)\\b:?[\\s*_]++|:\\s++"};
    static pattern sign = {.regex = "(?<![<>!])=(?!>)[\\s*]*+"};
    span groups[PATTERN_GROUPS];
    static pattern formula = {.regex = "\\$[^$]*\\$"};
    if (pattern_find(&formula, sentence, 0, NULL))
        return;
    if (pattern_find_last(&verb, sentence, groups)) {
        span s = answer_core(span_from(sentence, groups[0].s + groups[0].n));
        if (answer_has_number(s) || !answer_has_number(sentence))
            answer_add(a, "last_sentence", s);
    }
    if (pattern_find_last(&sign, sentence, groups))
        answer_add(a, "last_sentence", answer_core(span_from(sentence, groups[0].s + groups[0].n)));
}

/* Adds what follows the verb of a sentence that the next one calls the answer: "which gives -3, 1
 * and 5, and this is our answer". */
static void add_asserted(found_answer *a, span sentence) {
    static pattern verb = {
        .regex = "(?i)\\b(?:is|are|equals?|becomes?|gives?|giving|yields?|yielding|get|obtain|find|"
                 "have|(?:leads?|leading|comes?|amounts?) to|results? in|end up with|left with|"
                 "arrive at)\\b"
                 "(?: us)?:?[\\s*_]++"};
    span groups[PATTERN_GROUPS];
    if (pattern_find_last(&verb, sentence, groups))
        answer_add(a, "last_sentence", answer_core(span_from(sentence, groups[0].s + groups[0].n)));
}

/* Adds the list of formulas at the end of "The solution is $x=2$, $y=-1$." or "The roots are $1$
 * and $2$." */
static void add_named_values(found_answer *a, span sentence) {
    static pattern list = {
        .regex = "(?i)(?<!for )(?<!if )(?<!when )(?<!since )(?<!with )"
                 "(\\$\\s*[a-z](?:_\\w)?\\s*=[^$=]+\\$"
                 "(?:\\s*(?:,|;|and|, and)\\s*\\$\\s*[a-z](?:_\\w)?\\s*=[^$=]+\\$)+)[\\s.!*]*$"};
    span groups[PATTERN_GROUPS];
    static pattern sum = {
        .regex =
            "(?i)\\$[^$]*\\$,? (?:and|so|thus|hence)(?: so| thus| hence)? (\\$\\s*[a-z]\\s*\\+\\s*"
            "[a-z][a-z +]*=[^$]*\\$)[\\s.!*]*$"}; /* "and $m+n=29$" */
    if (pattern_find(&sum, sentence, 0, groups)) {
        answer_add(a, "last_sentence", groups[1]);
        return;
    }
    static pattern values = {
        .regex =
            "(?i)(?:^|:\\s+|\\b(?:are|is|at|have|get|obtain|find|gives?|so|thus|hence|therefore|"
            "for|yields?|when|"
            "namely)[,:]?\\s+)(\\$[^$]+\\$(?:\\s*(?:,|;|and|or|, and|, or)\\s*\\$[^$]+\\$)+)"
            "[\\s.!*]*$"};
    if (pattern_find(&list, sentence, 0, groups) || pattern_find(&values, sentence, 0, groups))
        answer_add(a, "last_sentence", groups[1]);
}

/* Adds the point in "The center is $(5,-2)$ and its radius is $3$." */
static void add_point(found_answer *a, span sentence) {
    static pattern point = {.regex =
                                "(?i)\\bis (?:at )?\\$(\\([^$()]+,[^$()]+\\))\\$,? and (?:its|the) "
                                "[a-z]+ is \\$[^$(,]*\\$[.!]?$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&point, sentence, 0, groups))
        answer_add(a, "point", groups[1]);
}

/* Adds a line that is only the answer: "(1+√5)/2", "#### 9√23/23". */
static void add_line(found_answer *a, span sentence) {
    static pattern prose = {
        .regex =
            "(?i)(?<![\\\\A-Za-z])(?!arc|sqrt|sin|cos|tan|log|inf|and\\b|pi\\b|mod\\b|floor|choose|"
            "ceil)"
            "(?:[a-z]{3,}|(?:it|is|so|we|(?<![0-9] )to|of|by|if|no|as|at)\\b)"};
    static pattern marks = {.regex = "^(?:[-\u2022]\\s++)++"};
    span groups[PATTERN_GROUPS];
    bool marked = pattern_find(&marks, sentence, 0, groups);
    span s = answer_core(marked ? span_from(sentence, sentence.s + groups[0].n) : sentence);
    if (s.n <= kShortLine && !pattern_find(&prose, s, 0, NULL))
        answer_add(a, "last_line", s);
}

/* Adds the last word of the sentence if it has a digit and follows a word: "So 7/3." */
static void add_last_word(found_answer *a, span sentence) {
    static pattern last = {.regex =
                               "(?i)(?<![A-Za-z])(?!and\\b|or\\b|than\\b|minus\\b|plus\\b|times\\b)"
                               "[a-z]{2,}[:,]?\\s++[*_]*+([^\\s$*_]*\\d[^\\s$*_]*)[\\s*_.!]*+$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&last, span_tail(sentence, kShortLine), 0, groups) &&
        !answer_is_limited((span){sentence.s, (size_t)(groups[1].s - sentence.s)}))
        answer_add(a, "last_word", answer_core(groups[1]));
}

/* Adds the word at the end of a sentence: "It's Tuesday." A number may come before it in another
 * clause if the word has a capital letter. */
static void add_end_word(found_answer *a, span sentence) {
    static pattern word = {
        .regex =
            "(?i)(?:^|\\b(?:it(?:'|\u2019)s|is|are|faces|facing|heading|pointing|named|"
            "called|"
            "got|get|giv(?:es?|ing)|us|with|be|(?<!no )answer|on|"
            "report|therefore|so|hence|thus|of|obtain)[,:]?\\s+|that is, )(?:an? |the )?[*_]*+"
            "(?!done|finished|verified|correct|right|confirmed|thanks|valid|works)([a-z]{3,})[*_.!"
            "]*+$"};
    static pattern clause = {.regex = "[:;,]\\s|\\b(?=(?:facing|heading|pointing) )"};
    static pattern sign = {.regex = "[0-9$\\\\]|\xC2[\xBC-\xBE]|\xE2\x85[\x90-\x9E]"};
    span groups[PATTERN_GROUPS], last = sentence;
    bool formal = pattern_find(&sign, sentence, 0, NULL);
    if (pattern_find_last(&clause, sentence, groups))
        last = span_from(sentence, groups[0].s + groups[0].n);
    if (pattern_find(&sign, last, 0, NULL) || answer_has_number(last) ||
        !pattern_find(&word, last, 0, groups))
        return;
    static pattern course = {.regex = "^(?:facing|heading|pointing) "};
    if (!formal || (groups[1].s[0] >= 'A' && groups[1].s[0] <= 'Z') ||
        pattern_find(&course, last, 0, NULL))
        answer_add(a, "last_word", groups[1]);
}

/* Adds the last word of a sentence, and the formula in plain text at its end: "It's 2 and 1." */
static void add_suffix(found_answer *a, span sentence) {
    static pattern formula = {.regex = "\\$|\\\\[)\\]]"};
    static pattern debt = {.regex = "(?:^|[=\\s])((?:-|\u2212)\\\\?\\$[0-9][0-9.,]*)$"};
    span groups[PATTERN_GROUPS];
    sentence = answer_bare(sentence);
    add_end_word(a, sentence);
    if (pattern_find(&debt, sentence, 0, groups))
        answer_add(a, "last_sentence", groups[1]);
    if (pattern_find_last(&formula, sentence, groups))
        sentence = span_from(sentence, groups[0].s + groups[0].n);
    if (memchr(sentence.s, '\\', sentence.n))
        return;
    span s = answer_plain_suffix(sentence);
    static pattern word = {.regex =
                               "^(?:over|and|or|plus|minus|times|degrees)$"}; /* "2 left over" */
    bool formal = s.n && (integer_has_digit(s) || (s.n > 2 && !pattern_find(&word, s, 0, NULL)));
    static pattern joint = {
        .regex = "(?:\\b(?:to|choose|base|mod|January|February|March|April|May|June|July|August|"
                 "September|October|November|December)|[0-9] and a)\\s+$"};
    span before = {sentence.s, (size_t)(s.s - sentence.s)};
    static pattern reduces = {.regex =
                                  "(?i)(?:come|amount|reduce|simplif|equal|evaluat|add|sum|lead|"
                                  "converge|tend|go|boil|work|turn)[a-z]* (?:\\w+ )?to\\s+$"};
    if (pattern_find(&joint, before, 0, NULL) && !pattern_find(&reduces, before, 0, NULL))
        return;
    if (formal && !answer_is_limited(before))
        answer_add(a, "last_sentence", answer_bare(s));
}

void answer_add_number(found_answer *a, span text, const extraction *number) {
    static pattern scale = {.regex = "(?i)^ (?:thousand|million|billion|trillion)\\b"};
    static pattern unit = {
        .regex =
            "(?i)^ (?:(?:square|cubic) )?(?:(?:kilo|centi|milli)?(?:met(?:er|re)|gram|lit(?:er|re)"
            ")|mile|inch|inche|yard|hour|minute|second|day|week|month|year|pound|ounce|cent|"
            "dollar|degree|radian)s?(?: per (?:second|minute|hour|day|week|month|year))?\\b"};
    span groups[PATTERN_GROUPS];
    static pattern percent = {.regex = "^\\s?\\\\?%"};
    span rest = span_from(text, number->answer.s + number->answer.n);
    if (pattern_find(&percent, rest, 0, groups) || pattern_find(&unit, rest, 0, groups))
        answer_add(a, number->rule, (span){number->answer.s, number->answer.n + groups[0].n});
    bool scaled = pattern_find(&scale, rest, 0, groups);
    answer_add(a, number->rule, (span){number->answer.s, number->answer.n + scaled * groups[0].n});
}

#define COMPOUND_UNIT                                                                              \
    "(?:hours?|hrs?|h|minutes?|mins?|seconds?|secs?|s|days?|weeks?|months?|years?|dollars?|"       \
    "cents?|feet|foot|ft|inch(?:es)?|in|yards?|pounds?|lbs?|ounces?|oz|kilograms?|kg|grams?|g|"    \
    "kilomet(?:er|re)s?|km|met(?:er|re)s?|m|centimet(?:er|re)s?|cm)"

/* Adds a quantity in two units: "So she needs 1 hour 15 minutes in all." */
static void add_compound(found_answer *a, span text, span sentence) {
    static pattern compound = {.regex =
                                   "(?<![0-9.,/])[0-9]+ " COMPOUND_UNIT
                                   "(?:,? and |, | )[0-9]+(?:\\.[0-9]+)? " COMPOUND_UNIT
                                   "(?:(?:,? and |, | )[0-9]+ " COMPOUND_UNIT ")?(?![A-Za-z])"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find_last(&compound, sentence, groups))
        return;
    extraction x = {"last_sentence", groups[0]};
    span before = {sentence.s, (size_t)(x.answer.s - sentence.s)};
    if (ends_text(text, &x) && !is_denied(span_from(sentence, x.answer.s + x.answer.n)) &&
        !answer_is_limited(before))
        answer_add(a, x.rule, x.answer);
}

/* Adds the fraction or mixed number before the noun of "So it travels 137 1/2 miles per day." */
static void add_counted(found_answer *a, span text, span sentence) {
    static pattern counted = {.regex =
                                  "(?i)(?<=[a-z] |[a-z]: )(?<!or |and |by |of |to |from )"
                                  "((?:[0-9][0-9,]*+ )?[0-9]++/[0-9]++|[0-9,]*+(?:\xC2[\xBC-\xBE]))"
                                  "(?= [a-z]{2,}[^0-9$=<>*?]*$)"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&counted, sentence, 0, groups))
        return;
    extraction x = {"last_number", groups[1]};
    span after = span_from(sentence, x.answer.s + x.answer.n);
    if (ends_text(text, &x) && !is_denied(after) &&
        !answer_is_limited((span){sentence.s, (size_t)(x.answer.s - sentence.s)}))
        answer_add_number(a, text, &x);
}

/* True if a formula is only a variable or a tuple of variables: n, (a, b). */
static bool is_variable(span formula) {
    static pattern letter = {.regex = "^[a-zA-Z]$|^\\([a-z](?:, ?[a-z])+\\)$"};
    return pattern_find(&letter, answer_bare(formula), 0, NULL);
}

/* Finds the last number. False if it is part of an expression, denied or limited, or if the text
 * goes on after it. */
static bool find_last_number(span text, span sentence, extraction *number) {
    return extract_last_number(text, number) &&
           !is_in_expression(number->answer.s < sentence.s ? text : span_from(text, sentence.s),
                             number) &&
           ends_text(text, number) &&
           !answer_is_limited((span){text.s, (size_t)(number->answer.s - text.s)}) &&
           !is_denied(span_from(text, number->answer.s + number->answer.n));
}

/* Adds the last formula and the last number. If the sentence has no formula, adds its predicate
 * first. If neither the formula nor the number counts, adds the last word. The number comes first
 * if it follows the formula and either ends the text or is the only one of the two with a digit. */
static void add_last_values(found_answer *a, span text, span sentence) {
    extraction x = {0}, number;
    bool last = find_last_number(text, sentence, &number);
    if (!extract_formula(text, &x))
        x.answer = (span){0};
    bool earlier = x.answer.s < sentence.s && answer_has_number(sentence);
    bool formula = x.answer.n && ends_text(text, &x) && !earlier &&
                   !answer_is_limited((span){text.s, (size_t)(x.answer.s - text.s)});
    formula = formula && !(last && is_variable(x.answer)); /* "4 values of $n$ work" */
    bool later = last && x.answer.n && number.answer.s > x.answer.s + x.answer.n &&
                 (answer_is_end(text, &number) || !integer_has_digit(x.answer));
    last &= number.answer.s >= sentence.s;
    later &= last;
    bool here = x.answer.n && x.answer.s >= sentence.s;
    if (!here && !later)
        add_predicate(a, sentence);
    if (later)
        answer_add_number(a, text, &number);
    if (formula)
        answer_add(a, x.rule, answer_bare(x.answer));
    if (last && !later)
        answer_add_number(a, text, &number);
    if (!last && !formula)
        add_last_word(a, sentence);
}

/* Adds the value of a line with a label: "**Result:** -5". */
static void add_labelled(found_answer *a, span sentence) {
    static pattern label = {
        .regex =
            "(?i)^[\\s*_>#-]*+(?!(?:not|step|case|note|check|verification|hint|remark|confidence|"
            "example|claim|guess|proof|problem|question)\\b)[a-z][a-z' ]{1,40}[*_ ]*+(?::[*_]*+"
            "|=(?=\\s))\\s*+(\\S.*+)$"};
    static pattern bold = {.regex = "(?i)^(?:\\*\\*|__)(?:(?:the|my|final|our) )*(?:answer|result|"
                                    "solution)(?:\\*\\*|__) +(\\S.*+)$"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&bold, sentence, 0, groups) && !pattern_find(&label, sentence, 0, groups))
        return;
    static pattern prose = {.regex = "(?i)[a-z]{3,} [a-z]{2,} [a-z]{2,}|\\b(?:is|are)\\b"};
    static pattern variable = {.regex = "\\s([a-zA-Z])\\s*=\\s*$"};
    span before = {sentence.s, (size_t)(groups[1].s - sentence.s)}, name[PATTERN_GROUPS];
    if (pattern_find(&variable, before, 0, name)) /* "the line y = 2x" */
        groups[1] = span_from(sentence, name[1].s);
    span s = answer_core(groups[1]);
    if (s.n <= kShortLine && !pattern_find(&prose, s, 0, NULL))
        answer_add(a, "last_line", s);
}

/* Adds the "No" of "No, there is none.", "does not exist" and "no solution". True if the sentence
 * states that. */
static bool add_phrase(found_answer *a, span sentence) {
    static pattern phrase = {
        .regex = "(?i)\\b(does not exist|(?:is )?undefined|no (?:real )?solutions?)[.!*\\s]*$"};
    static pattern reply = {.regex = "(?i)^[*\\s]*(yes|no)\\b[*]*[,.]"};
    static pattern none = {
        .regex = "(?i)\\bthere (?:is|are) no (?:such |positive |real |natural |prime |"
                 "possible )*(?:solution|integer|number|value|pair|triple|root|prime|function)"
                 "s?\\b[^,;]*$"};
    static pattern absent = {
        .regex =
            "(?i)^(?:therefore,? |so,? |thus,? |hence,? )?no (?:such |positive |real |natural )*"
            "(?:solution|integer|number|value|pair|triple|root|function)s? exists?[.!*\\s]*$"};
    static pattern open = {.regex =
                               "(?i)\\b(?:if|when|unless|might|may|perhaps|whether|suppose)\\b"};
    static const char words[] = "no solution";
    span groups[PATTERN_GROUPS];
    if (integer_has_digit(sentence) || pattern_find(&open, sentence, 0, NULL))
        return false;
    if (pattern_find(&reply, sentence, 0, groups) || pattern_find(&phrase, sentence, 0, groups))
        answer_add(a, "last_sentence", groups[1]);
    else if (pattern_find(&none, sentence, 0, NULL) || pattern_find(&absent, sentence, 0, NULL))
        answer_add(a, "last_sentence", (span){words, sizeof words - 1});
    return a->count > 0;
}

/* True if a sentence only announces what comes next: "Let us check.", "The next step is to add
 * them." */
static bool is_announcement(span s) {
    static pattern start = {
        .regex = "(?i)^(?:let me|let us|let(?:'|\u2019)s|next\\b|now\\b|the next\\b)"};
    static pattern verb = {
        .regex =
            "(?i)\\b(?:is|are|equals?|gives?|get|have|obtain|find|yields?|becomes?|conclude)\\b|"
            "[=:]"};
    static pattern infinitive = {.regex = "(?i)^(?:the )?next \\w+ is to\\b"};
    return pattern_find(&infinitive, s, 0, NULL) ||
           (pattern_find(&start, s, 0, NULL) && !pattern_find(&verb, s, 0, NULL));
}

/* Removes the readings that the text denies, or states as another person's or another case's. */
static void drop_denied(found_answer *a, span text) {
    int kept = 0;
    span last = {0};
    bool asserted = true;
    for (int i = 0; i < a->count; i++) {
        span s = a->reading[i].answer;
        const char *rule = a->reading[i].rule;
        bool whole = strcmp(rule, "relation") == 0 ||
                     strcmp(rule, "result") == 0;   /* "at least 4" is no denial */
        bool counted = strcmp(rule, "amount") == 0; /* "15 guests did not come" */
        if (s.s != last.s || s.n != last.n) {
            answer_context context = answer_context_of(text, s);
            asserted = whole || context == ANSWER_ASSERTED || (counted && context == ANSWER_DENIED);
        }
        last = s;
        if (asserted)
            a->reading[kept++] = a->reading[i];
    }
    a->count = kept;
}

/* What is known about the text before its last sentence is read. */
typedef struct {
    bool asserted;  /* a sentence after it says that it is the answer */
    bool shortened; /* words at its end were removed */
} guess_state;

static void add_guesses(found_answer *a, span text, span sentence, guess_state state,
                        unsigned flags) {
    span clause = answer_main_clause(sentence);
    answer_add_aligned(a, text);
    if (sentence.s - text.s >= 5 && memcmp(sentence.s - 5, "#### ", 5) == 0)
        answer_add(a, "hashes", answer_core(sentence));
    if (!(flags & ANSWER_DIGITS))
        answer_add_reply(a, text);
    if (add_subject(a, sentence))
        return;
    answer_add_result(a, text, sentence);
    answer_add_amount(a, text, sentence, state.shortened);
    answer_add_phrases(a, sentence, !(flags & ANSWER_DIGITS));
    if (!(flags & ANSWER_DIGITS))
        answer_add_lines(a, text);
    if (!(flags & ANSWER_DIGITS))
        answer_add_marked_list(a, text, sentence);
    add_named_values(a, sentence);
    add_point(a, sentence);
    add_compound(a, text, sentence);
    answer_add_marked(a, text, sentence);
    answer_add_marked_clause(a, sentence);
    answer_add_name(a, sentence);
    add_line(a, clause);
    add_labelled(a, sentence);
    if (state.asserted)
        add_asserted(a, sentence);
    answer_add_spelled(a, clause);
    if (!(flags & ANSWER_DIGITS))
        answer_add_class(a, clause);
    add_suffix(a, clause);
    add_counted(a, text, clause);
    add_last_values(a, text, clause);
    static pattern verb = {.regex = "(?i)\\b(?:divides|fails|does|cannot|exceeds)\\b"};
    if (!a->count && !(flags & ANSWER_DIGITS) && sentence.n <= kShortLine / 2 &&
        !pattern_find(&verb, sentence, 0, NULL))
        answer_add(a, "last_line", answer_core(sentence)); /* "an ellipse" */
}

/* True if the text ends within a formula that is not closed, as "= \sqrt{36 + 81", or with an
 * operator, as "10 +". The response was cut off. A dollar sign opens a formula only if a macro of
 * LaTeX follows it, because it may also be the sign of an amount. */
static bool is_cut_off(span text) {
    static pattern open = {
        .regex =
            "(?s)(?<!\\\\)\\\\[(\\[](?:(?!\\\\[)\\]]).)*$|"
            "\\\\begin\\{((?:align|equation|gather|cases|aligned)\\*?)\\}(?:(?!\\\\end\\{).)*$"};
    static pattern dollar = {
        .regex = "(?:^|\\n)(?:[^$\\n]*\\$[^$\\n]*\\$)*+[^$\\n]*\\$(?=[^$\\n]*\\\\[a-z]{3})"
                 "(?![^$\\n]*(?<![\\\\a-z])[a-z]{3,} [a-z]{2,})[^$\\n]*$"};
    span rest = span_tail(text, kTail);
    static pattern operation = {.regex = "(?:[+=/^({\\[<&]|\u00d7|\u00f7|\u2264|\u2265|\u2248|\\s-|"
                                         "\\\\(?:times|cdot|div|left|le|ge|approx))\\s*$"};
    return pattern_find(&open, rest, 0, NULL) || pattern_find(&dollar, rest, 0, NULL) ||
           pattern_find(&operation, rest, 0, NULL);
}

void answer_guess(found_answer *a, span text, unsigned flags) {
    guess_state state = {0};
    if (is_cut_off(text))
        return;
    span whole = span_trim(text);
    text = answer_without_closing(text, &state.asserted);
    state.shortened = text.n < whole.n;
    span sentence = answer_last_sentence(text);
    if (sentence.n && !(flags & ANSWER_DIGITS) && add_phrase(a, sentence))
        return;
    bool open = (!state.asserted && (is_undecided(sentence) || is_announcement(sentence))) ||
                answer_is_doubt(sentence);
    /* a full stop after the removed words shows that the sentence is complete */
    bool complete =
        state.shortened && strchr(".!", whole.s[whole.n - 1]) && integer_has_digit(sentence);
    if (!sentence.n || open || (!complete && is_open_word(sentence) && !ends_in_now(sentence)))
        return;
    add_guesses(a, text, sentence, state, flags);
    answer_mark_odds(a, sentence);
    drop_denied(a, text);
}
