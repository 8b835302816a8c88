/* Tests the limits of the CUDA model's shapes, and two models at the same time. Without a device
 * nothing is tested. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/model/model_parts.h"
#include "generator/test/random_model.h"

enum { kRows = 128, kDecode = 96, kContext = 257 };

static runner *start(const tiny_model *m, const char *device, snap_status *st) {
    runner *r = NULL;
    snap_err err = {0};
    runner_options opt = {.format = CACHE_BF16,
                          .pages = 2 * kDecode,
                          .context = kContext,
                          .max_rows = kRows,
                          .max_decode = kDecode,
                          .device = device,
                          .threads = RUNNER_HOST_THREADS};
    *st = runner_create(&r, &m->weights, &opt, &err);
    return r;
}

static void first_tokens(model_piece *p, int32_t *token, int32_t *page, int n, int vocab) {
    for (int i = 0; i < n; i++) {
        token[i] = 7 * i % vocab;
        page[i] = i;
        p[i] = (model_piece){.tokens = token + i, .count = 1, .pages = page + i, .logits = 1};
    }
}

static double distance(const float *a, const float *b, int n) {
    double diff = 0, size = 0;
    for (int i = 0; i < n; i++) {
        diff += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)b[i], 2);
    }
    return isfinite(diff) ? sqrt(diff / size) : HUGE_VAL;
}

/* More sequences than kFewRows, and rows of logits with an odd number of columns, which gemm_many()
 * does not compute. */
static void test_odd_vocabulary(void) {
    const char *const change[][2] = {{"\"vocab_size\":512", "\"vocab_size\":513"}};
    if (!tiny_on_cuda())
        return;
    char *config = random_changed(random_wide_v2, change, 1);
    tiny_model m = {0};
    snap_status st;
    snap_err err = {0};
    model_piece p[kDecode];
    int32_t token[kDecode], page[kDecode];
    random_open(&m, config, 3);
    int vocab = m.shape.vocab_size, n = 40;
    runner *cpu = start(&m, NULL, &st), *cuda = start(&m, "cuda", &st);
    CU_ASSERT_PTR_NOT_NULL_FATAL(cuda);
    float *want = calloc((size_t)(n * vocab), sizeof *want),
          *got = calloc((size_t)(n * vocab), sizeof *got);
    first_tokens(p, token, page, n, vocab);
    CU_ASSERT_EQUAL(runner_step(cpu, p, n, want, &err), SNAP_OK);
    CU_ASSERT_EQUAL(runner_step(cuda, p, n, got, &err), SNAP_OK);
    double worst = 0;
    for (int i = 0; i < n; i++)
        worst = fmax(worst, distance(got + i * vocab, want + i * vocab, vocab));
    CU_ASSERT(worst < 0.2); /* experts may differ; a wrong row would give more than 1 */
    free(want);
    free(got);
    free(config);
    runner_free(cpu);
    runner_free(cuda);
    tiny_close(&m);
}

/* A shape that would make a launch fail must be refused when the model is created, or else each
 * step must fail. */
static void test_too_wide(void) {
    const char *const change[][2] = {{"\"hidden_size\":256", "\"hidden_size\":13312"},
                                     {"\"num_hidden_layers\":4", "\"num_hidden_layers\":1"},
                                     {"\"intermediate_size\":512", "\"intermediate_size\":64"},
                                     {"\"num_attention_heads\":16", "\"num_attention_heads\":1"},
                                     {"\"num_key_value_heads\":16", "\"num_key_value_heads\":1"},
                                     {"\"vocab_size\":512", "\"vocab_size\":64"}};
    if (!tiny_on_cuda())
        return;
    char *config = random_changed(random_wide_v2, change, 6);
    tiny_model m = {0};
    snap_status st;
    model_piece p[2];
    int32_t token[2], page[2];
    float logits[128] = {0};
    random_open(&m, config, 3);
    runner *r = start(&m, "cuda", &st);
    if (!r)
        CU_ASSERT_EQUAL(st, SNAP_E_UNSUPPORTED);
    for (int i = 0; r && i < 3; i++) {
        snap_err err = {0};
        first_tokens(p, token, page, 2, 64);
        st = runner_step(r, p, 2, logits, &err);
        CU_ASSERT_NOT_EQUAL(st, SNAP_OK);
    }
    free(config);
    runner_free(r);
    tiny_close(&m);
}

/* ---- two models at once --------------------------------------------------------------------- */

typedef struct {
    tiny_model m;
    runner *r;
    int failed, steps;
    char text[200];
} arm;

static void *prefill_again_and_again(void *ctx) {
    arm *a = ctx;
    int32_t token[kRows], pages[4] = {0, 1, 2, 3};
    for (int i = 0; i < kRows; i++)
        token[i] = i % a->m.shape.vocab_size;
    for (int i = 0; i < a->steps; i++) {
        snap_err err = {0};
        model_piece p = {.tokens = token, .count = kRows, .pages = pages, .chunk = true};
        a->failed += runner_step(a->r, &p, 1, NULL, &err) != SNAP_OK;
        if (err.code != SNAP_OK)
            memcpy(a->text, err.text, sizeof a->text - 1);
    }
    return NULL;
}

