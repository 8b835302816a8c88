/* interleave.h - time several arms in turns, so that their ratio survives a drifting machine.
 *
 * The arms take steps in the order A B B A A B B A ..., and go on until each one's stop rule has
 * spoken: all arms end with the same number of samples, and each mirrored block of them cancels a
 * linear drift. A single arm simply repeats. */
#ifndef SNAPMLA_HARNESS_BENCH_INTERLEAVE_H
#define SNAPMLA_HARNESS_BENCH_INTERLEAVE_H

#include <signal.h>

#include "harness/bench/bench_arm.h"
#include "harness/measure/paired_probes.h"
#include "harness/measure/stop.h"

/* Which of @n arms takes step @i. */
int interleave_arm(int64_t i, int n);

/**
 * interleave_measure - one warm-up step an arm, then samples until the rules are content
 *
 * @rules:  [n], initialised by the caller with stop_init()
 * @rest:   idle time between blocks, in times of the block before: a device whose clock follows its
 *          power then stays at the clock of a short burst; 0 = none
 * @looks:  zeroed by the caller; gets a look at the ceilings between blocks; may be NULL
 * @cancel: asked between blocks; may be NULL
 *
 * Errors: those of the backend, SNAP_E_CANCELLED, SNAP_E_NOMEM.
 */
snap_status interleave_measure(bench_arm *const *arms, int n, bench_scope scope, stop_rule *rules,
                               double rest, paired_probes *looks,
                               const volatile sig_atomic_t *cancel,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
