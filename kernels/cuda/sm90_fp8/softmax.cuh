/* softmax.cuh - the softmax warpgroup: scores of a tile, and its probabilities as e4m3.
 *
 * Per row, y_j = log2 P'_j where P' = P a_k is what multiplies c8; P8_j = e4m3(2^(y_j - E)). Where E is
 * set, the largest P' becomes a number of e4m3: what dominates the row isn't rounded. The sum of P
 * is taken from unrounded values.
 *
 * A tile's two pages have a set of accumulators each: while one page is exponentiated, the tensor
 * cores compute the scores of the other. Page 0 chooses E of the tile; where page 1 turns out larger,
 * which is rare with the headroom, E is raised and the P of page 0 brought along.
 *
 *   softmax   y0  E  exp 0 | y1  E  exp 1 | y0' E' exp 0' |
 *   tensor    S1           | S0'          | S1'                                                    */
#pragma once
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/cuda/sm90_fp8/pipeline.cuh"

namespace sm90_fp8 {

/* Where a thread stands. Its rows are 16 warp + g and the row 8 further. */
struct softmax_thread {
    int warp, lane, g, t;

    __device__ softmax_thread()
        : warp((threadIdx.x >> 5) & 3), lane(ptx::lane()), g(lane >> 2), t(lane & 3) {
    }
    __device__ int row() const {
        return 16 * warp + g;
    }
    __device__ int index() const {
        return threadIdx.x & 127;
    }
    /* Where its stmatrix puts the first 16 bytes of a row of P. Computed at each use: kept, it spills. */
    __device__ uint32_t p_address(const shared &s, int buffer) const {
        const int l = ptx::opaque(lane), row = 16 * warp + (l & 15);
        return ptx::smem_addr(s.p[buffer][row]) + 16 * ((l >> 4) ^ (row & 7));
    }
    /* One arrival a warp, after all its lanes have got here. */
    __device__ void arrive(uint64_t *bar) const {
        __syncwarp();
        if (lane == 0)
            ptx::mbarrier_arrive(bar);
    }
};

/* What a thread knows of its two rows. */
struct row_pair {
    float scale[2];      /* a_q x softmax scale x log2(e) */
    uint32_t rope[4][4]; /* RoPE queries, the A fragments of four k-steps */
    float unit[2];       /* E */
    float sum[2];        /* of P, in units of 2^E */
};

__device__ __forceinline__ void load_rows(row_pair &r, const params &p, int seq, int row, int t) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const bool real = row + 8 * i < p.rows;
        const size_t at = static_cast<size_t>(seq) * p.rows + (real ? row + 8 * i : 0);
        const auto *rope = reinterpret_cast<const uint32_t *>(p.q_rope + at * (2 * ROPE));
        r.scale[i] = real ? __ldg(p.q_scale + at) * p.scale_log2 : 0;
        r.unit[i] = kNone;
        r.sum[i] = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            r.rope[k][i] = real ? __ldg(rope + 8 * k + t) : 0;
            r.rope[k][i + 2] = real ? __ldg(rope + 8 * k + t + 4) : 0;
        }
    }
}

/* S = Q K^T of a page on its way: content in fp8 first, then RoPE, whose large products would push the
 * content below the precision of the fp8 sums. Issued in quarters: the tensor cores take a product
 * about as fast as they compute it, so a thread that issues all of them at once does nothing else for
 * 500 clocks. */
struct score_job {
    uint32_t q, k, rope;

    __device__ score_job(shared &s, int stage, int rope_stage)
        : q(ptx::descriptor_low_128(ptx::smem_addr(s.q))),
          k(ptx::descriptor_low_128(ptx::smem_addr(s.content[stage]))),
          rope(ptx::descriptor_low_128(ptx::smem_addr(s.rope[rope_stage]))) {
    }
    template <int Quarter>
    __device__ __forceinline__ void issue(const row_pair &r, float (&score)[32]) const {
        enum { STEPS = CONTENT / 32 / 4 };
        if (Quarter == 0)
            ptx::wgmma_fence();
#pragma unroll
        for (int i = Quarter * STEPS; i < (Quarter + 1) * STEPS; i++) {
            const int step = i / 4 * (ROWS * SWIZZLE / 16) + i % 4 * 2;
            ptx::wgmma_ss_e4m3_n64(score, ptx::descriptor_128(q + step),
                                   ptx::descriptor_128(k + step), i > 0);
        }
        if (Quarter == 3) {
#pragma unroll
            for (int i = 0; i < ROPE / 16; i++)
                ptx::wgmma_rs_bf16_n64(score, r.rope[i], ptx::descriptor_128(rope + 2 * i), true);
            ptx::wgmma_commit();
        }
    }
    __device__ __forceinline__ void issue_all(const row_pair &r, float (&score)[32]) const {
        issue<0>(r, score);
        issue<1>(r, score);
        issue<2>(r, score);
        issue<3>(r, score);
    }
};

