/* samples_judge.h - runs the programs in a run's samples and stores their verdicts. Problems are
 * judged in parallel by plan->judge_jobs threads, or one for each processor if that is 0. */
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

/* Returns the errors of sandbox_open() if the plan has tasks whose answers are programs: SNAP_E_ENV
 * if this machine cannot isolate programs. *missing: the packages which such programs may import
 * and this machine lacks. Call it before generating anything. */
snap_status samples_judge_check(const eval_plan *p, package_set *missing,
                                snap_err *err) SNAP_CHECK_RESULT;

/**
 * samples_judge - run the programs and store a verdict in each of their rows
 *
 * Runs the programs that have no verdict of this grader for this gold, or all of them if
 * plan->rejudge is set. Failed requests have no program. A row is written as soon as its program
 * has been judged, so an interruption loses little work. A plan without programs needs no sandbox.
 *
 * SNAP_E_ENV if programs cannot be isolated; SNAP_E_CANCELLED; SNAP_E_NOMEM; errors of task_tests()
 * and of the callbacks.
 */
snap_status samples_judge(const eval_plan *p, const judged_rows *rows,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
