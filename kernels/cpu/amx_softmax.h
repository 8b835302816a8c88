/* amx_softmax.h - the softmax of softmax.h over a token block of several pages, in units of work
 * that fit between tile products.
 *
 * The running maximum advances once per token block. MLA_FP8 rounds P to e4m3 with one scale per
 * page, as softmax.h says; the scale is then multiplied into P, because tiles of different pages
 * share one sum. So P is rounded to bf16 in both arms. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_SOFTMAX_H
#define SNAPMLA_KERNELS_CPU_AMX_SOFTMAX_H

#include "kernels/cpu/amx_work.h"

/* A unit of P is small enough for the time of four tile products. Units of a page and one group:
 *   MLA_BF16   for each 32 tokens: kExpUnits that compute P, one that writes it to a tile
 *   MLA_FP8    2 * kExpUnits that compute P'; then for each 32 tokens: kExpUnits that round P', one
 *              that writes P to a tile. */
enum {
    kLogitTokens = kDepth, /* tokens of a unit that computes logits and their maximum */
    kExpTokens = 4,        /* tokens of a unit that computes or rounds P */
    kExpUnits = kDepth / kExpTokens,
    kHalfUnits = kExpUnits + 1,
    kPageUnits = 2 * kHalfUnits,                    /* MLA_BF16 */
    kPageUnitsFp8 = 2 * kExpUnits + 2 * kHalfUnits, /* MLA_FP8 */
};

INLINE int page_units(mla_precision p) {
    return p == MLA_FP8 ? kPageUnitsFp8 : kPageUnits;
}

/* Begins the softmax of the row block that starts at @row. */
static void start_softmax(amx_work *w, softmax_work *x, const token_block *b, int row,
                          weights *to) {
    int rows = w->padded - row < kRowBlock ? w->padded - row : kRowBlock;
    *x = (softmax_work){.block = b, .s = x->s, .to = to, .row = row, .groups = rows / LANES};
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

/* Also makes the maxima of all logits those that P will refer to, times the factor. */
static void finish_logits(amx_work *w, softmax_work *x) {
    while (logits_left(x))
        logits_unit(w, x);
    for (int g = 0; g < x->groups; g++) {
        int row = x->row + g * LANES;
        vf before = vf_load(w->state.m + row), m = x->largest[g];
        vf against = vf_select(m > -INFINITY, m, (vf){0}); /* no visible token yet: P = 0 */
        vf factor = vf_load(w->state.factor + row);
        x->largest[g] = against * factor;
        vf_store(x->to->rescale + g * LANES, vf_exp2(before * factor - x->largest[g]));
        vf_store(w->state.m + row, m);
    }
}

/* ---- P -------------------------------------------------------------------------------------- */

static void start_group(const amx_work *w, softmax_work *x) {
    x->factor = vf_load(w->state.factor + x->row + x->group * LANES);
    x->against = x->largest[x->group];
    x->sum = (vf){0};
}

static void finish_group(amx_work *w, softmax_work *x) {
    float *at = w->state.l + x->row + x->group * LANES;
    vf_store(at, VF_FMA(vf_load(at), vf_load(x->to->rescale + x->group * LANES), x->sum));
}

/* Stores P of kExpTokens tokens as pairs of bf16. */
INLINE void store_pairs(const amx_work *w, int token, const vf *p) {
    UNROLL
    for (int j = 0; j < kExpTokens; j += 2)
        *(vu *)(w->pairs + (size_t)(token % kDepth + j) / 2 * LANES) = bf16_pairs(p[j], p[j + 1]);
}

/* Computes P of kExpTokens tokens (P' for MLA_FP8). */
INLINE void exp_unit(const amx_work *w, softmax_work *x, mla_precision p, int token) {
    vf y[kExpTokens], sum = x->sum;
    UNROLL
    for (int j = 0; j < kExpTokens; j++) {
        y[j] = vf_exp2(VF_FMA(vf_load(score_at(x, token + j, x->group)), x->factor, -x->against));
        sum += y[j];
    }
    x->sum = sum;
    if (p == MLA_BF16) {
        store_pairs(w, token, y);
        return;
    }
    vf largest = token % MLA_PAGE ? x->page_largest : (vf){0};
    UNROLL
    for (int j = 0; j < kExpTokens; j++) {
        y[j] *= x->block->a_k[token + j];
        largest = VF_MAX(y[j], largest);
        vf_store(score_at(x, token + j, x->group), y[j]);
    }
    x->page_largest = largest;
}

/* MLA_FP8: called when all P' of a page are known. */
static void start_rounding(softmax_work *x) {
    vf largest = x->page_largest;
    vi any = largest >= 0x1p-100f;
    vf safe = vf_select(any, largest, vf_set(1.0f));
    x->inverse = vf_select(any, 448.0f / safe, (vf){0});
    x->sigma = vf_select(any, largest / 448.0f, (vf){0});
}

/* MLA_FP8: rounds P' of kExpTokens tokens to e4m3. */
INLINE void round_unit(const amx_work *w, const softmax_work *x, int token) {
    vf y[kExpTokens];
    UNROLL
    for (int j = 0; j < kExpTokens; j++)
        y[j] = vf_round_e4m3(vf_load(score_at(x, token + j, x->group)) * x->inverse) * x->sigma;
    store_pairs(w, token, y);
}

/* Writes P of 32 tokens to a tile with rows of queries. */
static void transpose_unit(const amx_work *w, const softmax_work *x, int token) {
    int row = x->group * LANES;
    uint32_t *tile =
        x->to->p + ((size_t)(row / kTile) * kTokenSteps + (size_t)(token / kDepth)) * kTileWords;
    transpose(tile + (size_t)(row % kTile) * kTile, w->pairs, LANES);
}

INLINE void run_unit(const amx_work *w, softmax_work *x, mla_precision p) {
    int unit = x->unit, first = x->page * MLA_PAGE;
    if (p == MLA_FP8 && unit < 2 * kExpUnits) {
        exp_unit(w, x, p, first + unit * kExpTokens);
        if (unit == 2 * kExpUnits - 1)
            start_rounding(x);
        return;
    }
    unit -= p == MLA_FP8 ? 2 * kExpUnits : 0;
    first += unit / kHalfUnits * kDepth;
    unit %= kHalfUnits;
    if (unit == kExpUnits)
        transpose_unit(w, x, first);
    else if (p == MLA_FP8)
        round_unit(w, x, first + unit * kExpTokens);
    else
        exp_unit(w, x, p, first + unit * kExpTokens);
}

INLINE bool softmax_left(const softmax_work *x) {
    return x->group < x->groups;
}

static void softmax_unit(amx_work *w, softmax_work *x) {
    if (x->page == 0 && x->unit == 0)
        start_group(w, x);
    if (w->part->precision == MLA_FP8)
        run_unit(w, x, MLA_FP8);
    else
        run_unit(w, x, MLA_BF16);
    if (++x->unit < page_units(w->part->precision))
        return;
    x->unit = 0;
    if (++x->page < x->block->pages)
        return;
    finish_group(w, x);
    x->page = 0;
    x->group++;
}

static void finish_softmax(amx_work *w, softmax_work *x) {
    while (softmax_left(x))
        softmax_unit(w, x);
}

#endif
