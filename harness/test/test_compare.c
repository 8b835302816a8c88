#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>
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
    CU_ASSERT_EQUAL(report_compare(m, parsed, NULL, 0, NULL), want);
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
    report_model *m =
        compare(a, b,
                "{\"why\": \"a comment\","
                "\"X100\": {\"usd_per_hour\": 9, \"date\": \"2026-11-01\", \"source\": \"s\"},"
                "\"Vendor X100\": {\"usd_per_hour\": 3.6,"
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
                           "snapmla bench --backend cpu --threads 1 --scope kernel --sustained 2 "
                           "--distribution normal --shapes 16/1/1/512");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 0), "2");
    CU_ASSERT_STRING_EQUAL(
        table_at(&t, 1, 3),
        "snapmla bench --backend cpu --threads 1 --scope kernel --distribution normal "
        "--shapes 16/1/1/256");
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

/* The number of rows in the table of missing cells. Frees @m. */
static size_t missing_rows(report_model *m) {
    arena mem = {0};
    table t = {0};
    CU_ASSERT(report_table_lacking(m, &mem, &t));
    size_t rows = t.n_rows;
    arena_release(&mem);
    report_model_free(m);
    return rows;
}

/* The device of file b has no FP8. Its file lists these cells as skipped, so they are not counted
 * as lacking. */
static void test_refused_cells(void) {
    results *a = load(), *b = load();
    for (size_t i = 0; i < js_len(results_section(b, "bench")); i++)
        if (strcmp(js_get_str(row(b, i), "arm"), "fp8") == 0)
            CU_ASSERT(js_set_str(row(b, i), "status", "skipped"));
    report_model *m = compare(a, b, NULL, SNAP_OK);
    CU_ASSERT(missing_rows(m) == 0);
    results_free(a);
    results_free(b);
}

/* The loops of both files have the same cells, but one cell was warm in file b only. A command
 * would measure it in the same way again, so no file lacks it. */
static void test_loops_in_two_caches(void) {
    results *a = load(), *b = load();
    for (size_t i = 0; i < js_len(results_section(a, "bench")); i++)
        CU_ASSERT(js_set_str(row(a, i), "mode", "sustained") &&
                  js_set_str(row(b, i), "mode", "sustained"));
    CU_ASSERT(js_set_str(row(b, 0), "cold", "none"));
    report_model *m = compare(a, b, NULL, SNAP_OK);
    CU_ASSERT(missing_rows(m) == 0);
    results_free(a);
    results_free(b);
}

/* ---- cells of other kinds ---- */

static void set(js *at, const char *key, const char *json) {
    CU_ASSERT(js_set_new(at, key, js_parse(json, strlen(json), key, NULL)));
}

/* Names the arms of a file, as --arm does: "mine16" and "mine8". */
static void name_arms(results *r, const char *fp8_options) {
    for (size_t i = 0; i < js_len(results_section(r, "bench")); i++) {
        bool bf16 = strcmp(js_get_str(row(r, i), "arm"), "bf16") == 0;
        CU_ASSERT(js_set_str(row(r, i), "name", bf16 ? "mine16" : "mine8") &&
                  js_set_str(row(r, i), "options", bf16 ? "opencl,isa=gpu" : fp8_options));
    }
}

/* Moves the cells with 16 heads of file b to other contexts, so that file a lacks them, and checks
 * the command for them. */
static void expect_command(results *a, results *b, const char *want) {
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_lacking(m, &mem, &t) && t.n_rows >= 1);
    bool found = false;
    for (size_t i = 0; i < t.n_rows; i++)
        found |= strcmp(table_at(&t, i, 0), "1") == 0 && strcmp(table_at(&t, i, 3), want) == 0;
    CU_ASSERT(found);
    for (size_t i = 0; !found && i < t.n_rows; i++)
        printf("  %s\n", table_at(&t, i, 3));
    arena_release(&mem);
    report_model_free(m);
}

