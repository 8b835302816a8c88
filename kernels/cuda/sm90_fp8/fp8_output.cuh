/* fp8_output.cuh - an output group: O^T += V^T P^T over 256 of the 512 columns, and the epilogue.
 *
 * V^T is the A operand, in registers. ldmatrix.trans loads 16-bit pairs of adjacent columns. Byte
 * permutations separate them, so that row g of a fragment is column 2 g and row g + 8 is column
 * 2 g + 1. fp8 sums keep about 13 bits. So the product of each tile starts from zero and is added
 * to O in FP32, 32 rows at a time. With 64 rows at a time the group runs out of registers, and
 * spills cost more than the longer wgmma gains. */
#pragma once
#include "kernels/cuda/merge/fp8_merge.cuh"
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

namespace sm90_fp8 {

enum {
    SLICES = 4,                     /* slices of 64 columns, the M of one wgmma each */
    kHalf = 32 * SWIZZLE / 16,      /* 32 rows of P, in the descriptor's units of 16 bytes */
    kProducts = kPageUnits ? 2 : 1, /* products for a tile, 32 rows and 64 columns: one over both
                                       pages, or one for each page */
    STEPS = 4 / kProducts,          /* instructions of a product: 32 tokens each */
};

struct output_thread {
    int group, warp, lane, g, t;

    __device__ explicit output_thread(int group)
        : group(group), warp(ptx::warp() & 3), lane(ptx::lane()), g(lane >> 2), t(lane & 3) {
    }
    /* The index among the threads of both groups. */
    __device__ int thread() const {
        return group * 128 + 32 * warp + lane;
    }
    /* Shared-memory address of the lane's row of V in stage 0; chunk() is the offset of its
     * swizzled 16 bytes in slice 0. */
    template <typename Shared>
    __device__ uint32_t values_at(const Shared &s) const {
        return ptx::smem_addr(s.content) + group * (2 * PAGE * SWIZZLE) + lane * SWIZZLE;
    }
    __device__ uint32_t chunk() const {
        return (warp ^ (lane & 7)) << 4;
    }
    __device__ void arrive(uint64_t *bar) const {
        __syncwarp();
        if (lane == 0)
            ptx::mbarrier_arrive(bar);
    }
};

/* Loads V^T of 32 tokens and the warp's 16 columns, in the A layout of one k-step. Its order of
 * tokens is that of 16 bytes of P: 0, 1, 8, 9, 2, ...; with @Interleaved, as fp8_few.cuh stores
 * them, 0, 8, 1, 9, ... */
template <bool Interleaved = false>
__device__ __forceinline__ void load_values(uint32_t address, uint32_t (&a)[4]) {
    uint32_t r[4];
    ptx::ldmatrix_x4_trans(r, address);
    enum { EVEN = Interleaved ? 0x6240 : 0x6420, ODD = Interleaved ? 0x7351 : 0x7531 };
    a[0] = __byte_perm(r[0], r[1], EVEN);
    a[1] = __byte_perm(r[0], r[1], ODD);
    a[2] = __byte_perm(r[2], r[3], EVEN);
    a[3] = __byte_perm(r[2], r[3], ODD);
}

/* With units of pages: the factor of a row of O, from its bits in page_units::changes, shifted so
 * that the lower one is bit 0. */
__device__ __forceinline__ float page_change(int bits) {
    return bits & 4 ? 0 : bits & 1 ? kShiftFactor : 1;
}

/* Rescales the rows of O whose unit has changed: to 2^E of this tile or, with units of pages, to
 * 2^B of this tile (fp8_units.cuh, fp8_page_units.cuh). A group of 16 rows is skipped if no E or B
 * in it has changed. */
__device__ __forceinline__ void rescale(const shared &s, uint32_t turn, int t,
                                        float (&o)[SLICES][32]) {
    const int4 flags = s.rescale[turn & 1];
    if (!(flags.x | flags.y | flags.z | flags.w))
        return;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const int flag = q == 0 ? flags.x : q == 1 ? flags.y : q == 2 ? flags.z : flags.w;
        if (!flag)
            continue;
#pragma unroll
        for (int j = 2 * q; j < 2 * q + 2; j++) {
            float2 by = reinterpret_cast<const float2 *>(s.factor[turn % kFactors])[4 * j + t];
            if (kPageUnits) {
                const int rows = flag >> (8 * t + j % 2);
                by = {page_change(rows), page_change(rows >> 4)};
            }
#pragma unroll
            for (int slice = 0; slice < SLICES; slice++) {
                o[slice][4 * j] *= by.x;
                o[slice][4 * j + 1] *= by.y;
                o[slice][4 * j + 2] *= by.x;
                o[slice][4 * j + 3] *= by.y;
            }
        }
    }
}

