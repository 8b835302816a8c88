/* task.h - a task is one benchmark: its problems become prompts with gold answers.
 *
 * Problems are read from a data file. How a row is read and how the prompt is worded stands in a
 * task file, such as configs/tasks/aime24.json (taskfile/task_file.h), or for tasks that such a
 * file cannot describe, in a source file, such as gpqa.c. task_rows.h has the code that the tasks
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

enum { TASK_GROUPS = 4 };

/* The content of one row of a data file. The strings live in the set's arena or are static. */
typedef struct {
    const char *id;     /* NULL: the row has no id; its number among the rows read becomes the id */
    const char *system; /* system message; NULL: none */
    const char *prompt;
    const char *gold;
    /* The messages between the system message and the prompt; in the set's arena. */
    const gen_message *history;
    int n_history;
    const char *conversation; /* id of the conversation; NULL: the problem is a conversation of its
                                 own */
    const char *groups[TASK_GROUPS]; /* the row's values of task_spec.groups, "" if it has none */
    bool skip; /* the row is not part of the set: it is of another release or date, or has no single
                  right answer. Only read_row() of tasks with a load() may set it */
} task_row;

/* The place of a row with a program's tests: file, offset and length. The tests may be too large to
 * keep in memory. */
typedef struct {
    const char *file;
    int64_t at;
    size_t n;
} task_source;

enum { TASK_FILES = 8 };

/* Choices of the user. All zero: the defaults. */
typedef struct {
    /* For tasks whose problems the program makes: */
    const char *lengths;    /* "4096,16384": lengths in tokens; NULL: those of the task */
    const char *tokenizer;  /* folder of a checkpoint whose tokenizer counts tokens; NULL: they are
                               estimated with chars_per_token */
    double chars_per_token; /* bytes per token; 0: the tokenizer counts, or without a tokenizer 4 */

    math_policy policy;
    uint64_t seed; /* determines the order of shuffled options, and which few-shot examples are
                      drawn for the prompt */
    const char *gpqa_password; /* NULL: the password that the authors publish */
    bool keep_text;            /* prompts of confidential sets may be written to disk */
    judge_kind judge;          /* the judge for answers that are programs */
    const char *lcb_version;   /* "release_v5", "v6", "v2_v4", "release_latest"; NULL: all files in
                                  the folder */
    const char *lcb_from,
        *lcb_to; /* days such as "2024-08-01"; NULL: no limit. Contests count from the start of the
                    first day up to 00:00 of the last day, inclusive */
} task_options;

/* Parses "truth", "field" or "strict"; NULL means "truth". SNAP_E_USAGE for other names. */
snap_status task_policy_parse(const char *name, math_policy *out, snap_err *err) SNAP_CHECK_RESULT;

typedef struct task_spec task_spec;
typedef struct task_rows task_rows;
struct task_spec {
    const char *name;              /* "aime24" */
    const char *title;             /* "AIME 2024" */
    const char *files[TASK_FILES]; /* possible paths in the data folder, NULL-terminated */
    int samples;                   /* default number of samples per problem */
    bool confidential;             /* the authors ask that no plain text is published */
    const grader *grader;
    const grader *by_policy[MATH_STRICT + 1]; /* the grader under each math_policy; NULL: the policy
                                                 makes no difference */
    const grader *lcb_grader; /* the grader under JUDGE_LCB; NULL: JUDGE_LCB makes no
                                 difference */
    /* Chooses a grader that this machine can run, or notes a fault. @data: the data folder; may be
     * NULL. The field is NULL if the three fields above decide. */
    const grader *(*pick_grader)(const char *data);
    /* Reads one row. May be NULL if there is a load(). */
    snap_status (*read_row)(const js *row, task_rows *rows, task_row *out, const char *where,
                            snap_err *err);
    /* Reads all rows of a file whose name does not end in .jsonl; NULL: every file is JSON
     * lines. */
    snap_status (*read_file)(task_rows *rows, const buf *text, snap_err *err);
    /* Reads the task's files itself, for example if there are several or if they are too large
     * for memory. NULL: the one file is read into memory first. */
    snap_status (*load)(task_rows *rows, snap_err *err);
    /* Builds the gold of a row if the gold is JSON. Returns NULL if the row has none or memory is
     * exhausted. The field is NULL if the gold is not JSON. */
    js *(*gold_of)(const js *row);
    /* Reads a program's tests from a row; NULL: the answers of this task are not programs. */
    snap_status (*read_tests)(const task_spec *t, const js *row, code_tests *out, const char *where,
                              snap_err *err);
    /* Only tasks from task files set the rest, except that tasks in C may set `chance`. */
    const void *own;         /* the task file; NULL: the task is defined in C */
    const char *file_sha256; /* SHA-256 of the task file */
    const char *folder;      /* where data are looked for after the data folder; NULL: nowhere */
    double chance;           /* accuracy of guessing, 0..1; 0: about 0, or unknown */
    const char *damaged;     /* cache precision of a local arm: of those known to lower the accuracy
                                in this task, the least damaging; NULL: none is known */
    double margin_pp;        /* 0: none is given */
    bool generated;          /* the program makes the problems; there are no data files */
    bool own_answers;        /* conversations continue with the arm's own answers */
    const char *groups[TASK_GROUPS + 1]; /* fields by which results are also given;
                                            NULL-terminated */
};

/* The tasks that are defined in C; NULL-terminated. */
extern const task_spec *const task_table[];

