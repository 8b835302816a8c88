/* The model on a CUDA device: its logits are compared with the CPU's, those of a batch with those
 * of single sequences, and those of copied pages with those of the original ones. Without a device,
 * only the refusal of an unknown device is tested. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "generator/local/model/runner.h"
#include "generator/test/random_model.h"
#include "generator/test/tiny_model.h"

enum { kPages = 64, kContext = 513, kTokens = 300, kMostPerToken = 32, kDecode = 16, kVocab = 512 };

/* ---- a model on both devices ----------------------------------------------------------------- */

typedef struct {
    const char *name, *isa; /* isa: of the device; NULL = the best */
    tiny_model model;
    int32_t tokens[kTokens];
    int n, per_token;
} subject;

static void open_subject(subject *s, const char *name, const char *config) {
    *s = (subject){.name = name};
    if (config) {
        random_open(&s->model, config, 0);
    } else {
        tiny_make(&s->model);
        tiny_write(s->model.dir, name, 0);
        tiny_read(&s->model);
    }
    s->n = s->model.shape.max_position_embeddings < kTokens ? 120 : kTokens;
    rng r = rng_make(7, 0);
    for (int i = 0; i < s->n; i++)
        s->tokens[i] = (int32_t)rng_below(&r, (uint32_t)s->model.shape.vocab_size);
    for (int i = 0; i < s->model.weights.blocks; i++)
        s->per_token += s->model.weights.block[i].moe ? s->model.shape.num_experts_per_tok : 0;
    CU_ASSERT_FATAL(s->per_token <= kMostPerToken);
}

static void close_subject(subject *s) {
    tiny_close(&s->model);
}

