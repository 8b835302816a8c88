/* Tests sweeps on backends with faults: wrong results get no speed, and errors do not end the
 * sweep. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "harness/record/results.h"
#include "harness/test/bench_rows.h"
#include "harness/test/fake_backend.h"
#include "kernels/test/plugins/wrong.h"

static void expect_failed(const js *rows, const char *arm, const char *scope, bool failed) {
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        if (!row_is(row, "arm", arm) || !row_is(row, "scope", scope))
            continue;
        CU_ASSERT(row_is(row, "status", failed ? "failed" : "passed"));
        CU_ASSERT((js_get(row, "performance") == NULL) == failed);
        CU_ASSERT((js_get_str(row, "reason") != NULL) == failed);
    }
}

static void test_wrong_output_has_no_speed(void) {
    mla_backend *be = fake_open();
    bench_grid g = fake_one_shape();
    fake_faults.corrupt_from = 1;
    js *rows = fake_sweep_rows(be, &g, SNAP_OK);
    expect_failed(rows, "bf16", "kernel", true);
    expect_failed(rows, "fp8", "served", true);
    CU_ASSERT(fake_faults.runs == 4); /* each of the four cells is checked once and never timed */
    snap_err err = {0};
    CU_ASSERT(err_exit_code(sweep_verdict(rows, &err)) == 7);
    CU_ASSERT(strstr(err.text, "4 of 4") != NULL);
    results *r = NULL;
    CU_ASSERT_FATAL(results_new(&r, "bench", NULL, 1, NULL) == SNAP_OK);
    CU_ASSERT(results_add_all(r, "bench", js_copy(rows), NULL) == SNAP_OK);
    results_free(r);
    js_free(rows);
    fake_close(be);
}

/* The output is right when it is checked and wrong when it is timed. This must be found
 * afterwards. */
static void test_wrong_after_judging(void) {
    mla_backend *be = fake_open();
    bench_grid g = fake_one_shape();
    fake_faults.corrupt_from = 5; /* runs 1 to 4 check both arms and warm them up */
    sweep_options opt = fake_options(be, &g);
    opt.limits.min_samples = opt.limits.max_samples = 200; /* enough to use set 0 again */
    js *rows = js_new_array();
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK);
    expect_failed(rows, "bf16", "kernel", true);
    expect_failed(rows, "fp8", "kernel", true);
    CU_ASSERT(sweep_verdict(rows, NULL) == SNAP_E_WRONG);
    js_free(rows);
    fake_close(be);
}

/* A wrong append must be found in the served scope, although attention itself is right. */
static void test_wrong_append(void) {
    mla_backend *be = fake_open();
    bench_grid g = fake_one_shape();
    g.scope[BENCH_KERNEL] = false;
    fake_faults.spoil_append = true;
    js *rows = fake_sweep_rows(be, &g, SNAP_OK);
    expect_failed(rows, "bf16", "served", true);
    expect_failed(rows, "fp8", "served", false);
    js_free(rows);
    fake_close(be);
}

/* ---- a backend that computes something else than it was asked for ---- */

/* @sustained_s: seconds of each loop; 0 = single steps */
static js *rows_with(wrong_fault fault, const bench_grid *g, double sustained_s) {
    mla_backend *be = fake_open();
    mla_backend_ops table = wrong_ops(fake_ops(), fault);
    be->ops = &table;
    js *rows = js_new_array();
    sweep_options opt = fake_options(be, g);
    opt.sustained_s = sustained_s;
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK);
    wrong_release();
    fake_close(be);
    return rows;
}

static void expect_reason(const js *rows, const char *arm, const char *part) {
    for (size_t i = 0; i < js_len(rows); i++) {
        const char *why = js_get_str(js_at(rows, i), "reason");
        if (row_is(js_at(rows, i), "arm", arm)) {
            CU_ASSERT(row_is(js_at(rows, i), "status", "failed"));
            CU_ASSERT(why && strstr(why, part));
        }
    }
}

/* The backend returns the first result of each plan again and again. The check before timing, which
 * is of this result, passes. */
static void test_remembered_results(void) {
    bench_grid g = fake_one_shape();
    js *rows = rows_with(WRONG_REMEMBERS, &g, 0);
    expect_reason(rows, "bf16", "timed step");
    expect_reason(rows, "fp8", "timed step");
    js_free(rows);
}

