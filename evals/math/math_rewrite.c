#include "evals/math/math_rewrite.h"

#include <string.h>

#include "evals/math/math_rewriter.h"

/* True if the output ends with the digits of a time, as in 6:30. */
static bool after_time(const rewriter *r) {
    size_t i = r->used;
    while (i && (is_space(r->out[i - 1]) || r->out[i - 1] == '\\' || r->out[i - 1] == ','))
        i--;
    size_t digits = i;
    while (i && is_digit(r->out[i - 1]))
        i--;
    return digits - i == 2 && i > 1 && r->out[i - 1] == ':' && is_digit(r->out[i - 2]);
}

/* True if the output is the hour of a time, as in 10 a.m., and @end ends the text. */
static bool after_hour(const rewriter *r, const char *end) {
    size_t i = 0, digits;
    while (i < r->used && (is_space(r->out[i]) || r->out[i] == '$'))
        i++;
    for (digits = i; i < r->used && is_digit(r->out[i]);)
        i++;
    digits = i - digits;
    while (i < r->used && (is_space(r->out[i]) || r->out[i] == '\\' || r->out[i] == ','))
        i++;
    while (end < r->end && (is_space(*end) || *end == '.' || *end == '$'))
        end++;
    return (digits == 1 || digits == 2) && i == r->used && end == r->end;
}

/* Rewrites "p.m." or "PM" after a time, and "p.m." after an hour. */
static bool rewrite_half_of_day(rewriter *r) {
    char half = (char)(*r->s | 32);
    const char *m = r->s + 1;
    if (half != 'a' && half != 'p')
        return false;
    bool dotted = m < r->end && *m == '.';
    m = skip_spaces(r, m + dotted);
    if (m == r->end || (*m | 32) != 'm' || (m + 1 < r->end && is_letter(m[1])))
        return false;
    bool plain = dotted || (*r->s < 'a' && *m < 'a'); /* "5 am" may be a product */
    if (!after_time(r) && !(plain && after_hour(r, m + 1)))
        return false;
    puts_to(r, half == 'a' ? "\\text{ am}" : "\\text{ pm}");
    r->s = m + 1;
    r->s += r->s < r->end && *r->s == '.';
    return true;
}

/* The end of a row space such as [4pt] at @s; NULL if there is none. */
static const char *row_space_end(const rewriter *r, const char *s) {
    if (s == r->end || *s != '[')
        return NULL;
    const char *digits = ++s;
    while (s < r->end && (is_digit(*s) || *s == '.' || *s == '-'))
        s++;
    const char *unit = s;
    while (s < r->end && is_letter(*s))
        s++;
    return unit > digits && s - unit == 2 && s < r->end && *s == ']' ? s + 1 : NULL;
}

/* Writes \gcd as a word if no argument follows: \gcd = 12. */
static bool rewrite_gcd(rewriter *r) {
    static const char macro[] = "\\gcd";
    if (!starts(r, r->s, macro))
        return false;
    const char *after = skip_spaces(r, r->s + sizeof macro - 1);
    if (after == r->end || *after != '=')
        return false;
    puts_to(r, "\\text{gcd}");
    r->s += sizeof macro - 1;
    return true;
}

/* Drops brackets that are not printed: \left. and \right., unless they belong to a pair with one
 * printed bracket, as in \left. x \right|. */
static bool rewrite_null_brackets(rewriter *r) {
    static const char left[] = "\\left.", right[] = "\\right.";
    if (starts(r, r->s, left) && !memmem(r->s, (size_t)(r->end - r->s), right, sizeof right - 1))
        return false;
    bool opening = starts(r, r->s, left);
    if (!opening && !(starts(r, r->s, right) &&
                      memmem(r->begin, (size_t)(r->s - r->begin), left, sizeof left - 1)))
        return false;
    r->s += opening ? sizeof left - 1 : sizeof right - 1;
    puts_to(r, " ");
    return true;
}

static void rewrite_backslash(rewriter *r) {
    if (rewrite_gcd(r) || rewrite_null_brackets(r))
        return;
    size_t n = r->end - r->s > 1 ? 2 : 1;
    bool row = n == 2 && r->s[1] == '\\';
    put(r, r->s, n);
    r->s += n;
    const char *end = row ? row_space_end(r, r->s) : NULL;
    r->s = end ? end : r->s;
}

static void replace(rewriter *r, size_t n, const char *by) {
    puts_to(r, by);
    r->s += n;
}

/* True if braces at this place are an argument: after ^, _, another group or a command. */
static bool is_argument(const rewriter *r) {
    char before = r->used ? r->out[r->used - 1] : ' ';
    return before == '^' || before == '_' || before == '}' || is_letter(before);
}

static void rewrite_one(rewriter *r) {
    char c = *r->s;
    if ((unsigned char)c >= 0x80)
        math_rewrite_sign(r);
    else if (is_digit(c) || (c == '.' && r->end - r->s > 1))
        math_rewrite_number(r);
    else if (c == '\\')
        rewrite_backslash(r);
    else if (starts(r, r->s, "**"))
        replace(r, strlen("**"), "^");
    else if (starts(r, r->s, "+/-"))
        replace(r, strlen("+/-"), "\\pm ");
    else if (starts(r, r->s, "{:}"))
        replace(r, strlen("{:}"), ":");
    else if (c == '{' && !is_argument(r) && (starts(r, r->s, "{-}") || starts(r, r->s, "{+}")))
        replace(r, strlen("{-}"), r->s[1] == '-' ? "-" : "+");
    else if (starts(r, r->s, "{}") && !is_argument(r))
        replace(r, strlen("{}"), " ");
    else if (!is_letter(c) || !rewrite_half_of_day(r))
        put(r, r->s++, 1);
}

bool math_rewrite(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    rewriter r = {.begin = s, .s = s, .end = s + n, .out = out, .cap = cap};
    while (r.s < r.end && !r.full)
        rewrite_one(&r);
    *len = r.used;
    return !r.full;
}
