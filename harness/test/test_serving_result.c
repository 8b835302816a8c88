/* Follows simulated servers from their requests to the result file, the report, the gate and the
 * audit. */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness/audit/audit.h"
#include "harness/gate/serving_gate.h"
#include "harness/gate/verdicts.h"
#include "harness/record/run.h"
#include "harness/serving/request_lines.h"
#include "harness/serving/result_rows.h"
#include "harness/test/report_readers.h"
#include "harness/test/serving_fixture.h"
#include "harness/test/serving_sim.h"
#include "harness/view/report.h"
#include "harness/view/serving_text.h"

enum { kArms = 2, kPoints = 2, kBlocks = 2 };
static const serving_point kLoads[kPoints] = {{true, 10}, {true, 40}};
static const serving_arm_facts kNames[kArms] = {{"bf16", "http://a/v1", "m", "bf16"},
                                                {"fp8 & <co>", "http://b/v1", "m", "fp8"}};

/* A run of two servers at two loads: the second arm is @speed times as fast. At 40 requests per
 * second the first is saturated. */
static void simulate(sim_log *log, double speed) {
    const sim_engine slow = {
        .slots = 8, .tokens = 20, .step_s = 0.008, .token_s = 0.001, .prefill_s = 0.004};
    for (int p = 0; p < kPoints; p++)
        for (int b = 0; b < kBlocks; b++)
            for (int a = 0; a < kArms; a++) {
                sim_engine e = slow;
                e.step_s /= a ? speed : 1;
                e.token_s /= a ? speed : 1;
                e.prefill_s /= a ? speed : 1;
                sim_batches(log,
                            &(sim_block){.arm = a,
                                         .point = p,
                                         .block = b,
                                         .rate = kLoads[p].load,
                                         .seconds = 60,
                                         .seed = 7 + (uint64_t)b},
                            &e);
            }
}

static serving_measure_options options(void) {
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    CU_ASSERT_FATAL(slo_parse("ttft_p90=400ms,e2e_p90=5s", &o.targets, NULL) == SNAP_OK);
    o.gpus = 2;
    return o;
}

