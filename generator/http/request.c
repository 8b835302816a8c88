/* The life of a request: admitted, attempted, retried, delivered. */
#include <string.h>

#include "base/clock.h"
#include "generator/http/chat_request.h"
#include "generator/http/client_parts.h"
#include "generator/http/ratelimit.h"

enum {
    kKeyPart = 8,    /* a message must not quote this many leading bytes of the API key */
    kTokenBytes = 4, /* estimated bytes per prompt token, used until the server reports the count */
};

/* How many bytes at the start of @text match the start of @key. */
static size_t key_at(const char *text, const char *key) {
    size_t n = 0;
    while (key[n] && text[n] == key[n])
        n++;
    return n;
}

/* Appends @text with the API key masked: a server may echo the key, whole or truncated, and it must
 * not get into files. */
static void append_without_key(buf *out, const char *text, const char *key) {
    size_t masked_from = strlen(key) < kKeyPart ? strlen(key) : kKeyPart;
    while (*text) {
        size_t n = key_at(text, key);
        if (n >= masked_from)
            (void)buf_puts(out, "***");
        else
            (void)buf_append(out, text, n = 1);
        text += n;
    }
}

static void describe_failure(slot *s) {
    buf_clear(&s->error);
    const char *key = s->session->client->api_key;
    if (key)
        append_without_key(&s->error, s->last.why.text, key);
    else
        (void)buf_puts(&s->error, s->last.why.text);
    if (s->attempts > 1)
        (void)buf_printf(&s->error, " (after %d attempts)", s->attempts);
}

static void deliver(slot *s) {
    session *r = s->session;
    bool failed = s->last.end != ATTEMPT_OK;
    int64_t end_ns = s->last.finish_ns >= 0 ? s->last.finish_ns : clock_now_ns();
    if (failed)
        describe_failure(s);
    gen_result res = {
        .failed = failed,
        .error = failed ? buf_str(&s->error) : NULL,
        .text = buf_str(&s->last.answer.text),
        .reasoning = s->last.answer.reasoning.len ? s->last.answer.reasoning.data : NULL,
        .finish_reason = failed ? NULL : s->last.answer.finish_reason,
        .prompt_tokens = s->last.answer.prompt_tokens,
        .completion_tokens = s->last.answer.completion_tokens,
        .start_ns = s->first_start_ns,
        .first_token_ns = s->last.first_token_ns < 0 ? -1 : s->last.first_token_ns - s->start_ns,
        .total_ns = end_ns - s->start_ns,
        .itl_mean_ns = hist_mean_ns(&s->last.gaps),
        .itl_p50_ns = hist_quantile_ns(&s->last.gaps, 0.5),
        .itl_p99_ns = hist_quantile_ns(&s->last.gaps, 0.99),
        .attempts = s->attempts,
        .repaired = s->last.answer.repaired,
    };
    s->state = SLOT_FREE;
    r->changed = true;
    r->busy--;
    session_fail(r, r->sink(r->sink_ctx, &s->req, &res, r->err));
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
    if (res->status == 429)
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
    int64_t took = s->last.end == ATTEMPT_OK ? -1 : 0; /* most servers don't count failed
                                                          requests */
    pace_settle(&r->pace, s->expected, known ? a->prompt_tokens + a->completion_tokens : took,
                a->completion_tokens);
}

static void note_health(slot *s, const http_response *res) {
    session *r = s->session;
    s->server->in_flight--;
    if (!is_no_server(res) && !is_failing_server(res))
        endpoints_success(s->server);
    else if (endpoints_failure(&r->client->servers, s->server, is_no_server(res)))
        session_plan_probe(r, s->server);
}

/* Fails the run instead of the sample, because every other request would fail in the same way. */
static void fail_run(slot *s, const char *what) {
    describe_failure(s);
    session_fail(s->session, err_set(s->session->err, SNAP_E_NET, "%s %s: %s", s->server->chat_url,
                                     what, buf_str(&s->error)));
}

static void on_done(void *ctx, const http_response *res) {
    slot *s = ctx;
    session *r = s->session;
    r->reached = r->reached || res->status;
    attempt_judge(&s->last, res);
    note_health(s, res);
    note_limits(s, res, clock_now_ns());
    if (s->last.end == ATTEMPT_RETRYABLE && s->attempts <= r->client->max_retries)
        wait_to_retry(s, res);
    else if (is_no_server(res) && !r->reached)
        fail_run(s, "cannot be reached");
    else if (res->status == 401)
        fail_run(s, "does not accept the API key (any more)");
    else
        deliver(s);
}

static bool on_body(void *ctx, const http_response *head, const char *bytes, size_t n) {
    slot *s = ctx;
    return attempt_take(&s->last, head, bytes, n);
}

void request_start(slot *s, endpoint *server) {
    client *c = s->session->client;
    attempt_begin(&s->last);
    s->attempts++;
    s->state = SLOT_RUNNING;
    s->server = server;
    s->server->in_flight++;
    s->server->started++;
    const char *headers[] = {"Content-Type: application/json",
                             c->stream ? "Accept: text/event-stream" : "Accept: application/json",
                             c->authorization};
    http_request req = {
        .url = s->server->chat_url,
        .headers = headers,
        .n_headers = c->authorization ? 3 : 2,
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
