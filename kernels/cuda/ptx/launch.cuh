/* launch.cuh - programmatic dependent launch: a launch that begins before the previous one has
 * ended.
 *
 * Source: PTX ISA 7.8, "griddepcontrol". */
#pragma once

namespace ptx {

/* Waits until the previous launch has ended and its writes are visible. */
__device__ __forceinline__ void launch_wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* Allows the next launch to begin where an SM has room, if that launch has the attribute for it. It
 * begins once all CTAs of this launch have executed this instruction or ended. On devices before
 * compute capability 9.0, this function does nothing. Do not use it in the first microsecond of a
 * launch: the step took longer then (docs/lab/2026-11-22-plan-and-served-step.md). The likely cause
 * is that a launch which begins while the code of the previous one is still being fetched does not
 * prefetch its own code. */
__device__ __forceinline__ void launch_next() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

} // namespace ptx
