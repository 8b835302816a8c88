/* Tests the text of progress. Expected texts are computed by hand. */
#include <CUnit/CUnit.h>

#include "base/term.h"

static void test_progress(void) {
    static const struct {
        int64_t total, before, done, seconds;
        const char *text;
    } cases[] = {
        {120, 0, 0, 10, "eval: 0/120 (0 %)"},
        {120, 0, 30, 15, "eval: 30/120 (25 %), 2.0/s, 45 s left"},
        {120, 0, 120, 60, "eval: 120/120 (100 %), 2.0/s"},
        {120, 60, 60, 5, "eval: 60/120 (50 %)"}, /* nothing was done since the start */
        {120, 60, 90, 15, "eval: 90/120 (75 %), 2.0/s, 15 s left"},
        {1000, 0, 100, 600, "eval: 100/1000 (10 %), 10.0/min, 90 min left"},
        {1000, 0, 1, 1200, "eval: 1/1000 (0 %), 3.0/h, 333 h 00 min left"},
        {40, 0, 10, 2610, "eval: 10/40 (25 %), 13.8/h, 2 h 10 min left"},
        {0, 0, 8, 4, "eval: 8, 2.0/s"},
        {5, 0, 3, 0, "eval: 3/5 (60 %)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TERM_PROGRESS_TEXT];
        term_progress p = {
            .what = "eval", .total = cases[i].total, .before = cases[i].before, .started_ns = 7};
        term_progress_text(&p, cases[i].done, 7 + cases[i].seconds * 1000000000, text);
        CU_ASSERT_STRING_EQUAL(text, cases[i].text);
    }
}

CU_TestInfo tests_term[] = {
    {"text of progress", test_progress},
    CU_TEST_INFO_NULL,
};
