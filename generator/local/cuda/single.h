/* single.h - a step of one row, a layer a launch: from what attention gave to the next layer's projections,
 * with weights of all that on their way from its start. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_SINGLE_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_SINGLE_H

#include "generator/local/cuda/attend.h"
#include "generator/local/cuda/rows.h"

namespace device {

/* W_UV of every head, then x += factor * o. uv is NULL where no attention comes before. */
struct single_attention {
    const bf16 *uv; /* [heads][v][rank], a head uv_head elements further */
    int64_t uv_head;
    const bf16 *attended; /* [heads][rank] */
    const bf16 *o;        /* [hidden][heads * v] */
    int heads, v, rank;
};

/* Norm, choice of experts, the experts, x += factor * their sum. A dense layer is one shared expert. up is NULL
 * where there is no feed-forward. */
struct single_experts {
    const float *norm; /* [hidden] */
    float eps;
    route_args route;      /* gate, bias, how, routed, shared, chosen */
    const bf16 *up, *down; /* [routed + shared][2 inner][hidden], [..][hidden][inner] */
    int inner;
};

/* Norm, the products that read it, and what project_decode() does with those. in is NULL where only packed is
 * wanted. */
struct single_next {
    const float *norm; /* [hidden] */
    float eps, factor;
    const bf16 *in; /* [columns][hidden] */
    int columns;
    bf16 *packed; /* [hidden] */
    project_args project;
    absorb_to absorb;
};

/* Numbers that blocks tell each other, each in 64 bits with a tag of its launch and step. Every step of one row tells all
 * of them, and only these are counted: when a tag comes round again none of its kind is left. */
struct single_told {
    uint64_t *values;      /* [heads * v / 2] two BF16 each */
    uint64_t *middle;      /* [hidden] x between attention and experts */
    uint64_t *scores;      /* [experts] */
    uint64_t *gated;       /* [shared + chosen][inner / 2] two BF16 each */
    uint64_t *x;           /* [hidden] */
    uint64_t *in;          /* [columns] */
    const uint32_t *epoch; /* of the step: embed() counts it */
};

struct single_args {
    float *x; /* [hidden] the residual stream */
    int hidden;
    float factor;
    single_attention attention;
    single_experts experts;
    single_next next;
    single_told told;
    int id; /* of the launch in its step, from 0; at most 255 */
};

/* Whether this device has the memory on chip that such shapes take. */
bool single_serves(const stream_of &s, const single_args &a);
cudaError_t single_init();
cudaError_t single_layer(const stream_of &s, const single_args &a);

} // namespace device

#endif
