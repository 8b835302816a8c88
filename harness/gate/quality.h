/* quality.h - the quality side of `gate check`: did an arm answer worse?
 *
 * Within the current run: each comparison of its arms with the baseline arm, as evals decided it. Between two
 * runs, where both are folders with samples.jsonl: each arm against itself, problem by problem, by the same
 * paired statistics (evals/stats.h). Of both kinds:
 *
 *   regressed      the verdict is "different", the arm is worse, and the sign-flip test says so after Holm
 *                  over all comparisons
 *   ok             equivalent, or the 90 % interval's lower end is above minus the margin, or it is better
 *   inconclusive   neither
 *   invalid        not comparable: other questions, prompts, graders or sampling, or refused by the run */
#ifndef SNAPMLA_HARNESS_GATE_QUALITY_H
#define SNAPMLA_HARNESS_GATE_QUALITY_H

#include "harness/record/results.h"

typedef struct {
    double alpha;
    const char *baseline_samples, *current_samples; /* samples.jsonl; NULL = none */
    uint64_t seed;
} gate_quality_options;

/* Rows of kind quality, appended. SNAP_E_INPUT with file and line for a malformed sample; SNAP_E_IO,
 * SNAP_E_NOMEM. */
snap_status gate_check_quality(const results *baseline, const results *current,
                               const gate_quality_options *opt, js *rows,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
