/* launch.cuh - kernels that begin before the previous kernel has ended (programmatic dependent
 * launch).
 *
 * A step is a chain of short kernels. A kernel may permit an early launch of the next (let_next).
 * A kernel waits for the previous one (wait_previous) before it reads what that kernel writes. No
 * kernel of a step writes the weights, so they may be read before. Every kernel that is launched in
 * this way waits, so the end of one kernel implies the end of all kernels before it.
 * Source: CUDA programming guide, "Programmatic Dependent Launch". */
#pragma once
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda/row_norm.cuh"

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

/* Prefetches the cache line of an address into L2. */
__device__ __forceinline__ void prefetch_line(const void *at) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

/* The stream that work is launched on, and its device. */
struct stream_of {
    cudaStream_t stream;
    bool hopper; /* compute capability 9.0, and isa is not "portable": launches may overlap, and
                    kernels with sm_90a instructions are used */
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

} // namespace device
