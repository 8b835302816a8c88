/* amx_kernel.h - computes one part with tile products, for 16 query rows and more.
 *
 * amx.c compiles it for the tiles of the processor, amx_emulated.c for tiles in software. The part
 * is processed in blocks of up to 256 tokens, and each block in row blocks of up to 32 query rows:
 *   scores   S^T = K Q^T   K's rows are used as they lie in the cache or in the decoded page. Q^T
 *                          is packed once per part.
 *   softmax  rows in the lanes (amx_softmax.h); P is written to tiles
 *   values   O += P V      V is interleaved once per page, for all query rows. The sum and the
 *                          rescaling of O are vector arithmetic (amx_sums.h).
 * Two tiles of one operand are multiplied with two of the other. So four of the eight tile
 * registers hold sums, and four hold operands.
 *
 * A tile product keeps the tile unit busy for 16 clocks, and the vector units are free meanwhile.
 * They must not fall behind, because the core can only look ahead some hundred instructions. So
 * the vector work is divided into small units, which are distributed evenly over all products: the
 * scores of one row block are computed beside the softmax of the row block before it, and beside
 * the values of the one before that (attend_items()). */
#ifndef SNAPMLA_KERNELS_CPU_AMX_KERNEL_H
#define SNAPMLA_KERNELS_CPU_AMX_KERNEL_H

#include "kernels/cpu/amx_pages.h"
#include "kernels/cpu/amx_softmax.h"
#include "kernels/cpu/amx_sums.h"

/* ---- work beside the products --------------------------------------------------------------- */

/* Returns false if nothing is left to do. */
static bool work_unit(amx_work *w) {
    if (softmax_left(w->weighing))
        softmax_unit(w, w->weighing);
    else if (packing_left(w))
        pack_pair(w);
    else if (decoding_left(w))
        decode_token(w);
    else
        return false;
    return true;
}

/* Called after each step of up to four products. Logits are computed while their scores are in
 * L1. */
static void other_work(amx_work *w) {
    (void)prefetch_unit(w);
    if (logits_left(w->scored))
        logits_unit(w, w->scored);
    for (w->due += w->units; w->due >= w->steps; w->due -= w->steps)
        if (!work_unit(w))
            w->units = 0;
}

/* ---- scores --------------------------------------------------------------------------------- */

/* Scores of 32 tokens, from @k on, and @tiles x 16 rows. The tiles of Q stay in L1. Those of K are
 * read once. */
INLINE void scores_block(amx_work *w, const uint16_t *k, const uint32_t *q, float *s, int tiles) {
    size_t row = (size_t)w->d * sizeof *k, steps = (size_t)w->d / kDepth;
    TILE_FENCE();
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (size_t i = 0; i < steps; i++) {
        TILE_STREAM(4, k + i * kDepth, row);
        TILE_LOAD(6, q + i * kTileWords, kTileRow);
        TILE_PRODUCT(0, 4, 6);
        TILE_STREAM(5, k + (size_t)kTile * (size_t)w->d + i * kDepth, row);
        TILE_PRODUCT(2, 5, 6);
        if (tiles == 2) {
            TILE_LOAD(7, q + (steps + i) * kTileWords, kTileRow);
            TILE_PRODUCT(1, 4, 7);
            TILE_PRODUCT(3, 5, 7);
        }
        other_work(w);
    }
    size_t to = kRowBlock * sizeof *s;
    TILE_STORE(0, s, to);
    TILE_STORE(2, s + (size_t)kTile * kRowBlock, to);
    if (tiles == 2) {
        TILE_STORE(1, s + kTile, to);
        TILE_STORE(3, s + (size_t)kTile * kRowBlock + kTile, to);
    }
    TILE_FENCE();
}

/* Scores of a row block. */
static void scores(amx_work *w, softmax_work *x) {
    const uint32_t *q = w->q + (size_t)x->row * (size_t)w->d / 2;
    bool two = x->row + kRowBlock <= w->padded;
    for (int page = 0; page < x->block->pages; page++)
        for (int t = 0; t < MLA_PAGE; t += kDepth) {
            const uint16_t *k = x->block->page[page] + (size_t)t * (size_t)w->d;
            float *to = x->s + (size_t)(page * MLA_PAGE + t) * kRowBlock;
            if (two)
                scores_block(w, k, q, to, 2);
            else
                scores_block(w, k, q, to, 1);
            x->ready += x->groups;
        }
}

