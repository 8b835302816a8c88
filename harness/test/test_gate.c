#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/test/sanitized.h"
#include "harness/gate/cells.h"
#include "harness/gate/change.h"
#include "harness/gate/simulate.h"
#include "harness/gate/verdicts.h"
#include "harness/view/gate_verdicts.h"

#define NEAR(a, b, eps) CU_ASSERT_DOUBLE_EQUAL(a, b, eps)

/* ---- ranks, compared with counting ---- */

/* P(W+ >= w), counted over all 2^n signs. Values of equal size share the mean of their ranks. */
static double signed_brute(const double *x, int n, double limit) {
    double rank[16], w = 0;
    int reached = 0;
    for (int i = 0; i < n; i++) {
        double size = fabs(x[i] - limit);
        rank[i] = 0.5;
        for (int j = 0; j < n; j++)
            rank[i] += fabs(x[j] - limit) < size ? 1 : fabs(x[j] - limit) > size ? 0 : 0.5;
    }
    for (int i = 0; i < n; i++)
        w += x[i] > limit ? rank[i] : 0;
    for (int mask = 0; mask < 1 << n; mask++) {
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += mask >> i & 1 ? rank[i] : 0;
        reached += sum >= w;
    }
    return (double)reached / (double)(1 << n);
}

static void test_signed_ranks(void) {
    rng r = rng_make(3, 1);
    for (int n = 1; n <= 12; n++)
        for (int k = 0; k < 5; k++) {
            double x[12];
            for (int i = 0; i < n; i++)
                x[i] = rng_normal(&r) + 0.3 * k;
            NEAR(rank_p_above(x, (size_t)n, 0.2), signed_brute(x, n, 0.2), 1e-12);
        }
    CU_ASSERT_EQUAL(rank_p_above(NULL, 0, 0), 1.0);
    NEAR(rank_p_above((double[]){1, 1, 1}, 3, 1), 1, 0); /* no value differs from the limit */
}

/* P(U >= u), counted over all choices of the values that are y's. */
static double sum_brute(const double *x, int n, const double *y, int m, double limit) {
    double all[16];
    int reached = 0, choices = 0;
    double u = 0;
    for (int i = 0; i < n; i++)
        all[i] = x[i] + limit;
    for (int i = 0; i < m; i++)
        all[n + i] = y[i];
    for (int mask = 0; mask < 1 << (n + m); mask++) {
        double above = 0;
        if (__builtin_popcount((unsigned)mask) != m)
            continue;
        for (int i = 0; i < n + m; i++)
            for (int j = 0; j < n + m; j++)
                above += (mask >> i & 1) && !(mask >> j & 1) && all[i] > all[j];
        if (mask == ((1 << m) - 1) << n)
            u = above;
    }
    for (int mask = 0; mask < 1 << (n + m); mask++) {
        double above = 0;
        if (__builtin_popcount((unsigned)mask) != m)
            continue;
        for (int i = 0; i < n + m; i++)
            for (int j = 0; j < n + m; j++)
                above += (mask >> i & 1) && !(mask >> j & 1) && all[i] > all[j];
        choices++;
        reached += above >= u;
    }
    return (double)reached / choices;
}

static void test_rank_sums(void) {
    rng r = rng_make(3, 2);
    for (int n = 1; n <= 5; n++)
        for (int m = 1; m <= 5; m++) {
            double x[5], y[5];
            for (int i = 0; i < n; i++)
                x[i] = rng_normal(&r);
            for (int i = 0; i < m; i++)
                y[i] = rng_normal(&r) + 0.7;
            NEAR(rank_p_shift_above(x, (size_t)n, y, (size_t)m, 0.1), sum_brute(x, n, y, m, 0.1),
                 1e-12);
        }
}

/* Where the normal approximation is used, it rejects as often as alpha says. */
static void test_approximations(void) {
    rng r = rng_make(3, 3);
    enum { kRuns = 20000, kN = 30 };
    int paired = 0, shifted = 0;
    for (int k = 0; k < kRuns; k++) {
        double x[kN], y[kN];
        for (int i = 0; i < kN; i++) {
            x[i] = rng_normal(&r);
            y[i] = rng_normal(&r) + 0.5;
        }
        paired += rank_p_above(x, kN, 0) <= 0.05;
        shifted += rank_p_shift_above(x, kN, y, kN, 0.5) <= 0.05;
    }
    NEAR(paired / (double)kRuns, 0.049, 0.005); /* three standard deviations */
    NEAR(shifted / (double)kRuns, 0.049, 0.005);
    /* ties: as many above as below are no evidence */
    double tied[30];
    for (int i = 0; i < 30; i++)
        tied[i] = i % 2 ? 1 : -1;
    NEAR(rank_p_above(tied, 30, 0), 0.5, 0.02);
}

