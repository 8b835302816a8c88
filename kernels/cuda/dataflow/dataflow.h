/* dataflow.h - the operations around attention: quantising queries, quantising and appending new
 * tokens, fetching tokens.
 *
 * Apart from the bits of a NaN, the results equal those of formats.h bit for bit. The scale is a =
 * max(max|c|, 1e-10) / 448, or the next power of two (mla_scale). Content is c / a in e4m3 (round
 * to nearest even, saturating), RoPE is r / a in bf16. */
#ifndef SNAPMLA_KERNELS_CUDA_DATAFLOW_H
#define SNAPMLA_KERNELS_CUDA_DATAFLOW_H

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

/* The planes of a cache; rope and scale are null for bf16. */
struct cache_planes {
    void *content, *rope;
    float *scale;
    int pages, d_c, d_r;
    bool pow2; /* the scales of new tokens are powers of two */
};

/* Lengths and block table of a step, as in mla_step. Lengths are clamped to 0..max_tokens. */
struct step_pages {
    const int *seqlens, *table;
    int batch, s_q, table_width, max_tokens;
};

/* @pow2: the scales are powers of two */
cudaError_t quant_q_launch(int64_t rows, int d_c, int d_r, bool pow2, const __nv_bfloat16 *q,
                           uint8_t *q8, __nv_bfloat16 *q_rope, float *q_scale, cudaStream_t stream);

cudaError_t append_launch(const cache_planes &cache, const step_pages &step,
                          const __nv_bfloat16 *kv, cudaStream_t stream);

cudaError_t fetch_launch(const cache_planes &cache, const step_pages &step, int seq, int64_t first,
                         int64_t count, __nv_bfloat16 *kv, cudaStream_t stream);

#endif
