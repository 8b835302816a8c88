/* Draws from what a device reads of its logits must equal draws from the logits. Without a device
 * nothing is tested. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/engine/sampler.h"
#include "generator/local/model/runner.h"
#include "generator/test/tiny_model.h"

enum { kVocab = 30001, kRows = 3, kDraws = 200 };

/* Compares bits. */
static bool equal(const float *a, const float *b, size_t n) {
    return memcmp(a, b, n * sizeof *a) == 0;
}

typedef struct {
    tiny_model model;
    runner *r;
    sampler *s;
    float *logits, *some; /* [kRows][kVocab] */
} subject;

static void subject_open(subject *x) {
    snap_err err = {0};
    *x = (subject){0};
    runner_options opt = {
        .pages = kRows, .context = 8, .max_rows = kRows, .max_decode = kRows, .device = "cuda"};
    tiny_make(&x->model);
    tiny_write(x->model.dir, "v3", kVocab);
    tiny_read(&x->model);
    CU_ASSERT_EQUAL_FATAL(runner_create(&x->r, &x->model.weights, &opt, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(sampler_create(&x->s, kVocab, &err), SNAP_OK);
    x->logits = calloc((size_t)kRows * kVocab, sizeof *x->logits);
    x->some = calloc((size_t)kRows * kVocab, sizeof *x->some);
    CU_ASSERT_FATAL(x->logits && x->some);
}

static void subject_close(subject *x) {
    free(x->logits);
    free(x->some);
    sampler_free(x->s);
    runner_free(x->r);
    tiny_close(&x->model);
}

/* Runs one step in which every row has its own token. */
static void step(const subject *x, const reading *wanted, reading_result *got, float *logits) {
    static const int32_t tokens[kRows] = {5, 17, 40}, pages[kRows] = {2, 0, 1};
    model_piece p[kRows];
    snap_err err = {0};
    for (int i = 0; i < kRows; i++)
        p[i] = (model_piece){.tokens = &tokens[i], .count = 1, .pages = &pages[i], .logits = 1};
    CU_ASSERT_EQUAL(runner_step_read(x->r, p, kRows, wanted, got, logits, &err), SNAP_OK);
}

/* Draws for all rows with one kind of sampling, each from its own stream. Returns how many rows
 * were read without copying their logits. */
static int check(const subject *x, const sampling *how) {
    int read = 0;
    for (uint64_t draw = 0; draw < kDraws; draw++) {
        reading wanted[kRows];
        reading_result got[kRows];
        for (uint64_t i = 0; i < kRows; i++) {
            rng r = rng_make(draw, i);
            wanted[i] = sampler_reading(x->s, how, &r);
        }
        step(x, wanted, got, x->some);
        for (uint64_t i = 0; i < kRows; i++) {
            const float *logits = x->logits + i * kVocab, *some = x->some + i * kVocab;
            rng a = rng_make(draw, i), b = a;
            int32_t token = sampler_draw(x->s, how, logits, NULL, 0, &a, NULL);
            bool copied = got[i].kind == READ_LOGITS;
            if (copied)
                CU_ASSERT(equal(some, logits, kVocab));
            CU_ASSERT_EQUAL(token, copied ? sampler_draw(x->s, how, some, NULL, 0, &b, NULL)
                                          : sampler_draw_read(x->s, how, &got[i], &b));
            CU_ASSERT_EQUAL(rng_u32(&a), rng_u32(&b));
            read += !copied;
        }
    }
    return read;
}

static double spread_of(const float *x, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    return sqrt(squares / n - sum / n * (sum / n));
}

/* Temperatures are in units of the logits' spread, so that the nucleus is narrow or wide. */
static void test_draws(void) {
    static const sampling read[] = {{.temperature = 0},
                                    {.temperature = 1},
                                    {.temperature = 0.1},
                                    {.temperature = 0.2, .top_p = 0.95},
                                    {.temperature = 0.3, .top_p = 0.5},
                                    {.temperature = 0.1, .top_p = 0.999},
                                    {.temperature = 0.3, .top_k = 20},
                                    {.temperature = 1, .top_k = 500, .top_p = 0.9, .min_p = 0.02}},
                          copied[] = {{.temperature = 0.3, .min_p = 0.1},
                                      {.temperature = 1, .top_k = 2000},
                                      {.temperature = 4, .top_p = 0.999}};
    subject x;
    if (!tiny_on_cuda())
        return;
    subject_open(&x);
    step(&x, (reading[kRows]){0}, (reading_result[kRows]){0}, x.logits);
    double spread = spread_of(x.logits, kVocab);
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        sampling how = read[i];
        how.temperature *= spread;
        CU_ASSERT_EQUAL(check(&x, &how), kDraws * kRows);
    }
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        sampling how = copied[i];
        how.temperature *= spread;
        CU_ASSERT_EQUAL(check(&x, &how), 0);
    }
    subject_close(&x);
}

/* In one step some rows are read and some are copied. */
static void test_rows_of_both_kinds(void) {
    subject x;
    if (!tiny_on_cuda())
        return;
    subject_open(&x);
    reading wanted[kRows] = {{.kind = READ_LOGITS}, {.kind = READ_BEST}, {.kind = READ_LOGITS}};
    reading_result got[kRows];
    step(&x, (reading[kRows]){0}, got, x.logits);
    step(&x, wanted, got, x.some);
    CU_ASSERT_EQUAL(got[0].kind, READ_LOGITS);
    CU_ASSERT_EQUAL(got[1].kind, READ_BEST);
    CU_ASSERT(equal(x.some, x.logits, kVocab));
    CU_ASSERT_EQUAL(x.some[kVocab], 0); /* not written */
    CU_ASSERT(equal(x.some + 2 * kVocab, x.logits + 2 * kVocab, kVocab));
    subject_close(&x);
}

CU_TestInfo tests_cuda_reading[] = {
    {"draws on the device equal draws from the logits", test_draws},
    {"read rows and copied rows in one step", test_rows_of_both_kinds},
    CU_TEST_INFO_NULL,
};
