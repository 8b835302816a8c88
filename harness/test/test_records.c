#include <CUnit/CUnit.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "harness/record/results.h"
#include "harness/record/run.h"
#include "harness/record/schema.h"

static const char kFixture[] = "harness/test/fixtures/run.json";
static const char kPublished[] = "harness/record/snapmla.run.schema.json";

/* ---- the schema ---- */

/* The published schema must equal the one that follows from the tables of fields. "make schema"
 * writes the file anew, by running this test with the variable SNAPMLA_WRITE_SCHEMA. */
static void test_the_published_schema_is_the_tables(void) {
    js *made = schema_of_results(NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(made);
    if (getenv("SNAPMLA_WRITE_SCHEMA")) {
        buf text = {0};
        CU_ASSERT_EQUAL(js_write(made, JS_PRETTY, &text, NULL), SNAP_OK);
        CU_ASSERT(buf_puts(&text, "\n"));
        CU_ASSERT_EQUAL(fs_write_atomic(kPublished, text.data, text.len, NULL), SNAP_OK);
        buf_release(&text);
    }
    js *published = js_parse_file(kPublished, 1 << 20, NULL);
    CU_ASSERT(js_equal(made, published));
    js_free(made);
    js_free(published);
}

/* ---- result files ---- */

static size_t files, rows;

typedef union {
    ceiling_record ceiling;
    cell_record cell;
    fidelity_record fidelity;
    model_record model;
    step_record step;
    exchange_record exchange;
    eval_record eval;
    verdict_record verdict;
} any_record;

/* A row that is read, written and read again gives the same struct. */
static void expect_same_rows(const results *r, const char *section, const record_type *type) {
    const js *all = results_section(r, section);
    arena mem = {0};
    any_record row, copy;
    for (size_t i = 0; i < js_len(all); i++, rows++) {
        CU_ASSERT(record_read(type, js_at(all, i), &mem, &row));
        js *again = record_write(type, &row);
        arena other = {0};
        CU_ASSERT(record_read(type, again, &other, &copy));
        CU_ASSERT(record_equal(type, &row, &copy));
        js_free(again);
        arena_release(&other);
    }
    arena_release(&mem);
}

static int load_one(const char *path, const struct stat *sb, int kind, struct FTW *where) {
    (void)sb, (void)where;
    results *r = NULL;
    snap_err err = {0};
    if (kind != FTW_F || !text_ends(path, ".json"))
        return 0;
    if (results_load(&r, path, &err) != SNAP_OK) {
        printf("\n  %s", err.text);
        CU_FAIL("a kept result file can't be read");
        return 0;
    }
    files++;
    expect_same_rows(r, "ceilings", &ceiling_type);
    expect_same_rows(r, "bench", &cell_type);
    expect_same_rows(r, "fidelity", &fidelity_type);
    expect_same_rows(r, "model_fidelity", &model_type);
    expect_same_rows(r, "e2e", &step_type);
    expect_same_rows(r, "exchange", &exchange_type);
    expect_same_rows(r, "predicted", &prediction_type);
    expect_same_rows(r, "evals", &eval_type);
    expect_same_rows(r, "verdicts", &verdict_type);
    results_free(r);
    return 0;
}

static void test_kept_files_load(void) {
    files = rows = 0;
    CU_ASSERT_EQUAL(nftw("results", load_one, 8, FTW_PHYS), 0);
    CU_ASSERT(files >= 27);
    CU_ASSERT(rows > 1000);
    (void)load_one(kFixture, NULL, FTW_F, NULL);
}

/* ---- writing and reading a record ---- */

/* The shape and the correctness of a row come back as the same JSON. */
static void test_a_row_comes_back(void) {
    results *r;
    arena mem = {0};
    run_record run;
    CU_ASSERT_EQUAL_FATAL(results_load(&r, kFixture, NULL), SNAP_OK);
    CU_ASSERT(record_read(&run_type, results_document(r), &mem, &run));
    CU_ASSERT_EQUAL(run.bench.n, js_len(results_section(r, "bench")));
    CU_ASSERT_STRING_EQUAL(run.schema.name, "snapmla.run");
    js *row = record_write(&cell_type, &run.bench.at[0]);
    const js *was = js_at(results_section(r, "bench"), 0);
    CU_ASSERT(js_equal(js_get(row, "shape"), js_get(was, "shape")));
    CU_ASSERT(js_equal(js_get(row, "correctness"), js_get(was, "correctness")));
    js_free(row);
    arena_release(&mem);
    results_free(r);
}

/* What does not exist is NAN, "" or RECORD_NO_COUNT, and null or absent in JSON. */
static void test_what_does_not_exist(void) {
    arena mem = {0};
    cell_record c;
    record_init(&cell_type, &c);
    CU_ASSERT_STRING_EQUAL(c.arm, "");
    CU_ASSERT(isnan(c.performance.median_ns));
    CU_ASSERT_EQUAL(c.shape.heads, RECORD_NO_COUNT);
    CU_ASSERT(!c.performance.exists);
    js *row = record_write(&cell_type, &c);
    CU_ASSERT(js_has(row, "performance"));
    CU_ASSERT_PTR_NULL(js_get(row, "performance"));
    CU_ASSERT(!js_has(row, "mode"));
    js_free(row);
    CU_ASSERT(record_read(&cell_type, NULL, &mem, &c));
    CU_ASSERT_STRING_EQUAL(c.status, "");
    arena_release(&mem);
}

/* A value of another type than the field's, or outside of its range, counts as missing. */
static void test_hostile_rows(void) {
    static const char *const lines[] = {
        "{\"shape\":[1,2],\"flags\":{\"a\":1},\"arm\":7,\"performance\":[],\"status\":null}",
        "{\"shape\":{\"heads\":-1,\"batch\":1e300,\"s_q\":\"x\",\"context\":1.5}}",
        "{\"flags\":[1,null,{}],\"performance\":{\"samples_ns\":[\"x\",null],\"median_ns\":\"\"}}",
        "{\"performance\":{\"paired\":{\"median\":3}},\"correctness\":true}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        arena mem = {0};
        cell_record c;
        js *o = js_parse(lines[i], strlen(lines[i]), "row", NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(o);
        CU_ASSERT(record_read(&cell_type, o, &mem, &c));
        CU_ASSERT_STRING_EQUAL(c.arm, "");
        CU_ASSERT(c.shape.heads < 0 && c.shape.batch < 0 && c.shape.context < 0);
        CU_ASSERT(isnan(c.performance.median_ns));
        CU_ASSERT(!cell_has_flag(&c, "noisy"));
        arena_release(&mem);
        js_free(o);
    }
}

/* A gate's row has the keys of its parts, and not those of other parts. */
static void test_parts(void) {
    arena mem = {0};
    verdict_record v, again;
    record_init(&verdict_type, &v);
    v.kind = "geomean";
    v.name = "geometric mean";
    v.verdict = "ok";
    v.parts = VERDICT_MEAN;
    v.cells = 3;
    js *row = record_write(&verdict_type, &v);
    CU_ASSERT(js_has(row, "ratio") && js_has(row, "ci90") && js_has(row, "reason"));
    CU_ASSERT(!js_has(row, "threshold") && !js_has(row, "p_holm") && !js_has(row, "sessions"));
    CU_ASSERT(record_read(&verdict_type, row, &mem, &again));
    CU_ASSERT_EQUAL(again.parts, VERDICT_MEAN);
    CU_ASSERT(record_equal(&verdict_type, &v, &again));
    js_free(row);
    arena_release(&mem);
}

typedef struct {
    size_t n, n_empty;
    double median_ns, ci95_hi;
    char flags[64];
} columns_seen;

static void see_column(void *ctx, const char *column, const char *text, double number) {
    columns_seen *seen = ctx;
    seen->n++;
    seen->n_empty += text ? text[0] == '\0' : isnan(number) != 0;
    if (strcmp(column, "median_ns") == 0)
        seen->median_ns = number;
    if (strcmp(column, "ci95_hi") == 0)
        seen->ci95_hi = number;
    if (strcmp(column, "flags") == 0)
        (void)snprintf(seen->flags, sizeof seen->flags, "%s", text);
}

/* The columns of the CSV file: nested records, lists of texts and intervals. Without a record all
 * columns are empty. */
static void test_columns(void) {
    static const char *const flags[] = {"noisy", "shared"};
    columns_seen of_type = {0}, of_row = {0}, of_arm = {0};
    cell_record c;
    arm_record a;
    record_init(&cell_type, &c);
    record_init(&arm_type, &a);
    c.performance.median_ns = 1500;
    c.flags = (record_texts){flags, 2};
    a.ci95_pct[1] = 62.5;
    CU_ASSERT(record_columns(&cell_type, NULL, see_column, &of_type));
    CU_ASSERT(record_columns(&cell_type, &c, see_column, &of_row));
    CU_ASSERT(record_columns(&arm_type, &a, see_column, &of_arm));
    CU_ASSERT(of_type.n > 40 && of_type.n == of_type.n_empty);
    CU_ASSERT_EQUAL(of_row.n, of_type.n);
    CU_ASSERT_EQUAL(of_row.n_empty, of_type.n - 2);
    CU_ASSERT_EQUAL(of_row.median_ns, 1500);
    CU_ASSERT_STRING_EQUAL(of_row.flags, "noisy, shared");
    CU_ASSERT_EQUAL(of_arm.ci95_hi, 62.5);
    js *value = record_value(&cell_type, &c, "flags");
    CU_ASSERT_EQUAL(js_len(value), 2);
    js_free(value);
}

/* In older files, `control` is true for the control "seeds", and false for other arms. */
static void test_old_controls(void) {
    static const char row[] = "{\"control\":true}", none[] = "{\"control\":false}";
    arena mem = {0};
    pair_record p;
    js *o = js_parse(row, sizeof row - 1, "row", NULL);
    CU_ASSERT(record_read(&pair_type, o, &mem, &p));
    CU_ASSERT_STRING_EQUAL(p.control, "seeds");
    js_free(o);
    o = js_parse(none, sizeof none - 1, "row", NULL);
    CU_ASSERT(record_read(&pair_type, o, &mem, &p));
    CU_ASSERT_STRING_EQUAL(p.control, "");
    js_free(o);
    arena_release(&mem);
}

CU_TestInfo tests_records[] = {
    {"the published schema follows from the tables", test_the_published_schema_is_the_tables},
    {"kept result files load", test_kept_files_load},
    {"a row is read back unchanged", test_a_row_comes_back},
    {"absent values are null or absent in JSON", test_what_does_not_exist},
    {"values outside of their range count as missing", test_hostile_rows},
    {"parts of a gate's row", test_parts},
    {"columns of the CSV file", test_columns},
    {"controls of older files", test_old_controls},
    CU_TEST_INFO_NULL,
};
