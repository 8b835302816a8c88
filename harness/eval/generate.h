/* generate.h - generates the samples of a run: all arms at the same time, each with its own
 * generator and thread, except that a control with other seeds follows after them (shared.h). */
#ifndef SNAPMLA_HARNESS_EVAL_GENERATE_H
#define SNAPMLA_HARNESS_EVAL_GENERATE_H

#include <signal.h>

#include "base/fs.h"
#include "evals/samples.h"
#include "harness/record/results.h"

typedef struct {
    const char *api_key;      /* the general key (arm_secrets.h); NULL: none */
    const char *api_key_from; /* name of its environment variable, for messages */
    bool judge_from_file;     /* the judge's model is from a configuration file */
    int in_flight;            /* for arms that do not set it; 0: the generator's default */
    bool no_stream;           /* for all arms */
    const volatile sig_atomic_t *cancel; /* NULL: never */
} generate_options;

/**
 * generate_samples - generate the samples that the store does not hold yet
 *
 * @journal: receives the statistics of the clients (clients.h)
 * @log:     receives one line for each failed sample, and one for each client that made transfers
 *
 * Within a task, sample 0 of every problem comes first, then sample 1, so that an interrupted run
 * covers as many problems as possible. Local arms instead generate all samples of a problem one
 * after the other. In tasks whose conversations continue with the arm's own answers, each turn of
 * all conversations comes before the next turn. A turn whose predecessor failed is left out; the
 * same command continues later. When one arm fails, the other arms finish the requests that they
 * have in flight. Progress is printed on standard error.
 *
 * SNAP_E_CANCELLED when *cancel was set; SNAP_E_NET when 64 consecutive requests of an arm failed;
 * errors of arm_secrets_read(), generator_open(), generator_run(), the store and the journal;
 * SNAP_E_NOMEM. Samples that were stored before an error stay in the store.
 */
snap_status generate_samples(const eval_plan *plan, sample_store *store,
                             const generate_options *opt, results_journal *journal, fs_log *log,
                             snap_err *err) SNAP_CHECK_RESULT;

#endif
