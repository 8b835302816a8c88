/* rank.h - by how much do two sets of timings differ, judged by ranks: no distribution is assumed,
 * and a few disturbed samples move nothing.
 *
 * Paired: Wilcoxon's signed ranks, and the Hodges-Lehmann estimate (median of the pairwise means)
 * with its interval. Two samples: Wilcoxon's rank sum, and the median of the pairwise differences.
 * P values are exact for few values without ties, else from the normal approximation with its
 * corrections for ties and continuity (Hollander, Wolfe and Chicken 2014, sections 3.1, 3.2, 4.1,
 * 4.2). */
#ifndef SNAPMLA_HARNESS_MEASURE_RANK_H
#define SNAPMLA_HARNESS_MEASURE_RANK_H

#include <stddef.h>

#include "base/err.h"

enum { RANK_MAX = 512 }; /* values a side */

/* Of the hypothesis that the centre of @x is at most (above: at least) @limit: how likely values
 * that speak as much against it are. 1 for n = 0; n at most RANK_MAX. */
double rank_p_above(const double *x, size_t n, double limit);
double rank_p_below(const double *x, size_t n, double limit);

/* The same of y's shift against x: y = x + shift in distribution. */
double rank_p_shift_above(const double *x, size_t n, const double *y, size_t m, double limit);
double rank_p_shift_below(const double *x, size_t n, const double *y, size_t m, double limit);

typedef struct {
    double centre, lo, hi; /* infinite ends where so few values have no interval; NANs for none */
} rank_estimate;

/* @alpha: the share beyond each end, 0.05 for a 90 % interval. SNAP_E_NOMEM. */
snap_status rank_centre(const double *x, size_t n, double alpha, rank_estimate *out,
                        snap_err *err) SNAP_CHECK_RESULT;
snap_status rank_shift(const double *x, size_t n, const double *y, size_t m, double alpha,
                       rank_estimate *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
