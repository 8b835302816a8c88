#include "harness/measure/stats.h"

#include <math.h>
#include <string.h>

double stats_quantile(const double *sorted, size_t n, double p) {
    double at = p * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

stats_summary stats_summarise(const double *sorted, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += sorted[i];
    return (stats_summary){.min = sorted[0],
                           .q1 = stats_quantile(sorted, n, 0.25),
                           .median = stats_quantile(sorted, n, 0.5),
                           .q3 = stats_quantile(sorted, n, 0.75),
                           .max = sorted[n - 1],
                           .mean = sum / (double)n,
                           .p99 = n < STATS_P99_FEWEST ? (double)NAN
                                                       : stats_quantile(sorted, n, 0.99)};
}

double stats_median_noise(const double *sorted, size_t n) {
    enum { kFewest = 6 }; /* 2 * 0.5^6 < 0.05 < 2 * 0.5^5 */
    if (n < kFewest)
        return INFINITY;
    /* Indices count from 0. At small n the normal approximation exceeds the ends of the array. The
     * exact interval never does from kFewest values on, so the indices are clamped. */
    double half = 1.96 * sqrt((double)n) / 2;
    double low = floor((double)n / 2 - half) - 1, high = ceil((double)n / 2 + half);
    double last = (double)(n - 1);
    double a = sorted[(size_t)fmax(low, 0)], b = sorted[(size_t)fmin(high, last)];
    return (b - a) / 2 / stats_quantile(sorted, n, 0.5);
}

void stats_insert(double *sorted, size_t n, double x) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (sorted[mid] <= x)
            lo = mid + 1;
        else
            hi = mid;
    }
    memmove(sorted + lo + 1, sorted + lo, (n - lo) * sizeof *sorted);
    sorted[lo] = x;
}