static js *moved(results *r, size_t i, int64_t context) {
    js *shape = js_get_object(row(r, i), "shape");
    CU_ASSERT(js_set_int(shape, "context", context));
    return row(r, i);
}

static void test_commands(void) {
    static const char lengths[] = "{\"distribution\": \"uniform:5-90\", \"tokens\": 90,"
                                  "\"each\": [90]}";
    static const char of_file[] = "{\"distribution\": \"chat.txt 0123456789ab\", \"tokens\": 90,"
                                  "\"each\": [90]}";
    static const char challenge[] = "{\"seed\": \"it's 4711\", \"tokens\": 65536, \"cell\": 3,"
                                    "\"sha256\": \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934"
                                    "ca495991b7852b855\"}";
    results *a = load(), *b = load();
    set(moved(b, 0, 90), "lengths", lengths);
    expect_command(a, b,
                   "snapmla bench --backend cpu --threads 1 --scope kernel --distribution normal "
                   "--lengths uniform:5-90 --seed 1 --s-q 1 --batch 1 --heads 1");
    set(row(b, 0), "lengths", of_file);
    expect_command(a, b, "none: the lengths are those of a file");
    set(row(b, 0), "challenge", challenge);
    expect_command(
        a, b,
        "snapmla bench --backend cpu --threads 1 --scope kernel --challenge-tokens 65536 "
        "--challenge 'it'\\''s 4711'");
    results_free(b);
    b = load();
    CU_ASSERT(js_set_str(row(b, 0), "arm", "fp8-in-place"));
    expect_command(a, b, "none: the arm runs on CUDA devices only");
    js *config = js_get_object(js_get_object(results_document(a), "provenance"), "config");
    CU_ASSERT(js_set_str(config, "backend", "cuda"));
    expect_command(a, b,
                   "snapmla bench --backend cuda --threads 1 --ablation --scope kernel "
                   "--distribution normal --shapes 1/1/1/256");
    CU_ASSERT(js_set_str(row(b, 0), "arm", "bf16") && js_set_str(row(b, 0), "cold", "none"));
    expect_command(a, b, "none: the cache was warm, which no option sets");
    CU_ASSERT(js_set_str(row(b, 0), "mode", "sustained")); /* warm because the data fit the cache */
    expect_command(a, b,
                   "snapmla bench --backend cuda --threads 1 --scope kernel --sustained 2 "
                   "--distribution normal --shapes 1/1/1/256");
    results_free(a);
    results_free(b);
}

static void test_commands_of_named_arms(void) {
    results *a = load(), *b = load();
    name_arms(a, "cpu,precision=fp8,scale=pow2");
    name_arms(b, "opencl,isa=gpu,precision=fp8,scale=pow2,threads=0");
    (void)moved(b, 2, 99);
    (void)moved(b, 3, 99);
    js *config = js_get_object(js_get_object(results_document(a), "provenance"), "config");
    CU_ASSERT(js_set_str(config, "backend", "auto"));
    expect_command(a, b,
                   "snapmla bench --arm mine16=cpu --arm mine8=cpu,precision=fp8,scale=pow2 "
                   "--scope kernel --distribution normal --shapes 16/1/1/99");
    CU_ASSERT(js_set_str(row(b, 2), "options", "plugin:./mine.so"));
    expect_command(a, b, "none: the arm is a plugin or a Python file");
    results_free(a);
    results_free(b);
}

/* ---- commands for many shapes ---- */

static void add_shape(results *r, int64_t heads, int64_t s_q, int64_t batch, int64_t context) {
    js *copy = js_copy(row(r, 0)), *shape = js_get_object(copy, "shape");
    CU_ASSERT(js_set_int(shape, "heads", heads) && js_set_int(shape, "s_q", s_q) &&
              js_set_int(shape, "batch", batch) && js_set_int(shape, "context", context));
    CU_ASSERT(js_push_new(results_section(r, "bench"), copy));
}

