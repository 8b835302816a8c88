/* paired_ratio.h - how much faster one arm is than another that was timed in alternation with it.
 *
 * Sample i of both arms was taken in the same pass over all arms. So a slow change of the machine
 * affects both alike and hardly changes the ratio of their times. The samples are split into up to
 * 25 consecutive stretches, because neighbouring samples resemble each other and would count
 * several times. Each stretch gives the logarithm of the ratio of both arms' medians. The ratio
 * and its 95 % interval are the exponentials of the Hodges-Lehmann estimate of these logarithms and
 * of its interval (rank.h). */
#ifndef SNAPMLA_HARNESS_MEASURE_PAIRED_RATIO_H
#define SNAPMLA_HARNESS_MEASURE_PAIRED_RATIO_H

#include <stddef.h>

#include "base/err.h"

typedef struct {
    double ratio;  /* the baseline's time divided by the arm's: above 1 the arm is faster */
    double lo, hi; /* the 95 % interval; NAN for fewer than 6 pairs */
} paired_ratio;

/**
 * paired_ratio_of - compare two arms
 *
 * @base, @n: the baseline's samples in the order of measurement, all above 0
 * @arm, @m:  those of the other arm. If @m is not @n, the samples are not pairs: then `ratio` is
 *            that of the two medians, and there is no interval
 *
 * All values are NAN if one of the arms has no sample. SNAP_E_NOMEM.
 */
snap_status paired_ratio_of(const double *base, size_t n, const double *arm, size_t m,
                            paired_ratio *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
