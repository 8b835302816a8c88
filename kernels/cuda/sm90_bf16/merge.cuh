/* merge.cuh - a cut sequence: who computed its partial results waits for the others' and merges an
 * equal share of its rows and columns.
 *
 * All CTAs are resident (a cooperative launch), so each may wait for the others; it does so when its
 * own work is done. A counter a sequence and tile of rows counts arrivals, then departures, and is
 * left at zero.
 *
 * A partial result is divided by its own sum; out = sum_k w_k out_k, w_k = 2^(lse_k - most) over their
 * sum. The order of additions follows from the number of slots: reruns are bit-identical. */
#pragma once
#include "kernels/cuda/ptx/barrier.cuh"
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/sm90_bf16/traits.cuh"

namespace sm90_bf16 {

enum {
    kMergers = 256,       /* threads: both groups */
    kUnits = CONTENT / 4, /* of a row: four columns */
};

/* What a merge keeps on chip, where the pages were. */
struct merge_memory {
    float4 sums[kMergers];
    float2 weights_of[kMergers];
    float weights[8192]; /* [row][slot]: of rows that a share touches, at most 66 + 2 x slots */
};
static_assert(sizeof(merge_memory) <= sizeof(shared::kv), "pages give their room");

/* A share of a sequence's units, numbered through the rows of a tile. */
struct share {
    int begin, end;

    __device__ share(const params &p, const sched_item &item, int first_row) {
        const int all = min(p.rows - first_row, static_cast<int>(ROWS)) * kUnits;
        const int nth = item.slot - item.first_slot;
        begin = all * nth / item.items;
        end = all * (nth + 1) / item.items;
    }
    __device__ int first_row() const {
        return begin / kUnits;
    }
    __device__ int rows() const {
        return (end + kUnits - 1) / kUnits - first_row();
    }
};

/* Some lanes a row, as many as it has slots if a warp has them: the LSE become weights that add up to
 * one. */
__device__ __forceinline__ void weigh(const params &p, const sched_item &item, merge_memory &m,
                                      int first_row, const share &mine, int thread) {
    int lanes = 2;
    while (lanes < item.items && lanes < 32)
        lanes *= 2;
    const int at_once = 32 / lanes; /* rows of a warp, all of whose lanes take part in sums */
    const int rows = (mine.rows() + at_once - 1) / at_once * at_once;
#pragma unroll 1
    for (int i = thread / lanes; i < rows; i += kMergers / lanes) {
        const bool real = i < mine.rows();
        const int row = first_row + mine.first_row() + (real ? i : 0);
        const float *from = p.partial_lse + static_cast<size_t>(item.first_slot) * p.rows + row;
        float *weight = m.weights + (real ? i : 0) * item.items, most = -INFINITY, sum = 0;
        const int first = real ? thread % lanes : item.items;
        for (int k = first; k < item.items; k += lanes) {
            weight[k] = __ldcg(from + static_cast<size_t>(k) * p.rows);
            most = fmaxf(most, weight[k]);
        }
        for (int step = lanes / 2; step > 0; step /= 2)
            most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
        for (int k = first; k < item.items; k += lanes)
            sum += most == -INFINITY ? 0 : exp2f(weight[k] - most);
        for (int step = lanes / 2; step > 0; step /= 2)
            sum += __shfl_xor_sync(~0u, sum, step);
        const float lse = sum == 0 ? -INFINITY : most + log2f(sum);
        for (int k = first; k < item.items; k += lanes)
            weight[k] = sum == 0 ? 0 : exp2f(weight[k] - lse);
        if (p.lse && first == 0)
            p.lse[static_cast<size_t>(item.seq) * p.rows + row] = lse * 0.69314718f;
    }
}

__device__ __forceinline__ void add(float4 &x, float w, float4 part) {
    x = {fmaf(w, part.x, x.x), fmaf(w, part.y, x.y), fmaf(w, part.z, x.z), fmaf(w, part.w, x.w)};
}

__device__ __forceinline__ void store_unit(const params &p, const sched_item &item, int first_row,
                                           int unit, float4 x) {
    auto *row = p.out + (static_cast<size_t>(item.seq) * p.rows + first_row) * CONTENT;
    reinterpret_cast<uint2 *>(row)[unit] =
        make_uint2(ptx::pack_bf16x2(x.x, x.y), ptx::pack_bf16x2(x.z, x.w));
}

/* Where a share's partial results and weights lie. */
struct parts_of_share {
    const float4 *first; /* slot 0, unit 0 of the tile */
    size_t stride;       /* from slot to slot */
    const float *weights;
    int row, items;

