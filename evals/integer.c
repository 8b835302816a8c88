#include "evals/integer.h"

#include <stdio.h>
#include <string.h>

/* kNesting: how many levels of font and text macros are unwrapped */
enum { kNesting = 4, kRoom = 2 * INTEGER_MAX };

#define MACRO(names) "\\\\(?:" names ")(?![A-Za-z])"

/* Replacements that keep the value of a number, in the order in which they are made. */
static struct {
    pattern pattern;
    const char *replacement;
} rewrites[] = {
    {{.regex = "\xE2\x88\x92"}, "-"}, /* minus sign */
    {{.regex = "\xC2\xA0|\xE2\x80\x89|\xE2\x80\xAF|~|\\\\[ ]|" MACRO("quad|qquad")}, " "},
    {{.regex = "\\{,\\}"}, ","},
    {{.regex =
          "\\\\[,;:!]|\\\\?\\$|\\\\[()\\[\\]]|\\*\\*|`|" MACRO("left|right|displaystyle|bf|rm")},
     ""},
    {{.regex = "\\^\\s*(?:\\{\\s*\\\\circ\\s*\\}|\\\\circ)|\\\\degree|\xC2\xB0"}, ""},
    {{.regex = "^[^=]*(?:=[^=]*)*=\\s*"}, ""}, /* everything up to the last "=" */
    {{.regex = "^\\s*(?|\\(([^()]*)\\)|\\{([^{}]*)\\})\\s*\\.?\\s*$"}, "$1"},
};

static pattern font = {
    .regex = MACRO("text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|boldsymbol|mbox|boxed|"
                   "fbox") "\\s*\\{([^{}]*)\\}"};

/* A whole text that is a number: optional words and sign, the digits with or without thousands
 * commas, and optionally a point with zeros, a unit, and a full stop or semicolon. */
static pattern whole = {
    .regex = "(?i)^(?!.*\\b(?:not|than|most|least|between|cannot|never|half|twice|times|only|"
             "unless|if|or|multiple|divisible|modulo|(?:square|cube|power|half|root) of)\\s)"
             "(?!.*\\b(?:digits?|remaining|cases|so far)\\b)"
             "\\s*(?:(?:[A-Za-z']++[:,]?\\s++)*[A-Za-z']{2,}+[:,]?\\s++)?([+-]?)\\s*"
             "(\\d{1,3}(?:,\\d{3})+|\\d+)(?:\\.0*)?"
             "(?:\\s++[A-Za-z][A-Za-z -]*+(?:\\^\\{?[23]\\}?)?)?\\s*[.;]?\\s*$"};

static void canonical(span sign, span digits, char *out) {
    size_t n = 0, i = 0;
    while (i + 1 < digits.n && (digits.s[i] == '0' || digits.s[i] == ','))
        i++;
    if (sign.n && sign.s[0] == '-' && digits.s[i] != '0')
        out[n++] = '-';
    for (; i < digits.n; i++)
        if (digits.s[i] != ',')
            out[n++] = digits.s[i];
    out[n] = '\0';
}

bool integer_parse(span text, char out[INTEGER_MAX]) {
    char s[kRoom];
    if (!text.n || text.n >= INTEGER_MAX || memchr(text.s, '\0', text.n))
        return false;
    memcpy(s, text.s, text.n);
    s[text.n] = '\0';
    for (int i = 0; i < kNesting; i++)
        (void)pattern_replace(&font, s, sizeof s, " $1 ");
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++)
        (void)pattern_replace(&rewrites[i].pattern, s, sizeof s, rewrites[i].replacement);
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&whole, (span){s, strlen(s)}, 0, groups) || groups[2].n >= INTEGER_MAX - 1)
        return false;
    canonical(groups[1], groups[2], out);
    return true;
}

bool integer_has_digit(span text) {
    for (size_t i = 0; i < text.n; i++)
        if (text.s[i] >= '0' && text.s[i] <= '9')
            return true;
    return false;
}
