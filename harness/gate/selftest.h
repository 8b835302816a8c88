/* selftest.h - `gate selftest`: this build against itself, as it is and delayed by a known share.
 *
 * Whole gate runs, as many as the time allows: half of them of equal arms, whose alarms are false,
 * half with a delay of 1, 2 or 5 %. Then thousands of comparisons simulated from the noise that the
 * equal arms had (simulate.h), which give rates where a few runs can't, and the smallest slow-down
 * of a single cell that is found 19 times out of 20. */
#ifndef SNAPMLA_HARNESS_GATE_SELFTEST_H
#define SNAPMLA_HARNESS_GATE_SELFTEST_H

#include "harness/gate/compare_builds.h"
#include "harness/gate/simulate.h"
#include "harness/record/verdict.h"

enum { SELFTEST_DELAYS = 4 }; /* 0, 1, 2 and 5 % */

typedef struct {
    double delay_pct;
    size_t runs, alarms; /* whole gates; of these with a cell REGRESSED */
    size_t cells, found; /* their cells; of these REGRESSED */
    size_t sessions;     /* of the runs, each that of its longest cell */
    double estimate_pct; /* mean of the cells' estimates; NAN without runs */
    gate_rates simulated;
} selftest_delay;

typedef struct {
    selftest_delay delays[SELFTEST_DELAYS];
    double smallest_pct; /* NAN: none up to 100 % */
    double spread_pct; /* of the equal arms' cells: largest estimate of a difference there is not */
    double seconds;
    noise_list noise; /* the recorded log-ratios */
    arena mem;        /* owns them */
    remote_about about;
} selftest;
void selftest_release(selftest *s);

/* @opt: its arms are the same program; @seconds to spend on runs. Errors of gate_run(), and
 * SNAP_E_WRONG where the program's output fails its check. @out to be released also on failure. */
snap_status selftest_run(const gate_run_options *opt, double seconds, selftest *out,
                         snap_err *err) SNAP_CHECK_RESULT;

/* Rows for `verdicts`: one a delay, and what they come to: ok; inconclusive where this machine
 * hides a slow-down of 5 %; invalid where equal arms differ more often than alpha allows. NULL: no
 * memory. */
js *selftest_rows(const selftest *s, const gate_limits *l);

#endif
