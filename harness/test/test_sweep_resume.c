/* Tests that a sweep which was interrupted continues and does not measure finished rows again. */
#include <CUnit/CUnit.h>
#include <signal.h>

#include "harness/test/fake_backend.h"

typedef struct {
    js *kept; /* object: key -> row */
    volatile sig_atomic_t cancel;
    int cancel_after; /* number of rows after which the run is cancelled; 0 = never */
} diary;

static const js *diary_find(void *ctx, const char *key) {
    return js_get(((diary *)ctx)->kept, key);
}

static snap_status diary_keep(void *ctx, const char *key, const js *row, snap_err *err) {
    diary *d = ctx;
    (void)err;
    CU_ASSERT(js_get(d->kept, key) == NULL);
    CU_ASSERT(js_set_new(d->kept, key, js_copy(row)));
    d->cancel = d->cancel_after && --d->cancel_after == 0;
    return SNAP_OK;
}

/* @arms: named arms; NULL: those of the grid */
static snap_status sweep_arms_with(diary *d, mla_backend *be, const bench_grid *g,
                                   const sweep_arm *arms, int n_arms, js *rows) {
    sweep_options opt = fake_options(be, g);
    opt.arms = arms;
    opt.n_arms = n_arms;
    opt.ctx = d;
    opt.find = diary_find;
    opt.keep = diary_keep;
    opt.cancel = &d->cancel;
    return sweep_run(&opt, rows, NULL);
}

static snap_status sweep_with(diary *d, mla_backend *be, const bench_grid *g, js *rows) {
    return sweep_arms_with(d, be, g, NULL, 0, rows);
}

static void test_resume(void) {
    mla_backend *be = fake_open();
    bench_grid g = fake_grid(fake_tiny);
    diary d = {.kept = js_new_object(), .cancel_after = 6};
    js *first = js_new_array(), *second = js_new_array(), *third = js_new_array();
    CU_ASSERT(sweep_with(&d, be, &g, first) == SNAP_E_CANCELLED);
    CU_ASSERT(js_len(first) == 6);
    d.cancel = 0;
    CU_ASSERT(sweep_with(&d, be, &g, second) == SNAP_OK);
    CU_ASSERT((int)js_len(second) == sweep_count(&g));
    for (size_t i = 0; i < 6; i++)
        CU_ASSERT(js_equal(js_at(first, i), js_at(second, i)));
    fake_faults.runs = 0;
    CU_ASSERT(sweep_with(&d, be, &g, third) == SNAP_OK);
    CU_ASSERT(fake_faults.runs == 0);
    CU_ASSERT(js_equal(second, third));
    js_free(first);
    js_free(second);
    js_free(third);
    js_free(d.kept);
    fake_close(be);
}

/* Runs a sweep twice. The second time, all rows are taken over: no arm runs, and the rows are equal
 * to those of the first time. */
static void expect_taken_over(mla_backend *be, const bench_grid *g, const sweep_arm *arms,
                              int n_arms) {
    diary d = {.kept = js_new_object()};
    js *first = js_new_array(), *second = js_new_array();
    CU_ASSERT(sweep_arms_with(&d, be, g, arms, n_arms, first) == SNAP_OK);
    CU_ASSERT(js_len(first) > 0 && fake_faults.runs > 0);
    fake_faults.runs = 0;
    CU_ASSERT(sweep_arms_with(&d, be, g, arms, n_arms, second) == SNAP_OK);
    CU_ASSERT(fake_faults.runs == 0);
    CU_ASSERT(js_equal(first, second));
    js_free(first);
    js_free(second);
    js_free(d.kept);
}

/* The backend has no ablation, so these arms are skipped. */
static void test_resume_with_skipped_arms(void) {
    bench_grid_text t = fake_tiny;
    t.heads = "5", t.s_q = "1", t.context = "70", t.ablation = true;
    mla_backend *be = fake_open();
    bench_grid g = fake_grid(t);
    expect_taken_over(be, &g, NULL, 0);
    fake_close(be);
}

static void test_resume_without_an_arm(void) {
    mla_backend *be = fake_open();
    bench_grid g = fake_one_shape();
    const sweep_arm arms[] = {
        {.name = "a", .options = "cpu", .kind = BENCH_BF16, .backend = be},
        {.name = "b", .options = "gone", .why = {.code = SNAP_E_ENV, .text = "it is gone"}},
    };
    expect_taken_over(be, &g, arms, 2);
    fake_close(be);
}

CU_TestInfo tests_sweep_resume[] = {
    {"a sweep can be resumed", test_resume},
    {"a sweep with skipped arms can be resumed", test_resume_with_skipped_arms},
    {"a sweep without one of its arms can be resumed", test_resume_without_an_arm},
    CU_TEST_INFO_NULL,
};
