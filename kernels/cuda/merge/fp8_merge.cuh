/* fp8_merge.cuh - the merge of the FP8 kernel where a CTA has a tile of 64 rows.
 *
 * This merge is used by sm90_fp8 and its ablations when the grid has tiles of 64 rows (fp8_grid),
 * for any number of splits. With lower tiles, fp8_few_merge.cuh is used. It runs inside the decode
 * launch, of which all CTAs are resident (a cooperative launch). A CTA that has stored the partial
 * results of all its items waits for the other items of the sequence, and then merges about an
 * equal share of the output of its tile of rows. Each sequence and tile of rows has two counters
 * (cut_sequence.cuh): one for LSE, one for partial outputs.
 *
 * A partial result is bf16, divided by its own sum of P, with its LSE in base 2. out = sum_k w_k
 * out_k, where w_k = 2^(lse_k - most) divided by the sum of these numbers. The softmax group has
 * its LSE when it publishes its last P. So it makes the weights while the output groups still
 * multiply and store. TMA brings the partial outputs to shared memory. The order of additions
 * depends on the numbers of rows and slots only, so reruns are bit-identical. */
#pragma once
#include "kernels/cuda/merge/cut_sequence.cuh"
#include "kernels/cuda/merge/fp8_few_merge.cuh"
#include "kernels/cuda/ptx/warp.cuh"

