/* test_adapter_faults.c - a sweep goes on without the arms whose plugin crashes or whose Python
 * file fails, and interpreters that cannot be embedded are refused with the reason.
 *
 * Python is started once in a process, so the tests of interpreters run in child processes, and
 * this suite must come before those that start Python. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test/temp_folder.h"
#include "harness/bench/sweep.h"
#include "kernels/backend.h"
#include "kernels/plugin/attend.h"

#define PLAIN "python:adapters/test/plain.py"

enum { TEXT = sizeof((snap_err *)0)->text };

/* ---- interpreters ---- */

/* Opens the adapter in a child process with this interpreter, and copies the message of the error.
 * Returns the status. */
static snap_status open_with(const char *interpreter, char text[TEXT]) {
    struct {
        int status;
        char text[TEXT];
    } answer = {0};
    int ends[2], status = 0;
    CU_ASSERT_FATAL(pipe(ends) == 0);
    pid_t child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        mla_backend *be = NULL;
        snap_err err = {0};
        (void)setenv("SNAPMLA_PYTHON", interpreter, 1);
        answer.status = (int)mla_backend_open(&be, PLAIN, NULL, &err);
        memcpy(answer.text, err.text, sizeof answer.text);
        _exit(write(ends[1], &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1);
    }
    (void)close(ends[1]);
    CU_ASSERT(read(ends[0], &answer, sizeof answer) == (ssize_t)sizeof answer);
    (void)close(ends[0]);
    CU_ASSERT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    memcpy(text, answer.text, TEXT);
    return (snap_status)answer.status;
}

/* Whether this machine can embed its own Python. If not, says why the tests are skipped. */
static bool can_embed(void) {
    char text[TEXT];
    if (open_with("python3", text) == SNAP_OK)
        return true;
    (void)fprintf(stderr, "skipped: %s\n", text);
    return false;
}

/* @script: the shell script that stands for the interpreter. */
static void expect_refused(const char *folder, const char *script, const char *says) {
    char path[TEMP_FOLDER + 16], text[TEXT] = "";
    (void)snprintf(path, sizeof path, "%s/python", folder);
    temp_folder_put(folder, "", "python", script, strlen(script));
    CU_ASSERT_FATAL(chmod(path, 0700) == 0);
    CU_ASSERT(open_with(path, text) == SNAP_E_UNSUPPORTED);
    if (!strstr(text, says))
        (void)fprintf(stderr, "\n    %s\n", text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, says));
}

static void test_missing_python(void) {
    char folder[TEMP_FOLDER], text[TEXT] = "";
    CU_ASSERT(open_with("/nonexistent/python", text) == SNAP_E_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "cannot run '/nonexistent/python'"));
    temp_folder_open(folder, "python");
    expect_refused(folder, "#!/bin/sh\nexit 3\n", "install Python 3.8 or newer, or set");
    expect_refused(folder, "#!/bin/sh\necho hello\n", "is not a Python interpreter");
    expect_refused(folder, "#!/bin/sh\nexec yes\n", "its answer did not end");
    expect_refused(folder, "#!/bin/sh\nprintf 'L/nonexistent.so\\nV3.9\\nH/usr\\nJ{}\\n'\n",
                   "has no shared library: install libpython3.9");
    expect_refused(folder, "#!/bin/sh\nprintf 'Llibm.so.6\\nV3.9\\nH/usr\\nJ{}\\n'\n",
                   "the library of Python 3.9 has no Py_GetVersion");
    temp_folder_remove(folder);
}

/* An interpreter that finds the library of another version. */
static void test_other_version(void) {
    char folder[TEMP_FOLDER];
    if (!can_embed())
        return;
    temp_folder_open(folder, "python");
    expect_refused(folder, "#!/bin/sh\npython3 \"$@\" | sed 's/^V.*/V3.7/'\n",
                   "is Python 3.7, but its library is Python 3.");
    temp_folder_remove(folder);
}

/* ---- a sweep with faulty arms ---- */

static snap_status crash(void *state, const snapmla_step *step, const snapmla_queries *q,
                         const snapmla_packed *cache, void *out, float *lse, void *stream,
                         snap_err *err) {
    volatile uintptr_t nowhere = 64;
    (void)state, (void)step, (void)q, (void)cache, (void)lse, (void)stream, (void)err;
    *(volatile char *)nowhere = *(const char *)out;
    return SNAP_OK;
}