/* An interval covers the centre as often as its level says, and its lower end is where the test's
 * result changes. */
static void test_intervals(void) {
    rng r = rng_make(3, 4);
    static const size_t sizes[] = {8, 12, 24, 40};
    for (size_t s = 0; s < 4; s++) {
        int covered = 0, runs = 4000;
        size_t n = sizes[s];
        for (int k = 0; k < runs; k++) {
            double x[40];
            rank_estimate e;
            for (size_t i = 0; i < n; i++)
                x[i] = rng_normal(&r) + (rng_below(&r, 10) == 0 ? 5 * rng_normal(&r) : 0);
            CU_ASSERT_FATAL(rank_centre(x, n, 0.05, &e, NULL) == SNAP_OK);
            covered += e.lo <= 0 && 0 <= e.hi;
            CU_ASSERT(rank_p_above(x, n, e.lo - 1e-9) <= 0.05 + 0.003); /* 0.003 allows for the
                                                                           normal approximation
                                                                           above n = 25 */
            CU_ASSERT(rank_p_above(x, n, e.lo + 1e-9) > 0.05 - 0.003);
        }
        CU_ASSERT(covered > 0.89 * runs); /* at least 90 %, as the distribution is discrete */
        CU_ASSERT(covered < 0.95 * runs);
    }
    rank_estimate few;
    CU_ASSERT_FATAL(rank_centre((double[]){1, 2, 3}, 3, 0.05, &few, NULL) == SNAP_OK);
    CU_ASSERT(few.centre == 2 && isinf(few.lo) && isinf(few.hi));
    double x[] = {1, 2, 3, 4, 5, 6, 7}, y[] = {3, 4, 5, 6, 7, 8, 9};
    CU_ASSERT_FATAL(rank_shift(x, 7, y, 7, 0.05, &few, NULL) == SNAP_OK);
    CU_ASSERT(few.centre == 2 && few.lo <= 2 && few.hi >= 2 && few.lo > -2);
}

/* With ties, the p value is that of counting all signs, with the mean rank for equal sizes. */
static void test_signed_ties(void) {
    rng r = rng_make(3, 5);
    for (int n = 2; n <= 12; n++)
        for (int k = 0; k < 20; k++) {
            double x[12];
            for (int i = 0; i < n; i++)
                x[i] = (rng_below(&r, 2) ? 1 : -1) * (double)(1 + rng_below(&r, 3));
            NEAR(rank_p_above(x, (size_t)n, 0), signed_brute(x, n, 0), 1e-12);
        }
}

/* The smallest p value is that of values which all lie above the limit. */
static void test_least_p(void) {
    double x[RANK_MAX];
    for (size_t n = 1; n <= RANK_MAX; n++) {
        x[n - 1] = (double)n;
        NEAR(rank_least_p(n) / rank_p_above(x, n, 0), 1, 1e-9);
    }
}

/* ---- decisions ---- */

static gate_cell cell_of(const double *x, size_t n, double threshold) {
    return (gate_cell){.n = n, .test[GATE_QUARTILE] = {.x = x, .threshold = threshold}};
}

static void test_decide(void) {
    gate_limits l = GATE_DEFAULTS;
    double slow[12], same[12], open[12], at = gate_threshold(&l, 1e6);
    for (int i = 0; i < 12; i++) {
        double wave = 0.001 * (i % 5 - 2) + 0.0001 * i;
        slow[i] = 0.05 + wave;
        same[i] = wave;
        open[i] = 0.02 + (i % 2 ? 0.01 : -0.01) + wave;
    }
    gate_cell cells[3] = {cell_of(slow, 12, at), cell_of(same, 12, at), cell_of(open, 12, at)};
    CU_ASSERT(gate_look(cells, 3, &l, NULL) == SNAP_OK);
    CU_ASSERT(cells[0].state == GATE_REGRESSED && cells[1].state == GATE_OK);
    CU_ASSERT(cells[2].state == GATE_INCONCLUSIVE && gate_open(cells, 3) == 1);
    /* three tests in each of three cells */
    NEAR(cells[0].test[0].p_holm, 9 * cells[0].test[0].p_slower, 1e-12);
    NEAR(gate_threshold(&l, 1e6), log(1.02), 1e-12);
    NEAR(gate_threshold(&l, 1e4), log(1.05), 1e-12); /* half a microsecond of ten microseconds */
    rank_estimate e[2] = {{log(1.1), log(1.1) - 0.01, log(1.1) + 0.01},
                          {log(1 / 1.1), log(1 / 1.1) - 0.01, log(1 / 1.1) + 0.01}};
    gate_mean mean = gate_mean_of(e, 2);
    NEAR(mean.ratio, 1, 1e-12);
    NEAR(log(mean.hi), 0.01 / sqrt(2), 1e-9);
}

