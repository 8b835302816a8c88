/* attempt.h - one attempt at a request: what came of it, and whether that is an answer.
 *
 * The bytes of the response go in as they come, a stream's events among them; at its end the attempt
 * is judged: an answer, a failure that may pass, or one that won't. Private to generator/http. */
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
    ATTEMPT_MAY_PASS, /* failed, another one may succeed */
    ATTEMPT_FINAL,    /* failed, another one can't */
} attempt_end;

typedef struct {
    bool stream;       /* events are expected, else one JSON document */
    bool alternatives; /* another server may be better */

    buf body; /* a whole answer, or the beginning of a refusal */
    sse events;
    chat_answer answer;
    attempt_end end;
    snap_err why; /* unless ATTEMPT_OK */

    size_t idle_bytes;                 /* of the stream since its last piece of the answer */
    int64_t first_token_ns, finish_ns; /* when; -1 = not yet */
    int64_t last_piece_ns;             /* when text came last */
    hist gaps;                         /* between pieces of text */
} attempt;

/* An attempt that has not begun; attempt_release() frees what it holds. */
void attempt_init(attempt *a, bool stream, bool alternatives);
void attempt_release(attempt *a);

/* Forgets the attempt before. */
void attempt_begin(attempt *a);

/* Takes bytes of the response; false when no more are wanted. */
bool attempt_take(attempt *a, const http_response *head, const char *bytes, size_t n);

/* The response has ended: sets `end` and `why`. */
void attempt_judge(attempt *a, const http_response *res);

#endif
