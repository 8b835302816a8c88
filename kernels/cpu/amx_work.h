/* amx_work.h - memory of one part of the AMX kernel, and the conversion of pages and queries into
 * the layouts that tiles need.
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
    kPagePairs = MLA_PAGE / 2,
    kSmallTokens = 2 * MLA_PAGE, /* tokens of a block, if the part has one row block */
    kPackColumns = 128,          /* columns of a unit that packs V, if there are more */
    kDecodeColumns = 256,        /* columns of a unit that decodes K, if there are more */
};

/* Up to kBlockPages consecutive pages of the sequence. Tokens after the part's last one are
 * zeros. */
typedef struct {
    int64_t first; /* first token */
    int pages, tokens;
    int64_t slot[kBlockPages];         /* the first slot of each page */
    const uint16_t *page[kBlockPages]; /* [64][d] bf16: in the cache, or in amx_work.k */
    float *a_k;                        /* [kTokens] MLA_FP8: scales of the tokens */
} token_block;

/* The softmax of one row block and one token block. It proceeds in units of work, so that it can
 * run between tile products (amx_softmax.h): first the logits, then P for one group of LANES rows
 * after the other. */
typedef struct {
    const token_block *block;
    float *s;   /* [kTokens][kRowBlock]: scores, then logits, then P */
    int row;    /* first row of the row block */
    int groups; /* groups of LANES rows */
    bool whole; /* every row sees every token of the block, and its pages are full */
    int ready;  /* units of logits whose scores are complete */
    int logits; /* units of logits that are done */
    int group;  /* whose P is computed */
    int unit;   /* the next unit of P of this group */
    vf largest[kRowBlock / LANES]; /* the largest logit so far, for each group of rows */
    vf factor, shift;  /* of this group: softmax_state.factor; minus factor times the maximum that
                           P refers to */
    vf sum;            /* the sum of P so far */
    vf page_largest;   /* MLA_FP8: largest P' of the page so far */
    vf inverse, sigma; /* MLA_FP8: 1 / sigma and sigma of the page (softmax.h) */
    vu pairs[kDepth / 2]; /* MLA_BF16: P of the current 32 tokens, in pairs of bf16 */
    vu half[16];          /* a transposition that has begun */
} softmax_work;

/* The pages of a block that are being prefetched. */
typedef struct {
    int64_t token;        /* first token of the block */
    int planes;           /* planes of pages that have been begun */
    const char *at, *end; /* the rest of the current plane */
    int lines;            /* cache lines of a unit of work */
} page_prefetch;

typedef struct {
    const cpu_part *part;
    int d, padded; /* d_c + d_r; rows rounded up to a multiple of kTile */
    uint32_t *q;   /* [padded / kTile][d / kDepth] tiles: row j has columns 2j, 2j + 1 of 16 rows */
    uint32_t *p;   /* [padded / kTile][kTokenSteps] tiles: row i has 32 tokens of query row i */
    float *o;      /* [padded / kTile][d_c / kTile] tiles */
    float *out;    /* the part's result, if the last block writes it, else NULL */
    uint16_t *k;   /* [kTokens][d] pages that are decoded, or that are not full */
    uint32_t *v;   /* [kTokenSteps][d_c / kTile] tiles: row j has tokens 2j and 2j + 1 of 16
                      columns */
    uint16_t *rows;  /* [kTile][d] queries in bf16 */
    uint8_t *tables; /* for the decoder of e4m3 */
    softmax_state state;
    bool one_block;   /* There is one row block. Then token blocks are small, units of other work
                         are large, and sort_columns() restores the order of columns at the end. */
    int block_tokens; /* tokens of a full block: kTokens or kSmallTokens */
    page_prefetch prefetch;
    token_block block[2];                  /* this block and the next one, in turn */
    softmax_work softmax[2];               /* work of this row block and of the previous one, in
                                              turn */
    softmax_work *scored;                  /* its scores are being computed, and its logits */
    softmax_work *weighed;                 /* its P is being computed */
    const token_block *decoding, *packing; /* blocks that are being decoded and packed */
    int decoded, packed;                   /* how many of their tokens are decoded, and how many
                                              pairs of tokens are packed */
    int decoded_columns, packed_columns;   /* columns of the next one that are done */
} amx_work;

