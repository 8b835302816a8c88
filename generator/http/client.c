#include "generator/http/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hist.h"
#include "base/http.h"
#include "base/rng.h"
#include "generator/backend.h"
#include "generator/http/chat_answer.h"
#include "generator/http/chat_request.h"
#include "generator/http/endpoints.h"
#include "generator/http/pace.h"
#include "generator/http/ratelimit.h"
#include "generator/http/refusal.h"
#include "generator/http/sse.h"

enum {
    kRefusalLimit = 16 << 10, /* bytes kept of the body of an answer that is no 2xx */
    kBodyLimit = 64 << 20,    /* bytes of a whole answer */
    kIdleLimit = 16 << 20,    /* bytes of a stream that bring nothing of the answer */
    kKeyPart = 8,             /* so many bytes of an API key in a message are too many */
    kDeadlineS = 14400,       /* 32k tokens at less than 3 a second */
    kProbeS = 10,             /* for a health check */
    kTokenBytes = 4,          /* of a prompt, about: until the server says how many it were */
};

typedef struct {
    generator base;
    endpoints servers;
    char *model;         /* NULL = not sent */
    char *api_key;       /* NULL = none */
    char *authorization; /* the header line; NULL = none */
    bool stream;
    int max_retries, in_flight;
    double silence_s, deadline_s;
    double rpm, tpm;     /* requests and tokens a minute; 0 = no limit */
    generator_load load; /* of the last run */
    const volatile sig_atomic_t *cancel;
    retry_policy policy;
} client;

typedef enum {
    ATTEMPT_OK,
    ATTEMPT_MAY_PASS, /* failed, another one may succeed */
    ATTEMPT_FINAL,    /* failed, another one can't */
} attempt_end;

typedef enum { SLOT_FREE, SLOT_WAITING, SLOT_RUNNING } slot_state;

typedef struct session session;

/* A request in flight. */
typedef struct {
    session *session;
    slot_state state;
    endpoint *server; /* of the last attempt */
    gen_request req;
    buf request;       /* the JSON body */
    double expected;   /* tokens that the last attempt was to take */
    size_t idle_bytes; /* of the stream since its last piece of the answer */
    int attempts;
    int64_t due_ns;                    /* SLOT_WAITING: when to start the next attempt */
    int64_t first_start_ns, start_ns;  /* of the first attempt, of the last */
    int64_t first_token_ns, finish_ns; /* of the last attempt; -1 = not yet */
    int64_t last_piece_ns;             /* when text came last */
    hist gaps;                         /* between pieces of text */
    rng jitter;

    /* what came of the last attempt */
    buf body; /* a whole answer, or the beginning of a refusal */
    sse events;
    chat_answer answer;
    attempt_end end;
    snap_err why; /* unless ATTEMPT_OK */
    buf error;    /* what the result says of it */
} slot;

/* A health check of a server that was taken out. */
typedef struct {
    session *session;
    endpoint *server;
} probe;

/* One generator_run(). */
struct session {
    client *client;
    http *engine;
    slot *slots;
    probe probes[ENDPOINTS_MAX];
    pace pace;
    rng jitter; /* of the probes */
    gen_source_fn source;
    gen_sink_fn sink;
    void *source_ctx, *sink_ctx;
    int busy;       /* slots that are not free */
    bool changed;   /* a slot was freed or is to wait: look at them */
    int64_t due_ns; /* look at them then in any case */
    bool exhausted; /* the source has no more */
    bool reached;   /* the server has answered something */
    snap_status st;
    snap_err *err;
};

/* ---- an attempt ---- */

SNAP_PRINTF(3, 4)
static void attempt_fail(slot *s, attempt_end end, const char *fmt, ...) {
    char text[sizeof s->why.text];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    s->end = end;
    s->why = (snap_err){0};
    (void)err_set(&s->why, SNAP_E_NET, "%s", text);
}

/* An answer that can't be read: damaged underway it may pass, too large it won't. */
static void attempt_unreadable(slot *s, snap_status st) {
    s->end = st == SNAP_E_NOMEM ? ATTEMPT_FINAL : ATTEMPT_MAY_PASS;
}

