#include "harness/serving/steady.h"

#include <math.h>
#include <stdlib.h>

#include "evals/distributions.h"
#include "harness/measure/stats.h"
#include "harness/serving/metrics.h"

enum { kGroup = 5, kTrendGroups = 20 };
static const double kLevel = 0.01;       /* level of the test for saturation */
static const double kLeastShare = 0.02;  /* a smaller backlog is no saturation */
static const double kMostDrift = 0.01;   /* with a larger change, a block is not steady */
static const double kMostTrimmed = 0.25; /* largest part of a block that one request takes */

/* ---- series of values in steps of time ---- */

static double last_time(const serving_request *r, size_t n) {
    double last = 0;
    for (size_t i = 0; i < n; i++) {
        double left = serving_left(&r[i]);
        last = fmax(last, isfinite(left) ? left : fmax(r[i].sent_s, r[i].due_s));
    }
    return last;
}

/* The step in which the time @t lies. */
static size_t step_of(const steady_series *s, double t) {
    double at = t > 0 ? t / s->step_s : 0;
    return at < STEADY_STEPS - 1 ? (size_t)at : STEADY_STEPS - 1;
}

/* Adds @amount, spread evenly over [from, to], to the steps. */
static void spread(const steady_series *s, double *x, double from, double to, double amount) {
    size_t first = step_of(s, from), last = step_of(s, to);
    if (!(to > from)) {
        x[first] += amount;
        return;
    }
    for (size_t k = first; k <= last; k++) {
        double begin = fmax(from, (double)k * s->step_s);
        double end = k == last ? to : (double)(k + 1) * s->step_s;
        x[k] += amount * fmax(0, end - begin) / (to - from);
    }
}

static void add_request(steady_series *s, const serving_request *r, double end) {
    double left = fmin(serving_left(r), end), at = r->first_s, last = serving_last_piece(r);
    spread(s, s->in_flight, r->sent_s, left, left - r->sent_s);
    if (serving_is_answered(r))
        s->ended_s[step_of(s, r->end_s)] += 1;
    if (!isfinite(last))
        return;
    for (int i = 0; i < r->pieces; i++) {
        s->pieces_s[step_of(s, at)] += 1;
        at += r->gap_s && i + 1 < r->pieces ? (double)r->gap_s[i] : 0;
    }
    if (r->completion_tokens > 0)
        spread(s, s->tokens_s, r->first_s, last, (double)r->completion_tokens);
}

void steady_series_of(const serving_request *r, size_t n, steady_series *out) {
    double end = last_time(r, n);
    *out = (steady_series){.step_s = fmax(end, 1e-9) / STEADY_STEPS};
    for (size_t i = 0; i < n; i++)
        add_request(out, &r[i], end);
    for (size_t k = 0; k < STEADY_STEPS; k++) {
        out->in_flight[k] /= out->step_s;
        out->pieces_s[k] /= out->step_s;
        out->ended_s[k] /= out->step_s;
        out->tokens_s[k] /= out->step_s;
    }
}

/* ---- the steady window of a series ---- */

