/* Finds the last sentence of a response. Sentences and words that only end the response are left
 * out. */
#include <string.h>

#include "evals/answer_parts.h"

enum { kSentence = 400 }; /* bytes of the last sentence that are searched */

/* The text without a value that is denied at its end, as the ", not 13" of "it is 11, not 13." */
static span without_last_denial(span text) {
    enum { kMost = 80 };
    static pattern denial = {
        .regex =
            "(?i)[,;(]\\s*+(?:(?:and |but )?not|rather than|instead of)\\s[^.,;]*+[.)]*+\\s*+$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&denial, span_tail(text, kMost), 0, groups))
        text.n = (size_t)(groups[0].s - text.s);
    return text;
}

/* The text without a clause at its end that denies another value: "$n = 279$, because $278$ fails",
 * "the least one is 279; 278 does not work", "3 and 7 ($9$ is composite)". */
static span without_denied_value(span text) {
    enum { kMost = 120 };
    static pattern denial = {
        .regex = "(?i)(?<=[0-9a-z$)])(?:[,;]? (?:whereas|while|but|because|since|as|and)|;| \\() "
                 "?\\$?(?:[a-z] ?= ?)?-?[0-9][0-9.,]*+\\$? (?:fails|does(?:n't| not)|is "
                 "(?:composite|excluded|rejected|extraneous|not prime))\\b[^.,;$0-9]*[.)]*$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&denial, span_tail(text, kMost), 0, groups))
        text.n = (size_t)(groups[0].s - text.s);
    return text;
}

#define OUR_ANSWER                                                                                 \
    "(?:what (?:i|we)\\b|(?:the|our|my)\\s++(?:(?:final|required|desired|complete|correct) )*"     \
    "(?:answer|result|solution|value|proof)\\b)"

/* The text without sentences that only end it: "That is the final answer.", "I hope this helps!",
 * "The bold one is my answer." *asserted: one of them says that the answer is before it. */
static span without_closing(span text, bool *asserted) {
    enum { kMost = 200, kSentences = 4 };
    static pattern closing = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)(?<=[\\s.!?])[\\s>*_(-]*+(?:i\\s++hope\\b|(?:i\\s++)?hope\\s++"
            "(?:this|that|it)\\b|let me know\\b|feel free\\b|"
            "either (?:form|way|answer)\\b|these are (?:all|the only)\\b|would you like\\b|"
            "do you (?:want|need)\\b|(?:both|all (?:of them|three|four|two)|each of them|they)"
            "(?![^.!?\\n]*(?:\\b(?:not|only|neither|cannot)\\b|n't))[^.!?\\n$0-9]{0,40}\\b(?:satisf"
            "(?:y|ies)|checks? out|works?|are valid|hold)\\b|"
            "shall i\\b|is there anything\\b|(?<=[.!?] )done\\b|(?:and )?we(?: are|'re) done\\b|"
            "if you "
            "(?:have|need|want|would|'d)\\b|((?:(?:and|so|hence|thus|therefore)\\s++)?(?:this|that"
            "|which)\\s++(?:is|was|"
            "will be|completes)\\s++(?:therefore |thus |then |indeed )?" OUR_ANSWER
            "|(?<=\\n|> )(?:is|are)\\s++(?:therefore |thus |indeed )?" OUR_ANSWER
            "|(?:(?:so|and|hence|thus)\\s++)?(?:these|they|those) are\\s++(?:therefore |indeed "
            ")?(?:the|our)\\s++(?:(?:two|three|four|only|all|desired|required|complete|real) )"
            "*(?:solutions|"
            "roots|answers|values)\\b"
            "|the (?:bold|crossed|struck|last|latter|above|second|underlined|highlighted|framed)"
            "[^.!?\\n$0-9]*\\b(?:is|was)\\s[^.!?\\n$0-9]*" OUR_ANSWER ")|q\\.?e\\.?"
            "d\\b|as (?:desired|required|claimed|needed|expected)\\b|this completes\\b)"
            "[^.!?\\n]*+[\\s.!?*_)\\x80-\\xFF]*+$"};
    span groups[PATTERN_GROUPS];
    for (int i = 0; i < kSentences && pattern_find(&closing, span_tail(text, kMost), 0, groups);
         i++) {
        *asserted |= groups[1].s != NULL;
        text.n = (size_t)(groups[0].s - text.s);
        while (text.n && strchr(" ,", text.s[text.n - 1]))
            text.n--;
    }
    return span_trim(text);
}

/* The text without the ``` that ends a block of code. */
static span without_fence(span text) {
    text = span_trim(text);
    while (text.n && text.s[text.n - 1] == '`' && text.n > 3 && text.s[text.n - 2] == '`')
        text.n--;
    return text.n && text.s[text.n - 1] == '`' && text.n > 1 && text.s[text.n - 2] == '\n'
               ? span_trim((span){text.s, text.n - 1})
               : text;
}

/* The clause after "but" of "One might think 5, but the value is 6." */
static span without_concession(span sentence) {
    static pattern but = {
        .regex = "(?i)[,;]\\s++(?:but|however,?|yet)\\s++(?=[^,;]*\\b(?:is|are|equals?|gives?|get|"
                 "should be|turns out)\\b)(?!.*\\b(?:not|wrong|unknown|unclear|cannot)\\b|.*n't)"};
    span groups[PATTERN_GROUPS];
    return pattern_find_last(&but, sentence, groups)
               ? span_from(sentence, groups[0].s + groups[0].n)
               : sentence;
}

/* The text after a correction: the 8 of "7 solutions, no, 8". */
static span without_slip(span sentence) {
    static pattern slip = {
        .regex = "(?i)(?:^|[,;?]|\u2026|\\.\\.\\.|\u2014)\\s*(?:no|wait|oops|actually|"
                 "correction)[,:]\\s+"
                 "(?:no[,:]\\s+)?(?=[^,;]*[0-9$])(?!.*(?:\\b(?:not|wrong|too)\\b|n't|\\?))"};
    span groups[PATTERN_GROUPS];
    return pattern_find_last(&slip, sentence, groups)
               ? span_from(sentence, groups[0].s + groups[0].n)
               : sentence;
}

/* The last sentence of the last line, at most kSentence bytes of it, without signs before it. If it
 * is a concession, only its last clause; if it has a correction, only the text after that. */
span answer_last_sentence(span text) {
    static pattern start = {
        .regex = "(?:\\n|(?<![ap]\\.m|[^A-Za-z][A-Za-z]|\\bM[rs]|\\bMrs|\\bDr)"
                 "[.!?]\\**\\s++(?!\\\\(?:cdot|times)\\b)(?=[A-Z$*(\\\\\x80-\xFF]|[a-z] ?[-+*/=<>] "
                 "?[0-9a-z(])|"
                 "(?<=[a-z]{3}|[$)])(?<!approx|[^a-z]eqn|[^a-z]fig|[^a-z]thm)[.!?]\\s++"
                 "(?=[-0-9]))"};
    span s = span_tail(text, kSentence), groups[PATTERN_GROUPS];
    if (pattern_find_last(&start, s, groups))
        s = span_from(s, groups[0].s + groups[0].n);
    static pattern marks = {
        .regex = "^(?:[#>]++\\s*+|~~[^~\\n]++~~[\\s.]*+|(?:\u2234|\u27f9|\u21d2|\u2192|"
                 "\u27a1|\ufe0f|=>|->|\U0001f449|\U0001f3af|\u2705)\\s*+)++"};
    /* the signs include crossed-out drafts */
    s = span_trim(s);
    static pattern exclamation = {.regex = "[a-z] (?:2[1-9]|[3-9][0-9]|[0-9]{3,})!$"};
    s.n -= pattern_find(&exclamation, s, 0, NULL); /* "That makes 105!" is no factorial */
    if (pattern_find(&marks, s, 0, groups))
        s = span_from(s, s.s + groups[0].n);
    return without_slip(without_concession(s));
}

/* The text without a rounded value that follows an exact one: ", or about 0.38". */
static span without_approximation(span text) {
    enum { kMost = 80 };
    static pattern rounded = {
        .regex =
            "(?i)(?:,\\s*+(?:or |which is |i\\.e\\.,? |that is,? )?|\\s(?:or )|\\s\\(|\\sor, )"
            "(?:about|roughly|approximately|approx\\.?|nearly|\\\\approx|\u2248)\\s*+[$\\\\(]*+"
            "-?[0-9][0-9.,]*+[^0-9]{0,12}$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&rounded, span_tail(text, kMost), 0, groups))
        text.n = (size_t)(groups[0].s - text.s);
    return text;
}

/* The text without the reason at its end: ", since it is half of 72". */
static span without_reason(span text) {
    enum { kMost = 160 };
    static pattern reason = {
        .regex = "(?i)(?:(?<=[0-9$)}\\x80-\\xFF]),?|(?<=[a-z]{3})(?:,(?= since)|,?(?= because))) "
                 "(?:since|because|the [a-z]+ being)\\s"
                 "(?![^\\n]*[,;] (?:leaving|so|thus|"
                 "hence|"
                 "therefore|giving|we|the|it|but)\\b)[^.!?\\n]*[.!]?$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&reason, span_tail(text, kMost), 0, groups))
        text.n = (size_t)(groups[0].s - text.s);
    return text;
}

/* The text without a bracket that repeats an amount: "$1,450,000 ($1.45 million)". */
static span without_repetition(span text) {
    enum { kMost = 120 };
    static pattern repeated = {
        .regex = "(?i)(?<=[0-9]|[0-9]\\*\\*|[0-9] [a-z]{3}|[a-z]{5})\\s\\("
                 "(?:or |i\\.e\\.,? |that is,? )?"
                 "\\\\?\\$?[0-9][0-9.,]*+ (?:thousand|million|billion)(?: [a-z]+)?\\)[.!*\\s]*$"};
    static pattern amount = {.regex = "[0-9],[0-9]{3}(?![0-9])[^.!?\\n]*$"};
    span groups[PATTERN_GROUPS], tail = span_tail(text, kMost);
    if (!pattern_find(&repeated, tail, 0, groups))
        return text;
    span before = {tail.s, (size_t)(groups[0].s - tail.s)};
    if (pattern_find(&amount, before, 0, NULL))
        text.n = (size_t)(groups[0].s - text.s);
    return text;
}

/* The text without a sign that ends a proof. */
static span without_proof_mark(span text) {
    static pattern mark = {
        .regex = "(?<=[\\s.$!])[$\\s]*(?:\\\\(?:blacksquare|square|Box|qed|qedsymbol|QED)|"
                 "\u25a0|\u220e|\u25a1|\u2b1b|\u25fc\ufe0f?)[$\\s.]*$"};
    span groups[PATTERN_GROUPS];
    text = span_trim(text);
    if (pattern_find(&mark, span_tail(text, kSentence), 0, groups))
        text.n = (size_t)(groups[0].s - text.s);
    return span_trim(text);
}

/* The text without the condition after an equation: "$a_n = 2n$ for all $n \geq 0$". */
static span without_condition(span text) {
    enum { kMost = 120 };
    static pattern condition = {
        .regex =
            "(?i),?\\s+(?:for|where|with|whenever)\\s+(?:(?:all|every|any|each|positive|non-?"
            "negative|natural|real|integers?|numbers?)\\s+)*\\$?\\|?[a-z]\\|"
            "?\\s*(?:\\\\[gl]eq?(?![a-z])|[<\u2264]|"
            "(?:\\\\in(?![a-z])|\u2208)(?=\\s*(?:\\\\mathbb|\\\\N|\\{|N|\u2115)[\\s{]*N?)(?!.*Z)|"
            "\u2265|>=?|=)\\s*[^$=]{1,40}\\$?[\\s.!*]*$"};
    static pattern family = {
        .regex =
            "(?i)(?<!positive )(?<!nonnegative )(?<!negative )(?<!natural )integers?\\s+\\$?[a-z]"
            "\\$?[\\s.!*]*$"};
    static pattern quantifier = {
        .regex = "(?i),?\\s+for\\s+(?:all|every|any|each)\\s+(?:(?:positive|non-?negative|natural|"
                 "real|integers?|"
                 "numbers?|values of)\\s+)*\\$?[a-z](?:, ?[a-z])*\\$?[\\s.!*]*$"};
    static pattern equation = {
        .regex =
            "\\$[^$]*[^$<>!=]=[^$]*\\$$|(?:^|\\s)[A-Za-z][^\\s=]{0,8} = [^$,;.=]*[^\\s$,;.=]$"};
    span groups[PATTERN_GROUPS], tail = span_tail(text, kMost);
    if (!pattern_find(&condition, tail, 0, groups) &&
        (pattern_find(&family, tail, 0, NULL) || !pattern_find(&quantifier, tail, 0, groups)))
        return text;
    span before = {tail.s, (size_t)(groups[0].s - tail.s)};
    if (pattern_find(&equation, before, 0, NULL))
        text.n = (size_t)(groups[0].s - text.s);
    return text;
}

/* The text without the words at its end that only locate or explain the value: ", attained at a =
 * b", " at $x = 2$", "; the other root is extraneous", and without the unit cm$^2$. */
static span without_place(span text) {
    enum { kMost = 160 };
    static pattern places[] = {
        {.regex = "(?i)(?<=[0-9$)}*\\]]),?\\s+(?:(?:which|and|it|this)\\s+(?:is\\s+)?)?(?:attained|"
                  "achieved|"
                  "reached|realized|occurs|occurring|with equality)\\s[^.!?\\n]*[.!]?$"},
        {.regex = "(?i)(?<=[0-9$)}*\\]]),?\\s+(?:when|at|where|for)\\s+\\$?(?:[a-z] ?= "
                  "?)+[^=.,;!?\\n]{1,2"
                  "4}[.!]?$"},
        {.regex = "(?i)(?<=[0-9$)}*\\]])[;,]\\s+(?:and |while |whereas |but )?the (?:other|second|"
                  "first|negative|"
                  "remaining)\\s[^;.!?\\n]*\\b(?:extraneous|rejected|invalid|impossible|discarded|"
                  "excluded|"
                  "not|doesn't|too)\\b[^;.!?\\n]*[.!]?$"},
        {.regex =
             "(?i)(?<=[0-9$)]),? (?:with|and) (?:a )?remainder (?:of )?\\$?-?[0-9]+\\$?[.!]?$"},
        {.regex =
             "(?i)(?<=[a-z0-9$)}*])[;,]\\s+(?:and |while |whereas |but )?(?:\\$[^$]*\\$|[a-z] ?= "
             "?[^\\s,;]+) (?:is|was|must be|has to be) (?:an? )?(?:extraneous|rejected|"
             "invalid|discarded|excluded|inadmissible)[^;.!?\\n]*[.!]?$"},
        {.regex = "(?i)(?<=\\$), the (?:reciprocal|inverse|conjugate|negative|square|complement|"
                  "mean|average|sum|product|opposite) of [^.]*[.]?$"},
        {.regex =
             "(?i)(?<=\\$), (?:which (?:does not|doesn't|is independent|is constant)|an? [a-z]+ "
             "(?:with|"
             "without|that|whose) )[^.]*[.]?$"},
        {.regex = "(?<=\\$), independent of \\$[^$]*\\$[.]?$"},
        {.regex = "(?i)(?<=\\$),? (?:whereas|while) [^$]*\\$[^$]*\\$[.]?$"},
        {.regex = "(?i)(?<=[a-z$]), (?:as )?(?:against|versus) \\$[^$]*\\$[^.]*[.]?$"},
        {.regex =
             "(?i)(?<=\\$)(?:, (?:half|twice|double|(?:(?:a little|slightly|just|a bit) )?(?:more|"
             "less|larger|smaller|over|under) )| (?:and|but) not (?=\\$)| with radius \\$|,? "
             "(?:and|"
             "but) (?:we )?(?:reject|discard|exclude|rule out)\\b)[^.]*[.]?$"},
        {.regex = "(?<=[0-9$)}])\\s*(?:[cmk]?m|in|ft|yd|units?)\\s*\\$\\^\\{?[23]\\}?\\$[.!]?$"},
    };
    span groups[PATTERN_GROUPS];
    text = span_trim(text);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (pattern_find(&places[i], span_tail(text, kMost), 0, groups))
            text.n = (size_t)(groups[0].s - text.s);
    return text;
}

span answer_without_closing(span text, bool *asserted) {
    static pattern aside = {
        .regex = "(?<=[.!?])\\s+(?:\\([A-Z][^()\\n]*\\)[.]?|[\\x80-\\xFF\\s]+)\\s*$"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&aside, span_tail(text, kSentence), 0, groups))
        text.n = (size_t)(groups[0].s - text.s); /* "(As a check, 2 + 3 = 5.)", a closing mark */
    text = without_closing(without_proof_mark(without_fence(text)), asserted);
    text = without_place(without_condition(answer_without_bracket(without_last_denial(text))));
    text = without_denied_value(text);
    text = answer_without_second_amount(text);
    return without_reason(without_repetition(without_approximation(text)));
}

/* The text after the last arrow of "20 + 60 = 80 legs => 40 pairs of legs". An arrow counts only
 * between a relation and a number. A simple arrow must follow a digit, a percent sign or three
 * letters, so that the limit "x → 0" is left whole. */
static span after_arrow(span sentence) {
    static pattern arrow = {.regex = "(?:\u27f9|\u21d2|=>|(?<=[0-9%]|[a-z]{3})\\s?\u2192)\\s*+"};
    static pattern relation = {.regex = "=|[<>]|\u2264|\u2265|\u2208"};
    span groups[PATTERN_GROUPS];
    if (memchr(sentence.s, '$', sentence.n) || !pattern_find_last(&arrow, sentence, groups))
        return sentence;
    span before = {sentence.s, (size_t)(groups[0].s - sentence.s)};
    span rest = span_from(sentence, groups[0].s + groups[0].n);
    return answer_has_number(rest) && pattern_find(&relation, before, 0, NULL) ? rest : sentence;
}

/* The clause of the sentence that gives the result: what follows a reason ("Since ..., "), ", so"
 * or an arrow, without ", which ..." and without a last bracket in words. */
span answer_main_clause(span sentence) {
    static pattern result = {
        .regex = "(?i),\\s++(?:and\\s++)?(?:so|thus|hence|therefore)\\s++(?:that\\s++)?|"
                 "[,;]\\s++(?:but (?:rather )?)?(?:it is|it(?:'|\u2019)s|it should be)\\s++|"
                 ",\\s++which\\s+(?:gives?|yields?|makes?|results in|leads to)\\s++(?=[^,]*[0-9])"};
    static pattern aside = {.regex = "(?i),\\s++which\\s[^$]*$|(?<=[^\\s(])\\s++\\([^()$]*"
                                     "(?<![A-Za-z])(?!inf|mod)[a-z]{3}[^()$]*\\)[\\s.!]*$"};
    static pattern reason = {
        .regex =
            "(?i)(?:^|;)\\s*(?:since|because|as|given that|rejecting|discarding)\\s[^,;]*,\\s+"};
    span groups[PATTERN_GROUPS];
    if (pattern_find_last(&reason, sentence, groups))
        sentence = span_from(sentence, groups[0].s + groups[0].n);
    if (pattern_find_last(&result, sentence, groups))
        sentence = span_from(sentence, groups[0].s + groups[0].n);
    if (pattern_find(&aside, sentence, 0, groups) && groups[0].s > sentence.s)
        sentence.n = (size_t)(groups[0].s - sentence.s);
    return after_arrow(sentence);
}

/* True if a word without white space belongs to a formula in plain text: it has a digit or a sign,
 * is a single letter other than a and i, or is a word such as "and", and every run of three or more
 * letters in it names a function, a constant or an operation. */
static bool is_formal(span word) {
    static pattern prose = {
        .regex = "(?i)(?<![A-Za-z])(?!(?:arc|a)?(?:sin|cos|tan|cot|sec|csc)h?(?![a-z])|(?:log|ln|"
                 "lg|exp|sqrt|cbrt|pi|abs|mod|inf|infinity|floor|ceil|[a-z]{1,2})(?![a-z])|pi)"
                 "[a-z]{2,}|\xE3|\xE4|\xE5|\xE6|\xE7|\xE8|\xE9|\xEA|\xEB|\xEC|\xED|\xD0|\xD1"};
    static pattern sign = {
        .regex =
            "(?i)[0-9=+*/^<>|(\\[\\x80-\\xFF-]|^[b-hj-z][,;.!]*$|^(?:and|or|minus|negative|plus|ti"
            "mes|over|percent|degrees|"
            "pi|ln|log|sin|cos|tan|infinity)[,.!]*$"};
    static pattern joint = {.regex =
                                "(?i)^(?:and|or|minus|negative|plus|times|over|percent|degrees)$"};
    return pattern_find(&sign, word, 0, NULL) &&
           (!pattern_find(&prose, word, 0, NULL) || pattern_find(&joint, word, 0, NULL));
}

span answer_plain_suffix(span sentence) {
    size_t at, end;
    span s = sentence;
    while (s.n && strchr(" .*_`\t", s.s[s.n - 1]))
        s.n--;
    static pattern exclamation = {.regex = "[^0-9\\s][^\\s]*[0-9)]!$"}; /* "6/14!", but not "7!" */
    s.n -= s.n == sentence.n && pattern_find(&exclamation, s, 0, NULL);
    for (at = s.n; at > 0;) {
        for (end = at; end && s.s[end - 1] == ' ';)
            end--;
        size_t start = end;
        while (start && s.s[start - 1] != ' ' && s.s[start - 1] != '\n')
            start--;
        bool name = end - start == 1 && s.s[start] == 'a' && at < s.n &&
                    (strchr("<>=+-*/^", s.s[at]) || (unsigned char)s.s[at] >= 0x80);
        if (start == end || (!name && !is_formal((span){s.s + start, end - start})))
            break;
        at = start;
    }
    s = (span){s.s + at, s.n - at};
    for (span w = s; w.n; s = w) { /* without "and" or "or" before it */
        w = span_trim(w);
        size_t n = w.n > 4 && memcmp(w.s, "and ", 4) == 0  ? 4
                   : w.n > 3 && memcmp(w.s, "or ", 3) == 0 ? 3
                                                           : 0;
        if (!n)
            return w;
        w = (span){w.s + n, w.n - n};
    }
    return s;
}
