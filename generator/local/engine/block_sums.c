#include "generator/local/engine/block_sums.h"

#include <math.h>
#include <stdlib.h>

enum { kBlock = 256 };

static int blocks_of(int vocab) {
    return (vocab + kBlock - 1) / kBlock;
}

bool block_sums_make(block_sums *b, int vocab) {
    *b = (block_sums){.sum = calloc((size_t)blocks_of(vocab), sizeof *b->sum)};
    return b->sum != NULL;
}

void block_sums_release(block_sums *b) {
    free(b->sum);
    b->sum = NULL;
}

void block_sums_clear(block_sums *b) {
    b->temperature = 0;
}

static double weight(const block_sums *b, float logit) {
    return exp(((double)logit - b->best) / b->temperature);
}

static void compute(block_sums *b, const float *logits, int vocab, double temperature) {
    float best = logits[0];
    for (int i = 1; i < vocab; i++)
        best = logits[i] > best ? logits[i] : best;
    b->temperature = temperature;
    b->best = (double)best;
    b->total = 0;
    for (int k = 0; k < blocks_of(vocab); k++) {
        double sum = 0;
        for (int i = k * kBlock; i < vocab && i < (k + 1) * kBlock; i++)
            sum += weight(b, logits[i]);
        b->sum[k] = sum;
        b->total += sum;
    }
}

int32_t block_sums_draw(block_sums *b, const float *logits, int vocab, double temperature,
                        double share) {
    if (b->temperature != temperature)
        compute(b, logits, vocab, temperature);
    double left = share * b->total;
    int block = 0, likely = 0; /* likely: the last block with a weight, if rounding leaves none */
    for (; block < blocks_of(vocab) && left >= b->sum[block]; block++) {
        left -= b->sum[block];
        likely = b->sum[block] > 0 ? block : likely;
    }
    if (block == blocks_of(vocab)) {
        block = likely;
        left = INFINITY; /* takes the last token of the block */
    }
    int32_t token = block * kBlock;
    for (int i = block * kBlock; i < vocab && i < (block + 1) * kBlock; i++) {
        double w = weight(b, logits[i]);
        token = w > 0 ? i : token;
        left -= w;
        if (left < 0)
            break;
    }
    return token;
}