/* The mean and p99 raise an alarm, but never keep a cell open. */
static void test_decide_tails(void) {
    gate_limits l = GATE_DEFAULTS;
    double same[12], slow[12], wild[12];
    for (int i = 0; i < 12; i++) {
        same[i] = 0.001 * (i % 5 - 2) + 0.0001 * i;
        slow[i] = 0.5 + same[i];
        wild[i] = (i % 2 ? 0.5 : -0.5) + same[i];
    }
    gate_cell cells[3] = {cell_of(same, 12, 0.02), cell_of(same, 12, 0.02),
                          cell_of(same, 12, 0.02)};
    cells[0].test[GATE_MEAN] = (gate_test){.x = slow, .threshold = 0.1};
    cells[1].test[GATE_MEAN] = (gate_test){.x = wild, .threshold = 0.1};
    cells[2].test[GATE_P99] = (gate_test){.x = slow};
    CU_ASSERT(gate_look(cells, 3, &l, NULL) == SNAP_OK);
    CU_ASSERT(cells[0].state == GATE_REGRESSED && cells[0].test[GATE_QUARTILE].state == GATE_OK);
    CU_ASSERT(cells[1].state == GATE_OK && cells[1].test[GATE_MEAN].state == GATE_INCONCLUSIVE);
    CU_ASSERT(cells[2].state == GATE_REGRESSED);
}

/* Limits are refused exactly if a gate cannot find one cell that is much slower in one statistic.
 * The number of sessions in the message is the smallest with which it can. */
static void test_limits(void) {
    static const gate_limits some[] = {{0.02, 500, 0.05, 5, 1},
                                       {0.02, 500, 0.05, 12, 3},
                                       {0.02, 500, 0.0001, 5, 2},
                                       {0, 0, 0.4, 5, 1},
                                       {0.02, 500, 1e-6, 12, 1}};
    double slow[64];
    for (int i = 0; i < 64; i++)
        slow[i] = 1 + 0.001 * i;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        for (size_t n = 1; n <= 6; n += 5) {
            gate_limits l = some[i];
            snap_err err = {0};
            snap_status st = gate_limits_check(&l, n, &err);
            /* k = 0: the number of sessions of `some`; k = 1: the number that the message names */
            for (int k = 0; k < 2; k++) {
                gate_cell cells[6] = {0};
                cells[0] = cell_of(slow, gate_sessions_at(&l, l.looks - 1), 0.02);
                CU_ASSERT(gate_look(cells, n, &l, NULL) == SNAP_OK);
                CU_ASSERT_EQUAL(st == SNAP_OK, cells[0].state == GATE_REGRESSED);
                CU_ASSERT_EQUAL(gate_limits_check(&l, n, NULL), st);
                const char *advice = strstr(err.text, "use --sessions ");
                CU_ASSERT(err.code == SNAP_OK || advice != NULL);
                if (!advice)
                    break;
                l.sessions = strtoul(advice + 15, NULL, 10);
                st = SNAP_OK;
                gate_limits fewer = l;
                fewer.sessions--;
                CU_ASSERT(gate_limits_check(&fewer, n, NULL) == SNAP_E_USAGE);
            }
        }
    gate_limits l = GATE_DEFAULTS;
    l.sessions = 400;
    CU_ASSERT(gate_limits_check(&l, 1, NULL) == SNAP_E_USAGE);
    /* Even RANK_MAX sessions cannot reach this level. */
    for (int looks = 1; looks <= 7; looks += 3) {
        snap_err err = {0};
        l = (gate_limits){0.02, 500, 1e-90, 5, looks};
        CU_ASSERT(gate_limits_check(&l, 1, &err) == SNAP_E_USAGE);
        CU_ASSERT_PTR_NULL(strstr(err.text, "use --sessions"));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "use a larger --alpha"));
    }
    /* Only RANK_MAX sessions can reach this level. */
    snap_err err = {0};
    l = (gate_limits){0.02, 500, 21 * rank_least_p(RANK_MAX), 5, 7};
    CU_ASSERT(gate_limits_check(&l, 1, &err) == SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "use --sessions 8 or more"));
}

