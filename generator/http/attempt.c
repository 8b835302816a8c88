#include "generator/http/attempt.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "generator/http/retry.h"
#include "generator/http/server_error.h"

enum {
    kRefusalLimit = 16 << 10, /* most bytes kept of the body of a response whose status is not
                                 2xx */
    kBodyLimit = 64 << 20,    /* most bytes of a whole answer */
    kIdleLimit = 16 << 20,    /* largest number of consecutive bytes of a stream without text */
};

void attempt_init(attempt *a, bool stream, bool alternatives) {
    *a = (attempt){.stream = stream,
                   .alternatives = alternatives,
                   .events = sse_make(),
                   .answer = chat_answer_make()};
    a->body.limit = kBodyLimit;
}

void attempt_begin(attempt *a) {
    buf_clear(&a->body);
    sse_clear(&a->events);
    chat_frame_clear(&a->frame);
    a->form = FORM_UNKNOWN;
    a->idle_bytes = 0;
    chat_answer_clear(&a->answer);
    a->end = ATTEMPT_OK;
    a->why = (snap_err){0};
    a->first_token_ns = a->finish_ns = -1;
}

void attempt_release(attempt *a) {
    buf_release(&a->body);
    sse_release(&a->events);
    chat_frame_release(&a->frame);
    chat_answer_release(&a->answer);
}

SNAP_PRINTF(3, 4)
static void attempt_fail(attempt *a, attempt_end end, const char *fmt, ...) {
    char text[sizeof a->why.text];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    a->end = end;
    a->why = (snap_err){0};
    (void)err_set(&a->why, SNAP_E_NET, "%s", text);
}

/* Ends an attempt whose answer can't be parsed, or is an error object. The answer may have been
 * damaged on the way, or the error may be temporary, so another attempt may succeed. SNAP_E_NOMEM
 * is final: an answer that was too large will be too large again. */
static void attempt_unreadable(attempt *a, snap_status st) {
    a->end = st == SNAP_E_NOMEM ? ATTEMPT_FINAL : ATTEMPT_RETRYABLE;
}

static void note_time(attempt *a) {
    a->times_taken++;
    a->timed_event_is_last = true;
}

static void record_piece(attempt *a) {
    note_time(a);
    if (a->first_token_ns < 0)
        a->first_token_ns = a->now_ns;
    a->idle_bytes = 0;
    if (a->on_piece)
        a->on_piece(a->piece_ctx, a->now_ns);
}

/* Reads an event with the full parser. */
static snap_status read_chunk(attempt *a, const char *data, size_t n, snap_err *err) {
    size_t before = a->answer.text.len + a->answer.reasoning.len;
    snap_status st = chat_answer_read_chunk(&a->answer, data, n, err);
    if (a->answer.text.len + a->answer.reasoning.len > before)
        record_piece(a);
    if (a->finish_ns < 0 && a->answer.done) {
        note_time(a);
        a->finish_ns = a->now_ns;
    }
    if (a->drop_text) {
        buf_clear(&a->answer.text);
        buf_clear(&a->answer.reasoning);
    }
    return st;
}

static snap_status on_event(void *ctx, const char *data, size_t n, snap_err *err) {
    attempt *a = ctx;
    chat_piece piece;
    a->timed_event_is_last = false;
    if (a->answer.done || !chat_frame_find(&a->frame, data, n, &piece))
        return read_chunk(a, data, n, err);
    if (!a->drop_text) {
        chat_piece_append(&a->answer.text, piece.content);
        chat_piece_append(&a->answer.reasoning, piece.reasoning);
    }
    if (piece.content.n || piece.reasoning.n)
        record_piece(a);
    snap_status st = buf_check(&a->answer.text, "the answer's text", err);
    return st == SNAP_OK ? buf_check(&a->answer.reasoning, "the answer's text", err) : st;
}

static bool is_ok(int status) {
    return status >= 200 && status < 300;
}

static bool has_type(const http_response *head, const char *type) {
    return strncasecmp(head->type, type, strlen(type)) == 0;
}

/* Stops a server that sends comments without end, for which the silence limit never triggers. */
static bool is_idle(attempt *a) {
    if (a->idle_bytes <= kIdleLimit)
        return false;
    if (!chat_answer_complete(&a->answer)) /* if the answer is complete, nothing is lost */
        attempt_fail(a, ATTEMPT_RETRYABLE, "%d bytes of the stream held no text of the answer",
                     (int)kIdleLimit);
    return true;
}

/* The form of a body that begins with these bytes. FORM_UNKNOWN if all are white space. A brace
 * begins a JSON object, but no field of an event stream. If another byte comes first, the content
 * type decides, or what was requested if the type is neither of the two. */
static attempt_form form_of(const attempt *a, const http_response *head, const char *bytes,
                            size_t n) {
    while (n && strchr(" \t\r\n", *bytes))
        bytes++, n--;
    if (!n)
        return FORM_UNKNOWN;
    if (*bytes == '{')
        return FORM_WHOLE;
    if (has_type(head, "text/event-stream"))
        return FORM_EVENTS;
    return a->stream && !has_type(head, "application/json") ? FORM_EVENTS : FORM_WHOLE;
}

