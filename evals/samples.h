/* samples.h - samples.jsonl: the samples of a run, one row for each.
 *
 * A sample is one response of one arm to one problem. Fields of a row:
 *   request     task, problem, sample, arm, model, precision, prompt_sha256, sampling, seed, gold;
 *               also request_sha256, the hash of the request's settings, only if it has some; also
 *               prompt, only for confidential sets and on request (task_options.keep_text)
 *   response    response, reasoning, finish_reason, prompt_tokens, completion_tokens, attempts,
 *               ttft_ms, total_ms, failed, error, truncated, empty; also repaired, only if true;
 *               also, only if there is reasoning or the server counts it, reasoning_tokens and
 *               reasoning_chars and answer_chars: Unicode characters of the reasoning, wherever it
 *               was, and of the rest of the text
 *   streaming   itl_ms_mean, itl_ms_p50, itl_ms_p99: time between the pieces of the stream
 *   grading     grader, verdict, extracted, rule, reason; if the task has further metrics, scores,
 *               such as {"instruction_strict": 0.5}, and weights with the same keys (grade_score);
 *               result_code and failed_test for programs; further fields for Arena-Hard (arena.h);
 *               undecided and opinion, only if the rules do not decide (opinion.h)
 * An unknown value is null.
 *
 * Durability: a row is normally written with one write(2), so a killed process loses only the
 * samples in flight. While samples are generated, samples_sync() is called about once per second,
 * so a power failure loses the rows of about one second more. A failed sample also has a row, with
 * the reason. It is excluded from every mean, and resuming the run tries it again. Rows that belong
 * to no cell of the current plan are kept unchanged. */
#ifndef SNAPMLA_EVALS_SAMPLES_H
#define SNAPMLA_EVALS_SAMPLES_H

#include "evals/opinion.h"
#include "evals/plan.h"
#include "evals/samples_judge.h"

/* The part of a sample that the statistics use. */
typedef struct {
    bool present; /* the sample has a row */
    bool failed;
    bool undecided; /* the rules do not decide (opinion.h); counts as not correct */
    bool asked;     /* undecided, and a judge model was asked */
    opinion said;   /* what the judge model said */
    bool unjudged;  /* needs the verdict of a judge model; counts as failed until then */
    bool repaired;  /* the response was not Unicode, and U+FFFD replaces what was not */
    bool truncated; /* stopped by the length limit */
    bool empty;     /* the response has only reasoning and white space; false if it failed */
    grade_verdict verdict;
    /* The grader's further metrics; if a model judges, also[0] is its first metric. */
    grade_score also[GRADE_METRICS - 1];
    uint64_t text_hash;                    /* hash of the response; 0 if empty or failed */
    int64_t prompt_tokens;                 /* -1: unknown */
    int64_t completion_tokens;             /* -1: unknown */
    int64_t reasoning_tokens;              /* -1: unknown */
    int64_t reasoning_chars, answer_chars; /* -1: not in the row */
    uint64_t answer_hash;                  /* hash of the extracted answer; 0 if none */
    double ttft_ms, total_ms;              /* NAN: unknown */
    double itl_ms_p50, itl_ms_p99;         /* NAN: unknown */
} sample_outcome;

typedef struct sample_store sample_store;

/**
 * samples_open - open or create the file and find the finished samples
 *
 * @plan: borrowed until samples_close()
 *
 * Removes an incomplete last line. SNAP_E_INPUT with file and line for a malformed row;
 * SNAP_E_USAGE if a row of one of the plan's cells has another prompt, model, seed or other
 * settings of the request (gen_settings_json(); the sampling is not compared); SNAP_E_IO;
 * SNAP_E_NOMEM. Only one process may use the file: the caller
 * holds the run's lock.
 */
snap_status samples_open(sample_store **out, const eval_plan *plan, const char *path,
                         snap_err *err) SNAP_CHECK_RESULT;
void samples_close(sample_store *s); /* NULL is allowed */

/* True if the sample is finished and did not fail, so it need not be generated again. */
bool samples_done(const sample_store *s, size_t cell);
size_t samples_done_count(const sample_store *s);

/* Appends the stored answer of a finished sample to @out, without its reasoning. SNAP_E_IO,
 * SNAP_E_INPUT, SNAP_E_NOMEM. */
snap_status samples_answer(const sample_store *s, size_t cell, buf *out,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Appends a result as a row. Thread-safe. SNAP_E_USAGE if the grader takes recorded verdicts and
 * the result has none of this grader; SNAP_E_IO; SNAP_E_NOMEM. */
snap_status samples_append(sample_store *s, const gen_request *req, const gen_result *res,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Forces the appended rows to disk. */
snap_status samples_sync(sample_store *s, snap_err *err) SNAP_CHECK_RESULT;

/* Access to the rows for a judge. A row that the judge writes is appended and counts instead of the
 * cell's earlier row. */
judged_rows samples_rows(sample_store *s);

/**
 * samples_grade - grade every stored row again
 *
 * @outcomes: [plan_cells()], filled
 *
 * Replaces the file atomically. The new file has one row for each cell that has one, in plan order,
 * and then the rows that belong to no cell of the plan. Rows of failed requests, and of games that
 * are not judged yet, have no verdict. Programs without a verdict are run first (samples_judge.h).
 * On failure the old file stays; verdicts of programs may have been appended to it.
 */
snap_status samples_grade(sample_store *s, sample_outcome *outcomes,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
