#include <CUnit/CUnit.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/zip.h"
#include "harness/audit/arm_files.h"
#include "harness/audit/bundle.h"
#include "harness/test/report_fixture.h"
#include "harness/view/run_report.h"

static void check_part(void (*part)(const run_record *r, verify_findings *f), const results *r,
                       verify_findings *f) {
    arena mem = {0};
    run_record run;
    CU_ASSERT_FATAL(run_read(&run, r, &mem, NULL) == SNAP_OK);
    part(&run, f);
    arena_release(&mem);
}

static results *load(void) {
    results *r = NULL;
    CU_ASSERT_FATAL(results_load(&r, "harness/test/fixtures/bench.json", NULL) == SNAP_OK);
    return r;
}

static js *row(const results *r, size_t i) {
    return js_at(results_section(r, "bench"), i);
}

static js *perf(const results *r, size_t i) {
    return js_get_object(row(r, i), "performance");
}

/* Checks the verdict on a document. The first finding of that kind must mention @what. */
static void expect(const results *r, snap_status want, const char *what) {
    verify_findings f = {0};
    snap_err err = {0};
    verify_document(r, &f);
    CU_ASSERT_EQUAL(verify_status(&f, &err), want);
    CU_ASSERT(f.checks > 50);
    CU_ASSERT(strstr(err.text, what) != NULL);
    if (!strstr(err.text, what))
        printf("    '%s' has no '%s'\n", err.text, what);
    verify_release(&f);
}

/* Changes the loaded fixture in one way. forged() checks the finding that must follow. */
typedef void (*forge_fn)(results *r);
static void forged(forge_fn forge, snap_status want, const char *what) {
    results *r = load();
    forge(r);
    expect(r, want, what);
    results_free(r);
}

static void nothing(results *r) {
    (void)r;
}

static void config(results *r) {
    js *p = js_get_object(results_document(r), "provenance");
    CU_ASSERT(js_set_str(js_get_object(p, "config"), "heads", "1"));
}

static void times(results *r) {
    CU_ASSERT(js_set_str(js_get_object(results_document(r), "provenance"), "ended",
                         "2001-01-01T00:00:00Z"));
}

static void median(results *r) { /* faster, but the samples do not change */
    CU_ASSERT(js_set_num(perf(r, 1), "median_ns", js_get_num(perf(r, 1), "median_ns", 0) * 0.9));
}

static void rate(results *r) {
    CU_ASSERT(js_set_num(perf(r, 1), "tflops", js_get_num(perf(r, 1), "tflops", 0) * 1.2));
}

static void unchecked(results *r) {
    CU_ASSERT(js_set_new(row(r, 0), "correctness", js_new_null()));
}

static void wrong(results *r) {
    CU_ASSERT(js_set_num(js_get_object(row(r, 0), "correctness"), "error", 0.5));
}

static void generous(results *r) {
    js *c = js_get_object(row(r, 0), "correctness");
    CU_ASSERT(js_set_num(c, "error", 0.5) && js_set_num(c, "tolerance", 1));
}

/* The times of row 1 become a tenth, and its rates ten times as high: consistent, but
 * impossible. */
static void impossible(results *r) {
    static const char *const shorter[] = {"min_ns", "q1_ns", "median_ns", "q3_ns", "max_ns"};
    static const char *const higher[] = {"tflops", "gb_s", "tok_s", "roofline_pct"};
    js *p = perf(r, 1), *samples = js_new_array();
    const js *old = js_get_array(p, "samples_ns");
    for (size_t i = 0; i < js_len(old); i++)
        CU_ASSERT(js_push_new(samples, js_new_num(js_num(js_at(old, i)) / 10)));
    CU_ASSERT(js_set_new(p, "samples_ns", samples));
    for (size_t i = 0; i < 5; i++)
        CU_ASSERT(js_set_num(p, shorter[i], js_get_num(p, shorter[i], 0) / 10));
    for (size_t i = 0; i < 4; i++)
        CU_ASSERT(js_set_num(p, higher[i], js_get_num(p, higher[i], 0) * 10));
}

static void flagged(results *r) {
    js *flags = js_new_array();
    CU_ASSERT(js_push_new(flags, js_new_str("below_floor")) &&
              js_set_new(row(r, 0), "flags", flags));
}

static void mixed(results *r) {
    CU_ASSERT(js_set_str(row(r, 3), "distribution", "mla"));
}

