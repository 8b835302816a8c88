/* equal.cuh - whole sequences, or each in so many equal items. */
#pragma once
#include "kernels/cuda/sched/step.cuh"

namespace {

struct equal_cuts {
    int splits, parts, width;

    __device__ int count(int tiles) const {
        return max(min(splits, tiles), 1);
    }
    __device__ int begin(int tiles, int i) const {
        return static_cast<int>(static_cast<long long>(tiles) * i / count(tiles));
    }
    /* The part in whose span the middle of item i lies. */
    __device__ int part(int tiles, int i, int start) const {
        int middle = start + (begin(tiles, i) + begin(tiles, i + 1) + kFixedTiles) / 2;
        return min(middle / width, parts - 1);
    }
};

/* The longest part if whole sequences are dealt out. */
__device__ int longest_whole(shared &s, const sequences &seqs, const run &mine, int parts,
                             int width) {
    const equal_cuts whole = {1, parts, width};
    for (int p = threadIdx.x; p < parts; p += kThreads)
        s.load[p] = 0;
    s.most = 0;
    __syncthreads();
    int at = mine.start;
    for (int b = mine.begin; b < mine.end; b++) {
        atomicAdd(&s.load[whole.part(seqs.tiles(b), 0, at)], seqs.cost(b));
        at += seqs.cost(b);
    }
    __syncthreads();
    for (int p = threadIdx.x; p < parts; p += kThreads)
        atomicMax(&s.most, s.load[p]);
    __syncthreads();
    return s.most;
}

__device__ void deal_equal(shared &s, const sched_plan &plan, const sequences &seqs,
                           const run &mine, const equal_cuts &cuts) {
    int items = 0, slots = 0, cut = 0, all_items, all_slots, all_cut;
    for (int b = mine.begin; b < mine.end; b++) {
        const int n = cuts.count(seqs.tiles(b));
        items += n;
        slots += n > 1 ? n : 0;
        cut += n > 1;
    }
    int item = block_scan(s, items, &all_items), slot = block_scan(s, slots, &all_slots);
    int nth_cut = block_scan(s, cut, &all_cut);
    if (threadIdx.x == 0)
        *plan.cut_count = all_cut;
    for (int p = threadIdx.x; p <= cuts.parts; p += kThreads)
        s.begin[p] = p == 0 ? 0 : all_items;
    __syncthreads();
    int at = mine.start;
    for (int b = mine.begin; b < mine.end; b++) {
        const int tiles = seqs.tiles(b), n = cuts.count(tiles);
        for (int i = 0; i < n; i++) {
            plan.items[item + i] = {b,
                                    seqs.tokens(b),
                                    cuts.begin(tiles, i),
                                    cuts.begin(tiles, i + 1),
                                    n > 1 ? slot + i : -1,
                                    slot,
                                    n};
            atomicMin(&s.begin[cuts.part(tiles, i, at)], item + i);
        }
        if (n > 1) {
            plan.cuts[nth_cut++] = {b, slot, n};
            slot += n;
        }
        item += n;
        at += tiles + kFixedTiles;
    }
    __syncthreads();
    /* A part without a first item of its own is empty: it begins where the next one does. */
    int least = 0;
    if (static_cast<int>(threadIdx.x) <= cuts.parts) {
        least = s.begin[threadIdx.x];
        for (int q = threadIdx.x + 1; q <= cuts.parts; q++)
            least = min(least, s.begin[q]);
    }
    __syncthreads();
    if (static_cast<int>(threadIdx.x) <= cuts.parts)
        s.begin[threadIdx.x] = least;
}

} // namespace