/* Makes a result of requests. */
static results *result_of(const serving_request *r, size_t n) {
    const serving_measure_options o = options();
    const serving_quality quality[kArms] = {
        {.verdict = ""},
        {.verdict = "equivalent", .margin_pp = 2, .delta_pp = 0.1, .ci95_pp = {-1, 1.2}}};
    const serving_rows_context c = {&o, kNames, "100 in, 20 out"};
    results *out = NULL;
    snap_err err = {0};
    js *rows = js_new_array();
    CU_ASSERT_FATAL(results_new(&out, "bench serving", NULL, (int64_t)o.seed, &err) == SNAP_OK);
    CU_ASSERT_FATAL(serving_rows_of_run(r, n, kLoads, kPoints, &c, quality, rows, &err) == SNAP_OK);
    if (results_add_all(out, "serving", rows, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
    return out;
}

results *serving_fixture(double speed) {
    sim_log log = {0};
    simulate(&log, speed);
    results *r = result_of(log.at, log.n);
    sim_release(&log);
    return r;
}

static const serving_record *row_of(const run_record *run, const char *kind, const char *arm,
                                    double load, const char *metric) {
    for (size_t i = 0; i < run->serving.n; i++) {
        const serving_record *r = &run->serving.at[i];
        if (strcmp(r->kind, kind) == 0 && strcmp(r->arm, arm) == 0 &&
            (isnan(load) || fabs(r->load - load) < 1e-9) &&
            (!metric || strcmp(r->metric, metric) == 0))
            return r;
    }
    return NULL;
}

/* The rows must have what is known about the simulated servers. */
static void test_rows_say_what_holds(void) {
    results *r = serving_fixture(2);
    arena mem = {0};
    run_record run;
    CU_ASSERT_FATAL(run_read(&run, r, &mem, NULL) == SNAP_OK);
    const serving_record *bf16 = row_of(&run, "load", "bf16", 40, NULL);
    const serving_record *fp8 = row_of(&run, "load", "fp8 & <co>", 40, NULL);
    CU_ASSERT_FATAL(bf16 && fp8);
    CU_ASSERT(bf16->saturated && serving_has_flag(bf16, "saturated"));
    CU_ASSERT(!fp8->saturated);
    CU_ASSERT_STRING_EQUAL(bf16->state, "fails");
    CU_ASSERT_DOUBLE_EQUAL(fp8->requests_s, 40, 2);
    CU_ASSERT_DOUBLE_EQUAL(fp8->output_tok_s, 20 * fp8->requests_s, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(fp8->gpu_tok_s, fp8->output_tok_s / 2, 1e-6);
    CU_ASSERT_EQUAL(fp8->failed, 0);
    const serving_record *calm = row_of(&run, "load", "bf16", 10, NULL);
    CU_ASSERT_STRING_EQUAL(calm->state, "meets");
    CU_ASSERT_DOUBLE_EQUAL(calm->goodput_s, calm->requests_s, 0.05 * calm->requests_s);
    const serving_record *d = row_of(&run, "difference", "fp8 & <co>", 10, "tpot_p50");
    CU_ASSERT_FATAL(d != NULL);
    CU_ASSERT_STRING_EQUAL(d->verdict, "faster");
    CU_ASSERT_STRING_EQUAL(d->reason, "");
    CU_ASSERT(d->ratio < 0.7);
    /* the ttft of a saturated arm grows with the length of the blocks */
    d = row_of(&run, "difference", "fp8 & <co>", 40, "ttft_p50");
    CU_ASSERT_FATAL(d != NULL);
    CU_ASSERT_STRING_EQUAL(d->verdict, "inconclusive");
    CU_ASSERT_STRING_EQUAL(d->reason, "saturated");
    const serving_record *knee = row_of(&run, "knee", "bf16", NAN, NULL);
    CU_ASSERT_FATAL(knee != NULL);
    CU_ASSERT(knee->knee_lo == 10 && knee->knee_hi == 40);
    const serving_record *ratio = row_of(&run, "ratio", "fp8 & <co>", NAN, NULL);
    CU_ASSERT_FATAL(ratio != NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(ratio->headline, "at equal quality (margin 2 points)"));
    arena_release(&mem);
    results_free(r);
}

/* Replaces an element of a row. */
static void set(js *row, const char *key, const char *json) {
    CU_ASSERT(js_set_new(row, key, js_parse(json, strlen(json), "test", NULL)));
}

static void report_of(results *r, buf *out) {
    report_model *m = NULL;
    const char *name = "run.json";
    CU_ASSERT_FATAL(report_model_new(&m, &r, &name, 1, NULL) == SNAP_OK);
    report_markdown(m, out);
    report_model_free(m);
}

/* Files of earlier builds lack the member least_ms. Both ends of a missing interval are then
 * unknown. */
static void test_rows_of_earlier_builds(void) {
    results *r = serving_fixture(2);
    arena mem = {0};
    run_record run;
    buf now = {0}, before = {0};
    js *rows = results_section(r, "serving"), *latency = NULL;
    for (size_t i = 0; i < js_len(rows) && !latency; i++)
        if (strcmp(js_get_str(js_at(rows, i), "kind"), "latency") == 0)
            latency = js_at(rows, i);
    CU_ASSERT_PTR_NOT_NULL_FATAL(latency);
    set(latency, "p99_ms_ci95", "null");
    set(latency, "least_ms", "[0, 0, 0, 123, 0]");
    report_of(r, &now);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&now), "at least 123"));
    for (size_t i = 0; i < js_len(rows); i++)
        (void)js_delete(js_at(rows, i), "least_ms");
    js *copy = js_copy(latency); /* the row fits the schema */
    CU_ASSERT(results_add(r, "serving", copy, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(run_read(&run, r, &mem, NULL) == SNAP_OK);
    for (size_t i = 0; i < run.serving.n; i++)
        CU_ASSERT_EQUAL(run.serving.at[i].least_ms.n, 0);
    report_of(r, &before);
    CU_ASSERT_PTR_NULL(strstr(buf_str(&before), "at least"));
    buf_release(&now);
    buf_release(&before);
    arena_release(&mem);
    results_free(r);
}

/* ---- reports and figures ---- */

/* Removes the files of a folder and the folder. */
static int remove_folder(const char *dir) {
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        char *path = fs_join(dir, e->d_name);
        (void)unlink(path);
        free(path);
    }
    if (d)
        (void)closedir(d);
    return rmdir(dir);
}

static void test_views(void) {
    static const char *const files[] = {
        "report.html",           "report.md",         "report.csv",
        "serving.tex",           "tidy-load.csv",     "tidy-latency.csv",
        "tidy-difference.csv",   "tidy-ratio.csv",    "serving-pareto-1.svg",
        "serving-goodput-1.svg", "serving-cdf-1.svg", "serving-cdf-2.svg",
        "serving-course-2.svg"};
    char dir[] = "/tmp/snapmla-serving-XXXXXX";
    results *r = serving_fixture(2);
    report_model *m = NULL;
    buf text = {0};
    unsigned formats;
    snap_err err = {0};
    const char *name = "run.json";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    CU_ASSERT_FATAL(serving_view(r, false, &text, &err) == SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "Servers under load"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "saturated"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "ttft p50"));
    CU_ASSERT_PTR_NULL(strstr(buf_str(&text), "normalised"));
    CU_ASSERT_FATAL(report_model_new(&m, &r, &name, 1, &err) == SNAP_OK);
    CU_ASSERT_FATAL(report_parse_formats("all", &formats, &err) == SNAP_OK);
    CU_ASSERT_FATAL(report_write(m, dir, formats, NULL, &err) == SNAP_OK);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = fs_join(dir, files[i]);
        buf_clear(&text);
        if (fs_read(path, &text, NULL) != SNAP_OK)
            printf("\nno %s", files[i]);
        CU_ASSERT(text.len > 100);
        if (strstr(files[i], ".svg"))
            CU_ASSERT_PTR_NULL(xml_fault(buf_str(&text)));
        free(path);
    }
    CU_ASSERT_EQUAL(remove_folder(dir), 0);
    report_model_free(m);
    results_free(r);
    buf_release(&text);
}

