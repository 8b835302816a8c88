#include "kernels/cuda/dataflow/rows.cuh"

namespace {

enum { kThreads = 256, kWarps = kThreads / 32, kBlocks = 132 * 8 };

__global__ void __launch_bounds__(kThreads)
    quant_q(int64_t rows, int d_c, int d_r, const __nv_bfloat16 *q, quantised to) {
    for (int64_t i = blockIdx.x * int64_t(kWarps) + threadIdx.x / 32; i < rows;
         i += gridDim.x * int64_t(kWarps))
        quantise_row(q + i * (d_c + d_r), d_c, d_r,
                     {to.content + i * d_c, to.rope + i * d_r, to.scale + i});
}

__global__ void __launch_bounds__(kThreads)
    append(cache_planes cache, step_pages step, const __nv_bfloat16 *kv) {
    const int i = blockIdx.x * kWarps + threadIdx.x / 32;
    if (i < step.batch * step.s_q)
        append_row(cache, step, kv, i);
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
