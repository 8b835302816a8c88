#include "harness/serving/differences.h"

#include <math.h>

#include "evals/distributions.h"
#include "evals/stats.h"
#include "harness/serving/batch_means.h"
#include "harness/serving/flags.h"

void difference_draws(const double *draws, int a, int m, double *x) {
    for (size_t d = 0; d < SLICED_DRAWS; d++)
        x[d] = draws[((size_t)a * SLICED_DRAWS + d) * SERVING_METRICS + (size_t)m];
}

/* The two-sided p value of "a difference, or the logarithm of a ratio, is 0", by Student's t.
 * @value: what was measured; its standard error is that of the draws @x. */
static double p_of(const double *x, size_t n, double value, size_t slices) {
    double sum = 0, squares = 0, known = 0, s = (double)slices;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            sum += x[i];
            known++;
        }
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            squares += (x[i] - sum / known) * (x[i] - sum / known);
    double se = sqrt(squares / (known - 1) * s / (s - 1));
    if (!(known > 1) || isnan(se))
        return (double)NAN;
    if (!(se > 0))
        return fabs(value) > 0 ? 0 : 1;
    return 2 * student_cdf(-fabs(value) / se, s - 1);
}

/* The difference of two arms, without intervals. */
static serving_difference difference_of(double base, double value, int m) {
    serving_difference d = {.ratio = (double)NAN,
                            .ci95 = {(double)NAN, (double)NAN},
                            .ci90 = {(double)NAN, (double)NAN},
                            .delta = value - base,
                            .delta_ci95 = {(double)NAN, (double)NAN},
                            .p = (double)NAN,
                            .p_holm = (double)NAN,
                            .judged = serving_is_judged(m) && !isnan(value - base),
                            .reason = ""};
    if (base > 0 && value > 0)
        d.ratio = value / base;
    return d;
}

/* Sets the intervals and the p value from the slices. The intervals of the ratio stay
 * logarithms. */
static void set_by_slices(serving_difference *d, const double *draws, int a, int m, size_t slices) {
    double x[SLICED_DRAWS], y[SLICED_DRAWS], ratio[SLICED_DRAWS];
    difference_draws(draws, 0, m, x);
    difference_draws(draws, a, m, y);
    for (size_t i = 0; i < SLICED_DRAWS; i++) {
        ratio[i] = x[i] > 0 && y[i] > 0 ? log(y[i] / x[i]) : (double)NAN;
        x[i] = y[i] - x[i];
    }
    if (isnan(d->ratio))
        d->p = p_of(x, SLICED_DRAWS, d->delta, slices);
    sliced_interval(x, SLICED_DRAWS, slices, 0.95, d->delta_ci95);
    if (isnan(d->ratio))
        return;
    d->p = p_of(ratio, SLICED_DRAWS, log(d->ratio), slices);
    sliced_interval(ratio, SLICED_DRAWS, slices, 0.95, d->ci95);
    sliced_interval(ratio, SLICED_DRAWS, slices, 0.90, d->ci90);
}

static void widen(const double *x, size_t n, double level, double ci[2]) {
    double own[2];
    batch_interval(x, n, level, own);
    batch_widen(ci, own);
}

/* Widens the intervals by the pairs of blocks, and sets their p value. */
static void widen_by_blocks(serving_difference *d, const difference_sources *from, int a, int m) {
    double delta[SLICES_MOST], ratio[SLICES_MOST];
    for (size_t b = 0; b < from->blocks; b++) {
        double x = from->by_block[b * SERVING_METRICS + (size_t)m];
        double y = from->by_block[((size_t)a * from->blocks + b) * SERVING_METRICS + (size_t)m];
        delta[b] = y - x;
        ratio[b] = x > 0 && y > 0 ? log(y / x) : (double)NAN;
    }
    widen(delta, from->blocks, 0.95, d->delta_ci95);
    widen(ratio, from->blocks, 0.95, d->ci95);
    widen(ratio, from->blocks, 0.90, d->ci90);
    d->block_p = batch_p(isnan(d->ratio) ? delta : ratio, from->blocks);
}

