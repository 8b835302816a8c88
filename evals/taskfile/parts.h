/* parts.h - a task file that has been read. */
#ifndef SNAPMLA_EVALS_TASKFILE_PARTS_H
#define SNAPMLA_EVALS_TASKFILE_PARTS_H

#include "evals/longtext/names.h"
#include "evals/task_rows.h"
#include "evals/taskfile/keys.h"
#include "evals/taskfile/rule.h"
#include "evals/taskfile/task_file.h"
#include "evals/taskfile/template.h"

enum {
    TASK_PROMPTS = 4,
    TASK_IDS = 8,
    TASK_CHOICES = 10, /* extract_letter() finds A to J */
    TASK_WHERE = 8,
    TASK_EXAMPLES = 100,
    TASK_FIELD_FILES = 4,
    GENERATED_VALUES = 32, /* limit of lengths, of depths and of distances of a generator */
    GENERATED_TURNS = 7    /* kinds: those of longtext.h, then "turns" (conversation.h) */
};

/* The graders, in the order of their names in read_rules.c. */
typedef enum {
    GRADER_INTEGER,
    GRADER_MATHEMATICS,
    GRADER_LETTER,
    GRADER_EXACT,
    GRADER_REGEX,
    GRADER_ASSERTIONS,
    GRADER_STDIN,
    GRADER_JUDGE,
    GRADER_RECORDED,
    GRADER_SIMILARITY,
} grader_kind;

/* How the rendered "answer" names the right choice. */
typedef enum { ANSWER_LETTER, ANSWER_INDEX, ANSWER_NUMBER, ANSWER_TEXT } answer_kind;

typedef struct {
    bool given;
    const char *field;                    /* field with a list; NULL: `fields` or `texts` is used */
    const char *fields[TASK_CHOICES + 1]; /* fields with one text each */
    size_t n_fields;
    const js *texts;    /* the choices themselves */
    const char *skip;   /* elements with this text are no choices */
    const char *item;   /* each element is an object, and this member has its text; NULL: each
                           element is a text */
    const char *labels; /* field with the list of the choices' labels, or with `item` the member
                           with the label; the answer is one of them */
    answer_kind answer;
    bool shuffle;
} choices_part;

typedef struct {
    bool given;
    const char *data;  /* file in the folder of the data file; NULL: `rows` */
    const js *rows;    /* examples in the task file */
    const char *match; /* only examples that have the problem's value in this field; NULL: all */
    int64_t count;
    bool random;   /* drawn by seed for each problem; else the first ones */
    bool optional; /* if the file is missing, or the user named a data file and no folder, there
                      are no examples */
    template *text;
} examples_part;

/* The grader that takes the verdicts which recorded answers came with. */
typedef struct {
    grader base;
    char id[200]; /* names the metric and the program */
} recorded_grader;

/* A condition on a row: the field has one of the values, or lies within the bounds. */
typedef struct {
    const char *field;
    const js *values; /* a value or a list of values; NULL: the bounds */
    double from, to;
} where_part;

/* A field whose text is in a file of its own. */
typedef struct {
    const char *field;
    template *path; /* from the folder of the data file */
} field_file;

/* Rows that the program makes, in place of a data file (longtext.h, conversation.h). */
typedef struct {
    bool given, has_depth;
    int kind;
    double lengths[GENERATED_VALUES], depths[GENERATED_VALUES];
    name_distance distances[GENERATED_VALUES];
    size_t n_lengths, n_depths, n_distances;
    int items; /* number of items for each combination of length, depth and distance */
    int keys, values, queries, hops, most, turns;
    uint64_t seed;
} generator_part;

/* Rows that are the turns of conversations. */
typedef struct {
    bool given;
    const char *history;      /* field with the messages before the prompt */
    const char *messages;     /* field with all messages; the last one becomes the field "last" */
    const char *conversation; /* field with the conversation's id; the rows of one conversation
                                 follow each other */
} turns_part;

struct task_file {
    task_spec spec;
    arena mem;
    js *file; /* parts of it are borrowed */
    char sha256[HASH_HEX];
    const char *ids[TASK_IDS + 1];
    size_t n_ids; /* number of fields that may hold the id; 0: the fields kUsualIds of rows.c, and a
                     row without any of them gets its number as id */
    where_part where[TASK_WHERE];
    size_t n_where;
    field_file files[TASK_FIELD_FILES];
    size_t n_files;
    template *prompts[TASK_PROMPTS]; /* the first one for which a row has all values is used */
    size_t n_prompts;
    template *system, *answer;        /* NULL: none */
    template *before, *after, *entry; /* for assertions; NULL: none */
    choices_part choices;
    examples_part examples;
    generator_part generator;
    turns_part turns;
    grader_kind grader;
    bool ranged; /* golds are integers from..to */
    int64_t from, to;
    recorded_grader recorded;
    rule rules[GRADE_METRICS];
    int n_rules;
    const char *metrics[GRADE_METRICS + 1];
    rule_grader
        graders[MATH_STRICT + 1]; /* for each policy; used unless an existing grader does the
                                     same */
};

