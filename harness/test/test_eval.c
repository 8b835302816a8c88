/* Tests the results of an evaluation with the replay generator: scores, grading again, packing. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "base/zip.h"
#include "harness/audit/bundle.h"
#include "harness/test/eval_place.h"
#include "harness/view/eval_text.h"
#include "harness/view/run_report.h"

/* Computed by hand: 3 of 9 problems lose one sample of three in arm a and all three in arm b. */
static void test_scores(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    results *r = eval_complete(&o);
    const js *row = js_at(results_section(r, "evals"), 0);
    const js *a = js_at(js_get_array(row, "arms"), 0), *b = js_at(js_get_array(row, "arms"), 1);
    const js *pair = js_at(js_get_array(row, "pairs"), 0);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(a, "accuracy_pct"), 100 * (6 + 3 * 2.0 / 3) / 9, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(b, "accuracy_pct"), 100 * 6 / 9.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(pair, "delta_pp"), -100 * 2.0 / 9, 1e-9);
    CU_ASSERT_EQUAL(js_get_int(js_get_object(pair, "discordant"), "baseline_only", -1), 3);
    CU_ASSERT_EQUAL(js_get_int(js_get_object(pair, "discordant"), "arm_only", -1), 0);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(pair, "p_sign_flip"), 0.25,
                           1e-12); /* 2 of 2^3 sign patterns */
    CU_ASSERT_DOUBLE_EQUAL(eval_number(js_get_object(pair, "length"), "delta_tokens"), 10, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(pair, "margin_pp"), 2, 1e-9);
    CU_ASSERT_EQUAL(js_get_int(a, "identical_samples", -1), 0);
    CU_ASSERT(text_starts(js_get_str(a, "source"), "replay:") &&
              !strchr(js_get_str(a, "source"), '/'));
    buf view = {0};
    CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "88.89"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "-22.22"));
    buf_release(&view);
    results_free(r);
    eval_place_close(&p);
}

/* No problem has answers from both arms. */
static void test_nothing_paired_shows_no_number(void) {
    static const char text[] =
        "[{\"task\":\"aime24\",\"problems\":1,\"samples_per_problem\":1,\"grader\":\"aime-2\","
        "\"sampling\":{\"temperature\":1,\"top_p\":0.95},\"arms\":[],"
        "\"pairs\":[{\"arm\":\"b\",\"baseline\":\"a\",\"delta_pp\":null,\"margin_pp\":2,"
        "\"verdict\":\"not shown\"}]}]";
    results *r = NULL;
    buf view = {0};
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "eval", NULL, 0, NULL), SNAP_OK);
    CU_ASSERT(
        js_set_new(results_document(r), "evals", js_parse(text, sizeof text - 1, "rows", NULL)));
    CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "not shown"));
    CU_ASSERT_PTR_NULL(strstr(buf_str(&view), "nan"));
    buf_release(&view);
    results_free(r);
}

/* Continuing a complete run and grading it again need no recordings and change no sample. */
static void test_regrade(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    results_free(eval_complete(&o));
    char *before = eval_text_of(p.samples);
    (void)unlink(strchr(p.arm_a, ':') + 1);
    (void)unlink(strchr(p.arm_b, ':') + 1);
    results_free(eval_complete(&o));
    o = (eval_options){.report = run_report_write, .out = p.run, .regrade = true};
    results *r = eval_complete(&o);
    CU_ASSERT_EQUAL(js_get_int(js_at(results_section(r, "evals"), 0), "problems", 0), PROBLEMS);
    results_free(r);
    char *after = eval_text_of(p.samples);
    CU_ASSERT_STRING_EQUAL(before, after);
    free(before);
    free(after);
    eval_place_close(&p);
}

static js *config_of(const results *r) {
    return js_get_object(js_get_object(results_document(r), "provenance"), "config");
}

/* The configuration of a regraded result is that of the run that made the samples, with the
 * regrade's own data, margin and policy. */
