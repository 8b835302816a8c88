/* element_code.h - element_encode() and element_decode() of element.h as inline functions, which
 * CUDA kernels can call, too. The host and a device compute the same bits: no function of libm is
 * called whose results may differ, and no product is added to a number, so no compiler can fuse the
 * two operations. */
#ifndef SNAPMLA_KERNELS_FORMAT_ELEMENT_CODE_H
#define SNAPMLA_KERNELS_FORMAT_ELEMENT_CODE_H

#include <math.h>
#include <string.h>

#include "kernels/format/element.h"

/* An inline function for the host and, when nvcc compiles it, for devices. */
#ifdef __CUDACC__
#define FORMAT_INLINE static inline __host__ __device__
#else
#define FORMAT_INLINE static inline
#endif

/* A floating-point type has a sign bit, an exponent field and @mantissa stored bits, and its
 * smallest normal number is 2^e_min. ue8m0 and the integers have functions of their own, which use
 * only @bits and @largest. */
typedef struct {
    int bits, mantissa, e_min;
    float largest; /* largest finite magnitude */
    bool infinite; /* encoding larger numbers gives infinity; false: gives the largest number */
    int nan;       /* the code of a NaN, without the sign; -1: none, a NaN gets the code 0 */
} element_spec;

FORMAT_INLINE element_spec element_spec_of(element_type t) {
    static const element_spec specs[ELEMENT_TYPES] = {
        {16, 7, -126, 0x1.fep127f, true, 0x7fc0},          /* bf16 */
        {16, 10, -14, 65504.0f, true, 0x7e00},             /* fp16 */
        {32, 23, -126, 0x1.fffffep127f, true, 0x7fc00000}, /* fp32 */
        {8, 3, -6, 448.0f, false, 0x7f},                   /* e4m3fn */
        {8, 3, -7, 240.0f, false, 0x80},                   /* e4m3fnuz */
        {8, 2, -14, 57344.0f, false, 0x7e},                /* e5m2 */
        {4, 1, 0, 6.0f, false, -1},                        /* e2m1 */
        {8, 0, -127, 0x1p127f, false, 0xff},               /* ue8m0 */
        {8, 0, 0, 127.0f, false, -1},                      /* int8 */
        {4, 0, 0, 7.0f, false, -1},                        /* int4 */
    };
    return specs[t];
}

/* 2^e, for e of a normal number of FP64. */
FORMAT_INLINE double element_power(int e) {
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* floor(log2 x) of a finite number x > 0. For a subnormal number or 0 it is -1023. */
FORMAT_INLINE int element_exponent(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52) - 1023;
}

/* Encodes a magnitude up to the largest one. Codes in ascending order have values in ascending
 * order. So if rounding carries out of the mantissa field, adding the carry to the exponent field
 * gives the right code. */
FORMAT_INLINE uint32_t element_encode_magnitude(element_spec s, double x) {
    int e = element_exponent(x);
    e = e < s.e_min ? s.e_min : e;
    uint32_t steps = (uint32_t)nearbyint(x * element_power(s.mantissa - e));
    return ((uint32_t)(e - s.e_min) << s.mantissa) + steps;
}

/* Whether element_encode_short(), which is faster, may encode @x: @x is exactly a number of FP32,
 * normal in the type, and not above the type's largest number. */
FORMAT_INLINE bool element_is_short(element_spec s, double x) {
    double magnitude = fabs(x);
    return (double)(float)x == x && s.mantissa < 23 && magnitude <= (double)s.largest &&
           magnitude >= element_power(s.e_min);
}

/* Encodes a number for which element_is_short() holds. Rounds the mantissa of its FP32 bits, ties
 * to even, and changes the exponent's bias. A carry out of the mantissa correctly increments the
 * exponent, as in element_encode_magnitude(). */
FORMAT_INLINE uint32_t element_encode_short(element_spec s, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 31 << (s.bits - 1), magnitude = bits & 0x7fffffffu;
    int drop = 23 - s.mantissa;
    magnitude = (magnitude + (1u << (drop - 1)) - 1u + (magnitude >> drop & 1u)) >> drop;
    return sign | (magnitude - ((uint32_t)(126 + s.e_min) << s.mantissa));
}

