/* fp8_few_output.cuh - an output group for at most 32 rows: O^T += V^T P^T, one or two pages at a
 * time. */
#pragma once
#include "kernels/cuda/merge/fp8_few_merge.cuh"
#include "kernels/cuda/sm90_fp8/fp8_output.cuh"

namespace sm90_fp8 {

/* Stores O of up to 32 rows: to @to if the result is partial, to @out if it is final. Both point to
 * the thread's place in its row 2 t. The same code serves both, with predicated stores, because
 * code is slow to fetch. */
template <typename Shared, int N>
__device__ __forceinline__ void store_few(const Shared &s, const params &p, const output_thread &me,
                                          bool partial, uint4 *to, __nv_bfloat16 *out,
                                          const float (&o)[SLICES][N]) {
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
        if (8 * j >= p.rows)
            break;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float inverse = inverse_sum(s, 2 * me.t + 8 * j + r);
            const bool real = 2 * me.t + 8 * j + r < p.rows;
            uint32_t x[SLICES];
#pragma unroll
            for (int slice = 0; slice < SLICES; slice++) {
                x[slice] = ptx::pack_bf16x2(o[slice][4 * j + r] * inverse,
                                            o[slice][4 * j + 2 + r] * inverse);
                merging::store_if(real && !partial, out + (8 * j + r) * CONTENT + 64 * slice,
                                  x[slice]);
            }
            merging::store_relaxed_if(real && partial,
                                      to + partial_format::unit(8 * j + r) * merging::kLanes,
                                      make_uint4(x[0], x[1], x[2], x[3]));
        }
    }
}

__device__ __forceinline__ void product_rs(float (&d)[8], const uint32_t (&a)[4], uint32_t b,
                                           bool more) {
    ptx::wgmma_rs_e4m3_n16(d, a, ptx::descriptor_128(b), more);
}
__device__ __forceinline__ void product_rs(float (&d)[16], const uint32_t (&a)[4], uint32_t b,
                                           bool more) {
    ptx::wgmma_rs_e4m3_n32(d, a, ptx::descriptor_128(b), more);
}

/* Multiplies one or two pages. Unless @partial, all of V is loaded into registers, and its stages
 * are freed, before the wait for P. A slice of O is N numbers. @partial: the last page is not full;
 * its V is cleared before P is published, so V must not be read earlier. */
template <int Pages, typename Shared, int N>
__device__ __forceinline__ void multiply_few(Shared &s, const output_thread &me, uint32_t turn,
                                             const ring<kStages> &at, uint32_t base, uint32_t chunk,
                                             uint32_t p_desc, bool partial, float (&o)[SLICES][N]) {
    const int buffer = turn & 1;
    const uint32_t p_tile = p_desc + buffer * (Shared::kRows * SWIZZLE / 16);
    if (partial)
        ptx::mbarrier_wait(&s.full_p[buffer], (turn >> 1) & 1);
    uint32_t a[SLICES][2 * Pages][4];
#pragma unroll
    for (int page = 0; page < Pages; page++) {
        const ring<kStages> from = page ? at.next() : at;
        ptx::mbarrier_wait(&s.full[from.stage], from.parity);
#pragma unroll
        for (int i = 0; i < 2 * SLICES; i++)
            load_values<true>(base + from.stage * kBytesContent + i / 4 * (PAGE * SWIZZLE) +
                                  i % 2 * (32 * SWIZZLE) + (i & 2 ? chunk ^ 64 : chunk),
                              a[i / 2][2 * page + i % 2]);
        me.arrive(&s.empty[from.stage]);
    }
    ptx::mbarrier_wait(&s.full_p[buffer], (turn >> 1) & 1);
    if (const int rows = s.rescale[buffer].x) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int row = 8 * (i / 4) + 2 * me.t + i % 2;
            const float by = !kPageUnits                      ? s.factor[turn % kFactors][row]
                             : s.rescale[buffer].y >> row & 1 ? 0
                             : rows >> row & 1                ? kShiftFactor
                                                              : 1;
#pragma unroll
            for (int slice = 0; slice < SLICES; slice++)
                o[slice][i] *= by;
        }
    }
    /* Each product starts from zero. It covers all pages of the tile or, with units of pages, one
     * page. */
    enum {
        PRODUCTS = kPageUnits ? Pages : 1,
        STEPS = 2 * Pages / PRODUCTS,
        TOGETHER = (N == 8 ? 4 : 2) / PRODUCTS
    };
    float by[PRODUCTS][N / 2];
#pragma unroll
    for (int page = 0; page < PRODUCTS && kPageUnits; page++)
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            by[page][i] = s.factor[2 * buffer + page][8 * (i / 2) + 2 * me.t + i % 2];
#pragma unroll
    for (int first = 0; first < SLICES; first += TOGETHER) {
        float zeroed[TOGETHER][PRODUCTS][N];
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
#pragma unroll
            for (int k = 0; k < 2 * Pages; k++)
                product_rs(SM90_FP8_IN_PLACE ? o[first + i] : zeroed[i][k / STEPS], a[first + i][k],
                           p_tile + 2 * k, SM90_FP8_IN_PLACE || k % STEPS > 0);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
#pragma unroll
            for (int n = 0; n < PRODUCTS; n++) {
                const int page = n ^ (kFirstPage % PRODUCTS);
                ptx::pin(SM90_FP8_IN_PLACE ? o[first + i] : zeroed[i][page]);
#pragma unroll
                for (int j = 0; j < N && !SM90_FP8_IN_PLACE; j++)
                    o[first + i][j] = kPageUnits
                                          ? fmaf(zeroed[i][page][j], by[page][2 * (j / 4) + j % 2],
                                                 o[first + i][j])
                                          : o[first + i][j] + zeroed[i][page][j];
            }
    }
    ptx::mbarrier_arrive(&s.empty_p[buffer]);
}

template <typename Shared>
__device__ __forceinline__ void run_few_output(Shared &s, const params &p, int group) {
    const output_thread me(group);
    const uint32_t base = me.values_at(s), chunk = me.chunk();
    const uint32_t p_desc = ptx::descriptor_low_128(ptx::smem_addr(s.p));
    ring<kStages> at;
    uint32_t turn = 0;
    const sched_item head = s.part.head; /* the first item is kept in registers: reading it again
                                            after stores would be slow */
    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = k == s.part.first ? head : item_at(s, p, k);
        const bool partial = item.tokens < item.tile_end * PAGE; /* the last page is not full */
        const int unit = partial_format::unit(2 * me.t, 4 * me.group + me.warp);
        uint4 *to = partials_of_tile(p).out(item.slot, unit, me.g);
        const size_t row = static_cast<size_t>(row_block(p, item.seq)) * p.rows + 2 * me.t;
        __nv_bfloat16 *out = p.io.out + row * CONTENT + me.group * 256 + 16 * me.warp + 2 * me.g;
        float o[SLICES][Shared::kRows / 2] = {};
        int n = item.tile_end - item.tile_begin;
#pragma unroll 1
        for (; n > 1; n -= 2, turn++, at.advance(2))
            multiply_few<2>(s, me, turn, at, base, chunk, p_desc, n == 2 && partial, o);
        if (n == 1) {
            multiply_few<1>(s, me, turn, at, base, chunk, p_desc, partial, o);
            turn++;
            at.advance();
        }
        ptx::mbarrier_wait(&s.full_sum, (k - s.part.first) & 1);
        store_few(s, p, me, item.slot >= 0, to, out, o);
        ptx::mbarrier_arrive(&s.empty_sum);
    }
    merge_few_part(s, p, head, me.thread());
}

} // namespace sm90_fp8
