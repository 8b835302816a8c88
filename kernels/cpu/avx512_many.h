/* avx512_many.h - scores and probabilities of one page for many rows, with rows in the lanes. */
#ifndef SNAPMLA_KERNELS_CPU_AVX512_MANY_H
#define SNAPMLA_KERNELS_CPU_AVX512_MANY_H

#include "kernels/cpu/avx512_tile.h"

/* The content of kTokens e4m3 tokens that are decoded between the products of the tokens before
 * them. Decoding and products use different pipes of the core. */
typedef struct {
    const uint8_t *content;
    uint16_t *to; /* the rows of a tile that get these tokens; NULL if there is nothing to decode */
} beside_tokens;

/* Tokens in bf16. Row t of a part is at t * step. If the content was decoded, the RoPE part is in
 * the cache and has another step. */
typedef struct {
    const uint16_t *content, *rope;
    size_t step, rope_step;
} k_rows;

/* Sums of products for 8 tokens x 16 rows. Each row has two lanes. Rows 0 .. 7 are in low[]. */
typedef struct {
    __m512 low[kTokens], high[kTokens];
} score_sums;

/* Returns @k. If @d is a constant, the compiler then addresses tokens by offsets from @k. gcc would
 * otherwise keep a pointer for each token, and has too few registers for that. */
INLINE const uint16_t *offsets_from(const uint16_t *k, size_t d) {
    if (__builtin_constant_p(d))
        __asm__("" : "+r"(k));
    return k;
}

/* Multiplies four columns of token @t, from @k + t * d on, with 16 rows. The columns are two pairs
 * for vdpbf16ps: a quadword of K is broadcast and multiplied with vectors of 8 rows x 2 pairs, so
 * one load of K serves two products. */
INLINE void multiply_token(score_sums *sums, const uint16_t *k, size_t d, const __m512bh q[2],
                           size_t t) {
    __m512bh x = broadcast_quad(k + t * d);
    sums->low[t] = _mm512_dpbf16_ps(sums->low[t], q[0], x);
    sums->high[t] = _mm512_dpbf16_ps(sums->high[t], q[1], x);
}

/* Multiplies four columns of 8 tokens. */
INLINE void multiply_quad(score_sums *sums, const uint16_t *k, size_t d, const uint64_t *qt) {
    k = offsets_from(k, d);
    const __m512bh q[2] = {load_bf16(qt), load_bf16(qt + 8)};
    UNROLL
    for (size_t t = 0; t < kTokens; t++)
        multiply_token(sums, k, d, q, t);
}

/* Multiplies eight columns, and prefetches a line of the next page. */
INLINE void multiply_step(score_sums *sums, const uint16_t *k, size_t d, const uint64_t *qt,
                          region *next) {
    prefetch_line(next, false);
    multiply_quad(sums, k, d, qt);
    multiply_quad(sums, k + 4, d, qt + LANES);
}

/* 64 codes, and as much of their bytes as has been computed. */
typedef struct {
    __m512i codes;
    e4m3_bytes bytes;
} partly_decoded;

/* Keeps the instructions that compute @x before those that use @sum next. The compiler would
 * otherwise mix them with the products in another order, which slows the products down. */
INLINE void finish_first(partly_decoded *x, __m512 *sum) {
    __asm__ volatile("" : "+v"(x->codes), "+v"(x->bytes.high), "+v"(x->bytes.low), "+v"(*sum));
}

/* Does the part of decode_64() that belongs before product @i of the 16 of a step. The parts are
 * spread over the step: a vector store takes time from products that are close to it. */
INLINE void decode_part(partly_decoded *x, tables t, const uint8_t *content, uint16_t *to, int i) {
    e4m3_bytes *bytes = &x->bytes;
    if (i == 0) {
        x->codes = deal_codes(_mm512_loadu_si512(content));
        *bytes = (e4m3_bytes){x->codes, x->codes};
    }
    if (i == 2)
        bytes->high = look_up_high(t, x->codes);
    if (i == 4)
        bytes->low = look_up_low(t, x->codes);
    if (i == 6)
        bytes->high = copy_sign(bytes->high, x->codes);
    if (i == 8)
        _mm512_storeu_si512(to, _mm512_unpacklo_epi8(bytes->low, bytes->high));
    if (i == 12)
        _mm512_storeu_si512(to + 32, _mm512_unpackhi_epi8(bytes->low, bytes->high));
}

