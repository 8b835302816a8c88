/* sustained.h - arms in loops without a pause, as a server runs them: at the clock that power
 * allows.
 *
 * The arms take turns A B B A, a loop of some seconds each. A sample is the mean of the steps of
 * some hundredths of a second. Power is the device's own count of energy over the loops. */
#ifndef SNAPMLA_HARNESS_BENCH_SUSTAINED_H
#define SNAPMLA_HARNESS_BENCH_SUSTAINED_H

#include <signal.h>

#include "harness/bench/bench_arm.h"
#include "harness/measure/gpu.h"
#include "harness/measure/stop.h"

/**
 * sustained_measure - two loops of @seconds an arm
 *
 * @rules:   [n], initialised by the caller; get the samples, and the reason "samples"
 * @device:  whose energy is counted; NULL = unknown
 * @power_w: [n] while the arm ran; NAN = unknown
 *
 * Errors: those of the backend, SNAP_E_CANCELLED, SNAP_E_NOMEM.
 */
snap_status sustained_measure(bench_arm *const *arms, int n, bench_scope scope, double seconds,
                              stop_rule *rules, const gpu *device, double *power_w,
                              const volatile sig_atomic_t *cancel, snap_err *err) SNAP_CHECK_RESULT;

#endif
