/* Loading plugins: the examples open; faulty plugins and files that are no plugin are refused with
 * a message that gives the reason. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/backend.h"
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
                   "was built for ABI 99, this program has ABI 5");
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
    {"what is no shared object", test_no_plugin},
    {"a pipe is not waited for", test_pipe},
    {"faulty plugins", test_faulty},
    {"another shared object", test_another_object},
    CU_TEST_INFO_NULL,
};