/* ---- rare slow steps ---- */

enum { kTailSessions = 12, kTailSteps = 200 };

/* Steps of about 20 us, of which one in a thousand is disturbed; every @every-th step of arm B
 * takes 20 ms more (0: none). */
static void fill_steps(float *a, float *b, int every, uint64_t seed) {
    rng r = rng_make(seed, 9);
    for (int i = 0; i < kTailSessions * kTailSteps; i++) {
        a[i] = (float)(2e4 + 200 * rng_normal(&r) + (rng_below(&r, 1000) ? 0 : 4e6));
        b[i] = (float)(2e4 + 200 * rng_normal(&r) + (rng_below(&r, 1000) ? 0 : 4e6));
        b[i] += every && i % every == every - 1 ? 2e7F : 0;
    }
}

static void test_tail(void) {
    static float a[kTailSessions * kTailSteps], b[kTailSessions * kTailSteps];
    tail_steps t = {{a, b}, kTailSessions, kTailSteps}, swapped = {{b, a}, t.sessions, t.steps};
    double x[kTailSessions], y[kTailSessions], mean[kTailSessions], p99, each[kTailSessions];
    fill_steps(a, b, 97, 1);
    tail_means(&t, 1, mean);
    CU_ASSERT(mean[0] > 1.9e5 && mean[0] < 6e5); /* two spikes in 200 steps */
    CU_ASSERT(tail_p99(&t, 0, &p99, each, NULL) == SNAP_OK);
    CU_ASSERT(p99 < 2.1e4 && each[0] < 5e6);
    CU_ASSERT(tail_p99(&t, 1, &p99, NULL, NULL) == SNAP_OK && p99 > 1e5);
    CU_ASSERT(tail_shares(&t, 0.1, x, NULL) == SNAP_OK);
    CU_ASSERT(rank_p_above(x, kTailSessions, 0) < 0.001);
    /* Exchanging the arms exchanges the signs, if there is no threshold. */
    CU_ASSERT(tail_shares(&t, 0, x, NULL) == SNAP_OK && tail_shares(&swapped, 0, y, NULL) == 0);
    for (int i = 0; i < kTailSessions; i++)
        NEAR(x[i], -y[i], 0);
    NEAR(tail_wander((double[]){1, 2, 1, 1, 4}, 5), (log(2) + log(2)) / 2, 1e-12);
    CU_ASSERT(tail_wander(mean, 1) == 0);
    int alarms = 0;
    for (uint64_t k = 0; k < 400; k++) {
        fill_steps(a, b, 0, 2 + k);
        CU_ASSERT(tail_shares(&t, 0, x, NULL) == SNAP_OK);
        alarms += rank_p_above(x, kTailSessions, 0) <= 0.05;
    }
    CU_ASSERT(alarms <= 33); /* 5 % of 400, and three standard deviations */
}

/* A cell with the steps of arms A and B that fill_steps() makes without spikes. */
static gate_timed timed_cell(void) {
    gate_timed c = {.n = kTailSessions, .steps = kTailSteps / GATE_TURNS};
    for (int arm = 0; arm < 2; arm++) {
        c.ns[arm] = calloc(kTailSessions * GATE_TURNS, sizeof *c.ns[arm]);
        c.steps_ns[arm] = calloc((size_t)kTailSessions * kTailSteps, sizeof *c.steps_ns[arm]);
        CU_ASSERT_FATAL(c.ns[arm] && c.steps_ns[arm]);
        for (int i = 0; i < kTailSessions * GATE_TURNS; i++)
            c.ns[arm][i] = 2e4;
    }
    fill_steps(c.steps_ns[0], c.steps_ns[1], 0, 7);
    return c;
}

