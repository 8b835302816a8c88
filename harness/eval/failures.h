/* failures.h - why samples failed, with counts. */
#ifndef SNAPMLA_HARNESS_EVAL_FAILURES_H
#define SNAPMLA_HARNESS_EVAL_FAILURES_H

#include "evals/samples.h"

/* A tally keeps the first FAILURE_REASONS different reasons and counts all further ones together. A
 * result has the FAILURE_KEPT most frequent reasons of the tally. */
enum { FAILURE_REASONS = 64, FAILURE_KEPT = 8, FAILURE_LENGTH = 120 };

/* The reason of a sample that needs the verdict of a judge model. */
#define FAILURE_UNJUDGED "no verdict of the judge model yet"

/* The reason in a result that stands for all others. */
#define FAILURE_OTHER "other reasons"

typedef struct {
    char text[FAILURE_LENGTH]; /* cut if longer; control characters are escaped */
    int64_t n;
} failure_reason;

typedef struct {
    failure_reason at[FAILURE_REASONS];
    size_t n;
    int64_t other;
} failure_tally;

/* Adds samples that failed with a message; NULL or "": unknown. Messages that differ only in
 * numbers are one reason with the text of the first, unless the number follows "HTTP ". */
void failures_add(failure_tally *t, const char *message, int64_t times);

/* Moves the most frequent reasons to the front and keeps @most of them. The rest is counted in
 * t->other. */
void failures_keep(failure_tally *t, size_t most);

/**
 * failures_collect - why the samples of an arm in a task failed or have no verdict of a judge model
 *
 * @outcomes: of samples_grade()
 * @out:      is set; the FAILURE_KEPT most frequent reasons come first
 *
 * Errors of reading the rows.
 */
snap_status failures_collect(const eval_plan *plan, sample_store *store,
                             const sample_outcome *outcomes, size_t task, size_t arm,
                             failure_tally *out, snap_err *err) SNAP_CHECK_RESULT;

/* Appends the first three reasons, the most frequent ones after failures_keep(), and the number of
 * all others: "12: HTTP 500; 3: the connection was closed; 2: other reasons". Nothing if no sample
 * failed. */
void failures_write(const failure_tally *t, buf *out);

#endif
