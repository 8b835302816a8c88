#include "kernels/cuda/dataflow/rows.cuh"

namespace {

enum { kThreads = 256, kWarps = kThreads / 32, kBlockRows = kWarps * kRows, kBlocks = 132 * 8 };

__global__ void __launch_bounds__(kThreads, 4 /* blocks per SM */)
    quant_q(int64_t rows, int d_c, int d_r, const __nv_bfloat16 *q, quantised to) {
    quantise_queries(q, (blockIdx.x * int64_t(kWarps) + threadIdx.x / 32) * kRows, rows, d_c, d_r,
                     to);
}

__global__ void __launch_bounds__(kThreads)
    append(cache_planes cache, step_pages step, const __nv_bfloat16 *kv) {
    append_rows(cache, step, kv, (blockIdx.x * kWarps + threadIdx.x / 32) * kRows);
}

__global__ void __launch_bounds__(kThreads) fetch(cache_planes cache, step_pages step, int seq,
                                                  int64_t first, int64_t count, __nv_bfloat16 *kv) {
    const int width = cache.d_c + cache.d_r, length = length_of(step, seq);
    for (int64_t i = blockIdx.x * int64_t(kWarps) + threadIdx.x / 32; i < count;
         i += gridDim.x * int64_t(kWarps)) {
        if (first + i < length)
            fetch_row(cache, slot_of(cache, step, seq, first + i), kv + i * width);
        else
            clear_row(width, kv + i * width);
    }
}

unsigned blocks_of(int64_t rows) {
    const int64_t blocks = (rows + kWarps - 1) / kWarps;
    return static_cast<unsigned>(blocks < kBlocks ? blocks : kBlocks);
}

} // namespace

cudaError_t quant_q_launch(int64_t rows, int d_c, int d_r, bool pow2, const __nv_bfloat16 *q,
                           uint8_t *q8, __nv_bfloat16 *q_rope, float *q_scale,
                           cudaStream_t stream) {
    if (rows == 0)
        return cudaSuccess;
    const auto blocks = static_cast<unsigned>((rows + kBlockRows - 1) / kBlockRows);
    quant_q<<<blocks, kThreads, 0, stream>>>(rows, d_c, d_r, q, {q8, q_rope, q_scale, pow2});
    return cudaGetLastError();
}

cudaError_t append_launch(const cache_planes &cache, const step_pages &step,
                          const __nv_bfloat16 *kv, cudaStream_t stream) {
    const unsigned blocks = (step.batch * step.s_q + kBlockRows - 1) / kBlockRows;
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
