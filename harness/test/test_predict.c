#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "generator/local/checkpoint/inventory.h"
#include "harness/audit/audit.h"
#include "harness/bench/e2e.h"
#include "harness/bench/model_config.h"
#include "harness/bench/predict.h"
#include "harness/bench/step_work.h"
#include "harness/record/run.h"
#include "harness/test/report_fixture.h"
#include "harness/view/pages.h"
#include "harness/view/paper.h"
#include "harness/view/tables.h"

static model_shape shape_named(const char *name) {
    model_shape s = {0};
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(model_config_open(&s, name, &err), SNAP_OK);
    return s;
}

static predict_layout layout_named(const char *text) {
    predict_layout l;
    CU_ASSERT_EQUAL_FATAL(predict_layout_parse(&l, text, NULL), SNAP_OK);
    return l;
}

/* ---- layouts ---- */

static void test_layouts(void) {
    predict_layout l;
    char text[32];
    snap_err err = {0};
    l = layout_named("DP4/TP2/EP8");
    CU_ASSERT_EQUAL(l.ranks.replicas, 4);
    CU_ASSERT_EQUAL(l.ranks.parts, 2);
    CU_ASSERT(l.ranks.whole_experts);
    predict_layout_text(&l, text);
    CU_ASSERT_STRING_EQUAL(text, "DP4/TP2/EP8");
    l = layout_named("TP2");
    predict_layout_text(&l, text);
    CU_ASSERT_STRING_EQUAL(text, "DP1/TP2");
    CU_ASSERT_EQUAL(predict_layout_parse(&l, "DP4/TP2/EP4", &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text,
                           "--layout 'DP4/TP2/EP4': EP must be the number of all GPUs, 8");
    CU_ASSERT_EQUAL(predict_layout_parse(&l, "DP4/EP", NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(predict_layout_parse(&l, "DP4/EP4x", NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(predict_layout_parse(&l, "/EP1", NULL), SNAP_E_USAGE);
}

static void test_what_cannot_be_divided(void) {
    model_shape s = shape_named("deepseek-v2-lite");
    predict_layout l = layout_named("DP48/EP48");
    snap_err err = {0};
    CU_ASSERT_EQUAL(predict_layout_check(&l, &s, &err), SNAP_E_UNSUPPORTED);
    CU_ASSERT_STRING_EQUAL(err.text, "48 ranks do not divide n_routed_experts 64");
    l = layout_named("TP3");
    CU_ASSERT_EQUAL(predict_layout_check(&l, &s, NULL), SNAP_E_UNSUPPORTED);
    l = layout_named("DP4/TP8/EP32"); /* 1408 / 8: experts are not split here */
    CU_ASSERT_EQUAL(predict_layout_check(&l, &s, NULL), SNAP_OK);
}

/* ---- the work of a step ---- */

static double weights_of(const predict_work *w) {
    return w->query_bytes + w->expert_bytes + w->rest_bytes;
}

/* `bench model` counts the weights that a step reads by another formula, for a rank, too. */
static void test_weights_that_are_read(void) {
    static const char *const models[] = {"deepseek-v2-lite", "deepseek-v3", "longcat-flash"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        model_shape s = shape_named(models[i]);
        for (int parts = 1; parts <= 4; parts *= 2) {
            model_shape rank = s;
            predict_layout l = {.ranks = {1, parts, false}};
            CU_ASSERT_EQUAL_FATAL(rank_layout_split(&rank, parts, NULL), SNAP_OK);
            predict_work w = predict_work_of(&s, &l, false, 8, 4096, 5);
            double expected = step_work_bytes(&rank, 5 * w.moe_layers);
            CU_ASSERT_DOUBLE_EQUAL(weights_of(&w) / expected, 1, 1e-12);
            rank.fp8_block = 128;
            w = predict_work_of(&s, &l, true, 8, 4096, 5);
            expected = step_work_bytes(&rank, 5 * w.moe_layers);
            CU_ASSERT_DOUBLE_EQUAL(weights_of(&w) / expected, 1, 1e-12);
        }
    }
}

/* `bench model` counts the FLOP of a prompt: two for each weight that a row is multiplied with, and
 * those of attention. For a prompt of one token, they equal the predicted FLOP of a decode step of
 * one row and the attention of the token to itself. */
static void test_flop(void) {
    model_shape s = shape_named("longcat-flash");
    predict_layout one = layout_named("DP1");
    predict_work w = predict_work_of(&s, &one, false, 1, 1, (double)NAN);
    double queries = w.query_bytes, /* 2 bytes and 2 FLOP for each number of W_UK */
        itself = 2.0 * 56 * 64 * (128 + 64 + 128);
    CU_ASSERT_DOUBLE_EQUAL((w.expert_flop + w.rest_flop + queries + itself) / step_work_flop(&s, 1),
                           1, 1e-12);
}

/* All choices of two rows: each chooses 2 of 4 experts. */
static void test_expected_experts(void) {
    int all = 0, mine = 0, pairs = 0;
    for (unsigned a = 0; a < 16; a++)
        for (unsigned b = 0; b < 16; b++) {
            if (__builtin_popcount(a) != 2 || __builtin_popcount(b) != 2)
                continue;
            all += __builtin_popcount(a | b);
            mine += __builtin_popcount((a | b) & 3U); /* two of the four are on this rank */
            pairs++;
        }
    CU_ASSERT_EQUAL(pairs, 36);
    CU_ASSERT_DOUBLE_EQUAL(predict_experts(4, 4, 2, 2), (double)all / pairs, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(predict_experts(2, 4, 2, 2), (double)mine / pairs, 1e-12);
    CU_ASSERT_EQUAL(predict_experts(0, 0, 0, 2), 0);
}

/* With whole experts, the ranks together compute what one GPU computes for all rows. */
static void test_arithmetic_is_divided(void) {
    model_shape s = shape_named("deepseek-v3");
    predict_layout one = layout_named("DP1"), many = layout_named("DP4/TP2/EP8");
    predict_work all = predict_work_of(&s, &one, false, 64, 8192, (double)NAN),
                 rank = predict_work_of(&s, &many, false, 16, 8192, (double)NAN);
    CU_ASSERT_DOUBLE_EQUAL(8 * rank.expert_flop / all.expert_flop, 1, 1e-12);
    /* Each replica reads the cache of its sequences, and both of its ranks read all of it. */
    CU_ASSERT_EQUAL(4 * rank.cached, all.cached);
}

/* Sums in each layer: two, and five in a layer of LongCat, which is two blocks. */
static void test_sums(void) {
    model_shape v3 = shape_named("deepseek-v3"), longcat = shape_named("longcat-flash");
    predict_layout two = layout_named("TP2"), one = layout_named("DP2");
    predict_work w = predict_work_of(&v3, &two, false, 3, 64, (double)NAN);
    CU_ASSERT_EQUAL(w.sums, 2 * 61);
    CU_ASSERT_EQUAL(w.sum_bytes, 3 * 7168 * 4);
    w = predict_work_of(&longcat, &two, false, 3, 64, (double)NAN);
    CU_ASSERT_EQUAL(w.sums, 5 * 28);
    CU_ASSERT_EQUAL(w.gathers, 0);
    w = predict_work_of(&v3, &one, false, 3, 64, (double)NAN);
    CU_ASSERT_EQUAL(w.sums + w.gathers, 0);
}

/* With EP and several replicas, each layer with experts has an all-gather and a reduce-scatter
 * beside the sums over a replica. DeepSeek-V3 has 58 such layers. A row has 7168 BF16 numbers and 8
 * bytes for each of 8 experts. */
static void test_gathered_rows(void) {
    model_shape v3 = shape_named("deepseek-v3"), lite = shape_named("deepseek-v2-lite");
    predict_layout both = layout_named("DP2/TP2/EP4"), split = layout_named("TP2/EP2");
    predict_work w = predict_work_of(&v3, &both, false, 3, 64, (double)NAN);
    CU_ASSERT_EQUAL(w.sums, 2 * 61);
    CU_ASSERT_EQUAL(w.gathers, 58);
    CU_ASSERT_EQUAL(w.gather_bytes, 3 * (2 * 7168 + 8 * 8));
    CU_ASSERT_EQUAL(w.scatter_bytes, 3 * 7168 * 4);
    CU_ASSERT_EQUAL(w.expert_rows, 6);
    /* Both replicas choose from all experts, and a rank has a quarter of them. */
    double pairs = 2 * 3 * 8 / 4., one = 3. * 7168 * 2048;
    CU_ASSERT_DOUBLE_EQUAL(w.expert_flop / (58 * 2 * one * (pairs + 3 / 2.)), 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(w.expert_moved, 58 * pairs * 7168, 1e-3);
    w = predict_work_of(&v3, &split, false, 3, 64, (double)NAN);
    CU_ASSERT_EQUAL(w.sums, 2 * 61);
    CU_ASSERT_EQUAL(w.gathers, 0);
    CU_ASSERT_EQUAL(w.expert_rows, 3);
    /* 6 experts of 8 bytes are rounded up from 4096 + 48 to a multiple of 16. */
    w = predict_work_of(&lite, &both, false, 1, 64, (double)NAN);
    CU_ASSERT_EQUAL(w.gather_bytes, 4144);
}

static double launches_of_layer(const char *model, const char *layout, bool e4m3, double rows) {
    model_shape s = shape_named(model);
    predict_layout l = layout_named(layout);
    predict_work w = predict_work_of(&s, &l, e4m3, rows, 64, (double)NAN);
    return w.expert_launches / w.moe_layers;
}

/* Joining; sorting; products of the shared experts, with more than 8 rows a gate or two operands;
 * and zeros in a buffer. */
static void test_launches_of_ranks(void) {
    CU_ASSERT_EQUAL(launches_of_layer("deepseek-v3", "DP4", false, 8), 0);
    CU_ASSERT_EQUAL(launches_of_layer("deepseek-v3", "TP4", false, 8), 1);
    CU_ASSERT_EQUAL(launches_of_layer("deepseek-v3", "DP4/EP4", false, 8), 1 + 1 + 2);
    CU_ASSERT_EQUAL(launches_of_layer("deepseek-v3", "DP4/EP4", false, 9), 1 + 1 + 3);
    CU_ASSERT_EQUAL(launches_of_layer("deepseek-v3", "TP4/EP4", true, 9), 1 + 1 + 4);
    CU_ASSERT_EQUAL(launches_of_layer("deepseek-v3", "DP2/TP2/EP4", true, 8), 1 + 1 + 2 + 1);
    CU_ASSERT_EQUAL(launches_of_layer("longcat-flash", "DP4/EP4", true, 9), 1 + 1);
}

/* ---- memory ---- */

typedef struct {
    double bytes;
} tally;

/* Projections but kv_b in e4m3 with a scale for each 8 by 128 numbers, the rest as below. All
 * widths of DeepSeek-V3 are multiples of 256, so no scale is stored in vain. */
static snap_status count_e4m3_tensor(void *ctx, const char *name, int64_t rows, int64_t cols,
                                     snap_err *err) {
    tally *t = ctx;
    bool router = strstr(name, ".mlp.gate.weight") != NULL,
         e4m3 = strstr(name, "_proj") && !strstr(name, "kv_b_proj");
    (void)err;
    t->bytes += (double)(rows * (cols ? cols : 1)) * (router || !cols ? 4
                                                      : e4m3          ? 1 + 4.0 / (8 * 128)
                                                                      : 2);
    return SNAP_OK;
}

/* Matrices are stored in BF16; routers and vectors in FP32. */
static snap_status count_tensor(void *ctx, const char *name, int64_t rows, int64_t cols,
                                snap_err *err) {
    tally *t = ctx;
    bool router = strstr(name, ".mlp.gate.weight") || strstr(name, "router.classifier");
    (void)err;
    t->bytes += (double)(rows * (cols ? cols : 1)) * (router || !cols ? 4 : 2);
    return SNAP_OK;
}

/* The tensors of a checkpoint, and W_UK a second time. */
static void test_memory_of_weights(void) {
    static const char *const models[] = {"deepseek-v2-lite", "deepseek-v3", "longcat-flash"};
    predict_layout one = layout_named("DP1");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        model_shape s = shape_named(models[i]);
        tally t = {0};
        CU_ASSERT_EQUAL_FATAL(inventory_each(&s, count_tensor, &t, NULL), SNAP_OK);
        predict_work w = predict_work_of(&s, &one, false, 1, 1, 0);
        predict_memory m = predict_memory_of(&s, &one, false, CACHE_BF16, 1, 64);
        CU_ASSERT_EQUAL((double)m.weights, t.bytes + w.query_bytes);
    }
}

static void test_memory_of_e4m3_weights(void) {
    model_shape s = shape_named("deepseek-v3");
    predict_layout one = layout_named("DP1");
    tally t = {0};
    CU_ASSERT_EQUAL_FATAL(inventory_each(&s, count_e4m3_tensor, &t, NULL), SNAP_OK);
    predict_work w = predict_work_of(&s, &one, true, 1, 1, 0);
    predict_memory m = predict_memory_of(&s, &one, true, CACHE_BF16, 1, 64);
    CU_ASSERT_EQUAL((double)m.weights, t.bytes + w.query_bytes);
}

/* The published number of parameters of DeepSeek-V3 is 671 B. Ranks with whole experts hold all of
 * attention, so eight of them hold more than one model. */
static void test_memory_of_ranks(void) {
    model_shape s = shape_named("deepseek-v3");
    predict_layout one = layout_named("DP1"), many = layout_named("DP8/TP1/EP8");
    predict_memory all = predict_memory_of(&s, &one, true, CACHE_FP8, 1, 64),
                   rank = predict_memory_of(&s, &many, true, CACHE_FP8, 1, 64);
    double experts = 58 * 256.0 * 3 * 7168 * 2048 * predict_number_bytes(true);
    CU_ASSERT(all.weights > 670e9 && all.weights < 680e9);
    CU_ASSERT_DOUBLE_EQUAL((double)(all.weights - rank.weights) / experts, 7.0 / 8, 1e-12);
}

/* With TP and EP, a rank of four has 16 whole experts. With TP alone, it has half of 64 experts.
 * Both have half of the shared experts. V2-Lite has 26 layers with experts of width 1408. */
static void test_memory_of_shared_experts(void) {
    model_shape s = shape_named("deepseek-v2-lite");
    predict_layout both = layout_named("DP2/TP2/EP4"), split = layout_named("TP2");
    predict_memory a = predict_memory_of(&s, &split, false, CACHE_FP8, 1, 64),
                   b = predict_memory_of(&s, &both, false, CACHE_FP8, 1, 64);
    CU_ASSERT_EQUAL(a.weights - b.weights, 26LL * (32 - 16) * 3 * 2048 * 1408 * 2);
}

/* Buffers for 8 sequences and a row more: 6 routed and 2 shared experts of each row on one GPU, and
 * the 6 routed experts of the rows of four replicas with EP. */
static void test_memory_of_gathered_rows(void) {
    model_shape s = shape_named("deepseek-v2-lite");
    predict_layout one = layout_named("DP1"), many = layout_named("DP4/EP4"),
                   both = layout_named("DP4/TP2/EP8"), split = layout_named("TP2/EP2");
    const int64_t pair = 2 * 2048 + 2 * 1408 + 4 * 2048 + 4 /* operand, inner, output, list */,
                  pairs = 9 * (4 * 6 - 8), message = 9 * (2 * 2048 + 6 * 8), sums = 9 * 4 * 2048,
                  lists = 3 * 4 * (64 / 4 - 66);
    predict_memory a = predict_memory_of(&s, &one, false, CACHE_FP8, 8, 64),
                   b = predict_memory_of(&s, &many, false, CACHE_FP8, 8, 64);
    CU_ASSERT_EQUAL(b.buffers - a.buffers,
                    pairs * (pair + 12) + (1 + 4) * message + 4 * sums + lists);
    /* The sums of a split replica have a buffer of their own. */
    a = predict_memory_of(&s, &split, false, CACHE_FP8, 8, 64);
    b = predict_memory_of(&s, &both, false, CACHE_FP8, 8, 64);
    CU_ASSERT_EQUAL(b.buffers - a.buffers,
                    9 * 3 * 6 * (pair + 12) + 4 * message + 4 * sums + 3 * 4 * (64 / 8 - 64 / 2));
}

/* Tokens are stored in whole pages of 64. */
static void test_memory_of_the_cache(void) {
    model_shape s = shape_named("deepseek-v2-lite");
    predict_layout one = layout_named("DP1"), two = layout_named("TP2");
    predict_memory m = predict_memory_of(&s, &one, false, CACHE_BF16, 3, 65);
    CU_ASSERT_EQUAL(m.cache, 3 * 128 * 1152 * 27);
    m = predict_memory_of(&s, &two, false, CACHE_FP8, 3, 64);
    CU_ASSERT_EQUAL(m.cache, 3 * 64 * 644 * 27); /* each rank has the whole cache */
}

static void test_largest_batch(void) {
    model_shape s = shape_named("deepseek-v2-lite");
    predict_layout one = layout_named("DP1");
    predict_memory m = predict_memory_of(&s, &one, false, CACHE_FP8, 37, 8192);
    int64_t bytes = predict_memory_sum(&m);
    CU_ASSERT_EQUAL(predict_largest(&s, &one, false, CACHE_FP8, 8192, bytes, 1024), 37);
    CU_ASSERT_EQUAL(predict_largest(&s, &one, false, CACHE_FP8, 8192, bytes - 1, 1024), 36);
    CU_ASSERT_EQUAL(predict_largest(&s, &one, false, CACHE_FP8, 8192, bytes, 20), 20);
    CU_ASSERT_EQUAL(predict_largest(&s, &one, false, CACHE_FP8, 8192, 1000, 1024), 0);
}

/* ---- fits ---- */

static void test_exact_fit(void) {
    const predict_terms x[] = {{{1, 2, 0}}, {{1, 5, 1}}, {{1, 9, 7}}, {{1, 1, 3}}};
    const double of[] = {3, 0.5, 10};
    double y[4];
    predict_terms got;
    for (int i = 0; i < 4; i++)
        y[i] = of[0] * x[i].of[0] + of[1] * x[i].of[1] + of[2] * x[i].of[2];
    CU_ASSERT(fit_nonnegative(x, y, y, 4, &got));
    for (int t = 0; t < 3; t++)
        CU_ASSERT_DOUBLE_EQUAL(got.of[t] / of[t], 1, 1e-6);
    CU_ASSERT(!fit_nonnegative(x, y, y, 0, &got));
}

/* The unconstrained fit of y = 4 - x has a negative slope. Without the slope, the constant c that
 * minimises the relative error is sum(1 / y) / sum(1 / y^2). */
static void test_no_negative_term(void) {
    const predict_terms x[] = {{{1, 1, 0}}, {{1, 2, 0}}, {{1, 3, 0}}};
    const double y[] = {3, 2, 1};
    predict_terms got;
    CU_ASSERT(fit_nonnegative(x, y, y, 3, &got));
    CU_ASSERT_EQUAL(got.of[1], 0);
    CU_ASSERT_DOUBLE_EQUAL(got.of[0], (1. / 3 + 1. / 2 + 1) / (1. / 9 + 1. / 4 + 1), 1e-12);
}

/* Steps whose experts take 9000 ns for each layer and a time for each byte that depends on the
 * format of the weights. From 9 to 64 rows, all steps have as many rows, so the time for each layer
 * is that of fewer rows. Without steps in e4m3, their bytes take the time of BF16. */
static void test_bytes_of_both_formats(void) {
    static const double rows[] = {1, 4, 8, 64}, byte[] = {0.25e-3, 0.3e-3};
    model_shape s = shape_named("deepseek-v2-lite");
    predict_layout one = layout_named("DP1");
    rule_book b = {.read_rate = 4e12, .product_rate = 1e15};
    measured_step steps[8];
    for (int i = 0; i < 8; i++) {
        bool e4m3 = i >= 4;
        steps[i] = (measured_step){.batch = (int64_t)rows[i % 4], .context = 64};
        steps[i].work = predict_work_of(&s, &one, e4m3, rows[i % 4], 64, (double)NAN);
        steps[i].part_ns[STEP_EXPERTS] = 26 * 9000 + byte[e4m3] * steps[i].work.expert_bytes;
    }
    rules_fit(&b, steps, 8, (left_out_cell){0, 0});
    for (int r = 0; r < 2; r++) {
        const double *of = b.range[r].experts.per.of;
        CU_ASSERT_DOUBLE_EQUAL(of[TERM_EACH] / 9000, 1, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(of[TERM_BF16] / byte[0], 1, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(of[TERM_E4M3] / byte[1], 1, 1e-6);
    }
    rules_fit(&b, steps, 4, (left_out_cell){0, 0});
    CU_ASSERT_DOUBLE_EQUAL(b.range[1].experts.per.of[TERM_E4M3] / byte[0], 1, 1e-6);
}

static void test_slopes_between_heads(void) {
    const kernel_slopes k = {.of = {{{16, 2, 0}, {64, 3, 0}, {128, 5, 0}}}, .n = {3, 0}};
    CU_ASSERT_EQUAL(kernel_slope_at(&k, CACHE_BF16, 8), 2);
    CU_ASSERT_EQUAL(kernel_slope_at(&k, CACHE_BF16, 40), 2.5);
    CU_ASSERT_EQUAL(kernel_slope_at(&k, CACHE_BF16, 96), 4);
    CU_ASSERT_EQUAL(kernel_slope_at(&k, CACHE_BF16, 256), 5);
    CU_ASSERT(isnan(kernel_slope_at(&k, CACHE_FP8, 16)));
}

/* ---- exchanges ---- */

static exchange_record exchange_row(const char *operation, const char *path, int64_t bytes,
                                    double ns) {
    exchange_record r;
    record_init(&exchange_type, &r);
    r.parts = EXCHANGE_TIMED;
    r.operation = operation;
    r.path = path;
    r.launch = "graph";
    r.type = "fp32";
    r.ranks = 2;
    r.bytes = bytes;
    r.nccl = r.checked = r.wrong = 0;
    r.samples = r.operations = 1;
    r.median_ns = ns;
    r.best_ns = ns / 2;
    r.p99_ns = ns * 2;
    r.algorithm_bytes_s = r.bus_bytes_s = 1;
    return r;
}

static predict_links links_of_two(void) {
    predict_links l = {.read_rate = 3e12};
    const exchange_record rows[] = {exchange_row("all_reduce", "one_shot", 4096, 3000),
                                    exchange_row("all_reduce", "one_shot", 1024, 2000),
                                    exchange_row("all_reduce", "nccl", 1024, 6000),
                                    exchange_row("all_reduce", "nccl", 1 << 20, 10000),
                                    exchange_row("all_gather", "nccl", 1024, 4000),
                                    exchange_row("all_gather", "nccl", 1 << 20, 8000),
                                    exchange_row("reduce_scatter", "nccl", 1024, 5000),
                                    exchange_row("reduce_scatter", "nccl", 1 << 20, 9000),
                                    exchange_row("all_to_all", "nccl", 1024, 1)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        predict_links_add(&l, &rows[i]);
    return l;
}

static predict_time time_of(const predict_links *l, const char *layout, const predict_work *w) {
    const predict_layout of = layout_named(layout);
    predict_time t = {0};
    CU_ASSERT_EQUAL_FATAL(predict_links_time(l, w, &of, &t, NULL), SNAP_OK);
    return t;
}

static double sums_ns(const predict_links *l, int parts, double bytes) {
    const predict_work w = {.sums = 2, .sum_bytes = bytes};
    char layout[16];
    (void)snprintf(layout, sizeof layout, "TP%d", parts);
    return time_of(l, layout, &w).ns;
}

static predict_time gathers_of(const predict_links *l, const char *layout, double gather,
                               double scatter) {
    const predict_work w = {.gathers = 1, .gather_bytes = gather, .scatter_bytes = scatter};
    return time_of(l, layout, &w);
}

static void test_measured_curves(void) {
    predict_links l = links_of_two();
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 512), 2 * 2000);  /* below the smallest size */
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 2560), 2 * 2500); /* half-way between two sizes */
    CU_ASSERT_EQUAL(sums_ns(&l, 4, 1024), 2 * (2000 + 1000 * 2. / 3)); /* three peers are read */
    CU_ASSERT_EQUAL(sums_ns(&l, 8, 4096), 2 * 7 * 3000.);              /* seven of them */
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 2 << 20), 2 * 512 * 3000.); /* the longest one-shot message */
    /* NCCL's bandwidth above it, and a kernel that moves 3 x the bytes. */
    double longer = 4 << 20;
    CU_ASSERT_DOUBLE_EQUAL(sums_ns(&l, 2, longer), 2 * (40000 + 3 * longer / 3e3), 1e-6);
    /* Over 4 ranks, each link carries 2 x 3/4 of the bytes instead of 2 x 1/2. */
    CU_ASSERT_DOUBLE_EQUAL(sums_ns(&l, 4, longer), 2 * (60000 + 3 * longer / 3e3), 1e-6);
}

/* A part of one size takes the one-shot curve. From the same size on, NCCL has buffers of the parts
 * of both ranks, and the kernel that adds the sums is separate. */
static void test_gathers(void) {
    predict_links l = links_of_two();
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 1024, 4096).ns, 2000 + 3000);
    CU_ASSERT_EQUAL(gathers_of(&l, "DP2/EP2", 1024, 4096).high_ns, 2 * (2000 + 3000));
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP4/EP4", 1024, 1024).ns, 2 * (2000 + 2000. / 3), 1e-6);
    double part = 3 << 20, add = 3 * part / 3e3;
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP2/EP2", part, part).ns, 6 * (8000 + 9000) + add, 1e-6);
    /* Over 4 ranks, each link carries three parts instead of one. */
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP4/EP4", part, part).ns, 18 * (8000 + 9000) + add,
                           1e-6);
}

