/* Rewrites recurring decimals, and exponents such as 3e7. */
#include "evals/math/math_rewriter.h"

enum { kMaxRecurring = 60 }; /* digits of a recurring decimal */

/* A decimal: its digits before the point, after it, and those that recur. */
typedef struct {
    math_span whole, fixed;
    char recurring[kMaxRecurring];
    size_t count;
    const char *end;
} decimal;

static bool add_digits(decimal *d, const char *s, const char *end) {
    if (end == s || (size_t)(end - s) > kMaxRecurring - d->count)
        return false;
    memcpy(d->recurring + d->count, s, (size_t)(end - s));
    d->count += (size_t)(end - s);
    return true;
}

/* Reads {digits}, or one digit if @single. Returns the end, or NULL. */
static const char *read_group(const rewriter *r, decimal *d, const char *s, bool single) {
    s = skip_spaces(r, s);
    if (single && s < r->end && is_digit(*s))
        return add_digits(d, s, s + 1) ? s + 1 : NULL;
    if (s == r->end || *s != '{')
        return NULL;
    const char *from = skip_spaces(r, s + 1), *to = skip_digits(r, from),
               *close = skip_spaces(r, to);
    return close < r->end && *close == '}' && add_digits(d, from, to) ? close + 1 : NULL;
}

/* Reads \dot{1}4285\dot{7}: the first and the last digit that recur have a dot. */
static const char *read_dotted(const rewriter *r, decimal *d, const char *s) {
    const char *end = read_group(r, d, s, true);
    if (!end || d->count != 1)
        return NULL;
    const char *more = skip_digits(r, end);
    if (!starts(r, more, "\\dot") || starts(r, more, "\\dots"))
        return end;
    if (more > end && !add_digits(d, end, more))
        return NULL;
    return read_group(r, d, more + strlen("\\dot"), true);
}

/* Reads the dots of 0.333...: the digits before them must show a period twice, a single digit three
 * times. The period is copied from the fixed digits. */
static const char *read_dots(const rewriter *r, decimal *d, const char *s) {
    static const char *const dots[] = {"\\ldots", "\\dots", "\\cdots", "...", "\u2026"};
    const char *end = NULL;
    s = skip_spaces(r, s);
    for (size_t i = 0; i < COUNT(dots) && !end; i++)
        end = starts(r, s, dots[i]) ? s + strlen(dots[i]) : NULL;
    for (size_t period = 1; end && period <= 6; period++) {
        size_t shown = period == 1 ? 3 : 2 * period, n = d->fixed.len, same = period;
        if (n < shown)
            break;
        const char *last = d->fixed.s + n;
        while (same < shown && last[-1 - (ptrdiff_t)same] == last[-1 - (ptrdiff_t)(same - period)])
            same++;
        if (same == shown)
            return add_digits(d, last - period, last) ? end : NULL;
    }
    return NULL;
}

/* Reads the digits that recur after the fixed ones. Round brackets count only if no fixed digits
 * precede them. */
static const char *read_recurring(const rewriter *r, decimal *d, const char *s) {
    static const char macron[] = "\u0305";
    const char *at = skip_spaces(r, s);
    if (starts(r, at, "\\overline"))
        return read_group(r, d, at + strlen("\\overline"), true);
    if (starts(r, at, "\\bar"))
        return read_group(r, d, at + strlen("\\bar"), true);
    if (starts(r, at, "\\dot") && !starts(r, at, "\\dots"))
        return read_dotted(r, d, at + strlen("\\dot"));
    if (s < r->end && *s == '(' && d->fixed.len == 0) {
        const char *to = skip_digits(r, s + 1);
        return to < r->end && *to == ')' && add_digits(d, s + 1, to) ? to + 1 : NULL;
    }
    if (starts(r, s, macron) && d->fixed.len > 0) { /* the mark follows its digit */
        d->fixed.len--;
        const char *digit = d->fixed.s + d->fixed.len;
        while (digit < r->end && is_digit(*digit) && starts(r, digit + 1, macron)) {
            if (!add_digits(d, digit, digit + 1))
                return NULL;
            digit += 1 + strlen(macron);
        }
        return digit;
    }
    return read_dots(r, d, s);
}

/* Reads a recurring decimal at @s. */
static bool read_decimal(const rewriter *r, const char *s, decimal *d) {
    const char *point = skip_digits(r, s), *fixed = point + 1;
    if (point == r->end || *point != '.')
        return false;
    const char *end = skip_digits(r, fixed);
    *d = (decimal){.whole = {s, (uint32_t)(point - s)}, .fixed = {fixed, (uint32_t)(end - fixed)}};
    d->end = read_recurring(r, d, end);
    return d->end != NULL && d->count > 0;
}

/* Writes a recurring decimal as a fraction: 0.1\overline{6} is (16 - 1) / 90. */
static void put_recurring(rewriter *r, const decimal *d) {
    puts_to(r, "{\\frac{0");
    put(r, d->whole.s, d->whole.len);
    put(r, d->fixed.s, d->fixed.len);
    put(r, d->recurring, d->count);
    puts_to(r, "-0");
    put(r, d->whole.s, d->whole.len);
    put(r, d->fixed.s, d->fixed.len);
    puts_to(r, "}{");
    for (size_t i = 0; i < d->count; i++)
        puts_to(r, "9");
    for (size_t i = 0; i < d->fixed.len; i++)
        puts_to(r, "0");
    puts_to(r, "}}");
    r->s = d->end;
}

/* The end of an exponent such as the e7 of 3.3e7; NULL if there is none at @s. */
static const char *exponent_end(const rewriter *r, const char *s) {
    if (s == r->end || (*s != 'e' && *s != 'E'))
        return NULL;
    const char *digits = s + 1;
    digits += digits < r->end && (*digits == '-' || *digits == '+');
    const char *end = skip_digits(r, digits);
    bool ends = end == r->end || (!is_letter(*end) && *end != '.' && *end != '_' && *end != '^');
    return end > digits && end - digits <= 3 && ends ? end : NULL;
}

void math_rewrite_number(rewriter *r) {
    decimal d;
    if (read_decimal(r, r->s, &d)) {
        put_recurring(r, &d);
        return;
    }
    const char *from = r->s, *to = skip_digits(r, from);
    if (to < r->end && *to == '.' && to + 1 < r->end && is_digit(to[1]))
        to = skip_digits(r, to + 1);
    to += to == from; /* copies a full stop without digits, too */
    put(r, from, (size_t)(to - from));
    r->s = to;
    const char *end = exponent_end(r, to);
    if (end && is_digit(to[-1])) {
        puts_to(r, " \\cdot 10^{");
        put(r, to + 1, (size_t)(end - to) - 1);
        puts_to(r, "}");
        r->s = end;
    }
}