/* ---- values --------------------------------------------------------------------------------- */

/* The product of @tiles x 16 rows of P and 32 columns of V, in @steps products of 32 tokens. @v:
 * the tile of the first column, @apart: words from there to the same tile of the next 32 tokens. */
INLINE void values_block(amx_work *w, const uint32_t *p, const uint32_t *v, size_t apart, float *to,
                         int steps, int tiles) {
    int rows = (kRowBlock + steps - 1) / steps;
    TILE_FENCE();
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int i = 0; i < steps; i++, p += kTileWords, v += apart) {
        TILE_LOAD(4, p, kTileRow);
        TILE_LOAD(6, v, kTileRow);
        TILE_PRODUCT(0, 4, 6);
        TILE_LOAD(7, v + kTileWords, kTileRow);
        TILE_PRODUCT(1, 4, 7);
        if (tiles == 2) {
            TILE_LOAD(5, p + (size_t)kTokenSteps * kTileWords, kTileRow);
            TILE_PRODUCT(2, 5, 6);
            TILE_PRODUCT(3, 5, 7);
        }
        add_rows(w, rows);
        other_work(w);
    }
    size_t row = kColumns * sizeof *to;
    TILE_STORE(0, to, row);
    TILE_STORE(1, to + kTile, row);
    if (tiles == 2) {
        TILE_STORE(2, to + (size_t)kTile * kColumns, row);
        TILE_STORE(3, to + (size_t)kTile * kColumns + kTile, row);
    }
    TILE_FENCE();
}

static void values(amx_work *w, const weights *of) {
    size_t apart = (size_t)w->part->d_c * kTile;
    bool two = of->row + kRowBlock <= w->padded;
    for (int column = 0; column < w->part->d_c; column += kColumns) {
        const uint32_t *v = of->v + (size_t)column * kTile;
        float *to = w->product[column / kColumns % 2];
        if (two)
            values_block(w, of->p, v, apart, to, of->steps, 2);
        else
            values_block(w, of->p, v, apart, to, of->steps, 1);
        finish_sums(w);
        start_sums(w, of, to, column);
    }
    finish_sums(w);
}

/* ---- the part ------------------------------------------------------------------------------- */

/* Begins block number @n: the next block is decoded, and V of this one packed. */
static void begin_block(amx_work *w, int64_t n) {
    const token_block *b = &w->block[n % kBlocks],
                      *next = start_block(w, n + 1, b->first + kTokens);
    start_packing(w, b);
    w->decode_units = (start_decoding(w, next) + w->row_blocks - 1) / w->row_blocks;
    start_prefetch(w, next->first + prefetch_lead(w->part));
}

/* Prepares other_work() for the steps of one row block. @left: number of row blocks, from this one
 * on, beside which V must be packed. */
static void pace_work(amx_work *w, const softmax_work *x, const weights *of, int left) {
    const softmax_work *before = w->weighing;
    w->units = w->decode_units;
    if (softmax_left(before))
        w->units += before->groups * before->block->pages * page_units(w->part->precision);
    if (left > 0)
        w->units += (packing_left(w) + left - 1) / left;
    w->steps = of ? of->steps * w->part->d_c / kColumns : 0;
    w->steps += x ? x->block->pages * (MLA_PAGE / kDepth) * w->d / kDepth : 0;
    w->due = 0;
}

/* Passes P of a row block, whose logits are complete, to the next two stages. */
static void pass_on(amx_work *w, softmax_work *x) {
    const token_block *b = x->block;
    weights *to = x->to;
    finish_logits(w, x);
    to->row = x->row;
    to->steps = b->pages * (MLA_PAGE / kDepth);
    to->v = b->v;
    to->first = b->first == w->part->first;
    to->last = b->first + b->tokens == w->part->end;
}

/* An item is one row block of one token block. Item i has its scores computed in round i, its
 * softmax in round i + 1, and its values in round i + 2. */
