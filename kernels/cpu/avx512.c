/* avx512.c - one part with AVX-512's BF16 dot products (Zen 4, Sapphire Rapids and later).
 *
 * vdpbf16ps adds to each of 16 FP32 lanes the products of a pair of bf16 numbers: twice the rate of
 * FP32 FMA, from half the bytes. Both products of a page are laid out for it without a transposition:
 *   scores   many rows: rows in the lanes. Q^T is packed once a part as [row group of 16][pair of d][16];
 *            a pair of d of one token is a dword of K as it lies, broadcast. 8 tokens x 32 rows or
 *            16 tokens x 16 rows of sums stay in registers over all of d.
 *            few rows: d in the lanes, 4 or 8 tokens at a time, one horizontal sum each.
 *   values   columns in the lanes. Tokens 2i and 2i + 1 of V are interleaved by unpack on their way in,
 *            which costs nothing (other ports), and meet the pair of their P, broadcast. unpack works
 *            within 128 bits: o is kept in that order of columns and put right once at the end.
 * e4m3 becomes bf16 by two byte look-ups, exactly (a shift would make the subnormals bf16 subnormals,
 * which vdpbf16ps takes for zero). The next page is prefetched into L2 while this one is worked on. */
#if defined __x86_64__
#include "kernels/cpu/target.h"
TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512bf16,avx2,fma")
#include <immintrin.h>

#define LANES           16
#define VF_FMA(a, b, c) ((vf)_mm512_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm512_max_ps((a), (b)))

#include "kernels/cpu/burst.h"
#include "kernels/cpu/dataflow.h"
#include "kernels/cpu/softmax.h"

enum {
    kContent = 512, /* the widths whose strides are compiled in */
    kRope = 64,
    kFewRows = 4,
    kLine = 64,
    kPairs = MLA_PAGE / 2,
};

/* The next page. Many rows ask for it line by line under the scores' arithmetic; few rows leave no
 * arithmetic to hide it under, and ask for line i of it where they read line i of this one. */
typedef struct {
    const char *content, *rope;
} ahead_of;

typedef struct {
    const char *at, *end;
} region;

typedef struct {
    int d, rows, padded; /* d_c + d_r; rows, and rows in whole vectors */
    uint8_t *high, *low; /* [128] upper and lower byte of an e4m3 code as bf16 */
    uint16_t *q;         /* [rows][d] bf16 */
    uint32_t *qt;        /* [padded / 16][d / 2][16] pairs of d; many rows only */
    uint16_t *tile;      /* [64][d] bf16: the page where the cache itself can't serve as one */
    float *s;            /* many rows: [64][padded]; few: [rows][64] */
    uint32_t *p;         /* pairs of tokens; many rows: [32][padded]; few: [rows][32] */
    softmax_state state;
    ahead_of ahead;
    region left[2]; /* of it, not yet asked for: content, rope */
} scratch16;

static scratch16 scratch_layout(void *memory, int rows, int d, size_t *bytes) {
    scratch16 w = {.d = d, .rows = rows, .padded = (rows + LANES - 1) / LANES * LANES};
    size_t at = 0, width = (size_t)d, padded = (size_t)w.padded;
    w.high = scratch_carve(memory, &at, 128);
    w.low = scratch_carve(memory, &at, 128);
    w.q = scratch_carve(memory, &at, padded * width * sizeof *w.q);
    w.qt = scratch_carve(memory, &at, padded * width * sizeof *w.q);
    w.tile = scratch_carve(memory, &at, MLA_PAGE * width * sizeof *w.tile);
    w.s = scratch_carve(memory, &at, MLA_PAGE * padded * sizeof *w.s);
    w.p = scratch_carve(memory, &at, kPairs * padded * sizeof *w.p);
    w.state = softmax_layout(memory, &at, w.padded);
    *bytes = at;
    return w;
}