static void note_piece(slot *s, int64_t now) {
    if (s->first_token_ns < 0)
        s->first_token_ns = now;
    else
        hist_add(&s->gaps, now - s->last_piece_ns);
    s->last_piece_ns = now;
    s->idle_bytes = 0;
}

static snap_status on_event(void *ctx, const char *data, size_t n, snap_err *err) {
    slot *s = ctx;
    size_t before = s->answer.text.len + s->answer.reasoning.len;
    int64_t now = clock_now_ns();
    snap_status st = chat_answer_read_chunk(&s->answer, data, n, err);
    if (s->answer.text.len + s->answer.reasoning.len > before)
        note_piece(s, now);
    if (s->finish_ns < 0 && s->answer.done)
        s->finish_ns = now;
    return st;
}

static bool is_ok(int status) {
    return status >= 200 && status < 300;
}

static bool has_type(const http_response *head, const char *type) {
    return strncasecmp(head->type, type, strlen(type)) == 0;
}

/* A server that sends comments as fast as it can is never silent. */
static bool is_idle(slot *s) {
    if (s->idle_bytes <= kIdleLimit)
        return false;
    if (!chat_answer_complete(&s->answer)) /* else nothing is lost */
        attempt_fail(s, ATTEMPT_MAY_PASS, "%d bytes of the stream brought nothing of the answer",
                     (int)kIdleLimit);
    return true;
}

static bool on_stream(slot *s, const http_response *head, const char *bytes, size_t n) {
    if (*head->type && !has_type(head, "text/event-stream")) {
        attempt_fail(s, ATTEMPT_FINAL,
                     "the server answered with %.80s instead of a stream; check that the URL ends "
                     "in the API's root (often /v1), or switch streaming off",
                     head->type);
        return false;
    }
    s->idle_bytes += n;
    snap_status st = sse_feed(&s->events, bytes, n, on_event, s, &s->why);
    if (st != SNAP_OK)
        attempt_unreadable(s, st);
    return st == SNAP_OK && !is_idle(s);
}

static bool on_body(void *ctx, const http_response *head, const char *bytes, size_t n) {
    slot *s = ctx;
    if (is_ok(head->status))
        return s->session->client->stream ? on_stream(s, head, bytes, n)
                                          : buf_append(&s->body, bytes, n);
    size_t room = kRefusalLimit - s->body.len;
    (void)buf_append(&s->body, bytes, n < room ? n : room);
    return s->body.len < kRefusalLimit; /* that is enough to tell why */
}

static bool is_refused(const slot *s, const http_response *res) {
    return !is_ok(res->status) && (res->outcome == HTTP_COMPLETE || s->body.len == kRefusalLimit);
}

/* Whether the text that came is the model's whole answer. */
static void judge_answer(slot *s) {
    if (!chat_answer_complete(&s->answer))
        attempt_fail(s, ATTEMPT_MAY_PASS, "the stream ended before the answer did");
    else if (chat_answer_aborted(&s->answer))
        attempt_fail(s, ATTEMPT_MAY_PASS, "the server broke the answer off (finish reason '%s')",
                     s->answer.finish_reason);
}

static void judge_whole(slot *s, const http_response *res) {
    snap_status st = chat_answer_read(&s->answer, buf_str(&s->body), s->body.len, &s->why);
    if (st != SNAP_OK)
        attempt_unreadable(s, st);
    else
        judge_answer(s);
    if (st == SNAP_E_INPUT && *res->type && !has_type(res, "application/json")) {
        s->end = ATTEMPT_FINAL;
        err_prefix(&s->why,
                   "the server answered with %.80s; check that the URL ends in the API's "
                   "root (often /v1)",
                   res->type);
    }
}

static void judge_stream(slot *s) {
    snap_status st = sse_finish(&s->events, on_event, s, &s->why);
    if (st != SNAP_OK)
        attempt_unreadable(s, st);
    else
        judge_answer(s);
}

static void judge_refusal(slot *s, const http_response *res) {
    buf words = {0};
    refusal_describe(res->status, buf_str(&s->body), s->body.len, res->location, &words);
    attempt_fail(s, retry_status(res->status) ? ATTEMPT_MAY_PASS : ATTEMPT_FINAL, "%s",
                 buf_str(&words));
    buf_release(&words);
}

