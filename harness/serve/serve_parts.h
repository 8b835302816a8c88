/* serve_parts.h - what the files of the server share: its state, and one HTTP request with its
 * answer. Private to serve/. */
#ifndef SNAPMLA_HARNESS_SERVE_SERVE_PARTS_H
#define SNAPMLA_HARNESS_SERVE_SERVE_PARTS_H

#include "base/rng.h"
#include "harness/serve/openai_answer.h"
#include "harness/serve/serve.h"
#include "harness/serve/serve_metrics.h"
#include "harness/serve/serve_replicas.h"
#include "harness/serve/serve_worker.h"

typedef struct exchange exchange;

/* The client of a request: its IPv4 address, or the first 64 bits of the IPv6 address, because one
 * client often has all addresses that begin with them. Unused bytes are 0. */
typedef struct {
    unsigned char bytes[8];
} serve_client;

/* Bodies with more bytes are read by the worker. Below that, a body takes the server's thread about
 * a millisecond. */
enum { SERVE_LARGE = 8 << 10 };

/* A request from its complete body on: it is read, and then it may become a job of the engine. It
 * exists until the worker and the engine have released it, also if its exchange ends before. */
typedef struct serve_work {
    struct serve_work *next, *prev; /* in the list server.work */
    struct server *s;
    openai_kind kind;
    buf body;
    serve_task task;    /* the task with which the worker reads a large request */
    bool queued;        /* a large request for answers: the number of choices is not known yet */
    bool read;          /* the worker has read the request, without an error */
    openai_error error; /* why the worker could not read the request */
    buf reply;          /* the answer, if it needs no job */
    bool submitted;     /* the engine has the job */
    serve_job job;
    openai_request req;
    openai_answer answer;
    tok_ids *prompts;
    arena scores;       /* owns what job.scores points to */
    int64_t *last_ns;   /* [choices] when the last token came; 0 = none came */
    int choices, ended; /* numbers of all choices, and of those whose end was counted */
    serve_client client;
    bool cancelled;
    bool left;   /* the client left, or its time was up, before the answer was complete */
    exchange *x; /* NULL: the exchange has ended or timed out */
} serve_work;

/* One HTTP request and its answer. */
struct exchange {
    exchange *next, *prev; /* in the list server.exchanges */
    struct server *s;
    const char *method; /* borrowed from the HTTP library */
    char *url;
    bool authorized;
    serve_client client;
    int64_t start_ns; /* when the request was complete */

    buf body;
    int64_t received; /* bytes of the body, also those that were dropped */
    bool too_much;    /* the body is too large and is dropped */

    int status;        /* HTTP status of the answer; 0 = not decided */
    const char *type;  /* Content-Type */
    const char *allow; /* Allow, for 405 */
    int retry_after;   /* seconds; 0 = no such header */
    buf out;           /* bytes of the answer */
    bool streaming;    /* `out` is sent while it grows */
    bool complete;     /* nothing will be added to `out` */
    serve_work *work;  /* NULL: none, or no longer needed */

    /* used by http.c and http_requests.c only */
    void *connection, *peer;
    int fd;
    size_t sent; /* bytes of `out` that a stream has passed on */
    bool handled, suspended, watched, gone;
};

typedef struct server {
    const serve_options *o;
    local_model *m;
    serve_replicas *replicas;
    serve_worker *worker;
    tok_encoder *worker_encoder;
    serve_totals load;
    serve_metrics metrics;
    serve_work *work; /* list of all that are not freed */
    exchange *exchanges;
    int64_t context; /* most tokens of a prompt with its answer */
    int pending;     /* sequences that are not released */
    int connections;
    uint64_t number; /* number of the last answer, a part of its id */
    rng random;      /* makes seeds for requests that have none */
    int64_t started; /* seconds since the epoch */
    bool draining;
} server;

/* ---- serve_routes.c ---- */

enum { SERVE_RETRY_S = 5 }; /* Retry-After of answers of a server that ends */

/* Answers a complete request: fills in the answer, or submits a job whose news serve_take() turns
 * into the answer. */
void serve_handle(exchange *x);

/* Answers with an error. A stream that has begun ends with it. */
void serve_fail(exchange *x, const openai_error *e);

/* ---- serve_read.c ---- */

/* Reads the JSON of w->body into w->req and releases the body. */
bool serve_read_parse(const server *s, serve_work *w, openai_error *e);

/* Makes the tokens of the prompts, or the reply of a request that needs no job. Only one thread may
 * use @encoder. */
bool serve_read_prompts(const server *s, tok_encoder *encoder, serve_work *w, openai_error *e);

/* Frees what serve_read_parse() and serve_read_prompts() made. */
void serve_read_release(serve_work *w);

/* Fill *e, from an error of another function or for exhausted memory, and return false. */
bool serve_fail_as(openai_error *e, const snap_err *err, const char *param);
bool serve_no_memory(openai_error *e);

/* ---- serve_work.c ---- */

/* Answers a POST request: at once, or with a job, or later if the worker must read it. */
void serve_submit(exchange *x, openai_kind kind);

/* Goes on with a request that the worker has read. May free @w. */
void serve_take_read(serve_work *w);

/* Adds the news of a job to its answer. Frees @w if the engine has released the job. */
void serve_take(server *s, serve_work *w);

/* Ends the work of an exchange: its sequences are dropped if they are not finished. */
void serve_leave(exchange *x);

void serve_work_free(server *s, serve_work *w);

#endif
