/* Tests loading weights onto a CUDA device. Without a device only the CPU is tested. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "generator/test/cuda_subject.h"
#include "generator/test/random_model.h"

enum { kPages = 4, kTokens = 8, kLoadings = 4 };
static const double kCoarse = 0.3; /* relative distance of logits after products in e4m3; that of
                                      unrelated logits is about 1.4 */
enum { kLeast = 5 };               /* tokens that must choose the same experts */
enum {
    kFew = 8
}; /* most tokens of a piece that the kernels for few rows
                                      (gemm_few) multiply */

/* The logits of some tokens, first as a prompt and then decoded, because these use different copies
 * of W_UK. *n = their number; *e4m3 = runner_holds_e4m3(). */
static float *logits_of(const model_weights *w, const char *device, const char *isa, size_t *n,
                        bool *e4m3) {
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
                          .device = device,
                          .isa = isa};
    for (int i = 0; i < 2 * kTokens; i++)
        tokens[i] = (int32_t)(i * 37 % vocab);
    if (runner_create(&r, w, &opt, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    *n = (size_t)(2 * kTokens * vocab);
    *e4m3 = runner_holds_e4m3(r);
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
    bool e4m3;
    if (!tiny_on_cuda())
        return;
    random_open(&one, random_narrow_v2, 0);
    random_open(&other, random_narrow_v2, 1);
    float *first = logits_of(&one.weights, "cuda", NULL, &n, &e4m3);
    for (int i = 0; i < kLoadings; i++) {
        float *between = logits_of(&other.weights, "cuda", NULL, &n, &e4m3),
              *again = logits_of(&one.weights, "cuda", NULL, &n, &e4m3);
        CU_ASSERT_NOT_EQUAL(memcmp(between, first, n * sizeof *first), 0);
        CU_ASSERT_EQUAL(memcmp(again, first, n * sizeof *first), 0);
        free(between);
        free(again);
    }
    free(first);
    tiny_close(&other);
    tiny_close(&one);
}

/* The device applies the scales while it loads blocks of 32 by 32. The results must equal those of
 * weights that were stored with the scales applied. */
static void test_block_scales(void) {
    if (!tiny_on_cuda())
        return;
    for (int i = 0; tiny_names[i]; i++) {
        tiny_model scaled, written;
        size_t n;
        bool e4m3;
        tiny_open_as(&scaled, tiny_names[i], TINY_E4M3);
        tiny_open_as(&written, tiny_names[i], TINY_E4M3_AS_BF16);
        float *a = logits_of(&scaled.weights, "cuda", NULL, &n, &e4m3),
              *b = logits_of(&written.weights, "cuda", NULL, &n, &e4m3);
        CU_ASSERT_FALSE(e4m3);
        CU_ASSERT_EQUAL(memcmp(a, b, n * sizeof *a), 0);
        free(a);
        free(b);
        tiny_close(&written);
        tiny_close(&scaled);
    }
}

/* The CPU rounds each e4m3 weight to BF16 when it multiplies, and with isa "portable" such weights
 * become BF16 while they load. So the results must have the bits of the same weights in BF16. */
static void compare_with_written(const char *config, random_scales scales, const char *device,
                                 const char *isa) {
    tiny_model kept, written;
    size_t n, all;
    bool e4m3, none;
    random_open_e4m3(&kept, config, scales, false);
    random_open_e4m3(&written, config, scales, true);
    float *a = logits_of(&kept.weights, device, isa, &n, &e4m3),
          *b = logits_of(&written.weights, device, isa, &all, &none);
    CU_ASSERT_EQUAL_FATAL(n, all);
    CU_ASSERT_FALSE(none);
    CU_ASSERT_FALSE(e4m3);
    CU_ASSERT_EQUAL(memcmp(a, b, n * sizeof *a), 0);
    free(a);
    free(b);
    tiny_close(&written);
    tiny_close(&kept);
}

static void test_e4m3_as_bf16(void) {
    /* The smaller model has the same kinds of e4m3 weights. Most of the time is spent on writing
     * and reading weights. */
    const char *other = kSanitized ? random_narrow_v2 : random_wide_v3;
    compare_with_written(kThreadSanitized ? other : random_wide_v3, RANDOM_SCALES, NULL, NULL);
    if (!kThreadSanitized) /* other scales do not change how threads synchronise */
        compare_with_written(other, RANDOM_POWERS, NULL, NULL);
    if (!tiny_on_cuda())
        return;
    compare_with_written(random_wide_v3, RANDOM_SCALES, "cuda", "portable");
    compare_with_written(random_wide_v2, RANDOM_SCALES, "cuda", "portable");
}

/* On Hopper, weights with blocks of 128 by 128 stay e4m3, and products of up to eight rows do not
 * round them. With scales that are powers of two, BF16 does not round them either. So the results
 * differ from those of the same weights in BF16 by the order of sums only. */
static void check_few_rows(const char *config) {
    subject s;
    subject_open(&s, "e4m3 weights", config);
    tiny_close(&s.model);
    random_open_e4m3(&s.model, config, RANDOM_POWERS, true);
    runner *written = subject_start(&s, CACHE_BF16, NULL, "cuda");
    outcome expected[] = {subject_run(&s, written, 1), subject_run(&s, written, kFew)};
    runner_free(written);
    tiny_close(&s.model);
    random_open_e4m3(&s.model, config, RANDOM_POWERS, false);
    runner *kept = subject_start(&s, CACHE_BF16, NULL, "cuda");
    outcome got[] = {subject_run(&s, kept, 1), subject_run(&s, kept, kFew)};
    subject_check(&s, "e4m3, step by step, against BF16",
                  subject_compare(&s, &got[0], &expected[0]), SUBJECT_ROUNDING);
    subject_check(&s, "e4m3, chunks of 8, against BF16", subject_compare(&s, &got[1], &expected[1]),
                  SUBJECT_ROUNDING);
    for (int i = 0; i < 2; i++) {
        outcome_free(&expected[i]);
        outcome_free(&got[i]);
    }
    runner_free(kept);
    subject_close(&s);
}

static void test_few_rows_of_e4m3(void) {
    if (!tiny_on_cuda())
        return;
    check_few_rows(random_wide_v2);
    check_few_rows(random_wide_v3);
}

/* Products of more than eight rows round their operands to e4m3, with a relative error of up to
 * 1/16 for each number. So the logits of a prompt may differ from those of the same weights in BF16
 * (isa "portable") by more than the rounding of sums, and some tokens choose other experts. */
static void check_prompt(const char *config) {
    subject s;
    subject_open(&s, "e4m3 weights", config);
    tiny_close(&s.model);
    random_open_e4m3(&s.model, config, RANDOM_SCALES, false);
    runner *kept = subject_start(&s, CACHE_BF16, NULL, "cuda");
    s.isa = "portable";
    runner *bf16 = subject_start(&s, CACHE_BF16, NULL, "cuda");
    outcome whole = subject_run(&s, kept, s.n), chunks = subject_run(&s, kept, 37),
            exact = subject_run(&s, bf16, s.n);
    comparison of_whole = subject_compare(&s, &whole, &exact),
               of_chunks = subject_compare(&s, &chunks, &exact);
    subject_show(&s, "e4m3, prompt, against BF16", of_whole);
    subject_show(&s, "e4m3, chunks of 37, against BF16", of_chunks);
    CU_ASSERT(of_whole.median < kCoarse && of_whole.compared >= kLeast);
    CU_ASSERT(of_chunks.median < kCoarse && of_chunks.compared >= kLeast);
    outcome_free(&whole);
    outcome_free(&chunks);
    outcome_free(&exact);
    runner_free(kept);
    runner_free(bf16);
    subject_close(&s);
}

static void test_prompts_of_e4m3(void) {
    if (!tiny_on_cuda())
        return;
    check_prompt(random_wide_v2);
    check_prompt(random_wide_v3);
}

/* Random weights of a shape with e4m3 weights. runner_step() fails if a logit is not finite. */
static void test_random_e4m3(void) {
    model_shape shape;
    model_weights w;
    size_t n;
    bool e4m3;
    if (!tiny_on_cuda())
        return;
    CU_ASSERT_EQUAL_FATAL(
        model_shape_parse(&shape, random_wide_v3, strlen(random_wide_v3), "config", NULL), SNAP_OK);
    shape.fp8_block = 128;
    CU_ASSERT_EQUAL_FATAL(weights_outline(&w, &shape, NULL), SNAP_OK);
    float *out = logits_of(&w, "cuda", NULL, &n, &e4m3);
    CU_ASSERT_NOT_EQUAL(out[0], out[shape.vocab_size]);
    free(out);
    weights_release(&w);
}

CU_TestInfo tests_cuda_weights[] = {
    {"memory that another model has used gives the same bits", test_loading_again},
    {"block-scaled e4m3 weights give the results of their numbers", test_block_scales},
    {"e4m3 weights that become BF16", test_e4m3_as_bf16},
    {"e4m3 weights that stay e4m3: few rows", test_few_rows_of_e4m3},
    {"e4m3 weights that stay e4m3: prompts", test_prompts_of_e4m3},
    {"random e4m3 weights", test_random_e4m3},
    CU_TEST_INFO_NULL,
};
