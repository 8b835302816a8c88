/* amx_softmax.h - the softmax of softmax.h over a token block of several pages, in small units of
 * work that fit between two tile products.
 *
 * The running maximum advances once per token block. MLA_FP8 rounds P to e4m3 with one scale per
 * page, as softmax.h says; the scale is then multiplied into P, because tiles of different pages
 * share one sum. So P is rounded to bf16 in both arms. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_SOFTMAX_H
#define SNAPMLA_KERNELS_CPU_AMX_SOFTMAX_H

#include "kernels/cpu/amx_work.h"

enum {
    kLogitTokens = 8, /* tokens of a unit that computes logits and their maximum */
    kExpTokens = 4,   /* tokens of a unit that computes P, or rounds it */
    kPackTokens = kDepth,
    kExpUnits = kPackTokens / kExpTokens, /* for kPackTokens tokens */
    kHalfUnits = kExpUnits + kTransposeSteps,
    kPageUnits = 2 * kHalfUnits,                      /* MLA_BF16: units per page */
    kRoundedPageUnits = 2 * (kExpUnits + kHalfUnits), /* MLA_FP8 */
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

/* Finds the largest logit of kLogitTokens tokens and one group. A block that some row does not see
 * whole also stores the logits. Otherwise the raw products stay, and exp_unit_fp8() multiplies them
 * with the scales of the tokens. */
