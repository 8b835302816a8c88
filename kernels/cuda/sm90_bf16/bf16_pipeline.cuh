/* bf16_pipeline.cuh - the loader thread. It loads the queries of an item (without RoPE), then its
 * pages, piece by piece as buffers become free. The first page of an item goes to buffer 0, the
 * next one to buffer 1, and so on in turns. */
#pragma once
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/sm90_bf16/bf16_traits.cuh"

namespace sm90_bf16 {

/* Page numbers are device data: they are clamped, so that no access is out of bounds. */
__device__ __forceinline__ int clamp_page(const params &p, int page) {
    return min(max(page, 0), p.io.pages - 1);
}

/* The page number of page i of item k's sequence. The part's record normally contains those of the
 * first two pages of its first item. */
__device__ __forceinline__ int page_at(const shared &s, const params &p, int k,
                                       const sched_item &item, int i) {
    const int nth = i - item.tile_begin;
    const int known = k == s.part.first && nth < 2 ? s.part.page[nth] : -1;
    if (known >= 0)
        return clamp_page(p, known);
    return clamp_page(
        p, __ldg(p.io.block_table + static_cast<size_t>(item.seq) * p.io.table_width + i));
}

__device__ __forceinline__ void load_piece(shared &s, const params &p, int buffer, int piece,
                                           int page) {
    const int column = piece == 0 ? COLUMNS - 1 : 2 * (piece - 1);
    uint64_t *bar = &s.full[buffer][piece];
    ptx::mbarrier_arrive_expect(bar, (piece == 0 ? 1 : 2) * TILE_BYTES);
    ptx::tma_load_3d(s.kv[buffer][column], &p.kv[piece > 0], bar, 0, page * PAGE, column,
                     ptx::policy_evict_first()); /* the CTA reads it once; L2 is needed for partial
                                                    results */
}

/* @parity: the phase of the `empty` barriers that frees the buffer's previous contents. */
__device__ __forceinline__ void load_page(shared &s, const params &p, int buffer, uint32_t parity,
                                          int page) {
    ptx::mbarrier_wait(&s.empty_rope[buffer], parity);
    load_piece(s, p, buffer, 0, page);
    for (int half = 0; half < 2; half++) {
        ptx::mbarrier_wait(&s.empty[buffer][half], parity);
        load_piece(s, p, buffer, 1 + 2 * half, page);
        load_piece(s, p, buffer, 2 + 2 * half, page);
    }
}

__device__ __forceinline__ void load_queries(shared &s, const params &p, int row_tile, int seq,
                                             uint32_t parity) {
    ptx::mbarrier_wait(&s.empty_q, parity);
    ptx::mbarrier_arrive_expect(&s.full_q, (COLUMNS - 1) * SWIZZLE * p.q_tile_rows);
    ptx::tma_load_4d(s.q, &p.q, &s.full_q, 0, row_tile * ROWS, 0, seq);
}

__device__ __forceinline__ void run_loader(shared &s, const params &p, int row_tile) {
    uint32_t parity = 3, q_parity = 1; /* parity: bit i belongs to buffer i */
    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        if (item.tile_begin == item.tile_end)
            continue;
        int page = page_at(s, p, k, item, item.tile_begin);
        load_queries(s, p, row_tile, item.seq, q_parity);
        q_parity ^= 1;
        for (int i = item.tile_begin; i < item.tile_end; i++) {
            const int buffer = (i - item.tile_begin) & 1, now = page;
            if (i + 1 < item.tile_end)
                page = page_at(s, p, k, item, i + 1);
            load_page(s, p, buffer, parity >> buffer & 1, now);
            parity ^= 1u << buffer;
        }
    }
}

} // namespace sm90_bf16
