/* softmax.cuh - a softmax group: scores of its tiles, and their probabilities as e4m3.
 *
 * Per row, y_j = log2(P_j a_k,j) + m is what P' = P a_k is in base 2; P8_j = e4m3(2^(y_j - E)) with an
 * integer E, so rounding does not depend on E. The sum of P is taken from the unrounded values. */
#pragma once
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/cuda/sm90_fp8/pipeline.cuh"

namespace sm90_fp8 {

/* Where a thread stands in its group. Its rows are 16 warp + g and the row 8 further. */
struct softmax_thread {
    int group, warp, lane, g, t;

    __device__ explicit softmax_thread(int group)
        : group(group), warp((threadIdx.x >> 5) & 3), lane(threadIdx.x & 31),
          g((threadIdx.x & 31) >> 2), t(threadIdx.x & 3) {
    }
    __device__ int row() const {
        return 16 * warp + g;
    }
    __device__ int index() const {
        return threadIdx.x & 127;
    }
};

/* Starts S = Q K^T: content in fp8 first, then RoPE, whose large products would push the content
 * below the precision of the fp8 sums. */
__device__ __forceinline__ void start_scores(shared &s, int group, int stage, uint32_t rope_parity,
                                             float (&score)[32]) {
    const uint64_t q = ptx::descriptor_128(ptx::smem_addr(s.q));
    const uint64_t q_rope = ptx::descriptor_128(ptx::smem_addr(s.q_rope));
    const uint64_t k = ptx::descriptor_128(ptx::smem_addr(s.content[stage]));
    const uint64_t k_rope = ptx::descriptor_128(ptx::smem_addr(s.rope[group]));
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < CONTENT / 32; i++) {
        const int step = i / 4 * (ROWS * SWIZZLE / 16) + i % 4 * 2;
        ptx::wgmma_ss_e4m3_n64(score, q + step, k + step, i > 0);
    }
    ptx::wgmma_commit();
    ptx::mbarrier_wait(&s.full_rope[group], rope_parity);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < ROPE / 16; i++)
        ptx::wgmma_ss_bf16_n64(score, q_rope + 2 * i, k_rope + 2 * i, true);
    ptx::wgmma_commit();
}

/* V of tokens past the end may be NaN, and 0 x NaN is NaN: their content becomes zero. */
__device__ __forceinline__ void clear_tail(shared &s, int stage, int index, int valid) {
    const int chunks = SWIZZLE / 16 * (TOKENS - valid);
    for (int column = 0; column < COLUMNS; column++) {
        auto *from = reinterpret_cast<uint4 *>(s.content[stage][column][valid]);
        for (int i = index; i < chunks; i += 128)
            from[i] = make_uint4(0, 0, 0, 0);
    }
}

/* The two rows of a thread. */
struct row_pair {
    float scale[2]; /* a_q x softmax scale x log2(e) */
    float unit[2];  /* E of the last tile of this group */
    float most[2];  /* the largest E of any tile so far */
    float sum[2];   /* of P, in units of 2^unit */
};

__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

/* y of every score, in place. */
__device__ __forceinline__ void apply_scales(const shared &s, int group, int t, const row_pair &r,
                                             float (&score)[32]) {
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const float4 pair = reinterpret_cast<const float4 *>(s.scales[group])[4 * j + t];
        score[4 * j] = fmaf(score[4 * j] * pair.x, r.scale[0], pair.z);
        score[4 * j + 1] = fmaf(score[4 * j + 1] * pair.y, r.scale[0], pair.w);
        score[4 * j + 2] = fmaf(score[4 * j + 2] * pair.x, r.scale[1], pair.z);
        score[4 * j + 3] = fmaf(score[4 * j + 3] * pair.y, r.scale[1], pair.w);
    }
}

/* @valid: tokens of the sequence from the tile's first on. */
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

/* A unit serves a tile whose largest P lies in its window; a tile without any is served by all. */
__device__ __forceinline__ bool serves(float unit, float largest) {
    return (largest <= unit && largest > unit - kWindow) || largest == -INFINITY;
}

__device__ __forceinline__ float next_unit(float before, float largest, float most) {
    const float unit = serves(before, largest) ? before : ceilf(largest) + kHeadroom;
    return fmaxf(unit, most - kReach);
}

