/* family_math.c - problems whose answers are LaTeX: fractions, radicals, polynomials, linear
 * systems, roots. */
#include <stdlib.h>

#include "evals/synth/family.h"

#define LL(x) ((long long)(x))

/* Writes the coefficient before a name: "", "-", "+2", "-3"; the first one has no "+". */
static void say_coefficient(buf *out, int64_t k, bool first) {
    if (k == 1)
        say(out, first ? "" : "+");
    else if (k == -1)
        say(out, "-");
    else
        say(out, first ? "%lld" : "%+lld", LL(k));
}

/* ---- sums of fractions, reduced after every step ---- */

enum { kTerms = 11 };

static void say_fraction(buf *out, int64_t n, int64_t d) {
    if (d == 1)
        say(out, "%lld", LL(n));
    else
        say(out, n < 0 ? "-\\frac{%lld}{%lld}" : "\\frac{%lld}{%lld}", LL(llabs(n)), LL(d));
}

/* Computes a/b + c/d: over the least common denominator, then reduced. */
static void add_fraction(buf *w, int64_t *a, int64_t *b, int64_t c, int64_t d) {
    int64_t rest, g = work_gcd(w, *b, d), left = work_divide(w, d, g, &rest),
                  right = work_divide(w, *b, g, &rest);
    int64_t common = work_multiply(w, *b, left);
    say(w, "\n");
    int64_t x = work_multiply(w, llabs(*a), left) * (*a < 0 ? -1 : 1);
    say(w, "\n");
    int64_t y = work_multiply(w, llabs(c), right) * (c < 0 ? -1 : 1);
    say(w, "\n%lld%+lld=%lld\n", LL(x), LL(y), LL(x + y));
    *a = x + y;
    *b = common;
    if (*a == 0)
        return;
    g = work_gcd(w, llabs(*a), *b);
    if (g == 1)
        return;
    *a = work_divide(w, llabs(*a), g, &rest) * (*a < 0 ? -1 : 1);
    *b = work_divide(w, *b, g, &rest);
}

/* From level 4 on, sums have four terms and more. Their denominators are then divisors of 5040, so
 * that the common denominator of a sum stays small. */
static int64_t draw_denominator(synth_problem *p, rng *r) {
    static const int64_t kSmooth = 5040;
    if (p->level < 4)
        return draw(r, 2, BY_LEVEL(p, 9, 15, 20, 0, 0));
    for (;;) {
        int64_t d = draw(r, 2, BY_LEVEL(p, 0, 0, 0, 30, 60, 60));
        if (kSmooth % d == 0)
            return d;
    }
}

static bool fractions(synth_problem *p, rng *r) {
    int n = (int)draw(r, BY_LEVEL(p, 2, 2, 3, 4, 6, 10), BY_LEVEL(p, 2, 3, 4, 5, 9, kTerms));
    int64_t a = 0, b = 1;
    say(&p->problem, "Compute $");
    for (int i = 0; i < n; i++) {
        int64_t d = draw_denominator(p, r), c = draw(r, 1, d - 1);
        while (gcd_of(c, d) > 1)
            c = draw(r, 1, d - 1);
        if (i && p->level > 1 && draw(r, 0, 1))
            c = -c;
        say(&p->params, " %lld/%lld", LL(c), LL(d));
        say(&p->problem, i && c > 0 ? "+" : "");
        say_fraction(&p->problem, c, d);
        if (i) {
            say(&p->solution, "%lld/%lld%+lld/%lld\n", LL(a), LL(b), LL(c), LL(d));
            add_fraction(&p->solution, &a, &b, c, d);
            say(&p->solution, "sum %lld/%lld\n", LL(a), LL(b));
            if (a == 0)
                return false;
        } else {
            a = c;
            b = d;
        }
    }
    say(&p->problem, "$ as a fraction in lowest terms.");
    say_fraction(&p->answer, a, b);
    family_box(p);
    return true;
}

/* ---- radicals ---- */

