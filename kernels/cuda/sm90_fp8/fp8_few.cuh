/* fp8_few.cuh - the softmax warpgroup for at most 32 rows. It computes S^T = K Q^T, so that a
 * tile has 16 or 32 rows instead of 64. Rows of it that do not exist are still computed. The
 * arithmetic is that of fp8_softmax.cuh, the rule for E that of fp8_units.cuh.
 *
 * A warp has 16 tokens of a page. Lane 4 g + t has tokens g and g + 8 of them, rows 8 j + 2 t and 8
 * j + 2 t + 1. So reductions over the tokens of a page go over 8 lanes and 4 warps. To test whether
 * E fits, each warp reduces one bit per row; other reductions use shuffles and shared memory.
 *
 * S of a page is started when the page arrives, and nothing of the next tile is started before P of
 * this one is stored. With so few rows, memory bandwidth is the limit, so the time from the arrival
 * of the last page to P counts.
 *
 * An item is any range of pages. They are processed as tiles of two, and a last page alone if their
 * number is odd. */
#pragma once
#include "kernels/cuda/merge/fp8_few_merge.cuh"
#include "kernels/cuda/sm90_fp8/fp8_scores.cuh"

namespace sm90_fp8 {

/* A thread's state of its rows. Number k is row 8 (k / 2) + 2 t + k % 2. */
template <int Rows>
struct few_rows {
    enum { MINE = Rows / 4 };
    float scale[MINE]; /* a_q x softmax scale x log2(e) */
    float unit[MINE];  /* E; infinite for a padding row */
    float sum[MINE];   /* sum of P / 2^E over the thread's tokens */

    /* @block: index of the block of rows, row_block(). */
    __device__ few_rows(const params &p, int block, int t) {
        const float *from = p.q_scale + static_cast<size_t>(block) * p.rows + 2 * t;
#pragma unroll
        for (int k = 0; k < MINE; k++) {
            const bool real = row_of(k, t) < p.rows;
            scale[k] = real ? __ldg(from + row_of(k, 0)) * p.scale_log2 : 1;
            unit[k] = real ? kNone : INFINITY;
            sum[k] = 0;
        }
    }
    __device__ static int row_of(int k, int t) {
        return 8 * (k / 2) + 2 * t + k % 2;
    }
};

/* A thread's scores of a page. Number 2 (k - k % 2) + k % 2 + 2 h is that of row k, token g + 8
 * h. */
template <int Rows>
struct few_scores {
    float s[Rows / 2];

    __device__ float &at(int k, int h) {
        return s[4 * (k / 2) + 2 * h + k % 2];
    }
    __device__ float at(int k, int h) const {
        return s[4 * (k / 2) + 2 * h + k % 2];
    }
};

__device__ __forceinline__ void product_e4m3(float (&d)[8], uint64_t a, uint64_t b, bool more) {
    ptx::wgmma_ss_e4m3_n16(d, a, b, more);
}
__device__ __forceinline__ void product_e4m3(float (&d)[16], uint64_t a, uint64_t b, bool more) {
    ptx::wgmma_ss_e4m3_n32(d, a, b, more);
}
__device__ __forceinline__ void product_bf16(float (&d)[8], uint64_t a, uint64_t b) {
    ptx::wgmma_ss_bf16_n16(d, a, b, true);
}
__device__ __forceinline__ void product_bf16(float (&d)[16], uint64_t a, uint64_t b) {
    ptx::wgmma_ss_bf16_n32(d, a, b, true);
}

/* Starts S of a page: content first, then RoPE, as in fp8_scores.cuh. */
template <int Rows>
__device__ __forceinline__ void start_scores(shared_of<Rows> &s, const params &p, int stage,
                                             int rope_stage, few_scores<Rows> &score) {
    const uint32_t k = ptx::descriptor_low_128(ptx::smem_addr(s.content[stage]));
    const uint32_t rope = ptx::descriptor_low_128(ptx::smem_addr(s.rope[rope_stage]));
    const uint32_t q = ptx::descriptor_low_128(ptx::smem_addr(s.q));
    enum { K_COLUMN = PAGE * SWIZZLE / 16, Q_COLUMN = Rows * SWIZZLE / 16 };
    uint64_t a = ptx::descriptor_of(k, p.high_a), b = ptx::descriptor_of(q, p.high_b);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < CONTENT / 32; i++) {
        product_e4m3(score.s, a, b, i > 0);
        ptx::descriptor_step(a, i % 4 < 3 ? 2 : K_COLUMN - 6);
        ptx::descriptor_step(b, i % 4 < 3 ? 2 : Q_COLUMN - 6);
    }
    a = ptx::descriptor_of(rope, p.high_a);
#pragma unroll
    for (int i = 0; i < ROPE / 16; i++) {
        product_bf16(score.s, a, b);
        ptx::descriptor_step(a, 2);
        ptx::descriptor_step(b, 2);
    }
    ptx::wgmma_commit();
}

