/* softmax.h - the running softmax over pages of logits. Rows are in the vector lanes (vec.h).
 *
 * Inputs are a row's state and one page of its logits s_j = q . k_j (times a_k,j for MLA_FP8). With
 * the factor f = softmax_scale * a_q * log2(e) > 0, where a_q is 1 for MLA_BF16:
 *   m' = max(m, max_j s_j)          rescale = 2^((m - m') f)          P_j = 2^((s_j - m') f)
 *   l' = l rescale + sum_j P_j
 *   MLA_FP8:  P'_j = P_j a_k,j,  sigma = max_j P'_j / 448,  P8_j = e4m3(P'_j / sigma); sigma and
 *             all P8 are zero if max_j P'_j < 2^-100
 * m stays in units of s: f multiplies the difference s_j - m', so the logits are not rounded by a
 * multiplication before the subtraction. */
#ifndef SNAPMLA_KERNELS_CPU_SOFTMAX_H
#define SNAPMLA_KERNELS_CPU_SOFTMAX_H

#include <math.h>

#include "kernels/cpu/softmax_state.h"
#include "kernels/cpu/vec.h"

/* Sets a_k and limit for the page that starts at @token, with @n tokens in the part. Returns true
 * if every row sees all tokens of the page. */
static bool softmax_page(softmax_state *st, const cpu_part *part, int64_t token, int64_t slot,
                         int n) {
    bool whole = true;
    for (int j = 0; part->precision == MLA_FP8 && j < MLA_PAGE; j++)
        st->a_k[j] = j < n ? part->cache.scale[slot + j] : 0.0f;
    for (int i = 0; i < st->padded; i++) {
        int64_t seen = i < part->rows ? cpu_part_visible(part, i) - token : n;
        st->limit[i] = (int32_t)(seen < 0 ? 0 : seen > n ? n : seen);
        whole = whole && st->limit[i] == MLA_PAGE;
    }
    return whole;
}

/* Turns the raw products of LANES rows into s_j: multiplies by a_k and sets hidden tokens to
 * -inf. */
static inline void softmax_logits(const softmax_state *st, mla_precision p, bool whole, float *s,
                                  int i) {
    vi limit = *(const vi_any *)(st->limit + i);
    for (int j = 0; j < MLA_PAGE; j++) {
        float *at = s + (int64_t)j * st->padded;
        vf x = vf_load(at);
        if (p == MLA_FP8)
            x *= st->a_k[j];
        if (!whole)
            x = vf_select(limit > j, x, vf_set(-INFINITY));
        vf_store(at, x);
    }
}

static inline vf softmax_largest(const float *s, int stride, vf largest) {
    vf other = largest;
    for (int j = 0; j < MLA_PAGE; j += 2) {
        largest = VF_MAX(vf_load(s + (int64_t)j * stride), largest);
        other = VF_MAX(vf_load(s + (int64_t)(j + 1) * stride), other);
    }
    return VF_MAX(largest, other);
}

/* Turns s_j into P_j (P'_j for MLA_FP8), relative to the maximum @m. Returns sum_j P_j. */
static inline vf softmax_exponentiate(const softmax_state *st, mla_precision p, float *s, vf m,
                                      vf factor) {
    vf sum = {0};
    for (int j = 0; j < MLA_PAGE; j++) {
        float *at = s + (int64_t)j * st->padded;
        vf x = vf_exp2((vf_load(at) - m) * factor);
        sum += x;
        if (p == MLA_FP8)
            x *= st->a_k[j];
        vf_store(at, x);
    }
    return sum;
}

/* Turns P' into P8 and returns sigma. */
static inline vf softmax_quantise(float *s, int stride) {
    vf largest = softmax_largest(s, stride, (vf){0});
    vi any = largest >= 0x1p-100f;
    vf inverse = vf_select(any, 448.0f / vf_select(any, largest, vf_set(1.0f)), (vf){0});
    for (int j = 0; j < MLA_PAGE; j++) {
        float *at = s + (int64_t)j * stride;
        vf_store(at, vf_round_e4m3(vf_load(at) * inverse));
    }
    return vf_select(any, largest / 448.0f, (vf){0});
}

static inline void softmax_lanes(softmax_state *st, mla_precision p, bool whole, float *s, int i) {
    vf factor = vf_load(st->factor + i), before = vf_load(st->m + i);
    softmax_logits(st, p, whole, s, i);
    vf m = softmax_largest(s, st->padded, before);
    vf against = vf_select(m > -INFINITY, m, (vf){0}); /* no visible token yet: P = 2^-inf = 0 */
    vf rescale = vf_exp2((before - against) * factor);
    vf sum = softmax_exponentiate(st, p, s, against, factor);
    vf_store(st->l + i, VF_FMA(vf_load(st->l + i), rescale, sum));
    vf_store(st->m + i, m);
    vf_store(st->rescale + i, rescale);
    if (p == MLA_FP8)
        vf_store(st->sigma + i, softmax_quantise(s, st->padded));
}

/* Processes one page: turns the raw products @s [MLA_PAGE][padded] into P (P8 for MLA_FP8) and
 * updates the state. */
static void softmax_block(softmax_state *st, const cpu_part *part, float *s, int64_t token,
                          int64_t slot, int n) {
    bool whole = softmax_page(st, part, token, slot, n);
    for (int i = 0; i < st->padded; i += LANES) {
        if (part->precision == MLA_FP8)
            softmax_lanes(st, MLA_FP8, whole, s + i, i);
        else
            softmax_lanes(st, MLA_BF16, whole, s + i, i);
    }
}

#endif
