/* once.cuh - bulk loads of weights whose L2 lines are evicted first, so that code, cache metadata
 * and activations stay in L2. */
#pragma once
#include "kernels/cuda/ptx/tma.cuh"

namespace device {

/* Like ptx::bulk_load(); @policy comes from ptx::policy_evict_first(). */
__device__ __forceinline__ void bulk_load_once(void *to, const void *from, uint32_t bytes,
                                               uint64_t *bar, uint64_t policy) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(ptx::smem_addr(to)),
                 "l"(from), "r"(bytes), "r"(ptx::smem_addr(bar)), "l"(policy)
                 : "memory");
}

} // namespace device
