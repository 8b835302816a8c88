/* barrier.cuh - mbarriers, named barriers and proxy fences.
 *
 * A wait on an mbarrier takes the parity of the phase to wait for: 0 for the first completion.
 * mbarrier_wait() has no time limit. A faulty pipeline hangs, so tests run under a timeout.
 * Source: PTX ISA 8.0, "Parallel Synchronization and Communication Instructions". */
#pragma once
#include <cstdint>

namespace ptx {

__device__ __forceinline__ uint32_t smem_addr(const void *p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void mbarrier_init(uint64_t *bar, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_addr(bar)), "r"(arrivals)
                 : "memory");
}

/* Makes initialised barriers visible to the TMA unit. */
__device__ __forceinline__ void mbarrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint64_t *bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem_addr(bar)) : "memory");
}

/* Arrives, and adds `bytes` to the number that TMA copies must still deliver in this phase. */
__device__ __forceinline__ void mbarrier_arrive_expect(uint64_t *bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_addr(bar)),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ bool mbarrier_try_wait(uint64_t *bar, uint32_t parity) {
    uint32_t done;
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(smem_addr(bar)), "r"(parity)
                 : "memory");
    return done != 0;
}

__device__ __forceinline__ void mbarrier_wait(uint64_t *bar, uint32_t parity) {
    while (!mbarrier_try_wait(bar, parity)) {
    }
}

/* Tests without waiting. mbarrier_try_wait() may suspend the thread for microseconds. */
__device__ __forceinline__ bool mbarrier_test(uint64_t *bar, uint32_t parity) {
    uint32_t done;
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(smem_addr(bar)), "r"(parity)
                 : "memory");
    return done != 0;
}

/* A wait in two steps: the constructor tests the barrier early, to hide the latency of the test. */
struct mbarrier_peek {
    uint64_t *bar;
    uint32_t parity;
    bool done;

    __device__ mbarrier_peek(uint64_t *bar, uint32_t parity)
        : bar(bar), parity(parity), done(mbarrier_test(bar, parity)) {
    }
    __device__ void wait() const {
        if (!done)
            mbarrier_wait(bar, parity);
    }
};

/* Named barriers. `threads` is the number of threads that arrive or wait, a multiple of 32. */
__device__ __forceinline__ void named_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* All threads of a cluster wait for each other. Writes before it are visible after it. */
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

/* Waits, and returns true if `yes` is true in any of the threads. */
__device__ __forceinline__ bool named_or(int id, int threads, bool yes) {
    int any;
    asm volatile("{ .reg .pred p, q;\n"
                 "setp.ne.b32 p, %3, 0;\n"
                 "barrier.red.or.pred q, %1, %2, p;\n"
                 "selp.b32 %0, 1, 0, q; }"
                 : "=r"(any)
                 : "r"(id), "r"(threads), "r"(static_cast<int>(yes))
                 : "memory");
    return any != 0;
}

/* Like fence_proxy_async() below, but for all kinds of memory. Also covers writes of other threads
 * that this thread has observed. */
__device__ __forceinline__ void fence_proxy_async_all() {
    asm volatile("fence.proxy.async;" ::: "memory");
}

/* Orders this thread's shared-memory stores before the accesses of tensor cores and TMA that follow
 * a later barrier. */
__device__ __forceinline__ void fence_proxy_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

} // namespace ptx
