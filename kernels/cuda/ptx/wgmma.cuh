/* wgmma.cuh - warpgroup matrix multiply-accumulate: one function for each type, shape and kind of
 * operands.
 *
 * D += A.B, or D = A.B if `accumulate` is false. D is FP32; for e4m3 operands, the instruction
 * keeps about 13 bits of a sum. "ss": both operands are in shared memory, given by descriptors.
 * "rs": A is in registers. Operands are K-major; "nmajor": N is the innermost dimension of B, as in
 * V of attention. The thread in lane 4 g + t of the warpgroup's warp w holds these elements of D,
 * for j = 0 .. N/8 - 1:
 *   d[4j], d[4j+1]      row 16 w + g,      columns 8 j + 2 t and 8 j + 2 t + 1
 *   d[4j+2], d[4j+3]    row 16 w + g + 8,  the same columns
 * Source: PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions". */
#pragma once
#include <cstdint>

namespace ptx {

__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most `N` groups are incomplete. */
template <int N>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/* Keeps the compiler from moving reads of an accumulator above the wait. */
template <int N>
__device__ __forceinline__ void pin(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

/* Descriptor of a K-major tile: rows of 128 bytes, 128-byte swizzle, groups of 8 rows 1024 bytes
 * apart. The tile starts at a multiple of 1024 bytes. Only the low word depends on the address. To
 * advance by n bytes, along K or from tile to tile, add n / 16 to it. */
__device__ __forceinline__ uint32_t descriptor_low_128(uint32_t smem_address) {
    return ((smem_address & 0x3ffff) >> 4) | (1u << 16);
}

__device__ __forceinline__ uint64_t descriptor_128(uint32_t low) {
    uint64_t d;
    asm("mov.b64 %0, {%1, %2};" : "=l"(d) : "r"(low), "r"((1024u >> 4) | (1u << 30)));
    return d;
}

/* The high word of all these descriptors. sm90_fp8 passes it in kernel parameters, one for A and
 * one for B, whose value the compiler does not know. It then stays in the register that the
 * instruction reads; a constant would be loaded again before each instruction. */
constexpr uint32_t kDescriptorHigh = (1024u >> 4) | (1u << 30);

__device__ __forceinline__ uint64_t descriptor_of(uint32_t low, uint32_t high) {
    uint64_t d;
    asm("mov.b64 %0, {%1, %2};" : "=l"(d) : "r"(low), "r"(high));
    return d;
}

/* Advances a descriptor by `by` units of 16 bytes, in place. */
__device__ __forceinline__ void descriptor_step(uint64_t &d, int by) {
    asm volatile("{ .reg .b32 lo, hi;\n"
                 "mov.b64 {lo, hi}, %0;\n"
                 "add.s32 lo, lo, %1;\n"
                 "mov.b64 %0, {lo, hi}; }"
                 : "+l"(d)
                 : "r"(by));
}

/* The instruction needs every register by name. These macros list them, as text and as operands. */
#define PTX_TEXT_10(t)                                                                             \
    "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t         \
    "8, %" #t "9, "
#define PTX_TEXT_8  "%0, %1, %2, %3, %4, %5, %6, %7"
#define PTX_TEXT_16 PTX_TEXT_10() "%10, %11, %12, %13, %14, %15"
#define PTX_TEXT_32 PTX_TEXT_10() PTX_TEXT_10(1) PTX_TEXT_10(2) "%30, %31"
#define PTX_TEXT_60                                                                                \
    PTX_TEXT_10() PTX_TEXT_10(1) PTX_TEXT_10(2) PTX_TEXT_10(3) PTX_TEXT_10(4) PTX_TEXT_10(5)
#define PTX_TEXT_64 PTX_TEXT_60 "%60, %61, %62, %63"
#define PTX_TEXT_128                                                                               \
    PTX_TEXT_60 PTX_TEXT_10(6) PTX_TEXT_10(7) PTX_TEXT_10(8) PTX_TEXT_10(9) PTX_TEXT_10(10)        \
        PTX_TEXT_10(11) "%120, %121, %122, %123, %124, %125, %126, %127"
#define PTX_SUM_4(i)   "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define PTX_SUM_8(i)   PTX_SUM_4(i), PTX_SUM_4(i + 4)
#define PTX_SUM_16(i)  PTX_SUM_4(i), PTX_SUM_4(i + 4), PTX_SUM_4(i + 8), PTX_SUM_4(i + 12)
#define PTX_SUM_32(i)  PTX_SUM_16(i), PTX_SUM_16(i + 16)
#define PTX_SUM_64(i)  PTX_SUM_32(i), PTX_SUM_32(i + 32)
#define PTX_SUM_128(i) PTX_SUM_64(i), PTX_SUM_64(i + 64)

/* D has `regs` registers. The operands after them are numbered from a_number (or a0) on. The last
 * of them, p_number, is nonzero to accumulate. */
#define PTX_WGMMA_SS(name, shape, regs, a_number, b_number, p_number, flags)                       \
    __device__ __forceinline__ void wgmma_ss_##name(float(&d)[regs], uint64_t a, uint64_t b,       \
                                                    bool accumulate) {                             \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #p_number ", 0;\n"                         \
                     "wgmma.mma_async.sync.aligned." shape " {" PTX_TEXT_##regs                    \
                     "}, %" #a_number ", %" #b_number ", p, " flags "; }"                          \
                     : PTX_SUM_##regs(0)                                                           \
                     : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));                         \
    }

