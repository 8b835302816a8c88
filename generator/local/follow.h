/* follow.h - one model answers a prompt, and other models read its answers.
 *
 * The models are the same checkpoint with different cache formats. The first model draws every
 * token. The others are given the same tokens, so at each token there is the distribution P of the
 * first model and the distribution Q of another one, both after the same text and after the steps
 * of the sampler (temperature, top-k, top-p, min-p). From P and Q along its answer, follow_reading
 * has what can be said about the answers that the other model would give itself. */
#ifndef SNAPMLA_GENERATOR_LOCAL_FOLLOW_H
#define SNAPMLA_GENERATOR_LOCAL_FOLLOW_H

#include <signal.h>

#include "base/buf.h"
#include "generator/generator.h"
#include "generator/local/local.h"

/* What one model makes of an answer of the first model. Let x be the drawn tokens. */
typedef struct {
    double log_ratio; /* sum of ln(Q(x) / P(x)): how much likelier the whole answer is in this
                         model. -INFINITY if this model cannot draw it */
    double diverged;  /* probability that the two models stop agreeing at one of the tokens, if
                         their draws agree as often as draws from P and Q can. Its mean over the
                         answers of the first model is the share of answers that differ */
    double unseen;    /* probability that this model leaves the answers that the first one can give.
                         This is true of its mean over answers */
    double kl;        /* sum of KL(P || Q) of the softmaxes at temperature 1, in nats */
} follow_reading;

typedef struct {
    buf text; /* the answer */
    int tokens;
    bool truncated;          /* it ended at the limit of tokens or of the context */
    follow_reading *reading; /* [models]; that of the first model is 0 */
} follow_answer;

typedef struct {
    local_model *models; /* [n] borrowed. Nothing else may run on them meanwhile */
    int n;
    int answers;                         /* to each prompt; models are open for so many sequences */
    const volatile sig_atomic_t *cancel; /* may be NULL */
} follow_options;

typedef struct follow follow;

/* SNAP_E_NOMEM. */
snap_status follow_create(follow **out, const follow_options *opt, snap_err *err) SNAP_CHECK_RESULT;
void follow_free(follow *f); /* NULL is allowed */

/**
 * follow_prompt - answer one prompt, and follow the answers with the other models
 *
 * @how:  without penalties, which are not applied
 * @seed: answer i draws from stream i of this seed
 * @max_tokens: of an answer
 * @out:  the answers [opt.answers]; valid until the next call, or until follow_free()
 *
 * The token that ends an answer is a token of it. SNAP_E_INPUT if the prompt leaves no room in the
 * context; SNAP_E_NOMEM, also if a cache is too small; SNAP_E_CANCELLED; any error of running the
 * models.
 */
snap_status follow_prompt(follow *f, const gen_message *messages, int n, const sampling *how,
                          uint64_t seed, int max_tokens, const follow_answer **out,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
