/* Tests shapes that follow from the measured bandwidth and the memory of a device. */
#include <CUnit/CUnit.h>

#include "harness/bench/scaled_shapes.h"

static void test_tokens(void) {
    static const struct {
        double rate;
        size_t memory;
        int64_t tokens;
    } rows[] = {
        {80e9, 8UL << 30, 131072},           /* 2 ms: 138889 tokens of 1152 bytes */
        {75e9, 0, 65536},                    /* 130208 tokens; the memory is unknown */
        {4.6e12, 141UL << 30, 4194304},      /* 7986111 tokens */
        {4.6e12, 16UL << 30, 524288},        /* 1 GiB: 932067 tokens */
        {1e9, 1 << 20, 8192},                /* never less */
        {1e18, (size_t)1 << 60, 4096 * 8192} /* never more */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CU_ASSERT_EQUAL(scaled_tokens(rows[i].rate, rows[i].memory, 512, 64), rows[i].tokens);
}

static void test_shapes(void) {
    static const bench_grid_text text = {.arms = "fp8",
                                         .scopes = "kernel",
                                         .heads = "1",
                                         .s_q = "1",
                                         .batch = "1",
                                         .context = "64",
                                         .shapes = "16/1/1/131072,128/1/8/8192",
                                         .d_c = 512,
                                         .d_r = 64};
    bench_grid g;
    CU_ASSERT_EQUAL_FATAL(bench_grid_parse(&g, &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(scaled_shapes_add(&g, 80e9, 0, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(g.n_list, 4); /* 16/1/1/131072 is in the list already */
    CU_ASSERT(g.list[2].heads == 16 && g.list[2].batch == 16 && g.list[2].context == 8192);
    CU_ASSERT(g.list[3].heads == 128 && g.list[3].batch == 16 && g.list[3].d_c == 512);
    CU_ASSERT_EQUAL(scaled_shapes_add(&g, 1e18, 0, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(g.n_list, 7);
    CU_ASSERT(g.list[5].batch == BENCH_MAX_BATCH && g.list[6].context == MLA_MAX_CONTEXT);
    while (g.n_list < GRID_LIST)
        g.list[g.n_list++] = g.list[0];
    CU_ASSERT_EQUAL(scaled_shapes_add(&g, 20e9, 0, NULL), SNAP_E_USAGE);
}

CU_TestInfo tests_scaled_shapes[] = {{"the number of tokens fits rate and memory", test_tokens},
                                     {"shapes that fit the device", test_shapes},
                                     CU_TEST_INFO_NULL};
