/* selftest.h - `gate selftest`: compares this build with itself, unchanged and slowed on purpose.
 *
 * The cases are equal arms, delays of 1, 2 and 5 %, 20 ms more in every 97th step, and 8 % more in
 * every 10th turn. The selftest makes as many gate runs as the time allows, but at least 1 and at
 * most 200. Runs of equal arms, of which the first run is one, alternate with runs of the other
 * cases. An alarm in a run of equal arms is false. A run leaves out the looks for which there is no
 * time.
 *
 * Then it simulates 2000 comparisons of each case (simulate.h), which give rates that a few runs
 * cannot give. Further simulations find the smallest slow-down of a single cell that is found in 19
 * of 20 comparisons. The noise of a case is that of the equal arms, with the steps of the second
 * arm slowed as the case says. */
#ifndef SNAPMLA_HARNESS_GATE_SELFTEST_H
#define SNAPMLA_HARNESS_GATE_SELFTEST_H

#include "harness/gate/compare_builds.h"
#include "harness/gate/simulate.h"
#include "harness/record/verdict.h"

enum { SELFTEST_CASES = 6 };

typedef struct {
    const char *name; /* "equal arms", "delayed by 5 %"; static */
    gate_slowing slowing;
    size_t runs, alarms; /* gate runs; those with at least one cell REGRESSED */
    size_t cells, found; /* cells of all these runs; those with the state REGRESSED */
    size_t sessions;     /* sum over the runs of the sessions of the longest cell */
    double estimate_pct; /* mean of the cells' estimated slow-downs of the lower quartile; NAN
                            without runs */
    gate_rates simulated;
} selftest_case;

typedef struct {
    selftest_case cases[SELFTEST_CASES]; /* the first has equal arms */
    double smallest_pct; /* smallest slow-down that is found; NAN: none up to 100 % */
    double spread_pct;   /* equal arms: the largest estimated difference of a cell */
    double seconds;
    noise_list noise; /* the recorded sessions of equal arms, for each cell */
    arena mem;        /* owns the noise */
    remote_about about;
} selftest;
void selftest_release(selftest *s);

/* @opt: both arms are the same program; @seconds: time for the runs. Errors of gate_run(),
 * SNAP_E_WRONG if the program's output fails its check, and SNAP_E_UNSUPPORTED if a cell cannot
 * run. Release @out also after a failure. */
snap_status selftest_run(const gate_run_options *opt, double seconds, selftest *out,
                         snap_err *err) SNAP_CHECK_RESULT;

/* The rows for `verdicts`: one for each case, and one with the overall verdict. The verdict is
 * "ok"; "inconclusive" if this machine's noise hides a slow-down of 5 %; "invalid" if equal arms
 * differ more often than alpha allows. NULL when out of memory. */
js *selftest_rows(const selftest *s, const gate_limits *l);

#endif
