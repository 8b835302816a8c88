/* attend.c - the smallest plugin: one function, BF16 attention on one thread of the host, with sums
 * in FP64. The program does all the rest. kernels/plugin/attention.h is the contract. */
#include <math.h>
#include <string.h>

#include "kernels/plugin/attention.h"

static double decode(uint16_t bf16) {
    uint32_t u = (uint32_t)bf16 << 16;
    float x;
    memcpy(&x, &u, sizeof x);
    return (double)x;
}

static uint16_t encode(double exact) {
    float x = (float)exact;
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16); /* rounds to nearest, ties to even */
}

/* One row: softmax over the visible tokens of a sequence, with a running maximum. */
static void attend_row(const snapmla_step *s, const mla_cache *cache, const int32_t *pages,
                       int64_t visible, const uint16_t *q, double scale, uint16_t *out,
                       float *lse) {
    int width = s->d_c + s->d_r;
    double o[MLA_MAX_CONTENT] = {0}, most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < visible; j++) {
        int64_t slot = (int64_t)pages[j / MLA_PAGE] * MLA_PAGE + j % MLA_PAGE;
        const uint16_t *k = (const uint16_t *)cache->content + slot * width;
        double score = 0;
        for (int d = 0; d < width; d++)
            score += decode(q[d]) * decode(k[d]);
        double top = fmax(most, score * scale), p = exp(score * scale - top),
               fade = exp(most - top);
        most = top;
        sum = sum * fade + p;
        for (int d = 0; d < s->d_c; d++)
            o[d] = o[d] * fade + p * decode(k[d]);
    }
    for (int d = 0; d < s->d_c; d++)
        out[d] = visible > 0 ? encode(o[d] / sum) : 0;
    *lse = visible > 0 ? (float)(most + log(sum)) : -INFINITY;
}

static snap_status attend(void *state, const snapmla_step *s, const snapmla_queries *q,
                          const mla_cache *cache, void *out, float *lse, void *stream,
                          snap_err *err) {
    int rows = s->s_q * s->heads; /* rows of one sequence: query token x head */
    (void)state, (void)stream, (void)err;
    for (int64_t row = 0; row < (int64_t)s->batch * rows; row++) {
        int seq = (int)(row / rows), hidden = s->s_q - 1 - (int)(row % rows) / s->heads;
        float unused;
        attend_row(s, cache, s->block_table + (int64_t)seq * s->table_width,
                   s->seqlens[seq] - hidden, (const uint16_t *)q->q + row * (s->d_c + s->d_r),
                   (double)q->softmax_scale, (uint16_t *)out + row * s->d_c,
                   lse ? lse + row : &unused);
    }
    return SNAP_OK;
}

const snapmla_attention snapmla_attention_v1 = {SNAPMLA_ATTENTION,
                                                .name = "attend",
                                                .kernel = "fp64",
                                                .device = "host",
                                                .precisions = SNAPMLA_HAS_BF16,
                                                .attend = attend};
