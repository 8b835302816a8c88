/* Tests the order of arms, and the shapes of a grid. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "harness/bench/interleave.h"
#include "harness/test/fake_backend.h"

static void test_order_is_abba(void) {
    const int two[] = {0, 1, 1, 0, 0, 1, 1, 0};
    for (int i = 0; i < 8; i++) {
        CU_ASSERT(interleave_arm(i, 2) == two[i]);
        CU_ASSERT(interleave_arm(i, 1) == 0);
    }
}

/* A machine that slows down linearly must not favour an arm. */
static void test_order_cancels_drift(void) {
    double sum[2] = {0, 0};
    for (int i = 0; i < 400; i++)
        sum[interleave_arm(i, 2)] += i;
    CU_ASSERT_EQUAL(sum[0], sum[1]);
}

static void test_grid_product(void) {
    bench_grid g = fake_grid(fake_tiny);
    CU_ASSERT(bench_grid_shapes(&g) == 8);
    CU_ASSERT(sweep_count(&g) == 32);
    bench_shape first = bench_grid_shape(&g, 0), second = bench_grid_shape(&g, 1),
                last = bench_grid_shape(&g, 7);
    CU_ASSERT(first.heads == 2 && first.s_q == 1 && first.batch == 3 && first.context == 1);
    CU_ASSERT(second.heads == 2 && second.context == 70);
    CU_ASSERT(last.heads == 5 && last.s_q == 2 && last.context == 70 && last.d_c == 128);
}

static void refuse(bench_grid_text text, const char *option) {
    bench_grid g;
    snap_err err = {0};
    CU_ASSERT(bench_grid_parse(&g, &text, &err) == SNAP_E_USAGE);
    CU_ASSERT(strstr(err.text, option) != NULL);
}

static void test_grid_refuses(void) {
    bench_grid_text t;
    t = fake_tiny, t.arms = "bf16,fp4", refuse(t, "fp4");
    t = fake_tiny, t.scopes = "", refuse(t, "--scope");
    t = fake_tiny, t.heads = "0", refuse(t, "--heads");
    t = fake_tiny, t.heads = "1,129", refuse(t, "129");
    t = fake_tiny, t.heads = "16,16", refuse(t, "twice");
    t = fake_tiny, t.s_q = "5", refuse(t, "--s-q");
    t = fake_tiny, t.batch = "1,,2", refuse(t, "--batch");
    t = fake_tiny, t.context = "1048577", refuse(t, "--context");
    t = fake_tiny, t.context = "8k", refuse(t, "8k");
    t = fake_tiny, t.d_c = 100, refuse(t, "--d-c");
    t = fake_tiny, t.d_r = 0, refuse(t, "--d-r");
    buf many = {0};
    for (int i = 1; i <= GRID_AXIS + 1; i++)
        (void)buf_printf(&many, i > 1 ? ",%d" : "%d", i);
    t = fake_tiny, t.batch = buf_str(&many), refuse(t, "more than");
    buf_release(&many);
}

static bool shapes_parse(const char *shapes, bench_grid *g) {
    bench_grid_text t = {.arms = "bf16,fp8",
                         .scopes = "kernel",
                         .heads = "1",
                         .s_q = "1",
                         .batch = "1",
                         .context = "64",
                         .shapes = shapes,
                         .d_c = 512,
                         .d_r = 64};
    return bench_grid_parse(g, &t, NULL) == SNAP_OK;
}

static void test_grid_list(void) {
    static const char *const bad[] = {"16",         "16/1/1",      "16/1/1/64/2", "0/1/1/64",
                                      "129/1/1/64", "16/5/1/64",   "16/1/0/64",   "16/1/1/2000000",
                                      "16/x/1/64",  "16/1/1/64,,", "/1/1/64",     "16/1/1/"};
    bench_grid g;
    CU_ASSERT_FATAL(shapes_parse("16/2/8/1024,128/1/1/65536", &g));
    CU_ASSERT(bench_grid_shapes(&g) == 2);
    bench_shape a = bench_grid_shape(&g, 0), b = bench_grid_shape(&g, 1);
    CU_ASSERT(a.heads == 16 && a.s_q == 2 && a.batch == 8 && a.context == 1024 && a.d_c == 512);
    CU_ASSERT(b.heads == 128 && b.s_q == 1 && b.batch == 1 && b.context == 65536 && b.d_r == 64);
    CU_ASSERT_FATAL(shapes_parse("", &g));
    CU_ASSERT(bench_grid_shapes(&g) == 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(!shapes_parse(bad[i], &g));
    char many[(GRID_LIST + 1) * 16] = "";
    for (int i = 1; i <= GRID_LIST; i++)
        (void)snprintf(many + strlen(many), 16, "%s1/1/1/%d", i > 1 ? "," : "", i);
    CU_ASSERT(shapes_parse(many, &g) && bench_grid_shapes(&g) == GRID_LIST);
    strcat(many, ",2/1/1/1");
    CU_ASSERT(!shapes_parse(many, &g));
}

CU_TestInfo tests_bench_grid[] = {
    {"shapes in a list", test_grid_list},
    {"the arms run in the order A B B A", test_order_is_abba},
    {"the order cancels a linear drift", test_order_cancels_drift},
    {"a grid is the product of its lists", test_grid_product},
    {"bad grids are refused", test_grid_refuses},
    CU_TEST_INFO_NULL,
};