static serving_difference compare(const serving_measured *out, int a, int m,
                                  const difference_sources *from) {
    const serving_arm *base = &out->arm[0];
    serving_difference d = difference_of(base->metric[m].value, out->arm[a].metric[m].value, m);
    if (isnan(d.delta) || !base->slices)
        return d;
    set_by_slices(&d, from->draws, a, m, base->slices);
    if (base->by_blocks)
        widen_by_blocks(&d, from, a, m);
    for (int i = 0; i < 2; i++) {
        d.ci95[i] = exp(d.ci95[i]);
        d.ci90[i] = exp(d.ci90[i]);
    }
    return d;
}

/* The share by which the client's lag can change a metric of one of two arms; 0 if it is at most
 * serving_lag_share. The rate of a closed loop changes as the whole latency of a request does. */
static double lag_of(const serving_arm *x, const serving_arm *y, int metric) {
    bool rate = metric >= serving_metric_of_rate(SERVING_OFFERED);
    int l = metric / SERVING_STATISTICS;
    double most =
        rate ? fmax(x->rate_lag_share, y->rate_lag_share) : fmax(x->lag_share[l], y->lag_share[l]);
    return most > serving_lag_share ? most : 0;
}

/* The verdict if the client's lag and drifts may have caused a ratio between 1 / (1 + doubt) and
 * 1 + doubt. */
static serving_verdict judge(const serving_difference *d, int metric, double margin, double doubt) {
    double most = (1 + margin) / (1 + doubt);
    if (d->ci90[0] > 1 / most && d->ci90[1] < most)
        return SERVING_EQUAL;
    bool excluded = isnan(d->ratio) ? d->delta_ci95[0] > 0 || d->delta_ci95[1] < 0
                                    : d->ci95[0] > 1 + doubt || d->ci95[1] < 1 / (1 + doubt);
    if (!(d->p_holm <= 0.05) || !excluded)
        return SERVING_INCONCLUSIVE;
    return (d->delta > 0) == serving_more_is_better(metric) ? SERVING_FASTER : SERVING_SLOWER;
}

static void set_verdict(serving_measured *out, int a, int metric, double margin) {
    const serving_arm *base = &out->arm[0], *arm = &out->arm[a];
    serving_difference *d = &out->difference[a][metric];
    d->reason = serving_flag_against(serving_doubts_of(base) | serving_doubts_of(arm), metric);
    if (d->reason[0])
        return;
    double drift = (1 + base->drift) * (1 + arm->drift) - 1;
    double both = (1 + lag_of(base, arm, metric)) * (1 + drift) - 1;
    d->verdict = judge(d, metric, margin, both);
    if (d->verdict != judge(d, metric, margin, drift))
        d->reason = "client lag";
}

static double larger_p(double a, double b) {
    return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
}

static void set_verdicts(serving_measured *out, double margin) {
    double p[SERVING_ARMS_MAX * SERVING_METRICS];
    size_t n = 0;
    for (int a = 1; a < out->arms; a++)
        for (int m = 0; m < SERVING_METRICS; m++)
            if (out->difference[a][m].judged)
                p[n++] = out->difference[a][m].p;
    stats_holm(p, n);
    n = 0;
    for (int a = 1; a < out->arms; a++)
        for (int m = 0; m < SERVING_METRICS; m++) {
            serving_difference *d = &out->difference[a][m];
            bool by_blocks = out->arm[0].by_blocks;
            if (by_blocks)
                d->p = larger_p(d->p, d->block_p);
            if (!d->judged)
                continue;
            d->p_holm = p[n++];
            if (by_blocks)
                d->p_holm = larger_p(d->p_holm, d->block_p);
            set_verdict(out, a, m, margin);
        }
}

void differences_set(serving_measured *out, const difference_sources *from) {
    for (int a = 1; a < out->arms; a++)
        for (int m = 0; m < SERVING_METRICS; m++)
            out->difference[a][m] = compare(out, a, m, from);
    set_verdicts(out, from->margin);
}
