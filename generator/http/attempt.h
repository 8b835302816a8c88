/* attempt.h - one attempt at a request, and whether its response is an answer.
 *
 * The bytes of the response are passed in as they arrive; those of a stream are parsed as events.
 * When the response has ended, the attempt is classified: an answer, a failure that another attempt
 * may overcome, or a failure that is final. Private to generator/http. */
#ifndef SNAPMLA_GENERATOR_HTTP_ATTEMPT_H
#define SNAPMLA_GENERATOR_HTTP_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hist.h"
#include "base/http.h"
#include "generator/http/chat_answer.h"
#include "generator/http/sse.h"

typedef enum {
    ATTEMPT_OK,
    ATTEMPT_RETRYABLE, /* failed; another attempt may succeed */
    ATTEMPT_FINAL,     /* failed; another attempt can't succeed */
} attempt_end;

typedef struct {
    bool stream;       /* server-sent events are expected, else one JSON document */
    bool alternatives; /* there are other servers to try */

    buf body; /* a whole answer, or the beginning of an error response */
    sse events;
    chat_answer answer;
    attempt_end end;
    snap_err why; /* why the attempt failed; empty for ATTEMPT_OK */

    size_t idle_bytes;                 /* bytes of the stream since its last piece of text */
    int64_t first_token_ns, finish_ns; /* times of the first text and of the stream's "[DONE]"; -1 =
                                          not yet */
    int64_t last_piece_ns;             /* time of the latest piece of text */
    hist gaps;                         /* between pieces of text */
} attempt;

/* Makes *a an attempt that has not begun. attempt_release() frees what it owns. */
void attempt_init(attempt *a, bool stream, bool alternatives);
void attempt_release(attempt *a);

/* Clears the state of the previous attempt. */
void attempt_begin(attempt *a);

/* Takes bytes of the response; false when no more are needed. */
bool attempt_take(attempt *a, const http_response *head, const char *bytes, size_t n);

/* The response has ended: sets `end` and `why`. */
void attempt_judge(attempt *a, const http_response *res);

#endif
