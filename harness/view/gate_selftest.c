#include "harness/view/gate_selftest.h"

#include <math.h>

#include "harness/view/writers.h"

static table table_of(const selftest *s) {
    static const char *const heads[] = {"case",     "runs",       "runs with alarm", "cells",
                                        "detected", "measured %", "simulated rate",  "sessions"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (int i = 0; i < SELFTEST_CASES; i++) {
        const selftest_case *d = &s->cases[i];
        table_cell(&t, "%s", d->name);
        table_number(&t, (double)d->runs, 0);
        table_number(&t, (double)d->alarms, 0);
        table_number(&t, (double)d->cells, 0);
        table_number(&t, (double)d->found, 0);
        table_number(&t, d->estimate_pct, 2);
        table_number(&t, (double)d->simulated.alarms / (double)d->simulated.comparisons, 4);
        table_number(&t, d->simulated.sessions, 0);
    }
    return t;
}

static void put_summary(buf *out, const selftest *s) {
    const selftest_case *equal = &s->cases[0];
    (void)buf_printf(
        out,
        "false alarms: %zu of %zu runs with equal arms; rate %.4f in %zu simulated runs\n"
        "largest measured difference between equal arms: %.2f %%\n",
        equal->alarms, equal->runs,
        (double)equal->simulated.alarms / (double)equal->simulated.comparisons,
        equal->simulated.comparisons, s->spread_pct);
    if (isnan(s->smallest_pct))
        (void)buf_puts(
            out, "smallest slow-down of one cell that is detected 19 times out of 20: none\n");
    else
        (void)buf_printf(
            out, "smallest slow-down of one cell that is detected 19 times out of 20: %.1f %%\n",
            s->smallest_pct);
    (void)buf_printf(out, "run time: %.0f s\n", s->seconds);
}

snap_status selftest_text(const selftest *s, bool color, buf *out, snap_err *err) {
    table t = table_of(s);
    snap_status st = write_text(&t, color, out, err);
    table_release(&t);
    put_summary(out, s);
    return st;
}
