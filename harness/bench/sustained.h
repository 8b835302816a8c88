/* sustained.h - runs arms in loops without pauses, as a server does. The device then runs at the
 * clock that its power limit allows.
 *
 * The arms take turns A B B A (interleave.h), with loops of some seconds each. A sample is the mean
 * time of the steps that fill about 30 ms, or of one longer step. Power is the energy that was
 * measured during the loops (energy.h), divided by their time. */
#ifndef SNAPMLA_HARNESS_BENCH_SUSTAINED_H
#define SNAPMLA_HARNESS_BENCH_SUSTAINED_H

#include <signal.h>

#include "harness/bench/bench_arm.h"
#include "harness/measure/energy.h"
#include "harness/measure/stop.h"

/**
 * sustained_measure - two loops of @seconds for each arm
 *
 * @rules:   [n], initialised by the caller; receive the samples and, in the end, the reason
 *           "samples"
 * @meters:  [n], the energy meters of the arms' devices
 * @power_w: [n], set to the mean power of each arm's loops; NAN = the energy of a loop is missing,
 *           and energy_missing() says why
 * @failed:  the arm with the error; -1 after success or if the error is not that of an arm
 *
 * Errors: those of the backends, SNAP_E_CANCELLED, SNAP_E_NOMEM.
 */
snap_status sustained_measure(bench_arm *const *arms, int n, bench_scope scope, double seconds,
                              stop_rule *rules, energy_meter *const *meters, double *power_w,
                              const volatile sig_atomic_t *cancel, int *failed,
                              snap_err *err) SNAP_CHECK_RESULT;

#endif
