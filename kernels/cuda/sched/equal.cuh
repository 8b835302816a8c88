/* equal.cuh - schedules in which every sequence is split into the same number of about equal items
 * (or into its tiles, if it has fewer), or not at all. */
#pragma once
#include "kernels/cuda/sched/step.cuh"

namespace {

struct equal_cuts {
    int splits, parts, width;

    __device__ int count(int tiles) const {
        return max(min(splits, tiles), 1);
    }
    __device__ int begin(int tiles, int i) const {
        return divide(static_cast<uint32_t>(tiles) * i, count(tiles)); /* the product is at most
                                                                          2^28 */
    }
    /* The part in whose span of the line (line.cuh) the middle of item i lies. @start: position of
     * the sequence on the line. */
    __device__ int part(int tiles, int i, int start) const {
        int middle = start + (begin(tiles, i) + begin(tiles, i + 1) + kFixedTiles) / 2;
        return min(divide(middle, width), parts - 1);
    }
};

/* The cost of the longest part if no sequence is split. */
__device__ int longest_whole(shared &s, const sequences &seqs, const run &mine, int parts,
                             int width) {
    const equal_cuts whole = {1, parts, width};
#pragma unroll 1
    for (int p = threadIdx.x; p < parts; p += threads())
        s.load[p] = 0;
    s.most = 0;
    __syncthreads();
    int at = mine.start;
#pragma unroll 1
    for (int b = mine.begin; b < mine.end; b++) {
        atomicAdd(&s.load[whole.part(seqs.tiles(b), 0, at)], seqs.cost(b));
        at += seqs.cost(b);
    }
    __syncthreads();
    int most = 0;
#pragma unroll 1
    for (int p = threadIdx.x; p < parts; p += threads())
        most = max(most, s.load[p]);
    most = __reduce_max_sync(~0u, most);
    if ((threadIdx.x & 31) == 0)
        atomicMax(&s.most, most);
    __syncthreads();
    return s.most;
}

__device__ void deal_equal(shared &s, const sched_plan &plan, const sequences &seqs,
                           const run &mine, const equal_cuts &cuts) {
    int item = mine.begin, slot = 0, nth_cut = 0, all_items = seqs.batch, all_cut = 0;
    if (cuts.splits > 1) {
        int items = 0, slots = 0, cut = 0;
#pragma unroll 1
        for (int b = mine.begin; b < mine.end; b++) {
            const int n = cuts.count(seqs.tiles(b));
            items += n;
            slots += n > 1 ? n : 0;
            cut += n > 1;
        }
        const scanned of_items = block_scan(s.warp_sum, items);
        const scanned of_cuts = block_scan(s.warp_sum, cut);
        item = of_items.before;
        slot = block_scan(s.warp_sum, slots).before;
        nth_cut = of_cuts.before;
        all_items = of_items.total;
        all_cut = of_cuts.total;
    }
    if (threadIdx.x == 0)
        *plan.cut_count = all_cut;
#pragma unroll 1
    for (int p = threadIdx.x; p <= cuts.parts; p += threads())
        s.begin[p] = p == 0 ? 0 : all_items;
    __syncthreads();
    int at = mine.start;
#pragma unroll 1
    for (int b = mine.begin; b < mine.end; b++) {
        const int tiles = seqs.tiles(b), n = cuts.count(tiles);
#pragma unroll 1
        for (int i = 0; i < n; i++) {
            plan.items[item + i] = {b,
                                    seqs.tokens(b),
                                    cuts.begin(tiles, i),
                                    cuts.begin(tiles, i + 1),
                                    n > 1 ? slot + i : -1,
                                    slot,
                                    n,
                                    0};
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
    least_from(s, s.begin, cuts.parts + 1); /* a part without an item of its own gets the begin of
                                               the next part, so it is empty */
}

} // namespace
