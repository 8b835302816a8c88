/* Compares the paper's table of servers under load with rows whose numbers are known. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "harness/record/run.h"
#include "harness/view/outline.h"
#include "harness/view/paper.h"
#include "harness/view/report.h"

static void add(results *r, const serving_record *row) {
    snap_err err = {0};
    if (results_add(r, "serving", record_write(&serving_type, row), &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
}

static serving_record row_of(const char *kind, const char *loop, const char *arm, int point) {
    serving_record r = serving_record_new(kind);
    r.loop = loop;
    r.arm = arm;
    r.point = point;
    r.load = 16 << point;
    return r;
}

static void add_load(results *r, const char *loop, const char *arm, int point, double prompt,
                     double tokens_s) {
    serving_record row = row_of("load", loop, arm, point);
    row.endpoint = row.model = row.precision = row.workload = "";
    row.state = "";
    row.blocks = row.requests = row.answered = row.failed = row.cut = row.cohort = row.slices = 0;
    row.prompt_tokens_mean = prompt;
    row.completion_tokens_mean = 512;
    row.output_tok_s = tokens_s;
    add(r, &row);
}

static void add_difference(results *r, const char *loop, const char *metric, int point,
                           double ratio) {
    serving_record row = row_of("difference", loop, "fp8", point);
    row.baseline = "bf16";
    row.metric = metric;
    row.ratio = ratio;
    row.ratio_ci95[0] = ratio - 0.1;
    row.ratio_ci95[1] = ratio + 0.1;
    row.margin_pct = 5;
    row.verdict = "faster";
    add(r, &row);
}

static void add_knee(results *r, const char *arm, double lo, double hi) {
    serving_record row = row_of("knee", "open", arm, 0);
    row.knee_lo = lo;
    row.knee_hi = hi;
    add(r, &row);
}

/* The rows of two loads of a closed loop or, if not @closed, of two loads of an open loop with
 * knees and their ratio. */
static results *runs(bool closed) {
    results *r;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench serving", NULL, 1, NULL), SNAP_OK);
    const char *loop = closed ? "closed" : "open";
    for (int p = 0; p < 2; p++) {
        add_load(r, loop, "bf16", p, 8192.4, 1000 + 100 * p);
        add_load(r, loop, "fp8", p, 8192.4, 1500 + 100 * p);
        add_difference(r, loop, "output_tok_s", p, 1.5);
        add_difference(r, loop, "ttft_p50", p, 0.7);
    }
    if (closed)
        return r;
    add_knee(r, "bf16", 8, 9.5);
    add_knee(r, "fp8", 12, NAN);
    serving_record row = row_of("ratio", "open", "fp8", 0);
    row.baseline = "bf16";
    row.ratio = NAN;
    row.ratio_lo = 12 / 9.5;
    row.ratio_hi = NAN;
    row.quality = "";
    row.headline = "fp8 serves at least 1.26x the requests";
    add(r, &row);
    return r;
}

static const char *cell(const table *t, size_t row, const char *head) {
    for (int c = 0; c < t->n_columns; c++)
        if (strcmp(t->columns[c].head, head) == 0)
            return table_at(t, row, c);
    return "no such column";
}

/* Closed loops show their throughput. An open loop shows its knees, and not its throughput, which
 * is what arrived. */
static void test_rows(void) {
    static const char *const names[] = {"closed-8192/run.json", "knee-8192/run.json"};
    static const char *const wanted[3][7] = {
        {"8192", "16 at a time", "1000", "1500", "1.50×", "[1.40, 1.60]", "faster"},
        {"8192", "32 at a time", "1100", "1600", "1.50×", "[1.40, 1.60]", "faster"},
        {"8192", "highest within targets", "8.00 to 9.50", "12.0 to ?", "–", "1.26 to ?", "faster"},
    };
    static const char *const heads[] = {"input tokens", "load",     "baseline", "arm",
                                        "ratio",        "interval", "verdict"};
    results *both[2] = {runs(true), runs(false)};
    report_model *m = NULL;
    arena mem = {0};
    table t;
    CU_ASSERT_EQUAL_FATAL(report_model_new(&m, both, names, 2, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(report_paper(m, NULL), SNAP_OK);
    CU_ASSERT_TRUE_FATAL(report_table_paper_serving(m, &mem, &t));
    CU_ASSERT_EQUAL_FATAL(t.n_rows, 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 7; k++)
            CU_ASSERT_STRING_EQUAL(cell(&t, i, heads[k]), wanted[i][k]);
    buf page = {0};
    report_markdown(m, &page);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&page), "highest within targets"));
    buf_release(&page);
    arena_release(&mem);
    report_model_free(m);
    results_free(both[0]);
    results_free(both[1]);
}

/* If the row of a ratio names a flag as its `reason`, the table shows "inconclusive" and the
 * flag. */
static void test_doubtful_ratio(void) {
    const char *name = "knee-8192/run.json";
    results *r = runs(false);
    report_model *m = NULL;
    arena mem = {0};
    table t;
    js *rows = results_section(r, "serving");
    CU_ASSERT(js_set_str(js_at(rows, js_len(rows) - 1), "reason", "correlated"));
    CU_ASSERT_EQUAL_FATAL(report_model_new(&m, &r, &name, 1, NULL), SNAP_OK);
    CU_ASSERT_TRUE_FATAL(report_table_paper_serving(m, &mem, &t));
    CU_ASSERT_EQUAL_FATAL(t.n_rows, 1);
    CU_ASSERT_STRING_EQUAL(cell(&t, 0, "verdict"), "inconclusive");
    CU_ASSERT_STRING_EQUAL(cell(&t, 0, "reason"), "correlated");
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

CU_TestInfo tests_paper_serving[] = {
    {"throughput of closed loops and knees", test_rows},
    {"a ratio with a reason is inconclusive", test_doubtful_ratio},
    CU_TEST_INFO_NULL,
};
