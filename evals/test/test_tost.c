/* Tests the equivalence test of one task. If the true difference is as large as the margin, at most
 * about 5 % of the comparisons may get the verdict "equivalent". The rate is computed exactly for
 * one sample per problem, and simulated for several. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "base/test/sanitized.h"
#include "evals/stats.h"

enum { MOST = 512, UNEQUAL = 48 };

/* One sample per problem: the arm is worse on @worse of @n problems and better on @better. */
static stats_paired of_counts(size_t worse, size_t better, size_t n, double margin) {
    static double a[MOST], b[MOST];
    for (size_t i = 0; i < n; i++) {
        a[i] = i >= worse && i < worse + better ? 0 : 1;
        b[i] = i < worse ? 0 : 1;
    }
    return stats_compare(a, b, n, 1, margin);
}

static double log_power(double p, size_t k) {
    return k ? (double)k * log(p) : 0;
}

/* The probability of @x worse and @y better problems of @n, if p and q are the chances of each. */
static double trinomial(size_t n, size_t x, size_t y, double p, double q) {
    int sign;
    double ways = lgamma_r((double)n + 1, &sign) - lgamma_r((double)x + 1, &sign) -
                  lgamma_r((double)y + 1, &sign) - lgamma_r((double)(n - x - y) + 1, &sign);
    return exp(ways + log_power(p, x) + log_power(q, y) + log_power(1 - p - q, n - x - y));
}

/* The chance of "equivalent" if the arm is better with chance q and worse with chance q + loss. */
static double chance_of_equivalent(size_t n, double loss, double margin, const double *q,
                                   size_t n_q, double *chance) {
    double largest = 0;
    for (size_t i = 0; i < n_q; i++)
        chance[i] = 0;
    for (size_t y = 0; y < UNEQUAL; y++)
        for (size_t x = 0; x < UNEQUAL && x + y <= n; x++) {
            double delta = fabs((double)x - (double)y) / (double)n;
            if (delta < margin && of_counts(x, y, n, margin).verdict == STATS_EQUIVALENT)
                for (size_t i = 0; i < n_q; i++)
                    if (q[i] > 0 || y == 0)
                        chance[i] += trinomial(n, x, y, q[i] + loss, q[i]);
        }
    for (size_t i = 0; i < n_q; i++)
        largest = fmax(largest, chance[i]);
    return largest;
}

/* There are 30 to 500 problems. The arms differ on up to 32 of them on average. With a plain t
 * test, the rate would reach 20 %. */
static void test_one_sample_exactly(void) {
    static const double margins[] = {0.01, 0.02, 0.03, 0.05, 0.1};
    static const double q[] = {0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02};
    enum { RATES = sizeof q / sizeof *q };
    double chance[RATES];
    for (size_t m = 0; m < sizeof margins / sizeof *margins; m++)
        for (size_t n = 30; n <= 500; n += n < 120 ? 10 : 40) {
            double margin = margins[m];
            if ((double)n * (margin + 2 * q[RATES - 1]) > UNEQUAL / 1.5)
                break; /* cases with so many unequal problems are not enumerated */
            double largest = chance_of_equivalent(n, margin, margin, q, RATES, chance);
            if (largest > 0.05)
                printf("\nmargin %g, %zu problems: %.4f\n", margin, n, largest);
            CU_ASSERT(largest <= 0.05);
        }
}

/* Equal arms are called equivalent if there are enough problems. */
static void test_power_of_one_sample(void) {
    static const double q[] = {0.001, 0.005};
    double chance[2];
    (void)chance_of_equivalent(128, 0, 0.05, q, 2, chance);
    CU_ASSERT(chance[0] > 0.95 && chance[1] > 0.7);
    (void)chance_of_equivalent(500, 0, 0.02, q, 2, chance);
    CU_ASSERT(chance[0] > 0.98 && chance[1] > 0.6);
    (void)chance_of_equivalent(30, 0, 0.05, q, 2, chance);
    CU_ASSERT(chance[0] < 1e-9 && chance[1] < 1e-9); /* nothing is shown by 30 problems */
}