static size_t scratch_bytes(int rows, int d_c, int d_r) {
    size_t bytes;
    (void)scratch_layout(NULL, rows, d_c + d_r, &bytes);
    return bytes;
}

INLINE __m512bh load_bf16(const void *p) {
    return (__m512bh)_mm512_loadu_si512(p);
}

INLINE __m512bh broadcast_pair(const void *p) {
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}

/* ---- decoding ------------------------------------------------------------------------------- */

static void make_tables(scratch16 *w) {
    for (int code = 0; code < 128; code++) {
        uint16_t u = bf16_from_f32(e4m3_to_f32((uint8_t)code));
        w->high[code] = (uint8_t)(u >> 8);
        w->low[code] = (uint8_t)u;
    }
}

/* 64 codes to 64 bf16 in order: the quadwords are dealt out so that unpack leaves them in order. */
INLINE void decode_64(const scratch16 *w, __m512i codes, __m512i out[2]) {
    const __m512i deal = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), sign = _mm512_set1_epi8(-128);
    codes = _mm512_permutexvar_epi64(deal, codes);
    __m512i high = _mm512_permutex2var_epi8(_mm512_load_si512(w->high), codes,
                                            _mm512_load_si512(w->high + 64));
    __m512i low =
        _mm512_permutex2var_epi8(_mm512_load_si512(w->low), codes, _mm512_load_si512(w->low + 64));
    high = _mm512_or_si512(high, _mm512_and_si512(codes, sign));
    out[0] = _mm512_unpacklo_epi8(low, high);
    out[1] = _mm512_unpackhi_epi8(low, high);
}

INLINE void decode_e4m3(const scratch16 *w, uint16_t *out, const uint8_t *in, int n) {
    __m512i words[2];
    int i = 0;
    for (; i + 64 <= n; i += 64) {
        decode_64(w, _mm512_loadu_si512(in + i), words);
        _mm512_storeu_si512(out + i, words[0]);
        _mm512_storeu_si512(out + i + 32, words[1]);
    }
    if (i < n) {
        decode_64(w, _mm512_maskz_loadu_epi8(0xffffffffu, in + i), words);
        _mm512_storeu_si512(out + i, words[0]);
    }
}

/* Rows first .. first + n - 1 of the planes as bf16. */
static void decode_rows(const scratch16 *w, uint16_t *out, const cpu_part *part,
                        const void *content, const void *rope, int64_t first, int n) {
    size_t d_c = (size_t)part->d_c, d_r = (size_t)part->d_r, d = d_c + d_r;
    for (size_t row = (size_t)first; row < (size_t)(first + n); row++, out += d) {
        if (part->precision == MLA_BF16) {
            memcpy(out, (const uint16_t *)content + row * d, d * sizeof *out);
        } else {
            decode_e4m3(w, out, (const uint8_t *)content + row * d_c, part->d_c);
            memcpy(out + d_c, (const uint16_t *)rope + row * d_r, d_r * sizeof *out);
        }
    }
}

/* Q^T by gathers: 16 rows' dwords of one pair of d. Rows past the last are zeros. */
static void pack_q(scratch16 *w, const cpu_part *part, bool in_place) {
    int pairs = w->d / 2;
    size_t row_bytes = (size_t)w->d * sizeof *w->q;
    decode_rows(w, w->q, part, part->q, part->q_rope, part->row0, w->rows);
    if (in_place)
        return;
    memset(w->q + (size_t)w->rows * (size_t)w->d, 0, (size_t)(w->padded - w->rows) * row_bytes);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i index = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(pairs));
    for (int v = 0; v < w->padded / LANES; v++)
        for (int p = 0; p < pairs; p++) {
            const uint16_t *from = w->q + (size_t)v * LANES * (size_t)w->d + 2 * p;
            _mm512_store_si512(w->qt + ((size_t)v * (size_t)pairs + (size_t)p) * LANES,
                               _mm512_i32gather_epi32(index, from, 4));
        }
}

