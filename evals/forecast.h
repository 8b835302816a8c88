/* forecast.h - predicts the accuracy of a model with another cache format from the answers of the
 * model with the first format (the reference).
 *
 * Let P and Q be the distributions of the answers to a problem in the reference and in the other
 * format. Let r(x) be 1 if the answer x is right, and 0 if it is not. If P can give every answer
 * that Q can give, the difference in accuracy is a mean over P:
 *
 *     E_Q[r] - E_P[r] = E_P[(L - 1) r] = Cov_P(L, r)   with the likelihood ratio L(x) = Q(x) / P(x)
 *
 * because E_P[L] = 1 (importance sampling). The covariance is estimated within each problem, from
 * the reference's own answers. The other format draws no answers: only its probabilities of the
 * reference's answers are computed. No parameter of this part is fitted. Its standard error is that
 * of the mean over problems.
 *
 * Two kinds of answers of Q are unseen: answers that P cannot give (top-k, top-p or min-p excludes
 * one of their tokens, or P is greedy), and answers that are likely in Q but too rare in P to be
 * among the samples. Their share is taken to be the larger one of
 *
 *     the mean of follow_reading.unseen, which estimates the share of the first kind, and
 *     1 - mean(L') - 2 standard errors, with L' = min(L, sqrt(number of answers))
 *
 * L' also takes the place of L in the covariance (truncated importance sampling, Ionides 2008).
 * The reference's answers do not show how often unseen answers are right. If u is their share, they
 * are assumed to be right (1 - u) times as often as those answers of the reference from which the
 * other format diverges. The reason: a format that gives many answers that the reference never
 * gives is badly damaged. This factor was fitted to noise of known size
 * (docs/lab/2026-11-28-forecast.md). With greedy decoding every changed answer is unseen, even if
 * the error only breaks a tie between two tokens. The factor is then assumed to be
 * FORECAST_GREEDY_KEPT, and there is no prediction if more than FORECAST_GREEDY_MOST of the answers
 * change. */
#ifndef SNAPMLA_EVALS_FORECAST_H
#define SNAPMLA_EVALS_FORECAST_H

#include <stdbool.h>
#include <stddef.h>

#include "evals/stats.h"

/* The factor for unseen answers: its standard deviation, and its value for greedy answers. Then the
 * largest share of unseen greedy answers for which there is a prediction. */
#define FORECAST_KEPT_SPREAD 0.2
#define FORECAST_GREEDY_KEPT 0.9
#define FORECAST_GREEDY_MOST 0.5

/* An answer of the reference. */
typedef struct {
    double ratio;    /* L */
    double diverged; /* probability that the other format's answer differs from this one, if the
                        draws of both agree as often as they can */
    double unseen;   /* as in follow_reading: only its mean over answers is a probability */
    bool right;
} forecast_answer;

typedef struct {
    double accuracy;   /* accuracy of the reference */
    double diverged;   /* share of answers that differ, if the draws agree as often as they can */
    double unseen;     /* share of the other format's answers that are unseen: the larger one of the
                          two estimates at the head of this file */
    size_t mixed;      /* problems with both right and wrong answers. Only these show whether the
                          format prefers right answers, so with few the interval is too narrow */
    double seen_delta; /* mean covariance over the problems; 0 with one answer to each problem */
    double delta;      /* predicted accuracy minus that of the reference; NAN: no prediction */
    double se;         /* standard error of delta; NAN if there is no interval */
    double assumed_se; /* the part of se that more problems do not reduce: that of the factor for
                          unseen answers. NAN if there is no interval */
    /* The confidence interval of delta. It ends where the accuracy would be 0 or 1. Both ends are
     * NAN without a prediction, with only one problem, and if all answers are right or all are
     * wrong. In the last case the answers do not vary, which does not mean that delta is exact. */
    stats_interval ci95;
} forecast;

/* @answers: [problems][samples], both at least 1. One sample to each problem means greedy decoding:
 * there is no covariance, and only unseen answers change the accuracy.
 * @seen: [problems] receives the covariance of each problem, whose mean is out->seen_delta; may be
 * NULL. All results are fractions, not percent. SNAP_E_NOMEM. */
snap_status forecast_make(const forecast_answer *answers, size_t problems, size_t samples,
                          double *seen, forecast *out, snap_err *err) SNAP_CHECK_RESULT;

/* ---- is the predicted loss above a margin? ---- */

/* A predicted loss of accuracy. It is that of a format: the accuracy of the reference minus the
 * accuracy of the format. Or it is that between two forecasts (forecast_loss_between()), for
 * instance of the same format in an earlier and a later build of the kernels: the accuracy
 * predicted by the first minus that predicted by the second. All figures have the same unit. */
typedef struct {
    double loss, se;
    double assumed_se; /* as in forecast */
    size_t problems;   /* at least 2 */
} forecast_loss;

/* The probability that the loss is above @margin, if (true loss - loss) / se has Student's t
 * distribution with problems - 1 degrees of freedom. The result is also 1 minus the p-value of the
 * one-sided test of "the loss is at most the margin". If se is 0, the result is 0 or 1. */
double forecast_loss_above(const forecast_loss *l, double margin);

/* A forecast with its covariances. All figures have the same unit. */
typedef struct {
    double delta, se, assumed_se; /* as in forecast; not NAN */
    const double *seen;           /* [problems] as in forecast_make() */
    size_t problems;
} forecast_summary;

/* The loss from @before to @now: the forecasts of two formats, or of one format in two builds, from
 * the same number of problems in the same order. The standard error is that of the paired
 * differences of the covariances. Usually both covariances come from the same answers. The
 * errors of the two factors for unseen answers are taken to be independent. If both forecasts are
 * the same, the loss is exactly 0. SNAP_E_NOMEM. */
snap_status forecast_loss_between(const forecast_summary *before, const forecast_summary *now,
                                  forecast_loss *out, snap_err *err) SNAP_CHECK_RESULT;

/* The number of problems with which forecast_loss_above() would leave the range from @alpha to
 * 1 - @alpha with probability 90 %, if the true loss is the predicted one. 0: no number of
 * problems up to a million is enough. */
size_t forecast_problems_needed(const forecast_loss *l, double margin, double alpha);

#endif
