#include "harness/bench/interleave.h"

#include "base/clock.h"

enum {
    kFirstRestNs = 100000000
}; /* rest before the first sample, if `rest` is above 0; the
                                      caches were filled and the output was checked before */

/* Place @at of the first row of a Williams square: 0, 1, n - 1, 2, n - 2, ... Row k has these
 * numbers plus k, modulo n. Two arms always take turns A B B A: the second row would only exchange
 * the arms, which the mirrored order balances already. */
int interleave_arm(int64_t i, int n) {
    int at = (int)(i % (2 * n));
    at = at < n ? at : 2 * n - 1 - at;
    int first = at % 2 ? (at + 1) / 2 : (n - at / 2) % n;
    return n > 2 ? (int)((first + i / (2 * n)) % n) : at;
}

static bool all_stopped(const stop_rule *rules, int n) {
    for (int i = 0; i < n; i++)
        if (rules[i].reason == STOP_NOT_YET)
            return false;
    return true;
}

static snap_status warm_up(bench_arm *const *arms, int n, bench_scope scope, int *failed,
                           snap_err *err) {
    double ns;
    for (int i = 0; i < n; i++) {
        *failed = i;
        snap_status st = bench_arm_step(arms[i], scope, &ns, err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

/* Probes the ceilings of each backend once. */
static snap_status probe(bench_arm *const *arms, int n, paired_probes *const *probes, int *failed,
                         snap_err *err) {
    for (int i = 0; i < n; i++) {
        bool done = false;
        for (int k = 0; k < i; k++)
            done |= probes[k] == probes[i];
        *failed = i;
        snap_status st =
            done ? SNAP_OK : paired_probes_take(probes[i], bench_arm_backend(arms[i]), err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

snap_status interleave_measure(bench_arm *const *arms, int n, bench_scope scope, stop_rule *rules,
                               double rest, paired_probes *const *probes,
                               const volatile sig_atomic_t *cancel, int *failed, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(warm_up(arms, n, scope, failed, err));
    if (rest > 0)
        clock_sleep_ns(kFirstRestNs);
    int64_t started = clock_now_ns(), block = started;
    for (int64_t i = 0; i % (2 * n) != 0 || !all_stopped(rules, n); i++) {
        int arm = interleave_arm(i, n);
        double ns;
        bool between = i % (2 * n) == 0;
        *failed = -1;
        if (cancel && *cancel && between)
            TRY(err_set(err, SNAP_E_CANCELLED, "stopped by a signal"));
        if (probes && between) {
            int64_t before = clock_now_ns();
            TRY(probe(arms, n, probes, failed, err));
            started += clock_now_ns() - before; /* The time of the probes does not count towards the
                                                   arms' timeout. */
        }
        if (rest > 0 && between) { /* The rest also covers the probes: the block's time includes
                                      them. */
            clock_sleep_ns((int64_t)(rest * (double)(clock_now_ns() - block)));
            block = clock_now_ns();
        }
        *failed = arm;
        TRY(bench_arm_sample(arms[arm], scope, &ns, err));
        TRY(stop_add(&rules[arm], ns, (double)(clock_now_ns() - started) / 1e9, err));
    }
    *failed = -1;
cleanup:
    return st;
}
