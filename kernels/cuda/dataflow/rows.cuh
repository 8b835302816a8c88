/* rows.cuh - one row of a cache or of queries, by one warp: quantised, copied, multiplied out again. */
#pragma once
#include <cuda_fp8.h>

#include "kernels/cuda/dataflow/dataflow.h"

namespace {

enum { kPageTokens = 64, kEach = 8 /* numbers that a lane takes at once */ };

/* Eight bf16 numbers; callers' rows may begin at any number. */
__device__ __forceinline__ bool lies_well(const void *p) {
    return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

__device__ __forceinline__ uint4 load_eight(const __nv_bfloat16 *from) {
    if (lies_well(from))
        return *reinterpret_cast<const uint4 *>(from);
    const auto *x = reinterpret_cast<const uint16_t *>(from);
    return make_uint4(x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16);
}

__device__ __forceinline__ void store_eight(__nv_bfloat16 *to, uint4 v) {
    if (lies_well(to)) {
        *reinterpret_cast<uint4 *>(to) = v;
        return;
    }
    auto *x = reinterpret_cast<uint16_t *>(to);
    const uint32_t pair[] = {v.x, v.y, v.z, v.w};
    for (int i = 0; i < kEach; i++)
        x[i] = static_cast<uint16_t>(pair[i / 2] >> 16 * (i % 2));
}

__device__ __forceinline__ float2 pair_of(uint32_t bits) {
    return {__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000)};
}

__device__ __forceinline__ float largest_of(const uint4 &v) {
    const float2 a = pair_of(v.x), b = pair_of(v.y), c = pair_of(v.z), d = pair_of(v.w);
    return fmaxf(fmaxf(fmaxf(fabsf(a.x), fabsf(a.y)), fmaxf(fabsf(b.x), fabsf(b.y))),
                 fmaxf(fmaxf(fabsf(c.x), fabsf(c.y)), fmaxf(fabsf(d.x), fabsf(d.y))));
}

__device__ __forceinline__ uint32_t e4m3_of(float2 x) {
    return __nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, __NV_E4M3);
}

__device__ __forceinline__ uint32_t bf16_of(float2 x) {
    const __nv_bfloat162 r = __floats2bfloat162_rn(x.x, x.y);
    return *reinterpret_cast<const uint32_t *>(&r);
}

__device__ __noinline__ float2 divide_pair(float2 x, float a) {
    return {x.x / a, x.y / a};
}

/* What quotient() multiplies with; 0 where that has no reciprocal of full precision. */
__device__ __forceinline__ float reciprocal_of(float a) {
    return a < 0x1p100f ? 1.0f / a : 0.0f;
}

/* x / a rounded once, without a division: x r is next to it, what that lacks of x is exact in one fma, and
 * a second one rounds as a division does (Markstein), far from where numbers end. */
__device__ __forceinline__ float2 quotient(uint32_t pair, float a, float r) {
    const float2 x = pair_of(pair), q = {x.x * r, x.y * r};
    const float small = fminf(fabsf(q.x), fabsf(q.y)), large = fmaxf(fabsf(q.x), fabsf(q.y));
    if (small < 0x1p-60f || large > 0x1p60f)
        return divide_pair(x, a);
    return {fmaf(fmaf(-q.x, a, x.x), r, q.x), fmaf(fmaf(-q.y, a, x.y), r, q.y)};
}

struct quantised {
    uint8_t *content;
    __nv_bfloat16 *rope;
    float *scale;
};

/* The second time a lane reads its numbers they come from L1: no array of them in registers, whatever
 * the width. */
__device__ __noinline__ void quantise_row(const __nv_bfloat16 *from, int d_c, int d_r,
                                          quantised to) {
    const int lane = threadIdx.x % 32;
    float most = 0;
#pragma unroll 2
    for (int d = kEach * lane; d < d_c; d += kEach * 32)
        most = fmaxf(most, largest_of(load_eight(from + d)));
    for (int m = 16; m > 0; m /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    const float a = fmaxf(most, 1e-10f) / 448.0f, r = reciprocal_of(a);
#pragma unroll 1
    for (int d = kEach * lane; d < d_c + d_r; d += kEach * 32) {
        const uint4 v = load_eight(from + d);
        const float2 p = quotient(v.x, a, r), q = quotient(v.y, a, r), s = quotient(v.z, a, r),
                     t = quotient(v.w, a, r);
        if (d < d_c)
            *reinterpret_cast<uint2 *>(to.content + d) =
                make_uint2(e4m3_of(p) | e4m3_of(q) << 16, e4m3_of(s) | e4m3_of(t) << 16);
        else
            *reinterpret_cast<uint4 *>(to.rope + d - d_c) =
                make_uint4(bf16_of(p), bf16_of(q), bf16_of(s), bf16_of(t));
    }
    if (lane == 0)
        *to.scale = a;
}

__device__ __forceinline__ int length_of(const step_pages &s, int seq) {
    return min(max(s.seqlens[seq], 0), s.max_tokens);
}

/* Row of a token in the pool. */
__device__ __forceinline__ int64_t slot_of(const cache_planes &c, const step_pages &s, int seq,
                                           int64_t token) {
    const int page = s.table[static_cast<size_t>(seq) * s.table_width + token / kPageTokens];
    return static_cast<int64_t>(min(max(page, 0), c.pages - 1)) * kPageTokens + token % kPageTokens;
}

__device__ __forceinline__ void copy_row(const __nv_bfloat16 *from, int width, __nv_bfloat16 *to) {
    for (int d = kEach * (threadIdx.x % 32); d < width; d += kEach * 32)
        store_eight(to + d, load_eight(from + d));
}

/* A warp asks for up to 4 KB, to be read from L2 when it is known what of it. */
__device__ __forceinline__ void ask_for(const void *from, size_t bytes) {
    const size_t at = threadIdx.x % 32 * size_t(128);
    if (at < bytes)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const uint8_t *>(from) + at));
}