/* a[]: the scales a_k of a thread's two cached tokens of a page. log_most: log2 of the largest a_k
 * of the page. */
struct few_scales {
    float a[2], log_most;

    __device__ __forceinline__ void read(const tile_scales &tile, int page, int warp, int g) {
        const float *from = &tile.pair[0].x + page * PAGE + 16 * warp + g;
        a[0] = from[0];
        a[1] = from[8];
        log_most = tile.log_most[page];
    }
};

/* Sets the scores of hidden tokens to -inf. @valid: how many tokens the sequence has from the
 * page's first on. */
template <int Rows>
__device__ __forceinline__ void mask(const shared_of<Rows> &s, const softmax_thread &me, int valid,
                                     few_scores<Rows> &score) {
#pragma unroll
    for (int k = 0; k < Rows / 4; k++) {
        const int end = valid - s.few.later[few_rows<Rows>::row_of(k, me.t)];
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (16 * me.warp + me.g + 8 * h >= end)
                score.at(k, h) = -INFINITY;
    }
}

/* True if E of all rows suits the tile: for every row, a bound of page 0 is inside the window, and
 * no bound of either page is above. All threads get the same answer. */
template <int Pages, int Rows>
__device__ __forceinline__ bool
units_serve(shared_of<Rows> &s, const params &p, const softmax_thread &me, uint32_t turn,
            const few_rows<Rows> &r, const few_scores<Rows> (&score)[Pages],
            const few_scales (&by)[Pages]) {
    uint32_t inside = 0;
    bool above = false;
#pragma unroll
    for (int k = 0; k < Rows / 4; k++) {
        float top[Pages];
#pragma unroll
        for (int page = 0; page < Pages; page++)
            top[page] = fmaf(fmaxf(score[page].at(k, 0), score[page].at(k, 1)), r.scale[k],
                             by[page].log_most - kLog2Largest);
        if (top[0] > r.unit[k] - kWindow)
            inside |= 1u << few_rows<Rows>::row_of(k, 0);
        above |= fmaxf(top[0], top[Pages - 1]) > r.unit[k];
    }
    inside = __reduce_or_sync(~0u, inside << 2 * me.t);
    uint32_t(&all)[4] = s.few.inside[turn & 1];
    if (me.lane == 0)
        all[me.warp] = inside;
    above = ptx::named_or(kSoftmaxBarrier, 128, above);
    const uint4 x = ptx::load_shared_u4(ptx::smem_addr(all));
    const uint32_t rows = ~0u >> (32 - p.rows);
    return !above && ((x.x | x.y | x.z | x.w) & rows) == rows;
}

/* Reduces a thread's N numbers, one for each of its rows, over the eight lanes that share these
 * rows. Each step halves the number of rows that a lane continues with. The result is that of row k
 * = g if N is 8, of row k = g / 2 if N is 4. */
