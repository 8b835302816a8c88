/* Finds out what the words of a sentence say about a value in it. The rules are those of a small
 * grammar: a value is denied by a negation or a verb of rejection directly before it, or by a
 * predicate directly after it. It belongs to others if its clause is about a wrong answer, other
 * people or given values, or depends on a condition that is not met. */
#include <string.h>

#include "evals/answer_parts.h"

enum { kScope = 200 }; /* bytes on each side of a value that are searched */

/* Length of a macro that opens a group at the end of @s, such as "\boxed{" and "\text{"; 0 if there
 * is none. */
static size_t opening_macro(span s) {
    static const char *const macros[] = {"\\boxed{", "\\fbox{", "\\text{", "\\textbf{",
                                         "\\mathrm{"};
    for (size_t i = 0; i < sizeof macros / sizeof *macros; i++) {
        size_t n = strlen(macros[i]);
        if (s.n >= n && memcmp(s.s + s.n - n, macros[i], n) == 0)
            return n;
    }
    return 0;
}

static bool is_break(span s, size_t i) {
    bool stop = strchr(".!?", s.s[i]) && s.s[i] && i + 1 < s.n && strchr(" \t\n", s.s[i + 1]);
    return stop || s.s[i] == '\n';
}

/* The text between the beginning of the value's sentence and the value, without signs and macros
 * directly before the value. */
static span words_before(span text, span value) {
    size_t n = (size_t)(value.s - text.s), macro;
    span s = n > kScope ? (span){value.s - kScope, kScope} : (span){text.s, n};
    while (s.n && ((macro = opening_macro(s)) > 0 ||
                   (s.s[s.n - 1] && strchr(" \t\r\n$*_\"'`({[~\\", s.s[s.n - 1]))))
        s.n -= macro ? macro : 1;
    if (s.n && s.s + s.n < value.s && is_break((span){s.s, s.n + 1}, s.n - 1))
        return (span){s.s + s.n, 0}; /* the value begins a sentence */
    for (size_t i = s.n; i > 0; i--)
        if (is_break(s, i - 1))
            return (span){s.s + i, s.n - i};
    return s;
}

/* The text after the value, without signs directly after it. */
static span words_after(span text, span value) {
    const char *end = value.s + value.n;
    span s = {end, (size_t)(text.s + text.n - end)};
    s.n = s.n < kScope ? s.n : kScope;
    while (s.n && *s.s && strchr(" \t\r\n$*_\"'`)}]\\", *s.s))
        s = (span){s.s + 1, s.n - 1};
    return s;
}

/* True if the value is crossed out: "~~5~~". */
static bool is_struck(span text, span value) {
    static const char mark[] = "~~";
    const char *end = value.s + value.n, *stop = text.s + text.n;
    while (end < stop && strchr("$)}. \\", *end))
        end++;
    bool after = stop - end >= 2 && memcmp(end, mark, 2) == 0;
    size_t n = (size_t)(value.s - text.s);
    span before = n > 16 ? (span){value.s - 16, 16} : (span){text.s, n};
    return (after && before.n && memmem(before.s, before.n, mark, 2)) ||
           (value.n > 4 && memcmp(value.s, mark, 2) == 0 &&
            memcmp(value.s + value.n - 2, mark, 2) == 0);
}

#define NEGATION                                                                                   \
    "(?:\\b(?:not|never|nor|neither|without|except(?: for)?|excluding|other than|(?:different|"    \
    "differs?|distinct|far) from|unlike|(?:anything|all) but|instead of|rather than|can ?not|"     \
    "impossible that)|n(?:'|\u2019)t)"
#define REJECTION                                                                                  \
    "(?:exclud|reject|discard|eliminat|dismiss|ignor|contradict|mention|avoid|omit|tr(?:y|ied|"    \
    "ies|ying)\\b|test(?:s|ed|ing)?\\b|consider|suppos|assum|rul(?:e|es|ed|ing) out)[a-z]*"
#define FILLER                                                                                     \
    "(?:\\s+(?:be|been|equal|equals|to|the|an?|it|that|is|was|are|simply|just|exactly|value|"      \
    "answers?|results?|solutions?|final|correct|right|roots?|candidates?|options?|cases?|of|"      \
    "possibility|have|give|gives|get|as|our|my|facing|heading|pointing|named|called|[a-z]\\s*=))*"

