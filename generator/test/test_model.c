#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "generator/local/model/runner.h"
#include "generator/test/tiny_model.h"

enum { kPages = 8, kContext = 81, kMostPerToken = 16 };
enum { kModels = kSanitized ? 3 : 99 /* most models for which all cache formats are compared */ };

/* The pages of the only sequence, out of order. */
static const int32_t pages[] = {5, 2};

static runner *start_named(const tiny_model *t, const char *precision, const char *isa) {
    runner *r = NULL;
    snap_err err = {0};
    runner_options opt = {.precision = precision,
                          .pages = kPages,
                          .context = kContext,
                          .max_rows = TINY_TOKENS,
                          .max_decode = 4,
                          .threads = 1,
                          .isa = isa};
    CU_ASSERT_EQUAL_FATAL(kv_format_parse(precision, &opt.format, &err), SNAP_OK);
    if (runner_create(&r, &t->weights, &opt, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    return r;
}

static runner *start(const tiny_model *t, kv_format format, const char *isa) {
    return start_named(t, kv_format_name(format), isa);
}

/* Runs the tokens in pieces of @piece. The caller frees the logits [TINY_TOKENS][vocab]. @chosen
 * gets the experts of each token [TINY_TOKENS][per_token]; NULL: they are not needed. */
static float *watched_logits_of(const tiny_model *t, runner *r, int piece, int32_t *chosen) {
    float *out = calloc((size_t)TINY_TOKENS * (size_t)t->shape.vocab_size, sizeof *out);
    for (int at = 0; at < TINY_TOKENS; at += piece) {
        runner_watch_experts(r, chosen ? chosen + (int64_t)at * t->per_token : NULL);
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
    runner_watch_experts(r, NULL);
    return out;
}

static float *logits_of(const tiny_model *t, runner *r, int piece) {
    return watched_logits_of(t, r, piece, NULL);
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

/* ---- BF16 ------------------------------------------------------------------------------------ */

typedef struct {
    double worst, median;
    int compared; /* tokens that were compared: if experts are given, those with the same ones in
                     all layers */
} comparison;

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool same_experts(const tiny_model *t, int token, const int32_t *a, const int32_t *b) {
    int64_t at = (int64_t)token * t->per_token;
    return memcmp(a + at, b + at, (size_t)t->per_token * sizeof *a) == 0;
}

/* Leaves out tokens whose experts @mine differ from @theirs. Both NULL: leaves out none. */
static comparison compare(const tiny_model *t, const float *a, const float *b,
                          const int32_t *theirs, const int32_t *mine) {
    comparison c = {0};
    double all[TINY_TOKENS];
    int n = t->shape.vocab_size;
    for (int i = 0; i < TINY_TOKENS; i++) {
        if (mine && !same_experts(t, i, theirs, mine))
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

/* The experts of our FP32 run. Its logits equal those of transformers in FP32, so its experts do,
 * too. */
static void choose_in_fp32(const tiny_model *t, int32_t *chosen) {
    runner *r = start(t, CACHE_F32, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    free(watched_logits_of(t, r, TINY_TOKENS, chosen));
    runner_free(r);
}

static void test_bf16_is_transformers(void) {
    for (int m = 0; tiny_names[m]; m++) {
        tiny_model t;
        int32_t chosen[TINY_TOKENS * kMostPerToken], in_fp32[TINY_TOKENS * kMostPerToken];
        tiny_open(&t, tiny_names[m]);
        CU_ASSERT_FATAL(t.per_token <= kMostPerToken);
        choose_in_fp32(&t, in_fp32);
        runner *r = start(&t, CACHE_BF16, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        float *whole = watched_logits_of(&t, r, TINY_TOKENS, chosen);
        float *steps = logits_of(&t, r, 1), *chunks = logits_of(&t, r, 33);
        comparison theirs = compare(&t, whole, t.rounded, t.chosen, chosen),
                   exact = compare(&t, whole, t.exact, in_fp32, chosen);
        show(tiny_names[m], "bf16, against transformers' bf16", theirs);
        show(tiny_names[m], "bf16, against transformers' fp32", exact);
        show(tiny_names[m], "bf16, step by step against whole",
             compare(&t, steps, whole, NULL, NULL));
        CU_ASSERT(theirs.median < 2e-2);
        CU_ASSERT(exact.worst < 2e-2);
        CU_ASSERT(theirs.compared >= TINY_TOKENS * 9 / 10);
        CU_ASSERT(exact.compared >= TINY_TOKENS * 9 / 10);
        CU_ASSERT_EQUAL(worst(&t, chunks, whole), 0);
        CU_ASSERT(compare(&t, steps, whole, NULL, NULL).median < 2e-2);
        free(whole);
        free(chunks);
        free(steps);
        runner_free(r);
        tiny_close(&t);
    }
}

/* ---- other caches ---------------------------------------------------------------------------- */

/* KL(softmax a || softmax b) in nats of a token's logits. */
static double divergence_of_one(const float *a, const float *b, int n) {
    double za = 0, zb = 0, sum = 0;
    for (int j = 0; j < n; j++) {
        za += exp((double)a[j]);
        zb += exp((double)b[j]);
    }
    for (int j = 0; j < n; j++)
        sum += exp((double)a[j]) / za * ((double)a[j] - log(za) - (double)b[j] + log(zb));
    return sum;
}

/* Mean over the tokens. */
static double divergence(const tiny_model *t, const float *a, const float *b) {
    double sum = 0;
    int n = t->shape.vocab_size;
    for (int i = 0; i < TINY_TOKENS; i++)
        sum += divergence_of_one(a + (int64_t)i * n, b + (int64_t)i * n, n);
    return sum / TINY_TOKENS;
}

enum {
    FORMAT_BF16,
    FORMAT_FP8,
    FORMAT_F32,
    FORMAT_NO_PV,
    FORMAT_A,
    FORMAT_B,
    FORMAT_C,
    FORMAT_D,
    FORMAT_E,
    FORMAT_F,
    FORMATS
};
static const char *const formats[FORMATS] = {"bf16", "fp8", "fp32", "noPV", "A",
                                             "B",    "C",   "D",    "E",    "F"};
/* A prompt's logits must be as close to those of decoding as the error of the format allows. @kl is
 * that error: the mean divergence of decoding from FP32. Tokens whose experts differ between the
 * two runs are left out: their logits are those of different functions. */
static void check_prompt(const tiny_model *t, runner *r, const float *steps,
                         const int32_t *of_steps, double kl, int f) {
    int32_t chosen[TINY_TOKENS * kMostPerToken];
    float *whole = watched_logits_of(t, r, TINY_TOKENS, chosen);
    double sum = 0;
    int same = 0, n = t->shape.vocab_size;
    for (int i = 0; i < TINY_TOKENS; i++)
        if (same_experts(t, i, chosen, of_steps)) {
            sum += divergence_of_one(steps + (int64_t)i * n, whole + (int64_t)i * n, n);
            same++;
        }
    CU_ASSERT(same > TINY_TOKENS / 2);
    /* The scales of C and D depend on how a text is divided, so the errors of both runs count. */
    CU_ASSERT(sum / same < (f == FORMAT_C || f == FORMAT_D ? 4 : 2) * kl + 1e-4);
    free(whole);
}

/* Compares each format's logits, decoded step by step, with FP32's. The divergence of FP8 must be
 * larger than that of BF16, and that of every format must be small. */
static void test_formats(void) {
    for (int m = 0; tiny_names[m] && m < kModels; m++) {
        tiny_model t;
        double kl[FORMATS];
        int32_t chosen[TINY_TOKENS * kMostPerToken];
        tiny_open(&t, tiny_names[m]);
        for (int f = 0; f < FORMATS; f++) {
            runner *r = start_named(&t, formats[f], NULL);
            CU_ASSERT_PTR_NOT_NULL_FATAL(r);
            float *steps = watched_logits_of(&t, r, 1, chosen);
            kl[f] = divergence(&t, t.exact, steps);
            CU_ASSERT(kl[f] < 0.03);
            check_prompt(&t, r, steps, chosen, kl[f], f);
            if (getenv("SHOW_FIGURES"))
                (void)printf("\n| %s | KL of %s, decoding, from transformers' fp32 | %.1e |",
                             tiny_names[m], formats[f], kl[f]);
            free(steps);
            runner_free(r);
        }
        CU_ASSERT(kl[FORMAT_F32] < 1e-9);
        CU_ASSERT(kl[FORMAT_BF16] < kl[FORMAT_FP8]);
        tiny_close(&t);
    }
}

/* Compares formats A, B and C, which round RoPE to e4m3, with the other formats, on a model whose
 * logits depend strongly on RoPE, as those of real models do. The reference is our FP32, which
 * agrees with transformers on the unscaled weights. */
static void test_quantised_rope_is_worse(void) {
    tiny_model t;
    double kl[FORMATS];
    float *exact = NULL, largest = 0;
    tiny_open_as(&t, "minicpm3", TINY_STRONG_ROPE);
    int width = t.shape.kv_lora_rank + t.shape.qk_rope_head_dim;
    runner *r = start(&t, CACHE_F32, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    exact = logits_of(&t, r, 1);
    const float *rows =
        kv_cache_rows_f32(runner_cache(r), 1) + (int64_t)pages[0] * MLA_PAGE * width;
    for (int i = 0; i < MLA_PAGE * width; i++)
        largest = fmaxf(largest, fabsf(rows[i]));
    CU_ASSERT(largest > 500 && largest < 2000);
    runner_free(r);
    for (int f = 0; f < FORMATS; f++) {
        r = start_named(&t, formats[f], NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        float *steps = logits_of(&t, r, 1);
        kl[f] = divergence(&t, exact, steps);
        if (getenv("SHOW_FIGURES"))
            (void)printf("\n| strong RoPE | KL of %s from fp32 | %.1e |", formats[f], kl[f]);
        free(steps);
        runner_free(r);
    }
    CU_ASSERT(kl[FORMAT_A] > 10 * kl[FORMAT_FP8]);
    CU_ASSERT(kl[FORMAT_B] > 100 * kl[FORMAT_FP8]);
    CU_ASSERT(kl[FORMAT_C] > 10 * kl[FORMAT_FP8]);
    CU_ASSERT(kl[FORMAT_D] < 4 * kl[FORMAT_FP8]);
    CU_ASSERT(kl[FORMAT_E] < 4 * kl[FORMAT_FP8]);
    CU_ASSERT(kl[FORMAT_F] < 4 * kl[FORMAT_FP8]);
    CU_ASSERT(kl[FORMAT_NO_PV] < kl[FORMAT_FP8]);
    free(exact);
    tiny_close(&t);
}

/* A model with block-scaled e4m3 weights must give the same logits as one whose stored weights
 * have the scales applied, bit for bit, with FP32, BF16 and FP8 caches. */
static void test_e4m3_weights(void) {
    static const struct {
        kv_format format;
        tiny_flavour written;
    } runs[] = {{CACHE_F32, TINY_E4M3_AS_F32},
                {CACHE_BF16, TINY_E4M3_AS_BF16},
                {CACHE_FP8, TINY_E4M3_AS_BF16}};
    for (int m = 0; tiny_names[m] && m < kModels; m++)
        for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
            tiny_model scaled, plain;
            tiny_open_as(&scaled, tiny_names[m], TINY_E4M3);
            tiny_open_as(&plain, tiny_names[m], runs[i].written);
            CU_ASSERT_EQUAL(scaled.shape.fp8_block, 32);
            runner *a = start(&scaled, runs[i].format, NULL),
                   *b = start(&plain, runs[i].format, NULL);
            CU_ASSERT_FATAL(a && b);
            for (int piece = 1; piece <= TINY_TOKENS; piece += TINY_TOKENS - 1) {
                float *x = logits_of(&scaled, a, piece), *y = logits_of(&plain, b, piece);
                size_t n = (size_t)TINY_TOKENS * (size_t)scaled.shape.vocab_size;
                CU_ASSERT_EQUAL(memcmp(x, y, n * sizeof *x), 0);
                CU_ASSERT(worst(&scaled, x, scaled.exact) >
                          1e-3); /* the reference is that of the weights before rounding */
                free(x);
                free(y);
            }
            runner_free(a);
            runner_free(b);
            tiny_close(&scaled);
            tiny_close(&plain);
        }
}

/* The logits of every instruction set are within the rounding error of the reference. */
static void test_instruction_sets(void) {
    static const char *const isas[] = {"portable", "avx2", "avx512f", "avx512bf16"};
    tiny_model t;
    tiny_open(&t, "v3");
    for (int f = 0; f < 2; f++)
        for (int i = 0; i < 4; i++) {
            runner *r = start(&t, f ? CACHE_F32 : CACHE_BF16, isas[i]);
            if (!r)
                continue; /* not supported by this machine */
            float *out = logits_of(&t, r, TINY_TOKENS);
            comparison c = compare(&t, out, t.exact, NULL, NULL);
            CU_ASSERT(c.median < (f ? 1e-5 : 2e-2));
            free(out);
            runner_free(r);
        }
    tiny_close(&t);
}

static void test_what_a_step_refuses(void) {
    tiny_model t;
    snap_err err = {0};
    int32_t bad_page[2] = {0, kPages}, bad_token[2] = {1, 64};
    float *logits = calloc(TINY_TOKENS * 64, sizeof *logits);
    tiny_open(&t, "v2");
    runner *r = start(&t, CACHE_FP8, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    model_piece good = {.tokens = t.tokens, .count = 2, .pages = pages, .logits = 1}, p = good;
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, logits, &err), SNAP_OK);
    p.tokens = bad_token;
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, logits, NULL), SNAP_E_SHAPE);
    p = good;
    p.position = 63;
    p.pages = bad_page;
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, logits, NULL), SNAP_E_SHAPE);
    p = good;
    p.position = kContext - 1;
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, logits, NULL), SNAP_E_SHAPE);
    p = good;
    p.count = 0;
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, logits, NULL), SNAP_E_SHAPE);
    p = good;
    p.logits = 3;
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, logits, NULL), SNAP_E_SHAPE);
    model_piece many[5];
    for (int i = 0; i < 5; i++)
        many[i] = (model_piece){.tokens = t.tokens, .count = 1, .pages = pages};
    CU_ASSERT_EQUAL(runner_step(r, many, 5, logits, &err), SNAP_E_SHAPE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "5 sequences"));
    free(logits);
    runner_free(r);
    tiny_close(&t);
}

