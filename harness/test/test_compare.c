#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "harness/view/compare.h"
#include "harness/view/compare_files.h"
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
    CU_ASSERT(js_set_str(row(b, 2), "distribution", "mla"));
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
            CU_ASSERT(strcmp(c->differs, "cache") == 0 || strcmp(c->differs, "input") == 0);
        } else {
            CU_ASSERT_DOUBLE_EQUAL(c->ratio, 2, 1e-12);
        }
    }
    CU_ASSERT_EQUAL(marked, 2);
    arena mem = {0};
    table t;
    CU_ASSERT(report_table_compare(m, &mem, &t) && t.n_rows == 2 * n);
    CU_ASSERT_STRING_EQUAL(t.columns[t.n_columns - 1].head, "M tok/$");
    CU_ASSERT(report_table_machines(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 1), "Vendor X100 SXM (cpu, avx512bf16)");
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
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 2), "2 cells, loops, scope kernel");
    CU_ASSERT_STRING_EQUAL(
        table_at(&t, 0, 3),
        "snapmla bench --backend cpu --threads 1 --scope kernel --sustained 2 "
        "--distribution normal --shapes 16/1/1/512 --timeout 0.02 --out missing-1-1.json");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 0), "2");
    CU_ASSERT_STRING_EQUAL(
        table_at(&t, 1, 3),
        "snapmla bench --backend cpu --threads 1 --scope kernel --distribution normal "
        "--shapes 16/1/1/256 --timeout 0.02 --out missing-2-1.json");
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

/* Whether a command begins with @want and ends with the limit of the fixture's run, unless a
 * configuration sets the limit, and with a file. */
static bool is_command(const char *got, const char *want) {
    const size_t n = strlen(want);
    if (strncmp(want, "none: ", 6) == 0)
        return strcmp(got, want) == 0;
    const char *end =
        strstr(want, "--config") ? " --out missing-1-" : " --timeout 0.02 --out missing-1-";
    return strncmp(got, want, n) == 0 && strncmp(got + n, end, strlen(end)) == 0;
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
        found |= strcmp(table_at(&t, i, 0), "1") == 0 && is_command(table_at(&t, i, 3), want);
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
        CU_ASSERT(is_command(got + strlen(command), want[i]));
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
    static const char *const cells[] = {"512 cells", "512 cells", "55 cells"};
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT(strncmp(table_at(&t, i, 2), cells[i], strlen(cells[i])) == 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(table_at(&t, 2, 3), "7/4/10/128,7/4/10/129 --timeout"));
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
    CU_ASSERT_STRING_EQUAL(t.columns[t.n_columns - 1].head, "device");
    CU_ASSERT(t.columns[t.n_columns - 1].paper); /* LaTeX names the device as well */
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, t.n_columns - 1),
                           "AMD EPYC, 1 thread (cpu, avx512bf16) #1");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, t.n_columns - 1),
                           "AMD EPYC, 1 thread (cpu, avx512bf16) #2");
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

/* Columns of the table of devices. */
enum { SPEED_BF16 = 2, SPEED_FP8 = 3, GAIN = 4, TOK_S = 5, TOK_J = 9, CELLS = 13, FLAGGED = 15 };

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
    CU_ASSERT_FATAL(report_table_devices(m, &mem, &t) && t.n_rows == 3);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, FLAGGED), "shares too few cells");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, CELLS), "0 + 0");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 2, CELLS), "2 + 2");
    CU_ASSERT_FATAL(report_table_machines(m, &mem, &t) && t.n_rows == 3);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 8), "b.json");
    arena_release(&mem);
    report_model_free(m);
    for (int i = 0; i < 3; i++)
        results_free(r[i]);
}

/* Removes the flags of all rows. */
static void clear_flags(results *r) {
    for (size_t i = 0; i < js_len(results_section(r, "bench")); i++)
        CU_ASSERT(js_set_new(row(r, i), "flags", js_new_array()));
}

/* A device that was throttled during one of two cells, in which it was 100 times slower. The mean
 * over all cells is that of 1 and 1/100, and the table counts the flag. The mean without flags is
 * that of the other cell. */