/* True if the value is the content of a box. */
static bool is_boxed(span text, span value) {
    static const char macro[] = "boxed{";
    size_t n = sizeof macro - 1;
    return (size_t)(value.s - text.s) > n && memcmp(value.s - n, macro, n) == 0;
}

static bool is_denied_before(span before, bool boxed) {
    static pattern rejected = {.flags = PATTERN_LONG, .regex = "(?i)\\b" REJECTION FILLER "\\s*$"};
    static pattern denied = {
        .flags = PATTERN_LONG,
        .regex = "(?i)(?:" NEGATION
                 "|\\b(?:do|does|did|will|would|should|must)(?:n(?:'|\u2019)t| not) [a-z]+"
                 "|\\bcompar[a-z]* (?:[a-z]+ )?(?:with|to)|\\bstop[a-z]* at)" FILLER "\\s*$"};
    static pattern related = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)\\b(?:(?:reciprocal|negati(?:ve|on)|inverse|opposite|square|cube|root|third|"
            "quarter|multiples?|divisors?|(?<!by a )factors?|powers?|complement|conjugate) "
            "of|(?:half|"
            "double|triple|twice|thrice)(?: of)?|(?:one|either|both|neither) of|(?:greater|"
            "less|larger|smaller|more|fewer) than|at most|at least|close to|between .{1,60} "
            "and|(?:not|never|no|undefined)\\b[^,;:]{0,40}\\b(?:at|with|for|when|by)(?: [a-z] ?=)?"
            "|(?<!should )(?<!must )(?<!needs to )(?<!need to )(?<!has to )(?<!have to )"
            "(?:add(?!s? up )|subtract|divid|multipl)[a-z]*(?: (?:\\S+ )?(?:by|to|from))?)"
            "(?: the(?: number)?)?\\s*$"};
    /* "The number that does not occur is": what follows is asserted */
    static pattern subject = {.regex = "(?i)^(?!.*\\bthat\\b).*\\b(?:is|are|was|were|equals)\\s*$"};
    span groups[PATTERN_GROUPS];
    bool found = pattern_find(&denied, before, 0, groups) &&
                 !(boxed && pattern_find(&subject, groups[0], 0, NULL));
    return found || (!boxed && (pattern_find(&rejected, before, 0, NULL) ||
                                pattern_find(&related, before, 0, NULL)));
}

static bool is_denied_after(span after) {
    static pattern denied = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)^(?:(?!because|since|as |and |but |so |that |it |this |which|where|if |for |we )"
            "[a-z]+\\**+ ){0,2}(?:"
            "(?:(?:is|was|are|were|must be|can be|could be|has been|should be|looks|seems)\\s+"
            "(?:therefore |thus |then |hence |also |clearly |obviously |simply )?"
            "(?:not\\b|wrong|incorrect|false\\b|too\\b|excluded|rejected|discarded|eliminated|"
            "ruled out|invalid|impossible|extraneous|inadmissible|mistaken|only an?\\b|just an?\\b|"
            "(?:an?|the|its) (?:upper|lower|wrong|incorrect|intermediate|common|divisor|factor|"
            "multiple|mistake)))|(?:is|are|was|were|does|do|did|can|could|would|has)"
            "(?:n't|n\u2019t| not|not)\\b|(?:fails?|divides|exceeds|violates|contradicts|cannot)\\b"
            "|times (?:the|as|that|its|an?)\\b|would (?:be|only|have)\\b|(?:leads to|gives) a "
            "contradiction)|^,? *(?:which|that|this) (?:is|was) (?:wrong|incorrect|false\\b|"
            "mistaken|a mistake|not (?:the|correct|right))|^,? *\\(?(?:wrong|incorrect|rejected|"
            "extraneous|invalid)\\b|^[^.!?\\n]{0,20}\\?(?:\\s*$|[\\s$*)]*\\n)"};
    return pattern_find(&denied, after, 0, NULL);
}

/* True if the words before a value say that it belongs to other people, to the question or to a
 * wrong attempt, or that it depends on a condition that is not met. */
