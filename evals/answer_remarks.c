/* Words and signs around an answer that are no part of it. */
#include <string.h>

#include "evals/answer_parts.h"
#include "evals/grade_parts.h"
#include "evals/integer.h"

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Signs that models put at the end of an answer, such as a check mark. */
static const char *const end_marks[] = {"\u2705", "\u2713", "\u2714", "\u220e",    "\u25a0",
                                        "\u25a1", "\ufe0f", "\u3002", "\U0001f389"};

static size_t end_mark(span s) {
    for (size_t i = 0; i < sizeof end_marks / sizeof *end_marks; i++) {
        size_t n = strlen(end_marks[i]);
        if (s.n > n && memcmp(s.s + s.n - n, end_marks[i], n) == 0)
            return n;
    }
    return 0;
}

/* Length of a check mark at the start; 0 if there is none. */
static size_t start_mark(span s) {
    static const char *const marks[] = {"\u2705", "\u2713", "\u2714", "\ufe0f"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t n = strlen(marks[i]);
        if (s.n > n && memcmp(s.s, marks[i], n) == 0)
            return n;
    }
    return 0;
}

/* True if the text ends with "\right.", a bracket that is not printed. */
static bool ends_in_null_bracket(span s) {
    static const char macro[] = "\\right.";
    size_t n = sizeof macro - 1;
    return s.n >= n && memcmp(s.s + s.n - n, macro, n) == 0;
}

/* True if the mark at the end follows a formula or a marked text: "$5$!", "**5**!", "\(5\)!". */
static bool ends_formula(span s) {
    char before = s.n > 1 ? s.s[s.n - 2] : ' ', escape = s.n > 2 ? s.s[s.n - 3] : ' ';
    return strchr("$*`", before) || (escape == '\\' && strchr(")]", before));
}

/* True if the last character is punctuation of the sentence or a Markdown character, and not part
 * of the answer as in "5!" or "\,". */
static bool ends_in_punctuation(span s) {
    char last = s.s[s.n - 1], before = s.n > 1 ? s.s[s.n - 2] : ' ';
    bool dots = s.n > 3 && memcmp(s.s + s.n - 3, "...", 3) == 0;
    if (dots)
        return s.s[s.n - 4] == '.'; /* "0.333...." */
    if (ends_in_null_bracket(s))
        return false;
    return (strchr(".,;*_`", last) && before != '\\') || (last == '!' && ends_formula(s));
}

span answer_bare(span s) {
    for (size_t before = s.n + 1; s.n && s.n != before;) {
        before = s.n;
        s = span_trim(s);
        while (s.n && strchr("*_`", s.s[0]) && !(s.n > 1 && s.s[0] == '_' && s.s[1] == '{'))
            s = (span){s.s + 1, s.n - 1};
        while (s.n && ends_in_punctuation(s))
            s.n--;
        s.n -= end_mark(s);
        size_t mark = start_mark(s);
        s = (span){s.s + mark, s.n - mark};
    }
    return s;
}

/* The answer without words before it: "therefore 5", "given by 5". */
static span without_adverbs(span s) {
    static pattern words = {
        .regex =
            "(?i)^(?:,\\s*)?(?:\u2248\\s*+|(?:of course|naturally|in fact|as expected|the followin"
            "g|worth|therefore|thus|then|hence|simply|just|indeed|exactly|precisely|"
            "actually|clearly|only(?= [0-9]| one\\b)|approximately|about|roughly|\\\\approx|"
            "given\\sby|equal\\sto|found\\"
            "sto\\sbe|as\\sfollows)\\b[\\s,:*_]++|"
            "(?:=>|\u21d2|\u2192|\u2234|</?(?:b|i|p|strong|em|br)\\s*/?>)[\\s*_]*+)++"};
    static pattern noun = {
        .regex =
            "(?i)^(?:(?:the )?(?:point|set|interval|(?:ordered )?(?:pair|triple)|option|choice|"
            "number|value|vector|matrix|equation|fraction|expression|function|line|list|"
            "polynomial|union|integer|angle)s? (?=\\**[-+0-9($\\\\[{]|\u2212|\u221a|"
            "\\**[A-Za-z](?:[^A-"
            "Za-z]|$))|a (?=half\\b|[0-9$])|all (?:real )?(?:values of )?[a-z] (?:with|"
            "such that|for which|where|satisfying) |~~[^~\\n]*~~\\s*(?=\\S))"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&words, s, 0, groups))
        s = (span){s.s + groups[0].n, s.n - groups[0].n};
    if (pattern_find(&noun, s, 0, groups))
        s = (span){s.s + groups[0].n, s.n - groups[0].n};
    return s;
}

