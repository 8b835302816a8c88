/* avx512_order.h - restores the order of the columns of a result. Vectors of 512 bits are
 * interleaved within parts of 128 bits, which leaves the columns of V in another order. */
#ifndef SNAPMLA_KERNELS_CPU_AVX512_ORDER_H
#define SNAPMLA_KERNELS_CPU_AVX512_ORDER_H

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/vec.h"

/* After words of 16 bits were interleaved. @n is a multiple of 32. */
INLINE void order_columns(float *o, int64_t n) {
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i second =
        _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    for (int64_t i = 0; i < n; i += 32) {
        __m512 low = _mm512_loadu_ps(o + i), high = _mm512_loadu_ps(o + i + LANES);
        _mm512_storeu_ps(o + i, _mm512_permutex2var_ps(low, first, high));
        _mm512_storeu_ps(o + i + LANES, _mm512_permutex2var_ps(low, second, high));
    }
}

/* After decoding has left bytes interleaved, too: transposes 4 x 4 groups of four columns. @n is a
 * multiple of 64. */
INLINE void order_lanes(float *o, int64_t n) {
    for (int64_t i = 0; i < n; i += 4 * LANES) {
        __m512 a = _mm512_loadu_ps(o + i), b = _mm512_loadu_ps(o + i + LANES);
        __m512 c = _mm512_loadu_ps(o + i + 2 * LANES), d = _mm512_loadu_ps(o + i + 3 * LANES);
        __m512 low_ab = _mm512_shuffle_f32x4(a, b, 0x44), low_cd = _mm512_shuffle_f32x4(c, d, 0x44);
        __m512 high_ab = _mm512_shuffle_f32x4(a, b, 0xee);
        __m512 high_cd = _mm512_shuffle_f32x4(c, d, 0xee);
        _mm512_storeu_ps(o + i, _mm512_shuffle_f32x4(low_ab, low_cd, 0x88));
        _mm512_storeu_ps(o + i + LANES, _mm512_shuffle_f32x4(low_ab, low_cd, 0xdd));
        _mm512_storeu_ps(o + i + 2 * LANES, _mm512_shuffle_f32x4(high_ab, high_cd, 0x88));
        _mm512_storeu_ps(o + i + 3 * LANES, _mm512_shuffle_f32x4(high_ab, high_cd, 0xdd));
    }
}

#endif
