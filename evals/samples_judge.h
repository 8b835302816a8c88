/* samples_judge.h - runs the programs in a run's samples and stores their verdicts. Problems are
 * judged in parallel on all processors. */
#ifndef SNAPMLA_EVALS_SAMPLES_JUDGE_H
#define SNAPMLA_EVALS_SAMPLES_JUDGE_H

#include "evals/plan.h"

/* Access to the rows of a sample store. Threads call both functions concurrently, but never for the
 * same cell. */
typedef struct {
    void *ctx;
    /* Reads the cell's row, which the caller then owns. *row is NULL if the cell has none. */
    snap_status (*read)(void *ctx, size_t cell, js **row, snap_err *err);
    /* Writes a new row for the cell. */
    snap_status (*write)(void *ctx, size_t cell, const js *row, snap_err *err);
} judged_rows;

/* SNAP_E_ENV if the plan has programs and this machine cannot isolate them. Call it before
 * generating anything. */
snap_status samples_judge_check(const eval_plan *p, snap_err *err) SNAP_CHECK_RESULT;

/**
 * samples_judge - run the programs and store a verdict in each row
 *
 * Runs the programs without a verdict, or all of them if plan->rejudge is set. Rows are written as
 * soon as their problem is done, so an interruption loses little work. A plan without programs
 * needs no sandbox.
 *
 * SNAP_E_ENV if programs cannot be isolated; SNAP_E_CANCELLED; errors of the callbacks.
 */
snap_status samples_judge(const eval_plan *p, const judged_rows *rows,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