/* Computes sqrt(n) = *outside * sqrt(result), one prime at a time. */
static int64_t work_sqrt(buf *w, int64_t n, int64_t *outside) {
    int64_t left = n, inside = 1, prime = 2;
    *outside = 1;
    while (left > 1) {
        while (left % prime)
            prime += prime == 2 ? 1 : 2;
        if (left / prime % prime == 0) {
            say(w, "%lld=%lld*%lld*%lld, out %lld*%lld=%lld\n", LL(left), LL(prime), LL(prime),
                LL(left / prime / prime), LL(*outside), LL(prime), LL(*outside * prime));
            *outside *= prime;
            left /= prime * prime;
        } else {
            say(w, "%lld=%lld*%lld, in %lld*%lld=%lld\n", LL(left), LL(prime), LL(left / prime),
                LL(inside), LL(prime), LL(inside * prime));
            inside *= prime;
            left /= prime;
        }
    }
    return inside;
}

static bool radicals(synth_problem *p, rng *r) {
    static const int64_t free_of_squares[] = {2, 3, 5, 6, 7, 10};
    int n = (int)BY_LEVEL(p, 1, 2, 3, 5, 0);
    int64_t s = free_of_squares[draw(r, 0, 5)], sum = 0;
    say(&p->problem, "Simplify $");
    for (int i = 0; i < n; i++) {
        int64_t root = draw(r, 2, BY_LEVEL(p, 15, 15, 16, 20, 0)), outside,
                k = p->level < 3 ? draw(r, 1, 9) : draw_nonzero(r, -5, 6);
        int64_t inside = root * root * s;
        say(&p->params, " %lld*%lld", LL(k), LL(inside));
        say_coefficient(&p->problem, k, i == 0);
        say(&p->problem, "\\sqrt{%lld}", LL(inside));
        say(&p->solution, "\\sqrt{%lld}:\n", LL(inside));
        (void)work_sqrt(&p->solution, inside, &outside);
        say(&p->solution, "%lld*%lld=%lld\n", LL(k), LL(outside), LL(k * outside));
        if (i)
            say(&p->solution, "%lld%+lld=%lld\n", LL(sum), LL(k * outside), LL(sum + k * outside));
        sum += k * outside;
    }
    say(&p->problem, "$.");
    if (sum == 0 || sum == 1 || sum == -1)
        return false;
    say(&p->answer, "%lld\\sqrt{%lld}", LL(sum), LL(s));
    family_box(p);
    return true;
}

/* ---- products of linear factors ---- */

enum { kDegree = 10 };

/* Writes a polynomial such as "2x^2-x+3", highest power first; c[i] belongs to x^i. */
static void say_polynomial(buf *out, const int64_t *c, int degree) {
    bool first = true;
    for (int i = degree; i >= 0; i--) {
        if (!c[i])
            continue;
        if (i)
            say_coefficient(out, c[i], first);
        else
            say(out, first ? "%lld" : "%+lld", LL(c[i]));
        if (i > 1)
            say(out, "x^%d", i);
        else if (i)
            say(out, "x");
        first = false;
    }
}

static void multiply_linear(buf *w, int64_t *c, int degree, int64_t a, int64_t b) {
    int64_t out[kDegree + 1] = {0};
    for (int i = degree + 1; i >= 0; i--) {
        say(w, "x^%d: ", i);
        if (i > degree) {
            say(w, "%lld*%lld=%lld\n", LL(a), LL(c[i - 1]), LL(a * c[i - 1]));
            out[i] = a * c[i - 1];
        } else if (i == 0) {
            say(w, "%lld*", LL(b));
            say_factor(w, c[0]);
            say(w, "=%lld\n", LL(b * c[0]));
            out[0] = b * c[0];
        } else {
            out[i] = work_cross(w, a, c[i - 1], b, c[i]);
            say(w, "\n");
        }
    }
    for (int i = 0; i <= degree + 1; i++)
        c[i] = out[i];
}

