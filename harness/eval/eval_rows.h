/* eval_rows.h - makes the rows of the result file's sections "evals" and "pooled" from scores. */
#ifndef SNAPMLA_HARNESS_EVAL_EVAL_ROWS_H
#define SNAPMLA_HARNESS_EVAL_EVAL_ROWS_H

#include "base/json.h"
#include "evals/score_groups.h"
#include "harness/eval/clients.h"
#include "harness/eval/failures.h"

/* The row of one metric of task @index of the plan; the caller owns it. @metric: index in the
 * grader's metrics. The rows of all but metric 0 have the task name "TASK:METRIC". @score: of the
 * task. @groups: [n_groups] of the task, for metric 0. @failures: [n_arms], of
 * failures_collect(). @journal: has the statistics of the HTTP clients (clients.h), the files of
 * the arms (origins.h) and the judge model (judge_model.h). NULL: out of memory. */
js *eval_row(const eval_plan *plan, size_t index, int metric, const task_score *score,
             const group_score *groups, size_t n_groups, const failure_tally *failures,
             const results_journal *journal);

/* The row of the section "pooled" that compares arm @pair + 1 with the baseline over all tasks.
 * NULL: out of memory. */
js *eval_pooled_row(const eval_plan *plan, const task_score *scores, size_t pair);

#endif
