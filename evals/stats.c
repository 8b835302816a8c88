#include "evals/stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "evals/distributions.h"

enum { kExactFlips = 20, kDrawnFlips = 100000 };

/* Rounding: relative differences up to this size may come from the order of summation. */
static const double kRounding = 1e-12;

static const double kTostLevel = 0.05;

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

static stats_interval interval_of(double mean, double se, double df, double level) {
    double half = student_quantile(0.5 + level / 2, df) * se;
    return (stats_interval){mean - half, mean + half};
}

stats_interval stats_mean_interval(stats_mean m, double level) {
    return m.n < 2 ? kNoInterval : interval_of(m.mean, m.se, (double)m.n - 1, level);
}

stats_interval stats_wilson_share(double p, double n, double level) {
    double z = normal_quantile(0.5 + level / 2), scale = 1 + z * z / n;
    double center = (p + z * z / (2 * n)) / scale;
    double half = z / scale * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    return (stats_interval){fmax(0, center - half), fmin(1, center + half)};
}

stats_interval stats_wilson(size_t successes, size_t n, double level) {
    double count = (double)n;
    return stats_wilson_share((double)successes / count, count, level);
}

double stats_pass_at_k(size_t n, size_t correct, size_t k) {
    if (k > n)
        return NAN;
    double none = 1; /* probability that all k are wrong */
    for (size_t i = 0; i < k; i++)
        none *= n - correct > i ? (double)(n - correct - i) / (double)(n - i) : 0;
    return 1 - none;
}

double stats_sampling_variance(const double *x, size_t n) {
    double se = stats_mean_of(x, n).se;
    return se * se * (double)n;
}

/* ---- two arms ---- */

const char *stats_verdict_name(stats_verdict v) {
    static const char *const names[] = {"equivalent", "not shown", "different"};
    return names[v];
}

/* The verdict if all differences are equal, so there is no t statistic (see stats_compare()). */
static stats_verdict verdict_without_spread(const stats_paired *r, double margin) {
    if (fabs(r->delta) + 3 / (double)r->n < margin)
        return STATS_EQUIVALENT;
    double p_sign_flip = exp2(1 - (double)r->n); /* only two of the 2^n sign patterns have all signs
                                                    equal */
    return r->delta != 0 && p_sign_flip < 0.05 ? STATS_DIFFERENT : STATS_NOT_SHOWN;
}

static stats_verdict verdict_of(const stats_paired *r, double margin) {
    if (r->n < 2)
        return STATS_NOT_SHOWN;
    if (r->se <= 0)
        return verdict_without_spread(r, margin);
    if (r->p_tost < kTostLevel)
        return STATS_EQUIVALENT;
    return r->ci95.lo > 0 || r->ci95.hi < 0 ? STATS_DIFFERENT : STATS_NOT_SHOWN;
}

static double tost(double mean, double se, double df, double margin) {
    return fmax(student_cdf(-(mean + margin) / se, df), student_cdf((mean - margin) / se, df));
}

/* Mean over the problems of x*a + y*b, and its standard error. */
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
    if (m.se <= kRounding * largest) /* rounding only, as with sums of thirds: the differences are
                                        equal */
        m.se = 0;
    return m;
}

/* The differences in steps: the sums of those above and below 0, and their squares. */
typedef struct {
    double above, below, squares;
} step_sums;

static step_sums sum_steps(const double *a, const double *b, size_t n, double step) {
    step_sums s = {0};
    for (size_t i = 0; i < n; i++) {
        double d = (b[i] - a[i]) / step;
        s.above += fmax(d, 0);
        s.below += fmax(-d, 0);
        s.squares += d * d;
    }
    return s;
}

/* The variance of a problem's difference if the true difference is @margin towards the direction
 * @up: the estimate that stats_compare() describes. All in steps. */
static double null_variance(const step_sums *s, bool up, double n, double margin) {
    double u = up ? s->above : s->below, d = up ? s->below : s->above;
    double h = u + d - 2 * n * margin;
    double q = (h + sqrt(h * h + 8 * n * d * margin)) / (4 * n);
    double square = u + d > 0 ? fmax(1, s->squares / (u + d)) : 1;
    return square * (2 * q + margin);
}

/* p of the score test against a true difference as large as the margin, up or down. */
static double p_of_side(const stats_mean *m, const step_sums *s, bool up, double step,
                        double margin) {
    double n = (double)m->n;
    double least = step * sqrt(null_variance(s, up, n, margin / step) / n);
    double delta = (up ? m->mean : -m->mean) + step / (2 * n);
    return student_cdf((delta - margin) / fmax(m->se, least), n - 1);
}

