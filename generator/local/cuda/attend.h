/* attend.h - the work around attention: absorbed and quantised queries, new rows of the cache, and
 * the attention of a prompt's chunk over expanded keys and values. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_ATTEND_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_ATTEND_H

#include "generator/local/cuda/host.h"
#include "generator/local/cuda/launch.cuh"

namespace device {

/* The largest widths of a head that these kernels support. */
enum { MAX_QK = 256, MAX_V = 256, MAX_NOPE = 256 };

/* New rows of the cache and their queries: the outputs of the projections, and where they go. */
struct project_args {
    const float *q;  /* [rows][heads][nope + rope], rows q_row floats apart */
    const float *kv; /* [rows][rank + rope], rows kv_row floats apart */
    int64_t q_row, kv_row;
    int rows, heads, nope, rope, rank;
    const float *kv_norm; /* [rank]; NULL: grouped queries, whose latent has no norm */
    float eps, kv_factor;
    const float2 *angle; /* [context][pairs] */
    int pairs;           /* rope / 2. With grouped queries, the RoPE part has 2 * pairs numbers of
                            each of several heads */
    bool halves;         /* the two numbers of a rotary pair are half a vector apart, not
                            adjacent */
    int rotated_first, rotated_dim; /* grouped queries: these columns of the latent have RoPE. If
                                       there are any, all columns of a query have it */
    const int *length; /* [rows] position + 1 of each row, if each row is a sequence. NULL: all rows
                          are of one sequence, and row i is at position start + i */
    int64_t start;
    const int *table; /* [rows][table_width] pages; one table row for all if length is NULL */
    int table_width;
    mla_cache cache; /* cache of one layer; rope and scale are NULL for MLA_BF16 */
    bf16 *packed;    /* [rows][heads][nope + rope] queries with RoPE, for the rows of a chunk */
};

/* The destination of decode queries, in the layout of mla_attn. */
struct absorb_to {
    const bf16 *uk; /* [heads][rank][nope] */
    bf16 *q;        /* MLA_BF16: [rows][heads][rank + rope] */
    uint8_t *q8;    /* MLA_FP8: [rows][heads][rank] */
    bf16 *q_rope;   /* [rows][heads][rope] */
    float *q_scale;
};

/* Appends the new rows to the cache (norm of the latent, RoPE, its format), and absorbs the
 * queries, which are quantised for MLA_FP8. One launch. */
cudaError_t project_decode(const stream_of &s, const project_args &a, const absorb_to &to);

/* Appends the rows of a chunk to the cache, and writes its queries with RoPE to @packed. */
cudaError_t project_chunk(const stream_of &s, const project_args &a);

struct chunk_args {
    const bf16 *q;        /* [rows][all heads][nope + rope] */
    const bf16 *kv;       /* [length][rank + rope] fetched rows of the cache */
    const bf16 *expanded; /* [length][heads][nope + v], beginning with head first_head */
    bf16 *out;            /* [rows][all heads][v] */
    int rows, all_heads, first_head, heads, nope, rope, rank, v;
    int64_t start; /* position of the first row; length = start + rows */
    float softmax_scale;
};

cudaError_t attend_init();
cudaError_t attend_chunk(const stream_of &s, const chunk_args &a);

/* attend_chunk() with Hopper's tensor cores, for head sizes that attend_sm90_supports() accepts. */
bool attend_sm90_supports(const chunk_args &a);
cudaError_t attend_sm90_init();
cudaError_t attend_chunk_sm90(const stream_of &s, const chunk_args &a);

} // namespace device

#endif
