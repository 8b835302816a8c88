/* Tests the numbers of experts that rows choose at random (harness/bench/predict_routing.h) against
 * draws with the router of the models. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/model/route.h"
#include "harness/bench/predict_routing.h"
#include "harness/test/predict_named.h"

/* Goes through all choices of two rows, each of which chooses 2 of 4 experts, and counts the
 * experts that are chosen. */
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

/* ---- the busiest rank ---- */

enum { kDraws = 300 };

/* The rows choose experts from uniform random logits. Returns how many more different experts the
 * busiest of @ranks ranks has than the mean rank. */
static double draw(const model_shape *s, const router *r, int ranks, int rows,
                   unsigned short seed[3]) {
    static bool used[ROUTE_MAX_EXPERTS];
    static float logits[ROUTE_MAX_EXPERTS];
    int32_t expert[ROUTE_MAX_CHOSEN];
    float weight[ROUTE_MAX_CHOSEN];
    int here = s->n_routed_experts / ranks, all = 0, most = 0;
    memset(used, 0, sizeof used);
    for (int i = 0; i < rows; i++) {
        for (int e = 0; e < r->experts; e++)
            logits[e] = (float)erand48(seed);
        router_choose(r, logits, NULL, expert, weight);
        for (int k = 0; k < r->chosen; k++)
            used[expert[k]] = true;
    }
    for (int rank = 0; rank < ranks; rank++) {
        int n = 0;
        for (int e = 0; e < here; e++)
            n += used[rank * here + e];
        all += n;
        most = n > most ? n : most;
    }
    return most - (double)all / ranks;
}

/* @share: the error of the function for this model, as a share of the simulated mean */
static void compare(const char *model, double share, int ranks, int rows) {
    model_shape s = shape_named(model);
    router r = router_make(&s);
    unsigned short seed[3] = {1, 2, 3};
    double sum = 0, squares = 0, got = predict_busiest_rank(&s, ranks, rows);
    for (int i = 0; i < kDraws; i++) {
        double more = draw(&s, &r, ranks, rows, seed);
        sum += more;
        squares += more * more;
    }
    double mean = sum / kDraws, error = sqrt((squares / kDraws - mean * mean) / kDraws);
    CU_ASSERT_DOUBLE_EQUAL(got, mean, 4 * error + share * mean);
}

/* DeepSeek-V3 rates a group by its two best experts, so these are often chosen together. The
 * function ignores this. */
static void test_busiest_rank(void) {
    static const int rows[] = {2, 8, 64};
    for (int ranks = 2; ranks <= 8; ranks *= 2)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            compare("deepseek-v2-lite", 0.05, ranks, rows[i]);
            compare("longcat-flash", 0.05, ranks, rows[i]);
            compare("deepseek-v3", 0.2, ranks, rows[i]);
        }
}

/* A row of DeepSeek-V3 keeps 4 of 8 groups, so it never goes to more than 4 of 8 ranks, and reaches
 * a rank less often than without groups. Without groups, it misses a rank of LongCat-Flash with 64
 * of 768 experts as often as 12 draws without replacement miss them. */
static void test_reach(void) {
    model_shape v3 = shape_named("deepseek-v3"), longcat = shape_named("longcat-flash");
    double missed = 1, eighth = predict_reach(&v3, 32);
    for (int i = 0; i < 12; i++)
        missed *= (704. - i) / (768 - i);
    CU_ASSERT_DOUBLE_EQUAL(predict_reach(&longcat, 64), 1 - missed, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(predict_reach(&v3, 256), 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(predict_reach(&v3, 1), 8. / 256, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(predict_reach(&longcat, 1), 12. / 768, 1e-12);
    CU_ASSERT(eighth < 0.5 && eighth > 0.4);
    CU_ASSERT_EQUAL(predict_reach(&v3, 0), 0);
    v3.n_routed_experts = 4096;
    v3.n_group = 1024; /* the most that a config may have */
    v3.topk_group = 512;
    CU_ASSERT_DOUBLE_EQUAL(predict_reach(&v3, 4096), 1, 1e-9);
}

/* Rows that the router chooses from random logits reach the ranks as often as predicted, with an
 * error of at most @share. */
static void compare_reach(const char *model, int ranks, double share) {
    enum { kRows = 500 };
    static float logits[ROUTE_MAX_EXPERTS];
    model_shape s = shape_named(model);
    router r = router_make(&s);
    unsigned short seed[3] = {4, 5, 6};
    int32_t expert[ROUTE_MAX_CHOSEN];
    float weight[ROUTE_MAX_CHOSEN];
    int reached = 0, here = s.n_routed_experts / ranks;
    for (int i = 0; i < kRows; i++) {
        bool used[64] = {false};
        for (int e = 0; e < r.experts; e++)
            logits[e] = (float)erand48(seed);
        router_choose(&r, logits, NULL, expert, weight);
        for (int k = 0; k < r.chosen; k++)
            if (expert[k] < s.n_routed_experts)
                used[expert[k] / here] = true;
        for (int k = 0; k < ranks; k++)
            reached += used[k];
    }
    double got = (double)reached / kRows / ranks, expected = predict_reach(&s, here);
    CU_ASSERT_DOUBLE_EQUAL(got / expected, 1, share);
}

/* The router of DeepSeek-V3 rates groups by their two best experts, which the function ignores. */
static void test_reach_of_draws(void) {
    for (int ranks = 8; ranks <= 32; ranks *= 4) {
        compare_reach("longcat-flash", ranks, 0.03);
        compare_reach("deepseek-v2-lite", ranks, 0.03);
        compare_reach("deepseek-v3", ranks, 0.11);
    }
}

/* If each rank has one of four experts and a row chooses two, the busiest rank always has one, and
 * the mean is a half. The normal distribution would give more than one. */
static void test_few_experts(void) {
    model_shape s = shape_named("deepseek-v2-lite");
    s.n_routed_experts = 4;
    s.num_experts_per_tok = 2;
    CU_ASSERT_DOUBLE_EQUAL(predict_busiest_rank(&s, 4, 1), 0.5, 1e-12);
    CU_ASSERT_EQUAL(predict_busiest_rank(&s, 1, 1), 0);
    s.n_routed_experts = 0;
    CU_ASSERT_EQUAL(predict_busiest_rank(&s, 4, 1), 0);
}

CU_TestInfo tests_predict_routing[] = {
    {"expected number of experts", test_expected_experts},
    {"experts of the busiest rank", test_busiest_rank},
    {"a rank with one expert", test_few_experts},
    {"ranks that a row needs", test_reach},
    {"ranks that drawn rows need", test_reach_of_draws},
    CU_TEST_INFO_NULL,
};
