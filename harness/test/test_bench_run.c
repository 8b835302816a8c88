/* test_bench_run.c - whole runs of `bench` on the CPU: interrupted, continued and completed, with
 * their result files and journals. */
#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "base/test/sanitized.h"
#include "harness/audit/audit.h"
#include "harness/bench/bench_journal.h"
#include "harness/bench/bench_run.h"
#include "harness/test/report_fixture.h"
#include "harness/view/pages.h"

static volatile sig_atomic_t cancelled;

static void cancel(int number) {
    (void)number;
    cancelled = 1;
}

static char folder[48], file[80], journal[96], lock[112], ceilings[80];

static void folder_open(void) {
    (void)snprintf(folder, sizeof folder, "/tmp/snapmla-bench-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    (void)snprintf(file, sizeof file, "%s/r.json", folder);
    (void)snprintf(journal, sizeof journal, "%s.journal", file);
    (void)snprintf(lock, sizeof lock, "%s.lock", journal);
    (void)snprintf(ceilings, sizeof ceilings, "%s/c.json", folder);
    term_set_quiet(true);
}

static void folder_close(void) {
    (void)unlink(file);
    (void)unlink(journal);
    (void)unlink(lock);
    (void)unlink(ceilings);
    CU_ASSERT_EQUAL(rmdir(folder), 0);
}

/* The second arm computes zeros, so its rows are "failed". It interrupts the run at the second
 * shape. */
static bench_options options(void) {
    return (bench_options){.arms = {.items = {"base=cpu", "other=plugin:" PLUGINS
                                                          "/test/plugins/ATTEND_INTERRUPTS.so"},
                                    .n = 2},
                           .grid = {.arms = "bf16,fp8",
                                    .scopes = "kernel",
                                    .heads = "1",
                                    .s_q = "1",
                                    .batch = "1",
                                    .context = "64",
                                    .shapes = "2/1/1/64,3/1/1/64,2/1/2/64",
                                    .d_c = 512,
                                    .d_r = 64},
                           .distribution = "normal",
                           .challenge_tokens = 65536,
                           .seed = 1,
                           .timeout_s = 0.01,
                           .min_samples = 2,
                           .out = file,
                           .cancel = &cancelled};
}

/* Runs the benchmark and returns its result, or NULL. With @interrupt, the second arm sends the
 * process a signal that interrupts the run; otherwise the signal is ignored. */
static results *run(const bench_options *o, bool interrupt, snap_status want, snap_err *err) {
    struct sigaction act = {.sa_handler = interrupt ? cancel : SIG_IGN}, before;
    js *config = js_new_object();
    results *r = NULL;
    cancelled = 0;
    *err = (snap_err){0};
    CU_ASSERT_EQUAL_FATAL(sigaction(SIGUSR1, &act, &before), 0);
    CU_ASSERT_EQUAL(bench_run(o, config, &r, err), want);
    CU_ASSERT_EQUAL(sigaction(SIGUSR1, &before, NULL), 0);
    js_free(config);
    return r;
}

/* Loads the result file, and compares what it has. @interrupted: NULL if the run was complete. */
static results *load(size_t rows, const char *interrupted) {
    results *r = NULL;
    CU_ASSERT_EQUAL_FATAL(results_load(&r, file, NULL), SNAP_OK);
    const char *ended = js_get_str(js_get_object(results_document(r), "provenance"), "ended");
    CU_ASSERT_EQUAL(js_len(results_section(r, "bench")), rows);
    CU_ASSERT_EQUAL(ended == NULL, interrupted != NULL);
    const char *has = results_interrupted(r);
    CU_ASSERT(interrupted ? has && strcmp(has, interrupted) == 0 : !has);
    return r;
}

static size_t findings(const results *r, verify_kind kind, const char *says) {
    verify_findings f = {0};
    size_t n = 0;
    verify_document(r, &f);
    for (size_t i = 0; i < js_len(f.rows); i++)
        n += strstr(js_get_str(js_at(f.rows, i), "what"), says) != NULL;
    CU_ASSERT(f.n[VERIFY_FORM] == 0);
    n = f.n[kind] ? n : 0;
    verify_release(&f);
    return n;
}

/* The report and verify-run state what the file has. */
static void expect_said(results *r) {
    buf page = {0};
    report_model *m = fixture_model(r);
    CU_ASSERT_EQUAL(findings(r, VERIFY_NOTE, "interrupted: 1 of 3 shapes"), 1);
    report_markdown(m, &page);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&page), ": interrupted: 1 of 3 shapes.\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&page), "| interrupted: 1 of 3 shapes |"));
    buf_clear(&page);
    write_page(m, &page);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&page), ": interrupted: 1 of 3 shapes.</li>"));
    buf_release(&page);
    report_model_free(m);
}

