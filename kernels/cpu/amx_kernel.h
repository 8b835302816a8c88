/* amx_kernel.h - computes one part with tile products, for 16 query rows and more.
 *
 * amx.c compiles it for the tiles of the processor, amx_emulated.c for tiles in software. The part
 * is processed in blocks of up to 256 tokens, or 128 if there are at most 32 query rows, and each
 * block in row blocks of up to 32 query rows:
 *   scores   S^T = K Q^T   K's rows are used as they lie in the cache or in the decoded page. Q^T
 *                          is packed once per part.
 *   softmax  rows in the lanes (amx_softmax.h); P is written to tiles
 *   values   O += P V      V is interleaved once per page, for all query rows. O is in tiles. It is
 *                          rescaled before, only in rows whose maximum has changed.
 * Two tiles of one operand are multiplied with two of the other. So four of the eight tile
 * registers hold sums, and four hold operands.
 *
 * A tile product keeps the tile unit busy for 16 clocks, and the vector units are free meanwhile.
 * So after each product, or each pair of products, the core does one unit of work on which no
 * running product depends (other_work()). Work for which there are not enough products runs by
 * itself. On a processor that throttles its tile unit, products that follow each other directly
 * take more time than products with other instructions between them
 * (docs/lab/2026-11-30-amx-peers.md). Several row blocks have enough products for all work, so
 * their units are small, and one follows each product. They also prefetch a tile of the next step
 * after two products of each step. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_KERNEL_H
#define SNAPMLA_KERNELS_CPU_AMX_KERNEL_H

#include "kernels/cpu/amx_softmax.h"
#include "kernels/cpu/amx_work.h"

enum { kLargePartRows = kTile }; /* cpu_isa.large_parts_from */

/* Logits are computed while their scores are in L1, and V is packed while the scores of the first
 * row block read the same pages. K of the next block may be decoded when all scores of this block
 * are known. */
static void other_work(amx_work *w) {
    if (logits_left(w->scored))
        logits_unit(w, w->scored);
    else if (softmax_left(w->weighed))
        softmax_unit(w, w->weighed);
    else if (packing_left(w))
        pack_columns(w);
    else if (decoding_left(w))
        decode_unit(w);
}

/* Called after the first product of a pair. */
INLINE void work_between(amx_work *w) {
    if (!w->one_block)
        other_work(w);
}

/* If there are several row blocks, prefetches a tile to L1, whose rows lie @bytes from each
 * other. */
INLINE void prefetch_tile(const amx_work *w, const void *from, size_t bytes) {
    if (w->one_block)
        return;
    UNROLL
    for (size_t i = 0; i < kTile; i++)
        __builtin_prefetch((const char *)from + i * bytes, 0, 3);
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
        const uint16_t *above = k + i * kDepth, *below = above + (size_t)kTile * (size_t)w->d;
        TILE_LOAD(4, above, row);
        TILE_LOAD(6, q + i * kTileWords, kTileRow);
        TILE_PRODUCT(0, 4, 6);
        prefetch_tile(w, above + kDepth, row);
        work_between(w);
        TILE_LOAD(5, below, row);
        TILE_PRODUCT(2, 5, 6);
        prefetch_tile(w, below + kDepth, row);
        other_work(w);
        if (tiles == 2) {
            TILE_LOAD(7, q + (steps + i) * kTileWords, kTileRow);
            TILE_PRODUCT(1, 4, 7);
            work_between(w);
            TILE_PRODUCT(3, 5, 7);
            other_work(w);
        }
        (void)prefetch_unit(w);
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
            x->ready += x->groups * (kDepth / kLogitTokens);
        }
}

/* Where 32 rows and columns of O lie: in the tiles of w->o or in the part's result. */
typedef struct {
    float *at;    /* first number */
    size_t row;   /* bytes from a row to the next one */
    size_t right; /* numbers from the first 16 columns to the next 16 */
} sums_place;

/* Adds to 32 columns of @tiles x 16 rows of O, in @steps products of 32 tokens. The sums begin with
 * those at @from, or with zero if from.at is NULL, and are stored to @to. @v: the tile of the first
 * column. @apart: words from there to the same tile of the next 32 tokens, and from the first 16
 * rows of O to the next ones. */
INLINE void values_block(amx_work *w, const uint32_t *p, const uint32_t *v, size_t apart,
                         sums_place from, sums_place to, int steps, int tiles) {
    TILE_FENCE();
    if (!from.at) {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    } else {
        TILE_LOAD(0, from.at, from.row);
        TILE_LOAD(1, from.at + from.right, from.row);
        if (tiles == 2) {
            TILE_LOAD(2, from.at + apart, from.row);
            TILE_LOAD(3, from.at + apart + from.right, from.row);
        }
    }
    for (int i = 0; i < steps; i++, p += kTileWords, v += apart) {
        TILE_LOAD(4, p, kTileRow);
        TILE_LOAD(6, v, kTileRow);
        TILE_PRODUCT(0, 4, 6);
        prefetch_tile(w, v + apart, kTileRow);
        work_between(w);
        TILE_LOAD(7, v + kTileWords, kTileRow);
        TILE_PRODUCT(1, 4, 7);
        prefetch_tile(w, v + apart + kTileWords, kTileRow);
        other_work(w);
        if (tiles == 2) {
            TILE_LOAD(5, p + (size_t)kTokenSteps * kTileWords, kTileRow);
            TILE_PRODUCT(2, 5, 6);
            work_between(w);
            TILE_PRODUCT(3, 5, 7);
            other_work(w);
        }
        (void)prefetch_unit(w);
    }
    TILE_STORE(0, to.at, to.row);
    TILE_STORE(1, to.at + to.right, to.row);
    if (tiles == 2) {
        TILE_STORE(2, to.at + apart, to.row);
        TILE_STORE(3, to.at + apart + to.right, to.row);
    }
    TILE_FENCE();
}

