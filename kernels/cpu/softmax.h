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
#include <stddef.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/vec.h"
#include "kernels/formats.h"

typedef struct {
    int padded;     /* rows rounded up to a multiple of LANES; results of the extra rows are
                       ignored */
    float *factor;  /* [padded] f */
    float *m, *l;   /* [padded] */
    float *rescale; /* [padded] for the current page */
    float *sigma;   /* [padded] for the current page; 1 for MLA_BF16 */
    float *a_k;     /* [MLA_PAGE] MLA_FP8: scales of the current page, 0 past the part's last
                       token */
    int32_t *limit; /* [padded] number of tokens of the page that a row sees */
} softmax_state;

/* Reserves the next array of a scratch area. With @memory NULL, only the size in *at is
 * meaningful. */
static void *scratch_carve(void *memory, size_t *at, size_t bytes) {
    void *p = (void *)((uintptr_t)memory + *at);
    *at += (bytes + MLA_ALIGN - 1) / MLA_ALIGN * MLA_ALIGN;
    return p;
}

static softmax_state softmax_layout(void *memory, size_t *at, int padded) {
    size_t bytes = (size_t)padded * sizeof(float);
    softmax_state st = {.padded = padded};
    st.factor = scratch_carve(memory, at, bytes);
    st.m = scratch_carve(memory, at, bytes);
    st.l = scratch_carve(memory, at, bytes);
    st.rescale = scratch_carve(memory, at, bytes);
    st.sigma = scratch_carve(memory, at, bytes);
    st.a_k = scratch_carve(memory, at, MLA_PAGE * sizeof(float));
    st.limit = scratch_carve(memory, at, bytes);
    return st;
}

static void softmax_begin(softmax_state *st, const cpu_part *part) {
    const float log2e = 1.44269504088896341f;
    for (int i = 0; i < st->padded; i++) {
        bool scaled = part->precision == MLA_FP8 && i < part->rows;
        st->factor[i] =
            part->softmax_scale * log2e * (scaled ? part->q_scale[part->row0 + i] : 1.0f);
        st->m[i] = -INFINITY;
        st->l[i] = 0.0f;
        st->sigma[i] = 1.0f;
    }
}

/* Copies the sums to @l, and the maxima, converted to base 2, to @m. */
static void softmax_end(const softmax_state *st, int rows, float *m, float *l) {
    for (int i = 0; i < rows; i++) {
        m[i] = st->m[i] * st->factor[i];
        l[i] = st->l[i];
    }
}

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