/* ---- gate ---- */

static size_t verdicts(results *before, results *after, const char *verdict) {
    const gate_limits limits = GATE_DEFAULTS;
    js *rows = js_new_array();
    CU_ASSERT_FATAL(gate_check_serving(before, after, &limits, rows, NULL) == SNAP_OK);
    for (size_t i = 0; i < js_len(rows); i++) /* rows fit the schema */
        CU_ASSERT(results_add(after, "verdicts", js_copy(js_at(rows, i)), NULL) == SNAP_OK);
    size_t n = verdict_count(rows, "serving", verdict);
    js_free(rows);
    return n;
}

/* Sets the flags of the rows of kind load. */
static void set_all_flags(const results *r, const char *json) {
    js *rows = results_section(r, "serving");
    for (size_t i = 0; i < js_len(rows); i++)
        if (strcmp(js_get_str(js_at(rows, i), "kind"), "load") == 0)
            set(js_at(rows, i), "flags", json);
}

/* The intervals of such load points are too narrow for any verdict of the gate. */
static void test_gate_of_flagged_rows(void) {
    static const char *const flags[] = {"[\"correlated\"]", "[\"client lag\", \"unsteady\"]"};
    for (size_t i = 0; i < 4; i++) {
        results *a = serving_fixture(2), *slow = serving_fixture(1.2);
        set_all_flags(a, i < 2 ? flags[i] : "[]");
        set_all_flags(slow, i < 2 ? "[]" : flags[i - 2]);
        CU_ASSERT(verdicts(a, slow, "inconclusive") >= 10);
        CU_ASSERT_EQUAL(verdicts(a, slow, "regressed") + verdicts(a, slow, "ok"), 0);
        results_free(a);
        results_free(slow);
    }
}

