/* model_diverge.h - how long answers in different cache formats stay the same.
 *
 * At some places of a text, each format continues freely: it reads the tokens that it has chosen
 * itself. Its continuation is compared with that of the first format, up to the first token that
 * differs. There are two ways to choose tokens:
 *   greedy    the likeliest token
 *   sampled   a draw at temperature 1, as the token with the largest sum of logit and Gumbel noise.
 *             The noise of a token of the vocabulary is the same in all formats. So formats with
 *             similar distributions mostly draw the same token; one random number for each draw
 *             would give different tokens much more often
 * A continuation ends after @steps tokens, or with an end-of-sequence token of the model.
 *
 * A place is the end of a cache page. So the rows that the continuations leave behind lie in later
 * pages, and the text overwrites them before it reads them. */
#ifndef SNAPMLA_HARNESS_BENCH_MODEL_DIVERGE_H
#define SNAPMLA_HARNESS_BENCH_MODEL_DIVERGE_H

#include <signal.h>

#include "harness/bench/model_layers.h"

enum { DIVERGE_GREEDY, DIVERGE_SAMPLED, DIVERGE_WAYS };

enum { DIVERGE_STEPS = 4096, DIVERGE_PLACES = 4096 }; /* the most of each */

typedef struct {
    local_model *models; /* [n] borrowed; each has its sequence in @pages */
    int n;
    int64_t tokens; /* of the text */
    const int32_t *pages;
    int steps, places;                   /* places: the largest number, spread evenly over the
                                            text */
    uint64_t seed;                       /* of the draws */
    const volatile sig_atomic_t *cancel; /* may be NULL */
} model_diverge_options;

typedef struct model_diverge model_diverge;

/* SNAP_E_INPUT if the text has no place that is followed by @steps tokens; SNAP_E_NOMEM. */
snap_status model_diverge_create(model_diverge **out, const model_diverge_options *opt,
                                 snap_err *err) SNAP_CHECK_RESULT;
void model_diverge_free(model_diverge *d); /* NULL is allowed */

/* If the token at @position is a place, lets all formats continue after it. @logits: [n] those of
 * this token, [vocab] each. SNAP_E_CANCELLED: *cancel is set. Also the errors of running a
 * model. */
snap_status model_diverge_at(model_diverge *d, int64_t position, float *const *logits,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Emits rows of kind "divergence": for each format but the first, one for each way. @names: [n] of
 * the formats. SNAP_E_NOMEM; also the errors of @emit. */
snap_status model_diverge_emit(const model_diverge *d, const char *const *names,
                               model_fidelity_emit emit, void *ctx,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
