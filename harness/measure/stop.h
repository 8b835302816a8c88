/* stop.h - when a timing has enough samples (the rules of NVIDIA's nvbench, on the median).
 *
 * A measurement ends, after min_samples and min_time_s of measured time, when
 *   noise    the median is known to the wanted relative noise (stats_median_noise), or
 *   plateau  twice the samples brought the noise down by less than a tenth, where independent
 *            samples would have brought it down by 3/10: more of them won't help;
 * and in any case when
 *   samples  max_samples are in, or
 *   timeout  the wall clock ran out (checked after each sample, so one is always there).
 * The rule is a pure function of what it is fed. */
#ifndef SNAPMLA_HARNESS_MEASURE_STOP_H
#define SNAPMLA_HARNESS_MEASURE_STOP_H

#include <stddef.h>

#include "base/err.h"

typedef struct {
    double noise;                 /* relative, 0.005 = half a percent */
    size_t min_samples;           /* >= 1 */
    size_t max_samples;           /* >= min_samples */
    double min_time_s, timeout_s; /* of samples summed; of the wall clock */
} stop_limits;

typedef enum { STOP_NOT_YET, STOP_NOISE, STOP_PLATEAU, STOP_SAMPLES, STOP_TIMEOUT } stop_reason;

typedef struct {
    stop_limits limits;
    double *samples; /* nanoseconds in order of arrival, owned */
    double *sorted;  /* the same ascending, owned */
    size_t n, capacity;
    double sum_ns;
    size_t next_check;  /* samples at which the plateau is looked for */
    double check_noise; /* noise at the check before */
    stop_reason reason; /* the first one stays */
} stop_rule;

void stop_init(stop_rule *rule, const stop_limits *limits); /* allocates nothing */
void stop_release(stop_rule *rule);

/* Takes one sample and the wall time since the measurement began. Samples after the rule has spoken
 * are kept too (the other arm may need more). SNAP_E_NOMEM. */
snap_status stop_add(stop_rule *rule, double sample_ns, double wall_s,
                     snap_err *err) SNAP_CHECK_RESULT;

/* "noise", "plateau", "samples", "timeout"; NULL for STOP_NOT_YET. */
const char *stop_reason_name(stop_reason reason);

#endif
