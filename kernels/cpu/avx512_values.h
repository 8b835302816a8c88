/* avx512_values.h - computes o = rescale * o + sigma * P V for a page. `rescale` and `sigma` (the
 * unit of P) are one factor per row (softmax_state.h). Columns are in the lanes, tokens are
 * processed in pairs. */
#ifndef SNAPMLA_KERNELS_CPU_AVX512_VALUES_H
#define SNAPMLA_KERNELS_CPU_AVX512_VALUES_H

#include "kernels/cpu/avx512_few.h"
#include "kernels/cpu/avx512_order.h"

/* V and P of a page. Row j of V, bf16 or e4m3, is at j * row_bytes. The dword with P of tokens 2j
 * and 2j + 1 of row r is at j * pair_stride + r * row_stride. */
typedef struct {
    const char *v;
    size_t row_bytes;
    int pair_stride, row_stride;
    int lines; /* lines of the next page to prefetch per 64 columns of two tokens (or per 32, where
                  only 32 are left) */
    bool few;  /* the variant for few rows: prefetch_line() is called with `exact`, and the pairs of
                  tokens are processed from the last, which was read last and may still be in L1,
                  to the first */
} pv;

/* Decodes 64 columns of two tokens to pairs of bf16. Vector i holds columns 4i .. 4i + 3 of each
 * group of 16 columns. The codes are interleaved before decoding, so the decoded words need no
 * interleaving. */
INLINE void decode_pairs(tables t, const char *v, size_t d_c, __m512bh out[4]) {
    const __m512i sign = _mm512_set1_epi8(-128);
    __m512i even = _mm512_loadu_si512(v), odd = _mm512_loadu_si512(v + d_c);
    __m512i codes[2] = {_mm512_unpacklo_epi8(even, odd), _mm512_unpackhi_epi8(even, odd)};
    UNROLL
    for (int i = 0; i < 2; i++) {
        __m512i high = _mm512_permutex2var_epi8(t.high[0], codes[i], t.high[1]);
        __m512i low = _mm512_permutex2var_epi8(t.low[0], codes[i], t.low[1]);
        high = _mm512_or_si512(high, _mm512_and_si512(codes[i], sign));
        out[2 * i] = (__m512bh)_mm512_unpacklo_epi8(low, high);
        out[2 * i + 1] = (__m512bh)_mm512_unpackhi_epi8(low, high);
    }
}

/* Interleaves 64 columns of tokens 2j and 2j + 1, starting at column @c, and decodes them for
 * MLA_FP8. With @vecs 1 (MLA_BF16 only): 32 columns. */
INLINE void pair_columns(tables t, const char *v, size_t row_bytes, mla_precision p, int c,
                         int vecs, __m512bh out[4]) {
    if (p == MLA_FP8) {
        decode_pairs(t, v + c, row_bytes, out);
        return;
    }
    UNROLL
    for (int i = 0; i < vecs; i++) {
        __m512i even = _mm512_loadu_si512(v + 2 * c + kLine * i);
        __m512i odd = _mm512_loadu_si512(v + row_bytes + 2 * c + kLine * i);
        out[2 * i] = (__m512bh)_mm512_unpacklo_epi16(even, odd);
        out[2 * i + 1] = (__m512bh)_mm512_unpackhi_epi16(even, odd);
    }
}

/* Computes o = rescale * o + sigma * P V for @rows rows, from row @row on, and for 32 * @vecs
 * columns, from column @c on. */
