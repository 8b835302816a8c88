/* avx512_tile.h - the scratch memory of avx512.c, and its loading of pages and queries: decoding
 * e4m3, packing Q^T, and prefetching the next page. */
#ifndef SNAPMLA_KERNELS_CPU_AVX512_TILE_H
#define SNAPMLA_KERNELS_CPU_AVX512_TILE_H

#include <immintrin.h>

#include "kernels/cpu/avx512_e4m3.h"
#include "kernels/cpu/cpu_dataflow.h"
#include "kernels/cpu/softmax.h"

enum {
    kContent = 512, /* the widths for which strides are compile-time constants */
    kRope = 64,
    kFewRows = 4,
    kStreamRows = 2,
    kStreamPages = 2,
    kAtOnce = 4, /* tokens whose horizontal sums are computed together */
    kTokens = 8, /* tokens in a block of scores */
    kPairs = MLA_PAGE / 2,
};

/* The part of the next page that is not prefetched yet. The code prefetches one line at a time
 * between the arithmetic on the current page, so that memory stays busy while few requests are
 * under way at once. */
typedef struct {
    const char *at, *end;
    size_t step; /* bytes of a line; 0 if there is nothing to prefetch */
} region;

/* Each variant of the kernel uses some of these arrays: "many" and "few" are for many and few rows;
 * "stream" processes kStreamPages pages of at most kStreamRows rows at once. A place is one row of
 * one of these pages. */
typedef struct {
    int d, rows, padded; /* d_c + d_r; rows; rows rounded up to whole vectors */
    uint8_t *tables;     /* the decoder's (avx512_e4m3.h) */
    uint16_t *q;         /* [rows][d] bf16 */
    uint64_t *qt;        /* many rows: [padded / 16][d / 4][16], four columns of a row in each
                            element */
    uint16_t *tile;      /* [64][d] bf16: many rows: the page, if it is not read from the cache
                            directly; few, stream: a copy of an incomplete page */
    uint16_t *next_tile; /* [64][d] bf16: many rows of MLA_FP8: the tile of the next page */
    bool begun;          /* the content of the first kTokens tokens of the next page is in
                            next_tile */
    float *s; /* scores. many rows: [padded / 16][64][16]; few: [rows][64]; stream: [places][64] */
    uint32_t *p;  /* P, pairs of tokens. many rows: [padded / 16][32][16]; few: [rows][32]; stream:
                     [places][32] */
    float *lanes; /* stream only: partial sums of scores, not yet added over the lanes:
                     [places][kAtOnce][LANES] */
    float *sums;  /* stream only: [places][d_c], P V of a page */
    softmax_state state;
    region left[2]; /* what is left to prefetch. MLA_FP8: of content and of rope (many rows: of
                       rope, then of content); MLA_BF16: both begin as the whole page */
} scratch16;

static scratch16 scratch_layout(void *memory, int rows, int d, size_t *bytes) {
    scratch16 w = {.d = d, .rows = rows, .padded = (rows + LANES - 1) / LANES * LANES};
    size_t at = 0, width = (size_t)d, padded = (size_t)w.padded,
           places = kStreamRows * kStreamPages;
    w.tables = scratch_carve(memory, &at, kTableBytes);
    w.q = scratch_carve(memory, &at, padded * width * sizeof *w.q);
    w.qt = scratch_carve(memory, &at, padded * width * sizeof *w.q);
    w.tile = scratch_carve(memory, &at, MLA_PAGE * width * sizeof *w.tile);
    w.next_tile = scratch_carve(memory, &at, MLA_PAGE * width * sizeof *w.tile);
    w.s = scratch_carve(memory, &at, MLA_PAGE * padded * sizeof *w.s);
    w.p = scratch_carve(memory, &at, kPairs * padded * sizeof *w.p);
    w.lanes = scratch_carve(memory, &at, places * kAtOnce * LANES * sizeof *w.lanes);
    w.sums = scratch_carve(memory, &at, places * width * sizeof *w.sums);
    w.state = softmax_layout(memory, &at, w.padded);
    *bytes = at;
    return w;
}

static size_t scratch_bytes(int rows, int d_c, int d_r) {
    size_t bytes;
    (void)scratch_layout(NULL, rows, d_c + d_r, &bytes);
    return bytes;
}

/* Returns the same address, delayed by the three cycles of a multiplication. The delay keeps
 * prefetches apart, because the core may drop some of those that follow each other closely. */
INLINE const char *delay_address(const char *p) {
    __asm__("imul $1, %0, %0" : "+r"(p));
    return p;
}

/* Prefetches the next line of a region. With @exact, the position advances at each call, because
 * the callers make as many calls as the region has lines (32 more if d_c is an odd multiple of 32).
 * Without it, the callers may make many more; the position then stays at the region's end and the
 * same line is prefetched again. The target is L1, because the core may drop prefetches into
 * L2. */
INLINE void prefetch_line(region *next, bool exact) {
    _mm_prefetch(next->at, _MM_HINT_T0);
    next->at += exact || next->at < next->end ? next->step : 0;
    if (exact)
        next->at = delay_address(next->at);
}

INLINE __m512bh load_bf16(const void *p) {
    return (__m512bh)_mm512_loadu_si512(p);
}

INLINE __m512bh broadcast_quad(const void *p) {
    int64_t quad;
    memcpy(&quad, p, sizeof quad);
    return (__m512bh)_mm512_set1_epi64(quad);
}

INLINE __m512bh broadcast_pair(const void *p) {
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}

/* Copies @n bf16 numbers, a multiple of 32. */
INLINE void copy_bf16(uint16_t *out, const uint16_t *in, size_t n) {
    for (size_t i = 0; i < n; i += 32)
        _mm512_storeu_si512(out + i, _mm512_loadu_si512(in + i));
}

