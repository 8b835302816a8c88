/* Families of solutions and general solutions, for MATH_TRUTH: x = n\pi with n \in \mathbb{Z},
 * y = C e^x. */
#include <string.h>

#include "evals/math/math_rewriter.h"
#include "evals/math/math_wording.h"
#include "evals/pattern.h"

#define START "(?=[\\s$,;~\\\\(])"
#define GAP   "(?:[\\s$,;~]|\\\\q?quad|\\\\[ ,;:!])*+"
#define OPEN  "[(]?(?:\\\\(?:text|mathrm)\\{)?[\\s,(]*"
#define WITH  "(?:(?:with|where|for|and|here)\\b\\s*)?"
#define ANY   "(?:(?:all|any|every|each|some|an?|arbitrary|positive|non-?negative|natural)\\b\\s*)*"
#define MEMBER                                                                                     \
    "(?:\\\\in(?![A-Za-z])|\u2208)\\s*(?:\\\\(?:mathbb|mathbf|mathrm)\\s*\\{?Z\\}?|\\\\Z|\u2124|Z)"
#define END "[\\s$.)}]*$"

/* The conditions that name the parameter, which become ", n \in \mathbb{Z}". */
static struct {
    pattern pattern;
    const char *replacement;
} conditions[] = {
    {{.regex = START GAP OPEN WITH ANY "integers?\\b\\s*\\}?" GAP "([a-z])" END},
     ", $1 \\in \\mathbb{Z}"},
    {{.regex = START GAP OPEN WITH ANY
      "\\}?" GAP "([a-z])" GAP "(?:\\\\text\\{)?\\s*(?:is|being|any|an)\\b\\s*" ANY "integer" END},
     ", $1 \\in \\mathbb{Z}"},
    {{.regex = START GAP OPEN WITH ANY "(?:integers?\\b)?\\s*\\}?" GAP "([a-z])\\s*" MEMBER END},
     ", $1 \\in \\mathbb{Z}"},
};

bool math_read_parameter(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern other = {.regex = "(?<![\\\\A-Za-z])k(?![A-Za-z])"};
    static pattern named = {.regex = ", ([a-z]) \\\\in \\\\mathbb\\{Z\\}$"};
    span groups[PATTERN_GROUPS];
    static const char set[] = "\u2124", macro[] = "\\mathbb", word[] = "integer";
    if (!n || n + 1 > cap || memchr(s, '\0', n) ||
        (!memmem(s, n, macro, sizeof macro - 1) && !memmem(s, n, set, sizeof set - 1) &&
         !memmem(s, n, word, sizeof word - 1)))
        return false;
    memcpy(out, s, n);
    out[n] = '\0';
    for (size_t i = 0; i < COUNT(conditions); i++)
        (void)pattern_replace(&conditions[i].pattern, out, cap, conditions[i].replacement);
    *len = strlen(out);
    if (!pattern_find(&named, (span){out, *len}, 0, groups))
        return false;
    char name = groups[1].s[0];
    bool rename = !pattern_find(&other, (span){out, *len}, 0, NULL);
    for (size_t i = 0; rename && i < *len; i++) {
        bool command = false;
        for (size_t k = i; k && !command && (is_letter(out[k - 1]) || out[k - 1] == '\\'); k--)
            command = out[k - 1] == '\\';
        out[i] = out[i] == name && !command ? 'k' : out[i];
    }
    return *len != n || memcmp(out, s, n) != 0;
}

bool math_read_residue(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static struct {
        pattern pattern;
        const char *replacement;
    } forms[] = {
        {{.regex =
              "^[\\s$]*(?:[a-z]\\s*=)?\\s*(-?[0-9]+)\\s*\\+\\s*([0-9]+)\\s*(?:\\\\cdot)?\\s*[a-z]"
              "(?:, k \\\\in \\\\mathbb\\{Z\\})?[\\s.$]*$"},
         "$1 \\pmod{$2}"},
        {{.regex = "^[\\s$]*(?:[a-z]\\s*=)?\\s*([0-9]+)\\s*(?:\\\\cdot)?\\s*[a-z]\\s*\\+?\\s*"
                   "(-?\\s*[0-9]+)"
                   "(?:, k \\\\in \\\\mathbb\\{Z\\})?[\\s.$]*$"},
         "$2 \\pmod{$1}"},
    };
    if (!n || n + 1 > cap || memchr(s, '\0', n))
        return false;
    memcpy(out, s, n);
    out[n] = '\0';
    for (size_t i = 0; i < COUNT(forms); i++)
        (void)pattern_replace(&forms[i].pattern, out, cap, forms[i].replacement);
    *len = strlen(out);
    return *len != n || memcmp(out, s, n) != 0;
}

