/* pair.cuh - loads, softmax and output of the loops in which a pair of CTAs has 128 query rows.
 * Never run.
 *
 * A CTA has 64 rows. The left half of an accumulator's columns is in lanes 0 to 63, and the right
 * half in lanes 64 to 127. So a thread has one half of a row: 64 tokens of S and 128 columns of
 * each O. Two groups of 128 threads have even and odd tiles, and then one O each.
 * Tensor memory, of 512 columns:
 *   0-255     O: 2 x 256 columns        256-319, 320-383   S of even and odd tiles */
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>

#include "kernels/cuda/sm100_sketch/tcgen05.cuh"

namespace sm100_sketch {

enum { PAIR_ROWS = 64, PAIR_TMEM_O = 0, PAIR_TMEM_S = 256 };
constexpr float kPairHeadroom = 8.0f, kPairWindow = 12.0f; /* as in sm90_fp8/fp8_config.h */

/* What the softmax threads of a CTA share with each other and with the thread that issues MMAs. */
struct pair_rows {
    uint8_t p[2][PAIR_ROWS][128]; /* e4m3, with 128-byte swizzle, for even and for odd tiles */
    float unit[PAIR_ROWS];        /* E of a row */
    float sums[4][PAIR_ROWS];
    uint64_t full_s[2], full_p[2], empty_p[2], next_unit[2];

