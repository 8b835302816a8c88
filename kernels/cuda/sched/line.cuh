/* line.cuh - schedule "line". The costs of all sequences, one after the other, form a line. It is
 * cut at the borders of parts, which lie `width` apart. */
#pragma once
#include "kernels/cuda/sched/step.cuh"

namespace {

/* The place of the border at position @at, in the last sequence that begins at or before it. A
 * border closer than kLeastTiles to an end of the sequence is moved there, so that it does not
 * cut. */
__device__ border find_border(const shared &s, const sequences &seqs, int at) {
    int low = 0, high = seqs.batch;
#pragma unroll 1
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (s.start[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    const int tiles = seqs.tiles(low), tile = at - s.start[low] - kFixedTiles / 2;
    if (tile < kLeastTiles)
        return {low, 0};
    return tile > tiles - kLeastTiles ? border{low + 1, 0} : border{low, tile};
}

/* True if border p begins an item: it cuts a sequence, and the border before it does not cut at the
 * same place. */
__device__ bool makes_item(const shared &s, int p) {
    const border b = s.borders[p];
    return b.tile > 0 &&
           (p == 0 || s.borders[p - 1].seq != b.seq || s.borders[p - 1].tile != b.tile);
}

__device__ int first_border_from(int at, int width, int parts) {
    return min(divide(at + width - 1, width), parts);
}

__device__ void deal_cut(shared &s, const sched_plan &plan, const sequences &seqs, const run &mine,
                         int parts, int width) {
    int at = mine.start;
#pragma unroll 1
    for (int b = mine.begin; b < mine.end; b++) {
        s.start[b] = at;
        at += seqs.cost(b);
    }
    __syncthreads();
    const int p = threadIdx.x;
    if (p < parts)
        s.borders[p] = find_border(s, seqs, p * width);
    __syncthreads();
    const bool item = p < parts && makes_item(s, p);
    const scanned of_cuts = block_scan(s.warp_sum, item);
    const int before = of_cuts.before, all_cuts = of_cuts.total;
    if (p < parts)
        s.cuts[p] = before;
    if (p == 0)
        s.cuts[parts] = all_cuts;
    __syncthreads();

    int slots = 0, cut = 0;
#pragma unroll 1
    for (int b = mine.begin; b < mine.end; b++) {
        const int low = first_border_from(s.start[b], width, parts);
        const int high = first_border_from(s.start[b] + seqs.cost(b), width, parts);
        const int n = 1 + s.cuts[high] - s.cuts[low];
        slots += n > 1 ? n : 0;
        cut += n > 1;
    }
    const scanned of_sequences = block_scan(s.warp_sum, cut);
    int slot = block_scan(s.warp_sum, slots).before, nth_cut = of_sequences.before;
    if (p == 0)
        *plan.cut_count = of_sequences.total;
#pragma unroll 1
    for (int b = mine.begin; b < mine.end; b++) {
        const int low = first_border_from(s.start[b], width, parts);
        const int high = first_border_from(s.start[b] + seqs.cost(b), width, parts);
        const int n = 1 + s.cuts[high] - s.cuts[low];
        int end = seqs.tiles(b);
#pragma unroll 1
        for (int q = low; q < high && n > 1; q++)
            if (makes_item(s, q)) {
                end = s.borders[q].tile;
                break;
            }
        plan.items[b + s.cuts[low]] = {b, seqs.tokens(b), 0, end, n > 1 ? slot : -1, slot, n, 0};
        s.slot[b] = slot;
        if (n > 1) {
            plan.cuts[nth_cut++] = {b, slot, n};
            slot += n;
        }
    }
    __syncthreads();
    if (p < parts) {
        const border b = s.borders[p];
        /* If borders share a cut, all of them begin with the item of the first one. */
        s.begin[p] = b.seq + before + (item ? 1 : 0);
        if (item) {
            const int low = first_border_from(s.start[b.seq], width, parts);
            const int high = first_border_from(s.start[b.seq] + seqs.cost(b.seq), width, parts);
            const int slot = s.slot[b.seq];
            int end = seqs.tiles(b.seq);
#pragma unroll 1
            for (int q = p + 1; q < parts && s.borders[q].seq == b.seq; q++)
                if (makes_item(s, q)) {
                    end = s.borders[q].tile;
                    break;
                }
            plan.items[s.begin[p]] = {b.seq,
                                      seqs.tokens(b.seq),
                                      b.tile,
                                      end,
                                      slot + 1 + before - s.cuts[low],
                                      slot,
                                      1 + s.cuts[high] - s.cuts[low],
                                      0};
        }
    }
    if (p == 0)
        s.begin[parts] = seqs.batch + all_cuts;
}

} // namespace
