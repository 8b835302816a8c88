/* Tests the model on a CUDA device: its logits are compared with the CPU's, those of a batch with
 * those of single sequences, and those of copied pages with those of the original ones. Without a
 * device, only the refusal of an unknown device is tested. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/test/cuda_subject.h"
#include "generator/test/random_model.h"

/* ---- what is checked ------------------------------------------------------------------------- */

static const double kUnits = 1.5; /* largest permitted ratio of the device's FP8 error to the
                                         CPU's; the Hopper kernel keeps one unit of P over several
                                         pages, the CPU sets one for each page */

static void check_bf16(const subject *s) {
    runner *cpu = subject_start(s, CACHE_BF16, NULL, NULL),
           *cuda = subject_start(s, CACHE_BF16, NULL, "cuda");
    outcome whole_cpu = subject_run(s, cpu, s->n), steps_cpu = subject_run(s, cpu, 1),
            whole = subject_run(s, cuda, s->n), chunks = subject_run(s, cuda, 37),
            steps = subject_run(s, cuda, 1);
    subject_check(s, "bf16, prompt, against the CPU", subject_compare(s, &whole, &whole_cpu),
                  SUBJECT_ROUNDING);
    subject_check(s, "bf16, step by step, against the CPU", subject_compare(s, &steps, &steps_cpu),
                  SUBJECT_ROUNDING);
    subject_check(s, "bf16, chunks of 37, against at once", subject_compare(s, &chunks, &whole),
                  SUBJECT_ROUNDING);
    subject_check(s, "bf16, step by step, against at once", subject_compare(s, &steps, &whole),
                  SUBJECT_ROUNDING);
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
    runner *exact = subject_start(s, CACHE_BF16, NULL, NULL),
           *cpu = subject_start(s, CACHE_FP8, NULL, NULL),
           *cuda = subject_start(s, CACHE_FP8, NULL, "cuda");
    outcome bf16 = subject_run(s, exact, 1), steps_cpu = subject_run(s, cpu, 1),
            steps = subject_run(s, cuda, 1), whole_cpu = subject_run(s, cpu, s->n),
            whole = subject_run(s, cuda, s->n), chunks = subject_run(s, cuda, 37);
    subject_check(s, "fp8, prompt, against the CPU", subject_compare(s, &whole, &whole_cpu),
                  SUBJECT_ROUNDING);
    subject_check(s, "fp8, chunks of 37, against at once", subject_compare(s, &chunks, &whole),
                  SUBJECT_ROUNDING);
    comparison theirs = subject_compare(s, &steps_cpu, &bf16),
               ours = subject_compare(s, &steps, &bf16);
    subject_show(s, "fp8, step by step, the CPU's against its bf16", theirs);
    subject_show(s, "fp8, step by step, against the CPU's bf16", ours);
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
    subject_open(&s, name, config);
    s.isa = isa;
    check_one(&s);
    subject_close(&s);
}

/* Heads as wide as those of GLM-4.7-Flash. */
static void check_wide_heads(const char *name, const char *isa,
                             void (*check_one)(const subject *s)) {
    static const char *const heads[][2] = {
        {"\"qk_nope_head_dim\":128", "\"qk_nope_head_dim\":192"},
        {"\"v_head_dim\":128", "\"v_head_dim\":256"},
        {"\"num_attention_heads\":32", "\"num_attention_heads\":20"},
        {"\"num_key_value_heads\":32", "\"num_key_value_heads\":20"}};
    char *config = random_changed(random_wide_v3, heads, 4);
    check_wide(name, config, isa, check_one);
    free(config);
}

/* Runs the tiny models, and the wide ones with the best kernels (on Hopper, those for Hopper) and
 * with the portable ones. */
static void each_subject(void (*check_one)(const subject *s)) {
    subject s;
    if (!tiny_on_cuda())
        return;
    for (int i = 0; tiny_names[i]; i++) {
        subject_open(&s, tiny_names[i], NULL);
        check_one(&s);
        subject_close(&s);
    }
    check_wide("wide V2", random_wide_v2, NULL, check_one);
    check_wide("wide V3", random_wide_v3, NULL, check_one);
    check_wide("wide V2, portable", random_wide_v2, "portable", check_one);
    check_wide("wide V3, portable", random_wide_v3, "portable", check_one);
    check_wide_heads("heads of 256", NULL, check_one);
    check_wide_heads("heads of 256, portable", "portable", check_one);
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
    runner *r = subject_start(s, CACHE_FP8, NULL, "cuda");
    int vocab = s->model.shape.vocab_size, n = 6;
    int32_t pages[6][SUBJECT_PAGES], next[6];
    model_piece p[6];
    snap_err err = {0};
    float *together = calloc((size_t)(n * vocab), sizeof *together),
          *alone = calloc((size_t)(n * vocab), sizeof *alone);
    for (int i = 0; i < n; i++) {
        int length = 5 + 17 * i;
        subject_pages(8 * i, pages[i], 8);
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
        worst = fmax(worst, subject_distance(together + i * vocab, alone + i * vocab, vocab));
        for (int j = 0; j < vocab; j++)
            CU_ASSERT_FATAL(together[i * vocab + j] <= together[i * vocab + next[i]]);
    }
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| %s | fp8 | in a batch, against alone | worst %.1e |", s->name, worst);
    CU_ASSERT(worst < SUBJECT_ROUNDING);
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
    runner *r = subject_start(s, CACHE_FP8, NULL, "cuda");
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
    subject_open(&s, tiny_names[0], NULL);
    runner_options opt = {
        .pages = 1, .context = 8, .max_rows = 2, .max_decode = 1, .device = "tpu"};
    CU_ASSERT_EQUAL(runner_create(&r, &s.model.weights, &opt, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NULL(r);
    subject_close(&s);
}

CU_TestInfo tests_cuda_model[] = {
    {"an unknown device is refused", test_unknown_device},
    {"swapped pages give the same bits", test_swapped_pages},
    {"BF16 gives the logits of the CPU", test_bf16_is_the_cpus},
    {"FP8 gives the logits of the CPU", test_fp8_is_the_cpus},
    {"a batch gives the results of single sequences", test_batch_is_one_by_one},
    {"shapes of steps of one row, bf16", test_bf16_of_one_row},
    {"shapes of steps of one row, fp8", test_fp8_of_one_row},
    CU_TEST_INFO_NULL,
};
