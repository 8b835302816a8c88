/* load_points.h - the load points of a sweep, in the order in which they are measured. */
#ifndef SNAPMLA_HARNESS_SERVING_LOAD_POINTS_H
#define SNAPMLA_HARNESS_SERVING_LOAD_POINTS_H

#include "harness/serving/block.h"

enum { LOAD_POINTS_MAX = 64 };

typedef struct {
    serving_load load;
    char name[48]; /* "concurrency 16", "rate 2.5", "ramp 1-8", "trace x2" */
} load_point;

typedef struct {
    load_point at[LOAD_POINTS_MAX];
    int n;
} load_points;

/**
 * load_points_parse - make load points from the texts of options; each may be NULL
 *
 * @concurrency: "1,4,16": closed loops
 * @rate:        "0.5,1,2": conversations per second
 * @ramp:        "A-B": one open loop whose rate changes from A to B
 * @speed:       "1,2": the times of the trace, faster by these factors
 * @shape:       as arrival_pattern_parse() takes it; NULL = poisson
 *
 * SNAP_E_USAGE for a malformed text, no point at all, or too many.
 */
snap_status load_points_parse(const char *concurrency, const char *rate, const char *ramp,
                              const char *speed, const char *shape, load_points *out,
                              snap_err *err) SNAP_CHECK_RESULT;

#endif