    __device__ void init() {
        for (int b = 0; b < 2; b++) {
            ptx::mbarrier_init(&full_s[b], 1);
            ptx::mbarrier_init(&full_p[b], 256); /* the threads of both CTAs */
            ptx::mbarrier_init(&empty_p[b], 1);
            ptx::mbarrier_init(&next_unit[b], 128);
        }
    }
};

/* A load whose bytes are counted by the even CTA's barrier. */
__device__ __forceinline__ void load_pair(void *to, const CUtensorMap *map, uint32_t bar, int x,
                                          int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".cta_group::2 [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(ptx::smem_addr(to)),
                 "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* Multiplies the thread's lane of O by `factor`. P V of the previous tile must be complete. */
__device__ __forceinline__ void rescale_lane(uint32_t lane, float factor) {
    for (int c = 0; c < 256; c += 32) {
        uint32_t v[32];
        tcgen05::load_32(v, lane + PAIR_TMEM_O + c);
#pragma unroll
        for (uint32_t &x : v)
            x = __float_as_uint(__uint_as_float(x) * factor);
        tcgen05::store_32(lane + PAIR_TMEM_O + c, v);
    }
}

/* Turns the scores of half a row into P. `a`: the scales of the 64 tokens, if Scaled. Returns the
 * sum of the unrounded P. */
template <bool Scaled>
__device__ __forceinline__ float make_p(uint8_t *to_row, uint32_t scores, const float *a, int row,
                                        int half, float c, float unit) {
    float sum = 0;
    for (int part = 0; part < 2; part++) { /* 32 tokens each */
        uint32_t s[32];
        tcgen05::load_32(s, scores + 32 * part);
        uint32_t packed[8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float p[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float scale = Scaled ? a[32 * part + 4 * i + j] : 1;
                p[j] = exp2f(__uint_as_float(s[4 * i + j]) * scale * c - unit);
                sum += p[j];
                p[j] *= scale;
            }
            packed[i] = tcgen05::pack_e4m3(p[0], p[1], p[2], p[3]);
        }
        uint4 *to = reinterpret_cast<uint4 *>(to_row);
        const int chunk = 4 * half + 2 * part;
        to[chunk ^ (row & 7)] = make_uint4(packed[0], packed[1], packed[2], packed[3]);
        to[(chunk + 1) ^ (row & 7)] = make_uint4(packed[4], packed[5], packed[6], packed[7]);
    }
    return sum;
}

/* Converts a sum of P to another unit. A group's first sum is 0 and has no unit. */
__device__ __forceinline__ float in_unit(float sum, float octaves) {
    return sum > 0 ? sum * exp2f(octaves) : 0;
}

/* The log2 of the largest stored P in the thread's half of a row, in unit 0, relative to the
 * largest e4m3 number. */
template <bool Scaled>
__device__ __forceinline__ float largest(uint32_t scores, const float *a, float c) {
    float most = -1e30f;
    for (int part = 0; part < 2; part++) {
        uint32_t s[32];
        tcgen05::load_32(s, scores + 32 * part);
#pragma unroll
        for (int i = 0; i < 32; i++) {
            const float scale = Scaled ? a[32 * part + i] : 1;
            most = fmaxf(most, __uint_as_float(s[i]) * scale * c + __log2f(scale));
        }
    }
    return most - 8.8073549f; /* log2(448), the largest e4m3 number */
}

/* Makes P of the group's tiles and rescales O where E changes. `scales`: of the tokens of two
 * stages of 2 x 64; read if Scaled, when `full_scales` is complete. `c`: what multiplies a score.
 * Returns 1 / the sum of the thread's row, when P V of the last tile is complete. */
template <bool Scaled>
__device__ __forceinline__ float softmax(pair_rows &sh, const float (*scales)[2][64],
                                         uint64_t *full_scales, int tiles, uint32_t tmem, int group,
                                         int thread, float c) {
    const int row = thread % PAIR_ROWS, half = thread / PAIR_ROWS;
    const uint32_t lane = tmem + (uint32_t(thread / 32 * 32) << 16);
    const uint32_t scores = lane + PAIR_TMEM_S + 64 * group;
    float sum = 0, sum_unit = 0;
    for (int t = group; t < tiles; t += 2) {
        const float *a = Scaled ? scales[t % 2][half] : nullptr;
        if (Scaled)
            ptx::mbarrier_wait(&full_scales[t % 2], t / 2 & 1);
        ptx::mbarrier_wait(&sh.full_s[group], t / 2 & 1);
        tcgen05::fence_after();
        sh.sums[2 * group + half][row] = largest<Scaled>(scores, a, c);
        ptx::named_sync(1 + group, 128);
        const float most = fmaxf(sh.sums[2 * group][row], sh.sums[2 * group + 1][row]);
        if (t > 0)
            ptx::mbarrier_wait(&sh.next_unit[group ^ 1], (t - 1) / 2 & 1);
        const float before = t > 0 ? sh.unit[row] : 1e30f;
        const bool fits = most <= before && most > before - kPairWindow;
        const float unit = fits ? before : most + kPairHeadroom;
        ptx::named_sync(1 + group, 128);
        if (half == 0)
            sh.unit[row] = unit;
        ptx::mbarrier_arrive(&sh.next_unit[group]);
        if (t > 0 && __any_sync(~0u, !fits)) {
            ptx::mbarrier_wait(&sh.empty_p[group ^ 1], (t - 1) / 2 & 1);
            tcgen05::fence_after();
            rescale_lane(lane, fits ? 1.0f : exp2f(before - unit));
        }
        /* The buffer is free when P of tile t - 2 is multiplied. */
        ptx::mbarrier_wait(&sh.empty_p[group], (t / 2 & 1) ^ 1);
        sum = in_unit(sum, sum_unit - unit) +
              make_p<Scaled>(sh.p[group][row], scores, a, row, half, c, unit);
        sum_unit = unit;
        ptx::fence_proxy_async();
        tcgen05::fence_before();
        tcgen05::arrive_at(tcgen05::barrier_of_even(&sh.full_p[group]));
    }
    const int last = tiles - 1;
    ptx::mbarrier_wait(&sh.empty_p[last % 2], last / 2 & 1);
    tcgen05::fence_after();
    ptx::named_sync(3, 256);
    sh.sums[2 * group + half][row] = in_unit(sum, sum_unit - sh.unit[row]);
    ptx::named_sync(3, 256);
    return 1 / (sh.sums[0][row] + sh.sums[1][row] + (sh.sums[2][row] + sh.sums[3][row]));
}

/* Stores 128 columns of the thread's row, from the group's O. */
__device__ __forceinline__ void store_output(__nv_bfloat16 *out, uint32_t tmem, int group,
                                             int thread, float factor) {
    const uint32_t lane = tmem + (uint32_t(thread / 32 * 32) << 16);
    for (int i = 0; i < 128; i += 32) {
        uint32_t v[32];
        tcgen05::load_32(v, lane + PAIR_TMEM_O + group * 128 + i);
#pragma unroll
        for (int j = 0; j < 32; j += 2)
            *reinterpret_cast<__nv_bfloat162 *>(out + i + j) = __floats2bfloat162_rn(
                __uint_as_float(v[j]) * factor, __uint_as_float(v[j + 1]) * factor);
    }
}

} // namespace sm100_sketch