/* New token i of the step, i = seq * s_q + which. Its length tells the entry of the table, that the slot: what
 * they are about is on its way meanwhile. */
__device__ __forceinline__ void append_row(const cache_planes &cache, const step_pages &step,
                                           const __nv_bfloat16 *kv, int i) {
    const int width = cache.d_c + cache.d_r, seq = i / step.s_q;
    const __nv_bfloat16 *from = kv + static_cast<int64_t>(i) * width;
    ask_for(from, width * sizeof *from);
    ask_for(step.table + static_cast<size_t>(seq) * step.table_width,
            step.table_width * sizeof *step.table);
    const int token = length_of(step, seq) - step.s_q + i % step.s_q;
    if (token < 0)
        return;
    const int64_t slot = slot_of(cache, step, seq, token);
    if (cache.scale) {
        quantise_row(from, cache.d_c, cache.d_r,
                     {static_cast<uint8_t *>(cache.content) + slot * cache.d_c,
                      static_cast<__nv_bfloat16 *>(cache.rope) + slot * cache.d_r,
                      cache.scale + slot});
        return;
    }
    copy_row(from, width, static_cast<__nv_bfloat16 *>(cache.content) + slot * width);
}

/* x a, rounded once to bf16: the product is cut to fp32 with its last bit set where something was lost,
 * which no rounding to 8 bits mistakes for a tie. An e4m3 or bf16 number has at most 8 bits, so the
 * product has 32 at most. */
__device__ __forceinline__ float multiply_to_odd(float x, float a) {
    const float ax = fabsf(x), aa = fabsf(a);
    const float product = __fmul_rz(ax, aa), lost = __fmaf_ru(ax, aa, -product);
    const uint32_t bits = __float_as_uint(product) | (lost > 0 ? 1u : 0u);
    return __uint_as_float(bits | ((__float_as_uint(x) ^ __float_as_uint(a)) & 0x80000000u));
}

__device__ __forceinline__ uint32_t times(float2 x, float a) {
    return bf16_of({multiply_to_odd(x.x, a), multiply_to_odd(x.y, a)});
}

__device__ __forceinline__ float2 e4m3_pair(uint32_t bits) {
    const __half2_raw h =
        __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(bits), __NV_E4M3);
    return __half22float2(h);
}

__device__ __forceinline__ uint4 four_times(uint32_t low, uint32_t high, float a) {
    return make_uint4(times(e4m3_pair(low & 0xffff), a), times(e4m3_pair(low >> 16), a),
                      times(e4m3_pair(high & 0xffff), a), times(e4m3_pair(high >> 16), a));
}

/* A slot's numbers as the model sees them. A lane has 16 of the content and at most 8 of RoPE, both on
 * their way at once. */
__device__ __forceinline__ void fetch_quantised(const cache_planes &c, int64_t slot,
                                                __nv_bfloat16 *to) {
    const int lane = threadIdx.x % 32;
    const auto *content = static_cast<const uint8_t *>(c.content) + slot * c.d_c;
    const auto *rope = static_cast<const __nv_bfloat16 *>(c.rope) + slot * c.d_r;
    const float a = c.scale[slot];
    uint4 r = {};
    if (kEach * lane < c.d_r)
        r = *reinterpret_cast<const uint4 *>(rope + kEach * lane);
    for (int d = 2 * kEach * lane; d < c.d_c; d += 2 * kEach * 32) {
        const uint4 v = *reinterpret_cast<const uint4 *>(content + d);
        store_eight(to + d, four_times(v.x, v.y, a));
        store_eight(to + d + kEach, four_times(v.z, v.w, a));
    }
    if (kEach * lane < c.d_r)
        store_eight(to + c.d_c + kEach * lane,
                    make_uint4(times(pair_of(r.x), a), times(pair_of(r.y), a),
                               times(pair_of(r.z), a), times(pair_of(r.w), a)));
}

__device__ __forceinline__ void clear_row(int width, __nv_bfloat16 *to) {
    for (int d = kEach * (threadIdx.x % 32); d < width; d += kEach * 32)
        store_eight(to + d, make_uint4(0, 0, 0, 0));
}

__device__ __forceinline__ void fetch_row(const cache_planes &c, int64_t slot, __nv_bfloat16 *to) {
    const int width = c.d_c + c.d_r;
    if (c.scale)
        fetch_quantised(c, slot, to);
    else
        copy_row(static_cast<const __nv_bfloat16 *>(c.content) + slot * width, width, to);
}

} // namespace
