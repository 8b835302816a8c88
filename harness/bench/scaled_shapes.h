/* scaled_shapes.h - shapes whose size follows from the device, so that a laptop and a server GPU
 * are both measured under a load that fits them.
 *
 * The number of cached tokens is the largest power of two whose BF16 cache can be read in 2 ms at
 * the measured bandwidth and takes at most 1/16 of the memory. It is at least 2^13 and at most
 * 2^25. The shapes are 16 and 128 heads with sequences of 8192 tokens, and 16 heads with one
 * sequence. Powers of two make devices of similar size share shapes. */
#ifndef SNAPMLA_HARNESS_BENCH_SCALED_SHAPES_H
#define SNAPMLA_HARNESS_BENCH_SCALED_SHAPES_H

#include "harness/bench/grid.h"

/* The number of cached tokens. @read_rate: bytes per second; @memory: bytes, 0 = unknown. */
int64_t scaled_tokens(double read_rate, size_t memory, int d_c, int d_r);

/* Appends the scaled shapes to the grid's list, except those that the list already has.
 * SNAP_E_USAGE: the list is full. */
snap_status scaled_shapes_add(bench_grid *g, double read_rate, size_t memory,
                              snap_err *err) SNAP_CHECK_RESULT;

#endif
