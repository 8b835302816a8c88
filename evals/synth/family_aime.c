/* family_aime.c - problems whose answers are integers from 0 to 999: powers and recurrences modulo
 * m, grid paths, sieves, remainders. */
#include "evals/synth/family.h"

#define LL(x) ((long long)(x))

static void box(synth_problem *p, int64_t value) {
    say(&p->answer, "%lld", LL(value));
    family_box(p);
}

/* ---- a^n mod m: halve the exponent down to 1, then square the powers up ---- */

enum { kBits = 40 };

static bool power(synth_problem *p, rng *r) {
    int64_t m = draw(r, BY_LEVEL(p, 5, 11, 50, 100, 200, 200),
                     BY_LEVEL(p, 19, 99, 300, 999, 999, 999)),
            a = draw(r, 2,
                     m < BY_LEVEL(p, 9, 20, 99, 300, 999, 999)
                         ? m - 1
                         : BY_LEVEL(p, 9, 20, 99, 300, 999, 999)),
            n = draw(r, BY_LEVEL(p, 2, 5, 12, 40, 1000, 100000),
                     BY_LEVEL(p, 5, 15, 60, 400, 60000, 999999));
    int64_t half[kBits], x = a;
    int top = 0;
    say(&p->params, " a=%lld n=%lld m=%lld", LL(a), LL(n), LL(m));
    say(&p->problem, "Find the remainder when %lld^%lld is divided by %lld.", LL(a), LL(n), LL(m));
    for (half[0] = n; half[top] > 1; top++) {
        half[top + 1] = half[top] / 2;
        say(&p->solution, "%lld=2*%lld+%lld\n", LL(half[top]), LL(half[top + 1]),
            LL(half[top] % 2));
    }
    say(&p->solution, "%lld^1: %lld\n", LL(a), LL(a));
    while (top-- > 0) {
        say(&p->solution, "%lld^%lld: ", LL(a), LL(half[top]));
        x = work_multiply(&p->solution, x, x);
        say(&p->solution, "\n");
        x = work_remainder(&p->solution, x, m);
        if (half[top] % 2) {
            x = work_multiply(&p->solution, x, a);
            say(&p->solution, "\n");
            x = work_remainder(&p->solution, x, m);
        }
    }
    box(p, x);
    return true;
}

/* ---- a linear recurrence; each new term is reduced modulo m ---- */

static bool recurrence(synth_problem *p, rng *r) {
    int64_t m = draw(r, BY_LEVEL(p, 10, 20, 30, 100, 100, 100),
                     BY_LEVEL(p, 30, 99, 300, 999, 999, 999)),
            n = draw(r, BY_LEVEL(p, 3, 5, 9, 14, 30, 91), BY_LEVEL(p, 4, 8, 13, 25, 90, 110)),
            b = draw(r, 1, 9), c = draw(r, 1, 9), before = draw(r, 1, 9), last = draw(r, 1, 9);
    say(&p->params, " b=%lld c=%lld x=%lld y=%lld n=%lld m=%lld", LL(b), LL(c), LL(before),
        LL(last), LL(n), LL(m));
    say(&p->problem,
        "A sequence has a_1=%lld, a_2=%lld and a_k=%lld*a_{k-1}+%lld*a_{k-2} for k>2. Find the "
        "remainder when a_%lld is divided by %lld.",
        LL(before), LL(last), LL(b), LL(c), LL(n), LL(m));
    say(&p->solution, "a_1: %lld\na_2: %lld\n", LL(before), LL(last));
    for (int64_t k = 3; k <= n; k++) {
        say(&p->solution, "a_%lld: ", LL(k));
        int64_t next = work_cross(&p->solution, b, last, c, before);
        say(&p->solution, "\n");
        before = last;
        last = work_remainder(&p->solution, next, m);
    }
    box(p, last);
    return true;
}

/* ---- paths in a grid with holes, row by row ---- */

enum { kSide = 12, kHoles = 4, kModulus = 1000 };

