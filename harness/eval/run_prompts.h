/* run_prompts.h - the prompts of a finished run, made again from its data.
 *
 * The samples of a run have only the hashes of their prompts. The prompts are made again from the
 * tasks and the data that the journal of the run names. Without a journal the result file names
 * them, but only with the last parts of their paths. */
#ifndef SNAPMLA_HARNESS_EVAL_RUN_PROMPTS_H
#define SNAPMLA_HARNESS_EVAL_RUN_PROMPTS_H

#include "base/buf.h"
#include "harness/record/results.h"

typedef struct run_prompts run_prompts;

/**
 * run_prompts_open - read the problems of a run's tasks
 *
 * @folder: of the run
 * @run:    the run's result
 * @data:   the folder with the data; NULL: the one that the run names, else the shipped one
 * @out:    close with run_prompts_close()
 *
 * SNAP_E_USAGE: no task is named, or there is no data folder. Also the errors of reading the
 * journal, and those of suite_resolve() and of task_load(), for example if the data are no longer
 * there.
 */
snap_status run_prompts_open(run_prompts **out, const char *folder, const results *run,
                             const char *data, snap_err *err) SNAP_CHECK_RESULT;
void run_prompts_close(run_prompts *p); /* NULL is allowed */

/**
 * run_prompts_text - append the prompt of a problem
 *
 * @sha256: the hash in the sample
 *
 * A single message of the user is appended as it is, other messages as JSON. Appends nothing if
 * the data have no problem with this id and this hash. SNAP_E_NOMEM.
 */
snap_status run_prompts_text(const run_prompts *p, const char *task, const char *problem,
                             const char *sha256, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
