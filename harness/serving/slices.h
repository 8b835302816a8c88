/* slices.h - the slices of time into which the steady windows of all blocks are cut (interval.h),
 * and how many of them there are.
 *
 * There are at most 32 slices over all blocks (few and long slices are better than many correlated
 * ones: Schmeiser 1982). Slices are merged in pairs as long as neighbours are correlated in some
 * arm and at least SLICES_FEWEST are left (slice_series.h). With fewer slices there are no
 * intervals. */
#ifndef SNAPMLA_HARNESS_SERVING_SLICES_H
#define SNAPMLA_HARNESS_SERVING_SLICES_H

#include "harness/serving/metrics.h"
#include "harness/serving/slice_series.h"
#include "harness/serving/steady.h"

/* One block of one arm: its requests and its window. */
typedef struct {
    const serving_request *at;
    size_t n;
    steady_window window;
} sliced_block;

/* The number of slices for each block, a power of two: the same for all arms. @blocks: [arms][n]
 * of all arms. *found: whether the slices depend on each other. 0: there are too few requests or
 * blocks for SLICES_FEWEST slices. */
size_t sliced_choose(const sliced_block *const *blocks, size_t arms, size_t n,
                     slice_dependence *found);

/* The slice of the time @t of block number @block, of @each slices in each block; -1 if it lies
 * outside the window or at @to or later. */
int sliced_place(const sliced_block *b, size_t block, size_t each, double t, double to);

/* The number of gaps between pieces of an answered request; 0 for others. */
int sliced_gaps(const serving_request *r);

#endif