static void two_codes(results *r) {
    CU_ASSERT(js_set_str(row(r, 3), "kernel_hash",
                         "0000000000000000000000000000000000000000000000000000000000000000"));
}

static void bad_hash(results *r) {
    CU_ASSERT(js_set_str(row(r, 0), "kernel_hash", "DEADBEEF"));
}

static void vendor(results *r) { /* a plugin's backend without its name */
    js *p = js_get_object(results_document(r), "provenance");
    CU_ASSERT(js_set_str(js_get_object(p, "backend"), "name", "vendor"));
}

/* A run of a plugin whose last row has another hash. */
static void two_plugins(results *r) {
    const js *rows = results_section(r, "bench");
    const char *code = js_get_str(row(r, 0), "kernel_hash");
    js *plugin = js_new_object();
    vendor(r);
    CU_ASSERT(js_set_str(plugin, "file", "vendor.so") && js_set_str(plugin, "sha256", code));
    js *p = js_get_object(results_document(r), "provenance");
    CU_ASSERT(js_set_new(js_get_object(p, "backend"), "plugin", plugin));
    expect(r, SNAP_OK, "");
    CU_ASSERT(js_set_str(js_at(rows, js_len(rows) - 1), "kernel_hash",
                         "0000000000000000000000000000000000000000000000000000000000000000"));
}

static void test_forgeries(void) {
    forged(nothing, SNAP_OK, "");
    forged(config, SNAP_E_INPUT, "the configuration has the hash");
    forged(times, SNAP_E_INPUT, "before it began");
    forged(median, SNAP_E_INPUT, "median_ns is");
    forged(rate, SNAP_E_WRONG, "tflops is");
    forged(unchecked, SNAP_E_WRONG, "whose output was not checked");
    forged(wrong, SNAP_E_WRONG, "passed with an error of 0.5");
    forged(generous, SNAP_E_WRONG, "a tolerance of 1");
    forged(impossible, SNAP_E_WRONG, "below the floor");
    forged(flagged, SNAP_E_WRONG, "below the floor");
    forged(mixed, SNAP_E_ENV, "differ in distribution");
    forged(two_codes, SNAP_E_ENV, "two machine codes");
    forged(bad_hash, SNAP_E_INPUT, "not a SHA-256");
    forged(vendor, SNAP_E_INPUT, "no plugin is named");
    forged(two_plugins, SNAP_E_INPUT, "but the plugin has");
}

/* ---- files ---- */

/* A fixture serves as the plugin file, and its folder as the checkpoint. At first, the result names
 * neither, so each comparison is a finding. When the result holds the plugin file's hash, comparing
 * it adds no finding. */
static void test_files(void) {
    static const char plugin[] = "harness/test/fixtures/bench.json";
    static const char checkpoint[] = "harness/test/fixtures";
    results *r = load();
    verify_findings f = {0};
    char hex[HASH_HEX];
    snap_err err = {0};
    CU_ASSERT(verify_plugin(r, plugin, &f, NULL) == SNAP_OK && f.n[VERIFY_FORM] == 1);
    CU_ASSERT(verify_checkpoint(r, checkpoint, &f, NULL) == SNAP_OK && f.n[VERIFY_FORM] == 2);
    vendor(r);
    js *backend = js_get_object(js_get_object(results_document(r), "provenance"), "backend");
    js *named = js_new_object();
    CU_ASSERT_FATAL(hash_file(plugin, hex, NULL) == SNAP_OK);
    CU_ASSERT(js_set_str(named, "sha256", hex) && js_set_new(backend, "plugin", named));
    CU_ASSERT(verify_plugin(r, plugin, &f, NULL) == SNAP_OK && f.n[VERIFY_FORM] == 2);
    CU_ASSERT_EQUAL(verify_plugin(r, "/nonexistent.so", &f, &err), SNAP_E_IO);
    verify_release(&f);
    results_free(r);
}

/* Two arms that used one folder must have had the same checkpoint. For two folders there is only a
 * note. */
