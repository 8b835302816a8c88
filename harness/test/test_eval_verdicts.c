/* Tests the verdicts of an evaluation: lost samples, margins, several tasks together, dead arms. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "harness/gate/quality.h"
#include "harness/test/eval_place.h"
#include "harness/view/eval_text.h"
#include "harness/view/run_report.h"

/* Arm b answers like arm a, but sample 1 of problem 1 was lost, and all answers were repaired. */
static void record_lost(const char *path) {
    buf rows = {0};
    for (int i = 0; i < PROBLEMS; i++)
        for (int k = 0; k < SAMPLES; k++)
            (void)buf_printf(&rows,
                             "{\"task\": \"synth_aime\", \"problem\": \"q%d\", \"sample\": %d, "
                             "\"response\": \"%d: \\\\boxed{%d}\", \"repaired\": true%s}\n",
                             i, k, k, i % 3 == 0 && k == 0 ? 999 : i,
                             i == 1 && k == 1 ? ", \"error\": \"no answer\"" : "");
    eval_write_text(path, &rows);
    buf_release(&rows);
}

static void expect_gate(const results *r, const char *verdict) {
    const gate_quality_options options = {.alpha = 0.05};
    js *rows = js_new_array();
    CU_ASSERT_EQUAL(gate_check_quality(r, r, &options, rows, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(js_get_str(js_at(rows, 0), "verdict"), verdict);
    js_free(rows);
}

/* A run of one arm has no comparison of its own. Its margin and its limit of lost samples count
 * when the gate compares it with another run. */
static void test_the_margin_of_one_arm(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    o.arms.n = 1;
    o.margin_pp = 7;
    o.max_lost_pct = 3;
    results *r = eval_complete(&o);
    const gate_quality_options options = {
        .alpha = 0.05, .baseline_samples = p.samples, .current_samples = p.samples};
    js *rows = js_new_array();
    CU_ASSERT_EQUAL(gate_check_quality(r, r, &options, rows, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(js_len(rows), 1);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(js_at(rows, 0), "margin_pp"), 7, 1e-9);
    const js *row = js_at(results_section(r, "evals"), 0);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(row, "margin_pp"), 7, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(row, "max_lost_pct"), 3, 1e-9);
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "title"), "synthetic AIME");
    CU_ASSERT_EQUAL(eval_audit(r), SNAP_OK);
    js_free(rows);
    results_free(r);
    eval_place_close(&p);
}

static void expect_verdict(const results *r, const char *verdict, const char *withheld) {
    js *pair = eval_pair_of(r);
    const char *why = js_get_str(pair, "withheld");
    CU_ASSERT_STRING_EQUAL(js_get_str(pair, "verdict"), verdict);
    CU_ASSERT_STRING_EQUAL(why ? why : "", withheld);
    CU_ASSERT_EQUAL(eval_audit(r), SNAP_OK);
    expect_gate(r, withheld[0] ? "inconclusive" : "ok");
    buf view = {0};
    CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(strstr(buf_str(&view), "'equivalent' cannot be shown") != NULL, !!withheld[0]);
    buf_release(&view);
}

/* An arm that lost more than --max-lost of its samples is not called equivalent. The run, its
 * regrade, the gate and the audit agree. Repaired answers are judged and counted. */
static void test_lost_samples(void) {
    static const char kWhy[] = "b lost 1 of 27 samples, more than 1 %";
    eval_place p;
    eval_place_open(&p);
    record_lost(strchr(p.arm_b, ':') + 1);
    eval_options o = eval_options_of(&p);
    o.margin_pp = 60;
    o.max_lost_pct = -1;
    results *r = eval_complete(&o);
    expect_verdict(r, "not shown", kWhy);
    js *row = js_at(results_section(r, "evals"), 0), *b = js_at(js_get_array(row, "arms"), 1);
    CU_ASSERT(js_get_int(b, "failed", 0) == 1 && js_get_int(b, "repaired", 0) == 26);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(b, "repaired_pct"), 100, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(b, "accuracy_pct"), 100 - 100 / 9.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(eval_pair_of(r), "p_failed"), 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(eval_pair_of(r), "p_repaired"), 2 / 512.0,
                           1e-12); /* 9 signs agree */
    CU_ASSERT(js_set_str(eval_pair_of(r), "verdict", "equivalent"));
    CU_ASSERT_EQUAL(eval_audit(r), SNAP_E_WRONG);
    CU_ASSERT(js_set_str(eval_pair_of(r), "verdict", "not shown") &&
              js_set_str(eval_pair_of(r), "withheld", NULL));
    CU_ASSERT_EQUAL(eval_audit(r), SNAP_E_WRONG);
    results_free(r);
    char *page = eval_text_of(eval_in_run(&p, "report.html")),
         *csv = eval_text_of(eval_in_run(&p, "report.csv"));
    CU_ASSERT_PTR_NOT_NULL(strstr(page, kWhy));
    CU_ASSERT_PTR_NOT_NULL(strstr(page, "repaired"));
    CU_ASSERT_PTR_NOT_NULL(strstr(csv, kWhy));
    free(page);
    free(csv);
    o.max_lost_pct = 5;
    r = eval_complete(&o);
    expect_verdict(r, "equivalent", "");
    results_free(r);
    eval_options again = {
        .report = run_report_write, .out = o.out, .regrade = true, .max_lost_pct = -1};
    r = eval_complete(&again);
    expect_verdict(r, "equivalent", "");
    results_free(r);
    again.max_lost_pct = 0;
    r = eval_complete(&again);
    expect_verdict(r, "not shown", "b lost 1 of 27 samples, more than 0 %");
    results_free(r);
    eval_place_close(&p);
}

