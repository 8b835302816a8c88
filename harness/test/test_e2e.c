#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fs.h"
#include "base/test/temp_folder.h"
#include "generator/local/split.h"
#include "harness/bench/e2e.h"
#include "harness/bench/step_work.h"
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
    CU_ASSERT_EQUAL(step_work_bytes(&s, 26 * 64),
                    2 * (all - embedding - norms - router) + 4 * router);
}

/* A weight has two bytes, and a token uses it in two FLOP, so the bytes of the used weights without
 * the router are the FLOP of the products. The token also attends to itself. */
static void test_flop_of_one_token(void) {
    model_shape s = shape_of("configs/models/deepseek-v2-lite.json");
    double router = 26.0 * 64 * 2048, touched = step_work_bytes(&s, 26 * 6) - 4 * router,
           itself = 27.0 * 16 * (128 + 64 + 128);
    CU_ASSERT_EQUAL(step_work_flop(&s, 1), touched + 2 * itself);
}

/* Zero-computation experts are counted as chosen as often as others, and cost no arithmetic. */
static void test_flop_of_zero_computation_experts(void) {
    model_shape s = shape_of("configs/models/longcat-flash-rank-of-64.json"), none = s;
    double expert = 3.0 * 6144 * 2048;
    none.n_routed_experts = 0;
    CU_ASSERT_DOUBLE_EQUAL(step_work_flop(&s, 1) - step_work_flop(&none, 1), 2 * 28 * 8 * expert,
                           1);
}

/* A prompt's products with e4m3 weights: all but those of kv_b, the logits and attention. The
 * expected number of experts of a token is the one that it chooses. */
