/* bf16_kernel.cuh - the kernel: initialises the barriers, then each group takes its role.
 *
 * The schedule for one pair of pages (' marks the next pair):
 *   group 0   S0 | softmax -> P0 | OL += P0 V0L          | OL += P1 V1L | S0'
 *   group 1        S1 ...........| OR += P0 V0R, softmax -> P1 | OR += P1 V1R | S1'
 *   copies                         rope0'                V0L', V0R'     rope1', V1L', V1R'   */
#pragma once
#include "kernels/cuda/ptx/launch.cuh"
#include "kernels/cuda/sm90_bf16/bf16_output.cuh"
#if SM90_BF16_WIDEN
#include "kernels/cuda/sm90_ablation/widen.cuh"
#endif

namespace sm90_bf16 {

__device__ __forceinline__ void init_barriers(shared &s) {
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < kPieces; k++)
            ptx::mbarrier_init(&s.full[i][k], SM90_BF16_WIDEN ? 128 : 1);
        ptx::mbarrier_init(&s.empty_rope[i], 4);
        for (int half = 0; half < 2; half++)
            ptx::mbarrier_init(&s.empty[i][half], 4);
        ptx::mbarrier_init(&s.full_p[i], 128);
    }
    ptx::mbarrier_init(&s.full_sum, 256);
    ptx::mbarrier_init(&s.full_q, 1);
    ptx::mbarrier_init(&s.empty_q, 8);
    ptx::mbarrier_init_fence();
}

/* The address that a lane stores P to: its row, and the first chunk of 16 bytes before
 * swizzling. */
struct p_slot {
    uint32_t row;
    int chunk, swizzle;

    __device__ p_slot(const shared &s, const math_thread &me)
        : row(ptx::smem_addr(s.p[me.group][16 * me.warp + (me.lane & 15)])), chunk(me.lane >> 4),
          swizzle(me.lane & 7) {
    }
};

/* Turns S of one page into P, after S is complete. @valid: how many tokens the sequence has from
 * the page's first on. */
__device__ __forceinline__ void update_softmax(shared &s, const params &p, const math_thread &me,
                                       const p_slot &slot, int first_row, int valid,
                                       float (&score)[32], float (&unit)[2], uint32_t (&a)[4][4],
                                       float (&sum)[2]) {
    if (valid - (p.s_q - 1) < PAGE)
        mask(p, valid, first_row + me.row(), me.t, score);
    choose_unit(score, p.scale_log2, p.window, unit);
    exponentiate(score, p.scale_log2, unit, sum, a, slot.row, slot.chunk, slot.swizzle);
    write_unit(s, me, unit);
    if (valid < PAGE)
        clear_tail(s, me.group, valid);
    ptx::fence_proxy_async();
}

/* The phases of a group's barriers. */
struct phases {
    uint32_t page = 0, p = 0, q = 0;
    int whole = 0; /* number of items so far that were unsplit sequences */
};

/* Group 0: processes an even page. */
__device__ __forceinline__ void even_page(shared &s, const params &p, const math_thread &me,
                                          const p_slot &slot, const sched_item &item, int tile,
                                          int first_row, uint32_t parity, row_pair &r,
                                          float (&o)[128]) {
    float score[32], unit[2] = {r.unit[0], r.unit[1]}, sum[2] = {0, 0};
    uint32_t a[4][4];
    start_scores(s, p, r, 0, parity, score);
    ptx::wgmma_wait<0>();
    ptx::pin(score);
    me.arrive(&s.empty_rope[0]);
    if (tile + 2 >= item.tile_end)
        me.arrive(&s.empty_q);
    update_softmax(s, p, me, slot, first_row, item.tokens - tile * PAGE, score, unit, a, sum);
    ptx::mbarrier_arrive(&s.full_p[0]);
    if (unit_changed(unit, r))
        rescale(unit, r, o);
    r.sum[0] += sum[0];
    r.sum[1] += sum[1];
    multiply_own(a, values_low(s, 0, 0), o);
    ptx::wgmma_wait<0>();
    ptx::pin(o);
    me.arrive(&s.empty[0][0]);
}

/* Group 1: multiplies P of an even page, and processes the odd page after it. */
__device__ __forceinline__ void odd_page(shared &s, const params &p, const math_thread &me,
                                         const p_slot &slot, const sched_item &item, int tile,
                                         int first_row, phases &at, row_pair &r, float (&o)[128]) {
    float score[32], unit[2], sum[2] = {0, 0};
    uint32_t a[4][4];
    start_scores(s, p, r, 1, at.page, score);
    ptx::mbarrier_wait(&s.full_p[0], at.p);
    at.p ^= 1;
    read_unit(s, me.row(), unit);
    if (unit_changed(unit, r)) {
        ptx::wgmma_wait<0>();
        ptx::pin(score);
        rescale(unit, r, o);
    }
    multiply_other(s, 0, values_low(s, 0, 1), o);
    ptx::wgmma_wait<1>();
    ptx::pin(score);
    me.arrive(&s.empty_rope[1]);
    if (tile + 2 >= item.tile_end)
        me.arrive(&s.empty_q);
    update_softmax(s, p, me, slot, first_row, item.tokens - tile * PAGE, score, unit, a, sum);
    ptx::wgmma_wait<0>();
    ptx::pin(o);
    me.arrive(&s.empty[0][1]);
    ptx::mbarrier_arrive(&s.full_p[1]);
    if (unit_changed(unit, r))
        rescale(unit, r, o);
    r.sum[0] += sum[0];
    r.sum[1] += sum[1];
    multiply_own(a, values_low(s, 1, 1), o);
    ptx::wgmma_wait<0>();
    ptx::pin(o);
    me.arrive(&s.empty[1][1]);
}

