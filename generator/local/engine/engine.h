/* engine.h - generates many sequences at once over one paged cache (continuous batching).
 *
 * A request is one sample. Each step decodes one token of every running sequence and processes
 * chunks of waiting prompts. Sequences join and leave between steps. Requests with equal prompts
 * share the prompt's pages: it is computed once, its full pages are shared, and the last page is
 * copied.
 *
 * When no page is free, the sequence that came last is preempted. It is swapped out to host memory
 * and comes back first, or it is computed again (engine_recompute()).
 *
 * On the CPU a sample's tokens depend on its request alone. Products, attention and draws don't
 * depend on the batch (runner.h, sampler.h), prompts are divided into chunks at fixed positions,
 * and swapped pages are restored bit by bit. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_H

#include <stdbool.h>

#include "generator/local/engine/sampler.h"
#include "generator/local/model/runner.h"

typedef enum {
    FINISH_STOP,     /* a stop id came, or the token callback returned false */
    FINISH_LENGTH,   /* max_tokens is reached, or the context is full */
    FINISH_NO_PAGES, /* the cache has too few pages for this sequence alone */
} finish_reason;

/* Receives a new token. Stop ids are not passed. @logprob is 0 unless it was requested. Returning
 * false stops the sequence. */
typedef bool (*engine_token_fn)(void *user, int32_t token, float logprob);
typedef void (*engine_done_fn)(void *user, finish_reason why);

typedef struct {
    const int32_t *prompt; /* [n_prompt], copied; 1 .. context - 1 tokens */
    int n_prompt;
    sampling sampling;
    uint64_t seed; /* seed of this sample */
    int max_tokens;
    bool logprobs;           /* compute log-probabilities; costs a second pass over the logits */
    const int32_t *stop_ids; /* [n_stop_ids], borrowed until done */
    int n_stop_ids;
    engine_token_fn token;
    engine_done_fn done; /* called once; after that nothing of the request is used */
    void *user;
} engine_request;

typedef struct {
    int64_t steps, decoded, prefilled; /* decoded, prefilled: tokens computed in either way */
    int64_t shared;                    /* prompt tokens that were taken from shared pages */
    int64_t preemptions;               /* how often a sequence was swapped out or dropped */
    int64_t recomputed;                /* tokens computed again after a preemption */
    int most_running, most_pages;
    double mean_running; /* per step, over the steps that had any */
} engine_stats;

typedef struct engine engine;

/* @r is borrowed, and only the engine may use it while it exists. Caller owns *out: engine_free(),
 * which drops unfinished requests without a callback. */
snap_status engine_create(engine **out, runner *r, snap_err *err) SNAP_CHECK_RESULT;
void engine_free(engine *e); /* NULL is allowed */

/* If on, preemption drops the pages of a sequence instead of swapping them out. Its tokens so far
 * are then computed again as a prompt. This needs no host memory, but more work. Chunks round
 * differently from single steps, so the further tokens of a preempted sample may change. */
void engine_recompute(engine *e, bool on);

/* Drops all requests without a callback. */
void engine_clear(engine *e);

/* Queues a request. SNAP_E_SHAPE for a prompt that is empty, longer than the context or with
 * unknown tokens; SNAP_E_NOMEM. */
snap_status engine_add(engine *e, const engine_request *req, snap_err *err) SNAP_CHECK_RESULT;

/* The number of requests that are not finished. */
int engine_pending(const engine *e);

/* Runs one step. Does nothing if no request is pending. */
snap_status engine_step(engine *e, snap_err *err) SNAP_CHECK_RESULT;

engine_stats engine_stats_of(const engine *e);

#endif
