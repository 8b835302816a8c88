/* score.h - the log-probabilities of a given text (teacher forcing), computed by runner_step(). */
#ifndef SNAPMLA_GENERATOR_TEST_SCORE_H
#define SNAPMLA_GENERATOR_TEST_SCORE_H

#include "generator/local/model/runner.h"

typedef void (*score_logits_fn)(void *ctx, int64_t position, const float *logits);

/**
 * score_text - compute how likely a text is
 *
 * @piece:    tokens per step: 1 decodes token by token, more uses chunks (at most max_rows)
 * @logprobs: [n - 1]: of each tokens[1 ..], given those before it
 * @fn:       called with the logits of each position in turn, n - 1 included; may be NULL
 *
 * Overwrites the cache of @r, beginning with page 0. SNAP_E_SHAPE for a token that the model does
 * not have; SNAP_E_NOMEM; errors of runner_step().
 */
snap_status score_text(runner *r, const int32_t *tokens, int n, int piece, float *logprobs,
                       score_logits_fn fn, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
