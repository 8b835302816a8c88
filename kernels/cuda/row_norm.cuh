/* row_norm.cuh - what kernels share that compute the RMS norm of a row with one block. */
#pragma once
#include <cstdint>
#include <cuda_bf16.h>

namespace device {

__device__ __forceinline__ float warp_sum(float x) {
    for (int m = 16; m > 0; m /= 2)
        x += __shfl_xor_sync(~0u, x, m);
    return x;
}

/* The sum over a block of up to 1024 threads, for all of its threads. @scratch [32] is shared
 * memory. */
__device__ __forceinline__ float block_sum(float x, float *scratch) {
    const int lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
    x = warp_sum(x);
    __syncthreads();
    if (lane == 0)
        scratch[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_sum(lane < warps ? scratch[lane] : 0.0f);
}

/* The factor of an RMS norm: 1 / sqrt(x). NaN for an infinite x, which stands for an overflow:
 * rsqrtf() returns 0 for it, which would turn the row into zeros. */
__device__ __forceinline__ float norm_scale(float x) {
    return rsqrtf(x) + 0.0f * x;
}

__device__ __forceinline__ float squares_of(const float4 &v) {
    return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}

/* Four numbers times @scale times @factor times their weights, as BF16. */
__device__ __forceinline__ uint2 normed(const float4 &v, float scale, float factor,
                                        const float4 &w) {
    const __nv_bfloat162 low =
        __floats2bfloat162_rn(v.x * scale * factor * w.x, v.y * scale * factor * w.y);
    const __nv_bfloat162 high =
        __floats2bfloat162_rn(v.z * scale * factor * w.z, v.w * scale * factor * w.w);
    return {*reinterpret_cast<const uint32_t *>(&low), *reinterpret_cast<const uint32_t *>(&high)};
}

/* How many threads the block of a row of @width numbers has. */
inline int norm_threads(int width, int most) {
    const int threads = (width + 127) / 128 * 32;
    return threads < most ? threads : most;
}

} // namespace device
