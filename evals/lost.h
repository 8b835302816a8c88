/* lost.h - when samples that an arm has lost forbid the verdict "equivalent".
 *
 * A sample is lost if its request failed after all attempts or if a judge model gave no verdict. If
 * one of two arms has fewer rows, the missing rows count as lost, too. Lost samples are left out of
 * every mean. A server that fails on the hard problems would therefore look better than it is. */
#ifndef SNAPMLA_EVALS_LOST_H
#define SNAPMLA_EVALS_LOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOST_MAX_PCT 1.0 /* default of --max-lost */
#define LOST_LEVEL                                                                                 \
    0.01 /* significance level at which two arms differ in lost samples, or in
                             answers that were repaired */

/* The samples of one arm: rows, and rows with a score. */
typedef struct {
    const char *arm;
    int64_t samples, scored;
} lost_count;

/**
 * lost_too_many - whether one of two arms lost more than @max_pct percent of its samples
 *
 * @why: gets "fp8 lost 3 of 48 samples, more than 1 %" about the arm that lost more, or ""; @cap
 *       bytes
 */
bool lost_too_many(lost_count a, lost_count b, double max_pct, char *why, size_t cap);

#endif
