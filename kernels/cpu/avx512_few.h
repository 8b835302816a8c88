/* avx512_few.h - scores and probabilities of a page for at most four rows. Scores have columns in
 * the lanes, softmax has tokens. Full pages are read directly from the cache; e4m3 is decoded on
 * the way. */
#ifndef SNAPMLA_KERNELS_CPU_AVX512_FEW_H
#define SNAPMLA_KERNELS_CPU_AVX512_FEW_H

#include "kernels/cpu/avx512_tile.h"

/* The 64 tokens of a page in memory. MLA_BF16: content points to whole tokens, rope is not used.
 * MLA_FP8: the two planes. */
typedef struct {
    const char *content, *rope;
} page_rows;

/* The horizontal sums of four vectors. */
INLINE __m128 sum_lanes(__m512 a, __m512 b, __m512 c, __m512 d) {
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    __m512d x = (__m512d)ab, y = (__m512d)cd;
    __m512 all = _mm512_add_ps((__m512)_mm512_unpacklo_pd(x, y), (__m512)_mm512_unpackhi_pd(x, y));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

/* Multiplies 32 columns, from @c on, of one token with every query row. */
INLINE void add_columns(const scratch16 *w, __m512 *sum, int rows, int stride, __m512i x,
                        size_t c) {
    UNROLL
    for (int r = 0; r < rows; r++)
        sum[r * stride] = _mm512_dpbf16_ps(sum[r * stride], (__m512bh)x,
                                           load_bf16(w->q + (size_t)r * (size_t)w->d + c));
}

/* Multiplies @n bf16 columns of @tokens tokens with the query columns from @c on. For each 32
 * columns of every @every-th token, a line of the next page is prefetched. */
INLINE void add_bf16(const scratch16 *w, __m512 *sum, const char *k, region *next, size_t row_bytes,
                     size_t n, size_t c, int rows, int tokens, int every) {
    for (size_t i = 0; i < n; i += 32) {
        UNROLL
        for (int j = 0; j < tokens; j++) {
            __m512i x = _mm512_loadu_si512(k + (size_t)j * row_bytes + i * 2);
            if (j % every == 0)
                prefetch_line(next, true);
            add_columns(w, sum + j, rows, tokens, x, c + i);
        }
    }
}

INLINE void add_e4m3(const scratch16 *w, __m512 *sum, const char *k, region *next, size_t d_c,
                     int rows, int tokens) {
    tables t = load_tables(w->tables);
    for (size_t i = 0; i < d_c; i += 64) {
        UNROLL
        for (int j = 0; j < tokens; j++) {
            __m512i words[2];
            decode_lanes(t, _mm512_loadu_si512(k + (size_t)j * d_c + i), words);
            if (j % 2 == 0)
                prefetch_line(next, true);
            add_columns(w, sum + j, rows, tokens, words[0], i);
            add_columns(w, sum + j, rows, tokens, words[1], i + 32);
        }
    }
}

static page_rows page_at(const cpu_part *part, int64_t slot) {
    bool fp8 = part->precision == MLA_FP8;
    int64_t content = fp8 ? part->d_c : 2 * (part->d_c + part->d_r);
    page_rows page = {(const char *)part->cache.content + slot * content, NULL};
    if (fp8)
        page.rope = (const char *)part->cache.rope + slot * part->d_r * 2;
    return page;
}

/* Returns the page's rows in the cache. If the page is not full, returns a copy with zeros from
 * token n on. */
static page_rows find_page(scratch16 *w, const cpu_part *part, int64_t slot, int n) {
    bool fp8 = part->precision == MLA_FP8;
    size_t content = fp8 ? (size_t)part->d_c : (size_t)w->d * 2, rope = (size_t)part->d_r * 2;
    page_rows page = page_at(part, slot);
    if (n == MLA_PAGE)
        return page;
    char *copy = (char *)w->tile, *copy_rope = copy + content * MLA_PAGE;
    size_t tokens = (size_t)n, rest = MLA_PAGE - tokens;
    memcpy(copy, page.content, tokens * content);
    memset(copy + tokens * content, 0, rest * content);
    if (fp8) {
        memcpy(copy_rope, page.rope, tokens * rope);
        memset(copy_rope + tokens * rope, 0, rest * rope);
    }
    return (page_rows){copy, copy_rope};
}

/* Computes the scores of a page. Meanwhile, half of the next page's content is prefetched
 * (MLA_BF16: half of its rows) and, for MLA_FP8, all of its RoPE part. The other half of the
 * content is prefetched during the values, so that memory stays busy. (For MLA_BF16, half of the
 * RoPE part remains: prefetch_rest().) */
INLINE void scores_few(scratch16 *w, page_rows page, mla_precision p, size_t d_c, size_t d_r,
                       int rows, int tokens) {
    __m512 sum[16];
    size_t row_bytes = p == MLA_FP8 ? d_c : 2 * (d_c + d_r);
    region content = w->left[0], rope = w->left[1];
    for (int t = 0; t < MLA_PAGE; t += tokens) {
        const char *k = page.content + (size_t)t * row_bytes;
        UNROLL
        for (int i = 0; i < rows * tokens; i++)
            sum[i] = _mm512_setzero_ps();
        if (p == MLA_FP8) {
            const char *r = page.rope + (size_t)t * d_r * 2;
            add_e4m3(w, sum, k, &content, d_c, rows, tokens);
            add_bf16(w, sum, r, &rope, d_r * 2, d_r, d_c, rows, tokens, 1);
        } else {
            add_bf16(w, sum, k, &content, row_bytes, d_c + d_r, 0, rows, tokens, 2);
        }
        UNROLL
        for (int i = 0; i < rows * tokens; i += 4)
            _mm_store_ps(w->s + i / tokens * MLA_PAGE + t + i % tokens,
                         sum_lanes(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]));
    }
    w->left[0] = content;
    w->left[1] = rope;
}