bool math_drop_index(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern index = {
        .regex = "((?:^|[\\s$,;{(])(?:[A-Za-z]|\\\\[a-z]+|[\xCE\xCF][\x80-\xBF]))\\s*_\\s*"
                 "(?:[0-9]|\\{[0-9]\\})\\s*(?==)"};
    if (n + 1 > cap || !memchr(s, '_', n) || memchr(s, '\0', n))
        return false;
    memcpy(out, s, n);
    out[n] = '\0';
    (void)pattern_replace(&index, out, cap, "$1");
    *len = strlen(out);
    return *len != n;
}

/* Writes @s with the names in @from, constants of integration or a parameter, replaced by those in
 * @to. False if none of them occurs, or if @out is too small. */
static bool rename_constants(const char *s, size_t n, const char *const from[2],
                             const char *const to[2], char *out, size_t cap, size_t *len) {
    rewriter r = {.begin = s, .s = s, .end = s + n, .out = out, .cap = cap};
    bool changed = false;
    while (r.s < r.end && !r.full) {
        bool apart = r.s == r.begin || (!is_letter(r.s[-1]) && r.s[-1] != '\\');
        int i = 0;
        while (i < 2 && !(apart && from[i] && starts(&r, r.s, from[i])))
            i++;
        if (i < 2) {
            puts_to(&r, to[i]);
            r.s += strlen(from[i]);
            changed = true;
        } else {
            put(&r, r.s++, 1);
        }
    }
    *len = r.used;
    return changed && !r.full;
}

bool math_rename_constants(const char *g, size_t gn, int way, const char *s, size_t n, char *out,
                           size_t cap, size_t *len) {
    static const char *const names[][2] = {{"c_1", "c_2"}, {"C_1", "C_2"}, {"A", "B"},
                                           {"C", NULL},    {"A", NULL},    {"K", NULL},
                                           {"k", NULL},    {"c", NULL}};
    static pattern used[] = {{.regex = "c_\\{?1\\}?.*c_\\{?2"},
                             {.regex = "C_\\{?1\\}?.*C_\\{?2"},
                             {.regex = "(?<![A-Za-z])A(?![A-Z]).*(?<![A-Za-z])B(?![A-Z])"},
                             {.regex = "(?<![A-Za-z\\\\])C(?![A-Z_])"},
                             {.regex = "(?<![A-Za-z\\\\])A(?![A-Z_])"},
                             {.regex = "(?<![A-Za-z\\\\])K(?![A-Z_])"},
                             {.regex = "(?<![A-Za-z\\\\])k(?![A-Z_a-z])"},
                             {.regex = "(?<![A-Za-z\\\\])c(?![A-Z_a-z])"}};
    size_t gold = COUNT(names), answer = COUNT(names);
    for (size_t i = COUNT(names); i > 0; i--) {
        gold = pattern_find(&used[i - 1], (span){g, gn}, 0, NULL) ? i - 1 : gold;
        answer = pattern_find(&used[i - 1], (span){s, n}, 0, NULL) ? i - 1 : answer;
    }
    if (gold == COUNT(names) || answer == COUNT(names) || !names[gold][1] != !names[answer][1])
        return false;
    const char *const to[2] = {names[gold][way], names[gold][1 - way]};
    const char *const one[2] = {names[gold][0], NULL};
    return (names[gold][1] || way == 0) &&
           rename_constants(s, n, names[answer], names[gold][1] ? to : one, out, cap, len);
}

/* True if the letter @c stands alone in the text. */
static bool has_letter(const char *s, size_t n, char c) {
    for (size_t i = 0; i < n; i++) {
        bool apart = i == 0 || (!is_letter(s[i - 1]) && s[i - 1] != '\\');
        if (s[i] == c && apart && (i + 1 == n || !is_letter(s[i + 1])))
            return true;
    }
    return false;
}

bool math_rename_parameter(const char *g, size_t gn, const char *s, size_t n, char *out, size_t cap,
                           size_t *len) {
    static pattern condition = {.regex = ", ([a-z]) \\\\in \\\\mathbb\\{Z\\}$"};
    span groups[PATTERN_GROUPS];
    char from[2] = "", to[2] = "";
    if (memmem(g, gn, "\\in", 3) || !pattern_find(&condition, (span){s, n}, 0, groups))
        return false;
    *from = *groups[1].s;
    n = (size_t)(groups[0].s - s);
    for (int i = 0; i < 26; i++) {
        char c = (char)('a' + i);
        if (!has_letter(g, gn, c) || (c != *from && has_letter(s, n, c)))
            continue;
        if (*to)
            return false;
        *to = c;
    }
    const char *const names[2] = {from, NULL}, *const by[2] = {to, NULL};
    return *to && rename_constants(s, n, names, by, out, cap, len);
}
