/* step_energy.h - the energy of a step of a whole model, for `bench model --energy`.
 *
 * A loop runs the step again and again, without pauses on a single GPU. Each rank of a group reads
 * the energy meter of its own GPU before and after the loop (energy.h). NVML's counter moves about
 * every 20 to 100 ms. So each reading may be 0.1 s old, and the loop must take at least
 * STEP_ENERGY_LEAST_S: its energy is then wrong by at most 0.1 s of power at either end.
 *
 * A round of steps takes about 2 s at most. The ranks wait for each other before and after each
 * round. The energy of a rank therefore contains its waiting for the slowest rank, as in a real
 * step. */
#ifndef SNAPMLA_HARNESS_BENCH_STEP_ENERGY_H
#define SNAPMLA_HARNESS_BENCH_STEP_ENERGY_H

#include <signal.h>

#include "generator/local/ranks/ranks.h"
#include "harness/measure/energy.h"

enum { STEP_ENERGY_RANKS = 64 };
#define STEP_ENERGY_LEAST_S 1.0

typedef struct {
    double seconds;    /* least time of the loop; at least STEP_ENERGY_LEAST_S */
    double step_ns;    /* about the time of a step; equal on all ranks */
    ranks *group;      /* NULL = this process measures alone */
    energy_meter *own; /* meter of this rank's GPU */
    const volatile sig_atomic_t *cancel;
} step_energy_options;

/* One step. */
typedef snap_status (*step_energy_fn)(void *ctx, snap_err *err);

typedef struct {
    int64_t steps;                  /* in the loop */
    double seconds;                 /* duration of the loop on the slowest rank */
    double rank[STEP_ENERGY_RANKS]; /* joules of one step on each rank; NAN = missing */
    double joules;                  /* the sum over the ranks; NAN if one is missing */
} step_energy;

/* All ranks call it with equal options, except for the meter, and run equally many steps. A missing
 * energy is no error: energy_missing() of that rank says why. SNAP_E_CANCELLED, and the errors of
 * the steps and of the group. */
snap_status step_energy_measure(step_energy *out, const step_energy_options *o, step_energy_fn step,
                                void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