/* Adds the shapes of a shipped configuration that lists them. */
static void add_config(results *r, const char *path) {
    js *file = js_parse_file(path, 1 << 20, NULL);
    const js *list = js_get_array(file, "shapes");
    CU_ASSERT_FATAL(js_len(list) > 0);
    for (size_t i = 0; i < js_len(list); i++) {
        int heads, s_q, batch, context;
        CU_ASSERT(sscanf(js_str(js_at(list, i)), "%d/%d/%d/%d", &heads, &s_q, &batch, &context) ==
                  4);
        add_shape(r, heads, s_q, batch, context);
    }
    js_free(file);
}

static const char command[] =
    "snapmla bench --backend cpu --threads 1 --scope kernel --distribution normal ";

/* Checks the commands for the cells that file a lacks and file b has. */
static void expect_commands(results *a, results *b, const char *const *want, size_t n) {
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_lacking(m, &mem, &t));
    for (size_t i = 0; i < t.n_rows && t.n_rows != n; i++)
        printf("  %s\n", table_at(&t, i, 3));
    CU_ASSERT_FATAL(t.n_rows == n);
    for (size_t i = 0; i < n; i++) {
        const char *got = table_at(&t, i, 3);
        CU_ASSERT_STRING_EQUAL(table_at(&t, i, 0), "1");
        CU_ASSERT_FATAL(strncmp(got, command, strlen(command)) == 0);
        CU_ASSERT_STRING_EQUAL(got + strlen(command), want[i]);
    }
    arena_release(&mem);
    report_model_free(m);
}

/* File b has two shipped configurations and three more shapes. */
static void test_configurations(void) {
    results *a = load(), *b = load();
    static const char *const want[] = {"--config random-shapes", "--config vendor",
                                       "--shapes 3/1/1/77,3/1/2/77,5/1/1/77"};
    add_shape(b, 3, 1, 1, 77);
    add_config(b, "configs/vendor.json");
    add_shape(b, 3, 1, 2, 77);
    add_config(b, "configs/random-shapes.json");
    add_shape(b, 5, 1, 1, 77);
    expect_commands(a, b, want, 3);
    static const char *const one_less[] = {
        "--shapes 1/1/8/8192,16/1/1/131072,16/1/8/8192,64/1/4/8192,64/1/64/8192,128/1/8/8192,"
        "128/2/4/8192"};
    results_free(b);
    b = load();
    add_config(b, "configs/vendor.json");
    add_shape(a, 16, 1, 1, 1024); /* file a has the first shape */
    expect_commands(a, b, one_less, 1);
    results_free(a);
    results_free(b);
}

/* 1080 combinations are given as four lists. Without one of them, the shapes are listed in
 * commands of at most 512. */
static void test_grids(void) {
    static const char *const grid[] = {
        "--heads 3,5,7 --s-q 3,4 --batch 3,5,6,7,9,10 --context "
        "100,101,102,103,104,105,106,107,108,109,110,111,112,113,114,115,116,117,118,119,120,121,"
        "122,123,124,125,126,127,128,129"};
    static const int batches[] = {3, 5, 6, 7, 9, 10};
    results *a = load(), *b = load();
    for (int i = 0; i < 1080; i++)
        add_shape(b, 3 + 2 * (i / 360), 3 + i / 180 % 2, batches[i / 30 % 6], 100 + i % 30);
    expect_commands(a, b, grid, 1);
    add_shape(a, 3, 3, 3, 100);
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_lacking(m, &mem, &t) && t.n_rows == 3);
    static const char *const cells[] = {"512", "512", "55"};
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_STRING_EQUAL(table_at(&t, i, 2), cells[i]);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 2, 3) + strlen(table_at(&t, 2, 3)) - 21,
                           "7/4/10/128,7/4/10/129");
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

/* ---- files of other conditions ---- */