/* The page as 64 rows of finite bf16: the cache itself where it holds them; else the tile, zeros past
 * token n, which decode_some() fills. */
static const uint16_t *start_tile(scratch16 *w, const cpu_part *part, int64_t slot, int n) {
    size_t d = (size_t)w->d;
    if (part->precision == MLA_BF16 && n == MLA_PAGE)
        return (const uint16_t *)part->cache.content + (size_t)slot * d;
    memset(w->tile + (size_t)n * d, 0, (size_t)(MLA_PAGE - n) * d * sizeof *w->tile);
    return w->tile;
}

/* Tokens t .. t + tokens - 1 of the tile, just before their first use: they are in L1 then. */
static void decode_some(scratch16 *w, const cpu_part *part, const uint16_t *k, int64_t slot, int n,
                        int t, int tokens) {
    int count = n - t < tokens ? n - t : tokens;
    if (k == w->tile && count > 0)
        decode_rows(w, w->tile + (size_t)t * (size_t)w->d, part, part->cache.content,
                    part->cache.rope, slot + t, count);
}

/* ---- scores, many rows ---------------------------------------------------------------------- */

/* @tokens x @vecs vectors of rows over all of d; a line of the next page every pair of d. */
INLINE void scores_block(const uint16_t *k, int d, const uint32_t *qt, int tokens, int vecs,
                         float *s, int padded, region *next) {
    __m512 sum[16];
    region r = *next;
    int pairs = d / 2;
    UNROLL
    for (int i = 0; i < 16; i++)
        sum[i] = _mm512_setzero_ps();
    for (int p = 0; p < pairs; p++) {
        __m512bh q0 = load_bf16(qt + (size_t)p * LANES);
        __m512bh q1 = vecs > 1 ? load_bf16(qt + (size_t)(pairs + p) * LANES) : q0;
        _mm_prefetch(r.at, _MM_HINT_T1);
        r.at += r.at < r.end ? kLine : 0;
        UNROLL
        for (int t = 0; t < tokens; t++) {
            __m512bh x = broadcast_pair(k + (size_t)t * (size_t)d + 2 * p);
            sum[t * vecs] = _mm512_dpbf16_ps(sum[t * vecs], q0, x);
            if (vecs > 1)
                sum[t * vecs + 1] = _mm512_dpbf16_ps(sum[t * vecs + 1], q1, x);
        }
    }
    UNROLL
    for (int i = 0; i < 16; i++)
        _mm512_storeu_ps(s + (size_t)(i / vecs) * (size_t)padded + i % vecs * LANES, sum[i]);
    next->at = r.at;
}

/* The region of the next page that still has lines to ask for. */
INLINE region *next_region(scratch16 *w) {
    return &w->left[w->left[0].at < w->left[0].end ? 0 : 1];
}

INLINE void scores_width(scratch16 *w, const cpu_part *part, const uint16_t *k, int d, int64_t slot,
                         int n) {
    size_t group = (size_t)d / 2 * LANES, padded = (size_t)w->padded;
    int v = 0, vecs = w->padded / LANES;
    for (; v + 2 <= vecs; v += 2)
        for (int t = 0; t < MLA_PAGE; t += 8) {
            if (v == 0)
                decode_some(w, part, k, slot, n, t, 8);
            scores_block(k + (size_t)t * (size_t)d, d, w->qt + (size_t)v * group, 8, 2,
                         w->s + (size_t)t * padded + v * LANES, w->padded, next_region(w));
        }
    for (int t = 0; v < vecs && t < MLA_PAGE; t += 16) {
        if (v == 0)
            decode_some(w, part, k, slot, n, t, 16);
        scores_block(k + (size_t)t * (size_t)d, d, w->qt + (size_t)v * group, 16, 1,
                     w->s + (size_t)t * padded + v * LANES, w->padded, next_region(w));
    }
}