/* A run that is cancelled before its first shape is complete writes no file. */
static void expect_no_file(bench_options o) {
    snap_err err;
    (void)unlink(file);
    (void)unlink(journal);
    o.grid.shapes = "3/1/1/64";
    CU_ASSERT_PTR_NULL(run(&o, true, SNAP_E_CANCELLED, &err));
    CU_ASSERT_STRING_EQUAL(err.text, "interrupted: 0 of 1 shapes");
    CU_ASSERT(!fs_exists(file) && fs_exists(journal));
}

/* The plugin uses the probes of the CPU backend, so both arms have the same ceilings. */
static void expect_shared_ceilings(const results *r) {
    const js *rows = results_section(r, "bench"), *rates = results_section(r, "ceilings");
    for (size_t i = 0; i < js_len(rows); i++)
        CU_ASSERT_STRING_EQUAL(js_get_str(js_at(rows, i), "ceilings"), "base");
    for (size_t i = 0; i < js_len(rates); i++)
        CU_ASSERT_STRING_EQUAL(js_get_str(js_at(rates, i), "arm"), "base");
    CU_ASSERT_EQUAL(js_len(rates), 3);
}

/* Runs the same command twice more. The first time, it takes over the first shape of @kept and is
 * interrupted again. The second time, it completes the run. A complete result stays. */
static void expect_continued(const bench_options *o, const results *kept) {
    snap_err err;
    results *whole, *r = run(o, true, SNAP_E_CANCELLED, &err);
    CU_ASSERT_FATAL(r != NULL);
    results_free(r);
    r = load(2, "1 of 3 shapes");
    const js *before = js_at(results_section(kept, "bench"), 0),
             *after = js_at(results_section(r, "bench"), 0);
    CU_ASSERT(js_equal(js_get(js_get_object(before, "performance"), "samples_ns"),
                       js_get(js_get_object(after, "performance"), "samples_ns")));
    results_free(r);

    r = run(o, false, SNAP_E_WRONG, &err); /* complete; the second arm's outputs are wrong */
    results_free(r);
    CU_ASSERT(!fs_exists(journal));
    whole = load(6, NULL);
    expect_shared_ceilings(whole);
    CU_ASSERT_EQUAL(findings(whole, VERIFY_NOTE, "interrupted"), 0);

    r = run(o, true, SNAP_E_CANCELLED, &err);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "kept in the journal"));
    results_free(r);
    r = load(6, NULL);
    CU_ASSERT(js_equal(results_document(r), results_document(whole)));
    results_free(r);
    results_free(whole);
}

static void test_interrupted(void) {
    snap_err err;
    folder_open();
    bench_options o = options();
    results *r = run(&o, true, SNAP_E_CANCELLED, &err), *kept;
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "interrupted: 1 of 3 shapes are kept in '"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the same command continues"));
    CU_ASSERT_FATAL(r != NULL);
    CU_ASSERT(fs_exists(journal));
    kept = load(2, "1 of 3 shapes");
    CU_ASSERT(js_equal(results_section(r, "bench"), results_section(kept, "bench")));
    expect_said(kept);
    CU_ASSERT_EQUAL(results_save(r, ceilings, NULL), SNAP_OK);
    results_free(r);
    o.ceilings_path = ceilings;
    if (!kSanitized) { /* four more runs, which take a minute under the thread sanitizer */
        expect_continued(&o, kept);
        expect_no_file(o);
    }
    results_free(kept);
    (void)unlink(journal);
    folder_close();
}

/* A run that fails before its first row leaves no journal, so it can be repeated with other
 * options. The rows of an interrupted run stay. */
static void test_failed_at_the_start(void) {
    snap_err err;
    folder_open();
    bench_options o = options();
    o.ceilings_path = ceilings; /* does not exist */
    CU_ASSERT_PTR_NULL(run(&o, false, SNAP_E_IO, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "c.json"));
    CU_ASSERT_FALSE(fs_exists(journal));
    CU_ASSERT_FALSE(fs_exists(lock));
    js *config = js_new_object(), *row = js_new_object();
    results_journal *j = NULL;
    CU_ASSERT_EQUAL_FATAL(bench_journal_open(&j, file, config, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(results_journal_append(j, "a row", row, NULL), SNAP_OK);
    results_journal_close(j);
    CU_ASSERT_PTR_NULL(run(&o, false, SNAP_E_IO, &err));
    CU_ASSERT(fs_exists(journal));
    js_free(config);
    js_free(row);
    folder_close();
}

CU_TestInfo tests_bench_run[] = {
    {"a run that fails at the start leaves no journal", test_failed_at_the_start},
    {"an interrupted run leaves a result", test_interrupted},
    CU_TEST_INFO_NULL,
};
