/* Tests the fit of rules to measured parts of steps (harness/bench/predict_rules.h). */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "harness/bench/predict_routing.h"
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
 * byte; a step takes as long as its experts, less 1000 ns for each launch. */
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
            m->step_ns = m->part_ns[STEP_EXPERTS] - 1000 * m->work.all_launches;
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

/* Steps of both arms at one context, with batches 1 to 8 in FP8 and 1 to 7 in BF16. Each step takes
 * as long as its parts, and all parts follow the rules. The BF16 steps come first. */
static int steps_of_arms(measured_step out[2 * kBatches], const rule_book *b) {
    model_shape s = shape_named("deepseek-v2-lite");
    predict_layout one = layout_named("DP1");
    int n = 0;
    for (int fp8 = 0; fp8 < 2; fp8++)
        for (int batch = 1; batch < kBatches + fp8; batch++) {
            measured_step *m = &out[n++];
            *m = (measured_step){.arm = fp8 ? CACHE_FP8 : CACHE_BF16, .batch = batch};
            m->context = 8192;
            m->work = predict_work_of(&s, &one, false, batch, m->context, (double)NAN);
            m->part_ns[STEP_ATTENTION] = 5000 * m->work.blocks + (2 - fp8) * m->work.cached +
                                         m->work.query_bytes / b->read_rate * 1e9;
            m->part_ns[STEP_EXPERTS] = 26 * 9000 + 0.25e-3 * m->work.expert_bytes;
            m->part_ns[STEP_REST] = 2000 * m->work.launches + 0.25e-3 * m->work.rest_bytes;
            for (int p = 0; p < STEP_PARTS; p++)
                m->step_ns += m->part_ns[p];
        }
    return n;
}

/* If the steps of a batch take 1.2 times as long in both arms, their ratio is still exact. If only
 * one arm does, the ratio is off by as much. The largest batches of the arms are compared, too. */