/* V of tokens past the end may be NaN, and 0 x NaN is NaN: their content becomes zero. */
__device__ __forceinline__ void clear_tail(shared &s, int stage, int index, int valid) {
    if (valid >= PAGE)
        return;
    valid = max(valid, 0);
    const int chunks = SWIZZLE / 16 * (PAGE - valid);
#pragma unroll 1
    for (int column = 0; column < COLUMNS; column++) {
        auto *from = reinterpret_cast<uint4 *>(s.content[stage][column][valid]);
#pragma unroll 1
        for (int i = index; i < chunks; i += 128)
            from[i] = make_uint4(0, 0, 0, 0);
    }
}

/* The last tile; `second` is the stage of its second page. */
__device__ __forceinline__ void clear_tile(shared &s, int second, int index, int valid) {
    ptx::named_sync(1, 128); /* every warp's S is computed */
    clear_tail(s, second == 0 ? kStages - 1 : second - 1, index, valid);
    clear_tail(s, second, index, valid - PAGE);
}

__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

/* a_k of the tokens of a page that a thread has, in registers: read while the scores are computed,
 * because a read of shared memory under this load takes about 90 clocks. */
struct page_scales {
    float2 pair[8];
    float log_most; /* log2 of the largest of the page */

    __device__ __forceinline__ void read(const tile_scales &tile, int page, int t) {
        const float2 *from = tile.pair + page * (PAGE / 2) + t;
#pragma unroll
        for (int j = 0; j < 8; j++)
            pair[j] = ptx::load_shared_v2(from + 4 * j);
        log_most = tile.log_most[page];
    }
    /* Scores of a page times a_k, in place. */
    __device__ __forceinline__ void apply(float (&score)[32]) const {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            score[4 * j] *= pair[j].x;
            score[4 * j + 1] *= pair[j].y;
            score[4 * j + 2] *= pair[j].x;
            score[4 * j + 3] *= pair[j].y;
        }
    }
};

/* @valid: tokens of the sequence from the page's first on. */
__device__ __forceinline__ void mask(const params &p, int valid, int row, int t,
                                     float (&score)[32]) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int later = p.s_q - 1 - min((row + 8 * r) / p.heads, p.s_q - 1);
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (8 * j + 2 * t + i >= valid - later)
                    score[4 * j + 2 * r + i] = -INFINITY;
    }
}

/* Does a unit serve the four lanes' largest y of a row: one in the window, none above? */
__device__ __forceinline__ bool serves(float unit, float largest) {
    const uint32_t inside = __ballot_sync(~0u, largest > unit - kWindow);
    const uint32_t pairs = inside | inside >> 1, quads = pairs | pairs >> 2;
    return (quads & 0x11111111) == 0x11111111 && !__any_sync(~0u, largest > unit);
}

/* A bound of y over a thread's part of its two rows, in units of the largest e4m3: the largest score
 * and the largest a_k may be of two tokens. */
struct row_tops {
    float top[2];

    __device__ row_tops(const float (&score)[32], const row_pair &r, float log_most) {
        float largest[4] = {score[0], score[1], score[2], score[3]};
#pragma unroll
        for (int i = 4; i < 32; i++) /* even and odd columns apart halves the chains */
            largest[i % 4] = fmaxf(largest[i % 4], score[i]);
        top[0] = fmaf(fmaxf(largest[0], largest[1]), r.scale[0], log_most - kLog2Largest);
        top[1] = fmaf(fmaxf(largest[2], largest[3]), r.scale[1], log_most - kLog2Largest);
    }
};

/* The unit in which row i's largest P of a page is kHeadroom below the largest e4m3. */
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

