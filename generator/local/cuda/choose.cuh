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

/* One warp's part of shared memory. */
struct choice_memory {
    float *score, *biased, *group; /* [experts], [experts], [groups] */
    uint8_t *taken, *kept;         /* [experts], [groups] */
    int *expert;                   /* [chosen] */

    static __host__ __device__ size_t bytes(const router &r) {
        return (static_cast<size_t>(r.experts) * 9 + static_cast<size_t>(r.groups) * 5 +
                static_cast<size_t>(r.chosen) * 4 + 63) /
               16 * 16;
    }

    __device__ choice_memory(char *at, const router &r) {
        score = reinterpret_cast<float *>(at);
        biased = score + r.experts;
        group = biased + r.experts;
        expert = reinterpret_cast<int *>(group + r.groups);
        taken = reinterpret_cast<uint8_t *>(expert + r.chosen);
        kept = taken + r.experts;
    }
};

__device__ float rate_group(const router &r, const float *x, int size) {
    float first = -INFINITY, second = -INFINITY;
    for (int i = 0; i < size; i++) {
        if (isnan(x[i]))
            return x[i];
        if (x[i] > first) {
            second = first;
            first = x[i];
        } else if (x[i] > second) {
            second = x[i];
        }
    }
    return r.by_two ? first + second : first;
}

__device__ void keep_best_groups(const router &r, const choice_memory &c) {
    const int lane = threadIdx.x % 32, size = r.experts / r.groups;
    for (int g = lane; g < r.groups; g += 32) {
        c.group[g] = rate_group(r, c.biased + g * size, size);
        c.kept[g] = 0;
    }
    __syncwarp();
    for (int i = 0; i < r.groups_kept; i++) {
        const int g = best_left(c.group, c.kept, r.groups);
        __syncwarp();
        if (lane == 0)
            c.kept[g] = 1;
        __syncwarp();
    }
    for (int e = lane; e < r.experts; e += 32)
        c.taken[e] = !c.kept[e / size];
    __syncwarp();
}

/* Writes the chosen experts of a row to c.expert, in the order of choice. */
__device__ void choose(const route_args &a, const choice_memory &c, int64_t row) {
    const int lane = threadIdx.x % 32, n = a.how.experts;
    for (int i = lane; i < n; i += 32) {
        c.score[i] = __ldcg(a.scores + row * n + i);
        c.taken[i] = 0;
    }
    __syncwarp();
    to_scores(a.how, c.score);
    __syncwarp();
    for (int i = lane; i < n; i += 32)
        c.biased[i] = a.bias ? c.score[i] + a.bias[i] : c.score[i];
    __syncwarp();
    if (a.how.groups > 1)
        keep_best_groups(a.how, c);
    for (int i = 0; i < a.how.chosen; i++) {
        const int e = best_left(c.biased, c.taken, n);
        __syncwarp();
        if (lane == 0) {
            c.taken[e] = 1;
            c.expert[i] = e;
        }
        __syncwarp();
    }
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
