/* cut_sequence.cuh - what several merges share: conversions, the units that one CTA merges, and the
 * counters with which CTAs wait for each other. README.md beside this file lists all merges and
 * says when each is chosen.
 *
 * A sequence that was split into items has a partial result of each item in a slot. fp8_merge.cuh
 * and bf16_merge.cuh merge it in the decode launch. The launch is cooperative: all of its CTAs are
 * resident, so that each may wait for the others. The other merges use only the conversions below,
 * not the shares and counters. */
#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/cuda/sched/sched.h"

namespace merging {

constexpr float kLn2 = 0.69314718f; /* converts a base-2 logarithm to a natural one */

/* The natural LSE of a merged row. @top: the largest base-2 LSE of its partial results. @sum: the
 * sum of 2^(LSE - top) over all of them. */
__device__ __forceinline__ float natural_lse(float top, float sum) {
    return sum == 0 ? -INFINITY : (top + log2f(sum)) * kLn2;
}

/* Converts 16 bytes, eight bf16 numbers. */
__device__ __forceinline__ void unpack_bf16(uint4 part, float (&x)[8]) {
    const uint32_t word[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[2 * i] = __uint_as_float(word[i] << 16);
        x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
    }
}

/* In fp8_merge.cuh and bf16_merge.cuh, a unit is eight numbers of a row that lie side by side in
 * its slot, 16 bytes: what one thread merges at a time. */
enum { kUnitNumbers = 8 };

/* The units of a sequence's tile of rows that one CTA merges: begin .. end - 1, counted row after
 * row. There is one share for each item. The shares differ by at most one unit; the first ones are
 * the larger. */
struct share {
    unsigned begin, end;

    __device__ share(const sched_item &item, unsigned units) {
        const unsigned nth = item.slot - item.first_slot, items = item.items;
        const unsigned each = units / items, more = units - each * items;
        begin = each * nth + min(nth, more);
        end = begin + each + (nth < more);
    }
};

/* ---- counters ---------------------------------------------------------------------------------
 *
 * A counter belongs to a split sequence and a tile of its rows. It counts the stored items up to
 * item.items, and CTAs wait for that number. Then it counts the CTAs that have read it. When it
 * would reach twice item.items it wraps to zero, ready for the next launch. */

/* @nth: number of the counter among those of the sequence and tile. A split sequence has at least
 * two slots, and so room for at least two counters. */
__device__ __forceinline__ int *counter_of(int *counters, int row_tiles, const sched_item &item,
                                           int row_tile, int nth) {
    return counters + (item.first_slot + nth) * row_tiles + row_tile;
}

/* Called by one thread of a CTA. Does not order other memory accesses. */
__device__ __forceinline__ void count(int *counter, const sched_item &item) {
    atomicInc(reinterpret_cast<unsigned *>(counter), 2 * item.items - 1);
}

/* Waits until every item of the sequence has been counted. A CTA counts an item after a fence
 * (fp8_merge.cuh) or with a release operation (bf16_merge.cuh), so the waiting thread can read all
 * that the CTA stored before. */
__device__ __forceinline__ void wait_for_items(const int *counter, const sched_item &item) {
    int seen;
    do {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    } while (seen < item.items);
}

} // namespace merging
