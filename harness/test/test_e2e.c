#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "base/fs.h"
#include "harness/bench/e2e.h"
#include "harness/bench/together.h"

static model_shape shape_of(const char *path) {
    model_shape s = {0};
    buf text = {0};
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(model_shape_parse(&s, text.data, text.len, path, &err), SNAP_OK);
    buf_release(&text);
    return s;
}

/* The bytes follow from the published number of parameters: a step does not read the embedding and
 * the norms here, reads the router in FP32 and the rest in BF16. */
static void test_weight_bytes_of_all_experts(void) {
    model_shape s = shape_of("configs/models/deepseek-v2-lite.json");
    double all = 15706484224.0, embedding = 102400.0 * 2048, norms = 27 * (2 * 2048 + 512) + 2048,
           router = 26.0 * 64 * 2048;
    CU_ASSERT_EQUAL(e2e_weight_bytes(&s, 26 * 64),
                    2 * (all - embedding - norms - router) + 4 * router);
}

/* A weight has two bytes, and a token uses it in two FLOP, so the bytes of the used weights without
 * the router are the FLOP of the products. The token also attends to itself. */
static void test_flop_of_one_token(void) {
    model_shape s = shape_of("configs/models/deepseek-v2-lite.json");
    double router = 26.0 * 64 * 2048, touched = e2e_weight_bytes(&s, 26 * 6) - 4 * router,
           itself = 27.0 * 16 * (128 + 64 + 128);
    CU_ASSERT_EQUAL(e2e_prompt_flop(&s, 1), touched + 2 * itself);
}

/* Zero-computation experts are counted as chosen as often as others, and cost no arithmetic. */
static void test_flop_of_zero_computation_experts(void) {
    model_shape s = shape_of("configs/models/longcat-flash-rank-of-64.json"), none = s;
    double expert = 3.0 * 6144 * 2048;
    none.n_routed_experts = 0;
    CU_ASSERT_DOUBLE_EQUAL(e2e_prompt_flop(&s, 1) - e2e_prompt_flop(&none, 1), 2 * 28 * 8 * expert,
                           1);
}

/* A prompt's products with e4m3 weights: all but those of kv_b, the logits and attention. The
 * expected number of experts of a token is the one that it chooses. */
static void test_flop_of_e4m3_weights(void) {
    model_shape s = shape_of("configs/models/deepseek-v3.json");
    double hidden = 7168, expert = 3 * hidden * 2048,
           attention = hidden * (1536 + 576) + 1536 * 128.0 * 192 + 128 * 128 * hidden;
    CU_ASSERT_EQUAL(e2e_prompt_e4m3_flop(&s, 5), 0);
    s.fp8_block = 128;
    CU_ASSERT_EQUAL(e2e_prompt_e4m3_flop(&s, 5),
                    2 * 5 * (61 * attention + 3 * 3 * hidden * 18432 + 58 * 9 * expert));
}

static void test_shares_are_models(void) {
    model_shape v3 = shape_of("configs/models/deepseek-v3-rank-of-32.json");
    CU_ASSERT_EQUAL(v3.n_routed_experts, v3.num_experts_per_tok);
    CU_ASSERT_EQUAL(v3.num_hidden_layers, 61);
}

/* The pool of a small --memory has fewer pages than the prompt needs. This is refused before a
 * device is opened. */
static void test_prompt_beyond_the_memory(void) {
    model_shape s = shape_of("configs/models/deepseek-v2-lite.json");
    const int64_t contexts[] = {64}, batches[] = {1}, token = 1152 * 27;
    mla_ceilings ceilings = {0};
    e2e_row rows[E2E_ROWS];
    e2e_options o = {.shape = &s,
                     .arms = {CACHE_FP8, CACHE_BF16},
                     .n_arms = 2,
                     .contexts = contexts,
                     .n_contexts = 1,
                     .batches = batches,
                     .n_batches = 1,
                     .prompt = 4096,
                     .device = "cpu",
                     .layout = {1, 1},
                     .ceilings = &ceilings,
                     .cache_bytes = 4096 * token};
    snap_err fits = {0}, err = {0};
    int n;
    CU_ASSERT_EQUAL(e2e_run(&o, rows, &n, &fits), SNAP_E_UNSUPPORTED); /* only "cuda" can run it */
    o.cache_bytes -= 64 * token;
    CU_ASSERT_EQUAL(e2e_run(&o, rows, &n, &err), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "bf16: a prompt of 4096 tokens needs 0.13 GB"));
}

/* Each rank of a split replica computes half of the products, except for the logits, the latent and
 * the router. */
static void test_weight_bytes_of_a_rank(void) {
    model_shape s = shape_of("configs/models/deepseek-v2-lite.json"), half = s;
    double router = 26.0 * 64 * 2048, head = 102400.0 * 2048, latent = 27.0 * 2048 * (512 + 64);
    CU_ASSERT_EQUAL_FATAL(rank_layout_split(&half, 2, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(2 * e2e_weight_bytes(&half, 26 * 6),
                    e2e_weight_bytes(&s, 26 * 6) + 2 * (head + latent) + 4 * router);
}

static void test_rows_of_a_replica(void) {
    const int64_t batches[] = {1, 9}, most[] = {0};
    e2e_options o = {.batches = batches, .n_batches = 2, .layout = {2, 1}};
    CU_ASSERT_EQUAL(e2e_most_rows(&o), 5 + 1);
    o.prompt = 700;
    CU_ASSERT_EQUAL(e2e_most_rows(&o), 700);
    o.batches = most;
    o.n_batches = 1;
    CU_ASSERT_EQUAL(e2e_most_rows(&o), E2E_MOST_BATCH + 1);
}

static void test_idle_replicas(void) {
    model_shape s = shape_of("configs/models/deepseek-v2-lite.json");
    const int64_t contexts[] = {64}, batches[] = {4, 3};
    e2e_row rows[E2E_ROWS];
    e2e_options o = {.shape = &s,
                     .n_arms = 1,
                     .contexts = contexts,
                     .n_contexts = 1,
                     .batches = batches,
                     .n_batches = 2,
                     .layout = {4, 2}};
    snap_err err = {0};
    int n;
    CU_ASSERT_EQUAL(e2e_run(&o, rows, &n, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text,
                           "--batch 3 is too small: each of 4 split replicas needs a sequence");
}

/* Ranks of one machine get the same time, after the latest of them. Clocks of different machines
 * have nothing in common. */
static void test_beginning_together(void) {
    int64_t latest = 1000000000;
    CU_ASSERT_EQUAL(together_start(latest - 40000, latest), together_start(latest, latest));
    CU_ASSERT(together_start(latest, latest) > latest);
    CU_ASSERT_EQUAL(together_start(7, latest), 7);
}

CU_TestInfo tests_e2e[] = {
    {"weight bytes of all experts are the published parameters", test_weight_bytes_of_all_experts},
    {"FLOP of one token", test_flop_of_one_token},
    {"FLOP of zero-computation experts", test_flop_of_zero_computation_experts},
    {"prompt FLOP of e4m3 weights", test_flop_of_e4m3_weights},
    {"shares of models are models", test_shares_are_models},
    {"a prompt beyond the memory", test_prompt_beyond_the_memory},
    {"weight bytes of a rank", test_weight_bytes_of_a_rank},
    {"rows of a replica", test_rows_of_a_replica},
    {"idle replicas", test_idle_replicas},
    {"ranks begin together", test_beginning_together},
    CU_TEST_INFO_NULL,
};