#define VALUE_BEFORE "(?<=[^\\s(\\[,;=])"

bool answer_names_parameter(span s) {
    static pattern parameter = {
        .regex =
            "(?i)\\b(?:for|where|with|and)\\s+(?:(?:all|any|every|each|some|an?|arbitrary|positive|"
            "non-?negative|natural)\\s+)*(?:(?:integers?|constants?|numbers?)\\s+\\$?[a-z]\\$?|"
            "\\$?[a-zA-Z](?:_[0-9])?\\$?(?: and \\$?[a-zA-Z](?:_[0-9])?\\$?)?\\s+(?:is|are|"
            "being)\\s+(?:(?:an?|any|"
            "some|arbitrary|real)\\s+)*(?:integers?|constants?))[\\s.$!*]*$"};
    return pattern_find(&parameter, span_tail(s, 80), 0, NULL);
}

/* The answer before a remark such as ", not 13", ", which is prime", "(by symmetry)", "(about
 * 0.3)". A bracket that names a base or a modulus is no remark. */
static span without_remark(span s) {
    static pattern remarks[] = {
        {.regex = "(?i)(?<=\\$),\\s++an?\\s[a-z]+\\s(?:with|without|that|whose)\\s"},
        {.regex = "(?i)(?<!\\s)(?<!\\bis)(?<!\\bare)[,;]?\\s++\\(?(?:(?:and |but )?not|rather than|"
                  "instead of|"
                  "which|since|because)\\s"},
        {.regex = "(?i)(?<!\\s),\\s++(?:as|so|for|where|when|with|by|using|after|and (?:this|that|"
                  "we)|matching|confirming|consistent|obtained|provided|assuming|just|once|in "
                  "agreement)\\s"},
        {.regex = "(?i)(?<!\\s)[;,]\\s++(?:whereas|while|although|though|even though|unlike|"
                  "verified|attained|"
                  "achieved|reached|occurring|"
                  "completing|leaving|thereby)\\b|;\\s++(?=[^;]*\\b(?:would|is|was|does|has|are|"
                  "were)\\b)"},
        {.regex = VALUE_BEFORE "\\s++(?:\u2014|\u2013|--)\\s++(?=[A-Za-z]{2})"},
        {.regex = "(?i)" VALUE_BEFORE "\\s*+(?:\\\\text\\{)?\\s*+(?:(?:,\\s*+or|,|\\sor)\\s++"
                  "(?:about|roughly|approximately|approx\\.?)|\\((?:or |i\\.e\\.,? )?(?:about|"
                  "roughly|approximately|approx\\.?|\\\\approx|\u2248))"},
        {.regex = VALUE_BEFORE
         "\\s++\\((?!or\\b|and\\b)(?=[^()]*(?<![\\\\A-Za-z])(?!sin|cos|tan|inf|"
         "log|exp|sqrt|arc|base|mod|and\\b|in base)[A-Za-z]{3})(?![^()]*\\b(?:base|mod)\\b)"
         "[^()]*\\)[\\s.!]*$"},
        {.regex =
             "(?i)(?<=[0-9)}\\]$*a-z\\x80-\\xFF])\\s++(?:as (?:the|our|shown|desired|required|clai"
             "med|"
             "stated)|by (?:the|our)|when (?:simplified|divided|reduced|rounded|expressed|"
             "written)|after|using|in (?:total|all|the end)|"
             "at (?:last|the end)|"
             "overall|altogether|each|apiece)\\b"},
        {.regex =
             "(?i)\\s+(?:for all (?:real )?(?:numbers? )?[a-z]\\b|in (?:interval|set|set-builder) "
             "notation)[^$]*$|, (?!includ)[a-z]{3,}ing\\s"},
        {.regex = "(?<=[a-z]{3})\\s+\\([=$\\\\ ]*[0-9][0-9.,]*[ $)]*+[\\s.!*]*$"},
        {.regex =
             "(?i)(?<=[0-9}%$\xBD\xBC\xBE])\\s+(?:chance|probability)\\b|\\*\\*(?=\\s+[a-z][a-z ]*"
             "$)"},
        {.regex = "(?i), (?:i (?:think|believe)|right|done|qed|i\\.e\\.,? (?:our|the|my) )\\b"},
        {.regex = "^(?:(?!\\\\(?:[lg]e|in(?![a-z])|cup)|[<>]|\u2264|\u2265|\u2208).)*?\\K"
                  "(?:,|\\\\text\\{,? *(?:for|where|with|if|when) *\\}|\\s(?:for|where|with|when) )"
                  "[\\s$\\\\;,(]*+(?:quad)?[a-zA-Z]\\s*+(?:\\\\neq?|\u2260|!=)[^,]*+$"},
        {.regex = "(?i)\\s*</?(?:b|i|p|strong|em|br)\\s*/?>"},
        {.regex =
             "(?i)(?<=[a-z])\\s+on (?:this|the|that|its|each|both|every) (?:whole |entire |given )?"
             "(?:interval|domain|range|line|set)s?\\b.*$"},
        {.regex = "(?<=[a-z])\\s+who\\s[^$]*$"},
        {.regex =
             "[0-9](?:\\s?[A-Za-z]{1,12}|\\$)\\K\\s+(?:long|tall|wide|high|deep|thick|old|apart|"
             "away|far)[\\s.!*]*$"},
        {.regex = VALUE_BEFORE "\\s+\\((?:= ?|or )?[0-9][0-9.]*\\s?\\\\?%\\)[\\s.!]*$"},
        {.regex = "(?i)(?<!\\bone)(?<=[0-9a-z])\\s+of (?:them|these|those)[\\s.!]*$"},
        {.regex =
             "(?i)(?<=[0-9})\\]])\\s*+(?:\\\\text\\{\\s*+)?(?:only|alone|is the (?:only|unique) "
             "(?:real |valid |possible )?(?:solution|root|value|answer))\\s*+\\}?[\\s.!]*$"},
    };
    span groups[PATTERN_GROUPS];
    if (answer_names_parameter(s))
        return s;
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
        if (pattern_find(&remarks[i], s, 0, groups) && groups[0].s > s.s)
            s.n = (size_t)(groups[0].s - s.s);
    return answer_without_bracket(s);
}

