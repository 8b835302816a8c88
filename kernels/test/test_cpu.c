/* Compares the arms of the CPU backend, on the instruction sets of fixture_isas(), with the FP64
 * reference. Also changes inputs in ways that must not change the result. Unless a test says
 * otherwise, unused slots and outputs hold NaN, and unused table entries are invalid. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "kernels/formats.h"
#include "kernels/test/fixture.h"

/* Calls @fn for every instruction set of fixture_isas() and both precisions. */
static void each_arm(void (*fn)(fixture_spec spec)) {
    for (const char *const *isa = fixture_isas(); *isa; isa++)
        for (int p = MLA_BF16; p <= MLA_FP8; p++)
            fn((fixture_spec){.isa = *isa, .precision = (mla_precision)p});
}

static void expect(fixture_spec spec, int64_t rows) {
    fixture f;
    fixture_make(&f, spec);
    fixture_run(&f);
    fixture_expect(&f, rows);
    fixture_free(&f);
}

static void set_lengths(fixture_spec *spec, int batch, const int *length) {
    spec->batch = batch;
    for (int b = 0; b < batch; b++) {
        spec->length[b] = length[b];
        spec->id[b] = b;
    }
}

static void heads_of(fixture_spec spec) {
    static const int kHeads[] = {1, 2, 3, 4, 5, 16, 17, 31, 64, 100, 128};
    static const int kLengths[] = {0, 1, 63, 64, 65, 200};
    set_lengths(&spec, 6, kLengths);
    for (int i = 0; i < 11; i++) {
        spec.heads = kHeads[i];
        expect(spec, 10);
    }
}

static void test_heads(void) {
    each_arm(heads_of);
}

static void widths_of(fixture_spec spec) {
    static const int kWidths[][2] = {{256, 32}, {64, 32}, {96, 32}, {32, 96}, {1024, 64}};
    static const int kLengths[] = {130, 7};
    set_lengths(&spec, 2, kLengths);
    for (int i = 0; i < 5; i++)
        for (spec.heads = 2; spec.heads <= 22; spec.heads += 10) {
            spec.d_c = kWidths[i][0];
            spec.d_r = kWidths[i][1];
            expect(spec, 8);
        }
}

static void test_widths(void) {
    each_arm(widths_of);
}

/* Lengths below s_q leave some rows without a visible token. With 66 tokens and s_q 3 or 4, the
 * first rows see nothing of page 1. */
static void causal_of(fixture_spec spec) {
    static const int kLengths[] = {66, 3, 1, 0, 129, 64};
    set_lengths(&spec, 6, kLengths);
    for (spec.s_q = 2; spec.s_q <= 4; spec.s_q++)
        for (spec.heads = 1; spec.heads <= 9; spec.heads += 4)
            expect(spec, 40);
    spec.s_q = 4;
    spec.heads = 128;
    expect(spec, 24);
}

static void test_causal(void) {
    each_arm(causal_of);
}

/* The AMX kernel divides its work into blocks of 256 tokens and blocks of 32 query rows. The
 * lengths and head counts of this test give several blocks of both kinds, and a last block of
 * tokens that is not full. */
static void blocks_of(fixture_spec spec) {
    static const int kLengths[] = {1100, 513, 257};
    static const int kHeads[] = {16, 40, 80, 128};
    set_lengths(&spec, 3, kLengths);
    spec.splits = 1;
    for (int i = 0; i < 4; i++) {
        spec.heads = kHeads[i];
        expect(spec, 10);
    }
    spec.s_q = 3;
    spec.heads = 21;
    expect(spec, 24);
}

static void test_blocks(void) {
    each_arm(blocks_of);
}

/* ---- changes that must not change the result ------------------------------------------------ */

static void expect_same(const fixture *a, const fixture *b) {
    CU_ASSERT_EQUAL(memcmp(a->attn.out, b->attn.out, a->out_bytes), 0);
    CU_ASSERT_EQUAL(memcmp(a->attn.lse, b->attn.lse, a->lse_bytes), 0);
}

static void expect_same_specs(fixture_spec one, fixture_spec other) {
    fixture a, b;
    fixture_make(&a, one);
    fixture_make(&b, other);
    fixture_run(&a);
    fixture_run(&b);
    expect_same(&a, &b);
    fixture_free(&a);
    fixture_free(&b);
}

