/* forecast_gate.h - the part of `gate check` for predicted accuracies: does a cache format or a
 * kernel lose more accuracy than the margin?
 *
 * The rows are those of `fidelity --model DIR --predict SUITE` (kind "forecast" of the section
 * model_fidelity). Within the current run, each format is judged by its predicted loss against the
 * first format. With a baseline file, it is also judged by the difference between its predicted
 * losses in both files, paired by problem. P is the probability that the loss is above the margin
 * (evals/forecast.h), and the verdict is the first of these that applies:
 *
 *   invalid        the two files differ in checkpoint, problems, number of answers, sampling or the
 *                  accuracy of the first format, or a row lacks the figures that older versions
 *                  did not write
 *   inconclusive   no loss above the margin can be seen: the prediction has no interval; the
 *                  reference's accuracy is not above the margin; or the percentage of answers
 *                  that diverge is above the margin, and either the answers are greedy, or fewer
 *                  than FORECAST_GATE_MIXED problems have both right and wrong answers
 *   regressed      1 - P, after Holm's correction over all predictions, is at most alpha
 *   ok             P is at most alpha, and at most 30 % of the answers diverge
 *   inconclusive   neither; the reason says how many problems would decide, or to run eval
 *
 * A row that only the baseline has gets the verdict "missing". */
#ifndef SNAPMLA_HARNESS_GATE_FORECAST_GATE_H
#define SNAPMLA_HARNESS_GATE_FORECAST_GATE_H

#include "harness/record/results.h"

/* The least number of problems with both right and wrong answers. Other problems add nothing to a
 * prediction, so with fewer of these its interval is too narrow. */
enum { FORECAST_GATE_MIXED = 10 };

typedef struct {
    double alpha;  /* probability of a false alarm over all predictions */
    double margin; /* largest loss that counts as no change, in percentage points */
} gate_forecast_options;

/* Appends rows of kind forecast. @baseline: NULL = none. SNAP_E_NOMEM. */
snap_status gate_check_forecasts(const results *baseline, const results *current,
                                 const gate_forecast_options *opt, js *rows,
                                 snap_err *err) SNAP_CHECK_RESULT;

#endif