size_t steady_mser5(const double *x, size_t n) {
    double group[STEADY_STEPS / kGroup], sum = 0, squares = 0, least = (double)INFINITY;
    size_t groups = n / kGroup, best = 0;
    groups = groups < STEADY_STEPS / kGroup ? groups : STEADY_STEPS / kGroup;
    for (size_t g = 0; g < groups; g++) {
        group[g] = 0;
        for (size_t i = 0; i < kGroup; i++)
            group[g] += x[g * kGroup + i] / kGroup;
    }
    for (size_t d = groups; d-- > 0;) { /* group[d ..] remain */
        double left = (double)(groups - d);
        sum += group[d];
        squares += group[d] * group[d];
        double error = fmax(0, squares - sum * sum / left) / (left * left);
        if (d <= groups / 2 && error <= least) {
            least = error;
            best = d;
        }
    }
    double head = 0, rest = 0;
    for (size_t g = 0; g < groups; g++)
        *(g < best ? &head : &rest) += group[g];
    bool rises = best && head / (double)best < rest / (double)(groups - best);
    return rises ? best * kGroup : 0;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The 95th percentile of e2e; 0 without an answered request. */
static snap_status long_request(const serving_request *r, size_t n, double *out, snap_err *err) {
    double *e2e = malloc((n + 1) * sizeof *e2e);
    size_t k = 0;
    if (!e2e)
        return err_set(err, SNAP_E_NOMEM, "out of memory for latencies");
    for (size_t i = 0; i < n; i++) {
        double x = serving_time_of(&r[i], SERVING_E2E);
        if (isfinite(x))
            e2e[k++] = x;
    }
    qsort(e2e, k, sizeof *e2e, by_value);
    *out = k ? stats_quantile(e2e, k, 0.95) : 0;
    free(e2e);
    return SNAP_OK;
}

/* Compares the mean of a series from entry @cut on with its mean in the entries @from to @cut - 1.
 * Returns the change as a share of the later mean. NAN if the first range is empty or the later
 * mean is 0. */
static double change_at(const double *x, size_t n, size_t from, size_t cut) {
    double before = 0, after = 0;
    for (size_t i = from; i < cut; i++)
        before += x[i] / (double)(cut - from);
    for (size_t i = cut; i < n; i++)
        after += x[i] / (double)(n - cut);
    return from < cut && after > 0 ? fabs(1 - before / after) : (double)NAN;
}

/* Applies MSER-5 to the series @x of @n steps. Returns the number of steps to leave out. If they
 * are half of the series, sets steady or drift of the window. The steps before @from are those in
 * which the first requests are running. */
static size_t truncate_series(const double *x, size_t n, size_t from, bool keep, steady_window *w) {
    size_t cut = steady_mser5(x, n);
    if (cut < n / kGroup / 2 * kGroup)
        return cut;
    double change = change_at(x, n, from, cut);
    if (!keep || !(change <= kMostDrift)) {
        w->steady = false;
        return cut;
    }
    w->drift = fmax(w->drift, change);
    return 0;
}

snap_status steady_find(const serving_request *r, size_t n, const steady_series *s,
                        bool small_drifts, steady_window *out, snap_err *err) {
    double first = r[0].sent_s, last = r[0].sent_s, one = 0;
    snap_status st = long_request(r, n, &one, err);
    if (st != SNAP_OK)
        return st;
    for (size_t i = 1; i < n; i++) {
        first = fmin(first, r[i].sent_s);
        last = fmax(last, r[i].sent_s);
    }
    size_t steps = step_of(s, last) + 1; /* the drain is no part of the series */
    one = fmin(one, kMostTrimmed * (last - first));
    *out = (steady_window){.to = last, .cohort_to = last - one, .steady = steps >= 4 * kGroup};
    size_t from = step_of(s, first + one) + 1;
    size_t by_flight = truncate_series(s->in_flight, steps, from, small_drifts, out);
    size_t by_pieces = truncate_series(s->pieces_s, steps, from, small_drifts, out);
    size_t cut = by_flight > by_pieces ? by_flight : by_pieces;
    out->from = fmax((double)cut * s->step_s, first + one);
    return SNAP_OK;
}

/* ---- saturation ---- */

steady_growth steady_growth_of(const serving_request *r, size_t n, const steady_series *s) {
    steady_growth g = {(double)NAN, (double)NAN, 0, 0};
    double first = r[0].due_s, last = r[0].due_s, x[kTrendGroups] = {0}, rest[kTrendGroups];
    for (size_t i = 1; i < n; i++) {
        first = fmin(first, r[i].due_s);
        last = fmax(last, r[i].due_s);
    }
    size_t from = step_of(s, first + 0.1 * (last - first)), to = step_of(s, last);
    size_t each = to > from ? (to - from) / kTrendGroups : 0;
    if (!each)
        return g;
    double dt = (double)each * s->step_s, mean = 0, middle = (kTrendGroups - 1) / 2.0;
    for (size_t k = 0; k < kTrendGroups; k++) {
        for (size_t i = 0; i < each; i++)
            x[k] += s->in_flight[from + k * each + i] / (double)each;
        mean += x[k] / kTrendGroups;
    }
    double xy = 0, xx = 0, rr = 0, next = 0;
    for (size_t k = 0; k < kTrendGroups; k++) {
        xy += ((double)k - middle) * x[k];
        xx += ((double)k - middle) * ((double)k - middle);
    }
    for (size_t k = 0; k < kTrendGroups; k++) {
        rest[k] = x[k] - mean - xy / xx * ((double)k - middle);
        rr += rest[k] * rest[k];
        next += k ? rest[k] * rest[k - 1] : 0;
    }
    double rho = rr > 0 ? fmin(fmax(next / rr, 0), 0.9) : 0;
    double effective = kTrendGroups * (1 - rho) / (1 + rho);
    g.slope = xy / xx / dt;
    g.freedom = fmax(effective - 2, 1);
    g.variance = rr / (kTrendGroups - 2) / xx * (1 + rho) / (1 - rho) / (dt * dt);
    g.arrivals_s = (double)(n - 1) / fmax(last - first, 1e-9);
    return g;
}

steady_backlog steady_backlog_of(const steady_growth *blocks, size_t n) {
    steady_backlog b = {(double)NAN, (double)NAN, 1, false};
    double slope = 0, variance = 0, freedom = 0, arrivals = 0, known = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(blocks[i].slope))
            continue;
        slope += blocks[i].slope;
        variance += blocks[i].variance;
        freedom += blocks[i].freedom;
        arrivals += blocks[i].arrivals_s;
        known++;
    }
    if (!(known > 0) || !(arrivals > 0))
        return b;
    b.slope = slope / known;
    b.share = slope / arrivals;
    if (variance > 0)
        b.p = 1 - student_cdf(slope / sqrt(variance), freedom);
    else
        b.p = slope > 0 ? 0 : 1;
    b.saturated = b.p < kLevel && b.share > kLeastShare;
    return b;
}
