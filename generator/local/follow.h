/* follow.h - one model answers a prompt, and other models read its answers.
 *
 * The models are the same checkpoint with different cache formats. The first model draws every
 * token. The others are given the same tokens. So for each token there are two distributions after
 * the same text: P of the first model and Q of another one, both after the steps of the sampler
 * (temperature, top-k, top-p, min-p). follow_reading sums P and Q up along an answer. Its values
 * allow estimates of the answers that the other model would draw itself. */
#ifndef SNAPMLA_GENERATOR_LOCAL_FOLLOW_H
#define SNAPMLA_GENERATOR_LOCAL_FOLLOW_H

#include <signal.h>

#include "base/buf.h"
#include "generator/generator.h"
#include "generator/local/local.h"

/* One answer of the first model, as one model reads it. The drawn tokens are called x. */
typedef struct {
    double log_ratio; /* sum of ln(Q(x) / P(x)): how much likelier the whole answer is in this
                         model. -INFINITY if this model cannot draw it */
    double diverged;  /* probability that this model would have drawn another token than x
                         somewhere, if its draws agree with those of the first model as often as
                         draws from P and Q can. Its mean over answers is the share that differs */
    double unseen;    /* its mean over answers estimates the probability that an answer which this
                         model draws is one that the first model cannot give. The value of one
                         answer may exceed 1 */
    double kl;        /* sum of KL(P || Q) of the softmaxes at temperature 1, in nats */
} follow_reading;

typedef struct {
    buf text; /* the answer */
    int tokens;
    bool truncated;          /* the answer ended at the limit of tokens or of the context */
    follow_reading *reading; /* [models]; all zeros for the first model */
} follow_answer;

typedef struct {
    local_model *models; /* [n] borrowed. Nothing else may run on them meanwhile */
    int n;
    int answers;                         /* to each prompt; at most local_options.sequences */
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
 * @max_tokens: longest answer
 * @out:  the answers [opt.answers]; valid until the next call, or until follow_free()
 *
 * The stop token that ends an answer counts in its tokens and in its readings, and is not in its
 * text. SNAP_E_INPUT if the prompt leaves no room in the context; SNAP_E_NOMEM, also if a cache is
 * too small; SNAP_E_CANCELLED; any error of running the models.
 */
snap_status follow_prompt(follow *f, const gen_message *messages, int n, const sampling *how,
                          uint64_t seed, int max_tokens, const follow_answer **out,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
