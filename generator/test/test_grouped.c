/* Tests models with grouped queries that training/grouped.py rewrote for MLA. Their logits must be
 * those of the original in transformers (make_grouped.py). Both maps are tested: with --map rope,
 * keys are the RoPE part of a cache row; with --map content, they belong to its content. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "generator/local/model/runner.h"
#include "generator/test/tiny_model.h"

#define FOLDER "generator/test/model/"

enum { TOKENS = 80, VOCAB = 64, N = TOKENS * VOCAB, PIECE = 33 };

static const char *const kMaps[] = {FOLDER "grouped-rope", FOLDER "grouped-content"};

static void read_expected(float *out) {
    buf b = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(FOLDER "grouped.bin", &b, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(b.len, N * sizeof *out);
    memcpy(out, b.data, b.len);
    buf_release(&b);
}

/* Token t is splitmix64(t) mod VOCAB. */
static int32_t token_at(uint64_t t) {
    uint64_t z = t + 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (int32_t)((z ^ z >> 31) % VOCAB);
}

/* Runs all tokens in pieces of @piece: 1 decodes each token, TOKENS is one prompt. */
static void run_on(const char *device, const char *dir, kv_format format, int piece, float *out) {
    static const int32_t pages[] = {5, 2};
    model_shape shape;
    model_weights weights = {0};
    checkpoint *files = NULL;
    runner *r = NULL;
    snap_err err = {0};
    int32_t tokens[TOKENS];
    runner_options opt = {.format = format,
                          .pages = 8,
                          .context = TOKENS,
                          .max_rows = TOKENS,
                          .max_decode = 1,
                          .device = device,
                          .threads = 1};
    for (int t = 0; t < TOKENS; t++)
        tokens[t] = token_at((uint64_t)t);
    CU_ASSERT_EQUAL_FATAL(model_shape_open(&shape, dir, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(checkpoint_open(&files, dir, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(weights_bind(&weights, &shape, files, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(runner_create(&r, &weights, &opt, &err), SNAP_OK);
    for (int at = 0; at < TOKENS; at += piece) {
        int n = TOKENS - at < piece ? TOKENS - at : piece;
        model_piece p = {.tokens = tokens + at,
                         .count = n,
                         .position = at,
                         .pages = pages,
                         .logits = n,
                         .chunk = piece > 1};
        CU_ASSERT_EQUAL(runner_step(r, &p, 1, out + at * VOCAB, &err), SNAP_OK);
    }
    runner_free(r);
    weights_release(&weights);
    checkpoint_close(files);
}

static void run(const char *dir, kv_format format, int piece, float *out) {
    run_on(NULL, dir, format, piece, out);
}

/* The largest |a - b| / |b| of a token's logits. */
static double worst(const float *a, const float *b) {
    double most = 0;
    for (int t = 0; t < TOKENS; t++) {
        double apart = 0, size = 0;
        for (int i = t * VOCAB; i < (t + 1) * VOCAB; i++) {
            apart += pow((double)a[i] - (double)b[i], 2);
            size += pow((double)b[i], 2);
        }
        most = fmax(most, sqrt(apart / size));
    }
    return most;
}

static void test_fp32(void) {
    static float expected[N], whole[N], pieces[N], steps[N];
    read_expected(expected);
    for (int m = 0; m < 2; m++) {
        run(kMaps[m], CACHE_F32, TOKENS, whole);
        run(kMaps[m], CACHE_F32, PIECE, pieces);
        run(kMaps[m], CACHE_F32, 1, steps);
        CU_ASSERT(worst(whole, expected) < 1e-5);
        CU_ASSERT_EQUAL(worst(pieces, whole), 0);
        CU_ASSERT_EQUAL(worst(steps, whole), 0);
    }
}

static void test_bf16(void) {
    static float expected[N], whole[N], steps[N];
    read_expected(expected);
    for (int m = 0; m < 2; m++) {
        run(kMaps[m], CACHE_BF16, TOKENS, whole);
        run(kMaps[m], CACHE_BF16, 1, steps);
        CU_ASSERT(worst(whole, expected) < 2e-2);
        CU_ASSERT(worst(steps, expected) < 2e-2);
    }
}

static void test_cuda(void) {
    static float expected[N], whole[N], steps[N];
    if (!tiny_on_cuda())
        return;
    read_expected(expected);
    for (int m = 0; m < 2; m++) {
        run_on("cuda", kMaps[m], CACHE_BF16, TOKENS, whole);
        run_on("cuda", kMaps[m], CACHE_BF16, 1, steps);
        CU_ASSERT(worst(whole, expected) < 2e-2);
        CU_ASSERT(worst(steps, expected) < 2e-2);
        run(kMaps[m], CACHE_FP8, TOKENS, whole);
        run_on("cuda", kMaps[m], CACHE_FP8, TOKENS, steps);
        CU_ASSERT(worst(steps, whole) < 2e-2);
    }
}

/* FP8 quantises the content and not the RoPE part, so the map with keys in the content has the
 * larger error. */
static void test_fp8(void) {
    static float expected[N], steps[N];
    double error[2];
    read_expected(expected);
    for (int m = 0; m < 2; m++) {
        run(kMaps[m], CACHE_FP8, 1, steps);
        error[m] = worst(steps, expected);
    }
    CU_ASSERT(error[0] < 0.1);
    CU_ASSERT(error[1] > error[0]);
}

static void expect_refused(const char *from, const char *to, const char *message) {
    model_shape shape;
    snap_err err = {0};
    buf text = {0}, changed = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(FOLDER "grouped-content/config.json", &text, NULL), SNAP_OK);
    const char *at = strstr(buf_str(&text), from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    (void)buf_append(&changed, text.data, (size_t)(at - buf_str(&text)));
    (void)buf_puts(&changed, to);
    (void)buf_puts(&changed, at + strlen(from));
    CU_ASSERT_NOT_EQUAL(model_shape_parse(&shape, changed.data, changed.len, "c", &err), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    buf_release(&text);
    buf_release(&changed);
}

static void test_refused(void) {
    expect_refused("\"head_dim\": 32", "\"head_dim\": 48", "must be multiples");
    expect_refused("\"head_dim\": 32", "\"head_dim\": 31", "must be multiples");
    expect_refused("\"head_dim\"", "\"other\"", "key 'head_dim' is missing");
    expect_refused("\"rotated_content\": [\n  64,\n  64\n ]", "\"rotated_content\": [96, 64]",
                   "within kv_lora_rank");
    expect_refused("\"rotated_content\": [\n  64,\n  64\n ]", "\"rotated_content\": [64, 48]",
                   "multiple of head_dim");
    expect_refused("\"rotated_content\": [\n  64,\n  64\n ]", "\"rotated_content\": [\"x\", 64]",
                   "multiple of head_dim");
    expect_refused("\"rope_theta\"",
                   "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2}, \"rope_theta\"",
                   "scaled RoPE");
}

CU_TestInfo tests_grouped[] = {
    {"FP32 against transformers", test_fp32},  {"BF16 against transformers", test_bf16},
    {"what FP8 quantises", test_fp8},          {"CUDA gives the logits of the CPU", test_cuda},
    {"models that are refused", test_refused}, CU_TEST_INFO_NULL,
};