/* Probabilities of 16 tokens, packed in the order in which V^T fragments come out of ldmatrix. */
__device__ __forceinline__ void exponentiate(const shared &s, int group, int t, int block,
                                             const float (&unit)[2], const float (&score)[32],
                                             float (&sum)[2], uint32_t (&packed)[2]) {
    float v[8];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int j = 2 * block + h;
        const float2 scale = *reinterpret_cast<const float2 *>(s.scales[group][4 * j + t].scale);
        const float2 inverse = {ptx::reciprocal_approx(scale.x), ptx::reciprocal_approx(scale.y)};
#pragma unroll
        for (int r = 0; r < 2; r++) {
            v[4 * h + 2 * r] = ptx::exp2_approx(score[4 * j + 2 * r] - unit[r]);
            v[4 * h + 2 * r + 1] = ptx::exp2_approx(score[4 * j + 2 * r + 1] - unit[r]);
            sum[r] = fmaf(v[4 * h + 2 * r], inverse.x, sum[r]);
            sum[r] = fmaf(v[4 * h + 2 * r + 1], inverse.y, sum[r]);
        }
    }
    packed[0] = ptx::pack_e4m3x4(v[0], v[1], v[4], v[5]);
    packed[1] = ptx::pack_e4m3x4(v[2], v[3], v[6], v[7]);
}

/* The unit of this tile, in turn: what the other group left for the tile before goes in, ours goes
 * out for the tile after. Returns whether any row of the warp changed its unit. */
__device__ __forceinline__ bool take_turn(shared &s, const softmax_thread &me, bool first_of_part,
                                          bool first, bool last, row_pair &r,
                                          const float (&score)[32], float (&before)[2],
                                          float (&now)[2]) {
    const int group = me.group, row = me.row();
    float largest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int i = 0; i < 32; i++)
        largest[i / 2 % 2] = fmaxf(largest[i / 2 % 2], score[i]);
    largest[0] = quad_max(largest[0]) - kLog2Largest;
    largest[1] = quad_max(largest[1]) - kLog2Largest;
    if (!first_of_part)
        ptx::named_sync(kBarTurn + 4 * group + me.warp, 64);
    before[0] = first ? kNone : s.unit[group ^ 1][row];
    before[1] = first ? kNone : s.unit[group ^ 1][row + 8];
    const bool change =
        __any_sync(~0u, !serves(before[0], largest[0]) || !serves(before[1], largest[1]));
#pragma unroll
    for (int i = 0; i < 2; i++) {
        now[i] = before[i];
        if (change) {
            now[i] = next_unit(before[i], largest[i], fmaxf(r.most[i], before[i]));
            r.most[i] = fmaxf(fmaxf(r.most[i], before[i]), now[i]);
        }
    }
    if (me.t == 0) {
        s.unit[group][row] = now[0];
        s.unit[group][row + 8] = now[1];
    }
    __syncwarp();
    if (!last)
        ptx::named_arrive(kBarTurn + 4 * (group ^ 1) + me.warp, 64);
    return change;
}

__device__ __forceinline__ void store_p(shared &s, const softmax_thread &me,
                                        const uint32_t (&packed)[4][2]) {
    const int row = 16 * me.warp + (me.lane & 15);
    const uint32_t address = ptx::smem_addr(s.p[row]);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int chunk = (4 * me.group + 2 * half + (me.lane >> 4)) ^ (row & 7);
        ptx::stmatrix_x4(address + 16 * chunk, packed[2 * half][0], packed[2 * half][1],
                         packed[2 * half + 1][0], packed[2 * half + 1][1]);
    }
}

/* One tile: from y to P in shared memory. @turn: how often this group has stored P. */
__device__ __forceinline__ void softmax_tile(shared &s, const softmax_thread &me, int turn,
                                             bool first_of_part, bool first, bool last, row_pair &r,
                                             float (&score)[32]) {
    float before[2], now[2], sum[2] = {0, 0};
    uint32_t packed[4][2];
    const bool change = take_turn(s, me, first_of_part, first, last, r, score, before, now);
#pragma unroll
    for (int block = 0; block < 4; block++)
        exponentiate(s, me.group, me.t, block, now, score, sum, packed[block]);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        r.sum[i] = fmaf(r.sum[i], ptx::exp2_approx(r.unit[i] - now[i]), sum[i]);
        r.unit[i] = now[i];
    }
    ptx::mbarrier_wait(&s.empty_p[me.group], (turn & 1) ^ 1);
    store_p(s, me, packed);
    const bool rescale = change && !first;
    if (me.lane == 0)
        (&s.rescale[me.group].x)[me.warp] = rescale;
    if (rescale && me.t == 0) {
        int8_t *shift = &s.shift[me.group][me.row()];
        shift[0] = static_cast<int8_t>(fmaxf(before[0] - now[0], NEVER));
        shift[8] = static_cast<int8_t>(fmaxf(before[1] - now[1], NEVER));
    }
    ptx::fence_proxy_async();
    __syncwarp();
    if (me.lane == 0)
        ptx::mbarrier_arrive(&s.full_p[me.group]);
}

__device__ __forceinline__ row_pair rows_of(const params &p, int seq, int row) {
    row_pair r;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const size_t at = static_cast<size_t>(seq) * p.rows + row + 8 * i;
        r.scale[i] = row + 8 * i < p.rows ? p.q_scale[at] * p.scale_log2 : 0;
        r.unit[i] = kNone;
        r.most[i] = kNone;
        r.sum[i] = 0;
    }
    return r;
}

