/* amx_vectors.h - AVX-512 operations of the AMX kernel: decoding e4m3, writing the layouts of
 * tiles, and the parts of an exponential. amx_emulated_vectors.h has the same functions without
 * AVX-512. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_VECTORS_H
#define SNAPMLA_KERNELS_CPU_AMX_VECTORS_H

#include <immintrin.h>

#include "kernels/cpu/avx512_e4m3.h"
#include "kernels/cpu/avx512_order.h"
#include "kernels/cpu/vec.h"

/* ---- e4m3 ----------------------------------------------------------------------------------- */

/* A number for each code: at most kNormal if the code is a normal number (its lower seven bits are
 * 8 to 126), and more for zero, a subnormal number or NaN. */
enum { kNormal = 2 * (126 - 8) };
INLINE __m512i beyond_normal(__m512i codes) {
    return _mm512_sub_epi8(_mm512_add_epi8(codes, codes), _mm512_set1_epi8(2 * 8));
}

INLINE bool all_normal(__m512i beyond) {
    return _mm512_cmpgt_epu8_mask(beyond, _mm512_set1_epi8((char)kNormal)) == 0;
}

/* Decodes @n codes, a multiple of 64, if all are normal numbers. Otherwise returns false, and the
 * results of the other codes are wrong. A normal number has the same mantissa in bf16, and an
 * exponent that is larger by 120: if the four bits of its exponent are e, f, g, h, then those in
 * bf16 are e, four times the complement of e, f, g, h. GF2P8AFFINEQB computes each bit of a byte
 * from bits of the code. It does not run on the port of the shuffles, which a look-up needs. */
INLINE bool decode_normal(uint16_t *out, const uint8_t *in, size_t n, bool sorted) {
    const __m512i to_low = _mm512_set1_epi64(0x01020408);
    const __m512i to_high = _mm512_set1_epi64(0x1020404040404080);
    __m512i largest = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += 64) {
        __m512i codes = _mm512_loadu_si512(in + i);
        codes = sorted ? deal_codes(codes) : codes;
        __m512i low = _mm512_gf2p8affine_epi64_epi8(codes, to_low, 0);
        __m512i high = _mm512_gf2p8affine_epi64_epi8(codes, to_high, 0x3c);
        largest = _mm512_max_epu8(largest, beyond_normal(codes));
        _mm512_storeu_si512(out + i, _mm512_unpacklo_epi8(low, high));
        _mm512_storeu_si512(out + i + 32, _mm512_unpackhi_epi8(low, high));
    }
    return all_normal(largest);
}

/* Decodes those 64 codes of @n again that have another magnitude. */
static NOINLINE void decode_others(const uint8_t *bytes, uint16_t *out, const uint8_t *in, size_t n,
                                   bool sorted) {
    tables t = load_tables(bytes);
    for (size_t i = 0; i < n; i += 64) {
        __m512i codes = _mm512_loadu_si512(in + i), words[2];
        if (all_normal(beyond_normal(codes)))
            continue;
        decode_lanes(t, sorted ? deal_codes(codes) : codes, words);
        _mm512_storeu_si512(out + i, words[0]);
        _mm512_storeu_si512(out + i + 32, words[1]);
    }
}

/* Decodes @n codes, a multiple of 32. If not @sorted, each group of 64 is in unpack order
 * (decode_lanes()). */
static void decode_e4m3(const uint8_t *bytes, uint16_t *out, const uint8_t *in, size_t n,
                        bool sorted) {
    size_t whole = n / 64 * 64;
    bool normal =
        sorted ? decode_normal(out, in, whole, true) : decode_normal(out, in, whole, false);
    if (!normal)
        decode_others(bytes, out, in, whole, sorted);
    if (whole < n)
        decode_codes(load_tables(bytes), out + whole, in + whole, n - whole);
}

/* ---- layouts of tiles ----------------------------------------------------------------------- */

INLINE void interleave_tiles(uint32_t *to, const uint16_t *even, const uint16_t *odd, size_t tiles,
                             bool sorted) {
    const __m512i deal = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    for (size_t i = 0; i < tiles; i += 2, to += 512) {
        __m512i a = _mm512_loadu_si512(even + i * 16), b = _mm512_loadu_si512(odd + i * 16);
        a = sorted ? _mm512_permutexvar_epi64(deal, a) : a;
        b = sorted ? _mm512_permutexvar_epi64(deal, b) : b;
        _mm512_store_si512(to, _mm512_unpacklo_epi16(a, b));
        _mm512_store_si512(to + 256, _mm512_unpackhi_epi16(a, b));
    }
}

/* Interleaves two rows of bf16 numbers: row j of V's tiles, each of which has 16 columns. The
 * instructions unpack work within 128 bits. So the quadwords are permuted first if the columns must
 * stay @sorted. */