template <int N, typename Op>
__device__ __forceinline__ float over_lanes(float (&x)[N], int g, Op op) {
#pragma unroll
    for (int bit = 4, n = N / 2; bit > 0; bit /= 2, n /= 2) {
        if (n == 0)
            x[0] = op(x[0], __shfl_xor_sync(~0u, x[0], 4 * bit));
#pragma unroll
        for (int i = 0; i < n; i++) {
            const float mine = g & bit ? x[i + n] : x[i], other = g & bit ? x[i] : x[i + n];
            x[i] = op(mine, __shfl_xor_sync(~0u, other, 4 * bit));
        }
    }
    return x[0];
}

/* Reduces each row's numbers over the warp's tokens with over_lanes(), and stores the result in
 * shared memory: member number `warp` of the row's float4. */
template <int Rows, typename Op>
__device__ __forceinline__ void over_warp(float4 (&to)[Rows], const softmax_thread &me,
                                          float (&x)[Rows / 4], Op op) {
    const float y = over_lanes(x, me.g, op);
    if (Rows == 32 || me.g % 2 == 0)
        (&to[few_rows<Rows>::row_of(Rows == 32 ? me.g : me.g / 2, me.t)].x)[me.warp] = y;
}

__device__ __forceinline__ float most_of(float4 x) {
    return fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
}

/* Stores the anchor and, if @bound_too, the bound (fp8_units.cuh) of each row's P in a page,
 * reduced over each warp's tokens. The values of all warps are available after a barrier. */
template <int Rows>
__device__ __forceinline__ void leave_tops(shared_of<Rows> &s, const softmax_thread &me, int page,
                                           const few_rows<Rows> &r, const few_scores<Rows> &score,
                                           const few_scales &by, bool bound_too) {
    const auto larger = [](float x, float y) { return fmaxf(x, y); };
    const float log_a[2] = {__log2f(by.a[0]), __log2f(by.a[1])};
    float top[Rows / 4], anchor[Rows / 4];
#pragma unroll
    for (int k = 0; k < Rows / 4; k++) {
        const float x = score.at(k, 0), y = score.at(k, 1);
        top[k] = fmaf(fmaxf(x, y), r.scale[k], by.log_most - kLog2Largest);
        anchor[k] = fmaxf(fmaf(x, r.scale[k], log_a[0]), fmaf(y, r.scale[k], log_a[1])) +
                    (kHeadroom - kLog2Largest);
    }
    if (bound_too)
        over_warp(s.few.tops[2 * page], me, top, larger);
    over_warp(s.few.tops[2 * page + 1], me, anchor, larger);
}

/* In the kernel for 16 rows: chooses E of page 0 in an item's first tile, where there is no earlier
 * E. Every thread computes it for its own rows. */
template <int Pages, int Rows>
__device__ __forceinline__ void
begin_units(shared_of<Rows> &s, const softmax_thread &me, few_rows<Rows> &r,
            const few_scores<Rows> (&score)[Pages], const few_scales (&by)[Pages]) {
#pragma unroll
    for (int page = 0; page < Pages; page++)
        leave_tops(s, me, page, r, score[page], by[page], page > 0);
    ptx::named_sync(kSoftmaxBarrier, 128);
#pragma unroll
    for (int k = 0; k < Rows / 4; k++)
        r.unit[k] = fmaxf(r.unit[k], most_of(s.few.tops[1][few_rows<Rows>::row_of(k, me.t)]));
}

/* Chooses E of the whole tile, after begin_units() has chosen E of page 0 in an item's first
 * tile. */
template <int Pages, int Rows>
__device__ __forceinline__ void begun_units(shared_of<Rows> &s, const softmax_thread &me,
                                            const few_rows<Rows> &r, float (&last)[Rows / 4]) {
#pragma unroll
    for (int k = 0; k < Rows / 4; k++) {
        const int row = few_rows<Rows>::row_of(k, me.t);
        last[k] = r.unit[k];
        if (Pages == 2 && most_of(s.few.tops[2][row]) > last[k])
            last[k] = fmaxf(last[k], most_of(s.few.tops[3][row]));
        if (me.index() < 4)
            s.few.unit[1][row] = s.most_unit[row] = last[k];
    }
}

