/* quality.h - the quality part of `gate check`: did an arm's accuracy fall?
 *
 * Within the current run, each arm but the controls is compared with the baseline arm; the
 * comparisons are those that the evaluation wrote. Between two runs, if both are folders with
 * samples.jsonl, each arm is compared with itself, paired by problem, with the same statistics
 * (evals/stats.h). The verdict of a comparison is the first of these that applies:
 *
 *   invalid        not comparable: other data, prompts, graders, sampling or settings of the
 *                  requests, no row or no problem that both runs share, or the run refused the
 *                  comparison
 *   regressed      the comparison says "different", the arm is worse, the 90 % interval does not
 *                  lie above -margin, and the p-value (of the sign-flip test if there is one) is
 *                  significant after Holm's correction over all comparisons
 *   inconclusive   an arm, or a run, lost more of its samples than the run's --max-lost allows
 *                  (evals/lost.h)
 *   ok             equivalent, or shown to be better, or the lower end of the 90 % interval is
 *                  above -margin
 *   inconclusive   none of these
 *
 * A task of which only the baseline has a row gets a row with the verdict "missing". */
#ifndef SNAPMLA_HARNESS_GATE_QUALITY_H
#define SNAPMLA_HARNESS_GATE_QUALITY_H

#include "harness/record/results.h"

typedef struct {
    double alpha;
    const char *baseline_samples, *current_samples; /* paths of samples.jsonl; NULL = none */
    uint64_t seed;
} gate_quality_options;

/* Appends rows of kind quality. @baseline: NULL = none. SNAP_E_INPUT: a malformed sample; the
 * message names file and line. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status gate_check_quality(const results *baseline, const results *current,
                               const gate_quality_options *opt, js *rows,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