static void attend_items(amx_work *w, int64_t items) {
    int packing = w->row_blocks > 1 ? 2 : 1; /* V of a block is packed in its first rounds */
    for (int64_t i = 0; i < items + 2; i++) {
        int at = (int)(i % w->row_blocks);
        softmax_work *x = i < items ? &w->softmax[i % 2] : NULL;
        weights *of = &w->weighed[i % 2];
        w->scored = &w->softmax[i % 2];
        w->weighing = &w->softmax[(i + 1) % 2];
        if (x && at == 0)
            begin_block(w, i / w->row_blocks);
        if (x)
            start_softmax(w, x, &w->block[i / w->row_blocks % kBlocks], at * kRowBlock, of);
        pace_work(w, x, i < 2 ? NULL : of, packing - at);
        if (x)
            scores(w, x);
        if (i >= 2)
            values(w, of);
        finish_softmax(w, w->weighing);
        if (x)
            pass_on(w, x);
        if (at == packing - 1)
            finish_packing(w);
        if (at == w->row_blocks - 1)
            finish_decoding(w);
    }
}

/* Prefetches the first block, and chooses the number of lines of a unit such that the steps of one
 * block are enough for the pages of the next one. */
static void prefetch_first(amx_work *w) {
    int bytes = w->part->precision == MLA_FP8 ? w->part->d_c + 2 * w->part->d_r : 2 * w->d;
    int per_steps = w->row_blocks * (w->d + w->part->d_c) / kDepth;
    w->prefetch.lines = (kDepth * bytes / kLine + per_steps - 1) / per_steps;
    for (int64_t lead = 0; lead <= prefetch_lead(w->part); lead += MLA_PAGE) {
        start_prefetch(w, w->part->first + lead);
        while (prefetch_unit(w)) {
        }
    }
}

__attribute__((nonnull)) static void attend(const cpu_part *part, void *memory, float *o, float *m,
                                            float *l) {
    size_t bytes;
    amx_work w = work_layout(memory, part->rows, part->d_c, part->d_r, &bytes);
    w.part = part;
    w.out = o;
    softmax_begin(&w.state, part);
    if (part->first == part->end) {
        memset(o, 0, (size_t)part->rows * (size_t)part->d_c * sizeof *o);
    } else {
        prefetch_first(&w);
        make_tables(w.tables);
        pack_q(&w);
        (void)start_decoding(&w, start_block(&w, 0, part->first));
        finish_decoding(&w);
        tiles_begin();
        attend_items(&w, (part->end - part->first + kTokens - 1) / kTokens * w.row_blocks);
        tiles_end();
    }
    softmax_end(&w.state, part->rows, m, l);
}

/* ---- probe ---------------------------------------------------------------------------------- */

/* Products of tiles that are loaded from L1, two of one operand with two of the other, as in a
 * matrix product that is blocked for the caches. Returns the number of FLOP. */
static double multiply(const uint16_t *operands, int64_t rounds) {
    enum { kSteps = 4 };
    _Alignas(64) uint16_t tile[kSteps][4][2 * kTileWords];
    _Alignas(64) float sums[kTileWords];
    for (int i = 0; i < kSteps * 4; i++)
        for (int j = 0; j < 2 * kTileWords; j++)
            tile[i / 4][i % 4][j] = operands[j % CPU_OPERANDS];
    tiles_begin();
    TILE_FENCE();
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < kSteps; i++) {
            TILE_LOAD(4, tile[i][0], kTileRow);
            TILE_LOAD(6, tile[i][2], kTileRow);
            TILE_PRODUCT(0, 4, 6);
            TILE_LOAD(5, tile[i][1], kTileRow);
            TILE_PRODUCT(2, 5, 6);
            TILE_LOAD(7, tile[i][3], kTileRow);
            TILE_PRODUCT(1, 4, 7);
            TILE_PRODUCT(3, 5, 7);
        }
    TILE_STORE(0, sums, kTileRow);
    tiles_end();
    return (double)rounds * kSteps * 4 * 2 * kTile * kTile * kDepth;
}

#endif
