#include "harness/serving/slo.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "evals/distributions.h"
#include "evals/stats.h"
#include "harness/serving/batch_means.h"

/* ---- reading the list of targets ---- */

static snap_status refuse(const char *part, const char *why, snap_err *err) {
    return err_set(err, SNAP_E_USAGE,
                   "--slo '%.60s': %s; a target is, for example, ttft_p99=500ms: ttft, ttft_due, "
                   "itl, tpot, e2e or normalised; a percentile; a limit in us, ms or s",
                   part, why);
}

static bool read_latency(const char *s, size_t n, serving_time *out) {
    for (int l = 0; l < SERVING_TIMES; l++) {
        const char *name = serving_time_name((serving_time)l);
        if (strlen(name) == n && strncmp(name, s, n) == 0) {
            *out = (serving_time)l;
            return true;
        }
    }
    return false;
}

/* Reads "500ms". */
static bool read_limit(const char *s, double *seconds) {
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    char digits[32];
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(s), tail = strlen(units[i].unit);
        if (!text_ends(s, units[i].unit) || n - tail >= sizeof digits)
            continue;
        (void)snprintf(digits, sizeof digits, "%.*s", (int)(n - tail), s);
        if (text_to_double(digits, seconds)) {
            *seconds *= units[i].seconds;
            return *seconds > 0 && *seconds < 1e6;
        }
    }
    return false;
}

static bool is_known(const slo_list *all, const slo_target *t) {
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i].latency == t->latency && fabs(all->at[i].quantile - t->quantile) < 1e-9)
            return true;
    return false;
}

static snap_status add(void *ctx, const char *part, snap_err *err) {
    slo_list *all = ctx;
    slo_target t;
    char percentile[16];
    double pct;
    const char *equals = strchr(part, '=');
    const char *p = NULL;
    for (const char *at = part; equals && at < equals; at++)
        if (at[0] == '_' && at[1] == 'p')
            p = at;
    if (!p || (size_t)(equals - p) >= sizeof percentile)
        return refuse(part, "has no percentile and limit", err);
    (void)snprintf(percentile, sizeof percentile, "%.*s", (int)(equals - p) - 2, p + 2);
    if (!read_latency(part, (size_t)(p - part), &t.latency))
        return refuse(part, "unknown latency", err);
    if (!text_to_double(percentile, &pct) || !(pct > 0 && pct < 100))
        return refuse(part, "the percentile must lie above 0 and below 100", err);
    if (!read_limit(equals + 1, &t.limit_s))
        return refuse(part, "the limit must be a positive time with its unit", err);
    t.quantile = pct / 100;
    if (is_known(all, &t))
        return refuse(part, "stated twice", err);
    if (all->n == SLO_MAX)
        return refuse(part, "too many targets", err);
    all->at[all->n++] = t;
    return SNAP_OK;
}

snap_status slo_parse(const char *list, slo_list *out, snap_err *err) {
    *out = (slo_list){.n = 0};
    return text_split(list, ',', "--slo", add, out, err);
}

void slo_name(const slo_target *t, buf *out) {
    (void)buf_printf(out, "%s_p%.10g", serving_time_name(t->latency), 100 * t->quantile);
}

void slo_limit(const slo_target *t, buf *out) {
    if (t->limit_s < 1)
        (void)buf_printf(out, "%.6g ms", 1e3 * t->limit_s);
    else
        (void)buf_printf(out, "%.6g s", t->limit_s);
}

/* ---- one request ---- */

static bool gaps_met(const slo_target *t, const serving_request *r) {
    int gaps = r->pieces > 1 && r->gap_s ? r->pieces - 1 : 0, within = 0;
    for (int i = 0; i < gaps; i++)
        within += (double)r->gap_s[i] <= t->limit_s;
    return !gaps || (double)within >= t->quantile * gaps;
}

bool slo_met(const slo_target *t, const serving_request *r) {
    bool first = t->latency == SERVING_TTFT || t->latency == SERVING_TTFT_DUE;
    if (first || (serving_is_answered(r) && t->latency == SERVING_E2E))
        return serving_time_of(r, t->latency) <= t->limit_s; /* false for NAN */
    if (!serving_is_answered(r))
        return false;
    if (t->latency == SERVING_ITL)
        return gaps_met(t, r);
    double x = serving_time_of(r, t->latency);
    return isnan(x) || x <= t->limit_s;
}

bool slo_all_met(const slo_list *t, const serving_request *r) {
    for (size_t i = 0; i < t->n; i++)
        if (!slo_met(&t->at[i], r))
            return false;
    return true;
}

/* ---- one load point ---- */

const char *slo_state_name(slo_state s) {
    static const char *const names[] = {"open", "meets", "fails"};
    return names[s];
}