/* Two tasks together. The row follows from the rows of the tasks, and the audit computes it. */
static void test_pooled(void) {
    eval_place p;
    eval_place_open(&p);
    static char dir[60], math[100];
    (void)snprintf(dir, sizeof dir, "%s", p.dir);
    char *text = eval_text_of(p.data);
    const char *const names[] = {"synth_aime.jsonl", "synth_math.jsonl"};
    for (int i = 0; i < 2; i++) {
        (void)snprintf(math, sizeof math, "%s/%s", p.dir, names[i]);
        CU_ASSERT_EQUAL(fs_write_atomic(math, text, strlen(text), NULL), SNAP_OK);
    }
    free(text);
    for (int i = 0; i < 2; i++) { /* the same answers for both tasks */
        const char *path = strchr(i ? p.arm_b : p.arm_a, ':') + 1;
        char *rows = eval_text_of(path), *at;
        buf both = {0};
        (void)buf_puts(&both, rows);
        while ((at = strstr(rows, "synth_aime")) != NULL)
            memcpy(at, "synth_math", 10);
        (void)buf_puts(&both, rows);
        eval_write_text(path, &both);
        buf_release(&both);
        free(rows);
    }
    eval_options o = eval_options_of(&p);
    o.suite = "synth_aime,synth_math";
    o.data = dir;
    results *r = eval_complete(&o);
    js *rows = results_section(r, "pooled"), *row = js_at(rows, 0);
    CU_ASSERT_EQUAL_FATAL(js_len(rows), 1);
    CU_ASSERT_EQUAL(js_len(js_get_array(row, "tasks")), 2);
    CU_ASSERT_EQUAL(js_get_int(row, "problems", 0), 2 * PROBLEMS);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(row, "delta_pp"), eval_number(eval_pair_of(r), "delta_pp"),
                           1e-9);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(row, "se_pp"),
                           eval_number(eval_pair_of(r), "se_pp") / sqrt(2), 1e-9);
    CU_ASSERT_EQUAL(eval_audit(r), SNAP_OK);
    buf view = {0};
    CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "all 2 tasks together: 18 problems"));
    buf_release(&view);
    char *page = eval_text_of(eval_in_run(&p, "report.html")),
         *md = eval_text_of(eval_in_run(&p, "report.md"));
    CU_ASSERT_PTR_NOT_NULL(strstr(page, "over 2 tasks and 18 problems"));
    CU_ASSERT_PTR_NOT_NULL(strstr(md, "| all 2 tasks |"));
    free(page);
    free(md);
    CU_ASSERT(js_set_num(row, "delta_pp", 0));
    CU_ASSERT_EQUAL(eval_audit(r), SNAP_E_WRONG);
    results_free(r);
    eval_place_close(&p);
}

/* An arm without any scored sample is an error. 64 failed requests in a row end the run early. */
static void test_a_dead_arm_is_an_error(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    buf one = {0};
    (void)buf_puts(&one,
                   "{\"task\": \"x\", \"problem\": \"q0\", \"sample\": 0, \"response\": \"\"}\n");
    eval_write_text(strchr(p.arm_b, ':') + 1, &one);
    buf_release(&one);
    results *r = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL(eval_evaluate(&o, &r, &err), SNAP_E_NET);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "arm 'b': all 27 samples failed"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(r); /* the result is saved nevertheless */
    const js *row = js_at(results_section(r, "evals"), 0);
    CU_ASSERT_PTR_NULL(js_get(js_at(js_get_array(row, "arms"), 1), "accuracy_pct"));
    results_free(r);
    o.samples = 8; /* 72 requests */
    eval_expect(&o, SNAP_E_NET, "arm 'b': 64 requests in a row failed, the last one: no recording");
    eval_place_close(&p);
}

CU_TestInfo tests_eval_verdicts[] = {
    {"the margin of one arm", test_the_margin_of_one_arm},
    {"lost and repaired samples", test_lost_samples},
    {"several tasks together", test_pooled},
    {"an arm without answers is an error", test_a_dead_arm_is_an_error},
    CU_TEST_INFO_NULL,
};
