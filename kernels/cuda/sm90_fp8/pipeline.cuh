/* pipeline.cuh - the loading warps: one thread drives the copy engine, one warp brings the scales. */
#pragma once
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/sm90_fp8/traits.cuh"

namespace sm90_fp8 {

/* Item k of a part, the first from the part's own record. */
__device__ __forceinline__ sched_item item_at(const params &p, const sched_part &part, int k) {
    return k == part.first ? part.head : p.items[k];
}

/* Device data is never followed out of bounds. */
__device__ __forceinline__ int clamp_page(const params &p, int page) {
    return min(max(page, 0), p.pages - 1);
}

/* The pages of an item. A tile whose second page lies past the end has one page. */
struct page_range {
    const int *table;
    int begin, end, last; /* last: one past the pages that exist; begin and end are even */
};

__device__ __forceinline__ page_range pages_of(const params &p, const sched_item &item) {
    const int last = (item.tokens + PAGE - 1) / PAGE;
    return {p.block_table + static_cast<size_t>(item.seq) * p.table_width, 2 * item.tile_begin,
            2 * item.tile_end, last};
}

/* Entry i of the block table, as it stands there; 0 past the end. Not clamped yet, which would wait
 * for it. */
__device__ __forceinline__ int entry_at(const page_range &pages, int i) {
    return i < pages.last ? __ldg(pages.table + i) : 0;
}

__device__ __forceinline__ void load_page(shared &s, const params &p, int stage, int rope_stage,
                                          int page) {
    ptx::mbarrier_arrive_expect(&s.full[stage], kBytesContent + kBytesRope);
    ptx::tma_load_3d(s.content[stage], &p.content, &s.full[stage], 0, page * PAGE, 0);
    ptx::tma_load_2d(s.rope[rope_stage], &p.rope, &s.full[stage], 0, page * PAGE);
}

/* The copy engine's thread. */
__device__ __forceinline__ void run_loader(shared &s, const params &p, const sched_part &part,
                                           int row_tile) {
    ring<kStages> at;
    ring<kRopeStages> rope;
    uint32_t q_parity = 1;
    for (int k = part.first; k < part.last; k++) {
        const sched_item item = item_at(p, part, k);
        if (item.tile_begin == item.tile_end)
            continue;
        const page_range pages = pages_of(p, item);
        const bool known = k == part.first && part.page[0] >= 0;
        int next = known ? part.page[1] : entry_at(pages, pages.begin + 1);
        int now = known ? part.page[0] : entry_at(pages, pages.begin);
        for (int i = pages.begin; i < pages.end; i++) {
            ptx::mbarrier_wait(&s.empty[at.stage], at.parity ^ 1);
            ptx::mbarrier_wait(&s.empty_rope[rope.stage], rope.parity ^ 1);
            if (i < pages.last)
                load_page(s, p, at.stage, rope.stage, clamp_page(p, now));
            else /* what the stages hold will be masked */
                ptx::mbarrier_arrive(&s.full[at.stage]);
            if (i == pages.begin) {
                ptx::mbarrier_wait(&s.empty_q, q_parity);
                q_parity ^= 1;
                ptx::mbarrier_arrive_expect(&s.full_q, kBytesQ);
                ptx::tma_load_4d(s.q, &p.q, &s.full_q, 0, row_tile * ROWS, 0, item.seq);
            }
            now = next;
            next = entry_at(pages, i + 2);
            at.advance();
            rope.advance();
        }
    }
}

/* A lane has four tokens of a tile: lanes 0-15 the first page, 16-31 the second. */
__device__ __forceinline__ void store_scales(shared &s, int lane, float4 a) {
    s.scales[2 * lane] = {{a.x, a.y}, {__log2f(a.x), __log2f(a.y)}};
    s.scales[2 * lane + 1] = {{a.z, a.w}, {__log2f(a.z), __log2f(a.w)}};
}

__device__ __forceinline__ void store_inverse(shared &s, int lane, float4 a) {
    reinterpret_cast<float4 *>(s.inverse)[lane] =
        make_float4(ptx::reciprocal_approx(a.x), ptx::reciprocal_approx(a.y),
                    ptx::reciprocal_approx(a.z), ptx::reciprocal_approx(a.w));
}

/* Neutral past the end of the sequence. @entry: of the lane's page. */
__device__ __forceinline__ float4 fetch_scales(const params &p, int length, int tile, int lane,
                                               int entry) {
    const int token = TILE * tile + 4 * lane;
    float4 a = {1, 1, 1, 1};
    if (TILE * tile + PAGE * (lane / 16) >= length)
        return a;
    const float *from = p.token_scale + static_cast<size_t>(clamp_page(p, entry)) * PAGE;
    a = __ldg(reinterpret_cast<const float4 *>(from) + lane % 16);
    if (token + 4 > length) {
        a.x = token < length ? a.x : 1;
        a.y = token + 1 < length ? a.y : 1;
        a.z = token + 2 < length ? a.z : 1;
        a.w = 1;
    }
    return a;
}

__device__ __forceinline__ void run_scales(shared &s, const params &p, const sched_part &part) {
    const int lane = threadIdx.x & 31;
    uint32_t parity = 1;
    for (int k = part.first; k < part.last; k++) {
        const sched_item item = item_at(p, part, k);
        const page_range pages = pages_of(p, item);
        if (item.tile_begin == item.tile_end)
            continue;
        const bool known = k == part.first && part.page[0] >= 0;
        const int head = lane < 16 ? part.page[0] : part.page[1];
        const int entry = known ? head : entry_at(pages, pages.begin + lane / 16);
        float4 next = fetch_scales(p, item.tokens, item.tile_begin, lane, entry);
        for (int tile = item.tile_begin; tile < item.tile_end; tile++) {
            const float4 now = next;
            if (tile + 1 < item.tile_end)
                next = fetch_scales(p, item.tokens, tile + 1, lane,
                                    entry_at(pages, 2 * tile + 2 + lane / 16));
            ptx::mbarrier_wait(&s.empty_scales, parity);
            store_scales(s, lane, now);
            ptx::mbarrier_arrive(&s.full_scales);
            ptx::mbarrier_wait(&s.empty_inverse, parity);
            store_inverse(s, lane, now);
            ptx::mbarrier_arrive(&s.full_inverse);
            parity ^= 1;
        }
    }
}

} // namespace sm90_fp8
