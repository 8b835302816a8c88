/* opinions.h - asks the judge model for second opinions (evals/opinion.h). */
#ifndef SNAPMLA_HARNESS_EVAL_OPINIONS_H
#define SNAPMLA_HARNESS_EVAL_OPINIONS_H

#include "base/arena.h"
#include "harness/eval/generate.h"

/**
 * opinions_ask - ask about every stored answer that the rules leave undecided
 *
 * @judge:   the option (judge_model.h). NULL: nothing is asked
 * @journal: receives the judge's settings, if a task has a grader that is `mathematical`
 * @mem:     owns the judge's texts
 *
 * Nothing is asked about an answer that is cut in its row (GRADE_EXTRACTED_MAX). An opinion that
 * this judge has given about the same answer is kept. A request that failed and a reply that is no
 * opinion are stored as such, and the same command asks again. If the judge's server cannot be
 * reached or refuses the API key (SNAP_E_NET), a warning says so, and SNAP_OK is returned.
 * SNAP_E_USAGE for a malformed judge; SNAP_E_CANCELLED; SNAP_E_NOMEM; errors of grade_response(),
 * judge_model_open(), generator_run() and the store.
 */
snap_status opinions_ask(const eval_plan *plan, sample_store *store, const char *judge,
                         const generate_options *opt, results_journal *journal, fs_log *log,
                         arena *mem, snap_err *err) SNAP_CHECK_RESULT;

#endif
