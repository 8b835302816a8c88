/* Admits requests, makes the attempts to answer them, retries, and delivers the results. */
#include <string.h>

#include "base/clock.h"
#include "generator/http/chat_request.h"
#include "generator/http/client_parts.h"
#include "generator/http/ratelimit.h"

enum {
    kTooManyRequests = 429,
    kTokenBytes = 4, /* estimated bytes per prompt token, used until the server reports the count */
};

static secret_lines secrets_of(const client *c) {
    return (secret_lines){(const char *const *)c->secrets, c->n_secrets};
}

static void describe_failure(slot *s) {
    buf_clear(&s->error);
    secrets_mask_message(secrets_of(s->session->client), s->last.why.text, &s->error);
    if (s->attempts > 1)
        (void)buf_printf(&s->error, " (after %d attempts)", s->attempts);
}

/* Whether the whole text is reasoning: the prompt opens it (gen_settings.opened), and the answer
 * does not close it. */
static bool is_unfinished(const slot *s) {
    return s->req.settings && s->req.settings->opened && !s->last.answer.reasoning.len &&
           !strstr(buf_str(&s->last.answer.text), "</think>");
}

static void deliver(slot *s) {
    session *r = s->session;
    const secret_lines hidden = secrets_of(r->client);
    const chat_answer *a = &s->last.answer;
    bool failed = s->last.end != ATTEMPT_OK;
    int64_t end_ns = s->last.finish_ns >= 0 ? s->last.finish_ns : clock_now_ns();
    if (failed)
        describe_failure(s);
    bool unfinished = is_unfinished(s);
    const buf *text = unfinished ? &a->reasoning : &a->text;
    const buf *reasoning = unfinished ? &a->text : &a->reasoning;
    gen_result res = {
        .failed = failed,
        .error = failed ? buf_str(&s->error) : NULL,
        .text = secrets_mask_text(hidden, buf_str(text), &s->masked[0]),
        .reasoning =
            reasoning->len ? secrets_mask_text(hidden, reasoning->data, &s->masked[1]) : NULL,
        .finish_reason = failed ? NULL : secrets_mask_text(hidden, a->finish_reason, &s->masked[2]),
        .prompt_tokens = a->prompt_tokens,
        .completion_tokens = a->completion_tokens,
        .reasoning_tokens = chat_answer_reasoning_tokens(a),
        .start_ns = s->first_start_ns,
        .first_token_ns = s->last.first_token_ns < 0 ? -1 : s->last.first_token_ns - s->start_ns,
        .total_ns = end_ns - s->start_ns,
        .itl_mean_ns = hist_mean_ns(&s->gaps),
        .itl_p50_ns = hist_quantile_ns(&s->gaps, 0.5),
        .itl_p99_ns = hist_quantile_ns(&s->gaps, 0.99),
        .attempts = s->attempts,
        .repaired = a->repaired,
    };
    s->state = SLOT_FREE;
    r->changed = true;
    r->busy--;
    snap_status st = SNAP_OK;
    for (int i = 0; i < 3 && st == SNAP_OK; i++)
        st = buf_check(&s->masked[i], "an answer", r->err);
    if (st == SNAP_OK)
        st = r->sink(r->sink_ctx, &s->req, &res, r->err);
    session_fail(r, st);
}

/* Plans a retry. After a 429 the whole server is held, not only the request that it refused. */
static void wait_to_retry(slot *s, const http_response *res) {
    const retry_policy *policy = &s->session->client->policy;
    int64_t now = clock_now_ns();
    double delay_s =
        retry_delay_s(policy, s->attempts, res->retry_after_s, rng_uniform(&s->jitter));
    s->due_ns = now + (int64_t)(delay_s * 1e9);
    s->state = SLOT_WAITING;
    s->session->changed = true;
    if (res->status == kTooManyRequests)
        endpoints_hold(s->server, now, s->due_ns, true);
}

static bool is_no_server(const http_response *res) {
    return res->outcome == HTTP_UNREACHABLE || res->outcome == HTTP_REFUSED;
}

static bool is_failing_server(const http_response *res) {
    return res->outcome == HTTP_BROKEN || res->outcome == HTTP_SILENT || res->status >= 500;
}

/* Applies the limits that the server reports, and counts the tokens of the attempt towards the
 * user's limit. */
