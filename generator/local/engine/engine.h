/* engine.h - many sequences at once over one paged cache (continuous batching).
 *
 * A request is one sample. Each step decodes a token of every running sequence and takes chunks of the
 * prompts that wait; sequences join and leave between steps. Requests with equal prompts share
 * its pages: it is computed once, full pages are held together, the last one is copied.
 * When no page is free, the sequence that came last is swapped out to host memory and comes back first; or
 * it is computed again, where that is asked for.
 *
 * A sample's tokens depend on its request alone: products, attention and draws do not see the batch
 * (runner.h, sampler.h), a prompt is cut into chunks at fixed places, and pages that were swapped come back
 * bit by bit. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_H

#include <stdbool.h>

#include "generator/local/engine/sampler.h"
#include "generator/local/model/runner.h"

typedef enum {
    FINISH_STOP,    /* a stop id, or the caller's word */
    FINISH_LENGTH,  /* max_tokens, or the context is full */
    FINISH_NO_ROOM, /* the cache has too few pages for this sequence alone */
} finish_reason;

/* Tells of a new token; stop ids are not told. @logprob is 0 where none was asked for. False stops the
 * sequence. */
typedef bool (*engine_token_fn)(void *user, int32_t token, float logprob);
typedef void (*engine_done_fn)(void *user, finish_reason why);

typedef struct {
    const int32_t *prompt; /* [n_prompt], copied; 1 .. context - 1 tokens */
    int n_prompt;
    sampling sampling;
    uint64_t seed; /* of this sample */
    int max_tokens;
    bool logprobs;           /* of what is drawn: a second pass over the logits */
    const int32_t *stop_ids; /* [n_stop_ids], borrowed until done */
    int n_stop_ids;
    engine_token_fn token;
    engine_done_fn done; /* called once, after which nothing of the request is used */
    void *user;
} engine_request;

typedef struct {
    int64_t steps, decoded, prefilled; /* tokens computed in either way */
    int64_t shared;                    /* prompt tokens that needed no computing */
    int64_t preemptions;               /* sequences that had to make room */
    int64_t recomputed;                /* tokens of theirs computed again */
    int most_running, most_pages;
    double mean_running; /* sequences a step with any */
} engine_stats;

typedef struct engine engine;

/* @r is borrowed, and the engine's alone while it lives. Caller owns *out: engine_free(), which drops
 * what is unfinished without a call. */
snap_status engine_create(engine **out, runner *r, snap_err *err) SNAP_CHECK_RESULT;
void engine_free(engine *e); /* NULL is allowed */

/* Instead of swapping, drops the pages of a sequence that makes room, and computes it again as a prompt of its
 * tokens so far: no host memory, but more work. A prompt's chunk rounds otherwise than single steps do,
 * so a preempted sample's tokens may change. */
void engine_recompute(engine *e, bool on);

/* Drops all requests without a call. */
void engine_clear(engine *e);

/* Queues a request. SNAP_E_SHAPE for a prompt that is empty, longer than the context or with unknown
 * tokens; SNAP_E_NOMEM. */
snap_status engine_add(engine *e, const engine_request *req, snap_err *err) SNAP_CHECK_RESULT;

/* Requests that are not done. */
int engine_pending(const engine *e);

/* One step; nothing when nothing is pending. */
snap_status engine_step(engine *e, snap_err *err) SNAP_CHECK_RESULT;

engine_stats engine_stats_of(const engine *e);

/**
 * engine_score - teacher forcing: how likely a text is
 *
 * @piece:    tokens a step: 1 scores by the decode kernel, more by chunks (at most max_rows)
 * @logprobs: [n - 1]: of tokens[1 ..] each given those before
 * @logits:   called with the logits of each position in turn, position n - 1 included; may be NULL
 *
 * Needs an engine with nothing pending. SNAP_E_SHAPE; SNAP_E_NOMEM.
 */
typedef void (*engine_logits_fn)(void *ctx, int64_t position, const float *logits);
snap_status engine_score(engine *e, const int32_t *tokens, int n, int piece, float *logprobs,
                         engine_logits_fn logits, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