static amx_work work_layout(void *memory, int rows, int d_c, int d_r, size_t *bytes) {
    amx_work w = {.d = d_c + d_r, .padded = (rows + kTile - 1) / kTile * kTile};
    size_t at = 0, d = (size_t)w.d, padded = (size_t)w.padded, columns = (size_t)d_c;
    w.q = scratch_carve(memory, &at, padded * d * sizeof(uint16_t));
    w.p = scratch_carve(memory, &at, padded * kTokens * sizeof(uint16_t));
    w.o = scratch_carve(memory, &at, padded * columns * sizeof *w.o);
    w.k = scratch_carve(memory, &at, kTokens * d * sizeof *w.k);
    w.v = scratch_carve(memory, &at, kTokens * columns * sizeof(uint16_t));
    w.rows = scratch_carve(memory, &at, kTile * d * sizeof *w.rows);
    w.tables = scratch_carve(memory, &at, kTableBytes);
    for (int i = 0; i < 2; i++) {
        w.softmax[i].s = scratch_carve(memory, &at, (size_t)kTokens * kRowBlock * sizeof(float));
        w.block[i].a_k = scratch_carve(memory, &at, kTokens * sizeof(float));
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

/* Copies @n numbers, a multiple of 32. */
INLINE void copy_numbers(uint16_t *out, const uint16_t *in, size_t n) {
    for (size_t i = 0; i < n; i += 32)
        memcpy(out + i, in + i, 32 * sizeof *out);
}

/* Copies row @row of the planes to @out as bf16. */
static void decode_row(const amx_work *w, uint16_t *out, const void *content, const void *rope,
                       int64_t row) {
    size_t d_c = (size_t)w->part->d_c, d_r = (size_t)w->part->d_r, at = (size_t)row;
    if (w->part->precision == MLA_BF16) {
        copy_numbers(out, (const uint16_t *)content + at * (d_c + d_r), d_c + d_r);
    } else {
        decode_e4m3(w->tables, out, (const uint8_t *)content + at * d_c, d_c, !w->one_block);
        copy_numbers(out + d_c, (const uint16_t *)rope + at * d_r, d_r);
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

/* ---- pages ---------------------------------------------------------------------------------- */

/* Describes the block that begins at @token. It is empty if the part ends before @token. */
static void start_block(amx_work *w, token_block *b, int64_t token) {
    const cpu_part *part = w->part;
    int64_t left = part->end - token;
    b->first = token;
    b->tokens = left < 0 ? 0 : left < w->block_tokens ? (int)left : w->block_tokens;
    b->pages = (b->tokens + MLA_PAGE - 1) / MLA_PAGE;
    for (int i = 0; i < b->pages; i++) {
        int64_t slot = mla_slot(part->table, part->cache.pages, token + (int64_t)i * MLA_PAGE);
        bool full = b->tokens >= (i + 1) * MLA_PAGE;
        b->slot[i] = slot;
        b->page[i] = w->k + (size_t)i * MLA_PAGE * (size_t)w->d;
        if (part->precision == MLA_BF16 && full)
            b->page[i] = (const uint16_t *)part->cache.content + (size_t)slot * (size_t)w->d;
        for (int j = 0; part->precision == MLA_FP8 && j < MLA_PAGE; j++) {
            int at = i * MLA_PAGE + j;
            b->a_k[at] = at < b->tokens ? part->cache.scale[slot + j] : 0.0f;
        }
    }
}

/* Begins to prefetch the pages of the block that begins at @token. */
static void start_prefetch(amx_work *w, int64_t token) {
    w->prefetch = (page_prefetch){.token = token, .lines = w->prefetch.lines};
}

/* Finds the next plane of the block's pages: of MLA_FP8, the content and the RoPE part in turn. */
static bool next_plane(const amx_work *w, page_prefetch *f) {
    const cpu_part *part = w->part;
    int planes = part->precision == MLA_FP8 ? 2 : 1;
    int64_t token = f->token + (int64_t)(f->planes / planes) * MLA_PAGE;
    if (f->planes == planes * w->block_tokens / MLA_PAGE || token >= part->end)
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
    if (f->at >= f->end && !next_plane(w, f))
        return false;
    for (int i = 0; i < f->lines; i++, f->at += kLine)
        __builtin_prefetch(f->at, 0, 2);
    return true;
}

static void start_decoding(amx_work *w, const token_block *b) {
    w->decoding = b;
    w->decoded = w->decoded_columns = 0;
}

INLINE bool decoding_left(const amx_work *w) {
    return w->decoded / MLA_PAGE < w->decoding->pages;
}

/* Decodes up to kDecodeColumns columns of a token, from w->decoded_columns on; with the last ones,
 * copies the RoPE part. */
static void decode_columns(amx_work *w, uint16_t *k, size_t slot) {
    size_t d_c = (size_t)w->part->d_c, d_r = (size_t)w->part->d_r, at = (size_t)w->decoded_columns;
    size_t now = d_c - at < kDecodeColumns ? d_c - at : kDecodeColumns;
    decode_e4m3(w->tables, k + at, (const uint8_t *)w->part->cache.content + slot * d_c + at, now,
                true);
    w->decoded_columns += (int)now;
    if (at + now == d_c)
        copy_numbers(k + d_c, (const uint16_t *)w->part->cache.rope + slot * d_r, d_r);
}

/* Decodes the next token of a block into w->k, or some of its columns if there are several row
 * blocks. A page that is read from the cache is left out. */
static void decode_unit(amx_work *w) {
    const token_block *b = w->decoding;
    const cpu_part *part = w->part;
    int page = w->decoded / MLA_PAGE;
    size_t d = (size_t)w->d;
    uint16_t *k = w->k + (size_t)w->decoded * d;
    int64_t slot = b->slot[page] + w->decoded % MLA_PAGE;
    if (b->page[page] != w->k + (size_t)page * MLA_PAGE * d) {
        w->decoded += MLA_PAGE;
        return;
    }
    if (w->decoded >= b->tokens) {
        memset(k, 0, d * sizeof *k);
    } else if (w->one_block || part->precision == MLA_BF16) {
        decode_row(w, k, part->cache.content, part->cache.rope, slot);
    } else {
        decode_columns(w, k, (size_t)slot);
        if (w->decoded_columns < part->d_c)
            return;
    }
    w->decoded_columns = 0;
    w->decoded++;
}

static void finish_decoding(amx_work *w) {
    while (decoding_left(w))
        decode_unit(w);
}

static void start_packing(amx_work *w, const token_block *b) {
    w->packing = b;
    w->packed = w->packed_columns = 0;
}

INLINE bool packing_left(const amx_work *w) {
    return w->packed / kPagePairs < w->packing->pages;
}

/* Interleaves the next two tokens of a block into the tiles of V, or up to kPackColumns of their
 * columns if there are several row blocks. */
static void pack_columns(amx_work *w) {
    int page = w->packed / kPagePairs, pair = w->packed % kPagePairs, d_c = w->part->d_c;
    int left = d_c - w->packed_columns,
        now = w->one_block || left < kPackColumns ? left : kPackColumns;
    size_t d = (size_t)w->d, tiles = (size_t)d_c / kTile, at = (size_t)w->packed_columns;
    const uint16_t *rows = w->packing->page[page] + (size_t)pair * 2 * d + at;
    size_t step = (size_t)w->packed / kTile, row = (size_t)w->packed % kTile;
    interleave(w->v + (step * tiles + at / kTile) * kTileWords + row * kTile, rows, rows + d,
               (size_t)now / kTile, !w->one_block);
    w->packed_columns += now;
    if (w->packed_columns == d_c) {
        w->packed_columns = 0;
        w->packed++;
    }
}

static void finish_packing(amx_work *w) {
    while (packing_left(w))
        pack_columns(w);
}

#endif
