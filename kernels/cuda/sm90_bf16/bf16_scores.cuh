/* bf16_scores.cuh - S = Q K^T of a page, and its probabilities P as bf16. Both groups use this
 * code. */
#pragma once
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/cuda/sm90_bf16/bf16_pipeline.cuh"

namespace sm90_bf16 {

/* The position of a thread in its group. Its rows, of S and of O, are 16 warp + g and 16 warp + g +
 * 8. */
struct math_thread {
    int group, warp, lane, g, t;

    __device__ explicit math_thread(int group)
        : group(group), warp((threadIdx.x >> 5) & 3), lane(ptx::lane()), g(lane >> 2), t(lane & 3) {
    }
    __device__ int row() const {
        return 16 * warp + g;
    }
    /* Arrives once per warp, after all lanes have reached this point. */
    __device__ void arrive(uint64_t *bar) const {
        __syncwarp();
        if (lane == 0)
            ptx::mbarrier_arrive(bar);
    }
};

/* A thread's state of its two rows. */
struct row_pair {
    uint32_t rope[4][4]; /* RoPE queries, the A fragments of four k-steps */
    float unit[2];       /* E, the reference exponent of O and sum */
    float sum[2];        /* sum of P over this lane's tokens of its group's pages; after the last
                            page, over all four lanes */
};

__device__ __forceinline__ void load_rows(row_pair &r, const params &p, int seq, int row, int t) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const bool real = row + 8 * i < p.rows;
        const size_t at = static_cast<size_t>(seq) * p.rows + (real ? row + 8 * i : 0);
        const uint32_t *rope = p.q_rows + at * (WIDTH / 2) + CONTENT / 2;
        r.unit[i] = real ? kNone : -kNone; /* padding row: its scores never exceed the window */
        r.sum[i] = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            r.rope[k][i] = real ? __ldg(rope + 8 * k + t) : 0;
            r.rope[k][i + 2] = real ? __ldg(rope + 8 * k + t + 4) : 0;
        }
    }
}

/* Starts S of the page in a buffer, piece by piece as the pieces arrive. */
__device__ __forceinline__ void start_scores(shared &s, const params &p, const row_pair &r,
                                             int buffer, uint32_t parity, float (&score)[32]) {
    const uint32_t q_step = p.q_tile_rows * (SWIZZLE / 16);
    uint32_t q = ptx::descriptor_low_128(ptx::smem_addr(s.q));
    const uint32_t k = ptx::descriptor_low_128(ptx::smem_addr(s.kv[buffer]));
#pragma unroll
    for (int c = 0; c < COLUMNS - 1; c++, q += q_step) {
        if (c % 2 == 0) {
            ptx::mbarrier_wait(&s.full[buffer][1 + c / 2], parity);
            ptx::wgmma_fence();
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int step = c * (TILE_BYTES / 16) + 2 * i;
            ptx::wgmma_ss_bf16_n64(score, ptx::descriptor_128(q + 2 * i),
                                   ptx::descriptor_128(k + step), c + i > 0);
        }
    }
    ptx::mbarrier_wait(&s.full[buffer][0], parity);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++)
        ptx::wgmma_rs_bf16_n64(score, r.rope[i],
                               ptx::descriptor_128(k + (COLUMNS - 1) * (TILE_BYTES / 16) + 2 * i),
                               true);
    ptx::wgmma_commit();
}

/* Sets the scores of hidden tokens to -inf. @valid: how many tokens the sequence has from the
 * page's first on. */
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

/* Zeros the content of tokens past the end. Their V may be NaN, and 0 x NaN is NaN. */
__device__ __forceinline__ void clear_tail(shared &s, int buffer, int valid) {
    const int chunks = SWIZZLE / 16 * (PAGE - valid);
#pragma unroll 1
    for (int column = 0; column < COLUMNS - 1; column++) {
        auto *from = reinterpret_cast<uint4 *>(s.kv[buffer][column][valid]);
#pragma unroll 1
        for (int i = threadIdx.x & 127; i < chunks; i += 128)
            from[i] = make_uint4(0, 0, 0, 0);
    }
}

__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

/* Chooses E for the page: @unit stays as it is unless a score of the row exceeds the window. */
__device__ __forceinline__ void choose_unit(const float (&score)[32], float scale, float window,
                                            float (&unit)[2]) {
    float largest[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
#pragma unroll
    for (int i = 0; i < 32; i++)
        largest[i % 4] = fmaxf(largest[i % 4], score[i]);
    float top[2] = {fmaxf(largest[0], largest[1]) * scale, fmaxf(largest[2], largest[3]) * scale};
    const bool left = top[0] > unit[0] + window || top[1] > unit[1] + window;
    if (!__any_sync(~0u, left))
        return;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        top[i] = quad_max(top[i]);
        if (top[i] > unit[i] + window)
            unit[i] = top[i];
    }
}

/* Computes P of a page, as A fragments in registers, and stores it in shared memory for the other
 * group. */
__device__ __forceinline__ void exponentiate(const float (&score)[32], float scale,
                                             const float (&unit)[2], float (&sum)[2],
                                             uint32_t (&a)[4][4], uint32_t p_row, int chunk,
                                             int swizzle) {
    float part[4] = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < 4; k++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float v[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                v[i] = ptx::exp2_approx(fmaf(score[8 * k + 4 * h + i], scale, -unit[i / 2]));
                part[i] += v[i];
            }
            a[k][2 * h] = ptx::pack_bf16x2(v[0], v[1]);
            a[k][2 * h + 1] = ptx::pack_bf16x2(v[2], v[3]);
        }
        ptx::stmatrix_x4(p_row + 16 * ((2 * k + chunk) ^ swizzle), a[k][0], a[k][1], a[k][2],
                         a[k][3]);
    }
    sum[0] += part[0] + part[1];
    sum[1] += part[2] + part[3];
}

} // namespace sm90_bf16
