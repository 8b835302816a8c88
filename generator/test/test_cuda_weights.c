/* Loading weights onto a CUDA device. Without a device nothing is tested. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/model/runner.h"
#include "generator/test/random_model.h"
#include "generator/test/tiny_model.h"

enum { kPages = 4, kTokens = 8, kLoadings = 4 };

/* The logits of some tokens, first as a prompt and then decoded, because these use different copies
 * of W_UK. *n = their number. */
static float *logits_on_device(const model_weights *w, size_t *n) {
    static const int32_t pages[kPages] = {2, 0, 3, 1};
    int64_t vocab = w->shape.vocab_size;
    int32_t tokens[2 * kTokens];
    runner *r = NULL;
    snap_err err = {0};
    runner_options opt = {.format = CACHE_BF16,
                          .pages = kPages,
                          .context = 2 * kTokens,
                          .max_rows = kTokens,
                          .max_decode = 1,
                          .device = "cuda"};
    for (int i = 0; i < 2 * kTokens; i++)
        tokens[i] = (int32_t)(i * 37 % vocab);
    if (runner_create(&r, w, &opt, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    *n = (size_t)(2 * kTokens * vocab);
    float *out = calloc(*n, sizeof *out);
    for (int at = 0, count = kTokens; at < 2 * kTokens; at += count, count = 1) {
        model_piece p = {.tokens = tokens + at,
                         .count = count,
                         .position = at,
                         .pages = pages,
                         .logits = count,
                         .chunk = at == 0};
        CU_ASSERT_EQUAL(runner_step(r, &p, 1, out + at * vocab, &err), SNAP_OK);
    }
    runner_free(r);
    return out;
}

/* A weight that is read before its copy has arrived has the old contents of the memory: nothing at
 * the first loading, and later another model's weights. Bits are compared, because a small
 * part of the weights may change the logits by less than the rounding error. The matrices are
 * small, so that an allocation does not give the previous copy time to arrive. */
static void test_loading_again(void) {
    tiny_model one, other;
    size_t n;
    if (!tiny_on_cuda())
        return;
    random_open(&one, random_narrow_v2, 0);
    random_open(&other, random_narrow_v2, 1);
    float *first = logits_on_device(&one.weights, &n);
    for (int i = 0; i < kLoadings; i++) {
        float *between = logits_on_device(&other.weights, &n),
              *again = logits_on_device(&one.weights, &n);
        CU_ASSERT_NOT_EQUAL(memcmp(between, first, n * sizeof *first), 0);
        CU_ASSERT_EQUAL(memcmp(again, first, n * sizeof *first), 0);
        free(between);
        free(again);
    }
    free(first);
    tiny_close(&other);
    tiny_close(&one);
}

/* The device applies the scales. The results must equal those of weights that were stored with the
 * scales applied. */
static void test_block_scales(void) {
    if (!tiny_on_cuda())
        return;
    for (int i = 0; tiny_names[i]; i++) {
        tiny_model scaled, written;
        size_t n;
        tiny_open_as(&scaled, tiny_names[i], TINY_E4M3);
        tiny_open_as(&written, tiny_names[i], TINY_E4M3_AS_BF16);
        float *a = logits_on_device(&scaled.weights, &n),
              *b = logits_on_device(&written.weights, &n);
        CU_ASSERT_EQUAL(memcmp(a, b, n * sizeof *a), 0);
        free(a);
        free(b);
        tiny_close(&written);
        tiny_close(&scaled);
    }
}

CU_TestInfo tests_cuda_weights[] = {
    {"where another model lay, the same bits", test_loading_again},
    {"block-scaled e4m3 is what its numbers are", test_block_scales},
    CU_TEST_INFO_NULL,
};
