/* pieces.cuh - every sequence in equal items, one item a part. */
#pragma once
#include "kernels/cuda/sched/step.cuh"

namespace {

__device__ int pieces_of(int tiles, int width) {
    return max(divide(tiles + width - 1, width), 1);
}

/* About the smallest width at which all pieces have a part each; 0 if there is none. A warp tries one
 * of 32 candidates. Takes s.start for the tiles of sequences. */
__device__ int piece_width(shared &s, const sequences &seqs, int total_tiles, int parts) {
    const int batch = seqs.batch, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (batch > parts)
        return 0;
    if (threadIdx.x == 0) {
        s.most_tiles = 1;
        s.piece = 1 << 30;
    }
    __syncthreads();
    int tiles = 0;
    if (static_cast<int>(threadIdx.x) < batch)
        s.start[threadIdx.x] = tiles = seqs.tiles(threadIdx.x);
    tiles = __reduce_max_sync(~0u, tiles);
    if (lane == 0)
        atomicMax(&s.most_tiles, tiles);
    __syncthreads();
    const int least = max(divide(total_tiles + parts - 1, parts), 1);
    int enough = s.most_tiles;
    if (parts > batch)
        enough = min(enough, divide(total_tiles + parts - batch - 1, parts - batch));
    const int step = max((enough - least + 30) / 31, 1);
#pragma unroll 1
    for (int nth = warp; nth < 32; nth += threads() / 32) {
        const int width = least + nth * step;
        int pieces = 0;
#pragma unroll 1
        for (int b = lane; b < batch; b += 32)
            pieces += pieces_of(s.start[b], width);
        pieces = __reduce_add_sync(~0u, pieces);
        if (pieces <= parts) { /* wider ones fit as well */
            if (lane == 0)
                atomicMin(&s.piece, width);
            break;
        }
    }
    __syncthreads();
    return s.piece;
}

/* What a thread's sequence adds up to with those before it: items, slots, cut sequences, none of them
 * above kMaxParts, in one number. */
enum { kSlotBit = 11, kCutBit = 22 };
static_assert(kMaxParts < 1 << (32 - kCutBit) && kMaxParts < 1 << kSlotBit, "fields of a word");

__device__ uint32_t count_pieces(int own) {
    return own > 1 ? own | own << kSlotBit | 1u << kCutBit : own;
}

/* Sequence b, given what those before it add up to. */
__device__ void place_sequence(shared &s, const sched_plan &plan, int b, int own, uint32_t before) {
    const int slot = before >> kSlotBit & (1 << (kCutBit - kSlotBit)) - 1;
    s.start[b] = before & (1 << kSlotBit) - 1;
    s.slot[b] = own > 1 ? slot : -1;
    if (own > 1)
        plan.cuts[before >> kCutBit] = {b, slot, own};
}

__device__ void place_sequences(shared &s, const sched_plan &plan, const sequences &seqs,
                                int width) {
    const int t = threadIdx.x;
    const int own = t < seqs.batch ? pieces_of(seqs.tiles(t), width) : 0;
    const scanned all = block_scan(s.warp_sum, static_cast<int>(count_pieces(own)));
    if (t < seqs.batch)
        place_sequence(s, plan, t, own, all.before);
    if (t == 0) {
        s.pieces = all.total & (1 << kSlotBit) - 1;
        *plan.cut_count = static_cast<uint32_t>(all.total) >> kCutBit;
    }
    __syncthreads();
}

/* Parts are threads: each finds the sequence of its item. */
__device__ void deal_pieces(shared &s, const sched_plan &plan, const sequences &seqs, int parts,
                            int width, const page_table &table) {
    const int t = threadIdx.x, all = s.pieces;
    if (t >= parts)
        return;
    sched_part part = {min(t, all), min(t + 1, all), {-1, -1}, {}};
    if (t >= all) {
        plan.parts[t] = part;
        return;
    }
    int low = 0, high = seqs.batch;
#pragma unroll 1
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (s.start[middle] <= t)
            low = middle;
        else
            high = middle;
    }
    const uint32_t i = t - s.start[low], n = seqs.tiles(low), count = pieces_of(n, width);
    part.head = {low,
                 seqs.tokens(low),
                 divide(n * i, count), /* n: at most 2^14, i: below 2^10 */
                 divide(n * (i + 1), count),
                 s.slot[low] < 0 ? -1 : s.slot[low] + static_cast<int>(i),
                 s.slot[low],
                 static_cast<int>(count)};
    plan.items[t] = part.head;
    part.page[0] = table.page(part.head, seqs.tile, 0);
    part.page[1] = table.page(part.head, seqs.tile, 1);
    plan.parts[t] = part;
}

} // namespace