/* P to pairs of tokens as bf16. */
static void pack_p(scratch16 *w) {
    const __m512i pair =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    for (int j = 0; j < kPairs; j++)
        for (int i = 0; i < w->padded; i += LANES) {
            const float *even = w->s + (size_t)(2 * j) * (size_t)w->padded + i;
            __m512bh both =
                _mm512_cvtne2ps_pbh(_mm512_load_ps(even + w->padded), _mm512_load_ps(even));
            _mm512_store_si512(w->p + (size_t)j * (size_t)w->padded + i,
                               _mm512_permutexvar_epi16(pair, (__m512i)both));
        }
}

/* ---- scores, few rows ----------------------------------------------------------------------- */

/* 64 finite rows as they lie: MLA_BF16 whole rows in content, MLA_FP8 the two planes. */
typedef struct {
    const char *content, *rope;
} page_rows;

/* The four horizontal sums. */
INLINE __m128 sum_lanes(__m512 a, __m512 b, __m512 c, __m512 d) {
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    __m512d x = (__m512d)ab, y = (__m512d)cd;
    __m512 all = _mm512_add_ps((__m512)_mm512_unpacklo_pd(x, y), (__m512)_mm512_unpackhi_pd(x, y));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

/* 32 columns from @c of one token meet every row's. */
INLINE void add_columns(const scratch16 *w, __m512 *sum, int rows, int stride, __m512i x,
                        size_t c) {
    UNROLL
    for (int r = 0; r < rows; r++)
        sum[r * stride] = _mm512_dpbf16_ps(sum[r * stride], (__m512bh)x,
                                           load_bf16(w->q + (size_t)r * (size_t)w->d + c));
}

/* @n columns of bf16 of @tokens tokens, from column @c of the query. Of the next page half is asked
 * for here, a line for every two lines read, half under the values: memory never rests. */
INLINE const char *add_bf16(const scratch16 *w, __m512 *sum, const char *k, const char *ahead,
                            size_t row_bytes, size_t n, size_t c, int rows, int tokens) {
    for (size_t i = 0; i < n; i += 32, ahead += tokens / 2 * kLine) {
        UNROLL
        for (int j = 0; j < tokens; j++) {
            __m512i x = _mm512_loadu_si512(k + (size_t)j * row_bytes + i * 2);
            if (j % 2 == 0)
                _mm_prefetch(ahead + j / 2 * kLine, _MM_HINT_T1);
            add_columns(w, sum + j, rows, tokens, x, c + i);
        }
    }
    return ahead;
}

INLINE const char *add_e4m3(const scratch16 *w, __m512 *sum, const char *k, const char *ahead,
                            size_t d_c, int rows, int tokens) {
    for (size_t i = 0; i < d_c; i += 64, ahead += tokens / 2 * kLine) {
        UNROLL
        for (int j = 0; j < tokens; j++) {
            __m512i words[2];
            decode_64(w, _mm512_loadu_si512(k + (size_t)j * d_c + i), words);
            if (j % 2 == 0)
                _mm_prefetch(ahead + j / 2 * kLine, _MM_HINT_T1);
            add_columns(w, sum + j, rows, tokens, words[0], i);
            add_columns(w, sum + j, rows, tokens, words[1], i + 32);
        }
    }
    return ahead;
}

/* The page's rows where they lie; of a page that isn't full, a copy with zeros after token n. */
static page_rows find_page(scratch16 *w, const cpu_part *part, int64_t slot, int n) {
    bool fp8 = part->precision == MLA_FP8;
    size_t content = fp8 ? (size_t)part->d_c : (size_t)w->d * 2, rope = (size_t)part->d_r * 2;
    page_rows page = {(const char *)part->cache.content + (size_t)slot * content, NULL};
    if (fp8)
        page.rope = (const char *)part->cache.rope + (size_t)slot * rope;
    if (n == MLA_PAGE)
        return page;
    char *copy = (char *)w->tile, *copy_rope = copy + content * MLA_PAGE;
    size_t tokens = (size_t)n, rest = MLA_PAGE - tokens;
    memcpy(copy, page.content, tokens * content);
    memset(copy + tokens * content, 0, rest * content);
    if (fp8) {
        memcpy(copy_rope, page.rope, tokens * rope);
        memset(copy_rope + tokens * rope, 0, rest * rope);
    }
    return (page_rows){copy, copy_rope};
}

INLINE void scores_few(const scratch16 *w, page_rows page, mla_precision p, size_t d_c, size_t d_r,
                       int rows, int tokens) {
    __m512 sum[16];
    size_t row_bytes = p == MLA_FP8 ? d_c : 2 * (d_c + d_r);
    const char *ahead = w->ahead.content, *ahead_rope = w->ahead.rope;
    for (int t = 0; t < MLA_PAGE; t += tokens) {
        const char *k = page.content + (size_t)t * row_bytes;
        UNROLL
        for (int i = 0; i < rows * tokens; i++)
            sum[i] = _mm512_setzero_ps();
        if (p == MLA_FP8) {
            const char *rope = page.rope + (size_t)t * d_r * 2;
            ahead = add_e4m3(w, sum, k, ahead, d_c, rows, tokens);
            ahead_rope = add_bf16(w, sum, rope, ahead_rope, d_r * 2, d_r, d_c, rows, tokens);
        } else {
            ahead = add_bf16(w, sum, k, ahead, row_bytes, d_c + d_r, 0, rows, tokens);
        }
        UNROLL
        for (int i = 0; i < rows * tokens; i += 4)
            _mm_store_ps(w->s + i / tokens * MLA_PAGE + t + i % tokens,
                         sum_lanes(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]));
    }
}

