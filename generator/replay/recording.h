/* recording.h - recorded completions, found by (task, problem, sample).
 *
 * A recording is JSON lines, as samples.jsonl of a run is:
 *   "task", "problem"    strings
 *   "sample"             integer from 0
 *   "arm"                string; optional: which arm of a run the row belongs to
 *   "response"           string, or "text"; null or absent if "error" is there
 *   "error"              string; optional: the request failed for good when it was recorded
 *   "reasoning", "finish_reason"          strings; optional
 *   "prompt_tokens", "completion_tokens"  integers; optional
 *   "ttft_ms", "total_ms"                 numbers, milliseconds; optional
 *   "prompt_sha256"                       string; optional: of the messages that were asked
 *   "sampling"                            {"temperature", "top_p", "top_k", "max_tokens"}; optional
 * Other keys are ignored. A row with "error" gives way to a later one of the same key: a resumed
 * run tries failed samples again. */
#ifndef SNAPMLA_GENERATOR_REPLAY_RECORDING_H
#define SNAPMLA_GENERATOR_REPLAY_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "generator/generator.h"

enum { RECORDED_SAMPLING = 4 }; /* temperature, top_p, top_k, max_tokens */

typedef struct {
    const char *task, *problem;
    int sample;
    long line;                                   /* in the file, from 1 */
    const char *text;                            /* "" where the request failed */
    const char *reasoning;                       /* NULL = none */
    const char *finish_reason;                   /* "unknown" where the row has none */
    const char *error;                           /* NULL unless the request failed */
    int64_t prompt_tokens, completion_tokens;    /* -1 = unknown */
    int64_t first_token_ns;                      /* -1 = unknown */
    int64_t total_ns;                            /* 0 = unknown */
    int64_t itl_mean_ns, itl_p50_ns, itl_p99_ns; /* -1 = unknown */
    const char *prompt_sha256;                   /* NULL = unknown */
    double sampling[RECORDED_SAMPLING];          /* NAN = unknown; as recording_mismatch() */
} recorded;

typedef struct {
    arena memory;    /* owns the strings */
    recorded *table; /* open addressing; an empty place has task NULL */
    size_t size;     /* places: a power of two, or 0 */
    size_t count;
} recording;

/**
 * recording_read - all rows of one arm
 *
 * @out:  overwritten; caller owns it, release with recording_release(), also on failure
 * @name: what messages call the text, its path
 * @arm:  the rows to take: those of this arm and those of none. NULL: all, of one arm at most
 *
 * SNAP_E_INPUT with "name:line: reason" for a malformed row or a second one of the same key, and
 * when no row is left; SNAP_E_USAGE when @arm is NULL and the rows are of several; SNAP_E_NOMEM.
 */
snap_status recording_read(recording *out, const char *text, size_t n, const char *name,
                           const char *arm, snap_err *err) SNAP_CHECK_RESULT;
void recording_release(recording *r);

/* NULL where there is none. */
const recorded *recording_find(const recording *r, const char *task, const char *problem,
                               int sample);

/* Why a row is no answer to this request: it was recorded with another prompt or other sampling
 * ("temperature 0.6, asked for is 1"), in a buffer of @cap bytes; false and "" when it may be one. What
 * the row or the request does not say is taken to agree. Seeds may differ. */
bool recording_mismatch(const recorded *row, const gen_request *req, char *why, size_t cap);

#endif