/* Whether file b is refused beside file a; then the reason must have the text @says. */
static bool is_refused(results *a, results *b, const char *says) {
    results *runs[] = {a, b};
    const char *const names[] = {"a.json", "b.json"};
    static const bool none[2] = {false, false};
    report_model *m = NULL;
    buf why = {0};
    CU_ASSERT_FATAL(report_model_new(&m, runs, names, 2, NULL) == SNAP_OK);
    bool unlike = report_unlike(m, 1, none, &why);
    CU_ASSERT(unlike ? strstr(buf_str(&why), says) != NULL : why.len == 0);
    if (unlike && !strstr(buf_str(&why), says))
        printf("  %s\n", buf_str(&why));
    CU_ASSERT_FALSE(report_unlike(m, 0, none, &why)); /* no file is before it */
    buf_release(&why);
    report_model_free(m);
    return unlike;
}

static void test_unlike_files(void) {
    results *a = load(), *b = load();
    const size_t n = js_len(results_section(b, "bench"));
    CU_ASSERT_FALSE(is_refused(a, b, ""));
    for (size_t i = 0; i < n; i++)
        CU_ASSERT(js_set_str(row(b, i), "distribution", "mla") &&
                  js_set_str(row(b, i), "mode", "sustained"));
    CU_ASSERT(
        is_refused(a, b,
                   "'b.json' cannot be compared with 'a.json': in all cells of the same scope "
                   "and shape they differ, at least in input (mla instead of normal)"));
    CU_ASSERT(js_set_str(row(b, 3), "distribution", "normal")); /* one cell is enough */
    CU_ASSERT_FALSE(is_refused(a, b, ""));
    for (size_t i = 0; i < n; i++)
        (void)moved(b, i, 77); /* b has no cell of a */
    CU_ASSERT_FALSE(is_refused(a, b, ""));
    results_free(b);
    b = load();
    name_arms(b, "cuda,precision=fp8");
    CU_ASSERT(is_refused(a, b, "arm (mine16 instead of bf16)"));
    results_free(a);
    results_free(b);
}

static void test_unlike_arithmetic(void) {
    results *a = load(), *b = load();
    const size_t n = js_len(results_section(b, "bench"));
    name_arms(a, "cuda,precision=fp8");
    name_arms(b, "cuda,precision=fp8,scale=pow2");
    CU_ASSERT_FALSE(is_refused(a, b, "")); /* the BF16 arms are alike */
    report_model *m = compare(a, b, NULL, SNAP_OK);
    for (size_t i = 0; i < m->n_compared; i++) {
        const compared *c = &m->compared[i];
        bool fp8 = strcmp(c->cell->row->arm, "fp8") == 0;
        CU_ASSERT_STRING_EQUAL(c->differs, c->cell->file == 1 && fp8 ? "scale rule" : "");
        CU_ASSERT(!c->differs[0] || isnan(c->ratio));
    }
    report_model_free(m);
    for (size_t i = 0; i < n; i++)
        if (strcmp(js_get_str(row(b, i), "arm"), "bf16") == 0)
            CU_ASSERT(js_set_str(row(b, i), "status", "skipped"));
    CU_ASSERT(is_refused(a, b, "scale rule (pow2 instead of max)"));
    static const char *const kinds[][2] = {
        {"fp8-page-units", "unit of P (page instead of kept)"},
        {"fp8-in-place", "FP8 sums (tensor cores instead of FP32)"},
        {"fp8-widened", "queries (bf16 instead of fp8)"}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t i = 0; i < n; i++)
            if (strcmp(js_get_str(row(b, i), "arm"), "bf16") != 0)
                CU_ASSERT(js_set_str(row(b, i), "arm", kinds[k][0]));
        CU_ASSERT(is_refused(a, b, kinds[k][1]));
    }
    results_free(a);
    results_free(b);
}

/* A device that is a thousand times slower has a relative speed with two digits, and the table of
 * speeds has only the shapes that are compared. */
static void test_a_slow_device(void) {
    results *a = load(), *b = load();
    for (size_t i = 0; i < js_len(results_section(b, "bench")); i++) {
        js *perf = js_get_object(row(b, i), "performance");
        CU_ASSERT(js_set_num(perf, "median_ns", js_get_num(perf, "median_ns", 0) * 700));
    }
    (void)moved(b, 2, 77);
    (void)moved(b, 3, 77);
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_compare(m, &mem, &t) && t.n_rows == 4);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 9), "0.0014×"); /* 1 / 700 */
    CU_ASSERT_FATAL(m->n_speeds == 4 && report_table_speed(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(t.columns[t.n_columns - 1].head, "#");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, t.n_columns - 1), "1");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, t.n_columns - 1), "2");
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

