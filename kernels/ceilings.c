#include "kernels/ceilings.h"

mla_work mla_work_of(mla_precision p, int heads, int d_c, int d_r, int batch, int s_q,
                     const int32_t *seqlens) {
    double rows = (double)batch * s_q * heads, tokens = 0, seen = 0;
    for (int b = 0; b < batch; b++) {
        tokens += (double)seqlens[b];
        for (int s = 0; s < s_q; s++) {
            int32_t visible = seqlens[b] - (s_q - 1 - s);
            seen += visible > 0 ? (double)visible : 0.0;
        }
    }
    double q = p == MLA_FP8 ? d_c + 2.0 * d_r + sizeof(float) : 2.0 * (d_c + d_r);
    double o = 2.0 * d_c + sizeof(float);
    return (mla_work){
        .flop = seen * heads * 2.0 * (2.0 * d_c + d_r),
        .bytes = tokens * (double)mla_cache_token_bytes(p, d_c, d_r) + rows * (q + o),
    };
}

double mla_peak_flop_s(const mla_ceilings *c, mla_precision p, int d_c, int d_r) {
    if (p == MLA_BF16)
        return c->bf16.rate;
    double content = 2.0 * d_c, rope = d_r;
    return (content + rope) / (content / c->fp8.rate + rope / c->bf16.rate);
}

double mla_floor_ns(const mla_ceilings *c, mla_precision p, int d_c, int d_r, mla_work work,
                    bool *bytes_bind) {
    double arithmetic = 1e9 * work.flop / mla_peak_flop_s(c, p, d_c, d_r);
    double memory = 1e9 * work.bytes / c->read.rate;
    if (bytes_bind)
        *bytes_bind = memory > arithmetic;
    return memory > arithmetic ? memory : arithmetic;
}
