/* Products with wgmma alone: two warpgroups per SM. The operands are random numbers. For N = 256,
 * both are in shared memory; for N = 64, A is in registers. The sums only keep the compiler from
 * removing the products. */
#include "kernels/cuda/ceilings/cuda_probes.h"
#include "kernels/cuda/ptx/barrier.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

namespace {

enum {
    kGroups = 2,
    kThreads = 128 * kGroups,
    kRow = 128,         /* bytes of K in a swizzled row */
    kSteps = kRow / 32, /* instructions per row; each takes 32 bytes of K */
    kRounds = 2000,
    kShared = 1024 + (64 * kGroups + 256) * kRow, /* 1024 bytes more than needed, for alignment */
};

__device__ uint32_t hash(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

/* Numbers with random signs and mantissas, bf16 or e4m3, with magnitudes between 0.5 and 2. */
__device__ uint32_t operand(uint32_t i, bool fp8) {
    return fp8 ? (hash(i) & 0x8f8f8f8fu) | 0x30303030u : (hash(i) & 0x807f807fu) | 0x3f003f00u;
}

template <probe_product kKind>
__global__ void __launch_bounds__(kThreads, 1) products(float *never) {
    constexpr bool fp8 = kKind == PROBE_FP8_N256 || kKind == PROBE_FP8_N64;
    constexpr bool wide = kKind == PROBE_FP8_N256 || kKind == PROBE_BF16_N256;
    extern __shared__ uint8_t memory[];
    uint8_t *at = memory + (1024 - ptx::smem_addr(memory) % 1024) % 1024;
    auto *words = reinterpret_cast<uint32_t *>(at);
    for (int i = threadIdx.x; i < (64 * kGroups + 256) * kRow / 4; i += kThreads)
        words[i] = operand(i, fp8);
    ptx::fence_proxy_async();
    __syncthreads();
    const int group = threadIdx.x / 128;
    const uint32_t b = ptx::descriptor_low_128(ptx::smem_addr(at + 64 * kGroups * kRow));
    const uint32_t a = ptx::descriptor_low_128(ptx::smem_addr(at + group * 64 * kRow));
    float d[wide ? 128 : 32] = {};
    uint32_t regs[4];
    for (int i = 0; i < 4; i++)
        regs[i] = operand(threadIdx.x * 4 + i, fp8);
    for (int r = 0; r < kRounds; r++) {
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < kSteps; k++) {
            const uint64_t da = ptx::descriptor_128(a + 2 * k), db = ptx::descriptor_128(b + 2 * k);
            if constexpr (kKind == PROBE_FP8_N256)
                ptx::wgmma_ss_e4m3_n256(d, da, db, true);
            else if constexpr (kKind == PROBE_BF16_N256)
                ptx::wgmma_ss_bf16_n256(d, da, db, true);
            else if constexpr (kKind == PROBE_FP8_N64)
                ptx::wgmma_rs_e4m3_n64(d, regs, db, true);
            else
                ptx::wgmma_rs_bf16_n64(d, regs, db, true);
        }
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>(); /* one group of instructions may be queued after the running one */
    }
    ptx::wgmma_wait<0>();
    ptx::pin(d);
    float sum = 0;
    for (float x : d)
        sum += x;
    if (sum == 0.12345f)
        *never = sum;
}

template <probe_product kKind>
cudaError_t launch(int sms, double *flop, float *never, cudaStream_t stream) {
    const double n = kKind == PROBE_FP8_N256 || kKind == PROBE_BF16_N256 ? 256 : 64;
    const double k = kKind == PROBE_FP8_N256 || kKind == PROBE_FP8_N64 ? 32 : 16;
    *flop = 2.0 * 64 * n * k * kSteps * kRounds * kGroups * sms;
    cudaError_t e =
        cudaFuncSetAttribute(products<kKind>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
    if (e != cudaSuccess)
        return e;
    products<kKind><<<sms, kThreads, kShared, stream>>>(never);
    return cudaGetLastError();
}

} // namespace

cudaError_t probe_wgmma(probe_product kind, int sms, double *flop, float *never,
                        cudaStream_t stream) {
    switch (kind) {
    case PROBE_BF16_N256:
        return launch<PROBE_BF16_N256>(sms, flop, never, stream);
    case PROBE_BF16_N64:
        return launch<PROBE_BF16_N64>(sms, flop, never, stream);
    case PROBE_FP8_N256:
        return launch<PROBE_FP8_N256>(sms, flop, never, stream);
    default:
        return launch<PROBE_FP8_N64>(sms, flop, never, stream);
    }
}
