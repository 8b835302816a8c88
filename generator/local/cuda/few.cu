/* gemm_few: 16 rows of weights a block, its eight warps share out k.
 *
 * The order of k within a product is free as long as both operands agree. So a thread takes 16 bytes, eight
 * neighbouring numbers, of the weight rows and tokens that the mma fragments give it, and calls them the
 * k that the instruction wants there: no shared memory, no shuffles, whole lines of memory. */
#include "generator/local/cuda/gemm.h"
#include "kernels/cuda/ptx/mma.cuh"

namespace device {
namespace {

enum {
    kWarps = 8,
    kThreads = 32 * kWarps,
    kRows = 16,     /* of weights, a block */
    kUnit = 64,     /* of k: a line of a bf16 row */
    kPitch = 20,    /* floats a token in the reduction: no bank conflicts */
    kFewTokens = 8, /* of an instruction */
};

struct unit_weights {
    uint4 top[2], bottom[2]; /* rows g and g + 8; halves of the unit */
};

__device__ __forceinline__ uint4 load_weights(const bf16 *row, int col, int k) {
    const uint4 zero = {0, 0, 0, 0};
    return col < k ? __ldg(reinterpret_cast<const uint4 *>(row + col)) : zero;
}

/* Not by the read-only path: the kernel before may have written it after this one's launch. */
__device__ __forceinline__ uint4 load_tokens(const bf16 *row, int col, int k) {
    const uint4 zero = {0, 0, 0, 0};
    return col < k ? *reinterpret_cast<const uint4 *>(row + col) : zero;
}

__device__ __forceinline__ unit_weights load_unit(const bf16 *top, const bf16 *bottom, int unit,
                                                  int k) {
    const int col = unit * kUnit + threadIdx.x % 4 * 8;
    unit_weights w;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        w.top[h] = load_weights(top, col + 32 * h, k);
        w.bottom[h] = load_weights(bottom, col + 32 * h, k);
    }
    return w;
}

__device__ __forceinline__ void multiply_half(float (&sum)[4], const uint4 &top,
                                              const uint4 &bottom, const uint4 &x) {
    const uint32_t first[4] = {top.x, bottom.x, top.y, bottom.y};
    const uint32_t second[4] = {top.z, bottom.z, top.w, bottom.w};
    ptx::mma_bf16(sum, first, x.x, x.y);
    ptx::mma_bf16(sum, second, x.z, x.w);
}

/* Which rows of x and y a group's tokens are. */
struct token_rows {
    int first, count; /* in y */
    const int *row;   /* in x; NULL = as in y */

    __device__ const bf16 *of(const gemm_args &a, const bf16 *x, int token) const {
        const int at = first + (token < count ? token : count - 1);
        return x + (row ? row[at] : at) * a.x_row;
    }
};

template <int TILES>
__device__ __forceinline__ void multiply_unit(float (&sum)[TILES][4], const unit_weights &w,
                                              const bf16 *const (&x)[TILES], int unit, int k,
                                              int tiles) {
    const int col = unit * kUnit + threadIdx.x % 4 * 8;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        if (i >= tiles)
            break;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint4 b = load_tokens(x[i], col + 32 * h, k);
            multiply_half(sum[i], w.top[h], w.bottom[h], b);
        }
    }
}

__device__ __forceinline__ void store(const gemm_args &a, int64_t row, int col, float sum) {
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

__device__ __forceinline__ float reduce(const float *room, int warp_floats, int token, int row) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; w++)
        sum += room[w * warp_floats + token * kPitch + row];
    return sum;
}

