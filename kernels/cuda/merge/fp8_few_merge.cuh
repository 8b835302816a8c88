/* fp8_few_merge.cuh - the merge of the FP8 kernel where a CTA has at most 32 rows.
 *
 * This merge is used by sm90_fp8 and its ablations when the grid has tiles of 16 or 32 rows
 * (fp8_grid), for any number of splits. It runs inside the decode launch. A partial result is bf16,
 * divided by its own sum of P, with its LSE in base 2. A reader sees from the bits of a partial
 * result that it is stored; there is no counter (few_partials.cuh). Parts without items may take
 * over the merge. few_rows.cuh computes it.
 * This file describes the partial results and says which part merges what. */
#pragma once
#include "kernels/cuda/merge/few_rows.cuh"
#include "kernels/cuda/sm90_fp8/fp8_pipeline.cuh"

namespace sm90_fp8 {

enum { kMergeBarrier = 2 }; /* named barrier of the two output groups */

/* Unit 8 row + w holds the columns of output warp w. Its lane g has columns 2 g and 2 g + 1 of the
 * warp's 16 in each of four slices. */
struct partial_format {
    enum { NUMBERS = 8, ROW_UNITS = 8, UNITS = FP8_FEW_ROWS * ROW_UNITS };

    __device__ static int unit(int row, int warp = 0) {
        return ROW_UNITS * row + warp;
    }
    __device__ static int row(int unit) {
        return unit / ROW_UNITS;
    }
    __device__ static int warp(int unit) {
        return unit % ROW_UNITS;
    }
    __device__ static void unpack(uint4 part, float (&x)[NUMBERS]) {
        merging::unpack_bf16(part, x);
    }
    __device__ static void store(__nv_bfloat16 *out, int unit, int lane,
                                 const float (&x)[NUMBERS]) {
        auto *to = reinterpret_cast<uint32_t *>(out + row(unit) * CONTENT + warp(unit) / 4 * 256 +
                                                warp(unit) % 4 * 16 + 2 * lane);
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[32 * i] = ptx::pack_bf16x2(x[2 * i], x[2 * i + 1]);
    }
};

using few_partials = merging::partials<partial_format::UNITS>;
static_assert(int(few_partials::BYTES) == int(FP8_FEW_BYTES),
              "the bytes that the host allocates per slot");

using merge_job = merging::job<partial_format>;

/* The partial results of this CTA's tile of rows. */
__device__ __forceinline__ few_partials partials_of_tile(const params &p) {
    return {p.few_partials + blockIdx.x * p.few_bytes};
}

/* The number of parts that merge a sequence: parts without items, or else those that computed
 * it. */
__device__ __forceinline__ int mergers_of(const sched_item &item) {
    return item.mergers > 0 ? item.mergers : item.items;
}

/* @item: its slot determines which share this part merges. */
__device__ __forceinline__ merge_job job_of(const params &p, const sched_item &item) {
    const size_t at = static_cast<size_t>(row_block(p, item.seq)) * p.rows;
    merge_job j = {partials_of_tile(p),
                   item.first_slot,
                   item.items,
                   0,
                   0,
                   0,
                   p.io.out + at * CONTENT,
                   p.io.lse ? p.io.lse + at : nullptr};
    j.share(item.slot - item.first_slot, mergers_of(item), partial_format::unit(p.rows));
    return j;
}

/* The weights take the shared memory of the queries: first [rows] factors, then [rows][slots]
 * weights. */
template <typename Shared>
__device__ __forceinline__ merging::weights weights_at(Shared &s) {
    float *const at = reinterpret_cast<float *>(s.q);
    return {at + Shared::kRows, at};
}

/* The items of a part for which it merges. Those are its items of split sequences or, if it has no
 * item, the merge task in its record. */
struct merge_range {
    int first, last;
    bool idle;

    template <typename Shared>
    __device__ explicit merge_range(const Shared &s)
        : first(s.part.first), last(max(s.part.last, s.part.first + 1)),
          idle(first == s.part.last) {
    }
    __device__ bool has(const sched_item &item) const {
        return item.slot >= 0 && (item.mergers > 0) == idle;
    }
};

/* The softmax group's work in the merge: it makes the weights. The LSE are stored before the
 * partial outputs. */
template <int Rows>
__device__ __forceinline__ void make_few_weights(shared_of<Rows> &s, const params &p, int thread) {
    const merge_range range(s);
    uint32_t turn = 0;
#pragma unroll 1
    for (int k = range.first; k < range.last; k++) {
        const sched_item item = item_at(s, p, k);
        if (!range.has(item))
            continue;
        const merge_job j = job_of(p, item);
        ptx::mbarrier_wait(&s.empty_parts, turn & 1 ^ 1);
        merging::make_weights(j, weights_at(s), thread);
        ptx::mbarrier_arrive(&s.full_parts);
        merging::clear_lse(j, thread);
        turn++;
    }
}

/* The work of the output groups in the merge: the weighted sums. @head is the first item. It stays
 * in registers, because reading it again would be slow after stores. */
template <int Rows>
__device__ __forceinline__ void merge_few_part(shared_of<Rows> &s, const params &p,
                                               const sched_item &head, int thread) {
    const merge_range range(s);
    uint32_t turn = 0;
#pragma unroll 1
    for (int k = range.first; k < range.last; k++) {
        const sched_item item = k == range.first ? head : item_at(s, p, k);
        if (!range.has(item))
            continue;
        auto *scratch = reinterpret_cast<merging::lane_sums<8> *>(s.few.merged);
        merging::merge(job_of(p, item), weights_at(s), &s.full_parts, turn & 1, kMergeBarrier,
                       scratch, thread);
        ptx::mbarrier_arrive(&s.empty_parts);
        turn++;
    }
}

} // namespace sm90_fp8