/* The state of the barriers that the next tile waits for. They are tested while the last product of
 * the current tile is in flight, to hide the latency of the tests. */
struct output_ahead {
    bool page[2], p;

    __device__ output_ahead() : page{false, false}, p(false) {
    }
    __device__ void test(shared &s, const ring<kStages> &at, uint32_t turn) {
        const ring<kStages> second = at.next();
        page[0] = ptx::mbarrier_test(&s.full[at.stage], at.parity);
        page[1] = ptx::mbarrier_test(&s.full[second.stage], second.parity);
        p = ptx::mbarrier_test(&s.full_p[turn & 1], (turn >> 1) & 1);
    }
};

/* The final factor for a row of O. */
template <typename Shared>
__device__ __forceinline__ float inverse_sum(const Shared &s, int row) {
    if constexpr (Shared::kFew) {
        const float sum = sum_of(s.few.sums[row]);
        return sum == 0 ? 0 : ptx::rcp_approx(sum);
    } else {
        return s.inverse_sum[row];
    }
}

/* The factors of a page's product in 32 rows, for the eight rows of a thread, 8 j + 2 t and 8 j + 2
 * t + 1. Four are loaded at a time. Without units of pages, a product is added as it is. @which:
 * index in shared::factor. */
struct product_factors {
    const float4 *from;
    float4 four;

    __device__ __forceinline__ product_factors(const shared &s, int which, int t, int half)
        : from(reinterpret_cast<const float4 *>(s.factor[which]) + 4 * t + 2 * half) {
        if (kPageUnits)
            four = *from;
    }
    __device__ __forceinline__ void next() {
        if (kPageUnits)
            four = from[1];
    }
    /* @i: number of the element in the thread's product. */
    __device__ __forceinline__ float add(float o, float product, int i) const {
        const float even = i / 4 % 2 ? four.z : four.x, odd = i / 4 % 2 ? four.w : four.y;
        return kPageUnits ? fmaf(product, i % 2 ? odd : even, o) : o + product;
    }
};

/* Multiplies one tile. Unless @last, the first V fragments are loaded while P may still be
 * computed. @base comes from values_at(), and @chunk from chunk(). @few: at most 32 rows of the
 * tile exist; the others are skipped. @last: the item's last tile; its V past the end of the
 * sequence is cleared before P is published, so V must not be read earlier. */
