#include "kernels/cuda/ceilings/cuda_probes.h"
#include "kernels/cuda/ptx/tma.cuh"

namespace {

enum { kThreads = 256, kStages = 5 };

__global__ void __launch_bounds__(kThreads) fill(uint32_t *memory, size_t n) {
    const size_t step = static_cast<size_t>(gridDim.x) * kThreads;
    for (size_t i = blockIdx.x * static_cast<size_t>(kThreads) + threadIdx.x; i < n; i += step) {
        uint64_t x = i * 0x9e3779b97f4a7c15ull;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        memory[i] = static_cast<uint32_t>(x >> 32);
    }
}

/* Each thread has kAhead loads of 16 bytes in flight. The loads of a block are contiguous. */
template <int kAhead>
__global__ void __launch_bounds__(kThreads)
    read_plain(const uint4 *from, size_t n, uint32_t *never) {
    uint32_t sum = 0;
    const size_t step = static_cast<size_t>(gridDim.x) * kThreads * kAhead;
    for (size_t i = blockIdx.x * static_cast<size_t>(kThreads) * kAhead + threadIdx.x; i < n;
         i += step) {
        uint4 x[kAhead];
#pragma unroll
        for (int k = 0; k < kAhead; k++)
            x[k] = i + k * kThreads < n ? __ldcs(&from[i + k * kThreads]) : uint4{0, 0, 0, 0};
#pragma unroll
        for (int k = 0; k < kAhead; k++)
            sum += x[k].x ^ x[k].y ^ x[k].z ^ x[k].w;
    }
    if (sum == 0x12345678u) /* keeps the compiler from removing the loads */
        *never = sum;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__global__ void __launch_bounds__(32) read_bulk(read_memory m) {
    extern __shared__ __align__(128) uint8_t stage[];
    __shared__ uint64_t full[kStages];
    if (threadIdx.x)
        return;
    for (int s = 0; s < kStages; s++)
        ptx::mbarrier_init(&full[s], 1);
    ptx::mbarrier_init_fence();
    int issued = 0, taken = 0;
    for (int i = blockIdx.x; i < m.pages || taken < issued;) {
        if (i < m.pages && issued - taken < kStages) {
            const int s = issued++ % kStages;
            ptx::mbarrier_arrive_expect(&full[s], PROBE_PAGE);
            ptx::bulk_load(stage + s * PROBE_PAGE,
                           m.at + static_cast<size_t>(m.order[i]) * PROBE_PAGE, PROBE_PAGE,
                           &full[s]);
            i += gridDim.x;
            continue;
        }
        ptx::mbarrier_wait(&full[taken % kStages], taken / kStages % 2);
        taken++;
    }
}
#else
__global__ void read_bulk(read_memory) {
}
#endif

} // namespace

cudaError_t probe_fill(uint8_t *memory, size_t bytes, cudaStream_t stream) {
    fill<<<1024, kThreads, 0, stream>>>(reinterpret_cast<uint32_t *>(memory), bytes / 4);
    return cudaGetLastError();
}

cudaError_t probe_read_plain(const read_memory &m, int sms, int ahead, int blocks_per_sm,
                             cudaStream_t stream) {
    auto *kernel = ahead == 8 ? read_plain<8> : ahead == 4 ? read_plain<4> : read_plain<2>;
    kernel<<<sms * blocks_per_sm, kThreads, 0, stream>>>(
        reinterpret_cast<const uint4 *>(m.at), static_cast<size_t>(m.pages) * PROBE_PAGE / 16,
        m.never);
    return cudaGetLastError();
}

cudaError_t probe_read_bulk(const read_memory &m, int sms, cudaStream_t stream) {
    const int shared = kStages * PROBE_PAGE;
    cudaError_t e =
        cudaFuncSetAttribute(read_bulk, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e != cudaSuccess)
        return e;
    read_bulk<<<sms, 32, shared, stream>>>(m);
    return cudaGetLastError();
}
