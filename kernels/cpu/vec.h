/* vec.h - a vector of floats. The including file chooses its width.
 *
 * An including file compiles for one instruction set and defines
 *   LANES           floats in a vector: 4, 8 or 16
 *   VF_FMA(a,b,c)   a * b + c
 *   VF_MAX(a,b)     the larger; b if either is a NaN
 * and, if its instruction set has such instructions,
 *   VF_ROUND(x)     the nearest integer, ties to even
 *   VF_SCALE(x,p,n) p * 2^n; 0 if x < -126 */
#ifndef SNAPMLA_KERNELS_CPU_VEC_H
#define SNAPMLA_KERNELS_CPU_VEC_H

#include <stdint.h>

/* The analyzer of gcc 12 mistakes the number of lanes for the width of a lane. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic ignored "-Wanalyzer-shift-count-overflow"
#endif

#define INLINE static inline __attribute__((always_inline))

/* Stands before a function that would take registers from the loops of its caller. */
#define NOINLINE __attribute__((noinline))

/* UNROLL stands before a short loop over an array of vectors. The loop must be unrolled completely,
 * or the compiler keeps the array in memory instead of registers. With the address sanitizer,
 * loops are not unrolled: each copy of a loop would have checks of its own, and gcc would take five
 * times as long. */
#if defined __clang__
#define UNROLL   _Pragma("unroll")
#define UNROLL_2 _Pragma("unroll 2")
#define UNROLL_8 _Pragma("unroll 8")
#define ROLLED   _Pragma("nounroll")
#elif defined __SANITIZE_ADDRESS__
#define UNROLL   _Pragma("GCC unroll 1")
#define UNROLL_2 UNROLL
#define UNROLL_8 UNROLL
#define ROLLED   UNROLL
#else
#define UNROLL   _Pragma("GCC unroll 32")
#define UNROLL_2 _Pragma("GCC unroll 2")
#define UNROLL_8 _Pragma("GCC unroll 8")
#define ROLLED                                                                                     \
    _Pragma("GCC unroll 1") /* keeps the code of a loop nest small enough for the
                               instruction cache */
#endif

enum { kLine = 64 }; /* bytes of a cache line */

typedef float vf __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t vi __attribute__((vector_size(4 * LANES), may_alias));
typedef uint32_t vu __attribute__((vector_size(4 * LANES), may_alias));
typedef uint16_t vu16 __attribute__((vector_size(2 * LANES), may_alias, aligned(2)));
typedef uint8_t vu8 __attribute__((vector_size(LANES), may_alias, aligned(1)));
typedef float vf_any __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));
typedef int32_t vi_any __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));

static inline vf vf_load(const float *p) {
    return *(const vf_any *)p;
}

static inline void vf_store(float *p, vf x) {
    *(vf_any *)p = x;
}

/* Makes the compiler treat x as used. */
static inline void vf_keep(vf x) {
    float sink[LANES];
    vf_store(sink, x);
    __asm__ volatile("" : : "r"(sink) : "memory");
}

static inline vf vf_set(float x) {
    return x - (vf){0};
}

static inline vu vu_select(vi mask, vu yes, vu no) {
    return ((vu)mask & yes) | (~(vu)mask & no);
}

/* Loads LANES bf16 numbers as FP32: the 16 bits become the upper half. */
static inline vf vf_load_bf16(const uint16_t *p) {
    return (vf)(__builtin_convertvector(*(const vu16 *)p, vu) << 16);
}

static inline vf vf_select(vi mask, vf yes, vf no) {
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

/* 2^f for f in -0.5 .. 0.5: a polynomial of degree 6 with a relative error below 3e-9. */
static inline vf vf_exp2_fraction(vf f) {
    vf p = VF_FMA(f, vf_set(1.534581216e-4f), vf_set(1.339993121e-3f));
    p = VF_FMA(p, f, vf_set(9.618488957e-3f));
    p = VF_FMA(p, f, vf_set(5.550328777e-2f));
    p = VF_FMA(p, f, vf_set(2.402264689e-1f));
    p = VF_FMA(p, f, vf_set(6.931472057e-1f));
    return VF_FMA(p, f, vf_set(1.0f));
}

/* 2^x for x <= 0, relative error 1e-7; 0 if x < -126; NaN if x is NaN. Both versions give the same
 * bits. */
#ifdef VF_SCALE
static inline vf vf_exp2(vf x) {
    vf n = VF_ROUND(x);
    return VF_SCALE(x, vf_exp2_fraction(x - n), n);
}
#else
static inline vf vf_exp2(vf x) {
    const vf magic = vf_set(0x1.8p23f);
    vi tiny = x < -126.0f;
    x = VF_MAX(vf_set(-126.0f), x);
    vf n = (x + magic) - magic;
    vu power = ((vu) __builtin_convertvector(n, vi) + 127u) << 23;
    return (vf)(~tiny & (vi)(vf_exp2_fraction(x - n) * (vf)power));
}
#endif

/* Rounds x in 0 .. 448 to the nearest e4m3 value, ties to even. Adding a power of two that is 2^20
 * times the power of two of x leaves three bits of mantissa in the sum. Below 2^-6 the step stays
 * 2^-9. */
static inline vf vf_round_e4m3(vf x) {
    vf power = (vf)((vi)x & 0x7f800000);
    vu shift = (vu)VF_MAX(power, vf_set(0x1p-6f)) + (20u << 23);
    return (x + (vf)shift) - (vf)shift;
}

#endif
