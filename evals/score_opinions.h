/* score_opinions.h - scores with the second opinions of a judge model (opinion.h). */
#ifndef SNAPMLA_EVALS_SCORE_OPINIONS_H
#define SNAPMLA_EVALS_SCORE_OPINIONS_H

#include "evals/score.h"

/* Fills `opinions` of all arms of a task, and `with_opinions` of all pairs that are compared.
 * SNAP_E_NOMEM. */
snap_status score_add_opinions(const eval_plan *p, const sample_outcome *outcomes, size_t task,
                               task_score *scores, snap_err *err) SNAP_CHECK_RESULT;

#endif
