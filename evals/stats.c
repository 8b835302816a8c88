#include "evals/stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "evals/distributions.h"

enum { kExactFlips = 20, kDrawnFlips = 100000 };

/* Sums of the same numbers in another order may differ by this much, relatively. */
static const double kRounding = 1e-12;

static const stats_interval kNoInterval = {NAN, NAN};

/* ---- one arm ---- */

stats_mean stats_mean_of(const double *x, size_t n) {
    stats_mean m = {.n = n, .mean = NAN, .se = NAN};
    if (!n)
        return m;
    double sum = 0, squares = 0, count = (double)n;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    m.mean = sum / count;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - m.mean) * (x[i] - m.mean);
    if (n > 1)
        m.se = sqrt(squares / (count * (count - 1)));
    return m;
}

stats_interval stats_mean_interval(stats_mean m, double level) {
    if (m.n < 2)
        return kNoInterval;
    double half = student_quantile(0.5 + level / 2, (double)m.n - 1) * m.se;
    return (stats_interval){m.mean - half, m.mean + half};
}

stats_interval stats_wilson(size_t successes, size_t n, double level) {
    double z = normal_quantile(0.5 + level / 2), count = (double)n;
    double p = (double)successes / count, scale = 1 + z * z / count;
    double center = (p + z * z / (2 * count)) / scale;
    double half = z / scale * sqrt(p * (1 - p) / count + z * z / (4 * count * count));
    return (stats_interval){fmax(0, center - half), fmin(1, center + half)};
}

/* ---- two arms ---- */

const char *stats_verdict_name(stats_verdict v) {
    static const char *const names[] = {"equivalent", "not shown", "different"};
    return names[v];
}

/* No spread, hence no t statistic (stats_compare() says what is left to say). */
static stats_verdict verdict_without_spread(const stats_paired *r, double margin) {
    if (fabs(r->delta) + 3 / (double)r->n < margin)
        return STATS_EQUIVALENT;
    double p_sign_flip = exp2(1 - (double)r->n); /* all alike, or all opposite */
    return r->delta != 0 && p_sign_flip < 0.05 ? STATS_DIFFERENT : STATS_NOT_SHOWN;
}

static stats_verdict verdict_of(const stats_paired *r, double margin) {
    if (r->n < 2)
        return STATS_NOT_SHOWN;
    if (r->se <= 0)
        return verdict_without_spread(r, margin);
    if (r->ci90.lo > -margin && r->ci90.hi < margin)
        return STATS_EQUIVALENT;
    return r->ci95.lo > 0 || r->ci95.hi < 0 ? STATS_DIFFERENT : STATS_NOT_SHOWN;
}

static double tost(stats_mean d, double margin) {
    if (d.n < 2 || d.se <= 0)
        return NAN;
    double df = (double)d.n - 1;
    return fmax(student_cdf(-(d.mean + margin) / d.se, df),
                student_cdf((d.mean - margin) / d.se, df));
}

/* Mean of the combination x*a + y*b of each problem. */
static stats_mean mean_of_combined(double x, const double *a, double y, const double *b, size_t n) {
    stats_mean m = {.n = n, .mean = NAN, .se = NAN};
    double sum = 0, squares = 0, largest = 0, count = (double)n;
    for (size_t i = 0; i < n; i++) {
        sum += x * a[i] + y * b[i];
        largest = fmax(largest, fabs(x * a[i]) + fabs(y * b[i]));
    }
    if (n)
        m.mean = sum / count;
    for (size_t i = 0; i < n; i++)
        squares += pow(x * a[i] + y * b[i] - m.mean, 2);
    if (n > 1)
        m.se = sqrt(squares / (count * (count - 1)));
    if (m.se <= kRounding * largest) /* thirds that are equal on paper: no spread */
        m.se = 0;
    return m;
}

stats_paired stats_compare(const double *a, const double *b, size_t n, double margin) {
    stats_mean m = mean_of_combined(-1, a, 1, b, n);
    bool spread = m.se > 0;
    stats_paired r = {.n = n, .delta = m.mean, .se = m.se};
    r.ci90 = spread ? stats_mean_interval(m, 0.90) : kNoInterval;
    r.ci95 = spread ? stats_mean_interval(m, 0.95) : kNoInterval;
    r.p_tost = tost(m, margin);
    for (size_t i = 0; i < n; i++) {
        r.a_better += a[i] > b[i];
        r.b_better += b[i] > a[i];
    }
    r.verdict = verdict_of(&r, margin);
    return r;
}

