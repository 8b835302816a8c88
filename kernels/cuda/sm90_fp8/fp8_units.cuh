/* fp8_units.cuh - E, the reference exponent of a row's P ("unit" in the code): when it must change,
 * and how. */
#pragma once
#include "kernels/cuda/sm90_fp8/fp8_scores.cuh"

namespace sm90_fp8 {

__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

/* Upper bounds of log2(P' / 448) over a thread's tokens of its two rows. They are bounds because
 * the largest score and the largest a_k may belong to different tokens. */
struct row_tops {
    float top[2];

    __device__ row_tops(const float (&score)[32], const row_pair &r, float log_most) {
        float largest[4] = {score[0], score[1], score[2], score[3]};
#pragma unroll
        for (int i = 4; i < 32; i++) /* four independent chains: two rows, even and odd columns */
            largest[i % 4] = fmaxf(largest[i % 4], score[i]);
        top[0] = fmaf(fmaxf(largest[0], largest[1]), r.scale[0], log_most - kLog2Largest);
        top[1] = fmaf(fmaxf(largest[2], largest[3]), r.scale[1], log_most - kLog2Largest);
    }
};

__device__ __forceinline__ bool any_above(const row_pair &r, const row_tops &tops) {
    return __any_sync(~0u, tops.top[0] > r.unit[0] || tops.top[1] > r.unit[1]);
}

/* True if E of all 16 rows of the warp suits page 0: for each row, at least one bound of its four
 * lanes is inside the window, and none is above. All lanes get the same answer. */
__device__ __forceinline__ bool both_serve(const row_pair &r, const row_tops &tops) {
    const uint32_t low = __ballot_sync(~0u, tops.top[0] > r.unit[0] - kWindow);
    const uint32_t high = __ballot_sync(~0u, tops.top[1] > r.unit[1] - kWindow);
    const bool above = any_above(r, tops);
    /* Tests whether any group of four bits is zero: in such a row, no bound of the four lanes is in
     * the window. Subtracting 1 from a group of zeros sets its top bit. */
    const uint32_t none = ((low - 0x11111111) & ~low) | ((high - 0x11111111) & ~high);
    return !(none & 0x88888888) && !above;
}

/* The E that places row i's largest P' of a page kHeadroom octaves below the largest e4m3. */
__device__ __forceinline__ float anchor(const page_scales &a, const row_pair &r,
                                        const float (&score)[32], int i) {
    float most = -INFINITY;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const float *s = score + 4 * j + 2 * i;
        most = fmaxf(most, fmaf(s[0], r.scale[i], __log2f(a.pair[j].x)));
        most = fmaxf(most, fmaf(s[1], r.scale[i], __log2f(a.pair[j].y)));
    }
    return quad_max(most) + (kHeadroom - kLog2Largest);
}

/* Changes E of row i to @unit and stores the factor for O, which the output groups read. Returns
 * log2 of the factor. @again: E has already changed in this tile. */
__device__ __forceinline__ float change_unit(shared &s, const softmax_thread &me, uint32_t turn,
                                             row_pair &r, int i, float unit, bool again) {
    const float shift = r.unit[i] - unit, factor = ptx::exp2_approx(shift);
    const int row = ptx::opaque(me.row()) + 8 * i;
    r.unit[i] = unit;
    r.sum[i] *= factor;
    __syncwarp(); /* all four lanes of the row have read most_unit */
    if (me.t == 0) {
        float &by = s.factor[turn % kFactors][row];
        by = again ? by * factor : factor;
        s.most_unit[row] = fmaxf(s.most_unit[row], unit);
    }
    return shift;
}

/* Chooses E for the tile from page 0. Returns true if E of any row of the warp may have changed. A
 * row without a visible token keeps its E. */
__device__ __forceinline__ bool choose_units(shared &s, const softmax_thread &me, uint32_t turn,
                                             row_pair &r, const row_tops &tops,
                                             const page_scales &a, const float (&score)[32]) {
    if (both_serve(r, tops)) /* E suits the page, which only needs its mask */
        return false;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float largest = quad_max(tops.top[i]), anchored = anchor(a, r, score, i);
        float unit = r.unit[i];
        if (largest != -INFINITY) {
            if (largest > unit || largest <= unit - kWindow)
                unit = anchored;
            unit = fmaxf(unit, s.most_unit[ptx::opaque(me.row()) + 8 * i] - kReach);
        }
        change_unit(s, me, turn, r, i, unit, false);
    }
    return true;
}

