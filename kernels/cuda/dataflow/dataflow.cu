#include "kernels/cuda/dataflow/dataflow.h"

#include <cuda_fp8.h>

namespace {

enum { kPage = 64, kThreads = 256, kWarps = kThreads / 32, kBlocks = 132 * 8 };

struct quantised {
    uint8_t *content;
    __nv_bfloat16 *rope;
    float *scale;
};

__device__ __forceinline__ void quantise_row(const __nv_bfloat16 *from, int d_c, int d_r,
                                             const quantised &to) {
    const int lane = threadIdx.x % 32;
    float most = 0;
    for (int d = lane; d < d_c; d += 32)
        most = fmaxf(most, fabsf(__bfloat162float(from[d])));
    for (int m = 16; m > 0; m /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    const float a = fmaxf(most, 1e-10f) / 448.0f;
    for (int d = lane; d < d_c; d += 32)
        to.content[d] =
            __nv_cvt_float_to_fp8(__bfloat162float(from[d]) / a, __NV_SATFINITE, __NV_E4M3);
    for (int d = lane; d < d_r; d += 32)
        to.rope[d] = __float2bfloat16_rn(__bfloat162float(from[d_c + d]) / a);
    if (lane == 0)
        *to.scale = a;
}

__device__ __forceinline__ int length_of(const step_pages &s, int seq) {
    return min(max(s.seqlens[seq], 0), s.max_tokens);
}

/* Row of a token in the pool. */
__device__ __forceinline__ int64_t slot_of(const cache_planes &c, const step_pages &s, int seq,
                                           int64_t token) {
    const int page = s.table[static_cast<size_t>(seq) * s.table_width + token / kPage];
    return static_cast<int64_t>(min(max(page, 0), c.pages - 1)) * kPage + token % kPage;
}

__global__ void __launch_bounds__(kThreads)
    quant_q(int64_t rows, int d_c, int d_r, const __nv_bfloat16 *q, quantised to) {
    for (int64_t i = blockIdx.x * int64_t(kWarps) + threadIdx.x / 32; i < rows;
         i += gridDim.x * int64_t(kWarps))
        quantise_row(q + i * (d_c + d_r), d_c, d_r,
                     {to.content + i * d_c, to.rope + i * d_r, to.scale + i});
}

__global__ void __launch_bounds__(kThreads)
    append(cache_planes cache, step_pages step, const __nv_bfloat16 *kv) {
    const int width = cache.d_c + cache.d_r, lane = threadIdx.x % 32;
    const int i = blockIdx.x * kWarps + threadIdx.x / 32;
    if (i >= step.batch * step.s_q)
        return;
    const int seq = i / step.s_q, length = length_of(step, seq);
    const int token = length - step.s_q + i % step.s_q;
    if (token < 0)
        return;
    const __nv_bfloat16 *from = kv + static_cast<int64_t>(i) * width;
    const int64_t slot = slot_of(cache, step, seq, token);
    if (cache.scale) {
        quantise_row(from, cache.d_c, cache.d_r,
                     {static_cast<uint8_t *>(cache.content) + slot * cache.d_c,
                      static_cast<__nv_bfloat16 *>(cache.rope) + slot * cache.d_r,
                      cache.scale + slot});
        return;
    }
    for (int d = lane; d < width; d += 32)
        static_cast<__nv_bfloat16 *>(cache.content)[slot * width + d] = from[d];
}

/* The product is exact in FP64, so the number is rounded once. */
__device__ __forceinline__ __nv_bfloat16 stored(const cache_planes &c, int64_t slot, int d) {
    if (!c.scale)
        return static_cast<const __nv_bfloat16 *>(c.content)[slot * (c.d_c + c.d_r) + d];
    float x;
    if (d < c.d_c) {
        __nv_fp8_e4m3 e;
        e.__x = static_cast<const uint8_t *>(c.content)[slot * c.d_c + d];
        x = static_cast<float>(e);
    } else {
        x = __bfloat162float(static_cast<const __nv_bfloat16 *>(c.rope)[slot * c.d_r + d - c.d_c]);
    }
    return __double2bfloat16(static_cast<double>(x) * static_cast<double>(c.scale[slot]));
}

__global__ void __launch_bounds__(kThreads) fetch(cache_planes cache, step_pages step, int seq,
                                                  int64_t first, int64_t count, __nv_bfloat16 *kv) {
    const int width = cache.d_c + cache.d_r;
    const int length = length_of(step, seq);
    for (int64_t i = blockIdx.x * int64_t(kWarps) + threadIdx.x / 32; i < count;
         i += gridDim.x * int64_t(kWarps)) {
        const bool real = first + i < length;
        const int64_t slot = real ? slot_of(cache, step, seq, first + i) : 0;
        for (int d = threadIdx.x % 32; d < width; d += 32)
            kv[i * width + d] = real ? stored(cache, slot, d) : __float2bfloat16_rn(0);
    }
}

unsigned blocks_of(int64_t rows) {
    const int64_t blocks = (rows + kWarps - 1) / kWarps;
    return static_cast<unsigned>(blocks < kBlocks ? blocks : kBlocks);
}

} // namespace

cudaError_t quant_q_launch(int64_t rows, int d_c, int d_r, const __nv_bfloat16 *q, uint8_t *q8,
                           __nv_bfloat16 *q_rope, float *q_scale, cudaStream_t stream) {
    if (rows == 0)
        return cudaSuccess;
    quant_q<<<blocks_of(rows), kThreads, 0, stream>>>(rows, d_c, d_r, q, {q8, q_rope, q_scale});
    return cudaGetLastError();
}

cudaError_t append_launch(const cache_planes &cache, const step_pages &step,
                          const __nv_bfloat16 *kv, cudaStream_t stream) {
    const unsigned blocks = (step.batch * step.s_q + kWarps - 1) / kWarps;
    append<<<blocks, kThreads, 0, stream>>>(cache, step, kv);
    return cudaGetLastError();
}

cudaError_t fetch_launch(const cache_planes &cache, const step_pages &step, int seq, int64_t first,
                         int64_t count, __nv_bfloat16 *kv, cudaStream_t stream) {
    if (count == 0)
        return cudaSuccess;
    fetch<<<blocks_of(count), kThreads, 0, stream>>>(cache, step, seq, first, count, kv);
    return cudaGetLastError();
}
