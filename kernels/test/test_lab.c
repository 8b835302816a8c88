#include <CUnit/CUnit.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/formats.h"
#include "kernels/judge.h"
#include "kernels/lab.h"

enum { kContent = 64, kRope = 32, kWidth = kContent + kRope };

static mla_backend *cpu(void) {
    mla_backend *be = NULL;
    CU_ASSERT_FATAL(mla_backend_open(&be, "cpu", NULL, NULL) == SNAP_OK);
    return be;
}

/* A pool in which the numbers depend on their row and column. */
static uint16_t *numbered_pool(void) {
    uint16_t *pool = malloc(sizeof *pool * DRAW_POOL * kWidth);
    CU_ASSERT_FATAL(pool != NULL);
    for (int i = 0; i < DRAW_POOL * kWidth; i++)
        pool[i] = (uint16_t)(i / kWidth ^ i % kWidth << 9);
    return pool;
}

/* A drawn row consists of one pool row's content, rotated, and the RoPE part of a pool row, in most
 * cases of another one. */
static void test_draw_is_a_turned_row(void) {
    uint16_t *pool = numbered_pool(), row[kWidth];
    draw_source s = {.pool = pool, .d_c = kContent, .d_r = kRope, .seed = 3};
    int turned = 0, mixed = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        draw_parts p = draw_parts_of(s.seed, i, kContent);
        CU_ASSERT_FATAL(p.content < DRAW_POOL && p.rope < DRAW_POOL && p.turn < kContent);
        draw_row(&s, i, row);
        for (uint32_t d = 0; d < kContent; d++)
            CU_ASSERT(row[d] == pool[p.content * kWidth + (d + p.turn) % kContent]);
        CU_ASSERT(memcmp(row + kContent, pool + p.rope * kWidth + kContent, kRope * sizeof *row) ==
                  0);
        turned += p.turn != 0;
        mixed += p.rope != p.content;
    }
    CU_ASSERT(turned > 900 && mixed > 900);
    free(pool);
}

static void test_draw_on_cpu(void) {
    mla_backend *be = cpu();
    uint16_t *pool = numbered_pool(), want[kWidth], out[6 * kWidth];
    draw_source s = {.pool = pool, .d_c = kContent, .d_r = kRope, .seed = 4};
    const uint64_t first[] = {5, UINT64_MAX}; /* the row index of the second group wraps to 0 */
    CU_ASSERT(lab_draw(be, &s, first, 2, 3, out, NULL) == SNAP_OK);
    for (uint64_t i = 0; i < 6; i++) {
        draw_row(&s, first[i / 3] + i % 3, want);
        CU_ASSERT(memcmp(out + i * kWidth, want, sizeof want) == 0);
    }
    free(pool);
    mla_backend_close(be);
}

/* Functions that a backend lacks return SNAP_E_UNSUPPORTED. */
static void test_cpu_lacks(void) {
    mla_backend *be = cpu();
    lab_recording *r;
    snap_err err = {0};
    unsigned char bytes[100] = {0};
    CU_ASSERT(!lab_can_flush(be) && !lab_can_record(be) && !lab_can_attend(be));
    CU_ASSERT(lab_flush(be, &err) == SNAP_E_UNSUPPORTED);
    CU_ASSERT(lab_record(be, NULL) == SNAP_E_UNSUPPORTED);
    CU_ASSERT(lab_record_end(be, &r, NULL) == SNAP_E_UNSUPPORTED && r == NULL);
    lab_recording_free(be, NULL);
    CU_ASSERT(lab_fill(be, bytes, 0xff, 99, NULL) == SNAP_OK);
    CU_ASSERT(bytes[0] == 0xff && bytes[98] == 0xff && bytes[99] == 0);
    mla_backend_close(be);
}

/* ---- ablations ---- */

static const mla_capacity kFp8 = {.precision = MLA_FP8,
                                  .heads = 1,
                                  .d_c = 512,
                                  .d_r = 64,
                                  .batch = 1,
                                  .s_q = 1,
                                  .max_tokens = 64};

static lab_ablation last_ablation;

static snap_status plan_create_noted(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                                     lab_ablation ablation, snap_err *err) {
    last_ablation = ablation;
    return be->ops->plan_create(out, be, cap, err);
}

static void test_cpu_has_no_ablation(void) {
    mla_backend *be = cpu();
    mla_plan *plan;
    snap_err err = {0};
    CU_ASSERT(lab_plan_create(&plan, be, &kFp8, LAB_WHOLE, &err) == SNAP_OK && plan != NULL);
    mla_plan_free(plan);
    CU_ASSERT(lab_plan_create(&plan, be, &kFp8, LAB_SHALLOW, &err) == SNAP_E_UNSUPPORTED);
    CU_ASSERT_STRING_EQUAL(err.text, "the backend has no ablation");
    CU_ASSERT_PTR_NULL(plan);
    CU_ASSERT(lab_plan_create(&plan, be, &kFp8, LAB_ABLATIONS, NULL) == SNAP_E_SHAPE);
    mla_backend_close(be);
}

