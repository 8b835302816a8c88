/* model.h - a model on the device: its buffers, and the chain of kernels of a step. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_MODEL_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_MODEL_H

#include "generator/local/cuda/rows.h"
#include "generator/local/cuda/weights.h"

enum {
    kMostChunks = 64, /* pieces of a prompt in a step */
    kLogitRows = 256, /* computed at a time, or a row a sequence and one more */
    kFewRows = 8,     /* up to here products are gemm_few()'s */
};

/* What the host tells a step; its image on the device has the same layout. */
struct step_words {
    int *chunk_length, *length,
        *token; /* [kMostChunks], [max_decode], [max_rows], one behind the other */
    int *table; /* [max_decode + kMostChunks][table_width] */
};

struct row_buffers {
    float *x;             /* [max_rows][hidden] the residual stream */
    device::bf16 *packed; /* [max_rows][widest] operand of the next product */
    float *in;            /* [max_rows][columns of block.in] */
    float *q;             /* [max_rows][heads * (nope + rope)] behind q_lora */
    device::bf16 *q_packed;
    device::bf16 *q_mla;
    uint8_t *q8;
    device::bf16 *q8_rope;
    float *q8_scale;
    device::bf16 *o_mla, *o;
    device::bf16 *inner;        /* [max_rows][intermediate] or [pairs][inner of an expert] */
    device::bf16 *pair_x;       /* [pairs][hidden] */
    device::bf16 *expert_inner; /* [pairs][inner] */
    float *down;                /* [pairs][hidden] */
    float *same, *scores;
    int *chosen; /* [MoE layers][max_rows][chosen] */
    int *expert, *place;
    float *weight;
    int *first, *active, *count, *pair_row, *ticket, *total;
    device::bf16 *kv, *expanded; /* of a chunk: [context][rank + rope], [context][heads' share] */
    float *logits;               /* [logit_rows][vocab] */
    unsigned long long *key;     /* [max_rows] */
    int *want;                   /* [max_rows] rows whose logits are asked for */
    float2 *angle;
};

/* A piece of a prompt: rows first .. first + count - 1. */
struct chunk_piece {
    int first, count;
    int64_t start;
};

/* A step as its kernels see it. */
struct step_shape {
    int rows, decode, chunks, wanted;
    bool gathers; /* the wanted rows are listed in b.want; else they are the first */
    chunk_piece chunk[kMostChunks];
};

struct cuda_model {
    mla_backend *be;
    device::stream_of s;
    model_shape shape;
    runner_options opt;
    device::weights w;
    kv_cache *cache;
    router how;
    rope turn;
    float softmax_scale, branch;
    int table_width, moe_layers, slots, experts, heads_at_once, logit_rows;
    mla_plan *decode_plan, *fetch_plan;
    step_words host, dev;
    row_buffers b;
    std::vector<void *> owned, pinned;
    size_t word_bytes;
    float *logits_host;
    unsigned long long *key_host;
    int *want_host, *chosen_host;
    std::vector<lab_recording *> recorded; /* [max_decode + 1] */
};

/* All kernels of a step but the last product: to normalised rows in b.packed, @wanted of them. */
snap_status forward(cuda_model *m, const step_shape &step, snap_err *err);

/* Rows first .. first + count - 1 of b.packed to logits and keys. */
snap_status logits_of(cuda_model *m, int first, int count, snap_err *err);

#endif
