/* test_named_arms.c - named arms in reports, in the gate of files and in verify-run: rows with
 * known ratios, and the same rows after a change. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/audit/audit.h"
#include "harness/gate/files.h"
#include "harness/measure/paired_ratio.h"
#include "harness/test/report_fixture.h"
#include "harness/test/report_readers.h"
#include "harness/view/figures.h"
#include "harness/view/model.h"
#include "harness/view/named_arms.h"
#include "harness/view/pages.h"
#include "harness/view/table.h"

enum { SAMPLES = 50, ARMS = 4, CELLS = 2 };
static const char *const kNames[ARMS] = {"base", "fast", "same", "slow"};
static const double kFactor[ARMS] = {1, 0.5, 1, 3};

/* The times of an arm: those of the baseline times a factor, with 1 % of noise of both signs. */
static void fill_samples(double x[SAMPLES], int arm) {
    for (int i = 0; i < SAMPLES; i++)
        x[i] = 1e6 * kFactor[arm] * (1 + 0.01 * ((i * 7 + arm * 3) % 5 - 2) / 2);
}

static void set_numbers(js *perf, const double *x) {
    js *list = js_new_array();
    for (int i = 0; i < SAMPLES; i++)
        CU_ASSERT(js_push_new(list, js_new_num(x[i])));
    CU_ASSERT(js_set_new(perf, "samples_ns", list));
    CU_ASSERT(js_set_int(perf, "count", SAMPLES) && js_set_num(perf, "median_ns", x[0]));
}

static void set_against(js *row, const double *base, const double *x) {
    paired_ratio r;
    CU_ASSERT(paired_ratio_of(base, SAMPLES, x, SAMPLES, &r, NULL) == SNAP_OK);
    js *against = js_new_object(), *interval = js_new_array();
    CU_ASSERT(js_push_new(interval, js_new_num(r.lo)) && js_push_new(interval, js_new_num(r.hi)));
    CU_ASSERT(js_set_str(against, "baseline", kNames[0]) && js_set_num(against, "ratio", r.ratio) &&
              js_set_new(against, "interval", interval));
    CU_ASSERT(js_set_new(row, "against", against));
}

/* Two cells of four arms, made from a row of the fixture. */
static results *make_run(void) {
    results *r, *fixture = fixture_load();
    double base[SAMPLES], x[SAMPLES];
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    js *like = js_at(results_section(fixture, "bench"), 0);
    fill_samples(base, 0);
    for (int i = 0; i < CELLS * ARMS; i++) {
        js *row = js_copy(like);
        snap_err err = {0};
        fill_samples(x, i % ARMS);
        CU_ASSERT(js_set_str(row, "name", kNames[i % ARMS]));
        CU_ASSERT(js_set_str(row, "options", "cpu") && js_set_str(row, "device", "a processor"));
        CU_ASSERT(js_set_int(js_get_object(row, "shape"), "context", 1024 << i / ARMS));
        set_numbers(js_get_object(row, "performance"), x);
        if (i % ARMS)
            set_against(row, base, x);
        CU_ASSERT_EQUAL_FATAL(results_add(r, "bench", row, &err), SNAP_OK);
    }
    results_free(fixture);
    return r;
}

static const char *cell(const table *t, size_t row, const char *head) {
    for (int i = 0; i < t->n_columns; i++)
        if (strcmp(t->columns[i].head, head) == 0)
            return table_at(t, row, i);
    return "no such column";
}

/* ---- report ---- */

