/* arrivals.h - when requests are due in an open loop.
 *
 * Arrivals are a renewal process: the gaps between them are independent and have the mean 1 / rate.
 *
 *   constant      all gaps are equal
 *   poisson       exponential gaps; their coefficient of variation is 1
 *   gamma:SHAPE   gamma gaps; their coefficient of variation is 1 / sqrt(SHAPE). SHAPE 1 is
 *                 Poisson, a smaller one gives bursts, a larger one is more regular
 *
 * In a ramp the rate changes linearly. The gaps are then drawn in operational time, which passes
 * at the current rate: the number of arrivals expected up to t is the integral of the rate.
 * The random numbers follow from the seed and the stream alone. */
#ifndef SNAPMLA_HARNESS_SERVING_ARRIVALS_H
#define SNAPMLA_HARNESS_SERVING_ARRIVALS_H

#include "base/err.h"
#include "base/rng.h"

typedef struct {
    double shape; /* shape of the gamma distribution; 0 = constant gaps */
} arrival_pattern;

/* Parses "constant", "poisson" or "gamma:SHAPE" with SHAPE in [0.01, 1000]. SNAP_E_USAGE. */
snap_status arrival_pattern_parse(const char *text, arrival_pattern *out,
                                  snap_err *err) SNAP_CHECK_RESULT;

typedef struct {
    arrival_pattern pattern;
    double from, to, over_s; /* rate per second: from `from` at time 0 to `to` at over_s; then it
                                stays. over_s = 0: it is `to` from the start */
    double expected;         /* number of arrivals expected up to the last one */
    rng random;
} arrivals;

/* Both rates are > 0. */
arrivals arrivals_make(arrival_pattern pattern, double from, double to, double over_s,
                       uint64_t seed, uint64_t stream);

/* Time of the next arrival, seconds after the start. The first one comes after the first gap. */
double arrivals_next(arrivals *a);

#endif
