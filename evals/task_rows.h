/* task_rows.h - what the files of the benchmarks share: from a data file's rows to problems. */
#ifndef SNAPMLA_EVALS_TASK_ROWS_H
#define SNAPMLA_EVALS_TASK_ROWS_H

#include "evals/task.h"

/* A set while it is being read. Loaders read options and set->mem, set->file. */
struct task_rows {
    const task_options *options;
    task_set *set;
    bool in_folder; /* the user named a folder, not the file */
    size_t limit, room;
    buf digests;
    /* Of the row that is being read, where it is to be read again: where it is, its SHA-256. */
    task_source source;
    char gold[HASH_HEX];
};

/* Counts a row; false: it lies past the limit, and is neither looked at nor added. */
bool task_rows_next(task_rows *r);

/* Adds a problem. SNAP_E_INPUT naming @where for a gold that the grader does not take. */
snap_status task_rows_add(task_rows *r, const task_row *row, const char *where,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Another file of the set has been read: its digest becomes part of the set's. */
snap_status task_rows_also(task_rows *r, const buf *part, snap_err *err) SNAP_CHECK_RESULT;

/* The same where the digest is known. */
snap_status task_rows_digest(task_rows *r, const char *digest, snap_err *err) SNAP_CHECK_RESULT;

/* ---- parts of a JSON row ---- */

/* The first of the named keys whose value is text without NULs and not blank; NULL. Borrowed. */
const char *row_text(const js *row, const char *const *keys);

/* A copy in the set's arena. */
snap_status row_keep(task_rows *r, const char *text, const char **out, const char *where,
                     snap_err *err) SNAP_CHECK_RESULT;

/* The wording of Qwen's evaluation scripts, to stand behind a problem. */
extern const char kRowBoxed[];

/* "prompt" as it is, or "problem" or "question" with @before and @behind around it. */
snap_status row_prompt(const js *row, task_rows *r, const char *before, const char *behind,
                       task_row *out, const char *where, snap_err *err) SNAP_CHECK_RESULT;

/* "answer": text, or a number as JSON has it. */
snap_status row_answer(const js *row, task_rows *r, task_row *out, const char *where,
                       snap_err *err) SNAP_CHECK_RESULT;

/* "id", "ID", "problem_idx" or "unique_id"; none of them is no error. */
snap_status row_id(const js *row, task_rows *r, task_row *out, const char *where,
                   snap_err *err) SNAP_CHECK_RESULT;

#endif
