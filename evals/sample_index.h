/* sample_index.h - samples.jsonl as a reader wants it: question by question, the arms side by side.
 *
 * A question is one sample of one problem; its rows are the answers of the arms. The index needs
 * neither the plan nor the data of the run, and holds no answers: about 150 bytes a row, the rest is
 * read from the file when it is shown. */
#ifndef SNAPMLA_EVALS_SAMPLE_INDEX_H
#define SNAPMLA_EVALS_SAMPLE_INDEX_H

#include "base/arena.h"
#include "base/json.h"

typedef struct {
    int task, arm; /* index into tasks, arms */
    const char *problem;
    int64_t order; /* of the problem: where it came first */
    int sample;
    const char *verdict; /* "correct", "wrong", "unparsed"; NULL: failed, or not judged yet */
    const char *extracted, *gold; /* NULL: nothing; cut after 80 bytes */
    bool failed, truncated, empty;
    int64_t tokens; /* of the completion; -1: unknown */
    int64_t at;     /* where in the file */
    size_t len;
} sample_row;

typedef struct {
    const sample_row *rows; /* [n], at most one an arm, in the order of arms */
    size_t n;
    bool differs; /* one arm is right and another is not; failed ones don't count */
} sample_question;

enum { SAMPLE_NAMES = 64 };

typedef struct {
    const char *tasks[SAMPLE_NAMES], *arms[SAMPLE_NAMES]; /* in order of appearance */
    int n_tasks, n_arms;
    sample_row *rows; /* task by task, problem by problem, sample by sample */
    size_t n_rows, room;
    sample_question *questions; /* in the same order */
    size_t n_questions;
    char *path; /* owned */
    int fd;
    arena mem;
} sample_index;

/**
 * sample_index_open - read a file of samples
 *
 * Of several rows of an arm for one question the latest counts, but a failure never replaces an answer. A
 * line that a process is still writing is left out. SNAP_E_INPUT with file and line for a malformed
 * row; SNAP_E_IO. Release with sample_index_close(), also after a failure.
 */
snap_status sample_index_open(sample_index *x, const char *path, snap_err *err) SNAP_CHECK_RESULT;
void sample_index_close(sample_index *x);

/* The row as it is stored; NULL on failure: SNAP_E_IO, SNAP_E_INPUT, SNAP_E_NOMEM in *err. */
js *sample_index_read(const sample_index *x, const sample_row *row, snap_err *err);

/* Whether any row of a question is of a kind: "correct", "wrong", "unparsed", "truncated", "empty",
 * "failed"; or, of "differs", the question itself. */
bool sample_question_is(const sample_question *q, const char *kind);
extern const char *const sample_kinds[]; /* NULL-terminated */

#endif
