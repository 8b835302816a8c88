/* slice_series.h - series of values in slices of time (slices.h): merging neighbours, and testing
 * whether slices are independent.
 *
 * Two rules use the correlation of neighbours within a block. The deviations are those from the
 * mean of all blocks, so blocks that differ from each other are correlated too.
 *
 *   merging   Slices are merged in pairs as long as the correlation of some series exceeds one
 *             standard error. Merging too early costs little: longer slices are still valid.
 *   testing   Many series are compared with one standard error, so that rule alone often finds a
 *             correlation that is not there. The test has a known rate of false alarms: it permutes
 *             the slices, those of all series in the same way. All orders of independent slices are
 *             equally likely. So the p value is right for any number of slices, and for series that
 *             depend on each other. Its statistic is the largest correlation of all series and
 *             divisions, in standard errors. */
#ifndef SNAPMLA_HARNESS_SERVING_SLICE_SERIES_H
#define SNAPMLA_HARNESS_SERVING_SLICE_SERIES_H

#include <stdbool.h>
#include <stddef.h>

enum { SLICES_MOST = 32, SLICES_FEWEST = 8, SLICE_SERIES_MOST = 32 };

/* A metric in slices of time. The value of slice i is over[i] / under[i], for example the sum of
 * the times of its requests divided by their number. under[i] is 0 for a slice without a value.
 * Slices are merged by adding both. */
typedef struct {
    double over[SLICES_MOST], under[SLICES_MOST];
} slice_series;

/* The level of the test: the largest probability that independent slices count as dependent. */
extern const double slice_test_level; /* 0.05 */

typedef struct {
    bool left; /* after merging, neighbours are still correlated by more than one standard error */
    double p;  /* p value of the test of the slices before merging. NAN: there are fewer than three
                  pairs of neighbours, or all values are equal */
} slice_dependence;

/**
 * slice_series_merge - merge the slices of all series as far as their correlation requires
 *
 * @series: array of @n series, at most SLICE_SERIES_MOST; this function overwrites them with the
 *          merged ones
 * @blocks: blocks of @each slices in each series, at most SLICES_MOST slices
 *
 * At least SLICES_FEWEST slices are left. Returns the number of slices of a block after merging.
 */
size_t slice_series_merge(slice_series *series, size_t n, size_t blocks, size_t each,
                          slice_dependence *out);

#endif
