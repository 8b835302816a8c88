#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/model/runner.h"
#include "generator/test/tiny_model.h"

enum { kPages = 8, kContext = 128, kMostPerToken = 16 };

/* Pages of the one sequence, out of order. */
static const int32_t pages[] = {5, 2};

static runner *start(const tiny_model *t, cache_format format, const char *isa) {
    runner *r = NULL;
    snap_err err = {0};
    runner_options opt = {.format = format,
                          .pages = kPages,
                          .context = kContext,
                          .max_rows = TINY_TOKENS,
                          .max_decode = 4,
                          .threads = 1,
                          .isa = isa};
    if (runner_create(&r, &t->weights, &opt, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    return r;
}

/* Runs the tokens in pieces of @piece; logits [TINY_TOKENS][vocab] are the caller's to free. */
static float *logits_of(const tiny_model *t, runner *r, int piece) {
    float *out = calloc((size_t)TINY_TOKENS * (size_t)t->shape.vocab_size, sizeof *out);
    for (int at = 0; at < TINY_TOKENS; at += piece) {
        int n = TINY_TOKENS - at < piece ? TINY_TOKENS - at : piece;
        model_piece p = {.tokens = t->tokens + at,
                         .count = n,
                         .position = at,
                         .pages = pages,
                         .logits = n,
                         .chunk = piece > 1};
        snap_err err = {0};
        CU_ASSERT_EQUAL(runner_step(r, &p, 1, out + (int64_t)at * t->shape.vocab_size, &err),
                        SNAP_OK);
    }
    return out;
}

/* |a - b| / |b| of a token's logits */
static double distance(const float *a, const float *b, int n) {
    double diff = 0, size = 0;
    for (int i = 0; i < n; i++) {
        diff += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)b[i], 2);
    }
    return sqrt(diff / size);
}

static double worst(const tiny_model *t, const float *a, const float *b) {
    double most = 0;
    int n = t->shape.vocab_size;
    for (int i = 0; i < TINY_TOKENS; i++)
        most = fmax(most, distance(a + (int64_t)i * n, b + (int64_t)i * n, n));
    return most;
}

static void test_fp32_is_transformers(void) {
    for (int m = 0; tiny_names[m]; m++) {
        tiny_model t;
        tiny_open(&t, tiny_names[m]);
        runner *r = start(&t, CACHE_F32, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        float *whole = logits_of(&t, r, TINY_TOKENS), *chunks = logits_of(&t, r, 33),
              *steps = logits_of(&t, r, 1);
        double error = worst(&t, whole, t.exact);
        CU_ASSERT(error < 1e-5);
        if (getenv("SHOW_FIGURES"))
            (void)printf("\n| %s | fp32, against transformers' fp32 | worst %.1e |", tiny_names[m],
                         error);
        CU_ASSERT_EQUAL(worst(&t, chunks, whole), 0);
        CU_ASSERT_EQUAL(worst(&t, steps, whole), 0);
        free(whole);
        free(chunks);
        free(steps);
        runner_free(r);
        tiny_close(&t);
    }
}

/* ---- BF16 --------------------------------------------------------------------------------------- */

typedef struct {
    double worst, median;
    int compared; /* tokens whose experts agree in every layer */
} comparison;

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Leaves out tokens whose experts differ from the reference's; @mine NULL: none. */
static comparison compare(const tiny_model *t, const float *a, const float *b,
                          const int32_t *mine) {
    comparison c = {0};
    double all[TINY_TOKENS];
    int n = t->shape.vocab_size;
    for (int i = 0; i < TINY_TOKENS; i++) {
        const int32_t *theirs = t->chosen + i * t->per_token;
        if (mine &&
            memcmp(theirs, mine + i * t->per_token, (size_t)t->per_token * sizeof *mine) != 0)
            continue;
        all[c.compared++] = distance(a + (int64_t)i * n, b + (int64_t)i * n, n);
    }
    qsort(all, (size_t)c.compared, sizeof *all, by_size);
    c.median = c.compared ? all[c.compared / 2] : 0;
    c.worst = c.compared ? all[c.compared - 1] : 0;
    return c;
}

static void show(const char *name, const char *what, comparison c) {
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| %s | %s | median %.1e, worst %.1e of %d tokens |", name, what, c.median,
                     c.worst, c.compared);
}

static void test_bf16_is_transformers(void) {
    for (int m = 0; tiny_names[m]; m++) {
        tiny_model t;
        int32_t chosen[TINY_TOKENS * kMostPerToken];
        tiny_open(&t, tiny_names[m]);
        CU_ASSERT_FATAL(t.per_token <= kMostPerToken);
        runner *r = start(&t, CACHE_BF16, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        runner_watch_experts(r, chosen);
        float *whole = logits_of(&t, r, TINY_TOKENS);
        runner_watch_experts(r, NULL);
        float *steps = logits_of(&t, r, 1), *chunks = logits_of(&t, r, 33);
        comparison theirs = compare(&t, whole, t.rounded, chosen),
                   exact = compare(&t, whole, t.exact, chosen);
        show(tiny_names[m], "bf16, against transformers' bf16", theirs);
        show(tiny_names[m], "bf16, against transformers' fp32", exact);
        show(tiny_names[m], "bf16, step by step against whole", compare(&t, steps, whole, NULL));
        CU_ASSERT(theirs.median < 2e-2);
        CU_ASSERT(exact.worst < 2e-2);
        CU_ASSERT(exact.compared >= TINY_TOKENS * 9 / 10);
        CU_ASSERT_EQUAL(worst(&t, chunks, whole), 0);
        CU_ASSERT(compare(&t, steps, whole, NULL).median < 2e-2);
        free(whole);
        free(chunks);
        free(steps);
        runner_free(r);
        tiny_close(&t);
    }
}

CU_TestInfo tests_model[] = {
    {"FP32 logits are transformers', whole, in chunks, step by step", test_fp32_is_transformers},
    {"BF16 logits are transformers' up to rounding", test_bf16_is_transformers},
    CU_TEST_INFO_NULL,
};