static void test_error_of_a_ratio(void) {
    static const struct {
        int64_t batch;
        bool both;
        double error;
    } cases[] = {{4, true, 0}, {4, false, 0.2}, {8, false, 0.2}};
    rule_book b = {.read_rate = 4e12, .product_rate = 1e15, .slopes = {.n = {1, 1}}};
    b.slopes.of[0][0] = (kernel_slope){16, 2, 1};
    b.slopes.of[1][0] = (kernel_slope){16, 1, 1};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        measured_step steps[2 * kBatches];
        int n = steps_of_arms(steps, &b);
        for (int i = 0; i < n; i++)
            if (steps[i].batch == cases[c].batch && (cases[c].both || steps[i].arm == CACHE_FP8))
                steps[i].step_ns *= 1.2;
        rules_fit_and_check(&b, steps, n);
        CU_ASSERT_DOUBLE_EQUAL(b.ratio_error, cases[c].error, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(b.range[0].step_error, 1 - 1 / 1.2, 1e-6);
        rules_fit_and_check(&b, steps, kBatches - 1); /* BF16 alone */
        CU_ASSERT(isnan(b.ratio_error));
    }
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

/* ---- what changes with the layout or with many rows ---- */

/* Steps of DeepSeek-V3 on one GPU, with @rows[i] rows at two contexts each. Attention takes @factor
 * x the kernel's time, 5000 ns for each block, and the time of its weights. Nothing else takes
 * time. */
static int attention_steps(measured_step *out, const double *rows, int n, double factor,
                           const rule_book *b) {
    model_shape s = shape_named("deepseek-v3");
    predict_layout one = layout_named("DP1");
    for (int i = 0; i < 2 * n; i++) {
        int64_t context = i % 2 ? 65536 : 8192;
        measured_step *m = &out[i];
        *m = (measured_step){.batch = (int64_t)rows[i / 2], .context = context};
        m->work = predict_work_of(&s, &one, true, rows[i / 2], context, (double)NAN);
        m->step_ns = m->part_ns[STEP_ATTENTION] =
            5000 * m->work.blocks + m->work.query_bytes / b->read_rate * 1e9 +
            factor * kernel_slope_at(&b->slopes, CACHE_BF16, 128) * m->work.cached;
    }
    return 2 * n;
}

/* Fits the rules to such steps, and returns the predicted time of the kernel for each cached token
 * on a rank of @layout with 64 rows. */
static double kernel_ns_on(const char *layout, double factor, double at_64_heads) {
    static const double rows[] = {1, 8, 32, 64};
    model_shape s = shape_named("deepseek-v3");
    predict_layout l = layout_named(layout);
    rule_book b = {.slopes = {.of = {{{64, at_64_heads, 0}, {128, 5, 0}}}, .n = {2, 0}},
                   .read_rate = 4e12,
                   .product_rate = 1e15};
    measured_step steps[8];
    double ns[STEP_PARTS] = {0};
    rules_fit(&b, steps, attention_steps(steps, rows, 4, factor, &b), (left_out_cell){0, 0});
    predict_work w = predict_work_of(&s, &l, true, 64, 32768, (double)NAN);
    rules_apply(&b, CACHE_BF16, &w, ns);
    return (ns[STEP_ATTENTION] - 5000 * w.blocks - w.query_bytes / 4e3) / w.cached;
}

/* A factor above 1 lengthens arithmetic. The measured kernel has 128 heads and takes 5 ns for each
 * token, so half of the heads need 2.5 ns of arithmetic. */
static void test_clock_and_heads(void) {
    CU_ASSERT_DOUBLE_EQUAL(kernel_ns_on("DP2", 1.2, 4), 1.2 * 5, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(kernel_ns_on("TP2", 1.2, 4), 4, 1e-6); /* reads take longer */
    CU_ASSERT_DOUBLE_EQUAL(kernel_ns_on("TP2", 1.2, 2.75), 1.2 * 2.5, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(kernel_ns_on("TP2", 0.9, 4), 0.9 * 4, 1e-6);
}

/* Steps of one context give no factor. It is 1, and the time for each query has the rest. */
static void test_one_context(void) {
    static const double rows[] = {1, 8, 32, 64};
    rule_book b = {
        .slopes = {.of = {{{128, 5, 0}}}, .n = {1, 0}}, .read_rate = 4e12, .product_rate = 1e15};
    measured_step steps[8];
    int n = attention_steps(steps, rows, 4, 1.1, &b);
    rules_fit(&b, steps, n, (left_out_cell){0, 0});
    CU_ASSERT_DOUBLE_EQUAL(b.range[1].attention[0].per.of[2], 1.1, 1e-6);
    steps[5] = steps[6]; /* both remaining steps of more than 8 rows have 8192 tokens */
    rules_fit(&b, steps, n - 2, (left_out_cell){0, 0});
    CU_ASSERT_EQUAL(b.range[1].attention[0].per.of[2], 1);
    CU_ASSERT_DOUBLE_EQUAL(b.range[1].attention[0].per.of[1] / (0.1 * 5 * 8192 / 128), 1, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(b.range[0].attention[0].per.of[2], 1.1, 1e-6);
}

/* Steps of 128 and more rows take 1.1 times their parts. Attention and the rest get this factor.
 * The time of the experts stays. */
static void test_parts_of_large_steps(void) {
    static const double rows[] = {1, 4, 128, 256};
    rule_book b = {
        .slopes = {.of = {{{128, 5, 0}}}, .n = {1, 0}}, .read_rate = 4e12, .product_rate = 1e15};
    measured_step steps[8];
    double ns[STEP_PARTS] = {0};
    int n = attention_steps(steps, rows, 4, 1, &b);
    for (int i = 0; i < n; i++) {
        measured_step *m = &steps[i];
        m->part_ns[STEP_EXPERTS] = 0.25e-3 * m->work.expert_bytes;
        m->part_ns[STEP_REST] = 2000 * m->work.launches + 0.25e-3 * m->work.rest_bytes;
        m->step_ns = m->part_ns[STEP_ATTENTION] + m->part_ns[STEP_EXPERTS] + m->part_ns[STEP_REST];
        m->step_ns *= m->work.rows > 64 ? 1.1 : 1;
    }
    rules_fit(&b, steps, n, (left_out_cell){0, 0});
    rules_apply(&b, CACHE_BF16, &steps[7].work, ns);
    CU_ASSERT_DOUBLE_EQUAL(ns[STEP_EXPERTS] / steps[7].part_ns[STEP_EXPERTS], 1, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(ns[STEP_ATTENTION] / steps[7].part_ns[STEP_ATTENTION], 1.1, 0.01);
    CU_ASSERT_EQUAL(rules_step(&b, &steps[7].work, ns, false),
                    ns[STEP_ATTENTION] + ns[STEP_EXPERTS] + ns[STEP_REST]);
}

/* A byte of experts takes 0.3 ns with at most 8 rows and 0.25 ns with more. So each expert takes
 * 0.05 ns for each of its bytes, also if two ranks divide them. */
static void test_narrow_experts(void) {
    static const double rows[] = {1, 4, 8, 32, 64};
    model_shape s = shape_named("deepseek-v3");
    predict_layout one = layout_named("DP1"), two = layout_named("TP2"), ep = layout_named("EP2");
    rule_book b = {.read_rate = 4e12, .product_rate = 1e15};
    measured_step steps[5];
    double ns[STEP_PARTS];
    for (int i = 0; i < 5; i++) {
        predict_work w = predict_work_of(&s, &one, true, rows[i], 64, (double)NAN);
        steps[i] = (measured_step){.batch = (int64_t)rows[i], .context = 64, .work = w};
        steps[i].part_ns[STEP_EXPERTS] =
            58 * 9000 + (rows[i] > 8 ? 0.25e-3 : 0.3e-3) * w.expert_bytes;
    }
    rules_fit(&b, steps, 5, (left_out_cell){0, 0});
    predict_work w = predict_work_of(&s, &two, true, 8, 64, (double)NAN);
    double whole = steps[2].work.expert_bytes, part = w.expert_bytes;
    rules_apply(&b, CACHE_BF16, &w, ns);
    CU_ASSERT_DOUBLE_EQUAL(
        ns[STEP_EXPERTS] / (58 * 9000 + 0.3e-3 * part + 0.05e-3 * (whole - part)), 1, 1e-6);
    /* Whole experts: the busiest rank reads its additional experts in this time. */
    w = predict_work_of(&s, &ep, true, 4, 64, (double)NAN);
    double more = 58 * predict_busiest_rank(&s, 2, 8), bytes = 3. * 7168 * 2048;
    CU_ASSERT_DOUBLE_EQUAL(
        rules_waiting(&b, &w) / (more * bytes * predict_number_bytes(true) * 0.3e-3), 1, 1e-6);
    CU_ASSERT_EQUAL(rules_waiting(&b, &steps[2].work), 0);
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
    {"the error of FP8 over BF16", test_error_of_a_ratio},
    {"steps that are left out", test_left_out},
    {"the clock and the number of heads", test_clock_and_heads},
    {"steps of one context", test_one_context},
    {"parts of large steps", test_parts_of_large_steps},
    {"experts whose width is divided", test_narrow_experts},
    {"slopes between numbers of heads", test_slopes_between_heads},
    CU_TEST_INFO_NULL,
};
