#include <CUnit/CUnit.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness/record/provenance.h"
#include "harness/record/results.h"
#include "harness/record/schema.h"

/* Written by hand in the form of real runs, with hostile names. */
static const char kFixture[] = "harness/test/fixtures/run.json";

static char dir[] = "/tmp/snapmla-results-XXXXXX";

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *where) {
    (void)sb, (void)type, (void)where;
    return remove(path);
}

static void remove_dir(void) {
    (void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *in_dir(const char *name) {
    static char path[128];
    static bool made;
    if (!made) {
        CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
        made = true;
        CU_ASSERT_EQUAL(atexit(remove_dir), 0);
    }
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void put(const char *path, const char *text) {
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, text, strlen(text), NULL), SNAP_OK);
}

static const char *config_sha256(const results *r) {
    return js_get_str(js_get_object(results_document(r), "provenance"), "config_sha256");
}

/* ---- schema ---- */

/* Follows "bench.3.performance" to its container. @last is the last part of the path. */
static js *container_of(js *v, const char *path, char last[64]) {
    for (const char *p = path;; p++) {
        size_t n = strcspn(p, ".");
        (void)snprintf(last, 64, "%.*s", (int)n, p);
        p += n;
        if (!*p)
            return v;
        v = js_is_array(v) ? js_at(v, strtoul(last, NULL, 10)) : js_get(v, last);
        CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    }
}

/* @json: the new value; NULL = delete the key */
static void mutate(js *document, const char *path, const char *json) {
    char last[64];
    js *object = container_of(document, path, last);
    CU_ASSERT_FATAL(js_is_object(object));
    if (!json) {
        CU_ASSERT_FATAL(js_delete(object, last));
        return;
    }
    js *value = js_parse(json, strlen(json), "mutation", NULL);
    CU_ASSERT_FATAL(js_set_new(object, last, value));
}

/* Row 0 is a measured bf16 cell that passed, row 15 an fp8 cell that failed, row 18 a reported
 * cell. */
static void test_schema_refuses_with_the_path(void) {
    static const struct {
        const char *path, *json, *message;
    } cases[] = {
        {"bench", NULL, "bench: is missing"},
        {"bench", "{}", "bench: must be array, got object"},
        {"more", "1", "more: is not a key of this version"},
        {"schema.minor", "-1", "not a result file"},
        {"schema.name", "\"other\"", "not a result file"},
        {"provenance.seed", "1.5", "provenance.seed: must be integer, got number"},
        {"provenance.argv", "[\"a\", 1]", "provenance.argv[1]: must be string, got integer"},
        {"provenance.program.dirty", "\"no\"",
         "provenance.program.dirty: must be boolean, got string"},
        {"provenance.host.name", "\"me\"", "provenance.host.name: is not a key of this version"},
        {"provenance.config_sha256", "\"ab\"",
         "provenance.config_sha256: must have a length of at least 64"},
        {"provenance.ended", "5", "provenance.ended: must be string, got integer"},
        {"provenance.cpu.cores", "0", "provenance.cpu.cores: must be at least 1"},
        {"ceilings.0.value", "0", "ceilings[0].value: must be above 0"},
        {"ceilings.0.unit", "\"GB/s\"", "ceilings[0].unit: must be one of [\"B/s\",\"FLOP/s\","},
        {"ceilings.1.samples", "[1, -2]", "ceilings[1].samples[1]: must be above 0"},
        {"bench.3.performance.median_ns", "null",
         "bench[3].performance.median_ns: must be number, got null"},
        {"bench.3.performance.median_ns", "-7", "bench[3].performance.median_ns: must be above 0"},
        {"bench.3.performance.bound", "\"time\"",
         "bench[3].performance.bound: must be one of [\"bytes\",\"flops\",null]"},
        {"bench.0.performance", "null", "bench[0].performance: must be object, got null"},
        {"bench.0.status", "\"failed\"", "bench[0].performance: must be null, got object"},
        {"bench.15.performance", "{}", "bench[15].performance: must be null, got object"},
        {"bench.0.arm", "\"fp4\"", "bench[0].arm: must be one of [\"bf16\",\"fp8\","},
        {"bench.0.flags", "null", "bench[0].flags: must be array, got null"},
        {"bench.0.source", "\"x\"", "bench[0].source: must be null, got string"},
        {"bench.18.source", "null", "bench[18].source: must be string, got null"},
        {"bench.0.shape.heads", "0", "bench[0].shape.heads: must be at least 1"},
        {"bench.0.shape.batch", "1e300", "bench[0].shape.batch: must be at most 1048576"},
        {"bench.0.shape.d_c", NULL, "bench[0].shape.d_c: is missing"},
        {"bench.0.correctness", "[]", "bench[0].correctness: must be object, got array"},
        {"bench.0.correctness.tolerance", "0", "bench[0].correctness.tolerance: must be above 0"},
        {"fidelity.2.rel_l2", "\"small\"",
         "fidelity[2].rel_l2: must be number or null, got string"},
        {"fidelity.2.context", "-4", "fidelity[2].context: must be at least 0"},
        {"evals.0.dataset.manifest", "\"yes\"", "evals[0].dataset.manifest: must be one of"},
        {"evals.0.arms.1.accuracy_pct", "100.5",
         "evals[0].arms[1].accuracy_pct: must be at most 100"},
        {"evals.0.arms.1.truncated_pct", NULL, "evals[0].arms[1].truncated_pct: is missing"},
        {"evals.0.arms.0.ci95_pct", "[1]",
         "evals[0].arms[0].ci95_pct: must have a number of elements of at least 2"},
        {"evals.0.pairs.0.ci90_pp", "[1, 2, 3]",
         "evals[0].pairs[0].ci90_pp: must have a number of elements of at most 2"},
        {"evals.0.pairs.0.margin_pp", "0", "evals[0].pairs[0].margin_pp: must be above 0"},
        {"evals.0.pairs.0.verdict", "null", "evals[0].pairs[0].verdict: must be string, got null"},
        {"evals.3.pairs.0.verdict", "\"equivalent\"",
         "evals[3].pairs[0].verdict: must be null, got string"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        js *doc = js_parse_file(kFixture, 1 << 20, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
        mutate(doc, cases[i].path, cases[i].json);
        CU_ASSERT_EQUAL(js_write_file(doc, in_dir("mutated.json"), NULL), SNAP_OK);
        js_free(doc);
        snap_err err = {0};
        results *r;
        CU_ASSERT_EQUAL(results_load(&r, in_dir("mutated.json"), &err), SNAP_E_INPUT);
        CU_ASSERT_PTR_NULL(r);
        if (!strstr(err.text, "mutated.json: ") || !strstr(err.text, cases[i].message))
            printf("\n  %s: got '%s'", cases[i].path, err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "mutated.json: "));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
    }
}

static void test_messages_are_one_printable_line(void) {
    js *doc = js_parse_file(kFixture, 1 << 20, NULL), *schema_root = schema_of_results(NULL);
    CU_ASSERT(js_set_int(js_at(js_get_array(doc, "bench"), 0), "a\nb\x1b[31m", 1));
    snap_err err = {0};
    schema s = {.root = schema_root};
    CU_ASSERT_EQUAL(schema_check(&s, "#", doc, "", &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "bench[0].a?b?[31m: is not a key of this version");
    js_free(schema_root);
    js_free(doc);
}

static snap_status load_version(const char *major, const char *minor, snap_err *err) {
    js *doc = js_parse_file(kFixture, 1 << 20, NULL);
    mutate(doc, "schema.major", major);
    mutate(doc, "schema.minor", minor);
    mutate(doc, "bench.0.new_key", "{\"a\": [1]}");
    CU_ASSERT_EQUAL(js_write_file(doc, in_dir("version.json"), NULL), SNAP_OK);
    js_free(doc);
    results *r;
    snap_status st = results_load(&r, in_dir("version.json"), err);
    results_free(r);
    return st;
}

static void test_versions(void) {
    snap_err err = {0};
    CU_ASSERT_EQUAL(load_version("1", "1", &err), SNAP_OK); /* a newer minor version may add keys */
    CU_ASSERT_EQUAL(load_version("2", "0", &err), SNAP_E_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(err.text, "version.json: schema version 2.0 is newer than this program's 1.0"));
    err = (snap_err){0};
    CU_ASSERT_EQUAL(load_version("1", "0", &err), SNAP_E_INPUT); /* this version has no such key */
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "bench[0].new_key"));
}

/* ---- the document ---- */

static js *section_copy(const char *section, size_t i) {
    js *doc = js_parse_file(kFixture, 1 << 20, NULL);
    js *row = js_copy(js_at(js_get_array(doc, section), i));
    js_free(doc);
    return row;
}

static void test_saved_run_loads_equal(void) {
    js *config = js_new_object();
    CU_ASSERT(js_set_int(config, "batch", 8));
    results *r, *back;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", config, 42, &err), SNAP_OK);
    CU_ASSERT_EQUAL(results_set_backend(r, "cpu", "a CPU", "avx2", 2, &err), SNAP_OK);
    CU_ASSERT_EQUAL(results_add(r, "bench", section_copy("bench", 0), &err), SNAP_OK);
    CU_ASSERT_EQUAL(results_add(r, "evals", section_copy("evals", 2), &err), SNAP_OK);
    CU_ASSERT_EQUAL(results_save(r, in_dir("saved.json"), &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT_EQUAL_FATAL(results_load(&back, in_dir("saved.json"), &err), SNAP_OK);
    CU_ASSERT(js_equal(results_document(r), results_document(back)));
    CU_ASSERT_STRING_EQUAL(config_sha256(r), config_sha256(back));
    const js *p = js_get_object(results_document(back), "provenance");
    CU_ASSERT_STRING_EQUAL(js_get_str(p, "command"), "bench");
    CU_ASSERT_EQUAL(js_get_int(p, "seed", 0), 42);
    CU_ASSERT(js_get_int(js_get_object(p, "cpu"), "cores", 0) >= 1);
    results_free(back);
    results_free(r);
    js_free(config);
}

static void test_bad_rows_stay_out(void) {
    results *r;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    js *row = section_copy("bench", 0);
    CU_ASSERT(js_set_num(js_get_object(row, "performance"), "median_ns", 0.0));
    CU_ASSERT_EQUAL(results_add(r, "bench", section_copy("bench", 1), &err), SNAP_OK);
    CU_ASSERT_EQUAL(results_add(r, "bench", row, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "bench[1].performance.median_ns: must be above 0");
    CU_ASSERT_EQUAL(js_len(results_section(r, "bench")), 1);
    CU_ASSERT_EQUAL(results_add(r, "bench", NULL, NULL), SNAP_E_NOMEM);
    /* A row that was made invalid after it was added: nothing is written. */
    CU_ASSERT(js_delete(js_at(results_section(r, "bench"), 0), "arm"));
    err = (snap_err){0};
    CU_ASSERT_EQUAL(results_save(r, in_dir("spoilt.json"), &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "bench[0].arm: is missing"));
    CU_ASSERT_FALSE(fs_exists(in_dir("spoilt.json")));
    results_free(r);
}

static void test_configuration_hash_differs_between_configurations(void) {
    static const char *const texts[] = {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}",
                                        "{\"a\":1,\"b\":3}"};
    char hex[3][65];
    for (int i = 0; i < 3; i++) {
        js *config = js_parse(texts[i], strlen(texts[i]), "config", NULL);
        results *r;
        CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", config, 0, NULL), SNAP_OK);
        (void)snprintf(hex[i], 65, "%s", config_sha256(r));
        results_free(r);
        js_free(config);
    }
    CU_ASSERT_STRING_EQUAL(hex[0], hex[1]); /* the order of keys does not matter */
    CU_ASSERT_STRING_NOT_EQUAL(hex[0], hex[2]);
    /* sha256sum of {"a":1,"b":2} */
    CU_ASSERT_STRING_EQUAL(hex[0],
                           "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777");
}

static void test_join(void) {
    results *to, *from, *again;
    CU_ASSERT_EQUAL_FATAL(results_new(&to, "report", NULL, 0, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(results_load(&from, kFixture, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(results_join(to, from, NULL), SNAP_OK);
    js *ceilings = results_section(from, "ceilings");
    CU_ASSERT(js_set_num(js_at(ceilings, 0), "value", 1e15)); /* higher: replaces the ceiling */
    CU_ASSERT(js_set_num(js_at(ceilings, 1), "value", 1));    /* lower: does not */
    CU_ASSERT_EQUAL(results_join(to, from, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(js_len(results_section(to, "bench")),
                    2 * js_len(results_section(from, "bench")));
    CU_ASSERT_EQUAL(js_len(results_section(to, "ceilings")), 3);
    CU_ASSERT_EQUAL(js_get_num(js_at(results_section(to, "ceilings"), 0), "value", 0), 1e15);
    CU_ASSERT_EQUAL(js_get_num(js_at(results_section(to, "ceilings"), 1), "value", 0), 4e11);
    CU_ASSERT_EQUAL(js_len(js_get_array(results_document(to), "sources")), 2);
    CU_ASSERT_EQUAL(results_save(to, in_dir("joined.json"), NULL), SNAP_OK);
    CU_ASSERT_EQUAL(results_load(&again, in_dir("joined.json"), NULL), SNAP_OK);
    results_free(again);
    results_free(from);
    results_free(to);
}

static js *one_ceiling(const char *unit, double value) {
    js *row = js_new_object();
    CU_ASSERT(js_set_str(row, "name", "x") && js_set_str(row, "unit", unit) &&
              js_set_num(row, "value", value) && js_set_str(row, "method", "loop") &&
              js_set_str(row, "origin", "measured") &&
              js_set_new(row, "samples", js_new_nums(&value, 1)));
    return row;
}

/* The higher rate and the shorter time are the better ceilings, in either order of the files. */
static void test_join_keeps_the_better_ceiling(void) {
    static const struct {
        const char *unit;
        double a, b, best;
    } cases[] = {{"B/s", 1, 2, 2}, {"B/s", 2, 1, 2}, {"ns", 1, 2, 1}, {"ns", 2, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        results *to, *from;
        CU_ASSERT_EQUAL_FATAL(results_new(&to, "report", NULL, 0, NULL), SNAP_OK);
        CU_ASSERT_EQUAL_FATAL(results_new(&from, "roofline", NULL, 0, NULL), SNAP_OK);
        js *a = one_ceiling(cases[i].unit, cases[i].a), *b = one_ceiling(cases[i].unit, cases[i].b);
        CU_ASSERT_EQUAL(results_add(to, "ceilings", a, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(results_add(from, "ceilings", b, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(results_join(to, from, NULL), SNAP_OK);
        const js *rows = results_section(to, "ceilings");
        CU_ASSERT_EQUAL(js_len(rows), 1);
        CU_ASSERT_EQUAL(js_get_num(js_at(rows, 0), "value", 0), cases[i].best);
        results_free(to);
        results_free(from);
    }
}

/* Ceilings of different arms are different ceilings, in one file and in two. */
static void test_join_keeps_ceilings_of_arms(void) {
    static const char *const arms[] = {NULL, "a", "b"};
    results *to, *from[2];
    CU_ASSERT_EQUAL_FATAL(results_new(&to, "report", NULL, 0, NULL), SNAP_OK);
    for (int f = 0; f < 2; f++) {
        CU_ASSERT_EQUAL_FATAL(results_new(&from[f], "bench", NULL, 0, NULL), SNAP_OK);
        for (size_t i = 0; i < sizeof arms / sizeof *arms; i++) {
            js *row = one_ceiling("B/s", (double)(i + 1) * (f ? 10 : 1));
            CU_ASSERT(!arms[i] || js_set_str(row, "arm", arms[i]));
            CU_ASSERT_EQUAL(results_add(from[f], "ceilings", row, NULL), SNAP_OK);
        }
        CU_ASSERT_EQUAL(results_join(to, from[f], NULL), SNAP_OK);
        results_free(from[f]);
    }
    const js *rows = results_section(to, "ceilings");
    CU_ASSERT_EQUAL_FATAL(js_len(rows), 3);
    for (size_t i = 0; i < 3; i++) {
        const char *arm = js_get_str(js_at(rows, i), "arm");
        CU_ASSERT(arms[i] ? arm && strcmp(arm, arms[i]) == 0 : !arm);
        CU_ASSERT_EQUAL(js_get_num(js_at(rows, i), "value", 0), 10.0 * (double)(i + 1));
    }
    results_free(to);
}

static void test_file_of(void) {
    static const struct {
        const char *path, *file;
    } cases[] = {{"no/such.json", "no/such.json"},
                 {"no/such/folder", "no/such/folder/run.json"},
                 {"no/such/folder/", "no/such/folder/run.json"},
                 {"harness", "harness/run.json"},
                 {"Makefile", "Makefile"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *file = results_file_of(cases[i].path);
        CU_ASSERT_STRING_EQUAL(file, cases[i].file);
        free(file);
    }
}

/* ---- provenance ---- */

static void test_provenance_fields(void) {
    static const char cpuinfo[] = "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\n"
                                  "flags\t\t: fpu avx2 fma avx512f avx512_bf16x\n";
    char out[64];
    CU_ASSERT(provenance_field(cpuinfo, "model name", ':', out, sizeof out));
    CU_ASSERT_STRING_EQUAL(out, "Some CPU @ 2.0GHz");
    CU_ASSERT(
        provenance_field("A=1\nPRETTY_NAME=\"An OS\"\n", "PRETTY_NAME", '=', out, sizeof out));
    CU_ASSERT_STRING_EQUAL(out, "An OS");
    CU_ASSERT_FALSE(provenance_field(cpuinfo, "model", ':', out, sizeof out));
    CU_ASSERT_FALSE(provenance_field("", "model", ':', out, sizeof out));
    CU_ASSERT(provenance_field(cpuinfo, "flags", ':', out, sizeof out));
    static const char *const want[] = {"avx2", "fma", "avx512f"};
    arena mem = {0};
    record_texts isa;
    CU_ASSERT_FATAL(provenance_isa(out, &mem, &isa));
    CU_ASSERT_EQUAL(isa.n, 3);
    for (size_t i = 0; i < isa.n && i < 3; i++)
        CU_ASSERT_STRING_EQUAL(isa.at[i], want[i]);
    arena_release(&mem);
}

static void test_folders_are_cut(void) {
    static const struct {
        const char *text, *want;
    } cases[] = {{"/home/ann/run", "run"},
                 {"--out=/home/ann/x.json", "--out=x.json"},
                 {"a=replay:/home/ann/x,/home/ann/y", "a=replay:x,y"},
                 {"bf16=http://host/v1/a,model=/srv/m/7b/", "bf16=http://host/v1/a,model=7b/"},
                 {"-o/home/ann/x.json", "-ox.json"},
                 {"a=local:/home/ann lee/7b,precision=fp8", "a=local:7b,precision=fp8"},
                 {"a=local:///home/ann/7b", "a=local:7b"},
                 {"//home/ann/x", "x"},
                 {"a=https://host//v1,model=//srv/7b", "a=https://host//v1,model=7b"},
                 {"../data/set", "../data/set"},
                 {"and/or /tmp", "and/or /tmp"},
                 {"/srv//x", "x"},
                 {"/", "/"},
                 {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = provenance_cut_folders(cases[i].text);
        CU_ASSERT_STRING_EQUAL(got, cases[i].want);
        free(got);
    }
    js *row = js_new_object();
    buf text = {0};
    CU_ASSERT(provenance_set_path(row, "model", "/home/ann/7b") &&
              provenance_set_path(row, "source", NULL));
    CU_ASSERT_EQUAL(js_write(row, JS_COMPACT, &text, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&text), "{\"model\":\"7b\",\"source\":null}");
    buf_release(&text);
    js_free(row);
}

static void test_passwords_are_hidden(void) {
    static const struct {
        const char *argument;
        size_t kept;
    } line[] = {{"eval", 4},
                {"--gpqa-password=open", 16},
                {"--gpqa-password", 15},
                {"sesame", 0},
                {"--out=password", 14},
                {"password", 8},
                {"--gpqa-password", 15},
                {"--out=x", 0},
                {"--out=x", 7}};
    bool next = false;
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        CU_ASSERT_EQUAL(provenance_public_part(line[i].argument, &next), line[i].kept);
}

static void test_no_names_in_plain(void) {
    char host[256] = "";
    CU_ASSERT_EQUAL(gethostname(host, sizeof host - 1), 0);
    CU_ASSERT_EQUAL(setenv("SNAPMLA_API_KEY", "sk-secret-000", 1), 0);
    results *r;
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "eval", NULL, 0, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(js_write(results_document(r), JS_COMPACT, &text, NULL), SNAP_OK);
    CU_ASSERT_PTR_NULL(strstr(buf_str(&text), "sk-secret"));
    if (strlen(host) > 5) { /* a shorter one may be part of a word */
        CU_ASSERT_PTR_NULL(strstr(buf_str(&text), host));
    }
    buf_release(&text);
    results_free(r);
    (void)unsetenv("SNAPMLA_API_KEY");
}

/* ---- journal ---- */

static const char kShaA[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char kShaB[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

static results_journal *open_journal(void) {
    results_journal *j;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(results_journal_open(&j, in_dir("journal"), kShaA, &err), SNAP_OK);
    return j;
}

static void add(results_journal *j, const char *key, int value) {
    js *row = js_new_object();
    CU_ASSERT(js_set_int(row, "v", value));
    CU_ASSERT_EQUAL(results_journal_append(j, key, row, NULL), SNAP_OK);
    js_free(row);
}

static int64_t value_of(const results_journal *j, const char *key) {
    return js_get_int(results_journal_find(j, key), "v", -1);
}

static void test_journal_keeps_rows(void) {
    (void)unlink(in_dir("journal"));
    results_journal *j = open_journal();
    add(j, "a", 1);
    add(j, "b\n\"x", 2);
    add(j, "a", 3); /* the last row of a key counts */
    CU_ASSERT_EQUAL(value_of(j, "a"), 3);
    results_journal_close(j);
    j = open_journal();
    CU_ASSERT_EQUAL(value_of(j, "a"), 3);
    CU_ASSERT_EQUAL(value_of(j, "b\n\"x"), 2);
    CU_ASSERT_PTR_NULL(results_journal_find(j, "c"));
    CU_ASSERT_EQUAL(results_journal_remove(j, NULL), SNAP_OK);
    CU_ASSERT_FALSE(fs_exists(in_dir("journal")));
    CU_ASSERT_FALSE(fs_exists(in_dir("journal.lock")));
}

/* Wherever a kill cuts the file, the complete rows before it remain and the journal can be
 * continued. */
static void test_journal_cut_anywhere(void) {
    (void)unlink(in_dir("journal"));
    results_journal *j = open_journal();
    add(j, "a", 1);
    add(j, "b", 2);
    results_journal_close(j);
    buf whole = {0};
    CU_ASSERT_EQUAL(fs_read(in_dir("journal"), &whole, NULL), SNAP_OK);
    for (size_t n = 0; n <= whole.len; n++) {
        CU_ASSERT_EQUAL(fs_write_atomic(in_dir("journal"), whole.data, n, NULL), SNAP_OK);
        size_t lines = 0;
        for (size_t i = 0; i < n; i++)
            lines += whole.data[i] == '\n';
        j = open_journal();
        CU_ASSERT_EQUAL(value_of(j, "a"), lines >= 2 ? 1 : -1);
        CU_ASSERT_EQUAL(value_of(j, "b"), lines >= 3 ? 2 : -1);
        add(j, "c", 3);
        results_journal_close(j);
        j = open_journal();
        CU_ASSERT_EQUAL(value_of(j, "c"), 3);
        results_journal_close(j);
    }
    buf_release(&whole);
}

static void refuse_journal(const char *text, const char *sha, snap_status want,
                           const char *message) {
    put(in_dir("journal"), text);
    snap_err err = {0};
    results_journal *j;
    CU_ASSERT_EQUAL(results_journal_open(&j, in_dir("journal"), sha, &err), want);
    CU_ASSERT_PTR_NULL(j);
    if (!strstr(err.text, message))
        printf("\n  got '%s'", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    buf after = {0}; /* a refused file is not changed */
    CU_ASSERT_EQUAL(fs_read(in_dir("journal"), &after, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&after), text);
    buf_release(&after);
}

static void test_journal_refusals(void) {
    char header[200], text[400];
    (void)snprintf(header, sizeof header, "{\"journal\":1,\"config_sha256\":\"%s\"}\n", kShaA);
    refuse_journal(header, kShaB, SNAP_E_USAGE, "another configuration");
    refuse_journal("{\"journal\":2,\"config_sha256\":\"x\"}\n", kShaA, SNAP_E_INPUT,
                   "journal:1: not a journal");
    refuse_journal("{\"key\":\"a\",\"row\":{}}\n", kShaA, SNAP_E_INPUT, "journal:1: not a journal");
    (void)snprintf(text, sizeof text, "%s{\"key\":\"a\",\"row\":7}\n", header);
    refuse_journal(text, kShaA, SNAP_E_INPUT, "journal:2: a line must have");
    (void)snprintf(text, sizeof text, "%s\n{\"key\":\n", header);
    refuse_journal(text, kShaA, SNAP_E_INPUT, "journal:3:");
    (void)unlink(in_dir("journal"));
    CU_ASSERT_EQUAL(results_journal_read(&(results_journal *){NULL}, in_dir("journal"), NULL),
                    SNAP_E_IO);
}

/* A process is killed while it appends. The next one finds every row for which append()
 * returned. */
static void test_journal_survives_kill(void) {
    (void)unlink(in_dir("journal"));
    int told[2];
    CU_ASSERT_EQUAL_FATAL(pipe(told), 0);
    pid_t child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        results_journal *j;
        if (results_journal_open(&j, in_dir("journal"), kShaA, NULL) != SNAP_OK)
            _exit(1);
        for (unsigned char i = 0;; i++) {
            char key[16];
            (void)snprintf(key, sizeof key, "%d", i);
            js *row = js_new_object();
            if (!js_set_int(row, "v", i) || results_journal_append(j, key, row, NULL) != SNAP_OK ||
                write(told[1], &i, 1) != 1)
                _exit(1);
            js_free(row);
        }
    }
    unsigned char last = 0;
    while (last < 20 && read(told[0], &last, 1) == 1)
        ;
    snap_err err = {0};
    results_journal *j;
    CU_ASSERT_EQUAL(results_journal_open(&j, in_dir("journal"), kShaA, &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "held by process"));
    CU_ASSERT_EQUAL_FATAL(results_journal_read(&j, in_dir("journal"), NULL), SNAP_OK);
    CU_ASSERT_EQUAL(value_of(j, "20"), 20); /* reading needs no lock */
    results_journal_close(j);
    CU_ASSERT_EQUAL(kill(child, SIGKILL), 0);
    CU_ASSERT_EQUAL(waitpid(child, NULL, 0), child);
    j = open_journal();
    for (int i = 0; i <= last; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%d", i);
        CU_ASSERT_EQUAL(value_of(j, key), i);
    }
    CU_ASSERT_EQUAL(results_journal_remove(j, NULL), SNAP_OK);
    (void)close(told[0]);
    (void)close(told[1]);
}

CU_TestInfo tests_results[] = {
    {"the schema's errors name the path", test_schema_refuses_with_the_path},
    {"messages are one line of printable text", test_messages_are_one_printable_line},
    {"files of other major versions are refused", test_versions},
    {"a saved run is loaded unchanged", test_saved_run_loads_equal},
    {"bad rows are refused", test_bad_rows_stay_out},
    {"configuration hash", test_configuration_hash_differs_between_configurations},
    {"two files are joined", test_join},
    {"joining keeps the better ceiling", test_join_keeps_the_better_ceiling},
    {"joining keeps the ceilings of arms", test_join_keeps_ceilings_of_arms},
    {"a run's folder stands for its result file", test_file_of},
    {"provenance fields", test_provenance_fields},
    {"folders of absolute paths are removed", test_folders_are_cut},
    {"passwords are hidden", test_passwords_are_hidden},
    {"no names or keys in plain text", test_no_names_in_plain},
    {"a journal keeps rows", test_journal_keeps_rows},
    {"a journal cut anywhere can be continued", test_journal_cut_anywhere},
    {"a journal refuses other files", test_journal_refusals},
    {"a journal survives a kill", test_journal_survives_kill},
    CU_TEST_INFO_NULL};