/* How an arm loses as much as the margin. */
typedef enum {
    EVERYWHERE, /* a little on each problem; the baseline solves all of them */
    SOMEWHERE,  /* a little on each problem; the baseline solves every tenth problem half of the
                   time, and the others always */
    WHOLE,      /* all samples of a few problems */
    LOSSES
} loss;

static bool is_equivalent(rng *r, size_t n, int k, double margin, loss kind) {
    static double a[MOST], b[MOST];
    for (size_t i = 0; i < n; i++) {
        double p = kind == SOMEWHERE && i % 10 == 0 ? 0.5 : 1, x = 0, y = 0;
        double worse = kind != WHOLE ? p - margin : rng_uniform(r) < margin ? 0 : 1;
        for (int s = 0; s < k; s++) {
            x += rng_uniform(r) < p;
            y += rng_uniform(r) < worse;
        }
        a[i] = x / k;
        b[i] = y / k;
    }
    return stats_compare(a, b, n, 1.0 / k, margin).verdict == STATS_EQUIVALENT;
}

static void test_several_samples_by_simulation(void) {
    static const size_t problems[] = {30, 100, 250};
    static const int samples[] = {2, 4, 8};
    static const double margins[] = {0.02, 0.05};
    /* With 2000 runs, a measured rate of 4 % has a standard error of 0.44 %. */
    enum { RUNS = SIMULATED_RUNS(2000) };
    rng r = rng_make(20260101, rng_stream_of("equivalence at the margin"));
    for (int c = 0; c < 3 * 3 * 2 * LOSSES; c++) {
        size_t n = problems[c % 3];
        int k = samples[c / 3 % 3], equivalent = 0;
        double margin = margins[c / 9 % 2];
        for (int i = 0; i < RUNS; i++)
            equivalent += is_equivalent(&r, n, k, margin, (loss)(c / 18));
        if (kSanitized) /* too few runs for the limit: see SIMULATED_RUNS() */
            continue;
        if (equivalent > 0.05 * RUNS)
            printf("\n%zu problems, %d samples, margin %g, loss %d: %.4f\n", n, k, margin, c / 18,
                   (double)equivalent / RUNS);
        CU_ASSERT(equivalent <= 0.05 * RUNS);
    }
}

/* By hand: 100 problems, one worse, margin 5 points. U = 1, D = 0 against the margin in this
 * direction: q = 0, so the variance is 0.05, and z = (0.01 + 0.005 - 0.05) / sqrt(0.05 / 100). */
static void test_by_hand(void) {
    stats_paired r = of_counts(1, 0, 100, 0.05);
    CU_ASSERT_DOUBLE_EQUAL(r.delta, -0.01, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(r.se, 0.01, 1e-12);
    /* Student's t with 99 degrees of freedom: P(T < -1.5652) = 0.0604 */
    CU_ASSERT_DOUBLE_EQUAL(r.p_tost, 0.0604, 2e-4);
    CU_ASSERT_EQUAL(r.verdict, STATS_NOT_SHOWN);
    CU_ASSERT(r.ci90.lo > -0.05 && r.ci90.hi < 0.05); /* a plain t test says "equivalent" */
    /* With many unequal problems the test is nearly the t test. */
    stats_paired many = of_counts(60, 60, 500, 0.1), t;
    static double a[500], b[500];
    for (size_t i = 0; i < 500; i++) {
        a[i] = i >= 60 && i < 120 ? 0 : 1;
        b[i] = i < 60 ? 0 : 1;
    }
    t = stats_compare(a, b, 500, 0, 0.1);
    CU_ASSERT(many.p_tost >= t.p_tost && many.p_tost < 1e-4 && t.p_tost < 1e-4);
}

CU_TestInfo tests_tost[] = {
    {"equivalence of few unequal problems, exactly", test_one_sample_exactly},
    {"equivalent arms with few unequal problems", test_power_of_one_sample},
    {"equivalence with several samples, by simulation", test_several_samples_by_simulation},
    {"equivalence by hand", test_by_hand},
    CU_TEST_INFO_NULL,
};
