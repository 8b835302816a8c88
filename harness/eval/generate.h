/* generate.h - fill a run's samples: every arm at once, each with its own generator and thread. */
#ifndef SNAPMLA_HARNESS_EVAL_GENERATE_H
#define SNAPMLA_HARNESS_EVAL_GENERATE_H

#include <signal.h>

#include "base/fs.h"
#include "evals/samples.h"
#include "harness/record/results.h"

typedef struct {
    const char *api_key; /* NULL: none */
    int in_flight;       /* of an arm that doesn't say; 0: the generator's default */
    bool no_stream;      /* for all arms */
    const volatile sig_atomic_t *cancel; /* NULL: never */
} generate_options;

/**
 * generate_samples - generate what the store does not hold yet
 *
 * @journal: gets what the clients say of their own work (clients.h)
 * @log:     one line for each failed sample
 *
 * Sample 0 of every problem comes first, then sample 1: an interrupted run has seen all problems.
 * When one arm can't go on, the others finish what they have in flight. Progress on standard error.
 *
 * SNAP_E_CANCELLED when *cancel was set; SNAP_E_NET when kGiveUpAfter requests of an arm
 * failed in a row; what opening a generator gives. Finished samples are in the store in every case.
 */
snap_status generate_samples(const eval_plan *plan, sample_store *store,
                             const generate_options *opt, results_journal *journal, fs_log *log,
                             snap_err *err) SNAP_CHECK_RESULT;

#endif