/* Multiplies eight columns, and decodes the 64 codes at @content to @to. */
INLINE void multiply_and_decode_64(score_sums *sums, const uint16_t *k, size_t d,
                                   const uint64_t *qt, tables decoder, const uint8_t *content,
                                   uint16_t *to) {
    k = offsets_from(k, d);
    __m512bh q[2] = {load_bf16(qt), load_bf16(qt + 8)};
    partly_decoded x;
    UNROLL
    for (int i = 0; i < 2 * kTokens; i++) {
        size_t t = (size_t)i % kTokens;
        decode_part(&x, decoder, content, to, i);
        if (i == kTokens) {
            q[0] = load_bf16(qt + LANES);
            q[1] = load_bf16(qt + LANES + 8);
        }
        multiply_token(sums, k + i / kTokens * 4, d, q, t);
        if (i == 1 || i == 3 || i == 5 || i == 7 || i == 11 || i == 12)
            finish_first(&x, &sums->high[t]);
    }
}

/* Multiplies all columns of the content. Each step, of eight columns, also decodes 64 codes of
 * @beside. The content has as many groups of 64 codes as steps, because a step has as many columns
 * as a block has tokens. Every second step prefetches a line. A page of e4m3 has about as many
 * lines as there are steps for 16 rows, so one line for each step would leave none for the other
 * rows and for the values. With 32 and 64 heads and cold pages, that took 0.1 to 1.6 % more
 * time. */
INLINE void multiply_and_decode(score_sums *sums, k_rows k, size_t d_c, size_t d_r,
                                const uint64_t *qt, region *next, tables decoder,
                                beside_tokens beside) {
    ROLLED
    for (size_t i = 0; i < d_c / kTokens; i++, k.content += kTokens, qt += 2 * LANES) {
        uint16_t *to = beside.to + 64 * i + i / (d_c / 64) * d_r;
        multiply_and_decode_64(sums, k.content, k.step, qt, decoder, beside.content + 64 * i, to);
        if (i % 2 == 0)
            prefetch_line(next, false);
    }
}

/* Computes the scores of 8 tokens x 16 rows over all columns, times the scales @a_k of the tokens.
 * Every step prefetches a line of the next page. The two lanes of each row are added at the end. If
 * beside.to is not NULL, the tokens @beside are decoded meanwhile, and only every second step of
 * the content prefetches a line. */
INLINE void scores_block(k_rows k, size_t d_c, size_t d_r, const uint64_t *qt, float *s,
                         const float *a_k, region *next, tables decoder, beside_tokens beside) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    score_sums sums;
    region r = *next;
    UNROLL
    for (int t = 0; t < kTokens; t++)
        sums.low[t] = sums.high[t] = _mm512_setzero_ps();
    if (beside.to)
        multiply_and_decode(&sums, k, d_c, d_r, qt, &r, decoder, beside);
    for (size_t c = 0; c < d_c && !beside.to; c += kTokens)
        multiply_step(&sums, k.content + c, k.step, qt + c * LANES / 4, &r);
    for (size_t c = 0; c < d_r; c += kTokens)
        multiply_step(&sums, k.rope + c, k.rope_step, qt + (d_c + c) * LANES / 4, &r);
    UNROLL
    for (int t = 0; t < kTokens; t++)
        vf_store(s + t * LANES,
                 (vf)_mm512_add_ps(_mm512_permutex2var_ps(sums.low[t], even, sums.high[t]),
                                   _mm512_permutex2var_ps(sums.low[t], odd, sums.high[t])) *
                     a_k[t]);
    *next = r;
}

/* Computes the scores of a full page of e4m3 for the first LANES rows. During the products of each
 * block of tokens, the next block is decoded to the tile. During those of the last block, this is
 * the first block of the next page, if that page is full too. */