/* A build that waits 20 ms in every 97th call. Its lower quartile is that of the other build. */
static void test_spikes_are_found(void) {
    static const gate_slowing spikes = {.spike_ms = 20, .spike_every = 97}, none = {0};
    gate_limits l = GATE_DEFAULTS;
    gate_timed c = timed_cell(), slowed;
    gate_cell tests = {0};
    CU_ASSERT_FATAL(gate_timed_slowed(&c, false, &spikes, 1, &slowed, NULL) == SNAP_OK);
    CU_ASSERT(gate_timed_tests(&slowed, &l, &tests, NULL) == SNAP_OK);
    CU_ASSERT(gate_look(&tests, 1, &l, NULL) == SNAP_OK);
    CU_ASSERT(tests.test[GATE_QUARTILE].state == GATE_OK);
    CU_ASSERT(tests.test[GATE_MEAN].state == GATE_REGRESSED && tests.state == GATE_REGRESSED);
    CU_ASSERT(tests.test[GATE_P99].state == GATE_REGRESSED);
    gate_timed_free_one(&slowed);
    for (int swap = 0; swap < 2; swap++) {
        tests = (gate_cell){0};
        CU_ASSERT_FATAL(gate_timed_slowed(&c, swap, &none, 1, &slowed, NULL) == SNAP_OK);
        CU_ASSERT(gate_timed_tests(&slowed, &l, &tests, NULL) == SNAP_OK);
        CU_ASSERT(gate_look(&tests, 1, &l, NULL) == SNAP_OK && tests.state == GATE_OK);
        gate_timed_free_one(&slowed);
    }
    gate_timed_free_one(&c);
}

/* ---- false alarms: ten thousand comparisons from recorded noise ---- */

typedef struct {
    gate_noise cells[16];
    double x[16][4096];
    size_t n;
} recorded;

static recorded *load_noise(void) {
    recorded *rec = calloc(1, sizeof *rec);
    js *all = js_parse_file("harness/test/fixtures/gate_noise.json", 1 << 22, NULL);
    CU_ASSERT_FATAL(rec && js_len(all) >= 4 && js_len(all) <= 16);
    for (rec->n = 0; rec->n < js_len(all); rec->n++) {
        const js *cell = js_at(all, rec->n), *x = js_get_array(cell, "log_ratios");
        CU_ASSERT_FATAL(js_len(x) >= 50 && js_len(x) <= 2048);
        size_t n = js_len(x);
        for (size_t i = 0; i < n; i++) {
            rec->x[rec->n][i] = js_num(js_at(x, i));
            rec->x[rec->n][n + i] = -rec->x[rec->n][i]; /* the arms exchanged */
        }
        rec->cells[rec->n] = (gate_noise){
            .x = {rec->x[rec->n]}, .n = 2 * n, .baseline_ns = js_get_num(cell, "baseline_ns", 0)};
    }
    js_free(all);
    return rec;
}

static double share(size_t k, size_t n) {
    return (double)k / (double)n;
}

/* The shares are not compared under a sanitizer: see SIMULATED_RUNS(). */
static void test_false_alarms(void) {
    enum { kRuns = SIMULATED_RUNS(10000) };
    recorded *rec = load_noise();
    gate_limits l = GATE_DEFAULTS;
    gate_rates rates;
    double effects[16] = {0};
    CU_ASSERT(gate_simulate(rec->cells, effects, rec->n, &l, kRuns, 1, &rates, NULL) == SNAP_OK);
    CU_ASSERT(kSanitized || share(rates.alarms, rates.comparisons) <= 0.05);
    CU_ASSERT(kSanitized || share(rates.good, rates.comparisons) >= 0.95);
    printf("\n    %d comparisons of equal arms, %zu cells: %.4f with a false alarm, %.4f all ok,"
           " %.1f sessions per cell\n",
           kRuns, rec->n, share(rates.alarms, rates.comparisons),
           share(rates.good, rates.comparisons), rates.sessions);
    /* The hardest case: every cell is exactly at its threshold. */
    for (size_t i = 0; i < rec->n; i++)
        effects[i] = gate_threshold(&l, rec->cells[i].baseline_ns);
    CU_ASSERT(gate_simulate(rec->cells, effects, rec->n, &l, kRuns, 2, &rates, NULL) == SNAP_OK);
    CU_ASSERT(kSanitized || share(rates.alarms, rates.comparisons) <= 0.05);
    printf("    with every cell exactly at its threshold: %.4f\n",
           share(rates.alarms, rates.comparisons));
    free(rec);
}

