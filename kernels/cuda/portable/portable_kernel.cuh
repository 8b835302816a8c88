/* portable_kernel.cuh - the kernel: goes over the tokens of an item step by step, then stores its
 * rows.
 *
 * The softmax is in base 2. For each row, y = S x scale, and `most` is the largest y so far. P =
 * 2^(y - most). For FP8, P is multiplied by the token's scale, because V is stored without it. */
#pragma once
#include "kernels/cuda/portable/load.cuh"

namespace portable {

/* The softmax state of a row, equal in the 8 threads that share the row. */
struct row_state {
    float most, sum;
};

/* Each warp computes 16 x 8 scores. With 16 tokens per step, only half of the warps have any. */
template <int kStep>
__device__ __forceinline__ void compute_scores(const params &p, const memory<kStep> &m,
                                               const uint8_t *k) {
    constexpr int across = kStep / 8;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp / across * 16, token = warp % across * 8;
    if (row >= ROWS)
        return;
    /* Addresses for ldmatrix. A: 16 rows x 16 numbers; B: 8 tokens x 32 numbers. */
    const uint32_t a_at = smem_addr(m.q) + (row + lane % 16) * p.pitch + lane / 16 * 16;
    const uint32_t b_at = smem_addr(k) + (token + lane % 8) * p.pitch + lane / 8 * 16;
    float d[2][4] = {};
    for (int at = 0; at < 2 * (p.d_c + p.d_r); at += 64) {
        uint32_t a0[4], a1[4], b[4];
        ptx::ldmatrix_x4(a0, a_at + at);
        ptx::ldmatrix_x4(a1, a_at + at + 32);
        ptx::ldmatrix_x4(b, b_at + at);
        ptx::mma_bf16(d[0], a0, b[0], b[1]);
        ptx::mma_bf16(d[1], a1, b[2], b[3]);
    }
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 4; i++)
        m.s->score[row + g + 8 * (i / 2)][token + 2 * t + i % 2] = d[0][i] + d[1][i];
}

__device__ __forceinline__ float eight_max(float x) {
    for (int step = 1; step < 8; step *= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ __forceinline__ float eight_sum(float x) {
    for (int step = 1; step < 8; step *= 2)
        x += __shfl_xor_sync(~0u, x, step);
    return x;
}

/* One step of the running softmax. @valid: how many tokens, from the step's first on, the row
 * sees. */
template <bool kFp8, int kStep>
__device__ __forceinline__ void update_softmax(const memory<kStep> &m, int valid, row_state &r) {
    constexpr int each = kStep / 8;
    const int row = threadIdx.x / 8, lane = threadIdx.x % 8;
    float y[each], most = r.most, sum = 0;
#pragma unroll
    for (int i = 0; i < each; i++) {
        const int t = each * lane + i;
        y[i] = m.s->score[row][t] * m.s->row_scale[row];
        if (kFp8)
            y[i] *= m.s->token_scale[t];
        if (t >= valid)
            y[i] = -INFINITY;
        most = fmaxf(most, y[i]);
    }
    most = eight_max(most);
    const float factor = r.most == -INFINITY ? 0 : ptx::exp2_approx(r.most - most);
    float v[each];
#pragma unroll
    for (int i = 0; i < each; i++) {
        v[i] = y[i] == -INFINITY ? 0 : ptx::exp2_approx(y[i] - most);
        sum += v[i];
        if (kFp8)
            v[i] *= m.s->token_scale[each * lane + i];
    }
#pragma unroll
    for (int i = 0; i < each; i += 2)
        *reinterpret_cast<uint32_t *>(m.s->p[row] + 2 * (each * lane + i)) =
            ptx::pack_bf16x2(v[i], v[i + 1]);
    if (lane == 0)
        m.s->factor[row] = factor;
    r.sum = r.sum * factor + eight_sum(sum);
    r.most = most;
}

/* The output columns of a warp: [pair][m][block][4]. Pair i consists of two blocks of 8 columns,
 * from column 16 (warp + 8 i) on. The four numbers of a thread are those of an mma: rows 16 m + g
 * and 16 m + g + 8. */
using output = float[kPairs][2][2][4];

template <int kStep>
__device__ __forceinline__ void multiply_values(const params &p, const memory<kStep> &m,
                                                const uint8_t *k, output &o) {
    constexpr int slices = kStep / 16;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4;
    uint32_t a[2][slices][4]; /* P: rows, then slices of 16 tokens */
    bool rescale = false;
    float factor[2][2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const uint32_t at = smem_addr(m.s->p[16 * half + lane % 16]) + lane / 16 * 16;
#pragma unroll
        for (int i = 0; i < slices; i++)
            ptx::ldmatrix_x4(a[half][i], at + 32 * i);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            factor[half][i] = m.s->factor[16 * half + 8 * i + g];
            rescale |= factor[half][i] != 1;
        }
    }
    rescale = __any_sync(~0u, rescale);
    const uint32_t v_at = smem_addr(k) + lane % 16 * p.pitch + lane / 16 * 16;
#pragma unroll
    for (int i = 0; i < kPairs; i++) {
        const int column = 16 * (warp + kWarps * i);
        if (column >= p.d_c)
            break;
        uint32_t b[slices][4];
#pragma unroll
        for (int j = 0; j < slices; j++)
            ptx::ldmatrix_x4_trans(b[j], v_at + 2 * column + 16 * j * p.pitch);
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int n = 0; n < 2; n++) {
                float(&d)[4] = o[i][half][n];
                if (rescale)
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        d[j] *= factor[half][j / 2];
#pragma unroll
                for (int j = 0; j < slices; j++)
                    ptx::mma_bf16(d, a[half][j], b[j][2 * n], b[j][2 * n + 1]);
            }
    }
}