static bool paths(synth_problem *p, rng *r) {
    int64_t w = draw(r, BY_LEVEL(p, 2, 3, 4, 5, 8), BY_LEVEL(p, 4, 5, 6, 7, 11)),
            h = draw(r, BY_LEVEL(p, 2, 3, 4, 5, 8), BY_LEVEL(p, 4, 5, 6, 7, 11)),
            above[kSide] = {0};
    bool hole[kSide][kSide] = {{false}};
    int holes = (int)draw(r, 1, p->level < kHoles ? p->level : kHoles);
    for (int i = 0; i < holes; i++) {
        int64_t x = draw(r, 0, w), y = draw(r, 0, h);
        hole[y][x] = true;
    }
    if (hole[0][0] || hole[h][w])
        return false;
    say(&p->params, " w=%lld h=%lld without", LL(w), LL(h));
    say(&p->problem, "A path goes from (0,0) to (%lld,%lld) by unit steps right and up and avoids",
        LL(w), LL(h));
    for (int64_t y = 0; y <= h; y++)
        for (int64_t x = 0; x <= w; x++)
            if (hole[y][x]) {
                say(&p->params, " %lld,%lld", LL(x), LL(y));
                say(&p->problem, " (%lld,%lld)", LL(x), LL(y));
            }
    say(&p->problem, ". Find the remainder when the number of such paths is divided by %d.",
        kModulus);
    for (int64_t y = 0; y <= h; y++) {
        int64_t left = 0;
        for (int64_t x = 0; x <= w; x++) {
            int64_t sum = x + y ? left + above[x] : 1;
            if (hole[y][x])
                say(&p->solution, "(%lld,%lld) none 0\n", LL(x), LL(y));
            else if (x + y == 0)
                say(&p->solution, "(0,0) 1\n");
            else
                say(&p->solution, "(%lld,%lld) %lld+%lld=%lld\n", LL(x), LL(y), LL(left),
                    LL(above[x]), LL(sum));
            if (!hole[y][x] && sum >= kModulus)
                say(&p->solution, "%lld-%d=%lld\n", LL(sum), kModulus, LL(sum - kModulus));
            left = above[x] = hole[y][x] ? 0 : sum % kModulus;
        }
    }
    box(p, above[w]);
    return true;
}

/* ---- inclusion and exclusion ---- */

enum { kPrimes = 6 };

static bool sieve(synth_problem *p, rng *r) {
    static const int64_t primes[kPrimes] = {2, 3, 5, 7, 11, 13};
    int64_t n = draw(r, BY_LEVEL(p, 20, 50, 100, 300, 600), BY_LEVEL(p, 99, 300, 700, 999, 999));
    int64_t divisor[kPrimes], count = n;
    int k = (int)BY_LEVEL(p, 1, 2, 2, 3, 5), d = 0;
    for (int i = 0; i < kPrimes && d < k; i++)
        if (draw(r, 0, kPrimes - 1 - i) < k - d)
            divisor[d++] = primes[i];
    say(&p->params, " n=%lld by", LL(n));
    say(&p->problem, "How many of the integers from 1 to %lld are divisible by none of the primes",
        LL(n));
    for (int i = 0; i < d; i++) {
        say(&p->params, " %lld", LL(divisor[i]));
        say(&p->problem, "%s %lld", i ? "," : "", LL(divisor[i]));
    }
    say(&p->problem, "?");
    for (int set = 1; set < 1 << d; set++) {
        int64_t product = 1, rest;
        int members = 0;
        for (int i = 0; i < d; i++)
            if (set >> i & 1) {
                say(&p->solution, "%s%lld", members++ ? "*" : "", LL(divisor[i]));
                product *= divisor[i];
            }
        if (members > 1)
            say(&p->solution, "=%lld", LL(product));
        say(&p->solution, "\n");
        int64_t q = work_divide(&p->solution, n, product, &rest);
        say(&p->solution, members % 2 ? "%lld-%lld=%lld\n" : "%lld+%lld=%lld\n", LL(count), LL(q),
            LL(members % 2 ? count - q : count + q));
        count += members % 2 ? -q : q;
    }
    box(p, count);
    return true;
}

/* ---- two or three remainders: try candidates in turn ---- */

static bool remainders(synth_problem *p, rng *r) {
    int k = p->level > 2 ? 3 : 2;
    int64_t top = BY_LEVEL(p, 9, 15, 9, 11, 0), m[3] = {0}, want[3] = {0}, x, step;
    for (int i = 0; i < k; i++) {
        m[i] = draw(r, 3, top);
        want[i] = draw(r, 0, m[i] - 1);
        for (int j = 0; j < i; j++)
            if (gcd_of(m[i], m[j]) > 1)
                return false;
    }
    say(&p->problem, "Find the least integer that is not negative and leaves");
    for (int i = 0; i < k; i++) {
        say(&p->params, " %lld mod %lld", LL(want[i]), LL(m[i]));
        say(&p->problem, "%s remainder %lld when divided by %lld", i ? " and" : "", LL(want[i]),
            LL(m[i]));
    }
    say(&p->problem, ".");
    x = want[0];
    step = m[0];
    for (int i = 1; i < k; i++) {
        say(&p->solution, "step %lld, wanted %lld mod %lld\n", LL(step), LL(want[i]), LL(m[i]));
        for (;;) {
            say(&p->solution, "%lld: ", LL(x));
            int64_t rest = work_remainder(&p->solution, x, m[i]);
            if (x < m[i])
                say(&p->solution, "%lld<%lld\n", LL(x), LL(m[i]));
            if (rest == want[i])
                break;
            say(&p->solution, "%lld+%lld=%lld\n", LL(x), LL(step), LL(x + step));
            x += step;
        }
        if (i + 1 < k) {
            step = work_multiply(&p->solution, step, m[i]);
            say(&p->solution, "\n");
        }
    }
    box(p, x);
    return true;
}

const synth_family synth_aime_families[] = {
    {"power", power, 1, 6}, {"recurrence", recurrence, 1, 6}, {"paths", paths, 1, 5},
    {"sieve", sieve, 1, 5}, {"remainders", remainders, 1, 4}, {NULL, NULL, 0, 0}};
