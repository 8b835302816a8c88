/* sample_index.h - an index of samples.jsonl for viewing: one entry per question, with the arms
 * side by side.
 *
 * A question is one sample of one problem. Its rows are the answers of the arms. The index needs
 * neither the plan nor the data set. It does not keep the responses: they are read from the file
 * when they are shown. */
#ifndef SNAPMLA_EVALS_SAMPLE_INDEX_H
#define SNAPMLA_EVALS_SAMPLE_INDEX_H

#include "base/arena.h"
#include "base/json.h"

typedef struct {
    int task, arm; /* indices into tasks and arms */
    const char *problem;
    int64_t order; /* position of the problem among all, in order of first appearance in the file */
    int sample;
    const char *verdict; /* "correct", "wrong", "unparsed"; NULL: failed or not judged yet */
    const char *extracted, *gold; /* at most the first 80 bytes; NULL: none */
    bool failed, truncated, empty;
    int64_t tokens; /* completion tokens; -1: unknown */
    int64_t at;     /* offset of the row in the file */
    size_t len;
} sample_row;

typedef struct {
    const sample_row *rows; /* [n], at most one per arm, in the order of arms */
    size_t n;
    bool differs; /* one arm is correct and another is not; rows without a verdict do not count */
} sample_question;

enum { SAMPLE_NAMES = 64 };

typedef struct {
    const char *tasks[SAMPLE_NAMES], *arms[SAMPLE_NAMES]; /* names, in the order in which they first
                                                             appear in the file */
    int n_tasks, n_arms;
    sample_row *rows; /* sorted by task, problem, sample and arm */
    size_t n_rows, room;
    sample_question *questions; /* sorted by task, problem and sample */
    size_t n_questions;
    char *path; /* owned */
    int fd;
    arena mem;
} sample_index;

/**
 * sample_index_open - read a samples file
 *
 * If an arm has several rows for one question, the latest one counts, but a failure never replaces
 * an answer. An incomplete last line, which another process may be writing, is ignored.
 * SNAP_E_INPUT with file and line for a malformed row or more than SAMPLE_NAMES tasks or arms;
 * SNAP_E_IO; SNAP_E_NOMEM. Release with sample_index_close(), also after a failure.
 */
snap_status sample_index_open(sample_index *x, const char *path, snap_err *err) SNAP_CHECK_RESULT;
void sample_index_close(sample_index *x);

/* Reads the stored row, which the caller then owns. NULL on failure, with SNAP_E_IO, SNAP_E_INPUT
 * or SNAP_E_NOMEM in *err. */
js *sample_index_read(const sample_index *x, const sample_row *row, snap_err *err);

/* True if any row of the question is of a kind: "correct", "wrong", "unparsed", "truncated",
 * "empty" or "failed". The kind "differs" applies to the question itself. */
bool sample_question_is(const sample_question *q, const char *kind);
extern const char *const sample_kinds[]; /* NULL-terminated */

#endif
