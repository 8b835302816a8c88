/* The life of a request: admitted, attempted, retried, delivered. */
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "generator/http/chat_request.h"
#include "generator/http/client_parts.h"
#include "generator/http/ratelimit.h"

enum {
    kSecretPart = 8, /* a message must not quote this many leading bytes of a secret */
    kTokenBytes = 4, /* estimated bytes per prompt token, used until the server reports the count */
};

/* The secret in a header line: the API key, or the value of another header. */
static const char *secret_of(const char *line) {
    if (text_starts(line, CLIENT_BEARER))
        return line + strlen(CLIENT_BEARER);
    const char *value = strchr(line, ':');
    return value ? value + 1 + strspn(value + 1, " ") : line;
}

/* How many bytes at the start of @text match the start of @secret. */
static size_t match(const char *text, const char *secret) {
    size_t n = 0;
    while (secret[n] && text[n] == secret[n])
        n++;
    return n;
}

/* The longest part of a secret that @text begins with; 0 = none. Parts count from @part bytes on,
 * or only whole secrets do if @part is 0; then secrets below kSecretPart bytes do not count,
 * because they may be ordinary words. */
static size_t secret_at(const client *c, const char *text, size_t part) {
    size_t longest = 0;
    for (int i = 0; i < c->n_secrets; i++) {
        const char *secret = secret_of(c->secrets[i]);
        size_t n = match(text, secret), len = strlen(secret);
        bool found = part ? n >= (len < part ? len : part) : n == len && n >= kSecretPart;
        longest = found && n > longest ? n : longest;
    }
    return longest;
}

/* Appends @text with secrets masked: a server may echo them, and they must not get into files. */
static void append_masked(const client *c, buf *out, const char *text, size_t part) {
    while (*text) {
        size_t n = secret_at(c, text, part);
        if (n)
            (void)buf_puts(out, "***");
        else
            (void)buf_append(out, text, n = 1);
        text += n;
    }
}

/* A text of an answer without secrets: @text itself in most cases, else a copy in @masked. */
static const char *without_secrets(const client *c, const char *text, buf *masked) {
    bool found = false;
    for (int i = 0; text && i < c->n_secrets; i++) {
        const char *secret = secret_of(c->secrets[i]);
        found |= strlen(secret) >= kSecretPart && strstr(text, secret) != NULL;
    }
    if (!found)
        return text;
    buf_clear(masked);
    append_masked(c, masked, text, 0);
    return buf_str(masked);
}

static void describe_failure(slot *s) {
    buf_clear(&s->error);
    append_masked(s->session->client, &s->error, s->last.why.text, kSecretPart);
    if (s->attempts > 1)
        (void)buf_printf(&s->error, " (after %d attempts)", s->attempts);
}

static void deliver(slot *s) {
    session *r = s->session;
    const client *c = r->client;
    const chat_answer *a = &s->last.answer;
    bool failed = s->last.end != ATTEMPT_OK;
    int64_t end_ns = s->last.finish_ns >= 0 ? s->last.finish_ns : clock_now_ns();
    if (failed)
        describe_failure(s);
    gen_result res = {
        .failed = failed,
        .error = failed ? buf_str(&s->error) : NULL,
        .text = without_secrets(c, buf_str(&a->text), &s->masked[0]),
        .reasoning = a->reasoning.len ? without_secrets(c, a->reasoning.data, &s->masked[1]) : NULL,
        .finish_reason = failed ? NULL : without_secrets(c, a->finish_reason, &s->masked[2]),
        .prompt_tokens = a->prompt_tokens,
        .completion_tokens = a->completion_tokens,
        .start_ns = s->first_start_ns,
        .first_token_ns = s->last.first_token_ns < 0 ? -1 : s->last.first_token_ns - s->start_ns,
        .total_ns = end_ns - s->start_ns,
        .itl_mean_ns = hist_mean_ns(&s->last.gaps),
        .itl_p50_ns = hist_quantile_ns(&s->last.gaps, 0.5),
        .itl_p99_ns = hist_quantile_ns(&s->last.gaps, 0.99),
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
                             c->stream ? "Accept: text/event-stream" : "Accept: application/json"};
    http_request req = {
        .url = s->server->chat_url,
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
