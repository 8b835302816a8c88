/* plan_step.cuh - the plan of a step, by one block. Three plans are compared by the cost of their longest part:
 *   whole   sequences lie on a line of costs; a part takes those whose middle lies in its span
 *   pieces  every sequence in equal items of at most so many tiles, one item a part
 *   line    the line is cut at the borders of parts; a part may have the end of one sequence and the
 *           beginning of another
 * Threads take sequences first, then parts; scans number the items and slots. */
#pragma once
#include "kernels/cuda/sched/few.cuh"
#include "kernels/cuda/sched/line.cuh"

namespace {

enum { kLine = 32 }; /* entries of a table in a line of the cache */

__device__ choice choose(shared &s, const sequences &seqs, const run &mine, int parts, int width,
                         int total, int splits) {
    if (splits != 0)
        return {EQUAL, 0};
    const int whole = longest_whole(s, seqs, mine, parts, width);
    const int piece = piece_width(s, seqs, total - seqs.batch * kFixedTiles, parts);
    return cheapest(seqs.batch, width, whole, piece);
}

/* By all threads of a block, more of them than there are parts. */
__device__ void plan_step(shared &s, const sched_plan &plan, const sequences &seqs, int parts,
                          int splits, const page_table &table) {
    const bool few = seqs.batch <= kFew && splits == 0;
    if (few) {
        if (threadIdx.x < 32)
            decide_few(s, plan, seqs, parts);
        else
            table.prefetch((threadIdx.x - 32) * size_t(kLine), seqs.batch);
        __syncthreads();
        if (s.kind == PIECES) {
            deal_pieces(s, plan, seqs, parts, s.piece, table);
            return;
        }
    }
    table.prefetch(threadIdx.x * static_cast<size_t>(table.width), seqs.batch);
    const int each = divide(seqs.batch + threads() - 1, threads());
    run mine;
    mine.begin = min(static_cast<int>(threadIdx.x) * each, seqs.batch);
    mine.end = min(mine.begin + each, seqs.batch);
    int cost = 0;
#pragma unroll 1
    for (int b = mine.begin; b < mine.end; b++)
        cost += seqs.cost(b);
    const scanned of_costs = block_scan(s.warp_sum, cost);
    const int total = of_costs.total;
    mine.start = of_costs.before;
    const int width = divide(total + parts - 1, parts);

    const choice plan_kind = few ? choice{static_cast<kind>(s.kind), s.piece}
                                 : choose(s, seqs, mine, parts, width, total, splits);
    if (plan_kind.kind == PIECES) {
        place_sequences(s, plan, seqs, plan_kind.piece);
        deal_pieces(s, plan, seqs, parts, plan_kind.piece, table);
        return;
    }
    if (plan_kind.kind == LINE)
        deal_cut(s, plan, seqs, mine, parts, width);
    else
        deal_equal(s, plan, seqs, mine, {max(splits, 1), parts, width});
    __syncthreads();
    const int p = threadIdx.x;
    if (p >= parts)
        return;
    sched_part part = {s.begin[p], s.begin[p + 1], {-1, -1}, {}};
    if (part.first < part.last) {
        part.head = plan.items[part.first];
        part.page[0] = table.page(part.head, seqs.tile, 0);
        part.page[1] = table.page(part.head, seqs.tile, 1);
    }
    plan.parts[p] = part;
}

} // namespace
