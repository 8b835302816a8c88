#include "evals/synth/work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { kDigits = 20, kText = 512 };

#define LL(x) ((long long)(x))

void say(buf *out, const char *fmt, ...) {
    char text[kText];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        SNAP_BUG("a piece of a solution is too long");
    (void)buf_append(out, text, (size_t)n);
}

int64_t gcd_of(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

void say_factor(buf *out, int64_t a) {
    say(out, a < 0 ? "(%lld)" : "%lld", LL(a));
}

/* Splits b into its nonzero digits times their powers of ten, lowest first. */
static int split_places(int64_t b, int64_t part[kDigits]) {
    int n = 0;
    for (int64_t place = 1; b; place *= 10, b /= 10)
        if (b % 10)
            part[n++] = b % 10 * place;
    return n;
}

int64_t work_multiply(buf *out, int64_t a, int64_t b) {
    int64_t part[kDigits] = {0};
    int n = split_places(b, part);
    say(out, "%lld*%lld", LL(a), LL(b));
    if (n > 1 && a > 9) {
        for (int i = 0; i < n; i++)
            say(out, "%s%lld*%lld", i ? "+" : "=", LL(a), LL(part[i]));
        int64_t sum = a * part[0];
        for (int first = 1; first < n; first++) {
            say(out, "=%lld", LL(sum));
            for (int i = first; i < n; i++)
                say(out, "+%lld", LL(a * part[i]));
            sum += a * part[first];
        }
    }
    say(out, "=%lld", LL(a * b));
    return a * b;
}

/* Long division: starts with the leading digits that reach m, then takes one more digit per
 * step. */
static int64_t divide(buf *out, int64_t a, int64_t m, int64_t *quotient) {
    char digits[kDigits + 2];
    int n = snprintf(digits, sizeof digits, "%lld", LL(a)), at = 0;
    int64_t rest = 0;
    *quotient = 0;
    while (at < n && rest < m)
        rest = 10 * rest + digits[at++] - '0';
    for (bool first = true;; first = false) {
        int64_t q = rest / m;
        say(out, "%s%lld-%lld*%lld=%lld-%lld=%lld", first ? "" : "; ", LL(rest), LL(q), LL(m),
            LL(rest), LL(q * m), LL(rest - q * m));
        rest -= q * m;
        *quotient = 10 * *quotient + q;
        if (at == n)
            return rest;
        rest = 10 * rest + digits[at++] - '0';
    }
}

int64_t work_remainder(buf *out, int64_t a, int64_t m) {
    int64_t quotient;
    if (a < m)
        return a;
    say(out, "%lld mod %lld: ", LL(a), LL(m));
    int64_t rest = divide(out, a, m, &quotient);
    say(out, "\n");
    return rest;
}

int64_t work_divide(buf *out, int64_t a, int64_t m, int64_t *rest) {
    int64_t quotient = 0;
    *rest = a % m;
    if (m < 10 && a % m == 0) {
        say(out, "%lld/%lld=%lld\n", LL(a), LL(m), LL(a / m));
        return a / m;
    }
    say(out, "%lld/%lld: ", LL(a), LL(m));
    if (a < m)
        say(out, "%lld<%lld", LL(a), LL(m));
    else
        *rest = divide(out, a, m, &quotient);
    say(out, "; quotient %lld\n", LL(quotient));
    return quotient;
}

int64_t work_gcd(buf *out, int64_t a, int64_t b) {
    int64_t x = a > b ? a : b, y = a > b ? b : a;
    while (y) {
        int64_t rest = work_remainder(out, x, y);
        x = y;
        y = rest;
    }
    say(out, "gcd(%lld,%lld)=%lld\n", LL(a), LL(b), LL(x));
    return x;
}

int64_t work_cross(buf *out, int64_t a, int64_t b, int64_t c, int64_t d) {
    say(out, "%lld*", LL(a));
    say_factor(out, b);
    say(out, c < 0 ? "%lld*" : "+%lld*", LL(c));
    say_factor(out, d);
    say(out, "=%lld%+lld=%lld", LL(a * b), LL(c * d), LL(a * b + c * d));
    return a * b + c * d;
}