static void interleave(uint32_t *to, const uint16_t *even, const uint16_t *odd, size_t tiles,
                       bool sorted) {
    if (sorted)
        interleave_tiles(to, even, odd, tiles, true);
    else
        interleave_tiles(to, even, odd, tiles, false);
}

/* Sorts the @n columns of a row of O. */
static void sort_columns(float *o, size_t n, bool decoded) {
    size_t whole = decoded ? n / 64 * 64 : 0;
    order_lanes(o, (int64_t)whole);
    order_columns(o + whole, (int64_t)(n - whole));
}

/* The first half of a transposition of 16 rows of 16 words, which lie @apart words from each other,
 * for the four rows from @i on. Column 4 l + j of these rows goes to lane l of half[i + j]. */
INLINE void transpose_within(__m512i *half, const uint32_t *from, size_t apart, int i) {
    const uint32_t *row = from + (size_t)i * apart;
    __m512i row0 = _mm512_loadu_si512(row), row1 = _mm512_loadu_si512(row + apart);
    __m512i row2 = _mm512_loadu_si512(row + 2 * apart), row3 = _mm512_loadu_si512(row + 3 * apart);
    __m512i low0 = _mm512_unpacklo_epi32(row0, row1), high0 = _mm512_unpackhi_epi32(row0, row1);
    __m512i low1 = _mm512_unpacklo_epi32(row2, row3), high1 = _mm512_unpackhi_epi32(row2, row3);
    half[i] = _mm512_unpacklo_epi64(low0, low1);
    half[i + 1] = _mm512_unpackhi_epi64(low0, low1);
    half[i + 2] = _mm512_unpacklo_epi64(high0, high1);
    half[i + 3] = _mm512_unpackhi_epi64(high0, high1);
}

/* The second half: writes the columns j, 4 + j, 8 + j and 12 + j. */
INLINE void transpose_across(uint32_t *to, const __m512i *half, int j) {
    __m512i even0 = _mm512_shuffle_i32x4(half[j], half[4 + j], 0x88);
    __m512i odd0 = _mm512_shuffle_i32x4(half[j], half[4 + j], 0xdd);
    __m512i even1 = _mm512_shuffle_i32x4(half[8 + j], half[12 + j], 0x88);
    __m512i odd1 = _mm512_shuffle_i32x4(half[8 + j], half[12 + j], 0xdd);
    _mm512_store_si512(to + (0 + j) * 16, _mm512_shuffle_i32x4(even0, even1, 0x88));
    _mm512_store_si512(to + (4 + j) * 16, _mm512_shuffle_i32x4(odd0, odd1, 0x88));
    _mm512_store_si512(to + (8 + j) * 16, _mm512_shuffle_i32x4(even0, even1, 0xdd));
    _mm512_store_si512(to + (12 + j) * 16, _mm512_shuffle_i32x4(odd0, odd1, 0xdd));
}

/* Turns 16 rows of 16 words, which lie @apart words from each other, into 16 columns. */
INLINE void transpose(uint32_t *to, const uint32_t *from, size_t apart) {
    __m512i half[16] = {{0}};
    UNROLL
    for (int i = 0; i < 16; i += 4)
        transpose_within(half, from, apart, i);
    UNROLL
    for (int j = 0; j < 4; j++)
        transpose_across(to, half, j);
}

/* One of kTransposeSteps steps of transpose(). @half keeps 1 KB from step to step. */
enum { kTransposeSteps = 4 };
INLINE void transpose_step(uint32_t *to, vu *half, const uint32_t *from, size_t apart, int step) {
    __m512i *words = (__m512i *)half;
    int at = step % 2 * 2;
    if (step < 2) {
        transpose_within(words, from, apart, at * 4);
        transpose_within(words, from, apart, at * 4 + 4);
    } else {
        transpose_across(to, words, at);
        transpose_across(to, words, at + 1);
    }
}

/* Converts LANES numbers of two tokens to pairs of bf16; those of @even are in the lower halves. */
INLINE vu bf16_pairs(vf even, vf odd) {
    const __m512i pair =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return (vu)_mm512_permutexvar_epi16(pair,
                                        (__m512i)_mm512_cvtne2ps_pbh((__m512)odd, (__m512)even));
}

/* x - floor(x), from 0 to 1; 0 if x is infinite. */
INLINE vf fraction_of(vf x) {
    enum { kFloor = 1 }; /* mode of VREDUCEPS: subtract the largest integer that is not above x */
    return (vf)_mm512_reduce_ps((__m512)x, kFloor);
}

/* y * 2^floor(x) for y >= 1; 0 if x < -126, since the caller has subnormal results flushed. */
INLINE vf scale_by_floor(vf y, vf x) {
    return (vf)_mm512_scalef_ps((__m512)y, (__m512)x);
}

#endif