INLINE void scores_and_decode(scratch16 *w, const cpu_part *part, int64_t token, size_t d_c,
                              size_t d_r) {
    size_t d = d_c + d_r, slot = (size_t)mla_slot(part->table, part->cache.pages, token);
    const uint8_t *codes = part->cache.content;
    tables decoder = load_tables(w->tables);
    k_rows k = {w->tile, (const uint16_t *)part->cache.rope + slot * d_r, d, d_r};
    if (!w->begun)
        decode_some(w, part, w->tile, (int64_t)slot, MLA_PAGE, 0, kTokens);
    w->begun = token + 2 * MLA_PAGE <= part->end;
    for (size_t t = 0; t < MLA_PAGE; t += kTokens) {
        beside_tokens beside = {codes + (slot + t + kTokens) * d_c, w->tile + (t + kTokens) * d};
        if (t + kTokens == MLA_PAGE && w->begun) {
            slot = (size_t)mla_slot(part->table, part->cache.pages, token + MLA_PAGE);
            beside = (beside_tokens){codes + slot * d_c, w->next_tile};
        } else if (t + kTokens == MLA_PAGE) {
            beside.to = NULL;
        }
        scores_block(k, d_c, d_r, w->qt, w->s + t * LANES, w->state.a_k + t, next_region(w),
                     decoder, beside);
        k.content += kTokens * d;
        k.rope += kTokens * d_r;
    }
}

/* The next two are functions of their own, because these loops need all registers. */
static NOINLINE void decode_usual_width(scratch16 *w, const cpu_part *part, int64_t token) {
    scores_and_decode(w, part, token, kContent, kRope);
}

static NOINLINE void decode_any_width(scratch16 *w, const cpu_part *part, int64_t token) {
    scores_and_decode(w, part, token, (size_t)part->d_c, (size_t)part->d_r);
}

/* Computes the scores of tokens @t .. @t + kTokens - 1 of page @k for 16 rows, from @row on. */
INLINE void scores_at(scratch16 *w, k_rows k, size_t d_c, size_t d_r, int row, int t) {
    k.content += (size_t)t * k.step;
    k.rope += (size_t)t * k.rope_step;
    scores_block(k, d_c, d_r, w->qt + (size_t)row * (d_c + d_r) / 4,
                 w->s + row * MLA_PAGE + t * LANES, w->state.a_k + t, next_region(w), (tables){0},
                 (beside_tokens){0});
}

INLINE void scores_width(scratch16 *w, const cpu_part *part, const uint16_t *k, size_t d_c,
                         size_t d_r, int64_t token, int64_t slot, int n) {
    size_t d = d_c + d_r;
    if (part->precision == MLA_FP8 && d_c % 64 == 0 && n == MLA_PAGE) {
        if (d_c == kContent && d_r == kRope)
            decode_usual_width(w, part, token);
        else
            decode_any_width(w, part, token);
        k_rows decoded = {k, (const uint16_t *)part->cache.rope + (size_t)slot * d_r, d, d_r};
        for (int row = LANES; row < w->padded; row += LANES)
            for (int t = 0; t < MLA_PAGE; t += kTokens)
                scores_at(w, decoded, d_c, d_r, row, t);
        return;
    }
    for (int row = 0; row < w->padded; row += LANES)
        for (int t = 0; t < MLA_PAGE; t += kTokens) {
            if (row == 0)
                decode_some(w, part, k, slot, n, t, kTokens);
            scores_at(w, (k_rows){k, k + d_c, d, d}, d_c, d_r, row, t);
        }
}

/* Converts P to bf16, in pairs of tokens. */
static void pack_p(scratch16 *w) {
    const __m512i pair =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const float *s = w->s;
    uint32_t *p = w->p;
    for (int i = 0; i < w->padded / LANES * kPairs; i++, s += 2 * LANES, p += LANES) {
        __m512bh both = _mm512_cvtne2ps_pbh(_mm512_load_ps(s + LANES), _mm512_load_ps(s));
        _mm512_store_si512(p, _mm512_permutexvar_epi16(pair, (__m512i)both));
    }
}

static void many_rows(scratch16 *w, const cpu_part *part, const uint16_t *k, int64_t token,
                      int64_t slot, int n) {
    bool whole = softmax_page(&w->state, part, token, slot, n);
    if (part->d_c == kContent && part->d_r == kRope)
        scores_width(w, part, k, kContent, kRope, token, slot, n);
    else
        scores_width(w, part, k, (size_t)part->d_c, (size_t)part->d_r, token, slot, n);
    softmax_block(&w->state, part->precision, whole, w->s);
    pack_p(w);
}

#endif
