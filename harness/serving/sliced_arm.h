/* sliced_arm.h - the latencies and counts of one arm at one load point, by slices of time. A slice
 * has the latencies of the requests that were due in it, and counts what ended in it. */
#ifndef SNAPMLA_HARNESS_SERVING_SLICED_ARM_H
#define SNAPMLA_HARNESS_SERVING_SLICED_ARM_H

#include "base/arena.h"
#include "base/err.h"
#include "harness/serving/slices.h"
#include "harness/serving/slo.h"

/* The values of one latency in the slices, in ascending order. */
typedef struct {
    double *value;
    uint16_t *slice; /* [n] the slice of each value */
    uint32_t *place; /* [n] its place in the order of the blocks and of their requests */
    uint8_t *level;  /* [n] scratch of sliced_cluster_effect(), by place */
    size_t n;
    double *sum, *count; /* [slices] */
    uint32_t *below;     /* [k][s]: how many of the k * step smallest values belong to slice s */
    size_t step;
} sliced_values;

enum { SLICED_MARKS = 512 };

/* One arm at one load point. */
typedef struct {
    size_t slices;
    sliced_values latency[SERVING_TIMES];
    double *over[SERVING_RATES], *under[SERVING_RATES]; /* [slices] a rate is sum over / sum under;
                                                           NULL: the rate does not exist */
    double *hits[SLO_MAX], *totals[SLO_MAX];            /* for each target [slices]: values within
                                                           the limit; all values */
    double requests;                                    /* number of requests in the cohort */
} sliced_arm;

/* Cuts the blocks of an arm into @each slices for each block, >= 1. @gpus: 0 = not stated. @mem
 * owns the arrays. SNAP_E_NOMEM. */
snap_status sliced_make(sliced_arm *out, const sliced_block *blocks, size_t n, size_t each,
                        const slo_list *targets, double gpus, arena *mem,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Counts the values within the limit of a target, and all its values, in each slice. @hits,
 * @totals: [n * each], added to */
void sliced_count_target(const sliced_block *blocks, size_t n, size_t each, const slo_target *t,
                         double *hits, double *totals);

#endif