static void test_standings(void) {
    results *r = make_run();
    report_model *m = fixture_model(r);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(m->n_named == 1 && m->named->n_arms == ARMS && m->named->n_cells == CELLS);
    CU_ASSERT(m->n_speeds == 0); /* named arms are no pairs of BF16 and FP8 */
    CU_ASSERT(report_table_named_arms(m, &mem, &t) && t.n_rows == ARMS);
    static const struct {
        const char *wins, *ties, *losses;
    } want[ARMS] = {{"–", "–", "–"}, {"2", "0", "0"}, {"0", "2", "0"}, {"0", "0", "2"}};
    for (size_t i = 0; i < ARMS; i++) {
        CU_ASSERT_STRING_EQUAL(cell(&t, i, "arm"), kNames[i]);
        CU_ASSERT_STRING_EQUAL(cell(&t, i, "wins"), want[i].wins);
        CU_ASSERT_STRING_EQUAL(cell(&t, i, "ties"), want[i].ties);
        CU_ASSERT_STRING_EQUAL(cell(&t, i, "losses"), want[i].losses);
    }
    CU_ASSERT_STRING_EQUAL(cell(&t, 1, "speed-up"), "2.00×");
    CU_ASSERT(report_table_named_cells(m, &mem, &t) && t.n_rows == CELLS * ARMS);
    CU_ASSERT_STRING_EQUAL(cell(&t, 7, "speed-up"), "0.33×");
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

static void test_heat_map(void) {
    results *r = make_run();
    js *rows = results_section(r, "bench");
    CU_ASSERT(js_set_str(js_at(rows, 1), "status", "failed") &&
              js_set_str(js_at(rows, 1), "reason", kEvil) &&
              js_set_new(js_at(rows, 1), "performance", js_new_null()) &&
              js_delete(js_at(rows, 1), "against"));
    report_model *m = fixture_model(r);
    buf out = {0};
    CU_ASSERT(figure_named_arms(m, 0, true, &out));
    expect_xml(buf_str(&out));
    /* The ratios of the two cells, of which the first has no time of the arm "fast", and those of
     * the legend. 2.00: base and fast once, legend once. 0.33: base and slow twice, same and slow
     * twice. 0.17: fast and slow once. 0.50: fast and same once, legend once. */
    CU_ASSERT(count_of(buf_str(&out), ">2.00<") == 2 && count_of(buf_str(&out), ">0.33<") == 4);
    CU_ASSERT(count_of(buf_str(&out), ">0.17<") == 1 && count_of(buf_str(&out), ">0.50<") == 2);
    CU_ASSERT(count_of(buf_str(&out), ">failed<") == 3); /* three pairs have the failed arm */
    CU_ASSERT(!figure_named_arms(m, 1, true, &out));
    expect_well_formed(m);
    buf_release(&out);
    report_model_free(m);
    results_free(r);
}

/* Each pair is compared by its own samples. They have a known factor and 1 % of noise. */
static void test_pairs(void) {
    results *r = make_run();
    report_model *m = fixture_model(r);
    arena mem = {0};
    table t;
    double x[2][SAMPLES];
    size_t row = 0;
    CU_ASSERT_FATAL(m->named->n_pairs == CELLS * ARMS * (ARMS - 1) / 2);
    CU_ASSERT(report_table_named_pairs(m, &mem, &t) && t.n_rows == ARMS * (ARMS - 1) / 2);
    for (int a = 0; a < ARMS; a++)
        for (int b = a + 1; b < ARMS; b++, row++) {
            double factor = kFactor[a] / kFactor[b];
            const named_pair *p = named_arms_pair(m->named, 1, a, b);
            paired_ratio want;
            char ratio[32];
            fill_samples(x[0], a);
            fill_samples(x[1], b);
            CU_ASSERT(paired_ratio_of(x[0], SAMPLES, x[1], SAMPLES, &want, NULL) == SNAP_OK);
            CU_ASSERT_FATAL(p != NULL);
            CU_ASSERT(p->gain.ratio == want.ratio && p->gain.lo == want.lo &&
                      p->gain.hi == want.hi);
            CU_ASSERT(fabs(p->gain.ratio / factor - 1) < 0.02);
            (void)snprintf(ratio, sizeof ratio, "%.2f×", factor);
            CU_ASSERT_STRING_EQUAL(cell(&t, row, "A"), kNames[a]);
            CU_ASSERT_STRING_EQUAL(cell(&t, row, "B"), kNames[b]);
            CU_ASSERT_STRING_EQUAL(cell(&t, row, "cells"), "2");
            CU_ASSERT_STRING_EQUAL(cell(&t, row, "A faster"), factor < 1 ? "2" : "0");
            CU_ASSERT_STRING_EQUAL(cell(&t, row, "B faster"), factor > 1 ? "2" : "0");
            CU_ASSERT_STRING_EQUAL(cell(&t, row, "undecided"), factor == 1 ? "2" : "0");
            CU_ASSERT_STRING_EQUAL(cell(&t, row, "speed-up of B over A"), ratio);
        }
    CU_ASSERT(!named_arms_pair(m->named, CELLS, 0, 1));
    CU_ASSERT(report_table_named_pair_cells(m, &mem, &t) && t.n_rows == 3 * CELLS);
    CU_ASSERT_STRING_EQUAL(cell(&t, 0, "A"),
                           "fast"); /* the first cell: rows of "fast", then of "same" */
    CU_ASSERT_STRING_EQUAL(cell(&t, 0, "result"), "A faster");
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

/* An arm without a time is in no pair. Sustained loops run at different moments, so they have a
 * ratio and no interval. */
static void test_pairs_without_times(void) {
    results *r = make_run();
    js *rows = results_section(r, "bench"), *gone = js_at(rows, 2);
    CU_ASSERT(js_set_str(gone, "status", "error") && js_set_str(gone, "reason", "none") &&
              js_set_new(gone, "performance", js_new_null()) && js_delete(gone, "against"));
    for (size_t i = ARMS; i < js_len(rows); i++)
        CU_ASSERT(js_set_str(js_at(rows, i), "mode", "sustained"));
    report_model *m = fixture_model(r);
    CU_ASSERT(named_arms_pair(m->named, 0, 1, 3) && !named_arms_pair(m->named, 0, 1, 2) &&
              !named_arms_pair(m->named, 0, 0, 2));
    const named_pair *p = named_arms_pair(m->named, 1, 1, 3);
    CU_ASSERT_FATAL(p != NULL);
    CU_ASSERT(named_pair_outcome(p) == NAMED_UNKNOWN && fabs(p->gain.ratio * 6 - 1) < 0.02);
    report_model_free(m);
    results_free(r);
}

/* Markdown has the tables, and the CSV file has a row for each pair and cell. */
static void test_pairs_in_files(void) {
    results *r = make_run();
    report_model *m = fixture_model(r);
    buf out = {0};
    report_markdown(m, &out);
    CU_ASSERT(strstr(buf_str(&out), "| fast | slow | 2 | 2 | 0 | 0 | 0 | 0.17× |") != NULL);
    CU_ASSERT(count_of(buf_str(&out), "| A faster |") ==
              3 * CELLS + /* plus one in the header of the table */ 1);
    buf_clear(&out);
    write_csv_section(m, "versus", &out);
    CU_ASSERT(count_of(buf_str(&out), "\r\n") == 1 + m->named->n_pairs);
    CU_ASSERT(strstr(buf_str(&out), ",slow,") && strstr(buf_str(&out), "against_lo"));
    buf_release(&out);
    report_model_free(m);
    results_free(r);
}

/* A run without named arms has neither their heat map nor their table. */
static void test_runs_without_pairs(void) {
    results *r = fixture_load();
    report_model *m = fixture_model(r);
    arena mem = {0};
    buf out = {0};
    table t;
    CU_ASSERT(m->n_named == 0 && !figure_named_arms(m, 0, false, &out));
    CU_ASSERT(report_table_named_arms(m, &mem, &t) && t.n_rows == 0);
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

/* ---- gate check ---- */

static size_t count_verdicts(const js *rows, const char *verdict) {
    size_t n = 0;
    for (size_t i = 0; i < js_len(rows); i++) {
        const char *kind = js_get_str(js_at(rows, i), "kind");
        const char *v = js_get_str(js_at(rows, i), "verdict");
        n += strcmp(kind, "speed") == 0 && strcmp(v, verdict) == 0;
    }
    return n;
}

/* Arms are compared by name, so a renamed arm is missing. */
static void test_gate(void) {
    gate_file_options opt = {.limits = GATE_DEFAULTS, .any_machine = true};
    results *a = make_run(), *b = make_run();
    js *same = js_new_array(), *renamed = js_new_array();
    CU_ASSERT(gate_check_speed(a, b, &opt, same, NULL) == SNAP_OK);
    CU_ASSERT(count_verdicts(same, "missing") == 0);
    CU_ASSERT(js_set_str(js_at(results_section(b, "bench"), 2), "name", "other"));
    CU_ASSERT(gate_check_speed(a, b, &opt, renamed, NULL) == SNAP_OK);
    CU_ASSERT(count_verdicts(renamed, "missing") == 1);
    js_free(same);
    js_free(renamed);
    results_free(a);
    results_free(b);
}

/* ---- verify-run ---- */

static size_t count_findings(const results *r, const char *says) {
    arena mem = {0};
    run_record run;
    verify_findings f = {0};
    size_t n = 0;
    CU_ASSERT_FATAL(run_read(&run, r, &mem, NULL) == SNAP_OK);
    verify_bench(&run, &f);
    for (size_t i = 0; i < js_len(f.rows); i++)
        n += strstr(js_get_str(js_at(f.rows, i), "what"), says) != NULL;
    verify_release(&f);
    arena_release(&mem);
    return n;
}

static void test_verify(void) {
    results *r = make_run();
    js *row = js_at(results_section(r, "bench"), 1), *against = js_get_object(row, "against");
    CU_ASSERT(count_findings(r, "the ratio to") == 0);
    CU_ASSERT(js_set_num(against, "ratio", 2.5));
    CU_ASSERT(count_findings(r, "the ratio to 'base' is 2.5") == 1);
    CU_ASSERT(js_set_str(against, "baseline", "nobody"));
    CU_ASSERT(count_findings(r, "its baseline 'nobody' has no time") == 1);
    CU_ASSERT(js_set_str(against, "baseline", "base") && js_set_str(row, "cold", "none"));
    CU_ASSERT(count_findings(r, "differ in cold") == 1);
    results_free(r);
}

CU_TestInfo tests_named_arms[] = {
    {"wins, ties and losses of named arms", test_standings},
    {"the heat map of named arms", test_heat_map},
    {"each two arms are compared by their samples", test_pairs},
    {"pairs without times or intervals", test_pairs_without_times},
    {"pairs in Markdown and CSV", test_pairs_in_files},
    {"a report without named arms", test_runs_without_pairs},
    {"gate check compares arms of equal name", test_gate},
    {"verify-run computes the ratios again", test_verify},
    CU_TEST_INFO_NULL,
};
