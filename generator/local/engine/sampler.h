/* sampler.h - draws the next token from a model's logits.
 *
 * The steps, in this order: repetition penalty (arXiv 1909.05858: the logit of a token that
 * occurred before is divided by the penalty if positive, else multiplied), frequency penalty (it is
 * subtracted once for each time that the token occurs in the answer so far), presence penalty (it
 * is subtracted if the token occurs there), temperature, top-k, top-p (the fewest tokens whose
 * probabilities add up to at least p), min-p (tokens with at least that share of the best one's
 * probability), one draw. Temperature 0 takes the largest logit after the penalties; of equal ones
 * the lowest id.
 *
 * A draw with a temperature above 0 from finite logits uses one number of the sample's own random
 * stream, so a sample does not depend on the others in its batch. */
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
    double presence_penalty;   /* 0 = off */
    double frequency_penalty;  /* 0 = off */
    int top_k;                 /* 0 = off */
    int n_prompt; /* presence and frequency penalty do not count the first n_prompt tokens of the
                     sequence; the engine sets it */
} sampling;

typedef struct sampler sampler; /* working memory for draws; each thread needs its own */

snap_status sampler_create(sampler **out, int vocab, snap_err *err) SNAP_CHECK_RESULT;
void sampler_free(sampler *s); /* NULL is allowed */

/* Draws a token from @logits [vocab]. @seen [n_seen] is the sequence so far, for the penalty.
 * *logprob (may be NULL) gets the token's log-probability under the model itself, before any of the
 * steps above. A token with a NaN logit is drawn only if all are NaN. */
int32_t sampler_draw(sampler *s, const sampling *how, const float *logits, const int32_t *seen,
                     int64_t n_seen, rng *r, float *logprob);

/* Returns which part of the logits a draw needs. That is all of them (READ_LOGITS) with a penalty,
 * with a top-k above READING_MOST, and for a temperature above 0 with min-p but neither top-k nor
 * top-p. @r is not advanced. */
reading sampler_reading(const sampler *s, const sampling *how, const rng *r);

/* Draws a token from @a, which was read instead of the logits and is not READ_LOGITS. The token is
 * that of sampler_draw(), unless the draw falls between two tokens within the rounding of the
 * sums. */
int32_t sampler_draw_read(sampler *s, const sampling *how, const reading_result *a, rng *r);

/* Writes the probability of each token of the vocabulary for a draw to @p [vocab]. With temperature
 * 0 it is 1 for one token. The penalties of @how are not applied, and the logits must be finite. */
void sampler_distribution(sampler *s, const sampling *how, const float *logits, double *p);

int sampler_vocab(const sampler *s);

/* Stores the @k likeliest tokens of @logits [n] in @list, best first, of equal ones the lowest id
 * first. `logit` gets the log-probability, as from token_logprob(). Returns their number: @k, or @n
 * if that is less. */
int top_logprobs(const float *logits, int n, token_logit *list, int k);

/* ln of the softmax of @logits [n] at @token, in FP64. */
double token_logprob(const float *logits, int n, int32_t token);

/* The KL divergence in nats, sum of P ln(P / Q), of the softmaxes of the logits @p and @q [n]. */
double logits_divergence(const float *p, const float *q, int n);

#endif
