/* nvfp4.cuh - the block scales of an NVFP4 cache, and the conversion of its numbers to e4m3. Never
 * run.
 *
 * A number of the cache is e2m1, times the e4m3 scale of its block of 16 numbers, times one float
 * of the whole cache. */
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

namespace sm100_sketch {

enum { SCALE_BLOCKS = 8, SCALE_BLOCK = 512 };

/* The scales of 128 rows x 512 numbers. A block has those of 64 numbers, 4 for each row. Row r has
 * the four bytes at 16 (r % 32) + 4 (r / 32). The cache stores the scales of 128 tokens in this
 * order. */
struct scales {
    uint8_t block[SCALE_BLOCKS][SCALE_BLOCK];
};

/* Two e2m1 numbers of byte `i` times `scale`, as e4m3. */
__device__ __forceinline__ uint32_t widen_pair(uint32_t packed, int i, uint32_t scale) {
    uint32_t wide;
    asm("{ .reg .b8 b0, b1, b2, b3; .reg .b32 w; .reg .b16 n;\n"
        "mov.b32 {b0, b1, b2, b3}, %1;\n"
        "cvt.rn.f16x2.e2m1x2 w, b0;\n"
        "mul.rn.f16x2 w, w, %2;\n"
        "cvt.rn.satfinite.e4m3x2.f16x2 n, w;\n"
        "cvt.u32.u16 %0, n; }"
        : "=r"(wide)
        : "r"(packed >> (8 * i)), "r"(scale));
    return wide;
}

/* An eighth of byte `i` of `four`, an e4m3 scale, as two equal f16 numbers. The largest e2m1 number
 * times an eighth of the largest scale is 336, which e4m3 can hold. */
__device__ __forceinline__ uint32_t scale_of(uint32_t four, int i) {
    uint32_t f16x2;
    const uint32_t byte = four >> (8 * i) & 255;
    asm("{ .reg .b16 n; cvt.u16.u32 n, %1; cvt.rn.f16x2.e4m3x2 %0, n;\n"
        "mul.rn.f16x2 %0, %0, %2; }"
        : "=r"(f16x2)
        : "r"(byte | byte << 8), "r"(0x30003000));
    return f16x2;
}

/* The 16 numbers of a block, in the 8 bytes `low` and `high`, times scale `i` of `four`. */
__device__ __forceinline__ uint4 widen_16(uint32_t low, uint32_t high, uint32_t four, int i) {
    const uint32_t scale = scale_of(four, i);
    uint32_t out[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const uint32_t packed = k < 2 ? low : high;
        out[k] = widen_pair(packed, k % 2 * 2, scale) | widen_pair(packed, k % 2 * 2 + 1, scale)
                                                            << 16;
    }
    return make_uint4(out[0], out[1], out[2], out[3]);
}

/* Widens 32 numbers of a row. `narrow` and `wide` are rows of 128 bytes, `row` is the index that
 * both are swizzled with, and `from` and `to` count pieces of 16 bytes: 32 numbers in `narrow`, 16
 * in `wide`. `four` has the scales `i` and `i + 1` of these numbers. */
__device__ __forceinline__ void widen_32(uint8_t *wide, int to, const uint8_t *narrow, int from,
                                         int row, uint32_t four, int i) {
    const uint4 *source = reinterpret_cast<const uint4 *>(narrow);
    uint4 *target = reinterpret_cast<uint4 *>(wide);
    const uint4 v = source[from ^ (row & 7)];
    target[to ^ (row & 7)] = widen_16(v.x, v.y, four, i);
    target[(to + 1) ^ (row & 7)] = widen_16(v.z, v.w, four, i + 1);
}

} // namespace sm100_sketch
