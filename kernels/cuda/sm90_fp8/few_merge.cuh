/* few_merge.cuh - partial results of a few rows: how they lie, and who merges them. */
#pragma once
#include "kernels/cuda/merge/merge.cuh"
#include "kernels/cuda/sm90_fp8/pipeline.cuh"

namespace sm90_fp8 {

enum { kMergeBarrier = 2 }; /* of the two output groups */

/* As the output threads have them: unit 32 (2 j + r) + 4 w + t is row 8 j + 2 t + r, the columns of output
 * warp w: of lane g 2 g and 2 g + 1 of its 16 in each of four slices. There are units of a multiple of
 * eight rows. */
struct partial_format {
    enum { NUMBERS = 8, ROW_UNITS = 8, UNITS = FP8_FEW_ROWS * ROW_UNITS };

    __device__ static int units(int rows) {
        return (rows + 7) / 8 * 8 * ROW_UNITS;
    }
    /* Of output warp 0. */
    __device__ static int unit(int row) {
        return row / 8 * 64 + row % 2 * 32 + row % 8 / 2;
    }
    __device__ static int row(int unit) {
        return unit / 64 * 8 + unit % 4 * 2 + unit / 32 % 2;
    }
    __device__ static int warp(int unit) {
        return unit / 4 % 8;
    }
    __device__ static bool leads(int unit) {
        return warp(unit) == 0;
    }
    __device__ static void unpack(uint4 part, float (&x)[NUMBERS]) {
        const uint32_t word[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x[2 * i] = __uint_as_float(word[i] << 16);
            x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
        }
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
static_assert(int(few_partials::BYTES) == int(FP8_FEW_BYTES), "what the host allocates");

/* @item: of the sequence; its slot says whose share this is. */
template <typename Shared>
__device__ __forceinline__ void merge_few(Shared &s, const params &p, const sched_item &item,
                                          int thread) {
    const size_t at = static_cast<size_t>(item.seq) * p.rows;
    const merging::job<partial_format> j = {{p.few_partials},
                                            item.first_slot,
                                            item.items,
                                            item.slot - item.first_slot,
                                            item.mergers > 0 ? item.mergers : item.items,
                                            partial_format::units(p.rows),
                                            p.rows,
                                            p.out + at * CONTENT,
                                            p.lse ? p.lse + at : nullptr,
                                            kMergeBarrier};
    merging::merge(j, reinterpret_cast<merging::weighed<partial_format> *>(s.content), thread);
}

/* The cut sequences of a part; without an item, the one that it has instead. */
template <typename Shared>
__device__ __forceinline__ void merge_few_part(Shared &s, const params &p, int thread) {
    const int first = s.part.first;
    const bool merges = first == s.part.last;
    for (int k = first; k < s.part.last + merges; k++) {
        const sched_item item = item_at(s, p, k);
        if (item.slot >= 0 && (item.mergers > 0) == merges)
            merge_few(s, p, item, thread);
    }
}

} // namespace sm90_fp8