/* Chooses a row's E of page 0 and of the tile from the bounds and anchors, by the rule of
 * fp8_units.cuh, and stores the factor for O. Each thread has one row. */
template <int Pages, int Rows>
__device__ __forceinline__ void choose_unit(shared_of<Rows> &s, uint32_t turn, int row,
                                            bool begins) {
    float top[2 * Pages];
#pragma unroll
    for (int i = 0; i < 2 * Pages; i++)
        top[i] = most_of(s.few.tops[i][row]);
    const float before = begins ? kNone : s.few.unit[1][row];
    const float most = begins ? kNone : s.most_unit[row];
    float first = before;
    if (top[0] != -INFINITY) {
        if (top[0] > before || top[0] <= before - kWindow)
            first = top[1];
        first = fmaxf(first, most - kReach);
    }
    const float last =
        Pages == 2 && top[2 * Pages - 2] > first ? fmaxf(first, top[2 * Pages - 1]) : first;
    s.few.unit[0][row] = first;
    s.few.unit[1][row] = last;
    s.factor[turn % kFactors][row] = ptx::exp2_approx(before - last);
    s.most_unit[row] = fmaxf(most, fmaxf(first, last));
}

/* Copies the units of the rows that exist. A padding row keeps INFINITY, so it is never
 * rescaled. */
template <int Rows>
__device__ __forceinline__ void units_of(const float (&from)[Rows], const softmax_thread &me,
                                         const few_rows<Rows> &r, float (&unit)[Rows / 4]) {
#pragma unroll
    for (int k = 0; k < Rows / 4; k++)
        unit[k] = r.unit[k] == INFINITY ? INFINITY : from[few_rows<Rows>::row_of(k, me.t)];
}

/* Changes E of the rows to @unit and returns the rows' factors. */
template <int Rows>
__device__ __forceinline__ void take_units(const float (&unit)[Rows / 4], few_rows<Rows> &r,
                                           float (&factor)[Rows / 4]) {
#pragma unroll
    for (int k = 0; k < Rows / 4; k++) {
        factor[k] = unit[k] == r.unit[k] ? 1 : ptx::exp2_approx(r.unit[k] - unit[k]);
        r.unit[k] = unit[k];
        r.sum[k] *= factor[k];
    }
}

/* Chooses E of page 0 and of the tile, if there is no E yet or the E so far does not suit the tile.
 * Changes the thread's rows to E of page 0. */
template <int Pages, int Rows>
__device__ __forceinline__ void
choose_units(shared_of<Rows> &s, const params &p, const softmax_thread &me, uint32_t turn,
             few_rows<Rows> &r, const few_scores<Rows> (&score)[Pages],
             const few_scales (&by)[Pages], bool begins) {
#pragma unroll
    for (int page = 0; page < Pages; page++)
        leave_tops(s, me, page, r, score[page], by[page], true);
    ptx::named_sync(kSoftmaxBarrier, 128);
    if (me.index() < p.rows)
        choose_unit<Pages>(s, turn, me.index(), begins);
    ptx::named_sync(kSoftmaxBarrier, 128);
    float unit[Rows / 4], factor[Rows / 4];
    units_of(s.few.unit[0], me, r, unit);
    take_units(unit, r, factor);
}

/* Computes the probabilities of a page. A word of @packed holds two rows, of tokens g and g + 8
 * each. */
