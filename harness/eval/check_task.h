/* check_task.h - `snapmla eval check-task`: checks a task file, renders prompts, grades answers. */
#ifndef SNAPMLA_HARNESS_EVAL_CHECK_TASK_H
#define SNAPMLA_HARNESS_EVAL_CHECK_TASK_H

#include <signal.h>

#include "base/json.h"

typedef struct {
    const char *task;           /* name of a task, or path of a task file */
    const char *data;           /* NULL: the shipped data sets and the folder of the task file */
    const char *const *answers; /* [n_answers] responses to grade; without any: the gold, another
                                   problem's gold if there is one, and an empty response; none if
                                   answers are programs, or a model or another program judges
                                   them */
    int n_answers;
    const char *lengths, *tokenizer; /* as in task_options, for tasks that the program makes */
    double chars_per_token;
    int64_t problems;        /* number of problems that are shown */
    int64_t seed;            /* seed of shuffled choices and drawn examples */
    const char *math_policy; /* NULL: "truth" */
    const volatile sig_atomic_t *cancel;
} check_task_options;

/**
 * check_task - check a task and show what a run would do with it
 *
 * @out: {"task", "title", "file_sha256", "grader", "samples", "margin_pp", "data", "data_sha256",
 *        "rows", "problems", "note", "shown": [{"id", "gold", "messages": [{"role", "content"}],
 *        "answers": [{"response", "verdict", "extracted", "rule", "reason", "scores"}]}]}; the
 *        caller frees it. "note" says why no problem is shown: the set is confidential, or @data is
 *        NULL and there are no data.
 *
 * SNAP_E_USAGE for an unknown task or policy, and for @answers that a model or another program must
 * judge; SNAP_E_INPUT with file, line and reason for a malformed task file or data file; SNAP_E_IO;
 * SNAP_E_NOMEM, also for a regular expression that exceeds its limit; SNAP_E_ENV if an answer is a
 * program and cannot be isolated.
 */
snap_status check_task(const check_task_options *o, js **out, snap_err *err) SNAP_CHECK_RESULT;

#endif
