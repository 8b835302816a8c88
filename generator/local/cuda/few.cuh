/* few.cuh - what both kernels of gemm_few share: operand fragments, rows of tokens, the end of a
 * tile.
 *
 * The order of k within a product does not matter as long as both operands use the same order. So a
 * thread loads 16 bytes, eight adjacent numbers, of each weight row and token that its mma
 * fragments cover, and uses them for the k positions that the instruction expects there. This needs
 * no shuffles and reads whole lines of memory. */
#pragma once
#include "generator/local/cuda/cuda_gemm.h"
#include "kernels/cuda/ptx/barrier.cuh"
#include "kernels/cuda/ptx/mma.cuh"

namespace device {
namespace {

enum {
    kWarps = 8,
    kThreads = 32 * kWarps,
    kRows = 16,     /* rows of weights per tile */
    kUnit = 64,     /* numbers of k that are loaded as one unit: 64 bf16 numbers fill a 128-byte
                       line */
    kPitch = 20,    /* floats per token in the reduction buffer; avoids bank conflicts */
    kFewTokens = 8, /* tokens per mma instruction */
    kReduceBarrier = 1,
};

__device__ __forceinline__ void multiply_half(float (&sum)[4], const uint4 &top,
                                              const uint4 &bottom, const uint4 &x) {
    const uint32_t first[4] = {top.x, bottom.x, top.y, bottom.y};
    const uint32_t second[4] = {top.z, bottom.z, top.w, bottom.w};
    ptx::mma_bf16(sum, first, x.x, x.y);
    ptx::mma_bf16(sum, second, x.z, x.w);
}

/* The rows of x and y that belong to a group. */
struct token_rows {
    int first, count; /* the rows of the group in y: first .. first + count - 1 */
    const int *row;   /* the row of x for each row of the group; NULL = the same as in y */

    /* The row of x that belongs to a token. Beyond the last token, it is the last token's. */
    __device__ int index(int token) const {
        const int at = first + (token < count ? token : count - 1);
        return row ? row[at] : at;
    }
    __device__ const bf16 *of(const gemm_args &a, const bf16 *x, int token) const {
        return x + index(token) * a.x_row;
    }
};

__device__ __forceinline__ token_rows tokens_of(const gemm_args &a, int group) {
    if (!a.listed)
        return {0, a.rows, nullptr};
    const int first = a.experts.first[group];
    return {first, a.experts.first[group + 1] - first, a.experts.row};
}

/* A tile: 16 rows of the weights of one group. They give 16 outputs, with ends_gate 8. */
struct tile_of {
    int group, col;
};

__device__ __forceinline__ void store(const gemm_args &a, int64_t row, int64_t col, float sum) {
    const int64_t at = row * a.y_row + col;
    if (a.end == ends_f32)
        static_cast<float *>(a.y)[at] = sum;
    else if (a.end == ends_add_f32)
        static_cast<float *>(a.y)[at] += a.factor * sum;
    else
        static_cast<bf16 *>(a.y)[at] = __float2bfloat16_rn(sum);
}

__device__ __forceinline__ float silu(float x) {
    return x / (1.0f + __expf(-x));
}

__device__ __forceinline__ float reduce(const float *scratch, int warp_floats, int token, int row) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; w++)
        sum += scratch[w * warp_floats + token * kPitch + row];
    return sum;
}

/* Adds up the partial sums of the warps and stores the tile's numbers of y for @tokens rows from
 * @first on. */
template <int TILES>
__device__ __forceinline__ void finish(const gemm_args &a, const float (&sum)[TILES][4],
                                       float *scratch, const tile_of &tile, int64_t first,
                                       int tokens) {
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int warp_floats = TILES * kFewTokens * kPitch;
    const int64_t columns = a.listed ? 0 : tile.group * a.y_group;
    float *own = scratch + warp * warp_floats;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        float *to = own + (i * kFewTokens + 2 * t) * kPitch + g;
        to[0] = sum[i][0];
        to[kPitch] = sum[i][1];
        to[8] = sum[i][2];
        to[kPitch + 8] = sum[i][3];
    }
    ptx::named_sync(kReduceBarrier, kThreads);
    const int width = a.end == ends_gate ? 8 : 16;
    for (int i = threadIdx.x; i < tokens * width; i += kThreads) {
        const int token = i / width, r = i % width, col = tile.col * width + r;
        const float x = reduce(scratch, warp_floats, token, r);
        if (a.end == ends_gate)
            static_cast<bf16 *>(a.y)[columns + (first + token) * a.y_row + col] =
                __float2bfloat16_rn(silu(x) * reduce(scratch, warp_floats, token, r + 8));
        else if (col < a.n)
            store(a, first + token, columns + col, x);
    }
    ptx::named_sync(kReduceBarrier, kThreads);
}

} // namespace
} // namespace device
