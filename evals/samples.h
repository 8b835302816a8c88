/* samples.h - samples.jsonl: one row a sample, the memory of a run.
 *
 * A row: task, problem, sample, arm, model, precision, prompt_sha256, sampling, seed, gold;
 * response, reasoning, finish_reason, prompt_tokens, completion_tokens, attempts, ttft_ms,
 * total_ms, failed, error, truncated, empty; after grading also grader, verdict, extracted, rule,
 * reason, and, where the task measures more than that, scores: {"instruction_strict": 0.5, ...}. What is unknown is null. The prompt itself is a row's only where a confidential one is
 * asked for (task_options.keep_text).
 *
 * itl_ms_mean, itl_ms_p50 and itl_ms_p99 are a row's too: gaps between the pieces of its stream.
 *
 * Durability: a row is one write(2), so a killed process loses the samples in flight and nothing
 * else; samples_sync() is called once a second, so a machine that loses power loses a second more.
 * A failed sample is a row too: it says why, is excluded from every mean, and is tried again when
 * the run is resumed. Rows of problems that the present plan leaves out are kept as they are. */
#ifndef SNAPMLA_EVALS_SAMPLES_H
#define SNAPMLA_EVALS_SAMPLES_H

#include "evals/plan.h"
#include "evals/samples_judge.h"

/* What statistics need to know of a sample. */
typedef struct {
    bool present; /* there is a row */
    bool failed;
    bool unjudged;  /* waits for the verdict of another model: counts as failed */
    bool truncated; /* stopped by the length limit */
    bool empty;     /* nothing but reasoning and white space */
    grade_verdict verdict;
    /* Of the grader's further metrics; where a model judges, of all. */
    grade_score also[GRADE_METRICS - 1];
    uint64_t text_hash;            /* of the response; 0 where empty or failed */
    int64_t completion_tokens;     /* -1: unknown */
    uint64_t answer_hash;          /* of what was extracted; 0 where nothing was */
    double ttft_ms, total_ms;      /* NAN: unknown */
    double itl_ms_p50, itl_ms_p99; /* NAN: unknown */
} sample_outcome;

typedef struct sample_store sample_store;

/**
 * samples_open - open or create the file and find what is finished
 *
 * @plan: borrowed for the store's life
 *
 * Cuts a partial last line off. SNAP_E_INPUT with file and line for a malformed row;
 * SNAP_E_USAGE when a row of one of the plan's cells was made from another prompt, model or seed;
 * SNAP_E_IO. One process at a time: the caller holds the run's lock.
 */
snap_status samples_open(sample_store **out, const eval_plan *plan, const char *path,
                         snap_err *err) SNAP_CHECK_RESULT;
void samples_close(sample_store *s); /* NULL is allowed */

/* Finished and not failed: need not be generated again. */
bool samples_done(const sample_store *s, size_t cell);
size_t samples_done_count(const sample_store *s);

/* Adds a result as a row. Threads may call it at the same time. */
snap_status samples_append(sample_store *s, const gen_request *req, const gen_result *res,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Puts appended rows onto the disk. */
snap_status samples_sync(sample_store *s, snap_err *err) SNAP_CHECK_RESULT;

/* The rows for whoever judges them elsewhere: what is written counts from then on. */
judged_rows samples_rows(sample_store *s);

/**
 * samples_grade - judge every row again, from what is stored
 *
 * @outcomes: [plan_cells()], filled
 *
 * Replaces the file atomically by one in the order of the plan's cells, a row each, with its
 * verdict. Programs are run (samples_judge.h), unless they have one already. SNAP_E_IO,
 * SNAP_E_NOMEM, SNAP_E_ENV, SNAP_E_CANCELLED; the old file then stays.
 */
snap_status samples_grade(sample_store *s, sample_outcome *outcomes,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
