/* fp8_page_units.cuh - a unit of P for each page, as in the paper: the kernel for 64 rows, compiled
 * with SM90_FP8_PAGE_UNITS.
 *
 * For each row, y_j = log2 P'_j, where P' = P a_k. A page has E = max y_j - log2(448), so its
 * largest P8_j = e4m3(2^(y_j - E)) is 448. The products of the two pages start from zero and are
 * multiplied by 2^(E - B) when they are added to O, which is in units of 2^B. So B hardly ever
 * changes, and P of a page does not depend on other pages: their order is free. When B changes
 * (fp8_config.h), O and the sums are shifted, by 2^-kShift, or cleared. */
#pragma once
#include "kernels/cuda/sm90_fp8/fp8_units.cuh"

namespace sm90_fp8 {

/* The place of a row's factor in shared::factor: the sixteen rows of an output thread (8 j + 2 t
 * and 8 j + 2 t + 1) are next to each other. */
__device__ __forceinline__ int factor_place(int row) {
    return (row & 7) / 2 * 16 + 2 * (row >> 3) + (row & 1);
}

/* The counterpart of kept_units (fp8_units.cuh), with a unit for each page. */
struct page_units {
    float2 log[8];    /* log2 a_k of the thread's tokens */
    float unit[2];    /* E of the page */
    float factor[2];  /* 2^(E - B) */
    uint32_t changes; /* rows of the warp whose B changes in this tile: for row g, bit 4 g is set if
                         it is shifted or cleared, and bit 4 g + 2 if it is cleared; for row g + 8,
                         bits 4 g + 1 and 4 g + 3 */

    static __device__ void begin_item(shared &, const softmax_thread &) {
    }
    __device__ __forceinline__ void prepare(const page_scales &a) {
#pragma unroll
        for (int j = 0; j < 8; j++)
            log[j] = {__log2f(a.pair[j].x), __log2f(a.pair[j].y)};
    }
    /* Turns scores into y, and a_k into 1 / a_k, which the sum of P needs. */
    __device__ __forceinline__ void scale(page_scales &a, const row_pair &r,
                                          float (&score)[32]) const {
#pragma unroll
        for (int j = 0; j < 8; j++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float &x = score[4 * j + i];
                x = fmaf(x * (i % 2 ? a.pair[j].y : a.pair[j].x), r.scale[i / 2],
                         i % 2 ? log[j].y : log[j].x);
            }
            a.pair[j] = {ptx::rcp_approx(a.pair[j].x), ptx::rcp_approx(a.pair[j].y)};
        }
    }
    template <typename Mask>
    __device__ __forceinline__ void first(shared &, const softmax_thread &, uint32_t, row_pair &r,
                                          const page_scales &, float (&y)[32], bool whole,
                                          Mask hide) {
        if (!whole)
            hide();
        changes = choose(r, y);
    }
    template <typename Mask>
    __device__ __forceinline__ void second(shared &s, const softmax_thread &me, uint32_t turn,
                                           row_pair &r, const page_scales &, float (&y)[32],
                                           bool whole, Mask hide) {
        if (!whole)
            hide();
        const uint32_t more = choose(r, y);
        /* If both pages raise B of a row, O would be multiplied by 2^-(2 kShift), which counts as
         * zero. */
        changes |= more | (changes & more & 0x33333333) << 2;
        const uint32_t own = more >> (4 * me.g + me.t);
        if (own & 1 && me.t < 2)
            s.factor[2 * (turn & 1)][factor_place(me.row() + 8 * me.t)] *=
                own & 4 ? 0 : kShiftFactor;
    }
    __device__ __forceinline__ float exponent(const row_pair &, float y, int i) const {
        return y - unit[i];
    }
    /* Adds the sums of P of a page, and stores the factors of its product. */
    __device__ __forceinline__ void add(shared &s, const softmax_thread &me, uint32_t turn,
                                        row_pair &r, const float (&sum)[2], int page) const {
        r.sum[0] = fmaf(sum[0], factor[0], r.sum[0]);
        r.sum[1] = fmaf(sum[1], factor[1], r.sum[1]);
        if (me.t < 2)
            s.factor[2 * (turn & 1) + page][factor_place(ptx::opaque(me.row()) + 8 * me.t)] =
                me.t == 0 ? factor[0] : factor[1];
    }
    __device__ __forceinline__ int changed(bool first) const {
        return first ? 0 : static_cast<int>(changes);
    }

  private:
    /* Sets E of a page, and B if E is far above it. Returns the rows of the warp whose B changed,
     * as in `changes`. A row without a visible token has P of zero and a factor of at most 1. */
    __device__ __forceinline__ uint32_t choose(row_pair &r, const float (&y)[32]) {
        float largest[4] = {y[0], y[1], y[2], y[3]};
#pragma unroll
        for (int i = 4; i < 32; i++)
            largest[i % 4] = fmaxf(largest[i % 4], y[i]);
        uint32_t rows = 0;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            unit[i] =
                fmaxf(quad_max(fmaxf(largest[2 * i], largest[2 * i + 1])) - kLog2Largest, kNone);
            const float above = unit[i] - r.unit[i];
            const bool change = above > kShift, clear = above > 2 * kShift;
            r.unit[i] = clear ? unit[i] : change ? r.unit[i] + kShift : r.unit[i];
            r.sum[i] *= clear ? 0 : change ? kShiftFactor : 1;
            factor[i] = ptx::exp2_approx(unit[i] - r.unit[i]);
            rows |= (__ballot_sync(~0u, change) & 0x11111111) << i;
            rows |= (__ballot_sync(~0u, clear) & 0x11111111) << (i + 2);
        }
        return rows;
    }
};

} // namespace sm90_fp8
