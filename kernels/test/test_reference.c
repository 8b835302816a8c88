#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/format/format.h"
#include "kernels/formats.h"
#include "kernels/reference.h"

enum { kC = 256, kR = 64, kD = kC + kR, kTokens = 200 };

/* bf16 numbers as FP32: N(0, 1). One RoPE column has the standard deviation @outlier if
 * that is above 0. */
static float *random_rows(int rows, uint64_t stream, float outlier) {
    float *x = calloc((size_t)rows * kD, sizeof *x);
    rng r = rng_make(11, stream);
    for (int i = 0; x && i < rows * kD; i++)
        x[i] = bf16_to_f32(bf16_from_f64(rng_normal(&r)));
    for (int i = 0; x && i < rows && outlier > 0.0f; i++)
        x[i * kD + kC + 3] = bf16_to_f32(bf16_from_f64((double)outlier * rng_normal(&r)));
    return x;
}

static double relative(const double *a, const double *b, int n) {
    double diff = 0, norm = 0;
    for (int i = 0; i < n; i++) {
        diff += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    return sqrt(diff / norm);
}

/* Attention as in a textbook: all logits, one maximum, one sum. It uses no function of
 * reference.h. */
static void textbook(const float *q, const float *kv, int tokens, double scale, double *o,
                     double *lse) {
    double s[kTokens], m = -(double)INFINITY, l = 0;
    for (int j = 0; j < tokens; j++) {
        s[j] = 0;
        for (int d = 0; d < kD; d++)
            s[j] += (double)q[d] * (double)kv[j * kD + d];
        s[j] *= scale;
        m = fmax(m, s[j]);
    }
    for (int d = 0; d < kC; d++)
        o[d] = 0;
    for (int j = 0; j < tokens; j++)
        l += exp(s[j] - m);
    for (int j = 0; j < tokens; j++)
        for (int d = 0; d < kC; d++)
            o[d] += exp(s[j] - m) / l * (double)kv[j * kD + d];
    *lse = m + log(l);
}

/* The formats that are tested, which are shipped, and the rounding of P in their arms. */
static const struct {
    const char *name;
    ref_pv pv;
} formats[] = {{"bf16", REF_P_BF16}, {"snapmla", REF_P_E4M3}, {"A", REF_P_E4M3}, {"B", REF_P_E4M3},
               {"C", REF_P_E4M3},    {"D", REF_P_E4M3},       {"E", REF_P_E4M3}, {"F", REF_P_E4M3}};
enum { kFormats = sizeof formats / sizeof *formats };

/* Rows in the format with that name; "plain": not quantised. */
static ref_rows quantise(const char *name, const float *x, int64_t rows) {
    ref_rows r = {0};
    cache_format f;
    cache_bytes b;
    if (strcmp(name, "plain") == 0) {
        CU_ASSERT_EQUAL_FATAL(ref_rows_quantise(&r, REF_PLAIN, x, rows, kC, kR, NULL), SNAP_OK);
        return r;
    }
    CU_ASSERT_EQUAL_FATAL(cache_format_load(&f, name, kC, kR, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(cache_format_pack(&b, &f, x, rows, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(cache_format_rows(&r, &f, &b, NULL, rows, NULL), SNAP_OK);
    cache_bytes_release(&b);
    return r;
}

/* Attention of one query over all tokens in a format; o [kC]. */
static void attend(const char *format, ref_pv pv, const float *q, const float *kv, int tokens,
                   double *o, double *lse) {
    ref_rows rq = quantise(format, q, 1), rk = quantise(format, kv, tokens);
    ref_attend(&rq, 0, &rk, tokens, 0.07, pv, o, lse);
    ref_rows_release(&rq);
    ref_rows_release(&rk);
}

static void test_plain_is_the_textbook(void) {
    float *q = random_rows(1, 1, 0), *kv = random_rows(kTokens, 2, 0);
    for (int tokens = 1; tokens <= kTokens; tokens += 33) {
        double a[kC], b[kC], lse_a, lse_b;
        attend("plain", REF_P_EXACT, q, kv, tokens, a, &lse_a);
        textbook(q, kv, tokens, 0.07, b, &lse_b);
        CU_ASSERT(relative(a, b, kC) < 1e-13);
        CU_ASSERT_DOUBLE_EQUAL(lse_a, lse_b, 1e-12);
        attend("bf16", REF_P_EXACT, q, kv, tokens, a, &lse_a); /* the inputs are bf16 already */
        CU_ASSERT(relative(a, b, kC) < 1e-13);
    }
    free(q);
    free(kv);
}

static void test_nothing_visible(void) {
    float *q = random_rows(1, 1, 0), *kv = random_rows(4, 2, 0);
    double o[kC], lse;
    attend("snapmla", REF_P_E4M3, q, kv, 0, o, &lse);
    CU_ASSERT(isinf(lse) && lse < 0);
    for (int d = 0; d < kC; d++)
        CU_ASSERT_EQUAL(o[d], 0.0);
    free(q);
    free(kv);
}

/* A cache with a NaN gives NaN, not the result of an empty cache. */
static void test_nan_stays_nan(void) {
    float *q = random_rows(1, 1, 0), *kv = random_rows(4, 2, 0);
    for (int j = 0; j < 4; j++)
        kv[j * kD + kC + 3] = NAN;
    double o[kC], lse;
    attend("bf16", REF_P_EXACT, q, kv, 4, o, &lse);
    CU_ASSERT(isnan(lse));
    CU_ASSERT(isnan(o[0]) && isnan(o[kC - 1]));
    free(q);
    free(kv);
}

/* The error of attention in a format, with P rounded by @pv, relative to the textbook version. */
static double error_of(const char *format, ref_pv pv, const float *q, const float *kv) {
    double o[kC], want[kC], lse, lse_want;
    attend(format, pv, q, kv, kTokens, o, &lse);
    textbook(q, kv, kTokens, 0.07, want, &lse_want);
    return relative(o, want, kC);
}

/* Known properties of the formats without outliers: bf16 is far more precise than any e4m3 format,
 * and exact P is no worse than P8. */
static void test_formats_in_order(void) {
    double mean[kFormats] = {0}, exact[kFormats] = {0};
    for (int i = 0; i < 12; i++) {
        float *q = random_rows(1, 100 + (uint64_t)i, 0),
              *kv = random_rows(kTokens, 200 + (uint64_t)i, 0);
        for (int f = 0; f < kFormats; f++) {
            mean[f] += error_of(formats[f].name, formats[f].pv, q, kv) / 12;
            exact[f] += error_of(formats[f].name, REF_P_EXACT, q, kv) / 12;
        }
        free(q);
        free(kv);
    }
    CU_ASSERT(mean[0] < 3e-3);
    for (int f = 1; f < kFormats; f++) {
        CU_ASSERT(mean[f] > 5 * mean[0]);
        CU_ASSERT(mean[f] < 6e-2);
        CU_ASSERT(exact[f] <= mean[f]);
    }
}

/* Two RoPE columns of each token hold a vector of length 1e3 at a random angle. Format A,
 * whose RoPE is e4m3, has a much larger error than snapmla, whose RoPE is bf16. */
static void test_rope_outliers(void) {
    double a = 0, snapmla = 0, f = 0;
    float *kv = random_rows(kTokens, 6, 0);
    rng r = rng_make(4, 4);
    for (int j = 0; j < kTokens; j++) {
        double angle = 0.5 + 0.4 * rng_uniform(&r);
        kv[j * kD + kC] = bf16_to_f32(bf16_from_f64(1000 * cos(angle)));
        kv[j * kD + kC + 1] = bf16_to_f32(bf16_from_f64(1000 * sin(angle)));
    }
    for (int i = 0; i < 8; i++) {
        float *q = random_rows(1, 50 + (uint64_t)i, 0);
        q[kC] = bf16_to_f32(bf16_from_f64(cos(0.5 + 0.05 * i)));
        q[kC + 1] = bf16_to_f32(bf16_from_f64(sin(0.5 + 0.05 * i)));
        a += error_of("A", REF_P_EXACT, q, kv);
        snapmla += error_of("snapmla", REF_P_EXACT, q, kv);
        f += error_of("F", REF_P_EXACT, q, kv);
        CU_ASSERT(error_of("bf16", REF_P_EXACT, q, kv) < 1e-12);
        free(q);
    }
    CU_ASSERT(a > 3 * snapmla);
    CU_ASSERT(snapmla > 1.5 * f); /* F's RoPE is exact */
    free(kv);
}

static void test_rows_are_what_the_format_says(void) {
    float *x = random_rows(130, 9, 50.0f);
    ref_rows r;
    x[64 * kD] = 7.0f; /* the largest content of the second block */
    r = quantise("D", x, 130);
    CU_ASSERT_EQUAL(r.groups, 2);
    CU_ASSERT_EQUAL(r.scale[0], r.scale[63 * 2]); /* a block of 64 tokens shares its scales */
    CU_ASSERT_NOT_EQUAL(r.scale[0], r.scale[64 * 2]);
    CU_ASSERT_EQUAL(r.rope_scale[7], 1.0f);
    ref_rows_release(&r);
    r = quantise("F", x, 130);
    for (int i = 0; i < 130; i++) {
        int e;
        CU_ASSERT_EQUAL(frexpf(r.scale[i], &e), 0.5f);
        for (int d = 0; d < kR; d++)
            CU_ASSERT_EQUAL(r.rope[i * kR + d] * r.rope_scale[i], x[i * kD + kC + d]);
    }
    ref_rows_release(&r);
    r = quantise("B", x, 130);
    CU_ASSERT_EQUAL(r.scale[129], 1.0f);
    CU_ASSERT_EQUAL(r.content[0], e4m3_to_f32(e4m3_from_f32(x[0])));
    ref_rows_release(&r);
    r = quantise("C", x, 130);
    float largest = 0;
    for (int i = 0; i < 130 * kD; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    CU_ASSERT_EQUAL(r.scale[77], largest / 448.0f);
    ref_rows_release(&r);
    free(x);
}

/* The quantised rows of reference.h equal the planes that quant_row() computes in another way. */
static void test_snapmla_rows_are_the_planes(void) {
    float *x = random_rows(20, 10, 300.0f);
    uint16_t row[kD], rope[kR];
    uint8_t c8[kC];
    ref_rows r;
    CU_ASSERT_EQUAL_FATAL(ref_rows_quantise(&r, REF_SNAPMLA, x, 20, kC, kR, NULL), SNAP_OK);
    for (int i = 0; i < 20; i++) {
        for (int d = 0; d < kD; d++)
            row[d] = bf16_from_f32(x[i * kD + d]);
        CU_ASSERT_EQUAL(quant_row(row, kC, kR, MLA_SCALE_MAX, c8, rope), r.scale[i]);
        for (int d = 0; d < kC; d++)
            CU_ASSERT_EQUAL(e4m3_to_f32(c8[d]), r.content[i * kC + d]);
        for (int d = 0; d < kR; d++)
            CU_ASSERT_EQUAL(bf16_to_f32(rope[d]), r.rope[i * kR + d]);
    }
    ref_rows_release(&r);
    free(x);
}

/* What a format makes of x, rounded to bf16. */
static void dequantise(const char *format, const float *x, float *y, int rows) {
    ref_rows r = quantise(format, x, rows);
    for (int i = 0; i < rows; i++)
        for (int d = 0; d < kD; d++) {
            double value =
                d < kC ? (double)r.content[i * kC + d] * (double)r.scale[i * r.groups + d / r.dims]
                       : (double)r.rope[i * kR + d - kC] * (double)r.rope_scale[i];
            y[i * kD + d] = bf16_to_f32(bf16_from_f64(value));
        }
    ref_rows_release(&r);
}

static void test_quantise_dequantise(void) {
    float *x = random_rows(64, 12, 0), y[64 * kD];
    for (int f = 0; f < kFormats; f++) {
        dequantise(formats[f].name, x, y, 64);
        double diff = 0, norm = 0;
        for (int i = 0; i < 64 * kD; i++) {
            diff += (double)((y[i] - x[i]) * (y[i] - x[i]));
            norm += (double)(x[i] * x[i]);
        }
        double rel = sqrt(diff / norm);
        CU_ASSERT(f == 0 ? rel == 0.0 : rel > 5e-3 && rel < 4e-2);
    }
    free(x);
}

CU_TestInfo tests_reference[] = {
    {"unquantised rows give the attention of the textbook formula", test_plain_is_the_textbook},
    {"rows that attend to no token", test_nothing_visible},
    {"a NaN in the cache gives a NaN in the output", test_nan_stays_nan},
    {"errors of the formats are in the known order", test_formats_in_order},
    {"RoPE outliers ruin e4m3 RoPE only", test_rope_outliers},
    {"scales are chosen as each format says", test_rows_are_what_the_format_says},
    {"snapmla rows equal quant_row()", test_snapmla_rows_are_the_planes},
    {"quantise and dequantise", test_quantise_dequantise},
    CU_TEST_INFO_NULL,
};
