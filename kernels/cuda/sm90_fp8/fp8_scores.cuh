/* fp8_scores.cuh - computes the scores S of a page, scales them, masks hidden tokens, and zeros the
 * content of tokens past the end. Also says which rows and tokens a softmax thread has. */
#pragma once
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/cuda/sm90_fp8/fp8_pipeline.cuh"

namespace sm90_fp8 {

/* The position of a thread in the softmax group. In the kernel for 64 rows, its rows are 16 warp +
 * g and 16 warp + g + 8. */
struct softmax_thread {
    int warp, lane, g, t;

    __device__ softmax_thread()
        : warp(ptx::warp() & 3), lane(ptx::lane()), g(lane >> 2), t(lane & 3) {
    }
    __device__ int row() const {
        return 16 * warp + g;
    }
    __device__ int index() const {
        return threadIdx.x & 127;
    }
    /* The address to which the lane's stmatrix stores the first 16 bytes of a row of P. It is
     * computed once per tile: a kept copy would spill. */
    __device__ uint32_t p_address(const shared &s, int buffer) const {
        const int l = ptx::opaque(lane), row = 16 * warp + (l & 15);
        return ptx::smem_addr(s.p[buffer][row]) + 16 * ((l >> 4) ^ (row & 7));
    }
    /* Arrives once per warp, after all lanes have reached this point. */
    __device__ void arrive(uint64_t *bar) const {
        __syncwarp();
        if (lane == 0)
            ptx::mbarrier_arrive(bar);
    }
};

/* A thread's state of its two rows, in the kernel for 64 rows. */
struct row_pair {
    float scale[2];      /* a_q x softmax scale x log2(e) */
    uint32_t rope[4][4]; /* RoPE queries, the A fragments of four k-steps */
    float unit[2];       /* E */
    float sum[2];        /* sum of P / 2^E over the thread's tokens; with page units, of P / 2^B */
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

/* The products S = Q K^T of a page. The fp8 content comes first, then RoPE: if RoPE's large
 * products came first, the fp8 sums would lose the content. The instructions are issued in
 * quarters. The tensor cores accept a product about as fast as they compute it, so a thread that
 * issues all of them at once is blocked until most of them are computed. */
struct score_job {
    uint32_t q, k, rope, high_a, high_b;

    __device__ score_job(shared &s, const params &p, int stage, int rope_stage)
        : q(ptx::descriptor_low_128(ptx::smem_addr(s.q))),
          k(ptx::descriptor_low_128(ptx::smem_addr(s.content[stage]))),
          rope(ptx::descriptor_low_128(ptx::smem_addr(s.rope[rope_stage]))), high_a(p.high_a),
          high_b(p.high_b) {
    }
    template <int Quarter>
    __device__ __forceinline__ void issue(const row_pair &r, float (&score)[32]) const {
        enum { STEPS = CONTENT / 32 / 4, COLUMN = ROWS * SWIZZLE / 16 };
        static_assert(STEPS == 4 && int(ROWS) == int(PAGE), "a quarter is a column of Q and of K");
        if (Quarter == 0)
            ptx::wgmma_fence();
        uint64_t a = ptx::descriptor_of(q + Quarter * COLUMN, high_a);
        uint64_t b = ptx::descriptor_of(k + Quarter * COLUMN, high_b);
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            ptx::wgmma_ss_e4m3_n64(score, a, b, Quarter + i > 0);
            ptx::descriptor_step(a, 2);
            ptx::descriptor_step(b, 2);
        }
        if (Quarter == 3) {
            b = ptx::descriptor_of(rope, high_b);
#pragma unroll
            for (int i = 0; i < ROPE / 16; i++) {
                ptx::wgmma_rs_bf16_n64(score, r.rope[i], b, true);
                ptx::descriptor_step(b, 2);
            }
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

/* Zeros the content of tokens past the end. Their V may be NaN, and 0 x NaN is NaN. @index is the
 * number of the thread in its group of 128. @valid is the number of tokens of the page that exist,
 * 1 to 64. S of the page may still be computed: the scores of the other tokens are masked
 * anyway. */
template <typename Shared>
__device__ __forceinline__ void clear_tail(Shared &s, int stage, int index, int valid) {
    const int chunks = SWIZZLE / 16 * (PAGE - valid);
#pragma unroll 1
    for (int column = 0; column < COLUMNS; column++) {
        auto *from = reinterpret_cast<uint4 *>(s.content[stage][column][valid]);
#pragma unroll 1
        for (int i = index; i < chunks; i += 128)
            from[i] = make_uint4(0, 0, 0, 0);
    }
}

/* Clears the tail of the last tile. @second: stage of its second page, which is all zero if the
 * sequence ends in the first. */
template <typename Shared>
__device__ __forceinline__ void clear_tile(Shared &s, int second, int index, int valid) {
    if (valid > PAGE)
        clear_tail(s, second, index, valid - PAGE);
    else
        clear_tail(s, second == 0 ? kStages - 1 : second - 1, index, valid);
}

/* The scales a_k of a thread's tokens of a page, in registers. They are read while the scores are
 * computed, because a read of shared memory takes about 90 clocks under this load. */
struct page_scales {
    float2 pair[8];
    float log_most; /* log2 of the largest a_k of the page */

    __device__ __forceinline__ void read(const tile_scales &tile, int page, int t) {
        const float2 *from = tile.pair + page * (PAGE / 2) + t;
#pragma unroll
        for (int j = 0; j < 8; j++)
            pair[j] = ptx::load_shared_v2(from + 4 * j);
        log_most = tile.log_most[page];
    }
    /* Multiplies the scores of a page by a_k, in place. */
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

/* The number of tokens at the end of the sequence that a row does not see. */
__device__ __forceinline__ int tokens_later(const params &p, int row) {
    return p.s_q - 1 - min(row / p.heads, p.s_q - 1);
}

/* Sets the scores of hidden tokens to -inf. @valid: how many tokens the sequence has from the
 * page's first on. @row: the thread's first row, counted from the sequence's first. */
__device__ __forceinline__ void mask(const params &p, int valid, int row, int t,
                                     float (&score)[32]) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int later = tokens_later(p, row + 8 * r);
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (8 * j + 2 * t + i >= valid - later)
                    score[4 * j + 2 * r + i] = -INFINITY;
    }
}

} // namespace sm90_fp8
