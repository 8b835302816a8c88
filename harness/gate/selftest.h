/* selftest.h - `gate selftest`: compares this build with itself, unchanged and delayed by a known
 * share.
 *
 * It makes as many complete gate runs as the time allows, but at least 2 and at most 200. About
 * half of them have equal arms, so every alarm is false. The others have a delay of 1, 2 or 5 %.
 * Then it simulates thousands of comparisons from the recorded noise of the equal arms
 * (simulate.h). They give rates that a few runs cannot give, and the smallest slow-down of a single
 * cell that is found in 19 of 20 cases. */
#ifndef SNAPMLA_HARNESS_GATE_SELFTEST_H
#define SNAPMLA_HARNESS_GATE_SELFTEST_H

#include "harness/gate/compare_builds.h"
#include "harness/gate/simulate.h"
#include "harness/record/verdict.h"

enum { SELFTEST_DELAYS = 4 }; /* 0, 1, 2 and 5 % */

typedef struct {
    double delay_pct;
    size_t runs, alarms; /* complete gate runs; those with at least one cell REGRESSED */
    size_t cells, found; /* cells of all these runs; those with the state REGRESSED */
    size_t sessions;     /* sum over the runs of the sessions of the longest cell */
    double estimate_pct; /* mean of the cells' estimates; NAN without runs */
    gate_rates simulated;
} selftest_delay;

typedef struct {
    selftest_delay delays[SELFTEST_DELAYS];
    double smallest_pct; /* smallest slow-down that is found; NAN: none up to 100 % */
    double spread_pct;   /* equal arms: the largest estimated difference of a cell */
    double seconds;
    noise_list noise; /* for each cell: its name, its baseline time and the recorded log-ratios of
                         equal arms */
    arena mem;        /* owns the noise */
    remote_about about;
} selftest;
void selftest_release(selftest *s);

/* @opt: both arms are the same program; @seconds: time for the runs. Errors of gate_run(),
 * SNAP_E_WRONG if the program's output fails its check, and SNAP_E_UNSUPPORTED if a cell cannot
 * run. Release @out also after a failure. */
snap_status selftest_run(const gate_run_options *opt, double seconds, selftest *out,
                         snap_err *err) SNAP_CHECK_RESULT;

/* The rows for `verdicts`: one for each delay, and one with the overall verdict. The verdict is
 * "ok"; "inconclusive" if this machine's noise hides a slow-down of 5 %; "invalid" if equal arms
 * differ more often than alpha allows. NULL when out of memory. */
js *selftest_rows(const selftest *s, const gate_limits *l);

#endif
