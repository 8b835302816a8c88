/* merge.h - the shards of a run become one run.
 *
 * A shard is a RUN folder made with --shard I/N: the samples of its part, judged, without
 * statistics. Merged, they are what one process would have made: the same rows in the same order,
 * the same tables. A merged folder may be merged into again, when more shards are there, and eval
 * goes on with it. */
#ifndef SNAPMLA_HARNESS_EVAL_MERGE_H
#define SNAPMLA_HARNESS_EVAL_MERGE_H

#include "harness/eval/eval_run.h"

typedef struct {
    const char *const *shards; /* [n] folders, in any order */
    size_t n;
    const char *out;           /* the RUN folder to be */
    const char *data;          /* NULL: where the first shard found it */
    const char *gpqa_password; /* NULL: the published one */
    bool partial;              /* shards may be absent */
    const volatile sig_atomic_t *cancel;
    eval_report_fn report; /* NULL: no report */
} merge_options;

/**
 * merge_shards - copy all samples, grade them, and write the result as eval_run() does
 *
 * SNAP_E_USAGE when a folder is no shard, a shard comes twice or is absent, or two are of runs that
 * differ in more than the place of their data and servers; SNAP_E_IO when a process still works on
 * one. *out as in eval_run().
 */
snap_status merge_shards(const merge_options *o, const js *config, results **out,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