static void test_flop_of_e4m3_weights(void) {
    model_shape s = shape_of("configs/models/deepseek-v3.json");
    double hidden = 7168, expert = 3 * hidden * 2048,
           attention = hidden * (1536 + 576) + 1536 * 128.0 * 192 + 128 * 128 * hidden;
    CU_ASSERT_EQUAL(step_work_e4m3_flop(&s, 5), 0);
    s.fp8_block = 128;
    CU_ASSERT_EQUAL(step_work_e4m3_flop(&s, 5),
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
                     .layout = {1, 1, false},
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
    CU_ASSERT_EQUAL(2 * step_work_bytes(&half, 26 * 6),
                    step_work_bytes(&s, 26 * 6) + 2 * (head + latent) + 4 * router);
}

static void test_rows_of_a_replica(void) {
    const int64_t batches[] = {1, 9}, most[] = {0};
    e2e_options o = {.batches = batches, .n_batches = 2, .layout = {2, 1, false}};
    CU_ASSERT_EQUAL(e2e_most_rows(&o), 5 + 1);
    o.prompt = 700;
    CU_ASSERT_EQUAL(e2e_most_rows(&o), 700);
    o.batches = most;
    o.n_batches = 1;
    CU_ASSERT_EQUAL(e2e_most_rows(&o), E2E_MOST_BATCH + 1);
}

/* Batches of 4 and 3 sequences in this layout are refused. */
static void expect_batch_refused(rank_layout layout, const char *text) {
    model_shape s = shape_of("configs/models/deepseek-v2-lite.json");
    const int64_t contexts[] = {64}, batches[] = {4, 3};
    e2e_row rows[E2E_ROWS];
    e2e_options o = {.shape = &s,
                     .n_arms = 1,
                     .contexts = contexts,
                     .n_contexts = 1,
                     .batches = batches,
                     .n_batches = 2,
                     .layout = layout};
    snap_err err = {0};
    int n;
    CU_ASSERT_EQUAL(e2e_run(&o, rows, &n, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, text);
}

static void test_idle_replicas(void) {
    expect_batch_refused((rank_layout){4, 2, false},
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

/* With EP, a rank reads the experts that were chosen among its own. With TP2/EP2, it reads half of
 * the two shared experts of each layer, too. */
static void test_weight_bytes_with_experts(void) {
    model_shape s = shape_of("configs/models/deepseek-v2-lite.json"), dp = s, tp = s, half = s;
    const rank_layout two = {2, 1, true}, halves = {1, 2, true};
    double expert = 2 * 3.0 * 2048 * 1408;
    CU_ASSERT_EQUAL_FATAL(rank_layout_shape(&dp, &two, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(rank_layout_shape(&tp, &halves, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(rank_layout_split(&half, 2, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(step_work_rank_bytes(&dp, &two, 26 * 4), step_work_bytes(&s, 26 * 4));
    CU_ASSERT_EQUAL(step_work_rank_bytes(&tp, &halves, 26 * 4),
                    step_work_bytes(&half, 0) + 26 * 4 * expert);
    CU_ASSERT_EQUAL(step_work_rank_flop(&dp, &two, 9), step_work_flop(&s, 9));
    CU_ASSERT_EQUAL(step_work_rank_flop(&tp, &halves, 9), step_work_flop(&half, 9));
}

/* Three rows chose experts in two layers. The rank has the experts 2 and 3. */
static void test_chosen_experts(void) {
    static const int32_t experts[3][2][2] = {{{0, 2}, {2, 3}}, {{2, 5}, {2, 3}}, {{1, 4}, {0, 1}}};
    chosen_rows c = {&experts[0][0][0], 3, 2, 2, 2, 2, NULL};
    double all = -1;
    CU_ASSERT_EQUAL(step_work_experts(&c, &all, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(all, 1 + 2);
    c.first = 0;
    c.count = 6;
    CU_ASSERT_EQUAL(step_work_experts(&c, &all, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(all, 5 + 4);
}

/* With EP, all ranks run steps with the same number of rows. */
static void test_batches_with_experts(void) {
    expect_batch_refused((rank_layout){2, 1, true},
                         "--batch 3: with EP, all ranks must have equally many sequences, and 2 "
                         "replicas do not divide it");
}

static void expect_share(rank_layout l, int rank, weights_share want) {
    weights_share got = split_share(&l, rank);
    CU_ASSERT_EQUAL(got.rank, want.rank);
    CU_ASSERT_EQUAL(got.parts, want.parts);
    CU_ASSERT_EQUAL(got.expert_rank, want.expert_rank);
    CU_ASSERT_EQUAL(got.expert_ranks, want.expert_ranks);
}

static void test_shares_of_ranks(void) {
    expect_share((rank_layout){2, 1, false}, 1, (weights_share){0, 1, 0, 1});
    expect_share((rank_layout){2, 4, false}, 6, (weights_share){2, 4, 0, 1});
    expect_share((rank_layout){4, 1, true}, 3, (weights_share){0, 1, 3, 4});
    expect_share((rank_layout){1, 4, true}, 3, (weights_share){3, 4, 3, 4});
}

/* ---- energy ---- */

static const char kZone[] = "class/powercap/intel-rapl:0";

typedef struct {
    char sysfs[TEMP_FOLDER];
    energy_meter *meter;
    int64_t steps, microjoules, each; /* steps so far; the counter; what a step adds to it */
} counted_steps;

static void put_counter(const counted_steps *c) {
    char text[32];
    int n = snprintf(text, sizeof text, "%lld\n", (long long)c->microjoules);
    temp_folder_put(c->sysfs, kZone, "energy_uj", text, (size_t)n);
}

static void open_counter(counted_steps *c, int64_t each) {
    mla_backend_info info = {.host_memory = true};
    *c = (counted_steps){.each = each};
    temp_folder_open(c->sysfs, "step-energy");
    temp_folder_put(c->sysfs, kZone, "name", "package-0\n", 10);
    put_counter(c);
    CU_ASSERT_EQUAL_FATAL(energy_open(&c->meter, c->sysfs, &info, NULL, NULL), SNAP_OK);
}

static void close_counter(counted_steps *c) {
    energy_close(c->meter);
    temp_folder_remove(c->sysfs);
}

/* A step of 50 ms that uses a known energy. */
static snap_status count_step(void *ctx, snap_err *err) {
    counted_steps *c = ctx;
    (void)err;
    (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    c->microjoules += c->each;
    c->steps++;
    put_counter(c);
    return SNAP_OK;
}

static void test_energy_of_steps(void) {
    counted_steps c;
    step_energy got;
    snap_err err = {0};
    open_counter(&c, 3500000);
    step_energy_options o = {.seconds = 0.2, .step_ns = 5e7, .own = c.meter};
    CU_ASSERT_EQUAL(step_energy_measure(&got, &o, count_step, &c, &err), SNAP_OK);
    CU_ASSERT(got.steps > 1 && got.steps == c.steps);
    CU_ASSERT(got.seconds >= STEP_ENERGY_LEAST_S); /* although 0.2 s were given */
    CU_ASSERT_DOUBLE_EQUAL(got.joules, 3.5, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(got.rank[0], 3.5, 1e-9);
    close_counter(&c);
}

/* A counter that does not move is not a measurement of 0 J. */
static void test_counter_that_does_not_move(void) {
    counted_steps c;
    step_energy got;
    snap_err err = {0};
    open_counter(&c, 0);
    step_energy_options o = {.seconds = 1, .step_ns = 5e7, .own = c.meter};
    CU_ASSERT_EQUAL(step_energy_measure(&got, &o, count_step, &c, &err), SNAP_OK);
    CU_ASSERT(isnan(got.joules));
    CU_ASSERT_PTR_NOT_NULL(energy_missing(c.meter));
    close_counter(&c);
}

static void test_energy_is_cancelled(void) {
    counted_steps c;
    step_energy got;
    snap_err err = {0};
    volatile sig_atomic_t cancel = 1;
    open_counter(&c, 1);
    step_energy_options o = {.seconds = 1, .step_ns = 5e7, .own = c.meter, .cancel = &cancel};
    CU_ASSERT_EQUAL(step_energy_measure(&got, &o, count_step, &c, &err), SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(c.steps, 0);
    close_counter(&c);
}

CU_TestInfo tests_e2e[] = {
    {"weight bytes of all experts are the published parameters", test_weight_bytes_of_all_experts},
    {"FLOP of one token", test_flop_of_one_token},
    {"FLOP of zero-computation experts", test_flop_of_zero_computation_experts},
    {"prompt FLOP of e4m3 weights", test_flop_of_e4m3_weights},
    {"the shape of a rank's share is valid", test_shares_are_models},
    {"a prompt that exceeds --memory is refused", test_prompt_beyond_the_memory},
    {"weight bytes of a rank", test_weight_bytes_of_a_rank},
    {"most rows of a step of a replica", test_rows_of_a_replica},
    {"batches that leave a replica without a sequence", test_idle_replicas},
    {"the ranks of one machine begin at the same time", test_beginning_together},
    {"weight bytes with divided experts", test_weight_bytes_with_experts},
    {"chosen experts of a rank", test_chosen_experts},
    {"batches with divided experts", test_batches_with_experts},
    {"the share of the weights of each rank", test_shares_of_ranks},
    {"energy of steps", test_energy_of_steps},
    {"a counter that does not move", test_counter_that_does_not_move},
    {"energy is cancelled", test_energy_is_cancelled},
    CU_TEST_INFO_NULL,
};