static void test_two_widths_at_once(void) {
    static const char *const width[] = {"\"hidden_size\":2048", "\"hidden_size\":2560"};
    if (!tiny_on_cuda())
        return;
    arm a[2] = {0};
    pthread_t t[2];
    for (int i = 0; i < 2; i++) {
        const char *const change[][2] = {{"\"hidden_size\":256", width[i]},
                                         {"\"num_hidden_layers\":4", "\"num_hidden_layers\":3"}};
        char *config = random_changed(random_wide_v2, change, 2);
        snap_status st;
        a[i].steps = 1500;
        random_open(&a[i].m, config, 5);
        a[i].r = start(&a[i].m, "cuda", &st);
        CU_ASSERT_PTR_NOT_NULL_FATAL(a[i].r);
        free(config);
    }
    for (int i = 0; i < 2; i++)
        (void)pthread_create(&t[i], NULL, prefill_again_and_again, &a[i]);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(t[i], NULL);
        CU_ASSERT_EQUAL(a[i].failed, 0);
        CU_ASSERT_STRING_EQUAL(a[i].text, "");
        runner_free(a[i].r);
        tiny_close(&a[i].m);
    }
}

/* ---- steps of one row of two models at once: the blocks of a launch wait for each other ----- */

enum { kSteps = 130, kTurns = 6, kVocab = 512 };

typedef struct {
    tiny_model m;
    runner *r;
    int turns, failed;
    float logits[kTurns][kSteps * kVocab];
} stepper;

/* Decodes one token after the other from an empty cache. */
static int step_through(runner *r, float *logits) {
    static const int32_t pages[] = {2, 0, 1};
    int failed = 0;
    for (int i = 0; i < kSteps; i++) {
        int32_t token = i * 37 % kVocab;
        model_piece p = {.tokens = &token, .count = 1, .position = i, .pages = pages, .logits = 1};
        failed += runner_step(r, &p, 1, logits + (size_t)i * kVocab, NULL) != SNAP_OK;
    }
    return failed;
}

static void *step_again_and_again(void *ctx) {
    stepper *s = ctx;
    for (int i = 0; i < s->turns; i++)
        s->failed += step_through(s->r, s->logits[i]);
    return NULL;
}

static void step_both(stepper *s) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        (void)pthread_create(&t[i], NULL, step_again_and_again, &s[i]);
    for (int i = 0; i < 2; i++)
        (void)pthread_join(t[i], NULL);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Without another model, the logits are close to the CPU's in the median; a token whose experts
 * differ may be farther off. Beside another model, they are the same bit for bit. */
static void check_steps(const stepper *s, const float *alone) {
    static float cpu[kSteps * kVocab];
    double apart[kSteps];
    snap_status st;
    runner *r = start(&s->m, NULL, &st);
    CU_ASSERT_EQUAL(step_through(r, cpu), 0);
    for (int i = 0; i < kSteps; i++)
        apart[i] = distance(alone + i * kVocab, cpu + i * kVocab, kVocab);
    qsort(apart, kSteps, sizeof *apart, by_size);
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| hidden %d, step by step, against the CPU | median %.1e, worst %.1e |",
                     s->m.shape.hidden_size, apart[kSteps / 2], apart[kSteps - 1]);
    CU_ASSERT(apart[kSteps / 2] < 3e-2);
    CU_ASSERT_EQUAL(s->failed, 0);
    for (int i = 0; i < kTurns; i++)
        CU_ASSERT_EQUAL(memcmp(s->logits[i], alone, sizeof s->logits[i]), 0);
    runner_free(r);
}

static void test_two_in_steps_of_one_row(void) {
    static const char *const width[] = {"\"hidden_size\":1152", "\"hidden_size\":256"};
    static stepper s[2];
    static float alone[2][kSteps * kVocab];
    if (!tiny_on_cuda())
        return;
    for (int i = 0; i < 2; i++) {
        const char *const change[][2] = {{"\"hidden_size\":256", width[i]}};
        char *config = random_changed(random_wide_v2, change, 1);
        snap_status st;
        random_open(&s[i].m, config, 11);
        s[i].r = start(&s[i].m, "cuda", &st);
        s[i].turns = kTurns;
        CU_ASSERT_PTR_NOT_NULL_FATAL(s[i].r);
        CU_ASSERT_EQUAL(step_through(s[i].r, alone[i]), 0);
        free(config);
    }
    step_both(s);
    for (int i = 0; i < 2; i++) {
        check_steps(&s[i], alone[i]);
        runner_free(s[i].r);
        tiny_close(&s[i].m);
    }
}

CU_TestInfo tests_cuda_limits[] = {
    {"an odd vocabulary", test_odd_vocabulary},
    {"too wide a model", test_too_wide},
    {"models of two widths at once", test_two_widths_at_once},
    {"two models in steps of one row at once", test_two_in_steps_of_one_row},
    CU_TEST_INFO_NULL};
