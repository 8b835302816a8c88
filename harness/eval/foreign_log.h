/* foreign_log.h - reads logs of other evaluation programs: one file per task and run, with the
 * samples.
 *
 * lm-evaluation-harness: samples_TASK_DATE.jsonl (--log_samples). Inspect: a log in JSON, or an
 * .eval file, which is a zip of JSON. lighteval: details_TASK_DATE.parquet (--save-details). */
#ifndef SNAPMLA_HARNESS_EVAL_FOREIGN_LOG_H
#define SNAPMLA_HARNESS_EVAL_FOREIGN_LOG_H

#include "base/json.h"

enum { FOREIGN_LOG_LIMIT = 1 << 30 }; /* bytes of a log, also when it is unpacked */

/* The rows are JSON objects:
 *   "problem"   id of the problem, a text
 *   "sample"    from 0
 *   "where"     place in the log, for messages: "FILE:3" or "FILE: sample 'a', epoch 2"
 *   "filter"    lm-eval only: the name of the filter that found the answer
 *   "prompt", "gold"  texts; the prompt is all messages before the model's answer
 *   "prompt_hash"  lm-eval only, and only if the log has "" as the prompt: its hash of the prompt
 *   "scores"    object, {"exact_match": 1, "match": "C"}: the values as the log has them
 *   "extracted" lm-eval and choices of lighteval: the answer that was compared, if the log has it
 *   "answers"   Inspect only: object, {"match": "C"}: the answers that the scorers compared, as far
 *               as the log has them as texts
 * and "response", "reasoning", "error", "finish_reason", "prompt_tokens", "completion_tokens",
 * "reasoning_tokens", "total_ms" as in a recording (generator/replay/recording.h). */
typedef struct {
    js *rows;         /* array */
    char task[65];    /* name of the task in the log, with '_' for what a task's name cannot have */
    const char *from; /* "lm-eval", "Inspect" or "lighteval" */
    char version[40]; /* version of that program; "" = unknown */
    bool one_verdict; /* repeated answers to a question share one verdict */
} foreign_log;

/**
 * foreign_log_parse - read a log from memory
 *
 * @bytes:   the file
 * @name:    its path; the name of a task of lm-eval or lighteval is taken from it
 * @out:     overwritten; release it with foreign_log_release(), also after a failure
 *
 * SNAP_E_INPUT with @name and the reason for a malformed log and one without samples;
 * SNAP_E_UNSUPPORTED for a Parquet file or a zip that base/parquet.h or base/zip.h does not
 * support, and for a Parquet file of lighteval before 0.8 that has lists as texts; SNAP_E_NOMEM.
 */
snap_status foreign_log_parse(foreign_log *out, const char *bytes, size_t n, const char *name,
                              snap_err *err) SNAP_CHECK_RESULT;
void foreign_log_release(foreign_log *log);

/* foreign_log_parse() for a file. The version of lm-eval comes from the results_DATE.json in the
 * same folder; without that file it is unknown. Also SNAP_E_IO. */
snap_status foreign_log_read(foreign_log *out, const char *path, snap_err *err) SNAP_CHECK_RESULT;

#endif
