/* Answers that say how they were found or what they are, for MATH_TRUTH: a conclusion after an
 * arrow, an equation whose left side is the quantity, the range of a function, a remainder. A
 * comment that is only a formula is an example of what the pattern below it matches. */
#include <string.h>

#include "evals/math/math_rewriter.h"
#include "evals/math/math_wording.h"
#include "evals/pattern.h"

#define NUMBER  "[\\s$]*-?[0-9][0-9.,]*+"
#define SPACE   "(?:\\s|\\\\[,; ]|[$~])*+"
#define LENGTHS "(?:[0-9]+\\s*)?[A-Z]{2}(?:\\^(?:[0-9]|\\{[0-9]\\}))?"
#define TEXT    "\\\\(?:text|mathrm)\\{\\s*"
#define UNIT                                                                                       \
    "(?:\\\\(?:text|mathrm)\\{[^{}]*(?:\\{[0-9]\\})?\\}|[a-z]{1,3}(?![a-z]))"                      \
    "(?:\\^(?:[23]|\\{[23]\\})|\u00b2|\u00b3)?"
#define SUFFIX "(?:st|nd|rd|th)"
#define NOUN                                                                                       \
    "(?:\\\\text\\{\\s*)?(?:grade|day|week|month|year|century|hour|floor|place|position|row|"      \
    "seat|house|page|person|student|customer|visitor)\\}?"

/* ---- one formula out of several ---- */

static struct {
    pattern pattern;
    const char *replacement;
    const char *needles[4]; /* each text that matches has at least one of them */
} conclusions[] = {
    /* 2x = 4 \implies x = 2 */
    {{.regex =
          "^.*(?:\\\\(?:R|Longr)ightarrow(?![A-Za-z])|\\\\implies(?![A-Za-z])|\u27f9|\u21d2)" SPACE
          "(?=\\S)"},
     "",
     {"ightarrow", "\\implies", "\u27f9", "\u21d2"}},
    /* AB^2 + CD^2 = 3R^2: the lengths of segments are what was to be found */
    {{.regex = "^[\\s$]*" LENGTHS "(?:\\s*(?:[+*-]|\\\\cdot|\\\\times)\\s*" LENGTHS
               ")+\\s*=(?=[^=<>\\\\]*$)(?![^=]*[A-Z]{2})"},
     "",
     {"="}},
    /* a + b + c = 2k: the sum is what was to be found */
    {{.regex = "^[\\s$]*[a-zA-Z](?:\\s*\\+\\s*[a-zA-Z])+\\s*=(?=[^=<>]*$)"}, "", {"="}},
    /* 20000/\pi m^2 \approx 6366.2 m^2 */
    {{.regex = "(?:\\\\approx|\u2248)" NUMBER SPACE "(?:" UNIT "|[a-z]{2,}(?: [a-z]+)?)[\\s.$]*$"},
     "",
     {"\\approx", "\u2248"}},
    /* 12^{\text{th}}, and 12th with a noun */
    {{.regex = "^[\\s$*]*(?:the\\s+)?([0-9]+)(?:\\s*\\^\\s*\\{?\\s*(?:" TEXT ")?" SUFFIX
               "\\s*\\}{0,2}(?:" SPACE NOUN ")?|(?:" TEXT ")?" SUFFIX "(?=[\\s}])\\}?" SPACE NOUN
               ")[\\s.$*]*$"},
     "$1",
     {"st", "nd", "rd", "th"}},
};

static bool has_needle(const char *s, const char *const needles[4]) {
    bool found = false;
    for (int i = 0; i < 4 && needles[i] && !found; i++)
        found = strstr(s, needles[i]) != NULL;
    return found;
}

/* Drops the remainder from a quotient with a variable, such as x + 1, remainder 3. */
static void drop_remainder(char *s) {
    static pattern remainder = {
        .regex = "(?:,|(?=\\\\text\\{\\s*with)|(?<=\\s)(?=with))" SPACE
                 "(?:\\\\text\\{)?\\s*(?:and |with )?(?:an? |the )?remainder(?: of| is)?:?\\s*\\}?"
                 "[\\s$]*(?:-|\u2212)?[0-9]+[\\s.$]*$"};
    static pattern variable = {.regex = "(?<![\\\\A-Za-z])[a-z](?![A-Za-z])"};
    span groups[PATTERN_GROUPS];
    if (strstr(s, "remainder") && pattern_find(&remainder, (span){s, strlen(s)}, 0, groups) &&
        pattern_find(&variable, (span){s, (size_t)(groups[0].s - s)}, 0, NULL))
        s[groups[0].s - s] = '\0';
}

bool math_read_conclusion(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    if (n + 1 > cap || memchr(s, '\0', n))
        return false;
    memcpy(out, s, n);
    out[n] = '\0';
    for (size_t i = 0; i < COUNT(conclusions); i++)
        if (has_needle(out, conclusions[i].needles))
            (void)pattern_replace(&conclusions[i].pattern, out, cap, conclusions[i].replacement);
    drop_remainder(out);
    *len = strlen(out);
    return *len != n;
}

/* ---- values of a function, and hours ---- */