    __device__ parts_of_share(const params &p, const sched_item &item, const merge_memory &m,
                              int first_row, const share &mine)
        : first(reinterpret_cast<const float4 *>(p.partial_out) +
                (static_cast<size_t>(item.first_slot) * p.rows + first_row) * kUnits),
          stride(static_cast<size_t>(p.rows) * kUnits), weights(m.weights), row(mine.first_row()),
          items(item.items) {
    }
    __device__ float4 part(int unit, int k) const {
        return __ldcg(first + unit + k * stride);
    }
    __device__ float weight(int unit, int k) const {
        return weights[(unit / kUnits - row) * items + k];
    }
};

/* `kAtOnce` units a thread at once, and some of their slots: for loads in flight. */
template <int kAtOnce>
__device__ __forceinline__ void merge_units(const params &p, const sched_item &item,
                                            const parts_of_share &from, int first_row,
                                            const share &mine, int thread) {
    for (int base = mine.begin + thread; base < mine.end; base += kMergers * kAtOnce) {
        float4 x[kAtOnce] = {};
#pragma unroll 8 / kAtOnce
        for (int k = 0; k < item.items; k++) {
            float4 part[kAtOnce];
#pragma unroll
            for (int i = 0; i < kAtOnce; i++)
                if (base + kMergers * i < mine.end)
                    part[i] = from.part(base + kMergers * i, k);
#pragma unroll
            for (int i = 0; i < kAtOnce; i++)
                if (base + kMergers * i < mine.end)
                    add(x[i], from.weight(base + kMergers * i, k), part[i]);
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; i++)
            if (base + kMergers * i < mine.end)
                store_unit(p, item, first_row, base + kMergers * i, x[i]);
    }
}

/* Some slots of a unit, weighed by what is known of them so far: their largest LSE and the sum of their
 * weights in its unit. */
struct weighed {
    float4 x;
    float most, sum;

