/* amx_work.h - memory of one part of the AMX kernel, and the layout of queries for tiles.
 *
 * The including file defines the tile operations (amx_tiles.h or amx_emulated_tiles.h) and the
 * vector operations of amx_vectors.h or amx_emulated_vectors.h. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_WORK_H
#define SNAPMLA_KERNELS_CPU_AMX_WORK_H

#include "kernels/cpu/cpu_dataflow.h"
#include "kernels/cpu/softmax_state.h"

enum {
    kTile = 16,                       /* rows of a tile, and FP32 columns */
    kTileRow = 64,                    /* bytes of a tile's row */
    kTileWords = 256,                 /* pairs of bf16, or FP32 numbers, of a tile */
    kDepth = 32,                      /* terms that one tile product adds up */
    kBlockPages = 4,                  /* pages of a token block */
    kTokens = kBlockPages * MLA_PAGE, /* tokens of a full token block */
    kTokenSteps = kTokens / kDepth,   /* products over a full token block */
    kRowBlock = 2 * kTile,            /* query rows whose scores are computed together */
    kColumns = 2 * kTile,             /* columns of O that are computed together */
    kPagePairs = MLA_PAGE / 2,
    kBlocks = 3, /* blocks in use: one whose values are computed, one whose scores are, and one
                    that is being decoded */
};

/* Up to kBlockPages consecutive pages of the sequence. Tokens after the part's last one are
 * zeros. */
typedef struct {
    int64_t first; /* first token */
    int pages, tokens;
    const uint16_t *page[kBlockPages]; /* [64][d] bf16: in the cache, or in k */
    uint16_t *k; /* [kTokens][d] pages that are decoded, or that are not full */
    uint32_t
        *v; /* [kTokenSteps][d_c / kTile] tiles: row j has tokens 2j and 2j + 1 of 16 columns, in
                    the order of interleave()
                  */
    float *a_k; /* [kTokens] MLA_FP8: scales of the tokens */
} token_block;

/* P of one row block and one token block, for the product with V. */
typedef struct {
    uint32_t *p;       /* [2][kTokenSteps] tiles: row i has 32 tokens of query row i */
    float *rescale;    /* [kRowBlock] factors of the sums so far */
    int row;           /* first row of the row block */
    int steps;         /* products over the tokens of the block */
    const uint32_t *v; /* of the block */
    bool first, last;  /* whether the block is the part's first or last one */
} weights;

/* The softmax of one row block and one token block. It proceeds in units of work, so that it can
 * run between tile products (amx_softmax.h): first the logits, then P for one group of LANES rows
 * after the other. */
typedef struct {
    const token_block *block;
    float *s;       /* [kTokens][kRowBlock]: scores, then logits, then P' */
    weights *to;    /* where P goes */
    int row;        /* first row of the row block */
    int groups;     /* groups of LANES rows */
    bool whole;     /* every row sees every token of the block, and its pages are full */
    int ready;      /* units of logits whose scores are complete */
    int logits;     /* units of logits that are done */
    int group;      /* whose P is computed */
    int page, unit; /* the next unit of P of this group */
    vf largest[kRowBlock / LANES]; /* of each group: the largest logit so far; when all are known,
                                      the maximum that P refers to, times the factor */
    vf factor, against;            /* of this group: softmax_state.factor, and its `largest` */
    vf sum;                        /* the sum of P so far */
    vf page_largest;               /* MLA_FP8: largest P' of the page so far */
    vf inverse, sigma;             /* MLA_FP8: 1 / sigma and sigma of the page (softmax.h) */
} softmax_work;

/* The pages that are being prefetched. */
typedef struct {
    int64_t token;        /* first token */
    int planes;           /* planes of pages that have been begun */
    const char *at, *end; /* the rest of the current plane */
    int lines;            /* cache lines of a unit of work */
} page_prefetch;

/* The products P V of one row block and kColumns columns, which are being added to O. */
typedef struct {
    const weights *of;
    const float *product; /* [kRowBlock][kColumns] */
    int column;           /* first column */
    int row, rows;        /* the next row; all rows */
} sums_work;

