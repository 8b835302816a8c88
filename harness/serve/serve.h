/* serve.h - an HTTP server with OpenAI's interface over a checkpoint that runs in this process.
 *
 *   POST /v1/chat/completions, /v1/completions   whole answers, or streams of server-sent events
 *   GET  /v1/models, /v1/models/NAME, /version
 *   GET  /health    200, or 503 while the server drains or after the engine failed
 *   GET  /metrics   for Prometheus
 *   POST /tokenize, /detokenize  the number and ids of a prompt's tokens; the text of ids
 *   GET  /tokenizer_info         special tokens and chat template, for clients that make prompts
 *
 * The caller's thread handles HTTP. Each replica of the model has a thread that runs its engine
 * (serve_engine.h, serve_replicas.h), and one more thread reads large requests (serve_worker.h).
 */
#ifndef SNAPMLA_HARNESS_SERVE_SERVE_H
#define SNAPMLA_HARNESS_SERVE_SERVE_H

#include <signal.h>

#include "generator/local/local.h"

typedef struct {
    const char *host;          /* address to listen on, or its name */
    int port;                  /* 0 = a free one */
    const char *model;         /* name of the model in the interface; UTF-8 */
    const char *version;       /* version of the program */
    const char *chat_template; /* Jinja program of the checkpoint, for clients; NULL = none */
    const char *api_key;       /* a bearer token that /v1 and /tokenize require; NULL = none */
    int max_queue; /* most sequences that wait, beyond those that all replicas decode at once */
    int max_per_client;  /* most sequences of one client that wait or run; 0 = no limit. A client is
                           an IPv4 address or the first 64 bits of an IPv6 address */
    int64_t max_body;    /* most bytes of a request's body */
    int64_t max_bodies;  /* most bytes of all bodies that have not arrived completely. If they are
                           reached, connections that have sent only a part of a body are closed:
                           first those that opened, or whose last answer ended, longest ago. The
                           large requests that wait to be read have a limit of the same size.
                           0 = SERVE_BODIES, or 4 max_body if that is more */
    double timeout_s;    /* an answer that takes longer ends with an error; 0 = no limit */
    double drain_s;      /* time for the answers in progress after *cancel is set */
    double receive_s;    /* a connection is closed if no whole request arrives in this time; it is
                            also the limit for a client that does not read its answer; whole
                            seconds */
    int max_connections; /* beyond them, a connection without a request in progress is closed: that
                            which opened, or whose last answer ended, longest ago. The limit on
                            open files may allow fewer */
    const volatile sig_atomic_t *cancel;       /* set to end the server */
    void (*ready)(void *ctx, const char *url); /* called once when it listens; NULL = none */
    void *ctx;
} serve_options;

/* Default values. */
enum {
    SERVE_QUEUE = 1024,
    SERVE_BODY = 4 << 20,
    SERVE_BODIES = 256 << 20,
    SERVE_CONNECTIONS = 4096,
    SERVE_RECEIVE_S = 60,
    SERVE_DRAIN_S = 30
};

/**
 * serve_run - serve until *cancel is set
 *
 * After *cancel is set, new POST requests get 503 while the answers in progress go on, at most for
 * drain_s. Those that are not complete then end with an error, for which the server takes at most
 * one second. Then it ends with SNAP_OK.
 *
 * SNAP_E_USAGE for a host that cannot be resolved; SNAP_E_IO if the port cannot be used, or if a
 * thread or the HTTP library fails; SNAP_E_NOMEM; the error of an engine that fails.
 */
snap_status serve_run(local_model *m, const serve_options *o, snap_err *err) SNAP_CHECK_RESULT;

#endif
