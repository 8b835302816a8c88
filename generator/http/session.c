/* Runs a client: checks the health of the servers, holds the requests in flight, and starts those
 * requests that may start. */
#include <stdlib.h>

#include "base/clock.h"
#include "generator/http/client_parts.h"

enum { kProbeS = 10 }; /* seconds that a health check may take */

void session_fail(session *r, snap_status st) {
    if (r->st == SNAP_OK)
        r->st = st;
}

/* ---- probes of servers that have failed ---- */

void session_plan_probe(session *r, endpoint *at) {
    double wait_s = retry_delay_s(&r->client->policy, ++at->probes, -1, rng_uniform(&r->jitter));
    at->due_ns = clock_now_ns() + (int64_t)(wait_s * 1e9);
}

/* Any status below 500 shows that the server is alive, even if it does not list its models. */
static void on_probed(void *ctx, const http_response *res) {
    const probe *p = ctx;
    p->server->probing = false;
    p->session->changed = true;
    if (res->status && res->status < 500)
        endpoints_success(p->server);
    else
        session_plan_probe(p->session, p->server);
}

static void start_probe(probe *p) {
    const client *c = p->session->client;
    http_request req = {.url = p->server->models_url,
                        .secrets = (const char *const *)c->secrets,
                        .n_secrets = c->n_secrets,
                        .connect_timeout_s = kProbeS,
                        .deadline_s = kProbeS,
                        .on_done = on_probed,
                        .ctx = p};
    p->server->probing = true;
    session_fail(p->session, http_start(p->session->engine, &req, p->session->err));
}

/* Starts the health checks that are due. Returns the time of the next one. */
static int64_t start_due_probes(session *r, int64_t now) {
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

/* The server for an attempt that may start now, or NULL. If NULL, lowers *next_ns to the time when
 * one may start, if that is known. */
static endpoint *may_start(session *r, int64_t now, int64_t *next_ns) {
    int64_t paced_ns = pace_when(&r->pace, now);
    endpoint *at = paced_ns <= now ? endpoints_choose(&r->client->servers, now) : NULL;
    int64_t free_ns = paced_ns > now ? paced_ns : endpoints_next_ns(&r->client->servers, now);
    if (!at && free_ns < *next_ns)
        *next_ns = free_ns;
    return at;
}

/* Takes requests from the source into the free slots, and starts those that may start. Returns when
 * the next one may start; INT64_MAX if that is not known. */
static int64_t fill(session *r, int64_t now) {
    int64_t next_ns = INT64_MAX;
    for (int i = 0; i < r->client->in_flight && r->st == SNAP_OK; i++) {
        slot *s = &r->slots[i];
        if (s->state == SLOT_FREE && !r->exhausted)
            request_admit(s);
        bool due = s->state == SLOT_WAITING && s->due_ns <= now;
        endpoint *at = due && r->st == SNAP_OK ? may_start(r, now, &next_ns) : NULL;
        if (at)
            request_start(s, at);
        else if (s->state == SLOT_WAITING && !due && s->due_ns < next_ns)
            next_ns = s->due_ns;
    }
    return next_ns;
}

/* Checks the slots only if one has changed or is due, because most network events change nothing.
 * Returns the time at which this function must be called again, even without a network event. */
static int64_t fill_if_due(session *r) {
    int64_t now = clock_now_ns(), probe_ns = start_due_probes(r, now);
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
            session_fail(r, http_step(r->engine, next_ns, r->err));
        if (r->st != SNAP_OK)
            return r->st;
    }
}

static slot *slots_create(session *r) {
    slot *slots = calloc((size_t)r->client->in_flight, sizeof *slots);
    for (int i = 0; slots && i < r->client->in_flight; i++) {
        slots[i].session = r;
        attempt_init(&slots[i].last, r->client->stream, r->client->servers.n > 1);
        slots[i].last.on_piece = request_on_piece;
        slots[i].last.piece_ctx = &slots[i];
    }
    return slots;
}

static void slots_free(slot *slots, int n) {
    for (int i = 0; slots && i < n; i++) {
        buf_release(&slots[i].request);
        buf_release(&slots[i].error);
        for (int k = 0; k < 3; k++)
            buf_release(&slots[i].masked[k]);
        attempt_release(&slots[i].last);
    }
    free(slots);
}

/* Resets the state of all servers at the start of a run. */
static void reset_servers(session *r) {
    endpoints *servers = &r->client->servers;
    servers->outages = 0;
    for (int i = 0; i < servers->n; i++) {
        endpoint *at = &servers->list[i];
        *at = (endpoint){.chat_url = at->chat_url,
                         .text_url = at->text_url,
                         .models_url = at->models_url,
                         .weight = at->weight};
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

snap_status session_run(client *c, gen_source_fn source, void *source_ctx, gen_sink_fn sink,
                        void *sink_ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    session r = {.client = c,
                 .source = source,
                 .source_ctx = source_ctx,
                 .sink = sink,
                 .sink_ctx = sink_ctx,
                 .jitter = rng_make(0, rng_stream_of("probes")),
                 .err = err};
    r.pace = pace_make(c->rpm, c->tpm, clock_now_ns());
    reset_servers(&r);
    TRY(http_create(&r.engine, c->in_flight, c->cancel, err));
    r.slots = slots_create(&r);
    st = r.slots ? run_all(&r) : err_set(err, SNAP_E_NOMEM, "out of memory for requests");
    c->load = load_of(&r);
cleanup:
    http_free(r.engine);
    slots_free(r.slots, c->in_flight);
    return st;
}
