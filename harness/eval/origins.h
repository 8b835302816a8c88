/* origins.h - which files answered for an arm, kept in the run's journal: a checkpoint's digest
 * (generator/local/checkpoint/digest.h), and the plugin that served its attention.
 *
 *   {"checkpoint_sha256": "...", "plugin": null | {"file", "sha256"}}        of arms with local:DIR */
#ifndef SNAPMLA_HARNESS_EVAL_ORIGINS_H
#define SNAPMLA_HARNESS_EVAL_ORIGINS_H

#include "evals/plan.h"
#include "harness/record/results.h"

/* Of all arms, before they generate: hashes the files, a folder once. SNAP_E_USAGE where the journal has
 * samples of others under that name; SNAP_E_IO, SNAP_E_INPUT, SNAP_E_NOMEM. */
snap_status origins_record(results_journal *j, const eval_plan *plan,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Of an arm, borrowed; NULL where it has none. */
const js *origins_find(const results_journal *j, const char *arm);

/* Takes over what a part of the run (@folder) says of an arm. SNAP_E_USAGE where another part said
 * otherwise. */
snap_status origins_add(results_journal *j, const char *arm, const results_journal *part,
                        const char *folder, snap_err *err) SNAP_CHECK_RESULT;

#endif
