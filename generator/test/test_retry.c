#include <CUnit/CUnit.h>

#include "generator/http/retry.h"

static const retry_policy policy = {.base_s = 1, .cap_s = 30, .server_cap_s = 300};

static void test_statuses(void) {
    static const int again[] = {408, 409, 425, 429, 500, 502, 503, 504, 529, 599};
    static const int never[] = {300, 301, 307, 400, 401, 402, 403, 404, 405, 413, 415, 422, 451};
    for (size_t i = 0; i < sizeof again / sizeof *again; i++)
        CU_ASSERT_TRUE(retry_status(again[i]));
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        CU_ASSERT_FALSE(retry_status(never[i]));
}

static void test_backoff_doubles_to_its_cap(void) {
    static const double want[] = {1, 2, 4, 8, 16, 30, 30, 30};
    for (int k = 0; k < 8; k++) {
        CU_ASSERT_DOUBLE_EQUAL(retry_delay_s(&policy, k + 1, -1, 0), want[k] / 2, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(retry_delay_s(&policy, k + 1, -1, 0.5), want[k] * 0.75, 1e-12);
    }
    CU_ASSERT_DOUBLE_EQUAL(retry_delay_s(&policy, 1000000, -1, 0), 15, 1e-12);
}

static void test_the_servers_wish_is_a_lower_bound(void) {
    CU_ASSERT_DOUBLE_EQUAL(retry_delay_s(&policy, 1, 20, 0), 20, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(retry_delay_s(&policy, 1, 20, 0.5), 20.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(retry_delay_s(&policy, 6, 2, 0), 15, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(retry_delay_s(&policy, 1, 0, 0), 0.5, 1e-12);
}

static void test_the_servers_wish_is_capped(void) {
    CU_ASSERT_DOUBLE_EQUAL(retry_delay_s(&policy, 1, 1e12, 0), 300, 1e-12);
}

CU_TestInfo tests_retry[] = {{"HTTP statuses after which a request is repeated", test_statuses},
                             {"the delay doubles up to a limit", test_backoff_doubles_to_its_cap},
                             {"Retry-After", test_the_servers_wish_is_a_lower_bound},
                             {"Retry-After is capped", test_the_servers_wish_is_capped},
                             CU_TEST_INFO_NULL};