/* Decodes rows first .. first + n - 1 of the planes to bf16. */
static void decode_rows(const scratch16 *w, uint16_t *out, const cpu_part *part,
                        const void *content, const void *rope, int64_t first, int n) {
    size_t d_c = (size_t)part->d_c, d_r = (size_t)part->d_r, d = d_c + d_r;
    tables t = load_tables(w->tables);
    for (size_t row = (size_t)first; row < (size_t)(first + n); row++, out += d) {
        if (part->precision == MLA_BF16) {
            copy_bf16(out, (const uint16_t *)content + row * d, d);
        } else {
            decode_codes(t, out, (const uint8_t *)content + row * d_c, d_c);
            copy_bf16(out + d_c, (const uint16_t *)rope + row * d_r, d_r);
        }
    }
}

/* Decodes the content of few e4m3 query rows in unpack order. Pages are decoded in the same order
 * for few rows, so the scores need no reordering. */
static void lane_q(scratch16 *w, const cpu_part *part) {
    tables t = load_tables(w->tables);
    const uint8_t *from = (const uint8_t *)part->q + (size_t)part->row0 * (size_t)part->d_c;
    for (int r = 0; r < w->rows; r++, from += part->d_c)
        for (int c = 0; c < part->d_c; c += 64) {
            uint16_t *to = w->q + (size_t)r * (size_t)w->d + c;
            __m512i words[2];
            decode_lanes(t, _mm512_loadu_si512(from + c), words);
            _mm512_storeu_si512(to, words[0]);
            _mm512_storeu_si512(to + 32, words[1]);
        }
}

/* Packs Q^T with gathers: one vector takes a quadword (four columns) from each of 8 rows. Padding
 * rows are zeros. With @in_place (few rows), queries are only decoded. */
static void pack_q(scratch16 *w, const cpu_part *part, bool in_place) {
    int quads = w->d / 4;
    size_t row_bytes = (size_t)w->d * sizeof *w->q;
    decode_rows(w, w->q, part, part->q, part->q_rope, part->row0, w->rows);
    if (in_place && part->precision == MLA_FP8)
        lane_q(w, part);
    if (in_place)
        return;
    memset(w->q + (size_t)w->rows * (size_t)w->d, 0, (size_t)(w->padded - w->rows) * row_bytes);
    __m256i index =
        _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(quads));
    uint64_t *to = w->qt;
    for (int row = 0; row < w->padded; row += LANES)
        for (int c = 0; c < quads; c++)
            for (int half = 0; half < 2; half++, to += 8) {
                const uint16_t *from = w->q + (size_t)(row + 8 * half) * (size_t)w->d + 4 * c;
                _mm512_store_si512(to, _mm512_i32gather_epi64(index, from, 8));
            }
}

/* Returns the page as 64 rows of bf16. This is the cache itself if it is bf16 and the page is full.
 * Otherwise it is the tile: its rows from token n on are zeros, and decode_some() fills the others.
 * If w->begun, the tile has its first kTokens rows already. */
static const uint16_t *start_tile(scratch16 *w, const cpu_part *part, int64_t slot, int n) {
    size_t d = (size_t)w->d;
    if (w->begun) {
        uint16_t *tile = w->tile;
        w->tile = w->next_tile;
        w->next_tile = tile;
    }
    if (part->precision == MLA_BF16 && n == MLA_PAGE)
        return (const uint16_t *)part->cache.content + (size_t)slot * d;
    memset(w->tile + (size_t)n * d, 0, (size_t)(MLA_PAGE - n) * d * sizeof *w->tile);
    return w->tile;
}

/* Decodes tokens t .. t + tokens - 1 into the tile, if @k is the tile. The callers do this just
 * before the first use of the tokens, so that they are in L1. */
static void decode_some(scratch16 *w, const cpu_part *part, const uint16_t *k, int64_t slot, int n,
                        int t, int tokens) {
    int count = n - t < tokens ? n - t : tokens;
    if (k == w->tile && count > 0)
        decode_rows(w, w->tile + (size_t)t * (size_t)w->d, part, part->cache.content,
                    part->cache.rope, slot + t, count);
}

/* Sets the regions to prefetch to the page that begins at @token, or to nothing if the part ends
 * before it. The page's scales are prefetched at once. With many rows, the RoPE part comes first:
 * with 16 heads and cold pages, this took 1 % less time than the other order. */
static void start_prefetch(scratch16 *w, const cpu_part *part, int64_t token) {
    const char *content = part->cache.content, *rope = part->cache.rope;
    const char *scale = (const char *)part->cache.scale;
    if (token >= part->end) {
        w->left[0] = w->left[1] = (region){content, content, 0};
        return;
    }
    mla_page_bytes bytes = mla_cache_page_bytes(part->precision, part->d_c, part->d_r);
    size_t page = (size_t)(mla_slot(part->table, part->cache.pages, token) / MLA_PAGE);
    content += page * bytes.content;
    w->left[0] = w->left[1] = (region){content, content + bytes.content, kLine};
    if (part->precision == MLA_BF16)
        return;
    rope += page * bytes.rope;
    region rest = {rope, rope + bytes.rope, kLine};
    w->left[1] = w->rows > kFewRows ? w->left[0] : rest;
    w->left[0] = w->rows > kFewRows ? rest : w->left[0];
    for (size_t i = 0; i < bytes.scale; i += kLine)
        _mm_prefetch(scale + page * bytes.scale + i, _MM_HINT_T0);
}

/* The region of the next page to prefetch from: left[0] as long as it has lines left, then left[1],
 * even if that has none. */
INLINE region *next_region(scratch16 *w) {
    return &w->left[w->left[0].at < w->left[0].end ? 0 : 1];
}

#endif