static void test_checkpoints(void) {
    static const char *const hashes[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "1111111111111111111111111111111111111111111111111111111111111111"};
    results *r = NULL;
    verify_findings f = {0};
    CU_ASSERT_FATAL(results_load(&r, "harness/test/fixtures/run.json", NULL) == SNAP_OK);
    js *arms = js_get_array(js_at(results_section(r, "evals"), 0), "arms");
    for (size_t i = 0; i < 2; i++)
        CU_ASSERT(js_set_str(js_at(arms, i), "checkpoint_sha256", hashes[i]) &&
                  js_set_str(js_at(arms, i), "source", "local:m"));
    check_part(verify_origin, r, &f);
    CU_ASSERT_EQUAL(f.n[VERIFY_MIXED], 1);
    verify_release(&f);
    CU_ASSERT(js_set_str(js_at(arms, 1), "source", "local:n"));
    check_part(verify_origin, r, &f);
    CU_ASSERT_EQUAL(f.n[VERIFY_MIXED], 0);
    CU_ASSERT_EQUAL(f.n[VERIFY_NOTE], 1);
    verify_release(&f);
    results_free(r);
}

/* ---- evals ---- */

static void test_verdicts(void) {
    results *r = NULL;
    CU_ASSERT_FATAL(results_load(&r, "harness/test/fixtures/run.json", NULL) == SNAP_OK);
    js *eval = js_at(results_section(r, "evals"), 0), *ci = js_new_array();
    js *pair = js_at(js_get_array(eval, "pairs"), 0);
    verify_findings f = {0};
    check_part(verify_quality, r, &f);
    CU_ASSERT_EQUAL(f.n[VERIFY_CORRECTNESS], 0);
    CU_ASSERT(js_push_new(ci, js_new_num(-5)) && js_push_new(ci, js_new_num(1)));
    CU_ASSERT(js_set_str(pair, "verdict", "equivalent") && js_set_new(pair, "ci90_pp", ci) &&
              js_set_num(pair, "margin_pp", 2));
    verify_release(&f);
    check_part(verify_quality, r, &f);
    CU_ASSERT_EQUAL(f.n[VERIFY_CORRECTNESS], 1);
    CU_ASSERT(js_set_str(pair, "arm", "somebody else"));
    verify_release(&f);
    check_part(verify_quality, r, &f);
    CU_ASSERT(f.n[VERIFY_FORM] > 0);
    verify_release(&f);
    results_free(r);
}

static snap_status samples_of(results *r, const char *lines, snap_err *err) {
    buf text = {0};
    verify_findings f = {0};
    (void)buf_puts(&text, lines);
    snap_status st = verify_samples(r, &text, "samples.jsonl", &f, err);
    if (st == SNAP_OK)
        st = verify_status(&f, err);
    verify_release(&f);
    buf_release(&text);
    return st;
}

static void test_samples(void) {
    results *r = load();
    snap_err err = {0};
    js *arm = js_new_object(), *arms = js_new_array(), *eval = js_new_object();
    CU_ASSERT(js_set_str(arm, "name", "fp8") && js_set_int(arm, "scored", 3) &&
              js_set_num(arm, "accuracy_pct", 75));
    CU_ASSERT(js_push_new(arms, arm) && js_set_str(eval, "task", "t") &&
              js_set_new(eval, "arms", arms) && js_push_new(results_section(r, "evals"), eval));
#define ROW(p, rest) "{\"task\":\"t\",\"arm\":\"fp8\",\"problem\":\"" p "\"," rest "}\n"
    static const char good[] = ROW("1", "\"verdict\":\"correct\"") ROW("1", "\"verdict\":\"wrong\"")
        ROW("2", "\"verdict\":\"correct\"") ROW("2", "\"failed\":true");
    CU_ASSERT_EQUAL(samples_of(r, good, &err), SNAP_OK);
    CU_ASSERT_EQUAL(samples_of(r, ROW("1", "\"verdict\":\"correct\""), &err), SNAP_E_INPUT);
    CU_ASSERT(js_set_num(arm, "accuracy_pct", 80));
    err = (snap_err){0};
    CU_ASSERT_EQUAL(samples_of(r, good, &err), SNAP_E_WRONG);
    CU_ASSERT(strstr(err.text, "its samples give 75") != NULL);
    CU_ASSERT_EQUAL(samples_of(r, "{}\n", &err), SNAP_E_INPUT);
    CU_ASSERT_EQUAL(samples_of(r, "nonsense\n", &err), SNAP_E_INPUT);
    results_free(r);
}

/* ---- bundles ---- */

static const bundle_options kPack = {.report = run_report_markdown};

static char dir[64];

