/* amx_pages.h - blocks of tokens of the AMX kernel: prefetching their pages, decoding K, and
 * interleaving V. Each of these proceeds in units of work that fit between tile products. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_PAGES_H
#define SNAPMLA_KERNELS_CPU_AMX_PAGES_H

#include "kernels/cpu/amx_work.h"

/* Describes block number @n, which begins at @token. It is empty if the part ends before @token. */
static token_block *start_block(amx_work *w, int64_t n, int64_t token) {
    const cpu_part *part = w->part;
    token_block *b = &w->block[n % kBlocks];
    int64_t left = part->end - token;
    b->first = token;
    b->tokens = left < 0 ? 0 : left < kTokens ? (int)left : kTokens;
    b->pages = (b->tokens + MLA_PAGE - 1) / MLA_PAGE;
    b->k = w->k[n % 2];
    b->v = w->v[n % (w->row_blocks > 1 ? 2 : kBlocks)];
    for (int i = 0; i < b->pages; i++) {
        int64_t slot = mla_slot(part->table, part->cache.pages, token + (int64_t)i * MLA_PAGE);
        bool full = b->tokens >= (i + 1) * MLA_PAGE;
        b->page[i] = b->k + (size_t)i * MLA_PAGE * (size_t)w->d;
        if (part->precision == MLA_BF16 && full)
            b->page[i] = (const uint16_t *)part->cache.content + (size_t)slot * (size_t)w->d;
        for (int j = 0; part->precision == MLA_FP8 && j < MLA_PAGE; j++) {
            int at = i * MLA_PAGE + j;
            b->a_k[at] = at < b->tokens ? part->cache.scale[slot + j] : 0.0f;
        }
    }
    return b;
}

/* ---- prefetch ------------------------------------------------------------------------------- */

/* Tokens between those that are decoded and those that are prefetched at the same time. MLA_BF16
 * decodes nothing but a page that is not full. */
static int prefetch_lead(const cpu_part *part) {
    return part->precision == MLA_FP8 ? MLA_PAGE : 0;
}

/* Begins to prefetch the kBlockPages pages from @token on. */
static void start_prefetch(amx_work *w, int64_t token) {
    w->prefetch = (page_prefetch){.token = token, .lines = w->prefetch.lines};
}

/* Finds the next plane of the pages: of MLA_FP8, the content and the RoPE part in turn. */
static bool next_plane(const cpu_part *part, page_prefetch *f) {
    int planes = part->precision == MLA_FP8 ? 2 : 1;
    int64_t token = f->token + (int64_t)(f->planes / planes) * MLA_PAGE;
    if (f->planes == planes * kBlockPages || token >= part->end)
        return false;
    bool rope = f->planes++ % planes == 1;
    size_t d_c = (size_t)part->d_c, d_r = (size_t)part->d_r;
    size_t width = planes == 1 ? 2 * (d_c + d_r) : rope ? 2 * d_r : d_c;
    size_t slot = (size_t)mla_slot(part->table, part->cache.pages, token);
    f->at = (const char *)(rope ? part->cache.rope : part->cache.content) + slot * width;
    f->end = f->at + MLA_PAGE * width;
    return true;
}

/* Prefetches a few lines into L2. Returns false if all are prefetched. */
INLINE bool prefetch_unit(amx_work *w) {
    page_prefetch *f = &w->prefetch;
    if (f->at >= f->end && !next_plane(w->part, f))
        return false;
    for (int i = 0; i < f->lines; i++, f->at += kLine)
        __builtin_prefetch(f->at, 0, 2);
    return true;
}

/* ---- K -------------------------------------------------------------------------------------- */

/* Moves to the next token that must be copied to the block's k. Returns false if there is none. */
INLINE bool decoding_left(amx_work *w) {
    const token_block *b = w->decoding;
    int page = w->decoded / MLA_PAGE;
    while (page < b->pages && b->page[page] != b->k + (size_t)page * MLA_PAGE * (size_t)w->d)
        w->decoded = ++page * MLA_PAGE;
    return page < b->pages;
}

/* Returns the number of tokens to decode. */
static int start_decoding(amx_work *w, const token_block *b) {
    int in_place = 0;
    w->decoding = b;
    w->decoded = 0;
    for (int i = 0; i < b->pages; i++)
        in_place += b->page[i] != b->k + (size_t)i * MLA_PAGE * (size_t)w->d;
    return (b->pages - in_place) * MLA_PAGE;
}

static void decode_token(amx_work *w) {
    const token_block *b = w->decoding;
    const cpu_part *part = w->part;
    uint16_t *k = b->k + (size_t)w->decoded * (size_t)w->d;
    if (w->decoded < b->tokens)
        decode_row(w, k, part->cache.content, part->cache.rope,
                   mla_slot(part->table, part->cache.pages, b->first + w->decoded));
    else
        memset(k, 0, (size_t)w->d * sizeof *k);
    w->decoded++;
}

static void finish_decoding(amx_work *w) {
    while (decoding_left(w))
        decode_token(w);
}

/* ---- V -------------------------------------------------------------------------------------- */

static void start_packing(amx_work *w, const token_block *b) {
    w->packing = b;
    w->packed = 0;
}

INLINE int packing_left(const amx_work *w) {
    return w->packing->pages * kPagePairs - w->packed;
}

/* Interleaves the next pair of tokens of a block into the tiles of V. */
static void pack_pair(amx_work *w) {
    const token_block *b = w->packing;
    int page = w->packed / kPagePairs, pair = w->packed % kPagePairs;
    size_t d = (size_t)w->d, tiles = (size_t)w->part->d_c / kTile;
    const uint16_t *rows = b->page[page] + (size_t)pair * 2 * d;
    size_t step = (size_t)w->packed / kTile, row = (size_t)w->packed % kTile;
    interleave(b->v + step * tiles * kTileWords + row * kTile, rows, rows + d, tiles);
    w->packed++;
}

static void finish_packing(amx_work *w) {
    while (packing_left(w))
        pack_pair(w);
}

#endif
