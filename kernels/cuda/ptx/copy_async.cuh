/* copy_async.cuh - asynchronous copies of single threads to shared memory, with an mbarrier that
 * counts the threads whose copies have ended. mma.cuh has copies of 16 bytes.
 *
 * Source: PTX ISA 8.0, "cp.async", "cp.async.mbarrier.arrive". */
#pragma once
#include "kernels/cuda/ptx/barrier.cuh"

namespace ptx {

/* Starts copying 4 bytes. */
__device__ __forceinline__ void copy_async_4(uint32_t smem_address, const void *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(smem_address), "l"(from)
                 : "memory");
}

/* Arrives at the barrier when all copies that this thread has started have ended. */
__device__ __forceinline__ void mbarrier_arrive_after_copies(uint64_t *bar) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(smem_addr(bar))
                 : "memory");
}

} // namespace ptx
