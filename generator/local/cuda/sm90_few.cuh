/* sm90_few.cuh - what both kernels of products of few rows on Hopper share: the tiles of a block,
 * and the barriers of its ring of stages. */
#pragma once
#include "generator/local/cuda/few.cuh"
#include "generator/local/cuda/once.cuh"
#include "kernels/cuda/ptx/tma.cuh"

namespace device {
namespace {

enum {
    kLoadThreads = 32,
    kBlocksPerSm = 2,
    kRingBytes = 100 * 1024,
};

/* @MOST: number of stages that a ring has at most. */
template <int MOST>
struct shared_memory {
    uint64_t full[MOST], empty[MOST];

    /* Called by all threads of a block. */
    __device__ void prepare(int stages) {
        if (threadIdx.x == 0) {
            for (int i = 0; i < stages; i++) {
                ptx::mbarrier_init(&full[i], 1);
                ptx::mbarrier_init(&empty[i], kWarps);
            }
            ptx::mbarrier_init_fence();
        }
        __syncthreads();
    }
};

/* The tiles of a block. If a group has more than TILES * kFewTokens tokens, the weights of its
 * tiles are loaded once for each such number of tokens. */
template <int TILES>
struct tiles_of_block {
    const gemm_args &a;
    int cols, all;

    __device__ explicit tiles_of_block(const gemm_args &a)
        : a(a), cols((a.n + kRows - 1) / kRows), all(cols * a.groups) {
    }
    /* Must be called after the kernels that write the lists have ended. */
    __device__ void read_lists() {
        if (a.listed)
            all = cols * *a.experts.count;
    }
    __device__ bool is_known(int index) const {
        return !a.listed || index < cols * a.experts.known;
    }
    __device__ int group(int index) const {
        const int at = index / cols;
        if (!a.listed)
            return at;
        return at < a.experts.known ? a.experts.first_known + at : a.experts.active[at];
    }
    __device__ int passes(int index, int group) const {
        const int tokens =
            is_known(index) ? a.rows : a.experts.first[group + 1] - a.experts.first[group];
        return (tokens + TILES * kFewTokens - 1) / (TILES * kFewTokens);
    }
};

__device__ __forceinline__ uint4 read_16(const void *at, bool real) {
    const uint4 zero = {0, 0, 0, 0};
    return real ? *static_cast<const uint4 *>(at) : zero;
}

} // namespace
} // namespace device