namespace sm90_fp8 {

enum {
    kMergeThreads = merging::kMergeThreads, /* the two output groups */
    kLogMergeThreads = 8,
    kWeightThreads = 128, /* the softmax group */
    kUnit = merging::kUnitNumbers,
    kUnits = CONTENT / kUnit,
};

/* Shared memory of a merge. It takes the place of the pages' content. */
struct merge_memory {
    float4 sums[2][kMergeThreads];
    uint4 part[1]; /* [slot][unit] bf16 */
};
static_assert(1 << kLogMergeThreads == kMergeThreads, "a power of two, for shifts");
static_assert(sizeof(merge_memory) + 2 * ROWS * CONTENT < sizeof(shared::content), "a share fits");

/* The weights, [row][slot], of the rows that a share touches. They take the place of RoPE, since
 * the output groups may still read the content. */
template <typename Shared>
__device__ __forceinline__ float *weights_of(Shared &s) {
    static_assert(sizeof(s.rope) >= 4096 * sizeof(float), "weights of 2000 slots fit");
    return reinterpret_cast<float *>(s.rope);
}

/* The CTA's share, and the rows that it touches, counted from the tile's first row. */
struct share : merging::share {
    __device__ share(const params &p, const sched_item &item, int first_row)
        : merging::share(item, min(p.rows - first_row, int(ROWS)) * kUnits) {
    }
    __device__ int first_row() const {
        return begin / kUnits;
    }
    __device__ int rows() const {
        return (end + kUnits - 1) / kUnits - first_row();
    }
};

/* Turns LSE into weights that add up to one, and stores the natural LSE of the rows. Several lanes
 * share a row: as many as it has slots, rounded up to a power of two, at most 32. Most loops of
 * this file are not unrolled, and shifts replace divisions by variables: the code runs once, so
 * there should be little of it to fetch. */
__device__ __forceinline__ void make_weights(const params &p, const sched_item &item,
                                             float *weights, int first_row, const share &mine,
                                             int thread) {
    const int log = min(max(32 - __clz(item.items - 1), 1), 5), lanes = 1 << log;
    const int at_once = 32 >> log; /* rows per warp; all lanes must take part in the reductions */
    const int rows = (mine.rows() + at_once - 1) & -at_once;
    const unsigned slots = item.items, first = thread & (lanes - 1);
#pragma unroll 1
    for (int i = thread >> log; i < rows; i += kWeightThreads >> log) {
        const bool real = i < mine.rows();
        const unsigned row = first_row + mine.first_row() + (real ? i : 0);
        const unsigned begin = real ? first : slots;
        float *weight = weights + (real ? i : 0) * slots, most = -INFINITY, sum = 0;
#pragma unroll 1
        for (unsigned k = begin; k < slots; k += lanes) {
            weight[k] = __ldcg(p.partial_lse + ((item.first_slot + k) * p.rows + row));
            most = fmaxf(most, weight[k]);
        }
#pragma unroll 1
        for (int step = lanes / 2; step > 0; step >>= 1)
            most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
        most = most == -INFINITY ? 0 : most;
#pragma unroll 1
        for (unsigned k = begin; k < slots; k += lanes)
            sum += ptx::exp2_approx(weight[k] - most);
#pragma unroll 1
        for (int step = lanes / 2; step > 0; step >>= 1)
            sum += __shfl_xor_sync(~0u, sum, step);
        const float lse = most + __log2f(sum), unit = sum == 0 ? 0 : lse;
#pragma unroll 1
        for (unsigned k = begin; k < slots; k += lanes)
            weight[k] = ptx::exp2_approx(weight[k] - unit);
        if (p.io.lse && begin == 0)
            p.io.lse[static_cast<unsigned>(item.seq) * p.rows + row] = lse * merging::kLn2;
    }
}

struct unit_sum {
    float x[kUnit];
};

/* Adds up the slots first, first + step, ... of a unit. @part: the unit's piece in the first slot.
 * @width: distance of the pieces of two slots. */
__device__ __forceinline__ unit_sum weighted_sum(const float *weight, const uint4 *part, int width,
                                                 int slots, int first, int step) {
    unit_sum sum = {};
#pragma unroll 1
    for (int k = first; k < slots; k += 4 * step)
#pragma unroll
        for (int i = 0; i < 4; i++) { /* past the last slot: slot k again, with weight 0 */
            const bool real = k + i * step < slots;
            const int slot = real ? k + i * step : k;
            const float w = real ? weight[slot] : 0;
            float y[kUnit];
            merging::unpack_bf16(part[slot * width], y);
#pragma unroll
            for (int n = 0; n < kUnit; n++)
                sum.x[n] = fmaf(w, y[n], sum.x[n]);
        }
    return sum;
}

/* Adds up the sums of the threads that share a unit. */
__device__ __forceinline__ void add_groups(merge_memory &m, unit_sum &sum, int log, int thread) {
    m.sums[0][thread] = make_float4(sum.x[0], sum.x[1], sum.x[2], sum.x[3]);
    m.sums[1][thread] = make_float4(sum.x[4], sum.x[5], sum.x[6], sum.x[7]);
    ptx::named_sync(kMergeBarrier, kMergeThreads);
    sum = {};
#pragma unroll 1
    for (int at = thread & ((1 << log) - 1); at < kMergeThreads; at += 1 << log) {
        const float4 x = m.sums[0][at], y = m.sums[1][at];
        const float more[] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
#pragma unroll
        for (int i = 0; i < kUnit; i++)
            sum.x[i] += more[i];
    }
}

__device__ __forceinline__ void store_unit(const params &p, const sched_item &item, int first_row,
                                           unsigned unit, const unit_sum &sum) {
    auto *row = p.io.out + (static_cast<size_t>(item.seq) * p.rows + first_row) * CONTENT;
    reinterpret_cast<uint4 *>(row)[unit] =
        make_uint4(ptx::pack_bf16x2(sum.x[0], sum.x[1]), ptx::pack_bf16x2(sum.x[2], sum.x[3]),
                   ptx::pack_bf16x2(sum.x[4], sum.x[5]), ptx::pack_bf16x2(sum.x[6], sum.x[7]));
}

/* The two counters of a sequence and tile of rows. */
enum counter_kind { RESULTS, LSES };

__device__ __forceinline__ int *counter_of(const params &p, const sched_item &item, int row_tile,
                                           counter_kind what) {
    return merging::counter_of(p.counters, p.row_tiles, item, row_tile, what);
}

/* Counts an item as stored. Called by one thread, after a barrier that the threads reach once they
 * have stored the partial results of kind @what. */
__device__ __forceinline__ void count_item(const params &p, const sched_item &item, int row_tile,
                                           counter_kind what) {
    __threadfence();
    merging::count(counter_of(p, item, row_tile, what), item);
}

/* Waits until all items of the sequence are counted as stored, and then counts this CTA as one that
 * has read the counter. Called by one thread. */
__device__ __forceinline__ void wait_and_leave(const params &p, const sched_item &item,
                                               int row_tile, counter_kind what) {
    int *const counter = counter_of(p, item, row_tile, what);
    merging::wait_for_items(counter, item);
    merging::count(counter, item);
}

/* Called by the softmax group after its last item. Counts the part's LSE as stored, then makes the
 * weights of the sequences that the part merges. */
template <typename Shared>
__device__ __forceinline__ void make_part_weights(Shared &s, const params &p, int row_tile,
                                                  int thread) {
    ptx::named_sync(kSoftmaxBarrier, kWeightThreads); /* all have stored their LSE, and RoPE is no
                                                         longer read */
#pragma unroll 1
    for (int k = s.part.first; k < s.part.last && thread == 0; k++) {
        const sched_item item = item_at(s, p, k);
        if (item.slot >= 0)
            count_item(p, item, row_tile, LSES);
    }
    int nth = 0;
#pragma unroll 1
    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        if (item.slot < 0)
            continue;
        if (thread == 0)
            wait_and_leave(p, item, row_tile, LSES);
        ptx::mbarrier_wait(&s.empty_parts, (nth++ & 1) ^ 1);
        ptx::named_sync(kSoftmaxBarrier, kWeightThreads);
        make_weights(p, item, weights_of(s), row_tile * ROWS, share(p, item, row_tile * ROWS),
                     thread);
        ptx::mbarrier_arrive(&s.full_weights);
    }
}