/* Sets tpot and its interval in all load points, which count four blocks. */
static void count_blocks(const results *r, const char *tpot, const char *ci) {
    js *rows = results_section(r, "serving");
    for (size_t i = 0; i < js_len(rows); i++) {
        js *row = js_at(rows, i);
        const char *kind = js_get_str(row, "kind");
        if (strcmp(kind, "load") == 0) {
            set(row, "flags", "[\"correlated\"]");
            set(row, "units", "\"blocks\"");
            set(row, "blocks", "4");
        }
        if (strcmp(kind, "latency") == 0 && strcmp(js_get_str(row, "metric"), "tpot") == 0) {
            set(row, "p50_ms", tpot);
            set(row, "p50_ms_ci95", ci);
        }
    }
}

/* With whole blocks as units, the gate uses Welch's t test. By hand: with four blocks, each 95 %
 * interval is 2 * 3.1824 standard errors wide, so these are log(10.5 / 9.5) / 6.3649 = 0.015724 and
 * equal, their difference has 0.022238 and 6 degrees of freedom, and t = (log(1.2) - log(1.05)) /
 * 0.022238 = 6.0046. Of Student's t, 0.000480 lies above. */
static void test_gate_of_blocks(void) {
    const gate_limits limits = GATE_DEFAULTS;
    results *a = serving_fixture(2), *b = serving_fixture(2);
    js *rows = js_new_array();
    int seen = 0;
    count_blocks(a, "10", "[9.5, 10.5]");
    count_blocks(b, "12", "[11.4, 12.6]");
    CU_ASSERT_FATAL(gate_check_serving(a, b, &limits, rows, NULL) == SNAP_OK);
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        if (!strstr(js_get_str(row, "name"), "tpot_p50"))
            continue;
        seen++;
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "verdict"), "regressed");
        CU_ASSERT_DOUBLE_EQUAL(js_get_num(row, "p_slower", 1), 0.000480, 2e-5);
    }
    CU_ASSERT(seen >= 1);
    js_free(rows);
    results_free(a);
    results_free(b);
}

static void test_gate(void) {
    results *a = serving_fixture(2), *b = serving_fixture(2), *slow = serving_fixture(1.2);
    CU_ASSERT(verdicts(a, b, "ok") >= 5);
    CU_ASSERT_EQUAL(verdicts(a, b, "regressed"), 0);
    CU_ASSERT(verdicts(a, slow, "regressed") >= 4);
    CU_ASSERT_EQUAL(verdicts(slow, a, "regressed"), 0);
    js *rows = results_section(b, "serving"); /* a load point that is missing */
    for (size_t i = 0; i < js_len(rows); i++)
        CU_ASSERT(js_set_num(js_at(rows, i), "load", 77));
    CU_ASSERT(verdicts(a, b, "missing") >= 10);
    results_free(a);
    results_free(b);
    results_free(slow);
}

/* ---- audit ---- */

static size_t findings(const results *r, const char *requests) {
    verify_findings f = {0};
    snap_err err = {0};
    if (verify_serving(r, requests, &f, &err) != SNAP_OK)
        printf("\n%s", err.text);
    CU_ASSERT_EQUAL(err.code, SNAP_OK);
    CU_ASSERT(f.checks >= 1 && !f.failed);
    size_t n = js_len(f.rows);
    verify_release(&f);
    return n;
}

static void test_audit(void) {
    char path[] = "/tmp/snapmla-requests-XXXXXX";
    sim_log log = {0};
    buf text = {0};
    request_list list = {0};
    snap_err err = {0};
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    (void)close(fd);
    simulate(&log, 1.5);
    for (size_t i = 0; i < log.n; i++)
        request_line_append(&log.at[i], &text);
    CU_ASSERT_FATAL(fs_write_atomic(path, text.data, text.len, &err) == SNAP_OK);
    CU_ASSERT_FATAL(request_lines_read(path, &list, &err) == SNAP_OK);
    results *r = result_of(list.at, list.n);
    CU_ASSERT_EQUAL(findings(r, path), 0);
    js *row = js_at(results_section(r, "serving"), 0);
    CU_ASSERT(js_set_num(row, "output_tok_s", js_get_num(row, "output_tok_s", 0) * 1.01));
    CU_ASSERT_EQUAL(findings(r, path), 1);
    CU_ASSERT(js_set_str(row, "arm", "another"));
    CU_ASSERT(findings(r, path) >= 1);
    results_free(r);
    request_list_release(&list);
    sim_release(&log);
    buf_release(&text);
    (void)unlink(path);
}

