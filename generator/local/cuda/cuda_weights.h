/* cuda_weights.h - a model's weights in the layout of the kernels. Matrices are BF16; norms and the
 * router are FP32. Matrices that are multiplied with the same rows are joined into one. Gate and up
 * projections are interleaved by eight rows (ends_gate, cuda_gemm.h). Shared experts follow the
 * routed ones, as experts that every row uses. W_UK is stored a second time, transposed.
 *
 * On Hopper, e4m3 matrices of a checkpoint with scales for blocks of 128 by 128 stay e4m3, unless
 * they are embeddings, logits, router or kv_b. The matrices that are joined must all be e4m3, their
 * number of columns must be a multiple of 16, their rows must begin at multiples of 8, and their
 * columns at multiples of 128. Other e4m3 matrices become BF16. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_WEIGHTS_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_WEIGHTS_H

#include <vector>

#include "generator/local/cuda/host.h"
#include "generator/local/cuda/launch.cuh"

namespace device {

/* A matrix, or one for each expert: BF16, or e4m3 codes with scales (codes.h). */
struct weight_matrix {
    bf16 *w; /* NULL if the codes are used */
    uint8_t *code;
    float *scale;
    bool uniform; /* the scales are "uniform", as codes.h defines it */
};

struct block {
    float *input_norm, *post_norm, *q_a_norm, *kv_a_norm;
    weight_matrix in;  /* [q_lora or heads * (nope + rope), then rank + rope][hidden] */
    weight_matrix q_b; /* [heads * (nope + rope)][q_lora] */
    bf16 *kv_b;        /* [heads][nope + v][rank] */
    bf16 *uk;          /* [heads][rank][nope] */
    weight_matrix o;   /* [hidden][heads * v] */
    bool dense, moe, shortcut;
    weight_matrix ffn_in, ffn_out; /* [2 inner][hidden], [hidden][inner] */
    float *gate, *bias;            /* [experts][hidden], [experts] or NULL */
    weight_matrix experts_in,
        experts_out; /* [routed + shared][2 inner][hidden], [..][hidden][inner] */
    /* If the experts are divided over ranks (EP), experts_in and experts_out have the routed
     * experts of this rank only. The shared ones are one feed-forward of a width of their own,
     * which TP divides. Else empty. */
    weight_matrix shared_in, shared_out; /* [2 inner][hidden], [hidden][inner] */
};

struct weights {
    bf16 *embed, *head;
    float *norm;
    std::vector<block> blocks;
    std::vector<void *> owned;
    size_t bytes;
    bool coded; /* some matrix is e4m3 */
};

/* The number of shared experts, each of the width of a routed one. */
inline int shared_experts(const model_shape &s) {
    return s.n_shared_experts;
}

/* Loads the weights, or fills them with random numbers if @from has no checkpoint. Release with
 * weights_free(), also after a failure. */
snap_status weights_load(weights *out, const stream_of &s, const model_weights *from,
                         snap_err *err);
void weights_free(weights *w);

} // namespace device

#endif