static bool expand(synth_problem *p, rng *r) {
    int n = (int)draw(r, BY_LEVEL(p, 2, 2, 3, 4, 8, 10), BY_LEVEL(p, 2, 3, 4, 6, 9, kDegree));
    int64_t c[kDegree + 1] = {1}, factor[kDegree][2];
    for (int i = 0; i < n; i++) {
        int64_t a = draw(r, 1, BY_LEVEL(p, 2, 3, 3, 3, 1, 1)),
                b = draw_nonzero(r, -BY_LEVEL(p, 9, 9, 9, 9, 5, 5), BY_LEVEL(p, 9, 9, 9, 9, 5, 5));
        int at = i; /* sorted, so that equal products are the same problem */
        for (; at && (factor[at - 1][0] > a || (factor[at - 1][0] == a && factor[at - 1][1] > b));
             at--) {
            factor[at][0] = factor[at - 1][0];
            factor[at][1] = factor[at - 1][1];
        }
        factor[at][0] = a;
        factor[at][1] = b;
    }
    say(&p->problem, "Expand $");
    for (int i = 0; i < n; i++) {
        int64_t linear[2] = {factor[i][1], factor[i][0]};
        say(&p->params, " %lldx%+lld", LL(factor[i][0]), LL(factor[i][1]));
        say(&p->problem, "(");
        say_polynomial(&p->problem, linear, 1);
        say(&p->problem, ")");
        if (i)
            multiply_linear(&p->solution, c, i, linear[1], linear[0]);
        else
            c[0] = linear[0], c[1] = linear[1];
        if (i) {
            say_polynomial(&p->solution, c, i + 1);
            say(&p->solution, "\n");
        }
    }
    say(&p->problem, "$.");
    say_polynomial(&p->answer, c, n);
    family_box(p);
    return true;
}

/* ---- linear systems by Cramer's rule ---- */

enum { kUnknowns = 3 };

static int64_t work_det2(buf *w, int64_t a, int64_t b, int64_t c, int64_t d) {
    return work_cross(w, a, d, -b, c);
}

/* Computes the determinant of m along its first row; v replaces column @swap (-1: none). */
static int64_t work_det(buf *w, int n, int64_t m[kUnknowns][kUnknowns], const int64_t *v,
                        int swap) {
    int64_t x[kUnknowns][kUnknowns] = {{0}};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            x[i][j] = j == swap ? v[i] : m[i][j];
    if (n == 2) {
        int64_t det = work_det2(w, x[0][0], x[0][1], x[1][0], x[1][1]);
        say(w, "\n");
        return det;
    }
    for (int i = 0; i < n; i++)
        say(w, "%lld,%lld,%lld\n", LL(x[i][0]), LL(x[i][1]), LL(x[i][2]));
    int64_t minor[kUnknowns] = {0}, product[kUnknowns] = {0}, det = 0;
    for (int j = 0; j < n; j++) {
        int p = j == 0, q = j == 2 ? 1 : 2;
        minor[j] = work_det2(w, x[1][p], x[1][q], x[2][p], x[2][q]);
        say(w, "\n");
    }
    for (int j = 0; j < n; j++) {
        int64_t by = j == 1 ? -x[0][j] : x[0][j];
        product[j] = by * minor[j];
        say(w, "%lld*", LL(by));
        say_factor(w, minor[j]);
        say(w, "=%lld\n", LL(product[j]));
        det += product[j];
    }
    say(w, "%lld%+lld%+lld=%lld\n", LL(product[0]), LL(product[1]), LL(product[2]), LL(det));
    return det;
}

static void say_linear(buf *out, int n, const int64_t *row, int64_t right) {
    bool first = true;
    for (int j = 0; j < n; j++) {
        if (!row[j])
            continue;
        say_coefficient(out, row[j], first);
        say(out, "%c", "xyz"[j]);
        first = false;
    }
    say(out, "=%lld", LL(right));
}