/* Removes the last bracket of "h = 2 (or, equivalently, 4/2)", "72 km/h (20 m/s)" and "F_{n+1}
 * (with F_1 = 1)". */
span answer_without_bracket(span s) {
    static pattern brackets[] = {
        {.regex =
             "(?i)" VALUE_BEFORE "\\s+\\$?\\((?:\\$?\\s*=|(?:or,? )?equivalently\\b|or equal to\\b|"
             "i\\.e\\.|that is\\b|which (?:is|equals)\\b|(?:with|where|since|as|for|when|at|"
             "attained|achieved|reached)\\b)"
             "[^()]*(?:\\([^()]*\\)[^()]*)*\\)\\$?[\\s.!*]*$"},
        {.regex = "(?<=[0-9][ ~][A-Za-z]|[0-9][A-Za-z]|[A-Za-z/][A-Za-z]|\xB2|\xB3|%|\xB0)\\s+"
                  "\\((?:=\\s*|or )?-?[0-9][0-9.,/]*+\\s*(?:[A-Za-z%]|\xC2[\xB0\xB5])"
                  "(?:[A-Za-z/]|\xC2[\xB2\xB3])*\\)[\\s.!*]*$"},
    };
    static pattern value = {.regex = "[0-9$=]"};
    span groups[PATTERN_GROUPS];
    for (size_t i = 0; i < sizeof brackets / sizeof *brackets; i++)
        if (pattern_find(&brackets[i], s, 0, groups) && groups[0].s > s.s &&
            pattern_find(&value, (span){s.s, (size_t)(groups[0].s - s.s)}, 0, NULL))
            s.n = (size_t)(groups[0].s - s.s);
    return s;
}

