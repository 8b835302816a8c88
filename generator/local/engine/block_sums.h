/* block_sums.h - draws of many tokens from the same logits.
 *
 * A draw at temperature T needs the sum of exp(logit / T) over the vocabulary. Sequences that start
 * from one prompt all draw their first token from its logits. So the sums over blocks of 256 tokens
 * are kept with the prompt. A further draw at the same temperature finds the block of its token
 * by these sums, and computes only the exponentials of that block. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_BLOCK_SUMS_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_BLOCK_SUMS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double temperature; /* 0 = there are no sums */
    double best;        /* the largest logit */
    double total;       /* of all blocks */
    double *sum;        /* owned, one for each block */
} block_sums;

/* Allocates space for the sums of a vocabulary, but computes none. Returns false if memory is
 * exhausted. block_sums_release() frees what @b owns. */
bool block_sums_make(block_sums *b, int vocab);
void block_sums_release(block_sums *b);

/* Discards the sums. Call it when the logits have changed. */
void block_sums_clear(block_sums *b);

/* Returns the first token at which the running sum of exp(logit / temperature) exceeds @share (0 ..
 * 1) of the sum over all tokens. @logits [vocab] are finite and those of the call before, unless
 * block_sums_clear() was called in between. The token is that of sampler_draw(), unless the draw
 * falls between two tokens within the rounding of the sums. */
int32_t block_sums_draw(block_sums *b, const float *logits, int vocab, double temperature,
                        double share);

#endif