#define PTX_WGMMA_RS(name, shape, regs, a0, a1, a2, a3, b_number, p_number, flags)                 \
    __device__ __forceinline__ void wgmma_rs_##name(float(&d)[regs], const uint32_t(&a)[4],        \
                                                    uint64_t b, bool accumulate) {                 \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #p_number ", 0;\n"                         \
                     "wgmma.mma_async.sync.aligned." shape " {" PTX_TEXT_##regs                    \
                     "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b_number ", p, " flags      \
                     "; }"                                                                         \
                     : PTX_SUM_##regs(0)                                                           \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                         \
                       "r"(static_cast<int>(accumulate)));                                         \
    }

PTX_WGMMA_SS(e4m3_n16, "m64n16k32.f32.e4m3.e4m3", 8, 8, 9, 10, "1, 1")
PTX_WGMMA_RS(e4m3_n16, "m64n16k32.f32.e4m3.e4m3", 8, 8, 9, 10, 11, 12, 13, "1, 1")
PTX_WGMMA_SS(e4m3_n32, "m64n32k32.f32.e4m3.e4m3", 16, 16, 17, 18, "1, 1")
PTX_WGMMA_RS(e4m3_n32, "m64n32k32.f32.e4m3.e4m3", 16, 16, 17, 18, 19, 20, 21, "1, 1")
PTX_WGMMA_SS(e4m3_n64, "m64n64k32.f32.e4m3.e4m3", 32, 32, 33, 34, "1, 1")
PTX_WGMMA_RS(e4m3_n64, "m64n64k32.f32.e4m3.e4m3", 32, 32, 33, 34, 35, 36, 37, "1, 1")
PTX_WGMMA_SS(e4m3_n128, "m64n128k32.f32.e4m3.e4m3", 64, 64, 65, 66, "1, 1")
PTX_WGMMA_RS(e4m3_n128, "m64n128k32.f32.e4m3.e4m3", 64, 64, 65, 66, 67, 68, 69, "1, 1")
PTX_WGMMA_SS(e4m3_n256, "m64n256k32.f32.e4m3.e4m3", 128, 128, 129, 130, "1, 1")
PTX_WGMMA_SS(bf16_n16, "m64n16k16.f32.bf16.bf16", 8, 8, 9, 10, "1, 1, 0, 0")
PTX_WGMMA_SS(bf16_n32, "m64n32k16.f32.bf16.bf16", 16, 16, 17, 18, "1, 1, 0, 0")
PTX_WGMMA_SS(bf16_n64, "m64n64k16.f32.bf16.bf16", 32, 32, 33, 34, "1, 1, 0, 0")
PTX_WGMMA_RS(bf16_n64, "m64n64k16.f32.bf16.bf16", 32, 32, 33, 34, 35, 36, 37, "1, 1, 0")
PTX_WGMMA_SS(bf16_n128, "m64n128k16.f32.bf16.bf16", 64, 64, 65, 66, "1, 1, 0, 0")
PTX_WGMMA_RS(bf16_n128, "m64n128k16.f32.bf16.bf16", 64, 64, 65, 66, 67, 68, 69, "1, 1, 0")
PTX_WGMMA_SS(bf16_n256, "m64n256k16.f32.bf16.bf16", 128, 128, 129, 130, "1, 1, 0, 0")
PTX_WGMMA_RS(bf16_n128_nmajor, "m64n128k16.f32.bf16.bf16", 64, 64, 65, 66, 67, 68, 69, "1, 1, 1")
PTX_WGMMA_RS(bf16_n256_nmajor, "m64n256k16.f32.bf16.bf16", 128, 128, 129, 130, 131, 132, 133,
             "1, 1, 1")
PTX_WGMMA_SS(bf16_n256_nmajor, "m64n256k16.f32.bf16.bf16", 128, 128, 129, 130, "1, 1, 0, 1")

#undef PTX_WGMMA_SS
#undef PTX_WGMMA_RS

} // namespace ptx