template <int kStep>
__device__ __forceinline__ void finish_row(const params &p, const memory<kStep> &m,
                                           const sched_item &item, int first_row,
                                           const row_state &r) {
    const int row = threadIdx.x / 8;
    if (threadIdx.x % 8 != 0)
        return;
    m.s->factor[row] = r.sum == 0 ? 0 : 1 / r.sum;
    if (first_row + row >= p.rows)
        return;
    const float log2_sum = r.sum == 0 ? -INFINITY : r.most + log2f(r.sum);
    if (item.slot >= 0)
        p.partial_lse[static_cast<size_t>(item.slot) * p.rows + first_row + row] = log2_sum;
    else if (p.io.lse)
        p.io.lse[static_cast<size_t>(item.seq) * p.rows + first_row + row] = log2_sum * 0.69314718f;
}

template <int kStep>
__device__ __forceinline__ void store_output(const params &p, const memory<kStep> &m,
                                             const sched_item &item, int first_row,
                                             const output &o) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const bool partial = item.slot >= 0;
    const size_t base = static_cast<size_t>(partial ? item.slot : item.seq) * p.rows + first_row;
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int row = 16 * half + 8 * j + g;
            if (first_row + row >= p.rows)
                continue;
            const float factor = m.s->factor[row];
#pragma unroll
            for (int i = 0; i < 2 * kPairs; i++) {
                const int column = 16 * (warp + kWarps * (i / 2)) + 8 * (i % 2) + 2 * t;
                if (column >= p.d_c)
                    break;
                const float x = o[i / 2][half][i % 2][2 * j] * factor;
                const float y = o[i / 2][half][i % 2][2 * j + 1] * factor;
                const size_t at = (base + row) * p.d_c + column;
                if (partial)
                    *reinterpret_cast<float2 *>(p.partial_out + at) = make_float2(x, y);
                else
                    *reinterpret_cast<uint32_t *>(p.io.out + at) = ptx::pack_bf16x2(x, y);
            }
        }
}

template <bool kFp8, int kStep>
__device__ __forceinline__ void run_item(const params &p, const memory<kStep> &m,
                                         const sched_item &item, int first_row) {
    const token_source from = {p.io.block_table + static_cast<size_t>(item.seq) * p.io.table_width,
                               item.tokens};
    const int begin = item.tile_begin * PAGE, end = min(item.tile_end * PAGE, item.tokens);
    const int row = first_row + static_cast<int>(threadIdx.x) / 8;
    const int visible = item.tokens - (p.s_q - 1 - min(row / p.heads, p.s_q - 1));
    row_state r = {-INFINITY, 0};
    output o = {};
    if (begin < end)
        start_tokens<kFp8>(p, m, from, begin, 0);
    load_queries<kFp8>(p, m, item.seq, first_row);
    int turn = 0;
    for (int first = begin; first < end; first += kStep, turn++) {
        const uint8_t *k = m.k(kFp8 ? 0 : turn & 1);
        ptx::copy_async_wait<0>();
        __syncthreads();
        if (kFp8) {
            widen_tokens(p, m, from, first);
            __syncthreads();
        }
        if (first + kStep < end)
            start_tokens<kFp8>(p, m, from, first + kStep, turn + 1);
        compute_scores(p, m, k);
        __syncthreads();
        update_softmax<kFp8>(m, visible - first, r);
        __syncthreads();
        multiply_values(p, m, k, o);
    }
    __syncthreads();
    finish_row(p, m, item, first_row, r);
    __syncthreads();
    store_output(p, m, item, first_row, o);
    __syncthreads();
}

template <bool kFp8, int kStep>
__global__ void __launch_bounds__(kThreads, 2) decode(const __grid_constant__ params p) {
    extern __shared__ uint4 shared[];
    const memory<kStep> m(p, reinterpret_cast<uint8_t *>(shared));
    const sched_part &part = p.io.parts[blockIdx.x / p.row_tiles];
    for (int k = part.first; k < part.last; k++)
        run_item<kFp8>(p, m, p.io.items[k], blockIdx.x % p.row_tiles * ROWS);
}

} // namespace portable
