/* Each row is merged by kGroups groups of 128 threads. A thread of a group takes four columns, and
 * the groups share the slots. A thread issues its loads of kInFlight slots, those of LSE included,
 * before it uses the first. So a row costs about one round trip to memory for every kInFlight x
 * kGroups slots. */
#include "kernels/cuda/merge/combine.h"

#include "kernels/cuda/merge/cut_sequence.cuh"

namespace {

enum { kAcross = 128, kFewSlots = 8, kBlocks = 132 * 16 };

/* A softmax in progress. The output is out / sum; both are relative to 2^most. */
struct running {
    float most, sum;
    float4 out;
};

__device__ __forceinline__ void add(running &r, float weight, float4 x) {
    r.sum += weight;
    r.out.x += weight * x.x;
    r.out.y += weight * x.y;
    r.out.z += weight * x.z;
    r.out.w += weight * x.w;
}

__device__ __forceinline__ void rebase(running &r, float most) {
    const float factor = r.most == -INFINITY ? 0.0f : exp2f(r.most - most);
    r.sum *= factor;
    r.out = {r.out.x * factor, r.out.y * factor, r.out.z * factor, r.out.w * factor};
    r.most = most;
}

/* Adds up the slots first, first + step, ... of one row and four columns. */
template <int kInFlight>
__device__ __forceinline__ running gather(const combine_args &a, const sched_cut &cut, int row,
                                          int column, int first, int step) {
    running r = {-INFINITY, 0, {0, 0, 0, 0}};
    for (int k0 = first; k0 < cut.items; k0 += step * kInFlight) {
        float lse[kInFlight];
        float4 part[kInFlight];
#pragma unroll
        for (int i = 0; i < kInFlight; i++) {
            const bool real = k0 + i * step < cut.items;
            const size_t at = static_cast<size_t>(cut.slot + k0 + i * step) * a.rows + row;
            lse[i] = real ? a.partial_lse[at] : -INFINITY;
            part[i] = real
                          ? *reinterpret_cast<const float4 *>(a.partial_out + at * a.width + column)
                          : float4{0, 0, 0, 0};
        }
        float most = r.most;
#pragma unroll
        for (int i = 0; i < kInFlight; i++)
            most = fmaxf(most, lse[i]);
        rebase(r, most);
        const float base = most == -INFINITY ? 0.0f : most; /* all are -inf or NaN */
#pragma unroll
        for (int i = 0; i < kInFlight; i++)
            add(r, exp2f(lse[i] - base), part[i]);
    }
    return r;
}

__device__ __forceinline__ void store(const combine_args &a, int seq, int row, int column,
                                      const running &r) {
    const size_t to = static_cast<size_t>(seq) * a.rows + row;
    const float scale = r.sum == 0 ? 0.0f : 1.0f / r.sum;
    auto *dst = reinterpret_cast<__nv_bfloat162 *>(a.out + to * a.width + column);
    dst[0] = __floats2bfloat162_rn(r.out.x * scale, r.out.y * scale);
    dst[1] = __floats2bfloat162_rn(r.out.z * scale, r.out.w * scale);
    if (column == 0 && a.lse)
        a.lse[to] = merging::natural_lse(r.most, r.sum);
}

template <int kGroups>
__global__ void __launch_bounds__(kAcross *kGroups) combine(combine_args a) {
    __shared__ running shared[kGroups][kAcross];
    const int lane = threadIdx.x % kAcross, group = threadIdx.x / kAcross;
    const int column = min(4 * lane, a.width - 4); /* threads beyond the width repeat the last
                                                      columns */
    const int rows = *a.plan.cut_count * a.rows;
    for (int i = blockIdx.x; i < rows; i += gridDim.x) {
        const sched_cut cut = a.plan.cuts[i / a.rows];
        running r =
            gather < kGroups == 1 ? kFewSlots : 4 > (a, cut, i % a.rows, column, group, kGroups);
        if (kGroups > 1) {
            shared[group][lane] = r;
            __syncthreads();
            for (int g = 1; g < kGroups && group == 0; g++) {
                const running other = shared[g][lane];
                const float most = fmaxf(r.most, other.most);
                if (other.sum == 0) /* the group has no token; a sum that is NaN is not skipped */
                    continue;
                rebase(r, most);
                const float factor = exp2f(other.most - most);
                add(r, factor, other.out);
                r.sum += (other.sum - 1) * factor; /* corrects the sum: add() has added 1 x factor
                                                      instead of other.sum x factor */
            }
            __syncthreads();
        }
        if (group == 0)
            store(a, cut.seq, i % a.rows, column, r);
    }
}

template <int kGroups>
cudaError_t launch(const combine_args &args, cudaStream_t stream) {
    const int blocks = min(args.rows * args.batch, kBlocks / kGroups);
    combine<kGroups><<<blocks, kAcross * kGroups, 0, stream>>>(args);
    return cudaGetLastError();
}

} // namespace

cudaError_t combine_launch(const combine_args &args, int parts, cudaStream_t stream) {
    return parts > kFewSlots * args.batch ? launch<8>(args, stream) : launch<1>(args, stream);
}
