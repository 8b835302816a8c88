/* task.h - what is asked: a benchmark's problems as prompts with their golds.
 *
 * A task is a constant of the program; its problems are read from a file of the user's. One file a
 * benchmark (aime.c) says how its rows read and how its prompt is worded. */
#ifndef SNAPMLA_EVALS_TASK_H
#define SNAPMLA_EVALS_TASK_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/json.h"
#include "evals/grade.h"
#include "generator/generator.h"

/* What a row of a data file says; strings live in the set's arena. */
typedef struct {
    const char *id; /* NULL: the row has none, its number in the file is used */
    const char *prompt;
    const char *gold;
} task_row;

enum { TASK_FILES = 4 };

typedef struct task_spec task_spec;
struct task_spec {
    const char *name;              /* "aime24" */
    const char *title;             /* "AIME 2024" */
    const char *files[TASK_FILES]; /* where in a data folder the rows may be, NULL-terminated */
    int samples;                   /* repeats that the field reports: Mean@samples */
    const grader *grader;
    snap_status (*read_row)(const js *row, arena *mem, task_row *out, const char *where,
                            snap_err *err);
};

extern const task_spec *const task_table[]; /* NULL-terminated */
const task_spec *task_find(const char *name);

/* "aime24, aime25, ...": for messages. @out has room for @cap bytes. */
void task_names(char *out, size_t cap);

typedef struct {
    const char *id; /* unique in its set */
    const gen_message *messages;
    int n_messages;
    const char *gold;             /* accepted by the grader */
    char prompt_sha256[HASH_HEX]; /* of the messages as JSON */
} task_problem;

typedef struct {
    const task_spec *task;
    char *file;                   /* as found; owned by mem */
    char sha256[HASH_HEX];        /* of the whole file */
    size_t rows;                  /* in the file */
    task_problem *problems;       /* [n], in the file's order */
    size_t n;                     /* rows, or the limit if smaller */
    char prompt_sha256[HASH_HEX]; /* of all n prompts' hashes */
    arena mem;
} task_set;

/**
 * task_load - read a task's problems
 *
 * @data:  a folder that holds one of task->files, or the file itself
 * @limit: the first that many problems; 0 = all
 * @out:   release with task_set_release(), also after a failure
 *
 * SNAP_E_INPUT with file, line and reason for a malformed or empty file, a gold that the grader
 * does not accept, an id that occurs twice; SNAP_E_IO naming every place looked at when the
 * file is missing.
 */
snap_status task_load(const task_spec *t, const char *data, size_t limit, task_set *out,
                      snap_err *err) SNAP_CHECK_RESULT;
void task_set_release(task_set *set);

/* The problem with that id; NULL if the set has none. *index may be NULL. */
const task_problem *task_problem_find(const task_set *set, const char *id, size_t *index);

/* The tasks, one file a benchmark. */
extern const task_spec task_aime24, task_aime25, task_synth_aime;

#endif
