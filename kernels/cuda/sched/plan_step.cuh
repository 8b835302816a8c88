/* plan_step.cuh - one block computes the schedule of a step. It compares up to three schedules
 * (sched.h) by the cost of their longest part:
 *   whole   sequences lie on a line of costs; a part gets those whose middle lies in its span
 *   pieces  every sequence is split into equal items of at most a given size; a part gets at most
 *           one item
 *   line    the line is cut at the borders of parts; a part may have the end of one sequence and
 *           the beginning of another
 * "pieces" is considered only if every sequence has its own thread and there are at least as many
 * parts as sequences, and "line" only for at most kMaxCut sequences. If @splits is not 0, nothing
 * is compared: every sequence is split into that many items, or into its tiles if it has fewer.
 *
 * Threads first process sequences, then parts. Prefix sums number the items and slots. */
#pragma once
#include "kernels/cuda/sched/each.cuh"
#include "kernels/cuda/sched/equal.cuh"

namespace {

/* The consecutive sequences that this thread processes. @width: gets the cost of one part of the
 * line (line.cuh). */
__device__ run run_of(shared &s, const sequences &seqs, int parts, int *width) {
    const int each = divide(seqs.batch + threads() - 1, threads());
    run mine;
    mine.begin = min(static_cast<int>(threadIdx.x) * each, seqs.batch);
    mine.end = min(mine.begin + each, seqs.batch);
    int cost = 0;
#pragma unroll 1
    for (int b = mine.begin; b < mine.end; b++)
        cost += seqs.cost(b);
    const scanned costs = block_scan(s.warp_sum, cost);
    mine.start = costs.before;
    *width = divide(costs.total + parts - 1, parts);
    return mine;
}

/* Stores the parts, after s.begin has the first item of each. */
__device__ void leave_parts(shared &s, const sched_plan &plan, const sequences &seqs, int parts,
                            const page_table &table) {
    __syncthreads();
    const int p = threadIdx.x;
    if (p >= parts)
        return;
    sched_part part = {s.begin[p], s.begin[p + 1], {-1, -1}, {}};
    if (part.first < part.last)
        part.head = plan.items[part.first];
    leave_part(plan, table, seqs.tile, part);
}

/* Called by all threads of a block; there must be more threads than parts. */
__device__ void plan_step(shared &s, const sched_plan &plan, const sequences &seqs, int parts,
                          int splits, const page_table &table) {
    run mine;
    int width;
    if (splits == 0 && seqs.batch <= threads()) {
        if (plan_each(s, plan, seqs, parts, table, &mine, &width))
            return;
        deal_cut(s, plan, seqs, mine, parts, width);
        leave_parts(s, plan, seqs, parts, table);
        return;
    }
    table.prefetch(threadIdx.x * static_cast<size_t>(table.width), seqs.batch);
    mine = run_of(s, seqs, parts, &width);
    /* At this point @splits is fixed, or there are more sequences than threads, so "pieces" is not
     * considered. */
    if (splits == 0 &&
        cheapest(seqs, width, longest_whole(s, seqs, mine, parts, width), 0).kind == LINE)
        deal_cut(s, plan, seqs, mine, parts, width);
    else
        deal_equal(s, plan, seqs, mine, {max(splits, 1), parts, width});
    leave_parts(s, plan, seqs, parts, table);
}

} // namespace
