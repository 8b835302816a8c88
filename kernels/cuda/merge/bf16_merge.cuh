/* bf16_merge.cuh - a cut sequence: its partial results, and what those who computed them make of them.
 *
 * All CTAs are resident (a cooperative launch), so each may wait for the others: who has stored the
 * partial results of all its items waits for those of the sequence, then merges an equal share of the
 * sequence's rows and columns. A counter a sequence and tile of rows counts arrivals, then departures,
 * and is left at zero.
 *
 * A slot's rows are O as a group has it, as fp16 in a unit that follows the row's largest number: what is
 * lost is an eighth of what bf16 would lose, down to 2^-28 of that number. Beside them lie E and the sum
 * of P; so nothing is divided, or waited for, before O can be stored. out = sum_k 2^E_k O_k / sum_k 2^E_k sum_k. The order of additions follows from the number
 * of slots: reruns are bit-identical. */
#pragma once
#include "kernels/cuda/merge/cut_sequence.cuh"
#include "kernels/cuda/ptx/barrier.cuh"
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/sm90_bf16/bf16_traits.cuh"

namespace sm90_bf16 {

enum {
    kMergeThreads = 256,   /* threads: both groups */
    kLogMerged = 9,   /* units that all of them merge at once: two a thread */
    kSlotsAtOnce = 2, /* of a unit, asked for together */
    kUnits = CONTENT / merging::kUnitNumbers,
};
static_assert(1 << kLogMerged == 2 * kMergeThreads, "all take part");

/* What a group leaves beside its half of a row. */
struct alignas(16) half_row {
    float unit;  /* E, the same in both halves */
    float sum;   /* of P over the group's pages */
    float scale; /* of the fp16 numbers: a power of two, never zero */
    float unused;
};

/* A slot: [rows][512] fp16, each half in the order in which its threads have it (column_of), then
 * [rows][2] half_row. */
struct partials {
    uint8_t *slot;
    int rows;

    __device__ partials(const params &p, int slot)
        : slot(p.partials + static_cast<size_t>(slot) * p.rows * BF16_PARTIAL_BYTES), rows(p.rows) {
    }
    __device__ uint4 *unit(int row, int n) const {
        return reinterpret_cast<uint4 *>(slot) + row * kUnits + n;
    }
    __device__ half_row *of_row(int row) const {
        return reinterpret_cast<half_row *>(unit(rows, 0)) + 2 * row;
    }
};
static_assert(BF16_PARTIAL_BYTES == CONTENT * 2 + 2 * sizeof(half_row), "what the host allocates");

/* Of a unit's first two numbers; the other pairs lie 8 columns further each. Lane t of a quad has columns
 * 2t and 2t + 1 of each block of eight, and stores those of four blocks as a unit. */
__device__ __forceinline__ int column_of(int unit) {
    return unit / 4 % (kUnits / 4) * 32 + unit % 4 * 2;
}

/* Some slots of a unit, unit_sum by what is known of them so far: their largest E and the sum of their
 * weights in its unit. */
struct unit_sum {
    float x[merging::kUnitNumbers];
    float most, sum;

