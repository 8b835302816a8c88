/* single_work.cuh - the eight warps that multiply, and all work between the products. */
#pragma once
#include "generator/local/cuda/project.cuh"
#include "generator/local/cuda/single_numbers.cuh"

namespace device {
namespace {

/* The team that appends the new row to the cache: all eight warps. */
struct worker;
struct worker_team {
    worker &w;

    __device__ int rank() const {
        return threadIdx.x;
    }
    __device__ static constexpr int size() {
        return kThreads;
    }
    __device__ float sum(float x) const;
    __device__ float largest(float x) const;
};

struct worker {
    const single_args &a;
    shared_memory &s;
    ring r;
    tile_schedule t;
    bf16 *row; /* the row to multiply, in shared memory */
    tile_sums sums;
    int totals;
    uint32_t tag;
    numbers norm, gate_row, next_norm; /* loaded before the previous kernel has ended */
    row_place place; /* place of the cache's new row; computed while the blocks wait for each
                        other */

    __device__ float2 total(float2 x) {
        float2 *scratch = s.team[totals++ % 2], all = {};
        x = {warp_sum(x.x), warp_sum(x.y)};
        if (threadIdx.x % 32 == 0)
            scratch[threadIdx.x / 32] = x;
        team_sync();
#pragma unroll
        for (int w = 0; w < kWarps; w++)
            all = {all.x + scratch[w].x, all.y + scratch[w].y};
        return all;
    }

    __device__ float largest(float x) {
        float2 *scratch = s.team[totals++ % 2];
        float most = 0;
        x = warp_max(x);
        if (threadIdx.x % 32 == 0)
            scratch[threadIdx.x / 32].x = x;
        team_sync();
#pragma unroll
        for (int w = 0; w < kWarps; w++)
            most = fmaxf(most, scratch[w].x);
        return most;
    }

    __device__ void take_row(const bf16 *from, int n) {
#pragma unroll 6
        for (int i = 8 * threadIdx.x; i < n; i += 8 * kThreads)
            *reinterpret_cast<uint4 *>(row + i) = __ldcg(reinterpret_cast<const uint4 *>(from + i));
        team_sync();
    }

    /* Waits for a row that other blocks publish as pairs of BF16, and copies it to `row`. Begins at
     * its end, which is published last. */
    __device__ void receive_row(const uint64_t *from, int n) {
        const int words = n / 2, step = 2 * kThreads;
        for (int end = words; end > 0; end -= kPairs * step) {
            tagged_pair pair[kPairs];
            const int first = end - 2 - 2 * static_cast<int>(threadIdx.x);
            receive(pair, from, words, tag, [&](int i) { return first - i * step; });
#pragma unroll
            for (int i = 0; i < kPairs; i++)
                if (first - i * step >= 0)
                    *reinterpret_cast<uint2 *>(row + 2 * (first - i * step)) = {
                        static_cast<uint32_t>(pair[i].a), static_cast<uint32_t>(pair[i].b)};
        }
        team_sync();
    }

    /* Publishes a tile's numbers in pairs of BF16. Called by the warp that has them. */
    __device__ void publish_row(uint64_t *to, int at, float y, int n) const {
        const int lane = threadIdx.x % 32;
        const __nv_bfloat162 two = __floats2bfloat162_rn(y, __shfl_down_sync(~0u, y, 1));
        if (lane < n && lane % 2 == 0)
            publish(to + (at + lane) / 2, *reinterpret_cast<const uint32_t *>(&two), tag);
    }

    __device__ float norm_of(float squares, float eps) const {
        return norm_scale(squares / static_cast<float>(a.hidden) + eps);
    }

