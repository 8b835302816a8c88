/* engine.h - generates many sequences at once over one paged cache (continuous batching).
 *
 * A request is one sample. Each step decodes one token of every running sequence and processes
 * chunks of waiting prompts. Sequences join and leave between steps. Requests with equal prompts
 * share the prompt's pages: while they are in the cache, the prompt is not computed again. Full
 * pages are shared. A last page that is not full is copied if another sequence uses it.
 *
 * If a running sequence needs a page and none is free, the sequence that started or resumed last is
 * preempted. Either its pages are swapped out to host memory and it continues before any queued
 * request starts, or its tokens are computed again (engine_recompute()).
 *
 * An engine may have several replicas of a model that must take all steps together, with the same
 * number of rows (EP with DP, comm.h). Each has its own runner, its own pages and its own
 * sequences. A replica that has fewer rows than another one gets padding rows, which nobody reads.
 * If it has no sequence, all its rows are padding.
 *
 * If a logit of a sequence is NaN or infinite, this sequence ends with FINISH_NOT_FINITE, and the
 * others go on: a row of a step depends on its own sequence only. If it is a logit of a prompt, all
 * sequences that start from that prompt end with FINISH_NOT_FINITE.
 *
 * On the CPU, without engine_recompute(), a sample's tokens do not depend on other requests.
 * Products, attention and draws don't depend on the batch (runner.h, sampler.h), prompts are
 * divided into chunks at fixed positions, and swapped pages are restored bit by bit. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_ENGINE_H

#include <stdbool.h>

#include "generator/local/engine/sampler.h"
#include "generator/local/model/remote.h"

typedef enum {
    FINISH_STOP,       /* a stop id came, or the token callback returned false */
    FINISH_LENGTH,     /* max_tokens is reached, or the context is full */
    FINISH_NO_PAGES,   /* the cache has too few pages for this sequence alone */
    FINISH_NOT_FINITE, /* a logit for the next token, or of a scored prompt, is NaN or infinite: no
                          token was drawn from it */
} finish_reason;

/* Receives a new token. Stop ids are not passed. @logprob is 0 unless it was requested. Returning
 * false stops the sequence. */
typedef bool (*engine_token_fn)(void *user, int32_t token, float logprob);
typedef void (*engine_done_fn)(void *user, finish_reason why);

/* Receives the @n likeliest tokens at the position of the token that is passed next, best first.
 * `logit` is the log-probability. */
typedef void (*engine_top_fn)(void *user, const token_logit *top, int n);

/* Receives the log-probability of the prompt's token at @position (1 .. n_prompt - 1), given those
 * before it, and the @n likeliest tokens there. May be called again for a position if the prompt
 * has to be computed again. */
typedef void (*engine_score_fn)(void *user, int position, float logprob, const token_logit *top,
                                int n);

/* Called at most once, when the sequence starts, before its first token. @cached: tokens of the
 * prompt that were computed for an earlier sequence: all of them or 0. */
typedef void (*engine_start_fn)(void *user, int cached);

typedef struct {
    const int32_t *prompt; /* [n_prompt], copied; n_prompt is 1 .. context - 1 */
    int n_prompt;
    sampling sampling;
    uint64_t seed; /* seed of this sample */
    int max_tokens;
    int min_tokens;          /* stop ids are not drawn before the answer has this many tokens */
    bool logprobs;           /* compute log-probabilities, which needs all logits on the host */
    int top_logprobs;        /* 0 .. ENGINE_TOP: length of the lists for top() and score() */
    engine_top_fn top;       /* called before token(); NULL = not called */
    engine_score_fn score;   /* NULL: the prompt is not scored. Otherwise the request does not share
                                its prompt, whose chunks have at most ENGINE_SCORE_CHUNK tokens. */
    const int32_t *stop_ids; /* [n_stop_ids], borrowed until the request ends */
    int n_stop_ids;
    engine_start_fn start; /* NULL = not called */
    engine_token_fn token;
    engine_done_fn done; /* called once when the sequence ends, but not if it is dropped; after that
                            nothing of the request is used */
    void *user;
} engine_request;

typedef struct {
    int64_t steps, decoded, prefilled; /* decoded: one token for each running sequence and step;
                                          prefilled: tokens computed in chunks of prompts */
    int64_t shared;                    /* prompt tokens of sequences that started from a prompt that
                                          was computed for an earlier one */
    int64_t preemptions;               /* how often a sequence was swapped out, or put back into the
                                          queue to be computed again */
    int64_t recomputed;                /* tokens of the sequences that were put back to be computed
                                          again */
    int64_t model_ns;   /* time in the steps of the model, with the wait for a device, in ns */
    runner_stats model; /* the parts of that time on a device, and the experts used */
    int most_running, most_pages;
    double mean_running; /* running sequences per step, over the steps that had any */
} engine_stats;

