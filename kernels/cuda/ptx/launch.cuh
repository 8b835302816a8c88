/* launch.cuh - a launch that begins before the one ahead of it has ended.
 *
 * Source: PTX ISA 7.8, "griddepcontrol". */
#pragma once

namespace ptx {

/* Until the launch ahead is done and what it wrote can be read. */
__device__ __forceinline__ void launch_wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* The next launch may begin where there is room, if it was made to, once all CTAs of this one have said so or
 * ended. Not in a launch's first microsecond: a next one that finds the code of this one still on its
 * way doesn't bring its own, and reads that line by line (9 us). */
__device__ __forceinline__ void launch_next() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

} // namespace ptx
