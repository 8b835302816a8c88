#include "harness/serving/interval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "evals/distributions.h"
#include "harness/measure/stats.h"

/* The number of values before mark @k, each slice counted with its weight. */
static double before_mark(const sliced_values *v, const uint16_t *weight, size_t slices, size_t k) {
    const uint32_t *row = v->below + k * slices;
    uint64_t n = 0;
    for (size_t s = 0; s < slices; s++)
        n += (uint64_t)row[s] * (weight ? weight[s] : 1);
    return (double)n;
}

/* Quantile @q of the weighted values, interpolated as by stats_quantile(). @total: their number. */
static double quantile_of(const sliced_values *v, const uint16_t *weight, size_t slices,
                          double total, double q) {
    double at = (total - 1) * q, below = floor(at), found[2] = {(double)NAN, (double)NAN};
    size_t lo = 0, hi = SLICED_MARKS; /* the value lies at or after mark lo */
    if (!(total > 0))
        return (double)NAN;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (before_mark(v, weight, slices, mid) <= below)
            lo = mid;
        else
            hi = mid;
    }
    double n = before_mark(v, weight, slices, lo);
    for (size_t i = lo * v->step; i < v->n && isnan(found[1]); i++) {
        n += weight ? weight[v->slice[i]] : 1;
        if (isnan(found[0]) && n > below)
            found[0] = v->value[i];
        if (n > below + 1)
            found[1] = v->value[i];
    }
    return isnan(found[1]) ? found[0] : found[0] + (at - below) * (found[1] - found[0]);
}

static double weighted(const double *x, const uint16_t *weight, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * (weight ? weight[i] : 1);
    return sum;
}

void sliced_metrics(const sliced_arm *arm, const uint16_t *weight, double out[SERVING_METRICS]) {
    for (int l = 0; l < SERVING_TIMES; l++) {
        const sliced_values *v = &arm->latency[l];
        double n = weighted(v->count, weight, arm->slices);
        double *x = out + (size_t)l * SERVING_STATISTICS;
        x[SERVING_MEAN] = n > 0 ? weighted(v->sum, weight, arm->slices) / n : (double)NAN;
        for (int s = SERVING_P50; s < SERVING_STATISTICS; s++)
            x[s] =
                quantile_of(v, weight, arm->slices, n, serving_quantile_of((serving_statistic)s));
    }
    for (int r = 0; r < SERVING_RATES; r++) {
        double under = weighted(arm->under[r], weight, arm->slices);
        out[serving_metric_of_rate((serving_rate)r)] =
            arm->over[r] && under > 0 ? weighted(arm->over[r], weight, arm->slices) / under
                                      : (double)NAN;
    }
}

void sliced_block_metrics(const sliced_arm *arm, size_t blocks, double *out) {
    size_t each = arm->slices / blocks;
    for (size_t b = 0; b < blocks; b++) {
        uint16_t weight[SLICES_MOST] = {0};
        for (size_t k = 0; k < each; k++)
            weight[b * each + k] = 1;
        sliced_metrics(arm, weight, out + b * SERVING_METRICS);
    }
}

double sliced_quantile(const sliced_arm *arm, serving_time l, double q) {
    const sliced_values *v = &arm->latency[l];
    return v->n ? stats_quantile(v->value, v->n, q) : (double)NAN;
}

/* The design effect of the share of values up to @at. */
static double effect_at(const sliced_arm *arm, serving_time l, double at) {
    const sliced_values *v = &arm->latency[l];
    double hits[SLICES_MOST] = {0};
    for (size_t i = 0; i < v->n && v->value[i] <= at; i++)
        hits[v->slice[i]] += 1;
    return slo_design_effect(hits, v->count, arm->slices);
}

