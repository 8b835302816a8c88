/* softmax_state.h - the arrays of a running softmax (softmax.h), and memory for them. In the AMX
 * kernel, `rescale` and `limit` are for a block of up to four pages instead of a page, and `sigma`
 * and `a_k` are not used (amx_softmax.h). */
#ifndef SNAPMLA_KERNELS_CPU_SOFTMAX_STATE_H
#define SNAPMLA_KERNELS_CPU_SOFTMAX_STATE_H

#include <math.h>
#include <stddef.h>

#include "kernels/cpu/isa.h"

typedef struct {
    int padded;     /* rows rounded up to a multiple of LANES; results of the extra rows are
                       ignored */
    float *factor;  /* [padded] f of softmax.h: softmax_scale * a_q * log2(e) */
    float *m, *l;   /* [padded] running maximum of the logits s_j, and sum of P */
    float *rescale; /* [padded] the factor of the sums so far, for the current page */
    float *sigma;   /* [padded] the unit of P of the current page; 1 for MLA_BF16 */
    float *a_k;     /* [MLA_PAGE] MLA_FP8: scales of the current page, 0 past the part's last
                       token; MLA_BF16: all 1 */
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
    for (int j = 0; j < MLA_PAGE; j++)
        st->a_k[j] = 1.0f;
}

/* Copies the sums to @l, and the maxima, converted to base 2, to @m. */
static void softmax_end(const softmax_state *st, int rows, float *m, float *l) {
    for (int i = 0; i < rows; i++) {
        m[i] = st->m[i] * st->factor[i];
        l[i] = st->l[i];
    }
}

#endif
