/* origins.h - the files that an arm used, kept in the run's journal: the digest of its checkpoint
 * (generator/local/checkpoint/digest.h), and the plugin that computed its attention. Only arms
 * with local:DIR have such a row:
 *
 *   {"checkpoint_sha256": "...", "plugin": null | {"file", "sha256"}} */
#ifndef SNAPMLA_HARNESS_EVAL_ORIGINS_H
#define SNAPMLA_HARNESS_EVAL_ORIGINS_H

#include "evals/plan.h"
#include "harness/record/results.h"

/* Hashes the files of all local arms before they generate. Arms with the same "local:DIR" share one
 * hash. SNAP_E_USAGE: the journal has an arm with the same name and other files. SNAP_E_IO;
 * SNAP_E_INPUT for a folder without checkpoint files; SNAP_E_NOMEM. */
snap_status origins_record(results_journal *j, const eval_plan *plan,
                           snap_err *err) SNAP_CHECK_RESULT;

/* The row of an arm, borrowed; NULL if it has none. */
const js *origins_find(const results_journal *j, const char *arm);

/* Copies the row of an arm, if there is one, from @part, the journal of one part of the run in
 * @folder. SNAP_E_USAGE: another part used other files. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status origins_add(results_journal *j, const char *arm, const results_journal *part,
                        const char *folder, snap_err *err) SNAP_CHECK_RESULT;

#endif
