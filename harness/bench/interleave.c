#include "harness/bench/interleave.h"

#include "base/clock.h"

enum {
    kFirstRestNs = 100000000
}; /* rest before the first sample, if `rest` is above 0; the
                                      caches were filled and the output was checked before */

int interleave_arm(int64_t i, int n) {
    int at = (int)(i % (2 * n));
    return at < n ? at : 2 * n - 1 - at;
}

static bool all_stopped(const stop_rule *rules, int n) {
    for (int i = 0; i < n; i++)
        if (rules[i].reason == STOP_NOT_YET)
            return false;
    return true;
}

static snap_status warm_up(bench_arm *const *arms, int n, bench_scope scope, snap_err *err) {
    double ns;
    for (int i = 0; i < n; i++) {
        snap_status st = bench_arm_step(arms[i], scope, &ns, err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

snap_status interleave_measure(bench_arm *const *arms, int n, bench_scope scope, stop_rule *rules,
                               double rest, paired_probes *probes,
                               const volatile sig_atomic_t *cancel, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(warm_up(arms, n, scope, err));
    if (rest > 0)
        clock_sleep_ns(kFirstRestNs);
    int64_t started = clock_now_ns(), block = started;
    for (int64_t i = 0; i % (2 * n) != 0 || !all_stopped(rules, n); i++) {
        int arm = interleave_arm(i, n);
        double ns;
        bool between = i % (2 * n) == 0;
        if (cancel && *cancel && between)
            TRY(err_set(err, SNAP_E_CANCELLED, "stopped by a signal"));
        if (probes && between) {
            int64_t before = clock_now_ns();
            TRY(paired_probes_take(probes, bench_arm_backend(arms[0]), err));
            started += clock_now_ns() - before; /* The time of the probes does not count towards the
                                                   arms' timeout. */
        }
        if (rest > 0 && between) { /* The rest also covers the probes: the block's time includes
                                      them. */
            clock_sleep_ns((int64_t)(rest * (double)(clock_now_ns() - block)));
            block = clock_now_ns();
        }
        TRY(bench_arm_sample(arms[arm], scope, &ns, err));
        TRY(stop_add(&rules[arm], ns, (double)(clock_now_ns() - started) / 1e9, err));
    }
cleanup:
    return st;
}
