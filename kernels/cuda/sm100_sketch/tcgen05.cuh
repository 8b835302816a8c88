/* tcgen05.cuh - PTX of compute capability 10.0 for the loops of this folder. Never run.
 *
 * Tensor memory has 128 lanes x 512 columns of 32 bits. An address has the lane in bits 16 to 31
 * and the column in bits 0 to 15. A warp reaches the lanes 32 (warp % 4) to 32 (warp % 4) + 31.
 * One thread issues an MMA. It completes asynchronously, and commit() arrives at an mbarrier after
 * all MMAs that the thread issued before. With Ctas = 2, the MMA runs on the SMs of a CTA pair, and
 * only the even CTA of the pair issues it.
 * Source: PTX ISA 8.7, "TensorCore 5th Generation Family Instructions". */
#pragma once
#include <cstdint>

#include "kernels/cuda/ptx/barrier.cuh"

namespace tcgen05 {

/* Descriptor of an operand in shared memory with 128-byte swizzle. `at`: its address. Groups of 8
 * rows of 128 bytes follow each other. */
__device__ __forceinline__ uint64_t operand_128(uint32_t at) {
    const uint64_t version = 1, swizzle_128 = 2;
    return (at >> 4) | 1ull << 16 | uint64_t(1024 >> 4) << 32 | version << 46 | swizzle_128 << 61;
}

/* The same without swizzle: units of 8 x 16 bytes. `along`, `across`: bytes between units in the
 * two directions. */
__device__ __forceinline__ uint64_t operand_plain(uint32_t at, uint32_t along, uint32_t across) {
    return (at >> 4) | uint64_t(along >> 4) << 16 | uint64_t(across >> 4) << 32 | 1ull << 46;
}

/* Instruction descriptors. Sums are FP32. `b_rows`: B is stored with its N dimension contiguous;
 * likewise `a_rows`. */
__device__ constexpr uint32_t shape_bits(int m, int n) {
    return uint32_t(n >> 3) << 17 | uint32_t(m >> 4) << 24;
}
__device__ constexpr uint32_t e4m3_by_e4m3(int m, int n, bool a_rows, bool b_rows) {
    return 1u << 4 | uint32_t(a_rows) << 15 | uint32_t(b_rows) << 16 | shape_bits(m, n);
}
__device__ constexpr uint32_t bf16_by_bf16(int m, int n) {
    return 1u << 4 | 1u << 7 | 1u << 10 | shape_bits(m, n);
}
__device__ constexpr uint32_t nvfp4_by_nvfp4(int m, int n) { /* e2m1 with e4m3 scales */
    return 1u << 7 | 1u << 10 | shape_bits(m, n);
}

template <int Ctas>
__device__ __forceinline__ void alloc(uint32_t *to, uint32_t columns) { /* one warp */
    if constexpr (Ctas == 1)
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                         ptx::smem_addr(to)),
                     "r"(columns)
                     : "memory");
    else
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                         ptx::smem_addr(to)),
                     "r"(columns)
                     : "memory");
}

template <int Ctas>
__device__ __forceinline__ void dealloc(uint32_t at, uint32_t columns) { /* the same warp */
    if constexpr (Ctas == 1)
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(at),
                     "r"(columns));
    else
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(at),
                     "r"(columns));
}

__device__ __forceinline__ void fence_before() {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void fence_after() {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/* D = A B, or D += A B if `add`. */
#define SNAPMLA_MMA(name, text, a_type, a_name)                                                    \
    __device__ __forceinline__ void name(uint32_t d, a_type a, uint64_t b, uint32_t shape,         \
                                         bool add) {                                               \
        asm volatile("{ .reg .pred p;\n"                                                           \
                     "setp.ne.b32 p, %4, 0;\n" text " p; }" ::"r"(d),                              \
                     a_name(a), "l"(b), "r"(shape), "r"(uint32_t(add))                             \
                     : "memory");                                                                  \
    }
SNAPMLA_MMA(mma_fp8_pair, "tcgen05.mma.cta_group::2.kind::f8f6f4 [%0], %1, %2, %3,", uint64_t, "l")
SNAPMLA_MMA(mma_bf16_pair, "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3,", uint64_t, "l")
SNAPMLA_MMA(mma_fp8, "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3,", uint64_t, "l")
SNAPMLA_MMA(mma_bf16, "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3,", uint64_t, "l")
/* A is in tensor memory. */
SNAPMLA_MMA(mma_fp8_tmem, "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], [%1], %2, %3,", uint32_t,
            "r")
#undef SNAPMLA_MMA

/* Both operands are e2m1, with one e4m3 scale for 16 numbers of K. Scales are in tensor memory. */
#define SNAPMLA_MMA_NVFP4(name, group)                                                             \
    __device__ __forceinline__ void name(uint32_t d, uint64_t a, uint64_t b, uint32_t shape,       \
                                         uint32_t scales_a, uint32_t scales_b, bool add) {         \
        asm volatile("{ .reg .pred p;\n"                                                           \
                     "setp.ne.b32 p, %6, 0;\n"                                                     \
                     "tcgen05.mma.cta_group::" group ".kind::mxf4nvf4.block_scale.scale_vec::4X "  \
                     "[%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(d),                                \
                     "l"(a), "l"(b), "r"(shape), "r"(scales_a), "r"(scales_b), "r"(uint32_t(add))  \
                     : "memory");                                                                  \
    }
SNAPMLA_MMA_NVFP4(mma_nvfp4, "1")
SNAPMLA_MMA_NVFP4(mma_nvfp4_pair, "2")
#undef SNAPMLA_MMA_NVFP4

/* Copies 32 lanes x 128 bits of scales from shared memory to all four groups of 32 lanes. */
__device__ __forceinline__ void copy_scales(uint32_t to, uint64_t from) {
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from)
                 : "memory");
}
__device__ __forceinline__ void copy_scales_pair(uint32_t to, uint64_t from) { /* in both CTAs */
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from)
                 : "memory");
}

