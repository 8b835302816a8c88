/* cut_sequence.cuh - what the merges within a launch (fp8_merge.cuh, bf16_merge.cuh) have in common: the
 * share of a cut sequence that one CTA merges, and the counters by which CTAs wait for each other.
 *
 * The launch is cooperative: all of its CTAs are resident, so that each may wait for the others. */
#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/cuda/sched/sched.h"

namespace merging {

constexpr float kLn2 = 0.69314718f; /* brings a logarithm of base 2 to base e */

/* The natural LSE of a merged row: @top is the largest base-2 LSE of its partial results, @sum what all of
 * them add up to in units of 2^top. */
__device__ __forceinline__ float natural_lse(float top, float sum) {
    return sum == 0 ? -INFINITY : (top + log2f(sum)) * kLn2;
}

/* Eight bf16 numbers of 16 bytes. */
__device__ __forceinline__ void unpack_bf16(uint4 part, float (&x)[8]) {
    const uint32_t word[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[2 * i] = __uint_as_float(word[i] << 16);
        x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
    }
}

/* Eight neighbouring numbers of a row, 16 bytes: what a thread merges at once. */
enum { kUnitNumbers = 8 };

/* A CTA's share of the units of one sequence's tile of rows, numbered through its rows: units begin to
 * end - 1. There are as many shares as items. The shares are equal but for one unit, of which the first
 * shares have more. */
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
 * A counter of a cut sequence first counts its stored items up to item.items, which merging waits for, then the
 * CTAs that have seen this, up to twice as many. There it starts again at zero, ready for the next launch. */

/* @nth: of a sequence's counters for a tile of rows; a cut sequence has at least two slots, and as many
 * counters as slots. */
__device__ __forceinline__ int *counter_of(int *counters, int row_tiles, const sched_item &item,
                                           int row_tile, int nth) {
    return counters + (item.first_slot + nth) * row_tiles + row_tile;
}

/* One thread of a CTA. Orders nothing. */
__device__ __forceinline__ void count(int *counter, const sched_item &item) {
    atomicInc(reinterpret_cast<unsigned *>(counter), 2 * item.items - 1);
}

/* Waits until all items of the sequence are counted. What was stored before they were counted can be read
 * afterwards. */
__device__ __forceinline__ void wait_for_items(const int *counter, const sched_item &item) {
    int seen;
    do {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    } while (seen < item.items);
}

} // namespace merging
