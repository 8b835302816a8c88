/* bf16_output.cuh - O += P V over a group's 256 columns, and the epilogue.
 *
 * V is the content part of K, used in its memory order. It is token-major, which makes it an
 * N-major operand B; bf16 permits that. */
#pragma once
#include "kernels/cuda/merge/bf16_merge.cuh"
#include "kernels/cuda/sm90_bf16/bf16_scores.cuh"

namespace sm90_bf16 {

/* Low word of the descriptor of one half of V. Its 64-column tiles lie TILE_BYTES apart. */
__device__ __forceinline__ uint32_t values_low(const shared &s, int buffer, int half) {
    const uint32_t at = ptx::smem_addr(s.kv[buffer][4 * half]);
    return ((at & 0x3ffff) >> 4) | (TILE_BYTES / 16) << 16;
}

enum { kStep16 = 16 * SWIZZLE / 16 }; /* 16 tokens of V, in the descriptor's units of 16 bytes */

/* O += P V with P from registers. */
__device__ __forceinline__ void multiply_own(const uint32_t (&a)[4][4], uint32_t v,
                                             float (&o)[128]) {
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++)
        ptx::wgmma_rs_bf16_n256_nmajor(o, a[k], ptx::descriptor_128(v + k * kStep16), true);
    ptx::wgmma_commit();
}

/* Starts O += P V with P from shared memory. */
__device__ __forceinline__ void start_other(const shared &s, int buffer, uint32_t v,
                                            float (&o)[128]) {
    const uint32_t p = ptx::descriptor_low_128(ptx::smem_addr(s.p[buffer]));
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++)
        ptx::wgmma_ss_bf16_n256_nmajor(o, ptx::descriptor_128(p + 2 * k),
                                       ptx::descriptor_128(v + k * kStep16), true);
}

__device__ __forceinline__ void multiply_other(const shared &s, int buffer, uint32_t v,
                                               float (&o)[128]) {
    start_other(s, buffer, v, o);
    ptx::wgmma_commit();
}

/* True if the E of any row of the warp has changed, so that O must be rescaled. */
__device__ __forceinline__ bool unit_changed(const float (&unit)[2], const row_pair &r) {
    return __any_sync(~0u, unit[0] != r.unit[0] || unit[1] != r.unit[1]);
}

__device__ __forceinline__ void rescale(const float (&unit)[2], row_pair &r, float (&o)[128]) {
    const bool fresh = __all_sync(~0u, fabsf(r.unit[0]) == -kNone && fabsf(r.unit[1]) == -kNone);
    float factor[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        factor[i] = ptx::exp2_approx(r.unit[i] - unit[i]);
        r.sum[i] *= factor[i];
        r.unit[i] = unit[i];
    }
    if (fresh) /* O is still zero: returns, so that the code below need not be fetched */
        return;
#pragma unroll
    for (int i = 0; i < 128; i++)
        o[i] *= factor[i / 2 % 2];
}

__device__ __forceinline__ void read_unit(const shared &s, int row, float (&unit)[2]) {
    unit[0] = s.unit[row];
    unit[1] = s.unit[row + 8];
}

__device__ __forceinline__ void write_unit(shared &s, const math_thread &me,
                                           const float (&unit)[2]) {
    if (me.t == 0) {
        s.unit[me.row()] = unit[0];
        s.unit[me.row() + 8] = unit[1];
    }
}

/* Adds the sums of both groups, always in the same order. @n: number of earlier calls. */
__device__ __forceinline__ void exchange_sums(shared &s, const math_thread &me, int n,
                                              float (&sum)[2]) {
    auto &at = s.sum[n & 1];
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (me.t == 0)
            at[me.group][me.row() + 8 * i] = sum[i];
    ptx::mbarrier_arrive(&s.full_sum);
    ptx::mbarrier_wait(&s.full_sum, n & 1);
#pragma unroll
    for (int i = 0; i < 2; i++)
        sum[i] = at[0][me.row() + 8 * i] + at[1][me.row() + 8 * i];
}