INLINE void scores_few_rows(const scratch16 *w, page_rows page, mla_precision p, size_t d_c,
                            size_t d_r) {
    switch (w->rows) {
    case 1:
        scores_few(w, page, p, d_c, d_r, 1, 8);
        break;
    case 2:
        scores_few(w, page, p, d_c, d_r, 2, 8);
        break;
    case 3:
        scores_few(w, page, p, d_c, d_r, 3, 4);
        break;
    default:
        scores_few(w, page, p, d_c, d_r, 4, 4);
        break;
    }
}

/* softmax.h's rules with the tokens of one row in the lanes. */
INLINE void softmax_row(scratch16 *w, mla_precision precision, int r) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    softmax_state *st = &w->state;
    vf s[4], a_k[4], factor = vf_set(st->factor[r]);
    float before = st->m[r], m = before, sum = 0.0f, largest = 0.0f;
    UNROLL
    for (int i = 0; i < 4; i++) {
        __m512i limit = _mm512_set1_epi32(st->limit[r] - i * LANES);
        a_k[i] = precision == MLA_FP8 ? vf_load(st->a_k + i * LANES) : vf_set(1.0f);
        s[i] = vf_load(w->s + r * MLA_PAGE + i * LANES) * a_k[i];
        s[i] = (vf)_mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY),
                                      _mm512_cmplt_epi32_mask(lanes, limit), (__m512)s[i]);
    }
    m = fmaxf(m, _mm512_reduce_max_ps(VF_MAX(VF_MAX(s[0], s[1]), VF_MAX(s[2], s[3]))));
    float against = m > -INFINITY ? m : 0.0f;
    UNROLL
    for (int i = 0; i < 4; i++)
        s[i] = vf_exp2((s[i] - against) * factor);
    sum = _mm512_reduce_add_ps((__m512)((s[0] + s[1]) + (s[2] + s[3])));
    st->rescale[r] = _mm512_cvtss_f32((__m512)vf_exp2(vf_set((before - against) * st->factor[r])));
    st->l[r] = st->l[r] * st->rescale[r] + sum;
    st->m[r] = m;
    if (precision == MLA_FP8) {
        UNROLL
        for (int i = 0; i < 4; i++)
            s[i] *= a_k[i];
        largest = _mm512_reduce_max_ps(VF_MAX(VF_MAX(s[0], s[1]), VF_MAX(s[2], s[3])));
        float inverse = largest >= 0x1p-100f ? 448.0f / largest : 0.0f;
        st->sigma[r] = largest >= 0x1p-100f ? largest / 448.0f : 0.0f;
        UNROLL
        for (int i = 0; i < 4; i++)
            s[i] = vf_round_e4m3(s[i] * inverse);
    }
    UNROLL
    for (int i = 0; i < 4; i += 2)
        _mm512_store_si512(w->p + r * kPairs + i * 8,
                           (__m512i)_mm512_cvtne2ps_pbh((__m512)s[i + 1], (__m512)s[i]));
}

