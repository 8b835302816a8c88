/* recording.h - recorded completions, found by (task, problem, sample).
 *
 * A recording is JSON lines, in the form of a run's samples.jsonl:
 *   "task", "problem"    strings
 *   "sample"             integer from 0
 *   "arm"                string; optional: the arm of the run that the row belongs to
 *   "response"           string, or "text"; may be null or absent if there is an "error"
 *   "error"              string; optional: the request failed for good when it was recorded
 *   "reasoning", "finish_reason"          strings; optional
 *   "prompt_tokens", "completion_tokens", "reasoning_tokens"  integers; optional
 *   "ttft_ms", "total_ms"                 numbers, milliseconds; optional
 *   "itl_ms_mean", "itl_ms_p50", "itl_ms_p99"  numbers, milliseconds; optional
 *   "prompt_sha256"                       string; optional: of the messages of the request
 *   "repaired"                            true if the text was not Unicode; optional
 *   "sampling"                            the parameters that gen_sampling_values() lists; optional
 *   "request_sha256"                      string; optional: hash of the settings of the request
 *   "grader", "verdict", "extracted"      strings; optional: see gen_verdict
 * Other keys are ignored. A later row replaces a row with "error" of the same key, because a
 * resumed run repeats failed samples. */
#ifndef SNAPMLA_GENERATOR_REPLAY_RECORDING_H
#define SNAPMLA_GENERATOR_REPLAY_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "generator/generator.h"
#include "generator/settings.h"

typedef struct {
    const char *task, *problem;
    int sample;
    long line;                                   /* line number in the file, from 1 */
    const char *text;                            /* "" where the row has none */
    const char *reasoning;                       /* NULL = none */
    const char *finish_reason;                   /* "unknown" where the row has none */
    const char *error;                           /* NULL unless the request failed */
    int64_t prompt_tokens, completion_tokens;    /* -1 = unknown */
    int64_t reasoning_tokens;                    /* -1 = unknown */
    int64_t first_token_ns;                      /* -1 = unknown */
    int64_t total_ns;                            /* 0 = unknown */
    int64_t itl_mean_ns, itl_p50_ns, itl_p99_ns; /* -1 = unknown */
    const char *prompt_sha256;                   /* NULL = unknown */
    bool repaired;                               /* the text was not Unicode when it came */
    double sampling[GEN_SAMPLING_VALUES];        /* in the order of gen_sampling_values(); NAN =
                                                    unknown */
    const char *settings_sha256;                 /* NULL = unknown, "" = no settings */
    gen_verdict verdict;
} recorded;

typedef struct {
    arena memory;    /* owns the strings */
    recorded *table; /* hash table with open addressing; an empty place has task NULL */
    size_t size;     /* number of places: a power of two, or 0 */
    size_t count;
} recording;

/**
 * recording_read - read all rows of one arm
 *
 * @out:  overwritten; caller owns it, release with recording_release(), also after a failure
 * @name: the name of the text in messages, usually its path
 * @arm:  read the rows of this arm and the rows that state no arm. NULL: read all rows, which must
 *        not belong to more than one arm
 *
 * SNAP_E_INPUT with "name:line: reason" for a malformed row, and for a row whose key an earlier row
 * without "error" has; SNAP_E_INPUT also when no row is left; SNAP_E_USAGE when @arm is NULL and
 * the rows belong to several arms; SNAP_E_NOMEM.
 */
snap_status recording_read(recording *out, const char *text, size_t n, const char *name,
                           const char *arm, snap_err *err) SNAP_CHECK_RESULT;
void recording_release(recording *r);

/* NULL if there is no such row. */
const recorded *recording_find(const recording *r, const char *task, const char *problem,
                               int sample);

/* Whether the row can't answer this request, because it was recorded with another prompt or other
 * sampling or settings. If so, @why (a buffer of @cap bytes) gets the reason, such as "temperature
 * 0.6, the request has 1"; else it gets "". A value that the row does not state counts as equal,
 * and so does a prompt if the request does not state its hash. The seeds are not compared. */
bool recording_mismatch(const recorded *row, const gen_request *req, char *why, size_t cap);

#endif
