/* merge.cuh - a cut sequence of few rows, by those who computed its partial results or by parts without items.
 *
 * All CTAs are resident (a cooperative launch), so each may wait for the others: who has no item, or has
 * stored the partial results of all its items, merges a share of the units of each sequence. A
 * partial result is divided by its own sum; out = sum_k w_k out_k / sum_k w_k, w_k = 2^(lse_k -
 * most). The order of additions follows from the number of slots: reruns are bit-identical.
 *
 * Code is read cold as data are, and a jump to a line that isn't there takes as long as a read:
 * hence loads without conditions, where there is none of a slot that is read anyway.
 *
 * A kernel brings its Format: what a lane's 16 bytes of a unit are.
 *   NUMBERS                      how many
 *   UNITS                        of a slot, at most
 *   row(unit)
 *   leads(unit)                  of its row: who stores the LSE
 *   unpack(uint4, x)
 *   store(out, unit, lane, x)    out: row 0 */
#pragma once
#include <cuda_bf16.h>

#include "kernels/cuda/merge/partials.cuh"
#include "kernels/cuda/ptx/barrier.cuh"
#include "kernels/cuda/ptx/warp.cuh"

namespace merging {

enum {
    kMergers = 256, /* threads */
    kLogOctets = 5,
    kOctets = 1 << kLogOctets,
    kOctetsWarp = 32 / kLanes,
    kAtOnce = 4, /* slots that a lane asks for */
};
static_assert(kOctets * kLanes == kMergers, "all take part");

/* A cut sequence. */
template <typename Format>
struct job {
    partials<Format::UNITS> from;
    int first, slots;   /* its slots */
    int nth, of;        /* whose share this is, of so many */
    int units, rows;    /* there may be units of more rows */
    __nv_bfloat16 *out; /* first row */
    float *lse;         /* the same; may be null */
    int barrier;        /* a named one, of all mergers */
};

/* A lane's numbers of some slots, weighed by what is known of them so far: their largest LSE and the sum
 * of their weights in its unit. */
template <typename Format>
struct weighed {
    float x[Format::NUMBERS];
    float most, sum;

    __device__ weighed() : x{}, most(-INFINITY), sum(0) {
    }
    __device__ void raise(float top) {
        const float factor = most == -INFINITY ? 0 : ptx::exp2_approx(most - top);
#pragma unroll
        for (int i = 0; i < Format::NUMBERS; i++)
            x[i] *= factor;
        sum *= factor;
        most = top;
    }
    __device__ void add(float lse, uint4 part) {
        const float w = lse == -INFINITY ? 0 : ptx::exp2_approx(lse - most);
        float more[Format::NUMBERS];
        Format::unpack(part, more);
#pragma unroll
        for (int i = 0; i < Format::NUMBERS; i++)
            x[i] = fmaf(w, more[i], x[i]);
        sum += w;
    }
    __device__ void add(weighed other) {
        const float top = fmaxf(most, other.most);
        raise(top);
        other.raise(top);
#pragma unroll
        for (int i = 0; i < Format::NUMBERS; i++)
            x[i] += other.x[i];
        sum += other.sum;
    }
    __device__ weighed of_lane(int mask) const {
        weighed other;
#pragma unroll
        for (int i = 0; i < Format::NUMBERS; i++)
            other.x[i] = __shfl_xor_sync(~0u, x[i], mask);
        other.most = __shfl_xor_sync(~0u, most, mask);
        other.sum = __shfl_xor_sync(~0u, sum, mask);
        return other;
    }
};

/* What some slots hold of a unit, for a lane. */
template <typename Format>
struct handful {
    uint4 part[kAtOnce];
    float lse[kAtOnce];