static void test_a_throttled_device(void) {
    results *a = load(), *b = load();
    clear_flags(a);
    clear_flags(b);
    js *perf = js_get_object(row(b, 0), "performance");
    CU_ASSERT(js_push_new(js_get_array(row(b, 0), "flags"), js_new_str("throttled")) &&
              js_set_num(perf, "median_ns", js_get_num(perf, "median_ns", 0) * 100));
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_devices(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, CELLS), "2 + 2");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, FLAGGED), "1 throttled");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, SPEED_BF16), "0.10×");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, SPEED_FP8), "1.00×");
    CU_ASSERT_FATAL(report_table_pairs(m, &mem, &t) && t.n_rows == 1);
    static const char *const want[] = {"0.10×", "2", "1.00×", "2", "1.00×", "1", "1.00×", "2"};
    for (int i = 0; i < 8; i++)
        CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 3 + i), want[i]);
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

/* ---- one set of cells for all devices ---- */

/* Sets the time of each BF16 row, and half of it for FP8. */
static void set_times(results *r, double heads_1, double heads_16) {
    for (size_t i = 0; i < js_len(results_section(r, "bench")); i++) {
        bool many = js_get_int(js_get_object(row(r, i), "shape"), "heads", 0) == 16;
        double ns = many ? heads_16 : heads_1;
        bool fp8 = strcmp(js_get_str(row(r, i), "arm"), "fp8") == 0;
        js *perf = js_get_object(row(r, i), "performance");
        CU_ASSERT(js_set_num(perf, "median_ns", fp8 ? ns / 2 : ns) &&
                  js_set_num(perf, "tok_s", 1e9 / ns));
    }
}

static report_model *compare_three(results *const r[3]) {
    static const char *const names[] = {"a.json", "b.json", "c.json"};
    report_model *m = NULL;
    CU_ASSERT_FATAL(report_model_new(&m, r, names, 3, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(report_compare(m, NULL, NULL, 0, NULL) == SNAP_OK);
    return m;
}

/* Device b is faster than device c in the cells that both have, but its file also has a cell in
 * which it is slow. If each mean were over the device's own cells, c would be ranked first: b
 * would have sqrt(1/2 * 1/200) = 0.05, c 0.25. Over the cell that all have, b has 0.5. */
static void test_one_set(void) {
    results *r[] = {load(), load(), load()};
    set_times(r[0], 1000, 1000);
    set_times(r[1], 2000, 200000);
    set_times(r[2], 4000, 1);
    for (size_t i = 2; i < 4; i++)
        (void)moved(r[2], i, 77); /* c has only the cells with one head */
    report_model *m = compare_three(r);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_devices(m, &mem, &t) && t.n_rows == 3 && t.whole);
    static const char *const speeds[] = {"1.00×", "0.50×", "0.25×"};
    static const char *const tokens[] = {"1000000", "500000", "250000"};
    for (size_t i = 0; i < 3; i++) {
        CU_ASSERT_STRING_EQUAL(table_at(&t, i, SPEED_BF16), speeds[i]);
        CU_ASSERT_STRING_EQUAL(table_at(&t, i, SPEED_FP8), speeds[i]);
        CU_ASSERT_STRING_EQUAL(table_at(&t, i, GAIN), "2.00×");
        CU_ASSERT_STRING_EQUAL(table_at(&t, i, TOK_S), tokens[i]);
        CU_ASSERT_STRING_EQUAL(table_at(&t, i, CELLS), "1 + 1");
    }
    CU_ASSERT_FATAL(report_table_pairs(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 3), "0.05×"); /* both cells of b: sqrt(1/2 * 1/200) */
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 4), "2");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 3), "0.25×");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 4), "1");
    arena_release(&mem);
    report_model_free(m);
    for (int i = 0; i < 3; i++)
        results_free(r[i]);
}

static void make_loops(results *r, double tok_j, const char *cold) {
    for (size_t i = 0; i < js_len(results_section(r, "bench")); i++)
        CU_ASSERT(js_set_str(row(r, i), "mode", "sustained") &&
                  js_set_str(row(r, i), "cold", cold) &&
                  js_set_num(js_get_object(row(r, i), "performance"), "tok_j", tok_j));
}

/* Two devices with two files each: single steps and loops. The table of devices has one line for
 * both files of a device. A loop with a warm cache has a relative speed and a mark, but no mean of
 * percentages includes it. */
