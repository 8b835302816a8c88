/* attempt.h - one attempt at a request, and whether its response is an answer.
 *
 * The bytes of the response are passed in as they arrive; those of a stream are parsed as events. A
 * server may answer with a stream when none was requested, and the other way round. The first byte
 * of the body that is not white space, the content type and what was requested decide which it is.
 * When the response has ended, the attempt is classified: an answer, a failure that another attempt
 * may overcome, or a failure that is final. generator/http and the serving benchmark of the harness
 * use this. */
#ifndef SNAPMLA_GENERATOR_HTTP_ATTEMPT_H
#define SNAPMLA_GENERATOR_HTTP_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http.h"
#include "generator/http/chat_answer.h"
#include "generator/http/chat_piece.h"
#include "generator/http/sse.h"

typedef enum {
    ATTEMPT_OK,
    ATTEMPT_RETRYABLE, /* failed; another attempt may succeed */
    ATTEMPT_FINAL,     /* failed; another attempt can't succeed */
} attempt_end;

/* The form of the body of a response with a 2xx status. */
typedef enum {
    FORM_UNKNOWN, /* only white space has come */
    FORM_WHOLE,   /* one JSON document */
    FORM_EVENTS,  /* server-sent events */
} attempt_form;

/* Called for each piece of text of a stream. @now_ns: the time of the network read that brought its
 * last byte. */
typedef void (*attempt_piece_fn)(void *ctx, int64_t now_ns);

typedef struct {
    bool stream;       /* server-sent events were requested, else one JSON document */
    bool alternatives; /* there are other servers to try */

    /* The caller may set these three after attempt_init(). */
    attempt_piece_fn on_piece; /* NULL: none */
    void *piece_ctx;
    bool drop_text; /* the text of a stream is not kept in `answer` */

    attempt_form form;
    buf body; /* a whole answer, or the beginning of an error response */
    sse events;
    chat_frame frame; /* what the stream's chunks have in common */
    chat_answer answer;
    attempt_end end;
    snap_err why; /* why the attempt failed; empty for ATTEMPT_OK */

    int times_taken;                   /* times that the last attempt_take() recorded */
    bool timed_event_is_last;          /* the last event that it completed has one of them */
    size_t idle_bytes;                 /* bytes of the stream since its last piece of text */
    int64_t now_ns;                    /* time of the pieces that are parsed now */
    int64_t first_token_ns, finish_ns; /* times of the first text and of the stream's "[DONE]"; -1 =
                                          not yet */
} attempt;

/* Makes *a an attempt that has not begun. attempt_release() frees what it owns. */
void attempt_init(attempt *a, bool stream, bool alternatives);
void attempt_release(attempt *a);

/* Clears the state of the previous attempt. */
void attempt_begin(attempt *a);

/* Takes bytes of the response, received at @now_ns; false if the rest is not needed, for example
 * after a failure. */
bool attempt_take(attempt *a, const http_response *head, const char *bytes, size_t n,
                  int64_t now_ns);

/* Whether the times that the last attempt_take() recorded are exact: it recorded none, or one, for
 * an event that its last byte completed. Pieces and the "[DONE]" of a stream have times, and other
 * events do not. vLLM, for example, sends a chunk with the role just before the first piece. */
bool attempt_times_are_exact(const attempt *a);

/* The response has ended: sets `end` and `why`. */
void attempt_judge(attempt *a, const http_response *res);

#endif
