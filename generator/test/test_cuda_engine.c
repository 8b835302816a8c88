/* Tests the engine on a CUDA device: its log-probabilities must agree with those of the CPU's
 * model. Without a device nothing is tested. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/engine/engine.h"
#include "generator/test/random_model.h"
#include "generator/test/score.h"
#include "generator/test/tiny_model.h"

enum { kSamples = 48, kEach = 4, kPrompt = 50, kTokens = 60, kMost = 3 * kPrompt + kTokens };
enum { kManyPages = 400, kFewPages = 24 };

typedef struct {
    int32_t token[kMost]; /* the prompt, then the drawn tokens */
    float logprob[kMost];
    int n_prompt, n, done;
    finish_reason why;
} sample;

static bool take(void *user, int32_t token, float logprob) {
    sample *s = user;
    s->logprob[s->n] = logprob;
    s->token[s->n++] = token;
    return true;
}

static void note_done(void *user, finish_reason why) {
    sample *s = user;
    s->done++;
    s->why = why;
}

static engine *start(const tiny_model *m, runner **r, const runner_options *opt) {
    engine *e = NULL;
    snap_err err = {0};
    if (runner_create(r, &m->weights, opt, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(*r);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, *r, &err), SNAP_OK);
    return e;
}

static void make_prompt(sample *s, int i, int vocab) {
    rng r = rng_make(31, (uint64_t)(i / kEach));
    *s = (sample){.n_prompt = kPrompt + 13 * (i / kEach % 8)};
    for (s->n = 0; s->n < s->n_prompt; s->n++)
        s->token[s->n] = (int32_t)rng_below(&r, (uint32_t)vocab);
}

/* Gives all samples to the engine at once, kEach of each prompt, and runs them to their end. */
static engine_stats run(const tiny_model *m, const runner_options *opt, sample *samples) {
    runner *r = NULL;
    snap_err err = {0};
    engine *e = start(m, &r, opt);
    for (int i = 0; i < kSamples; i++) {
        make_prompt(&samples[i], i, m->shape.vocab_size);
        engine_request req = {.prompt = samples[i].token,
                              .n_prompt = samples[i].n_prompt,
                              .sampling = {.temperature = 1},
                              .seed = 7 + (uint64_t)i,
                              .max_tokens = kTokens - i % 7,
                              .logprobs = true,
                              .token = take,
                              .done = note_done,
                              .user = &samples[i]};
        CU_ASSERT_EQUAL(engine_add(e, &req, &err), SNAP_OK);
    }
    while (engine_pending(e))
        CU_ASSERT_EQUAL_FATAL(engine_step(e, &err), SNAP_OK);
    engine_stats stats = engine_stats_of(e);
    engine_free(e);
    runner_free(r);
    return stats;
}

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The median difference between the log-probabilities of the device and those of the same tokens on
 * the CPU, over every fifth sample. */
static double disagreement(const tiny_model *m, const runner_options *opt, const sample *samples) {
    static float expected[kMost], apart[kSamples * kTokens];
    runner_options cpu = *opt;
    runner *r = NULL;
    snap_err err = {0};
    int n = 0;
    cpu.device = cpu.isa = NULL;
    engine *e = start(m, &r, &cpu);
    for (int i = 0; i < kSamples; i += 5) {
        const sample *s = &samples[i];
        CU_ASSERT_EQUAL(score_text(r, s->token, s->n, 64, expected, NULL, NULL, &err), SNAP_OK);
        for (int j = s->n_prompt; j < s->n; j++)
            apart[n++] = fabsf(s->logprob[j] - expected[j - 1]);
    }
    qsort(apart, (size_t)n, sizeof *apart, by_size);
    engine_free(e);
    runner_free(r);
    return (double)apart[n / 2];
}

/* In BF16 the order of sums differs. In FP8 the device's decode steps also round queries and P,
 * while the CPU scores the text in chunks, which do not. */
static double bound_of(kv_format format) {
    return format == CACHE_FP8 ? 0.15 : 0.05;
}

/* Replaces the prompts by those of other samples: the measure must then show a large difference. */
static void check_measure(const tiny_model *m, const runner_options *opt, sample *samples) {
    for (int i = 0; i < kSamples; i++)
        memcpy(samples[i].token, samples[(i + kEach) % kSamples].token,
               (size_t)samples[i].n_prompt * sizeof *samples[i].token);
    double apart = disagreement(m, opt, samples);
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| with others' prompts | %.1e apart |", apart);
    CU_ASSERT(apart > 2 * bound_of(CACHE_FP8));
}

static void check(const tiny_model *m, kv_format format, const char *isa, int64_t pages) {
    static sample samples[kSamples];
    runner_options opt = {.format = format,
                          .pages = pages,
                          .context = kMost,
                          .max_rows = 40 + 160,
                          .max_decode = 40,
                          .device = "cuda",
                          .threads = RUNNER_HOST_THREADS,
                          .isa = isa};
    engine_stats stats = run(m, &opt, samples);
    for (int i = 0; i < kSamples; i++) {
        CU_ASSERT_EQUAL(samples[i].done, 1);
        CU_ASSERT_EQUAL(samples[i].why, FINISH_LENGTH);
        CU_ASSERT_EQUAL(samples[i].n - samples[i].n_prompt, kTokens - i % 7);
    }
    CU_ASSERT(stats.shared > 0);
    CU_ASSERT_EQUAL(stats.preemptions > 0, pages == kFewPages);
    double apart = disagreement(m, &opt, samples);
    if (getenv("SHOW_FIGURES"))
        (void)printf(
            "\n| %s, %s, %lld pages | %lld preemptions, up to %d at once | log-probabilities "
            "%.1e apart |",
            kv_format_name(format), isa ? isa : "best", (long long)pages,
            (long long)stats.preemptions, stats.most_running, apart);
    CU_ASSERT(apart < bound_of(format));
    if (format == CACHE_BF16 && !isa && pages == kManyPages)
        check_measure(m, &opt, samples);
}

static void test_samples_are_the_models(void) {
    static const char *const isas[] = {NULL, "portable"};
    static const kv_format formats[] = {CACHE_BF16, CACHE_FP8};
    tiny_model m;
    if (!tiny_on_cuda())
        return;
    random_open(&m, random_wide_v3, 0);
    for (int i = 0; i < 2; i++)
        for (int f = 0; f < 2; f++) {
            check(&m, formats[f], isas[i], kManyPages);
            check(&m, formats[f], isas[i], kFewPages);
        }
    tiny_close(&m);
}

CU_TestInfo tests_cuda_engine[] = {
    {"shared, copied and swapped pages give the log-probabilities of the CPU",
     test_samples_are_the_models},
    CU_TEST_INFO_NULL,
};
