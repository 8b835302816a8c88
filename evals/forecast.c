#include "evals/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evals/distributions.h"

/* The unbiased covariance of L' = min(L, @most) and r over the @n samples of one problem. */
static double covariance(const forecast_answer *a, size_t n, double most) {
    double ratio = 0, right = 0, sum = 0;
    if (n < 2)
        return 0;
    for (size_t i = 0; i < n; i++) {
        ratio += fmin(a[i].ratio, most) / (double)n;
        right += (double)a[i].right / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        sum += (fmin(a[i].ratio, most) - ratio) * ((double)a[i].right - right);
    return sum / (double)(n - 1);
}

static bool is_mixed(const forecast_answer *a, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (a[i].right != a[0].right)
            return true;
    return false;
}

static double mean_ratio(const forecast_answer *a, size_t n, double most) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fmin(a[i].ratio, most);
    return sum / (double)n;
}

/* The share of the other format's answers that the likelihood ratios do not account for: 1 minus
 * the mean of L' and two standard errors. @means: the mean of L' in each problem. */
static double missing(const double *means, size_t problems) {
    stats_mean m = stats_mean_of(means, problems);
    return m.se >= 0 ? fmax(0, 1 - m.mean - 2 * m.se) : 0;
}

/* Sets out->accuracy, diverged and unseen to means over the answers. Returns the accuracy of those
 * answers of the reference from which the other format diverges. */
static double count(const forecast_answer *a, size_t n, forecast *out) {
    double right = 0, diverged = 0, unseen = 0, lost = 0;
    for (size_t i = 0; i < n; i++) {
        right += (double)a[i].right;
        diverged += a[i].diverged;
        unseen += a[i].unseen;
        lost += a[i].diverged * (double)a[i].right;
    }
    out->accuracy = right / (double)n;
    out->diverged = diverged / (double)n;
    out->unseen = unseen / (double)n;
    return diverged > 0 ? lost / diverged : out->accuracy;
}

/* The factor for unseen answers: how often they are right, divided by how often the answers that
 * they replace are right. NAN: unknown, so there is no prediction. */
static double kept(double unseen, bool greedy) {
    if (!greedy)
        return 1 - unseen;
    return unseen > FORECAST_GREEDY_MOST ? (double)NAN : FORECAST_GREEDY_KEPT;
}

/* Sets the prediction and its interval. @seen: mean covariance over the problems. @right: accuracy
 * of the reference's answers from which the other format diverges. */
static void predict(forecast *out, stats_mean seen, double right, bool greedy) {
    double n = (double)seen.n, rate = kept(out->unseen, greedy) * right; /* of unseen answers */
    /* The variance from drawing unseen answers, if each is right or wrong independently of the
     * reference's answer that it replaces. This is assumed to be the worst case. */
    double drawn = out->unseen * (right * (1 - right) + rate * (1 - rate)) / n;
    double assumed = out->unseen * right * FORECAST_KEPT_SPREAD;
    double se = sqrt(seen.se * seen.se + drawn + assumed * assumed);
    out->seen_delta = seen.mean;
    out->delta = seen.mean - out->unseen * (right - rate);
    out->ci95 = (stats_interval){NAN, NAN};
    out->se = out->assumed_se = (double)NAN;
    if (seen.n < 2 || isnan(out->delta) || out->accuracy <= 0 || out->accuracy >= 1)
        return;
    out->se = se;
    out->assumed_se = assumed;
    double half = student_quantile(0.975, n - 1) * se;
    out->ci95 = (stats_interval){fmax(out->delta - half, -out->accuracy),
                                 fmin(out->delta + half, 1 - out->accuracy)};
}

snap_status forecast_make(const forecast_answer *answers, size_t problems, size_t samples,
                          double *seen, forecast *out, snap_err *err) {
    double most = sqrt((double)(problems * samples));
    double *own = seen ? NULL : calloc(problems, sizeof *own);
    double *covariances = seen ? seen : own, *means = calloc(problems, sizeof *means);
    *out = (forecast){0};
    if (!covariances || !means) {
        free(own);
        free(means);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a forecast");
    }
    for (size_t i = 0; i < problems; i++) {
        covariances[i] = covariance(answers + i * samples, samples, most);
        means[i] = mean_ratio(answers + i * samples, samples, most);
        out->mixed += is_mixed(answers + i * samples, samples);
    }
    double right = count(answers, problems * samples, out);
    out->unseen = fmin(1, fmax(out->unseen, missing(means, problems)));
    predict(out, stats_mean_of(covariances, problems), right, samples == 1);
    free(own);
    free(means);
    return SNAP_OK;
}

/* ---- is the predicted loss above a margin? ---- */

double forecast_loss_above(const forecast_loss *l, double margin) {
    double distance = l->loss - margin;
    if (l->se > 0)
        return student_cdf(distance / l->se, (double)l->problems - 1);
    return distance > 0;
}

static bool is_same(const forecast_summary *a, const forecast_summary *b) {
    return a->delta == b->delta && a->se == b->se &&
           memcmp(a->seen, b->seen, a->problems * sizeof *a->seen) == 0;
}

/* The variance of a forecast that its covariances do not explain: that of unseen answers. */
static double unseen_variance(const forecast_summary *f) {
    double se = stats_mean_of(f->seen, f->problems).se;
    return fmax(0, f->se * f->se - se * se);
}

snap_status forecast_loss_between(const forecast_summary *before, const forecast_summary *now,
                                  forecast_loss *out, snap_err *err) {
    *out = (forecast_loss){.loss = before->delta - now->delta, .problems = now->problems};
    if (is_same(before, now)) /* the unseen answers are the same as well */
        return SNAP_OK;
    double *diff = calloc(now->problems, sizeof *diff);
    if (!diff)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a forecast");
    for (size_t i = 0; i < now->problems; i++)
        diff[i] = now->seen[i] - before->seen[i];
    double se = stats_mean_of(diff, now->problems).se;
    out->se = sqrt(se * se + unseen_variance(before) + unseen_variance(now));
    out->assumed_se = hypot(before->assumed_se, now->assumed_se);
    free(diff);
    return SNAP_OK;
}

size_t forecast_problems_needed(const forecast_loss *l, double margin, double alpha) {
    static const double kPower = 0.9;
    static const size_t kMost = 1000000;
    double distance = fabs(l->loss - margin);
    double drawn = l->se * l->se - l->assumed_se * l->assumed_se; /* falls as 1 / problems */
    for (size_t n = l->problems; n <= kMost; n += n / 50 + 1) {
        double variance = fmax(0, drawn) * (double)l->problems / (double)n;
        double se = sqrt(variance + l->assumed_se * l->assumed_se);
        if (distance >= student_quantile(1 - alpha, (double)n - 1) * se +
                            normal_quantile(kPower) * sqrt(variance))
            return n;
    }
    return 0;
}
