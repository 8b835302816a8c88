/* stats.h - is the FP8 arm as good as the BF16 arm, and how certain is that?
 *
 * The statistical unit is the problem. Each problem has one or more samples in each arm. A sample's
 * score is 1 (correct) or 0, or a fraction for metrics that give part of the credit. A problem's
 * score in an arm is the mean of its samples there. An arm's accuracy is the mean over its
 * problems. The samples of one problem are not independent evidence about the arm, so every
 * standard error is clustered by problem: it is computed from the problem scores, never from the
 * single samples. Scores and margins are fractions 0..1.
 *
 * Sources: Miller, "Adding Error Bars to Evals" (arXiv 2411.00640) for clustering and pairing;
 * Schuirmann 1987 (two one-sided tests); Tango 1998 (score test of a paired difference);
 * McNemar 1947; Wilson 1927; Holm 1979; Efron 1979. */
#ifndef SNAPMLA_EVALS_STATS_H
#define SNAPMLA_EVALS_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    double lo, hi;
} stats_interval;

/* ---- one arm ---- */

typedef struct {
    size_t n;
    double mean;
    double se; /* sqrt(sum (x - mean)^2 / (n (n-1))); NAN for n < 2 */
} stats_mean;

stats_mean stats_mean_of(const double *x, size_t n); /* mean NAN for n = 0 */

/* mean +- t * se, with the quantile t of n - 1 degrees of freedom for a two-sided @level such as
 * 0.95; NANs for n < 2. */
stats_interval stats_mean_interval(stats_mean m, double level);

/* Wilson's interval of a rate, for cases where the t interval fails: one sample per problem, and
 * rates of 0 and 1. n >= 1. */
stats_interval stats_wilson(size_t successes, size_t n, double level);

/* Wilson's interval of a share @p, 0..1, of @n values. @n need not be whole: if the values are
 * correlated, pass the (smaller) number of independent values that would give as much information.
 * n > 0. */
stats_interval stats_wilson_share(double p, double n, double level);

/* pass@k: the probability that k of a problem's @n samples, drawn without replacement, contain a
 * correct one. With c = @correct: 1 - C(n-c, k) / C(n, k), unbiased for every n >= k (Chen et al.,
 * arXiv 2107.03374). NAN for k > n. */
double stats_pass_at_k(size_t n, size_t correct, size_t k);

/* Variance of one sample's score, estimated from n samples without bias. For scores 0 and 1 with
 * mean p it is p (1-p) n/(n-1). NAN for n < 2. */
double stats_sampling_variance(const double *x, size_t n);

/* ---- two arms on the same problems ---- */

/* If all differences are equal, there are no intervals, and the verdict follows another rule, which
 * stats_compare() states. */
typedef enum {
    STATS_EQUIVALENT, /* p_tost is below 5 %; then the 90 % interval lies within +-margin */
    STATS_NOT_SHOWN,  /* neither of the other two, or n < 2: more problems or samples are needed */
    STATS_DIFFERENT,  /* not equivalent, and the 95 % interval excludes 0 */
} stats_verdict;
const char *stats_verdict_name(stats_verdict v); /* "equivalent", "not shown", "different" */

typedef struct {
    size_t n;     /* problems */
    double delta; /* mean of b - a */
    double se;
    stats_interval ci90, ci95; /* t with n - 1 degrees of freedom; NANs for n < 2 or if all
                                  differences are equal */
    double p_tost;             /* larger of the two one-sided p values; NAN if there are no
                                  intervals. Its variance may be larger than that of the
                                  intervals */
    size_t a_better, b_better; /* problems on which one arm scores higher (discordant problems) */
    stats_verdict verdict;
} stats_paired;

/**
 * stats_compare - the paired comparison of two arms
 *
 * @a, @b:  [n] problem scores of the baseline and of the arm, in the same order of problems
 * @step:   smallest difference that a problem's score can have, other than 0: 1/K with K samples of
 *          a problem that are right or wrong; 0: unknown
 * @margin: largest difference that counts as equal, > 0
 *
 * If few problems are unequal, their spread is small by chance, and a plain t test calls arms
 * equivalent too often. So if @step is known, each of the two one-sided tests is a score test
 * (Tango 1998, for one sample per problem): its variance is that of the null hypothesis, under
 * which the true difference is as large as the margin, but at least the observed one. In steps, let
 * U and D be the sums of the differences towards the tested margin and away from it, and M the
 * margin. As counts with the rates q + M and q per problem, they have the largest likelihood at
 * q = (h + sqrt(h^2 + 8 n D M)) / 4n with h = U + D - 2nM. The variance is 2q + M, times the mean
 * square per unit of difference. A continuity correction of half a step is added. With one sample
 * per problem, a wrong "equivalent" then has a probability of at most about 5 % (test_tost.c
 * enumerates the outcomes of 30 to 500 problems).
 *
 * If all differences are equal, their spread is zero, but that is no evidence of precision. Then
 * there are no intervals and no p_tost, and for n >= 2 the verdict uses the rule of three:
 * equivalent if |delta| + 3/n < margin; otherwise different if delta != 0 and the sign test's
 * 2^(1-n) < 0.05.
 */
stats_paired stats_compare(const double *a, const double *b, size_t n, double step, double margin);

