/* avx512_stream.h - MLA_FP8 for one or two rows, where memory bandwidth is the limit.
 *
 * The scores of two pages of a sequence are computed side by side, line by line. Between them, the
 * values of the previous two pages are added up. So the cache is read as two streams, each in
 * ascending order and at an even pace. For every line of a token, the line kAhead tokens later is
 * prefetched. The ascending order lets the processor's hardware prefetchers follow both streams.
 * Each load of the query serves both pages.
 *
 * Values are added from the last tokens of a page to the first, because the last were scored last
 * and are the most likely to be in L1 still. A group of tokens is multiplied for 128 columns at a
 * time. The sums of a page stay in memory (L1). They are added to o, with their rescale and sigma,
 * when both pages are done. */
#ifndef SNAPMLA_KERNELS_CPU_AVX512_STREAM_H
#define SNAPMLA_KERNELS_CPU_AVX512_STREAM_H

#include "kernels/cpu/avx512_values.h"

enum {
    kAhead = 8,     /* prefetch distance in tokens */
    kColumns = 128, /* columns of values computed at once */
    kGroup = 8,     /* tokens of values computed at once */
    kVectors = kColumns / LANES,
    kPairTokens = kStreamPages * MLA_PAGE,
};

INLINE page_rows skip_tokens(page_rows page, size_t tokens, size_t d_c, size_t d_r) {
    return (page_rows){page.content + tokens * d_c, page.rope + tokens * d_r * 2};
}

/* Index of the buffers of a row and page: scores, P, lanes and sums. */
INLINE size_t place_of(int row, size_t page) {
    return (size_t)row * kStreamPages + page;
}

/* ---- scores --------------------------------------------------------------------------------- */

/* Multiplies 32 columns, from @c on, of one token per page with every query row. @x: the tokens'
 * columns, @stride vectors apart. */
INLINE void add_both(const scratch16 *w, __m512 *sum, int rows, const __m512i *x, size_t stride,
                     size_t c) {
    UNROLL
    for (int r = 0; r < rows; r++) {
        __m512bh q = load_bf16(w->q + (size_t)r * (size_t)w->d + c);
        UNROLL
        for (size_t p = 0; p < kStreamPages; p++) {
            __m512 *to = sum + 2 * place_of(r, p);
            *to = _mm512_dpbf16_ps(*to, (__m512bh)x[p * stride], q);
        }
    }
}

/* Computes the scores of one token per page as LANES partial sums, @lanes [place][kAtOnce][LANES].
 * Each score has two accumulators, for even and odd vectors, because a single one would wait for
 * its own latency. */
INLINE void score_tokens(scratch16 *w, tables t, const page_rows *at, const page_rows *ahead,
                         size_t d_c, size_t d_r, int rows, float *lanes) {
    __m512 sum[2 * kStreamRows * kStreamPages];
    UNROLL
    for (int i = 0; i < 2 * rows * kStreamPages; i++)
        sum[i] = _mm512_setzero_ps();
    UNROLL_8
    for (size_t i = 0; i < d_c; i += 64) {
        __m512i words[2 * kStreamPages];
        UNROLL
        for (int p = 0; p < kStreamPages; p++) {
            __m512i codes = _mm512_loadu_si512(at[p].content + i);
            __asm__("" : "+v"(codes)); /* keeps one load; gcc would repeat it for each use */
            _mm_prefetch(ahead[p].content + i, _MM_HINT_T0);
            decode_lanes(t, codes, words + 2 * p);
        }
        add_both(w, sum, rows, words, 2, i);
        add_both(w, sum + 1, rows, words + 1, 2, i + 32);
    }
    UNROLL_8
    for (size_t i = 0; i < d_r; i += 32) {
        __m512i words[kStreamPages];
        UNROLL
        for (int p = 0; p < kStreamPages; p++) {
            _mm_prefetch(ahead[p].rope + i * 2, _MM_HINT_T0);
            words[p] = _mm512_loadu_si512(at[p].rope + i * 2);
        }
        add_both(w, sum + i / 32 % 2, rows, words, 1, d_c + i);
    }
    UNROLL
    for (int i = 0; i < rows * kStreamPages; i++)
        _mm512_store_ps(lanes + i * kAtOnce * LANES, _mm512_add_ps(sum[2 * i], sum[2 * i + 1]));
}