/* Exchanges numbers within a quad so that its four lanes store 16 adjacent columns. a and b are the
 * lane's pairs of columns of two blocks of 8. Afterwards, even lanes have four adjacent columns of
 * the first block, odd lanes four of the second. */
template <typename T>
__device__ __forceinline__ void gather_pair(int t, T &a, T &b) {
    const T other = __shfl_xor_sync(~0u, t & 1 ? a : b, 1);
    (t & 1 ? a : b) = other;
}

/* Stores a group's half of a row of a split sequence, as fp16 with a scale. If the half row's
 * largest number is at least 2^-112, the scale brings it to between 2^14 and 2^15. @real: the row
 * exists; otherwise nothing is stored. */
__device__ __forceinline__ void store_partial(const partials &to, const math_thread &me, int row,
                                              float unit, float sum, bool real,
                                              const float (&o)[128]) {
    float most[4] = {0, 0, 0, 0};
#pragma unroll
    for (int j = 0; j < HALF / 8; j++)
#pragma unroll
        for (int c = 0; c < 2; c++)
            most[2 * (j & 1) + c] = fmaxf(most[2 * (j & 1) + c], fabsf(o[4 * j + c]));
    const float top = quad_max(fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3])));
    const int exponent = max(__float_as_int(top) >> 23, 15); /* biased by 127 */
    const float scale = __int_as_float((exponent - 14) << 23);
    const float inverse = __int_as_float((268 - exponent) << 23);
#pragma unroll
    for (int j = 0; j < HALF / 8; j += 4) {
        uint32_t word[4];
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const int k = 4 * (j + n);
            word[n] = ptx::pack_f16x2(o[k] * inverse, o[k + 1] * inverse);
        }
        if (real)
            *to.unit(row, me.group * (kUnits / 2) + j + me.t) =
                make_uint4(word[0], word[1], word[2], word[3]);
    }
    if (real && me.t == 0)
        to.of_row(row)[me.group] = {unit, sum, scale, 0};
}

__device__ __forceinline__ void store_whole(__nv_bfloat16 *to, int t, float inverse, bool real,
                                            const float (&o)[128]) {
#pragma unroll
    for (int j = 0; j < HALF / 8; j += 2) {
        const int k = 4 * j;
        uint32_t u = ptx::pack_bf16x2(o[k] * inverse, o[k + 1] * inverse);
        uint32_t v = ptx::pack_bf16x2(o[k + 4] * inverse, o[k + 5] * inverse);
        gather_pair(t, u, v);
        if (real)
            *reinterpret_cast<uint2 *>(to + 8 * j) = make_uint2(u, v);
    }
}

/* Stores an item's results, final or partial. The thread's second row is moved to the place of the
 * first, so that the code exists only once. */
__device__ __forceinline__ void store_rows(const params &p, const math_thread &me,
                                           const sched_item &item, int first_row, row_pair &r,
                                           float (&o)[128]) {
    if (first_row + 16 * me.warp >= p.rows) /* the warp has no rows */
        return;
#pragma unroll 1
    for (int row = first_row + me.row();; row += 8) {
        const bool real = row < p.rows;
        const float unit = r.unit[0], sum = r.sum[0];
        if (item.slot >= 0) {
            store_partial(partials(p, item.slot), me, row, unit, sum, real, o);
        } else {
            const size_t at = static_cast<size_t>(item.seq) * p.rows + row;
            if (real && p.io.lse && me.group == 0 && me.t == 0)
                p.io.lse[at] = sum == 0 ? -INFINITY : (unit + log2f(sum)) * 0.69314718f;
            store_whole(p.io.out + at * CONTENT + me.group * HALF + 8 * (me.t & 1) +
                            4 * (me.t >> 1),
                        me.t, sum == 0 ? 0 : 1 / sum, real, o);
        }
        if (row - me.g + 8 >= p.rows || row >= first_row + me.row() + 8)
            break;
        r.unit[0] = r.unit[1];
        r.sum[0] = r.sum[1];
#pragma unroll
        for (int i = 0; i < 128; i += 4) {
            o[i] = o[i + 2];
            o[i + 1] = o[i + 3];
        }
    }
}

} // namespace sm90_bf16
