/* avx512_many.h - scores and probabilities of one page for many rows, with rows in the lanes. */
#ifndef SNAPMLA_KERNELS_CPU_AVX512_MANY_H
#define SNAPMLA_KERNELS_CPU_AVX512_MANY_H

#include "kernels/cpu/avx512_tile.h"

/* Computes the scores of 8 tokens x 16 rows over all of d, and prefetches a line of the next page
 * in every second step. One step covers four columns, which are two pairs for vdpbf16ps: a quadword
 * of K is broadcast and multiplied with vectors of 8 rows x 2 pairs, so one load of K serves two
 * products. The two lanes of each row are added at the end. */
INLINE void scores_block(const uint16_t *k, int d, const uint64_t *qt, float *s, int padded,
                         region *next) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    __m512 low[kTokens], high[kTokens];
    region r = *next;
    UNROLL
    for (int t = 0; t < kTokens; t++)
        low[t] = high[t] = _mm512_setzero_ps();
    for (int c = 0; c < d; c += 4, qt += LANES) {
        __m512bh q0 = load_bf16(qt), q1 = load_bf16(qt + 8);
        if (c % 8 == 0)
            prefetch_line(&r, false);
        UNROLL
        for (int t = 0; t < kTokens; t++) {
            __m512bh x = broadcast_quad(k + (size_t)t * (size_t)d + c);
            low[t] = _mm512_dpbf16_ps(low[t], q0, x);
            high[t] = _mm512_dpbf16_ps(high[t], q1, x);
        }
    }
    UNROLL
    for (int t = 0; t < kTokens; t++)
        _mm512_storeu_ps(s + (size_t)t * (size_t)padded,
                         _mm512_add_ps(_mm512_permutex2var_ps(low[t], even, high[t]),
                                       _mm512_permutex2var_ps(low[t], odd, high[t])));
    *next = r;
}

INLINE void scores_width(scratch16 *w, const cpu_part *part, const uint16_t *k, int d, int64_t slot,
                         int n) {
    for (int row = 0; row < w->padded; row += LANES)
        for (int t = 0; t < MLA_PAGE; t += kTokens) {
            if (row == 0)
                decode_some(w, part, k, slot, n, t, kTokens);
            scores_block(k + (size_t)t * (size_t)d, d, w->qt + (size_t)row * (size_t)d / 4,
                         w->s + (size_t)t * (size_t)w->padded + row, w->padded, next_region(w));
        }
}

/* Converts P to bf16, in pairs of tokens. */
static void pack_p(scratch16 *w) {
    const __m512i pair =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    for (int j = 0; j < kPairs; j++)
        for (int i = 0; i < w->padded; i += LANES) {
            const float *even = w->s + (size_t)(2 * j) * (size_t)w->padded + i;
            __m512bh both =
                _mm512_cvtne2ps_pbh(_mm512_load_ps(even + w->padded), _mm512_load_ps(even));
            _mm512_store_si512(w->p + (size_t)j * (size_t)w->padded + i,
                               _mm512_permutexvar_epi16(pair, (__m512i)both));
        }
}

static void many_rows(scratch16 *w, const cpu_part *part, const uint16_t *k, int64_t token,
                      int64_t slot, int n) {
    if (w->d == kContent + kRope)
        scores_width(w, part, k, kContent + kRope, slot, n);
    else
        scores_width(w, part, k, w->d, slot, n);
    softmax_block(&w->state, part, w->s, token, slot, n);
    pack_p(w);
}

#endif
