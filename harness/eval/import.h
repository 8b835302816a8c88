/* import.h - `snapmla eval import`: turns the logs of another evaluation program into a task file
 * and recordings, so that `snapmla eval` can compare the logs. */
#ifndef SNAPMLA_HARNESS_EVAL_IMPORT_H
#define SNAPMLA_HARNESS_EVAL_IMPORT_H

#include "base/json.h"

typedef struct {
    const char *const *logs; /* [n] "NAME=LOG" */
    int n;
    const char *out;    /* folder for the files */
    const char *metric; /* the other program's verdict that is taken; NULL: `task` judges again */
    const char *filter; /* lm-eval's filter; NULL: the only one, or with `task` the first */
    const char *task;   /* a task file whose grader judges again, or the name of such a task */
} import_options;

/**
 * import_logs - read the logs, compare their prompts, write the files
 *
 * Writes OUT/task.json, OUT/problems.jsonl with the prompts and the right answers, and for each log
 * OUT/arm-NAME.jsonl, a recording.
 *
 * @out: {"task", "by", "metric", "filter", "problems", "arms": [{"name", "file", "samples",
 *       "failed", "correct"}]}; the caller frees it. "by", "metric" and "correct" are null if a
 *       task judges again.
 *
 * SNAP_E_USAGE for options that do not fit, and for logs that differ in a prompt, a right answer or
 * their samples; SNAP_E_INPUT for malformed logs and for a malformed task file;
 * SNAP_E_UNSUPPORTED as in foreign_log.h; SNAP_E_IO; SNAP_E_NOMEM.
 */
snap_status import_logs(const import_options *o, js **out, snap_err *err) SNAP_CHECK_RESULT;

#endif
