/* merge.h - merges the shards of a run into one run.
 *
 * A shard is a RUN folder made with --shard I/N. It holds the graded samples of its part, without
 * statistics. The merged run equals the run of a single process: the same rows in the same order
 * and the same tables. More shards can be merged into a merged folder later, and eval can continue
 * it. */
#ifndef SNAPMLA_HARNESS_EVAL_MERGE_H
#define SNAPMLA_HARNESS_EVAL_MERGE_H

#include "harness/eval/eval_run.h"

typedef struct {
    const char *const *shards; /* [n] folders, in any order */
    size_t n;
    const char *out;           /* the RUN folder to create */
    const char *data;          /* NULL: the folder that the first shard used */
    const char *gpqa_password; /* NULL: the published one */
    bool partial;              /* shards may be missing */
    const volatile sig_atomic_t *cancel;
    eval_report_fn report; /* NULL: no report */
} merge_options;

/**
 * merge_shards - copy all samples, grade them, and write the result as eval_run() does
 *
 * SNAP_E_USAGE if a folder is not a shard, if a shard is given twice or is missing, or if two
 * shards belong to runs that differ in more than the place of their data and servers; SNAP_E_IO if
 * a process still works on one of them. *out as in eval_run().
 */
snap_status merge_shards(const merge_options *o, const js *config, results **out,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
