/* suite.h - a named list of tasks with the repeats and the sampling that a comparison calls for.
 *
 * A suite is configs/suites/NAME.json:
 *   {"about": "why this suite exists",
 *    "tasks": [{"task": "aime24", "samples": 32}, ...],     samples: default the task's own
 *    "sampling": {"temperature": 1, "top_p": 0.95, "top_k": 0, "max_tokens": 32768},   optional
 *    "margin_pp": 2}                                                                   optional */
#ifndef SNAPMLA_HARNESS_EVAL_SUITE_H
#define SNAPMLA_HARNESS_EVAL_SUITE_H

#include "evals/task.h"

enum { SUITE_TASKS = 32 };

typedef struct {
    const task_spec *task;
    int samples;
    gen_sampling sampling; /* without a seed */
} suite_task;

typedef struct {
    suite_task tasks[SUITE_TASKS];
    size_t n;
    double margin_pp; /* of the first suite that states one; default 2 */
} suite;

/**
 * suite_resolve - the tasks that --suite means
 *
 * @list: "a,b": each a task's name, a suite's name, or the path of a suite file
 *
 * A task of its own gets its default repeats and temperature 1, top_p 0.95, at most 32768
 * tokens. SNAP_E_USAGE for an unknown name and a task that comes twice; SNAP_E_INPUT with file
 * and reason for a malformed suite.
 */
snap_status suite_resolve(const char *list, suite *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