/* Adds up the lanes: gives the scores of tokens t .. t + kAtOnce - 1. */
INLINE void add_lanes(scratch16 *w, int rows, int t) {
    UNROLL
    for (int i = 0; i < rows * kStreamPages; i++) {
        const float *l = w->lanes + i * kAtOnce * LANES;
        _mm_store_ps(w->s + i * MLA_PAGE + t,
                     sum_lanes(_mm512_load_ps(l), _mm512_load_ps(l + LANES),
                               _mm512_load_ps(l + 2 * LANES), _mm512_load_ps(l + 3 * LANES)));
    }
}

/* ---- values --------------------------------------------------------------------------------- */

/* Adds kGroup tokens x kColumns columns from @v to @sums. @p are pairs of P. @p and @sums point to
 * row 0; the data of other rows follow at a distance of one row's places. */
INLINE void add_values(tables t, const char *v, const uint32_t *p, float *sums, size_t d_c,
                       int rows) {
    __m512 sum[kVectors * kStreamRows];
    UNROLL
    for (int i = 0; i < rows * kVectors; i++)
        sum[i] = _mm512_load_ps(sums + place_of(i / kVectors, 0) * d_c + i % kVectors * LANES);
    UNROLL
    for (int j = 0; j < kGroup / 2; j++, v += 2 * d_c) {
        __m512bh columns[kVectors];
        UNROLL
        for (int i = 0; i < kVectors; i += 4)
            decode_pairs(t, v + i * LANES, d_c, columns + i);
        UNROLL
        for (int r = 0; r < rows; r++) {
            __m512bh x = broadcast_pair(p + place_of(r, 0) * kPairs + j);
            UNROLL
            for (int i = 0; i < kVectors; i++)
                sum[r * kVectors + i] = _mm512_dpbf16_ps(sum[r * kVectors + i], columns[i], x);
        }
    }
    UNROLL
    for (int i = 0; i < rows * kVectors; i++)
        _mm512_store_ps(sums + place_of(i / kVectors, 0) * d_c + i % kVectors * LANES, sum[i]);
}

/* ---- scores and values interleaved ---------------------------------------------------------- */

/* Two consecutive pages of a sequence. If the part ends before the second, that is a copy of the
 * first with 0 tokens. */
typedef struct {
    int64_t token; /* first token of the first page */
    int64_t slot[kStreamPages];
    int n[kStreamPages]; /* tokens; 0 if the part ends before the page */
    page_rows at[kStreamPages];
} page_pair;

/* The pages to be scored, the pages after them, and the content of the pages with known P. */
typedef struct {
    bool score, value;
    page_rows scored[kStreamPages], after[kStreamPages];
    const char *valued[kStreamPages];
} stream_pages;

/* The factors of o = keep * o + sum over the pages of scale * P V, for each row. */
typedef struct {
    float keep[kStreamRows], scale[kStreamRows][kStreamPages];
} pair_weights;

INLINE page_rows tokens_ahead(page_rows at, page_rows after, int first, size_t d_c, size_t d_r) {
    return first + kAhead < MLA_PAGE
               ? skip_tokens(at, kAhead, d_c, d_r)
               : skip_tokens(after, (size_t)(first + kAhead - MLA_PAGE), d_c, d_r);
}

INLINE void stream_pair(scratch16 *w, stream_pages in, size_t d_c, size_t d_r, int rows) {
    tables t = load_tables(w->tables);
    size_t blocks = d_c / kColumns, all = MLA_PAGE / kGroup * kStreamPages * blocks, done = 0;
    ROLLED
    for (int first = 0; first < MLA_PAGE; first += kAtOnce) {
        page_rows at[kStreamPages], ahead[kStreamPages];
        UNROLL
        for (int p = 0; p < kStreamPages; p++) {
            at[p] = skip_tokens(in.scored[p], (size_t)first, d_c, d_r);
            ahead[p] = tokens_ahead(at[p], in.after[p], first, d_c, d_r);
        }
        ROLLED
        for (int j = 0; j < kAtOnce; j++) {
            if (in.score) {
                score_tokens(w, t, at, ahead, d_c, d_r, rows, w->lanes + j * LANES);
                UNROLL
                for (int p = 0; p < kStreamPages; p++) {
                    at[p] = skip_tokens(at[p], 1, d_c, d_r);
                    ahead[p] = skip_tokens(ahead[p], 1, d_c, d_r);
                }
            }
            size_t until = in.value ? all * (size_t)(first + j + 1) / MLA_PAGE : 0;
            ROLLED
            for (; done < until; done++) {
                size_t group = done / blocks, page = group % kStreamPages;
                size_t first_valued = MLA_PAGE - kGroup - group / kStreamPages * kGroup;
                size_t c = done % blocks * kColumns;
                add_values(t, in.valued[page] + first_valued * d_c + c,
                           w->p + page * kPairs + first_valued / 2, w->sums + page * d_c + c, d_c,
                           rows);
            }
        }
        if (in.score)
            add_lanes(w, rows, first);
    }
}

