/* A block a row: 128 threads across the width, and `kGroups` such groups take slots in turn, so that
 * many slots of few rows are read with enough loads in flight. */
#include "kernels/cuda/combine/combine.h"

namespace {

enum { kAcross = 128, kMostSlots = 1024, kInFlight = 8 };

template <int kGroups>
__global__ void __launch_bounds__(kAcross *kGroups) combine(combine_args a) {
    __shared__ float weight[kMostSlots];
    __shared__ float4 sum[kGroups][kAcross];
    cudaGridDependencySynchronize();
    const int row = blockIdx.x, seq = blockIdx.y, count = a.plan.seq_items[seq];
    if (count <= 1)
        return;
    const size_t slot = a.plan.seq_slot[seq];
    const int tid = threadIdx.x, group = tid / kAcross, column = tid % kAcross * 4;

    float most = -INFINITY, total = 0;
    for (int k = tid; k < count; k += kAcross * kGroups)
        weight[k] = a.partial_lse[(slot + k) * a.rows + row];
    __syncthreads();
    for (int k = 0; k < count; k++)
        most = fmaxf(most, weight[k]);
    const float reference = most == -INFINITY ? 0.0f : most;
    for (int k = 0; k < count; k++)
        total += exp2f(weight[k] - reference);

    float4 out = {0, 0, 0, 0};
    if (column < a.width) {
        const float *from = a.partial_out + (slot * a.rows + row) * a.width + column;
        const size_t stride = static_cast<size_t>(a.rows) * a.width;
        for (int k0 = group; k0 < count; k0 += kGroups * kInFlight) {
            float4 part[kInFlight];
#pragma unroll
            for (int i = 0; i < kInFlight; i++)
                if (k0 + i * kGroups < count)
                    part[i] = *reinterpret_cast<const float4 *>(from + (k0 + i * kGroups) * stride);
#pragma unroll
            for (int i = 0; i < kInFlight; i++) {
                if (k0 + i * kGroups >= count)
                    break;
                float w = exp2f(weight[k0 + i * kGroups] - reference);
                out.x += w * part[i].x;
                out.y += w * part[i].y;
                out.z += w * part[i].z;
                out.w += w * part[i].w;
            }
        }
    }
    if (kGroups > 1) {
        sum[group][tid % kAcross] = out;
        __syncthreads();
        if (group != 0)
            return;
        for (int g = 1; g < kGroups; g++) {
            float4 more = sum[g][tid];
            out = {out.x + more.x, out.y + more.y, out.z + more.z, out.w + more.w};
        }
    }
    const size_t to = static_cast<size_t>(seq) * a.rows + row;
    const float scale = total > 0 ? 1.0f / total : 0.0f;
    if (column < a.width) {
        auto *dst = reinterpret_cast<__nv_bfloat162 *>(a.out + to * a.width + column);
        dst[0] = __floats2bfloat162_rn(out.x * scale, out.y * scale);
        dst[1] = __floats2bfloat162_rn(out.z * scale, out.w * scale);
    }
    if (tid == 0 && a.lse)
        a.lse[to] = most == -INFINITY ? -INFINITY : (most + log2f(total)) * 0.69314718f;
}

template <int kGroups>
cudaError_t launch(const combine_args &args, cudaStream_t stream) {
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(args.rows, args.batch);
    config.blockDim = dim3(kAcross * kGroups);
    config.stream = stream;
    config.attrs = &overlap;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, combine<kGroups>, args);
}

} // namespace

cudaError_t combine_launch(const combine_args &args, int parts, cudaStream_t stream) {
    return parts > 4 * args.batch ? launch<4>(args, stream) : launch<1>(args, stream);
}
