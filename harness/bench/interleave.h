/* interleave.h - times several arms in alternation, so that a drift of the machine hardly changes
 * the ratio of their times.
 *
 * A block is one pass over all arms and the same pass in reverse order: A B B A for two arms, and
 * A B C C B A for three. The mirrored order cancels a linear drift. From three arms on, the order
 * of the next block is another row of a Williams square (Williams 1949), for three arms B C A A C B
 * and C A B B A C. So in the passes of n consecutive blocks each arm follows each other arm equally
 * often, and what an arm leaves behind in caches and clocks affects all others alike. Timing ends
 * when each arm's stop rule has found a reason to stop and the block is complete, so all arms end
 * with the same number of samples. A single arm is simply repeated. */
#ifndef SNAPMLA_HARNESS_BENCH_INTERLEAVE_H
#define SNAPMLA_HARNESS_BENCH_INTERLEAVE_H

#include <signal.h>

#include "harness/bench/bench_arm.h"
#include "harness/measure/paired_probes.h"
#include "harness/measure/stop.h"

/* Which of @n arms takes step @i. Block k consists of the steps 2 * n * k up to, but not including,
 * 2 * n * (k + 1). */
int interleave_arm(int64_t i, int n);

/**
 * interleave_measure - one warm-up step for each arm, then samples until every rule has a reason
 *
 * @rules:  [n], initialised by the caller with stop_init()
 * @rest:   idle time between blocks, as a multiple of the block's duration; 0 = none. It keeps the
 *          power of the device low, so that its clock can stay at that of a short burst.
 * @probes: [n] zeroed by the caller; the ceilings of each arm's backend are probed between blocks.
 *          Arms with equal ceilings may have the same object. NULL = no probes
 * @cancel: checked between blocks; may be NULL
 * @failed: the arm with the error; -1 after success or if the error is not that of an arm
 *
 * Errors: those of the backends, SNAP_E_CANCELLED, SNAP_E_NOMEM.
 */
snap_status interleave_measure(bench_arm *const *arms, int n, bench_scope scope, stop_rule *rules,
                               double rest, paired_probes *const *probes,
                               const volatile sig_atomic_t *cancel, int *failed,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
