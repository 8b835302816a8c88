#include <stdint.h>
#include <string.h>

#include "evals/code/compare.h"

/* ---- white space ---- */

/* True for the three bytes of U+1680, U+2000..U+200A, U+2028, U+2029, U+202F, U+205F, U+3000. */
static bool is_wide_space(const unsigned char *s) {
    if (s[0] == 0xe2 && s[1] == 0x80)
        return (s[2] >= 0x80 && s[2] <= 0x8a) || s[2] == 0xa8 || s[2] == 0xa9 || s[2] == 0xaf;
    return (s[0] == 0xe2 && s[1] == 0x81 && s[2] == 0x9f) ||
           (s[0] == 0xe3 && s[1] == 0x80 && s[2] == 0x80) ||
           (s[0] == 0xe1 && s[1] == 0x9a && s[2] == 0x80);
}

/* Length in bytes of the white space character at the start; 0 if there is none. White space is
 * what Python's str.isspace() accepts. */
static size_t space_at(const char *text, size_t n) {
    const unsigned char *s = (const unsigned char *)text;
    if (!n)
        return 0;
    if ((s[0] >= 9 && s[0] <= 13) || (s[0] >= 0x1c && s[0] <= 0x20))
        return 1;
    if (n >= 2 && s[0] == 0xc2 && (s[1] == 0x85 || s[1] == 0xa0))
        return 2;
    return n >= 3 && is_wide_space(s) ? 3 : 0;
}

static span strip(span s) {
    size_t step, end = 0;
    while ((step = space_at(s.s, s.n)) > 0) {
        s.s += step;
        s.n -= step;
    }
    for (size_t i = 0; i < s.n; i += step ? step : 1) {
        step = space_at(s.s + i, s.n - i);
        if (!step)
            end = i + 1;
    }
    s.n = end;
    return s;
}

/* Removes the first word from a stripped line; false at the end of the line. */
static bool next_word(span *line, span *word) {
    size_t step, n = 0;
    while ((step = space_at(line->s, line->n)) > 0) {
        line->s += step;
        line->n -= step;
    }
    while (n < line->n && !space_at(line->s + n, line->n - n))
        n++;
    *word = (span){line->s, n};
    line->s += n;
    line->n -= n;
    return n > 0;
}

/* ---- decimal numbers ---- */

/* A number is sign 0.d1d2d3... * 10^scale, where d1 and the last digit are not zero. The digits are
 * those in `digits`, which may also contain a point and underscores. */
typedef struct {
    bool negative, infinite, nan;
    span digits; /* empty for zero */
    int64_t scale;
} decimal;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Skips underscores at the start of @s. Python's Decimal() ignores underscores anywhere in a
 * number, so signs and the letters of inf and nan are read after this call. The loops over digits
 * skip underscores themselves. */
static span skip_underscores(span s) {
    while (s.n && s.s[0] == '_')
        s = (span){s.s + 1, s.n - 1};
    return s;
}

/* Removes underscores at the start, and a sign after them. True for a minus sign. */
static bool take_sign(span *s) {
    *s = skip_underscores(*s);
    bool minus = s->n && s->s[0] == '-';
    if (s->n && (s->s[0] == '-' || s->s[0] == '+'))
        *s = (span){s->s + 1, s->n - 1};
    return minus;
}

static bool same_letters(span s, const char *small) {
    for (; *small; small++) {
        s = skip_underscores(s);
        if (!s.n || (s.s[0] | 0x20) != *small)
            return false;
        s = (span){s.s + 1, s.n - 1};
    }
    return !skip_underscores(s).n;
}

static bool read_special(span s, decimal *out) {
    out->infinite = same_letters(s, "inf") || same_letters(s, "infinity");
    out->nan = same_letters(s, "nan") || same_letters(s, "snan");
    return out->infinite || out->nan;
}

/* Reads the exponent after 'e'. False if it is malformed or exceeds the range of Python's
 * decimals. */
static bool read_exponent(span s, int64_t *out) {
    bool minus = take_sign(&s), any = false;
    int64_t value = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] == '_')
            continue;
        if (!is_digit(s.s[i]) || value > 99999999999999999)
            return false;
        value = 10 * value + (s.s[i] - '0');
        any = true;
    }
    *out = minus ? -value : value;
    return any;
}

/* Finds the digits of the mantissa without leading and trailing zeros, and the position of the
 * point. False if the mantissa is malformed. */
static bool read_mantissa(span s, decimal *out) {
    size_t first = s.n, last = 0;
    int64_t before = 0; /* position of the point, counted from the first nonzero digit */
    bool any = false, point = false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] == '.' && !point) {
            point = true;
        } else if (is_digit(s.s[i])) {
            any = true;
            if (s.s[i] != '0') {
                first = first == s.n ? i : first;
                last = i;
            }
            if (!point)
                before += first != s.n;
            else
                before -= first == s.n;
        } else if (s.s[i] != '_') {
            return false;
        }
    }
    out->scale = before;
    if (first < s.n)
        out->digits = (span){s.s + first, last - first + 1};
    return any;
}

static bool read_decimal(span s, decimal *out) {
    int64_t exponent = 0;
    size_t e = 0;
    *out = (decimal){.negative = take_sign(&s)};
    if (read_special(s, out))
        return true;
    while (e < s.n && (s.s[e] | 0x20) != 'e')
        e++;
    if (e < s.n && !read_exponent((span){s.s + e + 1, s.n - e - 1}, &exponent))
        return false;
    if (!read_mantissa((span){s.s, e}, out))
        return false;
    out->scale += exponent;
    return true;
}

static bool same_digits(span a, span b) {
    size_t i = 0, k = 0;
    for (;;) {
        while (i < a.n && !is_digit(a.s[i]))
            i++;
        while (k < b.n && !is_digit(b.s[k]))
            k++;
        if (i == a.n || k == b.n)
            return i == a.n && k == b.n;
        if (a.s[i++] != b.s[k++])
            return false;
    }
}

static bool same_number(const decimal *a, const decimal *b) {
    if (a->nan || b->nan)
        return false;
    if (a->infinite || b->infinite)
        return a->infinite && b->infinite && a->negative == b->negative;
    if (!a->digits.n || !b->digits.n)
        return !a->digits.n && !b->digits.n;
    return a->negative == b->negative && a->scale == b->scale && same_digits(a->digits, b->digits);
}

/* ---- lines ---- */

static bool same_numbers(span a, span b) {
    span x, y;
    decimal p, q;
    for (;;) {
        bool more = next_word(&a, &x);
        if (next_word(&b, &y) != more)
            return false;
        if (!more)
            return true;
        if (!read_decimal(x, &p) || !read_decimal(y, &q) || !same_number(&p, &q))
            return false;
    }
}

static bool same_line(span a, span b) {
    a = strip(a);
    b = strip(b);
    return (a.n == b.n && memcmp(a.s, b.s, a.n) == 0) || same_numbers(a, b);
}

/* Removes the next line and returns it without its newline. */
static span next_line(span *text, bool *more) {
    const char *end = memchr(text->s, '\n', text->n);
    span line = {text->s, end ? (size_t)(end - text->s) : text->n};
    *more = end != NULL;
    text->s += line.n + (end != NULL);
    text->n -= line.n + (end != NULL);
    return line;
}

bool compare_output(span got, span expected) {
    bool more = true, more_expected = true;
    got = strip(got);
    expected = strip(expected);
    while (more && more_expected) {
        span a = next_line(&got, &more), b = next_line(&expected, &more_expected);
        if (!same_line(a, b))
            return false;
    }
    return !more && !more_expected;
}
