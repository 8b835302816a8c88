/* single_feed.cuh - the warp that fills the ring, and the warp that chooses the experts.
 *
 * The feeding warp loads the matrices of a launch, except the router's, in the order of its
 * products, as far ahead as the ring permits. Before the weights of the chosen experts it waits for
 * the choice. Every block makes the choice for itself, while the shared experts are multiplied. */
#pragma once
#include "generator/local/cuda/choose.cuh"
#include "generator/local/cuda/single_memory.cuh"

namespace device {
namespace {

struct chooser {
    const single_args &a;
    shared_memory &s;

    __device__ void receive_scores(float (&x)[2]) const {
        tagged_pair pair[1];
        receive(pair, a.exchange.scores, a.experts.route.how.experts, tag_of(a),
                [](int) { return static_cast<int>(threadIdx.x) % 32 * 2; });
        x[0] = number_of(pair[0].a);
        x[1] = number_of(pair[0].b);
    }

    /* Lists the experts to compute: first the shared ones, then the others in the order of their
     * choice. */
    __device__ void write(const int (&chosen_at)[2]) const {
        const route_args &to = a.experts.route;
        const int lane = threadIdx.x % 32;
        if (lane < to.shared)
            s.expert[lane] = to.routed + lane;
        for (int i = 0; i < 2; i++)
            if (chosen_at[i] >= 0)
                s.expert[to.shared + chosen_at[i]] = 2 * lane + i;
        __syncwarp();
    }

    /* Writes the weights of the listed experts. @x: scores. */
    __device__ void write_weights(const int (&chosen_at)[2], const float (&x)[2]) const {
        const route_args &to = a.experts.route;
        const int lane = threadIdx.x % 32;
        const float own = (chosen_at[0] >= 0 ? x[0] : 0) + (chosen_at[1] >= 0 ? x[1] : 0),
                    sum = to.how.normalize ? warp_sum(own) + 1e-20f : 1;
        if (lane < to.shared)
            s.weight[lane] = 1;
        for (int i = 0; i < 2; i++)
            if (chosen_at[i] >= 0)
                s.weight[to.shared + chosen_at[i]] = x[i] / sum * to.how.factor;
        __syncwarp();
    }

    /* Writes the chosen experts to memory in ascending order. */
    __device__ void list(const int (&chosen_at)[2]) const {
        const int lane = threadIdx.x % 32;
        const uint32_t low = __ballot_sync(~0u, chosen_at[0] >= 0),
                       high = __ballot_sync(~0u, chosen_at[1] >= 0), before = (1u << lane) - 1;
        int at = __popc(low & before) + __popc(high & before);
        for (int i = 0; i < 2; i++)
            if (chosen_at[i] >= 0)
                a.experts.route.chosen[at++] = 2 * lane + i;
    }

    /* Chooses twice. The first pass works on zeros and its result is overwritten. It only brings
     * the code into the instruction cache, because other warps wait for the second pass. */
    __device__ void run() const {
        const route_args &to = a.experts.route;
        const bool early = orders_logits(to.how, to.bias);
        float x[2] = {};
        int chosen_at[2];
#pragma unroll 1
        for (int pass = 0; pass < 2; pass++) {
            if (pass) {
                wait_previous();
                receive_scores(x);
            }
            if (!early)
                score_quick(to.how, x);
            choose_quick(to.how, to.bias, x, chosen_at);
            write(chosen_at);
        }
        if (threadIdx.x % 32 == 0)
            ptx::mbarrier_arrive(&s.choice_made);
        if (early)
            score_quick(to.how, x);
        write_weights(chosen_at, x);
        if (threadIdx.x % 32 == 0)
            ptx::mbarrier_arrive(&s.weights_ready);
        if (blockIdx.x == 0)
            list(chosen_at);
    }
};

struct feeder {
    const single_args &a;
    shared_memory &s;
    ring r;
    tile_schedule t;

    __device__ void rows(int tiles, const bf16 *w, int k) {
        t.each(tiles, [&](int tile) { r.feed(w + static_cast<int64_t>(tile) * kRows * k, k); });
    }

    __device__ void attention() {
        const single_attention &n = a.attention;
        const int tiles = n.v / kRows;
        t.each(n.heads * tiles, [&](int tile) {
            r.feed(n.uv + tile / tiles * n.uv_head + tile % tiles * kRows * n.rank, n.rank);
        });
        rows(a.hidden / kRows, n.o, n.heads * n.v);
    }

    __device__ void experts() {
        const single_experts &e = a.experts;
        const int routed = e.route.routed, shared = e.route.shared, chosen = e.route.how.chosen,
                  tiles = 2 * e.inner / kRows;
        const int64_t one = static_cast<int64_t>(e.inner) * a.hidden;
        rows(shared * tiles, e.up + routed * 2 * one, a.hidden);
        ptx::mbarrier_wait(&s.choice_made, 0);
        t.each(chosen * tiles, [&](int tile) {
            r.feed(e.up + s.expert[shared + tile / tiles] * 2 * one +
                       static_cast<int64_t>(tile % tiles) * kRows * a.hidden,
                   a.hidden);
        });
        t.each(a.hidden / kRows, [&](int tile) {
            for (int slot = 0; slot < chosen + shared; slot++)
                r.feed(e.down + s.expert[slot] * one + static_cast<int64_t>(tile) * kRows * e.inner,
                       e.inner);
        });
    }

    __device__ void project() {
        const project_args &p = a.next.project;
        t.each(head_share::count(p), [&](int nth) {
            const head_share h(p, nth);
            const int64_t row = static_cast<int64_t>(h.head) * p.rank + h.first;
            for (int i = 0; i < h.rows; i += kFlatRows)
                r.feed_flat(a.next.absorb.uk + (row + i) * p.nope, p.nope);
        });
    }

    __device__ void run() {
        if (a.attention.uv)
            attention();
        if (a.experts.up)
            experts();
        if (a.next.in)
            rows(a.next.columns / kRows, a.next.in, a.hidden);
        project();
    }
};

} // namespace
} // namespace device
