/* merge.h - merges the shards of a run into one run.
 *
 * A shard is a RUN folder made with --shard I/N. It holds the graded samples of its part, without
 * statistics. The rows of the merged run are in plan order, as after a run of one process.
 * `snapmla eval` can continue a merged run. Until it does, a new merge into the same folder
 * replaces the samples, for example to add shards that were missing. */
#ifndef SNAPMLA_HARNESS_EVAL_MERGE_H
#define SNAPMLA_HARNESS_EVAL_MERGE_H

#include "harness/eval/eval_run.h"

typedef struct {
    const char *const *shards; /* [n] folders, in any order */
    size_t n;
    const char *out;           /* the RUN folder; created if it does not exist */
    const char *data;          /* NULL: the data folder of the first shard */
    const char *gpqa_password; /* NULL: the published one */
    bool partial;              /* shards may be missing */
    const volatile sig_atomic_t *cancel;
    eval_report_fn report; /* NULL: no report */
} merge_options;

/**
 * merge_shards - copy all samples, grade them, and write the result as eval_run() does
 *
 * SNAP_E_USAGE if a folder is not a shard or is given twice, if a shard is missing and @o->partial
 * is not set, if two shards belong to runs that differ in more than the place of their data and
 * servers, or if @o->out is a shard or has samples of another origin; SNAP_E_IO if a process still
 * works on one of them; errors of eval_run(). *out is set as eval_run() sets it.
 */
snap_status merge_shards(const merge_options *o, const js *config, results **out,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
