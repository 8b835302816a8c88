/* weights.h - the tensors of a checkpoint, grouped as the layers use them. Matrices stay in the
 * mapped files. Vectors (norms, biases) are copied as FP32. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_WEIGHTS_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_WEIGHTS_H

#include "base/arena.h"
#include "generator/local/checkpoint/checkpoint.h"
#include "generator/local/checkpoint/shape.h"
#include "generator/local/gemm/gemm.h"

typedef struct {
    mat gate, up, down; /* gate and up: [inner][hidden]; down: [hidden][inner] */
} ffn_weights;

typedef struct {
    mat q;    /* models without q_lora: [heads * (nope + rope)][hidden] */
    mat q_a;  /* models with q_lora: [q_lora][hidden] */
    mat q_b;  /* [heads * (nope + rope)][q_lora] */
    mat kv_a; /* [kv_lora + rope][hidden] */
    mat kv_b; /* [heads * (nope + v)][kv_lora]: W_UK, then W_UV, for each head */
    mat o;    /* [hidden][heads * v] */
    const float *q_a_norm, *kv_a_norm;
} attention_weights;

typedef struct {
    mat router;          /* [experts][hidden] */
    const float *bias;   /* [experts]; NULL = none */
    ffn_weights *expert; /* [routed experts]; those of other ranks have no tensors */
    ffn_weights shared;
} moe_weights;

/* A block is attention followed by a feed-forward. A layer of LongCat is two blocks. */
typedef struct {
    const float *input_norm, *post_norm;
    attention_weights attention;
    bool dense, moe;
    bool shortcut; /* the output of the experts is added at the end of the next block */
    ffn_weights ffn;
    moe_weights experts;
} block_weights;

/* Which part of the weights a process has. */
typedef struct {
    int rank, parts; /* TP: rank 0 .. parts - 1 of a split replica */
    int expert_rank,
        expert_ranks; /* EP: this rank has the routed experts expert_rank * n .. + n - 1, with n =
                         routed experts / expert_ranks. Without EP expert_ranks is 1, or 0 */
} weights_share;

typedef struct {
    model_shape shape;
    weights_share share;
    const checkpoint *files; /* borrowed; NULL without tensors */
    mat embed, head;
    const float *norm;
    block_weights *block;
    int blocks;
    arena mem;
} model_weights;

/* @c must outlive *out. SNAP_E_INPUT, naming the tensor, if one is missing or has another shape, or
 * if a vector (of a norm, or the bias of a router) is not finite. Matrices are not read here.
 * SNAP_E_UNSUPPORTED for a shape that the kernels don't support, or for a tensor of another type
 * than tensor.h reads; SNAP_E_NOMEM. Release with weights_release(), also after a failure. */
snap_status weights_bind(model_weights *out, const model_shape *shape, const checkpoint *c,
                         snap_err *err) SNAP_CHECK_RESULT;
void weights_release(model_weights *w);

/* Whether the routed experts are divided over ranks (EP). */
static inline bool weights_divide_experts(const model_weights *w) {
    return w->share.expert_ranks > 1;
}

/* How many routed experts this rank has, and the first of them. */
static inline int weights_experts(const model_weights *w) {
    return w->shape.n_routed_experts / (w->share.expert_ranks > 1 ? w->share.expert_ranks : 1);
}
static inline int weights_first_expert(const model_weights *w) {
    return w->share.expert_rank * weights_experts(w);
}

/* The inner width of all shared experts together on this rank. Without EP, TP has divided
 * moe_intermediate_size. With EP, TP divides the shared experts only. */
static inline int64_t weights_shared_inner(const model_weights *w) {
    int64_t all = (int64_t)w->shape.n_shared_experts * w->shape.moe_intermediate_size;
    return weights_divide_experts(w) ? all / w->share.parts : all;
}

/**
 * weights_bind_share - like weights_bind(), for one rank of a split model (comm.h)
 *
 * @shape: that of a rank (rank_layout_shape(), ranks/layout.h)
 * @c:     the whole model; must outlive *out
 *
 * The weights refer only to the numbers of this rank: its rows of the matrices that are split by
 * rows, its columns of those that are split by columns, and all other matrices whole. With EP, only
 * the tensors of the rank's own routed experts are needed. Rows and columns may begin and end
 * inside a block of an e4m3 weight.
 */
snap_status weights_bind_share(model_weights *out, const model_shape *shape,
                               const weights_share *share, const checkpoint *c,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Like weights_bind(), but without tensors: only the blocks of a shape. It is for a device that
 * makes its weights at random. out->share is that of a whole model; the caller may change it. */
snap_status weights_outline(model_weights *out, const model_shape *shape,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