static void test_groups(void) {
    results *r[] = {load(), load(), load(), load()};
    static const char *const names[] = {"a-burst", "a-loops", "b-burst", "b-loops"};
    static const char *const given[] = {"A", "B"};
    static const int device_of[] = {0, 0, 1, 1};
    report_model *m = NULL;
    make_loops(r[1], 20, "none");
    make_loops(r[3], 5, "rotate");
    set_times(r[2], 1e6, 1e6);
    CU_ASSERT(js_set_num(js_get_object(row(r[1], 0), "performance"), "roofline_pct", 176.8));
    CU_ASSERT_FATAL(report_model_new(&m, r, names, 4, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(report_group(m, device_of, given, 2, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(report_compare(m, NULL, NULL, 0, NULL) == SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_devices(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, TOK_J), "20.0");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, TOK_J), "5.00");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, CELLS + 1), "2 + 2");
    CU_ASSERT_FATAL(report_table_devices_loops(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, SPEED_BF16), "1.00×");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 7), "–"); /* all loops of A were warm */
    CU_ASSERT_STRING_NOT_EQUAL(table_at(&t, 1, 7), "–");
    CU_ASSERT_FATAL(report_table_compare(m, &mem, &t) && t.n_rows == 8);
    CU_ASSERT_FATAL(report_table_compare_loops(m, &mem, &t) && t.n_rows == 8);
    CU_ASSERT(strncmp(table_at(&t, 0, 14), "warm cache, so above the roofline", 33) == 0);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 15), "20.0");
    CU_ASSERT_FATAL(report_table_machines(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 8), "B");
    arena_release(&mem);
    report_model_free(m);
    for (int i = 0; i < 4; i++)
        results_free(r[i]);
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
    CU_ASSERT(report_table_devices(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT(report_table_machines(m, &mem, &t) && t.n_rows == 3);
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
    CU_ASSERT_STRING_EQUAL(m->labels[0], "AMD EPYC, 1 thread (cpu, avx512bf16)");
    CU_ASSERT_STRING_EQUAL(m->labels[1], "One core (tiles, avx512bf16)");
    CU_ASSERT_FATAL(report_table_machines(m, &mem, &t) && t.n_rows == 2);
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

/* A cell whose only flag is weak_baseline counts as one without flags. A cell with a second flag
 * does not. */
static void test_a_weak_baseline(void) {
    results *a = load(), *b = load();
    clear_flags(a);
    clear_flags(b);
    for (size_t i = 0; i < js_len(results_section(a, "bench")); i++)
        CU_ASSERT(js_push_new(js_get_array(row(b, i), "flags"), js_new_str("weak_baseline")));
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_devices(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, FLAGGED), "");
    CU_ASSERT_FATAL(report_table_pairs(m, &mem, &t) && t.n_rows == 1);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 7), "1.00×");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 8), "2");
    report_model_free(m);
    for (size_t i = 0; i < js_len(results_section(b, "bench")); i++)
        CU_ASSERT(js_push_new(js_get_array(row(b, i), "flags"), js_new_str("noisy")));
    m = compare(a, b, NULL, SNAP_OK);
    CU_ASSERT_FATAL(report_table_devices(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, FLAGGED), "4 noisy");
    CU_ASSERT_FATAL(report_table_pairs(m, &mem, &t) && t.n_rows == 1);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 7), "–");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 8), "0");
    arena_release(&mem);
    report_model_free(m);
    results_free(a);
    results_free(b);
}

static void set_backend(results *r, const char *device, const char *name, const char *kernel) {
    js *backend = js_get_object(js_get_object(results_document(r), "provenance"), "backend");
    CU_ASSERT(js_set_str(backend, "device", device) && js_set_str(backend, "name", name) &&
              js_set_str(backend, "kernel", kernel));
}

/* Devices that differ in the backend or in the kernel have different names. Equal ones are
 * numbered. */
static void test_names(void) {
    results *r[] = {load(), load(), load()};
    set_backend(r[1], "AMD EPYC, 1 thread", "cpu", "avx2");
    set_backend(r[2], "Intel(R) Xeon(R) Processor, 16 threads", "cpu", "amx-bf16");
    report_model *m = compare_three(r);
    CU_ASSERT_STRING_EQUAL(m->labels[0], "AMD EPYC, 1 thread (cpu, avx512bf16)");
    CU_ASSERT_STRING_EQUAL(m->labels[1], "AMD EPYC, 1 thread (cpu, avx2)");
    CU_ASSERT_STRING_EQUAL(m->labels[2], "Intel Xeon Processor, 16 threads (cpu, amx-bf16)");
    report_model_free(m);
    set_backend(r[2], "AMD EPYC, 1 thread", "cpu", "avx2");
    m = compare_three(r);
    CU_ASSERT_STRING_EQUAL(m->labels[1], "AMD EPYC, 1 thread (cpu, avx2) #2");
    CU_ASSERT_STRING_EQUAL(m->labels[2], "AMD EPYC, 1 thread (cpu, avx2) #3");
    report_model_free(m);
    for (int i = 0; i < 3; i++)
        results_free(r[i]);
}

