/* Quantities of several units, times of the day and changes, for MATH_TRUTH: "4 hours and 30
 * minutes", "noon", "a decrease". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evals/math/math_rewriter.h"
#include "evals/math/math_unit.h"
#include "evals/math/math_wording.h"
#include "evals/pattern.h"

enum { kPlain = 256 };

#define NAME "([A-Za-z]+)\\.?"
#define AND  "(?:,? and |, | )\\s*"

/* Copies a text without macros for text, dollar signs and spaces of LaTeX. False if it is too long
 * or has other macros. */
static bool copy_plain(const char *s, size_t n, char out[kPlain]) {
    static struct {
        pattern pattern;
        const char *replacement;
    } steps[] = {{{.regex = "\\\\(?:text|mathrm|mbox)\\s*\\{|[{}$~]|\\\\[,;:! ]"}, " "},
                 {{.regex = "\\s+"}, " "},
                 {{.regex = "^ | ?\\.?$"}, ""}};
    if (n >= kPlain || memchr(s, '\0', n))
        return false;
    memcpy(out, s, n);
    out[n] = '\0';
    for (size_t i = 0; i < COUNT(steps); i++)
        (void)pattern_replace(&steps[i].pattern, out, kPlain, steps[i].replacement);
    return !strchr(out, '\\');
}

/* The number @s in thousandths; -1 if it has more than ten digits or more than three decimals. */
static int64_t thousandths(span s) {
    char digits[16];
    size_t used = 0;
    int decimals = -1;
    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] == '.' && decimals < 0)
            decimals = 0;
        else if (is_digit(s.s[i]) && used < 10 && decimals < 3) {
            digits[used++] = s.s[i];
            decimals += decimals >= 0;
        } else
            return -1;
    }
    for (decimals = decimals < 0 ? 0 : decimals; decimals < 3; decimals++)
        digits[used++] = '0';
    digits[used] = '\0';
    return strtoll(digits, NULL, 10);
}

bool math_read_compound(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern part = {.regex = "^([0-9]+(?:\\.[0-9]+)?) ?" NAME "(?:" AND "(?=[0-9])|$)"};
    char text[kPlain];
    int64_t total = 0;
    int parts = 0;
    span groups[PATTERN_GROUPS], unit = {0};
    if (!n || !memchr(s, ' ', n) || !copy_plain(s, n, text))
        return false;
    for (span rest = {text, strlen(text)}; rest.n; parts++) {
        if (parts == 4 || !pattern_find(&part, rest, 0, groups))
            return false;
        int64_t ratio = parts ? math_unit_ratio(unit.s, unit.n, groups[2].s, groups[2].n) : 1;
        int64_t value = thousandths(groups[1]);
        if (ratio < 1 || value < 0 || total > INT64_MAX / 1000000 / ratio ||
            (parts && (ratio == 1 || value >= 1000 * ratio)))
            return false;
        total = total * ratio + value;
        unit = groups[2];
        rest = (span){rest.s + groups[0].n, rest.n - groups[0].n};
    }
    char decimals[8] = "";
    if (total % 1000)
        (void)snprintf(decimals, sizeof decimals, ".%03d", (int)(total % 1000));
    int used = parts < 2 ? 0
                         : snprintf(out, cap, "%lld%s\\text{ %.*s}", (long long)(total / 1000),
                                    decimals, (int)unit.n, unit.s);
    *len = used > 0 && (size_t)used < cap ? (size_t)used : 0;
    return *len > 0;
}

bool math_drop_unit(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern unit = {
        .regex = "(?<=[0-9}])(?:\\s|~|\\\\[,;: ])*\\\\(?:text|mathrm|textrm|rm|mbox)\\s*\\{"
                 "((?:[^{}]|\\{[^{}]*\\})*)\\}(?:\\^(?:[0-9]|\\{-?[0-9]\\}))?[\\s.$]*$"};
    static pattern scale = {
        .flags = PATTERN_CASELESS,
        .regex =
            "[0-9=]{2}|\\b(?:dozen|hundred|thousand|[mbtr]+illion|percent|per cent|squared|cubed|"
            "factorial|base|mod|times|pi|and|or|to|if|for|not|less|more|at|k|e|i|degrees?|"
            "a\\.?m|p\\.?m|too|wrong|incorrect|impossible|invalid|excluded|extraneous|rejected|"
            "fails|cannot)\\b|%"};
    span groups[PATTERN_GROUPS];
    if (n > cap || !memchr(s, '\\', n) || !pattern_find(&unit, (span){s, n}, 0, groups) ||
        pattern_find(&scale, groups[1], 0, NULL))
        return false;
    *len = (size_t)(groups[0].s - s);
    memcpy(out, s, *len);
    return *len > 0;
}

bool math_read_noon(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    static pattern noon = {
        .regex = "^(?:(?:at )?(?:12(?::00)? ?)?(?:p\\.?m\\.? ?)?\\(?(noon|midday)\\)?|"
                 "(?:at )?(?:12(?::00)? ?)?(?:a\\.?m\\.? ?)?\\(?(midnight)\\)?)$"};
    char text[kPlain];
    span groups[PATTERN_GROUPS];
    if (!n || (!memmem(s, n, "noon", 4) && !memmem(s, n, "mid", 3)) || !copy_plain(s, n, text) ||
        !pattern_find(&noon, (span){text, strlen(text)}, 0, groups))
        return false;
    int used = snprintf(out, cap, "12:00\\text{ %s}", groups[1].s ? "pm" : "am");
    *len = used > 0 && (size_t)used < cap ? (size_t)used : 0;
    return *len > 0;
}

/* True if a text has the word, or the word with an ending. */
static bool has_word(const char *s, size_t n, const char *word) {
    size_t m = strlen(word);
    for (size_t i = 0; i + m <= n; i++)
        if ((i == 0 || !is_letter(s[i - 1])) && memcmp(s + i, word, m) == 0)
            return true;
    return false;
}

bool math_are_opposite(const char *g, size_t gn, const char *a, size_t an) {
    static const char *const pairs[][2] = {
        {"increase", "decrease"}, {"gain", "loss"},
        {"profit", "loss"},       {"north", "south"},
        {"east", "west"},         {"clockwise", "counterclockwise"},
        {"above", "below"},       {"clockwise", "anticlockwise"},
        {"rise", "fall"},         {"longer", "shorter"},
        {"faster", "slower"},     {"earlier", "later"},
    };
    for (size_t i = 0; i < 2 * COUNT(pairs); i++) {
        const char *one = pairs[i / 2][i % 2], *other = pairs[i / 2][1 - i % 2];
        if (has_word(g, gn, one) && !has_word(g, gn, other) && has_word(a, an, other) &&
            !has_word(a, an, one))
            return true;
    }
    return false;
}
