/* pipeline.cuh - what a softmax group loads: its own tiles, kAhead tiles before it needs them.
 *
 * There is no producer warp: a fifth warpgroup would take registers that the output groups need, and
 * the softmax groups have nothing to do while their scores are computed. */
#pragma once
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/sm90_fp8/traits.cuh"

namespace sm90_fp8 {

/* Device data is never followed out of bounds. */
__device__ __forceinline__ int length_of(const params &p, int seq) {
    return min(max(__ldg(p.seqlens + seq), 0), p.max_tokens);
}

__device__ __forceinline__ void load_queries(shared &s, const params &p, int seq, int row) {
    ptx::mbarrier_arrive_expect(&s.full_q, kBytesQ);
    ptx::tma_load_4d(s.q, &p.q, &s.full_q, 0, row, 0, seq);
    ptx::tma_load_3d(s.q_rope, &p.q_rope, &s.full_q, 0, row, seq);
}

__device__ __forceinline__ void load_content(shared &s, const params &p, int stage, int page) {
    ptx::mbarrier_arrive_expect(&s.full[stage], kBytesContent);
    ptx::tma_load_3d(s.content[stage], &p.content, &s.full[stage], 0, page * TOKENS, 0);
}

__device__ __forceinline__ void load_rope(shared &s, const params &p, int group, int page) {
    ptx::mbarrier_arrive_expect(&s.full_rope[group], kBytesRope);
    ptx::tma_load_2d(s.rope[group], &p.rope, &s.full_rope[group], 0, page * TOKENS);
}

/* Walks the tiles of one group through the items of a part, two at a time. */
struct cursor {
    int item, last; /* at `last` there is none left */
    int tile, tile_end;
    unsigned table;
    int page; /* of the tile */

    __device__ cursor(const params &p, int first, int last, int skip) : item(first - 1), last(last) {
        tile = skip;
        tile_end = 0;
        settle(p);
    }
    __device__ bool valid() const {
        return item < last;
    }
    __device__ void advance(const params &p) {
        tile += 2;
        settle(p);
    }

  private:
    /* `tile` may lie past the item's end: what is beyond counts from the next item's beginning. */
    __device__ void settle(const params &p) {
        while (tile >= tile_end) {
            if (++item >= last)
                return;
            const sched_item next = p.items[item];
            tile += next.tile_begin - tile_end;
            tile_end = next.tile_end;
            table = static_cast<unsigned>(next.seq) * p.table_width;
        }
        page = min(max(__ldg(p.block_table + table + tile), 0), p.pages - 1);
    }
};

} // namespace sm90_fp8
