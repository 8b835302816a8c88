/* stop.h - decides when a timing has enough samples (the rules of NVIDIA's nvbench, for the
 * median).
 *
 * After min_samples and min_time_s of measured time, a measurement ends for one of these reasons:
 *   noise    The median is known to the required relative noise (stats_median_noise).
 *   plateau  Twice the samples reduced the noise by less than a tenth. Independent samples would
 *            have reduced it by 3/10, so more samples will not help.
 * Without regard to these two minimums it ends for these reasons:
 *   samples  max_samples have been taken.
 *   timeout  The wall-clock limit has passed. It is checked after each sample, so there is at least
 *            one sample.
 * The rule depends on nothing but its input. */
#ifndef SNAPMLA_HARNESS_MEASURE_STOP_H
#define SNAPMLA_HARNESS_MEASURE_STOP_H

#include <stddef.h>

#include "base/err.h"

typedef struct {
    double noise;                 /* relative, 0.005 = half a percent */
    size_t min_samples;           /* >= 1 */
    size_t max_samples;           /* >= min_samples */
    double min_time_s, timeout_s; /* min_time_s: sum of the samples; timeout_s: wall clock */
} stop_limits;

typedef enum { STOP_NOT_YET, STOP_NOISE, STOP_PLATEAU, STOP_SAMPLES, STOP_TIMEOUT } stop_reason;

typedef struct {
    stop_limits limits;
    double *samples; /* nanoseconds in order of arrival, owned */
    double *sorted;  /* the same samples in ascending order, owned */
    size_t n, capacity;
    double sum_ns;
    size_t next_check;  /* number of samples at the next check for a plateau */
    double check_noise; /* noise at the previous check */
    stop_reason reason; /* the first reason found by stop_add() */
} stop_rule;

void stop_init(stop_rule *rule, const stop_limits *limits); /* allocates nothing */
void stop_release(stop_rule *rule);

/* Adds one sample. @wall_s is the wall-clock time since the measurement began. Samples are also
 * kept after a reason was found, because another arm may need more. SNAP_E_DEVICE: the sample is
 * not a positive, finite number. SNAP_E_NOMEM. */
snap_status stop_add(stop_rule *rule, double sample_ns, double wall_s,
                     snap_err *err) SNAP_CHECK_RESULT;

/* "noise", "plateau", "samples", "timeout"; NULL for STOP_NOT_YET. */
const char *stop_reason_name(stop_reason reason);

#endif
