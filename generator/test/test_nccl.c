/* Tests how NCCL is loaded and called. Small shared objects of our own (nccl_stub.c) are loaded in
 * its place, because NCCL needs a GPU. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "generator/local/ranks/nccl.h"

static void choose(const char *path) {
    CU_ASSERT_EQUAL_FATAL(setenv("SNAPMLA_NCCL", path, 1), 0);
}

static void expect_refused(const char *path, snap_status code, const char *text) {
    snap_err err = {0};
    nccl *n = NULL;
    choose(path);
    CU_ASSERT_EQUAL(nccl_open(&n, &err), code);
    CU_ASSERT_PTR_NULL(n);
    CU_ASSERT_STRING_EQUAL(err.text, text);
    (void)unsetenv("SNAPMLA_NCCL");
}

static void test_refused(void) {
    expect_refused(NCCL "/MISSING.so", SNAP_E_UNSUPPORTED,
                   NCCL "/MISSING.so has no function ncclSend");
    expect_refused(NCCL "/OLD.so", SNAP_E_UNSUPPORTED,
                   NCCL "/OLD.so has version 2804; versions from 21300 (2.13) to below 30000 are "
                        "supported");
    expect_refused(NCCL "/NEXT.so", SNAP_E_UNSUPPORTED,
                   NCCL "/NEXT.so has version 30000; versions from 21300 (2.13) to below 30000 are "
                        "supported");
    expect_refused("/does/not/exist.so", SNAP_E_IO,
                   "SNAPMLA_NCCL: cannot read '/does/not/exist.so': No such file or directory");
    expect_refused("/tmp", SNAP_E_UNSUPPORTED, "SNAPMLA_NCCL: '/tmp' is no regular file");
}

static void test_named_pipe(void) {
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/snapmla-nccl-%d", (int)getpid());
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    snap_err err = {0};
    nccl *n = NULL;
    choose(path);
    CU_ASSERT_EQUAL(nccl_open(&n, &err), SNAP_E_UNSUPPORTED);
    CU_ASSERT_PTR_NULL(n);
    (void)unsetenv("SNAPMLA_NCCL");
    (void)unlink(path);
}

/* A file that is no shared object. */
static void test_no_library(void) {
    snap_err err = {0};
    nccl *n = NULL;
    choose("Makefile");
    CU_ASSERT_EQUAL(nccl_open(&n, &err), SNAP_E_UNSUPPORTED);
    CU_ASSERT(text_starts(err.text, "NCCL cannot be loaded: "));
    CU_ASSERT(text_ends(err.text, "; install it, or name its file in SNAPMLA_NCCL"));
    (void)unsetenv("SNAPMLA_NCCL");
}

/* The communicator is passed as the stream, too. The shared object checks that it gets both. */
static void test_calls(void) {
    static const float from[4] = {1, 2, 3, 4};
    snap_err err = {0};
    nccl *n = NULL;
    nccl_comm *c = NULL;
    nccl_id id;
    float to[4] = {0};
    choose(NCCL "/RIGHT.so");
    CU_ASSERT_EQUAL_FATAL(nccl_open(&n, &err), SNAP_OK);
    CU_ASSERT_EQUAL(nccl_version(n), 22803);
    CU_ASSERT_EQUAL(nccl_new_id(n, &id, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(nccl_join(n, &c, &id, 0, 1, &err), SNAP_OK);
    CU_ASSERT_EQUAL(nccl_check(n, c, &err), SNAP_OK);
    CU_ASSERT_EQUAL(nccl_all_reduce(n, c, NCCL_FP32, from, to, 4, c, &err), SNAP_OK);
    CU_ASSERT(memcmp(from, to, sizeof to) == 0);
    memset(to, 0, sizeof to);
    CU_ASSERT_EQUAL(nccl_all_gather(n, c, NCCL_BF16, from, to, 8, c, &err), SNAP_OK);
    CU_ASSERT(memcmp(from, to, sizeof to) == 0);
    memset(to, 0, sizeof to);
    CU_ASSERT_EQUAL(nccl_reduce_scatter(n, c, NCCL_FP32, from, to, 4, c, &err), SNAP_OK);
    CU_ASSERT(memcmp(from, to, sizeof to) == 0);
    memset(to, 0, sizeof to);
    CU_ASSERT_EQUAL(nccl_all_to_all(n, c, NCCL_FP32, from, to, 4, 1, c, &err), SNAP_OK);
    CU_ASSERT(memcmp(from, to, sizeof to) == 0);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    nccl_leave(n, c);
    nccl_close(n);
    (void)unsetenv("SNAPMLA_NCCL");
}

static void expect_failure(snap_status st, snap_err *err, const char *what) {
    char text[128];
    (void)snprintf(text, sizeof text, "NCCL: %s: unhandled system error: the network is down",
                   what);
    CU_ASSERT_EQUAL(st, SNAP_E_DEVICE);
    CU_ASSERT_STRING_EQUAL(err->text, text);
    *err = (snap_err){0};
}

static void test_failing_calls(void) {
    static const float from[4] = {1, 2, 3, 4};
    snap_err err = {0};
    nccl *n = NULL, *right = NULL;
    nccl_comm *c = NULL;
    nccl_id id;
    float to[4];
    choose(NCCL "/FAILS.so");
    CU_ASSERT_EQUAL_FATAL(nccl_open(&n, &err), SNAP_OK);
    expect_failure(nccl_new_id(n, &id, &err), &err, "making an identifier");
    expect_failure(nccl_join(n, &c, &id, 0, 1, &err), &err, "joining the communicator");
    CU_ASSERT_PTR_NULL(c);
    choose(NCCL "/RIGHT.so");
    CU_ASSERT_EQUAL_FATAL(nccl_open(&right, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(nccl_join(right, &c, &id, 0, 1, &err), SNAP_OK);
    CU_ASSERT_EQUAL(nccl_all_reduce(right, c, NCCL_FP32, from, to, 4, NULL, &err), SNAP_E_DEVICE);
    CU_ASSERT_STRING_EQUAL(err.text, "NCCL: all-reduce: invalid usage");
    err = (snap_err){0};
    CU_ASSERT_EQUAL(nccl_all_to_all(right, c, NCCL_FP32, from, to, 2, 2, c, &err), SNAP_E_DEVICE);
    CU_ASSERT_STRING_EQUAL(err.text, "NCCL: all-to-all: invalid usage");
    err = (snap_err){0};
    /* nccl_all_to_all() closes NCCL's group of calls after the error, so the next call works. */
    CU_ASSERT_EQUAL(nccl_all_to_all(right, c, NCCL_FP32, from, to, 4, 1, c, &err), SNAP_OK);
    nccl_abort(right, c);
    nccl_close(right);
    nccl_close(n);
    (void)unsetenv("SNAPMLA_NCCL");
}

CU_TestInfo tests_nccl[] = {
    {"libraries that are refused", test_refused},
    {"a named pipe", test_named_pipe},
    {"a file that is no shared object is refused", test_no_library},
    {"each call passes communicator and stream", test_calls},
    {"an error of a call is returned", test_failing_calls},
    CU_TEST_INFO_NULL,
};
