/* Tests the distributions of random inputs. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "harness/bench/numbers.h"
#include "kernels/formats.h"

static void test_numbers_are_what_they_say(void) {
    enum { kD = 512, kR = 64, kRows = 20000 };
    numbers n;
    uint16_t row[kD + kR], again[kD + kR];
    double sum = 0, sum2 = 0, largest = 0;
    CU_ASSERT_FATAL(numbers_create(&n, NUMBERS_MLA, kD, kR, 5, NULL) == SNAP_OK);
    for (uint64_t i = 0; i < kRows; i++) {
        numbers_token(&n, i, row);
        for (int d = 0; d < kD; d++) {
            double x = (double)bf16_to_f32(row[d]);
            sum += x;
            sum2 += x * x;
        }
        for (int d = kD; d < kD + kR; d++)
            largest = fmax(largest, fabs((double)bf16_to_f32(row[d])));
    }
    double count = (double)kRows * kD;
    /* wide bounds, because the rows of the pool repeat and are not independent */
    CU_ASSERT_DOUBLE_EQUAL(sum / count, 0, 5e-3);
    CU_ASSERT_DOUBLE_EQUAL(sum2 / count, 1, 1e-2);
    CU_ASSERT(largest > 1000 && largest < 1300);
    numbers_token(&n, 17, row);
    numbers_token(&n, 17, again);
    CU_ASSERT(memcmp(row, again, sizeof row) == 0);
    numbers_token(&n, 18, again);
    CU_ASSERT(memcmp(row, again, sizeof row) != 0);
    numbers_release(&n);
}

static double logit(const uint16_t *q, const uint16_t *k, int d) {
    double sum = 0;
    for (int i = 0; i < d; i++)
        sum += (double)bf16_to_f32(q[i]) * (double)bf16_to_f32(k[i]);
    return sum / sqrt(192.0);
}

/* About one token in a thousand has a much larger logit than the others. */
static void test_sinks_are_liked(void) {
    enum { kD = 512, kR = 64, kRows = 20000 };
    numbers n;
    uint16_t token[kD + kR], query[kD + kR];
    int liked = 0;
    CU_ASSERT_FATAL(numbers_create(&n, NUMBERS_SINK, kD, kR, 5, NULL) == SNAP_OK);
    numbers_query(&n, 3, query);
    for (uint64_t i = 0; i < kRows; i++) {
        numbers_token(&n, i, token);
        liked += logit(query + kD, token + kD, kR) > 6;
    }
    CU_ASSERT(liked > 0 && liked < 80);
    numbers_release(&n);
}

/* The two large products of a query with a token cancel exactly. */
static void test_large_products_cancel(void) {
    enum { kD = 512, kR = 64 };
    numbers n;
    uint16_t token[kD + kR], query[kD + kR];
    CU_ASSERT_FATAL(numbers_create(&n, NUMBERS_ADVERSARIAL, kD, kR, 5, NULL) == SNAP_OK);
    for (uint64_t i = 0; i < 100; i++) {
        numbers_token(&n, i, token);
        numbers_query(&n, i + 7, query);
        CU_ASSERT(bf16_to_f32(token[kD]) == -bf16_to_f32(token[kD + kR / 2]));
        CU_ASSERT(bf16_to_f32(token[kD]) > 30);
        CU_ASSERT(query[kD] == query[kD + kR / 2]);
    }
    numbers_release(&n);
}

CU_TestInfo tests_numbers[] = {
    {"random inputs have the stated distributions", test_numbers_are_what_they_say},
    {"all queries give much weight to sinks", test_sinks_are_liked},
    {"large products cancel", test_large_products_cancel},
    CU_TEST_INFO_NULL,
};
