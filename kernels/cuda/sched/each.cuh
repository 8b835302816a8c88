/* each.cuh - a sequence a thread: what all threads must know is worked out by every warp again, from sums that
 * the warps leave on chip, so that four barriers are enough. A plan is a chain of dependent steps of a single
 * block: its time is their number. */
#pragma once
#include "kernels/cuda/ptx/launch.cuh"
#include "kernels/cuda/sched/choice.cuh"
#include "kernels/cuda/sched/line.cuh"

namespace {

enum {
    kCandidates = 32, /* widths of pieces that are tried */
    kTriers = 8,      /* warps that try them, the others as well */
    kTries = kCandidates / kTriers,
};

struct mine {
    bool real;
    int tokens, tiles, cost, start; /* start: on the line of costs */
};

/* What a thread's sequence adds up to with those before it: items, slots, cut sequences, none of them
 * above kMaxParts, in one number. */
enum { kSlotBit = 11, kCutBit = 22 };
static_assert(kMaxParts < 1 << (32 - kCutBit) && kMaxParts < 1 << kSlotBit, "fields of a word");

__device__ uint32_t count_pieces(int own) {
    return own > 1 ? own | own << kSlotBit | 1u << kCutBit : own;
}

/* a / b of numbers below 2^25: that of floats is off by one at most. */
__device__ int quotient_of(int a, int b) {
    int q = static_cast<int>(__fdividef(static_cast<float>(a), static_cast<float>(b)));
    const int rest = a - q * b;
    return q + (rest >= b) - (rest < 0);
}

/* About the smallest width at which all pieces have a part each: a warp tries four of 32 candidates and leaves
 * the least that serves. */
__device__ void try_widths(shared &s, int batch, int total_tiles, int most_tiles, int parts) {
    if (batch > parts)
        return;
    const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) % kTriers;
    const int least = max(quotient_of(total_tiles + parts - 1, parts), 1);
    int enough = max(most_tiles, 1);
    if (parts > batch)
        enough = min(enough, quotient_of(total_tiles + parts - batch - 1, parts - batch));
    const int step = max((enough - least + kCandidates - 2) / (kCandidates - 1), 1);
    float inverse[kTries];
    int pieces[kTries] = {};
#pragma unroll
    for (int i = 0; i < kTries; i++)
        inverse[i] = __fdividef(1.0f, static_cast<float>(least + (kTries * warp + i) * step));
#pragma unroll 2
    for (int b = lane; b < batch; b += 32) {
        /* (tiles - 1) / width, exact: half is further from a whole number than a float's error below 2^15 */
        const float tiles = static_cast<float>(s.tiles[b]) - 0.5f;
#pragma unroll
        for (int i = 0; i < kTries; i++)
            pieces[i] += 1 + max(static_cast<int>(tiles * inverse[i]), 0);
    }
    int fit = 1 << 30;
#pragma unroll
    for (int i = kTries - 1; i >= 0; i--)
        if (__reduce_add_sync(~0u, pieces[i]) <= parts)
            fit = least + (kTries * warp + i) * step;
    if (lane == 0)
        s.fit[threadIdx.x >> 5] = fit;
}

/* Whole sequences on the line, by the part in whose span their middle lies: its load, how many. */
__device__ void count_whole(shared &s, const mine &m, int parts, int width) {
    if (!m.real)
        return;
    const int part = min(quotient_of(m.start + (m.tiles + kFixedTiles) / 2, width), parts - 1);
    atomicAdd(&s.load[part], m.cost);
    atomicAdd(&s.begin[part], 1);
}

__device__ choice choose_of(const shared &s, const sequences &seqs, int parts, int width) {
    const int lane = threadIdx.x & 31;
    int most = 0;
#pragma unroll 8
    for (int p = lane; p < parts; p += 32)
        most = max(most, s.load[p]);
    most = __reduce_max_sync(~0u, most);
    const int piece = __reduce_min_sync(~0u, lane < kTriers ? s.fit[lane] : 1 << 30);
    return cheapest(seqs, width, most, seqs.batch <= parts ? piece : 0);
}