__device__ __forceinline__ void multiply_tile(shared &s, const output_thread &me, uint32_t turn,
                                              const ring<kStages> &at, uint32_t base,
                                              uint32_t chunk, uint32_t p_desc, uint32_t high,
                                              bool few, bool last, output_ahead &ahead,
                                              float (&o)[SLICES][32]) {
    const ring<kStages> second = at.next();
    const int buffer = turn & 1;
    const uint32_t p_tile = p_desc + buffer * (ROWS * SWIZZLE / 16);
    const uint32_t page[2] = {base + at.stage * kBytesContent, base + second.stage * kBytesContent};
    const bool p_here = ahead.p;
    uint64_t b[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        b[k] = ptx::descriptor_of(p_tile + 2 * k, high);
    if (!p_here) {
        if (last) {
            ptx::mbarrier_wait(&s.full_p[buffer], (turn >> 1) & 1);
        } else {
            if (!ahead.page[0])
                ptx::mbarrier_wait(&s.full[at.stage], at.parity);
            if (!ahead.page[1])
                ptx::mbarrier_wait(&s.full[second.stage], second.parity);
        }
    }
#pragma unroll
    for (int slice = 0; slice < SLICES; slice++) {
        const uint32_t offset = slice / 2 * (PAGE * SWIZZLE) + (slice & 1 ? chunk ^ 64 : chunk);
        uint32_t a[4][4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            load_values(page[k / 2] + k % 2 * (32 * SWIZZLE) + offset, a[k]);
        if (slice + 1 == SLICES) {
            me.arrive(&s.empty[at.stage]);
            if (me.lane == 0)
                ptx::mbarrier_arrive(&s.empty[second.stage]);
        }
        if (slice == 0) {
            if (!p_here)
                ptx::mbarrier_wait(&s.full_p[buffer], (turn >> 1) & 1);
            rescale(s, turn, me.t, o);
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (h == 1 && few) {
#pragma unroll
                for (int k = 0; k < 4; k++)
                    ptx::descriptor_step(b[k], -kHalf);
                continue;
            }
#pragma unroll
            for (int n = 0; n < kProducts; n++) {
                const int first = n == 0 ? kFirstPage * STEPS : (1 - kFirstPage) * STEPS;
                float zeroed[16];
                auto &product =
                    SM90_FP8_IN_PLACE ? *reinterpret_cast<float(*)[16]>(&o[slice][16 * h]) : zeroed;
                ptx::wgmma_fence();
#pragma unroll
                for (int k = first; k < first + STEPS; k++) {
                    ptx::wgmma_rs_e4m3_n32(product, a[k], b[k], SM90_FP8_IN_PLACE || k > first);
                    ptx::descriptor_step(b[k], h == 0 ? kHalf : -kHalf);
                }
                ptx::wgmma_commit();
                product_factors by(s, 2 * buffer + first / 2, me.t, h);
                if (slice + 1 == SLICES && h == 0 && n == 0)
                    ahead.test(s, at.next(2), turn + 1);
                ptx::wgmma_wait<0>();
                ptx::pin(product);
#pragma unroll
                for (int i = 0; i < 16 && !SM90_FP8_IN_PLACE; i++) {
                    if (i == 8)
                        by.next();
                    o[slice][16 * h + i] = by.add(o[slice][16 * h + i], product[i], i);
                }
            }
        }
    }
    ptx::mbarrier_arrive(&s.empty_p[buffer]);
}

template <typename Shared, int N>
__device__ __forceinline__ void store_rows(const Shared &s, const params &p,
                                           const output_thread &me, const sched_item &item,
                                           int first_row, const float (&o)[SLICES][N]) {
    __nv_bfloat16 *out = item.slot >= 0 ? p.partial_out : p.io.out;
    const size_t base =
        static_cast<size_t>(item.slot >= 0 ? item.slot : item.seq) * p.rows + first_row;
    const int column = me.group * 256 + 16 * me.warp + 2 * me.g;
    const int first = ptx::opaque(2 * me.t); /* kept opaque: the row numbers derived from it would
                                                spill in the loop */
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
        if (first_row + 8 * j >= p.rows) /* rows that don't exist are left out with one jump,
                                            because code is slow to fetch */
            break;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = first + 8 * j + r;
            if (first_row + row >= p.rows)
                continue;
            const float inverse = inverse_sum(s, row);
            const size_t at = (base + row) * CONTENT + column;
#pragma unroll
            for (int slice = 0; slice < SLICES; slice++) {
                const float x = o[slice][4 * j + r] * inverse;
                const float y = o[slice][4 * j + 2 + r] * inverse;
                *reinterpret_cast<uint32_t *>(out + at + slice * 64) = ptx::pack_bf16x2(x, y);
            }
        }
    }
}

__device__ __forceinline__ int tiles_of(const shared &s, const params &p, int k) {
    const sched_item item = item_at(s, p, k);
    return item.tile_end - item.tile_begin;
}

__device__ __forceinline__ void run_output(shared &s, const params &p, int group, int row_tile) {
    const output_thread me(group);
    const int thread = me.thread();
    const uint32_t base = me.values_at(s), chunk = me.chunk();
    const uint32_t p_desc = ptx::descriptor_low_128(ptx::smem_addr(s.p));
    const bool few = p.rows - row_tile * ROWS <= 32;
    ring<kStages> at;
    uint32_t turn = 0;
    output_ahead ahead;
    for (int k = s.part.first; k < s.part.last; k++) {
        float o[SLICES][32];
#pragma unroll
        for (int slice = 0; slice < SLICES; slice++)
#pragma unroll
            for (int i = 0; i < 32; i++)
                o[slice][i] = 0;
#pragma unroll 1
        for (int n = tiles_of(s, p, k); n > 0; n--, turn++, at.advance(2))
            multiply_tile(s, me, turn, at, base, chunk, p_desc, p.high_b, few, n == 1, ahead, o);
        ptx::mbarrier_wait(&s.full_sum, (k - s.part.first) & 1);
        const sched_item item = item_at(s, p, k);
        store_rows(s, p, me, item, row_tile * ROWS, o);
        ptx::mbarrier_arrive(&s.empty_sum);
        if (item.slot >= 0) {
            ptx::named_sync(kMergeBarrier, kMergeThreads);
            if (thread == 0)
                count_item(p, item, row_tile, RESULTS);
        }
    }
    merge_part(s, p, row_tile, thread);
}

} // namespace sm90_fp8