typedef struct {
    const cpu_part *part;
    int d, padded; /* d_c + d_r; rows rounded up to a multiple of kTile */
    int row_blocks;
    uint32_t *q; /* [padded / kTile][d / kDepth] tiles: row j has columns 2j, 2j + 1 of 16
                         rows */
    float *o;    /* [row_blocks][d_c / kColumns][kRowBlock][kColumns] sums so far, with columns
                          in the order of interleave() */
    float *out;  /* [rows][d_c] the part's result */
    float *product[2]; /* [kRowBlock][kColumns] */
    uint32_t *pairs;   /* [kDepth / 2][LANES] P of 32 tokens and one group, before transposition */
    uint16_t *k[2];    /* token_block.k, in turn */
    uint32_t *v[kBlocks]; /* token_block.v, in turn; with several row blocks, only two are used */
    uint16_t *rows;       /* [kTile][d] queries in bf16 */
    uint8_t *tables;      /* for the decoder of e4m3 */
    softmax_state state;
    page_prefetch prefetch;
    token_block block[kBlocks]; /* consecutive blocks, in turn */
    weights weighed[2];
    softmax_work softmax[2]; /* of consecutive row blocks, in turn */
    softmax_work *scored;    /* its scores are being computed, and its logits */
    softmax_work *weighing;  /* its P is being computed */
    sums_work sums;
    const token_block *packing, *decoding; /* blocks that are being packed and decoded */
    int packed, decoded;   /* how many pairs of tokens are packed; how many tokens are decoded */
    int decode_units;      /* tokens to decode beside each row block */
    int units, steps, due; /* other_work(): units of work for so many steps; the remainder */
} amx_work;

static amx_work work_layout(void *memory, int rows, int d_c, int d_r, size_t *bytes) {
    amx_work w = {.d = d_c + d_r, .padded = (rows + kTile - 1) / kTile * kTile};
    size_t at = 0, d = (size_t)w.d, columns = (size_t)d_c;
    w.row_blocks = (rows + kRowBlock - 1) / kRowBlock;
    w.q = scratch_carve(memory, &at, (size_t)w.padded * d * sizeof(uint16_t));
    w.o = scratch_carve(memory, &at, (size_t)w.row_blocks * kRowBlock * columns * sizeof *w.o);
    w.pairs = scratch_carve(memory, &at, kDepth / 2 * LANES * sizeof *w.pairs);
    w.rows = scratch_carve(memory, &at, kTile * d * sizeof *w.rows);
    w.tables = scratch_carve(memory, &at, kTableBytes);
    for (int i = 0; i < 2; i++) {
        w.product[i] = scratch_carve(memory, &at, kRowBlock * kColumns * sizeof(float));
        w.k[i] = scratch_carve(memory, &at, kTokens * d * sizeof(uint16_t));
        w.softmax[i].s = scratch_carve(memory, &at, (size_t)kTokens * kRowBlock * sizeof(float));
        w.weighed[i].p = scratch_carve(memory, &at, (size_t)kTokens * kRowBlock * sizeof(uint16_t));
        w.weighed[i].rescale = scratch_carve(memory, &at, kRowBlock * sizeof(float));
    }
    for (int i = 0; i < kBlocks; i++) {
        w.block[i].a_k = scratch_carve(memory, &at, kTokens * sizeof(float));
        w.v[i] = scratch_carve(memory, &at, kTokens * columns * sizeof(uint16_t));
    }
    w.state = softmax_layout(memory, &at, w.padded);
    *bytes = at;
    return w;
}

static size_t scratch_bytes(int rows, int d_c, int d_r) {
    size_t bytes;
    (void)work_layout(NULL, rows, d_c, d_r, &bytes);
    return bytes;
}

/* Copies row @row of the planes to @out as bf16. */
static void decode_row(const amx_work *w, uint16_t *out, const void *content, const void *rope,
                       int64_t row) {
    size_t d_c = (size_t)w->part->d_c, d_r = (size_t)w->part->d_r, at = (size_t)row;
    if (w->part->precision == MLA_BF16) {
        memcpy(out, (const uint16_t *)content + at * (d_c + d_r), (d_c + d_r) * sizeof *out);
    } else {
        decode_e4m3(w->tables, out, (const uint8_t *)content + at * d_c, d_c);
        memcpy(out + d_c, (const uint16_t *)rope + at * d_r, d_r * sizeof *out);
    }
}

/* Packs Q^T into tiles. Padding rows are zeros. */
static void pack_q(amx_work *w) {
    const cpu_part *part = w->part;
    size_t d = (size_t)w->d;
    uint32_t *to = w->q;
    for (int row = 0; row < w->padded; row += kTile) {
        for (int i = 0; i < kTile; i++) {
            if (row + i < part->rows)
                decode_row(w, w->rows + (size_t)i * d, part->q, part->q_rope, part->row0 + row + i);
            else
                memset(w->rows + (size_t)i * d, 0, d * sizeof *w->rows);
        }
        for (size_t pair = 0; pair < d / 2; pair += LANES, to += (size_t)LANES * kTile)
            transpose(to, (const uint32_t *)(const void *)w->rows + pair, d / 2);
    }
}

#endif
