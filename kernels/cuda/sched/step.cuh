/* step.cuh - what the plans share: sequences of a step and their costs, memory of the block, sums. */
#pragma once
#include <climits>
#include <cstdint>

#include "kernels/cuda/sched/sched.h"

namespace {

enum {
    kMostThreads = 1024, /* of the block; a part each and one more are needed */
    kPage = 64,
    kMaxParts = kMostThreads - 1,
    kMaxCut = 1024,  /* sequences; beyond it whole ones balance well enough */
    kFixedTiles = 2, /* what an item costs beside its tiles: query, first loads, epilogue */
    kLeastTiles = 1, /* a cut leaves at least so many tiles on either side */
};

/* Not inlined: two dozen instructions. */
__device__ __noinline__ int divide(uint32_t a, uint32_t b) {
    return static_cast<int>(a / b);
}

struct sequences {
    const int *lengths;
    int batch, max_tokens, tile, tile_bits; /* tile = 2^tile_bits */
    int merge, line;                        /* sched_tile's */

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

/* Entry i of an item; -1: there is none, or it is out of range. */
struct page_table {
    const int *entries;
    int width;

    /* On its way to L2 before it is known which entries are wanted. */
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

/* Where a border cuts a sequence; tile 0: it doesn't, the part begins with the sequence. */
struct border {
    int seq, tile;
};

struct shared {
    int warp_sum[kMostThreads / 32];
    int warp_most[kMostThreads / 32],
        fit[kMostThreads / 32];         /* longest sequence, width of pieces */
    uint32_t begins[kMostThreads / 32]; /* a bit a piece: a sequence begins */
    int most;
    int begin[kMaxParts + 1]; /* first item of a part, or how many sequences it takes */
    union {
        border borders[kMaxParts];
        struct {
            int tokens[kMostThreads], tiles[kMostThreads]; /* of sequences, one a thread */
        };
    };
    union {
        int load[kMaxParts];     /* cost of a part that takes whole sequences */
        int cuts[kMaxParts + 1]; /* before border p, once the line is cut */
    };
    int start[kMaxCut]; /* of a sequence on the line, or its first item */
    int slot[kMaxCut];
};

__device__ int threads() {
    return static_cast<int>(blockDim.x);
}

/* An exclusive prefix sum, and the sum of all. */
struct scanned {
    int before, total;
};

/* Sums over the block of what each warp leaves in `sums`: of the warps before this one, and of all. */
__device__ scanned sums_of(const int *sums) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int sum = lane < threads() / 32 ? sums[lane] : 0;
    return {__reduce_add_sync(~0u, lane < warp ? sum : 0), __reduce_add_sync(~0u, sum)};
}

/* Of a warp, each lane's own included. */
__device__ int scan_warp(int value) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int below = __shfl_up_sync(~0u, value, step);
        value += (threadIdx.x & 31) >= step ? below : 0;
    }
    return value;
}

/* Over the block. */
__device__ __noinline__ scanned block_scan(int *warp_sum, int value) {
    const int sum = scan_warp(value);
    __syncthreads();
    if ((threadIdx.x & 31) == 31)
        warp_sum[threadIdx.x >> 5] = sum;
    __syncthreads();
    const scanned warps = sums_of(warp_sum);
    return {warps.before + sum - value, warps.total};
}

/* Of entry t = 0 .. n - 1 the least of it and those after it. */
__device__ void least_from(shared &s, int *entries, int n) {
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    int least = t < n ? entries[t] : INT_MAX;
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2)
        least = min(least, __shfl_down_sync(~0u, least, step)); /* the last lanes get their own */
    if (lane == 0)
        s.warp_sum[warp] = least;
    __syncthreads();
    const int others = lane > warp && lane < threads() / 32 ? s.warp_sum[lane] : INT_MAX;
    least = min(least, __reduce_min_sync(~0u, others));
    if (t < n)
        entries[t] = least;
}

/* The sequences of one thread, and where they begin on the line. */
struct run {
    int begin, end, start;
};

} // namespace