/* Adds the sums of the two valued pages to o. Meanwhile it prefetches the content of the next pages
 * from token kAhead on, one line per page and LANES columns, so that memory stays busy. */
INLINE void close_pair(scratch16 *w, const page_rows *next, pair_weights with, float *o, size_t d_c,
                       int rows) {
    for (int r = 0; r < rows; r++, o += d_c) {
        float *first = w->sums + place_of(r, 0) * d_c, *second = w->sums + place_of(r, 1) * d_c;
        vf keep = vf_set(with.keep[r]);
        vf scale[kStreamPages] = {vf_set(with.scale[r][0]), vf_set(with.scale[r][1])};
        for (size_t i = 0; i < d_c; i += LANES) {
            for (int p = 0; p < kStreamPages && r == 0; p++)
                _mm_prefetch(next[p].content + kAhead * d_c + i / LANES * kLine, _MM_HINT_T0);
            vf sum = VF_FMA(scale[0], vf_load(first + i), keep * vf_load(o + i));
            vf_store(o + i, VF_FMA(scale[1], vf_load(second + i), sum));
            vf_store(first + i, (vf){0});
            vf_store(second + i, (vf){0});
        }
    }
}

/* Computes P from the scores of two pages, and the weights for close_pair(). */
INLINE pair_weights pair_probabilities(scratch16 *w, const cpu_part *part, const page_pair *of,
                                       int rows) {
    pair_weights to = {0};
    for (int p = 0; p < kStreamPages; p++) {
        (void)softmax_page(&w->state, part, of->token + p * MLA_PAGE, of->slot[p], of->n[p]);
        for (int r = 0; r < rows; r++) {
            softmax_row(w, MLA_FP8, r, place_of(r, (size_t)p));
            float rescale = w->state.rescale[r];
            to.keep[r] = p == 0 ? rescale : to.keep[r] * rescale;
            to.scale[r][0] *= rescale;
            to.scale[r][p] = w->state.sigma[r];
        }
    }
    return to;
}

/* Locates the two pages that begin at @token, which is in the part. */
static page_pair find_pair(scratch16 *w, const cpu_part *part, int64_t token) {
    page_pair pair = {.token = token};
    for (int p = 0; p < kStreamPages; p++, token += MLA_PAGE) {
        if (token < part->end) {
            pair.n[p] = part->end - token < MLA_PAGE ? (int)(part->end - token) : MLA_PAGE;
            pair.slot[p] = mla_slot(part->table, part->cache.pages, token);
            pair.at[p] = find_page(w, part, pair.slot[p], pair.n[p]);
        } else {
            pair.slot[p] = pair.slot[0];
            pair.at[p] = pair.at[0];
        }
    }
    return pair;
}

/* Locates the page that begins at @token and prefetches its scales. Returns @page if the part has
 * no such page. */
static page_rows next_page(const cpu_part *part, page_rows page, int64_t token) {
    if (token >= part->end)
        return page;
    int64_t slot = mla_slot(part->table, part->cache.pages, token);
    for (int i = 0; i < MLA_PAGE; i += kLine / (int)sizeof(float))
        _mm_prefetch((const char *)(part->cache.scale + slot + i), _MM_HINT_T0);
    return page_at(part, slot);
}

INLINE void stream_all(scratch16 *w, const cpu_part *part, float *o, size_t d_c, size_t d_r,
                       int rows) {
    stream_pages in = {.score = part->first < part->end};
    page_pair pair = {0};
    pair_weights with = {0};
    memset(w->sums, 0, (size_t)rows * kStreamPages * d_c * sizeof *w->sums);
    for (int64_t token = part->first; in.score || in.value; token += kPairTokens) {
        if (in.score)
            pair = find_pair(w, part, token);
        for (int p = 0; p < kStreamPages; p++) {
            in.scored[p] = pair.at[p];
            in.after[p] = next_page(part, pair.at[p], token + kPairTokens + p * MLA_PAGE);
        }
        stream_pair(w, in, d_c, d_r, rows);
        if (in.value)
            close_pair(w, in.after, with, o, d_c, rows);
        if (in.score)
            with = pair_probabilities(w, part, &pair, rows);
        for (int p = 0; p < kStreamPages; p++)
            in.valued[p] = pair.at[p].content;
        in.value = in.score;
        in.score = token + kPairTokens < part->end;
    }
}

/* Uses compile-time widths for 512 + 64. */
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