__device__ void leave_part(const sched_plan &plan, const page_table &table, int tile,
                           sched_part part) {
    if (part.first < part.last) {
        part.page[0] = table.page(part.head, tile, 0);
        part.page[1] = table.page(part.head, tile, 1);
    }
    plan.parts[threadIdx.x] = part;
}

__device__ void deal_whole(shared &s, const sched_plan &plan, const sequences &seqs, const mine &m,
                           int parts, const page_table &table) {
    const int t = threadIdx.x, count = t < parts ? s.begin[t] : 0, sum = scan_warp(count);
    if ((t & 31) == 31)
        s.warp_sum[t >> 5] = sum;
    if (m.real)
        plan.items[t] = {t, m.tokens, 0, m.tiles, -1, 0, 1, 0};
    if (t == 0)
        *plan.cut_count = 0;
    __syncthreads();
    const int first = sums_of(s.warp_sum).before + sum - count;
    if (t >= parts)
        return;
    sched_part part = {first, first + count, {-1, -1}, {}};
    if (count)
        part.head = {first, s.tokens[first], 0, s.tiles[first], -1, 0, 1, 0};
    leave_part(plan, table, seqs.tile, part);
}

/* Which sequence has the thread's piece: as many as begin at or before it, less one; a bit a piece says where. */
__device__ int sequence_of_piece(const shared &s) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int before = __reduce_add_sync(~0u, lane < warp ? __popc(s.begins[lane]) : 0);
    return before + __popc(s.begins[warp] & (2u << lane) - 1) - 1;
}

/* Sequence of the thread, given what those before it add up to. */
__device__ void place_sequence(shared &s, const sched_plan &plan, int own, uint32_t before) {
    const int t = threadIdx.x, start = before & (1 << kSlotBit) - 1;
    const int slot = before >> kSlotBit & (1 << (kCutBit - kSlotBit)) - 1;
    s.start[t] = start;
    s.slot[t] = own > 1 ? slot : -1;
    atomicOr(&s.begins[start >> 5], 1u << (start & 31));
    if (own > 1) {
        plan.cuts[before >> kCutBit] = {t, slot, own};
        s.cuts[before >> kCutBit] = t;
    }
}

/* How many parts without a piece each cut sequence gets to merge it: if there are as many as with one, so that
 * theirs are not the larger shares. */
__device__ int mergers_of(int parts, int pieces, int cut) {
    return cut > 0 && parts - pieces >= pieces ? quotient_of(parts - pieces, cut) : 0;
}

/* What the nth part without a piece merges, if anything. */
__device__ sched_item merge_of(const shared &s, int nth, int mergers, int cut, int width) {
    const int which = mergers ? quotient_of(nth, mergers) : cut;
    if (which >= cut)
        return {};
    const int seq = s.cuts[which], slot = s.slot[seq];
    const int count = quotient_of(s.tiles[seq] + width - 1, width);
    return {seq, s.tokens[seq], 0, 0, slot + nth - which * mergers, slot, count, mergers};
}