/* A time limit left out two cells of device b, and it cannot run the others. It lacks the former
 * only. Shapes that were scaled for device a are not missing on device b. */
static void test_left_out_and_scaled(void) {
    results *a = load(), *b = load();
    for (size_t i = 0; i < 4; i++)
        CU_ASSERT(js_set_str(row(b, i), "status", "skipped") &&
                  js_set_str(row(b, i), "reason",
                             i < 2 ? "left out: it would take 9 s or more, and 1 s are left of the "
                                     "time limit of 5 s"
                                   : "the device has not enough memory"));
    add_shape(a, 3, 1, 1, 99);
    add_shape(b, 3, 1, 1, 99);
    add_shape(a, 16, 1, 512, 8192);
    js *config = js_get_object(js_get_object(results_document(a), "provenance"), "config");
    CU_ASSERT(js_set_str(config, "shapes", "1/1/1/256,16/1/1/256,3/1/1/99") &&
              js_set_new(config, "scaled", js_new_bool(true)));
    js *last = row(b, 4); /* a copy of the first row of b: passed again */
    CU_ASSERT(js_set_str(last, "status", "passed") && js_set_new(last, "reason", js_new_null()));
    report_model *m = compare(a, b, NULL, SNAP_OK);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_lacking(m, &mem, &t) && t.n_rows == 1);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 0), "2");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 2), "2 cells, single steps, scope kernel");
    CU_ASSERT_PTR_NOT_NULL(strstr(table_at(&t, 0, 3), "--shapes 1/1/1/256 --timeout 0.02 --out"));
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

/* ---- the files that a name means ---- */

static void save(const char *dir, const char *name) {
    results *r = load();
    buf path = {0};
    CU_ASSERT_FATAL(buf_printf(&path, "%s/%s", dir, name));
    CU_ASSERT(results_save(r, buf_str(&path), NULL) == SNAP_OK);
    buf_release(&path);
    results_free(r);
}

/* A folder of ci/vendor.sh and files kept under a common name are one device each. */
static void test_files_of_a_name(void) {
    char dir[] = "/tmp/snapmla-compare-XXXXXX", folder[64], kept[64], none[64];
    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    (void)snprintf(folder, sizeof folder, "%s/A", dir);
    (void)snprintf(kept, sizeof kept, "%s/2026-b-vendor", dir);
    (void)snprintf(none, sizeof none, "%s/none", dir);
    CU_ASSERT(fs_mkdirs(folder, NULL) == SNAP_OK);
    save(dir, "A/burst.json");
    save(dir, "A/fidelity.json");
    save(dir, "2026-b-vendor-burst.json");
    save(dir, "2026-b-vendor-sustained.json");
    save(dir, "2026-b-vendor-eval.json");
    const char *names[] = {folder, kept, "harness/test/fixtures/bench.json"};
    static const int want[] = {0, 0, 1, 1, 1, 2};
    compare_files in = {0};
    CU_ASSERT_FATAL(compare_files_read(&in, names, 3, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(in.n_kept == 6 && in.n_devices == 3);
    for (int i = 0; i < 6; i++)
        CU_ASSERT_EQUAL(in.device_of[i], want[i]);
    CU_ASSERT_PTR_NOT_NULL(strstr(in.names[1], "/A/fidelity.json"));
    CU_ASSERT_PTR_NOT_NULL(strstr(in.names[4], "-vendor-eval.json"));
    CU_ASSERT_STRING_EQUAL(in.given[1], kept);
    compare_files_release(&in);
    snap_err err = {0};
    names[1] = none;
    CU_ASSERT(compare_files_read(&in, names, 3, &err) == SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/none/run.json"));
    compare_files_release(&in);
    (void)snprintf(none, sizeof none, "rm -rf %s", dir);
    CU_ASSERT(system(none) == 0);
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
    {"a weak baseline", test_a_weak_baseline},
    {"means over one set of cells", test_one_set},
    {"several files of one device", test_groups},
    {"names of devices", test_names},
    {"cells left out for time, scaled shapes", test_left_out_and_scaled},
    {"files of ci/vendor.sh", test_files_of_a_name},
    {"the device of a plugin", test_a_plugin},
    {"a file without cells", test_a_file_without_cells},
    {"files that cannot be compared", test_refusals},
    CU_TEST_INFO_NULL};
