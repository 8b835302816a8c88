/* differences.h - the differences between the arms at one load point, and their verdicts
 * (measured.h).
 *
 * A difference has intervals by slices of time (interval.h). If the slices are correlated, these
 * intervals are too narrow. Then they are widened until they also hold the intervals by blocks
 * (batch_means.h). An interval by blocks has one value for each pair of blocks: the logarithm of
 * the ratio of the arms or, if there is no ratio, their difference. The p value is the larger one
 * of the p values by slices and by blocks. Holm's correction covers the p values by slices only.
 * The speed of a server varies for all metrics alike, so the tests by blocks are nearly one test.
 */
#ifndef SNAPMLA_HARNESS_SERVING_DIFFERENCES_H
#define SNAPMLA_HARNESS_SERVING_DIFFERENCES_H

#include "harness/serving/measured.h"

/* What the differences are computed from. */
typedef struct {
    const double *draws;    /* [arms][SLICED_DRAWS][SERVING_METRICS], by sliced_bootstrap() */
    const double *by_block; /* [arms][blocks][SERVING_METRICS], by sliced_block_metrics() */
    size_t blocks;
    double margin;
} difference_sources;

/* Copies metric @m of all draws of arm @a. @x: [SLICED_DRAWS] */
void difference_draws(const double *draws, int a, int m, double *x);

/* Sets all differences of @out, the arms of which are complete. */
void differences_set(serving_measured *out, const difference_sources *from);

#endif