__device__ __forceinline__ void commit(uint64_t *bar) {
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
            ptx::smem_addr(bar))
        : "memory");
}
__device__ __forceinline__ void commit_pair(uint64_t *bar) { /* in both CTAs */
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
                 ".multicast::cluster.b64 [%0], %1;" ::"r"(ptx::smem_addr(bar)),
                 "h"(uint16_t(3))
                 : "memory");
}

/* A thread reads 32 columns of its lane, or writes them. */
#define SNAPMLA_32(x, i)                                                                           \
    x(v[i + 0]), x(v[i + 1]), x(v[i + 2]), x(v[i + 3]), x(v[i + 4]), x(v[i + 5]), x(v[i + 6]),     \
        x(v[i + 7])
__device__ __forceinline__ void load_32(uint32_t (&v)[32], uint32_t at) {
#define OUT(e) "=r"(e)
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
                 "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
                 : SNAPMLA_32(OUT, 0), SNAPMLA_32(OUT, 8), SNAPMLA_32(OUT, 16), SNAPMLA_32(OUT, 24)
                 : "r"(at));
#undef OUT
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void store_32(uint32_t at, const uint32_t (&v)[32]) {
#define IN(e) "r"(e)
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
        "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31};" ::SNAPMLA_32(IN,
                                                                                              0),
        SNAPMLA_32(IN, 8), SNAPMLA_32(IN, 16), SNAPMLA_32(IN, 24), "r"(at)
        : "memory");
#undef IN
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}
/* Writes 16 columns without waiting. */
__device__ __forceinline__ void store_16(uint32_t at, const uint32_t (&v)[16]) {
#define IN(e) "r"(e)
    asm volatile("tcgen05.st.sync.aligned.32x32b.x16.b32 [%16], {%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15};" ::SNAPMLA_32(IN, 0),
                 SNAPMLA_32(IN, 8), "r"(at)
                 : "memory");
#undef IN
}
#undef SNAPMLA_32

/* Writes 16 lanes x 8 columns: thread t has lanes t / 4 and t / 4 + 8. */
__device__ __forceinline__ void store_fragment(uint32_t at, const uint32_t (&v)[4]) {
    asm volatile("tcgen05.st.sync.aligned.16x128b.x2.b32 [%4], {%0, %1, %2, %3};" ::"r"(v[0]),
                 "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(at)
                 : "memory");
}
__device__ __forceinline__ void wait_stores() {
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

/* The even CTA's barrier at the place of `bar`. */
__device__ __forceinline__ uint32_t barrier_of_even(const uint64_t *bar) {
    uint32_t at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(at) : "r"(ptx::smem_addr(bar)));
    return at;
}
__device__ __forceinline__ void arrive_at(uint32_t bar) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar)
                 : "memory");
}
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/* Four floats to four e4m3 numbers; the first is the lowest byte. */
__device__ __forceinline__ uint32_t pack_e4m3(float a, float b, float c, float d) {
    uint32_t all;
    asm("{ .reg .b16 x, y;\n"
        "cvt.rn.satfinite.e4m3x2.f32 x, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 y, %4, %3;\n"
        "mov.b32 %0, {x, y}; }"
        : "=r"(all)
        : "f"(a), "f"(b), "f"(c), "f"(d));
    return all;
}

} // namespace tcgen05
