/* warp.cuh - matrix loads and stores between registers and shared memory, other loads and stores of
 * shared memory, numbers of lanes and warps, conversions, approximate functions, register budgets.
 *
 * Source: PTX ISA 8.0, "ldmatrix", "stmatrix", "cvt", "setmaxnreg". */
#pragma once
#include <cstdint>
#include <cuda_fp16.h>

namespace ptx {

/* Loads four 8x8 matrices of 16-bit elements, transposed. Lanes 8 i .. 8 i + 7 give the row
 * addresses of matrix i. */
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], uint32_t smem_address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(smem_address)
                 : "memory");
}

__device__ __forceinline__ void stmatrix_x4(uint32_t smem_address, uint32_t a, uint32_t b,
                                            uint32_t c, uint32_t d) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(smem_address),
        "r"(a), "r"(b), "r"(c), "r"(d)
        : "memory");
}

/* Stores each matrix transposed: the two numbers of a lane go to neighbouring rows. */
__device__ __forceinline__ void stmatrix_x4_trans(uint32_t smem_address, uint32_t a, uint32_t b,
                                                  uint32_t c, uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     smem_address),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

/* The lane number. `volatile` keeps it in a register; otherwise the compiler may read it again
 * at every use. */
__device__ __forceinline__ int lane() {
    int i;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(i));
    return i;
}

/* The warp's number in its CTA. The shuffle shows the compiler that all lanes have the same number,
 * so it can keep that number, and values derived from it, in uniform registers. */
__device__ __forceinline__ int warp() {
    return __shfl_sync(~0u, static_cast<int>(threadIdx.x >> 5), 0);
}

/* Returns x, but the compiler can't see that it is the same number. So it does not keep values
 * derived from x in registers. */
__device__ __forceinline__ int opaque(int x) {
    asm volatile("" : "+r"(x));
    return x;
}

/* These functions load from shared memory. The compiler does not move them below a wait that
 * follows in the source. It may move a plain read of a variable. */
__device__ __forceinline__ float load_shared(const float *p) {
    float v;
    asm volatile("ld.shared.f32 %0, [%1];"
                 : "=f"(v)
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(p)))
                 : "memory");
    return v;
}

__device__ __forceinline__ float2 load_shared_v2(const float2 *p) {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(v.x), "=f"(v.y)
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(p)))
                 : "memory");
    return v;
}

__device__ __forceinline__ uint4 load_shared_u4(uint32_t smem_address) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(smem_address)
                 : "memory");
    return v;
}

__device__ __forceinline__ void store_shared_u1(uint32_t smem_address, uint32_t v) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(smem_address), "r"(v) : "memory");
}

__device__ __forceinline__ void store_shared_v2(uint32_t smem_address, float x, float y) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(smem_address), "f"(x), "f"(y) : "memory");
}

__device__ __forceinline__ void store_shared_u4(uint32_t smem_address, uint4 v) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(smem_address), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
}

/* 1 / x with an error of at most one unit in the last place; infinite for zero and subnormal x. */
__device__ __forceinline__ float rcp_approx(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Converts four floats to e4m3: round to nearest even, saturating. `a` is the lowest byte. */
__device__ __forceinline__ uint32_t pack_e4m3x4(float a, float b, float c, float d) {
    uint32_t r;
    asm("{ .reg .b16 lo, hi;\n"
        "cvt.rn.satfinite.e4m3x2.f32 lo, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 hi, %4, %3;\n"
        "mov.b32 %0, {lo, hi}; }"
        : "=r"(r)
        : "f"(a), "f"(b), "f"(c), "f"(d));
    return r;
}

/* Multiplies two e4m3 numbers by a factor each. A product is rounded to fp16 and then to e4m3, each
 * time to nearest even. */
__device__ __forceinline__ uint16_t scale_e4m3x2(uint16_t pair, __half2 factor) {
    uint32_t wide;
    uint16_t r;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(wide) : "h"(pair));
    const __half2 product = __hmul2(*reinterpret_cast<__half2 *>(&wide), factor);
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;"
        : "=h"(r)
        : "r"(*reinterpret_cast<const uint32_t *>(&product)));
    return r;
}

__device__ __forceinline__ uint32_t scale_e4m3x4(uint32_t four, __half2 factor) {
    return scale_e4m3x2(static_cast<uint16_t>(four), factor) |
           static_cast<uint32_t>(scale_e4m3x2(static_cast<uint16_t>(four >> 16), factor)) << 16;
}

/* Converts two floats to bf16: round to nearest even. `a` is the low half. */
__device__ __forceinline__ uint32_t pack_bf16x2(float a, float b) {
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(a), "f"(b));
    return r;
}

/* Converts two floats to fp16 in the same way. */
__device__ __forceinline__ uint32_t pack_f16x2(float a, float b) {
    uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(a), "f"(b));
    return r;
}

/* 2^x with a relative error of about 2^-22; -inf gives 0. */
__device__ __forceinline__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Changes the warpgroup's registers per thread from `Now` to `N`. An increase waits until other
 * warpgroups of the CTA have released enough registers. */
template <int N, int Now>
__device__ __forceinline__ void registers_set() {
    if (N > Now)
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
    else
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

} // namespace ptx
