/* Tests which rows the sweeps of correct backends have. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "harness/record/results.h"
#include "harness/test/bench_rows.h"
#include "harness/test/fake_backend.h"

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-9 * (1 + fabs((double)(b))))

static void check_row(const js *row) {
    const js *perf = js_get_object(row, "performance"), *judged = js_get_object(row, "correctness");
    CU_ASSERT(row_is(row, "status", "passed"));
    CU_ASSERT_FATAL(perf != NULL && judged != NULL);
    CU_ASSERT(js_get_num(judged, "error", 1) <= js_get_num(judged, "tolerance", 0));
    CU_ASSERT(js_get_int(judged, "rows_checked", 0) > 0);
    CU_ASSERT((int64_t)js_len(js_get_array(perf, "samples_ns")) == js_get_int(perf, "count", -1));
    CU_ASSERT(js_get_num(perf, "min_ns", 0) > 0);
    CU_ASSERT(js_get_num(perf, "min_ns", 0) <= js_get_num(perf, "median_ns", 0));
    CU_ASSERT(js_get_num(perf, "median_ns", 0) <= js_get_num(perf, "max_ns", 0));
    CU_ASSERT(row_is(row, "cold", "rotate"));
}

/* All cells of a small grid pass their checks. Each row must satisfy the schema. */
static void test_sweep_end_to_end(void) {
    mla_backend *be = fake_open();
    bench_grid g = fake_grid(fake_tiny);
    js *rows = fake_sweep_rows(be, &g, SNAP_OK);
    results *r = NULL;
    CU_ASSERT_FATAL(results_new(&r, "bench", NULL, 1, NULL) == SNAP_OK);
    CU_ASSERT((int)js_len(rows) == sweep_count(&g));
    CU_ASSERT(sweep_verdict(rows, NULL) == SNAP_OK);
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        snap_err err = {0};
        check_row(row);
        mla_ceilings seen = {0};
        row_raise(row, &seen);
        CU_ASSERT(seen.read.rate == 1e9 && seen.bf16.rate == 2e9 && seen.fp8.rate == 3e9);
        CU_ASSERT(row_is(row, "arm", i % 2 ? "fp8" : "bf16"));
        CU_ASSERT(row_is(row, "scope", i / 2 % 2 ? "served" : "kernel"));
        CU_ASSERT(results_add(r, "bench", js_copy(row), &err) == SNAP_OK);
        CU_ASSERT_STRING_EQUAL(err.text, "");
        if (i % 2) { /* alternating arms have equally many samples */
            NEAR(row_number(row, "count"), row_number(js_at(rows, i - 1), "count"));
            CU_ASSERT(rows_speedup(rows, i) > 0);
        } else {
            CU_ASSERT(isnan(rows_speedup(rows, i)));
        }
    }
    results_free(r);
    js_free(rows);
    fake_close(be);
}

/* If the backend has no ablation, its rows say so, and the two main arms still run. */
static void test_ablation_is_the_gpus(void) {
    bench_grid_text t = fake_tiny;
    t.heads = "5", t.s_q = "1", t.context = "70", t.ablation = true;
    bench_grid g = fake_grid(t);
    mla_backend *be = fake_open();
    js *rows = fake_sweep_rows(be, &g, SNAP_OK);
    CU_ASSERT(sweep_count(&g) == 16); /* two arms have no kernel scope */
    CU_ASSERT_FATAL(js_len(rows) == 16);
    for (size_t i = 0; i < 16; i++) {
        const js *row = js_at(rows, i);
        bench_kind kind = BENCH_ARMS;
        CU_ASSERT(bench_kind_parse(js_get_str(row, "arm"), &kind));
        CU_ASSERT(row_is(row, "status", kind < BENCH_COMPARED ? "passed" : "skipped"));
        CU_ASSERT(kind < BENCH_COMPARED || row_is(row, "reason", "the backend has no ablation"));
        CU_ASSERT(
            bench_kind_has(kind, row_is(row, "scope", "kernel") ? BENCH_KERNEL : BENCH_SERVED));
        CU_ASSERT(isnan(rows_speedup(rows, i)) == (kind != BENCH_FP8));
    }
    mla_plan *plan = NULL;
    mla_capacity cap = {.precision = MLA_FP8,
                        .heads = 1,
                        .d_c = 128,
                        .d_r = 32,
                        .batch = 1,
                        .s_q = 1,
                        .max_tokens = 64};
    CU_ASSERT(lab_plan_create(&plan, be, &cap, LAB_SHALLOW, NULL) == SNAP_E_UNSUPPORTED);
    CU_ASSERT(lab_plan_create(&plan, be, &cap, LAB_ABLATIONS, NULL) == SNAP_E_SHAPE);
    js_free(rows);
    fake_close(be);
}

static void test_too_large_is_skipped(void) {
    mla_backend *be = fake_open();
    bench_grid g = fake_one_shape();
    fake_faults.memory = 100000;
    js *rows = fake_sweep_rows(be, &g, SNAP_OK);
    CU_ASSERT(js_len(rows) == 4);
    CU_ASSERT(row_is(js_at(rows, 3), "status", "skipped"));
    CU_ASSERT(strstr(js_get_str(js_at(rows, 3), "reason"), "GiB") != NULL);
    CU_ASSERT(sweep_verdict(rows, NULL) == SNAP_OK);
    js_free(rows);
    fake_close(be);
}