static void few_rows(scratch16 *w, const cpu_part *part, page_rows page, int64_t token,
                     int64_t slot, int n) {
    size_t d_c = (size_t)part->d_c, d_r = (size_t)part->d_r;
    bool usual = d_c == kContent && d_r == kRope;
    if (usual && part->precision == MLA_FP8)
        scores_few_rows(w, page, MLA_FP8, kContent, kRope);
    else if (part->precision == MLA_FP8)
        scores_few_rows(w, page, MLA_FP8, d_c, d_r);
    else if (usual)
        scores_few_rows(w, page, MLA_BF16, kContent, kRope);
    else
        scores_few_rows(w, page, MLA_BF16, d_c, d_r);
    (void)softmax_page(&w->state, part, token, slot, n);
    for (int r = 0; r < w->rows; r++) {
        if (part->precision == MLA_FP8)
            softmax_row(w, MLA_FP8, r);
        else
            softmax_row(w, MLA_BF16, r);
    }
}

static void many_rows(scratch16 *w, const cpu_part *part, const uint16_t *k, int64_t token,
                      int64_t slot, int n) {
    if (w->d == kContent + kRope)
        scores_width(w, part, k, kContent + kRope, slot, n);
    else
        scores_width(w, part, k, w->d, slot, n);
    softmax_block(&w->state, part, w->s, token, slot, n);
    pack_p(w);
}

/* ---- values --------------------------------------------------------------------------------- */

/* V and P of a block: row j of V at j * row_bytes, bf16 or e4m3; the dword of P for tokens 2j and
 * 2j + 1 of row r at j * pair_stride + r * row_stride. */
typedef struct {
    const char *v;
    size_t row_bytes;
    int pair_stride, row_stride;
    const char *ahead; /* few rows: the half of the next page that is asked for here */
} pv;

/* 64 columns from @c of tokens 2j and 2j + 1, interleaved; @vecs 1: 32 columns. */
INLINE void pair_columns(const scratch16 *w, const char *v, size_t row_bytes, mla_precision p,
                         int c, int vecs, __m512bh out[4]) {
    __m512i even[2], odd[2];
    if (p == MLA_FP8) {
        decode_64(w, _mm512_loadu_si512(v + c), even);
        decode_64(w, _mm512_loadu_si512(v + row_bytes + c), odd);
    } else {
        UNROLL
        for (int i = 0; i < vecs; i++) {
            even[i] = _mm512_loadu_si512(v + 2 * c + kLine * i);
            odd[i] = _mm512_loadu_si512(v + row_bytes + 2 * c + kLine * i);
        }
    }
    UNROLL
    for (int i = 0; i < vecs; i++) {
        out[2 * i] = (__m512bh)_mm512_unpacklo_epi16(even[i], odd[i]);
        out[2 * i + 1] = (__m512bh)_mm512_unpackhi_epi16(even[i], odd[i]);
    }
}

