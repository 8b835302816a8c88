/* serving_gate.h - `gate check` for servers under load: compares the rows of two result files that
 * have the same arm and the same load.
 *
 * The logarithms of two values are compared with their standard errors, which their 95 % intervals
 * give, by a normal test. If the intervals of a run count whole blocks (`units`), it is a t test
 * after Welch, with one degree of freedom less than the run has blocks. The two runs did not take
 * turns, so their difference includes how the machine changes from day to day; a change of less
 * than SERVING_GATE_SHARE therefore never counts. Holm's correction covers all tests of all load
 * points.
 *
 *   median of ttft, tpot and e2e           "ok" if it is shown that it did not grow by more than
 *                                          the threshold
 *   output tokens/s, requests/s, goodput   in a closed loop "ok" if it is shown that it did not
 * fall by more than the threshold. In an open loop a server that
 *                                          keeps up answers what arrives, so these rates vary with
 *                                          the arrivals: they can only raise an alarm
 *   p99 of ttft, itl, tpot and e2e         can only raise an alarm, because they often vary too
 *                                          much to show that they did not grow
 *
 * In a row, the ratio is above 1 if the current run is slower: of a rate it is the baseline over
 * the current run. A value of the baseline without an interval is left out. A value that the
 * current run lacks, or has without an interval, is "missing". A load point where an arm was
 * saturated in one run only is compared too. All metrics of a load point are inconclusive if it is
 * unsteady in one of the runs, or correlated with intervals by slices, which are too narrow. */
#ifndef SNAPMLA_HARNESS_GATE_SERVING_GATE_H
#define SNAPMLA_HARNESS_GATE_SERVING_GATE_H

#include "harness/gate/decide.h"
#include "harness/record/results.h"

#define SERVING_GATE_SHARE 0.05

/* Appends rows of kind serving; none if the baseline has no load points. SNAP_E_NOMEM. */
snap_status gate_check_serving(const results *baseline, const results *current,
                               const gate_limits *limits, js *rows,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
