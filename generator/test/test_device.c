/* A model with the attention of a plugin or of OpenCL must give nearly the same logits as with the
 * CPU backend. Unknown devices and unsupported formats must be refused. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/model/runner.h"
#include "generator/test/tiny_model.h"

enum { kPages = 8, kContext = 81 };
static const char kExample[] = "plugin:" PLUGINS "/plugins/example.so";

/* The pages of the only sequence, out of order. */
static const int32_t pages[] = {5, 2};

static runner *start(const tiny_model *t, kv_format format, const char *device, snap_err *err) {
    runner *r = NULL;
    runner_options opt = {.format = format,
                          .precision = "A",
                          .pages = kPages,
                          .context = kContext,
                          .max_rows = TINY_TOKENS,
                          .max_decode = 4,
                          .threads = 1,
                          .device = device};
    snap_status st = runner_create(&r, &t->weights, &opt, err);
    CU_ASSERT_EQUAL(st == SNAP_OK, r != NULL);
    return r;
}

/* Runs a prompt of 60 tokens and decodes the rest. Returns logits [TINY_TOKENS][vocab], which the
 * caller frees. */
static float *logits_of(const tiny_model *t, runner *r) {
    float *out = calloc((size_t)TINY_TOKENS * (size_t)t->shape.vocab_size, sizeof *out);
    for (int at = 0, n = 60; at < TINY_TOKENS; at += n, n = 1) {
        model_piece p = {.tokens = t->tokens + at,
                         .count = n,
                         .position = at,
                         .pages = pages,
                         .logits = n,
                         .chunk = n > 1};
        snap_err err = {0};
        CU_ASSERT_EQUAL(runner_step(r, &p, 1, out + (int64_t)at * t->shape.vocab_size, &err),
                        SNAP_OK);
    }
    return out;
}

/* |a - b| / |b| over all tokens */
static double distance(const tiny_model *t, const float *a, const float *b) {
    double diff = 0, size = 0;
    for (int64_t i = 0; i < (int64_t)TINY_TOKENS * t->shape.vocab_size; i++) {
        diff += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)b[i], 2);
    }
    return sqrt(diff / size);
}

static float *run(const tiny_model *t, kv_format format, const char *device) {
    snap_err err = {0};
    runner *r = start(t, format, device, &err);
    if (!r)
        (void)fprintf(stderr, "\n    %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    float *out = logits_of(t, r);
    runner_free(r);
    return out;
}

/* The logits must differ from the CPU's by less than half of the difference between the arms. */
static void expect_same(const char *device) {
    tiny_model t;
    tiny_open(&t, "minicpm3"); /* no experts, so rounding can't change their choice */
    float *bf16 = run(&t, CACHE_BF16, NULL), *fp8 = run(&t, CACHE_FP8, NULL),
          *bf16_there = run(&t, CACHE_BF16, device), *fp8_there = run(&t, CACHE_FP8, device);
    double arms = distance(&t, fp8, bf16), of_bf16 = distance(&t, bf16_there, bf16),
           of_fp8 = distance(&t, fp8_there, fp8);
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| %s | bf16 %.1e, fp8 %.1e, between the arms %.1e |", device, of_bf16,
                     of_fp8, arms);
    CU_ASSERT(of_bf16 < 0.5 * arms);
    CU_ASSERT(of_fp8 < 0.5 * arms);
    free(bf16);
    free(fp8);
    free(bf16_there);
    free(fp8_there);
    tiny_close(&t);
}

static void test_plugin(void) {
    expect_same(kExample);
}

static bool have_opencl(void) {
#ifdef __SANITIZE_THREAD__ /* ThreadSanitizer can't see how the threads of the OpenCL library
                              synchronise */
    return false;
#endif
    mla_backend *be = NULL;
    snap_err err = {0};
    bool have = mla_backend_open(&be, "opencl", NULL, &err) == SNAP_OK;
    mla_backend_close(be);
    return have;
}

/* OpenCL memory is not host memory, so formats whose rows the host rounds must be refused. */
static void test_opencl(void) {
    if (!have_opencl()) {
        (void)fprintf(stderr, "\n    SKIPPED, nothing was tested: no OpenCL\n");
        return;
    }
    expect_same("opencl");
    tiny_model t;
    snap_err err = {0};
    tiny_open(&t, "minicpm3");
    CU_ASSERT_PTR_NULL(start(&t, CACHE_ROUNDED, "opencl", &err));
    CU_ASSERT_EQUAL(err.code, SNAP_E_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "precision 'A'"));
    tiny_close(&t);
}

static void test_refusals(void) {
    tiny_model t;
    snap_err err = {0};
    tiny_open(&t, "minicpm3");
    CU_ASSERT_PTR_NULL(start(&t, CACHE_BF16, "abacus", &err));
    CU_ASSERT_EQUAL(err.code, SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "plugin:PATH"));
    err = (snap_err){0};
    CU_ASSERT_PTR_NULL(start(&t, CACHE_BF16, "plugin:/nonexistent/x.so", &err));
    CU_ASSERT_EQUAL(err.code, SNAP_E_IO);
    tiny_close(&t);
}

CU_TestInfo tests_device[] = {
    {"a plugin gives the answers of the CPU", test_plugin},
    {"OpenCL gives the answers of the CPU", test_opencl},
    {"unknown devices and missing plugins are refused", test_refusals},
    CU_TEST_INFO_NULL,
};
