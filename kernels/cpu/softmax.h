/* softmax.h - the running softmax over pages of scores. Rows are in the vector lanes (vec.h).
 *
 * Inputs are a row's state and one page of its scores s_j = q . k_j (times a_k,j for MLA_FP8). They
 * are logits without the factor that all tokens of a row share. With this factor,
 * f = softmax_scale * a_q * log2(e) > 0, where a_q is 1 for MLA_BF16:
 *   m' = max(m, max_j s_j)          rescale = 2^((m - m') f)          P_j = 2^((s_j - m') f)
 *   l' = l rescale + sum_j P_j
 *   MLA_FP8:  P'_j = P_j a_k,j,  sigma = max_j P'_j / 448,  P8_j = e4m3(P'_j / sigma); sigma and
 *             all P8 are zero if max_j P'_j < 2^-100
 * m stays in units of s: f multiplies the difference s_j - m', so the scores are not rounded by
 * another multiplication before the subtraction. */
#ifndef SNAPMLA_KERNELS_CPU_SOFTMAX_H
#define SNAPMLA_KERNELS_CPU_SOFTMAX_H

#include <math.h>
#include <string.h>

#include "kernels/cpu/softmax_state.h"
#include "kernels/cpu/vec.h"

/* Sets a_k and limit for the page that starts at @token, with @n tokens in the part. Returns true
 * if every row sees all tokens of the page. */
static bool softmax_page(softmax_state *st, const cpu_part *part, int64_t token, int64_t slot,
                         int n) {
    bool whole = true;
    if (part->precision == MLA_FP8) {
        memcpy(st->a_k, part->cache.scale + slot, (size_t)n * sizeof *st->a_k);
        memset(st->a_k + n, 0, (size_t)(MLA_PAGE - n) * sizeof *st->a_k);
    }
    for (int i = 0; i < st->padded; i++) {
        int64_t seen = i < part->rows ? cpu_part_visible(part, i) - token : n;
        st->limit[i] = (int32_t)(seen < 0 ? 0 : seen > n ? n : seen);
        whole = whole && st->limit[i] == MLA_PAGE;
    }
    return whole;
}

/* s_j of token @j for LANES rows; -inf for a row that does not see the token. */
INLINE vf softmax_logit(const float *s, bool whole, vi limit, int j) {
    vf x = vf_load(s + j * LANES);
    return whole ? x : vf_select(limit > j, x, vf_set(-INFINITY));
}

/* The larger of @before and all s_j. */
INLINE vf softmax_maximum(const float *s, bool whole, vi limit, vf before) {
    vf even = before, odd = before;
    for (int j = 0; j < MLA_PAGE; j += 2) {
        even = VF_MAX(softmax_logit(s, whole, limit, j), even);
        odd = VF_MAX(softmax_logit(s, whole, limit, j + 1), odd);
    }
    return VF_MAX(even, odd);
}

/* Replaces P' by P8 and returns sigma. @largest: the largest P'. */
INLINE vf softmax_quantise(float *s, vf largest) {
    vi any = largest >= 0x1p-100f;
    vf inverse = vf_select(any, 448.0f / vf_select(any, largest, vf_set(1.0f)), (vf){0});
    UNROLL_8
    for (int j = 0; j < MLA_PAGE; j++)
        vf_store(s + j * LANES, vf_round_e4m3(vf_load(s + j * LANES) * inverse));
    return vf_select(any, largest / 448.0f, (vf){0});
}

/* Processes the page for the rows @i .. @i + LANES - 1, whose scores are @s [MLA_PAGE][LANES]. */
INLINE void softmax_lanes(softmax_state *st, mla_precision p, bool whole, float *s, int i) {
    const float *a_k = st->a_k;
    vi limit = *(const vi_any *)(st->limit + i);
    vf factor = vf_load(st->factor + i), before = vf_load(st->m + i);
    vf m = softmax_maximum(s, whole, limit, before);
    vf against = vf_select(m > -INFINITY, m, (vf){0}); /* no visible token yet: P = 2^-inf = 0 */
    vf rescale = vf_exp2((before - against) * factor), sum = {0}, largest = {0};
    UNROLL_2
    for (int j = 0; j < MLA_PAGE; j++) {
        vf x = vf_exp2((softmax_logit(s, whole, limit, j) - against) * factor);
        sum += x;
        if (p == MLA_FP8) {
            x *= a_k[j];
            largest = VF_MAX(x, largest);
        }
        vf_store(s + j * LANES, x);
    }
    vf_store(st->l + i, VF_FMA(vf_load(st->l + i), rescale, sum));
    vf_store(st->m + i, m);
    vf_store(st->rescale + i, rescale);
    if (p == MLA_FP8)
        vf_store(st->sigma + i, softmax_quantise(s, largest));
}

INLINE void softmax_rows(softmax_state *st, mla_precision p, bool whole, float *s) {
    for (int i = 0; i < st->padded; i += LANES)
        softmax_lanes(st, p, whole, s + (int64_t)i * MLA_PAGE, i);
}

/* Processes one page: turns the scores s_j, @s [padded / LANES][MLA_PAGE][LANES], into P (P8 for
 * MLA_FP8) and updates the state. @whole: the result of softmax_page(). */
static void softmax_block(softmax_state *st, mla_precision p, bool whole, float *s) {
    if (p == MLA_FP8 && whole)
        softmax_rows(st, MLA_FP8, true, s);
    else if (p == MLA_FP8)
        softmax_rows(st, MLA_FP8, false, s);
    else if (whole)
        softmax_rows(st, MLA_BF16, true, s);
    else
        softmax_rows(st, MLA_BF16, false, s);
}

#endif
