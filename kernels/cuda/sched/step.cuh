/* step.cuh - what the plans share: sequences of a step and their costs, memory of the block, sums. */
#pragma once
#include <cstdint>

#include "kernels/cuda/sched/sched.h"

namespace {

enum {
    kThreads = 1024,
    kPage = 64,
    kMaxParts = kThreads - 1,
    kMaxCut = 2048,  /* sequences; beyond it whole ones balance well enough */
    kFixedTiles = 2, /* what an item costs beside its tiles: query, first loads, epilogue */
    kMergeTiles = 3, /* what merging partial results costs a part */
    kLeastTiles = 1, /* a cut leaves at least so many tiles on either side */
};

struct sequences {
    const int *lengths;
    int batch, max_tokens, tile;

    __device__ int tokens(int seq) const {
        return min(max(lengths[seq], 0), max_tokens);
    }
    __device__ int tiles(int seq) const {
        return (tokens(seq) + tile - 1) / tile;
    }
    __device__ int cost(int seq) const {
        return tiles(seq) + kFixedTiles;
    }
};

/* Entry i of an item; -1: there is none, or it is out of range. */
struct page_table {
    const int *entries;
    int width;

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
    int warp_sum[kThreads / 32];
    int load[kMaxParts]; /* cost of a part that takes whole sequences */
    int most, most_tiles, piece;
    int kind, pieces;         /* the choice for few sequences; items if it is pieces */
    int begin[kMaxParts + 1]; /* first item of a part */
    border borders[kMaxParts];
    int cuts[kMaxParts + 1]; /* before border p */
    int start[kMaxCut];      /* of a sequence on the line, or its first item */
    int slot[kMaxCut];
};

/* Exclusive prefix sum over the block; *total gets the sum. */
__device__ int block_scan(shared &s, int value, int *total) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int sum = value;
    for (int step = 1; step < 32; step *= 2) {
        int below = __shfl_up_sync(~0u, sum, step);
        if (lane >= step)
            sum += below;
    }
    __syncthreads();
    if (lane == 31)
        s.warp_sum[warp] = sum;
    __syncthreads();
    int warps = s.warp_sum[lane]; /* every warp adds up all of them */
    for (int step = 1; step < 32; step *= 2) {
        int below = __shfl_up_sync(~0u, warps, step);
        if (lane >= step)
            warps += below;
    }
    *total = __shfl_sync(~0u, warps, 31);
    const int before = __shfl_sync(~0u, warps, max(warp - 1, 0));
    return (warp ? before : 0) + sum - value;
}

/* The sequences of one thread, and where they begin on the line. */
struct run {
    int begin, end, start;
};

} // namespace
