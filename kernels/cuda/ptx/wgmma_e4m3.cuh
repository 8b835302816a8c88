/* wgmma_e4m3.cuh - products of e4m3 matrices for many widths N of the second operand.
 *
 * product_e4m3() has the same meaning for each N: D += A.B, or D = A.B if `accumulate` is false.
 * Both operands are in shared memory, given by descriptors, and K-major. A has 64 rows, B has N
 * rows, and both have 32 numbers of K. wgmma.cuh says which elements of D a thread has. The number
 * of registers of D, N / 2, selects the function.
 * Source: PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions". */
#pragma once
#include "kernels/cuda/ptx/wgmma.cuh"

namespace ptx {

#define PTX_TEXT_24 PTX_TEXT_10() PTX_TEXT_10(1) "%20, %21, %22, %23"
#define PTX_TEXT_40                                                                                \
    PTX_TEXT_10()                                                                                  \
    PTX_TEXT_10(1) PTX_TEXT_10(2) "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39"
#define PTX_TEXT_48                                                                                \
    PTX_TEXT_10()                                                                                  \
    PTX_TEXT_10(1) PTX_TEXT_10(2) PTX_TEXT_10(3) "%40, %41, %42, %43, %44, %45, %46, %47"
#define PTX_TEXT_56                                                                                \
    PTX_TEXT_10()                                                                                  \
    PTX_TEXT_10(1)                                                                                 \
    PTX_TEXT_10(2) PTX_TEXT_10(3) PTX_TEXT_10(4) "%50, %51, %52, %53, %54, %55"
#define PTX_TEXT_72   PTX_TEXT_60 PTX_TEXT_10(6) "%70, %71"
#define PTX_SUM_24(i) PTX_SUM_16(i), PTX_SUM_8(i + 16)
#define PTX_SUM_40(i) PTX_SUM_32(i), PTX_SUM_8(i + 32)
#define PTX_SUM_48(i) PTX_SUM_32(i), PTX_SUM_16(i + 32)
#define PTX_SUM_56(i) PTX_SUM_32(i), PTX_SUM_16(i + 32), PTX_SUM_8(i + 48)
#define PTX_SUM_72(i) PTX_SUM_64(i), PTX_SUM_8(i + 64)

#define PTX_PRODUCT_E4M3(n, regs, a_number, b_number, p_number)                                    \
    __device__ __forceinline__ void product_e4m3(float(&d)[regs], uint64_t a, uint64_t b,          \
                                                 bool accumulate) {                                \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #p_number ", 0;\n"                         \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k32.f32.e4m3.e4m3 {" PTX_TEXT_##regs  \
                     "}, %" #a_number ", %" #b_number ", p, 1, 1; }"                               \
                     : PTX_SUM_##regs(0)                                                           \
                     : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));                         \
    }

PTX_PRODUCT_E4M3(16, 8, 8, 9, 10)
PTX_PRODUCT_E4M3(32, 16, 16, 17, 18)
PTX_PRODUCT_E4M3(48, 24, 24, 25, 26)
PTX_PRODUCT_E4M3(64, 32, 32, 33, 34)
PTX_PRODUCT_E4M3(80, 40, 40, 41, 42)
PTX_PRODUCT_E4M3(96, 48, 48, 49, 50)
PTX_PRODUCT_E4M3(112, 56, 56, 57, 58)
PTX_PRODUCT_E4M3(128, 64, 64, 65, 66)
PTX_PRODUCT_E4M3(144, 72, 72, 73, 74)

#undef PTX_PRODUCT_E4M3

} // namespace ptx
