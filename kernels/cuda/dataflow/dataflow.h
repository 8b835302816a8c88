/* dataflow.h - what stands around attention: queries and new tokens quantised, tokens fetched back.
 *
 * A warp a row. Numbers are formats.h's to the bit: a = max(max|c|, 1e-10) / 448, e4m3 of c / a to
 * nearest even and saturating, RoPE bf16 of r / a. */
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
};

/* Lengths and table of a step, as mla_step. */
struct step_pages {
    const int *seqlens, *table;
    int batch, s_q, table_width, max_tokens;
};

cudaError_t quant_q_launch(int64_t rows, int d_c, int d_r, const __nv_bfloat16 *q, uint8_t *q8,
                           __nv_bfloat16 *q_rope, float *q_scale, cudaStream_t stream);

cudaError_t append_launch(const cache_planes &cache, const step_pages &step,
                          const __nv_bfloat16 *kv, cudaStream_t stream);

cudaError_t fetch_launch(const cache_planes &cache, const step_pages &step, int seq, int64_t first,
                         int64_t count, __nv_bfloat16 *kv, cudaStream_t stream);

#endif