/* The variance of the share between slices: that of a ratio of two sums. */
static double variance_of(const double *hits, const double *totals, size_t slices, double share,
                          double n) {
    double squares = 0;
    for (size_t i = 0; i < slices; i++)
        squares += (hits[i] - share * totals[i]) * (hits[i] - share * totals[i]);
    return squares * (double)slices / (double)(slices - 1) / (n * n);
}

double slo_design_effect(const double *hits, const double *totals, size_t slices) {
    double within = 0, n = 0;
    for (size_t i = 0; i < slices; i++) {
        within += hits[i];
        n += totals[i];
    }
    double share = within / n, binomial = share * (1 - share) / n;
    if (slices < 2 || !(binomial > 0))
        return 1;
    return fmax(variance_of(hits, totals, slices, share, n) / binomial, 1);
}

void slo_share_interval(double share, double independent, size_t slices, double level,
                        double ci[2]) {
    ci[0] = 0;
    ci[1] = 1;
    if (!(independent > 0) || slices < 2)
        return;
    double z = normal_quantile(0.5 + level / 2);
    double t = student_quantile(0.5 + level / 2, (double)slices - 1);
    stats_interval wilson = stats_wilson_share(share, independent * z * z / (t * t), level);
    ci[0] = wilson.lo;
    ci[1] = wilson.hi;
}

slo_result slo_test(const slo_target *t, const double *hits, const double *totals, size_t slices,
                    double effect, double level) {
    slo_result r = {.share = (double)NAN,
                    .hi = 1,
                    .value = (double)NAN,
                    .value_ci = {(double)NAN, (double)NAN}};
    double within = 0, n = 0, ci[2];
    for (size_t i = 0; i < slices; i++) {
        within += hits[i];
        n += totals[i];
    }
    r.n = (size_t)n;
    if (!(n > 0) || slices < 2)
        return r;
    effect = fmax(effect, slo_design_effect(hits, totals, slices));
    slo_share_interval(within / n, n / effect, slices, level, ci);
    double z = student_quantile(0.5 + level / 2, (double)slices - 1);
    r.needed = (size_t)ceil(effect * z * z * t->quantile / (1 - t->quantile));
    r.share = within / n;
    r.lo = ci[0];
    r.hi = ci[1];
    if (r.lo >= t->quantile)
        r.state = SLO_MEETS;
    else if (r.hi < t->quantile)
        r.state = SLO_FAILS;
    return r;
}

double slo_value_level(double level) {
    return 1 - (1 - level) / 10;
}

/* Whether there are enough slices: at least two of them must be allowed to miss the target. */
static bool enough_slices(const slo_target *t, size_t slices) {
    return fmin(t->quantile, 1 - t->quantile) * (double)slices >= 2 - 1e-9;
}

void slo_test_values(const slo_target *t, const double *logs, size_t slices, double level,
                     slo_result *r) {
    double n = (double)slices, mean = 0, squares = 0, least = (double)INFINITY, most = -least;
    if (r->state != SLO_OPEN || !enough_slices(t, slices))
        return;
    for (size_t i = 0; i < slices; i++) {
        mean += logs[i] / n;
        least = fmin(least, logs[i]);
        most = fmax(most, logs[i]);
    }
    for (size_t i = 0; i < slices; i++)
        squares += (logs[i] - mean) * (logs[i] - mean);
    double half = student_quantile(0.5 + slo_value_level(level) / 2, n - 1) *
                  sqrt(squares / (n - 1) / n),
           limit = log(t->limit_s);
    r->value = exp(mean);
    r->value_ci[0] = exp(mean - half);
    r->value_ci[1] = exp(mean + half);
    if (fmax(most, mean + half) <= limit)
        r->state = SLO_MEETS;
    else if (fmin(least, mean - half) > limit)
        r->state = SLO_FAILS;
}

void slo_test_blocks(const slo_target *t, const double *logs, size_t blocks, size_t slices,
                     double level, slo_result *r) {
    double ci[2], mean = 0, limit = log(t->limit_s);
    bool untested = r->state == SLO_OPEN && isnan(r->value);
    bool one_side = untested && enough_slices(t, slices);
    bool few = untested && r->n < r->needed;
    bool meets = r->state == SLO_MEETS || (one_side && r->share >= 1);
    bool fails = r->state == SLO_FAILS || (one_side && r->share <= 0);
    for (size_t b = 0; b < blocks; b++)
        mean += logs[b] / (double)blocks;
    batch_interval(logs, blocks, level, ci);
    r->value = exp(mean);
    r->value_ci[0] = exp(ci[0]);
    r->value_ci[1] = exp(ci[1]);
    r->state = meets && ci[1] <= limit ? SLO_MEETS : fails && ci[0] > limit ? SLO_FAILS : SLO_OPEN;
    r->by_blocks = true;
    r->unconfirmed = r->state == SLO_OPEN && (meets || fails || few);
}