    /* Stores x * scale as BF16 in `row`. */
    __device__ void store(const numbers &x, float scale) {
#pragma unroll
        for (int i = 0; i < kVectors; i++) {
            const int at = 4 * (static_cast<int>(threadIdx.x) + i * kThreads);
            const float4 &v = x.of[i];
            if (at < a.hidden) {
                __nv_bfloat162 *to = reinterpret_cast<__nv_bfloat162 *>(row + at);
                to[0] = __floats2bfloat162_rn(v.x * scale, v.y * scale);
                to[1] = __floats2bfloat162_rn(v.z * scale, v.w * scale);
            }
        }
        team_sync();
    }

    __device__ void attention() {
        const single_attention &n = a.attention;
        const int tiles = n.v / kRows, lane = threadIdx.x % 32;
        t.each(n.heads * tiles, [&](int tile) {
            float y;
            take_row(n.attended + tile / tiles * n.rank, n.rank);
            if (sums.add_up(r.multiply(row, n.rank), &y))
                publish_row(a.exchange.values, tile * kRows, y, kRows);
        });
        receive_row(a.exchange.values, n.heads * n.v);
        t.each(a.hidden / kRows, [&](int tile) {
            const int at = tile * kRows + lane % kRows;
            const float x = __ldcg(a.x + at);
            float y;
            if (sums.add_up(r.multiply(row, n.heads * n.v), &y) && lane < kRows)
                publish(a.exchange.middle + at, __float_as_uint(x + a.factor * y), tag);
        });
    }

    /* Computes the tiles of gate and up projections; those of the shared experts come first. */
    __device__ void gate(int slots) {
        const single_experts &e = a.experts;
        const int tiles = 2 * e.inner / kRows;
        t.each(slots * tiles, [&](int tile) {
            float y;
            if (!sums.add_up(r.multiply(row, a.hidden), &y))
                return;
            const float gated = silu(y) * __shfl_down_sync(~0u, y, kRows / 2);
            publish_row(a.exchange.gated, tile * (kRows / 2), gated, kRows / 2);
        });
    }

    /* Adds the outputs of all experts to 16 numbers of x. */
    __device__ void sum_up(int tile, int slots) {
        const int inner = a.experts.inner, lane = threadIdx.x % 32,
                  at = tile * kRows + lane % kRows;
        tagged_value x;
        x.load(a.exchange.middle + at);
        float2 all = {};
        float y;
        for (int slot = 0; slot < slots; slot++) {
            const float2 one = r.multiply(row + slot * inner, inner);
            all.x += s.weight[slot] * one.x;
            all.y += s.weight[slot] * one.y;
        }
        if (!sums.add_up(all, &y) || lane >= kRows)
            return;
        y = x.receive(a.exchange.middle + at, tag) + a.factor * y;
        publish(a.exchange.x + at, __float_as_uint(y), tag);
        a.x[at] = y;
    }

    __device__ void experts() {
        const single_experts &e = a.experts;
        const int slots = e.route.how.chosen + e.route.shared;
        numbers x = receive_numbers(a.exchange.middle, a.hidden, tag);
        const float squares = dot(x, x);
        x.times(norm);
        const float2 sums = total({squares, dot(x, gate_row)});
        const float scale = norm_of(sums.x, e.eps);
        if (threadIdx.x == 0 && static_cast<int>(blockIdx.x) < e.route.how.experts)
            publish(a.exchange.scores + blockIdx.x, __float_as_uint(sums.y * scale), tag);
        store(x, scale);
        gate(slots);
        find_place();
        receive_row(a.exchange.gated, slots * e.inner);
        ptx::mbarrier_wait(&s.weights_ready, 0);
        t.each(a.hidden / kRows, [&](int tile) { sum_up(tile, slots); });
    }

    __device__ void find_place() {
        if (a.next.in)
            place = row_place(a.next.project, 0, worker_team{*this});
    }