static double score_tost(const stats_mean *m, const double *a, const double *b, double step,
                         double margin) {
    step_sums s = sum_steps(a, b, m->n, step);
    return fmax(p_of_side(m, &s, true, step, margin), p_of_side(m, &s, false, step, margin));
}

stats_paired stats_compare(const double *a, const double *b, size_t n, double step, double margin) {
    stats_mean m = mean_of_combined(-1, a, 1, b, n);
    bool spread = m.se > 0;
    stats_paired r = {.n = n, .delta = m.mean, .se = m.se};
    r.ci90 = spread ? stats_mean_interval(m, 0.90) : kNoInterval;
    r.ci95 = spread ? stats_mean_interval(m, 0.95) : kNoInterval;
    r.p_tost = !spread    ? (double)NAN
               : step > 0 ? score_tost(&m, a, b, step, margin)
                          : tost(m.mean, m.se, (double)n - 1, margin);
    for (size_t i = 0; i < n; i++) {
        r.a_better += a[i] > b[i];
        r.b_better += b[i] > a[i];
    }
    r.verdict = verdict_of(&r, margin);
    return r;
}

void stats_pool_add(stats_pool *pool, const stats_paired *task, double step, double margin) {
    double n = (double)task->n, least = (margin * step - margin * margin) * n;
    double v = n * n * task->se * task->se;
    if (!task->n)
        return;
    v = task->n > 1 ? fmax(v, least) : (double)NAN;
    pool->n += task->n;
    pool->a_better += task->a_better;
    pool->b_better += task->b_better;
    pool->delta += n * task->delta;
    pool->variance += v;
    pool->spread += v * v / (n - 1);
}

stats_paired stats_pool_end(const stats_pool *pool, double margin) {
    double n = (double)pool->n, df = pool->variance * pool->variance / pool->spread;
    stats_paired r = {.n = pool->n,
                      .delta = pool->delta / n,
                      .se = sqrt(pool->variance) / n,
                      .ci90 = kNoInterval,
                      .ci95 = kNoInterval,
                      .p_tost = NAN,
                      .a_better = pool->a_better,
                      .b_better = pool->b_better,
                      .verdict = STATS_NOT_SHOWN};
    if (!(r.se > 0) || !(df > 0))
        return r;
    r.ci90 = interval_of(r.delta, r.se, df, 0.90);
    r.ci95 = interval_of(r.delta, r.se, df, 0.95);
    r.p_tost = tost(r.delta, r.se, df, margin);
    r.verdict = verdict_of(&r, margin);
    return r;
}

bool stats_detects_loss(const stats_paired *p) {
    if (p->n < 2 || !(p->delta < 0))
        return false;
    return p->se > 0 ? p->ci95.hi < 0 : exp2(1 - (double)p->n) < 0.05;
}

/* Visits all 2^n sign patterns in Gray code order, so each step changes one sign. */
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
    uint32_t reached = 1; /* counts the observed pattern */
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

/* Draws n samples with replacement and returns how far their mean is from @mean, scaled to the
 * spread that the mean of n new samples would have. 0 for one sample. */
static double noise_drawn(const double *x, size_t n, double mean, rng *r) {
    if (n < 2)
        return 0;
    return (mean_drawn(x, n, r) - mean) * sqrt((double)n / (double)(n - 1));
}

/* Variance of the mean of a problem's samples; 0 for one sample, which gives no estimate. */
static double variance_of_mean(const double *x, size_t n) {
    double se = stats_mean_of(x, n).se;
    return n < 2 ? 0 : se * se;
}

typedef struct {
    const stats_problem *problems;
    size_t n;
    double *a, *b;          /* [n] means */
    double mean;            /* mean of the differences */
    double between, within; /* factors for the spread between problems and within them; see
                               stats_bootstrap() */
} resampling;

/* @room: memory for 2n numbers, which the result uses: it must live as long. */
static resampling resampling_make(const stats_problem *problems, size_t n, double *room) {
    resampling s = {.problems = problems, .n = n, .a = room, .b = room + n};
    double noise = 0;
    for (size_t i = 0; i < n; i++) {
        const stats_problem *p = &problems[i];
        s.a[i] = stats_mean_of(p->a, p->n_a).mean;
        s.b[i] = stats_mean_of(p->b, p->n_b).mean;
        noise += variance_of_mean(p->a, p->n_a) + variance_of_mean(p->b, p->n_b);
    }
    stats_mean d = mean_of_combined(-1, s.a, 1, s.b, n);
    double spread = d.se * d.se * (double)n;
    s.mean = d.mean;
    noise /= (double)n;
    s.between = spread > noise ? sqrt(1 - noise / spread) : 0;
    s.within = spread > noise ? 1 : sqrt(spread / noise);
    if (spread <= 0)
        s.n = 0;
    return s;
}

