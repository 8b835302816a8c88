/* avx512_stream.h - MLA_FP8 for one or two rows, where reading binds.
 *
 * The scores of a page and the values of the page before it are taken in turns, a token of each, so
 * that the cache is read in the order in which it lies and at an even pace: every line of a token asks
 * for the line kAhead tokens later. That order is worth more than anything else here: the processor's
 * own prefetchers follow it, and they have more requests under way than a core has.
 *
 * Values go over a page from its last token to its first: those were scored last and are still in L1. A
 * group of tokens is multiplied for 64 columns at a time; what a page adds up stays in memory (L1) and
 * joins o at the page's end, when its rescale and sigma apply. */
#ifndef SNAPMLA_KERNELS_CPU_AVX512_STREAM_H
#define SNAPMLA_KERNELS_CPU_AVX512_STREAM_H

#include "kernels/cpu/avx512_values.h"

enum {
    kAhead = 16,   /* tokens */
    kColumns = 64, /* of values at once, */
    kGroup = 4,    /* of so many tokens */
};

INLINE page_rows skip_tokens(page_rows page, size_t tokens, size_t d_c, size_t d_r) {
    return (page_rows){page.content + tokens * d_c, page.rope + tokens * d_r * 2};
}

/* ---- scores --------------------------------------------------------------------------------- */

/* The lanes of one token's scores to @lanes [rows][kAtOnce][LANES]. Each row has two sums, of even and
 * odd vectors, as one would wait for itself. */
