/* Tests the work and the memory of a step on a rank of a layout (harness/bench/predict_work.h). */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "generator/local/checkpoint/inventory.h"
#include "harness/bench/e2e.h"
#include "harness/bench/step_work.h"
#include "harness/test/predict_named.h"

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

/* The launches that only ranks have, added up by hand: joining the outputs; sorting; the products
 * of the shared experts, with more than 8 rows also a gate or two operands; and zeros in a
 * buffer. */
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

/* Adds the bytes of a tensor. Projections except kv_b are e4m3 with one scale for each 8 by 128
 * numbers. All others are stored as in count_tensor(). All widths of DeepSeek-V3 are multiples of
 * 256, so there are no scales for padding. */
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

CU_TestInfo tests_predict_work[] = {
    {"names of layouts are read", test_layouts},
    {"what cannot be divided", test_what_cannot_be_divided},
    {"weights that a step reads", test_weights_that_are_read},
    {"FLOP of a row", test_flop},
    {"the ranks' arithmetic is that of one GPU", test_arithmetic_is_divided},
    {"sums over ranks", test_sums},
    {"bytes of gathered rows", test_gathered_rows},
    {"launches that only ranks have", test_launches_of_ranks},
    {"memory of weights", test_memory_of_weights},
    {"memory: weights that stay e4m3", test_memory_of_e4m3_weights},
    {"memory of ranks", test_memory_of_ranks},
    {"memory of shared experts", test_memory_of_shared_experts},
    {"memory of gathered rows", test_memory_of_gathered_rows},
    {"memory of the cache", test_memory_of_the_cache},
    {"the largest batch", test_largest_batch},
    CU_TEST_INFO_NULL,
};