/* A third file without a cell of another one is in the table of machines, too. */
static void test_a_file_apart(void) {
    results *r[] = {load(), load(), load()};
    const char *const names[] = {"a.json", "b.json", "c.json"};
    report_model *m = NULL;
    for (size_t i = 0; i < js_len(results_section(r[1], "bench")); i++)
        (void)moved(r[1], i, 77);
    CU_ASSERT_FATAL(report_model_new(&m, r, names, 3, NULL) == SNAP_OK);
    CU_ASSERT(report_compare(m, NULL, NULL, 0, NULL) == SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_machines(m, &mem, &t) && t.n_rows == 5);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 2, 2), "b.json");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 2, 4), "0");
    arena_release(&mem);
    report_model_free(m);
    for (int i = 0; i < 3; i++)
        results_free(r[i]);
}

/* A device that was throttled during one of two cells: its relative speed is that of the other
 * cell, and the table counts the flag. */
static void test_a_throttled_device(void) {
    results *a = load(), *b = load();
    for (size_t i = 0; i < js_len(results_section(a, "bench")); i++)
        CU_ASSERT(js_set_new(row(a, i), "flags", js_new_array()) &&
                  js_set_new(row(b, i), "flags", js_new_array()));
    js *perf = js_get_object(row(b, 0), "performance");
    CU_ASSERT(js_push_new(js_get_array(row(b, 0), "flags"), js_new_str("throttled")) &&
              js_set_num(perf, "median_ns", js_get_num(perf, "median_ns", 0) * 100));
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_machines(m, &mem, &t) && t.n_rows == 4);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 2, 3), "bf16");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 2, 4), "2");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 2, 6), "1");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 2, 7), "1.00×");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 3, 6), "0");
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

/* Files of `fidelity` and `eval` may be on the same page. They have no cells. The tables of
 * machines and of missing cells must not list them. */
