/* e4m3_half.h - decodes e4m3 to FP32 through half precision, 16 codes at a time. Needs AVX2 and
 * F16C.
 *
 * If the seven magnitude bits of a code are moved to the exponent and mantissa of a half, the half
 * is the number's magnitude times 2^-8, also if the number is subnormal. NaN (0x7f) is the
 * exception. */
#ifndef SNAPMLA_KERNELS_CPU_E4M3_HALF_H
#define SNAPMLA_KERNELS_CPU_E4M3_HALF_H

#include <immintrin.h>
#include <stdint.h>

/* Decodes @n codes, a multiple of 16. */
static void decode_e4m3(float *out, const uint8_t *in, int n) {
    const __m256i both = _mm256_set1_epi16((short)0xbfff), magnitude = _mm256_set1_epi16(0x3fff);
    const __m256i largest = _mm256_set1_epi16(0x3f00), nan = _mm256_set1_epi16(0x7e00);
    const __m256 scale = _mm256_set1_ps(0x1p8f);
    for (int i = 0; i < n; i += 16) {
        __m128i codes = _mm_loadu_si128((const __m128i *)(const void *)(in + i));
        __m256i half = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7);
        half = _mm256_and_si256(half, both); /* bit 14 held a second copy of the sign */
        __m256i is_nan = _mm256_cmpgt_epi16(_mm256_and_si256(half, magnitude), largest);
        half = _mm256_or_si256(half, _mm256_and_si256(is_nan, nan));
        __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
        __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
        _mm256_storeu_ps(out + i, _mm256_mul_ps(low, scale));
        _mm256_storeu_ps(out + i + 8, _mm256_mul_ps(high, scale));
    }
}

#endif
