/* few_rows.cuh - merges a split sequence of few rows: weights from the LSE, then weighted sums.
 *
 * Used where a CTA has at most 32 rows (fp8_few_merge.cuh), for any number of splits. All CTAs of
 * the launch are resident (a cooperative launch), so each may wait for the others. The sequence is
 * merged by the parts that computed its items, after they have stored their own partial results, or
 * by parts that have no items. Each of them takes one share of consecutive units. The size of a
 * share is a power of two; the last shares may be smaller or empty.
 *
 * A partial result is divided by its own sum of P, so out = sum_k w_k out_k / sum_k w_k with w_k =
 * 2^(lse_k - most). One group of threads makes the weights from the LSE, which are stored before
 * the partial outputs. The other threads load the outputs and add them up. Polling for a sentinel
 * (few_partials.cuh) takes the place of the counters of cut_sequence.cuh. The order of additions
 * depends on the numbers of rows, slots and shares only, so reruns are bit-identical.
 *
 * This code is not in the instruction cache when it begins, and a jump to a line that is not there
 * may take as long as a read of memory. Hence it has predicated loads in place of jumps, and few
 * instructions.
 *
 * A kernel supplies the Format, the meaning of a lane's 16 bytes of a unit:
 *   NUMBERS                      how many numbers they are
 *   UNITS                        most units of a slot
 *   ROW_UNITS                    units of a row; they are consecutive
 *   unpack(uint4, x)             converts the 16 bytes to FP32
 *   store(out, unit, lane, x)    stores merged numbers; out: row 0 */
#pragma once
#include <cuda_bf16.h>

#include "kernels/cuda/merge/cut_sequence.cuh"
#include "kernels/cuda/merge/few_partials.cuh"
#include "kernels/cuda/ptx/barrier.cuh"
#include "kernels/cuda/ptx/warp.cuh"

namespace merging {

enum {
    kMergeThreads = 256, /* threads that add up partial outputs */
    kWeightThreads = 128,
    kLogOctets = 5,
    kOctets = 1 << kLogOctets,
    kOctetsWarp = 32 / kLanes,
    kLogMostUnits = 8, /* log2 of the units of 32 rows */
    kLoadsAtOnce = 4,    /* 16-byte pieces that a lane loads at once */
    kLaneSlots = 5, /* most slots whose LSE one lane reads. 32 lanes read up to 160 slots. A
                       sequence has at most one slot per SM, and no Hopper GPU has more than 160
                       SMs */
};
static_assert(kOctets * kLanes == kMergeThreads, "every merging thread belongs to an octet");

/* The smallest log with x << log >= y, but at most @most. Unrolled, because the jumps of a loop
 * take longer. */
__device__ __forceinline__ int log_above(int x, int y, int most) {
    int log = 0;
#pragma unroll
    for (int i = 0; i < most; i++)
        log += x << i < y;
    return log;
}

/* log2 of the units in a share, if `of` parts share `units` units. */
__device__ __forceinline__ int share_width(int of, int units) {
    return log_above(of, units, kLogMostUnits);
}

/* Distance, in units, between the copies of an LSE that are read. In each share, the copy at the
 * first unit of each row is read. */
template <typename Format>
__device__ __forceinline__ int copies_apart(int of, int units) {
    return min(1 << share_width(of, units), static_cast<int>(Format::ROW_UNITS));
}

/* A share of a split sequence: consecutive units, as many as a power of two (fewer at the end), so
 * that no division is needed. */
template <typename Format>
struct job {
    partials<Format::UNITS> from;
    int first, slots;   /* first slot and number of slots of the sequence */
    int width;          /* log2 of the units of a share */
    int begin, end;     /* the units begin .. end - 1 */
    __nv_bfloat16 *out; /* output of row 0 */
    float *lse;         /* LSE of row 0; may be null */

