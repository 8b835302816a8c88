/* avx512_e4m3.h - decodes e4m3 to bf16 exactly, by two look-ups of a byte in tables of 128 codes.
 * Needs VBMI. */
#ifndef SNAPMLA_KERNELS_CPU_AVX512_E4M3_H
#define SNAPMLA_KERNELS_CPU_AVX512_E4M3_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/vec.h"
#include "kernels/formats.h"

enum { kTableBytes = 256 };

/* Fills @bytes with the upper bytes of the values in bf16, then with the lower bytes. */
static void make_tables(uint8_t *bytes) {
    for (int code = 0; code < 128; code++) {
        uint16_t u = bf16_from_f32(e4m3_to_f32((uint8_t)code));
        bytes[code] = (uint8_t)(u >> 8);
        bytes[128 + code] = (uint8_t)u;
    }
}

/* The decoding tables in registers: upper and lower bytes, 64 codes in each register. */
typedef struct {
    __m512i high[2], low[2];
} tables;

INLINE tables load_tables(const uint8_t *bytes) {
    return (tables){{_mm512_load_si512(bytes), _mm512_load_si512(bytes + 64)},
                    {_mm512_load_si512(bytes + 128), _mm512_load_si512(bytes + 192)}};
}

/* The bytes of 64 bf16 numbers. */
typedef struct {
    __m512i high, low;
} e4m3_bytes;

INLINE __m512i look_up_high(tables t, __m512i codes) {
    return _mm512_permutex2var_epi8(t.high[0], codes, t.high[1]);
}

INLINE __m512i look_up_low(tables t, __m512i codes) {
    return _mm512_permutex2var_epi8(t.low[0], codes, t.low[1]);
}

/* Sets the signs of upper bytes, which look_up_high() leaves out. */
INLINE __m512i copy_sign(__m512i high, __m512i codes) {
    return _mm512_or_si512(high, _mm512_and_si512(codes, _mm512_set1_epi8(-128)));
}

INLINE e4m3_bytes look_up(tables t, __m512i codes) {
    return (e4m3_bytes){copy_sign(look_up_high(t, codes), codes), look_up_low(t, codes)};
}

/* Decodes 64 codes to 64 bf16 numbers in unpack order: first the even groups of eight codes, then
 * the odd ones. */
INLINE void decode_lanes(tables t, __m512i codes, __m512i out[2]) {
    e4m3_bytes bytes = look_up(t, codes);
    out[0] = _mm512_unpacklo_epi8(bytes.low, bytes.high);
    out[1] = _mm512_unpackhi_epi8(bytes.low, bytes.high);
}

/* Permutes the quadwords of 64 codes, so that unpack restores their order. */
INLINE __m512i deal_codes(__m512i codes) {
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), codes);
}

/* Decodes 64 codes to 64 bf16 numbers in order. */
INLINE void decode_64(tables t, __m512i codes, __m512i out[2]) {
    decode_lanes(t, deal_codes(codes), out);
}

/* Decodes @n codes, a multiple of 32. */
INLINE void decode_codes(tables t, uint16_t *out, const uint8_t *in, size_t n) {
    __m512i words[2];
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        decode_64(t, _mm512_loadu_si512(in + i), words);
        _mm512_storeu_si512(out + i, words[0]);
        _mm512_storeu_si512(out + i + 32, words[1]);
    }
    if (i < n) {
        decode_64(t, _mm512_maskz_loadu_epi8(0xffffffffu, in + i), words);
        _mm512_storeu_si512(out + i, words[0]);
    }
}

#endif