template <int Rows>
__device__ __forceinline__ void exponentiate(const few_scales &by, few_rows<Rows> &r,
                                             const few_scores<Rows> &score,
                                             uint32_t (&packed)[Rows / 8]) {
#pragma unroll
    for (int j = 0; j < Rows / 8; j++) {
        float v[2][2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int k = 2 * j + i;
#pragma unroll
            for (int h = 0; h < 2; h++)
                v[i][h] = ptx::exp2_approx(fmaf(score.at(k, h), r.scale[k], -r.unit[k]));
            r.sum[k] += v[i][0] + v[i][1];
        }
        packed[j] = ptx::pack_e4m3x4(v[0][0] * by.a[0], v[0][1] * by.a[1], v[1][0] * by.a[0],
                                     v[1][1] * by.a[1]);
    }
}

/* Changes E of the thread's rows to @last, the E of the whole tile, and rescales P of page 0. */
template <int Rows>
__device__ __forceinline__ void raise_units(const float (&last)[Rows / 4], few_rows<Rows> &r,
                                            uint32_t (&packed)[Rows / 8]) {
    float factor[Rows / 4];
    take_units(last, r, factor);
#pragma unroll
    for (int j = 0; j < Rows / 8; j++) {
        const uint32_t low =
            ptx::scale_e4m3x2(static_cast<uint16_t>(packed[j]), __float2half2_rn(factor[2 * j]));
        const uint32_t high = ptx::scale_e4m3x2(static_cast<uint16_t>(packed[j] >> 16),
                                                __float2half2_rn(factor[2 * j + 1]));
        packed[j] = low | high << 16;
    }
}

/* Stores P as the B operand of V^T P^T: rows of 128 tokens. A warp writes 16 bytes of each row for
 * each page. Their token order is 0, 8, 1, 9, ...; the V^T fragments have the same order. */
template <int Pages, int Rows>
__device__ __forceinline__ void store_p(shared_of<Rows> &s, const softmax_thread &me, int buffer,
                                        const uint32_t (&packed)[2][Rows / 8]) {
    const int matrix = me.lane >> 3, row = me.lane & 7;
    const uint32_t p = ptx::smem_addr(s.p[buffer]) + row * SWIZZLE;
    if constexpr (Rows == 16) {
        const int chunk = 4 * (matrix >> 1) + me.warp;
        ptx::stmatrix_x4_trans(p + (matrix & 1) * (8 * SWIZZLE) + 16 * (chunk ^ row), packed[0][0],
                               packed[0][1], packed[1][0], packed[1][1]);
    } else {
#pragma unroll
        for (int page = 0; page < Pages; page++)
            ptx::stmatrix_x4_trans(p + matrix * (8 * SWIZZLE) + 16 * ((4 * page + me.warp) ^ row),
                                   packed[page][0], packed[page][1], packed[page][2],
                                   packed[page][3]);
    }
}

/* ---- a unit of P for each page (fp8_page_units.cuh) ----------------------------------------- */

/* Turns the scores of a page into y = log2 P', and a_k into 1 / a_k. Stores the largest y of each
 * row and warp in @tops. */
template <int Rows>
__device__ __forceinline__ void take_logs(float4 (&tops)[Rows], const softmax_thread &me,
                                          const few_rows<Rows> &r, few_scales &by,
                                          few_scores<Rows> &score) {
    const float log_a[2] = {__log2f(by.a[0]), __log2f(by.a[1])};
    float top[Rows / 4];
#pragma unroll
    for (int k = 0; k < Rows / 4; k++) {
#pragma unroll
        for (int h = 0; h < 2; h++)
            score.at(k, h) = fmaf(score.at(k, h), r.scale[k], log_a[h]);
        top[k] = fmaxf(score.at(k, 0), score.at(k, 1));
    }
    by.a[0] = ptx::rcp_approx(by.a[0]);
    by.a[1] = ptx::rcp_approx(by.a[1]);
    over_warp(tops, me, top, [](float x, float y) { return fmaxf(x, y); });
}

/* Rows whose B changes: bit row_of(k, 0) is row k. */
struct few_changes {
    uint32_t any;   /* shifted or cleared */
    uint32_t clear; /* cleared */
};

