/* avx512_many.h - scores and probabilities of one page for many rows, with rows in the lanes. */
#ifndef SNAPMLA_KERNELS_CPU_AVX512_MANY_H
#define SNAPMLA_KERNELS_CPU_AVX512_MANY_H

#include "kernels/cpu/avx512_tile.h"

/* The content of e4m3 tokens that is decoded between the products of the tokens before them.
 * Decoding and products use different pipes of the core. */
typedef struct {
    const uint8_t *codes;
    uint16_t *to;       /* row of the tile */
    size_t column, d_c; /* next column of the row; columns of a row, a multiple of 64 */
    size_t d;           /* numbers from one row of the tile to the next */
    int left;           /* groups of 64 codes */
} codes_left;

INLINE void decode_group(tables t, codes_left *c) {
    __m512i words[2];
    decode_64(t, _mm512_loadu_si512(c->codes), words);
    _mm512_storeu_si512(c->to + c->column, words[0]);
    _mm512_storeu_si512(c->to + c->column + 32, words[1]);
    c->codes += 64;
    c->column += 64;
    c->left--;
    if (c->column == c->d_c) {
        c->column = 0;
        c->to += c->d;
    }
}

/* Copies the RoPE part of the tokens t .. t + kTokens - 1 to the tile and returns their content,
 * which remains to be decoded. Tokens from @n on are zeros already. */
static codes_left start_codes(const scratch16 *w, const cpu_part *part, int64_t slot, int n,
                              int t) {
    size_t d_c = (size_t)part->d_c, d_r = (size_t)part->d_r, first = (size_t)(slot + t);
    int tokens = t >= MLA_PAGE || n <= t ? 0 : n - t < kTokens ? n - t : kTokens;
    uint16_t *to = w->tile + (size_t)t * (size_t)w->d;
    for (size_t i = 0; i < (size_t)tokens; i++)
        copy_bf16(to + i * (size_t)w->d + d_c,
                  (const uint16_t *)part->cache.rope + (first + i) * d_r, d_r);
    return (codes_left){.codes = (const uint8_t *)part->cache.content + first * d_c,
                        .to = to,
                        .d_c = d_c,
                        .d = (size_t)w->d,
                        .left = tokens * (int)(d_c / 64)};
}

/* Computes the scores of 8 tokens x 16 rows over all of d. Every second step prefetches a line of
 * the next page, and the other steps decode 64 of the @codes, unless that is NULL. These other
 * steps are at least as many as the groups of 64 codes in 8 tokens. One step covers four columns,
 * which are two pairs for vdpbf16ps: a quadword of K is broadcast and multiplied with vectors of 8
 * rows x 2 pairs, so one load of K serves two products. The two lanes of each row are added at the
 * end. */
INLINE void scores_block(const uint16_t *k, int d, const uint64_t *qt, float *s, int padded,
                         region *next, tables decoder, codes_left *codes) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    __m512 low[kTokens], high[kTokens];
    region r = *next;
    codes_left rest = codes ? *codes : (codes_left){0};
    UNROLL
    for (int t = 0; t < kTokens; t++)
        low[t] = high[t] = _mm512_setzero_ps();
    for (int c = 0; c < d; c += 4, qt += LANES) {
        __m512bh q0 = load_bf16(qt), q1 = load_bf16(qt + 8);
        if (c % 8 == 0)
            prefetch_line(&r, false);
        else if (codes && rest.left)
            decode_group(decoder, &rest);
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
    bool beside = part->precision == MLA_FP8 && part->d_c % 64 == 0;
    tables decoder = load_tables(w->tables);
    for (int row = 0; row < w->padded; row += LANES)
        for (int t = 0; t < MLA_PAGE; t += kTokens) {
            const uint16_t *tokens = k + (size_t)t * (size_t)d;
            const uint64_t *qt = w->qt + (size_t)row * (size_t)d / 4;
            float *s = w->s + (size_t)t * (size_t)w->padded + row;
            if (row == 0 && (t == 0 || !beside))
                decode_some(w, part, k, slot, n, t, kTokens);
            if (row == 0 && beside) {
                codes_left codes = start_codes(w, part, slot, n, t + kTokens);
                scores_block(tokens, d, qt, s, w->padded, next_region(w), decoder, &codes);
            } else {
                scores_block(tokens, d, qt, s, w->padded, next_region(w), decoder, NULL);
            }
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
