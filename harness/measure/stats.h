/* stats.h - order statistics of timings: quantiles, and the uncertainty of the median. */
#ifndef SNAPMLA_HARNESS_MEASURE_STATS_H
#define SNAPMLA_HARNESS_MEASURE_STATS_H

#include <stddef.h>

typedef struct {
    double min, q1, median, q3, max;
    double mean;
    double p99; /* NAN for fewer than STATS_P99_FEWEST values */
} stats_summary;

enum { STATS_P99_FEWEST = 100 };

/* Quantile @p in [0, 1] of n >= 1 ascending values, interpolated linearly between order statistics
 * (type 7 of Hyndman and Fan 1996, the default of R and NumPy). */
double stats_quantile(const double *sorted, size_t n, double p);

/* Takes n >= 1 ascending values. */
stats_summary stats_summarise(const double *sorted, size_t n);

/* The relative noise that the stop rule compares with its limit: half the width of the 95 %
 * confidence interval of the median, divided by the median. The ends of the interval are order
 * statistics (Conover 1999, section 3.2), so no distribution is assumed. INFINITY for fewer than 6
 * values, because no such interval exists for them. */
double stats_median_noise(const double *sorted, size_t n);

/* Inserts @x into n ascending values; the array has room for n + 1. */
void stats_insert(double *sorted, size_t n, double x);

#endif
