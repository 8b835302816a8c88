/* samples_judge.h - samples whose answers are programs: judged problem by problem, on all processors. */
#ifndef SNAPMLA_EVALS_SAMPLES_JUDGE_H
#define SNAPMLA_EVALS_SAMPLES_JUDGE_H

#include "evals/plan.h"

/* What the judge needs of a store. Threads call both at once, never for the same cell. */
typedef struct {
    void *ctx;
    /* The cell's row, owned by the caller; *row is NULL where it has none. */
    snap_status (*read)(void *ctx, size_t cell, js **row, snap_err *err);
    /* Another row for the cell. */
    snap_status (*write)(void *ctx, size_t cell, const js *row, snap_err *err);
} judged_rows;

/* SNAP_E_ENV where a plan has programs and they can't be isolated: to be known before anything is asked. */
snap_status samples_judge_check(const eval_plan *p, snap_err *err) SNAP_CHECK_RESULT;

/* Whether a row has the verdict of this grader for this gold. */
bool samples_judged(const js *row, const grader *g, const char *gold);

/**
 * samples_judge - give every row of a program its verdict
 *
 * Runs those that have none, all of them with plan->rejudge, and writes each row as soon as its problem
 * is done, so that little is lost when this is stopped. A plan without programs needs no sandbox.
 *
 * SNAP_E_ENV where programs can't be isolated; SNAP_E_CANCELLED; what the callbacks give.
 */
snap_status samples_judge(const eval_plan *p, const judged_rows *rows,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
