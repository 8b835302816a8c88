/* Compares `eval plan` with values computed by hand, from planning values and from the variances of
 * a run. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "evals/stats.h"
#include "harness/eval/power.h"

static js *plan(power_options o) {
    js *rows = NULL;
    snap_err err = {0};
    if (power_plan(&o, &rows, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rows);
    return rows;
}

static double number(const js *row, const char *key) {
    return js_get_num(row, key, -1);
}

/* SE = sqrt(2 v / (n K)), computed by hand: AIME sqrt(.16/960), MATH-500 sqrt(.07/500), GPQA
 * sqrt(.23/3168). */
static void test_planning_values(void) {
    static const struct {
        const char *task;
        int samples;
        double se_pp;
    } cases[] = {{"aime24", 32, 1.291}, {"math500", 1, 1.183}, {"gpqa_diamond", 16, 0.852}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        js *rows = plan((power_options){
            .suite = cases[i].task, .samples = cases[i].samples, .margin_pp = 2, .power = 0.9});
        const js *row = js_at(rows, 0);
        CU_ASSERT_EQUAL(js_len(rows), 1);
        CU_ASSERT_DOUBLE_EQUAL(number(row, "se_pp"), cases[i].se_pp, 0.001);
        js_free(rows);
    }
}

/* The number of samples or problems that the plan states is enough, and one less is not. */
static void test_what_is_needed_is_least(void) {
    static const double wanted[] = {0.5, 0.8, 0.95};
    for (size_t i = 0; i < 3; i++) {
        power_options o = {.suite = "aime24", .samples = 8, .margin_pp = 3, .power = wanted[i]};
        js *rows = plan(o);
        int64_t needed = js_get_int(js_at(rows, 0), "samples_needed", 0);
        int64_t problems = js_get_int(js_at(rows, 0), "problems_needed", 0);
        js_free(rows);
        CU_ASSERT(needed > 8 && problems > 30);
        for (int less = 0; less < 2; less++) {
            double se = sqrt(0.16 / (double)(needed - less) / 30);
            CU_ASSERT((stats_tost_power(se, 29, 0.03) >= wanted[i]) == !less);
            se = sqrt(0.16 / 8 / (double)(problems - less));
            CU_ASSERT((stats_tost_power(se, (double)(problems - less - 1), 0.03) >= wanted[i]) ==
                      !less);
        }
    }
}

/* A run with SE 2 pp over 100 problems: the variance of a difference is .04; of this, .032 is noise
 * (.04 + .024 over K = 2) and .008 is between problems. With more samples the SE approaches
 * sqrt(.008/100) = .894 pp. */
static void test_variances_of_a_run(void) {
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read("harness/test/fixtures/run.json", &text, NULL), SNAP_OK);
    js *document = js_parse(buf_str(&text), text.len, "run", NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(document);
    js *row = js_at(js_get_array(document, "evals"), 0), *pair = NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    pair = js_at(js_get_array(row, "pairs"), 0);
    const char *arms[] = {js_get_str(pair, "baseline"), js_get_str(pair, "arm")};
    const double variances[] = {0.04, 0.024};
    js *list = js_get_array(row, "arms");
    for (size_t i = 0; i < js_len(list); i++)
        for (int a = 0; a < 2; a++)
            if (strcmp(js_get_str(js_at(list, i), "name"), arms[a]) == 0)
                (void)js_set_num(js_at(list, i), "sampling_variance", variances[a]);
    (void)js_set_int(row, "problems", 100);
    (void)js_set_int(pair, "problems", 100);
    (void)js_set_int(row, "samples_per_problem", 2);
    (void)js_set_num(pair, "se_pp", 2);
    char path[] = "/tmp/snapmla-power-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    (void)close(fd);
    CU_ASSERT_EQUAL_FATAL(js_write_file(document, path, NULL), SNAP_OK);
    js *rows = plan((power_options){.from = path, .samples = 8, .margin_pp = 2, .power = 0.9});
    const js *got = js_at(rows, 0);
    CU_ASSERT_DOUBLE_EQUAL(number(got, "within"), 0.064, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(number(got, "between"), 0.008, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(number(got, "se_pp"), 100 * sqrt((0.008 + 0.064 / 8) / 100), 1e-9);
    CU_ASSERT_TRUE(js_is_null(js_get(got, "samples_needed")) || !js_get(got, "samples_needed"));
    CU_ASSERT(js_get_int(got, "problems_needed", 0) > 100);
    js_free(rows);
    js_free(document);
    buf_release(&text);
    (void)unlink(path);
}

static void test_what_cannot_be_planned(void) {
    static const struct {
        power_options o;
        const char *message;
    } cases[] = {{{.power = 0.9}, "give --suite LIST or --from RUN"},
                 {{.suite = "nonsense", .power = 0.9}, "unknown task 'nonsense'"},
                 {{.from = "/nowhere", .power = 0.9}, "/nowhere"},
                 {{.suite = "gsm8k", .from = "harness/test/fixtures/run.json", .power = 0.9},
                  "the run has no task 'gsm8k'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        js *rows = NULL;
        snap_err err = {0};
        CU_ASSERT_NOT_EQUAL(power_plan(&cases[i].o, &rows, &err), SNAP_OK);
        CU_ASSERT_PTR_NULL(rows);
        if (!strstr(err.text, cases[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
    }
}

CU_TestInfo tests_power[] = {
    {"planning values", test_planning_values},
    {"the stated number of samples is the smallest", test_what_is_needed_is_least},
    {"variances of a run", test_variances_of_a_run},
    {"impossible plans are refused", test_what_cannot_be_planned},
    CU_TEST_INFO_NULL};