static bool linear_system(synth_problem *p, rng *r) {
    int n = p->level < 3 ? 2 : 3;
    int64_t m[kUnknowns][kUnknowns], root[kUnknowns], right[kUnknowns] = {0}, det;
    int64_t most = BY_LEVEL(p, 3, 7, 3, 6, 0), largest = BY_LEVEL(p, 5, 12, 5, 9, 0);
    for (int i = 0; i < n; i++)
        root[i] = draw(r, -largest, largest);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            m[i][j] = draw(r, -most, most);
            right[i] += m[i][j] * root[j];
        }
    say(&p->problem, "Solve the system");
    for (int i = 0; i < n; i++) {
        if (!m[i][0] && !m[i][1] && (n == 2 || !m[i][2]))
            return false;
        say(&p->params, i ? " / " : " ");
        say_linear(&p->params, n, m[i], right[i]);
        say(&p->problem, i ? ", $" : " $");
        say_linear(&p->problem, n, m[i], right[i]);
        say(&p->problem, "$");
    }
    say(&p->problem, n == 2 ? " and give $(x,y)$." : " and give $(x,y,z)$.");
    say(&p->solution, "D:\n");
    det = work_det(&p->solution, n, m, NULL, -1);
    if (det == 0)
        return false;
    for (int j = 0; j < n; j++) {
        say(&p->solution, "D%c:\n", "xyz"[j]);
        int64_t d = work_det(&p->solution, n, m, right, j);
        say(&p->solution, "%lld/", LL(d));
        say_factor(&p->solution, det);
        say(&p->solution, "=%lld\n", LL(root[j]));
        say(&p->answer, "%s%lld", j ? "," : "(", LL(root[j]));
    }
    say(&p->answer, ")");
    family_box(p);
    return true;
}

/* ---- the larger root of x^2 + bx + c ---- */

static bool is_square(int64_t n, int64_t *root) {
    for (*root = 0; *root * *root < n; ++*root)
        ;
    return *root * *root == n;
}

/* Writes the root (-b + outside sqrt(inside)) / 2 in lowest terms. */
static void box_root(synth_problem *p, int64_t b, int64_t outside, int64_t inside) {
    bool whole = b % 2 == 0 && outside % 2 == 0;
    int64_t over = whole ? 2 : 1;
    if (whole)
        say(&p->solution, "%lld/2=%lld, %lld/2=%lld\n", LL(-b), LL(-b / 2), LL(outside),
            LL(outside / 2));
    say(&p->answer, whole ? "" : "\\frac{");
    say(&p->answer, "%lld+", LL(-b / over));
    say_coefficient(&p->answer, outside / over, true);
    say(&p->answer, "\\sqrt{%lld}%s", LL(inside), whole ? "" : "}{2}");
    family_box(p);
}

static bool roots(synth_problem *p, rng *r) {
    int64_t most = BY_LEVEL(p, 15, 15, 30, 50, 0), x = draw_nonzero(r, -most, most),
            y = draw_nonzero(r, -most, most), root, outside;
    int64_t b = p->level == 1 ? -x - y : x, c = p->level == 1 ? x * y : y, d = b * b - 4 * c;
    int64_t coefficients[] = {c, b, 1};
    if (d <= 0 || b == 0)
        return false;
    say(&p->params, " b=%lld c=%lld", LL(b), LL(c));
    say(&p->problem, "Find the larger root of $");
    say_polynomial(&p->problem, coefficients, 2);
    say(&p->problem, "=0$.");
    say(&p->solution, "%lld*%lld=%lld\n4*", LL(llabs(b)), LL(llabs(b)), LL(b * b));
    say_factor(&p->solution, c);
    say(&p->solution, "=%lld\n%lld%+lld=%lld\n", LL(4 * c), LL(b * b), LL(-4 * c), LL(d));
    if (is_square(d, &root)) {
        if (p->level > 1)
            return false;
        say(&p->solution, "%lld*%lld=%lld\n%lld+%lld=%lld\n%lld/2=%lld\n", LL(root), LL(root),
            LL(d), LL(-b), LL(root), LL(root - b), LL(root - b), LL((root - b) / 2));
        say(&p->answer, "%lld", LL((root - b) / 2));
        family_box(p);
        return true;
    }
    int64_t inside = work_sqrt(&p->solution, d, &outside);
    box_root(p, b, outside, inside);
    return true;
}

const synth_family synth_math_families[] = {
    {"fractions", fractions, 1, 6},  {"radicals", radicals, 1, 4}, {"expand", expand, 1, 6},
    {"system", linear_system, 1, 4}, {"roots", roots, 1, 4},       {NULL, NULL, 0, 0}};