    __device__ void raise(float top) {
        const float factor = most == -INFINITY ? 0 : exp2f(most - top);
        x = {x.x * factor, x.y * factor, x.z * factor, x.w * factor};
        sum *= factor;
        most = top;
    }
};

/* Few units of many slots: several threads a unit, which take every so manieth slot. LSE and partial
 * results are on their way together. */
__device__ __forceinline__ void merge_few(const params &p, const sched_item &item, merge_memory &m,
                                          int first_row, const share &mine, int groups,
                                          int thread) {
    enum { kAtOnce = 8 };
    const int across = kMergers / groups, group = thread / across;
    const int unit = mine.begin + thread % across;
    const size_t first = static_cast<size_t>(item.first_slot) * p.rows + first_row;
    const float *lse = p.partial_lse + first + unit / kUnits;
    const float4 *part = reinterpret_cast<const float4 *>(p.partial_out) + first * kUnits + unit;
    weighed all = {{0, 0, 0, 0}, -INFINITY, 0};
    for (int k = unit < mine.end ? group : item.items; k < item.items; k += kAtOnce * groups) {
        float l[kAtOnce], top = all.most;
        float4 x[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; i++) {
            const int slot = min(k + i * groups, item.items - 1);
            l[i] = __ldcg(lse + static_cast<size_t>(slot) * p.rows);
            x[i] = __ldcg(part + static_cast<size_t>(slot) * p.rows * kUnits);
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; i++) {
            l[i] = k + i * groups < item.items ? l[i] : -INFINITY;
            top = fmaxf(top, l[i]);
        }
        if (top == -INFINITY)
            continue;
        all.raise(top);
#pragma unroll
        for (int i = 0; i < kAtOnce; i++) {
            const float w = exp2f(l[i] - top);
            add(all.x, w, x[i]);
            all.sum += w;
        }
    }
    m.sums[thread] = all.x;
    m.weights_of[thread] = {all.most, all.sum};
    ptx::named_sync(kMerge, kMergers);
    if (group != 0 || unit >= mine.end)
        return;
    float top = all.most;
    for (int g = 1; g < groups; g++)
        top = fmaxf(top, m.weights_of[g * across + thread].x);
    if (top > -INFINITY)
        all.raise(top);
    for (int g = 1; g < groups && top > -INFINITY; g++) {
        const float2 other = m.weights_of[g * across + thread];
        const float w = exp2f(other.x - top);
        add(all.x, w, m.sums[g * across + thread]);
        all.sum += w * other.y;
    }
    const float inverse = all.sum == 0 ? 0 : 1 / all.sum;
    store_unit(p, item, first_row, unit,
               {all.x.x * inverse, all.x.y * inverse, all.x.z * inverse, all.x.w * inverse});
    if (p.lse && unit % kUnits == 0)
        p.lse[static_cast<size_t>(item.seq) * p.rows + first_row + unit / kUnits] =
            all.sum == 0 ? -INFINITY : (top + log2f(all.sum)) * 0.69314718f;
}

__device__ __forceinline__ int *counter_of(const params &p, const sched_item &item, int row_tile) {
    return p.counters + item.first_slot * p.row_tiles + row_tile;
}

/* One thread, after all have stored. */
__device__ __forceinline__ void announce(const params &p, const sched_item &item, int row_tile) {
    __threadfence();
    atomicAdd(counter_of(p, item, row_tile), 1);
}

/* One thread. */
__device__ __forceinline__ void await(const params &p, const sched_item &item, int row_tile) {
    const int *counter = counter_of(p, item, row_tile);
    int seen;
    do {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    } while (seen < item.items);
}

/* One thread, after it has waited. The last to leave clears the counter for the next launch. */
__device__ __forceinline__ void depart(const params &p, const sched_item &item, int row_tile) {
    int *counter = counter_of(p, item, row_tile);
    if (atomicAdd(counter, 1) == 2 * item.items - 1)
        atomicExch(counter, 0);
}

/* This CTA's share of one sequence. */
__device__ __forceinline__ void merge(shared &s, const params &p, const sched_item &item,
                                      int first_row, int thread) {
    merge_memory &m = *reinterpret_cast<merge_memory *>(s.kv);
    const share mine(p, item, first_row);
    const int width = mine.end - mine.begin;
    int groups = 1;
    while (2 * groups * width <= kMergers && groups < item.items)
        groups *= 2;
    if (groups > 1) {
        merge_few(p, item, m, first_row, mine, groups, thread);
        return;
    }
    weigh(p, item, m, first_row, mine, thread);
    ptx::named_sync(kMerge, kMergers);
    const parts_of_share from(p, item, m, first_row, mine);
    if (width <= kMergers)
        merge_units<1>(p, item, from, first_row, mine, thread);
    else if (width <= 4 * kMergers)
        merge_units<4>(p, item, from, first_row, mine, thread);
    else
        merge_units<8>(p, item, from, first_row, mine, thread);
}

/* The cut sequences of a part. */
__device__ __forceinline__ void merge_part(shared &s, const params &p, const sched_part &part,
                                           int row_tile, int thread) {
    for (int k = part.first; k < part.last; k++) {
        const sched_item item = item_at(p, part, k);
        if (item.slot < 0)
            continue;
        if (thread == 0)
            await(p, item, row_tile);
        ptx::named_sync(kMerge, kMergers); /* also: the merge before is done with its memory */
        merge(s, p, item, row_tile * ROWS, thread);
        if (thread == 0)
            depart(p, item, row_tile);
    }
}

} // namespace sm90_bf16
