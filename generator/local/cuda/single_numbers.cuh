/* single_numbers.cuh - a row of `hidden` numbers, such as the residual stream, in the registers of
 * the eight warps that multiply. */
#pragma once
#include "generator/local/cuda/single_memory.cuh"

namespace device {
namespace {

struct numbers {
    float4 of[kVectors]; /* vector i holds the numbers from 4 (thread + i * kThreads) on */

    __device__ void times(const numbers &w) {
#pragma unroll
        for (int i = 0; i < kVectors; i++)
            of[i] = {of[i].x * w.of[i].x, of[i].y * w.of[i].y, of[i].z * w.of[i].z,
                     of[i].w * w.of[i].w};
    }
};

/* Loads numbers that no kernel of a step writes. */
__device__ __forceinline__ numbers hold(const float *from, int n) {
    numbers held;
#pragma unroll
    for (int i = 0; i < kVectors; i++) {
        const int at = 4 * (static_cast<int>(threadIdx.x) + i * kThreads);
        held.of[i] = at < n ? __ldg(reinterpret_cast<const float4 *>(from + at)) : float4{};
    }
    return held;
}

/* Loads numbers that an earlier launch wrote; bypasses L1. */
__device__ __forceinline__ numbers read(const float *from, int n) {
    numbers x;
#pragma unroll
    for (int i = 0; i < kVectors; i++) {
        const int at = 4 * (static_cast<int>(threadIdx.x) + i * kThreads);
        x.of[i] = at < n ? __ldcg(reinterpret_cast<const float4 *>(from + at)) : float4{};
    }
    return x;
}

/* Waits for numbers that other blocks publish during this launch. */
__device__ __forceinline__ numbers receive_numbers(const uint64_t *from, int n, uint32_t tag) {
    tagged_pair pair[2 * kVectors];
    const int first = 4 * static_cast<int>(threadIdx.x);
    numbers x;
    receive(pair, from, n, tag, [&](int i) { return first + i / 2 * 4 * kThreads + i % 2 * 2; });
#pragma unroll
    for (int i = 0; i < kVectors; i++) {
        const tagged_pair &low = pair[2 * i], &high = pair[2 * i + 1];
        x.of[i] = {number_of(low.a), number_of(low.b), number_of(high.a), number_of(high.b)};
    }
    return x;
}

__device__ __forceinline__ float dot(const numbers &a, const numbers &b) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kVectors; i++)
        sum += a.of[i].x * b.of[i].x + a.of[i].y * b.of[i].y + a.of[i].z * b.of[i].z +
               a.of[i].w * b.of[i].w;
    return sum;
}

__device__ __forceinline__ float silu(float x) {
    return x / (1.0f + __expf(-x));
}

} // namespace
} // namespace device