static void note_limits(slot *s, const http_response *res, int64_t now) {
    session *r = s->session;
    double cap_s = r->client->policy.server_cap_s, wait_s = ratelimit_wait_s(res);
    wait_s = wait_s < cap_s ? wait_s : cap_s;
    if (wait_s > 0)
        endpoints_hold(s->server, now, now + (int64_t)(wait_s * 1e9), false);
    const chat_answer *a = &s->last.answer;
    bool known = a->prompt_tokens >= 0 && a->completion_tokens >= 0;
    int64_t took = s->last.end == ATTEMPT_OK ? -1 : 0; /* -1: unknown. A failed request counts as 0
                                                          tokens, as on most servers */
    pace_settle(&r->pace, s->expected, known ? a->prompt_tokens + a->completion_tokens : took,
                a->completion_tokens);
}

static void note_health(slot *s, const http_response *res) {
    session *r = s->session;
    s->server->in_flight--;
    if (res->status == kTooManyRequests)
        endpoints_refusal(s->server);
    else if (!is_no_server(res) && !is_failing_server(res))
        endpoints_success(s->server);
    else if (endpoints_failure(&r->client->servers, s->server, is_no_server(res)))
        session_plan_probe(r, s->server);
}

static const char *url_of(const slot *s) {
    bool text = s->req.settings && s->req.settings->completions;
    return text ? s->server->text_url : s->server->chat_url;
}

/* Fails the run instead of the sample, because every other request would fail in the same way. */
static void fail_run(slot *s, const char *what) {
    describe_failure(s);
    session_fail(s->session, err_set(s->session->err, SNAP_E_NET, "%s %s: %s", url_of(s), what,
                                     buf_str(&s->error)));
}

static void on_done(void *ctx, const http_response *res) {
    slot *s = ctx;
    session *r = s->session;
    r->reached = r->reached || res->status;
    attempt_judge(&s->last, res);
    note_health(s, res);
    bool again = s->last.end == ATTEMPT_RETRYABLE && s->attempts <= r->client->max_retries;
    if (again) /* before note_limits(): a refusal halves the window of the server only if the
                  server is not held back, and note_limits() may hold it back */
        wait_to_retry(s, res);
    note_limits(s, res, clock_now_ns());
    if (again)
        return;
    if (is_no_server(res) && !r->reached)
        fail_run(s, "cannot be reached");
    else if (res->status == 401)
        fail_run(s, "does not accept the API key (any more)");
    else
        deliver(s);
}

static bool on_body(void *ctx, const http_response *head, const char *bytes, size_t n) {
    slot *s = ctx;
    return attempt_take(&s->last, head, bytes, n, http_received_ns(s->session->engine));
}

void request_on_piece(void *ctx, int64_t now_ns) {
    slot *s = ctx;
    if (s->last_piece_ns >= 0)
        hist_add(&s->gaps, now_ns - s->last_piece_ns);
    s->last_piece_ns = now_ns;
}

void request_start(slot *s, endpoint *server) {
    client *c = s->session->client;
    attempt_begin(&s->last);
    s->gaps = (hist){0};
    s->last_piece_ns = -1;
    s->attempts++;
    s->state = SLOT_RUNNING;
    s->server = server;
    s->server->in_flight++;
    s->server->started++;
    const char *headers[] = {"Content-Type: application/json",
                             c->stream ? "Accept: text/event-stream" : "Accept: application/json"};
    http_request req = {
        .url = url_of(s),
        .headers = headers,
        .n_headers = 2,
        .secrets = (const char *const *)c->secrets,
        .n_secrets = c->n_secrets,
        .body = s->request.data,
        .body_len = s->request.len,
        .silence_s = c->silence_s,
        .deadline_s = c->deadline_s,
        .on_body = on_body,
        .on_done = on_done,
        .ctx = s,
    };
    s->start_ns = clock_now_ns();
    s->expected = pace_start(&s->session->pace, s->start_ns, (double)s->request.len / kTokenBytes,
                             s->req.sampling.max_tokens);
    if (s->attempts == 1)
        s->first_start_ns = s->start_ns;
    session_fail(s->session, http_start(s->session->engine, &req, s->session->err));
}

void request_admit(slot *s) {
    session *r = s->session;
    if (!r->source(r->source_ctx, &s->req)) {
        r->exhausted = true;
        return;
    }
    const client *c = r->client;
    buf_clear(&s->request);
    s->attempts = 0;
    s->jitter = rng_make(s->req.sampling.seed, (uint64_t)s->req.id);
    s->due_ns = 0;
    s->state = SLOT_WAITING;
    r->busy++;
    session_fail(r, chat_request_write(&s->req, c->model, c->stream, &s->request, r->err));
}
