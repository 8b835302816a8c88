/* trace.h - recorded requests: when they came, and how long they and their answers were.
 *
 * Four forms are read. The first line of the file tells them apart.
 *
 *   JSON lines {"time": s, "input_length": tokens, "output_length": tokens, "prefix": id}. "prefix"
 *     is a whole number, may be absent, and says which requests begin alike. "prefix_length" says
 *     how many tokens they share; if it is absent, that follows from the option --prefix-share.
 *   JSON lines of Mooncake's traces: {"timestamp": ms, "input_length", "output_length",
 *     "hash_ids"}. Each hash id stands for TRACE_BLOCK tokens of the prompt. Equal ids are equal
 *     text.
 *   CSV of BurstGPT: the columns Timestamp (s), Request tokens, Response tokens.
 *   CSV of Azure's LLM inference traces: the columns TIMESTAMP (date and time), ContextTokens,
 *     GeneratedTokens.
 *
 * A request with 0 input or output tokens is left out and counted as unanswered. Requests are
 * sorted by time, and their times are counted from the first one. */
#ifndef SNAPMLA_HARNESS_SERVING_TRACE_H
#define SNAPMLA_HARNESS_SERVING_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { TRACE_BLOCK = 512, TRACE_MOST_TOKENS = 1 << 24, TRACE_MOST_ROWS = 1 << 22 };

typedef struct {
    double time_s;                       /* time since the first request */
    int64_t input_length, output_length; /* tokens; at least 1 */
    int64_t prefix;                      /* -1 = none */
    int64_t prefix_length;               /* tokens; -1 = not stated */
    const int64_t *hash_ids;             /* [n_hash_ids] */
    size_t n_hash_ids;
} trace_row;

typedef struct {
    trace_row *rows; /* [n], owned by mem */
    size_t n, capacity;
    size_t unanswered; /* requests that were left out */
    arena mem;
} trace;

/* Reads a file. SNAP_E_INPUT with file, line and reason; SNAP_E_IO; SNAP_E_NOMEM. Release with
 * trace_release(), also after a failure. */
snap_status trace_read(const char *path, trace *out, snap_err *err) SNAP_CHECK_RESULT;

/* Reads a trace from @n bytes of text. Messages call it @name. Errors and release are those of
 * trace_read(). */
snap_status trace_parse(const char *text, size_t n, const char *name, trace *out,
                        snap_err *err) SNAP_CHECK_RESULT;
void trace_release(trace *t);

#endif