/* Row @row of O: LANES numbers at a time, kTileWords from each other for every 16 columns. */
static float *sums_of_row(const amx_work *w, int row) {
    return w->o + (size_t)(row / kTile) * kTile * (size_t)w->part->d_c +
           (size_t)(row % kTile) * kTile;
}

static void rescale_row(const amx_work *w, int row) {
    float *o = sums_of_row(w, row), by = w->state.rescale[row];
    for (int d = 0; d < w->part->d_c; d += kTile, o += kTileWords)
        for (int i = 0; i < kTile; i += LANES)
            vf_store(o + i, vf_load(o + i) * by);
}

static void copy_row(const amx_work *w, float *to, int row) {
    const float *o = sums_of_row(w, row);
    for (int d = 0; d < w->part->d_c; d += kTile, o += kTileWords)
        memcpy(to + d, o, kTile * sizeof *o);
}

static void values(amx_work *w, const token_block *b, int row) {
    size_t d_c = (size_t)w->part->d_c, apart = d_c * kTile;
    const uint32_t *p = w->p + (size_t)row * kTokenSteps * kTile;
    bool two = row + kRowBlock <= w->padded, first = b->first == w->part->first;
    for (int i = row; !first && i < row + kRowBlock && i < w->part->rows; i++)
        if (w->state.rescale[i] != 1.0f)
            rescale_row(w, i);
    for (size_t at = 0; at < apart; at += (size_t)2 * kTileWords) {
        sums_place tiles = {w->o + (size_t)row / kTile * apart + at, kTileRow, kTileWords};
        sums_place from = first ? (sums_place){0} : tiles, to = tiles;
        if (w->out && b->first + b->tokens == w->part->end)
            to = (sums_place){w->out + (size_t)row * d_c + at / kTile, d_c * sizeof *w->out, kTile};
        if (two)
            values_block(w, p, w->v + at, apart, from, to, b->pages * 2, 2);
        else
            values_block(w, p, w->v + at, apart, from, to, b->pages * 2, 1);
    }
}

/* The scores of row block i are computed beside the softmax of row block i - 1, and the values of
 * the other row blocks beside the softmax of the last one. */
static void attend_block(amx_work *w, const token_block *b, token_block *next) {
    int last = (w->padded - 1) / kRowBlock * kRowBlock;
    start_packing(w, b);
    start_prefetch(w, b->first + w->block_tokens);
    for (int row = 0; row <= last; row += kRowBlock) {
        w->scored = &w->softmax[w->weighed == &w->softmax[0]];
        start_softmax(w, w->scored, b, row);
        scores(w, w->scored);
        finish_softmax(w, w->weighed);
        finish_logits(w, w->scored);
        w->weighed = w->scored;
    }
    finish_packing(w);
    start_block(w, next, b->first + w->block_tokens);
    start_decoding(w, next);
    for (int row = 0; row <= last; row += kRowBlock) {
        if (row == last)
            finish_softmax(w, w->weighed);
        values(w, b, row);
    }
    finish_decoding(w);
}

/* Prefetches the first block, and chooses the number of lines of a unit such that the steps of one
 * block are enough for the pages of the next one. */
static void prefetch_first(amx_work *w) {
    int row_blocks = (w->padded + kRowBlock - 1) / kRowBlock;
    int bytes = w->part->precision == MLA_FP8 ? w->part->d_c + 2 * w->part->d_r : 2 * w->d;
    int per_steps = row_blocks * (w->d + w->part->d_c) / kDepth;
    w->prefetch.lines = (kDepth * bytes / kLine + per_steps - 1) / per_steps;
    start_prefetch(w, w->part->first);
    while (prefetch_unit(w)) {
    }
}

/* Makes subnormal numbers zero, as tile products do in any case. P can be subnormal if a logit is
 * far below the maximum; some processors would need more than 100 clocks for such a result. Returns
 * the control register as it was before. */
static unsigned flush_subnormals(void) {
    enum { kFlush = 0x8040 }; /* flush to zero; denormals are zero */
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | kFlush);
    return before;
}

__attribute__((nonnull)) static void attend(const cpu_part *part, void *memory, float *o, float *m,
                                            float *l) {
    size_t bytes;
    amx_work w = work_layout(memory, part->rows, part->d_c, part->d_r, &bytes);
    unsigned control = flush_subnormals();
    w.part = part;
    w.one_block = w.padded <= kRowBlock;
    w.block_tokens = w.one_block ? kSmallTokens : kTokens;
    prefetch_first(&w);
    make_tables(w.tables);
    pack_q(&w);
    softmax_begin(&w.state, part);
    w.out = part->rows == w.padded ? o : NULL;
    w.weighed = &w.softmax[1]; /* nothing to do */
    start_block(&w, &w.block[0], part->first);
    start_decoding(&w, &w.block[0]);
    finish_decoding(&w);
    tiles_begin();
    int now = 0;
    for (int64_t token = part->first; token < part->end; token += w.block_tokens, now = !now)
        attend_block(&w, &w.block[now], &w.block[!now]);
    tiles_end();
    if (part->first == part->end)
        memset(o, 0, (size_t)part->rows * (size_t)part->d_c * sizeof *o);
    else
        for (int i = 0; !w.out && i < part->rows; i++)
            copy_row(&w, o + (size_t)i * (size_t)part->d_c, i);
    for (int i = 0; w.one_block && i < part->rows; i++)
        sort_columns(o + (size_t)i * (size_t)part->d_c, (size_t)part->d_c,
                     part->precision == MLA_FP8);
    softmax_end(&w.state, part->rows, m, l);
    _mm_setcsr(control);
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