static bool is_of_others(span before) {
    static pattern others = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)(?:\\b(?:wrong|incorrect|mistaken|erroneous|flawed|invalid|false|tempting)(?:ly)?"
            "\\s+(?:final\\s+)?(?:answer|result|value|solution|approach|method|reasoning|"
            "calculation|claim|choice|conclusion)s?\\b|\\b(?:many|some|most|other|several) "
            "(?:students|people|solvers|sources|books|models)\\b|\\b(?:one|you|someone|students?) "
            "(?:might|may|could|would)\\b|\\btempt(?:ed|ing)\\b|\\b(?:common|typical|popular|"
            "frequent) (?:\\w+ )?(?:mistake|error|answer|misconception|trap|pitfall)\\b|"
            "\\b(?:textbook|answer key|book|calculator|friend|source|manual)\\b.{0,20}\\b(?:says|"
            "claims|states)\\b|\\bmy (?:\\w+ )?(?:earlier|previous|initial|first|original) (?:\\w+ "
            ")?(?:answer|result|guess|attempt|value|calculation|estimate)\\b|\\bimpossible that\\b|"
            "\\b(?:(?:were|are|was) given|given:|\\b(?:i|we) started with|(?:problem|question) "
            "(?:says|states|"
            "mentions|gives))\\b|,? and the (?:next|second|other|previous) (?:one|value|"
            "case|candidate|"
            "smallest|largest)(?: [a-z]+)? (?:is|was)\\b)"
            "(?:(?!\\band (?:so |thus |hence |therefore )?(?:the|our) (?:final |correct |right )?"
            "answer (?:is|must be|equals)\\b)[^,;])*$|"
            "(?:^\\s*+|[,;(]\\s*+|\\bbut )(?:if|unless|suppose|assuming|had)\\b[^;]*"
            "\\b(?:would|were|had)\\b[^;]*$"};
    return pattern_find(&others, before, 0, NULL);
}

/* True if the words before a value say that it is the value of something computed from the answer:
 * "the remainder of the answer is 5". */
static bool is_derived(span before) {
    static pattern derived = {
        .regex =
            "(?i)\\b(?:twice|half|double|triple|thrice|(?:square|cube|sum|product|"
            "digits?|root|reciprocal|inverse|negative|remainder|multiple|logarithm)[^.,;:]{0,30}? "
            "of|"
            "(?:add|subtract|divid|multiply)[a-z]* (?:\\S+ (?:to|from|by)|the)) (?:the |our |my )?"
            "(?:final )?answer\\b[^,;]*$"};
    return pattern_find(&derived, before, 0, NULL);
}

/* True if the value depends on a condition that is not met: the 36 of "he would have 36 if he
 * bought two more". */
static bool is_unreal(span before, span after) {
    static pattern would = {.regex = "(?i)\\bwould\\b[^.;]*$"};
    static pattern condition = {
        .regex =
            "(?i)^[^.!?;\\n]{0,30}\\bif\\b[^.!?;\\n]*\\b(?:were|had|did|[a-z]{2,}ed|bought|got|"
            "gave|took|made|"
            "sold|found|won|ate|lost|spent|went|came)\\b"};
    return pattern_find(&would, before, 0, NULL) && pattern_find(&condition, after, 0, NULL);
}

/* The value without prose around it. */
static span formal_part(span value) {
    static pattern before = {
        .regex =
            "(?i)^(?:(?:(?!sin|cos|tan|log|exp|sqrt|arc|base)[a-z][a-z'.,;:]{2,}|to|of|is|by|it|no"
            "|not|so|"
            "we|at|in|an?|[0-9]+ [a-z]{3,}\\.)\\s+)++(?=\\S)"};
    static pattern after = {.regex =
                                "(?i)(?:(?<=\\S)\\s+(?!and\\b|or\\b|pi\\b)[a-z'-]{2,}[.,]?){1,8}$"};
    span groups[PATTERN_GROUPS];
    if (!memchr(value.s, ' ', value.n))
        return value;
    if (!pattern_find(&before, value, 0, groups))
        groups[0].n = 0;
    span s = {value.s + groups[0].n, value.n - groups[0].n};
    if (pattern_find(&after, s, 0, groups) && groups[0].s > s.s)
        s.n = (size_t)(groups[0].s - s.s);
    static pattern sign = {.regex = "[0-9$\\\\=\\x80-\\xFF]"};
    return pattern_find(&sign, s, 0, NULL) ? s : value;
}

answer_context answer_context_of(span text, span value) {
    value = formal_part(value);
    span before = words_before(text, value), after = words_after(text, value);
    bool boxed = is_boxed(text, value);
    if (before.n > 8 &&
        (is_of_others(before) || (!boxed && is_derived(before)) || is_unreal(before, after)))
        return ANSWER_OF_OTHERS;
    if (is_denied_before(before, boxed) || is_denied_after(after) || is_struck(text, value))
        return ANSWER_DENIED;
    return ANSWER_ASSERTED;
}
