/* forecast.h - predicts the accuracy of a model with another cache format from the answers of the
 * model with the first format (the reference).
 *
 * Let P and Q be the distributions of the answers to a problem in the reference and in the other
 * format, and r(x) = 1 if the answer x is right. If each answer that Q can give is also one that P
 * can give, the difference in accuracy is a mean over P:
 *
 *     E_Q[r] - E_P[r] = E_P[(L - 1) r] = Cov_P(L, r)   with the likelihood ratio L(x) = Q(x) / P(x)
 *
 * because E_P[L] = 1 (importance sampling). The covariance is estimated within each problem, from
 * the reference's own answers. The other format does not answer: it only says how likely these
 * answers are. No curve is fitted for this part, and its standard error is that of the mean over
 * problems.
 *
 * Two kinds of answers of Q are not seen in this way: those that P cannot give (the nucleus of
 * top-p does not contain them, or P is greedy), and those that are likely in Q but too rare in P to
 * be among the samples. Their share is the larger one of
 *
 *     the mean probability that Q leaves the answers of P (follow_reading.unseen), and
 *     1 - mean(L') - 2 standard errors, with L' = min(L, sqrt(number of answers))
 *
 * L' also takes the place of L in the covariance (truncated importance sampling, Ionides 2008).
 * The reference's answers do not say how often unseen answers are right. If u is their share, they
 * are taken to be right (1 - u) times as often as those answers of the reference from which they
 * diverge, because a format that gives many answers that the reference never gives is badly
 * damaged. This factor was fitted to noise of known size (docs/lab/2026-11-28-forecast.md). For
 * greedy answers, all that change are unseen, also if the error only breaks ties. There the factor
 * is assumed, and there is no prediction if most answers change. */
#ifndef SNAPMLA_EVALS_FORECAST_H
#define SNAPMLA_EVALS_FORECAST_H

#include <stdbool.h>
#include <stddef.h>

#include "evals/stats.h"

/* How often unseen answers are right, in relation to those that they replace: its standard
 * deviation, its mean for greedy answers, and the largest share of unseen greedy answers with which
 * there is a prediction. */
#define FORECAST_KEPT_SPREAD 0.2
#define FORECAST_GREEDY_KEPT 0.9
#define FORECAST_GREEDY_MOST 0.5

/* An answer of the reference. */
typedef struct {
    double ratio;    /* L */
    double diverged; /* probability that the other format's answer is another one, if the draws of
                        both agree as often as they can */
    double unseen;   /* probability that it is one that the reference cannot give */
    bool right;
} forecast_answer;

typedef struct {
    double accuracy;   /* of the reference's answers */
    double diverged;   /* share of answers that differ, if the draws agree as often as they can */
    double unseen;     /* share of the other format's answers that are not seen */
    double seen_delta; /* the covariance; 0 with one answer to each problem */
    double delta;      /* predicted accuracy minus that of the reference; NAN: no prediction */
    /* Of delta, not beyond accuracies of 0 and 1. NANs without a prediction, for one problem, and
     * if all answers are right or all are wrong: their spread is then no evidence of precision. */
    stats_interval ci95;
} forecast;

/* @answers: [problems][samples], both at least 1. With one sample, nothing but unseen answers can
 * change the accuracy: use that for greedy answers only. The result is a fraction 0 .. 1.
 * SNAP_E_NOMEM. */
snap_status forecast_make(const forecast_answer *answers, size_t problems, size_t samples,
                          forecast *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