/* What the engine holds now. */
typedef struct {
    int running, queued, swapped; /* sequences; swapped: they were preempted and wait for pages */
    int pages, pages_used;        /* pages of the cache, and how many of them sequences or kept
                                     prompts use */
    int pages_kept;               /* used pages that only kept prompts use: they are freed as soon
                                     as a sequence needs them */
} engine_load;

/* A step with a scored chunk has up to ENGINE_SCORE_CHUNK + ENGINE_STEP_PROMPTS = 64 rows of logits
 * beside the decoded ones. More are not possible in a CUDA step. */
enum { ENGINE_TOP = 32, ENGINE_SCORE_CHUNK = 48 };

typedef struct engine engine;

/* @r is borrowed; while the engine exists, no other code may run steps on it. Caller owns *out:
 * engine_free(), which drops unfinished requests without a callback. SNAP_E_SHAPE if max_rows of
 * the runner leaves no row for prompts beside max_decode; SNAP_E_NOMEM. */
snap_status engine_create(engine **out, runner *r, snap_err *err) SNAP_CHECK_RESULT;
void engine_free(engine *e); /* NULL is allowed */

/* The pages that padding rows need if a whole step is padding. A runner of an engine with several
 * replicas needs them beside those of its sequences. */
int64_t engine_padding_pages(const runner_options *o);

/* Like engine_create(), for the replicas of a model that take all steps together. @r: [n] as in
 * runner_step_together(), all with the same limits. The last engine_padding_pages() pages of each
 * are for padding rows. SNAP_E_NOMEM, too, if a cache has no other pages.
 *
 * A request joins a replica by the rules of balance.h, with ENGINE_AHEAD. If it then has to wait
 * there, for the end of other sequences or for pages, it moves to a replica where it can start at
 * once. So does a preempted sequence. A request does not move if its prompt has pages, or is
 * scored. */
snap_status engine_create_together(engine **out, runner *const *r, int n,
                                   snap_err *err) SNAP_CHECK_RESULT;
enum { ENGINE_AHEAD = 4 };

/* The most sequences that all replicas of the engine decode at once; and the most tokens of one
 * sequence that the cache of each replica has pages for. */
int engine_most_running(const engine *e);
int64_t engine_longest(const engine *e);

/* If on, preemption drops the pages of a sequence instead of swapping them out. Its tokens so far
 * are then computed again as a prompt. This needs no host memory, but more work. Chunks round
 * differently from single steps, so the further tokens of a preempted sample may change. */
void engine_recompute(engine *e, bool on);

/* Drops all requests without a callback, and all prompts that the cache still holds. */
void engine_clear(engine *e);

/* Queues a request. SNAP_E_SHAPE if the prompt does not have 1 .. context - 1 tokens or has one
 * outside the vocabulary, or if top_logprobs is out of range; SNAP_E_NOMEM. */
snap_status engine_add(engine *e, const engine_request *req, snap_err *err) SNAP_CHECK_RESULT;

/* Drops the request with this @user without a callback. Pages that nothing else holds are free at
 * once. False if there is no such request. Must not be called from a callback. */
bool engine_remove(engine *e, const void *user);

/* The number of requests that are not finished. */
int engine_pending(const engine *e);

/* Resumes preempted sequences and starts the requests whose prompts are in the cache, as far as
 * there is room, and passes their first tokens. engine_step() begins with this. A server calls it
 * before the step, so that it can send these tokens while the step runs. */
snap_status engine_admit(engine *e, snap_err *err) SNAP_CHECK_RESULT;

/* Runs one step. Does nothing if no request is pending. */
snap_status engine_step(engine *e, snap_err *err) SNAP_CHECK_RESULT;

/* With several replicas: sums over them, but a step that they take together counts once, and
 * `model` has the times of the first replica. mean_running, most_running and most_pages are those
 * of one replica, as in engine_stats_sum(). */
engine_stats engine_stats_of(const engine *e);

/* The statistics of two engines together: sums, and the larger of two maxima. The mean number of
 * running sequences is weighted with the steps. */
engine_stats engine_stats_sum(engine_stats a, engine_stats b);

engine_load engine_load_of(const engine *e);

#endif
