/* stats.h - is the FP8 arm as good as the BF16 arm, and how sure are we?
 *
 * The unit is the problem. Each problem has several samples in each arm; a sample's score is 1
 * (correct) or 0, a problem's score in an arm is the mean of its samples there, an arm's accuracy the
 * mean of its problems. The samples of one problem are no independent evidence about the
 * arm, so every standard error is clustered by problem: the spread of n problem scores, never
 * of n * K samples. Scores are fractions 0..1 and margins the same unit.
 *
 * Sources: Miller, "Adding Error Bars to Evals" (arXiv 2411.00640) for clustering and pairing;
 * Schuirmann 1987 (two one-sided tests); McNemar 1947; Wilson 1927; Holm 1979; Efron 1979. */
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

/* mean +- t(n-1) * se at a two-sided @level such as 0.95; NANs for n < 2. */
stats_interval stats_mean_interval(stats_mean m, double level);

/* Wilson's interval of a rate: for K = 1, where the t interval fails near 0 and 1. n >= 1. */
stats_interval stats_wilson(size_t successes, size_t n, double level);

/* pass@k: the chance that k of a problem's @n samples, drawn without replacement, hold a correct one:
 * 1 - C(n-c, k) / C(n, k), unbiased for every n >= k (Chen et al., arXiv 2107.03374). NAN for k > n. */
double stats_pass_at_k(size_t n, size_t correct, size_t k);

/* Sampling variance of one sample's score, from n samples, unbiased; of rates p (1-p) n/(n-1). NAN for
 * n < 2. */
double stats_sampling_variance(const double *x, size_t n);

/* ---- two arms, the same problems ---- */

typedef enum {
    STATS_EQUIVALENT, /* the 90 % interval lies within +-margin (two one-sided tests, 5 %) */
    STATS_NOT_SHOWN,  /* neither of the other two: more problems or samples are needed */
    STATS_DIFFERENT,  /* not equivalent, and the 95 % interval excludes 0 */
} stats_verdict;
const char *stats_verdict_name(stats_verdict v); /* "equivalent", "not shown", "different" */

typedef struct {
    size_t n;     /* problems */
    double delta; /* mean of b - a */
    double se;
    stats_interval ci90, ci95; /* t with n - 1 degrees of freedom; NANs without spread */
    double p_tost;             /* larger of the two one-sided p values; NAN if undefined */
    size_t a_better, b_better; /* problems that one arm scores higher: the discordant ones */
    stats_verdict verdict;
} stats_paired;

/**
 * stats_compare - the paired comparison of two arms
 *
 * @a, @b:  [n] problem scores of the baseline and of the arm, in the same order of problems
 * @margin: largest difference that counts as none, > 0
 *
 * Where all differences are equal their spread is zero, which is no evidence of precision: there are
 * no intervals and no p_tost. Then the difference is credited with the rule of three: equivalent
 * only if |delta| + 3/n < margin; different only if delta != 0 and the sign test's 2^(1-n) < 0.05.
 */
stats_paired stats_compare(const double *a, const double *b, size_t n, double margin);

/* Whether the data show that the arm is worse: its difference is negative, and the 95 % interval
 * excludes 0 (or the sign test, where the differences have no spread). Of an arm that is known to be
 * worse it says whether this many problems and samples can see that. */
bool stats_sees_loss(const stats_paired *p);

/* Two-sided p of "the sign of each difference is a coin": the share of sign patterns whose |sum|
 * reaches the observed one. All patterns for up to 20 non-zero differences, else 100,000 drawn
 * ones (observed pattern included, so never 0). 1 when all are zero; NAN for n = 0. */
double stats_sign_flip(const double *a, const double *b, size_t n, uint64_t seed);

/* McNemar's exact p for K = 1: a_only and b_only are problems that one arm alone solved. */
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
 * @draws: STATS_BOOTSTRAP_DRAWS, or fewer where speed counts
 *
 * Problems are drawn with replacement, the same ones for both arms, then each one's samples. The
 * spread of the problems' differences contains the noise of their samples already, which drawing
 * samples adds again: so both levels are shrunk until together they have the spread that was
 * observed (after Davison and Hinkley 1997, 3.8). The percentiles are moved
 * outwards as Student's t is from the normal (Hesterberg 2015, "expanded percentile"). SNAP_E_NOMEM.
 * NANs for n < 2 and where all differences are equal.
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

/* ---- planning ---- */

/* The chance that stats_compare() says "equivalent" when there is no difference: normal differences
 * whose mean has the standard error @se, estimated with @df degrees of freedom. Exact, by
 * quadrature over the estimate; 1 for se = 0. */
double stats_tost_power(double se, double df, double margin);

/* ---- several benchmarks ---- */

/* Holm's adjusted p values, in place. NANs stay, and don't count. */
void stats_holm(double *p, size_t n);

#endif
