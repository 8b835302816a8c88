/* each.cuh - schedules "whole" and "pieces" for steps in which every sequence has its own thread. A
 * schedule is computed by a chain of dependent steps in a single block, so its time depends on the
 * number of these steps. To need only three barriers ("whole") or four ("pieces"), warps store sums
 * in shared memory, and every warp computes the common values again from them. */
#pragma once
#include "kernels/cuda/ptx/launch.cuh"
#include "kernels/cuda/sched/choice.cuh"
#include "kernels/cuda/sched/line.cuh"

namespace {

enum {
    kCandidates = 32, /* number of piece widths that are tried */
    kTriers = 8,      /* warps that share the candidates; further warps repeat the same work */
    kTries = kCandidates / kTriers,
};

struct mine {
    bool real;
    int tokens, tiles, cost, start; /* start: position on the line of costs (line.cuh); real: the
                                       thread has a sequence */
};

/* Three counts packed into one word: items, slots and split sequences. count_pieces() packs those
 * of one sequence; their prefix sums over the threads number them. None of the sums exceeds
 * kMaxParts. */
enum { kSlotBit = 11, kCutBit = 22 };
static_assert(kMaxParts < 1 << (32 - kCutBit) && kMaxParts < 1 << kSlotBit, "fields of a word");

__device__ uint32_t count_pieces(int own) {
    return own > 1 ? own | own << kSlotBit | 1u << kCutBit : own;
}

/* a / b for numbers below 2^25. The float quotient is off by at most one, which is corrected. */
__device__ int quotient_of(int a, int b) {
    int q = static_cast<int>(__fdividef(static_cast<float>(a), static_cast<float>(b)));
    const int rest = a - q * b;
    return q + (rest >= b) - (rest < 0);
}

/* Finds about the smallest piece width for which the number of pieces does not exceed the number of
 * parts. Each warp tries four of 32 candidates and stores the smallest that works in s.fit, or 2^30
 * if none does. Does nothing if there are more sequences than parts. */
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
        /* A sequence has 1 + (tiles - 1) / width pieces, rounded down. With tiles - 0.5 instead,
         * the result is the same, and below 2^15 tiles the float quotient lies further from any
         * integer than its error. */
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

/* Schedule "whole": assigns each sequence to the part in whose span of the line (line.cuh) its
 * middle lies, and adds up each part's cost and number of sequences. */
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

/* The sequence of the thread's piece: the number of sequences that begin at or before it, minus
 * one. Each bit of s.begins is a piece with which a sequence begins. */
__device__ int sequence_of_piece(const shared &s) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int before = __reduce_add_sync(~0u, lane < warp ? __popc(s.begins[lane]) : 0);
    return before + __popc(s.begins[warp] & (2u << lane) - 1) - 1;
}

/* Stores the first piece and the first slot of the thread's sequence and, if it is split, its
 * record in plan.cuts. @own: its number of pieces. @before: the packed counts of the sequences
 * before it. */
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

/* The number of mergers of each split sequence. A merger is a part that has no piece of its own.
 * The result is 0, and the parts with pieces merge, if fewer parts are without a piece than with
 * one: the shares of the mergers would then be larger. */
__device__ int mergers_of(int parts, int pieces, int cut) {
    return cut > 0 && parts - pieces >= pieces ? quotient_of(parts - pieces, cut) : 0;
}

/* The merge task of the nth part without a piece; empty if it has none. */
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
                     quotient_of(tiles * i, count), /* tiles <= 2^14, i < 2^10 */
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

/* Prefetches entries at the beginning of the block table, and the first entries of each
 * sequence. */
__device__ void prefetch_pages(const page_table &table, int batch) {
    enum { kLine = 32 }; /* entries per cache line */
    const size_t t = threadIdx.x;
    table.prefetch(t * kLine, batch);
    table.prefetch((t + threads()) * kLine, batch);
    table.prefetch(t * table.width, batch);
}

/* Computes the thread's sequence, its place on the line, and the values needed to choose a
 * schedule. */
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

/* Computes schedule "whole" or "pieces". Called by all threads, of which there are at least as many
 * as sequences. Returns false if "line" is the cheapest; the caller then computes that from
 * *mine_of and *width_of. */
__device__ bool plan_each(shared &s, const sched_plan &plan, const sequences &seqs, int parts,
                          const page_table &table, run *mine_of, int *width_of) {
    const int lane = threadIdx.x & 31, t = threadIdx.x;
    const int tokens = t < seqs.batch ? seqs.tokens(t) : 0; /* loaded first, to hide its latency */
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