/* o [rows][32 * vecs] = rescale o + sigma P V, from row @row and column @c. */
INLINE void values_block(const scratch16 *w, pv in, mla_precision p, float *o, int d_c, int row,
                         int rows, int c, int vecs) {
    __m512 sum[24];
    const char *v = in.v;
    const uint32_t *at = w->p + (size_t)row * (size_t)in.row_stride;
    int step = vecs > 1 ? 2 : 1, lines = p == MLA_FP8 ? 1 : 2; /* of every 2 or 4 that are read */
    const char *ahead = in.ahead ? in.ahead + c / 64 * kPairs * lines * kLine : v;
    int stride = in.ahead ? step / 2 * lines * kLine : 0;
    UNROLL
    for (int i = 0; i < rows * vecs * 2; i++)
        sum[i] = _mm512_setzero_ps();
    for (int j = 0; j < kPairs; j++, v += 2 * in.row_bytes, at += in.pair_stride) {
        UNROLL
        for (int i = 0; i < vecs; i += step) {
            __m512bh columns[4];
            _mm_prefetch(ahead, _MM_HINT_T1);
            if (lines > 1)
                _mm_prefetch(ahead + kLine, _MM_HINT_T1);
            ahead += stride;
            pair_columns(w, v, in.row_bytes, p, c + 32 * i, step, columns);
            UNROLL
            for (int r = 0; r < rows; r++) {
                __m512bh x = broadcast_pair(at + r * in.row_stride);
                UNROLL
                for (int q = 0; q < 2 * step; q++) {
                    int to = (r * vecs + i) * 2 + q;
                    sum[to] = _mm512_dpbf16_ps(sum[to], columns[q], x);
                }
            }
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        float *to = o + (size_t)(row + r) * (size_t)d_c + c;
        vf rescale = vf_set(w->state.rescale[row + r]), sigma = vf_set(w->state.sigma[row + r]);
        UNROLL
        for (int i = 0; i < vecs * 2; i++) {
            vf old = vf_load(to + i * LANES), sums = (vf)sum[r * vecs * 2 + i];
            vf_store(to + i * LANES, VF_FMA(sigma, sums, rescale * old));
        }
    }
}

/* All columns for one to four rows: as wide as the registers allow. */
INLINE void values_columns(const scratch16 *w, pv in, mla_precision p, float *o, int d_c, int row,
                           int rows, int vecs) {
    int c = 0;
    for (; c + 32 * vecs <= d_c; c += 32 * vecs)
        values_block(w, in, p, o, d_c, row, rows, c, vecs);
    for (; c + 64 <= d_c; c += 64)
        values_block(w, in, p, o, d_c, row, rows, c, 2);
    for (; c < d_c; c += 32)
        values_block(w, in, MLA_BF16, o, d_c, row, rows, c, 1);
}

INLINE void values_rows(const scratch16 *w, pv in, mla_precision p, float *o, int d_c, int row,
                        int rows) {
    switch (rows) {
    case 1:
        values_columns(w, in, p, o, d_c, row, 1, 8);
        break;
    case 2:
        values_columns(w, in, p, o, d_c, row, 2, 4);
        break;
    case 3:
        values_columns(w, in, p, o, d_c, row, 3, 4);
        break;
    default:
        values_columns(w, in, p, o, d_c, row, 4, 2);
        break;
    }
}

static void values_few(const scratch16 *w, const cpu_part *part, page_rows page, float *o) {
    bool fp8 = part->precision == MLA_FP8;
    size_t row_bytes = fp8 ? (size_t)part->d_c : (size_t)w->d * 2;
    pv in = {page.content, row_bytes, 1, kPairs, w->ahead.content + row_bytes * MLA_PAGE / 2};
    if (fp8)
        values_rows(w, in, MLA_FP8, o, part->d_c, 0, w->rows);
    else
        values_rows(w, in, MLA_BF16, o, part->d_c, 0, w->rows);
}

/* Columns outside: 64 of V stay in L1 for all rows. */
static void values_many(const scratch16 *w, const uint16_t *k, float *o, int d_c) {
    pv in = {(const char *)k, (size_t)w->d * 2, w->padded, 1, NULL};
    int whole = w->rows / 4 * 4, c = 0;
    for (; c + 64 <= d_c; c += 64)
        for (int row = 0; row < whole; row += 4)
            values_block(w, in, MLA_BF16, o, d_c, row, 4, c, 2);
    for (; c < d_c; c += 32)
        for (int row = 0; row < whole; row += 4)
            values_block(w, in, MLA_BF16, o, d_c, row, 4, c, 1);
    if (whole < w->rows)
        values_rows(w, in, MLA_BF16, o, d_c, whole, w->rows - whole);
}

/* Columns out of unpack's order. */
static void order_columns(float *o, int64_t n) {
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i second =
        _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    for (int64_t i = 0; i < n; i += 32) {
        __m512 low = _mm512_loadu_ps(o + i), high = _mm512_loadu_ps(o + i + LANES);
        _mm512_storeu_ps(o + i, _mm512_permutex2var_ps(low, first, high));
        _mm512_storeu_ps(o + i + LANES, _mm512_permutex2var_ps(low, second, high));
    }
}

/* ---- a part --------------------------------------------------------------------------------- */

static void look_ahead(scratch16 *w, const cpu_part *part, int64_t token) {
    mla_page_bytes bytes = mla_cache_page_bytes(part->precision, part->d_c, part->d_r);
    bool last = token >= part->end; /* then there is nothing to ask for but what is here already */
    int64_t page =
        mla_slot(part->table, part->cache.pages, last ? token - MLA_PAGE : token) / MLA_PAGE;
    w->ahead.content = (const char *)part->cache.content + (size_t)page * bytes.content;
    w->ahead.rope = (const char *)part->cache.rope + (size_t)page * bytes.rope;
    if (part->precision == MLA_BF16)
        w->ahead.rope = w->ahead.content;
    w->left[0] = (region){w->ahead.content, w->ahead.content + (last ? 0 : bytes.content)};
    w->left[1] = (region){w->ahead.rope, w->ahead.rope + (last ? 0 : bytes.rope)};
}

static void attend(const cpu_part *part, void *memory, float *o, float *m, float *l) {
    size_t bytes;
    scratch16 w = scratch_layout(memory, part->rows, part->d_c + part->d_r, &bytes);
    bool in_place = part->rows <= kFewRows && (part->precision == MLA_BF16 || part->d_c % 64 == 0);
    make_tables(&w);
    pack_q(&w, part, in_place);
    softmax_begin(&w.state, part);
    memset(o, 0, (size_t)part->rows * (size_t)part->d_c * sizeof *o);
    for (int64_t token = part->first; token < part->end; token += MLA_PAGE) {
        int n = part->end - token < MLA_PAGE ? (int)(part->end - token) : MLA_PAGE;
        int64_t slot = mla_slot(part->table, part->cache.pages, token);
        look_ahead(&w, part, token + MLA_PAGE);
        if (in_place) {
            page_rows page = find_page(&w, part, slot, n);
            few_rows(&w, part, page, token, slot, n);
            values_few(&w, part, page, o);
        } else {
            const uint16_t *k = start_tile(&w, part, slot, n);
            many_rows(&w, part, k, token, slot, n);
            values_many(&w, k, o, part->d_c);
        }
    }
    order_columns(o, (int64_t)part->rows * part->d_c);
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
        sum[j] = _mm512_set1_ps((float)operands[j]); /* equal sums would be computed once */
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

static bool usable(void) {
    return cpu_avx512f.usable() && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512bf16");
}

const cpu_isa cpu_avx512 = {
    .name = "avx512",
    .kernel = "avx512bf16",
    .usable = usable,
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