INLINE void turn_logits(const amx_work *w, softmax_work *x, mla_precision p, int token, int group) {
    vi limit = *(const vi_any *)(w->state.limit + x->row + group * LANES);
    vf largest = x->largest[group];
    for (int j = token; j < token + kLogitTokens; j++) {
        vf s = vf_load(score_at(x, j, group));
        if (p == MLA_FP8)
            s *= x->block->a_k[j];
        if (!x->whole)
            s = vf_select(limit > j, s, vf_set(-INFINITY));
        if (!x->whole)
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

/* ---- exponentials -------------------------------------------------------------------------- */

/* 2^x for x <= 1 with a relative error below 4e-6, and 0 if x < -126. If x is an integer, the
 * result is exact. P is rounded to bf16, so a polynomial of degree 4 is enough. The sum of P has at
 * most the same relative error, so the log-sum-exp has an error below 4e-6. */
INLINE vf exp2_of(vf x) {
    vf f = fraction_of(x);
    vf p = VF_FMA(f, vf_set(1.355574716e-2f), vf_set(5.203236913e-2f));
    p = VF_FMA(p, f, vf_set(2.413797629e-1f));
    p = VF_FMA(p, f, vf_set(6.930321208e-1f));
    p = VF_FMA(p, f, vf_set(1.0f));
    return scale_by_floor(p, x);
}

/* ---- P -------------------------------------------------------------------------------------- */

/* Called when all logits of the block are known: makes their maximum the one that P refers to. */
static void start_group(amx_work *w, softmax_work *x) {
    int row = x->row + x->group * LANES;
    vf before = vf_load(w->state.m + row), m = x->largest[x->group];
    x->factor = vf_load(w->state.factor + row);
    x->shift = vf_select(m > -INFINITY, -m * x->factor, (vf){0}); /* no visible token yet: P = 0 */
    x->sum = (vf){0};
    vf_store(w->state.rescale + row, vf_exp2(before * x->factor + x->shift));
    vf_store(w->state.m + row, m);
}

static void finish_group(amx_work *w, softmax_work *x) {
    int row = x->row + x->group * LANES;
    vf l = vf_load(w->state.l + row), rescale = vf_load(w->state.rescale + row);
    vf_store(w->state.l + row, VF_FMA(l, rescale, x->sum));
}

/* P of token @j. */
INLINE vf weight_of(const softmax_work *x, int j) {
    return exp2_of(VF_FMA(vf_load(score_at(x, j, x->group)), x->factor, x->shift));
}

/* Computes P of kExpTokens tokens and converts it to pairs of bf16. */
INLINE void exp_unit_bf16(softmax_work *x, int token) {
    vf sum = x->sum;
    UNROLL
    for (int j = token; j < token + kExpTokens; j += 2) {
        vf even = weight_of(x, j), odd = weight_of(x, j + 1);
        sum += even;
        sum += odd;
        x->pairs[j % kPackTokens / 2] = bf16_pairs(even, odd);
    }
    x->sum = sum;
}

/* Sets sigma and its inverse, when the largest P' of the page is known. */
INLINE void finish_page(softmax_work *x) {
    vi any = x->page_largest >= 0x1p-100f;
    vf safe = vf_select(any, x->page_largest, vf_set(1.0f));
    x->inverse = vf_select(any, 448.0f / safe, (vf){0});
    x->sigma = vf_select(any, x->page_largest / 448.0f, (vf){0});
}

/* Turns the scores of kExpTokens tokens into P'. They are stored last: after each store, the
 * compiler would load again what it has of @x in registers. */
INLINE void exp_unit_fp8(softmax_work *x, int token) {
    static const float one[kExpTokens] = {1.0f, 1.0f, 1.0f, 1.0f};
    const float *a_k = x->block->a_k + token, *scale = x->whole ? a_k : one;
    float *s = score_at(x, token, x->group);
    vf factor = x->factor, shift = x->shift, sum = x->sum, y[kExpTokens],
       largest = token % MLA_PAGE ? x->page_largest : (vf){0};
    UNROLL
    for (int j = 0; j < kExpTokens; j++) {
        y[j] = exp2_of(VF_FMA(vf_load(s + j * kRowBlock), factor * scale[j], shift));
        sum += y[j];
        y[j] *= a_k[j];
        largest = VF_MAX(y[j], largest);
    }
    UNROLL
    for (int j = 0; j < kExpTokens; j++)
        vf_store(s + j * kRowBlock, y[j]);
    x->sum = sum;
    x->page_largest = largest;
    if (token % MLA_PAGE == MLA_PAGE - kExpTokens)
        finish_page(x);
}

/* vf_round_e4m3() with one instruction less. That function has none of its additions on the ports
 * of multiplications, which is better between the products of avx512.c. */
INLINE vf round_e4m3(vf x) {
    vf power = VF_MAX((vf)((vi)x & 0x7f800000), vf_set(0x1p-6f));
    return VF_FMA(power, vf_set(-0x1p20f), VF_FMA(power, vf_set(0x1p20f), x));
}

/* Rounds kExpTokens tokens of P', multiplies them with sigma, and converts them to pairs of
 * bf16. */
INLINE void round_unit(softmax_work *x, int token) {
    const float *s = score_at(x, token, x->group);
    vf inverse = x->inverse, sigma = x->sigma, y[kExpTokens];
    UNROLL
    for (int j = 0; j < kExpTokens; j++)
        y[j] = round_e4m3(vf_load(s + j * kRowBlock) * inverse) * sigma;
    UNROLL
    for (int j = 0; j < kExpTokens; j += 2)
        x->pairs[(token + j) % kPackTokens / 2] = bf16_pairs(y[j], y[j + 1]);
}

/* A step of writing kPackTokens tokens of P, in bf16, to a tile with rows of queries. */
INLINE void pack_unit(const amx_work *w, softmax_work *x, int token, int step) {
    int row = x->row + x->group * LANES;
    uint32_t *tile =
        w->p + ((size_t)(row / kTile) * kTokenSteps + (size_t)(token / kDepth)) * kTileWords;
    transpose_step(tile + (size_t)(row % kTile) * kTile, x->half, (const uint32_t *)x->pairs, LANES,
                   step);
}

/* One unit of a page. MLA_BF16 writes P to a tile after every 32 tokens. MLA_FP8 first needs the
 * largest P' of the page. */
INLINE void run_unit(const amx_work *w, softmax_work *x, mla_precision p, int page, int unit) {
    int token = page * MLA_PAGE;
    if (p == MLA_FP8 && unit < 2 * kExpUnits) {
        exp_unit_fp8(x, token + unit * kExpTokens);
        return;
    }
    unit -= p == MLA_FP8 ? 2 * kExpUnits : 0;
    token += unit / kHalfUnits * kPackTokens;
    unit %= kHalfUnits;
    if (unit >= kExpUnits)
        pack_unit(w, x, token, unit - kExpUnits);
    else if (p == MLA_FP8)
        round_unit(x, token + unit * kExpTokens);
    else
        exp_unit_bf16(x, token + unit * kExpTokens);
}

INLINE bool softmax_left(const softmax_work *x) {
    return x->group < x->groups;
}

static void softmax_unit(amx_work *w, softmax_work *x) {
    if (x->unit == 0)
        start_group(w, x);
    int units = w->part->precision == MLA_FP8 ? kRoundedPageUnits : kPageUnits;
    if (w->part->precision == MLA_FP8)
        run_unit(w, x, MLA_FP8, x->unit / kRoundedPageUnits, x->unit % kRoundedPageUnits);
    else
        run_unit(w, x, MLA_BF16, x->unit / kPageUnits, x->unit % kPageUnits);
    if (++x->unit == x->block->pages * units) {
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