    __device__ __forceinline__ void raise(float top) {
        const float factor = ptx::exp2_approx(most - top);
#pragma unroll
        for (int i = 0; i < merging::kUnitNumbers; i++)
            x[i] *= factor;
        sum *= factor;
        most = top;
    }
    __device__ __forceinline__ void add(uint4 part, float w) {
        const uint32_t word[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float2 y = __half22float2(*reinterpret_cast<const __half2 *>(&word[i]));
            x[2 * i] = fmaf(w, y.x, x[2 * i]);
            x[2 * i + 1] = fmaf(w, y.y, x[2 * i + 1]);
        }
    }
    __device__ __forceinline__ void add(unit_sum other) {
        const float top = fmaxf(most, other.most);
        raise(top);
        other.raise(top);
#pragma unroll
        for (int i = 0; i < merging::kUnitNumbers; i++)
            x[i] += other.x[i];
        sum += other.sum;
    }
    __device__ __forceinline__ unit_sum of_lane(int mask) const {
        unit_sum other;
#pragma unroll
        for (int i = 0; i < merging::kUnitNumbers; i++)
            other.x[i] = __shfl_xor_sync(~0u, x[i], mask);
        other.most = __shfl_xor_sync(~0u, most, mask);
        other.sum = __shfl_xor_sync(~0u, sum, mask);
        return other;
    }
};

__device__ __forceinline__ int *counter_of(const params &p, const sched_item &item, int row_tile) {
    return merging::counter_of(p.counters, p.row_tiles, item, row_tile, 0);
}

/* One thread, after all have stored. */
__device__ __forceinline__ void count_item(const params &p, const sched_item &item, int row_tile) {
    asm volatile("red.release.gpu.global.inc.u32 [%0], %1;" ::"l"(counter_of(p, item, row_tile)),
                 "r"(2 * item.items - 1)
                 : "memory");
}

/* Past what an SM's own cache may hold; zero where there is none. */
__device__ __forceinline__ uint4 load_part(const void *at, bool real) {
    uint4 x;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0;\n"
                 "mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;\n"
                 "@p ld.relaxed.gpu.global.v4.b32 {%0, %1, %2, %3}, [%4]; }"
                 : "=&r"(x.x), "=&r"(x.y), "=&r"(x.z), "=&r"(x.w)
                 : "l"(at), "r"(static_cast<int>(real))
                 : "memory");
    return x;
}

__device__ __forceinline__ float load_sum(const float *at, bool real) {
    float x;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0;\n"
                 "mov.b32 %0, 0;\n"
                 "@p ld.relaxed.gpu.global.f32 %0, [%1]; }"
                 : "=&f"(x)
                 : "l"(at), "r"(static_cast<int>(real))
                 : "memory");
    return x;
}

/* What some slots hold of a unit. */
struct slot_loads {
    uint4 part[kSlotsAtOnce], own[kSlotsAtOnce];
    float other[kSlotsAtOnce];

    /* From slot k every `step`-th; nothing if the unit isn't `real`. */
    __device__ __forceinline__ void load(const params &p, const sched_item &item, int row, int unit,
                                        int k, int step, bool real) {
        const int half = unit / (kUnits / 2) & 1;
#pragma unroll
        for (int i = 0; i < kSlotsAtOnce; i++, k += step) {
            const partials from(p, item.first_slot + k);
            const bool here = real && k < item.items;
            part[i] = load_part(from.unit(row, unit), here);
            own[i] = load_part(from.of_row(row) + half, here);
            other[i] = load_sum(&from.of_row(row)[1 - half].sum, here);
        }
    }
    /* Where there is none all is zero, `scale` too. */
    __device__ __forceinline__ void add_to(unit_sum &all) const {
        float top = all.most;
#pragma unroll
        for (int i = 0; i < kSlotsAtOnce; i++)
            top = fmaxf(top, own[i].z ? __uint_as_float(own[i].x) : kNone);
        all.raise(top);
#pragma unroll
        for (int i = 0; i < kSlotsAtOnce; i++) {
            const float w = own[i].z ? ptx::exp2_approx(__uint_as_float(own[i].x) - top) : 0;
            all.sum = fmaf(w, __uint_as_float(own[i].y) + other[i], all.sum);
            all.add(part[i], w * __uint_as_float(own[i].z));
        }
    }
};

__device__ __forceinline__ void store_unit(const params &p, const sched_item &item, int first_row,
                                           int unit, const unit_sum &all) {
    const size_t row = static_cast<size_t>(item.seq) * p.rows + first_row + unit / kUnits;
    const float inverse = all.sum == 0 ? 0 : ptx::rcp_approx(all.sum);
    auto *to = reinterpret_cast<uint32_t *>(p.io.out + row * CONTENT + column_of(unit));
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[4 * i] = ptx::pack_bf16x2(all.x[2 * i] * inverse, all.x[2 * i + 1] * inverse);
    if (p.io.lse && unit % kUnits == 0)
        p.io.lse[row] = all.sum == 0 ? -INFINITY : (all.most + __log2f(all.sum)) * merging::kLn2;
}