static void judge_broken(slot *s, const http_response *res) {
    /* a stream that lost its end after the finish reason has lost nothing of the answer */
    if (chat_answer_complete(&s->answer)) {
        judge_answer(s);
        return;
    }
    bool may_pass = res->outcome == HTTP_UNREACHABLE || res->outcome == HTTP_SILENT ||
                    res->outcome == HTTP_BROKEN || res->outcome == HTTP_LATE ||
                    s->session->client->servers.n > 1; /* another one may be better */
    attempt_fail(s, may_pass ? ATTEMPT_MAY_PASS : ATTEMPT_FINAL, "%s", res->message);
}

/* Sets s->end and s->why from what came. */
static void judge(slot *s, const http_response *res) {
    if (s->end != ATTEMPT_OK) /* a callback has judged it already */
        return;
    if (s->body.failed)
        attempt_fail(s, ATTEMPT_FINAL, "the answer is longer than %d bytes", (int)kBodyLimit);
    else if (is_refused(s, res))
        judge_refusal(s, res);
    else if (res->outcome != HTTP_COMPLETE)
        judge_broken(s, res);
    else if (s->session->client->stream)
        judge_stream(s);
    else
        judge_whole(s, res);
}

/* ---- the life of a request ---- */

static void run_fail(session *r, snap_status st) {
    if (r->st == SNAP_OK)
        r->st = st;
}

/* Bytes of @key at the start of @text. */
static size_t key_at(const char *text, const char *key) {
    size_t n = 0;
    while (key[n] && text[n] == key[n])
        n++;
    return n;
}

