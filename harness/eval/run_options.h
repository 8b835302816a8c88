/* run_options.h - the options from which a run's plan can be made again, as a row of the run's
 * journal. */
#ifndef SNAPMLA_HARNESS_EVAL_RUN_OPTIONS_H
#define SNAPMLA_HARNESS_EVAL_RUN_OPTIONS_H

#include "harness/eval/eval_run.h"

/* The options that a regrade needs. The caller owns the result; NULL when out of memory. */
js *run_options_json(const eval_options *o);

/* Restores the recorded options. If --data, --may-differ, --margin, --max-lost, --math-policy or
 * --judge is given again, the new value replaces the recorded one. Texts belong to the journal.
 * SNAP_E_USAGE if the journal has no options. */
snap_status run_options_recall(eval_options *o, const results_journal *journal,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
