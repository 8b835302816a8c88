/* sampler.h - the next token from a model's logits.
 *
 * In this order: repetition penalty (arXiv 1909.05858: a seen token's logit over the penalty where it is
 * positive, times it where negative), temperature, top-k, top-p (the fewest tokens whose probabilities
 * reach p), min-p (at least that share of the best one's probability), one draw.
 * Temperature 0 takes the largest logit, of equals the lower id.
 *
 * A draw takes one number from the sample's own stream, so that what a sample becomes does not depend on
 * its neighbours. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_SAMPLER_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_SAMPLER_H

#include "base/err.h"
#include "base/rng.h"
#include "generator/local/model/reading.h"

typedef struct {
    double temperature;        /* 0 = greedy */
    double top_p;              /* 1 = off; 0 counts as 1 */
    double min_p;              /* 0 = off */
    double repetition_penalty; /* 1 = off; 0 counts as 1 */
    int top_k;                 /* 0 = off */
} sampling;

typedef struct sampler sampler; /* one thread's memory */

snap_status sampler_create(sampler **out, int vocab, snap_err *err) SNAP_CHECK_RESULT;
void sampler_free(sampler *s); /* NULL is allowed */

/* @logits [vocab]; @seen [n_seen]: the sequence so far, for the penalty. *logprob (may be NULL): of the
 * token under the model itself, before any of the above. NaN logits never win. */
int32_t sampler_draw(sampler *s, const sampling *how, const float *logits, const int32_t *seen,
                     int64_t n_seen, rng *r, float *logprob);

/* What a draw needs of the logits; all of them with a penalty, and where min-p is alone. @r is not drawn from. */
reading sampler_reading(const sampler *s, const sampling *how, const rng *r);

/* The token that sampler_draw() would give, from what was read instead of the logits: the same, but for a draw that falls
 * between two tokens by less than the rounding of sums. The answer is not READ_LOGITS. */
int32_t sampler_draw_read(sampler *s, const sampling *how, const reading_answer *a, rng *r);

/* ln of the softmax of @logits [n] at @token, in FP64. */
double token_logprob(const float *logits, int n, int32_t token);

#endif
