/* Tests the error of formats against FP64, for formats of the cache and of the backend. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "harness/bench/fidelity.h"
#include "harness/test/bench_rows.h"
#include "harness/test/fake_backend.h"

typedef struct {
    js *rows;
} collected;

static snap_status collect(void *ctx, const fidelity_record *row, snap_err *err) {
    (void)err;
    js *rows = ((collected *)ctx)->rows;
    return js_push_new(rows, record_write(&fidelity_type, row)) ? SNAP_OK : SNAP_E_NOMEM;
}

static double figure(const js *rows, const char *config, const char *source, const char *key) {
    for (size_t i = 0; i < js_len(rows); i++)
        if (row_is(js_at(rows, i), "config", config) && row_is(js_at(rows, i), "source", source))
            return js_get_num(js_at(rows, i), key, (double)NAN);
    return (double)NAN;
}

/* With RoPE outliers, snapmla has a larger error than bf16 and noPV, and less than half of the
 * error of A. The backend's error is close to that of its format's oracle. */
static void test_fidelity(void) {
    mla_backend *be = fake_open();
    fidelity_options opt = {
        .heads = 8, .d_c = 512, .d_r = 64, .seed = 1, .backend = be, .threads = 2};
    collected c = {.rows = js_new_array()};
    CU_ASSERT_FATAL(fidelity_parse(&opt, "bf16,snapmla,A,B,C,D,E,F,noPV", "mla", "500", NULL) ==
                    SNAP_OK);
    CU_ASSERT(fidelity_run(&opt, collect, &c, NULL) == SNAP_OK);
    CU_ASSERT((int)js_len(c.rows) == fidelity_count(&opt) && js_len(c.rows) == 11);
    double bf16 = figure(c.rows, "bf16", "reference", "rel_l2");
    double snapmla = figure(c.rows, "snapmla", "reference", "rel_l2");
    CU_ASSERT(bf16 > 0 && bf16 < 5e-3);
    CU_ASSERT(snapmla > bf16);
    CU_ASSERT(figure(c.rows, "A", "reference", "rel_l2") > 2 * snapmla);
    CU_ASSERT(figure(c.rows, "noPV", "reference", "rel_l2") < snapmla);
    CU_ASSERT_DOUBLE_EQUAL(figure(c.rows, "bf16", "cpu", "rel_l2"), bf16, 2.5e-3);
    CU_ASSERT_DOUBLE_EQUAL(figure(c.rows, "snapmla", "cpu", "rel_l2"), snapmla, 0.1 * snapmla);
    js_free(c.rows);
    fidelity_release(&opt);
    fake_close(be);
}

/* The fewer bits a format has, the larger its error. Tokens at the end that do not fill a group of
 * 32 stay exact: with 31 tokens, kivi2 is bf16. */
static void test_fidelity_of_coded_formats(void) {
    fidelity_options opt = {.heads = 8, .d_c = 512, .d_r = 64, .seed = 1, .threads = 1};
    collected many = {.rows = js_new_array()}, few = {.rows = js_new_array()};
    CU_ASSERT_FATAL(fidelity_parse(&opt,
                                   "bf16,residual,turboquant4,turboquant3,turboquant2,kivi4,kivi2,"
                                   "kvquant4,kvquant3,kvquant2,int8",
                                   "normal", "320", NULL) == SNAP_OK);
    CU_ASSERT(fidelity_run(&opt, collect, &many, NULL) == SNAP_OK);
    CU_ASSERT((int)js_len(many.rows) == fidelity_count(&opt) && js_len(many.rows) == 11);
    double last = figure(many.rows, "bf16", "reference", "rel_l2");
    for (int i = 1; i < 5; i++) {
        double error = figure(many.rows, opt.format[i].name, "reference", "rel_l2");
        CU_ASSERT(error > last && error < 1); /* an output of zeros has the error 1 */
        last = error;
    }
    for (int i = 6; i < 10; i++)
        if (i != 7) /* i - 1 has more bits */
            CU_ASSERT(figure(many.rows, opt.format[i].name, "reference", "rel_l2") >
                      figure(many.rows, opt.format[i - 1].name, "reference", "rel_l2"));
    CU_ASSERT_EQUAL(figure(many.rows, "kivi4", "reference", "bytes_per_token"), 448);
    opt.context[0] = 31;
    CU_ASSERT(fidelity_run(&opt, collect, &few, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(figure(few.rows, "kivi2", "reference", "rel_l2"),
                    figure(few.rows, "bf16", "reference", "rel_l2"));
    js_free(many.rows);
    js_free(few.rows);
    fidelity_release(&opt);
}

static void refuse_fidelity(const char *formats, const char *distributions, const char *contexts,
                            const char *said) {
    fidelity_options opt = {.d_c = 512, .d_r = 64};
    snap_err err = {0};
    CU_ASSERT(fidelity_parse(&opt, formats, distributions, contexts, &err) == SNAP_E_USAGE);
    CU_ASSERT(strstr(err.text, said) != NULL);
    fidelity_release(&opt);
}

static void test_fidelity_refuses(void) {
    refuse_fidelity("bf16,G", "mla", "500", "'G'");
    refuse_fidelity("bf16,configs/formats/bf16.json", "mla", "500", "two formats with the name");
    refuse_fidelity("bf16", "gauss", "500", "gauss");
    refuse_fidelity("bf16", "mla", "-1", "-1");
}

CU_TestInfo tests_fidelity[] = {
    {"errors of formats in the expected order", test_fidelity},
    {"fewer bits give a larger error", test_fidelity_of_coded_formats},
    {"bad options of fidelity are refused", test_fidelity_refuses},
    CU_TEST_INFO_NULL,
};