/* Each exchange takes the curve of its own number of ranks, else of the largest number below it,
 * else of the smallest above it. */
static void test_curves_of_several_numbers_of_ranks(void) {
    predict_links l = links_of_two();
    exchange_record four = exchange_row("all_reduce", "one_shot", 1024, 4000),
                    six = exchange_row("all_gather", "nccl", 1024, 7000);
    four.ranks = 4;
    six.ranks = 6;
    predict_links_add(&l, &four);
    predict_links_add(&l, &six);
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 1024), 2 * 2000);
    CU_ASSERT_EQUAL(sums_ns(&l, 3, 512), 2 * 2000);
    CU_ASSERT_EQUAL(sums_ns(&l, 4, 1024), 2 * 4000);
    CU_ASSERT_EQUAL(sums_ns(&l, 8, 3072), 2 * 4000 * 7.); /* seven peers instead of three */
    memset(l.curves[CURVE_ONE_SHOT][2].of, 0, sizeof l.curves[CURVE_ONE_SHOT][2].of);
    l.curves[CURVE_ONE_SHOT][2].n = 0;
    CU_ASSERT_EQUAL(sums_ns(&l, 2, 3072), 2 * 4000); /* one peer instead of three */
    four.ranks = 16;
    predict_links_add(&l, &four); /* more than a node has */
    CU_ASSERT_EQUAL(sums_ns(&l, 8, 3072), 2 * 4000 * 7.);
}

