/* output.cuh - an output group: O^T += V^T P^T over 256 of the 512 columns, and the epilogue.
 *
 * V^T is the A operand, from registers: ldmatrix.trans brings 16-bit pairs of neighbouring columns,
 * byte permutations part them, so that row g of a fragment is column 2 g and row g + 8 column 2 g + 1.
 * fp8 sums keep about 13 bits: each tile's product starts from zero and is added to O in FP32. */
#pragma once
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/cuda/sm90_fp8/pipeline.cuh"

namespace sm90_fp8 {

enum { SLICES = 4 }; /* of 64 columns: one wgmma M each */

struct output_thread {
    int group, warp, lane, g, t;

    __device__ explicit output_thread(int group)
        : group(group), warp((threadIdx.x >> 5) & 3), lane(threadIdx.x & 31),
          g((threadIdx.x & 31) >> 2), t(threadIdx.x & 3) {
    }
};

/* V^T of 64 tokens and the warp's 16 columns of a slice, in the A layout of two k-steps. */
__device__ __forceinline__ void load_values(uint32_t base, uint32_t chunk, int slice,
                                            uint32_t (&a)[2][4]) {
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint32_t r[4];
        const uint32_t swizzled = slice & 1 ? chunk ^ 64 : chunk;
        ptx::ldmatrix_x4_trans(
            r, base + slice / 2 * (TOKENS * SWIZZLE) + k * (32 * SWIZZLE) + swizzled);
        a[k][0] = __byte_perm(r[0], r[1], 0x6420);
        a[k][1] = __byte_perm(r[0], r[1], 0x7531);
        a[k][2] = __byte_perm(r[2], r[3], 0x6420);
        a[k][3] = __byte_perm(r[2], r[3], 0x7531);
    }
}

/* Brings O to the unit of the tile: only 16-row groups in which some row's unit changed. */
__device__ __forceinline__ void rescale(const shared &s, int buffer, int t,
                                        float (&o)[SLICES][32]) {
    const int4 flags = s.rescale[buffer];
    if (!(flags.x | flags.y | flags.z | flags.w))
        return;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        if (!(q == 0 ? flags.x : q == 1 ? flags.y : q == 2 ? flags.z : flags.w))
            continue;
#pragma unroll
        for (int j = 2 * q; j < 2 * q + 2; j++) {
            const char2 shift = reinterpret_cast<const char2 *>(s.shift[buffer])[4 * j + t];
            const float x = __int_as_float((shift.x - NEVER) << 23);
            const float y = __int_as_float((shift.y - NEVER) << 23);
#pragma unroll
            for (int slice = 0; slice < SLICES; slice++) {
                o[slice][4 * j] *= x;
                o[slice][4 * j + 1] *= y;
                o[slice][4 * j + 2] *= x;
                o[slice][4 * j + 3] *= y;
            }
        }
    }
}

__device__ __forceinline__ void multiply_tile(shared &s, const output_thread &me, int n,
                                              const ring &at, uint32_t offset, uint32_t chunk,
                                              uint64_t p_desc, float (&o)[SLICES][32]) {
    const int buffer = n & 1;
    const uint32_t base = ptx::smem_addr(s.content[at.stage]) + offset;
    uint32_t a[2][4];
    ptx::mbarrier_wait(&s.full[at.stage], at.parity);
    ptx::mbarrier_wait(&s.full_p[buffer], (n >> 1) & 1);
    load_values(base, chunk, 0, a);
    rescale(s, buffer, me.t, o);
#pragma unroll
    for (int slice = 0; slice < SLICES; slice++) {
        float product[32];
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < 2; k++)
            ptx::wgmma_rs_e4m3_n64(product, a[k], p_desc + 4 * buffer + 2 * k, k > 0);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        ptx::pin(product);
        if (slice + 1 < SLICES)
            load_values(base, chunk, slice + 1, a);
        if (slice + 2 == SLICES) {
            __syncwarp();
            if (me.lane == 0)
                ptx::mbarrier_arrive(&s.empty[at.stage]);
        }
#pragma unroll
        for (int i = 0; i < 32; i++)
            o[slice][i] += product[i];
    }
    __syncwarp();
    if (me.lane == 0)
        ptx::mbarrier_arrive(&s.empty_p[buffer]);
}