INLINE void scores_few_rows(scratch16 *w, page_rows page, mla_precision p, size_t d_c, size_t d_r) {
    switch (w->rows) {
    case 1:
        scores_few(w, page, p, d_c, d_r, 1, 8);
        break;
    case 2:
        scores_few(w, page, p, d_c, d_r, 2, 8);
        break;
    case 3:
        scores_few(w, page, p, d_c, d_r, 3, 4);
        break;
    default:
        scores_few(w, page, p, d_c, d_r, 4, 4);
        break;
    }
}

/* The softmax of softmax.h with the tokens of row @r in the lanes. The row's scores and P are row
 * @at of w->s and w->p. */
INLINE void softmax_row(scratch16 *w, mla_precision precision, int r, size_t at) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    softmax_state *st = &w->state;
    vf s[4], a_k[4], factor = vf_set(st->factor[r]);
    float before = st->m[r], m = before, sum = 0.0f, largest = 0.0f;
    UNROLL
    for (int i = 0; i < 4; i++) {
        __m512i limit = _mm512_set1_epi32(st->limit[r] - i * LANES);
        a_k[i] = precision == MLA_FP8 ? vf_load(st->a_k + i * LANES) : vf_set(1.0f);
        s[i] = vf_load(w->s + at * MLA_PAGE + i * LANES) * a_k[i];
        s[i] = (vf)_mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY),
                                      _mm512_cmplt_epi32_mask(lanes, limit), (__m512)s[i]);
    }
    m = fmaxf(m, _mm512_reduce_max_ps(VF_MAX(VF_MAX(s[0], s[1]), VF_MAX(s[2], s[3]))));
    float against = m > -INFINITY ? m : 0.0f;
    UNROLL
    for (int i = 0; i < 4; i++)
        s[i] = vf_exp2((s[i] - against) * factor);
    sum = _mm512_reduce_add_ps((__m512)((s[0] + s[1]) + (s[2] + s[3])));
    st->rescale[r] = _mm512_cvtss_f32((__m512)vf_exp2(vf_set((before - against) * st->factor[r])));
    st->l[r] = st->l[r] * st->rescale[r] + sum;
    st->m[r] = m;
    if (precision == MLA_FP8) {
        UNROLL
        for (int i = 0; i < 4; i++)
            s[i] *= a_k[i];
        largest = _mm512_reduce_max_ps(VF_MAX(VF_MAX(s[0], s[1]), VF_MAX(s[2], s[3])));
        float inverse = largest >= 0x1p-100f ? 448.0f / largest : 0.0f;
        st->sigma[r] = largest >= 0x1p-100f ? largest / 448.0f : 0.0f;
        UNROLL
        for (int i = 0; i < 4; i++)
            s[i] = vf_round_e4m3(s[i] * inverse);
    }
    UNROLL
    for (int i = 0; i < 4; i += 2)
        _mm512_store_si512(w->p + at * kPairs + i * 8,
                           (__m512i)_mm512_cvtne2ps_pbh((__m512)s[i + 1], (__m512)s[i]));
}

/* Prefetches the lines of an MLA_BF16 page that neither scores nor values prefetch: half of its
 * RoPE part. This keeps memory busy during the softmax. */
static void prefetch_rest(scratch16 *w, const cpu_part *part) {
    region next = w->left[0];
    for (int i = 0; i < part->d_r && part->precision == MLA_BF16; i++)
        prefetch_line(&next, true);
    w->left[0] = next;
}

static void few_rows(scratch16 *w, const cpu_part *part, page_rows page, int64_t token,
                     int64_t slot, int n) {
    size_t d_c = (size_t)part->d_c, d_r = (size_t)part->d_r;
    bool usual = d_c == kContent && d_r == kRope;
    if (usual && part->precision == MLA_FP8)
        scores_few_rows(w, page, MLA_FP8, kContent, kRope);
    else if (part->precision == MLA_FP8)
        scores_few_rows(w, page, MLA_FP8, d_c, d_r);
    else if (usual)
        scores_few_rows(w, page, MLA_BF16, kContent, kRope);
    else
        scores_few_rows(w, page, MLA_BF16, d_c, d_r);
    prefetch_rest(w, part);
    (void)softmax_page(&w->state, part, token, slot, n);
    for (int r = 0; r < w->rows; r++) {
        if (part->precision == MLA_FP8)
            softmax_row(w, MLA_FP8, r, (size_t)r);
        else
            softmax_row(w, MLA_BF16, r, (size_t)r);
    }
}

#endif
