/* avx512.c - computes one part with AVX-512's BF16 dot products, for processors that also have
 * VBMI, such as Zen 4 and Sapphire Rapids.
 *
 * vdpbf16ps adds to each of 16 FP32 lanes the dot product of two pairs of bf16 numbers. So it does
 * twice the work of an FP32 FMA and reads half the bytes for each product. Both matrix products of
 * a page are arranged so that neither K nor V needs a transposition:
 *   scores   many rows: rows in the lanes. Q^T is packed once per part as [padded / 16][d / 4][16
 *            rows][4 columns]. Four columns of one token are a quadword of K in memory order, which
 *            is broadcast. The sums of 8 tokens x 16 rows stay in registers over all of d.
 *            few rows: d in the lanes, 1, 4 or 8 tokens at a time, one horizontal sum per score.
 *   values   columns in the lanes. Tokens 2i and 2i + 1 of V are interleaved by unpack after they
 *            are loaded, and multiplied with the broadcast pair of their P. unpack works within 128
 *            bits. o keeps the resulting order of columns and is reordered once at the end.
 * e4m3 becomes bf16 exactly, by two byte look-ups. (A shift would turn subnormal e4m3 into
 * subnormal bf16, which vdpbf16ps treats as zero.) Memory that is read next is prefetched during
 * the arithmetic. */
#if defined __x86_64__
#include "kernels/cpu/target.h"
TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512bf16,avx2,fma")
#include <immintrin.h>

#define LANES           16
#define VF_FMA(a, b, c) ((vf)_mm512_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm512_max_ps((a), (b)))
#define VF_ROUND(x)     ((vf)_mm512_roundscale_ps((x), _MM_FROUND_TO_NEAREST_INT))
#define VF_SCALE(x, p, n)                                                                          \
    ((vf)_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask((x), _mm512_set1_ps(-126.0f), _CMP_NLT_UQ),     \
                                (p), (n)))

#include "kernels/cpu/avx512_few.h"
#include "kernels/cpu/avx512_many.h"
#include "kernels/cpu/avx512_stream.h"
#include "kernels/cpu/avx512_tile.h"
#include "kernels/cpu/avx512_values.h"
#include "kernels/cpu/burst.h"

/* Processes the pages one after the other; prefetches the next page during the current one. */
static void attend_pages(scratch16 *w, const cpu_part *part, bool in_place, float *o) {
    for (int64_t token = part->first; token < part->end; token += MLA_PAGE) {
        int n = part->end - token < MLA_PAGE ? (int)(part->end - token) : MLA_PAGE;
        int64_t slot = mla_slot(part->table, part->cache.pages, token);
        start_prefetch(w, part, token + MLA_PAGE);
        if (in_place) {
            page_rows page = find_page(w, part, slot, n);
            few_rows(w, part, page, token, slot, n);
            values_few(w, part, page, o);
        } else {
            const uint16_t *k = start_tile(w, part, slot, n);
            many_rows(w, part, k, token, slot, n);
            values_many(w, k, o, part->d_c);
        }
    }
    if (in_place && part->precision == MLA_FP8)
        order_lanes(o, (int64_t)part->rows * part->d_c);
    else
        order_columns(o, (int64_t)part->rows * part->d_c);
}

static void attend(const cpu_part *part, void *memory, float *o, float *m, float *l) {
    size_t bytes;
    scratch16 w = scratch_layout(memory, part->rows, part->d_c + part->d_r, &bytes);
    bool bf16 = part->precision == MLA_BF16;
    bool in_place = part->rows <= kFewRows && (bf16 || part->d_c % kLine == 0);
    bool stream = in_place && !bf16 && part->rows <= kStreamRows && part->d_c % kColumns == 0;
    make_tables(w.tables);
    pack_q(&w, part, in_place);
    softmax_begin(&w.state, part);
    memset(o, 0, (size_t)part->rows * (size_t)part->d_c * sizeof *o);
    if (stream)
        stream_part(&w, part, o);
    else
        attend_pages(&w, part, in_place, o);
    softmax_end(&w.state, part->rows, m, l);
}

/* ---- probe ---------------------------------------------------------------------------------- */

static double multiply(const uint16_t *operands, int64_t rounds) {
    enum { kSums = 24 };
    __m512 sum[kSums];
    __m512bh a[2] = {load_bf16(operands), load_bf16(operands + 32)};
    __m512bh b[2] = {load_bf16(operands + 64), load_bf16(operands + 96)};
    UNROLL
    for (int j = 0; j < kSums; j++)
        sum[j] = _mm512_set1_ps((float)operands[j]); /* different values, or the compiler would
                                                        compute one sum for all */
    for (int64_t i = 0; i < rounds; i++) {
        UNROLL
        for (int j = 0; j < kSums; j++)
            sum[j] = _mm512_dpbf16_ps(sum[j], a[j & 1], b[j >> 1 & 1]);
    }
    UNROLL
    for (int j = 0; j < kSums; j++)
        vf_keep((vf)sum[j]);
    return (double)rounds * kSums * 64.0;
}

static const char *lacks(void) {
    if (cpu_avx512f.lacks())
        return cpu_avx512f.lacks();
    return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bf16")
               ? NULL
               : "the processor has no AVX-512 VBMI and BF16";
}

const cpu_isa cpu_avx512 = {
    .name = "avx512",
    .kernel = "avx512bf16",
    .lacks = lacks,
    .scratch_bytes = scratch_bytes,
    .attend = attend,
    .combine = combine,
    .quant = quant,
    .dequant = dequant,
    .read = burst_read,
    .multiply = multiply,
    .multiply_how = "vdpbf16ps zmm",
};

TARGET_END
#endif
