/* model_parts.h - what the forward pass's files share. Private to model/. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_MODEL_PARTS_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_MODEL_PARTS_H

#include "generator/local/cuda/cuda_model.h"
#include "generator/local/model/rope.h"
#include "generator/local/model/route.h"
#include "generator/local/model/runner.h"

/* A piece of the running step: rows first .. first + count - 1. */
typedef struct {
    int first, count;
    int64_t position;
} step_piece;

/* The running step. Pieces of one token come first. */
typedef struct {
    int rows, decode; /* rows; how many of them are pieces of their own */
    int pieces;
    step_piece *piece; /* [max_rows] */
    int32_t *token;    /* [max_rows], and so on */
    int64_t *position;
    int32_t *length; /* position + 1, what mla.h calls seqlens */
    int32_t *table;  /* [max_rows][table_width] */
    int table_width;
    float *cosine, *sine; /* [max_rows][pairs] */
    mla_step all, decoding;
} step_state;

/* Per-token buffers of a layer, [max_rows][..]; "packed" = in the arithmetic's type. */
typedef struct {
    float *x;        /* [hidden] the residual stream */
    float *h;        /* [hidden] normalised, or a layer's result */
    float *out;      /* [hidden] what feed-forwards add up */
    float *shortcut; /* [hidden] the same of a shortcut's experts */
    void *packed;    /* [widest] operand of the next product */
    float *wide;     /* [widest] result of a product */
    float *kv_a;     /* [d_c + d_r] */
    void *kv;        /* [d_c + d_r] packed: the cache's new rows */
    float *q;        /* [heads][nope + rope] */
    void *q_packed;
    float *absorbed; /* [max_decode][heads][d_c + d_r] */
    uint16_t *q_mla; /* the same in bf16 */
    void *q8, *q8_rope;
    float *q8_scale;
    uint16_t *o_mla; /* [max_decode][heads][d_c] */
    float *o;        /* [heads][v] */
    float *scores;   /* [experts] */
    int32_t *chosen; /* [experts a token] */
    float *weight;
} step_buffers;

/* Rows of a step, sorted by the expert they go to. */
typedef struct {
    int *first;       /* [experts + 1] */
    int *row, *place; /* [pairs]: the row of a pair; a row's pairs are place[row * chosen + i] */
    void *x;          /* [pairs][hidden] packed */
    float *gate, *up; /* [pairs][inner] */
    void *inner;      /* packed */
    float *down;      /* [pairs][hidden] */
    gemm_job *jobs;   /* [2 * experts + heads] */
} expert_buffers;

/* Of the attention of a chunk, a block of keys at a time. */
typedef struct {
    void *kv;        /* [block][d_c + d_r] fetched, packed */
    float *expanded; /* [block][heads][nope + v] */
    void *expanded_packed;
    float *sum, *max; /* [max_rows][heads] */
    void *scratch;    /* a thread's */
    size_t scratch_bytes;
} chunk_buffers;

struct runner {
    const model_weights *w;
    const model_shape *s;
    runner_options opt;
    mla_backend *be;
    mla_plan *append_plan, *decode_plan;
    kv_cache *cache;
    cuda_model *cuda; /* does the steps, where it is there; then all below is empty */
    parallel *pool;
    gemm *g, *g32; /* the arithmetic's; FP32 for the router */
    rope rope;
    router router;
    float softmax_scale;
    size_t element; /* bytes of a packed number */
    step_state step;
    step_buffers b;
    expert_buffers e;
    chunk_buffers c;
    int32_t *watch; /* borrowed */
    runner_block_fn watch_block;
    void *watch_ctx;
    int moe_layers, moe_layer; /* all; of the running step */
    arena mem;
};

enum { kKeyBlock = 256, kQueryBlock = 32, kFewRows = 8 };

/* The step's buffers, zeroed, freed with the runner; SNAP_E_NOMEM. */
snap_status runner_take_buffers(runner *r, snap_err *err) SNAP_CHECK_RESULT;

/* Runs @fn for rows 0 .. count - 1: on this thread where there are few, each being little work. */
void runner_rows(runner *r, int64_t count, parallel_fn fn, void *ctx);

/* a [n] = x [n] * rsqrt(mean(x^2) + eps) * weight [n] * factor */
void rms_norm(const float *x, const float *weight, int n, double eps, float factor, float *out);

/* h (float) and packed (operand) = the normalised residual stream */
void runner_normalise(runner *r, const float *weight);

/* r->b.h = attention of r->b.packed over the cache of @block, the new tokens appended before. */
snap_status attention_forward(runner *r, int block, snap_err *err) SNAP_CHECK_RESULT;

/* The pieces of more than one token: r->b.o from r->b.q_packed, keys from the cache of @block. */
snap_status chunks_forward(runner *r, int block, snap_err *err) SNAP_CHECK_RESULT;
size_t chunk_scratch_bytes(const runner *r);

/* out += ffn(r->b.packed) */
snap_status ffn_forward(runner *r, const ffn_weights *f, int64_t inner, float *out,
                        snap_err *err) SNAP_CHECK_RESULT;

/* out += the experts' result for r->b.packed, the shared ones included */
snap_status moe_forward(runner *r, const moe_weights *m, float *out,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
