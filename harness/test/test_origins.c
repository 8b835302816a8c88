/* Tests that the hashes of an arm's files are kept, and that a run is refused when they change. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "harness/eval/origins.h"
#include "harness/eval/run_files.h"

static void make_dir(char dir[64]) {
    (void)snprintf(dir, 64, "/tmp/snapmla-origins-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
}

static void remove_dir(const char *dir) {
    char command[160];
    (void)snprintf(command, sizeof command, "rm -r %s", dir);
    CU_ASSERT_EQUAL(system(command), 0);
}

static void write_file(const char *dir, const char *name, const char *text) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, text, strlen(text), NULL), SNAP_OK);
}

typedef struct {
    char model[64], run[64], spec[80], plugin[96];
    eval_arm arms[3];
    eval_plan plan;
    results_journal *journal;
} fixture;

/* A baseline, the same checkpoint with a plugin, and a server. */
static void start(fixture *f) {
    make_dir(f->model);
    make_dir(f->run);
    write_file(f->model, "config.json", "{}");
    write_file(f->model, "vendor.so", "code");
    (void)snprintf(f->spec, sizeof f->spec, "local:%s", f->model);
    (void)snprintf(f->plugin, sizeof f->plugin, "plugin:%s/vendor.so", f->model);
    f->arms[0] = (eval_arm){.name = "bf16", .kind = "local", .spec = f->spec};
    f->arms[1] = (eval_arm){.name = "there", .kind = "local", .spec = f->spec, .device = f->plugin};
    f->arms[2] = (eval_arm){.name = "server", .kind = "http", .spec = "http://h/v1"};
    f->plan = (eval_plan){.arms = f->arms, .n_arms = 3};
    CU_ASSERT_EQUAL_FATAL(run_journal_open(&f->journal, f->run, NULL), SNAP_OK);
}

static void stop(fixture *f) {
    results_journal_close(f->journal);
    remove_dir(f->model);
    remove_dir(f->run);
}

static void test_kept(void) {
    fixture f;
    start(&f);
    CU_ASSERT_EQUAL(origins_record(f.journal, &f.plan, NULL), SNAP_OK);
    const js *bf16 = origins_find(f.journal, "bf16"), *there = origins_find(f.journal, "there");
    CU_ASSERT_FATAL(bf16 && there);
    CU_ASSERT_STRING_EQUAL(js_get_str(bf16, "checkpoint_sha256"),
                           js_get_str(there, "checkpoint_sha256"));
    CU_ASSERT_PTR_NULL(js_get_object(bf16, "plugin"));
    const js *plugin = js_get_object(there, "plugin");
    CU_ASSERT_STRING_EQUAL(js_get_str(plugin, "file"), "vendor.so");
    CU_ASSERT_STRING_EQUAL(js_get_str(plugin, "sha256"), /* hash of "code" */
                           "5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b");
    CU_ASSERT_PTR_NULL(origins_find(f.journal, "server"));
    stop(&f);
}

static void expect_refused(fixture *f, const char *arm) {
    snap_err err = {0};
    CU_ASSERT_EQUAL(origins_record(f->journal, &f->plan, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, arm));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "it has other files"));
}

static void test_changed(void) {
    fixture f;
    start(&f);
    CU_ASSERT_EQUAL(origins_record(f.journal, &f.plan, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(origins_record(f.journal, &f.plan, NULL), SNAP_OK); /* resumed */
    write_file(f.model, "vendor.so", "Code");
    expect_refused(&f, "arm 'there'");
    write_file(f.model, "vendor.so", "code");
    write_file(f.model, "config.json", "{ }");
    expect_refused(&f, "arm 'bf16'");
    stop(&f);
}

static void test_shards(void) {
    fixture one, other;
    snap_err err = {0};
    start(&one);
    start(&other);
    CU_ASSERT_EQUAL(origins_record(one.journal, &one.plan, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(origins_add(other.journal, "bf16", one.journal, "part", NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(origins_find(other.journal, "bf16"));
    CU_ASSERT_EQUAL(origins_add(other.journal, "server", one.journal, "part", NULL), SNAP_OK);
    write_file(other.model, "config.json", "[]");
    CU_ASSERT_EQUAL(origins_record(other.journal, &other.plan, NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(origins_add(one.journal, "there", other.journal, "part", &err), SNAP_OK);
    stop(&one);
    stop(&other);
}

CU_TestInfo tests_origins[] = {
    {"hashes are kept", test_kept},
    {"changed files are refused", test_changed},
    {"hashes of shards are joined", test_shards},
    CU_TEST_INFO_NULL,
};
