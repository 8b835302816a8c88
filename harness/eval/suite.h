/* suite.h - a named list of tasks, with the number of samples and the sampling for a comparison.
 *
 * A suite is a file such as configs/suites/NAME.json. All keys but "tasks" and "task" are optional:
 *   {"about": "why this suite exists",
 *    "tasks": [{"task": "aime24", "samples": 32},           samples: default of the task if absent
 *              {"task": "quiz.json"}, ...],                 a task file, from the suite's folder
 *    "sampling": {"temperature": 1, "top_p": 0.95, "top_k": 0, "max_tokens": 32768},
 *                           also min_p, presence_penalty, frequency_penalty, repetition_penalty
 *    "request": {...},      settings of the requests (suite_request.h)
 *    "margin_pp": 2} */
#ifndef SNAPMLA_HARNESS_EVAL_SUITE_H
#define SNAPMLA_HARNESS_EVAL_SUITE_H

#include "base/arena.h"
#include "evals/task.h"

enum { SUITE_TASKS = 32 };

typedef struct {
    const task_spec *task;
    int samples;
    gen_sampling sampling; /* without a seed */
    gen_settings settings;
} suite_task;

typedef struct {
    arena *mem; /* owns the texts of settings */
    suite_task tasks[SUITE_TASKS];
    size_t n;
    double margin_pp; /* the margin of the first suite that has one, else of the first task that has
                         one, else 2 */
} suite;

/**
 * suite_resolve - find the tasks that --suite means
 *
 * @mem:  owns the texts of the tasks' settings
 * @list: "a,b": each part is the name of a task, the name of a suite, or the path of a suite file
 *        or task file. A name with a '/' or with ".json" at its end is a path. A file with the key
 *        "task" is a task file (evals/taskfile/task_file.h).
 *
 * A task that is named directly has its default number of samples, temperature 1, top_p 0.95 and at
 * most 32768 tokens. SNAP_E_USAGE for an unknown name, for a task that occurs twice and for more
 * than SUITE_TASKS tasks; SNAP_E_INPUT, with file and reason, for a malformed file.
 * SNAP_E_IO; SNAP_E_NOMEM.
 */
snap_status suite_resolve(const char *list, arena *mem, suite *out,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