/* All steps of a loop have the same queries, so the output of the last one is right. The planted
 * tokens are the input that the backend has not had before. */
static void test_remembered_loops(void) {
    bench_grid g = fake_one_shape();
    js *rows = rows_with(WRONG_REMEMBERS, &g, 0.02);
    expect_reason(rows, "bf16", "planted");
    expect_reason(rows, "fp8", "planted");
    for (size_t i = 0; i < js_len(rows); i++)
        CU_ASSERT(row_is(js_at(rows, i), "mode", "sustained"));
    CU_ASSERT(js_len(rows) == 4);
    js_free(rows);
}

/* One page of 4096 changes a row by less than the bound of FP8. So the test plants large numbers in
 * the missing page. Under the thread sanitizer, the sequence has 640 pages: the number of pages
 * does not change what the threads share. */
static void test_missing_page(void) {
    bench_grid_text t = fake_tiny;
    t.arms = "fp8";
    t.heads = t.s_q = t.batch = "1";
    t.context = kThreadSanitized ? "40960" : "262144";
    bench_grid g = fake_grid(t);
    js *rows = rows_with(WRONG_DROP_40000, &g, 0);
    CU_ASSERT(js_len(rows) == 2);
    expect_reason(rows, "fp8", "planted");
    js_free(rows);
}

static void test_wrong_page(void) {
    bench_grid_text t = fake_tiny;
    t.heads = t.s_q = "1";
    t.batch = "70";
    t.context = "200";
    bench_grid g = fake_grid(t);
    js *rows = rows_with(WRONG_PAGE_64, &g, 0);
    expect_failed(rows, "bf16", "kernel", true);
    expect_failed(rows, "fp8", "kernel", true);
    js_free(rows);
}

/* ---- devices that fail ---- */

static void test_broken_device(void) {
    mla_backend *be = fake_open();
    bench_grid g = fake_one_shape();
    fake_faults.fail_from = 1;
    js *rows = fake_sweep_rows(be, &g, SNAP_OK);
    snap_err err = {0};
    CU_ASSERT(js_len(rows) == 4);
    CU_ASSERT(row_is(js_at(rows, 0), "status", "error"));
    CU_ASSERT(js_get(js_at(rows, 0), "performance") == NULL);
    CU_ASSERT(err_exit_code(sweep_verdict(rows, &err)) == 3);
    CU_ASSERT(strstr(err.text, "fell off the bus") != NULL);
    js_free(rows);
    fake_close(be);
}

/* The clock of the timer runs backwards from the @from-th measured time on. The rows that are timed
 * with it have an error, and the sweep goes on. @sustained_s as in rows_with(). */
static void expect_backwards(int from, double sustained_s) {
    mla_backend *be = fake_open();
    bench_grid g = fake_grid(fake_tiny);
    js *rows = js_new_array();
    sweep_options opt = fake_options(be, &g);
    opt.sustained_s = sustained_s;
    fake_faults.clock_from = from;
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK);
    CU_ASSERT((int)js_len(rows) == sweep_count(&g));
    size_t errors = 0;
    for (size_t i = 0; i < js_len(rows); i++)
        if (row_is(js_at(rows, i), "status", "error")) {
            errors++;
            CU_ASSERT_PTR_NOT_NULL(strstr(js_get_str(js_at(rows, i), "reason"), "ran backwards"));
        }
    CU_ASSERT(errors > 0 && errors < js_len(rows));
    js_free(rows);
    fake_close(be);
}

static void test_backwards_clock(void) {
    expect_backwards(60, 0);
    if (!kThreadSanitized) /* test_remembered_loops() runs sustained loops */
        expect_backwards(60, 1e-9);
}

CU_TestInfo tests_sweep_faults[] = {
    {"wrong output has no speed", test_wrong_output_has_no_speed},
    {"output that becomes wrong after its check", test_wrong_after_judging},
    {"remembered results are found", test_remembered_results},
    {"a clock that runs backwards", test_backwards_clock},
    {"results that a backend remembers from loops", test_remembered_loops},
    {"a missing page of 4096 is found", test_missing_page},
    {"a wrong page of the last sequences is found", test_wrong_page},
    {"a wrong append is found", test_wrong_append},
    {"a broken device ends the sweep", test_broken_device},
    CU_TEST_INFO_NULL,
};
