/* rank.h - rank tests and estimates of the difference between two sets of timings. They assume no
 * particular distribution, and a few disturbed samples hardly change them.
 *
 * Paired samples: Wilcoxon's signed-rank test, and the Hodges-Lehmann estimate (the median of the
 * pairwise means) with its interval. Two samples: Wilcoxon's rank-sum test, and the median of the
 * pairwise differences. P values are exact for up to 25 values in a sample, for two samples only
 * without ties. Otherwise they come from the normal approximation, corrected for ties and
 * continuity (Hollander, Wolfe and Chicken 2014, sections 3.1, 3.2, 4.1, 4.2). */
#ifndef SNAPMLA_HARNESS_MEASURE_RANK_H
#define SNAPMLA_HARNESS_MEASURE_RANK_H

#include <stddef.h>

#include "base/err.h"

enum { RANK_MAX = 512 }; /* largest number of values in one sample */

/* One-sided p values. rank_p_above() tests the hypothesis that the centre of @x is at most @limit;
 * rank_p_below() tests that it is at least @limit. The result is 1 if no value differs from @limit.
 * n is at most RANK_MAX. */
double rank_p_above(const double *x, size_t n, double limit);
double rank_p_below(const double *x, size_t n, double limit);

/* The smallest p value that @n paired values without ties can have: that of n values above the
 * limit. n is at most RANK_MAX. */
double rank_least_p(size_t n);

/* rank_p_above() and rank_p_below() for the shift of y against x: y = x + shift in distribution.
 * The result is 1 if a sample is empty, or if no value of x + @limit or y differs from the
 * others. */
double rank_p_shift_above(const double *x, size_t n, const double *y, size_t m, double limit);
double rank_p_shift_below(const double *x, size_t n, const double *y, size_t m, double limit);

typedef struct {
    double centre, lo, hi; /* lo and hi are infinite if there are too few values; all are NAN
                              without values */
} rank_estimate;

/* The centre of one sample, or the shift of @y against @x. @alpha: the share beyond each end of the
 * interval, for instance 0.05 for a 90 % interval. SNAP_E_NOMEM. */
snap_status rank_centre(const double *x, size_t n, double alpha, rank_estimate *out,
                        snap_err *err) SNAP_CHECK_RESULT;
snap_status rank_shift(const double *x, size_t n, const double *y, size_t m, double alpha,
                       rank_estimate *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