INLINE void score_token(scratch16 *w, tables t, page_rows at, page_rows ahead, size_t d_c,
                        size_t d_r, int rows, float *lanes) {
    __m512 sum[2 * kStreamRows];
    UNROLL
    for (int i = 0; i < 2 * rows; i++)
        sum[i] = _mm512_setzero_ps();
    UNROLL_8
    for (size_t i = 0; i < d_c; i += 64) {
        __m512i words[2], codes = _mm512_loadu_si512(at.content + i);
        __asm__("" : "+v"(codes)); /* one load, where gcc would make it one a use */
        _mm_prefetch(ahead.content + i, _MM_HINT_T0);
        decode_lanes(t, codes, words);
        add_columns(w, sum, rows, 2, words[0], i);
        add_columns(w, sum + 1, rows, 2, words[1], i + 32);
    }
    UNROLL_8
    for (size_t i = 0; i < d_r; i += 32) {
        _mm_prefetch(ahead.rope + i * 2, _MM_HINT_T0);
        add_columns(w, sum + i / 32 % 2, rows, 2, _mm512_loadu_si512(at.rope + i * 2), d_c + i);
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        _mm512_store_ps(lanes + r * kAtOnce * LANES, _mm512_add_ps(sum[2 * r], sum[2 * r + 1]));
}

/* Scores of tokens t .. t + kAtOnce - 1 from their lanes. */
INLINE void add_lanes(scratch16 *w, int rows, int t) {
    UNROLL
    for (int r = 0; r < rows; r++) {
        const float *l = w->lanes + r * kAtOnce * LANES;
        _mm_store_ps(w->s + r * MLA_PAGE + t,
                     sum_lanes(_mm512_load_ps(l), _mm512_load_ps(l + LANES),
                               _mm512_load_ps(l + 2 * LANES), _mm512_load_ps(l + 3 * LANES)));
    }
}

/* ---- values --------------------------------------------------------------------------------- */

/* Adds kGroup tokens from @first, kColumns columns from @c, to w->sums. */
INLINE void add_values(scratch16 *w, tables t, const char *content, int first, size_t c, size_t d_c,
                       int rows) {
    __m512 sum[4 * kStreamRows];
    const char *v = content + (size_t)first * d_c + c;
    UNROLL
    for (int i = 0; i < rows * 4; i++)
        sum[i] = _mm512_load_ps(w->sums + (size_t)(i / 4) * d_c + c + i % 4 * LANES);
    UNROLL
    for (int j = 0; j < kGroup / 2; j++, v += 2 * d_c) {
        __m512bh columns[4];
        decode_pairs(t, v, d_c, columns);
        UNROLL
        for (int r = 0; r < rows; r++) {
            __m512bh x = broadcast_pair(w->p + r * kPairs + first / 2 + j);
            UNROLL
            for (int q = 0; q < 4; q++)
                sum[r * 4 + q] = _mm512_dpbf16_ps(sum[r * 4 + q], columns[q], x);
        }
    }
    UNROLL
    for (int i = 0; i < rows * 4; i++)
        _mm512_store_ps(w->sums + (size_t)(i / 4) * d_c + c + i % 4 * LANES, sum[i]);
}

/* o = rescale o + sigma P V of the page whose values are added up. */
INLINE void close_page(scratch16 *w, float *o, size_t d_c, int rows) {
    for (int r = 0; r < rows; r++) {
        vf rescale = vf_set(w->state.rescale[r]), sigma = vf_set(w->state.sigma[r]);
        for (size_t i = (size_t)r * d_c; i < (size_t)(r + 1) * d_c; i += LANES) {
            vf_store(o + i, VF_FMA(sigma, vf_load(w->sums + i), rescale * vf_load(o + i)));
            vf_store(w->sums + i, (vf){0});
        }
    }
}

/* ---- both ----------------------------------------------------------------------------------- */

/* A page to be scored, the one after it, and the content of one whose P is known. */
typedef struct {
    bool score, value;
    page_rows scored, after;
    const char *valued;
} stream_pages;

INLINE void stream_page(scratch16 *w, stream_pages in, size_t d_c, size_t d_r, int rows) {
    tables t = load_tables(w);
    int blocks = (int)d_c / kColumns, all = MLA_PAGE / kGroup * blocks, done = 0;
    ROLLED
    for (int first = 0; first < MLA_PAGE; first += kAtOnce) {
        page_rows at = skip_tokens(in.scored, (size_t)first, d_c, d_r);
        page_rows ahead =
            first + kAhead < MLA_PAGE
                ? skip_tokens(at, kAhead, d_c, d_r)
                : skip_tokens(in.after, (size_t)(first + kAhead - MLA_PAGE), d_c, d_r);
        ROLLED
        for (int j = 0; j < kAtOnce; j++) {
            if (in.score)
                score_token(w, t, skip_tokens(at, (size_t)j, d_c, d_r),
                            skip_tokens(ahead, (size_t)j, d_c, d_r), d_c, d_r, rows,
                            w->lanes + j * LANES);
            int until = in.value ? all * (first + j + 1) / MLA_PAGE : 0;
            ROLLED
            for (; done < until; done++)
                add_values(w, t, in.valued, MLA_PAGE - kGroup - done / blocks * kGroup,
                           (size_t)(done % blocks) * kColumns, d_c, rows);
        }
        if (in.score)
            add_lanes(w, rows, first);
    }
}

/* Where the page that begins at @token lies; its scales are asked for. @page where the part ends. */
static page_rows next_page(const cpu_part *part, page_rows page, int64_t token) {
    if (token >= part->end)
        return page;
    int64_t slot = mla_slot(part->table, part->cache.pages, token);
    for (int i = 0; i < MLA_PAGE; i += kLine / (int)sizeof(float))
        _mm_prefetch((const char *)(part->cache.scale + slot + i), _MM_HINT_T0);
    return page_at(part, slot);
}

/* Scores to P. */
INLINE void weigh_page(scratch16 *w, const cpu_part *part, int64_t token, int64_t slot, int n,
                       int rows) {
    (void)softmax_page(&w->state, part, token, slot, n);
    for (int r = 0; r < rows; r++)
        softmax_row(w, MLA_FP8, r);
}

INLINE void stream_all(scratch16 *w, const cpu_part *part, float *o, size_t d_c, size_t d_r,
                       int rows) {
    stream_pages in = {.score = part->first < part->end};
    memset(w->sums, 0, (size_t)rows * d_c * sizeof *w->sums);
    for (int64_t token = part->first; in.score || in.value; token += MLA_PAGE) {
        int n = part->end - token < MLA_PAGE ? (int)(part->end - token) : MLA_PAGE;
        int64_t slot = in.score ? mla_slot(part->table, part->cache.pages, token) : 0;
        if (in.score)
            in.scored = find_page(w, part, slot, n);
        in.after = next_page(part, in.scored, token + MLA_PAGE);
        stream_page(w, in, d_c, d_r, rows);
        if (in.value)
            close_page(w, o, d_c, rows);
        if (in.score)
            weigh_page(w, part, token, slot, n, rows);
        in.value = in.score;
        in.valued = in.scored.content;
        in.score = token + MLA_PAGE < part->end;
    }
}

/* The usual widths are compiled in. */
INLINE void stream_rows(scratch16 *w, const cpu_part *part, float *o, int rows) {
    if (part->d_c == kContent && part->d_r == kRope)
        stream_all(w, part, o, kContent, kRope, rows);
    else
        stream_all(w, part, o, (size_t)part->d_c, (size_t)part->d_r, rows);
}

static void stream_part(scratch16 *w, const cpu_part *part, float *o) {
    if (w->rows == 1)
        stream_rows(w, part, o, 1);
    else
        stream_rows(w, part, o, 2);
    order_lanes(o, (int64_t)w->rows * part->d_c);
}

#endif
