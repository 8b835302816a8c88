#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/test/sanitized.h"
#include "evals/distributions.h"
#include "evals/stats.h"

/* Values of t from a printed table (Abramowitz and Stegun 26.10), and normal quantiles. */
static void test_quantiles_against_tables(void) {
    static const struct {
        double p, df, t;
    } rows[] = {
        {0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 5, 2.571},   {0.975, 10, 2.228},
        {0.975, 29, 2.045}, {0.95, 29, 1.699}, {0.95, 59, 1.671},   {0.975, 120, 1.980},
        {0.995, 30, 2.750}, {0.90, 4, 1.533},  {0.9995, 10, 4.587}, {0.975, 1e7, 1.960},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CU_ASSERT_DOUBLE_EQUAL(student_quantile(rows[i].p, rows[i].df), rows[i].t, 6e-4);
        CU_ASSERT_DOUBLE_EQUAL(student_quantile(1 - rows[i].p, rows[i].df), -rows[i].t, 6e-4);
    }
    CU_ASSERT_DOUBLE_EQUAL(normal_quantile(0.975), 1.959963984540054, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(normal_quantile(0.95), 1.644853626951472, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(normal_quantile(1e-9), -5.997807015007687, 1e-9);
    CU_ASSERT_EQUAL(normal_quantile(0.5), 0);
}

/* One, two and four degrees of freedom have closed forms. */
static void test_student_closed_forms(void) {
    const double pi = acos(-1);
    for (double t = -40; t <= 40; t += 0.37) {
        double s = t / sqrt(t * t + 2), u = t / sqrt(t * t + 4);
        CU_ASSERT_DOUBLE_EQUAL(student_cdf(t, 1), 0.5 + atan(t) / pi, 1e-13);
        CU_ASSERT_DOUBLE_EQUAL(student_cdf(t, 2), 0.5 + s / 2, 1e-13);
        CU_ASSERT_DOUBLE_EQUAL(student_cdf(t, 4), 0.5 + 0.75 * u * (1 - u * u / 3), 1e-13);
    }
    for (double p = 0.001; p < 1; p += 0.013) {
        CU_ASSERT_DOUBLE_EQUAL(student_quantile(p, 1) / tan(pi * (p - 0.5)), 1, 1e-10);
        CU_ASSERT_DOUBLE_EQUAL(student_cdf(student_quantile(p, 7.5), 7.5), p, 1e-13);
    }
}

static void test_mean_and_interval(void) {
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    stats_mean m = stats_mean_of(x, 10);
    CU_ASSERT_DOUBLE_EQUAL(m.mean, 5.5, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(m.se, sqrt(55.0 / 6 / 10), 1e-14); /* variance n(n+1)/12 */
    stats_interval ci = stats_mean_interval(m, 0.95);
    CU_ASSERT_DOUBLE_EQUAL(ci.hi - ci.lo, 2 * 2.262157 * m.se, 1e-5);
    CU_ASSERT(isnan(stats_mean_of(x, 0).mean));
    CU_ASSERT(isnan(stats_mean_interval(stats_mean_of(x, 1), 0.95).lo));
}

/* Wilson's bounds solve |p - rate| = z sqrt(p (1 - p) / n). */
static void test_wilson_solves_its_equation(void) {
    const double z = 1.959963984540054;
    for (size_t k = 0; k <= 30; k++) {
        stats_interval ci = stats_wilson(k, 30, 0.95);
        double rate = (double)k / 30, bounds[] = {ci.lo, ci.hi};
        for (int i = 0; i < 2; i++) {
            double p = bounds[i];
            CU_ASSERT_DOUBLE_EQUAL(pow(p - rate, 2), z * z * p * (1 - p) / 30, 1e-13);
        }
    }
    CU_ASSERT_DOUBLE_EQUAL(stats_wilson(0, 30, 0.95).hi, z * z / (30 + z * z), 1e-12);
}

/* The sign test computed by hand: C(10,0)+C(10,1)+C(10,2) = 56 of 1024, twice. */
static void test_mcnemar(void) {
    CU_ASSERT_DOUBLE_EQUAL(stats_mcnemar(2, 8), 112.0 / 1024, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(stats_mcnemar(8, 2), 112.0 / 1024, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(stats_mcnemar(0, 6), 2.0 / 64, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(stats_mcnemar(5, 5), 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(stats_mcnemar(0, 0), 1, 1e-12);
    /* the exact sum is close to the normal approximation with continuity correction */
    double p = stats_mcnemar(900, 1100);
    CU_ASSERT_DOUBLE_EQUAL(p, 2 * normal_cdf(-199 / sqrt(2000.0)), 1e-6);
}

/* If all differences have the same size, the sign-flip test equals McNemar's. */
static void test_sign_flip_is_mcnemar_for_one_sample(void) {
    for (size_t a_only = 0; a_only <= 7; a_only++) {
        double a[24] = {0}, b[24] = {0};
        for (size_t i = 0; i < 10; i++)
            *(i < a_only ? &a[i] : &b[i]) = 1;
        CU_ASSERT_DOUBLE_EQUAL(stats_sign_flip(a, b, 24, 1), stats_mcnemar(a_only, 10 - a_only),
                               1e-12);
    }
}

/* Seventeen differences, compared with a brute-force count of all 2^17 patterns. */
static void test_sign_flip_brute_force(void) {
    enum { N = 17 };
    rng r = rng_make(3, 0);
    double a[N], b[N], observed = 0;
    for (int i = 0; i < N; i++) {
        a[i] = rng_below(&r, 9) / 8.0;
        b[i] = rng_below(&r, 9) / 8.0;
        observed += b[i] - a[i];
    }
    int reached = 0;
    for (int mask = 0; mask < 1 << N; mask++) {
        double sum = 0;
        for (int i = 0; i < N; i++)
            sum += (mask >> i & 1 ? 1 : -1) * (b[i] - a[i]);
        reached += fabs(sum) >= fabs(observed) ? 1 : 0; /* multiples of 1/8 are exact */
    }
    CU_ASSERT_DOUBLE_EQUAL(stats_sign_flip(a, b, N, 1), (double)reached / (1 << N), 1e-15);
}

/* With more than twenty differences, patterns are drawn. The result is near McNemar's exact value
 * and the same for equal seeds. */
static void test_sign_flip_drawn(void) {
    double a[60] = {0}, b[60] = {0};
    for (int i = 0; i < 40; i++)
        *(i < 12 ? &a[i] : &b[i]) = 1;
    double exact = stats_mcnemar(12, 28), p = stats_sign_flip(a, b, 60, 5);
    CU_ASSERT_DOUBLE_EQUAL(p, exact, 5 * sqrt(exact / 100000));
    CU_ASSERT_EQUAL(p, stats_sign_flip(a, b, 60, 5));
    CU_ASSERT_NOT_EQUAL(p, stats_sign_flip(a, b, 60, 6));
}

/* Computed by hand: d = {-1/4, 0, 1/4, 1/4, 0, 1/2}, mean 1/8, sum of squares 7/16. */
static void test_compare_by_hand(void) {
    const double a[] = {0.75, 0.5, 0.25, 0.5, 1, 0.25}, b[] = {0.5, 0.5, 0.5, 0.75, 1, 0.75};
    stats_paired r = stats_compare(a, b, 6, 0, 0.02);
    double se = sqrt((0.4375 - 6 * 0.125 * 0.125) / 30);
    CU_ASSERT_DOUBLE_EQUAL(r.delta, 0.125, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(r.se, se, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(r.ci95.hi, 0.125 + 2.570582 * se, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(r.ci90.lo, 0.125 - 2.015048 * se, 1e-6);
    CU_ASSERT_EQUAL(r.a_better, 1);
    CU_ASSERT_EQUAL(r.b_better, 3);
    CU_ASSERT_EQUAL(r.verdict, STATS_NOT_SHOWN);
}

/* Two one-sided tests at 5 % are equivalent to a 90 % interval inside the margin. */
static void test_tost_agrees_with_the_interval(void) {
    rng r = rng_make(11, 0);
    int equivalent = 0, different = 0;
    for (int run = 0; run < 2000; run++) {
        double a[30], b[30];
        for (int i = 0; i < 30; i++) {
            a[i] = rng_uniform(&r);
            b[i] = a[i] + 0.07 * rng_normal(&r) + (run % 3 ? 0 : 0.03);
        }
        stats_paired p = stats_compare(a, b, 30, 0, 0.03);
        CU_ASSERT_EQUAL(p.verdict == STATS_EQUIVALENT, p.p_tost < 0.05);
        CU_ASSERT_EQUAL(p.ci90.lo > -0.03 && p.ci90.hi < 0.03, p.p_tost < 0.05);
        equivalent += p.verdict == STATS_EQUIVALENT;
        different += p.verdict == STATS_DIFFERENT;
    }
    CU_ASSERT(equivalent > 200 && different > 200);
}

static void test_no_spread(void) {
    double a[200], b[200];
    for (int i = 0; i < 200; i++)
        a[i] = b[i] = i % 2;
    stats_paired same = stats_compare(a, b, 200, 0, 0.02);
    CU_ASSERT_EQUAL(same.verdict, STATS_EQUIVALENT); /* 3/200 < 0.02 */
    CU_ASSERT(isnan(same.p_tost) && isnan(same.ci90.lo) && isnan(same.ci95.hi));
    CU_ASSERT_EQUAL(stats_compare(a, b, 30, 0, 0.02).verdict, STATS_NOT_SHOWN); /* 3/30 */
    for (int i = 0; i < 30; i++)
        a[i] = (b[i] = i / 30.0) + 1.0 / 3;
    CU_ASSERT_EQUAL(stats_compare(a, b, 30, 0, 0.02).verdict, STATS_DIFFERENT);
    CU_ASSERT_EQUAL(stats_compare(a, b, 30, 0, 0.02).se, 0);
    CU_ASSERT_EQUAL(stats_compare(a, b, 3, 0, 0.02).verdict, STATS_NOT_SHOWN); /* p = 1/4 */
    CU_ASSERT_EQUAL(stats_compare(a, b, 1, 0, 0.02).verdict, STATS_NOT_SHOWN);
    CU_ASSERT_EQUAL(stats_compare(a, b, 0, 0, 0.02).verdict, STATS_NOT_SHOWN);
}

/* ---- a simulated benchmark: problems of different difficulty, K samples per arm ---- */

typedef struct {
    double a[60], b[60];
} benchmark;

static double solve(rng *r, double p, int k) {
    int solved = 0;
    for (int i = 0; i < k; i++)
        solved += rng_uniform(r) < p ? 1 : 0;
    return (double)solved / k;
}

/* Difficulties with mean p(1-p) = 0.089145 * 0.910855 - 0.06^2/3 = 0.08, the planning value for
 * AIME. Each problem is either easy or hard. */
static benchmark simulate(rng *r, int n, int k, double shift) {
    benchmark x;
    for (int i = 0; i < n; i++) {
        double hard = 0.089145 + 0.06 * (2 * rng_uniform(r) - 1);
        double p = rng_uniform(r) < 0.5 ? hard : 1 - hard;
        x.a[i] = solve(r, p - shift / 2, k);
        x.b[i] = solve(r, p + shift / 2, k);
    }
    return x;
}

/* Sizes of a simulated benchmark for the bootstrap. */
enum { COVER_N = 20, COVER_K = 2 };

static void draw_samples(rng *r, double p, double *x) {
    for (int k = 0; k < COVER_K; k++)
        x[k] = rng_uniform(r) < p ? 1 : 0;
}

/* Both 95 % intervals contain the true difference in 95 % of 10,000 runs, within 1 point. Problems
 * differ in difficulty and in the effect of the second arm on them. */
static void test_intervals_cover(void) {
    enum { RUNS = SIMULATED_RUNS(10000), DRAWS = 199 };
    rng r = rng_make(2026, 0);
    int t_covers = 0, bootstrap_covers = 0;
    for (int run = 0; run < RUNS; run++) {
        static double xa[COVER_N][COVER_K], xb[COVER_N][COVER_K];
        double a[COVER_N], b[COVER_N];
        stats_problem problems[COVER_N];
        for (int i = 0; i < COVER_N; i++) {
            double p = 0.2 + 0.5 * rng_uniform(&r), change = -0.05 + 0.4 * (rng_uniform(&r) - 0.5);
            draw_samples(&r, p, xa[i]);
            draw_samples(&r, p + change, xb[i]);
            problems[i] = (stats_problem){xa[i], xb[i], COVER_K, COVER_K};
            a[i] = stats_mean_of(xa[i], COVER_K).mean;
            b[i] = stats_mean_of(xb[i], COVER_K).mean;
        }
        stats_interval t = stats_compare(a, b, COVER_N, 0, 0.02).ci95, boot;
        CU_ASSERT_EQUAL_FATAL(stats_bootstrap(problems, COVER_N, DRAWS, (uint64_t)run, &boot, NULL),
                              SNAP_OK);
        t_covers += t.lo <= -0.05 && -0.05 <= t.hi;
        bootstrap_covers += boot.lo <= -0.05 && -0.05 <= boot.hi;
    }
    if (kSanitized) /* too few runs for the limits: see SIMULATED_RUNS() */
        return;
    CU_ASSERT_DOUBLE_EQUAL((double)t_covers / RUNS, 0.95, 0.01);
    CU_ASSERT_DOUBLE_EQUAL((double)bootstrap_covers / RUNS, 0.95, 0.01);
    if (getenv("SHOW_FIGURES"))
        printf("\n| 95 %% intervals, %d runs of %d problems x %d samples | t covers %.2f %% | "
               "bootstrap %.2f %% |\n",
               RUNS, COVER_N, COVER_K, 100.0 * t_covers / RUNS, 100.0 * bootstrap_covers / RUNS);
}

/* stats_tost_power(), a quadrature, agrees with a simulation of normal differences. */
static void test_tost_power(void) {
    enum { RUNS = 20000, N = 10 };
    static const double margins[] = {1.0, 0.8, 0.65};
    rng r = rng_make(99, 0);
    int equivalent[3] = {0};
    for (int run = 0; run < RUNS; run++) {
        double zero[N] = {0}, d[N];
        for (int i = 0; i < N; i++)
            d[i] = rng_normal(&r);
        for (int m = 0; m < 3; m++)
            equivalent[m] += stats_compare(zero, d, N, 0, margins[m]).verdict == STATS_EQUIVALENT;
    }
    for (int m = 0; m < 3; m++) {
        double power = stats_tost_power(1 / sqrt(N), N - 1, margins[m]);
        CU_ASSERT_DOUBLE_EQUAL((double)equivalent[m] / RUNS, power,
                               4 * sqrt(power * (1 - power) / RUNS));
    }
    /* many degrees of freedom: the formula for a known standard error */
    CU_ASSERT_DOUBLE_EQUAL(stats_tost_power(0.01, 1e6, 0.03),
                           2 * normal_cdf(3 - normal_quantile(0.95)) - 1, 1e-5);
    CU_ASSERT_EQUAL(stats_tost_power(0.02, 30, 0.02), stats_tost_power(1, 30, 1));
    CU_ASSERT_EQUAL(stats_tost_power(0, 30, 0.02), 1);
}

/* The test is one-sided at 2.5 %. A worse arm is detected as often as the power of the t test
 * predicts, and an equal arm in one case of 40. 30 normal differences with mean -0.05 and deviation
 * 0.1 have noncentrality 2.739: power 0.7540, from numerical integration of the noncentral t. */
static void test_detects_loss(void) {
    enum { N = 30, RUNS = 4000 };
    static const double zero[N];
    rng r = rng_make(11, 0);
    int seen = 0, by_chance = 0;
    for (int k = 0; k < RUNS; k++) {
        double worse[N], equal[N];
        for (int i = 0; i < N; i++) {
            worse[i] = -0.05 + 0.1 * rng_normal(&r);
            equal[i] = 0.1 * rng_normal(&r);
        }
        stats_paired a = stats_compare(zero, worse, N, 0, 0.02);
        stats_paired b = stats_compare(zero, equal, N, 0, 0.02);
        seen += stats_detects_loss(&a);
        by_chance += stats_detects_loss(&b);
        if (a.delta > 0)
            CU_ASSERT_FALSE(stats_detects_loss(&a));
    }
    CU_ASSERT_DOUBLE_EQUAL((double)seen / RUNS, 0.7540, 0.027); /* 4 standard errors */
    CU_ASSERT_DOUBLE_EQUAL((double)by_chance / RUNS, 0.025, 0.0099);
    double a[30], b[30];
    for (int i = 0; i < 30; i++)
        a[i] = 1, b[i] = 0.5;
    stats_paired all = stats_compare(a, b, 30, 0, 0.02), few = stats_compare(a, b, 5, 0, 0.02);
    stats_paired better = stats_compare(b, a, 30, 0, 0.02), none = stats_compare(a, b, 0, 0, 0.02);
    CU_ASSERT_TRUE(stats_detects_loss(&all));
    CU_ASSERT_FALSE(stats_detects_loss(&few)); /* p of the sign test is 1/16 */
    CU_ASSERT_FALSE(stats_detects_loss(&better));
    CU_ASSERT_FALSE(stats_detects_loss(&none));
}

/* Counts every subset of k of n samples. */
static void test_pass_at_k(void) {
    for (unsigned n = 1; n <= 8; n++)
        for (unsigned c = 0; c <= n; c++)
            for (unsigned k = 1; k <= n; k++) {
                double subsets = 0, passed = 0;
                for (unsigned mask = 0; mask < 1u << n; mask++) {
                    if ((unsigned)__builtin_popcount(mask) != k)
                        continue;
                    subsets += 1;
                    passed += (mask & ((1u << c) - 1)) != 0; /* the first c are correct */
                }
                CU_ASSERT_DOUBLE_EQUAL(stats_pass_at_k(n, c, k), passed / subsets, 1e-12);
            }
    CU_ASSERT(isnan(stats_pass_at_k(3, 1, 4)));
    CU_ASSERT_DOUBLE_EQUAL(stats_pass_at_k(4000, 40, 1), 0.01, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(stats_sampling_variance((const double[]){1, 0, 0, 0}, 4), 0.25, 1e-15);
    CU_ASSERT(isnan(stats_sampling_variance((const double[]){1}, 1)));
}

/* Simulates runs of 60 problems with 32 samples each, for a margin of 3 points. If the true
 * difference equals the margin, the verdict "equivalent" must occur in at most 5 % of the runs. If
 * there is no difference, its frequency must be the power of the normal approximation,
 * 2 Phi(margin/se - t) - 1. */
static void test_tost_error_and_power(void) {
    enum { RUNS = 600 };
    rng r = rng_make(7, 0);
    int wrong = 0, right = 0;
    double se = 0;
    for (int run = 0; run < RUNS; run++) {
        benchmark at_margin = simulate(&r, 60, 32, 0.03), none = simulate(&r, 60, 32, 0);
        stats_paired p = stats_compare(none.a, none.b, 60, 0, 0.03);
        wrong += stats_compare(at_margin.a, at_margin.b, 60, 0, 0.03).p_tost < 0.05;
        right += p.verdict == STATS_EQUIVALENT;
        se += p.se / RUNS;
    }
    CU_ASSERT((double)wrong / RUNS < 0.05 + 3 * sqrt(0.05 * 0.95 / RUNS));
    double power = 2 * normal_cdf(0.03 / se - student_quantile(0.95, 59)) - 1;
    CU_ASSERT_DOUBLE_EQUAL((double)right / RUNS, power, 4 * sqrt(power * (1 - power) / RUNS));
    CU_ASSERT_DOUBLE_EQUAL(se, sqrt(2 * 0.08 / 32 / 60), 0.0006);
}

/* In each arm, all problems have the same difficulty, so they differ only by the noise of their
 * samples. This noise must count once, and not a second time when samples are drawn. */
static void test_bootstrap_width(void) {
    enum { N = 40, K = 16 };
    static double a[N][K], b[N][K];
    double mean_a[N], mean_b[N];
    stats_problem problems[N];
    rng r = rng_make(31, 0);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < K; k++) {
            a[i][k] = rng_uniform(&r) < 0.5 ? 1 : 0;
            b[i][k] = rng_uniform(&r) < 0.25 ? 1 : 0;
        }
        mean_a[i] = stats_mean_of(a[i], K).mean;
        mean_b[i] = stats_mean_of(b[i], K).mean;
        problems[i] = (stats_problem){a[i], b[i], K, K};
    }
    stats_interval ci, again;
    stats_paired t = stats_compare(mean_a, mean_b, N, 0, 0.02);
    double formula = sqrt((0.25 + 0.1875) / K / N);
    CU_ASSERT_EQUAL_FATAL(stats_bootstrap(problems, N, STATS_BOOTSTRAP_DRAWS, 9, &ci, NULL),
                          SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(t.se, formula, 0.25 * formula);
    CU_ASSERT_DOUBLE_EQUAL(ci.lo, t.ci95.lo, 0.15 * t.se);
    CU_ASSERT_DOUBLE_EQUAL(ci.hi, t.ci95.hi, 0.15 * t.se);
    CU_ASSERT_EQUAL_FATAL(stats_bootstrap(problems, N, STATS_BOOTSTRAP_DRAWS, 9, &again, NULL),
                          SNAP_OK);
    CU_ASSERT_EQUAL(memcmp(&ci, &again, sizeof ci), 0);
    for (int i = 0; i < N; i++)
        problems[i] = problems[0];
    CU_ASSERT_EQUAL(stats_bootstrap(problems, N, 99, 9, &ci, NULL), SNAP_OK);
    CU_ASSERT(isnan(ci.lo) && isnan(ci.hi)); /* without spread there is no interval, as in
                                                stats_compare() */
}

/* If problems differ, the bootstrap agrees with the t interval. */
static void test_bootstrap_agrees_with_t(void) {
    enum { N = 200 };
    static const double one = 1, zero = 0;
    rng r = rng_make(13, 0);
    stats_problem problems[N];
    double a[N], b[N];
    for (int i = 0; i < N; i++) {
        const double *x = rng_uniform(&r) < 0.6 ? &one : &zero;
        const double *y = rng_uniform(&r) < 0.5 ? &one : &zero;
        problems[i] = (stats_problem){x, y, 1, 1};
        a[i] = *x;
        b[i] = *y;
    }
    stats_interval ci;
    CU_ASSERT_EQUAL_FATAL(stats_bootstrap(problems, N, STATS_BOOTSTRAP_DRAWS, 1, &ci, NULL),
                          SNAP_OK);
    stats_paired p = stats_compare(a, b, N, 0, 0.02);
    CU_ASSERT_DOUBLE_EQUAL(ci.lo, p.ci95.lo, 0.15 * p.se);
    CU_ASSERT_DOUBLE_EQUAL(ci.hi, p.ci95.hi, 0.15 * p.se);
}

static void test_ratio(void) {
    double a[] = {100, 200, 300, 400}, b[] = {110, 220, 330, 440};
    stats_ratio exact = stats_ratio_of(a, b, 4);
    CU_ASSERT_DOUBLE_EQUAL(exact.ratio, 1.1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(exact.ci95.hi - exact.ci95.lo, 0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(exact.delta, 25, 1e-12);
    rng r = rng_make(17, 0);
    int covered = 0;
    for (int run = 0; run < 2000; run++) {
        double x[30], y[30];
        for (int i = 0; i < 30; i++) {
            double length = 5000 + 10000 * rng_uniform(&r);
            x[i] = length * (1 + 0.1 * rng_normal(&r));
            y[i] = 1.05 * length * (1 + 0.1 * rng_normal(&r));
        }
        stats_ratio q = stats_ratio_of(x, y, 30);
        covered += q.ci95.lo <= 1.05 && 1.05 <= q.ci95.hi;
    }
    CU_ASSERT_DOUBLE_EQUAL(covered / 2000.0, 0.95, 0.015);
}

/* ---- several tasks ---- */

static size_t numbers(const js *list, double *out) {
    for (size_t i = 0; i < js_len(list); i++)
        out[i] = js_num(js_at(list, i));
    return js_len(list);
}

/* The pooled comparison against Welch's test in SciPy (fixtures/make_pooled.py). */
static void test_pool_against_scipy(void) {
    js *cases = js_parse_file("evals/test/fixtures/pooled.json", 1 << 20, NULL);
    CU_ASSERT_FATAL(js_len(cases) > 3);
    for (size_t i = 0; i < js_len(cases); i++) {
        const js *c = js_at(cases, i), *tasks = js_get_array(c, "tasks");
        double a[256], b[256], margin = js_get_num(c, "margin", 0), ci[2];
        stats_pool pool = {0};
        for (size_t t = 0; t < js_len(tasks); t++) {
            size_t n = numbers(js_get_array(js_at(tasks, t), "a"), a);
            CU_ASSERT_EQUAL_FATAL(numbers(js_get_array(js_at(tasks, t), "b"), b), n);
            stats_paired task = stats_compare(a, b, n, 0, margin);
            stats_pool_add(&pool, &task, 0.125, margin);
        }
        stats_paired r = stats_pool_end(&pool, margin);
        CU_ASSERT_DOUBLE_EQUAL(r.delta, js_get_num(c, "delta", 9), 1e-12);
        (void)numbers(js_get_array(c, "ci90"), ci);
        CU_ASSERT_DOUBLE_EQUAL(r.ci90.lo, ci[0], 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(r.ci90.hi, ci[1], 1e-9);
        (void)numbers(js_get_array(c, "ci95"), ci);
        CU_ASSERT_DOUBLE_EQUAL(r.ci95.lo, ci[0], 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(r.ci95.hi, ci[1], 1e-9);
        double p = js_get_num(c, "p_tost", 9);
        CU_ASSERT_DOUBLE_EQUAL(r.p_tost, p, 1e-9);
        CU_ASSERT_EQUAL(r.verdict == STATS_EQUIVALENT, p < 0.05);
    }
    js_free(cases);
}

static double log_choose(size_t n, size_t k) {
    return lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1);
}

static double binomial(size_t n, size_t k, double p) {
    if (p <= 0)
        return k == 0;
    return exp(log_choose(n, k) + (double)k * log(p) + (double)(n - k) * log(1 - p));
}

/* One sample per problem; the arm is worse on @k of @n problems and equal on the others. */
static stats_paired worse_on(size_t k, size_t n, double margin) {
    double a[512], b[512];
    for (size_t i = 0; i < n; i++) {
        a[i] = 1;
        b[i] = i >= k;
    }
    return stats_compare(a, b, n, 0, margin);
}

/* The probability of "equivalent" for two tasks whose true differences are -p1 and -p2, summed over
 * all outcomes with fewer than 60 unequal problems in each. */
static double chance_of_equivalent(size_t n1, size_t n2, double p1, double p2, double margin) {
    enum { MOST = 60 };
    stats_paired x[MOST], y[MOST];
    double chance = 0;
    for (size_t k = 0; k < MOST; k++) {
        x[k] = worse_on(k, n1, margin);
        y[k] = worse_on(k, n2, margin);
    }
    for (size_t i = 0; i <= n1 && i < MOST; i++)
        for (size_t k = 0; k <= n2 && k < MOST && (double)(i + k) < margin * (double)(n1 + n2);
             k++) {
            stats_pool pool = {0};
            stats_pool_add(&pool, &x[i], 1, margin);
            stats_pool_add(&pool, &y[k], 1, margin);
            if (stats_pool_end(&pool, margin).verdict == STATS_EQUIVALENT)
                chance += binomial(n1, i, p1) * binomial(n2, k, p2);
        }
    return chance;
}

/* If the true difference is as large as the margin, about 5 % of the comparisons may say
 * "equivalent". Few unequal problems are the hard case: a standard error from their spread alone
 * gives up to 11 % here. The largest value with the least variance is 5.2 %, with all of the loss
 * in the larger task. If there is no difference, many should say it. */
static void test_pool_of_few_unequal_problems(void) {
    static const struct {
        size_t n1, n2;
        double margin;
    } cases[] = {{64, 64, 0.05}, {32, 200, 0.05}, {30, 400, 0.02}, {200, 200, 0.02}, {20, 20, 0.1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n1 = cases[i].n1, n2 = cases[i].n2;
        double m = cases[i].margin, all = (double)(n1 + n2) * m;
        for (double share = 0; share <= 1; share += 0.25) { /* of the loss, in the first task */
            double p1 = share * all / (double)n1, p2 = (1 - share) * all / (double)n2;
            if (p1 < 0.5 && p2 < 0.5)
                CU_ASSERT(chance_of_equivalent(n1, n2, p1, p2, m) < 0.0525);
        }
    }
    CU_ASSERT(chance_of_equivalent(64, 64, 0, 0, 0.05) > 0.99);
    CU_ASSERT(chance_of_equivalent(10, 10, 0, 0, 0.05) <
              0.01); /* nothing is shown by 20 problems */
}

/* A pool of one task is that task. Without problems, or with one, the verdict is "not shown". */
static void test_pool_of_one_task(void) {
    const double a[] = {1, 0, 0.5, 1, 0, 1}, b[] = {0, 1, 0.5, 0.5, 0, 0.5};
    stats_paired one = stats_compare(a, b, 6, 0, 0.1);
    stats_pool pool = {0}, none = {0}, single = {0};
    stats_pool_add(&pool, &one, 0.1, 0.1); /* a step of the margin's size sets no least variance */
    stats_paired r = stats_pool_end(&pool, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(r.delta, one.delta, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(r.se, one.se, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(r.ci90.lo, one.ci90.lo, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(r.p_tost, one.p_tost, 1e-12);
    CU_ASSERT(r.n == 6 && r.a_better == one.a_better && r.b_better == one.b_better);
    r = stats_pool_end(&none, 0.1);
    CU_ASSERT(r.verdict == STATS_NOT_SHOWN && isnan(r.ci90.lo) && r.n == 0);
    one = stats_compare(a, b, 1, 0, 0.1);
    stats_pool_add(&single, &one, 1, 0.1);
    CU_ASSERT_EQUAL(stats_pool_end(&single, 0.1).verdict, STATS_NOT_SHOWN);
}

/* Four p values adjusted by hand. A NAN does not count. */
static void test_holm(void) {
    double p[] = {0.01, 0.04, NAN, 0.03, 0.005};
    stats_holm(p, 5);
    CU_ASSERT_DOUBLE_EQUAL(p[0], 0.03, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(p[1], 0.06, 1e-15);
    CU_ASSERT(isnan(p[2]));
    CU_ASSERT_DOUBLE_EQUAL(p[3], 0.06, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(p[4], 0.02, 1e-15);
    double zero[] = {0, 0, 0.9};
    stats_holm(zero, 3);
    CU_ASSERT_EQUAL(zero[0], 0);
    CU_ASSERT_EQUAL(zero[1], 0);
    CU_ASSERT_DOUBLE_EQUAL(zero[2], 0.9, 1e-15);
}

CU_TestInfo tests_stats[] = {
    {"quantiles against tables", test_quantiles_against_tables},
    {"Student's t in closed form", test_student_closed_forms},
    {"the interval of a mean", test_mean_and_interval},
    {"Wilson solves its equation", test_wilson_solves_its_equation},
    {"p of McNemar's test by hand", test_mcnemar},
    {"sign flip is McNemar for one sample", test_sign_flip_is_mcnemar_for_one_sample},
    {"sign flip by brute force", test_sign_flip_brute_force},
    {"sign flip with drawn patterns", test_sign_flip_drawn},
    {"a comparison computed by hand", test_compare_by_hand},
    {"TOST agrees with the interval", test_tost_agrees_with_the_interval},
    {"equal differences have no spread", test_no_spread},
    {"a worse arm is detected as often as the power says", test_detects_loss},
    {"95 % intervals hold the truth in 95 % of the runs", test_intervals_cover},
    {"TOST power", test_tost_power},
    {"pass@k", test_pass_at_k},
    {"TOST error and power", test_tost_error_and_power},
    {"noise of samples counts once in the bootstrap", test_bootstrap_width},
    {"bootstrap agrees with t", test_bootstrap_agrees_with_t},
    {"the interval of a ratio", test_ratio},
    {"p values adjusted by Holm's method", test_holm},
    {"several tasks against SciPy", test_pool_against_scipy},
    {"several tasks with few unequal problems", test_pool_of_few_unequal_problems},
    {"a pool of one task is that task", test_pool_of_one_task},
    CU_TEST_INFO_NULL,
};