static void unchanged_of(fixture_spec spec) {
    static const int kLengths[] = {300, 64, 0, 129};
    static const int kHeads[] = {2, 3, 19};
    set_lengths(&spec, 4, kLengths);
    for (int i = 0; i < 3; i++) {
        spec.heads = kHeads[i];
        fixture_spec pages = spec, poison = spec, threads = spec;
        pages.pages_seed = 123;
        expect_same_specs(spec, pages);
        poison.poison = 0x7d; /* large finite numbers */
        expect_same_specs(spec, poison);
        spec.splits = threads.splits = 3;
        threads.threads = 5;
        expect_same_specs(spec, threads);
        spec.splits = 0;
    }
}

static void test_unchanged(void) {
    each_arm(unchanged_of);
}

static void reruns_of(fixture_spec spec) {
    static const int kLengths[] = {700, 65};
    set_lengths(&spec, 2, kLengths);
    spec.heads = 6;
    fixture f;
    fixture_make(&f, spec);
    fixture_run(&f);
    void *first = malloc(f.out_bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    memcpy(first, f.attn.out, f.out_bytes);
    for (int i = 0; i < 5; i++) {
        memset(f.attn.out, 0xff, f.out_bytes);
        fixture_run(&f);
        CU_ASSERT_EQUAL(memcmp(first, f.attn.out, f.out_bytes), 0);
    }
    free(first);
    fixture_free(&f);
}

static void test_reruns(void) {
    each_arm(reruns_of);
}

/* With a fixed `splits`, a sequence's rows do not depend on its position in the batch or on the
 * other sequences. */
static void batch_of(fixture_spec spec) {
    static const int kLengths[] = {300, 64, 1, 200}, kOther[] = {200, 300, 1000, 64, 1};
    static const int kOtherId[] = {3, 0, 9, 1, 2}, kWhere[] = {1, 3, 4, 0};
    fixture_spec other = spec;
    set_lengths(&spec, 4, kLengths);
    set_lengths(&other, 5, kOther);
    memcpy(other.id, kOtherId, sizeof kOtherId);
    spec.heads = other.heads = 6;
    spec.splits = other.splits = 4;
    fixture a, b;
    fixture_make(&a, spec);
    fixture_make(&b, other);
    fixture_run(&a);
    fixture_run(&b);
    size_t row = a.out_bytes / 4;
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(memcmp((char *)a.attn.out + (size_t)i * row,
                               (char *)b.attn.out + (size_t)kWhere[i] * row, row),
                        0);
    fixture_free(&a);
    fixture_free(&b);
}

static void test_batch(void) {
    each_arm(batch_of);
}

static double distance(const fixture *a, const fixture *b) {
    const uint16_t *x = a->attn.out, *y = b->attn.out;
    double diff = 0, norm = 0;
    for (size_t i = 0; i < a->out_bytes / 2; i++) {
        double u = (double)bf16_to_f32(x[i]), v = (double)bf16_to_f32(y[i]);
        diff += (u - v) * (u - v);
        norm += v * v;
    }
    return sqrt(diff / norm);
}

/* Splitting changes the running maximum that P is rounded against; results agree within the
 * rounding of bf16. */
static void expect_splits_agree(fixture_spec spec) {
    static const int kSplits[] = {2, 5, 64, 1000000, 0};
    spec.splits = 1;
    fixture whole, cut;
    fixture_make(&whole, spec);
    fixture_run(&whole);
    for (int i = 0; i < 5; i++) {
        spec.splits = kSplits[i];
        fixture_make(&cut, spec);
        fixture_run(&cut);
        CU_ASSERT(distance(&cut, &whole) < 0x1p-8);
        for (int r = 0; r < spec.batch * spec.heads; r++)
            CU_ASSERT_DOUBLE_EQUAL((double)cut.attn.lse[r], (double)whole.attn.lse[r], 1e-5);
        fixture_free(&cut);
    }
    fixture_free(&whole);
}

/* With two splits, the sequence of 900 tokens has parts of seven and eight pages. The other
 * sequences have two pages and one page. */
static void splits_of(fixture_spec spec) {
    static const int kLengths[] = {900, 70, 3}, kHeads[] = {1, 2, 5};
    set_lengths(&spec, 3, kLengths);
    for (int i = 0; i < 3; i++) {
        spec.heads = kHeads[i];
        expect_splits_agree(spec);
    }
}

static void test_splits(void) {
    each_arm(splits_of);
}

/* Without a fixed number of splits and with 16 rows and more, the AMX kernel's long sequences have
 * large and small parts. The results of the parts are joined eight rows at a time. With 20 and 68
 * rows, the last of these groups has only four rows. */
static void uneven_of(fixture_spec spec) {
    static const int kLengths[] = {2600, 900, 3};
    set_lengths(&spec, 3, kLengths);
    spec.threads = 3;
    spec.heads = 68;
    expect(spec, 12);
    spec.heads = 20;
    expect(spec, 12);
}

static void test_uneven_parts(void) {
    each_arm(uneven_of);
}

/* ---- extreme inputs ------------------------------------------------------------------------- */

static void nothing_of(fixture_spec spec) {
    static const int kLengths[] = {0, 1};
    set_lengths(&spec, 2, kLengths);
    spec.heads = 7;
    fixture f;
    fixture_make(&f, spec);
    fixture_run(&f);
    const uint16_t *out = f.attn.out;
    for (int i = 0; i < 7 * 512; i++)
        CU_ASSERT_EQUAL(out[i], 0);
    uint16_t token[576], rope[64];
    uint8_t c8[512];
    fixture_row(&f.spec, 1, 0, token);
    float a = quant_row(token, 512, 64, MLA_SCALE_MAX, c8, rope);
    for (int h = 0; h < 7; h++) {
        CU_ASSERT(isinf(f.attn.lse[h]) && f.attn.lse[h] < 0);
        for (int d = 0; d < 512; d++) { /* the output is the content of the only token, whatever the
                                           logit */
            float v = spec.precision == MLA_FP8 ? e4m3_to_f32(c8[d]) * a : bf16_to_f32(token[d]);
            float o = bf16_to_f32(out[(7 + h) * 512 + d]);
            CU_ASSERT(fabsf(o - v) <= 0x1p-8f * fabsf(v));
        }
    }
    fixture_free(&f);
}

static void test_nothing_and_one_token(void) {
    each_arm(nothing_of);
}

static void rope_outliers(const fixture_spec *spec, int64_t token, float *row) {
    if (token >= 0)
        row[spec->d_c + (int)(token % 5)] *= 1000.0f;
}

static void zero_content(const fixture_spec *spec, int64_t token, float *row) {
    (void)token;
    memset(row, 0, (size_t)spec->d_c * sizeof *row);
}

static void zero_query(const fixture_spec *spec, int64_t token, float *row) {
    if (token < 0)
        memset(row, 0, (size_t)(spec->d_c + spec->d_r) * sizeof *row);
}

/* Adds 100 to the logits of every second page, through the first RoPE column. */
static void add_to_pages(const fixture_spec *spec, int64_t token, float *row, int64_t odd) {
    float *channel = row + spec->d_c;
    *channel = token < 0 ? 100.0f : token / MLA_PAGE % 2 == odd ? 1.0f / 0.0721687849f : 0.0f;
}

static void high_low(const fixture_spec *spec, int64_t token, float *row) {
    add_to_pages(spec, token, row, 0);
}

static void low_high(const fixture_spec *spec, int64_t token, float *row) {
    add_to_pages(spec, token, row, 1);
}

/* Token norms over a wide range of powers of two, so that a_k has a wide range. */
static void wide_tokens(const fixture_spec *spec, int64_t token, float *row) {
    for (int d = 0; token >= 0 && d < spec->d_c; d++)
        row[d] *= ldexpf(1.0f, (int)(token % 23) - 14);
}

static void edges_of(fixture_spec spec) {
    static const fixture_change kChanges[] = {rope_outliers, high_low, low_high, wide_tokens};
    static const int kLengths[] = {300, 128, 65};
    set_lengths(&spec, 3, kLengths);
    for (int i = 0; i < 4; i++)
        for (spec.heads = 2; spec.heads <= 18; spec.heads += 16) {
            spec.change = kChanges[i];
            expect(spec, 12);
        }
}

static void test_edges(void) {
    each_arm(edges_of);
}

static void zero_content_of(fixture_spec spec) {
    static const int kLengths[] = {200};
    set_lengths(&spec, 1, kLengths);
    spec.change = zero_content;
    for (spec.heads = 3; spec.heads <= 9; spec.heads += 6) {
        fixture f;
        fixture_make(&f, spec);
        fixture_run(&f);
        const uint16_t *out = f.attn.out;
        for (int i = 0; i < spec.heads * 512; i++)
            CU_ASSERT_EQUAL(out[i] & 0x7fff, 0);
        CU_ASSERT(fixture_judge(&f, REF_P_EXACT, 0).lse_err < 1e-5);
        fixture_free(&f);
    }
}

static void test_zero_content(void) {
    each_arm(zero_content_of);
}

/* Equal logits: the output is the mean of V, and the LSE is ln L. */
static void equal_of(fixture_spec spec) {
    static const int kLengths[] = {200};
    set_lengths(&spec, 1, kLengths);
    spec.change = zero_query;
    spec.heads = 5;
    fixture f;
    fixture_make(&f, spec);
    fixture_run(&f);
    for (int h = 0; h < 5; h++)
        CU_ASSERT_DOUBLE_EQUAL((double)f.attn.lse[h], log(200.0), 1e-6);
    double mean[512] = {0}, diff = 0, norm = 0;
    uint16_t token[576];
    for (int j = 0; j < 200; j++) {
        fixture_row(&f.spec, 0, j, token);
        for (int d = 0; d < 512; d++)
            mean[d] += (double)bf16_to_f32(token[d]) / 200;
    }
    for (int d = 0; d < 512; d++) {
        double e = (double)bf16_to_f32(((const uint16_t *)f.attn.out)[2 * 512 + d]) - mean[d];
        diff += e * e;
        norm += mean[d] * mean[d];
    }
    CU_ASSERT(sqrt(diff / norm) < (spec.precision == MLA_FP8 ? 5e-2 : 2.5e-3));
    fixture_free(&f);
}

static void test_equal_logits(void) {
    each_arm(equal_of);
}

/* Computes the FP8 reference's result for the planes of @f, rounded to bf16 as an arm would return
 * it. */
static void oracle_out(const fixture *f, uint16_t *out) {
    ref_rows q, k;
    double o[512];
    CU_ASSERT_EQUAL_FATAL(ref_rows_from_queries(&q, MLA_FP8, 512, 64, &f->attn, 0, 4, NULL),
                          SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(ref_rows_from_cache(&k, MLA_FP8, 512, 64, &f->cache, f->step.block_table,
                                              f->spec.length[0], NULL),
                          SNAP_OK);
    for (int h = 0; h < 4; h++) {
        ref_attend(&q, h, &k, k.rows, (double)f->attn.softmax_scale, REF_P_E4M3, o, NULL);
        for (int d = 0; d < 512; d++)
            out[h * 512 + d] = bf16_from_f64(o[d]);
    }
    ref_rows_release(&q);
    ref_rows_release(&k);
}

/* Compares the FP8 arm with exact probabilities. On its own cache, it stays within the bound. On
 * the numbers before quantisation, its error is below 6 %, and within 1 % of the error of the FP8
 * reference. */
static void fp8_bounds_of(fixture_spec spec) {
    if (spec.precision != MLA_FP8)
        return;
    static const int kLengths[] = {1500};
    set_lengths(&spec, 1, kLengths);
    spec.heads = 4;
    fixture f, plain;
    fixture_make(&f, spec);
    fixture_run(&f);
    judge_error e = fixture_judge(&f, REF_P_EXACT, 0);
    CU_ASSERT_EQUAL(judge_verdict(&e, judge_bound_of(MLA_FP8, REF_P_EXACT), NULL), SNAP_OK);
    spec.precision = MLA_BF16;
    fixture_make(&plain, spec);
    memcpy(plain.attn.out, f.attn.out, f.out_bytes);
    memcpy(plain.attn.lse, f.attn.lse, f.lse_bytes);
    double arm = fixture_judge(&plain, REF_P_EXACT, 0).out_rel;
    oracle_out(&f, plain.attn.out);
    double format = fixture_judge(&plain, REF_P_EXACT, 0).out_rel;
    CU_ASSERT(arm < 6e-2);
    CU_ASSERT_DOUBLE_EQUAL(arm, format, 0.01 * format);
    fixture_free(&f);
    fixture_free(&plain);
}

static void test_fp8_bounds(void) {
    each_arm(fp8_bounds_of);
}

/* The judge must detect an error in a single row. */
static void test_judge_sees_one_wrong_row(void) {
    static const int kLengths[] = {100, 50};
    fixture_spec spec = {.isa = "portable", .precision = MLA_FP8, .heads = 128};
    set_lengths(&spec, 2, kLengths);
    fixture f;
    fixture_make(&f, spec);
    fixture_run(&f);
    uint16_t *row = (uint16_t *)f.attn.out + 200 * 512;
    for (int d = 0; d < 512; d++)
        row[d] = bf16_from_f32(1.05f * bf16_to_f32(row[d]));
    judge_error e = fixture_judge(&f, REF_P_E4M3, 0);
    snap_err err = {0};
    CU_ASSERT_EQUAL(judge_verdict(&e, judge_bound_of(MLA_FP8, REF_P_E4M3), &err), SNAP_E_WRONG);
    CU_ASSERT_EQUAL(e.worst_b, 1);
    CU_ASSERT_EQUAL(e.worst_h, 72);
    row[3] = 0x7fc0;
    e = fixture_judge(&f, REF_P_E4M3, 0);
    CU_ASSERT_EQUAL(e.nonfinite, 1);
    f.attn.lse[0] += 0.5f;
    CU_ASSERT(fixture_judge(&f, REF_P_E4M3, 0).lse_err > 0.05);
    fixture_free(&f);
}

/* ---- NaN ---- */

/* The first number of token 5's RoPE part becomes NaN. So its scores are NaN, but not its value. */
static void spoil_token(const fixture_spec *spec, int64_t token, float *row) {
    (void)spec;
    if (token == 5)
        row[512] = NAN;
}

/* One number of each query becomes NaN, and with it all scores. */
static void spoil_queries(const fixture_spec *spec, int64_t token, float *row) {
    (void)spec;
    if (token < 0)
        row[3] = NAN;
}

static void spoil_late_token(const fixture_spec *spec, int64_t token, float *row) {
    (void)spec;
    if (token == 150)
        row[512] = NAN;
}

/* Each row with a NaN score must become NaN, output and log-sum-exp, and no other row may change.
 * Token 150 exists in the third sequence only. Under a sanitizer, the test has 16 heads only. Other
 * tests of this file run the kernels with few heads and with many. */
static void nan_of(fixture_spec spec) {
    static const int kLengths[] = {0, 5, 700, 130};
    static const fixture_change kChanges[] = {spoil_token, spoil_queries, spoil_late_token};
    fixture good, bad;
    set_lengths(&spec, 4, kLengths);
    spec.splits = 3;
    for (spec.heads = kSanitized ? 16 : 1; spec.heads <= 48; spec.heads *= 4)
        for (int c = 0; c < 3; c++) {
            spec.change = NULL;
            fixture_make(&good, spec);
            fixture_run(&good);
            spec.change = kChanges[c];
            fixture_make(&bad, spec);
            fixture_run(&bad);
            for (int b = 0; b < 4; b++)
                for (int64_t row = b * spec.heads; row < (b + 1) * spec.heads; row++) {
                    const uint16_t *x = (const uint16_t *)bad.attn.out + row * 512,
                                   *y = (const uint16_t *)good.attn.out + row * 512;
                    bool spoilt = c == 1 ? b > 0 : c == 0 ? b > 1 : b == 2;
                    int nans = 0;
                    for (int d = 0; d < 512; d++)
                        nans += isnan(bf16_to_f32(x[d]));
                    CU_ASSERT_EQUAL(nans, spoilt ? 512 : 0);
                    CU_ASSERT_EQUAL(!!isnan(bad.attn.lse[row]), spoilt);
                    if (!spoilt)
                        CU_ASSERT_EQUAL(memcmp(x, y, 1024), 0);
                }
            fixture_free(&good);
            fixture_free(&bad);
        }
}

static void test_nan(void) {
    each_arm(nan_of);
}

CU_TestInfo tests_cpu[] = {
    {"1 to 128 heads match the oracle", test_heads},
    {"other widths", test_widths},
    {"causal rows, and pages that some rows do not see", test_causal},
    {"parts with several blocks", test_blocks},
    {"order of pages, unused slots and threads change no bit", test_unchanged},
    {"reruns are identical", test_reruns},
    {"neighbours in the batch change no bit", test_batch},
    {"splits agree within rounding", test_splits},
    {"parts of different sizes", test_uneven_parts},
    {"no token, one token", test_nothing_and_one_token},
    {"RoPE of 1e3, logits 100 apart, wide norms", test_edges},
    {"content of zeros", test_zero_content},
    {"equal logits give the mean", test_equal_logits},
    {"FP8 within its bounds of exact attention", test_fp8_bounds},
    {"a NaN score gives a NaN row", test_nan},
    {"the judge sees one wrong row", test_judge_sees_one_wrong_row},
    CU_TEST_INFO_NULL,
};