static void test_power(void) {
    enum { kRuns = SIMULATED_RUNS(2000), kSearchRuns = SIMULATED_RUNS(400) };
    recorded *rec = load_noise();
    gate_limits l = GATE_DEFAULTS;
    gate_rates rates;
    double least = 1;
    for (size_t i = 0; i < rec->n; i++) {
        double effects[16] = {0};
        effects[i] = log(1.05);
        CU_ASSERT(gate_simulate(rec->cells, effects, rec->n, &l, kRuns, 3, &rates, NULL) ==
                  SNAP_OK);
        least = fmin(least, share(rates.cells, rates.comparisons));
    }
    CU_ASSERT(kSanitized || least >= 0.95);
    printf(
        "\n    one cell of %zu slower by 5 %%: found in %.4f of comparisons where it is hardest\n",
        rec->n, least);
    double smallest;
    CU_ASSERT(gate_smallest_effect(rec->cells, rec->n, &l, 0.95, kSearchRuns, 4, &smallest, NULL) ==
              SNAP_OK);
    CU_ASSERT(kSanitized || (smallest > 0.02 && smallest < 0.05));
    printf("    smallest slow-down found 19 times of 20: %.2f %%\n", 100 * smallest);
    free(rec);
}

/* At an alpha of 0.3, the simulation finds false alarms in more than 8 % of comparisons. So it
 * can distinguish a gate that keeps an error rate of 5 % from one that does not. */
static void test_simulation_can_fail(void) {
    double x[GATE_STATISTICS][400], effects[8];
    gate_noise noise[8];
    gate_rates rates;
    rng r = rng_make(8, 0);
    gate_limits greedy = GATE_DEFAULTS;
    for (int i = 0; i < GATE_STATISTICS * 400; i++)
        x[i / 400][i % 400] = 0.01 * rng_normal(&r);
    for (int i = 0; i < 8; i++) {
        noise[i] = (gate_noise){.x = {x[0], x[1], x[2]}, .n = 400, .baseline_ns = 1e6};
        effects[i] = gate_threshold(&greedy, 1e6);
    }
    greedy.alpha = 0.3;
    CU_ASSERT(gate_simulate(noise, effects, 8, &greedy, 1000, 5, &rates, NULL) == SNAP_OK);
    CU_ASSERT(share(rates.alarms, rates.comparisons) > 0.08);
}

/* ---- change points ---- */

/* The definition of the weighted energy distance, computed term by term. */
static double distance_brute(const double *x, size_t n, size_t at) {
    double across = 0, left = 0, right = 0, a = (double)at, b = (double)(n - at);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double d = fabs(x[i] - x[j]);
            across += i < at && j >= at ? d : 0;
            left += i < j && j < at ? d : 0;
            right += at <= i && i < j ? d : 0;
        }
    double e = 2 * across / (a * b) - (at > 1 ? 2 * left / (a * (a - 1)) : 0) -
               (n - at > 1 ? 2 * right / (b * (b - 1)) : 0);
    return a * b / (a + b) * e;
}

static void test_change_distance(void) {
    rng r = rng_make(5, 0);
    double x[12];
    for (int i = 0; i < 12; i++)
        x[i] = rng_normal(&r);
    for (size_t at = 1; at < 12; at++)
        NEAR(change_distance(x, 12, at), distance_brute(x, 12, at), 1e-9);
}

