/* amx_softmax.h - the softmax of softmax.h over a token block of several pages, in units of work
 * that fit between tile products.
 *
 * The running maximum advances once per token block. MLA_FP8 rounds P to e4m3 with one scale per
 * page, as softmax.h says; the scale is then multiplied into P, because tiles of different pages
 * share one sum. So P is rounded to bf16 in both arms. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_SOFTMAX_H
#define SNAPMLA_KERNELS_CPU_AMX_SOFTMAX_H

#include "kernels/cpu/amx_work.h"

enum {
    kLogitTokens = kDepth,             /* tokens of a unit that computes logits and their maximum */
    kExpTokens = 8,                    /* tokens of a unit that computes P */
    kPackTokens = kDepth,              /* tokens of a unit that rounds P and writes it to tiles */
    kExpUnits = MLA_PAGE / kExpTokens, /* per page */
    kPackUnits = MLA_PAGE / kPackTokens, /* per page */
    kPageUnits = kExpUnits + kPackUnits,
};

/* Begins the softmax of the row block that starts at @row. */
static void start_softmax(amx_work *w, softmax_work *x, const token_block *b, int row) {
    int rows = w->padded - row < kRowBlock ? w->padded - row : kRowBlock;
    *x = (softmax_work){.block = b, .s = x->s, .row = row, .groups = rows / LANES};
    x->whole = b->tokens == b->pages * MLA_PAGE;
    for (int i = row; i < row + rows; i++) {
        int64_t seen =
            i < w->part->rows ? cpu_part_visible(w->part, i) - b->first : (int64_t)b->tokens;
        w->state.limit[i] = (int32_t)(seen < 0 ? 0 : seen > b->tokens ? b->tokens : seen);
        x->whole = x->whole && w->state.limit[i] == b->tokens;
    }
    for (int g = 0; g < x->groups; g++)
        x->largest[g] = vf_load(w->state.m + row + g * LANES);
}

INLINE float *score_at(const softmax_work *x, int token, int group) {
    return x->s + (size_t)token * kRowBlock + (size_t)group * LANES;
}

/* ---- logits --------------------------------------------------------------------------------- */

/* Turns the raw products of kLogitTokens tokens and one group into logits. */
INLINE void turn_logits(const amx_work *w, softmax_work *x, mla_precision p, int token, int group) {
    vi limit = *(const vi_any *)(w->state.limit + x->row + group * LANES);
    vf largest = x->largest[group];
    for (int j = token; j < token + kLogitTokens; j++) {
        vf s = vf_load(score_at(x, j, group));
        if (p == MLA_FP8)
            s *= x->block->a_k[j];
        if (!x->whole)
            s = vf_select(limit > j, s, vf_set(-INFINITY));
        if (p == MLA_FP8 || !x->whole)
            vf_store(score_at(x, j, group), s);
        largest = VF_MAX(s, largest);
    }
    x->largest[group] = largest;
}

INLINE bool logits_left(const softmax_work *x) {
    return x->logits < x->ready;
}

static void logits_unit(const amx_work *w, softmax_work *x) {
    int token = x->logits / x->groups * kLogitTokens, group = x->logits % x->groups;
    if (w->part->precision == MLA_FP8)
        turn_logits(w, x, MLA_FP8, token, group);
    else
        turn_logits(w, x, MLA_BF16, token, group);
    x->logits++;
}

static void finish_logits(const amx_work *w, softmax_work *x) {
    while (logits_left(x))
        logits_unit(w, x);
}

/* ---- P -------------------------------------------------------------------------------------- */

/* Called when all logits of the block are known: makes their maximum the one that P refers to. */
static void start_group(amx_work *w, softmax_work *x) {
    int row = x->row + x->group * LANES;
    vf before = vf_load(w->state.m + row), m = x->largest[x->group];
    x->factor = vf_load(w->state.factor + row);
    x->against = vf_select(m > -INFINITY, m, (vf){0}); /* no visible token yet: P = 0 */
    x->sum = (vf){0};
    vf_store(w->state.rescale + row, vf_exp2((before - x->against) * x->factor));
    vf_store(w->state.m + row, m);
}

