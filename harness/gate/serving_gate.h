/* serving_gate.h - `gate check` for servers under load: compares the rows of two result files that
 * have the same arm and the same load.
 *
 * The logarithms of two values are compared by a normal test. Their standard errors follow from
 * their 95 % intervals. If whole blocks are the units of a run's intervals (field `units`), the
 * test is Welch's t test. Such a run then has one degree of freedom less than it has blocks. The
 * two runs did not take turns, so their difference includes how the machine changes from day to
 * day. Therefore, a change of less than SERVING_GATE_SHARE never counts. Holm's correction covers
 * all tests of all load points.
 *
 * The metrics are treated in three ways:
 *
 *   Medians of ttft, tpot and e2e are "ok" if it is shown that they did not grow by more than the
 *   threshold.
 *
 *   In a closed loop, output tokens/s, requests/s and goodput are "ok" if it is shown that they did
 *   not fall by more than the threshold. In an open loop they can only raise an alarm. A server
 *   that keeps up answers what arrives, so these rates vary with the arrivals.
 *
 *   The p99 of ttft, itl, tpot and e2e can only raise an alarm. They often vary too much to show
 *   that they did not grow.
 *
 * In a row, a ratio above 1 means that the current run is slower. So the ratio of a rate is the
 * baseline divided by the current run. A value of the baseline without an interval is left out. A
 * value that the current run lacks, or has without an interval, is "missing". A load point where an
 * arm was saturated in one run only is compared too. All metrics of a load point are inconclusive
 * if it is unsteady in one of the runs, or if it is correlated and its intervals are computed from
 * slices: such intervals are too narrow. */
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
