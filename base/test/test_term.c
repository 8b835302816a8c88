/* Tests the text of progress, and when it is written. Expected texts are computed by hand. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
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

/* Runs a progress whose standard error is @fd, with three updates: @seconds after its start, @more
 * seconds later, and immediately after that. */
static void run_progress(int fd, double seconds, double more) {
    const int kept = dup(STDERR_FILENO);
    CU_ASSERT_FATAL(kept >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    term_progress p = term_progress_start("eval", 120);
    p.started_ns -= (int64_t)(seconds * 1e9);
    term_progress_update(&p, 30, "note");
    p.started_ns -= (int64_t)(more * 1e9);
    p.shown_ns -= (int64_t)(more * 1e9);
    term_progress_update(&p, 60, NULL);
    term_progress_update(&p, 90, NULL);
    term_progress_end(&p);
    CU_ASSERT(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
}

/* Where standard error is no terminal, one line is written about every minute. */
static void test_lines_of_progress(void) {
    static const struct {
        double seconds, more;
        const char *first, *second; /* the start of a line; NULL: none */
    } cases[] = {
        {58, 0.5, NULL, NULL},
        {7200, 58, "eval: 30/120 (25 %), 15.0/h, 6 h 00 min left  note\n", NULL},
        {7200, 61, "eval: 30/120 (25 %), 15.0/h, 6 h 00 min left  note\n",
         "eval: 60/120 (50 %), 29.7/h, 2 h 01 min left\n"},
        {1, 7200, NULL, "eval: 60/120 (50 %), 30.0/h, 2 h 00 min left\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[400] = "", want[400];
        FILE *file = tmpfile();
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        run_progress(fileno(file), cases[i].seconds, cases[i].more);
        rewind(file);
        got[fread(got, 1, sizeof got - 1, file)] = '\0';
        (void)fclose(file);
        (void)snprintf(want, sizeof want, "%s%s", cases[i].first ? cases[i].first : "",
                       cases[i].second ? cases[i].second : "");
        CU_ASSERT_STRING_EQUAL(got, want);
    }
}

/* A process that is not in the foreground of a terminal writes nothing to it. */
static void test_background(void) {
    char byte;
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    CU_ASSERT_FATAL(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const int side = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    CU_ASSERT_FATAL(side >= 0);
    run_progress(side, 61, 61);
    CU_ASSERT_EQUAL(read(terminal, &byte, 1), -1);
    (void)close(side);
    (void)close(terminal);
}

CU_TestInfo tests_term[] = {
    {"text of progress", test_progress},
    {"a line about every minute", test_lines_of_progress},
    {"progress in the background", test_background},
    CU_TEST_INFO_NULL,
};