/* Row i goes to another unit, of which O's factor is kept for the output groups. @again: it has gone to
 * one in this tile before. */
__device__ __forceinline__ float change_unit(shared &s, const softmax_thread &me, uint32_t turn,
                                             row_pair &r, int i, float unit, bool again) {
    const float shift = r.unit[i] - unit, factor = ptx::exp2_approx(shift);
    const int row = ptx::opaque(me.row()) + 8 * i;
    r.unit[i] = unit;
    r.sum[i] *= factor;
    __syncwarp(); /* the four have read most_unit */
    if (me.t == 0) {
        float &by = s.rescale_by[turn % kFactors][row];
        by = again ? by * factor : factor;
        s.most_unit[row] = fmaxf(s.most_unit[row], unit);
    }
    return shift;
}

/* Page 0 chooses the tile's units. Returns whether any row's of the warp may have changed. A row without
 * any token keeps its own. */
__device__ __forceinline__ bool choose_units(shared &s, const softmax_thread &me, uint32_t turn,
                                             row_pair &r, const row_tops &tops,
                                             const page_scales &a, const float (&score)[32]) {
    if (serves(r.unit[0], tops.top[0]) & serves(r.unit[1], tops.top[1]))
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

/* Brings the warp's 16 rows of page 0's P to a unit that page 1 has raised: a lane has half of a row's
 * 64 bytes. @address: of the warp's first row. */
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

/* Page 1 may only raise them, and takes page 0's P along. @again: page 0 has chosen new ones. */
__device__ __forceinline__ bool raise_units(shared &s, const softmax_thread &me, uint32_t turn,
                                            row_pair &r, const row_tops &tops, const page_scales &a,
                                            const float (&score)[32], bool again) {
    if (!__any_sync(~0u, tops.top[0] > r.unit[0] || tops.top[1] > r.unit[1]))
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

/* Probabilities of a page, to the lane's first 16 bytes of its half of P and those two further. The four bytes of a word are in the order in which
 * V^T fragments come out of ldmatrix. */
template <typename Between>
__device__ __forceinline__ void exponentiate(const page_scales &a, row_pair &r,
                                             const float (&score)[32], uint32_t to,
                                             Between between) {
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
                v[i] = ptx::exp2_approx(fmaf(score[4 * j + i % 4], r.scale[row], -r.unit[row]));
                sum[row][i % 2] += v[i];
                v[i] *= i % 2 ? a.pair[j].y : a.pair[j].x;
            }
            packed[2 * block] = ptx::pack_e4m3x4(v[0], v[1], v[4], v[5]);
            packed[2 * block + 1] = ptx::pack_e4m3x4(v[2], v[3], v[6], v[7]);
            if (half == 0 && block == 0)
                between();
        }
        ptx::stmatrix_x4(to ^ 32 * half, packed[0], packed[1], packed[2], packed[3]);
    }
    r.sum[0] += sum[0][0] + sum[0][1];
    r.sum[1] += sum[1][0] + sum[1][1];
}

/* Hands a tile over to the output groups: P is written. @rescale: some row has changed its unit. */
__device__ __forceinline__ void publish_tile(shared &s, const softmax_thread &me, int buffer,
                                             bool rescale) {
    if (me.lane == 0)
        (&s.rescale[buffer].x)[me.warp] = rescale;
    ptx::fence_proxy_async();
    ptx::mbarrier_arrive(&s.full_p[buffer]);
}

/* The factor that brings O to the output, and the logarithm of the sum. */
__device__ __forceinline__ void finish_rows(shared &s, const params &p, const softmax_thread &me,
                                            int k, const row_pair &r, int first_row,
                                            uint32_t parity) {
    const sched_item item = item_at(s, p, k);
    const float sum[2] = {quad_sum(r.sum[0]), quad_sum(r.sum[1])};
    ptx::mbarrier_wait(&s.empty_sum, parity);
    if (me.t == 0) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = ptx::opaque(me.row()) + 8 * i;
            const float log2_sum = sum[i] == 0 ? -INFINITY : r.unit[i] + log2f(sum[i]);
            s.inverse_sum[row] = sum[i] == 0 ? 0 : 1 / sum[i];
            if (first_row + row >= p.rows)
                continue;
            if (item.slot >= 0)
                p.partial_lse[static_cast<size_t>(item.slot) * p.rows + first_row + row] = log2_sum;
            else if (p.lse)
                p.lse[static_cast<size_t>(item.seq) * p.rows + first_row + row] =
                    log2_sum * 0.69314718f;
        }
    }
    ptx::mbarrier_arrive(&s.full_sum);
}