/* Queries of the next item that has tiles, once the last scores with the present ones are done. */
__device__ __forceinline__ void load_next_queries(shared &s, const params &p, int item, int last,
                                                  int row_tile) {
    for (item++; item < last; item++) {
        const sched_item next = p.items[item];
        if (next.tile_begin < next.tile_end) {
            load_queries(s, p, next.seq, row_tile * ROWS);
            return;
        }
    }
}

__device__ __forceinline__ void leave_sums(shared &s, const softmax_thread &me, int round,
                                           const row_pair &r) {
    const float sum[2] = {quad_sum(r.sum[0]), quad_sum(r.sum[1])};
    ptx::mbarrier_wait(&s.empty_sum, (round & 1) ^ 1);
    if (me.t == 0) {
        s.sum[me.group][me.row()] = make_float2(sum[0], r.unit[0]);
        s.sum[me.group][me.row() + 8] = make_float2(sum[1], r.unit[1]);
    }
    __syncwarp();
    if (me.lane == 0)
        ptx::mbarrier_arrive(&s.full_sum);
}

__device__ __forceinline__ void run_softmax(shared &s, const params &p, int group, int first,
                                            int last, int row_tile) {
    const softmax_thread me(group);
    const bool loader = me.index() == 0;
    ring at;                             /* stage of the group's next tile */
    int n = 0, turn = 0;                 /* tiles of the part so far; of this group */
    uint32_t q_parity = 0;
    at.advance(group);

    cursor ahead(p, first, last, group); /* the tile to be loaded next */
    float scale = 1, next_scale = 1;     /* a_k of token `index` of the group's next two tiles */
    if (loader && group == 0)
        load_next_queries(s, p, first - 1, last, row_tile);
    if (ahead.valid()) {
        if (loader) {
            load_content(s, p, at.stage, ahead.page);
            load_rope(s, p, group, ahead.page);
        }
        if (me.index() < TOKENS)
            scale = __ldg(p.token_scale + ahead.page * TOKENS + me.index());
        ahead.advance(p);
    }

    for (int k = first; k < last; k++) {
        const sched_item item = p.items[k];
        const int length = length_of(p, item.seq);
        row_pair r = rows_of(p, item.seq, row_tile * ROWS + me.row());
        int tile = item.tile_begin + ((n ^ group) & 1);
        const int tiles = item.tile_end - item.tile_begin;
        if (tile < item.tile_end)
            ptx::mbarrier_wait(&s.full_q, q_parity);
        else if (loader && tiles > 0)
            ptx::mbarrier_arrive(&s.empty_q);
        for (; tile < item.tile_end; tile += 2, turn++) {
            const int valid = length - tile * TOKENS;
            const bool final_tile = tile + 1 == item.tile_end;
            float score[32];
            ptx::mbarrier_wait(&s.full[at.stage], at.parity);
            start_scores(s, group, at.stage, turn & 1, score);

            /* While the tensor cores work: the tile two ahead, and this tile's scales. */
            ring next = at;
            next.advance(kAhead);
            const bool more = ahead.valid();
            const int page = ahead.page;
            if (more) {
                if (loader) {
                    ptx::mbarrier_wait(&s.empty[next.stage], next.parity ^ 1);
                    load_content(s, p, next.stage, page);
                }
                if (me.index() < TOKENS)
                    next_scale = __ldg(p.token_scale + page * TOKENS + me.index());
                ahead.advance(p);
            }
            if (me.index() < TOKENS) {
                const float a = me.index() < valid ? scale : 1.0f;
                if (turn > 0) /* the group's readers of the tile before are through */
                    ptx::mbarrier_wait(&s.full_p[group], (turn & 1) ^ 1);
                token_pair &pair = s.scales[group][me.index() / 2];
                pair.scale[me.index() & 1] = a;
                pair.log_scale[me.index() & 1] = __log2f(a);
                scale = next_scale;
            }
            ptx::wgmma_wait<0>();
            ptx::pin(score);
            ptx::named_sync(kBarScales + group, 128);
            if (loader) {
                if (more)
                    load_rope(s, p, group, page);
                if (tile + 2 >= item.tile_end)
                    ptx::mbarrier_arrive(&s.empty_q);
                if (final_tile) {
                    ptx::mbarrier_wait(&s.empty_q, q_parity);
                    load_next_queries(s, p, k, last, row_tile);
                }
            }
            if (valid < TOKENS)
                clear_tail(s, at.stage, me.index(), valid);
            apply_scales(s, group, me.t, r, score);
            if (valid - (p.s_q - 1) < TOKENS)
                mask(p, valid, row_tile * ROWS + me.row(), me.t, score);
            softmax_tile(s, me, turn, turn == 0 && group == 0, tile == item.tile_begin,
                         k + 1 == last && final_tile, r, score);
            at = next;
        }
        n += tiles;
        q_parity ^= tiles > 0;
        leave_sums(s, me, k - first, r);
    }
}

} // namespace sm90_fp8
