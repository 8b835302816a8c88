/* fp8_pipeline.cuh - the loading warps: one thread issues the TMA loads, one warp loads the scales.
 * Also the access to items and pages that other warps share. */
#pragma once
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/sm90_fp8/fp8_traits.cuh"

namespace sm90_fp8 {

/* Item k of the part. The first one is stored in the part's record. Callers that are short of
 * registers load it again instead of keeping it. */
template <typename Shared>
__device__ __forceinline__ sched_item item_at(const Shared &s, const params &p, int k) {
    const int i = ptx::opaque(k);
    return i == s.part.first ? s.part.head : p.io.items[i];
}

/* The block table's entry for page i of the first item; -1 if the part's record does not contain
 * it. */
template <typename Shared>
__device__ __forceinline__ int head_page(const Shared &s, int i) {
    return s.part.page[ptx::opaque(i)];
}

/* A page number outside the tensor map: TMA reads nothing and writes zeros. */
enum { kNoPage = -1 };

/* Page numbers are device data: they are clamped, so that no access is out of bounds. */
__device__ __forceinline__ int clamp_page(const params &p, int page) {
    return min(max(page, 0), p.io.pages - 1);
}

/* The pages of an item. In the kernel for 64 rows, they are processed two at a time, and the second
 * may lie past the end of the sequence. */
struct page_range {
    const int *table;
    int begin, end, last; /* last: one past the pages of the sequence */
};

template <typename Shared>
__device__ __forceinline__ page_range pages_of(const Shared &, const params &p,
                                               const sched_item &item) {
    const int last = (item.tokens + PAGE - 1) / PAGE;
    return {p.io.block_table + static_cast<size_t>(item.seq) * p.io.table_width,
            Shared::kUnitPages * item.tile_begin, Shared::kUnitPages * item.tile_end, last};
}

/* Entry i of the sequence's row of the block table; 0 past the last page. It is not clamped yet,
 * because that would wait for the load. */
__device__ __forceinline__ int entry_at(const page_range &pages, int i) {
    return i < pages.last ? __ldg(pages.table + i) : 0;
}

template <typename Shared>
__device__ __forceinline__ void load_page(Shared &s, const params &p, int stage, int rope_stage,
                                          int page) {
    ptx::mbarrier_arrive_expect(&s.full[stage], kBytesContent + kBytesRope);
    ptx::tma_load_3d(s.content[stage], &p.content, &s.full[stage], 0, page * PAGE, 0);
    ptx::tma_load_2d(s.rope[rope_stage], &p.rope, &s.full[stage], 0, page * PAGE);
}

/* For the kernels for at most 32 rows, where each row tile has its own block of queries and
 * results: the index of this CTA's row tile among those of all sequences. */
__device__ __forceinline__ int row_block(const params &p, int seq) {
    return seq * p.row_tiles + blockIdx.x;
}

/* Starts loading the queries of an item. In the kernel for 64 rows, that is only their content: the
 * softmax threads load their RoPE. */
template <typename Shared>
__device__ __forceinline__ void load_queries(Shared &s, const params &p, int row_tile, int seq) {
    ptx::mbarrier_arrive_expect(&s.full_q, Shared::kBytesQ);
    if constexpr (Shared::kFew) {
        const int block = row_block(p, seq);
        ptx::tma_load_4d(s.q, &p.q, &s.full_q, 0, 0, 0, block);
        ptx::tma_load_3d(s.q[COLUMNS], &p.q_rope_rows, &s.full_q, 0, 0, block);
    } else {
        ptx::tma_load_4d(s.q, &p.q, &s.full_q, 0, row_tile * ROWS, 0, seq);
    }
}

/* True in a kernel for at most 32 rows if the part's record contains its first page, so that
 * load_first() has loaded it. */
template <typename Shared>
__device__ __forceinline__ bool knows_first(const Shared &s) {
    return Shared::kFew && head_page(s, 0) >= 0;
}

/* In a kernel for at most 32 rows, starts loading the first page and the queries, if the page is
 * known. This happens before the warps branch into their roles, because fetching code after a jump
 * is slow. */
template <typename Shared>
__device__ __forceinline__ void load_first(Shared &s, const params &p, int row_tile) {
    if (!knows_first(s))
        return;
    load_page(s, p, 0, 0, clamp_page(p, head_page(s, 0)));
    load_queries(s, p, row_tile, s.part.head.seq);
}

/* Waits until the previous page in the stages of the next page has been used. @loaded: number of
 * pages loaded so far. */
template <typename Shared>
__device__ __forceinline__ void wait_for_stage(Shared &s, const ring<kStages> &at,
                                               uint32_t loaded) {
    enum { ROPE_STAGES = Shared::kRopeStages };
    ptx::mbarrier_wait(&s.empty[at.stage], at.parity ^ 1);
    ptx::mbarrier_wait(&s.empty_rope[loaded % ROPE_STAGES], (loaded / ROPE_STAGES & 1) ^ 1);
    if (ROPE_STAGES > 2 && loaded == 2) /* the first page must arrive before the third is loaded */
        ptx::mbarrier_wait(&s.full[0], 0);
}

/* The thread that issues the TMA loads, after load_first(). */
template <typename Shared>
__device__ __forceinline__ void run_loader(Shared &s, const params &p, int row_tile) {
    ring<kStages> at;
    uint32_t loaded = 0, q_parity = 1; /* loaded: pages so far */
    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        if (item.tile_begin == item.tile_end)
            continue;
        const page_range pages = pages_of(s, p, item);
        const bool known = k == s.part.first && head_page(s, 0) >= 0;
        int next = known ? head_page(s, 1) : entry_at(pages, pages.begin + 1);
        int now = known ? head_page(s, 0) : entry_at(pages, pages.begin);
        for (int i = pages.begin; i < min(pages.end, pages.last); i++) {
            /* There is no wait for the stages of the page that load_first() loaded: they may have
             * been released again already, and then wait_for_stage() would not return. */
            const bool here = loaded == 0 && knows_first(s);
            if (!here)
                wait_for_stage(s, at, loaded);
            if (!here)
                load_page(s, p, at.stage, loaded % Shared::kRopeStages, clamp_page(p, now));
            if (i == pages.begin) {
                if (!here) {
                    ptx::mbarrier_wait(&s.empty_q, q_parity);
                    load_queries(s, p, row_tile, item.seq);
                }
                q_parity ^= 1;
            }
            now = next;
            next = entry_at(pages, i + 2);
            at.advance();
            loaded++;
        }
        if (!Shared::kFew && pages.end > pages.last) { /* the second page of a sequence's last tile
                                                          does not exist */
            wait_for_stage(s, at, loaded);
            load_page(s, p, at.stage, loaded % Shared::kRopeStages, kNoPage);
            at.advance();
            loaded++;
        }
    }
}

