/* Tests the rate at which requests start, in simulated time, and the durations of ratelimit.h. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "base/rng.h"
#include "generator/http/pace.h"
#include "generator/http/ratelimit.h"

static const int64_t kSecond = 1000000000;

/* Starts requests as early as permitted, checking every @step_ns. Returns the number of starts
 * within @seconds; *most is the most within any minute. */
static int starts_within(double rpm, int64_t step_ns, int seconds, int *most) {
    pace p = pace_make(rpm, 0, 0);
    static int64_t at[200000];
    int n = 0, first = 0;
    *most = 0;
    for (int64_t now = 0; now < seconds * kSecond; now += step_ns)
        while (pace_when(&p, now) <= now && n < 200000) {
            (void)pace_start(&p, now, 10, 100);
            at[n++] = now;
            while (at[n - 1] - at[first] >= 60 * kSecond)
                first++;
            *most = n - first > *most ? n - first : *most;
        }
    return n;
}

static void test_requests_a_minute(void) {
    static const double rates[] = {1, 7, 60, 600, 6000};
    static const int64_t steps[] = {1000000, 7000000, 90000000};
    for (size_t r = 0; r < 5; r++)
        for (size_t s = 0; s < 3; s++) {
            int most, n = starts_within(rates[r], steps[s], 600, &most);
            CU_ASSERT(n <= 10 * rates[r] + 1 + rates[r] / 600);
            CU_ASSERT(n >= 10 * rates[r] - 1 - rates[r] / 600); /* the rate also reaches the
                                                                   limit */
            CU_ASSERT(most <= rates[r] + 1 + rates[r] / 600);
        }
}

static void test_idle_time_is_no_credit(void) {
    pace p = pace_make(60, 600, 0);
    int64_t now = 3600 * kSecond;
    int n = 0;
    while (pace_when(&p, now) <= now && n < 100) {
        (void)pace_start(&p, now, 1, 1);
        n++;
    }
    CU_ASSERT(n <= 2);
}

/* Answers have different lengths, and up to eight requests are in flight. In the long run the
 * tokens must come close to the limit, and exceed it by 1 % at most. */
static void test_tokens_a_minute(void) {
    pace p = pace_make(0, 60000, 0);
    rng r = rng_make(1, 1);
    struct {
        int64_t ends;
        double expected;
    } running[8];
    int n = 0;
    double used = 0;
    const int64_t end = 1800 * kSecond;
    for (int64_t now = 0; now < end; now += 20000000) {
        for (int i = 0; i < n; i++)
            if (running[i].ends <= now) {
                int64_t answer = 200 + (int64_t)(rng_uniform(&r) * 2000);
                pace_settle(&p, running[i].expected, 100 + answer, answer);
                used += 100 + (double)answer;
                running[i--] = running[--n];
            }
        while (n < 8 && pace_when(&p, now) <= now) {
            running[n].expected = pace_start(&p, now, 100, 4096);
            running[n++].ends = now + kSecond + (int64_t)(rng_uniform(&r) * 4e9);
        }
    }
    CU_ASSERT(used <= 30 * 60000 * 1.01 && used >= 30 * 60000 * 0.93);
}

static void test_no_limit(void) {
    pace p = pace_make(0, 0, 5);
    for (int i = 0; i < 100; i++) {
        CU_ASSERT(pace_when(&p, 5) <= 5);
        CU_ASSERT_DOUBLE_EQUAL(pace_start(&p, 5, 10, 90), 100, 1e-12);
    }
    pace_settle(&p, 100, 20, 10);
    CU_ASSERT_DOUBLE_EQUAL(pace_start(&p, 5, 10, 90), 20, 1e-12);
}

static void test_durations(void) {
    static const struct {
        const char *text;
        double seconds;
    } rows[] = {{"12", 12},      {"1.5", 1.5},
                {"1s", 1},       {"6m0s", 360},
                {"120ms", 0.12}, {"1h2m3.5s", 3723.5},
                {"1m30", -1},    {"", -1},
                {"s", -1},       {"-1s", -1},
                {"1x", -1},      {"1..2s", -1},
                {"1 s", -1},     {"1d", 86400},
                {"0", 0},        {"99999999999999999999999999999999999", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CU_ASSERT_DOUBLE_EQUAL(ratelimit_seconds(rows[i].text), rows[i].seconds, 1e-9);
}

CU_TestInfo tests_pace[] = {
    {"requests per minute", test_requests_a_minute},
    {"idle time does not allow a burst", test_idle_time_is_no_credit},
    {"tokens per minute", test_tokens_a_minute},
    {"without a limit no request waits", test_no_limit},
    {"durations such as 1m30s are read", test_durations},
    CU_TEST_INFO_NULL,
};
