/* model.h - a model on the device: its buffers, and the chain of kernels of a step. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_MODEL_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_MODEL_H

#include "generator/local/cuda/cublaslt.h"
#include "generator/local/cuda/cuda_weights.h"
#include "generator/local/cuda/rows.h"

enum {
    kMostChunks = 64, /* pieces of a prompt in a step */
    kLogitRows = 256, /* computed at a time, or a row a sequence and one more */
    kFewRows = 8,     /* up to here products are gemm_few()'s */
    kGatedRows = 512, /* up to here products that end in a gate are the library's as well */
};

/* What a row's logits gave (reading.h), as the device leaves it. */
struct row_answer {
    double sum;
    int kind, token, n;
    float largest;
};

/* Of the rows of a step whose logits are not all wanted. */
struct reading_buffers {
    reading *wanted;
    row_answer *answer;
    token_logit *list; /* [rows][READING_MOST] */
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
    float *gated;               /* [kGatedRows][2 intermediate] sums before a gate */
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
    uint64_t *told; /* what single_told of single.h points to */
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
    device::cublaslt *library; /* NULL = there is none */
    step_words host, dev;
    row_buffers b;
    std::vector<void *> owned, pinned;
    size_t word_bytes;
    bool single; /* a step of one row is single_layer()'s */
    float *logits_host;
    unsigned long long *key_host;
    reading_buffers read, read_host; /* [read_rows] */
    int read_rows;
    int *want_host, *chosen_host;
    std::vector<lab_recording *> recorded; /* [max_decode + 1] */
};

/* Whether products of so many rows are gemm_many()'s or the library's. */
inline bool takes_many(const cuda_model *m, int rows) {
    return m->s.hopper && rows > kFewRows;
}

/* A product by whichever way is fast for it. */
cudaError_t product(cuda_model *m, const device::gemm_args &a);

/* All kernels of a step but the last product: to normalised rows in b.packed, @wanted of them. */
snap_status forward(cuda_model *m, const step_shape &step, snap_err *err);

/* What the caller wants of rows first .. first + count - 1 of the step, whose logits are b.logits. Waits for it. */
snap_status read_logits(cuda_model *m, int first, int count, const cuda_model_results *out,
                        snap_err *err);

/* Rows first .. first + count - 1 of b.packed to logits and keys. */
snap_status logits_of(cuda_model *m, int first, int count, snap_err *err);

#endif