    /* Makes this share number `nth` of `of` shares. */
    __device__ __forceinline__ void share(int nth, int of, int units) {
        width = share_width(of, units);
        begin = nth << width;
        end = min(begin + (1 << width), units);
    }
    __device__ int first_row() const {
        return begin / Format::ROW_UNITS;
    }
    __device__ int row_of(int unit) const { /* counted from first_row() */
        return unit / Format::ROW_UNITS - first_row();
    }
    __device__ int rows() const { /* number of rows that have a unit in the share */
        return begin < end ? row_of(end - 1) + 1 : 0;
    }
};

/* The weights of a share's slots, and the factor for each row that makes them add up to one. In
 * shared memory. */
struct weights {
    float *of_slot; /* [rows][slots] */
    float *inverse; /* [rows] */
};

/* Reduces over `lanes` adjacent lanes, a power of two. */
template <typename Op>
__device__ __forceinline__ float reduce_lanes(float x, int lanes, Op op) {
#pragma unroll
    for (int m = 1; m < 32; m *= 2) {
        const float both = op(x, __shfl_xor_sync(~0u, x, m));
        x = m < lanes ? both : x;
    }
    return x;
}

/* The log-sum-exp values that one thread reads to make weights. Several lanes of a warp share a
 * row: lane i of n reads the slots i, i + n, i + 2n, ... No other thread reads these copies of the
 * LSE. */
template <typename Format>
struct weight_lane {
    const job<Format> &j;
    int log, lane, rows, rows_at_once; /* log: log2 of the lanes per row */

    __device__ __forceinline__ weight_lane(const job<Format> &j, int thread)
        : j(j), log(log_above(1, j.slots, 5)), lane(thread & ((1 << log) - 1)), rows(j.rows()),
          rows_at_once(kWeightThreads >> log) {
    }
    __device__ __forceinline__ int count(int row) const {
        return row < rows ? (j.slots - lane + (1 << log) - 1) >> log : 0;
    }
    __device__ __forceinline__ int row_unit(int row) const {
        return (j.first_row() + row) * Format::ROW_UNITS;
    }
    /* The lane's first LSE of a row. The next ones are step() words apart. */
    __device__ __forceinline__ uint32_t *lse(int row) const {
        return j.from.lse(j.first + lane, max(row_unit(row), j.begin));
    }
    __device__ __forceinline__ int step() const {
        return j.from.LSE_STEP << log;
    }
};

/* Loads `count` LSE, `step` words apart, and waits until all of them are there. Elements past
 * `count` become minus infinity. */
__device__ __forceinline__ void load_lse(const uint32_t *from, int step, int count,
                                         float (&x)[kLaneSlots]) {
    bool absent[kLaneSlots], any;
#pragma unroll
    for (int n = 0; n < kLaneSlots; n++) {
        x[n] = -INFINITY;
        absent[n] = n < count;
    }
    do {
        any = false;
#pragma unroll
        for (int n = 0; n < kLaneSlots; n++)
            load_relaxed_if(absent[n], x[n], from + n * step);
#pragma unroll
        for (int n = 0; n < kLaneSlots; n++) {
            absent[n] = __float_as_uint(x[n]) == kAbsent;
            any |= absent[n];
        }
    } while (any);
    __syncwarp();
}

/* Computes the weights of the slots for each row of the share, and stores the natural LSE of the
 * rows that begin in the share. Called by the kWeightThreads threads that make weights. */
template <typename Format>
__device__ __forceinline__ void make_weights(const job<Format> &j, const weights &w, int thread) {
    const weight_lane<Format> me(j, thread);
#pragma unroll 1
    for (int row = thread >> me.log, past = 0; past < me.rows;
         row += me.rows_at_once, past += me.rows_at_once) {
        const int count = me.count(row), row_unit = me.row_unit(row);
        float x[kLaneSlots];
        load_lse(me.lse(row), me.step(), count, x);
        float top = x[0], sum = 0;
#pragma unroll
        for (int n = 1; n < kLaneSlots; n++)
            top = fmaxf(top, x[n]);
        top = reduce_lanes(top, 1 << me.log, [](float a, float b) { return fmaxf(a, b); });
        float *const to = w.of_slot + row * j.slots + me.lane;
#pragma unroll
        for (int n = 0; n < kLaneSlots; n++) {
            x[n] = x[n] == -INFINITY ? 0 : ptx::exp2_approx(x[n] - top);
            sum += x[n];
            if (n < count)
                to[n << me.log] = x[n];
        }
        sum = reduce_lanes(sum, 1 << me.log, [](float a, float b) { return a + b; });
        if (me.lane > 0 || count == 0)
            continue;
        w.inverse[row] = sum == 0 ? 0 : ptx::rcp_approx(sum);
        if (j.lse && row_unit >= j.begin)
            j.lse[j.first_row() + row] = merging::natural_lse(top, sum);
    }
}

/* Resets the LSE that this thread has read, for the next launch. Called after the weights have been
 * published, since it is not urgent. */
template <typename Format>
__device__ __forceinline__ void clear_lse(const job<Format> &j, int thread) {
    const weight_lane<Format> me(j, thread);
#pragma unroll 1
    for (int row = thread >> me.log; row < me.rows; row += me.rows_at_once)
#pragma unroll
        for (int n = 0; n < kLaneSlots; n++)
            store_relaxed_if(n < me.count(row), me.lse(row) + n * me.step(), kAbsent);
}

/* One batch of loads of a lane: four slots of one unit or, with at most two slots, two slots of
 * each of two units. */
template <typename Format>
struct unit_loads {
    bool pairs;
    uint4 part[kLoadsAtOnce];

