/* widen.cuh - dequantises pages of an FP8 cache for the BF16 kernel. 128 threads read the three
 * planes: e4m3 content c8, bf16 RoPE r', scales a_k. They write bf16 where TMA would write the
 * pages of a BF16 cache: c8 x a_k and r' x a_k, rounded to FP32 and then to bf16.
 *
 * In the FP8 cache, a page consists of five units of 64 rows x 128 bytes: RoPE, then four of 128
 * columns of content each. Each unit has its own barrier, like the pieces of a BF16 page. Thread t
 * has 16 bytes of the rows t / 8, t / 8 + 16, ... Reads are two units ahead of stores. */
#pragma once
#include <cuda_fp16.h>

#include "kernels/cuda/sm90_bf16/bf16_pipeline.cuh"

namespace sm90_bf16 {

enum { kPasses = PAGE / 16 };

/* The position of a thread in a unit. */
struct widener {
    int row, chunk; /* row and chunk of the thread in pass 0 */

    __device__ widener() : row((threadIdx.x & 127) / 8), chunk(threadIdx.x & 7) {
    }
};

/* Loads a thread's 16 bytes of one pass of a unit. */
__device__ __forceinline__ uint4 fetch(const params &p, const widener &me, int page, int unit,
                                       int pass) {
    const size_t row = static_cast<size_t>(page) * PAGE + me.row + 16 * pass;
    const uint8_t *from =
        unit == 0 ? p.rope + row * (2 * ROPE) : p.content + row * CONTENT + (unit - 1) * 128;
    return __ldg(reinterpret_cast<const uint4 *>(from) + me.chunk);
}

__device__ __forceinline__ void fetch_scales(const params &p, const widener &me, int page,
                                             float (&a)[kPasses]) {
#pragma unroll
    for (int i = 0; i < kPasses; i++)
        a[i] = __ldg(p.token_scale + static_cast<size_t>(page) * PAGE + me.row + 16 * i);
}

/* Multiplies two e4m3 numbers, the low half of @pair, by a; the results are bf16. */
__device__ __forceinline__ uint32_t widen2(uint32_t pair, float a) {
    uint32_t half2;
    asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.rn.f16x2.e4m3x2 %0, lo; }"
        : "=r"(half2)
        : "r"(pair));
    const float2 x = __half22float2(*reinterpret_cast<const __half2 *>(&half2));
    return ptx::pack_bf16x2(x.x * a, x.y * a);
}

__device__ __forceinline__ uint32_t scale_bf16x2(uint32_t pair, float a) {
    return ptx::pack_bf16x2(__uint_as_float(pair << 16) * a,
                            __uint_as_float(pair & 0xffff0000u) * a);
}

/* Converts 16 e4m3 numbers to two chunks of 16 bytes and stores them. Threads of the unit's second
 * column store the two in reverse order, so that eight neighbouring threads access different
 * banks. */
__device__ __forceinline__ void store_content(shared &s, int buffer, int unit, int row, int chunk,
                                              const uint4 &raw, float a) {
    const uint4 half[2] = {
        {widen2(raw.x, a), widen2(raw.x >> 16, a), widen2(raw.y, a), widen2(raw.y >> 16, a)},
        {widen2(raw.z, a), widen2(raw.z >> 16, a), widen2(raw.w, a), widen2(raw.w >> 16, a)}};
    const int second = chunk >> 2, to = 2 * (chunk & 3);
    uint8_t *at = s.kv[buffer][2 * (unit - 1) + second][row];
    *reinterpret_cast<uint4 *>(at + 16 * ((to + second) ^ (row & 7))) = second ? half[1] : half[0];
    *reinterpret_cast<uint4 *>(at + 16 * ((to + 1 - second) ^ (row & 7))) =
        second ? half[0] : half[1];
}

__device__ __forceinline__ void store_rope(shared &s, int buffer, int row, int chunk,
                                           const uint4 &raw, float a) {
    *reinterpret_cast<uint4 *>(s.kv[buffer][COLUMNS - 1][row] + 16 * (chunk ^ (row & 7))) =
        make_uint4(scale_bf16x2(raw.x, a), scale_bf16x2(raw.y, a), scale_bf16x2(raw.z, a),
                   scale_bf16x2(raw.w, a));
}

/* Stores one unit to shared memory and loads another into the same registers. */
__device__ __forceinline__ void turn_over(shared &s, const params &p, const widener &me,
                                          uint4 (&raw)[kPasses], int buffer, int unit,
                                          const float (&a)[kPasses], int next_page, int next_unit) {
#pragma unroll
    for (int i = 0; i < kPasses; i++) {
        if (unit == 0)
            store_rope(s, buffer, me.row + 16 * i, me.chunk, raw[i], a[i]);
        else
            store_content(s, buffer, unit, me.row + 16 * i, me.chunk, raw[i], a[i]);
        raw[i] = fetch(p, me, next_page, next_unit, i);
    }
    ptx::fence_proxy_async();
    ptx::mbarrier_arrive(&s.full[buffer][unit]);
}

/* Page i of a sequence. Does not use the part's record, to save registers. */
__device__ __forceinline__ int table_page(const params &p, const int *table, int i) {
    return clamp_page(p, __ldg(table + i));
}

__device__ __forceinline__ void run_widener(shared &s, const params &p, int first, int last,
                                            int row_tile) {
    const widener me;
    uint32_t parity = 3, q_parity = 1; /* parity: bit i belongs to buffer i */
    for (int k = first; k < last; k++) {
        const sched_item &item = p.io.items[k];
        const int begin = item.tile_begin, end = item.tile_end;
        if (begin == end)
            continue;
        const int *table = p.io.block_table + static_cast<size_t>(item.seq) * p.io.table_width;
        int page = table_page(p, table, begin);
        if (threadIdx.x == 256)
            load_queries(s, p, row_tile, item.seq, q_parity);
        q_parity ^= 1;
        uint4 now[kPasses], next[kPasses];
#pragma unroll
        for (int i = 0; i < kPasses; i++) {
            now[i] = fetch(p, me, page, 0, i);
            next[i] = fetch(p, me, page, 1, i);
        }
        for (int i = begin; i < end; i++) {
            const int buffer = (i - begin) & 1;
            const int later = i + 1 < end ? table_page(p, table, i + 1) : page;
            float a[kPasses];
            fetch_scales(p, me, page, a);
#pragma unroll
            for (int unit = 0; unit < kPieces; unit++) {
                if (unit == 0)
                    ptx::mbarrier_wait(&s.empty_rope[buffer], parity >> buffer & 1);
                else if (unit % 2 == 1)
                    ptx::mbarrier_wait(&s.empty[buffer][unit / 2], parity >> buffer & 1);
                turn_over(s, p, me, now, buffer, unit, a, unit < kPieces - 2 ? page : later,
                          (unit + 2) % kPieces);
#pragma unroll
                for (int j = 0; j < kPasses; j++) {
                    const uint4 held = now[j];
                    now[j] = next[j];
                    next[j] = held;
                }
            }
            parity ^= 1u << buffer;
            page = later;
        }
    }
}

} // namespace sm90_bf16