/* Lines whose times are not in order would give negative latencies. */
static void test_order_of_times(void) {
    static const struct {
        const char *times, *why; /* NULL: right */
    } cases[] = {
        {"\"due\":1,\"sent\":1,\"first\":1,\"end\":1,\"lag\":9", NULL},
        {"\"due\":1,\"sent\":2,\"lag\":0", NULL},
        {"\"due\":1,\"sent\":2,\"end\":3,\"lag\":0", NULL},
        {"\"due\":1.5,\"sent\":1,\"first\":2,\"end\":3,\"lag\":0", "in this order"},
        {"\"due\":1,\"sent\":2,\"first\":1.5,\"end\":3,\"lag\":0", "in this order"},
        {"\"due\":1,\"sent\":2,\"first\":3,\"end\":2.5,\"lag\":0", "in this order"},
        {"\"due\":1,\"sent\":2,\"end\":1.5,\"lag\":0", "in this order"},
        {"\"due\":1,\"sent\":2", "seconds"},
        {"\"due\":-1,\"sent\":2,\"lag\":0", "seconds"},
        {"\"due\":1,\"sent\":2,\"lag\":0,\"received_lag\":-1", "seconds"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        request_list list = {0};
        snap_err err = {0};
        buf line = {0};
        (void)buf_printf(&line, "{\"arm\":0,\"point\":0,\"block\":0,\"index\":0,\"pieces\":0,%s}",
                         cases[i].times);
        snap_status st = request_lines_parse(line.data, line.len, "requests", &list, &err);
        CU_ASSERT_EQUAL(st, cases[i].why ? SNAP_E_INPUT : SNAP_OK);
        CU_ASSERT(!cases[i].why || strstr(err.text, cases[i].why));
        request_list_release(&list);
        buf_release(&line);
    }
}

/* Files of earlier versions have only one lag, which includes the delay before sending. It then
 * counts as the lag in receiving, too. */
static void test_lags(void) {
    static const struct {
        const char *members;
        double lag_s, received_lag_s;
    } cases[] = {{"\"lag\":0.25", 0.25, 0.25},
                 {"\"lag\":0.25,\"received_lag\":0.125", 0.25, 0.125}};
    for (int i = 0; i < 2; i++) {
        request_list list = {0};
        buf line = {0};
        (void)buf_printf(&line,
                         "{\"arm\":0,\"point\":0,\"block\":0,\"index\":0,\"pieces\":0,"
                         "\"due\":1,\"sent\":2,%s}",
                         cases[i].members);
        for (int again = 0; again < 2; again++) { /* as given, and as written */
            CU_ASSERT_EQUAL_FATAL(request_lines_parse(line.data, line.len, "requests", &list, NULL),
                                  SNAP_OK);
            CU_ASSERT_DOUBLE_EQUAL(list.at[0].lag_s, cases[i].lag_s, 1e-9);
            CU_ASSERT_DOUBLE_EQUAL(list.at[0].received_lag_s, cases[i].received_lag_s, 1e-9);
            buf_clear(&line);
            request_line_append(&list.at[0], &line);
            request_list_release(&list);
        }
        buf_release(&line);
    }
}

CU_TestInfo tests_serving_result[] = {
    {"rows say what holds", test_rows_say_what_holds},
    {"rows of earlier builds", test_rows_of_earlier_builds},
    {"each view has its files", test_views},
    {"the gate finds a slower server", test_gate},
    {"gate of flagged rows", test_gate_of_flagged_rows},
    {"gate of rows that count blocks", test_gate_of_blocks},
    {"verify-run finds changed rows", test_audit},
    {"times that are not in order are refused", test_order_of_times},
    {"the lag in files of earlier versions", test_lags},
    CU_TEST_INFO_NULL};