/* A server may echo what it was sent, whole or cut off: the key must not get into files. */
static void append_without_key(buf *out, const char *text, const char *key) {
    size_t telling = strlen(key) < kKeyPart ? strlen(key) : kKeyPart;
    while (*text) {
        size_t n = key_at(text, key);
        if (n >= telling)
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
        append_without_key(&s->error, s->why.text, key);
    else
        (void)buf_puts(&s->error, s->why.text);
    if (s->attempts > 1)
        (void)buf_printf(&s->error, " (after %d attempts)", s->attempts);
}

static void deliver(slot *s) {
    session *r = s->session;
    bool failed = s->end != ATTEMPT_OK;
    int64_t end_ns = s->finish_ns >= 0 ? s->finish_ns : clock_now_ns();
    if (failed)
        describe_failure(s);
    gen_result res = {
        .failed = failed,
        .error = failed ? buf_str(&s->error) : NULL,
        .text = buf_str(&s->answer.text),
        .reasoning = s->answer.reasoning.len ? s->answer.reasoning.data : NULL,
        .finish_reason = failed ? NULL : s->answer.finish_reason,
        .prompt_tokens = s->answer.prompt_tokens,
        .completion_tokens = s->answer.completion_tokens,
        .start_ns = s->first_start_ns,
        .first_token_ns = s->first_token_ns < 0 ? -1 : s->first_token_ns - s->start_ns,
        .total_ns = end_ns - s->start_ns,
        .itl_mean_ns = hist_mean_ns(&s->gaps),
        .itl_p50_ns = hist_quantile_ns(&s->gaps, 0.5),
        .itl_p99_ns = hist_quantile_ns(&s->gaps, 0.99),
        .attempts = s->attempts,
    };
    s->state = SLOT_FREE;
    r->changed = true;
    r->busy--;
    run_fail(r, r->sink(r->sink_ctx, &s->req, &res, r->err));
}

/* A server that has too much to do is spared by all, not by the request alone that it refused. */
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

/* When to look at a server that was taken out, again. */
static void plan_probe(session *r, endpoint *at) {
    double wait_s = retry_delay_s(&r->client->policy, ++at->probes, -1, rng_uniform(&r->jitter));
    at->due_ns = clock_now_ns() + (int64_t)(wait_s * 1e9);
}

/* What the server says of its limits; what the attempt took of the user's. */
static void note_limits(slot *s, const http_response *res, int64_t now) {
    session *r = s->session;
    double cap_s = r->client->policy.server_cap_s, wait_s = ratelimit_wait_s(res);
    wait_s = wait_s < cap_s ? wait_s : cap_s;
    if (wait_s > 0)
        endpoints_hold(s->server, now, now + (int64_t)(wait_s * 1e9), false);
    const chat_answer *a = &s->answer;
    bool known = a->prompt_tokens >= 0 && a->completion_tokens >= 0;
    int64_t took = s->end == ATTEMPT_OK ? -1 : 0; /* what fails is not counted by most */
    pace_settle(&r->pace, s->expected, known ? a->prompt_tokens + a->completion_tokens : took,
                a->completion_tokens);
}

static void note_health(slot *s, const http_response *res) {
    session *r = s->session;
    s->server->in_flight--;
    if (!is_no_server(res) && !is_failing_server(res))
        endpoints_success(s->server);
    else if (endpoints_failure(&r->client->servers, s->server, is_no_server(res)))
        plan_probe(r, s->server);
}

/* Every other request would fail like this one: the run, not the sample, has failed. */
static void fail_run(slot *s, const char *what) {
    describe_failure(s);
    run_fail(s->session, err_set(s->session->err, SNAP_E_NET, "%s %s: %s", s->server->chat_url,
                                 what, buf_str(&s->error)));
}

static void on_done(void *ctx, const http_response *res) {
    slot *s = ctx;
    session *r = s->session;
    r->reached = r->reached || res->status;
    judge(s, res);
    note_health(s, res);
    note_limits(s, res, clock_now_ns());
    if (s->end == ATTEMPT_MAY_PASS && s->attempts <= r->client->max_retries)
        wait_to_retry(s, res);
    else if (is_no_server(res) && !r->reached)
        fail_run(s, "cannot be reached");
    else if (res->status == 401)
        fail_run(s, "does not accept the API key, or no longer");
    else
        deliver(s);
}

/* The server for an attempt that may start now; NULL where none may, and *next_ns no later than when
 * one may, as far as that is known. */
static endpoint *may_start(session *r, int64_t now, int64_t *next_ns) {
    int64_t paced_ns = pace_when(&r->pace, now);
    endpoint *at = paced_ns <= now ? endpoints_choose(&r->client->servers, now) : NULL;
    int64_t free_ns = paced_ns > now ? paced_ns : endpoints_next_ns(&r->client->servers, now);
    if (!at && free_ns < *next_ns)
        *next_ns = free_ns;
    return at;
}

static void start_attempt(slot *s, endpoint *server) {
    client *c = s->session->client;
    buf_clear(&s->body);
    sse_clear(&s->events);
    s->idle_bytes = 0;
    chat_answer_clear(&s->answer);
    s->end = ATTEMPT_OK;
    s->why = (snap_err){0};
    s->first_token_ns = s->finish_ns = -1;
    s->gaps = (hist){0};
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
    run_fail(s->session, http_start(s->session->engine, &req, s->session->err));
}

/* Takes the next request from the source into a free slot, to be started when it may. */
static void admit(session *r, slot *s) {
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
    run_fail(r, chat_request_write(&s->req, c->model, c->stream, &s->request, r->err));
}

/* ---- health ---- */

/* Any answer of its own will do: a server that hides its list of models is still there. */
static void on_probed(void *ctx, const http_response *res) {
    const probe *p = ctx;
    p->server->probing = false;
    p->session->changed = true;
    if (res->status && res->status < 500)
        endpoints_success(p->server);
    else
        plan_probe(p->session, p->server);
}

static void start_probe(probe *p) {
    const client *c = p->session->client;
    http_request req = {.url = p->server->models_url,
                        .headers = (const char *const[]){c->authorization},
                        .n_headers = c->authorization ? 1 : 0,
                        .connect_timeout_s = kProbeS,
                        .deadline_s = kProbeS,
                        .on_done = on_probed,
                        .ctx = p};
    p->server->probing = true;
    run_fail(p->session, http_start(p->session->engine, &req, p->session->err));
}

/* Starts the checks that are due; returns when the next one is. */
static int64_t look_after_servers(session *r, int64_t now) {
    int64_t next_ns = INT64_MAX;
    for (int i = 0; i < r->client->servers.n; i++) {
        endpoint *at = r->probes[i].server;
        if (!at->out || at->probing)
            continue;
        if (at->due_ns <= now)
            start_probe(&r->probes[i]);
        else if (at->due_ns < next_ns)
            next_ns = at->due_ns;
    }
    return next_ns;
}

/* ---- a run ---- */

/* Starts what can be started; returns when the next waiting request is due. */
static int64_t fill(session *r, int64_t now) {
    int64_t next_ns = INT64_MAX;
    for (int i = 0; i < r->client->in_flight && r->st == SNAP_OK; i++) {
        slot *s = &r->slots[i];
        if (s->state == SLOT_FREE && !r->exhausted)
            admit(r, s);
        bool due = s->state == SLOT_WAITING && s->due_ns <= now;
        endpoint *at = due && r->st == SNAP_OK ? may_start(r, now, &next_ns) : NULL;
        if (at)
            start_attempt(s, at);
        else if (s->state == SLOT_WAITING && !due && s->due_ns < next_ns)
            next_ns = s->due_ns;
    }
    return next_ns;
}

/* Between two answers nothing can be started: then there is nothing to look for. Returns when to look
 * again at the latest. */
static int64_t fill_if_due(session *r) {
    int64_t now = clock_now_ns(), probe_ns = look_after_servers(r, now);
    if (r->changed || r->due_ns <= now) {
        r->changed = false;
        r->due_ns = fill(r, now);
    }
    return probe_ns < r->due_ns ? probe_ns : r->due_ns;
}

static snap_status run_all(session *r) {
    for (;;) {
        int64_t next_ns = fill_if_due(r);
        if (r->st == SNAP_OK && !r->busy)
            return SNAP_OK;
        if (r->st == SNAP_OK)
            run_fail(r, http_step(r->engine, next_ns, r->err));
        if (r->st != SNAP_OK)
            return r->st;
    }
}

static slot *slots_create(session *r) {
    slot *slots = calloc((size_t)r->client->in_flight, sizeof *slots);
    for (int i = 0; slots && i < r->client->in_flight; i++) {
        slots[i].session = r;
        slots[i].body.limit = kBodyLimit;
        slots[i].events = sse_make();
        slots[i].answer = chat_answer_make();
    }
    return slots;
}

static void slots_free(slot *slots, int n) {
    for (int i = 0; slots && i < n; i++) {
        buf_release(&slots[i].request);
        buf_release(&slots[i].body);
        buf_release(&slots[i].error);
        sse_release(&slots[i].events);
        chat_answer_release(&slots[i].answer);
    }
    free(slots);
}

/* Servers start a run with a clean slate. */
static void meet_servers(session *r) {
    endpoints *servers = &r->client->servers;
    servers->outages = 0;
    for (int i = 0; i < servers->n; i++) {
        endpoint *at = &servers->list[i];
        *at = (endpoint){
            .chat_url = at->chat_url, .models_url = at->models_url, .weight = at->weight};
        r->probes[i] = (probe){.session = r, .server = at};
    }
}

static generator_load load_of(const session *r) {
    http_stats stats = http_stats_of(r->engine);
    return (generator_load){.transfers = stats.transfers,
                            .connections = stats.connections,
                            .outages = r->client->servers.outages,
                            .lag_p99_ns = stats.lag_p99_ns,
                            .lag_max_ns = stats.lag_max_ns};
}

static snap_status client_run(generator *g, gen_source_fn source, void *source_ctx,
                              gen_sink_fn sink, void *sink_ctx, snap_err *err) {
    client *c = (client *)(void *)g;
    snap_status st = SNAP_OK;
    session r = {.client = c,
                 .source = source,
                 .source_ctx = source_ctx,
                 .sink = sink,
                 .sink_ctx = sink_ctx,
                 .jitter = rng_make(0, rng_stream_of("probes")),
                 .err = err};
    r.pace = pace_make(c->rpm, c->tpm, clock_now_ns());
    meet_servers(&r);
    TRY(http_create(&r.engine, c->in_flight, c->cancel, err));
    r.slots = slots_create(&r);
    st = r.slots ? run_all(&r) : err_set(err, SNAP_E_NOMEM, "out of memory for requests");
    c->load = load_of(&r);
cleanup:
    http_free(r.engine);
    slots_free(r.slots, c->in_flight);
    return st;
}

static generator_load client_load(const generator *g) {
    return ((const client *)(const void *)g)->load;
}

/* ---- opening ---- */

static void client_free(client *c) {
    if (!c)
        return;
    endpoints_release(&c->servers);
    free(c->model);
    free(c->api_key);
    free(c->authorization);
    free(c);
}

static void client_close(generator *g) {
    client_free((client *)(void *)g);
}

static const generator_ops client_ops = {
    .kind = "http", .run = client_run, .close = client_close, .load = client_load};

static snap_status check_options(const generator_options *opt, snap_err *err) {
    if (opt->in_flight < 0 || opt->in_flight > CLIENT_IN_FLIGHT_MAX)
        return err_set(err, SNAP_E_USAGE, "requests in flight must be 1 to %d, got %d",
                       CLIENT_IN_FLIGHT_MAX, opt->in_flight);
    if (opt->max_retries < -1 || !(opt->timeout_s >= 0 && opt->timeout_s <= 1e6) ||
        !(opt->deadline_s >= 0 && opt->deadline_s <= 1e6))
        return err_set(err, SNAP_E_USAGE,
                       "retries must be at least 0, a timeout and a deadline 0 to 1000000 seconds");
    if (!(opt->requests_per_minute >= 0 && opt->requests_per_minute <= 1e9) ||
        !(opt->tokens_per_minute >= 0 && opt->tokens_per_minute <= 1e12))
        return err_set(err, SNAP_E_USAGE, "requests and tokens a minute must not be negative");
    for (const char *k = opt->api_key; k && *k; k++)
        if (*k <= ' ' || *k > '~')
            return err_set(err, SNAP_E_USAGE,
                           "the API key holds a character that a header cannot carry");
    return SNAP_OK;
}

/* Copies of what the caller may free. */
static snap_status take_strings(client *c, const generator_options *opt, snap_err *err) {
    buf header = {0};
    bool keyed = opt->api_key && *opt->api_key;
    if (opt->model)
        c->model = strdup(opt->model);
    if (keyed) {
        c->api_key = strdup(opt->api_key);
        (void)buf_printf(&header, "Authorization: Bearer %s", opt->api_key);
        c->authorization = header.failed ? NULL : buf_steal(&header);
        buf_release(&header);
    }
    if ((opt->model && !c->model) || (keyed && (!c->api_key || !c->authorization)))
        return err_set(err, SNAP_E_NOMEM, "out of memory for a generator");
    return SNAP_OK;
}

snap_status client_open(generator **out, const char *urls, const generator_options *opt,
                        const retry_policy *policy, snap_err *err) {
    *out = NULL;
    snap_status st = SNAP_OK;
    client *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a generator");
    c->base.ops = &client_ops;
    c->stream = !opt->no_stream;
    c->max_retries = opt->max_retries < 0 ? CLIENT_RETRIES : opt->max_retries;
    c->in_flight = opt->in_flight ? opt->in_flight : CLIENT_IN_FLIGHT;
    c->silence_s = opt->timeout_s;
    c->deadline_s = opt->deadline_s > 0 ? opt->deadline_s : kDeadlineS;
    c->rpm = opt->requests_per_minute;
    c->tpm = opt->tokens_per_minute;
    c->cancel = opt->cancel;
    c->policy = *policy;
    TRY(check_options(opt, err));
    TRY(endpoints_parse(&c->servers, urls, err));
    TRY(take_strings(c, opt, err));
    *out = (generator *)c;
    c = NULL;
cleanup:
    client_free(c);
    return st;
}

snap_status gen_http_open(generator **out, const char *spec, const generator_options *opt,
                          snap_err *err) {
    return client_open(out, spec, opt, &RETRY_DEFAULT, err);
}
