/* Tests verdicts and targets of servers whose speed varies slowly, so that neighbouring slices of
 * time are correlated. Blocks are then the units. The truth is that of the simulations. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/test/sanitized.h"
#include "harness/serving/batch_means.h"
#include "harness/serving/flags.h"
#include "harness/test/serving_sim.h"

static const double kTpot = 0.016, kSpread = 0.007, kBlock = 15;

/* How the speed of a server varies. Period 0: an AR(1) process that keeps 0.8 of itself for each
 * half second. Otherwise a sine with this period, in blocks. */
typedef struct {
    const char *name;
    double period;
} process;

static const process kProcesses[] = {{"AR(1), 0.8", 0},
                                     {"sine of 0.8 blocks", 0.8},
                                     {"sine of 1.3 blocks", 1.3},
                                     {"sine of 2 blocks", 2}};
enum { PROCESSES = sizeof kProcesses / sizeof *kProcesses };

/* The true percentile 75 of tpot. */
static double true_p75(const process *p) {
    const double normal = 0.6744897502, sine = 0.7071067812; /* 75 % of the time lies below */
    return kTpot * exp(kSpread * (p->period > 0 ? sine : normal));
}

/* Measures simulated blocks of two arms. The tpot of the second arm is @times as long as that of
 * the first. */
static serving_measured *measure(const process *p, int blocks, double times, uint64_t seed,
                                 const serving_measure_options *o) {
    sim_log log = {0};
    serving_measured *l = NULL;
    snap_err err = {0};
    for (int b = 0; b < blocks; b++)
        for (int a = 0; a < o->arms; a++) {
            const sim_block at = {.arm = a,
                                  .block = b,
                                  .rate = 30,
                                  .seconds = kBlock,
                                  .noise = 2 * seed + (uint64_t)a};
            double tpot = a ? times * kTpot : kTpot;
            if (p->period > 0)
                sim_wave(&log, &at, tpot, kSpread, p->period * kBlock);
            else
                sim_drifting(&log, &at, tpot, kSpread);
        }
    CU_ASSERT_FATAL(serving_measure_point(log.at, log.n, 0, o, &l, &err) == SNAP_OK);
    sim_release(&log);
    return l;
}

/* ---- verdicts ---- */

typedef struct {
    int flagged, unsteady;
    int faster, slower; /* runs in which some metric has this verdict */
    int tpot_faster, tpot_equal;
} counts;

static counts verdicts_of(const process *p, int blocks, double times, int runs) {
    const int tpot = serving_metric_of(SERVING_TPOT, SERVING_P50);
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    counts c = {0};
    for (int i = 0; i < runs; i++) {
        serving_measured *l = measure(p, blocks, times, (uint64_t)i, &o);
        bool faster = false, slower = false;
        for (int m = 0; m < SERVING_METRICS; m++) {
            const serving_difference *d = &l->difference[1][m];
            faster |= d->judged && d->verdict == SERVING_FASTER;
            slower |= d->judged && d->verdict == SERVING_SLOWER;
        }
        c.faster += faster;
        c.slower += slower;
        c.flagged += l->arm[0].correlated;
        c.unsteady += !l->arm[0].steady || !l->arm[1].steady;
        c.tpot_faster += l->difference[1][tpot].verdict == SERVING_FASTER;
        c.tpot_equal += l->difference[1][tpot].verdict == SERVING_EQUAL;
        free(l);
    }
    return c;
}

static int runs_of(int otherwise) {
    const char *runs = getenv("SHOW_FIGURES");
    int n = runs ? atoi(runs) : 0;
    return n > 1 ? n : kSanitized ? otherwise / 5 : otherwise;
}

/* With 5 % of wrong verdicts, more than 5 of 40 runs have a probability of about 1 %. */
static void expect_at_most(int wrong, int runs, const char *what, const process *p) {
    if (wrong * 8 > runs)
        printf("\n%s: %s in %d of %d runs", p->name, what, wrong, runs);
    CU_ASSERT(wrong * 8 <= runs);
}

static void test_verdicts(void) {
    const int runs = runs_of(40);
    for (int i = 0; i < PROCESSES; i++) {
        const process *p = &kProcesses[i];
        counts equal = verdicts_of(p, 2, 1, runs), margin = verdicts_of(p, 2, 1.05, runs);
        counts apart = verdicts_of(p, 2, 0.8, runs);
        expect_at_most(equal.faster + equal.slower, runs, "a wrong difference", p);
        expect_at_most(margin.tpot_equal, runs, "wrongly equal", p);
        CU_ASSERT_EQUAL(apart.slower, 0);
        CU_ASSERT(2 * apart.tpot_faster > runs - apart.unsteady);
        if (getenv("SHOW_FIGURES"))
            printf("\n%-22s flagged %.3f unsteady %.3f faster %.4f slower %.4f equal at margin "
                   "%.4f; 20 %% apart: found %.3f",
                   p->name, (double)equal.flagged / runs, (double)equal.unsteady / runs,
                   (double)equal.faster / runs, (double)equal.slower / runs,
                   (double)margin.tpot_equal / runs, (double)apart.tpot_faster / runs);
    }
}

