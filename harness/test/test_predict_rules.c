/* Tests the fit of rules to measured parts of steps (harness/bench/predict_rules.h). */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "harness/bench/predict_rules.h"
#include "harness/test/predict_named.h"

/* ---- fitting the rules ---- */

static void test_exact_fit(void) {
    const predict_terms x[] = {{{1, 2, 0}}, {{1, 5, 1}}, {{1, 9, 7}}, {{1, 1, 3}}};
    const double of[] = {3, 0.5, 10};
    double y[4];
    predict_terms got;
    for (int i = 0; i < 4; i++)
        y[i] = of[0] * x[i].of[0] + of[1] * x[i].of[1] + of[2] * x[i].of[2];
    CU_ASSERT(fit_nonnegative(x, y, y, 4, &got));
    for (int t = 0; t < 3; t++)
        CU_ASSERT_DOUBLE_EQUAL(got.of[t] / of[t], 1, 1e-6);
    CU_ASSERT(!fit_nonnegative(x, y, y, 0, &got));
}

/* The unconstrained fit of y = 4 - x has a negative slope. Without the slope, the constant c that
 * minimises the relative error is sum(1 / y) / sum(1 / y^2). */
static void test_no_negative_term(void) {
    const predict_terms x[] = {{{1, 1, 0}}, {{1, 2, 0}}, {{1, 3, 0}}};
    const double y[] = {3, 2, 1};
    predict_terms got;
    CU_ASSERT(fit_nonnegative(x, y, y, 3, &got));
    CU_ASSERT_EQUAL(got.of[1], 0);
    CU_ASSERT_DOUBLE_EQUAL(got.of[0], (1. / 3 + 1. / 2 + 1) / (1. / 9 + 1. / 4 + 1), 1e-12);
}

/* Steps whose experts take 9000 ns for each layer and a time for each byte that depends on the
 * format of the weights. From 9 to 64 rows, all steps have as many rows, so the time for each layer
 * is that of fewer rows. Without steps in e4m3, their bytes take the time of BF16. */