static bool on_events(attempt *a, const http_response *head, const char *bytes, size_t n) {
    if (*head->type && !has_type(head, "text/event-stream") && !has_type(head, "text/plain")) {
        attempt_fail(a, ATTEMPT_FINAL,
                     "the server answered with %.80s instead of a stream; check that the URL ends "
                     "in the API's root (often /v1)",
                     head->type);
        return false;
    }
    a->idle_bytes += n;
    snap_status st = sse_feed(&a->events, bytes, n, on_event, a, &a->why);
    if (st != SNAP_OK)
        attempt_unreadable(a, st);
    return st == SNAP_OK && !is_idle(a);
}

bool attempt_take(attempt *a, const http_response *head, const char *bytes, size_t n,
                  int64_t now_ns) {
    a->now_ns = now_ns;
    a->times_taken = 0;
    a->timed_event_is_last = false;
    if (is_ok(head->status)) {
        if (a->form == FORM_UNKNOWN)
            a->form = form_of(a, head, bytes, n);
        return a->form == FORM_EVENTS ? on_events(a, head, bytes, n)
                                      : buf_append(&a->body, bytes, n);
    }
    size_t room = kRefusalLimit - a->body.len;
    (void)buf_append(&a->body, bytes, n < room ? n : room);
    return a->body.len < kRefusalLimit; /* enough to describe the error */
}

bool attempt_times_are_exact(const attempt *a) {
    bool at_end = a->timed_event_is_last && sse_is_at_event(&a->events);
    return !a->times_taken || (a->times_taken == 1 && at_end);
}

static bool is_refused(const attempt *a, const http_response *res) {
    return !is_ok(res->status) && (res->outcome == HTTP_COMPLETE || a->body.len == kRefusalLimit);
}

/* Whether the text that came is the model's complete answer. */
static void judge_answer(attempt *a) {
    if (!chat_answer_complete(&a->answer))
        attempt_fail(a, ATTEMPT_RETRYABLE, "the stream ended before the answer did");
    else if (chat_answer_aborted(&a->answer))
        attempt_fail(a, ATTEMPT_RETRYABLE, "the server aborted the answer (finish reason '%s')",
                     a->answer.finish_reason);
}

static void judge_whole(attempt *a, const http_response *res) {
    snap_status st = chat_answer_read(&a->answer, buf_str(&a->body), a->body.len, &a->why);
    if (st != SNAP_OK)
        attempt_unreadable(a, st);
    else
        judge_answer(a);
    if (st == SNAP_E_INPUT && *res->type && !has_type(res, "application/json")) {
        a->end = ATTEMPT_FINAL;
        err_prefix(&a->why,
                   "the server answered with %.80s; check that the URL ends in the API's "
                   "root (often /v1)",
                   res->type);
    }
}

static void judge_stream(attempt *a) {
    snap_status st = sse_finish(&a->events, on_event, a, &a->why);
    if (st != SNAP_OK)
        attempt_unreadable(a, st);
    else
        judge_answer(a);
}

static void judge_refusal(attempt *a, const http_response *res) {
    buf words = {0};
    server_error_describe(res->status, buf_str(&a->body), a->body.len, res->location, &words);
    attempt_fail(a, retry_status(res->status) ? ATTEMPT_RETRYABLE : ATTEMPT_FINAL, "%s",
                 buf_str(&words));
    buf_release(&words);
}

static void judge_broken(attempt *a, const http_response *res) {
    /* the finish reason has come, so nothing of the answer is missing */
    if (chat_answer_complete(&a->answer)) {
        judge_answer(a);
        return;
    }
    bool retryable = res->outcome == HTTP_UNREACHABLE || res->outcome == HTTP_SILENT ||
                     res->outcome == HTTP_BROKEN || res->outcome == HTTP_LATE ||
                     a->alternatives; /* another server may do better */
    bool begun = res->outcome == HTTP_BROKEN && a->first_token_ns >= 0;
    attempt_fail(a, retryable ? ATTEMPT_RETRYABLE : ATTEMPT_FINAL, "%s%s",
                 begun ? "the connection ended in the middle of the answer (a server that handles "
                         "one request at a time does this when a second one arrives): "
                       : "",
                 res->message);
}

void attempt_judge(attempt *a, const http_response *res) {
    if (a->end != ATTEMPT_OK) /* a callback has found a failure already */
        return;
    if (a->body.failed)
        attempt_fail(a, ATTEMPT_FINAL, "the answer is longer than %d bytes", (int)kBodyLimit);
    else if (is_refused(a, res))
        judge_refusal(a, res);
    else if (res->outcome != HTTP_COMPLETE)
        judge_broken(a, res);
    else if (a->form == FORM_EVENTS || (a->form == FORM_UNKNOWN && a->stream))
        judge_stream(a);
    else
        judge_whole(a, res);
}
