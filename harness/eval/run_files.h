/* run_files.h - the files of a RUN folder, and keys of its journal. The journal also has keys for
 * each arm (clients.h, origins.h). */
#ifndef SNAPMLA_HARNESS_EVAL_RUN_FILES_H
#define SNAPMLA_HARNESS_EVAL_RUN_FILES_H

#include "base/arena.h"
#include "harness/record/results.h"

#define RUN_IDENTITY "identity" /* plan_identity(): what must stay the same when a run continues */
#define RUN_OPTIONS  "asked"    /* the options from which the plan can be made again */
#define RUN_CONFIG   "config"   /* the resolved options, for the result file */
#define RUN_MERGED                                                                                 \
    "merged" /* {"shards": 4}: all samples come from shards; {}: some may have been
                added since */

/* "RUN/name"; NULL when out of memory. */
const char *run_file(arena *mem, const char *run, const char *name);

/* Opens or creates RUN/journal and takes its lock: results_journal_open(). */
snap_status run_journal_open(results_journal **out, const char *run,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Appends a row and frees it. A NULL row counts as out of memory. */
snap_status run_journal_put(results_journal *j, const char *key, js *row,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