__device__ __forceinline__ void run_softmax(shared &s, const params &p, int row_tile) {
    const softmax_thread me;
    ring<kStages> at;
    uint32_t turn = 0, q_parity = 0; /* tiles so far */

    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        const int length = item.tokens, begin = item.tile_begin, end = item.tile_end;
        row_pair r;
        load_rows(r, p, item.seq, row_tile * ROWS + me.row(), me.t);
        if (begin < end) {
            float score0[32], score1[32];
            page_scales scaling;
            if (me.t == 0)
                s.most_unit[me.row()] = s.most_unit[me.row() + 8] = kNone;
            __syncwarp();
            ptx::mbarrier_wait(&s.full_q, q_parity);
            q_parity ^= 1;
            ptx::mbarrier_wait(&s.full[at.stage], at.parity);
            score_job(s, at.stage, 0).issue_all(r, score0);
#pragma unroll 1
            for (int tile = begin;; tile++, turn++) {
                const int buffer = turn & 1;
                const int valid = length - tile * TILE;
                const bool more = tile + 1 < end;
                const ring<kStages> second = at.next();
                ptx::mbarrier_wait(&s.full_scales[buffer], (turn >> 1) & 1);
                ptx::mbarrier_peek page(&s.full[second.stage], second.parity);
                scaling.read(s.scales[buffer], 0, me.t);
                ptx::wgmma_wait<0>();
                ptx::pin(score0);
                me.arrive(&s.empty_rope[0]);
                page.wait();
                const score_job next(s, second.stage, 1);
                next.issue<0>(r, score1);
                scaling.apply(score0);
                next.issue<1>(r, score1);
                if (valid - (p.s_q - 1) < PAGE)
                    mask(p, valid, row_tile * ROWS + me.row(), me.t, score0);
                bool change = choose_units(s, me, turn, r, row_tops(score0, r, scaling.log_most),
                                           scaling, score0);
                next.issue<2>(r, score1);
                ptx::mbarrier_wait(&s.empty_p[buffer], ((turn >> 1) & 1) ^ 1);
                exponentiate(scaling, r, score0, me.p_address(s, buffer),
                             [&] { next.issue<3>(r, score1); });

                at.advance(2);
                page = ptx::mbarrier_peek(&s.full[at.stage], at.parity);
                scaling.read(s.scales[buffer], 1, me.t);
                ptx::wgmma_wait<0>();
                ptx::pin(score1);
                ptx::mbarrier_arrive(&s.empty_scales[buffer]);
                __syncwarp();
                if (me.lane == 0) {
                    ptx::mbarrier_arrive(&s.empty_rope[1]);
                    if (!more)
                        ptx::mbarrier_arrive(&s.empty_q);
                }
                if (valid < TILE)
                    clear_tile(s, second.stage, me.index(), valid);
                if (more)
                    page.wait();
                const score_job after(s, at.stage, 0); /* without a next tile: of no use */
                after.issue<0>(r, score0);
                scaling.apply(score1);
                after.issue<1>(r, score0);
                if (valid - (p.s_q - 1) < TILE)
                    mask(p, valid - PAGE, row_tile * ROWS + me.row(), me.t, score1);
                change |= raise_units(s, me, turn, r, row_tops(score1, r, scaling.log_most),
                                      scaling, score1, change);
                after.issue<2>(r, score0);
                exponentiate(scaling, r, score1, me.p_address(s, buffer) ^ 64, [] {});
                publish_tile(s, me, buffer, change && tile > begin);
                /* Takes as long as the tensor cores do: P doesn't wait for it. */
                after.issue<3>(r, score0);
                if (!more)
                    break;
            }
            ptx::wgmma_wait<0>();
            ptx::pin(score0);
            turn++;
        }
        finish_rows(s, p, me, k, r, row_tile * ROWS, ((k - s.part.first) & 1) ^ 1);
    }
}

} // namespace sm90_fp8
