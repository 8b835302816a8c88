/* Tests the verdicts about predicted accuracies on rows whose figures are chosen. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "harness/gate/forecast_gate.h"
#include "harness/gate/verdicts.h"
#include "harness/record/model_record.h"

enum { kProblems = 31 };
/* From a table of Student's t distribution with 30 degrees of freedom: the quantile 0.95. */
static const double kT95 = 1.6973;

static const char sha_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char sha_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/* A row of "fp8" with a loss of @loss points. Its covariances are those of a format that is equal
 * on average, plus noise from @seed with the standard deviation @spread. */
static model_record make_row(double loss, double se, double spread, uint64_t seed,
                             double seen[kProblems]) {
    rng common = rng_make(1, 1), own = rng_make(seed, 2);
    double mean = 0;
    for (int i = 0; i < kProblems; i++) {
        seen[i] = 5 * rng_normal(&common) + spread * rng_normal(&own);
        mean += seen[i] / kProblems;
    }
    for (int i = 0; i < kProblems; i++)
        seen[i] -= mean + loss;
    model_record row = model_record_new("forecast");
    row.model = "m";
    row.origin = "measured";
    row.checkpoint_sha256 = row.data_sha256 = sha_a;
    row.precision = "fp8";
    row.reference = "bf16";
    row.task = "t";
    row.problems = kProblems;
    row.answers = 4 * kProblems;
    row.mixed_problems = 10;
    row.temperature = row.top_p = 1;
    row.accuracy_pct = 50;
    row.kl_answer = 0.1;
    row.diverged_pct = 12;
    row.unseen_pct = 0;
    row.delta_pp = -loss;
    row.se_pp = se;
    row.assumed_se_pp = 0;
    row.ci95_pp[0] = -loss - 2 * se;
    row.ci95_pp[1] = -loss + 2 * se;
    row.seen_pp = (record_numbers){seen, kProblems};
    return row;
}

static results *file_of(const model_record *rows, size_t n) {
    results *r = NULL;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "fidelity", NULL, 0, NULL), SNAP_OK);
    for (size_t i = 0; i < n; i++)
        CU_ASSERT_EQUAL(results_add(r, "model_fidelity", record_write(&model_type, &rows[i]), NULL),
                        SNAP_OK);
    return r;
}

static const gate_forecast_options options = {.alpha = 0.05, .margin = 2};

