#include "evals/distributions.h"

#include <float.h>
#include <math.h>

enum { kMaxTerms = 10000, kBisections = 200 };

double normal_cdf(double x) {
    return 0.5 * erfc(-x / sqrt(2.0));
}

/* Keeps a divisor in Lentz's recurrence away from zero. */
static double not_zero(double x) {
    return fabs(x) < DBL_MIN ? DBL_MIN : x;
}

/* The continued fraction of the incomplete beta function. It converges fast for x <
 * (a+1)/(a+b+2). */
static double beta_fraction(double a, double b, double x) {
    double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), f = d;
    for (int m = 1; m < kMaxTerms; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / not_zero(1 + even * d);
        c = not_zero(1 + even / c);
        f *= d * c;
        d = 1 / not_zero(1 + odd * d);
        c = not_zero(1 + odd / c);
        f *= d * c;
        if (fabs(d * c - 1) < 4 * DBL_EPSILON)
            break;
    }
    return f;
}

/* Thread-safe: lgamma() would write a global variable for the sign. */
static double log_gamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

/* The regularised incomplete beta function I_x(a, b). @y is 1 - x, passed separately because
 * computing it would lose digits in the tail. */
static double beta_regularized(double a, double b, double x, double y) {
    if (x <= 0 || y <= 0)
        return x <= 0 ? 0 : 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(y));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, y) / b;
}

double student_cdf(double t, double df) {
    double square = t * t;
    double tail = 0.5 * beta_regularized(df / 2, 0.5, df / (df + square), square / (df + square));
    return t > 0 ? 1 - tail : tail;
}

static double normal_cdf_df(double x, double df) {
    (void)df;
    return normal_cdf(x);
}

/* Solves cdf(x) = p for p < 1/2 and a distribution symmetric around 0, so x < 0. The left tail
 * keeps its relative precision. */
static double invert_left(double (*cdf)(double, double), double df, double p) {
    double lo = -1, hi = 0;
    while (cdf(lo, df) > p && lo > -DBL_MAX / 2)
        lo *= 2;
    for (int i = 0; i < kBisections; i++) {
        double mid = lo + (hi - lo) / 2;
        if (mid <= lo || mid >= hi)
            break;
        *(cdf(mid, df) < p ? &lo : &hi) = mid;
    }
    return hi;
}

static double invert(double (*cdf)(double, double), double df, double p) {
    if (p < 0.5)
        return invert_left(cdf, df, p);
    return p > 0.5 ? -invert_left(cdf, df, 1 - p) : 0;
}

double normal_quantile(double p) {
    return invert(normal_cdf_df, 0, p);
}

double student_quantile(double p, double df) {
    return invert(student_cdf, df, p);
}