bool math_read_range(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern relation = {.regex = "[<>]|\\\\(?:[lg]eq?|in)(?![A-Za-z])|\u2264|\u2265|\u2208"};
    static pattern value = {.regex = "(?<![A-Za-z\\\\])[a-z]\\s*\\(\\s*[a-z]\\s*\\)"};
    static pattern letter = {.regex = "(?<![A-Za-z\\\\])[A-Za-z](?![A-Za-z])"};
    span text = {s, n}, groups[PATTERN_GROUPS];
    static const char macro[] = "\\text"; /* its words may deny the relation */
    if (n > cap || !memchr(s, '(', n) || memmem(s, n, macro, sizeof macro - 1) ||
        !pattern_find(&relation, text, 0, NULL) || !pattern_find(&value, text, 0, groups) ||
        pattern_count(&letter, text) != 2)
        return false;
    size_t before = (size_t)(groups[0].s - s), after = n - before - groups[0].n;
    memcpy(out, s, before);
    out[before] = 'y';
    memcpy(out + before + 1, groups[0].s + groups[0].n, after);
    *len = before + 1 + after;
    return true;
}

bool math_read_hour(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern hour = {.regex = "^[\\s$]*(?:0?[1-9]|1[0-9]|2[0-3])(:00)(?![0-9:])"};
    span groups[PATTERN_GROUPS];
    if (n > cap || !memchr(s, ':', n) || !pattern_find(&hour, (span){s, n}, 0, groups))
        return false;
    size_t before = (size_t)(groups[1].s - s), after = n - before - groups[1].n;
    memcpy(out, s, before);
    memcpy(out + before, groups[1].s + groups[1].n, after);
    *len = before + after;
    return true;
}

bool math_drop_condition(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern condition = {
        .regex = "(?:\\\\q?quad|\\\\[ ,;:]|[\\s,$])*(?:\\(|\\\\text\\{[ ,]*\\(?(?:for|where|with)?"
                 "(?: all| every)?\\s*\\}?)\\s*\\$?[a-z]\\s*(?:\\\\geq?(?:slant)?(?![a-z])|>|"
                 "\\\\in(?![a-z])|\u2265|\u2208)\\s*[^()=]{1,24}\\)?[\\s.$]*$"};
    span groups[PATTERN_GROUPS];
    if (n > cap || !memchr(s, '=', n) || !pattern_find(&condition, (span){s, n}, 0, groups))
        return false;
    *len = (size_t)(groups[0].s - s);
    memcpy(out, s, *len);
    return *len > 0 && memchr(s, '=', *len);
}

bool math_drop_exclusion(const char *s, size_t n, char *out, size_t cap, size_t *len) {
#define GAP "(?:\\s|\\\\q?quad(?![a-z])|\\\\[ ,;:()]|\\$)*+"
    static pattern domain = {
        .regex = "[<>]|\\\\(?:[lg]e|in|cup)(?![a-z])|\\\\[lg]eq|\u2264|\u2265|\u2208|\\\\infty"};
    static pattern exclusion = {
        .regex = "(?<=[^\\s,])(?:,|\\s*\\\\q?quad(?![a-z])|\\\\[ ;,:]|(?=\\s*\\\\text|\\s*\\())" GAP
                 "\\(?" GAP
                 "(?:\\\\text\\{\\s*(?:for|where|with|if|when|provided(?: that)?)\\s*\\})?" GAP
                 "[a-zA-Z]\\s*(?:\\\\neq?(?![a-z])|\u2260)[^()=<>]*+\\)?[\\s.$]*+(?:\\\\\\))?$"};
    span groups[PATTERN_GROUPS];
    if (n > cap || pattern_find(&domain, (span){s, n}, 0, NULL) ||
        !pattern_find(&exclusion, (span){s, n}, 0, groups))
        return false;
    *len = (size_t)(groups[0].s - s);
    memcpy(out, s, *len);
    return *len > 0;
}

/* ---- vectors ---- */

bool math_read_vector(const char *s, size_t n, char *out, size_t cap, size_t *len) {
#define UNIT_VECTOR(name)                                                                          \
    "(?:\\s|\\\\[,;: ])*\\\\(?:mathbf|vec|hat|boldsymbol|bm)\\s*\\{?\\s*\\\\?" name                \
    "(?:math)?\\s*\\}?\\s*"
    static pattern vector = {
        .regex =
            "^[\\s$]*(?:[^=]*=)?\\s*([^=+]*?)" UNIT_VECTOR("i") "\\+?\\s*([^=+]*?)" UNIT_VECTOR(
                "j") "(?:\\+?\\s*([^=+]*?)" UNIT_VECTOR("k") ")?[\\s.$]*$"};
    static const char bold[] = "\\";
    span groups[PATTERN_GROUPS];
    if (n > cap || !memmem(s, n, bold, 1) || !pattern_find(&vector, (span){s, n}, 0, groups))
        return false;
    rewriter r = {.begin = s, .s = s, .end = s + n, .out = out, .cap = cap};
    puts_to(&r, "\\langle ");
    for (int i = 1; i < 4 && groups[i].s; i++) {
        bool sign = groups[i].n == 1 && *groups[i].s == '-';
        puts_to(&r, i > 1 ? ", " : "");
        put(&r, groups[i].s, groups[i].n);
        puts_to(&r, groups[i].n == 0 || sign ? "1" : "");
    }
    puts_to(&r, " \\rangle");
    *len = r.used;
    return !r.full;
}
