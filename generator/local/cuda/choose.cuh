/* choose.cuh - which experts a row goes to, from its scores: a warp a row, by the rules of model/route.h. */
#pragma once
#include <climits>

#include "generator/local/cuda/rows.h"

namespace device {
namespace {

/* Orders numbers as floats are ordered: NaN first, then -inf .. inf; never 0. */
__device__ __forceinline__ uint32_t order_of(float x) {
    const uint32_t bits = __float_as_uint(x + 0.0f); /* -0 as 0 */
    return isnan(x) ? 1 : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* The largest of what is not taken, of equals the first; a NaN only where nothing else is left. */
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

__device__ void to_scores(const router &r, float *x) {
    const int lane = threadIdx.x % 32;
    float most = -INFINITY, sum = 0;
    for (int i = lane; i < r.experts; i += 32) {
        if (r.sigmoid)
            x[i] = 1.0f / (1.0f + expf(-x[i]));
        most = fmaxf(most, x[i]);
    }
    if (r.sigmoid)
        return;
    for (int m = 16; m > 0; m /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    for (int i = lane; i < r.experts; i += 32)
        sum += x[i] = expf(x[i] - most);
    sum = warp_sum(sum);
    for (int i = lane; i < r.experts; i += 32)
        x[i] /= sum;
}

/* Room of a warp in shared memory. */
struct choice_room {
    float *score, *biased, *group; /* [experts], [experts], [groups] */
    uint8_t *taken, *kept;         /* [experts], [groups] */
    int *expert;                   /* [chosen] */

    static __host__ __device__ size_t bytes(const router &r) {
        return (static_cast<size_t>(r.experts) * 9 + static_cast<size_t>(r.groups) * 5 +
                static_cast<size_t>(r.chosen) * 4 + 63) /
               16 * 16;
    }

    __device__ choice_room(char *at, const router &r) {
        score = reinterpret_cast<float *>(at);
        biased = score + r.experts;
        group = biased + r.experts;
        expert = reinterpret_cast<int *>(group + r.groups);
        taken = reinterpret_cast<uint8_t *>(expert + r.chosen);
        kept = taken + r.experts;
    }
};

__device__ float judge_group(const router &r, const float *x, int size) {
    float first = -INFINITY, second = -INFINITY;
    for (int i = 0; i < size; i++) {
        if (x[i] > first) {
            second = first;
            first = x[i];
        } else if (x[i] > second) {
            second = x[i];
        }
    }
    return r.by_two ? first + second : first;
}

__device__ void leave_groups(const router &r, const choice_room &c) {
    const int lane = threadIdx.x % 32, size = r.experts / r.groups;
    for (int g = lane; g < r.groups; g += 32) {
        c.group[g] = judge_group(r, c.biased + g * size, size);
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

/* The chosen experts of a row into c.expert, in the order of choice. */
__device__ void choose(const route_args &a, const choice_room &c, int64_t row) {
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
        leave_groups(a.how, c);
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

/* Writes them ascending, with their weights; the shared experts follow. */
__device__ void write_choice(const route_args &a, const choice_room &c, int64_t row) {
    const int lane = threadIdx.x % 32, k = a.how.chosen, slots = k + a.shared;
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
        a.expert[row * slots + rank] = e < a.routed ? e : -1;
        a.weight[row * slots + rank] = w * a.how.factor;
    }
    for (int i = lane; i < a.shared; i += 32) {
        a.expert[row * slots + k + i] = a.routed + i;
        a.weight[row * slots + k + i] = 1;
    }
}

/* ---- the same in registers --------------------------------------------------------------------- */

enum { kQuickMost = 256 };

/* Where choose_quick() serves. */
__host__ __device__ inline bool is_quick(const router &r) {
    return r.experts <= kQuickMost && r.experts % 2 == 0 && r.groups <= 1 && r.chosen <= 32;
}

/* What lane i < chosen has: the expert chosen so, and its weight. */
struct quick_choice {
    int expert;
    float weight;

    /* Its place among the chosen by number. */
    __device__ int rank(int chosen) const {
        int before = 0;
        for (int c = 0; c < chosen; c++)
            before += __shfl_sync(~0u, expert, c) < expert;
        return before;
    }
};

/* A lane has EACH experts beside each other, from EACH * lane on. */
template <int EACH>
__device__ __forceinline__ void score_quick(const router &r, float (&x)[EACH]) {
    const int first = threadIdx.x % 32 * EACH;
    float most = -INFINITY, sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        if (first + i >= r.experts)
            x[i] = -INFINITY;
        else if (r.sigmoid)
            x[i] = 1.0f / (1.0f + expf(-x[i]));
        most = fmaxf(most, x[i]);
    }
    if (r.sigmoid)
        return;
    for (int m = 16; m > 0; m /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
#pragma unroll
    for (int i = 0; i < EACH; i++)
        sum += x[i] = expf(x[i] - most);
    sum = warp_sum(sum);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        x[i] /= sum;
}

/* @x: the router's logits; a warp. */
template <int EACH>
__device__ __forceinline__ quick_choice choose_quick(const router &r, const float *bias,
                                                     float (&x)[EACH]) {
    const int lane = threadIdx.x % 32, first = lane * EACH;
    uint32_t order[EACH];
    quick_choice own = {INT_MAX, 0};
    score_quick(r, x);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        order[i] = first + i < r.experts ? order_of(x[i] + (bias ? bias[first + i] : 0)) : 0;
    for (int c = 0; c < r.chosen; c++) {
        uint32_t most = 0;
        float score = 0;
        int at = 0;
#pragma unroll
        for (int i = EACH - 1; i >= 0; i--)
            if (order[i] >= most) {
                most = order[i];
                score = x[i];
                at = i;
            }
        const uint32_t best = __reduce_max_sync(~0u, most);
        const int from = __ffs(static_cast<int>(__ballot_sync(~0u, most == best))) - 1;
        const int e = from * EACH + __shfl_sync(~0u, at, from);
        score = __shfl_sync(~0u, score, from);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (first + i == e)
                order[i] = 0;
        if (lane == c) {
            own.expert = e;
            own.weight = score;
        }
    }
    if (r.normalize)
        own.weight /= warp_sum(own.weight) + 1e-20f;
    own.weight *= r.factor;
    return own;
}

} // namespace
} // namespace device