/* Adds up the warps' sums and writes the block's numbers of y. */
template <int TILES>
__device__ __forceinline__ void finish(const gemm_args &a, const float (&sum)[TILES][4],
                                       float *room, int group, int64_t first, int tokens) {
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int warp_floats = TILES * kFewTokens * kPitch, tile = blockIdx.x;
    float *own = room + warp * warp_floats;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        float *to = own + (i * kFewTokens + 2 * t) * kPitch + g;
        to[0] = sum[i][0];
        to[kPitch] = sum[i][1];
        to[8] = sum[i][2];
        to[kPitch + 8] = sum[i][3];
    }
    __syncthreads();
    const int width = a.end == ends_gate ? 8 : 16;
    for (int i = threadIdx.x; i < tokens * width; i += kThreads) {
        const int token = i / width, r = i % width, col = tile * width + r;
        const float x = reduce(room, warp_floats, token, r);
        if (a.end == ends_gate)
            static_cast<bf16 *>(a.y)[group * a.y_group + (first + token) * a.y_row + col] =
                __float2bfloat16_rn(silu(x) * reduce(room, warp_floats, token, r + 8));
        else if (col < a.n)
            store(a, first + token, static_cast<int>(group * a.y_group) + col, x);
    }
    __syncthreads();
}

template <int TILES, int DEPTH>
__global__ void __launch_bounds__(kThreads, 2) few(gemm_args a) {
    __shared__ float room[kWarps * TILES * kFewTokens * kPitch];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, units = (a.k + kUnit - 1) / kUnit;
    const int top = min(static_cast<int>(blockIdx.x) * kRows + g, a.n - 1);
    const int bottom = min(static_cast<int>(blockIdx.x) * kRows + g + 8, a.n - 1);
    int group = blockIdx.y;
    token_rows tokens = {0, a.rows, nullptr};
    if (a.listed) {
        let_next();
        wait_previous();
        if (group >= *a.experts.count)
            return;
        group = a.experts.active[group];
        tokens = {a.experts.first[group], a.experts.first[group + 1] - a.experts.first[group],
                  a.experts.row};
    }
    const bf16 *w = a.w + group * a.w_group;
    const bf16 *w_top = w + static_cast<int64_t>(top) * a.k,
               *w_bottom = w + static_cast<int64_t>(bottom) * a.k;
    unit_weights held[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; d++)
        held[d] = load_unit(w_top, w_bottom, warp + d * kWarps, a.k);
    if (!a.listed) {
        let_next();
        wait_previous();
    }
    const bf16 *x = a.x + (a.listed ? 0 : group * a.x_group);
    for (int from = 0; from < tokens.count; from += TILES * kFewTokens) {
        const int left = min(tokens.count - from, TILES * kFewTokens);
        const int tiles = (left + kFewTokens - 1) / kFewTokens;
        float sum[TILES][4] = {};
        const bf16 *rows[TILES];
#pragma unroll
        for (int i = 0; i < TILES; i++)
            rows[i] = tokens.of(a, x, from + i * kFewTokens + g);
        for (int unit = warp; unit < units; unit += DEPTH * kWarps) {
            if (from || unit != warp) {
#pragma unroll
                for (int d = 0; d < DEPTH; d++)
                    held[d] = load_unit(w_top, w_bottom, unit + d * kWarps, a.k);
            }
#pragma unroll
            for (int d = 0; d < DEPTH; d++)
                multiply_unit<TILES>(sum, held[d], rows, unit + d * kWarps, a.k, tiles);
        }
        finish<TILES>(a, sum, room, a.listed ? 0 : group, tokens.first + from, left);
    }
}

} // namespace

cudaError_t gemm_few(const stream_of &s, const gemm_args &a) {
    const dim3 grid(static_cast<unsigned>((a.n + kRows - 1) / kRows),
                    static_cast<unsigned>(a.groups));
    if (a.rows <= 8)
        return launch(s, few<1, 4>, grid, kThreads, 0, a);
    if (a.rows <= 16)
        return launch(s, few<2, 4>, grid, kThreads, 0, a);
    if (a.rows <= 32 || a.listed)
        return launch(s, few<4, 2>, grid, kThreads, 0, a);
    return launch(s, few<8, 2>, grid, kThreads, 0, a);
}

} // namespace device