/* ---- counts of experts ----------------------------------------------------------------------- */

/* The number of different experts below @routed that the tokens from @from to @to chose in the MoE
 * layer @layer of @layers. @experts: [tokens][layers][k] */
static int64_t experts_of(const int32_t *experts, int from, int to, int layer, int layers, int k,
                          int routed) {
    int64_t n = 0;
    for (int e = 0; e < routed; e++) {
        bool used = false;
        for (int i = from; i < to; i++)
            for (int j = 0; j < k; j++)
                used |= experts[((int64_t)i * layers + layer) * k + j] == e;
        n += used;
    }
    return n;
}

static void test_experts_are_counted(void) {
    enum { kPiece = 33 };
    for (int m = 0; tiny_names[m]; m++) {
        tiny_model t;
        tiny_open(&t, tiny_names[m]);
        int k = t.shape.num_experts_per_tok, layers = k ? t.per_token / k : 0;
        int32_t *chosen = calloc((size_t)TINY_TOKENS * (size_t)t.per_token + 1, sizeof *chosen);
        runner *r = start(&t, CACHE_BF16, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        free(watched_logits_of(&t, r, kPiece, chosen));
        int64_t used = 0, counted = 0;
        for (int at = 0; at < TINY_TOKENS; at += kPiece, counted += layers)
            for (int l = 0; l < layers; l++)
                used +=
                    experts_of(chosen, at, at + kPiece < TINY_TOKENS ? at + kPiece : TINY_TOKENS, l,
                               layers, k, t.shape.n_routed_experts);
        runner_stats s = runner_stats_of(r);
        CU_ASSERT_EQUAL(s.layers, counted);
        CU_ASSERT_EQUAL(s.experts, used);
        CU_ASSERT_EQUAL(s.launch_ns + s.wait_ns + s.recorded, 0); /* only a GPU has these */
        free(chosen);
        runner_free(r);
        tiny_close(&t);
    }
}

CU_TestInfo tests_model[] = {
    {"FP32 logits equal those of transformers: one chunk, several chunks, single tokens",
     test_fp32_is_transformers},
    {"BF16 logits equal those of transformers up to rounding", test_bf16_is_transformers},
    {"errors of the logits for each format of the cache", test_formats},
    {"a cache with quantised RoPE has larger errors", test_quantised_rope_is_worse},
    {"e4m3 weights give the logits of the same weights in FP32 or BF16", test_e4m3_weights},
    {"every instruction set gives the same logits up to rounding", test_instruction_sets},
    {"steps with invalid tokens, pages or sizes are refused", test_what_a_step_refuses},
    {"the experts that a step uses are counted", test_experts_are_counted},
    CU_TEST_INFO_NULL,
};