/* True if the data show that arm b is worse: the difference is negative and the 95 % interval
 * excludes 0 (or, if all differences are equal, the sign test is significant). For an arm that is
 * known to be worse, this says whether these problems and samples were enough to detect it. */
bool stats_detects_loss(const stats_paired *p);

/**
 * stats_detectable_loss - the smallest true loss that the comparison would have shown
 *
 * @step:   as for stats_compare()
 * @chance: the probability of stats_detects_loss() at that loss, such as 0.9
 *
 * A true loss x adds at least step * x - x^2 to the variance of a problem's difference. This is
 * taken into account, so the result is above 0 even if both arms have the same score on every
 * problem. If the scores differ on few problems, the result tends to be too large rather than too
 * small. NAN if even a loss of 1 has a smaller chance, or if nothing is known about the spread.
 */
double stats_detectable_loss(const stats_paired *p, double step, double chance);

/* Two-sided p of the sign-flip test: the fraction of sign patterns of the differences for which
 * |sum| reaches the observed one. Enumerates all patterns for up to 20 non-zero differences. For
 * more, draws 100,000 patterns from @seed; the observed one counts too, so p is never 0. 1 if all
 * differences are zero; NAN for n = 0. */
double stats_sign_flip(const double *a, const double *b, size_t n, uint64_t seed);

/* McNemar's exact two-sided p for one sample per problem. @a_only is the number of problems that
 * only arm a solved, @b_only of those that only arm b solved. */
double stats_mcnemar(size_t a_only, size_t b_only);

/* The samples of one problem in both arms, for the bootstrap. */
typedef struct {
    const double *a, *b; /* [n_a], [n_b] scores, borrowed; both counts >= 1 */
    size_t n_a, n_b;
} stats_problem;

enum { STATS_BOOTSTRAP_DRAWS = 10000 };

/**
 * stats_bootstrap - 95 % percentile interval of the difference
 *
 * @draws: STATS_BOOTSTRAP_DRAWS, or fewer to save time
 *
 * Draws problems with replacement, the same ones for both arms, and then samples of each. The
 * spread of the problems' differences already contains the noise of their samples, and drawing
 * samples adds it again. So the spread between problems is scaled down until both together have the
 * observed spread (after Davison and Hinkley 1997, 3.8). If the noise alone exceeds the observed
 * spread, only noise is drawn, scaled down to that spread. The percentiles are moved outwards: the
 * normal quantile is replaced by Student's t times sqrt(n / (n - 1)) (Hesterberg 2015, "expanded
 * percentile"). SNAP_E_NOMEM. NANs for n < 2, for draws < 2 and if all differences are equal.
 */
snap_status stats_bootstrap(const stats_problem *problems, size_t n, int draws, uint64_t seed,
                            stats_interval *out, snap_err *err) SNAP_CHECK_RESULT;

typedef struct {
    double ratio;        /* mean(b) / mean(a) */
    stats_interval ci95; /* by linearisation (delta method), paired; NANs for n < 2 */
    double delta;        /* mean of b - a */
    stats_interval delta_ci95;
} stats_ratio;

/* Ratio of two positive paired quantities, such as mean output tokens by problem. mean(a) > 0. */
stats_ratio stats_ratio_of(const double *a, const double *b, size_t n);

/* ---- two arms on several tasks ---- */

/* A sum over tasks, for stats_pool_end(). Start with zeros. */
typedef struct {
    size_t n, a_better, b_better; /* over all problems */
    double delta;                 /* sum of n * delta */
    double variance, spread;      /* sums of v and of v^2 / (n - 1); v = n^2 se^2, or the least
                                     value that stats_pool_add() describes */
} stats_pool;

/**
 * stats_pool_add - add the comparison of two arms on one task
 *
 * @step: smallest difference that a problem's score can have, other than 0: 1/K with K samples of a
 *        problem
 *
 * stats_pool_end() then gives the comparison over all tasks. It estimates the mean difference over
 * all problems of these tasks; each problem counts the same. The tasks are strata: the differences
 * between tasks are no noise, because another run would have the same tasks. So the variance is the
 * sum of the tasks' variances, and the degrees of freedom are Satterthwaite's.
 *
 * A task with few unequal problems has a standard error that is too small by chance. But if the
 * true difference were as large as the margin, the differences d of its problems would have the
 * variance E d^2 - margin^2, and E d^2 is at least step * margin. The variance of a task counts as
 * at least that. So the probability of a wrong "equivalent" stays near 5 % also with few unequal
 * problems.
 */
void stats_pool_add(stats_pool *pool, const stats_paired *task, double step, double margin);

/* If the variance is 0, if there is no task, or if a task has only one problem, there are no
 * intervals, and the verdict is "not shown". */
stats_paired stats_pool_end(const stats_pool *pool, double margin);

/* ---- planning ---- */

/* The probability that stats_compare() with step 0 says "equivalent" if there is no difference. The
 * mean of the differences is normal with standard error @se, which is estimated with @df degrees of
 * freedom. Computed by quadrature over the estimate; 1 for se = 0. */
double stats_tost_power(double se, double df, double margin);

/* ---- several benchmarks ---- */

/* Replaces p values by Holm's adjusted ones. NANs stay and do not count. */
void stats_holm(double *p, size_t n);

#endif