static const snapmla_attention kCrashes = {SNAPMLA_ATTENTION, .name = "crashes", .device = "host",
                                           .attend_packed = crash};

enum { ARMS = 8 };

/* The arms of the sweep, and what must become of them. */
static const struct {
    const char *name, *backend, *isa, *status, *says;
} kArms[ARMS] = {
    {"ours", "cpu", NULL, "passed", ""},
    {"crashes", NULL, NULL, "error", "crashes: attend() crashed (Segmentation fault) at address"},
    {"raises", PLAIN, "raises", "error", "KeyError: 'nothing' (plain.py, line"},
    {"shape", PLAIN, "shape", "error", "ValueError: memoryview assignment"},
    {"dtype", PLAIN, "dtype", "error", "IndexError: index out of bounds"},
    {"text", PLAIN, "text", "error", "ValueError: half a pair: ? (plain.py, line"},
    {"wrong", PLAIN, "wrong", "failed", "relative error of the output is 2"},
    {"right", PLAIN, "auto", "passed", ""},
};

/* The functions of each arm's backend, which describe a device without a cache. Because no cache
 * has to be emptied, each arm needs only one set of data. */
static mla_backend_ops hooked[ARMS];
static const mla_backend_ops *own[ARMS];

static void describe_without_cache(const mla_backend *be, mla_backend_info *out) {
    own[be->ops - hooked]->describe(be, out);
    out->cache_bytes = 0;
}

static void open_arm(sweep_arm *arm, int i, arm_format *format) {
    mla_backend_options one = {.threads = 1, .isa = kArms[i].isa};
    *arm = (sweep_arm){.name = kArms[i].name, .options = "test", .kind = BENCH_BF16};
    snap_status st = kArms[i].backend
                         ? mla_backend_open(&arm->backend, kArms[i].backend, &one, &arm->why)
                         : attend_backend_open(&arm->backend, &kCrashes, "test", &one, &arm->why);
    CU_ASSERT_FATAL(st == SNAP_OK);
    arm->format = i ? format : NULL;
    own[i] = arm->backend->ops;
    hooked[i] = *own[i];
    hooked[i].describe = describe_without_cache;
    arm->backend->ops = &hooked[i];
}

static void test_others_go_on(void) {
    bench_grid_text text = {.arms = "bf16",
                            .scopes = "kernel",
                            .heads = "1",
                            .s_q = "1",
                            .batch = "1",
                            .context = "20",
                            .d_c = 64,
                            .d_r = 32};
    sweep_arm arms[ARMS];
    arm_format *format = NULL;
    bench_grid grid;
    cell_list all;
    arena mem = {0};
    js *rows = js_new_array();
    if (!can_embed())
        return;
    CU_ASSERT_FATAL(bench_grid_parse(&grid, &text, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(arm_format_load(&format, "bf16", 64, 32, NULL) == SNAP_OK);
    for (int i = 0; i < ARMS; i++)
        open_arm(&arms[i], i, format);
    sweep_options wanted = {
        .arms = arms,
        .n_arms = ARMS,
        .grid = &grid,
        .distribution = NUMBERS_NORMAL,
        .seed = 5,
        .limits = {.noise = 1, .min_samples = 1, .max_samples = 1, .timeout_s = 1e9}};
    CU_ASSERT(sweep_run(&wanted, rows, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(record_read_all(&cell_type, rows, &mem, &all.at, &all.n) && all.n == ARMS);
    for (int i = 0; i < ARMS; i++) {
        CU_ASSERT_STRING_EQUAL(all.at[i].status, kArms[i].status);
        if (!strstr(all.at[i].reason, kArms[i].says))
            (void)fprintf(stderr, "\n    %s: %s\n", kArms[i].name, all.at[i].reason);
        CU_ASSERT_PTR_NOT_NULL(strstr(all.at[i].reason, kArms[i].says));
    }
    for (int i = 0; i < ARMS; i++)
        mla_backend_close(arms[i].backend);
    arm_format_free(format);
    arena_release(&mem);
    js_free(rows);
}

CU_TestInfo tests_adapter_faults[] = {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* Python frees nothing */
    {"interpreters that are missing or none", test_missing_python},
    {"an interpreter with the library of another version", test_other_version},
    {"a sweep goes on without crashes and exceptions", test_others_go_on},
#endif
    CU_TEST_INFO_NULL,
};