/* Chooses E of a page from @tops, and B. Where B changes, the thread's sums are shifted or
 * cleared. */
template <int Rows>
__device__ __forceinline__ few_changes choose_page_units(const float4 (&tops)[Rows],
                                                         const softmax_thread &me,
                                                         few_rows<Rows> &r,
                                                         float (&unit)[Rows / 4]) {
    few_changes changes = {0, 0};
#pragma unroll
    for (int k = 0; k < Rows / 4; k++) {
        unit[k] = fmaxf(most_of(tops[few_rows<Rows>::row_of(k, me.t)]) - kLog2Largest, kNone);
        const float above = unit[k] - r.unit[k];
        if (above > kShift) {
            const bool clear = above > 2 * kShift;
            const uint32_t row = 1u << few_rows<Rows>::row_of(k, 0);
            r.unit[k] = clear ? unit[k] : r.unit[k] + kShift;
            r.sum[k] *= clear ? 0 : kShiftFactor;
            changes.any |= row;
            changes.clear |= clear ? row : 0;
        }
    }
    return changes;
}

/* Computes P of page number @page of a tile in the units @unit, and stores the factors of its
 * product. @y is log2 P', @by has 1 / a_k. */
template <int Rows>
__device__ __forceinline__ void
page_probabilities(shared_of<Rows> &s, const softmax_thread &me, uint32_t turn, int page,
                   few_rows<Rows> &r, const few_scores<Rows> &y, const few_scales &by,
                   const float (&unit)[Rows / 4], uint32_t (&packed)[Rows / 8]) {
    const bool stores = me.index() < 4; /* threads 0 to 3 together have all rows */
#pragma unroll
    for (int j = 0; j < Rows / 8; j++) {
        float v[4]; /* P' / 2^E: two tokens of row 2 j, then of row 2 j + 1 */
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[i] = ptx::exp2_approx(y.at(2 * j + i / 2, i % 2) - unit[2 * j + i / 2]);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int k = 2 * j + i, row = few_rows<Rows>::row_of(k, me.t);
            const float factor = ptx::exp2_approx(unit[k] - r.unit[k]);
            r.sum[k] = fmaf(fmaf(v[2 * i], by.a[0], v[2 * i + 1] * by.a[1]), factor, r.sum[k]);
            if (stores)
                s.factor[2 * (turn & 1) + page][row] = factor;
        }
        packed[j] = ptx::pack_e4m3x4(v[0], v[1], v[2], v[3]);
    }
}

/* The rest of few_tile(): computes P of a tile's pages, each in a unit of its own, and publishes
 * it. */
template <int Pages, int Rows>
__device__ __forceinline__ void
finish_page_units(shared_of<Rows> &s, const softmax_thread &me, uint32_t turn, few_rows<Rows> &r,
                  few_scores<Rows> (&score)[Pages], few_scales (&by)[Pages], bool first) {
    const int buffer = turn & 1;
    uint32_t packed[2][Rows / 8] = {};
    few_changes changes = {0, 0};
    /* s.few.tops holds, for each row, the largest y that each warp has found. Even and odd tiles
     * use one half of it each, because other warps may still read what the tile before stored. */
#pragma unroll
    for (int page = 0; page < Pages; page++)
        take_logs(s.few.tops[2 * buffer + page], me, r, by[page], score[page]);
    ptx::named_sync(kSoftmaxBarrier, 128);
    ptx::mbarrier_wait(&s.empty_p[buffer], ((turn >> 1) & 1) ^ 1);
#pragma unroll
    for (int page = 0; page < Pages; page++) {
        float unit[Rows / 4];
        const few_changes more = choose_page_units(s.few.tops[2 * buffer + page], me, r, unit);
        if (page > 0 && more.any && me.index() < 4)
#pragma unroll
            for (int k = 0; k < Rows / 4; k++)
                if (more.any >> few_rows<Rows>::row_of(k, 0) & 1)
                    s.factor[2 * buffer][few_rows<Rows>::row_of(k, me.t)] *=
                        more.clear >> few_rows<Rows>::row_of(k, 0) & 1 ? 0 : kShiftFactor;
        /* If both pages raise B of a row, O would be multiplied by 2^-(2 kShift), which counts as
         * zero. */
        changes.clear |= more.clear | (changes.any & more.any);
        changes.any |= more.any;
        page_probabilities(s, me, turn, page, r, score[page], by[page], unit, packed[page]);
    }
    store_p<Pages>(s, me, buffer, packed);
    changes.any = __reduce_or_sync(~0u, changes.any << 2 * me.t);
    changes.clear = __reduce_or_sync(~0u, changes.clear << 2 * me.t);
    if (me.index() == 0) {
        s.rescale[buffer].x = first ? 0 : static_cast<int>(changes.any);
        s.rescale[buffer].y = static_cast<int>(changes.clear);
    }
    if (me.index() < 4)
#pragma unroll
        for (int k = 0; k < Rows / 4; k++)
            s.few.unit[1][few_rows<Rows>::row_of(k, me.t)] = r.unit[k];
    ptx::fence_proxy_async();
    ptx::mbarrier_arrive(&s.full_p[buffer]);
}

