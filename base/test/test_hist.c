#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "base/hist.h"
#include "base/rng.h"

static int ascending(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

/* Quantiles are compared with sorted values of up to 2^40 ns. */
static void test_quantiles_against_sorting(void) {
    enum { kValues = 5000 };
    static int64_t values[kValues];
    static hist h;
    rng r = rng_make(4, 0);
    int64_t sum = 0;
    for (int i = 0; i < kValues; i++) {
        values[i] = (int64_t)(rng_u64(&r) >> (24 + rng_below(&r, 38)));
        hist_add(&h, values[i]);
        sum += values[i];
    }
    qsort(values, kValues, sizeof *values, ascending);
    for (int k = 1; k <= 100; k++) {
        double want = (double)values[k * kValues / 100 - 1];
        CU_ASSERT_DOUBLE_EQUAL((double)hist_quantile_ns(&h, k / 100.0), want, want * 0.008);
    }
    CU_ASSERT_EQUAL(hist_mean_ns(&h), sum / kValues);
    CU_ASSERT_EQUAL(hist_quantile_ns(&h, 1), values[kValues - 1]);
}

static void test_ends(void) {
    static hist h;
    CU_ASSERT(hist_quantile_ns(&h, 0.5) == -1 && hist_mean_ns(&h) == -1);
    hist_add(&h, -5);
    CU_ASSERT(hist_quantile_ns(&h, 0) == 0 && hist_quantile_ns(&h, 1) == 0);
    hist_add(&h, INT64_MAX);
    CU_ASSERT_EQUAL(hist_quantile_ns(&h, 1), h.max_ns);
    CU_ASSERT_EQUAL(h.max_ns, (INT64_C(1) << 42) - 1);
    for (int64_t v = 0; v < 128; v++) { /* small values are exact */
        static hist one;
        one = (hist){0};
        hist_add(&one, v);
        CU_ASSERT_EQUAL(hist_quantile_ns(&one, 0.5), v);
    }
}

CU_TestInfo tests_hist[] = {{"quantiles against sorting", test_quantiles_against_sorting},
                            {"an empty histogram, negative and very long durations", test_ends},
                            CU_TEST_INFO_NULL};