/* Of 16 ranks, 8 are in each node. So each of the 8 ports of a node carries one part of another
 * node, and each link inside a node the 15 parts of all others. Of 8 ranks with two GPUs in each
 * replica, 4 are in a node. With TP8, every part crosses the network. */
static void test_networks(void) {
    predict_links l = links_of_two();
    l.network = (predict_link){"n", {1, 4, 9}, {40, 20, 10}};
    double part = 8 << 20, add = 3 * part / 3e3,
           near = 8000. * 15 * 8 * 2; /* NCCL's buffers have 15 x 16 MiB in this time */
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP16/EP16", part, 0).ns, near + 5000, 1e-6);
    l.network.gb_s[1] = 0.02;
    double far = 4000 + part / 0.02;
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP16/EP16", part, part).ns, 2 * far + add, 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP8/TP2/EP16", part, part).ns, 2 * far + add, 1e-3);
    far = 4000 + 3 * part / 0.02;
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP4/TP8/EP32", part, part).ns, 2 * far + add, 1e-3);
}

static void test_links_replace_curves(void) {
    predict_links l = links_of_two();
    l.has_link = true;
    l.link = (predict_link){"x", {1, 2, 3}, {200, 100, 50}};
    double bytes = 1 << 20;
    CU_ASSERT_DOUBLE_EQUAL(sums_ns(&l, 8, bytes),
                           2 * (2000 + bytes * 2 * 7 / 8 / 100 + 3 * bytes / 3e3), 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(gathers_of(&l, "DP8/EP8", bytes, bytes).ns,
                           2 * (2000 + bytes * 7 / 100) + 3 * bytes / 3e3, 1e-6);
}

static void test_missing_curves(void) {
    predict_links l = {.read_rate = 3e12};
    const exchange_record row = exchange_row("all_reduce", "one_shot", 1024, 3000);
    const predict_layout layout = {.ranks = {2, 2, true}};
    const predict_work w = {.gathers = 1, .gather_bytes = 4 << 20};
    predict_time t;
    snap_err err = {0};
    predict_links_add(&l, &row);
    CU_ASSERT_EQUAL(predict_links_time(&l, &w, &layout, &t, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no measured all_gather inside a graph"));
}

static snap_status find_link(const char *text, const char *name, predict_link *out, snap_err *err) {
    js *links = js_parse(text, strlen(text), "links", err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(links);
    snap_status st = predict_link_find(out, name, links, err);
    js_free(links);
    return st;
}

static void test_files_of_links(void) {
    predict_link l;
    snap_err err = {0}, none = {0}, undated = {0};
    const char *good = "{\"links\": [{\"name\": \"a\", \"gb_s\": [3, 2, 1], \"latency_us\": "
                       "[1, 2, 3], \"source\": \"s\", \"date\": \"d\"}]}";
    CU_ASSERT_EQUAL(find_link(good, "a", &l, &err), SNAP_OK);
    CU_ASSERT_EQUAL(l.gb_s[1], 2);
    CU_ASSERT_EQUAL(find_link(good, "b", &l, &none), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(none.text, "no link 'b' (a)");
    CU_ASSERT_EQUAL(find_link("{\"links\": [{\"name\": \"a\"}]}", "a", &l, &undated), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(undated.text, "link 'a' has no source or no date");
    CU_ASSERT_EQUAL(find_link("{\"links\": [{\"name\": \"a\", \"source\": \"s\", \"date\": \"d\", "
                              "\"gb_s\": [1, 0, 1], \"latency_us\": [1, 2, 3]}]}",
                              "a", &l, &err),
                    SNAP_E_INPUT);
    CU_ASSERT_EQUAL(find_link("[]", "a", &l, &err), SNAP_E_USAGE);
}

/* ---- whole predictions ---- */

/* A made-up GPU whose steps follow known rules. The times below are computed here, from the
 * numbers of DeepSeek-V2-Lite: 27 layers, 26 of them with 64 experts, 16 heads, hidden size 2048.
 * The attention kernel takes 2 ns (BF16) or 1 ns (FP8) for each cached token, whatever the number
 * of heads, a byte of weights 1/4000 ns in products, and a product 1.5e-6 ns for each FLOP. A step
 * is 10 us shorter than its parts for each layer. */
static const double kRead = 4e12, kByte = 1 / 4000., kFlop = 1.5e-6;

static double attention_ns(bool fp8, double rows, double context, double heads) {
    return 27 * (5000 + 0.5 * rows * heads + (fp8 ? 1 : 2) * rows * context +
                 2 * heads * 128 * 512 / kRead * 1e9);
}

static double experts_read(double rows) {
    return 64 * (1 - pow(58. / 64, rows));
}

/* With more than 64 rows, each row is moved to 8 experts, and each expert takes 150 ns more. A rank
 * of a split model joins the outputs in a launch of its own. */
static double experts_ns(double rows, double parts) {
    double one = 3.0 * 2048 * 1408 * 2 / parts, router = 4.0 * 64 * 2048,
           fixed = rows > 64 ? 150 * (experts_read(rows) + 2) + 0.01 * rows * 8 * 2048 : 9000;
    return 26 *
           (fixed + kByte * (one * (experts_read(rows) + 2) + router) + (parts > 1 ? 2000 : 0));
}

/* 2 bytes of a weight give 2 FLOP for each row. */
static double rest_ns(double rows, double parts) {
    double heads = 16 / parts,
           layer = 2048 * (heads * 192 + 512 + 64) + heads * 128 * 512 + heads * 128 * 2048,
           dense = 3.0 * 2048 * 10944 / parts, logits = 102400. * 2048;
    return (27 * 4 + (rows > 8 ? 4 : 3) + 4) * 2000. +
           2 * (27 * layer + dense + logits) * fmax(kByte, rows > 8 ? rows * kFlop : 0);
}

static double step_ns(bool fp8, double rows, double context, double parts, double exchange) {
    return attention_ns(fp8, rows, context, 16 / parts) + experts_ns(rows, parts) +
           rest_ns(rows, parts) + exchange - 27 * 10000;
}

static js *made_up_step(bool fp8, int rows, int64_t context, const char *layout, double factor) {
    step_record s;
    model_shape shape = shape_named("deepseek-v2-lite");
    record_init(&step_type, &s);
    s.parts = STEP_TIMED;
    s.model_config = "deepseek-v2-lite";
    s.layout = layout;
    s.arm = fp8 ? "fp8" : "bf16";
    s.step = "decode";
    s.context = context;
    s.batch = rows;
    s.samples = 9;
    double parts = *layout ? 2 : 1, exchange = *layout ? 54 * 3000 : 0;
    s.median_ns = s.best_ns = s.worst_ns =
        factor * step_ns(fp8, rows, (double)context, parts, exchange);
    s.tokens_s = rows / s.median_ns * 1e9;
    s.weight_bytes = step_work_bytes(&shape, 26 * experts_read(rows));
    s.cache_bytes = 1;
    s.flop = 0;
    s.cublaslt = 0;
    s.roofline_pct = 50;
    s.attention_ns = factor * attention_ns(fp8, rows, (double)context, 16 / parts);
    s.exchange_ns = exchange;
    s.experts_ns = factor * experts_ns(rows, parts);
    s.rest_ns = factor * rest_ns(rows, parts);
    return record_write(&step_type, &s);
}

static js *made_up_cell(bool fp8, int heads) {
    char text[1200];
    const double ns = (fp8 ? 1 : 2) * 64 * 32768.;
    (void)snprintf(
        text, sizeof text,
        "{\"arm\": \"%s\", \"backend\": \"cuda\", \"cold\": \"flush\", \"distribution\": "
        "\"normal\", \"flags\": [], \"kernel\": \"\", \"kernel_hash\": \"\", \"mode\": \"burst\", "
        "\"origin\": \"measured\", \"reason\": null, \"scope\": \"kernel\", \"source\": null, "
        "\"status\": \"passed\", \"shape\": {\"batch\": 64, \"context\": 32768, \"d_c\": 512, "
        "\"d_r\": 64, \"heads\": %d, \"s_q\": 1}, \"correctness\": {\"error\": 0, \"lse_error\": 0,"
        " "
        "\"lse_tolerance\": 1, \"rows_checked\": 1, \"tolerance\": 1}, \"performance\": %s}",
        fp8 ? "fp8" : "bf16", heads, "null");
    js *cell = js_parse(text, strlen(text), "cell", NULL);
    js *perf = js_new_object();
    static const char *const keys[] = {"max_ns", "mean_ns", "median_ns", "min_ns",
                                       "p99_ns", "q1_ns",   "q3_ns",     "floor_ns"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        (void)js_set_num(perf, keys[i], ns);
    static const char *const other[] = {"gb_s",         "tflops",           "tok_s",
                                        "roofline_pct", "clock_mhz_before", "clock_mhz_during"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        (void)js_set_num(perf, other[i], 1);
    (void)js_set_int(perf, "count", 1);
    (void)js_set_new(perf, "energy_j", js_new_null());
    (void)js_set_new(perf, "power_w", js_new_null());
    (void)js_set_new(perf, "tok_j", js_new_null());
    (void)js_set_new(perf, "samples_ns", js_new_array());
    (void)js_set_str(perf, "bound", "bytes");
    (void)js_set_str(perf, "stop_reason", "timeout");
    (void)js_set_new(cell, "performance", perf);
    return cell;
}

static js *made_up_ceiling(const char *name, const char *unit, double value) {
    js *c = js_new_object();
    (void)js_set_str(c, "name", name);
    (void)js_set_num(c, "value", value);
    (void)js_set_str(c, "unit", unit);
    (void)js_set_str(c, "method", "made up");
    (void)js_set_new(c, "samples", js_new_array());
    (void)js_set_str(c, "origin", "measured");
    return c;
}

static void add_row(results *r, const char *section, js *row) {
    snap_err err = {0};
    if (results_add(r, section, row, &err) != SNAP_OK)
        CU_FAIL_FATAL(err.text);
}

/* Writes the measurements of one GPU to @path. The step of 8 rows at 32768 tokens in BF16 takes
 * @factor x its time. */
static void write_measured(const char *path, double factor) {
    static const int batches[] = {1, 4, 8, 16, 64, 128, 200, 512};
    static const int64_t contexts[] = {8192, 32768, 131072};
    results *r = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, &err), SNAP_OK);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
            for (size_t k = 0; k < 3; k++) {
                bool odd = !fp8 && batches[i] == 8 && contexts[k] == 32768;
                add_row(r, "e2e", made_up_step(fp8, batches[i], contexts[k], "", odd ? factor : 1));
            }
        add_row(r, "bench", made_up_cell(fp8, 16));
        add_row(r, "bench", made_up_cell(fp8, 128));
    }
    add_row(r, "ceilings", made_up_ceiling("read_bandwidth", "B/s", kRead));
    add_row(r, "ceilings", made_up_ceiling("bf16_mma", "FLOP/s", 1e15));
    const exchange_record sums[] = {exchange_row("all_reduce", "one_shot", 1024, 3000),
                                    exchange_row("all_reduce", "one_shot", 1 << 21, 3000),
                                    exchange_row("all_reduce", "nccl", 1 << 21, 3000),
                                    exchange_row("reduce_scatter", "nccl", 1 << 21, 3000),
                                    exchange_row("all_gather", "nccl", 1 << 21, 3000)};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        add_row(r, "exchange", record_write(&exchange_type, &sums[i]));
    CU_ASSERT_EQUAL_FATAL(results_save(r, path, &err), SNAP_OK);
    results_free(r);
}

static void write_split(const char *path, const char *layout) {
    results *r = NULL;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        add_row(r, "e2e", made_up_step(fp8, 8, 32768, layout, 1));
        add_row(r, "e2e", made_up_step(fp8, 64, 32768, layout, 2));
    }
    CU_ASSERT_EQUAL_FATAL(results_save(r, path, NULL), SNAP_OK);
    results_free(r);
}

typedef struct {
    char dir[64], one[128], two[128];
    predict_result *p;
    predict_options o;
} fixture;

static void open_fixture(fixture *f, double factor) {
    *f = (fixture){.dir = "/tmp/snapmla-predict-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f->dir));
    (void)snprintf(f->one, sizeof f->one, "%s/one.json", f->dir);
    (void)snprintf(f->two, sizeof f->two, "%s/two.json", f->dir);
    write_measured(f->one, factor);
    write_split(f->two, "DP1/TP2");
    f->p = calloc(1, sizeof *f->p);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->p);
    f->o = (predict_options){.from = {.measured = f->one, .network = "ib-ndr"},
                             .model_config = "deepseek-v2-lite",
                             .arms = "bf16,fp8",
                             .contexts = "16384",
                             .batches = "32",
                             .weights = "bf16"};
}

static void predict_again(fixture *f) {
    snap_err err = {0};
    predict_release(f->p);
    CU_ASSERT_EQUAL(predict_run(&f->o, NULL, f->p, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL_FATAL(err.text, "");
}

static void close_fixture(fixture *f) {
    predict_release(f->p);
    free(f->p);
    (void)unlink(f->one);
    (void)unlink(f->two);
    (void)rmdir(f->dir);
}

static void expect_near(double got, double expected) {
    CU_ASSERT_DOUBLE_EQUAL(got / expected, 1, 1e-6);
}

/* Layouts, batches and contexts that were not measured. With 300 rows, arithmetic limits the rest
 * of the step. */
static void test_many_rows(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.layouts = "DP1,TP2";
    f.o.batches = "100,300";
    predict_again(&f);
    for (int fp8 = 0; fp8 < 2; fp8++)
        for (int k = 0; k < 2; k++) {
            double rows = k ? 300 : 100;
            expect_near(f.p->rows[2 * fp8 + k].median_ns, step_ns(fp8, rows, 16384, 1, 0));
            expect_near(f.p->rows[4 + 2 * fp8 + k].rest_ns, rest_ns(rows, 2));
            expect_near(f.p->rows[4 + 2 * fp8 + k].experts_ns, experts_ns(rows, 2));
        }
    close_fixture(&f);
}

static void test_known_rules(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.layouts = "DP1,TP2,DP4";
    predict_again(&f);
    CU_ASSERT_EQUAL_FATAL(f.p->n, 6);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        expect_near(f.p->rows[fp8].median_ns, step_ns(fp8, 32, 16384, 1, 0));
        expect_near(f.p->rows[2 + fp8].median_ns, step_ns(fp8, 32, 16384, 2, 54 * 3000));
        expect_near(f.p->rows[2 + fp8].attention_ns, attention_ns(fp8, 32, 16384, 8));
        expect_near(f.p->rows[2 + fp8].exchange_ns, 54 * 3000);
        expect_near(f.p->rows[2 + fp8].experts_ns, experts_ns(32, 2));
        expect_near(f.p->rows[2 + fp8].rest_ns, rest_ns(32, 2));
        expect_near(f.p->rows[4 + fp8].median_ns, step_ns(fp8, 8, 16384, 1, 0));
        expect_near(f.p->rows[4 + fp8].tokens_s, 32e9 / step_ns(fp8, 8, 16384, 1, 0));
        CU_ASSERT_STRING_EQUAL(f.p->rows[fp8].origin, "predicted");
    }
    expect_near(f.p->rows[1].fp8_over_bf16,
                step_ns(false, 32, 16384, 1, 0) / step_ns(true, 32, 16384, 1, 0));
    CU_ASSERT(isnan(f.p->rows[0].fp8_over_bf16));
    /* The rules have no error here. The exchange takes between half and twice its median. */
    const prediction_record *split = &f.p->rows[2];
    double sum = split->median_ns + 27 * 10000, share = split->median_ns / sum;
    expect_near(split->interval_ns[0], share * (sum - 54 * 1500));
    expect_near(split->interval_ns[1], share * (sum + 54 * 3000));
    close_fixture(&f);
}

/* A measured step of one GPU that is 20 % too slow is predicted from the others, so all of the
 * difference shows. The steps of two GPUs are not in the fit. */
static void test_against_measured_steps(void) {
    fixture f;
    open_fixture(&f, 1.2);
    f.o.against = f.one;
    predict_again(&f);
    CU_ASSERT_EQUAL_FATAL(f.p->n, 48);
    const prediction_record *odd = &f.p->rows[2 * 3 + 1];
    CU_ASSERT_EQUAL(odd->batch, 8);
    CU_ASSERT_EQUAL(odd->context, 32768);
    CU_ASSERT_DOUBLE_EQUAL(odd->error_pct, 100 * (1 / 1.2 - 1), 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(f.p->in.book.range[0].error[STEP_EXPERTS], 1 - 1 / 1.2, 1e-6);
    close_fixture(&f);
    open_fixture(&f, 1);
    f.o.against = f.two;
    predict_again(&f);
    predict_agreement a = predict_agreement_of(f.p, "DP1/TP2");
    CU_ASSERT_EQUAL(a.n, 4);
    CU_ASSERT_DOUBLE_EQUAL(f.p->rows[0].error_pct, 0, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(f.p->rows[1].error_pct, -50, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(a.median_pct, 25, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(a.most_pct, 50, 1e-4);
    CU_ASSERT_EQUAL(predict_agreement_of(f.p, "DP2/TP1").n, 0);
    close_fixture(&f);
}

/* The map has the layout that wins when all layouts are predicted one by one. */
static void test_best_layouts(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.gpus = "4";
    f.o.batches = "max";
    f.o.memory_gb = 120;
    predict_again(&f);
    CU_ASSERT_EQUAL_FATAL(f.p->n, 2);
    char best[32];
    double most = f.p->rows[1].tokens_s, gain = f.p->rows[1].fp8_over_bf16;
    (void)snprintf(best, sizeof best, "%s", f.p->rows[1].layout);
    CU_ASSERT(f.p->rows[1].best);
    f.o.gpus = NULL;
    f.o.layouts = "DP4,DP2/TP2,TP4,DP4/EP4,DP2/TP2/EP4,TP4/EP4";
    predict_again(&f);
    double top[2] = {0, 0};
    for (int i = 0; i < f.p->n; i++) {
        const prediction_record *r = &f.p->rows[i];
        bool fp8 = strcmp(r->arm, "fp8") == 0;
        top[fp8] = fmax(top[fp8], r->tokens_s);
        if (fp8 && r->tokens_s == most)
            CU_ASSERT_STRING_EQUAL(r->layout, best);
        CU_ASSERT(!r->best);
        CU_ASSERT(r->weight_bytes + r->buffer_bytes + r->cache_bytes <= (int64_t)120e9);
    }
    CU_ASSERT_EQUAL(most, top[1]);
    expect_near(gain, top[1] / top[0]);
    close_fixture(&f);
}

/* 16 GPUs have at least two replicas of at most 8 GPUs, so one sequence is too few. */
static void test_idle_replicas(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.gpus = "16";
    f.o.batches = "1,2";
    predict_again(&f);
    CU_ASSERT_EQUAL(f.p->n, 2);
    for (int i = 0; i < f.p->n; i++) {
        CU_ASSERT_EQUAL(f.p->rows[i].batch, 2);
        CU_ASSERT_PTR_NOT_NULL(strstr(f.p->rows[i].layout, "DP2/TP8"));
    }
    close_fixture(&f);
}

static void test_too_little_memory(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.batches = "8,max";
    f.o.memory_gb = 30; /* the weights alone take 31.5 GB */
    predict_again(&f);
    for (int i = 0; i < f.p->n; i++) {
        CU_ASSERT_EQUAL(f.p->rows[i].batch, 0);
        CU_ASSERT_EQUAL(f.p->rows[i].parts, 0);
    }
    close_fixture(&f);
}

static void test_kept_rows(void) {
    fixture f;
    char out[160];
    results *r = NULL;
    run_record run;
    arena mem = {0};
    open_fixture(&f, 1);
    (void)snprintf(out, sizeof out, "%s/out.json", f.dir);
    f.o.out = out;
    f.o.layouts = "DP16/TP1/EP16";
    predict_again(&f);
    CU_ASSERT_EQUAL_FATAL(results_load(&r, out, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(run_read(&run, r, &mem, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(run.predicted.n, (size_t)f.p->n);
    CU_ASSERT_EQUAL(run.e2e.n, 0); /* where measured steps are */
    for (size_t i = 0; i < run.predicted.n; i++) {
        CU_ASSERT(record_equal(&prediction_type, &run.predicted.at[i], &f.p->rows[i]));
        CU_ASSERT_STRING_EQUAL(run.predicted.at[i].network, "ib-ndr");
    }
    arena_release(&mem);
    results_free(r);
    (void)unlink(out);
    close_fixture(&f);
}

/* A report shows predicted rows as such, and ranks none of them. */
static void test_report(void) {
    fixture f;
    results *r = NULL;
    arena mem = {0};
    table t;
    buf csv = {0};
    open_fixture(&f, 1);
    predict_again(&f);
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    for (int i = 0; i < f.p->n; i++)
        add_row(r, "predicted", record_write(&prediction_type, &f.p->rows[i]));
    report_model *m = fixture_model(r);
    CU_ASSERT_FATAL(report_table_predicted(m, &mem, &t));
    CU_ASSERT_EQUAL(t.n_rows, 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 0), "predicted");
    CU_ASSERT_EQUAL(m->n_steps + m->n_speeds, 0);
    CU_ASSERT_FATAL(report_table_paper_speed(m, &mem, &t));
    CU_ASSERT_EQUAL(t.n_rows, 1); /* FP8 beside BF16 */
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 0), "predicted");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 2), "1 GPU");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 3), "1 GPU, weights in bf16");
    write_csv_section(m, "predicted", &csv);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), "DP1/TP1"));
    buf_release(&csv);
    report_model_free(m);
    arena_release(&mem);
    results_free(r);
    close_fixture(&f);
}

static size_t findings_in(prediction_record *row) {
    const run_record run = {.predicted = {row, 1}};
    verify_findings f = {0};
    verify_predicted(&run, &f);
    size_t n = f.n[VERIFY_FORM] + f.n[VERIFY_PHYSICS];
    verify_release(&f);
    return n;
}

/* verify-run finds each number that was changed afterwards. */
static void test_changed_rows(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.against = f.two;
    predict_again(&f);
    prediction_record changed[5];
    CU_ASSERT_EQUAL(findings_in(&f.p->rows[0]), 0);
    for (int i = 0; i < 5; i++)
        changed[i] = f.p->rows[0];
    changed[0].tokens_s *= 1.01;
    changed[1].error_pct += 0.1;
    changed[2].gpus = 3;
    changed[3].interval_ns[1] = changed[3].median_ns / 2;
    changed[4].limit = "exchange"; /* which takes the least time here */
    for (int i = 0; i < 5; i++)
        CU_ASSERT(findings_in(&changed[i]) > 0);
    close_fixture(&f);
}

static void expect_refused(fixture *f, const char *text) {
    snap_err err = {0};
    predict_release(f->p);
    CU_ASSERT_EQUAL(predict_run(&f->o, NULL, f->p, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
}

static void test_refusals(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.from.measured = f.two; /* no step of one GPU */
    expect_refused(&f, "no decode step of one GPU with timed parts");
    f.o.from.measured = NULL;
    expect_refused(&f, "--predict needs --measured");
    f.o.from.measured = f.one;
    f.o.against = f.two;
    f.o.model_config = "deepseek-v3";
    expect_refused(&f, "its model is 'deepseek-v2-lite', and --model-config 'deepseek-v3'");
    f.o.layouts = "DP1";
    expect_refused(&f, "--against takes the layouts of its files");
    f.o.against = NULL;
    f.o.layouts = "TP16";
    expect_refused(&f, "TP is at most 8");
    f.o.layouts = NULL;
    f.o.model_config = "deepseek-v2-lite";
    f.o.against = f.two;
    write_split(f.two, "DP1/TP16");
    expect_refused(&f, "TP is at most 8");
    f.o.against = NULL;
    f.o.model_config = "deepseek-v3";
    f.o.layouts = "DP1";
    f.o.batches = "max";
    expect_refused(&f, "--batch max needs --gpu-memory");
    f.o.batches = "8";
    f.o.layouts = "DP4/EP4";
    f.o.batches = "3";
    expect_refused(&f, "--batch 3 is too small: each of 4 replicas needs a sequence");
    f.o.layouts = "DP1";
    f.o.arms = "fp8,nvfp4";
    expect_refused(&f, "--predict knows the arms bf16 and fp8");
    f.o.arms = "fp8";
    f.o.weights = "int4";
    expect_refused(&f, "--weights must be bf16 or e4m3");
    f.o.weights = "bf16";
    f.o.from.link = "token-ring";
    expect_refused(&f, "no link 'token-ring' (nvlink3, ");
    close_fixture(&f);
}

CU_TestInfo tests_predict[] = {
    {"layouts", test_layouts},
    {"what cannot be divided", test_what_cannot_be_divided},
    {"weights that a step reads", test_weights_that_are_read},
    {"FLOP of a row", test_flop},
    {"expected number of experts", test_expected_experts},
    {"the ranks' arithmetic is that of one GPU", test_arithmetic_is_divided},
    {"sums over ranks", test_sums},
    {"gathered rows", test_gathered_rows},
    {"launches that only ranks have", test_launches_of_ranks},
    {"memory of weights", test_memory_of_weights},
    {"memory: weights that stay e4m3", test_memory_of_e4m3_weights},
    {"memory of ranks", test_memory_of_ranks},
    {"memory of shared experts", test_memory_of_shared_experts},
    {"memory of gathered rows", test_memory_of_gathered_rows},
    {"memory of the cache", test_memory_of_the_cache},
    {"the largest batch", test_largest_batch},
    {"an exact fit", test_exact_fit},
    {"a fit without negative terms", test_no_negative_term},
    {"bytes of both formats of weights", test_bytes_of_both_formats},
    {"slopes between numbers of heads", test_slopes_between_heads},
    {"measured curves", test_measured_curves},
    {"all-gathers and reduce-scatters", test_gathers},
    {"curves of several numbers of ranks", test_curves_of_several_numbers_of_ranks},
    {"networks", test_networks},
    {"links instead of curves", test_links_replace_curves},
    {"missing curves", test_missing_curves},
    {"files of links", test_files_of_links},
    {"steps that follow known rules", test_known_rules},
    {"steps of many rows", test_many_rows},
    {"against measured steps", test_against_measured_steps},
    {"the best layouts", test_best_layouts},
    {"idle replicas", test_idle_replicas},
    {"too little memory", test_too_little_memory},
    {"kept rows", test_kept_rows},
    {"the report", test_report},
    {"changed rows", test_changed_rows},
    {"what cannot be predicted", test_refusals},
    CU_TEST_INFO_NULL,
};