__device__ void deal_each(shared &s, const sched_plan &plan, const sequences &seqs, const mine &m,
                          int parts, int width, const page_table &table) {
    const int t = threadIdx.x;
    const int own = m.real ? max(quotient_of(m.tiles + width - 1, width), 1) : 0;
    const int packed = static_cast<int>(count_pieces(own)), sum = scan_warp(packed);
    if ((t & 31) == 31)
        s.warp_sum[t >> 5] = sum;
    __syncthreads();
    const scanned others = sums_of(s.warp_sum);
    const uint32_t before = static_cast<uint32_t>(others.before + sum - packed);
    const uint32_t all = static_cast<uint32_t>(others.total);
    if (m.real)
        place_sequence(s, plan, own, before);
    if (t == 0)
        *plan.cut_count = all >> kCutBit;
    __syncthreads();
    const int pieces = all & (1 << kSlotBit) - 1, cut = all >> kCutBit;
    const int mergers = mergers_of(parts, pieces, cut), seq = sequence_of_piece(s);
    if (t >= parts)
        return;
    sched_part part = {min(t, pieces), min(t + 1, pieces), {-1, -1}, {}};
    if (t < pieces) {
        const int i = t - s.start[seq], tiles = s.tiles[seq], slot = s.slot[seq];
        const int count = max(quotient_of(tiles + width - 1, width), 1);
        part.head = {seq,
                     s.tokens[seq],
                     quotient_of(tiles * i, count), /* tiles: at most 2^14, i: below 2^10 */
                     quotient_of(tiles * (i + 1), count),
                     slot < 0 ? -1 : slot + i,
                     slot,
                     count,
                     slot < 0 ? 0 : mergers};
        plan.items[t] = part.head;
    } else {
        part.head = merge_of(s, t - pieces, mergers, cut, width);
    }
    leave_part(plan, table, seqs.tile, part);
}

/* Entries on their way: the first ones of the table, and each sequence's. */
__device__ void prefetch_pages(const page_table &table, int batch) {
    enum { kLine = 32 }; /* entries of a line of the cache */
    const size_t t = threadIdx.x;
    table.prefetch(t * kLine, batch);
    table.prefetch((t + threads()) * kLine, batch);
    table.prefetch(t * table.width, batch);
}

/* Every thread's sequence, of so many tokens, the line, and what the choice needs. */
__device__ mine lay_out(shared &s, const sequences &seqs, int tokens, int parts, int *total) {
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    mine m = {t < seqs.batch, tokens, 0, 0, 0};
    if (t < parts)
        s.load[t] = s.begin[t] = 0;
    if (t < kMostThreads / 32)
        s.begins[t] = 0;
    if (m.real) {
        m.tiles = (m.tokens + seqs.tile - 1) >> seqs.tile_bits;
        m.cost = m.tiles + kFixedTiles;
        s.tokens[t] = m.tokens;
        s.tiles[t] = m.tiles;
    }
    const int sum = scan_warp(m.cost), most = __reduce_max_sync(~0u, m.tiles);
    if (lane == 31)
        s.warp_sum[warp] = sum;
    if (lane == 0)
        s.warp_most[warp] = most;
    __syncthreads();
    const scanned costs = sums_of(s.warp_sum);
    m.start = costs.before + sum - m.cost;
    *total = costs.total;
    return m;
}

/* By all threads, at least as many as sequences. Returns false where the line is cut: that is left to do. */
__device__ bool plan_each(shared &s, const sched_plan &plan, const sequences &seqs, int parts,
                          const page_table &table, run *mine_of, int *width_of) {
    const int lane = threadIdx.x & 31, t = threadIdx.x;
    const int tokens = t < seqs.batch ? seqs.tokens(t) : 0; /* asked for first */
    int total;
    prefetch_pages(table, seqs.batch);
    const mine m = lay_out(s, seqs, tokens, parts, &total);
    const int width = quotient_of(total + parts - 1, parts);
    const int most = __reduce_max_sync(~0u, lane < threads() / 32 ? s.warp_most[lane] : 0);
    count_whole(s, m, parts, width);
    try_widths(s, seqs.batch, total - seqs.batch * kFixedTiles, most, parts);
    __syncthreads();
    const choice found = choose_of(s, seqs, parts, width);
    ptx::launch_next();
    if (found.kind == EQUAL)
        deal_whole(s, plan, seqs, m, parts, table);
    else if (found.kind == PIECES)
        deal_each(s, plan, seqs, m, parts, found.piece, table);
    *width_of = width;
    *mine_of = {min(t, seqs.batch), min(t + 1, seqs.batch), m.start};
    return found.kind != LINE;
}

} // namespace