static void test_change_points(void) {
    rng r = rng_make(5, 1);
    change_point points[CHANGE_MAX];
    size_t found;
    double x[90];
    for (int i = 0; i < 90; i++)
        x[i] = 0.01 * rng_normal(&r) + (i >= 30 ? 0.05 : 0) - (i >= 65 ? 0.08 : 0);
    x[10] += 0.5; /* one outlier is no change */
    CU_ASSERT_FATAL(change_find(x, 90, 0.01, 1, points, &found, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(found, 2);
    CU_ASSERT(points[0].at >= 29 && points[0].at <= 31);
    CU_ASSERT(points[1].at >= 64 && points[1].at <= 66);
    int alarms = 0;
    for (int k = 0; k < 200; k++) {
        for (int i = 0; i < 30; i++)
            x[i] = rng_normal(&r);
        CU_ASSERT_FATAL(change_find(x, 30, 0.05, (uint64_t)k, points, &found, NULL) == SNAP_OK);
        alarms += found > 0;
    }
    CU_ASSERT(alarms <= 20); /* 5 % of 200 are 10, and three standard deviations are 9.2 */
    CU_ASSERT(change_find(x, 5, 0.05, 1, points, &found, NULL) == SNAP_OK && found == 0);
}

/* ---- exit codes and outputs of verdicts ---- */

static js *rows_of(const char *const (*rows)[3], size_t n) {
    js *all = js_new_array();
    for (size_t i = 0; i < n; i++)
        CU_ASSERT(js_push_new(
            all, verdict_new(rows[i][0], rows[i][1], rows[i][2], "because <&> of\n| it")));
    return all;
}

static snap_status status_of(const char *const (*rows)[3], size_t n, snap_err *err) {
    js *all = rows_of(rows, n);
    snap_status st = verdict_status(all, err);
    js_free(all);
    return st;
}

static void test_status(void) {
    static const char *const rows[][3] = {
        {"speed", "h", "wrong"},     {"environment", "g", "invalid"}, {"quality", "f", "regressed"},
        {"speed", "e", "regressed"}, {"speed", "d", "invalid"},       {"quality", "c", "missing"},
        {"speed", "b", "noise"},     {"geomean", "a", NULL},
    };
    static const snap_status want[] = {SNAP_E_WRONG, SNAP_E_ENV,  SNAP_E_WORSE, SNAP_E_SLOWER,
                                       SNAP_E_ENV,   SNAP_E_OPEN, SNAP_OK,      SNAP_OK};
    static const int codes[] = {7, 6, 5, 1, 6, 4, 0, 0};
    for (size_t i = 0; i < 8; i++) {
        snap_err err = {0};
        snap_status st = status_of(rows + i, 8 - i, &err);
        CU_ASSERT_EQUAL(st, want[i]);
        CU_ASSERT_EQUAL(err_exit_code(st), codes[i]);
        CU_ASSERT(st == SNAP_OK || strstr(err.text, rows[i][1]));
    }
}

/* A test case, an annotation and an issue name the statistic: three rows of one cell differ in
 * nothing else. A row without a verdict is neither good nor bad. */
static void test_statistics_in_outputs(void) {
    js *all = js_new_array();
    buf out = {0};
    for (int s = 0; s < GATE_STATISTICS; s++) {
        verdict_record v =
            verdict_start("speed", "fp8 kernel", "regressed", NULL, VERDICT_COMPARED);
        v.statistic = gate_statistic_name((gate_statistic)s);
        CU_ASSERT(js_push_new(all, record_write(&verdict_type, &v)));
    }
    CU_ASSERT(js_push_new(all, verdict_of_mean(&(rank_estimate){log(40), log(39), log(41)}, 1)));
    static void (*const writers[])(const js *, buf *) = {verdicts_junit, verdicts_github};
    static const char *const want[][3] = {
        {"name=\"fp8 kernel, lower quartile\"", "name=\"fp8 kernel, mean\"",
         "name=\"fp8 kernel, p99\""},
        {"fp8 kernel%2C lower quartile::", "fp8 kernel%2C mean::", "fp8 kernel%2C p99::"}};
    for (int w = 0; w < 2; w++) {
        writers[w](all, &out);
        for (int s = 0; s < GATE_STATISTICS; s++)
            CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), want[w][s]));
        buf_clear(&out);
    }
    verdicts_markdown(all, "gate", &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), "0 ok, **3 regressed**"));
    buf_clear(&out);
    verdicts_gitlab(all, "gate.json", &out);
    js *issues = js_parse(buf_str(&out), out.len, "issues", NULL);
    CU_ASSERT_EQUAL_FATAL(js_len(issues), 3);
    CU_ASSERT_STRING_NOT_EQUAL(js_get_str(js_at(issues, 0), "fingerprint"),
                               js_get_str(js_at(issues, 1), "fingerprint"));
    CU_ASSERT(js_get_str(js_at(all, 3), "verdict") == NULL);
    snap_err err = {0};
    CU_ASSERT(verdict_status(all, &err) == SNAP_E_SLOWER);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "3 of 3 verdicts regressed"));
    js_free(issues);
    buf_release(&out);
    js_free(all);
}

