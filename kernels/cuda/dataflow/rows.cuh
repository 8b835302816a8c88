/* rows.cuh - device code for rows of a cache or of queries: quantising, copying, dequantising. */
#pragma once
#include <cuda_fp8.h>

#include "kernels/cuda/dataflow/dataflow.h"
#include "kernels/cuda/ptx/launch.cuh"

namespace {

enum { kPageTokens = 64, kEach = 8 /* numbers that a lane loads at once */ };

/* True if eight bf16 numbers can be accessed with one 16-byte instruction. A caller's rows may
 * begin at any number. */
__device__ __forceinline__ bool is_aligned_16(const void *p) {
    return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

__device__ __forceinline__ uint4 load_eight(const __nv_bfloat16 *from) {
    if (is_aligned_16(from))
        return *reinterpret_cast<const uint4 *>(from);
    const auto *x = reinterpret_cast<const uint16_t *>(from);
    return make_uint4(x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16);
}

__device__ __forceinline__ void store_eight(__nv_bfloat16 *to, uint4 v) {
    if (is_aligned_16(to)) {
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

/* The factor for quotient(): @r = 1 / a, or 0 if a is too large for a reciprocal of full
 * precision. */
__device__ __forceinline__ float reciprocal_of(float a, float r) {
    return a < 0x1p100f ? r : 0.0f;
}

/* x / a for two numbers, correctly rounded, without a division (Markstein). x * r approximates the
 * quotient, one fma gives the exact remainder, and a second fma rounds like a division. This is
 * valid only far from overflow and underflow; outside that range it divides. */
__device__ __forceinline__ float2 quotient(uint32_t pair, float a, float r) {
    const float2 x = pair_of(pair), q = {x.x * r, x.y * r};
    const float small = fminf(fabsf(q.x), fabsf(q.y)), large = fmaxf(fabsf(q.x), fabsf(q.y));
    if (small < 0x1p-60f || large > 0x1p60f)
        return divide_pair(x, a);
    return {fmaf(fmaf(-q.x, a, x.x), r, q.x), fmaf(fmaf(-q.y, a, x.y), r, q.y)};
}

/* x / a as in quotient(), for |x| <= 448 a, where only the result's e4m3 rounding matters. A
 * quotient that is too small for an exact fma becomes zero in e4m3; the zero keeps its sign. */
__device__ __forceinline__ float content_quotient(float x, float a, float r) {
    const float q = x * r;
    return fmaf(fmaf(q, a, -x), -r, q);
}

__device__ __forceinline__ uint32_t content_pair(uint32_t pair, float a, float r) {
    const float2 x = pair_of(pair);
    return e4m3_of({content_quotient(x.x, a, r), content_quotient(x.y, a, r)});
}

struct quantised {
    uint8_t *content;
    __nv_bfloat16 *rope;
    float *scale;
    bool pow2; /* the scale is a power of two */
};

enum {
    kRowLanes = 8,             /* lanes that share a row */
    kRows = 32 / kRowLanes,    /* rows that a warp processes at once */
    kSpan = kRowLanes * kEach, /* numbers that the lanes of a row load at once */
    kHeld = 8,                 /* spans of a row's content that stay in registers */
};

/* The numbers of a row that belong to one lane. All loads are issued before the first use, and
 * their results stay in registers: kHeld spans of content and one span of RoPE. Numbers beyond that
 * are loaded at each use, as are all numbers of a row that is not aligned to 16 bytes. */
struct held_row {
    const __nv_bfloat16 *from; /* the lane's first number */
    int d;                     /* the index of that number in the row */
    int end, held;             /* columns of content, 0 = no row; how many of them are in
                                  registers */
    uint4 content[kHeld], rope;

    __device__ __forceinline__ held_row(const __nv_bfloat16 *row, bool real, int d_c, int d_r)
        : from(row + threadIdx.x % kRowLanes * kEach), d(threadIdx.x % kRowLanes * kEach),
          end(real ? d_c : 0), held(is_aligned_16(row) ? min(end, kHeld * kSpan) : 0) {
#pragma unroll
        for (int i = 0; i < kHeld; i++)
            content[i] = load(d + i * kSpan < held, i * kSpan);
        rope = load(held && d < d_r, d_c);
    }
    __device__ __forceinline__ uint4 load(bool there, int at) const {
        return there ? *reinterpret_cast<const uint4 *>(from + at) : make_uint4(0, 0, 0, 0);
    }
    /* Calls f(index, eight numbers) for all content numbers of the lane. */
    template <typename F>
    __device__ __forceinline__ void each_content(F f) const {
#pragma unroll
        for (int i = 0; i < kHeld; i++)
            if (d + i * kSpan < held)
                f(d + i * kSpan, content[i]);
#pragma unroll 1
        for (int at = held + d; at < end; at += kSpan)
            f(at, load_eight(from - d + at));
    }
    template <typename F>
    __device__ __forceinline__ void each_rope(int d_c, int d_r, F f) const {
#pragma unroll 1
        for (int at = d; at < d_r; at += kSpan)
            f(at, held && at == d ? rope : load_eight(from - d + d_c + at));
    }
};

/* The larger magnitude of each half of two pairs. A NaN is ignored. */
__device__ __forceinline__ __nv_bfloat162 larger(__nv_bfloat162 most, uint32_t pair) {
    return __hmax2(most, __habs2(*reinterpret_cast<const __nv_bfloat162 *>(&pair)));
}

/* Computes a row's scale, in all of its lanes. With @pow2, it is rounded up to a power of two:
 * adding all bits of a mantissa carries into the exponent unless the mantissa is zero. */
__device__ __forceinline__ float scale_of(const held_row &row, bool pow2) {
    __nv_bfloat162 pair = {};
    row.each_content([&](int, const uint4 &v) {
        pair = larger(larger(larger(larger(pair, v.x), v.y), v.z), v.w);
    });
    float most = fmaxf(__low2float(pair), __high2float(pair));
#pragma unroll
    for (int m = kRowLanes / 2; m > 0; m /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    const float a = fmaxf(most, 1e-10f) / 448.0f;
    return pow2 ? __uint_as_float((__float_as_uint(a) + 0x7fffffu) & 0x7f800000u) : a;
}

/* Quantises the four rows of a warp, as far as they exist. */
__device__ __forceinline__ void quantise(const held_row &row, int d_c, int d_r, quantised to) {
    const float a = scale_of(row, to.pow2), r = 1.0f / a;
    const float by = isinf(a) ? 1.0f : a; /* with an infinite scale all results are 0 or NaN; 1
                                             avoids 0 * inf */
    ptx::launch_next();
    if (!row.end)
        return;
    row.each_content([&](int d, const uint4 &v) {
        *reinterpret_cast<uint2 *>(to.content + d) =
            make_uint2(content_pair(v.x, by, r) | content_pair(v.y, by, r) << 16,
                       content_pair(v.z, by, r) | content_pair(v.w, by, r) << 16);
    });
    const float rope_r = reciprocal_of(a, r);
    row.each_rope(d_c, d_r, [&](int d, const uint4 &v) {
        *reinterpret_cast<uint4 *>(to.rope + d) =
            make_uint4(bf16_of(quotient(v.x, a, rope_r)), bf16_of(quotient(v.y, a, rope_r)),
                       bf16_of(quotient(v.z, a, rope_r)), bf16_of(quotient(v.w, a, rope_r)));
    });
    if (row.d == 0)
        *to.scale = a;
}

/* Quantises queries first .. first + 3 of `rows`. */
__device__ __forceinline__ void quantise_queries(const __nv_bfloat16 *q, int64_t first,
                                                 int64_t rows, int d_c, int d_r, quantised to) {
    const int64_t i = first + threadIdx.x % 32 / kRowLanes;
    const held_row row(q + i * (d_c + d_r), i < rows, d_c, d_r);
    quantise(row, d_c, d_r,
             {to.content + i * d_c, to.rope + i * d_r, to.scale + i, to.pow2});
}

__device__ __forceinline__ int length_of(const step_pages &s, int seq) {
    return min(max(s.seqlens[seq], 0), s.max_tokens);
}

/* The slot of a token in the pool. */
__device__ __forceinline__ int64_t slot_of(const cache_planes &c, const step_pages &s, int seq,
                                           int64_t token) {
    const int page = s.table[static_cast<size_t>(seq) * s.table_width + token / kPageTokens];
    return static_cast<int64_t>(min(max(page, 0), c.pages - 1)) * kPageTokens + token % kPageTokens;
}

__device__ __forceinline__ void copy_row(const __nv_bfloat16 *from, int width, __nv_bfloat16 *to) {
    for (int d = kEach * (threadIdx.x % 32); d < width; d += kEach * 32)
        store_eight(to + d, load_eight(from + d));
}

/* The lanes of a row prefetch up to 4 KB into L2, before it is known which part will be needed. */
__device__ __forceinline__ void prefetch_to_l2(const void *from, size_t bytes) {
    for (size_t at = threadIdx.x % kRowLanes * size_t(128); at < min(bytes, size_t(4096));
         at += kRowLanes * size_t(128))
        asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const uint8_t *>(from) + at));
}

/* Appends the step's new tokens first .. first + 3. Token i is number i % s_q of sequence i / s_q.
 * Two loads depend on each other: the sequence's length gives the entry of the block table, which
 * gives the slot. The loads of the token itself are issued before the length is used. */
__device__ __forceinline__ void append_rows(const cache_planes &cache, const step_pages &step,
                                            const __nv_bfloat16 *kv, int first) {
    const int i = first + threadIdx.x % 32 / kRowLanes, seq = i / step.s_q;
    const int d_c = cache.d_c, d_r = cache.d_r;
    const bool mine = i < step.batch * step.s_q;
    const int length = mine ? length_of(step, seq) : 0;
    if (mine)
        prefetch_to_l2(step.table + static_cast<size_t>(seq) * step.table_width,
                step.table_width * sizeof *step.table);
    held_row row(kv + static_cast<int64_t>(i) * (d_c + d_r), mine, d_c, d_r);
    const int token = length - step.s_q + i % step.s_q;
    if (token < 0)
        row.end = row.held = 0;
    const int64_t slot = row.end ? slot_of(cache, step, seq, token) : 0;
    if (cache.scale)
        return quantise(row, d_c, d_r,
                        {static_cast<uint8_t *>(cache.content) + slot * d_c,
                         static_cast<__nv_bfloat16 *>(cache.rope) + slot * d_r,
                         cache.scale + slot, cache.pow2});
    ptx::launch_next();
    if (!row.end)
        return;
    auto *to = static_cast<__nv_bfloat16 *>(cache.content) + slot * (d_c + d_r);
    row.each_content([&](int d, const uint4 &v) { *reinterpret_cast<uint4 *>(to + d) = v; });
    row.each_rope(d_c, d_r,
                  [&](int d, const uint4 &v) { *reinterpret_cast<uint4 *>(to + d_c + d) = v; });
}

/* x * a, truncated to fp32 with the last bit set if anything was lost (round to odd). Rounding this
 * to bf16 gives the correctly rounded product. e4m3 and bf16 numbers have at most 8 significant
 * bits, so the exact product has at most 32. */
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

/* Dequantises a slot. A lane processes 16 numbers of the content at a time, and at most 8 of RoPE;
 * the loads of both are issued together. */
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