static const char *in_dir(const char *name) {
    static char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static snap_status open_bundle(snap_err *err) {
    results *r = NULL;
    buf samples = {0};
    verify_findings f = {0};
    snap_status st = bundle_open(in_dir("b.zip"), &r, &samples, &f, err);
    CU_ASSERT((st == SNAP_OK) == (r != NULL));
    CU_ASSERT(f.n[VERIFY_FORM] == 0 && f.n[VERIFY_NOTE] == 0);
    verify_release(&f);
    results_free(r);
    buf_release(&samples);
    return st;
}

/* The members of a bundle, to be changed and packed again. */
typedef struct {
    char names[8][64];
    buf contents[8];
    size_t n;
} parts;

static snap_status take(void *ctx, const char *name, const buf *content, snap_err *err) {
    parts *p = ctx;
    CU_ASSERT_FATAL(p->n < 8);
    (void)snprintf(p->names[p->n], sizeof p->names[0], "%s", name);
    CU_ASSERT(buf_append(&p->contents[p->n++], buf_str(content), content->len));
    (void)err;
    return SNAP_OK;
}

static parts *unpack(void) {
    parts *p = calloc(1, sizeof *p);
    buf zip = {0};
    CU_ASSERT_FATAL(p && fs_read(in_dir("good.zip"), &zip, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(zip_each_member(zip.data, zip.len, "b", (zip_limits){8, 1 << 24}, take, p,
                                    NULL) == SNAP_OK);
    buf_release(&zip);
    return p;
}

static void repack(parts *p, size_t n) {
    zip_entry entries[8];
    buf zip = {0};
    for (size_t i = 0; i < n; i++)
        entries[i] = (zip_entry){p->names[i], p->contents[i].data, p->contents[i].len};
    CU_ASSERT_FATAL(zip_pack(entries, n, &zip, NULL) == SNAP_OK);
    CU_ASSERT(fs_write_atomic(in_dir("b.zip"), zip.data, zip.len, NULL) == SNAP_OK);
    buf_release(&zip);
    for (size_t i = 0; i < p->n; i++)
        buf_release(&p->contents[i]);
    free(p);
}

static void test_bundle(void) {
    snap_err err = {0};
    (void)snprintf(dir, sizeof dir, "/tmp/snapmla-bundle-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    CU_ASSERT_FATAL(bundle_pack("harness/test/fixtures/bench.json", in_dir("good.zip"), &kPack,
                                &err) == SNAP_OK);
    parts *p = unpack();
    CU_ASSERT_EQUAL(p->n, 4); /* manifest, run, config, report */
    repack(p, p->n);
    CU_ASSERT_EQUAL(open_bundle(&err), SNAP_OK);

    p = unpack();
    p->contents[1].data[100] ^= 1;
    repack(p, p->n);
    CU_ASSERT_EQUAL(open_bundle(&err), SNAP_E_INPUT);
    CU_ASSERT(strstr(err.text, "'run.json' has another sha256") != NULL);

    p = unpack();
    repack(p, p->n - 1);
    err = (snap_err){0};
    CU_ASSERT_EQUAL(open_bundle(&err), SNAP_E_INPUT);
    CU_ASSERT(strstr(err.text, "is missing") != NULL);

    p = unpack();
    (void)take(p, "extra.sh", &(buf){.data = (char[]){"rm -rf"}, .len = 6}, NULL);
    repack(p, p->n);
    err = (snap_err){0};
    CU_ASSERT_EQUAL(open_bundle(&err), SNAP_E_INPUT);
    CU_ASSERT(strstr(err.text, "'extra.sh' is not in the manifest") != NULL);

    p = unpack();
    buf_clear(&p->contents[0]);
    (void)buf_puts(&p->contents[0], "{\"schema\":{\"name\":\"snapmla.bundle\",\"major\":2}}");
    repack(p, p->n);
    CU_ASSERT_EQUAL(open_bundle(NULL), SNAP_E_INPUT);
    CU_ASSERT(fs_write_atomic(in_dir("b.zip"), "PK\3\4 no zip", 11, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(open_bundle(NULL), SNAP_E_INPUT);
    CU_ASSERT_EQUAL(bundle_pack("harness/test/fixtures/none.json", in_dir("c.zip"), &kPack, NULL),
                    SNAP_E_IO);
    CU_ASSERT(!fs_exists(in_dir("c.zip")));
    (void)unlink(in_dir("b.zip"));
    (void)unlink(in_dir("good.zip"));
    (void)rmdir(dir);
}

/* A run in which a link or a pipe stands in the place of a file is not packed. */
static void test_bundle_has_no_links(void) {
    static const char *const names[] = {"samples.jsonl", "log", "report.html", "journal",
                                        "run.json"};
    buf result = {0};
    (void)snprintf(dir, sizeof dir, "/tmp/snapmla-bundle-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    CU_ASSERT_EQUAL(fs_read("harness/test/fixtures/bench.json", &result, NULL), SNAP_OK);
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        snap_err err = {0};
        const char *name = names[i / 2];
        CU_ASSERT_EQUAL(fs_write_atomic(in_dir("run.json"), result.data, result.len, NULL),
                        SNAP_OK);
        (void)unlink(in_dir(name));
        CU_ASSERT_EQUAL(i % 2 ? mkfifo(in_dir(name), 0600) : symlink("/etc/passwd", in_dir(name)),
                        0);
        CU_ASSERT_EQUAL(bundle_pack(dir, in_dir("b.zip"), &kPack, &err), SNAP_E_IO);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, name));
        CU_ASSERT_PTR_NOT_NULL(
            strstr(err.text, i % 2 ? "it is not a regular file" : "it is a symbolic link"));
        CU_ASSERT_FALSE(fs_exists(in_dir("b.zip")));
        CU_ASSERT_EQUAL(unlink(in_dir(name)), 0);
    }
    /* a file that the user names may be a link */
    char target[PATH_MAX], link[200];
    (void)snprintf(link, sizeof link, "%s", in_dir("named.json"));
    CU_ASSERT_PTR_NOT_NULL(realpath("harness/test/fixtures/bench.json", target));
    CU_ASSERT_EQUAL(symlink(target, link), 0);
    CU_ASSERT_EQUAL(bundle_pack(link, in_dir("b.zip"), &kPack, NULL), SNAP_OK);
    (void)unlink(link);
    (void)unlink(in_dir("b.zip"));
    (void)rmdir(dir);
    buf_release(&result);
}

/* ---- the files of arms ---- */

static const char kCode[] = "def attend(state, step, q, cache, out, lse):\n    pass\n";
static const char kFormat[] = "{\"name\":\"mine\"}"; /* only its hash counts here */

/* The fixture with one row of the arm "mine": a Python file and a format. */
static void put_run(const char *name, const char *code) {
    results *r = fixture_load();
    char hex[HASH_HEX];
    js *row = js_at(results_section(r, "bench"), 0), *format = js_new_object();
    buf text = {0};
    CU_ASSERT(hash_bytes(code, strlen(code), hex, NULL) == SNAP_OK);
    CU_ASSERT(js_set_str(row, "name", "mine") && js_set_str(row, "kernel_hash", hex) &&
              js_set_str(row, "options", "python:some/where/mine.py,format=f.json"));
    CU_ASSERT(hash_bytes(kFormat, strlen(kFormat), hex, NULL) == SNAP_OK);
    CU_ASSERT(js_set_str(format, "name", "mine") && js_set_str(format, "sha256", hex) &&
              js_set_num(format, "bytes_per_token", 576) && js_set_int(format, "page_tokens", 64) &&
              js_set_str(format, "descriptor", kFormat));
    CU_ASSERT(js_set_new(row, "format", format));
    CU_ASSERT(js_write(results_document(r), JS_PRETTY, &text, NULL) == SNAP_OK);
    CU_ASSERT(fs_write_atomic(in_dir(name), text.data, text.len, NULL) == SNAP_OK);
    buf_release(&text);
    results_free(r);
}

/* Opens the bundle and counts the findings of one kind about files of arms. */
static size_t count_in_bundle(verify_kind kind) {
    results *r = NULL;
    buf samples = {0};
    verify_findings f = {0};
    CU_ASSERT(bundle_open(in_dir("b.zip"), &r, &samples, &f, NULL) == SNAP_OK);
    size_t n = f.n[kind];
    verify_release(&f);
    results_free(r);
    buf_release(&samples);
    return n;
}

/* @name: the file in the folder that the user names for the bundle; NULL: none. */
static snap_status pack_with(const char *name, snap_err *err) {
    char path[160];
    const char *file = path;
    (void)snprintf(path, sizeof path, "%s", in_dir(name ? name : ""));
    bundle_options opt = {.report = run_report_markdown, .files = &file, .n_files = name != NULL};
    return bundle_pack(dir, in_dir("b.zip"), &opt, err);
}

static size_t count_in_folder(verify_kind kind) {
    results *r = NULL;
    verify_findings f = {0};
    CU_ASSERT_FATAL(results_load(&r, in_dir("run.json"), NULL) == SNAP_OK);
    CU_ASSERT(verify_folder_files(r, dir, &f, NULL) == SNAP_OK);
    size_t n = f.n[kind];
    verify_release(&f);
    results_free(r);
    return n;
}

/* The bundle has the copy that `bench` left in the folder, and the format. */
static void test_bundle_has_files_of_arms(void) {
    static const char kCopy[] = "arm-mine=mine.py";
    snap_err err = {0};
    (void)snprintf(dir, sizeof dir, "/tmp/snapmla-bundle-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    put_run("run.json", kCode);
    CU_ASSERT(fs_write_atomic(in_dir(kCopy), kCode, strlen(kCode), NULL) == SNAP_OK);
    CU_ASSERT(pack_with(NULL, &err) == SNAP_OK);
    CU_ASSERT(count_in_bundle(VERIFY_FORM) == 0 && count_in_bundle(VERIFY_NOTE) == 0);
    CU_ASSERT(count_in_folder(VERIFY_FORM) == 0 && count_in_folder(VERIFY_NOTE) == 0);

    /* a copy that was changed is neither packed nor accepted */
    CU_ASSERT(fs_write_atomic(in_dir(kCopy), "import os\n", 10, NULL) == SNAP_OK);
    CU_ASSERT(count_in_folder(VERIFY_FORM) == 1);
    CU_ASSERT(pack_with(NULL, &err) == SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is not the file that was measured"));
    CU_ASSERT(pack_with(kCopy, &err) == SNAP_E_INPUT);

    /* without a copy, the bundle has the file only if the user names it */
    CU_ASSERT(unlink(in_dir(kCopy)) == 0);
    CU_ASSERT(fs_write_atomic(in_dir("other.py"), kCode, strlen(kCode), NULL) == SNAP_OK);
    CU_ASSERT(pack_with("other.py", NULL) == SNAP_OK);
    CU_ASSERT(count_in_bundle(VERIFY_NOTE) == 0);
    CU_ASSERT(pack_with(NULL, NULL) == SNAP_OK && count_in_bundle(VERIFY_NOTE) == 1);
    CU_ASSERT(count_in_folder(VERIFY_NOTE) == 1);
    CU_ASSERT(unlink(in_dir("other.py")) == 0 && unlink(in_dir("run.json")) == 0);
    CU_ASSERT(unlink(in_dir("b.zip")) == 0 && rmdir(dir) == 0);
}

/* Someone who changes a file of a bundle also changes the manifest. The row has the hash, too. */
static void test_changed_file_in_bundle(void) {
    char sha[HASH_HEX];
    buf manifest = {0};
    (void)snprintf(dir, sizeof dir, "/tmp/snapmla-bundle-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    put_run("run.json", kCode);
    CU_ASSERT(fs_write_atomic(in_dir("arm-mine=mine.py"), kCode, strlen(kCode), NULL) == SNAP_OK);
    bundle_options opt = {.report = run_report_markdown};
    CU_ASSERT(bundle_pack(dir, in_dir("good.zip"), &opt, NULL) == SNAP_OK);
    parts *p = unpack();
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->names[i], "arm-mine=mine.py") == 0)
            p->contents[i].data[0] ^= 1;
    js *o = js_parse(p->contents[0].data, p->contents[0].len, "manifest", NULL);
    js *files = js_get_array(o, "files");
    for (size_t i = 0; i < js_len(files); i++) {
        CU_ASSERT(hash_bytes(p->contents[i + 1].data, p->contents[i + 1].len, sha, NULL) ==
                  SNAP_OK);
        CU_ASSERT(js_set_str(js_at(files, i), "sha256", sha));
    }
    CU_ASSERT(js_write(o, JS_PRETTY, &manifest, NULL) == SNAP_OK);
    buf_clear(&p->contents[0]);
    (void)buf_append(&p->contents[0], manifest.data, manifest.len);
    repack(p, p->n);
    CU_ASSERT(count_in_bundle(VERIFY_FORM) == 1);
    js_free(o);
    buf_release(&manifest);
    CU_ASSERT(unlink(in_dir("arm-mine=mine.py")) == 0 && unlink(in_dir("run.json")) == 0);
    CU_ASSERT(unlink(in_dir("b.zip")) == 0 && unlink(in_dir("good.zip")) == 0 && rmdir(dir) == 0);
}

static void test_names_of_files(void) {
    static const struct {
        const char *name, *options, *want;
    } cases[] = {
        {"a", "plugin:./x/y.so,precision=fp8", "arm-a=y.so"},
        {"a.b", "python:y.py", "arm-a.b=y.py"},
        {"a", "cpu,threads=1", NULL},
        {"a", "plugin:x/", NULL},
        {"a/b", "plugin:y z.so", "arm-a_b=y_z.so"},
        {"", "plugin:y.so", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[ARM_FILE_NAME];
        bool is = arm_file_name(cases[i].name, cases[i].options, out);
        CU_ASSERT(is == (cases[i].want != NULL));
        CU_ASSERT(!is || strcmp(out, cases[i].want) == 0);
    }
}

/* ---- steps of whole models ---- */

/* A row of two GPUs: 64 tokens in 8 ms, 12 J, in a loop of 2 s. */
static step_record energetic_step(void) {
    static const double ranks[] = {5.5, 6.5};
    step_record s;
    record_init(&step_type, &s);
    s.parts = STEP_TIMED;
    s.step = "decode";
    s.batch = 64;
    s.median_ns = s.best_ns = s.worst_ns = 8e6;
    s.tokens_s = 8000;
    s.energy_steps = 200;
    s.energy_s = 2;
    s.joules_step = 12;
    s.joules_token = 0.1875;
    s.rank_joules = (record_numbers){ranks, 2};
    return s;
}

static void expect_step(const step_record *s, size_t form, size_t physics) {
    step_record row = *s;
    run_record run = {.e2e = {&row, 1}};
    verify_findings f = {0};
    verify_steps(&run, &f);
    CU_ASSERT(f.checks >= 2);
    CU_ASSERT_EQUAL(f.n[VERIFY_FORM], form);
    CU_ASSERT_EQUAL(f.n[VERIFY_PHYSICS], physics);
    verify_release(&f);
}

static void test_steps(void) {
    step_record good = energetic_step(), s = good;
    expect_step(&s, 0, 0);
    s.best_ns = 9e6;
    expect_step(&s, 1, 0);
    s = good;
    s.tokens_s = 8100;
    expect_step(&s, 0, 1);
    s = good;
    s.energy_s = 0.9;
    expect_step(&s, 1, 0);
    s = good;
    s.joules_token = 0.2;
    expect_step(&s, 0, 1);
    s = good;
    s.joules_step = 13;
    s.joules_token = 13.0 / 64;
    expect_step(&s, 0, 1);
    s = good;
    s.energy_steps = 200000; /* 600 kW for each GPU */
    expect_step(&s, 0, 1);
    s = good;
    s.joules_step = s.joules_token = (double)NAN; /* the sum over the ranks is missing */
    expect_step(&s, 0, 3);
    s = good;
    s.energy_steps = RECORD_NO_COUNT;
    expect_step(&s, 1, 0);
    s = good;
    s.rank_median_ns = s.rank_joules; /* of two ranks */
    s.rank_joules = (record_numbers){0};
    expect_step(&s, 1, 0);
    s = good; /* not measured */
    s.joules_step = s.joules_token = s.energy_s = (double)NAN;
    s.energy_steps = RECORD_NO_COUNT;
    s.rank_joules = (record_numbers){0};
    expect_step(&s, 0, 0);
}

CU_TestInfo tests_verify[] = {{"a bundle has the files of arms", test_bundle_has_files_of_arms},
                              {"a changed file in a bundle", test_changed_file_in_bundle},
                              {"names of files of arms", test_names_of_files},
                              {"a bundle has no links", test_bundle_has_no_links},
                              {"files of plugins", test_files},
                              {"checkpoints of arms", test_checkpoints},
                              {"forged results are found", test_forgeries},
                              {"verdicts against intervals", test_verdicts},
                              {"accuracies against samples", test_samples},
                              {"a bundle is packed and verified", test_bundle},
                              {"steps of whole models", test_steps},
                              CU_TEST_INFO_NULL};
