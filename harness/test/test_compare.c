#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#include "harness/view/compare.h"
#include "harness/view/tables.h"

static results *load(void) {
    results *r = NULL;
    CU_ASSERT_FATAL(results_load(&r, "harness/test/fixtures/bench.json", NULL) == SNAP_OK);
    return r;
}

static js *row(const results *r, size_t i) {
    return js_at(results_section(r, "bench"), i);
}

/* Compares both files with @prices. The caller checks the model and frees it. */
static report_model *compare(results *a, results *b, const char *prices, snap_status want) {
    results *runs[] = {a, b};
    const char *const names[] = {"a.json", "b.json"};
    report_model *m = NULL;
    js *parsed = prices ? js_parse(prices, strlen(prices), "prices", NULL) : NULL;
    CU_ASSERT_FATAL(report_model_new(&m, runs, names, 2, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(report_compare(m, parsed, NULL), want);
    js_free(parsed);
    return m;
}

static void test_ratios(void) {
    results *a = load(), *b = load();
    size_t n = js_len(results_section(b, "bench"));
    for (size_t i = 0; i < n; i++) {
        js *perf = js_get_object(row(b, i), "performance");
        CU_ASSERT(js_set_num(perf, "median_ns", js_get_num(perf, "median_ns", 0) / 2) &&
                  js_set_num(perf, "tok_s", 1000) && js_set_num(perf, "tok_j", 7));
    }
    CU_ASSERT(js_set_str(row(b, 1), "cold", "flush")); /* cold as well, but by another method */
    CU_ASSERT(js_set_str(row(b, 0), "cold", "none"));
    CU_ASSERT(js_set_str(row(b, 2), "mode", "sustained") &&
              js_set_str(row(b, 2), "distribution", "mla"));
    js *backend = js_get_object(js_get_object(results_document(b), "provenance"), "backend");
    CU_ASSERT(js_set_str(backend, "device", "Vendor X100 SXM"));
    report_model *m = compare(a, b,
                              "{\"X100\": 9, \"Vendor X100\": {\"usd_per_hour\": 3.6,"
                              "\"date\": \"2026-11-24\", \"source\": \"the vendor's list\"}}",
                              SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(m->n_compared, 2 * n);
    size_t marked = 0;
    for (size_t i = 0; i < m->n_compared; i++) {
        const compared *c = &m->compared[i];
        if (c->cell->file == 0) {
            CU_ASSERT(isnan(c->ratio) && isnan(c->tok_usd) && c->first == c->cell);
            continue;
        }
        CU_ASSERT_DOUBLE_EQUAL(c->tok_usd, 1e6, 1e-6); /* the longest matching name counts */
        CU_ASSERT(c->first->file == 0 && c->cell->perf->tok_j == 7);
        if (c->differs[0]) {
            marked++;
            CU_ASSERT(isnan(c->ratio));
            CU_ASSERT(strcmp(c->differs, "cache") == 0 || strcmp(c->differs, "input, mode") == 0);
        } else {
            CU_ASSERT_DOUBLE_EQUAL(c->ratio, 2, 1e-12);
        }
    }
    CU_ASSERT_EQUAL(marked, 2);
    arena mem = {0};
    table t;
    CU_ASSERT(report_table_compare(m, &mem, &t) && t.n_rows == 2 * n);
    CU_ASSERT_STRING_EQUAL(t.columns[t.n_columns - 1].head, "tok/$");
    CU_ASSERT(report_table_machines(m, &mem, &t) && t.n_rows == 4);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 2, 1), "Vendor X100 SXM");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(t.note, "'Vendor X100': 3.6 $/h on 2026-11-24, source: the vendor's list."));
    CU_ASSERT_PTR_NULL(strstr(t.note, "'X100'")); /* not the price of any file */
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

/* File b has one cell fewer and another one of its own, which was measured in loops. */
static void test_lacking(void) {
    results *a = load(), *b = load();
    size_t n = js_len(results_section(b, "bench"));
    for (size_t i = 0; i < n; i++) {
        js *shape = js_get_object(row(b, i), "shape");
        if (js_get_int(shape, "heads", 0) == 16)
            CU_ASSERT(js_set_int(shape, "context", 512) &&
                      js_set_str(row(b, i), "mode", "sustained"));
    }
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_lacking(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 0), "1");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 2), "2");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 3),
                           "snapmla bench --backend cpu --scope kernel --distribution normal "
                           "--sustained 2 --shapes 16/1/1/512");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 0), "2");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 3),
                           "snapmla bench --backend cpu --scope kernel --distribution normal "
                           "--shapes 16/1/1/256");
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

static void test_refusals(void) {
    results *a = load(), *b = load();
    report_model_free(compare(a, b, "{\"x\": -1}", SNAP_E_USAGE));
    report_model_free(compare(a, b, "{\"x\": \"free\"}", SNAP_E_USAGE));
    report_model_free(compare(a, b, "{\"x\": {\"usd_per_hour\": 2}}", SNAP_E_USAGE));
    for (size_t i = 0; i < js_len(results_section(b, "bench")); i++)
        CU_ASSERT(js_set_int(js_get_object(row(b, i), "shape"), "context", 77));
    report_model_free(compare(a, b, NULL, SNAP_E_ENV));
    results_free(b);
    b = load();
    for (size_t i = 0; i < js_len(results_section(b, "bench")); i++) /* figures from a paper */
        CU_ASSERT(js_set_str(row(b, i), "origin", "reported"));
    report_model_free(compare(a, b, NULL, SNAP_E_ENV));
    results_free(a);
    results_free(b);
}

CU_TestInfo tests_compare[] = {{"ratios, marks, prices", test_ratios},
                               {"what each file lacks", test_lacking},
                               {"files that cannot be compared", test_refusals},
                               CU_TEST_INFO_NULL};
