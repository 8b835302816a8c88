/* sm90_many.cuh - what both kernels of products of many rows on Hopper share: their tiles, and the
 * end of a tile. A block has one warpgroup that loads and two that multiply. With tiles of 128 rows
 * each of the two has 64 rows; with 64 rows each has half of the weights. */
#pragma once
#include "generator/local/cuda/cuda_gemm.h"
#include "generator/local/cuda/maps.h"
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

namespace device {
namespace {

enum {
    kThreads = 384,
    kBand = 8,             /* row tiles that are processed together, so that their weights stay in
                              L2. With experts, all columns of one row tile come before the next
                              row tile: the last one takes less time, and should not always fall
                              to the same blocks */
    kNarrowRows = 512,     /* rows of a step up to which experts are assumed to have few rows
                              each */
    kEntryRegisters = 168, /* registers with which each of the 384 threads starts */
    kLoadRegisters = 40,
    kMultiplyRegisters = 232,
};

struct tile {
    int group, first, row, end, col; /* up to ROWS rows of the group, from first + row on and before
                                        end; COLS weights from col on */
};

/* Enumerates the tiles. The loading warp and the multiplying warpgroups each have their own
 * copy. */
template <int ROWS, int COLS>
struct walk {
    const gemm_args &a;
    int cols, group, base, first, count;

    __device__ explicit walk(const gemm_args &a)
        : a(a), cols((a.n + COLS - 1) / COLS), group(-1), base(0), first(0), count(0) {
    }

    __device__ int tiles() const {
        return (count + ROWS - 1) / ROWS * cols;
    }

    __device__ bool next_group() {
        base += tiles();
        if (++group >= a.groups)
            return false;
        first = a.listed ? a.experts.first[group] : 0;
        count = a.listed ? a.experts.first[group + 1] - first : a.rows;
        return true;
    }

    /* Finds tile number @index. Calls must have increasing numbers. */
    __device__ bool find(int index, tile &t) {
        while (index >= base + tiles())
            if (!next_group())
                return false;
        const int rows = (count + ROWS - 1) / ROWS, at = index - base;
        const int band = a.listed ? 1 : static_cast<int>(kBand);
        const int from = at / (band * cols) * band, within = at % (band * cols);
        const int high = min(band, rows - from);
        t.group = group;
        t.first = first;
        t.row = (from + within % high) * ROWS;
        t.end = first + count;
        t.col = within / high * COLS;
        return true;
    }
};

/* Offset of the second warpgroup's weights, if the warpgroups divide the weights and not the
 * rows. */
template <int ROWS, int COLS>
__device__ constexpr int second_col() {
    return ROWS == 64 ? COLS / 2 : 0;
}

/* The error is far below that of BF16, to which the results are rounded. */
__device__ __forceinline__ float silu(float x) {
    return x * ptx::rcp_approx(1.0f + __expf(-x));
}

__device__ __forceinline__ void store_two(const gemm_args &a, int64_t at, float x, float y) {
    if (a.end == ends_bf16) {
        *reinterpret_cast<__nv_bfloat162 *>(static_cast<bf16 *>(a.y) + at) =
            __floats2bfloat162_rn(x, y);
        return;
    }
    float2 *to = reinterpret_cast<float2 *>(static_cast<float *>(a.y) + at);
    if (a.end == ends_f32) {
        *to = make_float2(x, y);
        return;
    }
    const float2 old = *to;
    *to = make_float2(old.x + a.factor * x, old.y + a.factor * y);
}

/* Stores a thread's numbers of one row, which begins at index @row of y: columns 8 j + 2 t and the
 * next one. */
template <int N>
__device__ __forceinline__ void store_row(const gemm_args &a, const float (&sum)[N], int lower,
                                          int64_t row, int col) {
    const int t = threadIdx.x % 4;
    if (a.end == ends_gate) {
#pragma unroll
        for (int j = 0; j < N / 4; j += 2) {
            const float *gate = sum + 4 * j + lower, *up = gate + 4;
            if (col + 8 * j < a.n)
                *reinterpret_cast<__nv_bfloat162 *>(static_cast<bf16 *>(a.y) + row +
                                                    (col + 8 * j) / 2 + 2 * t) =
                    __floats2bfloat162_rn(silu(gate[0]) * up[0], silu(gate[1]) * up[1]);
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < N / 4; j++)
        if (col + 8 * j + 2 * t < a.n)
            store_two(a, row + col + 8 * j + 2 * t, sum[4 * j + lower], sum[4 * j + lower + 1]);
}

} // namespace
} // namespace device
