/* project.cuh - writes rows of the cache and queries in the cache's format. FP8 scales follow the
 * rule MLA_SCALE_MAX. The numbers are the same as those that mla_append_kv() and mla_quant_q() of a
 * backend with that rule write for the same BF16 rows. */
#pragma once
#include <cuda_fp8.h>

#include "generator/local/cuda/attend.h"

namespace device {
namespace {

__device__ __forceinline__ float warp_max(float x) {
    for (int m = 16; m > 0; m /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, m));
    return x;
}

__device__ __forceinline__ uint8_t to_e4m3(float x) {
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

__device__ __forceinline__ float scale_of(float largest) {
    return fmaxf(largest, 1e-10f) / 448.0f;
}

__device__ __forceinline__ int64_t position_of(const project_args &a, int row) {
    return a.length ? a.length[row] - 1 : a.start + row;
}

__device__ __forceinline__ int pair_of(const project_args &a, int d) {
    return a.halves ? d % a.pairs : d / 2;
}

__device__ __forceinline__ float2 angle_of(const project_args &a, int64_t position, int d) {
    return a.angle[max(position, int64_t(0)) * a.pairs + pair_of(a, d)];
}

/* Number @d of the vector @x [2 * pairs] after RoPE. */
__device__ __forceinline__ float turned(const project_args &a, const float *x, const float2 &angle,
                                        int d) {
    const int pairs = a.pairs, pair = pair_of(a, d);
    const bool second = a.halves ? d >= pairs : d % 2;
    const float first_x = a.halves ? x[pair] : x[2 * pair];
    const float second_x = a.halves ? x[pair + pairs] : x[2 * pair + 1];
    return second ? second_x * angle.x + first_x * angle.y : first_x * angle.x - second_x * angle.y;
}

__device__ __forceinline__ int64_t slot_of(const project_args &a, int row, int64_t position) {
    const int *table = a.table + (a.length ? static_cast<int64_t>(row) * a.table_width : 0);
    const int64_t page = table[position / MLA_PAGE];
    return min(max(page, int64_t(0)), a.cache.pages - 1) * MLA_PAGE + position % MLA_PAGE;
}

__device__ __forceinline__ float rounded(float x) {
    return __bfloat162float(__float2bfloat16_rn(x));
}

/* The threads that share a row: one warp. */
struct warp_team {
    __device__ int rank() const {
        return threadIdx.x % 32;
    }
    __device__ static constexpr int size() {
        return 32;
    }
    __device__ float sum(float x) const {
        return warp_sum(x);
    }
    __device__ float largest(float x) const {
        return warp_max(x);
    }
};

/* What can be computed for a row before its numbers have arrived. */
struct row_place {
    int64_t position, slot;
    float norm;   /* weight for this thread's first number */
    float2 angle; /* angle of this thread's first number */

    row_place() = default;
    template <typename T>
    __device__ row_place(const project_args &a, int row, const T &team) {
        const int d = team.rank();
        position = position_of(a, row);
        slot = slot_of(a, row, max(position, int64_t(0)));
        norm = a.kv_norm && d < a.rank ? a.kv_norm[d] : 0.0f;
        angle = d < a.rope ? angle_of(a, position, d) : float2{};
    }
};

/* Writes a row to the cache in its format. @latent and @rotary return number @d of the content and
 * of the RoPE part. */
template <typename T, typename L, typename R>
__device__ __forceinline__ void write_row(const project_args &a, const row_place &at, const T &team,
                                          const L &latent, const R &rotary) {
    const int own = team.rank(), width = a.rank + a.rope;
    float largest = 0;
    if (!a.cache.scale) {
        bf16 *to = static_cast<bf16 *>(a.cache.content) + at.slot * width;
#pragma unroll 8
        for (int d = own; d < a.rank; d += T::size())
            to[d] = __float2bfloat16_rn(latent(d));
        for (int d = own; d < a.rope; d += T::size())
            to[a.rank + d] = __float2bfloat16_rn(rotary(d));
        return;
    }
    for (int d = own; d < a.rank; d += T::size())
        largest = fmaxf(largest, fabsf(rounded(latent(d))));
    const float scale = scale_of(team.largest(largest));
    uint8_t *content = static_cast<uint8_t *>(a.cache.content) + at.slot * a.rank;
    bf16 *rope = static_cast<bf16 *>(a.cache.rope) + at.slot * a.rope;
    for (int d = own; d < a.rank; d += T::size())
        content[d] = to_e4m3(rounded(latent(d)) / scale);
    for (int d = own; d < a.rope; d += T::size())
        rope[d] = __float2bfloat16_rn(rounded(rotary(d)) / scale);
    if (own == 0)
        a.cache.scale[at.slot] = scale;
}

/* Appends a row to the cache: latent norm and RoPE of x [rank + rope]. */
template <typename T>
__device__ __forceinline__ void append_row(const project_args &a, const float *x,
                                           const row_place &at, const T &team) {
    const int own = team.rank();
    if (at.position < 0)
        return;
    float squares = 0;
#pragma unroll 8
    for (int d = own; d < a.rank; d += T::size())
        squares += x[d] * x[d];
    const float norm =
        norm_scale(team.sum(squares) / static_cast<float>(a.rank) + a.eps) * a.kv_factor;
    write_row(
        a, at, team, [&](int d) { return x[d] * norm * (d == own ? at.norm : a.kv_norm[d]); },
        [&](int d) {
            return turned(a, x + a.rank, d == own ? at.angle : angle_of(a, at.position, d), d);
        });
}

/* Where the query of one row and head is written: in BF16, or quantised for MLA_FP8. */
struct query_to {
    const absorb_to &to;
    int64_t at;
    int rank, rope;
    float scale; /* scale of the FP8 query; 0 for MLA_BF16 */

    __device__ query_to(const project_args &a, const absorb_to &to, int row, int head,
                        float largest)
        : to(to), at(static_cast<int64_t>(row) * a.heads + head), rank(a.rank), rope(a.rope),
          scale(a.cache.scale ? scale_of(largest) : 0.0f) {
    }
    __device__ void content(int d, float x) const {
        if (scale > 0)
            to.q8[at * rank + d] = to_e4m3(rounded(x) / scale);
        else
            to.q[at * (rank + rope) + d] = __float2bfloat16_rn(x);
    }
    __device__ void turned(int d, float x) const {
        if (scale > 0)
            to.q_rope[at * rope + d] = __float2bfloat16_rn(rounded(x) / scale);
        else
            to.q[at * (rank + rope) + rank + d] = __float2bfloat16_rn(x);
        if (scale > 0 && d == 0)
            to.q_scale[at] = scale;
    }
};

} // namespace
} // namespace device
