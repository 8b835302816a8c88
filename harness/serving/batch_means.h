/* batch_means.h - intervals and tests of a mean whose units are whole blocks (batch means:
 * Schmeiser 1982).
 *
 * The values in a block may be correlated in any way. Each block gives one number, for example the
 * logarithm of the ratio of two arms. These numbers are independent if the blocks are. Their mean
 * has an interval by Student's t with n - 1 degrees of freedom. With two blocks the interval is
 * wide: t is 12.7 at 95 %. */
#ifndef SNAPMLA_HARNESS_SERVING_BATCH_MEANS_H
#define SNAPMLA_HARNESS_SERVING_BATCH_MEANS_H

#include <stddef.h>

/* The two-sided interval of the mean of @x [n]. NANs with fewer than two values, or if one of them
 * is not finite. */
void batch_interval(const double *x, size_t n, double level, double out[2]);

/* The two-sided p value of "the mean of the distribution of @x is 0". NAN with fewer than two
 * values, or if one of them is not finite. */
double batch_p(const double *x, size_t n);

/* Widens @ci so that it holds @other too. An end that is NAN in one of them becomes NAN. */
void batch_widen(double ci[2], const double other[2]);

#endif
