/* launch.cuh - kernels that begin while the one before them ends.
 *
 * A step is a chain of short kernels. Each says early that the next may be set up (let_next), and waits
 * for the one before (wait_previous) only when it first touches what that one writes: weights, which
 * nobody writes, may be read before. Every kernel of the chain waits, so that the end of one means the end
 * of all before it.
 * Source: CUDA programming guide, "Programmatic Dependent Launch". */
#pragma once
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

namespace device {

using bf16 = __nv_bfloat16;

__device__ __forceinline__ void wait_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void let_next() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* The line of an address, into L2. */
__device__ __forceinline__ void ask_line(const void *at) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

/* Where work goes. */
struct stream_of {
    cudaStream_t stream;
    bool hopper; /* launches may overlap, and sm_90a's instructions are there */
    int sms;
};

template <typename... P, typename... A>
cudaError_t launch(const stream_of &s, void (*kernel)(P...), dim3 grid, int threads, size_t shared,
                   A... args) {
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t c = {};
    c.gridDim = grid;
    c.blockDim = dim3(static_cast<unsigned>(threads));
    c.dynamicSmemBytes = shared;
    c.stream = s.stream;
    c.attrs = &overlap;
    c.numAttrs = s.hopper ? 1 : 0;
    return cudaLaunchKernelEx(&c, kernel, P(args)...);
}

__device__ __forceinline__ float warp_sum(float x) {
    for (int m = 16; m > 0; m /= 2)
        x += __shfl_xor_sync(~0u, x, m);
    return x;
}

/* The sum over a block of up to 1024 threads, to all of them. @room [32]. */
__device__ __forceinline__ float block_sum(float x, float *room) {
    const int lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
    x = warp_sum(x);
    __syncthreads();
    if (lane == 0)
        room[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_sum(lane < warps ? room[lane] : 0.0f);
}

} // namespace device
