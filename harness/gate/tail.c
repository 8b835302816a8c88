#include "harness/gate/tail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/rank.h"
#include "harness/measure/stats.h"

/* Steps above this quantile of the steps of both arms are slow. If only one arm has such steps,
 * the quantile is the p99 of that arm. */
static const double kSlow = 0.995;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double p99_of(const float *ns, size_t n, double *sorted) {
    for (size_t i = 0; i < n; i++)
        sorted[i] = (double)ns[i];
    qsort(sorted, n, sizeof *sorted, by_value);
    return stats_quantile(sorted, n, 0.99);
}

void tail_means(const tail_steps *t, int arm, double *out) {
    for (size_t k = 0; k < t->sessions; k++) {
        double sum = 0;
        for (size_t i = 0; i < t->steps; i++)
            sum += (double)t->ns[arm][k * t->steps + i];
        out[k] = sum / (double)t->steps;
    }
}

snap_status tail_p99(const tail_steps *t, int arm, double *all, double *each, snap_err *err) {
    size_t n = t->sessions * t->steps;
    double *sorted = malloc((n + 1) * sizeof *sorted);
    if (!sorted)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %zu steps", n);
    *all = n ? p99_of(t->ns[arm], n, sorted) : (double)NAN;
    for (size_t k = 0; each && k < t->sessions; k++)
        each[k] = p99_of(t->ns[arm] + k * t->steps, t->steps, sorted);
    free(sorted);
    return SNAP_OK;
}

double tail_wander(const double *each, size_t n) {
    double change[RANK_MAX];
    if (n < 2)
        return 0;
    for (size_t k = 0; k + 1 < n; k++)
        change[k] = fabs(log(each[k + 1] / each[k]));
    qsort(change, n - 1, sizeof *change, by_value);
    return stats_quantile(change, n - 1, 0.5);
}

/* The share of an arm's steps in session @k that are above @limit. */
static double share_above(const tail_steps *t, int arm, size_t k, double limit) {
    size_t above = 0;
    for (size_t i = 0; i < t->steps; i++)
        above += (double)t->ns[arm][k * t->steps + i] > limit;
    return (double)above / (double)t->steps;
}

snap_status tail_shares(const tail_steps *t, double threshold, double *x, snap_err *err) {
    size_t n = t->sessions * t->steps;
    double *all = malloc((2 * n + 1) * sizeof *all), scale = exp(threshold);
    if (!all)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %zu steps", 2 * n);
    for (size_t i = 0; i < n; i++) {
        all[i] = (double)t->ns[0][i];
        all[n + i] = (double)t->ns[1][i] / scale;
    }
    qsort(all, 2 * n, sizeof *all, by_value);
    double limit = n ? stats_quantile(all, 2 * n, kSlow) : 0;
    for (size_t k = 0; k < t->sessions; k++)
        x[k] = share_above(t, 1, k, limit * scale) - share_above(t, 0, k, limit);
    free(all);
    return SNAP_OK;
}
