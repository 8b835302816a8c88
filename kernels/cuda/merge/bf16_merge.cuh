/* bf16_merge.cuh - the partial results of the BF16 kernel, and their merge.
 *
 * This merge is used by sm90_bf16 and by widened_fp8, which is the same kernel on an FP8 cache, for
 * any number of rows and splits. It runs inside the decode launch, of which all CTAs are resident
 * (a cooperative launch). A CTA that has stored the partial results of all its items waits for the
 * other items of the sequence, and then merges about an equal share of the output of its tile of
 * rows. Each sequence and tile of rows has one counter (cut_sequence.cuh).
 *
 * A partial result is O as a group of warps holds it in registers, not divided by the sum of P. So
 * O can be stored without a division and without waiting for the sum of the other group. It is
 * stored as fp16, with a scale that follows the largest number of a half row. The rounding error is
 * an eighth of that of bf16, for numbers down to 2^-28 of the largest. Each partial result also
 * stores E, the reference exponent (O is in units of 2^E), and the sum of P. So
 * out = sum_k 2^E_k O_k / sum_k 2^E_k sum_k. The order of additions depends on the numbers of rows
 * and slots only, so reruns are bit-identical. */
#pragma once
#include "kernels/cuda/merge/cut_sequence.cuh"
#include "kernels/cuda/ptx/barrier.cuh"
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/sm90_bf16/bf16_traits.cuh"

namespace sm90_bf16 {

enum {
    kMergeThreads = 256,   /* both groups */
    kLogMerged = 9,   /* log2 of the units that are merged at the same time: two per thread */
    kSlotsAtOnce = 2, /* slots of a unit that a thread loads at once */
    kUnits = CONTENT / merging::kUnitNumbers,
};
static_assert(1 << kLogMerged == 2 * kMergeThreads, "two units for each thread");

/* What a group stores beside its half of a row. */
struct alignas(16) half_row {
    float unit;  /* E, the same in both halves */
    float sum;   /* sum of P over the group's pages */
    float scale; /* scale of the fp16 numbers: a power of two, never zero */
    float unused;
};

/* A slot: [rows][512] fp16, then [rows][2] half_row. Each half of a row is in the order in which
 * the threads of its group hold it (column_of). */
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
static_assert(BF16_PARTIAL_BYTES == CONTENT * 2 + 2 * sizeof(half_row),
              "the bytes that the host allocates per row");

/* The column of a unit's first two numbers. The other three pairs are 8 columns apart. Lane t of a
 * quad holds columns 2t and 2t + 1 of each block of eight columns, and it stores those of four
 * blocks as one unit. */
__device__ __forceinline__ int column_of(int unit) {
    return unit / 4 % (kUnits / 4) * 32 + unit % 4 * 2;
}

/* The weighted sum of some slots of a unit, relative to 2^most, where `most` is the largest E of
 * these slots. `sum` is the weighted sum of their sums of P. */
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

/* Counts the CTA's item as stored. Called by one thread, after a barrier that both warpgroups reach
 * once they have stored their partial results. */
__device__ __forceinline__ void count_item(const params &p, const sched_item &item, int row_tile) {
    asm volatile("red.release.gpu.global.inc.u32 [%0], %1;" ::"l"(counter_of(p, item, row_tile)),
                 "r"(2 * item.items - 1)
                 : "memory");
}

/* Loads from L2, past the SM's own cache, which may hold old data. Returns zeros unless @real. */
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

/* The data of some slots of a unit. */
struct slot_loads {
    uint4 part[kSlotsAtOnce], own[kSlotsAtOnce];
    float other[kSlotsAtOnce];

    /* Loads the slots k, k + step, ...; loads nothing unless the unit is @real. */
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
    /* If a slot does not exist, all of its data are zero, also `scale`. */
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

/* Adds up the sums of the groups of threads that share a unit. The first group gets the totals. */
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

/* The work of a thread: two units, or two sets of slots of one unit. */
struct thread_units {
    int unit[2], first[2]; /* slots first, first + groups, first + 2 groups, ... */

    __device__ thread_units(int begin, int log, int thread) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            unit[i] = begin + ((thread + i * kMergeThreads) & ((1 << log) - 1));
            first[i] = (thread + i * kMergeThreads) >> log;
        }
    }
};

__device__ __forceinline__ void add_slots(const params &p, const sched_item &item, int first_row,
                                          int end, int groups, const thread_units &at,
                                          unit_sum (&all)[2]) {
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

/* Merges this CTA's share of one sequence. If the share has fewer units than there are threads, n
 * threads work on each unit, and each of them adds every n-th slot. A thread's two sums then belong
 * to the same unit. @sums [kMergeThreads] is shared memory. */
__device__ __forceinline__ void merge(unit_sum *sums, const params &p, const sched_item &item,
                                      int row_tile, int thread) {
    const int first_row = row_tile * ROWS;
    const merging::share mine(item, min(p.rows - first_row, int(ROWS)) * kUnits);
    const int end = mine.end;
    /* units merged at the same time: the share's width, rounded up to a power of two */
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
        for (int left = groups > 1 ? 1 : 2; left > 0; left--) { /* a loop, so that the code of
                                                                   store_unit() exists only once */
            if (at.unit[0] < end)
                store_unit(p, item, first_row, at.unit[0], all[0]);
            at.unit[0] = at.unit[1];
            all[0] = all[1];
        }
    }
}

/* Merges the split sequences of a part. */
__device__ __forceinline__ void merge_part(shared &s, const params &p, int row_tile, int thread) {
    ptx::named_sync(kMerge, kMergeThreads); /* the pages are no longer read */
#pragma unroll 1
    for (int k = s.part.first; k < s.part.last; k++) {
        const sched_item item = item_at(s, p, k);
        if (item.slot < 0)
            continue;
        merge(reinterpret_cast<unit_sum *>(s.kv), p, item, row_tile, thread);
        ptx::named_sync(kMerge, kMergeThreads); /* all have read the counter and `sums` */
        if (thread == 0)
            merging::count(counter_of(p, item, row_tile), item);
    }
}

} // namespace sm90_bf16