FORMAT_INLINE uint32_t element_encode_float(element_spec s, double x) {
    if (element_is_short(s, x))
        return element_encode_short(s, (float)x);
    uint32_t sign = signbit(x) ? 1u << (s.bits - 1) : 0u;
    if (isnan(x))
        return s.nan < 0 ? 0u : sign | (uint32_t)s.nan;
    double magnitude = fabs(x), largest = (double)s.largest;
    if (magnitude <= largest)
        return sign | element_encode_magnitude(s, magnitude);
    uint32_t most = element_encode_magnitude(s, largest);
    /* The number half a step beyond the largest is a tie. Its even neighbour is infinity. */
    double step = element_power(element_exponent(largest) - s.mantissa);
    return sign | (s.infinite && magnitude >= largest + step / 2.0 ? most + 1u : most);
}

/* The smallest power of two that is not below @x, as its exponent + 127. 2^-127 for smaller
 * numbers, and the NaN 0xff for a NaN and for numbers above 2^127. */
FORMAT_INLINE uint32_t element_encode_ue8m0(double x) {
    if (isnan(x) || x > 0x1p127)
        return 0xff;
    if (x <= 0x1p-127)
        return 0;
    int e = element_exponent(x);
    return (uint32_t)(element_power(e) < x ? e + 128 : e + 127);
}

FORMAT_INLINE uint32_t element_encode_integer(element_spec s, double x) {
    if (isnan(x))
        return 0;
    double least = -(double)s.largest - 1.0;
    double rounded = nearbyint(fmin(fmax(x, least), (double)s.largest));
    return (uint32_t)(int32_t)rounded & ((1u << s.bits) - 1u);
}

FORMAT_INLINE bool element_integer(element_type t) {
    return t == ELEMENT_INT8 || t == ELEMENT_INT4;
}

FORMAT_INLINE uint32_t element_code(element_type t, double x) {
    element_spec s = element_spec_of(t);
    if (t == ELEMENT_UE8M0)
        return element_encode_ue8m0(x);
    if (element_integer(t))
        return element_encode_integer(s, x);
    uint32_t code = element_encode_float(s, x);
    bool fnuz = t == ELEMENT_E4M3FNUZ; /* the code of -0 is its NaN */
    return fnuz && isnan(x) ? 0x80u : fnuz && code == 0x80u ? 0u : code;
}

FORMAT_INLINE float element_decode_float(element_spec s, uint32_t code) {
    uint32_t sign = code >> (s.bits - 1), magnitude = code & ~(1u << (s.bits - 1));
    int e = (int)(magnitude >> s.mantissa);
    uint32_t m = magnitude & ((1u << s.mantissa) - 1u);
    double x = e == 0
                   ? (double)m * element_power(s.e_min - s.mantissa)
                   : (double)(m + (1u << s.mantissa)) * element_power(s.e_min - s.mantissa + e - 1);
    if (x > (double)s.largest)
        x = m == 0 ? (double)INFINITY : (double)NAN;
    return (float)(sign ? -x : x);
}

FORMAT_INLINE float element_float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FORMAT_INLINE float element_value(element_type t, uint32_t code) {
    element_spec s = element_spec_of(t);
    if (s.bits < 32)
        code &= (1u << s.bits) - 1u;
    if (t == ELEMENT_FP32)
        return element_float_of_bits(code);
    if (t == ELEMENT_BF16)
        return element_float_of_bits(code << 16);
    if (t == ELEMENT_UE8M0)
        return code == 0xff ? NAN : (float)element_power((int)code - 127);
    if (element_integer(t)) {
        int half = 1 << (s.bits - 1);
        return (float)((int)(code ^ (uint32_t)half) - half);
    }
    if (t == ELEMENT_E4M3FNUZ && code == 0x80)
        return NAN;
    return element_decode_float(s, code);
}

/* The value of the type that is nearest to @x. */
FORMAT_INLINE float element_nearest(element_type t, double x) {
    return element_value(t, element_code(t, x));
}

#endif