/* Checks the state of the cache in loops over one sequence of @context tokens, whose arms are
 * @arms. The fake backend's cache has 256 KiB. */
static void expect_loops(const char *arms, const char *context, const char *cold) {
    bench_grid_text t = fake_tiny;
    t.arms = arms;
    t.scopes = "kernel";
    t.heads = t.s_q = t.batch = "1";
    t.context = context;
    bench_grid g = fake_grid(t);
    mla_backend *be = fake_open();
    js *rows = js_new_array();
    sweep_options opt = fake_options(be, &g);
    opt.sustained_s = 1e-9;
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK);
    CU_ASSERT((int)js_len(rows) == sweep_count(&g));
    for (size_t i = 0; i < js_len(rows); i++)
        CU_ASSERT(row_is(js_at(rows, i), "status", "passed") &&
                  row_is(js_at(rows, i), "cold", cold));
    js_free(rows);
    fake_close(be);
}

/* 4096 tokens have 1.25 MiB in BF16 and less than 1 MiB in FP8. So a loop of the BF16 arm alone
 * starts cold, and beside an FP8 arm neither arm is called cold. */
static void test_loops_are_cold_together(void) {
    expect_loops("bf16", "4096", "rotate");
    expect_loops("fp8", "4096", "none");
    expect_loops("bf16,fp8", "4096", "none");
    expect_loops("bf16,fp8", "8192", "rotate");
    expect_loops("bf16,fp8", "1024", "none");
}

/* ---- a time limit ---- */

/* Runs a sweep over three contexts in the scope kernel, with steps that are reported to take 1000
 * seconds each. Checks the statuses of the shapes. */
static void expect_within(double limit_s, const char *const status[3], const char *reason) {
    bench_grid_text t = fake_tiny;
    t.scopes = "kernel";
    t.heads = "5";
    t.s_q = "1";
    t.context = "70,140,1";
    bench_grid g = fake_grid(t);
    mla_backend *be = fake_open();
    fake_faults.reported_ns = 1e12;
    js *rows = js_new_array();
    sweep_options opt = fake_options(be, &g);
    opt.limit_s = limit_s;
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK && js_len(rows) == 6);
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        bool skipped = strcmp(status[i / 2], "skipped") == 0;
        const char *why = js_get_str(row, "reason");
        CU_ASSERT(row_is(row, "status", status[i / 2]));
        CU_ASSERT((js_get(row, "performance") == NULL) == skipped);
        CU_ASSERT(skipped ? why && strstr(why, reason) : !why);
    }
    CU_ASSERT(sweep_verdict(rows, NULL) == SNAP_OK);
    js_free(rows);
    fake_close(be);
}

/* A shape needs 14 steps, 7 of each arm. From the first shape, the sweep estimates that a step of
 * the second one takes 2000 s, and a step of the third one 1000 / 70 s. */
static void test_time_limit(void) {
    static const char *const all[] = {"passed", "passed", "passed"},
                             *const some[] = {"passed", "skipped", "passed"},
                             *const none[] = {"skipped", "skipped", "skipped"};
    expect_within(0, all, "");
    expect_within(40000, all, "");
    expect_within(20000, some, "it would take 2.8e+04 s or more");
    expect_within(1e-9, none, "0 s are left of the time limit of 1e-09 s");
}

/* One shape in two scopes, with steps of 1000 seconds. @limit_s: limit on the time of the sweep */
static js *rows_within(double limit_s) {
    mla_backend *be = fake_open();
    const bench_grid g = fake_one_shape();
    fake_faults.reported_ns = 1e12;
    js *rows = js_new_array();
    sweep_options opt = fake_options(be, &g);
    opt.limit_s = limit_s;
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(js_len(rows), 4);
    fake_close(be);
    return rows;
}

/* If a scope is skipped, its rows contain nothing of the scope that was measured before it. They
 * are the rows of a sweep whose time limit had passed before its first step. */
static void test_skipped_scope_is_empty(void) {
    static const char *const keys[] = {"status", "correctness", "performance", "flags"};
    js *all = rows_within(0), *half = rows_within(10000), *none = rows_within(1e-9);
    for (size_t i = 0; i < 4; i++) {
        const js *row = js_at(half, i), *skipped = js_at(none, i);
        CU_ASSERT(row_is(js_at(all, i), "status", "passed") &&
                  row_is(skipped, "status", "skipped"));
        CU_ASSERT_PTR_NOT_NULL(js_get(js_at(all, i), "correctness"));
        CU_ASSERT(row_is(row, "status", row_is(row, "scope", "kernel") ? "passed" : "skipped"));
        for (size_t k = 0; k < sizeof keys / sizeof *keys && row_is(row, "status", "skipped");
             k++) {
            const js *value = js_get(row, keys[k]), *wanted = js_get(skipped, keys[k]);
            CU_ASSERT(value && wanted ? js_equal(value, wanted) : !value && !wanted);
        }
    }
    js_free(all);
    js_free(half);
    js_free(none);
}

CU_TestInfo tests_sweep[] = {
    {"a whole sweep", test_sweep_end_to_end},
    {"shapes that exceed the time limit", test_time_limit},
    {"a skipped scope has nothing of the one before", test_skipped_scope_is_empty},
    {"loops are called cold for all arms or for none", test_loops_are_cold_together},
    {"shapes that are too large are skipped", test_too_large_is_skipped},
    {"a backend without ablation skips its arms", test_ablation_is_the_gpus},
    CU_TEST_INFO_NULL,
};