static void test_a_regrade_keeps_the_configuration(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    js *made = js_new_object(), *asked = js_new_object();
    CU_ASSERT(js_set_str(made, "suite", "synth_aime") && js_set_num(made, "temperature", -1) &&
              js_set_bool(made, "regrade", false) && js_set_num(made, "margin", 0));
    CU_ASSERT(js_set_bool(asked, "regrade", true) && js_set_num(asked, "temperature", 0.25));
    results *r = NULL;
    CU_ASSERT_EQUAL_FATAL(eval_run(&o, made, &r, NULL), SNAP_OK);
    CU_ASSERT(js_equal(config_of(r), made));
    results_free(r);
    for (int again = 0; again < 2; again++) { /* also a second time */
        o = (eval_options){.report = run_report_write,
                           .out = p.run,
                           .regrade = true,
                           .margin_pp = 5,
                           .math_policy = "strict"};
        CU_ASSERT_EQUAL_FATAL(eval_run(&o, asked, &r, NULL), SNAP_OK);
        const js *c = config_of(r);
        CU_ASSERT_STRING_EQUAL(js_get_str(c, "suite"), "synth_aime");
        CU_ASSERT_STRING_EQUAL(js_get_str(c, "data"), strrchr(p.data, '/') + 1);
        CU_ASSERT_STRING_EQUAL(js_get_str(c, "math-policy"), "strict");
        CU_ASSERT(js_get_bool(c, "regrade", false));
        CU_ASSERT_EQUAL(eval_number(c, "temperature"), -1);
        CU_ASSERT_EQUAL(eval_number(c, "margin"), 5);
        CU_ASSERT_EQUAL(js_get_int(js_get_object(results_document(r), "provenance"), "seed", 0), 1);
        results_free(r);
    }
    js_free(made);
    js_free(asked);
    eval_place_close(&p);
}

/* Copies a member into the folder. It must not contain the path of the test's folder. */
static snap_status unpack_one(void *ctx, const char *name, const buf *content, snap_err *err) {
    const eval_place *p = ctx;
    char path[160];
    (void)snprintf(path, sizeof path, "%s/unpacked/%s", p->dir, name);
    if (memmem(buf_str(content), content->len, p->dir, strlen(p->dir))) {
        printf("\n%s names %s\n", name, p->dir);
        CU_FAIL("a folder in a bundle");
    }
    return fs_write_atomic(path, buf_str(content), content->len, err);
}

/* Packs the run and unpacks it elsewhere. */
static void move_by_bundle(eval_place *p) {
    char zip[80], to[80];
    buf bytes = {0};
    (void)snprintf(zip, sizeof zip, "%s/run.zip", p->dir);
    (void)snprintf(to, sizeof to, "%s/unpacked", p->dir);
    CU_ASSERT_EQUAL_FATAL(mkdir(to, 0700), 0);
    CU_ASSERT_EQUAL_FATAL(
        bundle_pack(p->run, zip, &(bundle_options){.report = run_report_markdown}, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(fs_read(zip, &bytes, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(
        zip_each_member(bytes.data, bytes.len, zip, (zip_limits){64, 1 << 24}, unpack_one, p, NULL),
        SNAP_OK);
    buf_release(&bytes);
}

/* No file of a bundle, including the journal, contains the path of the run's folder. The bundle is
 * still a run that can be graded again, with the data in another place. */
static void test_a_packed_run_names_no_folder(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    js *asked = js_new_object();
    CU_ASSERT(js_set_str(asked, "data", p.data) && js_set_str(asked, "out", p.run));
    results *r = NULL;
    CU_ASSERT_EQUAL_FATAL(eval_run(&o, asked, &r, NULL), SNAP_OK);
    results_free(r);
    move_by_bundle(&p);
    char at[80], data[100];
    (void)snprintf(data, sizeof data, "%s/moved.jsonl", p.dir);
    (void)snprintf(at, sizeof at, "%s/unpacked", p.dir);
    CU_ASSERT_EQUAL(rename(p.data, data), 0);
    o = (eval_options){.report = run_report_write, .out = at, .regrade = true, .data = data};
    r = eval_complete(&o);
    const js *row = js_at(results_section(r, "evals"), 0);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(js_at(js_get_array(row, "arms"), 0), "accuracy_pct"),
                           800 / 9.0, 1e-9);
    results_free(r);
    js_free(asked);
    eval_place_close(&p);
}

CU_TestInfo tests_eval[] = {
    {"scores computed by hand", test_scores},
    {"without pairs no number is shown", test_nothing_paired_shows_no_number},
    {"a complete run can be graded again", test_regrade},
    {"a regrade keeps the configuration", test_a_regrade_keeps_the_configuration},
    {"a packed run names no folder", test_a_packed_run_names_no_folder},
    CU_TEST_INFO_NULL,
};
