/* attend.h - what stands around attention: queries absorbed and quantised, new rows of the cache, and the
 * attention of a prompt's chunk over expanded keys and values. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_ATTEND_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_ATTEND_H

#include "generator/local/cuda/host.h"
#include "generator/local/cuda/launch.cuh"

namespace device {

enum { MAX_QK = 192, MAX_V = 128, MAX_NOPE = 256 }; /* widths of a head that these kernels take */

/* New rows of the cache and their queries: what the projections gave, and where it goes. */
struct project_args {
    const float *q;  /* [rows][heads][nope + rope] at q_row floats a row */
    const float *kv; /* [rows][rank + rope] at kv_row floats a row */
    int64_t q_row, kv_row;
    int rows, heads, nope, rope, rank;
    const float *kv_norm; /* [rank] */
    float eps, kv_factor;
    const float2 *angle; /* [context][rope / 2] */
    bool halves;         /* rotary pairs lie half a vector apart */
    const int *length;   /* rows are sequences: position + 1 of each. NULL: row i is at start + i */
    int64_t start;
    const int *table; /* [rows][table_width] pages, or one row for all where length is NULL */
    int table_width;
    mla_cache cache; /* a layer's; rope and scale are NULL for MLA_BF16 */
    bf16 *packed;    /* [rows][heads][nope + rope] turned queries, where rows are a chunk's */
};

/* Where decoding's queries go, as mla_attn wants them. */
struct absorb_to {
    const bf16 *uk; /* [heads][rank][nope] */
    bf16 *q;        /* MLA_BF16: [rows][heads][rank + rope] */
    uint8_t *q8;    /* MLA_FP8: [rows][heads][rank] */
    bf16 *q_rope;   /* [rows][heads][rope] */
    float *q_scale;
};

/* K-append, and the queries absorbed (and quantised), in one launch. */
cudaError_t project_decode(const stream_of &s, const project_args &a, const absorb_to &to);

/* K-append and packed queries of a chunk. */
cudaError_t project_chunk(const stream_of &s, const project_args &a);

struct chunk_args {
    const bf16 *q;        /* [rows][all heads][nope + rope] */
    const bf16 *kv;       /* [length][rank + rope] fetched rows of the cache */
    const bf16 *expanded; /* [length][heads][nope + v] of the heads first_head .. */
    bf16 *out;            /* [rows][all heads][v] */
    int rows, all_heads, first_head, heads, nope, rope, rank, v;
    int64_t start; /* position of the first row; length = start + rows */
    float softmax_scale;
};

cudaError_t attend_init();
cudaError_t attend_chunk(const stream_of &s, const chunk_args &a);

/* The same on Hopper, for the heads that it serves. */
bool attend_sm90_serves(const chunk_args &a);
cudaError_t attend_sm90_init();
cudaError_t attend_chunk_sm90(const stream_of &s, const chunk_args &a);

} // namespace device

#endif