/* Adds up what the groups of threads of a unit have: the first of them has all. */
__device__ __forceinline__ void add_groups(unit_sum *sums, int abreast, int thread, unit_sum &all) {
    const int apart = max(abreast, 32);
    __syncwarp();
#pragma unroll 1
    for (int step = abreast; step < 32; step *= 2)
        all.add(all.of_lane(step));
    sums[thread] = all;
    ptx::named_sync(kMerge, kMergeThreads);
    if (thread < abreast)
#pragma unroll 1
        for (int other = apart; other < kMergeThreads; other += apart)
            all.add(sums[other + thread]);
}

/* Where a thread stands: of its two units, or two parts of one. */
struct thread_units {
    int unit[2], first[2]; /* slot of `first` and every `groups`-th after it */

    __device__ thread_units(int begin, int log, int thread) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            unit[i] = begin + ((thread + i * kMergeThreads) & ((1 << log) - 1));
            first[i] = (thread + i * kMergeThreads) >> log;
        }
    }
};

__device__ __forceinline__ void add_slots(const params &p, const sched_item &item, int first_row,
                                          int end, int groups, const thread_units &at, unit_sum (&all)[2]) {
#pragma unroll 1
    for (int k = 0; k < item.items; k += kSlotsAtOnce * groups) {
        slot_loads now[2];
#pragma unroll
        for (int i = 0; i < 2; i++)
            now[i].load(p, item, first_row + at.unit[i] / kUnits, at.unit[i] % kUnits,
                       k + at.first[i], groups, at.unit[i] < end);
#pragma unroll
        for (int i = 0; i < 2; i++)
            now[i].add_to(all[i]);
    }
}

/* This CTA's share of one sequence. Few units are merged by several threads each, which take every so
 * manieth slot; then a thread's two are parts of one.
 * @sums: [kMergeThreads] on chip. */
__device__ __forceinline__ void merge(unit_sum *sums, const params &p, const sched_item &item,
                                      int row_tile, int thread) {
    const int first_row = row_tile * ROWS;
    const merging::share mine(item, min(p.rows - first_row, int(ROWS)) * kUnits);
    const int end = mine.end;
    /* Units abreast: the power of two from the share's width on. */
    const int log = min(32 - __clz(max(end - int(mine.begin), 1) - 1), int(kLogMerged));
    const int abreast = 1 << log, groups = 1 << (kLogMerged - log);
    if (thread % 32 == 0)
        merging::wait_for_items(counter_of(p, item, row_tile), item);
    __syncwarp();
#pragma unroll 1
    for (int begin = mine.begin; begin < end; begin += abreast) {
        thread_units at(begin, log, thread);
        unit_sum all[2] = {{{}, kNone, 0}, {{}, kNone, 0}};
        add_slots(p, item, first_row, end, groups, at, all);
        if (groups > 1)
            all[0].add(all[1]);
        if (groups > 2)
            add_groups(sums, abreast, thread, all[0]);
        if (thread >= abreast)
            return;
#pragma unroll 1
        for (int left = groups > 1 ? 1 : 2; left > 0; left--) { /* their code is here once */
            if (at.unit[0] < end)
                store_unit(p, item, first_row, at.unit[0], all[0]);
            at.unit[0] = at.unit[1];
            all[0] = all[1];
        }
    }
}

/* The cut sequences of a part. */
__device__ __forceinline__ void merge_part(shared &s, const params &p, int row_tile, int thread) {
    ptx::named_sync(kMerge, kMergeThreads); /* all are done with pages */
#pragma unroll 1
    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        if (item.slot < 0)
            continue;
        merge(reinterpret_cast<unit_sum *>(s.kv), p, item, row_tile, thread);
        ptx::named_sync(kMerge, kMergeThreads); /* all have seen the counter, and read `sums` */
        if (thread == 0)
            merging::count(counter_of(p, item, row_tile), item);
    }
}

} // namespace sm90_bf16
