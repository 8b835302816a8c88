/* amx_kernel.h - computes one part with tile products, for 16 query rows and more.
 *
 * amx.c compiles it for the tiles of the processor, amx_emulated.c for tiles in software. The part
 * is processed in blocks of up to 256 tokens, and each block in row blocks of up to 32 query rows:
 *   scores   S^T = K Q^T   K's rows are used as they lie in the cache or in the decoded page. Q^T
 *                          is packed once per part.
 *   softmax  rows in the lanes (amx_softmax.h); P is written to tiles
 *   values   O += P V      V is interleaved once per page, for all query rows. O is rescaled
 *                          before, only in rows whose maximum has changed.
 * Two tiles of one operand are multiplied with two of the other. So four of the eight tile
 * registers hold sums, and four hold operands.
 *
 * A tile product keeps the tile unit busy for 16 clocks, and the vector units are free meanwhile.
 * So after each step of up to four products, the core does one unit of work on which no running
 * product depends: a piece of the softmax of the previous row block, or of packing the next token
 * block. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_KERNEL_H
#define SNAPMLA_KERNELS_CPU_AMX_KERNEL_H

#include "kernels/cpu/amx_softmax.h"
#include "kernels/cpu/amx_work.h"

static void other_work(amx_work *w) {
    if (softmax_left(w))
        softmax_unit(w);
    else if (packing_left(w))
        pack_pair(w);
}

/* Scores of 32 tokens, from @k on, and @tiles x 16 rows. */
INLINE void scores_block(amx_work *w, const uint16_t *k, const uint32_t *q, float *s, int tiles) {
    size_t row = (size_t)w->d * sizeof *k, steps = (size_t)w->d / kDepth;
    TILE_FENCE();
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (size_t i = 0; i < steps; i++) {
        TILE_LOAD(4, k + i * kDepth, row);
        TILE_LOAD(6, q + i * kTileWords, kTileRow);
        TILE_PRODUCT(0, 4, 6);
        TILE_LOAD(5, k + (size_t)kTile * (size_t)w->d + i * kDepth, row);
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

static void scores(amx_work *w, const token_block *b, float *s, int row) {
    const uint32_t *q = w->q + (size_t)row * (size_t)w->d / 2;
    bool two = row + kRowBlock <= w->padded;
    for (int page = 0; page < b->pages; page++)
        for (int t = 0; t < MLA_PAGE; t += kDepth) {
            const uint16_t *k = b->page[page] + (size_t)t * (size_t)w->d;
            float *to = s + (size_t)(page * MLA_PAGE + t) * kRowBlock;
            if (two)
                scores_block(w, k, q, to, 2);
            else
                scores_block(w, k, q, to, 1);
        }
}

/* Adds to 32 columns of @tiles x 16 rows of O, in @steps products of 32 tokens. @v: the tile of the
 * first column, @apart: words from there to the same tile of the next 32 tokens. */
INLINE void values_block(amx_work *w, const uint32_t *p, const uint32_t *v, size_t apart, float *o,
                         size_t d_c, int steps, int tiles) {
    size_t row = d_c * sizeof *o;
    TILE_FENCE();
    TILE_LOAD(0, o, row);
    TILE_LOAD(1, o + kTile, row);
    if (tiles == 2) {
        TILE_LOAD(2, o + kTile * d_c, row);
        TILE_LOAD(3, o + kTile * d_c + kTile, row);
    }
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
        other_work(w);
    }
    TILE_STORE(0, o, row);
    TILE_STORE(1, o + kTile, row);
    if (tiles == 2) {
        TILE_STORE(2, o + kTile * d_c, row);
        TILE_STORE(3, o + kTile * d_c + kTile, row);
    }
    TILE_FENCE();
}

static void rescale_row(float *o, float by, int d_c) {
    for (int d = 0; d < d_c; d += LANES)
        vf_store(o + d, vf_load(o + d) * by);
}

static void values(amx_work *w, const token_block *b, int row) {
    size_t d_c = (size_t)w->part->d_c, apart = d_c * kTile;
    const uint32_t *p = w->p + (size_t)row * kTokenSteps * kTile;
    bool two = row + kRowBlock <= w->padded;
    for (int i = row; i < row + kRowBlock && i < w->part->rows; i++)
        if (w->state.rescale[i] != 1.0f)
            rescale_row(w->o + (size_t)i * d_c, w->state.rescale[i], w->part->d_c);
    for (size_t c = 0; c < d_c; c += 2 * kTile) {
        float *o = w->o + (size_t)row * d_c + c;
        const uint32_t *v = b->v + c * kTile;
        if (two)
            values_block(w, p, v, apart, o, d_c, b->pages * 2, 2);
        else
            values_block(w, p, v, apart, o, d_c, b->pages * 2, 1);
    }
}

/* The scores of row block i are computed beside the softmax of row block i - 1, and the values of
 * the other row blocks beside the softmax of the last one. */
static void attend_block(amx_work *w, const token_block *b) {
    int last = (w->padded - 1) / kRowBlock * kRowBlock;
    for (int row = 0; row <= last; row += kRowBlock) {
        float *s = w->s[row / kRowBlock % 2];
        scores(w, b, s, row);
        finish_softmax(w);
        start_softmax(w, b, s, row);
    }
    for (int row = 0; row <= last; row += kRowBlock) {
        if (row == last)
            finish_softmax(w);
        values(w, b, row);
    }
}

__attribute__((nonnull)) static void attend(const cpu_part *part, void *memory, float *o, float *m,
                                            float *l) {
    size_t bytes, sums = (size_t)part->rows * (size_t)part->d_c * sizeof *o;
    amx_work w = work_layout(memory, part->rows, part->d_c, part->d_r, &bytes);
    w.part = part;
    make_tables(w.tables);
    pack_q(&w);
    softmax_begin(&w.state, part);
    memset(w.o, 0, (size_t)w.padded * (size_t)part->d_c * sizeof *w.o);
    tiles_begin();
    start_block(&w, &w.block[0], part->first);
    finish_packing(&w);
    int now = 0;
    for (int64_t token = part->first; token < part->end; token += kTokens, now = !now) {
        start_block(&w, &w.block[!now], token + kTokens);
        attend_block(&w, &w.block[now]);
        finish_packing(&w);
    }
    tiles_end();
    memcpy(o, w.o, sums);
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