static void finish_group(amx_work *w, softmax_work *x) {
    int row = x->row + x->group * LANES;
    vf l = vf_load(w->state.l + row), rescale = vf_load(w->state.rescale + row);
    vf_store(w->state.l + row, VF_FMA(l, rescale, x->sum));
}

/* Turns kExpTokens logits into P (P' for MLA_FP8). */
INLINE void exp_unit(softmax_work *x, mla_precision p, int token) {
    vf sum = x->sum, largest = token % MLA_PAGE ? x->page_largest : (vf){0};
    UNROLL
    for (int j = token; j < token + kExpTokens; j++) {
        vf y = vf_exp2((vf_load(score_at(x, j, x->group)) - x->against) * x->factor);
        sum += y;
        if (p == MLA_FP8) {
            y *= x->block->a_k[j];
            largest = VF_MAX(y, largest);
        }
        vf_store(score_at(x, j, x->group), y);
    }
    x->sum = sum;
    x->page_largest = largest;
    if (p == MLA_FP8 && token % MLA_PAGE == MLA_PAGE - kExpTokens) {
        vi any = largest >= 0x1p-100f;
        vf safe = vf_select(any, largest, vf_set(1.0f));
        x->inverse = vf_select(any, 448.0f / safe, (vf){0});
        x->sigma = vf_select(any, largest / 448.0f, (vf){0});
    }
}

/* Rounds kPackTokens tokens of P and writes them to a tile with rows of queries. */
INLINE void pack_unit(const amx_work *w, const softmax_work *x, mla_precision p, int token) {
    _Alignas(64) uint32_t pairs[kPackTokens / 2][LANES];
    int row = x->row + x->group * LANES;
    UNROLL
    for (int j = 0; j < kPackTokens; j += 2) {
        vf even = vf_load(score_at(x, token + j, x->group)),
           odd = vf_load(score_at(x, token + j + 1, x->group));
        if (p == MLA_FP8) {
            even = vf_round_e4m3(even * x->inverse) * x->sigma;
            odd = vf_round_e4m3(odd * x->inverse) * x->sigma;
        }
        *(vu *)pairs[j / 2] = bf16_pairs(even, odd);
    }
    uint32_t *tile =
        w->p + ((size_t)(row / kTile) * kTokenSteps + (size_t)(token / kDepth)) * kTileWords;
    transpose(tile + (size_t)(row % kTile) * kTile, pairs[0], LANES);
}

/* One unit of a page. MLA_BF16 writes P to a tile after every 32 tokens, while it is still in L1.
 * MLA_FP8 must first know the largest P' of the page. */
INLINE void run_unit(const amx_work *w, softmax_work *x, mla_precision p, int page, int unit) {
    int first = page * MLA_PAGE, half = 0;
    if (p == MLA_BF16) {
        half = unit / (kPageUnits / 2);
        unit = unit % (kPageUnits / 2);
    }
    int exps = p == MLA_BF16 ? kExpUnits / 2 : kExpUnits;
    if (unit < exps)
        exp_unit(x, p, first + half * kPackTokens + unit * kExpTokens);
    else
        pack_unit(w, x, p, first + (half + unit - exps) * kPackTokens);
}

INLINE bool softmax_left(const softmax_work *x) {
    return x->group < x->groups;
}

static void softmax_unit(amx_work *w, softmax_work *x) {
    if (x->unit == 0)
        start_group(w, x);
    int page = x->unit / kPageUnits, unit = x->unit % kPageUnits;
    if (w->part->precision == MLA_FP8)
        run_unit(w, x, MLA_FP8, page, unit);
    else
        run_unit(w, x, MLA_BF16, page, unit);
    if (++x->unit == x->block->pages * kPageUnits) {
        finish_group(w, x);
        x->unit = 0;
        x->group++;
    }
}

static void finish_softmax(amx_work *w, softmax_work *x) {
    while (softmax_left(x))
        softmax_unit(w, x);
}

#endif
