/* fp8_kernel.cuh - the kernel: initialises the barriers, then each warp takes its role.
 *
 * The output groups are the first warps. Their branch comes first in the source, so that the
 * compiler places their code last. A launch prefetches only the first 64 KB of code; the output
 * groups need theirs last. */
#pragma once
#include "kernels/cuda/ptx/launch.cuh"
#include "kernels/cuda/sm90_fp8/fp8_few.cuh"
#include "kernels/cuda/sm90_fp8/fp8_few_output.cuh"
#include "kernels/cuda/sm90_fp8/fp8_output.cuh"
#include "kernels/cuda/sm90_fp8/fp8_softmax.cuh"

namespace sm90_fp8 {

template <typename Shared>
__device__ __forceinline__ void init_barriers(Shared &s) {
    for (int i = 0; i < kStages; i++) {
        ptx::mbarrier_init(&s.full[i], 1);
        ptx::mbarrier_init(&s.empty[i], Shared::kFew ? 12 : 8);
    }
    for (int i = 0; i < Shared::kRopeStages; i++)
        ptx::mbarrier_init(&s.empty_rope[i], 4);
    for (int i = 0; i < 2; i++) {
        ptx::mbarrier_init(&s.full_scales[i], 32);
        ptx::mbarrier_init(&s.empty_scales[i], 128);
        ptx::mbarrier_init(&s.full_p[i], 128);
        ptx::mbarrier_init(&s.empty_p[i], 256);
    }
    ptx::mbarrier_init(&s.full_q, 1);
    ptx::mbarrier_init(&s.empty_q, 4);
    ptx::mbarrier_init(&s.full_sum, 128);
    ptx::mbarrier_init(&s.empty_sum, 256);
    ptx::mbarrier_init(&s.full_parts, Shared::kFew ? 128 : 1);
    ptx::mbarrier_init(&s.empty_parts, 256);
    if (!Shared::kFew)
        ptx::mbarrier_init(&s.full_weights, 128);
    ptx::mbarrier_init_fence();
}

template <int Rows>
__global__ void __launch_bounds__(kThreads, 1) decode(const __grid_constant__ params p) {
    extern __shared__ uint8_t memory[];
    using memory_type = shared_of<Rows>;
    memory_type &s = *reinterpret_cast<memory_type *>(memory);
    const int group = threadIdx.x >> 7;
    const int row_tile = blockIdx.x;
    ptx::launch_wait();
    const bool copies = threadIdx.x < sizeof(sched_part) / sizeof(uint4);
    uint4 piece = {}; /* a piece of the part's record; loaded while barriers are initialised */
    if (copies)
        piece = reinterpret_cast<const uint4 *>(p.io.parts + blockIdx.y)[threadIdx.x];
    if (threadIdx.x == 12 * 32) {
        ptx::tma_prefetch(&p.content);
        ptx::tma_prefetch(&p.rope);
        ptx::tma_prefetch(&p.q);
        if (memory_type::kFew)
            ptx::tma_prefetch(&p.q_rope_rows);
    }
    if (threadIdx.x == 0)
        init_barriers(s);
    if (copies)
        reinterpret_cast<uint4 *>(&s.part)[threadIdx.x] = piece;
    __syncthreads();
    if (memory_type::kFew) {
        if (threadIdx.x == 12 * 32)
            load_first(s, p, row_tile);
        __syncwarp(); /* setmaxnreg needs converged warps */
    }
    if (group < kSoftmaxGroup) {
        ptx::registers_set<memory_type::kFew ? kFewOutputRegs : kOutputRegs, kLaunchRegs>();
        if constexpr (memory_type::kFew)
            run_few_output(s, p, group);
        else
            run_output(s, p, group, row_tile);
    } else if (group == kSoftmaxGroup) {
        ptx::registers_set<memory_type::kFew ? kFewSoftmaxRegs : kSoftmaxRegs, kLaunchRegs>();
        if constexpr (memory_type::kFew)
            run_softmax(s, p);
        else
            run_softmax(s, p, row_tile);
    } else {
        ptx::registers_set<kLoadRegs, kLaunchRegs>();
        if (threadIdx.x == 12 * 32)
            run_loader(s, p, row_tile);
        else if (threadIdx.x >> 5 == 13)
            run_scales(s, p);
    }
}

} // namespace sm90_fp8