/* The rows of verdicts, owned by the caller, and the status of the gate. */
static js *check(const model_record *before, const model_record *now, size_t n,
                 snap_status *status) {
    results *a = before ? file_of(before, 1) : NULL, *b = file_of(now, n), *out = NULL;
    js *rows = js_new_array();
    CU_ASSERT_EQUAL_FATAL(gate_check_forecasts(a, b, &options, rows, NULL), SNAP_OK);
    *status = verdict_status(rows, NULL);
    CU_ASSERT_EQUAL_FATAL(results_new(&out, "gate", NULL, 0, NULL), SNAP_OK);
    snap_err err = {0};
    CU_ASSERT_EQUAL(results_add_all(out, "verdicts", js_copy(rows), &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(err.text, ""); /* the rows follow the schema */
    results_free(out);
    results_free(a);
    results_free(b);
    return rows;
}

static bool says(const js *rows, size_t i, const char *verdict, const char *reason) {
    return strcmp(js_get_str(js_at(rows, i), "verdict"), verdict) == 0 &&
           strstr(js_get_str(js_at(rows, i), "reason"), reason) != NULL;
}

/* One row of the current file, without a baseline. */
static bool judged(const model_record *row, snap_status status, const char *verdict,
                   const char *reason) {
    snap_status st;
    js *rows = check(NULL, row, 1, &st);
    bool right = js_len(rows) == 1 && st == status && says(rows, 0, verdict, reason);
    if (!right)
        (void)printf("%s: %s\n", js_get_str(js_at(rows, 0), "verdict"),
                     js_get_str(js_at(rows, 0), "reason"));
    js_free(rows);
    return right;
}

static void test_quantiles(void) {
    double seen[kProblems];
    model_record row = make_row(2 + 1.01 * kT95, 1, 0, 1, seen);
    CU_ASSERT(judged(&row, SNAP_E_WORSE, "regressed", "P(loss > 2 pp) = 0.952"));
    row.delta_pp = -2 - 0.99 * kT95;
    CU_ASSERT(judged(&row, SNAP_E_OPEN, "inconclusive", "problems decide"));
    row.delta_pp = -2 + 0.99 * kT95;
    CU_ASSERT(judged(&row, SNAP_E_OPEN, "inconclusive", "problems decide"));
    row.delta_pp = -2 + 1.01 * kT95;
    CU_ASSERT(judged(&row, SNAP_OK, "ok", "P(loss > 2 pp) = 0.048"));
    row.delta_pp = 3;
    CU_ASSERT(judged(&row, SNAP_OK, "ok", "P(loss > 2 pp)"));
}

static void test_figures(void) {
    double seen[kProblems];
    snap_status st;
    model_record row = make_row(6, 1, 0, 1, seen);
    js *rows = check(NULL, &row, 1, &st);
    const js *v = js_at(rows, 0), *ci = js_get_array(v, "ci90");
    CU_ASSERT_STRING_EQUAL(js_get_str(v, "name"), "t: fp8 against bf16");
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(v, "delta_pp", 0), -6, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(v, "margin_pp", 0), 2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(js_num(js_at(ci, 0)), -6 - kT95, 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(js_num(js_at(ci, 1)), -6 + kT95, 1e-3);
    /* from a table: P(t > 3.646) = 0.0005 */
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(v, "p_loss", 0), 0.9998, 2e-4);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(v, "p_holm", 0), 1 - js_get_num(v, "p_loss", 0), 1e-9);
    js_free(rows);
    /* the reference is right in 50 % of the answers, so no loss exceeds 50 points */
    row.delta_pp = -49;
    rows = check(NULL, &row, 1, &st);
    ci = js_get_array(js_at(rows, 0), "ci90");
    CU_ASSERT_DOUBLE_EQUAL(js_num(js_at(ci, 0)), -50, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(js_num(js_at(ci, 1)), -49 + kT95, 1e-3);
    js_free(rows);
}

/* Two losses with p-values of 3 % each are no evidence at a level of 5 %. */
static void test_holm(void) {
    double seen[2][kProblems];
    const double t97 = 1.950; /* quantile 0.97 */
    snap_status st;
    model_record row[2] = {make_row(2 + t97, 1, 0, 1, seen[0]),
                           make_row(2 + t97, 1, 0, 1, seen[1])};
    row[1].precision = "A";
    CU_ASSERT(judged(&row[0], SNAP_E_WORSE, "regressed", "0.97"));
    js *rows = check(NULL, row, 2, &st);
    CU_ASSERT_EQUAL(st, SNAP_E_OPEN);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(js_at(rows, 0), "p_holm", 0), 0.06, 2e-3);
    js_free(rows);
}

static void test_no_decision(void) {
    double seen[kProblems];
    model_record row = make_row(0, 0.1, 0, 1, seen);
    CU_ASSERT(judged(&row, SNAP_OK, "ok", "P(loss"));
    row.diverged_pct = 31;
    CU_ASSERT(judged(&row, SNAP_E_OPEN, "inconclusive", "31 % of the answers diverge"));
    row.diverged_pct = 12;
    row.accuracy_pct = 1.5;
    CU_ASSERT(judged(&row, SNAP_E_OPEN, "inconclusive", "1.5 % right"));
    row.accuracy_pct = 50;
    row.mixed_problems = 9;
    CU_ASSERT(judged(&row, SNAP_E_OPEN, "inconclusive", "only 9 problems"));
    row.diverged_pct = 1.9; /* the loss cannot be larger than this */
    CU_ASSERT(judged(&row, SNAP_OK, "ok", "P(loss"));
    row.se_pp = row.assumed_se_pp = (double)NAN;
    CU_ASSERT(judged(&row, SNAP_E_OPEN, "inconclusive", "there is no interval"));
    row.delta_pp = (double)NAN;
    CU_ASSERT(judged(&row, SNAP_E_OPEN, "inconclusive", "more than half"));
    row.seen_pp.n = kProblems - 1;
    CU_ASSERT(judged(&row, SNAP_E_ENV, "invalid", "31 problems and 30 covariances"));
    row.seen_pp.n = 0;
    CU_ASSERT(judged(&row, SNAP_E_ENV, "invalid", "an older version"));
    row = make_row(0.1, 0.1, 0, 1, seen); /* greedy answers */
    row.answers = kProblems;
    row.mixed_problems = 0;
    row.diverged_pct = 3;
    CU_ASSERT(judged(&row, SNAP_E_OPEN, "inconclusive", "greedy answers"));
    row.diverged_pct = 1;
    CU_ASSERT(judged(&row, SNAP_OK, "ok", "P(loss"));
    /* The uncertainty from unseen answers does not shrink with more problems. */
    row = make_row(1.5, 1, 0, 1, seen);
    row.assumed_se_pp = 0.9;
    CU_ASSERT(judged(&row, SNAP_E_OPEN, "inconclusive", "too near to the margin"));
}

/* ---- two files ---- */

/* Whether the comparison of the two files gives this verdict and this reason. The second row of the
 * result has them. */
static bool compared(const model_record *a, const model_record *b, const char *verdict,
                     const char *reason) {
    snap_status st;
    js *rows = check(a, b, 1, &st);
    bool right = js_len(rows) == 2 && says(rows, 1, verdict, reason);
    if (!right)
        (void)printf("%s: %s\n", js_get_str(js_at(rows, 1), "verdict"),
                     js_get_str(js_at(rows, 1), "reason"));
    js_free(rows);
    return right;
}

/* The standard error of the mean covariance. */
static double seen_se(const model_record *row) {
    double square = 0;
    for (int i = 0; i < kProblems; i++)
        square += pow(row->seen_pp.at[i] - row->delta_pp, 2);
    return sqrt(square / kProblems / (kProblems - 1));
}

/* The prediction of either file spans the margin. Their difference does not. */
static void test_paired(void) {
    double x[kProblems], y[kProblems];
    model_record before = make_row(1, 1, 0.1, 1, x), same = make_row(1.1, 1, 0.1, 2, y);
    CU_ASSERT(judged(&before, SNAP_E_OPEN, "inconclusive", ""));
    before.se_pp = seen_se(&before);
    same.se_pp = seen_se(&same);
    CU_ASSERT(compared(&before, &same, "ok", "P(loss > 2 pp)"));
    model_record worse = make_row(4, 1, 0.1, 2, y);
    worse.se_pp = seen_se(&worse);
    CU_ASSERT(compared(&before, &worse, "regressed", "P(loss > 2 pp)"));
    CU_ASSERT(compared(&worse, &before, "ok", "P(loss > 2 pp) < 0.001"));
    /* The standard error of `worse` now exceeds what its covariances explain. This part counts for
     * each file on its own: the difference between paired problems does not contain it. */
    worse.se_pp = hypot(worse.se_pp, 3);
    CU_ASSERT(compared(&before, &worse, "inconclusive", "P(loss > 2 pp)"));
}

static void test_same_build(void) {
    double x[kProblems];
    model_record row = make_row(5, 8, 1, 1, x);
    row.diverged_pct = 60;
    CU_ASSERT(compared(&row, &row, "ok", "P(loss > 2 pp) < 0.001"));
}

static void test_incomparable(void) {
    double x[kProblems], y[kProblems];
    snap_status st;
    const model_record a = make_row(1, 1, 0.1, 1, x);
    model_record b = make_row(1, 1, 0.1, 2, y);
    b.data_sha256 = sha_b;
    CU_ASSERT(compared(&a, &b, "invalid", "the problems differ"));
    b.data_sha256 = sha_a;
    b.checkpoint_sha256 = sha_b;
    CU_ASSERT(compared(&a, &b, "invalid", "the checkpoints differ"));
    b.checkpoint_sha256 = sha_a;
    b.answers = 8 * kProblems;
    CU_ASSERT(compared(&a, &b, "invalid", "the numbers of answers differ"));
    b.answers = a.answers;
    b.temperature = 0.5;
    CU_ASSERT(compared(&a, &b, "invalid", "the sampling differs"));
    b.temperature = 1;
    b.precision = "A";
    js *rows = check(&a, &b, 1, &st);
    CU_ASSERT(says(rows, 1, "missing", "does not have it"));
    js_free(rows);
    /* the current file has two checkpoints: the one that the baseline has is compared */
    model_record two[2] = {b, b};
    two[0].precision = two[1].precision = "fp8";
    two[0].checkpoint_sha256 = sha_b;
    rows = check(&a, two, 2, &st);
    CU_ASSERT_EQUAL_FATAL(js_len(rows), 3);
    CU_ASSERT(says(rows, 2, "ok", "P(loss"));
    js_free(rows);
}

CU_TestInfo tests_gate_forecasts[] = {
    {"verdicts change at the quantiles of Student's t", test_quantiles},
    {"figures of a row", test_figures},
    {"Holm's correction over formats", test_holm},
    {"when nothing can be decided", test_no_decision},
    {"two files: pairs of problems", test_paired},
    {"two files of the same build", test_same_build},
    {"two files that cannot be compared", test_incomparable},
    CU_TEST_INFO_NULL,
};
