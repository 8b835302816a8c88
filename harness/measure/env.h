/* env.h - the state of the machine around a measurement: clock, throttling, other load.
 *
 * One snapshot is taken before the measurement and one after it. Their difference says whether to
 * trust the samples. Most values come from Linux's /proc and /sys. A value that the kernel does not
 * provide is unknown, which is no error. */
#ifndef SNAPMLA_HARNESS_MEASURE_ENV_H
#define SNAPMLA_HARNESS_MEASURE_ENV_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double mhz;        /* clock of processor 0, or if that is unknown the mean over the processors;
                          NAN = unknown */
    int64_t throttles; /* thermal throttling events of processor 0's package since boot; -1 =
                          unknown */
    double busy_s;     /* processor time of all processes and interrupts since boot, steal included;
                       NAN = unknown */
    double own_s;      /* processor time of this process */
    double steal_s;    /* part of busy_s that other guests of the host took; NAN = unknown */
    double wall_s;     /* monotonic clock, in seconds */
} env_state;

typedef struct {
    bool throttled; /* a throttling event occurred, or the clock fell by more than a tenth */
    bool shared;    /* the rest of the machine used more than a tenth of one processor, and more
                       than 0.05 s */
} env_flags;

env_state env_now(void);
env_flags env_between(const env_state *before, const env_state *after);

/* Mean of the "cpu MHz" lines of a /proc/cpuinfo text; NAN when there are none. */
double env_parse_mhz(const char *cpuinfo);

/* Reads busy and stolen ticks from the first line of a /proc/stat text. Returns false if the line
 * has another form. */
bool env_parse_stat(const char *stat, double *busy_ticks, double *steal_ticks);

#endif