static inline const task_file *file_of(const task_rows *r) {
    return (const task_file *)r->set->task->own;
}

/* Reads "extract", "grader" and "metrics", and sets the graders of f->spec. */
snap_status read_rules(task_file *f, const keys *k, snap_err *err) SNAP_CHECK_RESULT;

/* Reads "generator". */
snap_status read_generator(task_file *f, const keys *k, snap_err *err) SNAP_CHECK_RESULT;

/* Reads "turns" and "groups". */
snap_status read_turns(task_file *f, const keys *k, snap_err *err) SNAP_CHECK_RESULT;
snap_status read_groups(task_file *f, const keys *k, snap_err *err) SNAP_CHECK_RESULT;

/* Compiles the template under @key; *out stays NULL if the key is absent. */
snap_status read_template(const keys *k, const char *key, template **out,
                          snap_err *err) SNAP_CHECK_RESULT;

/* True if a path stays within the folder that it starts from: it is relative, and no part of it is
 * "..". */
bool path_is_inside(const char *path);

/* ---- rows ---- */

/* The functions of f->spec. */
snap_status file_load(task_rows *r, snap_err *err);
snap_status file_read_row(const js *row, task_rows *r, task_row *out, const char *where,
                          snap_err *err);
snap_status file_read_tests(const task_spec *t, const js *row, code_tests *out, const char *where,
                            snap_err *err);

/* Reads a row and adds its problem, unless the set has its limit. */
snap_status file_add_row(task_rows *r, js *row, const char *where, snap_err *err) SNAP_CHECK_RESULT;

/* Makes the rows of a task with "generator". */
snap_status generated_load(task_rows *r, snap_err *err) SNAP_CHECK_RESULT;

/* Splits the messages of a row that has them all in one field. */
snap_status turns_split(const task_file *f, js *row, const char *where,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Sets the groups of a row, its history and its conversation. */
snap_status turns_set(const task_file *f, const js *row, task_rows *r, task_row *out,
                      const char *where, snap_err *err) SNAP_CHECK_RESULT;

/* Calls @fn with each row of a data file: one JSON list if its name ends in ".json", Parquet if it
 * ends in ".parquet", else JSON lines. @fn also gets the number of the row or line. */
snap_status data_each_row(const buf *bytes, const char *path, js_line_fn fn, void *ctx,
                          snap_err *err) SNAP_CHECK_RESULT;

/* The choices of a row as they are shown. */
typedef struct {
    js *list; /* texts; owned */
    size_t n;
    size_t place[TASK_CHOICES]; /* place[i]: where choice i of the row is shown */
    size_t from[TASK_CHOICES];  /* from[i]: index of choice i among the row's elements, with those
                                   that are skipped */
} shown_choices;

/* Makes the list of choices. @id and @seed determine the order if they are shuffled. If the task
 * has no choices, the list is NULL. Release with js_free(out->list), also after an error. */
snap_status choices_make(const task_file *f, const js *row, const char *id, uint64_t seed,
                         shown_choices *out, const char *where, snap_err *err) SNAP_CHECK_RESULT;

/* Writes the letter of the right choice to @letter. @answer is the rendered answer, which names
 * this choice by its letter, its index, its number, its text or its label. */
snap_status choices_letter(const task_file *f, const js *row, const shown_choices *shown,
                           const char *answer, char letter[2], const char *where,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Writes the gold of a row into @out, which must be empty: the letter of the right choice if the
 * task has choices and the grader compares letters, else the rendered answer. An integer with
 * bounds is written as its digits. Writes nothing if the task has no answer. */
snap_status gold_make(const task_file *f, const js *row, const shown_choices *shown, buf *out,
                      const char *where, snap_err *err) SNAP_CHECK_RESULT;

/* Adds the fields that the row lacks and whose texts are in files of their own, unless a prompt can
 * be written without them. The digest of the set includes these files. */
snap_status field_files_add(task_rows *r, js *row, const char *where,
                            snap_err *err) SNAP_CHECK_RESULT;

/* What is kept while the rows of a task are read. */
typedef struct {
    js *rows;            /* the examples, an owned array; NULL: none */
    size_t prompt_bytes; /* bytes of all prompts and system messages so far */
} file_state;

snap_status examples_load(task_rows *r, file_state *state, snap_err *err) SNAP_CHECK_RESULT;

/* Appends the text of the examples for a problem. */
snap_status examples_render(const task_file *f, const file_state *state, const js *row,
                            const char *id, uint64_t seed, buf *out, const char *where,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
