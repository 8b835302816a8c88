/* interleave.h - times several arms in alternation, so that a drift of the machine hardly changes
 * the ratio of their times.
 *
 * Two arms take steps in the order A B B A A B B A ..., three in the order A B C C B A ..., until
 * each arm's stop rule has found a reason to stop and the block is complete. So all arms end with
 * the same number of samples, and each mirrored block cancels a linear drift. A single arm is
 * simply repeated. */
#ifndef SNAPMLA_HARNESS_BENCH_INTERLEAVE_H
#define SNAPMLA_HARNESS_BENCH_INTERLEAVE_H

#include <signal.h>

#include "harness/bench/bench_arm.h"
#include "harness/measure/paired_probes.h"
#include "harness/measure/stop.h"

/* Which of @n arms takes step @i. */
int interleave_arm(int64_t i, int n);

/**
 * interleave_measure - one warm-up step for each arm, then samples until every rule has a reason
 *
 * @rules:  [n], initialised by the caller with stop_init()
 * @rest:   idle time between blocks, as a multiple of the block's duration; 0 = none. It keeps the
 *          power of the device low, so that its clock can stay at that of a short burst.
 * @probes: zeroed by the caller; the ceilings are probed between blocks; NULL = no probes
 * @cancel: checked between blocks; may be NULL
 *
 * Errors: those of the backend, SNAP_E_CANCELLED, SNAP_E_NOMEM.
 */
snap_status interleave_measure(bench_arm *const *arms, int n, bench_scope scope, stop_rule *rules,
                               double rest, paired_probes *probes,
                               const volatile sig_atomic_t *cancel,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