/* A cell whose output was wrong at its end has one row, without any time or ratio. */
static void test_wrong_cell_has_no_time(void) {
    static const gate_side arms[2] = {{.name = "a"}, {.name = "b"}};
    static const char *const times[] = {"ratio",       "ci90",
                                        "baseline_ns", "current_ns",
                                        "log_ratios",  "baseline_samples_ns",
                                        "slow_shares", "current_samples_ns"};
    gate_timed t = timed_cell();
    gate_cell c = {0};
    gate_estimate est[GATE_STATISTICS] = {0};
    js *rows = js_new_array();
    (void)snprintf(t.about[0].status, sizeof t.about[0].status, "passed");
    (void)snprintf(t.about[1].status, sizeof t.about[1].status, "failed");
    (void)snprintf(t.about[1].reason, sizeof t.about[1].reason, "the output has changed");
    (void)snprintf(t.name, sizeof t.name, "cell");
    CU_ASSERT(verdicts_of_cell(&t, &c, est, arms, rows) && js_len(rows) == 1);
    CU_ASSERT_STRING_EQUAL(js_get_str(js_at(rows, 0), "verdict"), "wrong");
    CU_ASSERT_STRING_EQUAL(js_get_str(js_at(rows, 0), "reason"), "b: the output has changed");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        CU_ASSERT_PTR_NULL(js_get(js_at(rows, 0), times[i]));
    js_free(rows);
    gate_timed_free_one(&t);
}

static void test_outputs(void) {
    static const char *const rows[][3] = {{"speed", "fp8 <kernel>, \"H16\"", "regressed"},
                                          {"quality", "aime|24", "inconclusive"},
                                          {"speed", "same", "ok"}};
    js *all = rows_of(rows, 3);
    buf out = {0};
    verdicts_junit(all, &out);
    CU_ASSERT(strstr(buf_str(&out), "tests=\"3\" failures=\"1\" errors=\"1\"") != NULL);
    CU_ASSERT(strstr(buf_str(&out), "name=\"fp8 &lt;kernel&gt;, &quot;H16&quot;\"") != NULL);
    buf_clear(&out);
    verdicts_markdown(all, "gate", &out);
    CU_ASSERT(strstr(buf_str(&out), "aime\\|24") != NULL);
    CU_ASSERT(strstr(buf_str(&out), "1 ok, **1 regressed**, **1 inconclusive**") != NULL);
    buf_clear(&out);
    verdicts_github(all, &out);
    CU_ASSERT_STRING_EQUAL(
        buf_str(&out),
        "::error title=snapmla gate%3A fp8 <kernel>%2C \"H16\"::regressed; because <&> of\\n| it\n"
        "::warning title=snapmla gate%3A aime|24::inconclusive; because <&> of\\n| it\n");
    buf_clear(&out);
    verdicts_gitlab(all, "gate.json", &out);
    js *issues = js_parse(buf_str(&out), out.len, "issues", NULL);
    CU_ASSERT_EQUAL(js_len(issues), 2);
    CU_ASSERT_STRING_EQUAL(js_get_str(js_at(issues, 0), "severity"), "major");
    CU_ASSERT_EQUAL(strlen(js_get_str(js_at(issues, 0), "fingerprint")), 64);
    js_free(issues);
    buf_release(&out);
    js_free(all);
}

CU_TestInfo tests_gate[] = {
    {"signed ranks, compared with counting", test_signed_ranks},
    {"rank sums, compared with counting", test_rank_sums},
    {"signed ranks with ties", test_signed_ties},
    {"the smallest p value of n sessions", test_least_p},
    {"normal approximations of rank tests", test_approximations},
    {"intervals cover the centre as often as stated", test_intervals},
    {"verdicts on slow, equal and uncertain cells", test_decide},
    {"mean and p99 only raise alarms", test_decide_tails},
    {"limits that cannot decide", test_limits},
    {"tails of steps", test_tail},
    {"rare slow steps are found", test_spikes_are_found},
    {"false alarms under recorded noise", test_false_alarms},
    {"the power to find a change of 5 %", test_power},
    {"the simulation finds too many false alarms", test_simulation_can_fail},
    {"energy distance, compared with its definition", test_change_distance},
    {"change points", test_change_points},
    {"exit codes", test_status},
    {"verdicts as JUnit, Markdown and CI annotations", test_outputs},
    {"statistics in outputs", test_statistics_in_outputs},
    {"a wrong cell has no time", test_wrong_cell_has_no_time},
    CU_TEST_INFO_NULL};
