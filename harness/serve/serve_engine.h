/* serve_engine.h - the thread that runs the engine for a server.
 *
 * One thread owns the engine of a local_model. The server's thread submits jobs and takes their
 * news: tokens, text and ends. After each step of the engine, the news of all jobs is published as
 * one list, and an event descriptor wakes the server's thread, which sorts the news by jobs. So the
 * engine's thread does little for each stream. */
#ifndef SNAPMLA_HARNESS_SERVE_SERVE_ENGINE_H
#define SNAPMLA_HARNESS_SERVE_SERVE_ENGINE_H

#include "generator/local/engine/stop.h"
#include "generator/local/local.h"

typedef struct serve_job serve_job;

typedef enum { PIECE_TOKEN, PIECE_STOP, PIECE_LENGTH, PIECE_FAILED } piece_kind;

/* A token of a choice with the text that it completes, or the end of a choice with the rest of its
 * text. */
typedef struct {
    serve_job *job;
    piece_kind kind;
    int choice;
    int32_t token;
    float logprob;
    int cached;    /* for the first piece of a choice: how many tokens of its prompt were in the
                      cache */
    int n_top;     /* the next n_top entries of serve_news.top belong to it */
    size_t text_n; /* the next text_n bytes of serve_news.text belong to it */
    int64_t ns;    /* when it was made, clock_now_ns() */
} serve_piece;

/* Pieces in the order in which they were made. */
typedef struct {
    serve_piece *v;
    size_t n, cap;
    token_logit *top;
    size_t n_top, cap_top;
    buf text;
    bool failed; /* memory was exhausted: pieces are missing */
} serve_news;

/* The scores of the prompt of one choice; valid after the first piece of this choice. */
typedef struct {
    float *logprob;   /* [n], one for each token of the prompt; [0] is not used */
    token_logit *top; /* [n][k] */
    int *n_top;       /* [n] */
} serve_scores;

typedef struct serve_choice serve_choice;

/* One HTTP request. The server fills the first part; it must stay as it is until `released`. */
struct serve_job {
    tok_ids *prompts;   /* [n_prompts] */
    int n_prompts, n;   /* choices are numbered prompt * n + i */
    engine_request how; /* how the choices are made; prompt, callbacks and user are not set. Choice
                           i of a prompt has seed + i */
    stop_strings stop;
    serve_scores *scores; /* [n_prompts * n]; NULL = prompts are not scored */
    void *user;

    serve_news news; /* filled by serve_engine_collect() */
    bool released;   /* set by serve_engine_collect(): the engine is done with the job */
    char error[300]; /* why choices failed; valid if one is PIECE_FAILED */
    struct serve_job *next_news; /* next in the list of serve_engine_collect() */

    /* used by serve_replicas.c only */
    struct serve_engine *engine; /* the engine that has the job; NULL while it is in the queue */
    uint64_t prompt_hash;        /* hash of the first prompt; 0 = the job shares no prompt */
    int64_t tokens;              /* the most that its sequences can have in the cache */

    /* used by serve_engine.c only, except that next_in is also the link of the queue in
     * serve_replicas.c, before an engine gets the job */
    serve_choice *choice;
    int left;
    bool listed;               /* the job is in the list that serve_engine_collect() makes */
    bool lost, lost_published; /* pieces are missing, because memory was exhausted */
    bool touched, published, cancelled, ended;
    struct serve_job *next, *prev, *next_touched, *next_published, *next_in, *next_cancel;
};

/* The state of the engine when news was last published. */
typedef struct {
    engine_load now;
    engine_stats stats;
    int64_t begun;   /* choices of all jobs that have begun */
    int64_t busy_ns; /* time in which the thread had jobs; stats.model_ns is a part of it */
    bool broken;     /* a step failed: nothing can be generated any more */
    snap_err reason; /* why */
} serve_load;

typedef struct serve_engine serve_engine;

/* Starts the thread. @m is borrowed; its engine and runner belong to the thread until
 * serve_engine_stop(). @wake: an eventfd that is written when there is news. SNAP_E_NOMEM,
 * SNAP_E_IO. */
snap_status serve_engine_start(serve_engine **out, local_model *m, int wake,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Drops the sequences that are left, joins the thread and frees @e. Jobs that are not released are
 * the caller's again. NULL is allowed. */
void serve_engine_stop(serve_engine *e);

/* Allocates what the engine needs for the choices of a job. False if memory is exhausted. */
bool serve_job_prepare(serve_job *j);

/* Queues a job that is prepared. */
void serve_engine_submit(serve_engine *e, serve_job *j);

/* Drops the sequences of a job before the next step. The job is released by a later
 * serve_engine_collect(). */
void serve_engine_cancel(serve_engine *e, serve_job *j);

/* Returns a list of the jobs with news, and moves their news to `news`, which the caller empties
 * with serve_news_clear(). Fills @load. */
serve_job *serve_engine_collect(serve_engine *e, serve_load *load);

void serve_news_clear(serve_news *n);

/* Frees the memory that the engine's files have allocated for the job. The job itself and the
 * fields that the server filled are left as they are. */
void serve_job_release(serve_job *j);

#endif