static void test_bytes_of_both_formats(void) {
    static const double rows[] = {1, 4, 8, 64}, byte[] = {0.25e-3, 0.3e-3};
    model_shape s = shape_named("deepseek-v2-lite");
    predict_layout one = layout_named("DP1");
    rule_book b = {.read_rate = 4e12, .product_rate = 1e15};
    measured_step steps[8];
    for (int i = 0; i < 8; i++) {
        bool e4m3 = i >= 4;
        steps[i] = (measured_step){.batch = (int64_t)rows[i % 4], .context = 64};
        steps[i].work = predict_work_of(&s, &one, e4m3, rows[i % 4], 64, (double)NAN);
        steps[i].part_ns[STEP_EXPERTS] = 26 * 9000 + byte[e4m3] * steps[i].work.expert_bytes;
    }
    rules_fit(&b, steps, 8, (left_out_cell){0, 0});
    for (int r = 0; r < 2; r++) {
        const double *of = b.range[r].experts.per.of;
        CU_ASSERT_DOUBLE_EQUAL(of[TERM_EACH] / 9000, 1, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(of[TERM_BF16] / byte[0], 1, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(of[TERM_E4M3] / byte[1], 1, 1e-6);
    }
    rules_fit(&b, steps, 4, (left_out_cell){0, 0});
    CU_ASSERT_DOUBLE_EQUAL(b.range[1].experts.per.of[TERM_E4M3] / byte[0], 1, 1e-6);
}

enum { kBatches = 8, kContexts = 3 };

/* Steps at all contexts of batches 1 to 8. Experts take 9000 ns for each layer and a time for each
 * byte; a step takes as long as its experts, less 10000 ns for each block. */
static int exact_steps(measured_step out[kBatches * kContexts]) {
    static const int64_t contexts[kContexts] = {8192, 32768, 131072};
    model_shape s = shape_named("deepseek-v2-lite");
    predict_layout one = layout_named("DP1");
    int n = 0;
    for (int batch = 1; batch <= kBatches; batch++)
        for (int k = 0; k < kContexts; k++) {
            measured_step *m = &out[n++];
            *m = (measured_step){.batch = batch, .context = contexts[k]};
            m->work = predict_work_of(&s, &one, false, batch, contexts[k], (double)NAN);
            m->part_ns[STEP_EXPERTS] = 26 * 9000 + 0.25e-3 * m->work.expert_bytes;
            m->step_ns = m->part_ns[STEP_EXPERTS] - 10000 * m->work.blocks;
        }
    return n;
}

/* The experts of one batch take 1.3 times as long, at each context. The other batches give their
 * exact time, so the error is that of 1 / 1.3. A fit with the steps of other contexts has a smaller
 * error, because they contain the same work. */
static void test_error_of_a_batch(void) {
    measured_step steps[kBatches * kContexts];
    rule_book b = {.read_rate = 4e12, .product_rate = 1e15};
    int n = exact_steps(steps), odd = 0;
    rules_fit_and_check(&b, steps, n);
    CU_ASSERT_DOUBLE_EQUAL(b.range[0].error[STEP_EXPERTS], 0, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(b.range[0].sum_error, 0, 1e-6);
    for (int i = 0; i < n; i++)
        if (steps[i].batch == 4) {
            steps[i].part_ns[STEP_EXPERTS] *= 1.3;
            odd = i;
        }
    double ns[STEP_PARTS] = {0}, odd_ns = steps[odd].part_ns[STEP_EXPERTS];
    rules_fit(&b, steps, n, left_out_of(steps, n, &steps[odd]));
    rules_apply(&b, CACHE_BF16, &steps[odd].work, ns);
    CU_ASSERT_DOUBLE_EQUAL(ns[STEP_EXPERTS] / odd_ns, 1 / 1.3, 1e-6);
    rules_fit(&b, steps, n, (left_out_cell){4, steps[odd].context});
    rules_apply(&b, CACHE_BF16, &steps[odd].work, ns);
    CU_ASSERT(ns[STEP_EXPERTS] / odd_ns > 1 / 1.3 + 0.01);
    rules_fit_and_check(&b, steps, n);
    CU_ASSERT(b.range[0].error[STEP_EXPERTS] > 1 - 1 / 1.3 - 1e-6);
}

/* All parts are exact, but one step takes 1.1 times as long as its parts say. */
static void test_error_of_a_sum(void) {
    measured_step steps[kBatches * kContexts];
    rule_book b = {.read_rate = 4e12, .product_rate = 1e15};
    int n = exact_steps(steps);
    steps[n - 1].step_ns *= 1.1;
    rules_fit_and_check(&b, steps, n);
    CU_ASSERT_DOUBLE_EQUAL(b.range[0].error[STEP_EXPERTS], 0, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(b.range[0].sum_error, 1 - 1 / 1.1, 1e-6);
}

/* The steps of a batch are left out as a whole if two other batches of its range remain. */
static void test_left_out(void) {
    measured_step steps[kBatches * kContexts];
    int n = exact_steps(steps);
    left_out_cell all = left_out_of(steps, n, &steps[1]),
                  two = left_out_of(steps, 2 * kContexts, &steps[1]),
                  three = left_out_of(steps, 3 * kContexts, &steps[1]);
    CU_ASSERT(all.batch == 1 && all.context == 0);
    CU_ASSERT(two.batch == 1 && two.context == 32768);
    CU_ASSERT(three.batch == 1 && three.context == 0);
}

static void test_slopes_between_heads(void) {
    const kernel_slopes k = {.of = {{{16, 2, 0}, {64, 3, 0}, {128, 5, 0}}}, .n = {3, 0}};
    CU_ASSERT_EQUAL(kernel_slope_at(&k, CACHE_BF16, 8), 2);
    CU_ASSERT_EQUAL(kernel_slope_at(&k, CACHE_BF16, 40), 2.5);
    CU_ASSERT_EQUAL(kernel_slope_at(&k, CACHE_BF16, 96), 4);
    CU_ASSERT_EQUAL(kernel_slope_at(&k, CACHE_BF16, 256), 5);
    CU_ASSERT(isnan(kernel_slope_at(&k, CACHE_FP8, 16)));
}

CU_TestInfo tests_predict_rules[] = {
    {"an exact fit", test_exact_fit},
    {"a fit without negative terms", test_no_negative_term},
    {"bytes of both formats of weights", test_bytes_of_both_formats},
    {"the error of a batch", test_error_of_a_batch},
    {"the error of a step as the sum of its parts", test_error_of_a_sum},
    {"steps that are left out", test_left_out},
    {"slopes between numbers of heads", test_slopes_between_heads},
    CU_TEST_INFO_NULL,
};
