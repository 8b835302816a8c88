/* cuda_weights.h - a model's weights in the layout of the kernels. Matrices are BF16; norms and the
 * router are FP32. Matrices that are multiplied with the same rows are joined into one. Gate and up
 * projections are interleaved by eight rows (ends_gate, cuda_gemm.h). Shared experts follow the
 * routed ones, as experts that every row uses. W_UK is stored a second time, transposed. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_WEIGHTS_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_WEIGHTS_H

#include <vector>

#include "generator/local/cuda/host.h"
#include "generator/local/cuda/launch.cuh"

namespace device {

struct block {
    float *input_norm, *post_norm, *q_a_norm, *kv_a_norm;
    bf16 *in;   /* [q_lora or heads * (nope + rope), then rank + rope][hidden] */
    bf16 *q_b;  /* [heads * (nope + rope)][q_lora] */
    bf16 *kv_b; /* [heads][nope + v][rank] */
    bf16 *uk;   /* [heads][rank][nope] */
    bf16 *o;    /* [hidden][heads * v] */
    bool dense, moe, shortcut;
    bf16 *ffn_in, *ffn_out;         /* [2 inner][hidden], [hidden][inner] */
    float *gate, *bias;             /* [experts][hidden], [experts] or NULL */
    bf16 *experts_in, *experts_out; /* [routed + shared][2 inner][hidden], [..][hidden][inner] */
    /* If the experts are divided over ranks (EP), experts_in and experts_out have the routed
     * experts of this rank only. The shared ones are one feed-forward of a width of their own,
     * which TP divides. Else NULL. */
    bf16 *shared_in, *shared_out; /* [2 inner][hidden], [hidden][inner] */
};

struct weights {
    bf16 *embed, *head;
    float *norm;
    std::vector<block> blocks;
    std::vector<void *> owned;
    size_t bytes;
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