    __device__ int slot(int n) const {
        return pairs ? n & 1 : n;
    }
    __device__ int unit(int n) const {
        return pairs && n > 1 ? kOctets : 0;
    }
    __device__ bool real(const job<Format> &j, int first, int k, int step, int n) const {
        return k + slot(n) * step < j.slots && first + unit(n) < j.end;
    }
    /* Loads the slots k, k + step, ... and waits until all of them are there. Resets each to
     * kAbsent as soon as it has arrived. */
    __device__ __forceinline__ void load_and_clear(const job<Format> &j, int first, int k, int step,
                                                   int lane) {
        const uint4 none = make_uint4(kAbsent, kAbsent, kAbsent, kAbsent);
        uint4 *const from = j.from.out(j.first + k, first, lane);
        int at[kLoadsAtOnce];
        bool absent[kLoadsAtOnce], any;
#pragma unroll
        for (int n = 0; n < kLoadsAtOnce; n++) {
            at[n] = slot(n) * step * j.from.OUT_STEP + unit(n) * kLanes;
            absent[n] = real(j, first, k, step, n);
            part[n] = {};
        }
        do {
            any = false;
#pragma unroll
            for (int n = 0; n < kLoadsAtOnce; n++)
                load_relaxed_if(absent[n], part[n], from + at[n]);
#pragma unroll
            for (int n = 0; n < kLoadsAtOnce; n++) {
                const bool still = any_absent(part[n]);
                store_relaxed_if(absent[n] && !still, from + at[n], none);
                absent[n] = still;
                any |= still;
            }
        } while (any);
    }
    /* Multiplies the pieces by their weights, and adds the first two to x[0] and the others to
     * x[1]. */
    __device__ __forceinline__ void add_to(const job<Format> &j, const weights &w, int first, int k,
                                           int step, float (&x)[2][Format::NUMBERS]) const {
#pragma unroll
        for (int n = 0; n < kLoadsAtOnce; n++) {
            const float *from = w.of_slot + j.row_of(first + unit(n)) * j.slots + k;
            const float by = real(j, first, k, step, n) ? from[slot(n) * step] : 0;
            float more[Format::NUMBERS];
            Format::unpack(part[n], more);
#pragma unroll
            for (int i = 0; i < Format::NUMBERS; i++)
                x[n / 2][i] = fmaf(by, more[i], x[n / 2][i]);
        }
    }
};

/* The sums of one lane, in shared memory. */
template <int N>
struct alignas(16) lane_sums {
    float x[N];

