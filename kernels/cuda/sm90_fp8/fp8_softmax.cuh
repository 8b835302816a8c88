/* fp8_softmax.cuh - the softmax warpgroup of the kernel for 64 rows: computes the scores of a tile,
 * and P as e4m3.
 *
 * For each row, y_j = log2 P'_j, where P' = P a_k is the factor of c8 in the output. P8_j =
 * e4m3(2^(y_j - E)). When a page sets E, its largest P' normally becomes an exact e4m3 number, so a
 * token that dominates the row is not rounded. The sum of P is computed from unrounded values.
 *
 * The two pages of a tile have separate accumulators: while one page is exponentiated, the tensor
 * cores compute the scores of the page after it. Page 0 chooses E of the tile. If page 1 has P' too
 * large for E in spite of the headroom, E is raised and P of page 0 is rescaled.
 *
 *   softmax   y0  E  exp 0 | y1  E  exp 1 | y0' E' exp 0' |
 *   tensor    S1           | S0'          | S1' */
#pragma once
#include "kernels/cuda/merge/fp8_merge.cuh"
#include "kernels/cuda/sm90_fp8/fp8_page_units.cuh"

namespace sm90_fp8 {

using tile_units = std::conditional_t<kPageUnits, page_units, kept_units>;

/* Computes the probabilities of a page and stores them in shared memory: at @to, and two swizzled
 * 16-byte chunks further, at @to ^ 32. The order of the four bytes in a word is that in which
 * ldmatrix delivers V^T. Returns the sums of P in @sums. @between: called after each quarter. */
template <typename Between>
__device__ __forceinline__ void exponentiate(const tile_units &units, const page_scales &a,
                                             const row_pair &r, const float (&score)[32],
                                             uint32_t to, float (&sums)[2], Between between) {
    float sum[2][2] = {{0, 0}, {0, 0}};
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t packed[4];
#pragma unroll
        for (int block = 0; block < 2; block++) {
            float v[8];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const int j = 4 * half + 2 * block + i / 4, row = i / 2 % 2;
                v[i] = ptx::exp2_approx(units.exponent(r, score[4 * j + i % 4], row));
                if constexpr (!kPageUnits) { /* v is P */
                    sum[row][i % 2] += v[i];
                    v[i] *= i % 2 ? a.pair[j].y : a.pair[j].x;
                } else { /* v is P a_k, the pairs are 1 / a_k */
                    sum[row][i % 2] =
                        fmaf(v[i], i % 2 ? a.pair[j].y : a.pair[j].x, sum[row][i % 2]);
                }
            }
            packed[2 * block] = ptx::pack_e4m3x4(v[0], v[1], v[4], v[5]);
            packed[2 * block + 1] = ptx::pack_e4m3x4(v[2], v[3], v[6], v[7]);
            between(2 * half + block);
        }
        ptx::stmatrix_x4(to ^ 32 * half, packed[0], packed[1], packed[2], packed[3]);
    }
    sums[0] = sum[0][0] + sum[0][1];
    sums[1] = sum[1][0] + sum[1][1];
}

/* Publishes a tile to the output groups, after P is written. @rescale: tile_units::changed(). */
__device__ __forceinline__ void publish_tile(shared &s, const softmax_thread &me, int buffer,
                                             int rescale) {
    if (me.lane == 0)
        (&s.rescale[buffer].x)[me.warp] = rescale;
    ptx::fence_proxy_async();
    ptx::mbarrier_arrive(&s.full_p[buffer]);
}

/* Computes the final factor for O and the log-sum-exp of item k of the part, and stores them. */
__device__ __forceinline__ void finish_rows(shared &s, const params &p, const softmax_thread &me,
                                            int k, const row_pair &r, int first_row,
                                            uint32_t parity) {
    const sched_item item = item_at(s, p, k);
    const float sum[2] = {quad_sum(r.sum[0]), quad_sum(r.sum[1])};
    ptx::mbarrier_wait(&s.empty_sum, parity);
    const int row = ptx::opaque(me.row()) + 8 * me.t;
    if (me.t < 2) { /* one lane per row */
        const float mine = me.t == 0 ? sum[0] : sum[1], unit = me.t == 0 ? r.unit[0] : r.unit[1];
        const float log2_sum = unit + __log2f(mine);
        s.inverse_sum[row] = mine == 0 ? 0 : ptx::rcp_approx(mine);
        if (first_row + row < p.rows && item.slot >= 0)
            p.partial_lse[static_cast<size_t>(item.slot) * p.rows + first_row + row] = log2_sum;
        else if (first_row + row < p.rows && p.io.lse)
            p.io.lse[static_cast<size_t>(item.seq) * p.rows + first_row + row] =
                log2_sum * 0.69314718f;
    }
    ptx::mbarrier_arrive(&s.full_sum);
}

/* Computes the softmax of a tile of two pages. On entry, the products S = Q K^T of the tile's first
 * page have been issued. On return, those of the next tile's first page have been issued (if there
 * is none, products that nothing uses).
 *
 * @valid: number of tokens of the sequence, counted from the first token of this tile.
 * @whole: there is a next tile, and no token of this tile needs a mask.
 * @first: this is the first tile of an item.
 * @more: there is a next tile.
 * @scales_here: on entry, whether the scales of this tile are known to have arrived. On return, the
 *               same for the next tile.
 *
 * One branch per page skips the rare work: masks and a change of E, the exponent of the unit of P.
 * A second loop for tiles without rare work would not fit into the first 64 KB of code, the only
 * part that a launch prefetches. */