    __device__ void next() {
        const single_next &n = a.next;
        const int lane = threadIdx.x % 32;
        if (!a.experts.up)
            find_place();
        numbers x =
            a.experts.up ? receive_numbers(a.exchange.x, a.hidden, tag) : read(a.x, a.hidden);
        const float squares = dot(x, x);
        x.times(next_norm);
        store(x, norm_of(total({squares, 0}).x, n.eps) * n.factor);
        t.each(n.columns / kRows, [&](int tile) {
            float y;
            if (sums.add_up(r.multiply(row, a.hidden), &y) && lane < kRows)
                publish(a.exchange.in + tile * kRows + lane, __float_as_uint(y), tag);
        });
    }

    /* Writes the normalised row after the last layer to `packed`. */
    __device__ void end() const {
        for (int i = threadIdx.x; i < a.hidden; i += kThreads)
            a.next.packed[i] = row[i];
    }

    /* Waits for @n numbers of the projections, of one head or of the cache's row. They are also
     * stored as BF16 in `row`. */
    __device__ void receive_projections(int from, int n) {
        enum { kRounds = (kMostIn + 2 * kThreads - 1) / (2 * kThreads) };
        tagged_pair pair[kRounds];
        const int own = 2 * static_cast<int>(threadIdx.x), step = 2 * kThreads;
        team_sync();
        receive(pair, a.exchange.in + from, n, tag, [&](int i) { return own + i * step; });
#pragma unroll
        for (int i = 0; i < kRounds; i++) {
            const float2 two = {number_of(pair[i].a), number_of(pair[i].b)};
            if (own + i * step >= n)
                break;
            *reinterpret_cast<float2 *>(s.in + own + i * step) = two;
            *reinterpret_cast<__nv_bfloat162 *>(row + own + i * step) =
                __floats2bfloat162_rn(two.x, two.y);
        }
        team_sync();
    }

    /* Computes a block's part of one head's query. The first part of a head includes the rotary
     * numbers. */
    __device__ void absorb(const head_share &h) {
        const project_args &p = a.next.project;
        const int lane = threadIdx.x % 32, own = threadIdx.x, width = p.nope + p.rope;
        float most = 0;
        receive_projections(h.head * width, width);
        const ring::flat_row q(row, p.nope);
        for (int i = 0; i < h.rows; i += kFlatRows) {
            const float y = r.multiply_flat(q, p.nope);
            if (lane % 4 == 0)
                s.absorbed[i + own / 32 * 8 + lane / 4] = y;
            most = fmaxf(most, fabsf(rounded(y)));
        }
        const query_to query(p, a.next.absorb, 0, h.head, largest(most));
        for (int d = own; d < h.rows; d += kThreads)
            query.content(h.first + d, s.absorbed[d]);
        if (h.first == 0 && own < p.rope)
            query.turned(own, turned(p, s.in + p.nope, place.angle, own));
    }

    __device__ void append() {
        const project_args &p = a.next.project;
        receive_projections(a.next.columns - p.rank - p.rope, p.rank + p.rope);
        append_row(p, s.in, place, worker_team{*this});
    }

    __device__ void project() {
        const project_args &p = a.next.project;
        t.each(head_share::count(p), [&](int nth) { absorb(head_share(p, nth)); });
        t.each(1, [&](int) { append(); });
    }

    __device__ void run() {
        const single_experts &e = a.experts;
        const int own = blockIdx.x;
        norm = hold(e.norm, e.up ? a.hidden : 0);
        gate_row = hold(e.route.gate + static_cast<int64_t>(own) * a.hidden,
                        own < e.route.how.experts ? a.hidden : 0);
        next_norm = hold(a.next.norm, a.hidden);
        wait_previous();
        tag = tag_of(a);
        if (a.attention.uv)
            attention();
        if (a.experts.up)
            experts();
        next();
        if (a.next.in)
            project();
        else if (blockIdx.x == 0)
            end();
    }
};

__device__ __forceinline__ float worker_team::sum(float x) const {
    return w.total({x, 0}).x;
}
__device__ __forceinline__ float worker_team::largest(float x) const {
    return w.largest(x);
}

} // namespace
} // namespace device