    lane_sums() = default;
    __device__ explicit lane_sums(const float (&from)[N]) {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = from[i];
    }
};

/* Adds up the sums of the octets that share a unit; the first of them gets the total. @groups:
 * octets per unit. @scratch: [64] for this merge alone. */
template <int N>
__device__ __forceinline__ void add_groups(float (&x)[N], int groups, int barrier,
                                           lane_sums<N> *scratch, int thread) {
    enum { ALL = kMergeThreads / 32 * kLanes, OCTETS = kOctetsWarp };
    const int warp = thread / 32, lane = thread % 32, mine = kLanes * warp + lane;
    for (;;) {
        __syncwarp();
#pragma unroll 1
        for (int step = 1; step < min(groups, static_cast<int>(OCTETS)); step *= 2)
#pragma unroll
            for (int i = 0; i < N; i++)
                x[i] += __shfl_xor_sync(~0u, x[i], step * kLanes);
        if (groups <= OCTETS)
            return;
        if (lane < kLanes)
            scratch[mine] = lane_sums<N>(x);
        ptx::named_sync(barrier, kMergeThreads);
        groups /= OCTETS; /* from here on, `groups` counts the warps that share a unit. Octet i of
                             warp w takes the sums of warp w + i and, with more than four such
                             warps, those of warp w + i + 4 */
        const lane_sums<N> one = scratch[mine & (ALL - 1)];
        const lane_sums<N> other = scratch[(mine + 32) & (ALL - 1)];
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = groups > OCTETS ? one.x[i] + other.x[i] : one.x[i];
        groups = min(groups, static_cast<int>(OCTETS));
    }
}

template <typename Format>
__device__ __forceinline__ void store_unit(const job<Format> &j, const weights &w, int unit,
                                           int lane, const float (&x)[Format::NUMBERS]) {
    const float inverse = w.inverse[j.row_of(unit)];
    float y[Format::NUMBERS];
#pragma unroll
    for (int i = 0; i < Format::NUMBERS; i++)
        y[i] = x[i] * inverse;
    Format::store(j.out, unit, lane, y);
}

/* Called by all kMergeThreads threads. Either several octets share a unit, and of n octets each
 * takes every n-th slot, or one octet takes several units. @known: completes when the weights are
 * there. */
template <typename Format>
__device__ __forceinline__ void merge(const job<Format> &j, const weights &w, uint64_t *known,
                                      uint32_t parity, int barrier,
                                      lane_sums<Format::NUMBERS> *scratch, int thread) {
    const int most = max(kLogOctets - j.width, 0);
    const int log = min(most, log_above(kLoadsAtOnce, j.slots, kLogOctets)), groups = 1 << log;
    const int lane = thread % kLanes, octet = thread / kLanes, group = octet & (groups - 1);
    unit_loads<Format> now = {j.slots <= 2};
    int unit = j.begin + (octet >> log);
    do {
        float x[2][Format::NUMBERS] = {};
#pragma unroll 1
        for (int k = group; k < j.slots; k += kLoadsAtOnce * groups) {
            now.load_and_clear(j, unit, k, groups, lane);
            ptx::mbarrier_wait(known, parity);
            now.add_to(j, w, unit, k, groups, x);
        }
        if (!now.pairs)
#pragma unroll
            for (int i = 0; i < Format::NUMBERS; i++)
                x[0][i] += x[1][i];
        if (groups > 1)
            add_groups(x[0], groups, barrier, scratch, thread);
#pragma unroll 1
        for (int i = 0; i <= now.pairs; i++, unit += kOctets) {
            if (group == 0 && unit < j.end)
                store_unit(j, w, unit, lane, x[0]);
#pragma unroll
            for (int n = 0; n < Format::NUMBERS; n++)
                x[0][n] = x[1][n];
        }
    } while (groups == 1 && unit < j.end);
}

} // namespace merging
