/* task.h - what is asked: a benchmark's problems as prompts with their golds.
 *
 * A task is a constant of the program; its problems are read from a file of the user's. One file a
 * benchmark (aime.c) says how its rows read and how its prompt is worded; task_rows.h is what these
 * share. */
#ifndef SNAPMLA_EVALS_TASK_H
#define SNAPMLA_EVALS_TASK_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/json.h"
#include "evals/code/judge.h"
#include "evals/grade.h"
#include "evals/math/math_equal.h"
#include "generator/generator.h"

/* What a row of a data file says; strings live in the set's arena. */
typedef struct {
    const char *id;     /* NULL: the row has none, its number in the file is used */
    const char *system; /* NULL: none */
    const char *prompt;
    const char *gold;
    bool skip; /* not asked for: another release, another date */
} task_row;

/* Where the row of a program's tests is, which may be too large to keep. */
typedef struct {
    const char *file;
    int64_t at;
    size_t n;
} task_source;

enum { TASK_FILES = 8 };

/* What the user may choose; all zero: the defaults. */
typedef struct {
    math_policy policy;
    uint64_t seed;             /* of the order in which options are shown */
    const char *gpqa_password; /* NULL: the one its authors publish */
    bool keep_text;            /* confidential prompts may be written to the disk */
    judge_kind judge;          /* of programs */
    const char
        *lcb_version; /* "release_v5", "v6", "v2_v4", "release_latest"; NULL: what is there */
    const char *lcb_from,
        *lcb_to; /* contests from that day on, up to that day: "2024-08-01"; NULL */
} task_options;

/* "field" or "strict"; NULL is "field". SNAP_E_USAGE for anything else. */
snap_status task_policy_parse(const char *name, math_policy *out, snap_err *err) SNAP_CHECK_RESULT;

typedef struct task_spec task_spec;
typedef struct task_rows task_rows;
struct task_spec {
    const char *name;              /* "aime24" */
    const char *title;             /* "AIME 2024" */
    const char *files[TASK_FILES]; /* where in a data folder the rows may be, NULL-terminated */
    int samples;                   /* repeats that the field reports: Mean@samples */
    bool confidential;             /* its authors ask that no plain text is published */
    const grader *grader;
    const grader *strict_grader;        /* for MATH_STRICT; NULL: the same */
    const grader *lcb_grader;           /* for JUDGE_LCB; NULL: the same */
    const grader *(*pick_grader)(void); /* the one that this machine can run; NULL: the first */
    /* A row of a .jsonl file. */
    snap_status (*read_row)(const js *row, task_rows *rows, task_row *out, const char *where,
                            snap_err *err);
    /* The rows of any other file; NULL: every file is JSON lines. */
    snap_status (*read_file)(task_rows *rows, const buf *text, snap_err *err);
    /* The rows of files too large to keep; NULL: the file is read into memory. */
    snap_status (*load)(task_rows *rows, snap_err *err);
    /* The gold of a row of the data's own layout, where it is JSON; NULL where the row has none. */
    js *(*gold_of)(const js *row);
    /* What a program must do, from a row; NULL: answers are no programs. */
    snap_status (*read_tests)(const js *row, code_tests *out, const char *where, snap_err *err);
};

extern const task_spec *const task_table[]; /* NULL-terminated */
const task_spec *task_find(const char *name);

/* The grader of a task under these options. */
const grader *task_grader(const task_spec *t, const task_options *options);

/* "aime24, aime25, ...": for messages. @out has room for @cap bytes. */
void task_names(char *out, size_t cap);

typedef struct {
    const char *id; /* unique in its set */
    const gen_message *messages;
    int n_messages;
    const char *gold;             /* accepted by the grader */
    task_source source;           /* for task_tests() */
    char prompt_sha256[HASH_HEX]; /* of the messages as JSON */
} task_problem;

typedef struct {
    const task_spec *task;
    const grader *grader;
    bool keep_prompts;            /* samples.jsonl holds the prompts: asked for, else false */
    char *file;                   /* as found; owned by mem */
    char sha256[HASH_HEX];        /* of the whole file, or of the digests of a set of several */
    size_t rows;                  /* in the file */
    task_problem *problems;       /* [n], in the file's order */
    size_t n;                     /* rows, or the limit if smaller */
    const task_problem **by_id;   /* [n], sorted: for task_problem_find() */
    char prompt_sha256[HASH_HEX]; /* of all n prompts' hashes */
    arena mem;
} task_set;

/**
 * task_load - read a task's problems
 *
 * @data:    a folder that holds one of task->files, or the file itself
 * @limit:   the first that many problems; 0 = all
 * @options: NULL: the defaults
 * @out:     release with task_set_release(), also after a failure
 *
 * SNAP_E_INPUT with file, line and reason for a malformed or empty file, a gold that the grader
 * does not accept, an id that occurs twice; SNAP_E_IO naming every place looked at when the
 * file is missing.
 */
snap_status task_load(const task_spec *t, const char *data, size_t limit,
                      const task_options *options, task_set *out, snap_err *err) SNAP_CHECK_RESULT;
void task_set_release(task_set *set);

/* The problem with that id; NULL if the set has none. *index may be NULL. */
const task_problem *task_problem_find(const task_set *set, const char *id, size_t *index);

/* The tests of a problem whose answers are programs, read again from its file. SNAP_E_INPUT where the
 * file has changed. Release with tests_release(), also after a failure. */
snap_status task_tests(const task_set *set, const task_problem *p, code_tests *out,
                       snap_err *err) SNAP_CHECK_RESULT;

/* A message of a server as it may be kept: where the prompt is confidential, and the message repeats
 * 24 bytes of it, a static text that says so instead. NULL stays NULL. */
const char *task_public_message(const task_set *set, const task_problem *p, const char *message);

/* The tasks, one file a benchmark. */
extern const task_spec task_aime24, task_aime25, task_math500, task_hmmt_feb25, task_gsm8k,
    task_gpqa_diamond, task_beyond_aime, task_mmlu_pro, task_mmlu_redux, task_ifeval,
    task_zebralogic, task_arena_hard, task_livecodebench, task_humaneval, task_mbpp,
    task_synth_aime, task_synth_math, task_synth_gpqa, task_synth_code;

#endif
