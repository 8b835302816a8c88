/* gemm_few(), and its kernel for devices other than Hopper (and for isa "portable"). A tile is 16
 * rows of weights; the eight warps of a block divide its k. Weights go from memory to registers. A
 * block processes one tile after another and loads the first weights of the next tile before it
 * adds up and stores the current one. */
#include <algorithm>

#include "generator/local/cuda/few.cuh"

namespace device {
namespace {

struct unit_weights {
    uint4 top[2], bottom[2]; /* rows g and g + 8 of the tile, with g = lane / 4. [i]: this
                                thread's 16 bytes in half i of a unit (few.cuh) */
};

__device__ __forceinline__ uint4 load_weights(const bf16 *row, int col, int k) {
    const uint4 zero = {0, 0, 0, 0};
    return col < k ? __ldg(reinterpret_cast<const uint4 *>(row + col)) : zero;
}

/* Loads activations, without the read-only path of load_weights(). */
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

/* One tile of a group's weights. */
struct work {
    const bf16 *top, *bottom; /* the two weight rows of this thread (unit_weights) */
    token_rows tokens;
    int group, col;

    __device__ work(const gemm_args &a, int index, int cols) {
        const int g = threadIdx.x % 32 / 4, at = index / cols;
        col = index % cols;
        group = a.listed ? a.experts.active[at] : at;
        tokens = tokens_of(a, group);
        const bf16 *w = a.w + group * a.w_group;
        top = w + static_cast<int64_t>(min(col * kRows + g, a.n - 1)) * a.k;
        bottom = w + static_cast<int64_t>(min(col * kRows + g + 8, a.n - 1)) * a.k;
    }
};

template <int DEPTH>
__device__ __forceinline__ void load(unit_weights (&held)[DEPTH], const work &w, int unit, int k) {
#pragma unroll
    for (int d = 0; d < DEPTH; d++)
        held[d] = load_unit(w.top, w.bottom, unit + d * kWarps, k);
}

/* Multiplies the tile with up to TILES times eight tokens at a time. On entry @held has the weights
 * of the first round; on return it has those of tile @next, if @next is below @all. */
template <int TILES, int DEPTH>
__device__ __forceinline__ void multiply(const gemm_args &a, unit_weights (&held)[DEPTH],
                                         const work &w, int next, int all, float *scratch) {
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, units = (a.k + kUnit - 1) / kUnit;
    const bf16 *x = a.x + (a.listed ? 0 : w.group * a.x_group);
    for (int from = 0; from < w.tokens.count; from += TILES * kFewTokens) {
        const int left = min(w.tokens.count - from, TILES * kFewTokens);
        const int tiles = (left + kFewTokens - 1) / kFewTokens;
        const bool last = from + TILES * kFewTokens >= w.tokens.count;
        float sum[TILES][4] = {};
        const bf16 *rows[TILES];
#pragma unroll
        for (int i = 0; i < TILES; i++)
            rows[i] = w.tokens.of(a, x, from + i * kFewTokens + g);
        for (int unit = warp; unit < units; unit += DEPTH * kWarps) {
            const int then = unit + DEPTH * kWarps;
#pragma unroll
            for (int d = 0; d < DEPTH; d++)
                multiply_unit<TILES>(sum, held[d], rows, unit + d * kWarps, a.k, tiles);
            if (then < units)
                load(held, w, then, a.k);
            else if (!last)
                load(held, w, warp, a.k);
            else if (next < all)
                load(held, work(a, next, (a.n + kRows - 1) / kRows), warp, a.k);
        }
        finish<TILES>(a, sum, scratch, {w.group, w.col}, w.tokens.first + from, left);
    }
}

template <int TILES, int DEPTH>
__global__ void __launch_bounds__(kThreads, 2) few(gemm_args a) {
    __shared__ float scratch[kWarps * TILES * kFewTokens * kPitch];
    const int warp = threadIdx.x / 32, cols = (a.n + kRows - 1) / kRows;
    unit_weights held[DEPTH];
    let_next();
    if (a.listed)
        wait_previous();
    const int all = cols * (a.listed ? *a.experts.count : a.groups);
    int index = blockIdx.x;
    if (index < all)
        load(held, work(a, index, cols), warp, a.k);
    if (!a.listed)
        wait_previous();
    for (; index < all; index += gridDim.x) {
        const work now(a, index, cols);
        multiply<TILES>(a, held, now, index + gridDim.x, all, scratch);
    }
}

} // namespace

cudaError_t gemm_few(const stream_of &s, const gemm_args &a) {
    if (s.hopper)
        return gemm_few_sm90(s, a);
    const int64_t tiles = static_cast<int64_t>((a.n + kRows - 1) / kRows) * a.groups;
    const dim3 grid(static_cast<unsigned>(std::min<int64_t>(tiles, 2 * s.sms)));
    if (a.rows <= 8)
        return launch(s, few<1, 4>, grid, kThreads, 0, a);
    if (a.rows <= 16)
        return launch(s, few<2, 2>, grid, kThreads, 0, a);
    if (a.rows <= 32 || a.listed)
        return launch(s, few<4, 2>, grid, kThreads, 0, a);
    return launch(s, few<8, 1>, grid, kThreads, 0, a);
}

} // namespace device