static void test_a_file_without_cells(void) {
    results *a = load(), *b = load(), *errors = load();
    CU_ASSERT(js_set_new(results_document(errors), "bench", js_new_array()));
    results *runs[] = {a, b, errors};
    const char *const names[] = {"a.json", "b.json", "fidelity.json"};
    report_model *m = NULL;
    CU_ASSERT_FATAL(report_model_new(&m, runs, names, 3, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(report_compare(m, NULL, NULL, 0, NULL), SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT(report_table_machines(m, &mem, &t) && t.n_rows == 4);
    arena_release(&mem);
    CU_ASSERT(missing_rows(m) == 0);
    results_free(a);
    results_free(b);
    results_free(errors);
}

/* One file has single steps with a warm cache. They need another command, so the table lists the
 * steps as missing. */
static void test_steps_in_two_caches(void) {
    results *a = load(), *b = load();
    CU_ASSERT(js_set_str(row(b, 0), "cold", "none"));
    report_model *m = compare(a, b, NULL, SNAP_OK);
    CU_ASSERT(missing_rows(m) > 0);
    results_free(a);
    results_free(b);
}

/* A plugin runs on the same device as the program's own kernels. So the tables add its name to that
 * of the device. */
static void test_a_plugin(void) {
    results *a = load(), *b = load();
    js *backend = js_get_object(js_get_object(results_document(b), "provenance"), "backend");
    js *plugin = js_new_object();
    const char *hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    CU_ASSERT(js_set_str(backend, "name", "tiles") && js_set_str(backend, "device", "One core") &&
              js_set_str(plugin, "file", "tiles.so") && js_set_str(plugin, "sha256", hash) &&
              js_set_new(backend, "plugin", plugin));
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_machines(m, &mem, &t) && t.n_rows == 4);
    CU_ASSERT_PTR_NULL(strstr(table_at(&t, 0, 1), "("));
    CU_ASSERT_STRING_EQUAL(table_at(&t, 3, 1), "One core (tiles)");
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

/* A cell whose only flag is weak_baseline counts in the mean. A cell with a second flag does not.
 * Two backends of one device have different names. */
static void test_a_weak_baseline(void) {
    results *a = load(), *b = load();
    for (size_t i = 0; i < js_len(results_section(a, "bench")); i++) {
        CU_ASSERT(js_set_new(row(a, i), "flags", js_new_array()) &&
                  js_set_new(row(b, i), "flags", js_new_array()));
        CU_ASSERT(js_push_new(js_get_array(row(b, i), "flags"), js_new_str("weak_baseline")));
    }
    js *backend = js_get_object(js_get_object(results_document(b), "provenance"), "backend");
    CU_ASSERT(js_set_str(backend, "name", "opencl"));
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_machines(m, &mem, &t) && t.n_rows == 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(table_at(&t, 0, 1), " (cpu)"));
    CU_ASSERT_PTR_NOT_NULL(strstr(table_at(&t, 3, 1), " (opencl)"));
    CU_ASSERT_STRING_EQUAL(table_at(&t, 3, 6), "0");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 3, 7), "1.00×");
    arena_release(&mem);
    report_model_free(m);
    for (size_t i = 0; i < js_len(results_section(b, "bench")); i++)
        CU_ASSERT(js_push_new(js_get_array(row(b, i), "flags"), js_new_str("noisy")));
    m = compare(a, b, NULL, SNAP_OK);
    mem = (arena){0};
    CU_ASSERT_FATAL(report_table_machines(m, &mem, &t) && t.n_rows == 4);
    CU_ASSERT_STRING_NOT_EQUAL(table_at(&t, 3, 6), "0");
    CU_ASSERT_STRING_NOT_EQUAL(table_at(&t, 3, 7), "1.00×");
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

static void test_refusals(void) {
    results *a = load(), *b = load();
    static const char *const prices[] = {
        "{\"x\": 2}",
        "{\"x\": \"free\"}",
        "{\"x\": {\"usd_per_hour\": 2}}",
        "{\"x\": {\"usd_per_hour\": 2, \"date\": \"2026-11-28\"}}",
        "{\"x\": {\"usd_per_hour\": 2, \"date\": \"2026-11-28\", \"source\": \"\"}}",
        "{\"x\": {\"usd_per_hour\": 2, \"date\": \"2026-1-28x\", \"source\": \"s\"}}",
        "{\"x\": {\"usd_per_hour\": 2, \"date\": \"today\", \"source\": \"s\"}}",
        "{\"x\": {\"usd_per_hour\": -1, \"date\": \"2026-11-28\", \"source\": \"s\"}}"};
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++)
        report_model_free(compare(a, b, prices[i], SNAP_E_USAGE));
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

CU_TestInfo tests_compare[] = {
    {"speeds, marks and prices of shared cells", test_ratios},
    {"what each file lacks", test_lacking},
    {"a file does not lack what it has as skipped", test_refused_cells},
    {"loops with a warm and a cold cache", test_loops_in_two_caches},
    {"steps with a warm and a cold cache", test_steps_in_two_caches},
    {"commands for all kinds of cells", test_commands},
    {"commands for named arms", test_commands_of_named_arms},
    {"shapes of shipped configurations", test_configurations},
    {"many shapes in one command", test_grids},
    {"files with another input are refused", test_unlike_files},
    {"files with another arithmetic are refused", test_unlike_arithmetic},
    {"the speed of a device that is 1000 times slower", test_a_slow_device},
    {"a file that shares no cell", test_a_file_apart},
    {"a throttled device", test_a_throttled_device},
    {"a weak baseline, two backends", test_a_weak_baseline},
    {"the device of a plugin", test_a_plugin},
    {"a file without cells", test_a_file_without_cells},
    {"files that cannot be compared", test_refusals},
    CU_TEST_INFO_NULL};
