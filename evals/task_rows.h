/* task_rows.h - what the benchmarks' readers share: turning rows of a data file into problems. */
#ifndef SNAPMLA_EVALS_TASK_ROWS_H
#define SNAPMLA_EVALS_TASK_ROWS_H

#include "evals/task.h"

/* State while a set is being read. */
struct task_rows {
    const task_options *options;
    task_set *set;
    bool in_folder; /* the user named a folder, not a file */
    size_t limit, room;
    buf digests;
    /* For a row that is read again later: its place in the file, and its SHA-256 (the gold). */
    task_source source;
    char gold[HASH_HEX];
    const char *conversation; /* conversation of the last problem; NULL: none */
    void *own;                /* the state of a task's load() */
};

/* Counts a row. False if the set has its limit of problems already; then the row must not be
 * added. */
bool task_rows_next(task_rows *r);

/* Adds a problem. SNAP_E_INPUT with @where if the grader refuses the gold. */
snap_status task_rows_add(task_rows *r, const task_row *row, const char *where,
                          snap_err *err) SNAP_CHECK_RESULT;

/* For a set of several files: adds the digest of another file to the set's digest. */
snap_status task_rows_also(task_rows *r, const buf *part, snap_err *err) SNAP_CHECK_RESULT;

/* Does what task_rows_also() does, for a file whose digest is known already. */
snap_status task_rows_digest(task_rows *r, const char *digest, snap_err *err) SNAP_CHECK_RESULT;

/* ---- parts of a JSON row ---- */

/* The value of the first of the named keys (a list that ends with NULL) that is text without NULs
 * and not blank; NULL if none. Borrowed. */
const char *row_text(const js *row, const char *const *keys);

/* Copies a text into the set's arena. SNAP_E_NOMEM with @where. */
snap_status row_keep(task_rows *r, const char *text, const char **out, const char *where,
                     snap_err *err) SNAP_CHECK_RESULT;

/* The instruction that Qwen's evaluation scripts put after a problem. */
extern const char kRowBoxed[];

/* Sets the id from "id", "ID", "problem_idx" or "unique_id"; "id" and "problem_idx" may also be
 * integers. A row without any of them is no error. */
snap_status row_id(const js *row, task_rows *r, task_row *out, const char *where,
                   snap_err *err) SNAP_CHECK_RESULT;

#endif
