/* Tests verify-run with results of earlier builds, which decided targets, set the flags
 * `correlated` and `unsteady`, and used them by other rules. They are computed again by those
 * rules. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/test/temp_folder.h"
#include "harness/audit/audit.h"
#include "harness/serving/request_lines.h"
#include "harness/serving/result_rows.h"
#include "harness/test/serving_sim.h"

enum { kArms = 2, kSeeds = 200 };
static const serving_point kLoad = {true, 50};
static const serving_arm_facts kNames[kArms] = {{"bf16", "", "m", "bf16"}, {"fp8", "", "m", "fp8"}};

static serving_measure_options options(void) {
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    o.targets = (slo_list){{{SERVING_TPOT, 0.75, 0.0176}}, 1};
    return o;
}

/* Requests of two equal servers, written and read again. @spread: how much their speed drifts. */
static void write_requests(const char *path, uint64_t seed, double spread, request_list *list) {
    sim_log log = {0};
    buf text = {0};
    for (int b = 0; b < 2; b++)
        for (int a = 0; a < kArms; a++)
            sim_drifting(&log,
                         &(sim_block){.arm = a,
                                      .block = b,
                                      .rate = kLoad.load,
                                      .seconds = 15,
                                      .noise = kArms * seed + (uint64_t)a},
                         0.016, spread);
    for (size_t i = 0; i < log.n; i++)
        request_line_append(&log.at[i], &text);
    CU_ASSERT_FATAL(fs_write_atomic(path, text.data, text.len, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(request_lines_read(path, list, NULL) == SNAP_OK);
    sim_release(&log);
    buf_release(&text);
}

static serving_measured *states_of(const request_list *list, serving_measure_options o) {
    serving_measured *l;
    o.states_only = true;
    CU_ASSERT_FATAL(serving_measure_point(list->at, list->n, 0, &o, &l, NULL) == SNAP_OK);
    return l;
}

/* Whether the older and the present rules give the first arm different states or flags. */
static bool is_other(const request_list *list, const serving_measure_options *old,
                     const serving_measure_options *now) {
    serving_measured *a = states_of(list, *old), *b = states_of(list, *now);
    bool other = a->arm[0].state != b->arm[0].state ||
                 a->arm[0].correlated != b->arm[0].correlated ||
                 a->arm[0].by_blocks != b->arm[0].by_blocks || a->arm[0].steady != b->arm[0].steady;
    free(a);
    free(b);
    return other;
}

static results *result_of(const request_list *list, const serving_measure_options *o) {
    const serving_rows_context c = {o, kNames, ""};
    results *out = NULL;
    js *rows = js_new_array();
    CU_ASSERT_FATAL(results_new(&out, "bench serving", NULL, (int64_t)o->seed, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(serving_rows_of_run(list->at, list->n, &kLoad, 1, &c, NULL, rows, NULL) ==
                    SNAP_OK);
    CU_ASSERT_FATAL(results_add_all(out, "serving", rows, NULL) == SNAP_OK);
    return out;
}

static void remove_member(const results *r, const char *key) {
    js *rows = results_section(r, "serving");
    for (size_t i = 0; i < js_len(rows); i++)
        (void)js_delete(js_at(rows, i), key);
}

static size_t findings(const results *r, const char *requests) {
    verify_findings f = {0};
    CU_ASSERT_EQUAL(verify_serving(r, requests, &f, NULL), SNAP_OK);
    size_t n = js_len(f.rows);
    verify_release(&f);
    return n;
}

/* Checks that verify_serving() applies the present rule to results whose rows have the member @key,
 * and the older rule to results without it. For this, it finds a run for which the two rules give
 * different results. The present result must have no finding, and must have findings after @key is
 * removed. The older result must have no finding after @key is removed. @writes: the code writes
 * @key under the older rule, too, so the older result must have findings before the removal. */
static void expect_old_rule(const serving_measure_options *old, double spread, const char *key,
                            bool writes) {
    char dir[TEMP_FOLDER];
    const serving_measure_options now = options();
    request_list list = {0};
    temp_folder_open(dir, "serving-older");
    char *path = fs_join(dir, "requests.jsonl");
    uint64_t seed = 0;
    for (write_requests(path, seed, spread, &list); seed < kSeeds && !is_other(&list, old, &now);) {
        request_list_release(&list);
        write_requests(path, ++seed, spread, &list);
    }
    CU_ASSERT_FATAL(seed < kSeeds);
    results *before = result_of(&list, old), *after = result_of(&list, &now);
    CU_ASSERT_EQUAL(findings(before, path) > 0, writes);
    CU_ASSERT_EQUAL(findings(after, path), 0);
    remove_member(before, key);
    remove_member(after, key);
    CU_ASSERT_EQUAL(findings(before, path), 0);
    CU_ASSERT(findings(after, path) > 0);
    results_free(before);
    results_free(after);
    request_list_release(&list);
    free(path);
    temp_folder_remove(dir);
}

static void test_targets_by_shares(void) {
    serving_measure_options old = options();
    old.shares_only = true;
    expect_old_rule(&old, 0.01, "percentile_level_pct", true);
}

/* The values of a server without drift are independent. */
static void test_flag_by_one_standard_error(void) {
    serving_measure_options old = options();
    old.correlated_untested = true;
    expect_old_rule(&old, 0, "independence_p", true);
}

/* Without `units`, a correlated load has no verdict, and a small drift makes a block unsteady. */
static void test_flags_prevent_verdicts(void) {
    serving_measure_options old = options();
    old.before_units = true;
    expect_old_rule(&old, 0.01, "units", false);
}

CU_TestInfo tests_serving_older[] = {
    {"targets by shares", test_targets_by_shares},
    {"the flag correlated by one standard error", test_flag_by_one_standard_error},
    {"flags prevent all verdicts", test_flags_prevent_verdicts},
    CU_TEST_INFO_NULL};