span answer_without_contrast(span s) {
    static pattern contrast = {
        .regex =
            "(?i)^(?:it is )?(?:not\\s++[^\\n]{1,60}?,?\\s++(?:but|it is|it's|it equals|rather)"
            "|(?:instead of|rather than)\\s++(?:\\([^()\\n]*\\)|[^\\n(),]){1,60}?,)\\s++"
            "(?:rather\\s++)?(?:only\\s++)?"};
    span groups[PATTERN_GROUPS];
    return pattern_find(&contrast, s, 0, groups) ? (span){s.s + groups[0].n, s.n - groups[0].n} : s;
}

/* The last form of an answer that is given in two: "x > 3, i.e. (3, \infty)". */
static span last_form(span s) {
    static pattern again = {
        .regex =
            "(?i)^[^,;]++[,;]\\s++(?:i\\.e\\.,?|that is,|in other words,?|(?:or )?equivalently,?)"
            "\\s++(?=[0-9$\\\\({\\[]|-[0-9]|[a-z] ?[=<>]|\u2212|\u221a)"};
    span groups[PATTERN_GROUPS];
    return pattern_find(&again, s, 0, groups) ? (span){s.s + groups[0].n, s.n - groups[0].n} : s;
}

/* False if the text cannot have a remark: it has no word of two letters and none of the signs with
 * which a remark may begin. */
static bool may_have_remark(span s) {
    for (size_t i = 0; i < s.n; i++) {
        char left = i ? s.s[i - 1] : ' ';
        bool starts = is_letter(s.s[i]) && !is_letter(left) && left != '\\';
        if ((starts && i + 1 < s.n && is_letter(s.s[i + 1])) || (unsigned char)s.s[i] >= 0x80 ||
            strchr("<~=>", s.s[i]) || (s.s[i] == '-' && left == '-'))
            return true;
    }
    return memmem(s.s, s.n, "%)", 2) || memmem(s.s, s.n, "i.e.", 4) ||
           memmem(s.s, s.n, "\\approx", 7) || memmem(s.s, s.n, "\\text", 5) ||
           memmem(s.s, s.n, "\\ne", 3);
}

span answer_core(span s) {
    for (size_t before = s.n + 1; s.n && s.n != before;) {
        before = s.n;
        if (!may_have_remark(s))
            return answer_bare(s);
        s = answer_without_contrast(s);
        s = answer_bare(without_remark(last_form(without_adverbs(answer_bare(s)))));
    }
    return s;
}

bool answer_has_number(span s) {
    static pattern word = {
        .regex = "(?i)\\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
                 "(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|thirty|forty|fifty|hundred)\\b"};
    return integer_has_digit(s) || pattern_find(&word, s, 0, NULL);
}

bool answer_only_number(span s, extraction *x) {
    static pattern other = {
        .regex =
            "(?i)\\b(?:multiples?|divisible|divisor|factor|than|half|twice|thrice|double|triple|"
            "(?:square|cube)d? of|root|times|power|modulo|mod|congruent|bound|digits?|if|only|"
            "unless|or|more|less|fewer|base|choose)\\b|[0-9](?:st|nd|rd|th)\\b|"
            "[<>~\u2264\u2265\u00b1\u221a]"};
    if (!extract_last_number(s, x) || grade_part_of_expression(s, x) ||
        pattern_find(&other, s, 0, NULL))
        return false;
    static pattern range = {.regex = "(?i)\\bto\\b"};
    const char *end = x->answer.s + x->answer.n;
    bool percent = end < s.s + s.n && *end == '%';
    x->answer.n += percent;
    end += percent;
    if (!percent && pattern_find(&range, s, 0, NULL))
        return false;
    bool more = integer_has_digit((span){s.s, (size_t)(x->answer.s - s.s)});
    bool plain = end == s.s + s.n || !strchr("^_/!%*+=<>\\{}()|", *end);
    return !more && plain && !memchr(s.s, '\\', s.n);
}