/* Stores the scales of a tile, and log2 of the largest one of each page. A lane has four tokens:
 * lanes 0-15 of the first page, 16-31 of the second. */
__device__ __forceinline__ void store_scales(tile_scales &to, int lane, float4 a) {
    if (kPageUnits)
        a = {fmaxf(a.x, kLeastScale), fmaxf(a.y, kLeastScale), fmaxf(a.z, kLeastScale),
             fmaxf(a.w, kLeastScale)};
    reinterpret_cast<float4 *>(to.pair)[lane] = a;
    float most = fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w));
#pragma unroll
    for (int m = 1; m < 16; m *= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    if (lane % 16 == 0)
        to.log_most[lane / 16] = __log2f(most);
}

/* Loads the lane's four scales of a tile of two pages, which begins with page @page; zero from
 * token @end on. @entry: block table entry of the lane's page. */
__device__ __forceinline__ float4 fetch_scales(const params &p, int end, int page, int lane,
                                               int entry) {
    const int token = PAGE * page + 4 * lane;
    float4 a = {0, 0, 0, 0};
    if (PAGE * (page + lane / 16) >= end)
        return a;
    const float *from = p.token_scale + static_cast<size_t>(clamp_page(p, entry)) * PAGE;
    a = __ldg(reinterpret_cast<const float4 *>(from) + lane % 16);
    if (token + 4 > end) {
        a.x = token < end ? a.x : 0;
        a.y = token + 1 < end ? a.y : 0;
        a.z = token + 2 < end ? a.z : 0;
        a.w = 0;
    }
    return a;
}

template <typename Shared>
__device__ __forceinline__ void run_scales(Shared &s, const params &p) {
    const int lane = threadIdx.x & 31;
    uint32_t turn = 0; /* turn: tiles so far */
    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        const page_range pages = pages_of(s, p, item);
        if (item.tile_begin == item.tile_end)
            continue;
        const bool known = k == s.part.first && head_page(s, 0) >= 0;
        int entry = known ? head_page(s, lane / 16) : entry_at(pages, pages.begin + lane / 16);
        const int end = min(item.tokens, PAGE * pages.end);
        for (int page = pages.begin; page < pages.end; page += 2, turn++) {
            const float4 a = fetch_scales(p, end, page, lane, entry);
            entry = entry_at(pages, page + 2 + lane / 16);
            ptx::mbarrier_wait(&s.empty_scales[turn & 1], ((turn >> 1) & 1) ^ 1);
            store_scales(s.scales[turn & 1], lane, a);
            ptx::mbarrier_arrive(&s.full_scales[turn & 1]);
        }
    }
}

} // namespace sm90_fp8
