/* single.h - a step of one row with one launch between two attentions. The launch takes the output
 * of attention, does the rest of the layer, then the norm and the projections of the next layer,
 * and the work of project_decode() (attend.h): it appends the row to the cache and absorbs the
 * queries. The first launch of a step begins with the norm of the first layer, and the last one
 * ends with the norm after the last layer. A launch streams the weights of its products, except the
 * router's, into shared memory ahead of their use. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_SINGLE_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_SINGLE_H

#include "generator/local/cuda/attend.h"
#include "generator/local/cuda/rows.h"

namespace device {

/* The end of attention: W_UV is applied to the output of every head, and x += factor * W_O times
 * the result. uv is NULL if no attention comes before. */
struct single_attention {
    const bf16 *uv; /* [heads][v][rank], heads uv_head elements apart */
    int64_t uv_head;
    const bf16 *attended; /* [heads][rank] */
    const bf16 *o;        /* [hidden][heads * v] */
    int heads, v, rank;
};

/* The feed-forward part of a layer: the norm, the choice of experts, the experts, and x += factor *
 * the weighted sum of their outputs. A dense layer is treated as one shared expert. up is NULL if
 * there is no feed-forward. */
struct single_experts {
    const float *norm; /* [hidden] */
    float eps;
    route_args route;      /* used: gate, bias, how, routed, shared, chosen */
    const bf16 *up, *down; /* [routed + shared][2 inner][hidden], [..][hidden][inner] */
    int inner;
};

/* The beginning of the next layer: its norm, the products that read the result of the norm, and the
 * work of project_decode(). in is NULL if only packed is wanted. */
struct single_next {
    const float *norm; /* [hidden] */
    float eps, factor;
    const bf16 *in; /* [columns][hidden] */
    int columns;
    bf16 *packed; /* [hidden] */
    project_args project;
    absorb_to absorb;
};

/* Numbers that the blocks exchange. Each 64-bit word holds one FP32 number or two BF16 numbers, and
 * a tag of its launch and step. Each step of one row writes these words anew, and only such steps
 * advance the epoch. So when a tag value repeats, no word with its previous use is left. */
struct single_exchange {
    uint64_t *values;      /* [heads * v / 2] outputs of the heads; two BF16 numbers each */
    uint64_t *middle;      /* [hidden] x between attention and experts */
    uint64_t *scores;      /* [experts] of the router */
    uint64_t *gated;       /* [shared + chosen][inner / 2] inputs of down; two BF16 numbers each */
    uint64_t *x;           /* [hidden] x after the experts */
    uint64_t *in;          /* [columns] outputs of the product with single_next.in */
    const uint32_t *epoch; /* counter of the step; embed() increments it */
};

struct single_args {
    float *x; /* [hidden] the residual stream */
    int hidden;
    float factor;
    single_attention attention;
    single_experts experts;
    single_next next;
    single_exchange exchange;
    int id; /* index of the launch within its step, from 0; at most 255 */
};

/* Whether the kernel supports these shapes on this device. */
bool single_supports(const stream_of &s, const single_args &a);
cudaError_t single_init();
cudaError_t single_layer(const stream_of &s, const single_args &a);

} // namespace device

#endif
