#include "harness/bench/sustained.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "harness/bench/interleave.h"

static const double kSampleNs = 3e7;

typedef struct {
    double joules, seconds;
} spent;

/* Sets *steps to the number of steps that fill one sample of kSampleNs, at least 1. */
static snap_status steps_of_sample(bench_arm *arm, bench_scope scope, int *steps, snap_err *err) {
    double ns = 0;
    snap_status st = bench_arm_loop(arm, scope, 2, &ns, err);
    if (st == SNAP_OK && ns < kSampleNs) /* the first steps of a loop may be slower */
        st = bench_arm_loop(arm, scope, 4, &ns, err);
    *steps = ns > 0 && ns < kSampleNs ? (int)(kSampleNs / ns) : 1;
    return st;
}

static snap_status loop(bench_arm *arm, bench_scope scope, double seconds, stop_rule *rule,
                        energy_meter *meter, spent *total, snap_err *err) {
    int steps = 1;
    double ns;
    snap_status st = SNAP_OK;
    TRY(steps_of_sample(arm, scope, &steps, err));
    int64_t start = clock_now_ns();
    energy_start(meter, start);
    double wall = 0;
    while (wall < seconds) {
        TRY(bench_arm_loop(arm, scope, steps, &ns, err));
        int64_t now = clock_now_ns();
        energy_keep(meter, now);
        wall = (double)(now - start) / 1e9;
        TRY(stop_add(rule, ns, wall, err));
    }
    total->joules += energy_read(meter, clock_now_ns());
    total->seconds += wall;
cleanup:
    return st;
}

snap_status sustained_measure(bench_arm *const *arms, int n, bench_scope scope, double seconds,
                              stop_rule *rules, energy_meter *const *meters, double *power_w,
                              const volatile sig_atomic_t *cancel, int *failed, snap_err *err) {
    snap_status st = SNAP_OK;
    *failed = -1;
    spent *total = calloc((size_t)n, sizeof *total);
    if (!total)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %d arms", n);
    for (int64_t i = 0; i < 2 * n; i++) {
        int arm = interleave_arm(i, n);
        if (cancel && *cancel)
            TRY(err_set(err, SNAP_E_CANCELLED, "stopped by a signal"));
        *failed = arm;
        TRY(loop(arms[arm], scope, seconds, &rules[arm], meters[arm], &total[arm], err));
        *failed = -1;
    }
    for (int i = 0; i < n; i++) {
        power_w[i] = total[i].joules / total[i].seconds;
        rules[i].reason = STOP_SAMPLES;
    }
cleanup:
    free(total);
    return st;
}
