/* env.h - what the machine did around a measurement: clock, throttling, other work.
 *
 * A snapshot before and one after; what lies between says whether to trust the samples. Linux's
 * /proc and /sys only; what a kernel does not tell is unknown, never an error. */
#ifndef SNAPMLA_HARNESS_MEASURE_ENV_H
#define SNAPMLA_HARNESS_MEASURE_ENV_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double mhz;        /* mean over the processors; NAN = unknown */
    int64_t throttles; /* thermal throttling events since boot; -1 = unknown */
    double busy_s;  /* processor time since boot spent by anybody, steal included; NAN = unknown */
    double own_s;   /* processor time of this process */
    double steal_s; /* taken by other guests of the host; NAN = unknown */
    double wall_s;  /* monotonic clock */
} env_state;

typedef struct {
    bool throttled; /* a throttling event, or the clock fell by a tenth */
    bool shared;    /* others took more than a tenth of one processor */
} env_flags;

env_state env_now(void);
env_flags env_between(const env_state *before, const env_state *after);

/* Mean of the "cpu MHz" lines of a /proc/cpuinfo text; NAN when there are none. */
double env_parse_mhz(const char *cpuinfo);

/* Busy and stolen ticks of the first line of a /proc/stat text; false when it is none. */
bool env_parse_stat(const char *stat, double *busy_ticks, double *steal_ticks);

#endif