/* The names of all tasks that come with the program; NULL-terminated. */
extern const char *const task_known[];

/* True if the authors of the set ask that no plain text is published. */
bool task_is_confidential(const char *name);

/**
 * task_find - the task with that name: one of task_table[], or of configs/tasks/NAME.json
 *
 * *out is NULL, which is no error, if there is neither. Errors of task_open(). A task lives until
 * the end of the process.
 */
snap_status task_find(const char *name, const task_spec **out, snap_err *err) SNAP_CHECK_RESULT;

/* The task of a task file at that path. A file that was opened before and has not changed gives the
 * same task again. SNAP_E_IO; SNAP_E_INPUT with file, line and reason; SNAP_E_NOMEM. */
snap_status task_open(const char *path, const task_spec **out, snap_err *err) SNAP_CHECK_RESULT;

/* Fails with SNAP_E_USAGE: there is no task with that name. The message lists task_known[], as far
 * as it fits, and names a similar task if there is one. For a name of task_known[] it says that the
 * program's own file is missing. @others: at most TASK_OTHERS further names
 * that were possible, NULL-terminated; NULL: none. */
enum { TASK_OTHERS = 32 };
snap_status task_unknown(const char *name, const char *const *others, const char *where,
                         snap_err *err);

/* The grader of a task for these options. @data: the data folder, or NULL for the program's own.
 * SNAP_E_IO, SNAP_E_INPUT, SNAP_E_NOMEM: pick_grader() may read data files of this machine. */
snap_status task_grader(const task_spec *t, const char *data, const task_options *options,
                        const grader **out, snap_err *err) SNAP_CHECK_RESULT;

/* Writes the names of task_known[], "aime24, aime25, ...", into @out of @cap bytes, for messages.
 * They are cut if they do not fit. */
void task_names(char *out, size_t cap);

typedef struct {
    const char *id; /* unique in its set */
    const gen_message *messages;
    int n_messages;
    const char *gold;   /* accepted by the grader */
    task_source source; /* the place from which task_tests() reads */
    /* Problems that are turns of one conversation follow each other in the set. Both numbers count
     * from 0. Other problems are conversations of one turn. */
    size_t conversation;
    int turn;
    const char *groups[TASK_GROUPS]; /* values of task->groups */
    char prompt_sha256[HASH_HEX];    /* SHA-256 of the messages as JSON */
} task_problem;

typedef struct {
    const task_spec *task;
    const grader *grader;
    bool keep_prompts;            /* the prompts of this confidential set go into samples.jsonl,
                                     because the user asked for it */
    char *file;                   /* path of the data file (the first one, if there are several), or
                                     "(generated)"; owned by mem */
    char sha256[HASH_HEX];        /* SHA-256 of the file; of several files, of their digests; of
                                     made problems, of all that determines them */
    size_t rows;                  /* rows read, also those that are not part of the set */
    task_problem *problems;       /* [n], in file order */
    size_t n;                     /* number of problems; at most the limit, if there is one */
    int turns;                    /* number of turns of the longest conversation; at most 1: there
                                     are no conversations */
    const task_problem **by_id;   /* [n], sorted by id, for task_problem_find() */
    char prompt_sha256[HASH_HEX]; /* SHA-256 of the n prompt hashes together */
    arena mem;
} task_set;

/**
 * task_load - read a task's problems
 *
 * @data:    a folder that holds one of task->files, or the file itself. If the folder has none,
 *           task->folder is searched too
 * @limit:   keep only the first @limit problems; 0 = all
 * @options: NULL: the defaults
 * @out:     release with task_set_release(), also after a failure
 *
 * SNAP_E_INPUT with the file and the reason if the file is malformed or has no problems, the grader
 * does not accept a gold, or an id occurs twice. SNAP_E_IO if @data does not exist, or if no folder
 * has such a file (the message lists every path that was tried). SNAP_E_USAGE for options that do
 * not fit the data; SNAP_E_NOMEM.
 */
snap_status task_load(const task_spec *t, const char *data, size_t limit,
                      const task_options *options, task_set *out, snap_err *err) SNAP_CHECK_RESULT;
void task_set_release(task_set *set);

/* The problem with that id; NULL if the set has none. *index gets its position; @index may be
 * NULL. */
const task_problem *task_problem_find(const task_set *set, const char *id, size_t *index);

/* Appends the messages of a problem as JSON: [{"content": .., "role": ..}, ..]. SNAP_E_NOMEM. */
snap_status task_messages_json(const task_problem *p, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* The number of problems from problem @first on that belong to the same conversation. */
size_t task_span(const task_set *set, size_t first);

/* Reads the tests of a problem whose answers are programs, again from its file. SNAP_E_INPUT if the
 * row has changed since task_load() or the task has no tests; SNAP_E_IO; SNAP_E_NOMEM. Release with
 * tests_release(), also after a failure. */
snap_status task_tests(const task_set *set, const task_problem *p, code_tests *out,
                       snap_err *err) SNAP_CHECK_RESULT;

/* Returns a server's message in a form that may be stored. If the set is confidential, its prompts
 * are not kept, and the message repeats 24 bytes of the problem's first message, a static text
 * replaces it. NULL stays NULL. */
const char *task_public_message(const task_set *set, const task_problem *p, const char *message);

/* The tasks of task_table[]. */
extern const task_spec task_gpqa_diamond, task_mmlu_redux, task_ifeval, task_zebralogic,
    task_arena_hard, task_livecodebench;

#endif
