/* task_file.h - a task that a JSON file describes: configs/tasks/NAME.json, or a file of the user.
 *
 * docs/evals.md ("Your own task") describes the keys. A task file cannot run code. Its data files
 * are found by relative paths without "..". */
#ifndef SNAPMLA_EVALS_TASKFILE_TASK_FILE_H
#define SNAPMLA_EVALS_TASKFILE_TASK_FILE_H

#include "evals/task.h"

enum { TASK_FILE_LIMIT = 1 << 20 };

typedef struct task_file task_file;

/* Parses a task file. @name stands for it in messages. @folder: where its data are looked for after
 * the data folder; NULL: nowhere. SNAP_E_INPUT with "name:line: reason"; SNAP_E_NOMEM. The caller
 * frees *out, which is NULL after an error. */
snap_status task_file_parse(const char *text, size_t n, const char *name, const char *folder,
                            task_file **out, snap_err *err) SNAP_CHECK_RESULT;
void task_file_free(task_file *f);

/* The task, which lives as long as the task file. */
const task_spec *task_file_spec(const task_file *f);

/* True if the file describes a task and not a suite: it is an object with the key "task". */
bool task_file_is_one(const js *file);

#endif
