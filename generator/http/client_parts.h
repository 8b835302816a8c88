/* client_parts.h - what the client's files share: the client, a run, and the requests in flight. */
#ifndef SNAPMLA_GENERATOR_HTTP_CLIENT_PARTS_H
#define SNAPMLA_GENERATOR_HTTP_CLIENT_PARTS_H

#include <signal.h>

#include "base/buf.h"
#include "base/hist.h"
#include "base/http.h"
#include "base/rng.h"
#include "generator/backend.h"
#include "generator/http/attempt.h"
#include "generator/http/endpoints.h"
#include "generator/http/pace.h"
#include "generator/http/retry.h"
#include "generator/http/secrets.h"

enum { CLIENT_SECRETS = 9 }; /* the API key and 8 further headers */

typedef struct {
    generator base;
    endpoints servers;
    char *model;                   /* NULL = not sent */
    char *secrets[CLIENT_SECRETS]; /* header lines that only the servers may receive; owned */
    int n_secrets;
    bool stream;
    int max_retries, in_flight;
    double silence_s, deadline_s;
    double rpm, tpm;     /* limits per minute on requests and tokens; 0 = no limit */
    generator_load load; /* statistics of the last run */
    const volatile sig_atomic_t *cancel;
    retry_policy policy;
} client;

typedef enum { SLOT_FREE, SLOT_WAITING, SLOT_RUNNING } slot_state;

typedef struct session session;

/* A request in flight. */
typedef struct {
    session *session;
    slot_state state;
    endpoint *server; /* the server of the last attempt */
    gen_request req;
    buf request;     /* the JSON body */
    double expected; /* tokens that the last attempt was expected to use */
    int attempts;
    int64_t due_ns;                   /* SLOT_WAITING: when to start the next attempt */
    int64_t first_start_ns, start_ns; /* start times of the first and of the last attempt */
    rng jitter;

    attempt last;          /* state of the last attempt */
    int64_t last_piece_ns; /* time of its latest piece of text; -1 = none yet */
    hist gaps;             /* times between its pieces of text */
    buf error;             /* the error text of the result */
    buf masked[3]; /* text, reasoning and finish reason, if a secret in them had to be masked */
} slot;

/* A health check of a server that was taken out of service. */
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
    rng jitter; /* randomises the delays between probes */
    gen_source_fn source;
    gen_sink_fn sink;
    void *source_ctx, *sink_ctx;
    int busy;     /* slots that are not free */
    bool changed; /* check the slots: one was freed or waits for a retry, or a health check ended */
    int64_t due_ns; /* check the slots at this time even if `changed` is false */
    bool exhausted; /* the source has no more requests */
    bool reached;   /* a server has answered at least once */
    snap_status st;
    snap_err *err;
};

/* ---- request.c ---- */

/* Takes the next request from the source into a free slot, where it waits for its first attempt. If
 * there is none, sets `exhausted`. */
void request_admit(slot *s);

/* Records the time of a piece of text. @ctx: the slot. */
void request_on_piece(void *ctx, int64_t now_ns);

/* Starts the next attempt at the slot's request. Its callbacks then retry or deliver it. */
void request_start(slot *s, endpoint *server);

/* ---- session.c ---- */

snap_status session_run(client *c, gen_source_fn source, void *source_ctx, gen_sink_fn sink,
                        void *sink_ctx, snap_err *err) SNAP_CHECK_RESULT;

/* Ends the run with @st, unless it has already failed. SNAP_OK changes nothing. */
void session_fail(session *r, snap_status st);

/* Schedules the next health check of a server that was taken out of service. */
void session_plan_probe(session *r, endpoint *at);

#endif