/* Multiplies P of a page of the other group, after the group's own page of the pair is done. That
 * is an odd page for group 0. For group 1 it is an even page without an odd page after it. */
__device__ __forceinline__ void other_page(shared &s, const math_thread &me, phases &at,
                                           row_pair &r, float (&o)[128]) {
    const int page = 1 - me.group;
    float unit[2];
    ptx::mbarrier_wait(&s.full_p[page], at.p);
    at.p ^= 1;
    read_unit(s, me.row(), unit);
    if (unit_changed(unit, r))
        rescale(unit, r, o);
    multiply_other(s, page, values_low(s, page, me.group), o);
    ptx::wgmma_wait<0>();
    ptx::pin(o);
    me.arrive(&s.empty[page][me.group]);
}

__device__ __forceinline__ void pages_of(shared &s, const params &p, const math_thread &me,
                                         const sched_item &item, int first_row, phases &at,
                                         row_pair &r, float (&o)[128]) {
    const p_slot slot(s, me);
    if (me.group == 1 && item.tile_begin + 1 == item.tile_end)
        me.arrive(&s.empty_q);
#pragma unroll 1
    for (int tile = item.tile_begin; tile < item.tile_end; tile += 2) {
        const bool alone = tile + 1 == item.tile_end;
        if (me.group == 0) {
            even_page(s, p, me, slot, item, tile, first_row, at.page, r, o);
            at.page ^= 1;
        } else if (!alone) {
            odd_page(s, p, me, slot, item, tile + 1, first_row, at, r, o);
            at.page ^= 1;
        }
        if (alone == (me.group == 1))
            other_page(s, me, at, r, o);
    }
}

/* Waits until both groups have stored their partial results; then one thread increments the counter
 * that the mergers wait for. */
__device__ __forceinline__ void hand_over(const params &p, const sched_item &item, int first_row) {
    ptx::named_sync(kMerge, kMergeThreads);
    if (threadIdx.x == 0)
        count_item(p, item, first_row / ROWS);
}

/* The loop of both groups over items. The code that does not depend on the group exists only once:
 * code must be fetched from memory when it is cold, just like data. */
__device__ __forceinline__ void run_math(shared &s, const params &p, int group, int first_row) {
    const math_thread me(group);
    phases at;
    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        row_pair r;
        float o[128];
        load_rows(r, p, item.seq, first_row + me.row(), me.t);
#pragma unroll
        for (int i = 0; i < 128; i++)
            o[i] = 0;
        if (item.tile_begin < item.tile_end) {
            ptx::mbarrier_wait(&s.full_q, at.q);
            at.q ^= 1;
        }
        pages_of(s, p, me, item, first_row, at, r, o);
        r.sum[0] = quad_sum(r.sum[0]);
        r.sum[1] = quad_sum(r.sum[1]);
        if (item.slot < 0)
            exchange_sums(s, me, at.whole++, r.sum);
        store_rows(p, me, item, first_row, r, o);
        if (item.slot >= 0)
            hand_over(p, item, first_row);
    }
}

__global__ void __launch_bounds__(kThreads, 1) decode(const __grid_constant__ params p) {
    extern __shared__ uint8_t memory[];
    shared &s = *reinterpret_cast<shared *>(memory);
    const int group = ptx::warp() >> 2;
    const int row_tile = blockIdx.x;
    ptx::launch_wait();
    const bool copies = threadIdx.x < sizeof(sched_part) / sizeof(uint4);
    uint4 piece = {}; /* a piece of the part's record; loaded while barriers are initialised */
    if (copies)
        piece = reinterpret_cast<const uint4 *>(p.io.parts + blockIdx.y)[threadIdx.x];
    if (threadIdx.x == 256) {
        ptx::tma_prefetch(&p.kv[0]);
        ptx::tma_prefetch(&p.kv[1]);
        ptx::tma_prefetch(&p.q);
    }
    if (threadIdx.x == 0)
        init_barriers(s);
    if (copies)
        reinterpret_cast<uint4 *>(&s.part)[threadIdx.x] = piece;
    __syncthreads();
    if (group < 2) {
        ptx::registers_set<kMathRegs, kLaunchRegs>();
        run_math(s, p, group, row_tile * ROWS);
        merge_part(s, p, row_tile, threadIdx.x);
    } else {
        ptx::registers_set<kLoadRegs, kLaunchRegs>();
#if SM90_BF16_WIDEN
        run_widener(s, p, s.part.first, s.part.last, row_tile);
#else
        if (threadIdx.x == 256) {
            run_loader(s, p, row_tile);
        }
#endif
    }
}

} // namespace sm90_bf16