/* ---- targets ---- */

typedef struct {
    int flagged, meets, fails, doubt;
} states;

/* The states at a limit of @times the true percentile. A state in doubt does not count. */
static states states_of(const process *p, int blocks, double times, int runs) {
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    states s = {0};
    o.arms = 1;
    o.states_only = true;
    o.targets = (slo_list){{{SERVING_TPOT, 0.75, times * true_p75(p)}}, 1};
    for (int i = 0; i < runs; i++) {
        serving_measured *l = measure(p, blocks, 1, (uint64_t)i, &o);
        bool doubt = serving_flag_against_state(&l->arm[0])[0];
        s.flagged += l->arm[0].correlated;
        s.doubt += doubt;
        s.meets += !doubt && l->arm[0].state == SLO_MEETS;
        s.fails += !doubt && l->arm[0].state == SLO_FAILS;
        free(l);
    }
    return s;
}

static void test_targets(void) {
    const int runs = runs_of(80);
    for (int i = 0; i < PROCESSES; i++)
        for (int blocks = 2; blocks <= 4; blocks++) {
            const process *p = &kProcesses[i];
            states low = states_of(p, blocks, 0.997, runs);
            states high = states_of(p, blocks, 1.003, runs);
            states far = states_of(p, blocks, 1.1, runs);
            CU_ASSERT(40 * (low.meets + high.fails) <= 2 * runs); /* 4 of 160, promised: 0.9 */
            CU_ASSERT_EQUAL(far.fails, 0);
            if (blocks > 2)
                CU_ASSERT(10 * far.meets >= 9 * (runs - far.doubt));
            if (getenv("SHOW_FIGURES"))
                printf("\n%-22s %d blocks, flagged %.3f in doubt %.3f; wrong: meets %.4f "
                       "fails %.4f; 10 %% within it: meets %.3f",
                       p->name, blocks, (double)low.flagged / runs, (double)low.doubt / runs,
                       (double)low.meets / runs, (double)high.fails / runs,
                       (double)far.meets / runs);
        }
}

/* ---- the rules for blocks ---- */

/* Student's t, from tables: 12.706 for 1 and 4.303 for 2 degrees of freedom at 95 %. With 1 degree,
 * the distribution is that of Cauchy. */