/* Processes a tile of one or two pages. @loaded: number of pages before the tile. @valid: how many
 * tokens the sequence has from the tile's first token on. */
template <int Pages, int Rows>
__device__ __forceinline__ void few_tile(shared_of<Rows> &s, const params &p,
                                         const softmax_thread &me, few_rows<Rows> &r,
                                         const ring<kStages> &at, uint32_t loaded, uint32_t turn,
                                         int valid, bool first, bool more) {
    enum { ROPE_STAGES = shared_of<Rows>::kRopeStages };
    const int buffer = turn & 1;
    few_scores<Rows> score[Pages];
    few_scales by[Pages];
    ptx::mbarrier_wait(&s.full[at.stage], at.parity);
    start_scores(s, p, at.stage, loaded % ROPE_STAGES, score[0]);
    ptx::mbarrier_wait(&s.full_scales[buffer], (turn >> 1) & 1);
#pragma unroll
    for (int page = 0; page < Pages; page++)
        by[page].read(s.scales[buffer], page, me.warp, me.g);
    ptx::mbarrier_arrive(&s.empty_scales[buffer]);
    if constexpr (Pages == 2) {
        const ring<kStages> second = at.next();
        ptx::mbarrier_wait(&s.full[second.stage], second.parity);
        start_scores(s, p, second.stage, (loaded + 1) % ROPE_STAGES, score[1]);
    }
    if (valid < Pages * PAGE)
        clear_tail(s, at.next(Pages - 1).stage, me.index(), valid - (Pages - 1) * PAGE);
    ptx::wgmma_wait<0>();
#pragma unroll
    for (int page = 0; page < Pages; page++)
        ptx::pin(score[page].s);
    __syncwarp();
    if (me.lane == 0) {
#pragma unroll
        for (int page = 0; page < Pages; page++) {
            ptx::mbarrier_arrive(&s.empty[at.next(page).stage]);
            ptx::mbarrier_arrive(&s.empty_rope[(loaded + page) % ROPE_STAGES]);
        }
        if (!more)
            ptx::mbarrier_arrive(&s.empty_q);
    }
#pragma unroll
    for (int page = 0; page < Pages; page++) {
#pragma unroll
        for (int i = 0; i < Rows / 2; i++)
            score[page].s[i] *= by[page].a[i / 2 % 2];
        if (valid - (p.s_q - 1) < PAGE * (page + 1))
            mask(s, me, valid - PAGE * page, score[page]);
    }
    if constexpr (kPageUnits) {
        finish_page_units<Pages>(s, me, turn, r, score, by, first);
        return;
    }
    const bool change = first || !units_serve(s, p, me, turn, r, score, by);
    const bool begins = Rows == 16 && first;
    if (begins)
        begin_units(s, me, r, score, by);
    else if (change)
        choose_units(s, p, me, turn, r, score, by, first);
    uint32_t packed[2][Rows / 8] = {};
    exponentiate(by[0], r, score[0], packed[0]);
    float last[Rows / 4];
    if (begins)
        begun_units<Pages>(s, me, r, last);
    if constexpr (Pages == 2) {
        if (change && !begins)
            units_of(s.few.unit[1], me, r, last);
        if (change)
            raise_units(last, r, packed[0]);
        exponentiate(by[1], r, score[1], packed[1]);
    }
    ptx::mbarrier_wait(&s.empty_p[buffer], ((turn >> 1) & 1) ^ 1);
    store_p<Pages>(s, me, buffer, packed);
    if (me.index() == 0)
        s.rescale[buffer].x = change && !first;
    ptx::fence_proxy_async();
    ptx::mbarrier_arrive(&s.full_p[buffer]);
}

