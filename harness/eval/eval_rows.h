/* eval_rows.h - scores as rows of the result file's "evals" section. */
#ifndef SNAPMLA_HARNESS_EVAL_EVAL_ROWS_H
#define SNAPMLA_HARNESS_EVAL_EVAL_ROWS_H

#include "base/json.h"
#include "evals/score.h"
#include "harness/eval/clients.h"

/* The row of one metric of a task, 0 for the verdict's; the caller owns it. The further ones have rows of
 * their own, whose "task" is "TASK:METRIC". @score: of the task. @journal: what the clients did
 * (clients.h). NULL when out of memory. */
js *eval_row(const eval_plan *plan, size_t index, int metric, const task_score *score,
             const results_journal *journal);

#endif