__device__ __forceinline__ void softmax_tile(shared &s, const params &p, const softmax_thread &me,
                                             row_pair &r, ring<kStages> &at, uint32_t turn,
                                             int row_tile, int valid, bool whole, bool first,
                                             bool more, bool &scales_here, float (&score0)[32],
                                             float (&score1)[32]) {
    page_scales scaling;
    tile_units units;
    float sums[2];
    const int buffer = turn & 1;
    const ring<kStages> second = at.next();
    if (!scales_here)
        ptx::mbarrier_wait(&s.full_scales[buffer], (turn >> 1) & 1);
    scaling.read(s.scales[buffer], 0, me.t);
    units.prepare(scaling);
    ptx::wgmma_wait<0>();
    ptx::pin(score0);
    me.arrive(&s.empty_rope[0]);
    units.scale(scaling, r, score0);
    ptx::mbarrier_peek page(&s.full[second.stage], second.parity);
    const ptx::mbarrier_peek room(&s.empty_p[buffer], ((turn >> 1) & 1) ^ 1);
    const score_job next(s, p, second.stage, 1);
    units.first(s, me, turn, r, scaling, score0, whole,
                [&] { mask(p, valid, row_tile * ROWS + me.row(), me.t, score0); });
    /* The second page uses the stage that becomes free last, so it arrives last and its S cannot
     * start earlier. */
    page.wait();
    next.issue<0>(r, score1);
    next.issue<1>(r, score1);
    room.wait();
    const uint32_t to = me.p_address(s, buffer);
    exponentiate(units, scaling, r, score0, to, sums, [&](int step) {
        if (step == 0)
            next.issue<2>(r, score1);
        if (step == 1)
            next.issue<3>(r, score1);
    });
    units.add(s, me, turn, r, sums, 0);

    at.advance(2);
    page = ptx::mbarrier_peek(&s.full[at.stage], at.parity);
    scaling.read(s.scales[buffer], 1, me.t);
    units.prepare(scaling);
    const score_job after(s, p, at.stage, 0); /* its products are not used if there is no next
                                                 tile */
    ptx::wgmma_wait<0>();
    ptx::pin(score1);
    ptx::mbarrier_arrive(&s.empty_scales[buffer]);
    __syncwarp();
    if (me.lane == 0)
        ptx::mbarrier_arrive(&s.empty_rope[1]);
    if (more)
        page.wait();
    after.issue<0>(r, score0);
    units.scale(scaling, r, score1);
    after.issue<1>(r, score0);
    units.second(s, me, turn, r, scaling, score1, whole, [&] {
        if (!more && me.lane == 0)
            ptx::mbarrier_arrive(&s.empty_q);
        if (valid < TILE)
            clear_tile(s, second.stage, me.index(), valid);
        mask(p, valid - PAGE, row_tile * ROWS + me.row(), me.t, score1);
    });
    after.issue<2>(r, score0);
    exponentiate(units, scaling, r, score1, to ^ 64, sums, [](int) {});
    units.add(s, me, turn, r, sums, 1);
    publish_tile(s, me, buffer, units.changed(first));
    scales_here = ptx::mbarrier_test(&s.full_scales[buffer ^ 1], ((turn + 1) >> 1) & 1);
    /* Issuing takes as long as the computation. It comes last, so that P does not wait for it. */
    after.issue<3>(r, score0);
}

__device__ __forceinline__ void run_softmax(shared &s, const params &p, int row_tile) {
    const softmax_thread me;
    ring<kStages> at;
    uint32_t turn = 0, q_parity = 0; /* turn: tiles so far */

    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        const int length = item.tokens, begin = item.tile_begin, end = item.tile_end;
        row_pair r;
        load_rows(r, p, item.seq, row_tile * ROWS + me.row(), me.t);
        if (begin < end) {
            float score0[32], score1[32];
            bool scales_here = false;
            tile_units::begin_item(s, me);
            ptx::mbarrier_wait(&s.full_q, q_parity);
            q_parity ^= 1;
            ptx::mbarrier_wait(&s.full[at.stage], at.parity);
            score_job(s, p, at.stage, 0).issue_all(r, score0);
            int tile = begin;
#pragma unroll 1
            for (;; tile++, turn++) {
                const int valid = length - tile * TILE;
                const bool more = tile + 1 < end;
                softmax_tile(s, p, me, r, at, turn, row_tile, valid,
                             more && valid - (p.s_q - 1) >= TILE, tile == begin, more, scales_here,
                             score0, score1);
                if (!more)
                    break;
            }
            ptx::wgmma_wait<0>();
            ptx::pin(score0);
            turn++;
        }
        finish_rows(s, p, me, k, r, row_tile * ROWS, ((k - s.part.first) & 1) ^ 1);
    }
    make_part_weights(s, p, row_tile, me.index());
}

} // namespace sm90_fp8