/* Publishes the sums to the output groups first, then stores the log-sum-exp. */
template <int Rows>
__device__ __forceinline__ void finish_few(shared_of<Rows> &s, const params &p,
                                           const softmax_thread &me, const sched_item &item,
                                           few_rows<Rows> &r, uint32_t parity) {
    ptx::mbarrier_wait(&s.empty_sum, parity);
    over_warp(s.few.sums, me, r.sum, [](float x, float y) { return x + y; });
    ptx::mbarrier_arrive(&s.full_sum);
    ptx::named_sync(kSoftmaxBarrier, 128);
    const int row = me.index() % Rows, first = me.index() / Rows;
    const int apart =
        merging::copies_apart<partial_format>(mergers_of(item), partial_format::unit(p.rows));
    const float sum = sum_of(s.few.sums[row]);
    const float log2_sum = sum == 0 ? -INFINITY : s.few.unit[1][row] + log2f(sum);
    if (row >= p.rows)
        return;
    if (item.slot >= 0)
#pragma unroll
        for (int copy = first; copy < partial_format::ROW_UNITS; copy += 128 / Rows)
            partials_of_tile(p).store_lse((copy & (apart - 1)) == 0, item.slot,
                                          partial_format::unit(row, copy), log2_sum);
    else if (first == 0 && p.io.lse)
        p.io.lse[static_cast<size_t>(row_block(p, item.seq)) * p.rows + row] =
            log2_sum * 0.69314718f;
}

template <int Rows>
__device__ __forceinline__ void run_softmax(shared_of<Rows> &s, const params &p) {
    const softmax_thread me;
    ring<kStages> at;
    uint32_t turn = 0, loaded = 0, q_parity = 0; /* turn: tiles so far; loaded: pages so far */

    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        few_rows<Rows> r(p, row_block(p, item.seq), me.t);
        if (me.index() < Rows)
            s.few.later[me.index()] = tokens_later(p, blockIdx.x * p.rows + me.index());
        ptx::named_sync(kSoftmaxBarrier, 128); /* all threads have read the previous item's sums and
                                                  units */
        if (item.tile_begin < item.tile_end) {
            ptx::mbarrier_wait(&s.full_q, q_parity);
            q_parity ^= 1;
        }
        const int end = item.tile_end;
        int page = item.tile_begin;
#pragma unroll 1
        for (; page + 1 < end; page += 2, loaded += 2, turn++, at.advance(2))
            few_tile<2>(s, p, me, r, at, loaded, turn, item.tokens - page * PAGE,
                        page == item.tile_begin, page + 2 < end);
        if (page < end) {
            few_tile<1>(s, p, me, r, at, loaded, turn, item.tokens - page * PAGE,
                        page == item.tile_begin, false);
            loaded++;
            turn++;
            at.advance();
        }
        finish_few(s, p, me, item, r, ((k - s.part.first) & 1) ^ 1);
    }
    make_few_weights(s, p, me.index());
}

} // namespace sm90_fp8