static void test_intervals_of_blocks(void) {
    const double x[] = {1, 3, 2}, gap[] = {1, (double)NAN}, same[] = {2, 2};
    double ci[2];
    batch_interval(x, 2, 0.95, ci);
    CU_ASSERT_DOUBLE_EQUAL(ci[0], 2 - 12.7062, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(ci[1], 2 + 12.7062, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(batch_p(x, 2), 1 - 2 / acos(-1.0) * atan(2.0), 1e-9);
    batch_interval(x, 3, 0.95, ci);
    CU_ASSERT_DOUBLE_EQUAL(ci[1], 2 + 4.30265 / sqrt(3), 1e-4);
    batch_interval(x, 1, 0.95, ci);
    CU_ASSERT(isnan(ci[0]) && isnan(ci[1]) && isnan(batch_p(x, 1)));
    batch_interval(gap, 2, 0.95, ci);
    CU_ASSERT(isnan(ci[0]) && isnan(ci[1]) && isnan(batch_p(gap, 2)));
    CU_ASSERT(batch_p(same, 2) <= 0);
    ci[0] = 0.9, ci[1] = 1.1;
    batch_widen(ci, (double[]){1, 1.2});
    CU_ASSERT(ci[0] == 0.9 && ci[1] == 1.2);
    batch_widen(ci, (double[]){(double)NAN, 1});
    CU_ASSERT(isnan(ci[0]) && ci[1] == 1.2);
}

static slo_result test_blocks(double a, double b, slo_state before, double share, double limit_s) {
    const slo_target t = {SERVING_TPOT, 0.75, limit_s};
    const double logs[] = {log(a), log(b)};
    slo_result r = {.state = before, .share = share, .value = (double)NAN};
    slo_test_blocks(&t, logs, 2, 8, 0.99, &r);
    return r;
}

/* Student's t is 63.657 for 1 degree of freedom at 99 %, from tables. */
static void test_targets_by_blocks(void) {
    slo_result r = test_blocks(0.010, 0.01001, SLO_MEETS, 1, 0.011);
    CU_ASSERT(r.state == SLO_MEETS && r.by_blocks);
    CU_ASSERT_DOUBLE_EQUAL(log(r.value_ci[1] / r.value), 63.6567 * log(1.001) / 2, 1e-6);
    CU_ASSERT_FALSE(r.unconfirmed);
    r = test_blocks(0.010, 0.0101, SLO_MEETS, 1, 0.011);
    CU_ASSERT(r.state == SLO_OPEN && r.unconfirmed);
    CU_ASSERT(test_blocks(0.010, 0.01001, SLO_FAILS, 0, 0.009).state == SLO_FAILS);
    CU_ASSERT(test_blocks(0.010, 0.01001, SLO_FAILS, 0, 0.0099).state == SLO_OPEN);
    /* blocks that contradict the slices leave the target open */
    CU_ASSERT(test_blocks(0.010, 0.01001, SLO_FAILS, 0.5, 0.011).state == SLO_OPEN);
    /* an open target is decided only if all values lie on one side of the limit */
    CU_ASSERT(test_blocks(0.010, 0.01001, SLO_OPEN, 1, 0.011).state == SLO_MEETS);
    CU_ASSERT(test_blocks(0.010, 0.01001, SLO_OPEN, 0, 0.009).state == SLO_FAILS);
    CU_ASSERT(test_blocks(0.010, 0.01001, SLO_OPEN, 0.99, 0.011).state == SLO_OPEN);
}

/* With one block there is no pair of blocks, so the flag prevents the verdict. */
static void test_one_block(void) {
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    int flagged = 0;
    o.targets = (slo_list){{{SERVING_TPOT, 0.75, 1.1 * kTpot}}, 1};
    for (uint64_t seed = 0; seed < 20; seed++) {
        serving_measured *l = measure(&kProcesses[2], 1, 0.8, seed, &o);
        const serving_arm *a = &l->arm[0];
        CU_ASSERT(!a->by_blocks && !a->state_by_blocks);
        for (int m = 0; m < SERVING_METRICS && a->correlated; m++)
            if (l->difference[1][m].judged)
                CU_ASSERT(l->difference[1][m].verdict == SERVING_INCONCLUSIVE &&
                          l->difference[1][m].reason[0]);
        if (a->correlated)
            CU_ASSERT_STRING_EQUAL(serving_flag_against_state(a), "correlated");
        flagged += a->correlated;
        free(l);
    }
    CU_ASSERT(flagged > 0);
}

/* ---- servers whose speed drifts ---- */

/* One block of a server that starts faster by the share @slow and approaches its speed with this
 * time constant. */
static steady_window settle(double slow, double seconds, bool small_drifts) {
    sim_log log = {0};
    steady_series s;
    steady_window w;
    sim_wave(&log, &(sim_block){.rate = 200, .seconds = kBlock}, kTpot, 0, 1);
    for (size_t i = 0; i < log.n; i++) {
        serving_request *r = &log.at[i];
        double times = 1 - slow * exp(-r->due_s / seconds), all = r->end_s - r->due_s;
        r->first_s = r->due_s + (r->first_s - r->due_s) * times;
        r->end_s = r->due_s + all * times;
        *(float *)(uintptr_t)r->gap_s *= (float)times;
    }
    steady_series_of(log.at, log.n, &s);
    CU_ASSERT_FATAL(steady_find(log.at, log.n, &s, small_drifts, &w, NULL) == SNAP_OK);
    sim_release(&log);
    return w;
}

/* A server that approaches its speed during the whole block, from 10 % off, has no steady state.
 * From 3 % off, its halves differ by 0.9 %: the block counts as steady, has the whole window, and
 * this change is its drift. The truth: the means of 1 - slow exp(-t / T) over the halves of the
 * block, T one block. */
static void test_drifts(void) {
    const double slow = 0.03, half = exp(-0.5);
    double first = 2 * (1 - half), second = 2 * (half - half * half);
    steady_window small = settle(slow, kBlock, true), old = settle(slow, kBlock, false);
    CU_ASSERT_FALSE(settle(0.1, kBlock, true).steady);
    CU_ASSERT(small.steady && small.from < 0.1 * kBlock);
    CU_ASSERT_DOUBLE_EQUAL(small.drift, slow * (first - second), 0.2 * slow * (first - second));
    CU_ASSERT(!old.steady && old.from > 0.4 * kBlock);
    CU_ASSERT(!(old.drift > 0));
}

CU_TestInfo tests_serving_correlated[] = {
    {"false verdicts with correlated requests", test_verdicts},
    {"false decisions of targets with correlated requests", test_targets},
    {"intervals with blocks as units", test_intervals_of_blocks},
    {"targets are decided with blocks as units", test_targets_by_blocks},
    {"with one block there is no verdict", test_one_block},
    {"small drifts keep a block steady", test_drifts},
    CU_TEST_INFO_NULL};