static double difference_drawn(const resampling *s, rng *r) {
    double sum = 0;
    for (size_t k = 0; k < s->n; k++) {
        size_t i = rng_below(r, (uint32_t)s->n);
        const stats_problem *p = &s->problems[i];
        double noise =
            noise_drawn(p->b, p->n_b, s->b[i], r) - noise_drawn(p->a, p->n_a, s->a[i], r);
        sum += s->between * (s->b[i] - s->a[i] - s->mean) + s->within * noise;
    }
    return s->mean + sum / (double)s->n;
}

static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Estimates the value below which a new draw falls with probability @p; x is sorted. */
static double percentile(const double *x, int n, double p) {
    double at = fmin(fmax(p * (n + 1) - 1, 0), n - 1);
    int i = at < n - 1 ? (int)at : n - 2;
    return x[i] + (at - i) * (x[i + 1] - x[i]);
}

snap_status stats_bootstrap(const stats_problem *problems, size_t n, int draws, uint64_t seed,
                            stats_interval *out, snap_err *err) {
    *out = kNoInterval;
    if (n < 2 || draws < 2)
        return SNAP_OK;
    double *x = calloc((size_t)draws + 2 * n, sizeof *x);
    if (!x)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the bootstrap");
    resampling s = resampling_make(problems, n, x + draws);
    rng r = rng_make(seed, rng_stream_of("bootstrap"));
    for (int k = 0; k < draws && s.n; k++)
        x[k] = difference_drawn(&s, &r);
    qsort(x, (size_t)draws, sizeof *x, ascending);
    double df = (double)n - 1;
    double tail = normal_cdf(-student_quantile(0.975, df) * sqrt((double)n / df));
    if (s.n)
        *out = (stats_interval){percentile(x, draws, tail), percentile(x, draws, 1 - tail)};
    free(x);
    return SNAP_OK;
}

/* ---- lengths ---- */

stats_ratio stats_ratio_of(const double *a, const double *b, size_t n) {
    double mean_a = stats_mean_of(a, n).mean, ratio = stats_mean_of(b, n).mean / mean_a;
    stats_mean delta = mean_of_combined(-1, a, 1, b, n);
    /* the error of the ratio in each problem, to first order; its mean is 0 */
    stats_mean error = mean_of_combined(-ratio / mean_a, a, 1 / mean_a, b, n);
    error.mean = ratio;
    return (stats_ratio){.ratio = ratio,
                         .ci95 = stats_mean_interval(error, 0.95),
                         .delta = delta.mean,
                         .delta_ci95 = stats_mean_interval(delta, 0.95)};
}

/* ---- planning ---- */

/* Probability of "equivalent" if the estimated standard error is @x times the true one, @se. */
static double power_given(double x, double se, double t, double margin) {
    double room = margin / se - t * x;
    return room > 0 ? 2 * normal_cdf(room) - 1 : 0;
}

/* Density of the estimated standard error divided by the true one: chi with df degrees of freedom,
 * divided by sqrt(df). */
static double ratio_density(double x, double df) {
    int sign;
    return 2 *
           exp(df / 2 * log(df / 2) - lgamma_r(df / 2, &sign) + (df - 1) * log(x) - df * x * x / 2);
}

double stats_tost_power(double se, double df, double margin) {
    enum { kSteps = 2000 }; /* even, for Simpson's rule */
    if (!(se > 0))
        return 1;
    double t = student_quantile(0.95, df), width = 12 / sqrt(df);
    double lo = fmax(1e-9, 1 - width), hi = fmin(1 + width, margin / se / t), sum = 0;
    if (hi <= lo)
        return 0;
    double h = (hi - lo) / kSteps;
    for (int i = 0; i <= kSteps; i++) {
        double x = lo + i * h, weight = i == 0 || i == kSteps ? 1 : i % 2 ? 4 : 2;
        sum += weight * power_given(x, se, t, margin) * ratio_density(x, df);
    }
    return fmin(1, sum * h / 3);
}

/* ---- several benchmarks ---- */

void stats_holm(double *p, size_t n) {
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        left += isnan(p[i]) ? 0 : 1;
    /* Takes the smallest p first. An adjusted p is stored negative, so it is not found again. */
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