/* Walks all 2^n patterns in Gray code: one sign changes a step. */
static double flip_all(const double *d, size_t n, double limit) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += d[i];
    uint32_t patterns = 1u << n, reached = 0, flipped = 0;
    for (uint32_t k = 0; k < patterns; k++) {
        reached += fabs(sum) >= limit;
        uint32_t bit = (uint32_t)__builtin_ctz(k + 1);
        if (bit >= n)
            break;
        flipped ^= 1u << bit;
        sum += (flipped >> bit & 1 ? -2 : 2) * d[bit];
    }
    return (double)reached / patterns;
}

static double flip_drawn(const double *a, const double *b, size_t n, double limit, uint64_t seed) {
    rng r = rng_make(seed, rng_stream_of("sign flip"));
    uint32_t reached = 1; /* the observed pattern */
    for (int k = 0; k < kDrawnFlips; k++) {
        double sum = 0;
        uint32_t bits = 0;
        for (size_t i = 0; i < n; i++) {
            bits = i % 32 ? bits >> 1 : rng_u32(&r);
            sum += bits & 1 ? b[i] - a[i] : a[i] - b[i];
        }
        reached += fabs(sum) >= limit;
    }
    return (double)reached / (kDrawnFlips + 1);
}

double stats_sign_flip(const double *a, const double *b, size_t n, uint64_t seed) {
    double moved[kExactFlips] = {0}, sum = 0, size = 0;
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        double d = b[i] - a[i];
        sum += d;
        size += fabs(d);
        if (d != 0 && m < kExactFlips)
            moved[m] = d;
        m += d != 0;
    }
    if (!n)
        return NAN;
    double limit = fabs(sum) - kRounding * size;
    return m <= kExactFlips ? flip_all(moved, m, limit) : flip_drawn(a, b, n, limit, seed);
}

double stats_mcnemar(size_t a_only, size_t b_only) {
    size_t n = a_only + b_only, k = a_only < b_only ? a_only : b_only;
    double log_term = -(double)n * log(2), p = 0; /* C(n, 0) / 2^n */
    for (size_t j = 0; j <= k; j++) {
        p += exp(log_term);
        log_term += log((double)(n - j) / (double)(j + 1));
    }
    return fmin(1, 2 * p);
}

/* ---- bootstrap ---- */

static double mean_drawn(const double *x, size_t n, rng *r) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[rng_below(r, (uint32_t)n)];
    return sum / (double)n;
}

static double difference_drawn(const stats_problem *problems, size_t n, rng *r) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const stats_problem *p = &problems[rng_below(r, (uint32_t)n)];
        sum += mean_drawn(p->b, p->n_b, r) - mean_drawn(p->a, p->n_a, r);
    }
    return sum / (double)n;
}

static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

snap_status stats_bootstrap(const stats_problem *problems, size_t n, uint64_t seed,
                            stats_interval *out, snap_err *err) {
    *out = kNoInterval;
    if (!n)
        return SNAP_OK;
    double *draws = calloc(STATS_BOOTSTRAP_DRAWS, sizeof *draws);
    if (!draws)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the bootstrap");
    rng r = rng_make(seed, rng_stream_of("bootstrap"));
    for (int k = 0; k < STATS_BOOTSTRAP_DRAWS; k++)
        draws[k] = difference_drawn(problems, n, &r);
    qsort(draws, STATS_BOOTSTRAP_DRAWS, sizeof *draws, ascending);
    *out = (stats_interval){draws[STATS_BOOTSTRAP_DRAWS / 40],
                            draws[STATS_BOOTSTRAP_DRAWS - 1 - STATS_BOOTSTRAP_DRAWS / 40]};
    free(draws);
    return SNAP_OK;
}

/* ---- lengths ---- */

stats_ratio stats_ratio_of(const double *a, const double *b, size_t n) {
    double mean_a = stats_mean_of(a, n).mean, ratio = stats_mean_of(b, n).mean / mean_a;
    stats_mean delta = mean_of_combined(-1, a, 1, b, n);
    /* the ratio's error in each problem, to first order; its mean is 0 */
    stats_mean error = mean_of_combined(-ratio / mean_a, a, 1 / mean_a, b, n);
    error.mean = ratio;
    return (stats_ratio){.ratio = ratio,
                         .ci95 = stats_mean_interval(error, 0.95),
                         .delta = delta.mean,
                         .delta_ci95 = stats_mean_interval(delta, 0.95)};
}

/* ---- several benchmarks ---- */

void stats_holm(double *p, size_t n) {
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        left += isnan(p[i]) ? 0 : 1;
    /* Smallest first; a p already adjusted is negated so that it is not found again. */
    for (double floor = 0; left; left--) {
        size_t best = n;
        for (size_t i = 0; i < n; i++)
            if (!isnan(p[i]) && !signbit(p[i]) && (best == n || p[i] < p[best]))
                best = i;
        floor = fmax(floor, fmin(1, p[best] * (double)left));
        p[best] = -floor;
    }
    for (size_t i = 0; i < n; i++)
        p[i] = fabs(p[i]);
}