double sliced_cluster_effect(const sliced_arm *arm, serving_time l, double limit) {
    const sliced_values *v = &arm->latency[l];
    double middle = sliced_quantile(arm, l, 0.5), size = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < v->n; i++)
        v->level[v->place[i]] = v->value[i] <= middle ? 0 : v->value[i] <= limit ? 1 : 2;
    for (size_t i = 0; i <= v->n; i++) {
        if (i < v->n && v->level[i]) {
            size += v->level[i] == 2;
            continue;
        }
        sum += size;
        squares += size * size;
        size = 0;
    }
    return sum > 0 ? squares / sum : 1;
}

double sliced_effect(const sliced_arm *arm, serving_time l) {
    return effect_at(arm, l, sliced_quantile(arm, l, 0.5));
}

bool sliced_log_quantiles(const sliced_arm *arm, serving_time l, const double *totals, double q,
                          size_t each, double *out) {
    enum { kValuesBeyond = 5 };
    const sliced_values *v = &arm->latency[l];
    size_t units = arm->slices / each;
    double count[SLICES_MOST] = {0}, all[SLICES_MOST] = {0}, seen[SLICES_MOST] = {0};
    double low[SLICES_MOST] = {0}, high[SLICES_MOST] = {0};
    for (size_t s = 0; s < arm->slices; s++) {
        count[s / each] += v->count[s];
        all[s / each] += totals[s];
    }
    for (size_t u = 0; u < units; u++)
        if (count[u] < kValuesBeyond / fmin(q, 1 - q) - 1e-9 || fabs(count[u] - all[u]) > 0)
            return false;
    for (size_t i = 0; i < v->n; i++) {
        size_t u = v->slice[i] / each;
        double below = floor((count[u] - 1) * q), k = seen[u]++;
        if (k <= below)
            low[u] = v->value[i];
        if (k <= below + 1)
            high[u] = v->value[i];
    }
    for (size_t u = 0; u < units; u++) {
        double at = (count[u] - 1) * q;
        out[u] = log(low[u] + (at - floor(at)) * (high[u] - low[u]));
        if (!isfinite(out[u]))
            return false;
    }
    return true;
}

void sliced_quantile_interval(const sliced_arm *arm, serving_time l, double q, double ci[2]) {
    double n = (double)arm->latency[l].n, share[2];
    ci[0] = ci[1] = (double)NAN;
    if (!(n > 0) || arm->slices < 2)
        return;
    double at = sliced_quantile(arm, l, q);
    double effect = fmax(sliced_effect(arm, l), effect_at(arm, l, at));
    effect = fmax(effect, sliced_cluster_effect(arm, l, at));
    slo_share_interval(q, n / effect, arm->slices, 0.95, share);
    ci[0] = sliced_quantile(arm, l, share[0]);
    ci[1] = (1 - share[1]) * n / effect < 1 ? (double)INFINITY : sliced_quantile(arm, l, share[1]);
}

void sliced_bootstrap(const sliced_arm *arms, size_t n, int draws, uint64_t seed, double *out) {
    size_t slices = arms[0].slices;
    rng r = rng_make(seed, rng_stream_of("serving slices"));
    uint16_t weight[UINT8_MAX + 1];
    for (int d = 0; d < draws && slices && slices <= UINT8_MAX; d++) {
        memset(weight, 0, sizeof weight);
        for (size_t i = 0; i < slices; i++)
            weight[rng_below(&r, (uint32_t)slices)]++;
        for (size_t a = 0; a < n; a++)
            sliced_metrics(&arms[a], weight,
                           out + (a * (size_t)draws + (size_t)d) * SERVING_METRICS);
    }
}

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sliced_interval(double *x, size_t n, size_t slices, double level, double out[2]) {
    size_t known = 0;
    out[0] = out[1] = (double)NAN;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            x[known++] = x[i];
    if (slices < 2 || known < 2 || known * 20 < n * 19)
        return;
    double s = (double)slices;
    double t = student_quantile(0.5 + level / 2, s - 1) * sqrt(s / (s - 1));
    double tail = normal_cdf(-t);
    qsort(x, known, sizeof *x, by_number);
    out[0] = stats_quantile(x, known, tail);
    out[1] = stats_quantile(x, known, 1 - tail);
}