INLINE void values_block(scratch16 *w, pv in, mla_precision p, float *o, int d_c, int row, int rows,
                         int c, int vecs) {
    __m512 sum[24];
    const uint32_t *p_row =
        w->p + (in.few ? row * kPairs : row / LANES * LANES * kPairs + row % LANES);
    tables t = load_tables(w->tables);
    int step = vecs > 1 ? 2 : 1;
    region *left = next_region(w), next = *left;
    UNROLL
    for (int i = 0; i < rows * vecs * 2; i++)
        sum[i] = _mm512_setzero_ps();
    for (int j = 0; j < kPairs; j++) {
        int pair = in.few ? kPairs - 1 - j : j;
        const char *v = in.v + (size_t)pair * 2 * in.row_bytes;
        const uint32_t *at = p_row + pair * in.pair_stride;
        UNROLL
        for (int i = 0; i < vecs; i += step) {
            __m512bh columns[4];
            UNROLL
            for (int l = 0; l < in.lines; l++)
                prefetch_line(&next, in.few);
            pair_columns(t, v, in.row_bytes, p, c + 32 * i, step, columns);
            UNROLL
            for (int r = 0; r < rows; r++) {
                __m512bh x = broadcast_pair(at + r * in.row_stride);
                UNROLL
                for (int q = 0; q < 2 * step; q++) {
                    int to = (r * vecs + i) * 2 + q;
                    sum[to] = _mm512_dpbf16_ps(sum[to], columns[q], x);
                }
            }
        }
    }
    *left = next;
    UNROLL
    for (int r = 0; r < rows; r++) {
        float *to = o + (size_t)(row + r) * (size_t)d_c + c;
        vf rescale = vf_set(w->state.rescale[row + r]), sigma = vf_set(w->state.sigma[row + r]);
        UNROLL
        for (int i = 0; i < vecs * 2; i++) {
            vf old = vf_load(to + i * LANES), sums = (vf)sum[r * vecs * 2 + i];
            vf_store(to + i * LANES, VF_FMA(sigma, sums, rescale * old));
        }
    }
}

/* Computes all columns for one to four rows, in blocks of 32 * @vecs columns and narrower ones at
 * the end. */
INLINE void values_columns(scratch16 *w, pv in, mla_precision p, float *o, int d_c, int row,
                           int rows, int vecs) {
    int c = 0;
    for (; c + 32 * vecs <= d_c; c += 32 * vecs)
        values_block(w, in, p, o, d_c, row, rows, c, vecs);
    for (; c + 64 <= d_c; c += 64)
        values_block(w, in, p, o, d_c, row, rows, c, 2);
    for (; c < d_c; c += 32)
        values_block(w, in, MLA_BF16, o, d_c, row, rows, c, 1);
}

INLINE void values_rows(scratch16 *w, pv in, mla_precision p, float *o, int d_c, int row,
                        int rows) {
    switch (rows) {
    case 1:
        values_columns(w, in, p, o, d_c, row, 1, 8);
        break;
    case 2:
        values_columns(w, in, p, o, d_c, row, 2, 4);
        break;
    case 3:
        values_columns(w, in, p, o, d_c, row, 3, 4);
        break;
    default:
        values_columns(w, in, p, o, d_c, row, 4, 2);
        break;
    }
}

static void values_few(scratch16 *w, const cpu_part *part, page_rows page, float *o) {
    if (part->precision == MLA_FP8)
        values_rows(w, (pv){page.content, (size_t)part->d_c, 1, kPairs, 1, true}, MLA_FP8, o,
                    part->d_c, 0, w->rows);
    else
        values_rows(w, (pv){page.content, (size_t)w->d * 2, 1, kPairs, 2, true}, MLA_BF16, o,
                    part->d_c, 0, w->rows);
}

/* Computes all rows. For the groups of four rows, the outer loop goes over columns, so that 64
 * columns of V stay in L1 for all groups. The last one to three rows follow. */
static void values_many(scratch16 *w, const uint16_t *k, float *o, int d_c) {
    pv in = {(const char *)k, (size_t)w->d * 2, LANES, 1, 1, false};
    int whole = w->rows / 4 * 4, c = 0;
    for (; c + 64 <= d_c; c += 64)
        for (int row = 0; row < whole; row += 4)
            values_block(w, in, MLA_BF16, o, d_c, row, 4, c, 2);
    for (; c < d_c; c += 32)
        for (int row = 0; row < whole; row += 4)
            values_block(w, in, MLA_BF16, o, d_c, row, 4, c, 1);
    if (whole < w->rows)
        values_rows(w, in, MLA_BF16, o, d_c, whole, w->rows - whole);
}

#endif