/* The backend's own function is called only with what the checks accept. */
static void test_ablation_is_passed_on(void) {
    mla_backend *be = cpu();
    const mla_backend_ops *own = be->ops;
    mla_lab_ops lab = {.plan_create = plan_create_noted};
    mla_backend_ops ops = *own;
    mla_plan *plan;
    mla_capacity bf16 = kFp8, wide = kFp8;
    ops.lab = &lab;
    be->ops = &ops;
    CU_ASSERT(lab_plan_create(&plan, be, &kFp8, LAB_WIDENED, NULL) == SNAP_OK && plan != NULL);
    CU_ASSERT(last_ablation == LAB_WIDENED);
    mla_plan_free(plan);
    last_ablation = LAB_WHOLE;
    bf16.precision = MLA_BF16;
    CU_ASSERT(lab_plan_create(&plan, be, &bf16, LAB_WIDENED, NULL) == SNAP_E_UNSUPPORTED);
    wide.d_c = 500;
    CU_ASSERT(lab_plan_create(&plan, be, &wide, LAB_WIDENED, NULL) == SNAP_E_SHAPE);
    CU_ASSERT(last_ablation == LAB_WHOLE && plan == NULL);
    be->ops = own;
    mla_backend_close(be);
}

/* Adding the errors of single rows gives the same figures as judging all rows together. */
static void expect_parts_add_up(judge_known in, const judge_error *whole) {
    judge_error sum = {0};
    int rows = in.rows;
    for (in.rows = 1; rows > 0; rows--, in.row++, in.ref += in.d_c, in.ref_lse++) {
        judge_error one = judge_known_rows(&in);
        judge_add(&sum, &one, 3);
    }
    CU_ASSERT(sum.rows == whole->rows && sum.row_rel == whole->row_rel);
    CU_ASSERT_DOUBLE_EQUAL(sum.out_rel, whole->out_rel, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(sum.cosine, whole->cosine, 1e-15);
    CU_ASSERT(sum.out_abs == whole->out_abs && sum.lse_err == whole->lse_err);
    CU_ASSERT(sum.worst_b == 3 && sum.worst_s == 1 && sum.worst_h == 1);
}

/* Rows with references from another source are judged like those with references of reference.h. */
static void test_known_rows(void) {
    enum { kHeads = 2, kSq = 2, kRows = 3 };
    const int64_t row[kRows] = {0, 3, 6}; /* rows of a batch of 2 sequences */
    uint16_t out[8 * kContent];
    float lse[8];
    double ref[kRows * kContent], ref_lse[kRows] = {0.5, 2, -4};
    for (int i = 0; i < 8 * kContent; i++)
        out[i] = bf16_from_f32(1.0f);
    for (int i = 0; i < 8; i++)
        lse[i] = 2.0f;
    for (int i = 0; i < kRows * kContent; i++)
        ref[i] = i / kContent == 1 ? 1.25 : 1.0;
    judge_known in = {.heads = kHeads,
                      .s_q = kSq,
                      .d_c = kContent,
                      .out = out,
                      .lse = lse,
                      .row = row,
                      .rows = kRows,
                      .ref = ref,
                      .ref_lse = ref_lse};
    judge_error e = judge_known_rows(&in);
    CU_ASSERT(e.rows == kRows && e.nonfinite == 0);
    CU_ASSERT_DOUBLE_EQUAL(e.row_rel, 0.2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(e.out_rel, sqrt(0.0625 / (1 + 1.5625 + 1)), 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(e.lse_err, 1.5, 1e-12); /* |2 - 0.5| / 1, |2 + 4| / 4 */
    CU_ASSERT(e.worst_b == 0 && e.worst_s == 1 && e.worst_h == 1);
    expect_parts_add_up(in, &e);
    out[6 * kContent] = 0x7fc0;
    CU_ASSERT(judge_known_rows(&in).nonfinite == 1);
    out[6 * kContent] = bf16_from_f32(1.0f);
    ref[1] = (double)NAN; /* a NaN in the reference is counted as not finite */
    ref_lse[2] = (double)NAN;
    CU_ASSERT(judge_known_rows(&in).nonfinite == 2);
}

/* From one row to 64, the bound falls linearly with 1 / sqrt(rows): for 8 rows by
 * (1 - 1/sqrt(8)) / (1 - 1/8) of the difference. */
static void test_bound_of_few_rows(void) {
    judge_bound b = judge_bound_of(MLA_FP8, REF_P_EXACT);
    CU_ASSERT_DOUBLE_EQUAL(judge_bound_rows(b, 1).out_rel, b.row_rel, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(judge_bound_rows(b, 8).out_rel, 0.06 - 0.03 * (1 - sqrt(0.125)) / 0.875,
                           1e-12);
    CU_ASSERT_DOUBLE_EQUAL(judge_bound_rows(b, 64).out_rel, b.out_rel, 1e-15);
    CU_ASSERT(judge_bound_rows(b, 65536).out_rel == b.out_rel);
    CU_ASSERT(judge_bound_rows(b, 8).row_rel == b.row_rel);
    CU_ASSERT(judge_bound_rows(b, 8).lse_err == b.lse_err);
}

CU_TestInfo tests_lab[] = {
    {"a drawn row has a rotated content of the pool", test_draw_is_a_turned_row},
    {"drawing on the CPU", test_draw_on_cpu},
    {"functions that the CPU lacks are refused", test_cpu_lacks},
    {"rows with references from another source", test_known_rows},
    {"the bound falls with the number of rows", test_bound_of_few_rows},
    {"the CPU has no ablation", test_cpu_has_no_ablation},
    {"an ablation is passed on", test_ablation_is_passed_on},
    CU_TEST_INFO_NULL,
};
