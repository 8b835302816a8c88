/* choose.cuh - chooses the experts of a row from its scores, one warp per row, by the rules of
 * model/route.h. */
#pragma once
#include <climits>

#include "generator/local/cuda/rows.h"

namespace device {
namespace {

/* Maps floats to integers of the same order: -inf .. inf, then NaN. Never 0. */
__device__ __forceinline__ uint32_t order_of(float x) {
    const uint32_t bits = __float_as_uint(x + 0.0f); /* turns -0 into 0 */
    return isnan(x) ? ~0u : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* The index of the largest number that is not taken; of equal ones the first. */
__device__ __forceinline__ int best_left(const float *x, const uint8_t *taken, int n) {
    uint32_t most = 0;
    int at = INT_MAX;
    for (int i = threadIdx.x % 32; i < n; i += 32) {
        const uint32_t own = taken[i] ? 0 : order_of(x[i]);
        if (own > most) {
            most = own;
            at = i;
        }
    }
    const uint32_t all = __reduce_max_sync(~0u, most);
    return __reduce_min_sync(~0u, most == all ? at : INT_MAX);
}

/* An infinite logit gives NaN, as it does in route.c: 0 times infinity is NaN. */
__device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x)) + 0.0f * x;
}

__device__ void to_scores(const router &r, float *x) {
    const int lane = threadIdx.x % 32;
    float most = -INFINITY, sum = 0;
    for (int i = lane; i < r.experts; i += 32) {
        if (r.sigmoid)
            x[i] = sigmoid(x[i]);
        most = fmaxf(most, x[i]);
    }
    if (r.sigmoid)
        return;
    for (int m = 16; m > 0; m /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    for (int i = lane; i < r.experts; i += 32)
        sum += x[i] = expf(x[i] - most) + 0.0f * x[i];
    sum = warp_sum(sum);
    for (int i = lane; i < r.experts; i += 32)
        x[i] /= sum;
}

/* One warp's part of shared memory. The experts are dealt out to the lanes: lane l has the experts
 * l, l + 32, l + 64 and so on. */
struct choice_memory {
    float *score, *biased; /* [experts] */
    uint32_t *order;       /* [experts] order_of() the biased scores; 0: cannot be chosen */
    float *group;          /* [groups] */
    int *expert;           /* [chosen] */
    uint8_t *kept;         /* [groups] */

    static __host__ __device__ size_t bytes(const router &r) {
        return (static_cast<size_t>(r.experts) * 12 + static_cast<size_t>(r.groups) * 5 +
                static_cast<size_t>(r.chosen) * 4 + 63) /
               16 * 16;
    }

    __device__ choice_memory(char *at, const router &r) {
        score = reinterpret_cast<float *>(at);
        biased = score + r.experts;
        order = reinterpret_cast<uint32_t *>(biased + r.experts);
        group = reinterpret_cast<float *>(order + r.experts);
        expert = reinterpret_cast<int *>(group + r.groups);
        kept = reinterpret_cast<uint8_t *>(expert + r.chosen);
    }
};

/* Reads the logits and the bias of a row, with several loads in flight. */
__device__ void read_logits(const route_args &a, const choice_memory &c, int64_t row) {
    enum { kAtOnce = 8 };
    const int n = a.how.experts;
    for (int from = threadIdx.x % 32; from < n; from += 32 * kAtOnce) {
        float logit[kAtOnce], bias[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; i++) {
            const int e = min(from + 32 * i, n - 1);
            logit[i] = __ldcg(a.scores + row * n + e);
            bias[i] = a.bias ? a.bias[e] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; i++)
            if (from + 32 * i < n) {
                c.score[from + 32 * i] = logit[i];
                c.biased[from + 32 * i] = bias[i];
            }
    }
}

/* The two largest of some numbers. */
struct two_largest {
    float first = -INFINITY, second = -INFINITY;
    bool nan = false; /* whether one of the numbers is NaN */

    __device__ void add(float x) {
        nan = nan || isnan(x);
        second = fmaxf(second, fminf(first, x));
        first = fmaxf(first, x);
    }
    /* Adds the two largest of another lane, whose index is this lane's index XOR @mask. */
    __device__ void merge(int mask) {
        const float other = __shfl_xor_sync(~0u, first, mask),
                    below = __shfl_xor_sync(~0u, second, mask);
        nan = __shfl_xor_sync(~0u, nan, mask) || nan;
        add(other);
        add(below);
    }
};

/* Rates all groups. Up to eight lanes share a group, if the warp has room for all groups. */
__device__ void rate_groups(const router &r, const choice_memory &c) {
    const int size = r.experts / r.groups, share = r.groups <= 4 ? 8 : r.groups <= 8 ? 4 : 1;
    const int lane = threadIdx.x % 32, own = lane % share;
    for (int from = 0; from < r.groups; from += 32 / share) {
        const int g = from + lane / share;
        two_largest t;
        for (int i = own; g < r.groups && i < size; i += share)
            t.add(c.biased[g * size + i]);
        for (int mask = 1; mask < share; mask *= 2)
            t.merge(mask);
        if (g < r.groups && own == 0) {
            c.group[g] = t.nan ? NAN : r.by_two ? t.first + t.second : t.first;
            c.kept[g] = 0;
        }
    }
}

__device__ void keep_best_groups(const router &r, const choice_memory &c) {
    rate_groups(r, c);
    __syncwarp();
    for (int i = 0; i < r.groups_kept; i++) {
        const int g = best_left(c.group, c.kept, r.groups);
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            c.kept[g] = 1;
        __syncwarp();
    }
}

/* The best one of a lane's experts; of equal ones the first. */
struct lane_best {
    uint32_t order = 0;
    int expert = INT_MAX;

    __device__ lane_best(const choice_memory &c, int n) {
#pragma unroll 8
        for (int i = threadIdx.x % 32; i < n; i += 32)
            if (c.order[i] > order) {
                order = c.order[i];
                expert = i;
            }
    }
};

/* Writes the chosen experts of a row to c.expert, in the order of choice. */
__device__ void choose(const route_args &a, const choice_memory &c, int64_t row) {
    const int lane = threadIdx.x % 32, n = a.how.experts, groups = a.how.groups, size = n / groups;
    read_logits(a, c, row);
    to_scores(a.how, c.score);
    for (int i = lane; i < n; i += 32)
        c.biased[i] += c.score[i];
    __syncwarp();
    if (groups > 1)
        keep_best_groups(a.how, c);
    for (int i = lane; i < n; i += 32)
        c.order[i] = groups == 1 || c.kept[i / size] ? order_of(c.biased[i]) : 0;
    lane_best own(c, n);
    for (int i = 0; i < a.how.chosen; i++) {
        const uint32_t most = __reduce_max_sync(~0u, own.order);
        const int e = __reduce_min_sync(~0u, own.order == most ? own.expert : INT_MAX);
        if (own.expert == e) {
            c.expert[i] = e;
            c.order[e] = 0;
            own = lane_best(c, n);
        }
    }
    __syncwarp();
}

/* Where the experts of a row and their weights are written: the lists of this rank, or the message
 * of the row. */
struct written_choice {
    int *expert;
    float *weight;

    __device__ written_choice(const route_args &a, int64_t row) {
        const int k = a.how.chosen;
        if (a.message) {
            expert = reinterpret_cast<int *>(a.message + row * message_row(a.hidden, k) + a.hidden);
            weight = reinterpret_cast<float *>(expert + k);
        } else {
            expert = a.expert + row * (k + a.shared);
            weight = a.weight + row * (k + a.shared);
        }
    }
};

/* Writes the chosen experts in ascending order, with their weights. The shared experts follow. */
__device__ void write_choice(const route_args &a, const choice_memory &c, int64_t row) {
    const int lane = threadIdx.x % 32, k = a.how.chosen;
    const written_choice to(a, row);
    float sum = 0;
    for (int i = lane; i < k; i += 32)
        sum += c.score[c.expert[i]];
    sum = warp_sum(sum);
    for (int i = lane; i < k; i += 32) {
        const int e = c.expert[i];
        int rank = 0;
        for (int j = 0; j < k; j++)
            rank += c.expert[j] < e;
        const float w = a.how.normalize ? c.score[e] / (sum + 1e-20f) : c.score[e];
        a.chosen[row * k + rank] = e;
        to.expert[rank] = e < a.routed ? e : PLACE_ZERO;
        to.weight[rank] = w * a.how.factor;
    }
    for (int i = lane; i < a.shared; i += 32) {
        to.expert[k + i] = a.routed + i;
        to.weight[k + i] = 1;
    }
}

/* ---- choosing in registers: each lane has two adjacent experts ------------------------------ */

enum { kQuickMost = 64 };

/* Whether choose_quick() supports this router. */
__host__ __device__ inline bool is_quick(const router &r) {
    return r.experts <= kQuickMost && r.experts % 2 == 0 && r.groups <= 1 && r.chosen <= 32;
}

/* Turns logits into scores. */
__device__ __forceinline__ void score_quick(const router &r, float (&x)[2]) {
    const int first = threadIdx.x % 32 * 2;
    if (r.sigmoid) {
        for (float &one : x)
            one = sigmoid(one);
        return;
    }
    float most = first < r.experts ? fmaxf(x[0], x[1]) : -INFINITY;
    for (int m = 16; m > 0; m /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    for (float &one : x)
        one = first < r.experts ? expf(one - most) + 0.0f * one : 0.0f;
    const float sum = warp_sum(x[0] + x[1]);
    for (float &one : x)
        one /= sum;
}

/* Whether the experts can be chosen by their logits, so that the choice need not wait for the sum
 * of the softmax. With softmax and without a bias a greater logit has no smaller score. */
__device__ __forceinline__ bool orders_logits(const router &r, const float *bias) {
    return !r.sigmoid && !bias;
}

/* For each of a lane's two experts, when it is chosen, counted from 0; -1 = never. @x: logits if
 * orders_logits(), else scores. One warp. It uses warp reductions and ballots, but no shuffles. */
__device__ __forceinline__ void choose_quick(const router &r, const float *bias,
                                             const float (&x)[2], int (&chosen_at)[2]) {
    const int lane = threadIdx.x % 32, first = lane * 2;
    uint32_t order[2] = {};
    if (first < r.experts) {
        order[0] = order_of(x[0] + (bias ? bias[first] : 0));
        order[1] = order_of(x[1] + (bias ? bias[first + 1] : 0));
    }
    chosen_at[0] = chosen_at[1] = -1;
#pragma unroll 1
    for (int c = 0; c < r.chosen; c++) {
        const uint32_t most = max(order[0], order[1]), best = __reduce_max_sync(~0u, most),
                       lanes = __ballot_sync(~0u, most == best);
        const bool own = most == best && (lanes & ((1u << lane) - 1)) == 0, low = order[0] == best;
        if (own && low) {
            chosen_at[0] = c;
            order[0] = 0;
        }
        if (own && !low) {
            chosen_at[1] = c;
            order[1] = 0;
        }
    }
}

} // namespace
} // namespace device
