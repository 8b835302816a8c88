/* step.cuh - what the code of several schedules shares: the lengths and costs of a step's
 * sequences, the block table, the layout of the block's shared memory, and prefix sums over the
 * block. */
#pragma once
#include <climits>
#include <cstdint>

#include "kernels/cuda/sched/sched.h"

namespace {

enum {
    kMostThreads = 1024, /* threads of the larger block; the most parts are one less */
    kPage = 64,
    kMaxParts = kMostThreads - 1,
    kMaxCut = 1024,  /* most sequences for schedule "line" */
    kFixedTiles = 2, /* cost of an item besides its tiles: query, first loads, epilogue */
    kLeastTiles = 1, /* a cut of schedule "line" leaves at least this many tiles on either side */
};

/* Not inlined, because a division takes two dozen instructions. */
__device__ __noinline__ int divide(uint32_t a, uint32_t b) {
    return static_cast<int>(a / b);
}

struct sequences {
    const int *lengths;
    int batch, max_tokens, tile, tile_bits; /* tile = 2^tile_bits */
    int merge, line;                        /* as in sched_tile */

    __device__ int tokens(int seq) const {
        return min(max(lengths[seq], 0), max_tokens);
    }
    __device__ int tiles(int seq) const {
        return (tokens(seq) + tile - 1) >> tile_bits;
    }
    __device__ int cost(int seq) const {
        return tiles(seq) + kFixedTiles;
    }
};

/* The block table of a step. page() returns the entry for page i of an item; -1 if there is no
 * table or no such page, or if the entry is negative. */
struct page_table {
    const int *entries;
    int width;

    /* Prefetches into L2, before it is known which entries will be needed. */
    __device__ void prefetch(size_t entry, int batch) const {
        if (entries && entry < static_cast<size_t>(batch) * width)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(entries + entry));
    }
    __device__ int page(const sched_item &item, int tile, int i) const {
        const int at = item.tile_begin * (tile / kPage) + i;
        if (!entries || at * kPage >= item.tokens)
            return -1;
        return max(entries[static_cast<size_t>(item.seq) * width + at], -1);
    }
};

/* The place where a border between parts cuts a sequence. tile 0: it does not cut; the part begins
 * with the sequence. */
struct border {
    int seq, tile;
};

struct shared {
    int warp_sum[kMostThreads / 32];
    int warp_most[kMostThreads / 32],
        fit[kMostThreads / 32];         /* each warp's longest sequence, and the best piece width
                                           that it found; both in tiles */
    uint32_t begins[kMostThreads / 32]; /* one bit per piece: a sequence begins with it */
    int most;
    int begin[kMaxParts + 1]; /* first item of a part; before that, in each.cuh, the number of its
                                 sequences */
    union {
        border borders[kMaxParts];
        struct {
            int tokens[kMostThreads], tiles[kMostThreads]; /* tokens and tiles of the sequences, one
                                                              sequence per thread */
        };
    };
    union {
        int load[kMaxParts];     /* cost of a part, in schedule "whole" */
        int cuts[kMaxParts + 1]; /* in schedule "line": number of different cuts before border p; in
                                    "pieces" (each.cuh): the split sequences, in order */
    };
    int start[kMaxCut]; /* by sequence: its position on the line ("line"), or its first piece
                           ("pieces") */
    int slot[kMaxCut];
};

__device__ int threads() {
    return static_cast<int>(blockDim.x);
}

/* An exclusive prefix sum, and the sum of all. */
struct scanned {
    int before, total;
};

/* Sums over the values that the warps of a block stored in `sums`: those of the warps before this
 * one, and those of all warps. */
__device__ scanned sums_of(const int *sums) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int sum = lane < threads() / 32 ? sums[lane] : 0;
    return {__reduce_add_sync(~0u, lane < warp ? sum : 0), __reduce_add_sync(~0u, sum)};
}

/* Inclusive prefix sum over a warp. */
__device__ int scan_warp(int value) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int below = __shfl_up_sync(~0u, value, step);
        value += (threadIdx.x & 31) >= step ? below : 0;
    }
    return value;
}

/* Exclusive prefix sum over the block. */
__device__ __noinline__ scanned block_scan(int *warp_sum, int value) {
    const int sum = scan_warp(value);
    __syncthreads();
    if ((threadIdx.x & 31) == 31)
        warp_sum[threadIdx.x >> 5] = sum;
    __syncthreads();
    const scanned warps = sums_of(warp_sum);
    return {warps.before + sum - value, warps.total};
}

/* Replaces each of n entries by the minimum of itself and all entries after it. */
__device__ void least_from(shared &s, int *entries, int n) {
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    int least = t < n ? entries[t] : INT_MAX;
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2)
        least = min(least, __shfl_down_sync(~0u, least, step)); /* a lane without a source lane gets
                                                                   its own value */
    if (lane == 0)
        s.warp_sum[warp] = least;
    __syncthreads();
    const int others = lane > warp && lane < threads() / 32 ? s.warp_sum[lane] : INT_MAX;
    least = min(least, __reduce_min_sync(~0u, others));
    if (t < n)
        entries[t] = least;
}

/* The consecutive sequences of one thread, and where they begin on the line. */
struct run {
    int begin, end, start;
};

} // namespace