    /* From slot k every `step`-th. Waits until all is there, and takes it away. */
    __device__ __forceinline__ void take(const job<Format> &j, int unit, int k, int step,
                                         int lane) {
        uint4 *const out = j.from.out(j.first, unit, lane);
        uint32_t *const log_sum = j.from.lse(j.first, unit);
        int slot[kAtOnce];
        bool absent;
#pragma unroll
        for (int n = 0; n < kAtOnce; n++)
            slot[n] = k + n * step < j.slots ? k + n * step : k;
        do {
            absent = false;
#pragma unroll
            for (int n = 0; n < kAtOnce; n++) {
                part[n] = load_relaxed(out + slot[n] * j.from.OUT_STEP);
                lse[n] = __uint_as_float(load_relaxed(log_sum + slot[n] * j.from.LSE_STEP));
            }
#pragma unroll
            for (int n = 0; n < kAtOnce; n++) {
                const uint32_t most = max(max(part[n].x, part[n].y), max(part[n].z, part[n].w));
                absent |= max(most, __float_as_uint(lse[n])) == kAbsent;
            }
        } while (absent);
        __syncwarp(0xffu << (threadIdx.x & 24)); /* all eight lanes have the LSE */
#pragma unroll
        for (int n = 0; n < kAtOnce; n++) {
            store_relaxed(out + slot[n] * j.from.OUT_STEP,
                          make_uint4(kAbsent, kAbsent, kAbsent, kAbsent));
            store_relaxed(log_sum + slot[n] * j.from.LSE_STEP, kAbsent);
            lse[n] = k + n * step < j.slots ? lse[n] : -INFINITY;
        }
    }
    __device__ __forceinline__ void add_to(weighed<Format> &all) const {
        float top = all.most;
#pragma unroll
        for (int n = 0; n < kAtOnce; n++)
            top = fmaxf(top, lse[n]);
        all.raise(top);
#pragma unroll
        for (int n = 0; n < kAtOnce; n++)
            all.add(lse[n], part[n]);
    }
};

template <typename Format>
__device__ __forceinline__ void store_unit(const job<Format> &j, int unit, int lane,
                                           const weighed<Format> &all) {
    const int row = Format::row(unit);
    if (row >= j.rows)
        return;
    const float inverse = all.sum == 0 ? 0 : 1 / all.sum;
    float x[Format::NUMBERS];
#pragma unroll
    for (int i = 0; i < Format::NUMBERS; i++)
        x[i] = all.x[i] * inverse;
    Format::store(j.out, unit, lane, x);
    if (j.lse && Format::leads(unit) && lane == 0)
        j.lse[row] = all.sum == 0 ? -INFINITY : (all.most + log2f(all.sum)) * 0.69314718f;
}

/* Adds up what the octets of a unit have, within warps, then across them: the first of them has all. */
template <typename Format>
__device__ __forceinline__ void add_groups(weighed<Format> &all, int groups, int barrier,
                                           weighed<Format> *scratch, int thread) {
    __syncwarp();
#pragma unroll 1
    for (int step = 1; step < min(groups, static_cast<int>(kOctetsWarp)); step *= 2)
        all.add(all.of_lane(step * kLanes));
    if (groups <= kOctetsWarp)
        return;
    const int warp = thread / 32, lane = thread % 32;
    ptx::named_sync(barrier, kMergers); /* nobody needs what is there any more */
    if (lane < kLanes)
        scratch[warp * kLanes + lane] = all;
    ptx::named_sync(barrier, kMergers);
    if (lane < kLanes)
#pragma unroll 1
        for (int other = 1; other < groups / kOctetsWarp; other++)
            all.add(scratch[(warp + other) % (kMergers / 32) * kLanes + lane]);
}

/* By all mergers. The share is a power of two of neighbouring units, which needs no division: some octets a
 * unit, which take every so manieth slot, or one octet several units.
 * @scratch: [64] on chip, free when all of them are here. */
template <typename Format>
__device__ __forceinline__ void merge(const job<Format> &j, weighed<Format> *scratch, int thread) {
    int width = 0, log = 0;
    while (j.of << width < j.units)
        width++;
    while (log + width < kLogOctets && kAtOnce << log < j.slots)
        log++;
    const int lane = thread & (kLanes - 1), octet = thread >> 3;
    const int groups = 1 << log, group = octet & (groups - 1);
    const int end = min((j.nth + 1) << width, j.units);
    int unit = (j.nth << width) + (octet >> log);
    do {
        weighed<Format> all;
#pragma unroll 1
        for (int k = unit < end ? group : j.slots; k < j.slots; k += kAtOnce * groups) {
            handful<Format> now;
            now.take(j, unit, k, groups, lane);
            now.add_to(all);
        }
        if (groups > 1)
            add_groups(all, groups, j.barrier, scratch, thread);
        if (group == 0 && unit < end)
            store_unit(j, unit, lane, all);
        unit += kOctets;
    } while (groups == 1 && unit < end);
}

} // namespace merging