/* The sum of a row over both softmax groups, in the unit of O. */
struct row_total {
    float sum, unit;
};

__device__ __forceinline__ row_total total_of(const shared &s, int last_group, int row) {
    const float2 mine = s.sum[last_group][row], other = s.sum[last_group ^ 1][row];
    return {fmaf(other.x, ptx::exp2_approx(other.y - mine.y), mine.x), mine.y};
}

/* Base-2 logarithm of the sum of exp(S); P was counted in units of 2^unit. */
__device__ __forceinline__ float log2_total(row_total r) {
    return r.sum > 0 ? r.unit + log2f(r.sum) : r.sum == 0 ? -INFINITY : r.sum;
}

__device__ __forceinline__ void store_rows(const shared &s, const params &p,
                                           const output_thread &me, const sched_item &item,
                                           int last_group, int first_row,
                                           const float (&o)[SLICES][32]) {
    const bool partial = item.slot >= 0;
    const size_t base = static_cast<size_t>(partial ? item.slot : item.seq) * p.rows;
#pragma unroll
    for (int j = 0; j < 8; j++) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = 8 * j + 2 * me.t + r;
            if (first_row + row >= p.rows)
                continue;
            const row_total total = total_of(s, last_group, row);
            const float inverse = total.sum == 0 ? 0.0f : 1.0f / total.sum;
            const size_t at = base + first_row + row;
#pragma unroll
            for (int slice = 0; slice < SLICES; slice++) {
                const int column = me.group * 256 + slice * 64 + 16 * me.warp + 2 * me.g;
                const float x = o[slice][4 * j + r] * inverse;
                const float y = o[slice][4 * j + 2 + r] * inverse;
                if (partial)
                    *reinterpret_cast<float2 *>(p.partial_out + at * CONTENT + column) =
                        make_float2(x, y);
                else
                    *reinterpret_cast<uint32_t *>(p.out + at * CONTENT + column) =
                        ptx::pack_bf16x2(x, y);
            }
            if (me.group == 0 && me.warp == 0 && me.g == 0) {
                if (partial)
                    p.partial_lse[at] = log2_total(total);
                else if (p.lse)
                    p.lse[at] = log2_total(total) * 0.69314718f;
            }
        }
    }
}

__device__ __forceinline__ void run_output(shared &s, const params &p, int group, int first,
                                           int last, int row_tile) {
    const output_thread me(group);
    const uint32_t offset = group * (2 * TOKENS * SWIZZLE) + me.lane * SWIZZLE;
    const uint32_t chunk = (me.warp ^ (me.lane & 7)) << 4;
    const uint64_t p_desc = ptx::descriptor_128(ptx::smem_addr(s.p));
    ring at;
    int n = 0;
    for (int k = first; k < last; k++) {
        const sched_item item = p.items[k];
        float o[SLICES][32];
#pragma unroll
        for (int slice = 0; slice < SLICES; slice++)
#pragma unroll
            for (int i = 0; i < 32; i++)
                o[slice][i] = 0;
        for (int tile = item.tile_begin; tile < item.tile_end; tile++, n++, at.advance())
            multiply_tile(s, me, n, at, offset, chunk, p_desc, o);
        ptx::mbarrier_wait(&s.full_sum, (k - first) & 1);
        store_rows(s, p, me, item, (n - 1) & 1, row_tile * ROWS, o);
        __syncwarp();
        if (me.lane == 0)
            ptx::mbarrier_arrive(&s.empty_sum);
    }
}

} // namespace sm90_fp8
