/* run_options.h - the options that make a run's plan again, kept in its journal. */
#ifndef SNAPMLA_HARNESS_EVAL_RUN_OPTIONS_H
#define SNAPMLA_HARNESS_EVAL_RUN_OPTIONS_H

#include "harness/eval/eval_run.h"

/* What a regrade needs. The caller owns it; NULL when out of memory. */
js *run_options_json(const eval_options *o);

/* The recorded options; --data, --margin and --math-policy may have been given anew. Strings live
 * as long as the journal. SNAP_E_USAGE where it holds none. */
snap_status run_options_recall(eval_options *o, const results_journal *journal,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
