/* Tests loading plugins: the examples open; faulty plugins and files that are no plugin are refused
 * with a message that gives the reason. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/backend.h"
#include "kernels/staged.h"
#include "kernels/test/fixture.h"

static void expect_refused(const char *name, snap_status code, const char *reason) {
    mla_backend *be;
    snap_err err = {0};
    CU_ASSERT_EQUAL(mla_backend_open(&be, name, NULL, &err), code);
    CU_ASSERT_PTR_NULL(be);
    if (!strstr(err.text, reason))
        (void)fprintf(stderr, "\n    %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, reason));
}

static void test_example(void) {
    mla_backend *be;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(
        mla_backend_open(&be, "plugin:" PLUGINS "/plugins/example.so", NULL, &err), SNAP_OK);
    mla_backend_info info;
    mla_backend_describe(be, &info);
    CU_ASSERT_STRING_EQUAL(info.name, "example");
    void *p = mla_alloc(be, 1000, NULL);
    CU_ASSERT(p && (uintptr_t)p % MLA_ALIGN == 0);
    mla_free(be, p);
    mla_backend_close(be);
}

/* Runs a step of the cpu backend, whose memory is the host's, on the minimal plugin. */
static void test_minimal(void) {
    mla_backend *be;
    mla_plan *plan;
    CU_ASSERT_EQUAL_FATAL(
        mla_backend_open(&be, "plugin:" PLUGINS "/plugins/minimal.so", NULL, NULL), SNAP_OK);
    fixture f;
    fixture_make(&f, (fixture_spec){.isa = "portable",
                                    .precision = MLA_BF16,
                                    .heads = 3,
                                    .s_q = 2,
                                    .batch = 3,
                                    .length = {130, 1, 64},
                                    .id = {0, 1, 2}});
    CU_ASSERT_EQUAL_FATAL(mla_plan_create(&plan, be, &f.plan->cap, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(mla_schedule(plan, &f.step, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(mla_run(plan, &f.step, &f.cache, &f.attn, NULL), SNAP_OK);
    fixture_expect(&f, 3 * 2 * 3);
    mla_plan_free(plan);

    snap_err err = {0};
    mla_capacity fp8 = f.plan->cap;
    fp8.precision = MLA_FP8;
    CU_ASSERT_EQUAL(mla_plan_create(&plan, be, &fp8, &err), SNAP_E_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "has no FP8"));
    fixture_free(&f);
    mla_backend_close(be);
}

static mla_backend_ops distant;
static void (*describe_example)(const mla_backend *be, mla_backend_info *out);

static void describe_distant(const mla_backend *be, mla_backend_info *out) {
    describe_example(be, out);
    out->host_memory = false;
}

/* The example plugin, as if its memory were not the host's. */
static mla_backend *open_distant(void) {
    mla_backend *be;
    CU_ASSERT_EQUAL_FATAL(
        mla_backend_open(&be, "plugin:" PLUGINS "/plugins/example.so", NULL, NULL), SNAP_OK);
    distant = *be->ops;
    describe_example = distant.describe;
    distant.describe = describe_distant;
    be->ops = &distant;
    return be;
}

/* Between a step's schedule and its run, the wrapper appends or fetches with another step of the
 * same plan. That must not change the scheduled step. */
static void staged_step(mla_precision precision) {
    mla_backend *be;
    mla_plan *plan;
    fixture f;
    uint16_t row[576], fetched[576];
    CU_ASSERT_EQUAL_FATAL(staged_open(&be, open_distant(), NULL), SNAP_OK);
    fixture_make(&f, (fixture_spec){.isa = "portable",
                                    .precision = precision,
                                    .heads = 2,
                                    .batch = 3,
                                    .length = {70, 130, 64},
                                    .id = {0, 1, 2}});
    int32_t length = 64;
    mla_step other = {.batch = 1,
                      .s_q = 1,
                      .seqlens = &length,
                      .block_table = f.step.block_table + 2 * f.step.table_width,
                      .table_width = 1};
    CU_ASSERT_EQUAL_FATAL(mla_plan_create(&plan, be, &f.plan->cap, NULL), SNAP_OK);
    for (int fetches = 0; fetches < 2; fetches++) {
        CU_ASSERT_EQUAL(mla_schedule(plan, &f.step, NULL), SNAP_OK);
        if (fetches) {
            CU_ASSERT_EQUAL(mla_fetch_kv(plan, &other, &f.cache, 0, 63, 1, fetched, NULL), SNAP_OK);
        } else { /* the row that this token has already */
            fixture_row(&f.spec, 2, 63, row);
            CU_ASSERT_EQUAL(mla_append_kv(plan, &other, &f.cache, row, NULL), SNAP_OK);
        }
        memset(f.attn.out, 0xff, f.out_bytes);
        CU_ASSERT_EQUAL(mla_run(plan, &f.step, &f.cache, &f.attn, NULL), SNAP_OK);
        fixture_expect(&f, 6);
    }
    mla_plan_free(plan);
    fixture_free(&f);
    mla_backend_close(be);
}

static void test_staged(void) {
    staged_step(MLA_BF16);
    staged_step(MLA_FP8);
}

static void test_no_plugin(void) {
    expect_refused("plugin:", SNAP_E_USAGE, "needs the path");
    expect_refused("plugin:/nonexistent/x.so", SNAP_E_IO, "No such file");
    expect_refused("plugin:kernels", SNAP_E_UNSUPPORTED, "is not a file");
    expect_refused("plugin:README.md", SNAP_E_UNSUPPORTED, "cannot load plugin 'README.md'");
    expect_refused("plugin:kernels/mla.h", SNAP_E_UNSUPPORTED, "cannot load plugin");
    expect_refused("plug:x.so", SNAP_E_USAGE, "this build has: cpu");
    char path[5000];
    (void)snprintf(path, sizeof path, "plugin:%04980d", 0);
    expect_refused(path, SNAP_E_USAGE, "too long");
}

static void test_pipe(void) {
    char path[64], name[80];
    (void)snprintf(path, sizeof path, "/tmp/snapmla-pipe-%d", (int)getpid());
    (void)snprintf(name, sizeof name, "plugin:%s", path);
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    expect_refused(name, SNAP_E_UNSUPPORTED, "is not a file");
    (void)unlink(path);
}

#define FAULTY(name) "plugin:" PLUGINS "/test/plugins/" name ".so"

static void test_faulty(void) {
    expect_refused(FAULTY("abi"), SNAP_E_UNSUPPORTED,
                   "was built for ABI 99, this program has ABI 6");
    expect_refused(FAULTY("headers"), SNAP_E_UNSUPPORTED, "compiled against other headers");
    expect_refused(FAULTY("open"), SNAP_E_UNSUPPORTED, "open is null");
    expect_refused(FAULTY("name"), SNAP_E_UNSUPPORTED, "its name must be");
    expect_refused(FAULTY("impostor"), SNAP_E_UNSUPPORTED, "is the name of a built-in backend");
    expect_refused(FAULTY("nothing"), SNAP_E_UNSUPPORTED, "open returned no backend");
    expect_refused(FAULTY("refuses"), SNAP_E_DEVICE, "device 3 is on fire");
    expect_refused(FAULTY("copy"), SNAP_E_UNSUPPORTED, "ops.copy_in is null");
}

/* A shared object that is not a plugin: libm, at the places where it usually is. */
static void test_another_object(void) {
    static const char *const kPlaces[] = {"/lib/x86_64-linux-gnu/libm.so.6",
                                          "/lib/aarch64-linux-gnu/libm.so.6", "/lib64/libm.so.6"};
    for (int i = 0; i < 3; i++) {
        char name[80];
        (void)snprintf(name, sizeof name, "plugin:%s", kPlaces[i]);
        if (access(kPlaces[i], R_OK) == 0)
            expect_refused(name, SNAP_E_UNSUPPORTED, "no symbol snapmla_plugin_v1");
    }
}

CU_TestInfo tests_plugin[] = {
    {"the example opens", test_example},
    {"the minimal example computes a step", test_minimal},
    {"other steps between schedule and run", test_staged},
    {"files that are no shared objects", test_no_plugin},
    {"a pipe is not waited for", test_pipe},
    {"faulty plugins", test_faulty},
    {"a shared object that is no plugin", test_another_object},
    CU_TEST_INFO_NULL,
};