/* Rescales P of page 0 for the warp's 16 rows, after page 1 has raised E. Each lane has half of a
 * row's 64 bytes. @address is that of the warp's first row. */
__device__ __forceinline__ void rescale_page(const softmax_thread &me, const float (&shift)[2],
                                             uint32_t address) {
    const int row = me.lane >> 1;
    const float low = __shfl_sync(~0u, shift[0], (row & 7) * 4);
    const float high = __shfl_sync(~0u, shift[1], (row & 7) * 4);
    const __half2 factor = __float2half2_rn(ptx::exp2_approx(row < 8 ? low : high));
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t at = address + row * SWIZZLE + 16 * ((2 * (me.lane & 1) + i) ^ (row & 7));
        uint4 x = ptx::load_shared_u4(at);
        x = {ptx::scale_e4m3x4(x.x, factor), ptx::scale_e4m3x4(x.y, factor),
             ptx::scale_e4m3x4(x.z, factor), ptx::scale_e4m3x4(x.w, factor)};
        ptx::store_shared_u4(at, x);
    }
    __syncwarp();
}

/* Raises E of the warp's rows for which page 1 needs it, and then rescales P of page 0. Page 1
 * never lowers E. Returns true if any lane's bound lies above E. @again: page 0 has changed E. */
__device__ __forceinline__ bool raise_units(shared &s, const softmax_thread &me, uint32_t turn,
                                            row_pair &r, const row_tops &tops, const page_scales &a,
                                            const float (&score)[32], bool again) {
    if (!any_above(r, tops))
        return false;
    float shift[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float largest = quad_max(tops.top[i]), anchored = anchor(a, r, score, i);
        const float unit = largest > r.unit[i] ? fmaxf(r.unit[i], anchored) : r.unit[i];
        shift[i] = change_unit(s, me, turn, r, i, unit, again);
    }
    rescale_page(me, shift, ptx::smem_addr(s.p[turn & 1][16 * me.warp]));
    return true;
}

/* How softmax_tile() chooses and applies units, if a unit is kept over pages. fp8_page_units.cuh
 * has the same functions for a unit of each page. */
struct kept_units {
    bool change; /* E of some row of the warp may have changed in this tile */

    static __device__ __forceinline__ void begin_item(shared &s, const softmax_thread &me) {
        if (me.t == 0)
            s.most_unit[me.row()] = s.most_unit[me.row() + 8] = kNone;
        __syncwarp();
    }
    __device__ __forceinline__ void prepare(const page_scales &) {
    }
    __device__ __forceinline__ void scale(page_scales &a, const row_pair &,
                                          float (&score)[32]) const {
        a.apply(score);
    }
    /* Choose E for a page. @whole: no token needs a mask; else hide() masks the page. */
    template <typename Mask>
    __device__ __forceinline__ void first(shared &s, const softmax_thread &me, uint32_t turn,
                                          row_pair &r, const page_scales &a, float (&score)[32],
                                          bool whole, Mask hide) {
        row_tops tops(score, r, a.log_most);
        change = false;
        if (both_serve(r, tops) & whole)
            return;
        if (!whole) {
            hide();
            tops = row_tops(score, r, a.log_most);
        }
        change = choose_units(s, me, turn, r, tops, a, score);
    }
    template <typename Mask>
    __device__ __forceinline__ void second(shared &s, const softmax_thread &me, uint32_t turn,
                                           row_pair &r, const page_scales &a, float (&score)[32],
                                           bool whole, Mask hide) {
        row_tops tops(score, r, a.log_most);
        if (!(any_above(r, tops) | !whole))
            return;
        if (!whole) {
            hide();
            tops = row_tops(score, r, a.log_most);
        }
        change |= raise_units(s, me, turn, r, tops, a, score, change);
    }
    /* log2 of P / 2^E of a token, from its score; log2 of P' / 2^E with units of pages. */
    __device__ __forceinline__ float exponent(const row_pair &r, float score, int row) const {
        return fmaf(score, r.scale[row], -r.unit[row]);
    }
    /* Adds the sums of P of a page. */
    __device__ __forceinline__ void add(shared &, const softmax_thread &, uint32_t, row_pair &r,
                                        const float (&sum)[2], int) const {
        r.sum[0] += sum[0];
        r.sum[1] += sum[1];
    }
    /* For the output groups, in shared::rescale: nonzero if O of some row of the warp changes.
     * @first: this is the first tile of an item, so O is zero. */
    __device__ __forceinline__ bool changed(bool first) const {
        return change && !first;
    }
};

} // namespace sm90_fp8