static runner *start(const subject *s, kv_format format, const char *device) {
    runner *r = NULL;
    snap_err err = {0};
    runner_options opt = {.format = format,
                          .pages = kPages,
                          .context = s->n + 1,
                          .max_rows = kTokens + kDecode,
                          .max_decode = kDecode,
                          .device = device,
                          .isa = device ? s->isa : NULL,
                          .threads = RUNNER_HOST_THREADS};
    if (runner_create(&r, &s->model.weights, &opt, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

/* The results of a run over a subject's tokens. */
typedef struct {
    float *logits;    /* [n][vocab] */
    int32_t *experts; /* [n][per_token] */
} outcome;

static void outcome_free(outcome *o) {
    free(o->logits);
    free(o->experts);
}

/* Pages in descending order. */
static void pages_of(int first, int32_t *pages, int n) {
    for (int i = 0; i < n; i++)
        pages[i] = first + (n - 1 - i);
}

static outcome run(const subject *s, runner *r, int piece) {
    int32_t pages[kPages];
    outcome o = {calloc((size_t)s->n * (size_t)s->model.shape.vocab_size, sizeof(float)),
                 calloc((size_t)s->n * kMostPerToken, sizeof(int32_t))};
    pages_of(1, pages, (s->n - 1) / MLA_PAGE + 1);
    for (int at = 0; at < s->n; at += piece) {
        int n = s->n - at < piece ? s->n - at : piece;
        snap_err err = {0};
        model_piece p = {.tokens = s->tokens + at,
                         .count = n,
                         .position = at,
                         .pages = pages,
                         .logits = n,
                         .chunk = piece > 1};
        runner_watch_experts(r, o.experts + (int64_t)at * s->per_token);
        CU_ASSERT_EQUAL(
            runner_step(r, &p, 1, o.logits + (int64_t)at * s->model.shape.vocab_size, &err),
            SNAP_OK);
        if (err.code != SNAP_OK)
            (void)fprintf(stderr, "%s\n", err.text);
    }
    runner_watch_experts(r, NULL);
    return o;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double distance(const float *a, const float *b, int n) {
    double diff = 0, size = 0;
    for (int i = 0; i < n; i++) {
        diff += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)b[i], 2);
    }
    return sqrt(diff / size);
}

typedef struct {
    double median, worst;
    int compared;
} comparison;

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Compares the tokens that have the same experts in every layer. */
static comparison compare(const subject *s, const outcome *a, const outcome *b) {
    comparison c = {0};
    double all[kTokens];
    int vocab = s->model.shape.vocab_size;
    size_t bytes = (size_t)s->per_token * sizeof *a->experts;
    for (int i = 0; i < s->n; i++) {
        if (memcmp(a->experts + (int64_t)i * s->per_token, b->experts + (int64_t)i * s->per_token,
                   bytes) != 0)
            continue;
        double d = distance(a->logits + (int64_t)i * vocab, b->logits + (int64_t)i * vocab, vocab);
        all[c.compared++] = isfinite(d) ? d : HUGE_VAL;
    }
    qsort(all, (size_t)c.compared, sizeof *all, by_size);
    c.median = c.compared ? all[c.compared / 2] : HUGE_VAL;
    c.worst = c.compared ? all[c.compared - 1] : HUGE_VAL;
    return c;
}

static void show(const subject *s, const char *what, comparison c) {
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| %s | %s | median %.1e, worst %.1e of %d of %d tokens |", s->name, what,
                     c.median, c.worst, c.compared, s->n);
}

static void check(const subject *s, const char *what, comparison c, double bound) {
    show(s, what, c);
    CU_ASSERT(c.median <= bound);
    CU_ASSERT(c.compared * 10 >= s->n * 8);
}

/* ---- what is checked ------------------------------------------------------------------------- */

static const double kRounding = 2e-2; /* between two orders of BF16 sums */
static const double kUnits = 1.5;     /* largest permitted ratio of the device's FP8 error to the
                                         CPU's; the Hopper kernel keeps one unit of P over several
                                         pages, the CPU sets one for each page */

static void check_bf16(const subject *s) {
    runner *cpu = start(s, CACHE_BF16, NULL), *cuda = start(s, CACHE_BF16, "cuda");
    outcome whole_cpu = run(s, cpu, s->n), steps_cpu = run(s, cpu, 1), whole = run(s, cuda, s->n),
            chunks = run(s, cuda, 37), steps = run(s, cuda, 1);
    check(s, "bf16, prompt, against the CPU", compare(s, &whole, &whole_cpu), kRounding);
    check(s, "bf16, step by step, against the CPU", compare(s, &steps, &steps_cpu), kRounding);
    check(s, "bf16, chunks of 37, against at once", compare(s, &chunks, &whole), kRounding);
    check(s, "bf16, step by step, against at once", compare(s, &steps, &whole), kRounding);
    outcome_free(&whole_cpu);
    outcome_free(&steps_cpu);
    outcome_free(&whole);
    outcome_free(&chunks);
    outcome_free(&steps);
    runner_free(cpu);
    runner_free(cuda);
}

/* A prompt reads the same rounded cache on both devices, so its results must be close. In decoding,
 * the two devices round P in different units. So each is compared with the CPU's BF16, and the
 * device's median difference may be up to kUnits times the CPU's. */
static void check_fp8(const subject *s) {
    runner *exact = start(s, CACHE_BF16, NULL), *cpu = start(s, CACHE_FP8, NULL),
           *cuda = start(s, CACHE_FP8, "cuda");
    outcome bf16 = run(s, exact, 1), steps_cpu = run(s, cpu, 1), steps = run(s, cuda, 1),
            whole_cpu = run(s, cpu, s->n), whole = run(s, cuda, s->n), chunks = run(s, cuda, 37);
    check(s, "fp8, prompt, against the CPU", compare(s, &whole, &whole_cpu), kRounding);
    check(s, "fp8, chunks of 37, against at once", compare(s, &chunks, &whole), kRounding);
    comparison theirs = compare(s, &steps_cpu, &bf16), ours = compare(s, &steps, &bf16);
    show(s, "fp8, step by step, the CPU's against its bf16", theirs);
    show(s, "fp8, step by step, against the CPU's bf16", ours);
    CU_ASSERT(ours.median < kUnits * theirs.median);
    outcome_free(&bf16);
    outcome_free(&steps_cpu);
    outcome_free(&steps);
    outcome_free(&whole_cpu);
    outcome_free(&whole);
    outcome_free(&chunks);
    runner_free(exact);
    runner_free(cpu);
    runner_free(cuda);
}

static void check_wide(const char *name, const char *config, const char *isa,
                       void (*check_one)(const subject *s)) {
    subject s;
    open_subject(&s, name, config);
    s.isa = isa;
    check_one(&s);
    close_subject(&s);
}

/* Runs the tiny models, and the wide ones with the best kernels (on Hopper, those for Hopper) and
 * with the portable ones. */
static void each_subject(void (*check_one)(const subject *s)) {
    subject s;
    if (!tiny_on_cuda())
        return;
    for (int i = 0; tiny_names[i]; i++) {
        open_subject(&s, tiny_names[i], NULL);
        check_one(&s);
        close_subject(&s);
    }
    check_wide("wide V2", random_wide_v2, NULL, check_one);
    check_wide("wide V3", random_wide_v3, NULL, check_one);
    check_wide("wide V2, portable", random_wide_v2, "portable", check_one);
    check_wide("wide V3, portable", random_wide_v3, "portable", check_one);
}

/* Shapes for branches of single_layer() that the wide models don't reach: sigmoids with a bias, as
 * many experts as one warp can choose from, no shared expert, rows with more numbers than the
 * threads load at once. */
static void each_of_one_row(void (*check_one)(const subject *s)) {
    static const char *const sigmoids[][2] = {
        {"\"scoring_func\":\"softmax\"", "\"scoring_func\":\"sigmoid\""},
        {"\"topk_method\":\"greedy\"", "\"topk_method\":\"noaux_tc\""},
        {"\"norm_topk_prob\":false", "\"norm_topk_prob\":true"}};
    static const char *const none_shared[][2] = {
        {"\"n_shared_experts\":2", "\"n_shared_experts\":0"},
        {"\"n_routed_experts\":16", "\"n_routed_experts\":64"},
        {"\"hidden_size\":256", "\"hidden_size\":1152"},
        {"\"num_hidden_layers\":4", "\"num_hidden_layers\":3"}};
    if (!tiny_on_cuda())
        return;
    char *scored = random_changed(random_wide_v2, sigmoids, 3),
         *lone = random_changed(random_wide_v2, none_shared, 4);
    check_wide("sigmoids", scored, NULL, check_one);
    check_wide("64 experts, none shared, 1152 wide", lone, NULL, check_one);
    free(scored);
    free(lone);
}

static void test_bf16_of_one_row(void) {
    each_of_one_row(check_bf16);
}

static void test_fp8_of_one_row(void) {
    each_of_one_row(check_fp8);
}

static void test_bf16_is_the_cpus(void) {
    each_subject(check_bf16);
}

static void test_fp8_is_the_cpus(void) {
    each_subject(check_fp8);
}

/* Decodes sequences of different lengths in one step, and then one by one. */
static void check_batch(const subject *s) {
    runner *r = start(s, CACHE_FP8, "cuda");
    int vocab = s->model.shape.vocab_size, n = 6;
    int32_t pages[6][kPages], next[6];
    model_piece p[6];
    snap_err err = {0};
    float *together = calloc((size_t)(n * vocab), sizeof *together),
          *alone = calloc((size_t)(n * vocab), sizeof *alone);
    for (int i = 0; i < n; i++) {
        int length = 5 + 17 * i;
        pages_of(8 * i, pages[i], 8);
        p[i] = (model_piece){
            .tokens = s->tokens + i, .count = length, .pages = pages[i], .chunk = true};
    }
    CU_ASSERT_EQUAL(runner_step(r, p, n, NULL, &err), SNAP_OK);
    for (int i = 0; i < n; i++)
        p[i] = (model_piece){.tokens = s->tokens + 3 * i,
                             .count = 1,
                             .position = 5 + 17 * i,
                             .pages = pages[i],
                             .logits = 1};
    CU_ASSERT_EQUAL(runner_step(r, p, n, together, &err), SNAP_OK);
    CU_ASSERT_EQUAL(runner_step_greedy(r, p, n, next, &err), SNAP_OK);
    double worst = 0;
    for (int i = 0; i < n; i++) {
        CU_ASSERT_EQUAL(runner_step(r, &p[i], 1, alone + i * vocab, &err), SNAP_OK);
        worst = fmax(worst, distance(together + i * vocab, alone + i * vocab, vocab));
        for (int j = 0; j < vocab; j++)
            CU_ASSERT_FATAL(together[i * vocab + j] <= together[i * vocab + next[i]]);
    }
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| %s | fp8 | in a batch, against alone | worst %.1e |", s->name, worst);
    CU_ASSERT(worst < kRounding);
    free(together);
    free(alone);
    runner_free(r);
}

static void test_batch_is_one_by_one(void) {
    each_subject(check_batch);
}

/* A sequence's pages are copied to the host and back to other pages, or copied on the device. The
 * logits must be the same bit for bit. */
static void check_swap(const subject *s) {
    runner *r = start(s, CACHE_FP8, "cuda");
    kv_cache *cache = runner_cache(r);
    int vocab = s->model.shape.vocab_size;
    int32_t pages[2] = {3, 9}, others[2] = {20, 4}, copies[2] = {11, 12};
    snap_err err = {0};
    float *before = calloc((size_t)vocab, sizeof *before),
          *after = calloc((size_t)vocab, sizeof *after);
    char *host = malloc(kv_cache_page_bytes(cache));
    model_piece p = {.tokens = s->tokens, .count = 100, .pages = pages, .chunk = true};
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, NULL, &err), SNAP_OK);
    p = (model_piece){
        .tokens = s->tokens + 100, .count = 1, .position = 100, .pages = pages, .logits = 1};
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, before, &err), SNAP_OK);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(kv_cache_read_page(cache, pages[i], host, &err), SNAP_OK);
        CU_ASSERT_EQUAL(kv_cache_write_page(cache, others[i], host, &err), SNAP_OK);
    }
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(runner_copy_page(r, pages[i], copies[i], &err), SNAP_OK);
    p.pages = others;
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, after, &err), SNAP_OK);
    CU_ASSERT_EQUAL(memcmp(before, after, (size_t)vocab * sizeof *before), 0);
    p.pages = copies;
    memset(after, 0, (size_t)vocab * sizeof *after);
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, after, &err), SNAP_OK);
    CU_ASSERT_EQUAL(memcmp(before, after, (size_t)vocab * sizeof *before), 0);
    free(before);
    free(after);
    free(host);
    runner_free(r);
}

static void test_swapped_pages(void) {
    each_subject(check_swap);
}

static void test_unknown_device(void) {
    subject s;
    runner *r = NULL;
    snap_err err = {0};
    open_subject(&s, tiny_names[0], NULL);
    runner_options opt = {
        .pages = 1, .context = 8, .max_rows = 2, .max_decode = 1, .device = "tpu"};
    CU_ASSERT_EQUAL(runner_create(&r, &s.model.weights, &opt, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NULL(r);
    close_subject(&s);
}

CU_TestInfo tests_cuda_model[] = {
    {"an unknown device is refused", test_unknown_device},
    {"swapped pages give the same bits", test_swapped_pages},
    {"bf16 gives the CPU's logits", test_bf16_is_the_cpus},
    {"fp8 gives the CPU's logits", test_fp8_is_the_cpus},
    {"a batch is one by one", test_batch_is_one_by_one},
    {"shapes of steps of one row, bf16", test_bf16_of_one_row},
    {"shapes of steps of one row, fp8", test_fp8_of_one_row},
    CU_TEST_INFO_NULL,
};