/* Copies the share of each slot to one row of `part` with TMA. Consecutive slots are loaded by
 * different warps. */
template <typename Shared>
__device__ __forceinline__ void load_partials(Shared &s, const params &p, const sched_item &item,
                                              merge_memory &m, int first_row, const share &mine,
                                              int thread) {
    const int width = mine.end - mine.begin;
    const uint32_t bytes = width * sizeof(uint4);
    if (thread == 0)
        ptx::mbarrier_arrive_expect(&s.full_parts, bytes * item.items);
    ptx::fence_proxy_async_all(); /* orders the stores of other CTAs before the reads by TMA */
#pragma unroll 1
    for (int k = (thread & 31) * (kMergeThreads / 32) + thread / 32; k < item.items;
         k += kMergeThreads) {
        const size_t row = static_cast<size_t>(item.first_slot + k) * p.rows + first_row;
        const auto *from = reinterpret_cast<const uint4 *>(p.partial_out + row * CONTENT);
        if (bytes > 0)
            ptx::bulk_load(m.part + k * width, from + mine.begin, bytes, &s.full_parts);
    }
}

/* Merges this CTA's share of one sequence. If the share has fewer units than there are threads, n
 * threads work on each unit, and each of them adds every n-th slot. */
template <typename Shared>
__device__ __forceinline__ void merge(Shared &s, const params &p, const sched_item &item,
                                      int first_row, int thread, uint32_t &parity) {
    merge_memory &m = *reinterpret_cast<merge_memory *>(s.content);
    const share mine(p, item, first_row);
    const int width = mine.end - mine.begin;
    load_partials(s, p, item, m, first_row, mine, thread);
    ptx::mbarrier_wait(&s.full_weights, parity);
    ptx::mbarrier_wait(&s.full_parts, parity);
    parity ^= 1;
    /* units merged at the same time: the share's width, rounded up to a power of two, but at
     * most kMergeThreads */
    const int log = min(32 - __clz(width - 1), kLogMergeThreads), abreast = 1 << log;
    const int groups = kMergeThreads >> log, group = thread >> log;
    int at = thread & (abreast - 1);
    do { /* a second turn occurs with one group only */
        const unsigned unit = mine.begin + at;
        const float *weight = weights_of(s) + (unit / kUnits - mine.first_row()) * item.items;
        const int first = at < width ? group : item.items;
        unit_sum sum = weighted_sum(weight, m.part + at, width, item.items, first, groups);
        if (groups > 1)
            add_groups(m, sum, log, thread);
        if (group == 0 && at < width)
            store_unit(p, item, first_row, unit, sum);
        at += abreast;
    } while (at < width);
}

/* Merges the split sequences of a part. */
template <typename Shared>
__device__ __forceinline__ void merge_part(Shared &s, const params &p, int row_tile, int thread) {
    uint32_t parity = 0;
    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        if (item.slot < 0)
            continue;
        if (thread == 0)
            wait_and_leave(p, item, row_tile, RESULTS);
        ptx::named_sync(kMergeBarrier, kMergeThreads); /* now all partial results are stored, and
                                                          the previous merge has read its own */
        merge(s, p, item, row_tile * ROWS, thread, parity);
        ptx::mbarrier_arrive(&s.empty_parts);
    }
}

} // namespace sm90_fp8
