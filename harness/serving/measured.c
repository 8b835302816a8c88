#include "harness/serving/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evals/distributions.h"
#include "evals/stats.h"
#include "harness/measure/stats.h"
#include "harness/serving/flags.h"

static const double kLagShare = 0.01; /* most of a latency that the client's lag may be */

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for the metrics of a server");
}

const char *serving_verdict_name(serving_verdict v) {
    static const char *const names[] = {"inconclusive", "equal", "faster", "slower"};
    return names[v];
}

bool serving_is_judged(int metric) {
    static const serving_time latencies[] = {SERVING_TTFT, SERVING_ITL, SERVING_TPOT, SERVING_E2E};
    static const serving_rate rates[] = {SERVING_REQUESTS, SERVING_OUTPUT, SERVING_GOODPUT};
    for (size_t i = 0; i < sizeof latencies / sizeof *latencies; i++)
        if (metric == serving_metric_of(latencies[i], SERVING_P50) ||
            metric == serving_metric_of(latencies[i], SERVING_P99))
            return true;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (metric == serving_metric_of_rate(rates[i]))
            return true;
    return false;
}

/* ---- blocks ---- */

typedef struct {
    serving_request *sorted;               /* requests of this load point, in the order of
                                              by_place() */
    size_t n, blocks;                      /* number of requests, and of blocks of the arm that has
                                              the fewest */
    sliced_block *block[SERVING_ARMS_MAX]; /* [blocks] */
    steady_growth *growth;
    serving_measured *out;
    arena mem;
} work;

/* By arm, block and time due. The clusters (interval.h) follow this order, and the index of a later
 * turn of a conversation does not say when it was due. */
static int by_place(const void *x, const void *y) {
    const serving_request *a = x, *b = y;
    if (a->arm != b->arm)
        return a->arm < b->arm ? -1 : 1;
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    if (a->due_s < b->due_s || a->due_s > b->due_s)
        return a->due_s < b->due_s ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static bool select_point(work *w, const serving_request *all, size_t n, int point, int arms) {
    w->sorted = arena_alloc(&w->mem, n + 1, sizeof *w->sorted);
    if (!w->sorted)
        return false;
    for (size_t i = 0; i < n; i++)
        if (all[i].point == point && all[i].arm >= 0 && all[i].arm < arms)
            w->sorted[w->n++] = all[i];
    if (w->n)
        qsort(w->sorted, w->n, sizeof *w->sorted, by_place);
    return true;
}

bool serving_is_measured(const serving_request *requests, size_t n, int point, int arms) {
    bool found[SERVING_ARMS_MAX] = {false};
    int missing = arms;
    for (size_t i = 0; i < n && missing; i++) {
        int a = requests[i].arm;
        if (requests[i].point != point || a < 0 || a >= arms || found[a])
            continue;
        found[a] = true;
        missing--;
    }
    return !missing;
}

/* The number of requests from @from on that belong to the same arm and block. */
static size_t run_of(const work *w, size_t from) {
    size_t n = 1;
    while (from + n < w->n && w->sorted[from + n].arm == w->sorted[from].arm &&
           w->sorted[from + n].block == w->sorted[from].block)
        n++;
    return n;
}

static size_t count_blocks(const work *w, int arm) {
    size_t blocks = 0;
    for (size_t i = 0; i < w->n; i += run_of(w, i))
        blocks += w->sorted[i].arm == arm;
    return blocks;
}

/* Finds the blocks of each arm. An arm that has more blocks than another keeps the first ones. */
static snap_status find_blocks(work *w, int arms, snap_err *err) {
    size_t found[SERVING_ARMS_MAX] = {0};
    w->blocks = SIZE_MAX;
    for (int a = 0; a < arms; a++) {
        size_t n = count_blocks(w, a);
        w->blocks = n < w->blocks ? n : w->blocks;
    }
    if (!w->blocks || w->blocks > SLICES_MOST)
        return err_set(err, SNAP_E_INPUT,
                       "a load point needs 1 to %d blocks of each arm, and this one has %zu",
                       SLICES_MOST, w->blocks);
    for (int a = 0; a < arms; a++)
        if (!(w->block[a] = arena_alloc(&w->mem, w->blocks, sizeof *w->block[a])))
            return no_memory(err);
    for (size_t i = 0; i < w->n; i += run_of(w, i)) {
        int a = w->sorted[i].arm;
        if (found[a] < w->blocks)
            w->block[a][found[a]++] = (sliced_block){.at = &w->sorted[i], .n = run_of(w, i)};
    }
    return SNAP_OK;
}

/* Block b had the same arrivals in all arms, so all arms get the window that is steady in all. */
static void share_windows(work *w, int arms) {
    for (size_t b = 0; b < w->blocks; b++) {
        steady_window all = w->block[0][b].window;
        for (int a = 1; a < arms; a++) {
            const steady_window *one = &w->block[a][b].window;
            all.from = fmax(all.from, one->from);
            all.to = fmin(all.to, one->to);
            all.cohort_to = fmin(all.cohort_to, one->cohort_to);
        }
        for (int a = 0; a < arms; a++) {
            all.steady = w->block[a][b].window.steady;
            w->block[a][b].window = all;
        }
    }
}

static snap_status find_windows(work *w, const serving_measure_options *o, snap_err *err) {
    snap_status st = SNAP_OK;
    w->growth = arena_alloc(&w->mem, w->blocks, sizeof *w->growth);
    TRY(w->growth ? SNAP_OK : no_memory(err));
    for (int a = 0; a < o->arms; a++) {
        serving_arm *arm = &w->out->arm[a];
        arm->steady = true;
        for (size_t b = 0; b < w->blocks; b++) {
            sliced_block *at = &w->block[a][b];
            steady_series s;
            steady_series_of(at->at, at->n, &s);
            TRY(steady_find(at->at, at->n, &s, &at->window, err));
            w->growth[b] = steady_growth_of(at->at, at->n, &s);
            arm->steady &= at->window.steady;
            arm->block_s += s.step_s * STEADY_STEPS;
        }
        arm->backlog = steady_backlog_of(w->growth, w->blocks);
        arm->backlog.saturated &= o->open;
    }
    if (o->open)
        share_windows(w, o->arms);
cleanup:
    return st;
}

/* ---- counts ---- */

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static snap_status count_requests(work *w, int a, snap_err *err) {
    serving_arm *arm = &w->out->arm[a];
    const sliced_block *blocks = w->block[a];
    double prompt = 0, completion = 0;
    bool unknown_prompt = false, unknown_completion = false;
    double *lags = malloc((2 * w->n + 1) * sizeof *lags);
    if (!lags)
        return no_memory(err);
    double *received = lags + w->n;
    arm->blocks = w->blocks;
    for (size_t b = 0; b < w->blocks; b++) {
        arm->window_s += fmax(0, blocks[b].window.to - blocks[b].window.from);
        for (size_t i = 0; i < blocks[b].n; i++) {
            const serving_request *r = &blocks[b].at[i];
            lags[arm->requests] = r->lag_s;
            received[arm->requests++] = r->received_lag_s;
            arm->failed += r->failed;
            arm->cut += r->cut && !r->failed;
            if (!serving_is_answered(r))
                continue;
            arm->answered++;
            prompt += (double)r->prompt_tokens;
            completion += (double)r->completion_tokens;
            unknown_prompt |= r->prompt_tokens < 0;
            unknown_completion |= r->completion_tokens < 0;
        }
    }
    qsort(lags, arm->requests, sizeof *lags, by_number);
    arm->lag_p50_s = stats_quantile(lags, arm->requests, 0.5);
    arm->lag_p99_s = stats_quantile(lags, arm->requests, 0.99);
    arm->lag_max_s = lags[arm->requests - 1];
    qsort(received, arm->requests, sizeof *received, by_number);
    arm->received_lag_p99_s = stats_quantile(received, arm->requests, 0.99);
    free(lags);
    double n = arm->answered ? (double)arm->answered : (double)NAN;
    arm->prompt_tokens = unknown_prompt ? (double)NAN : prompt / n;
    arm->completion_tokens = unknown_completion ? (double)NAN : completion / n;
    return SNAP_OK;
}

/* ---- estimates ---- */

/* The p99 of the client's lag over the latency's median or, for itl, over its p99, because the lag
 * changes single gaps. In tpot and the normalised latency, the lag is divided by the number of
 * tokens. The delay before a request is sent is in ttft_due only. */
static double lag_share(const serving_arm *arm, const sliced_arm *s, serving_time l) {
    bool shared = l == SERVING_TPOT || l == SERVING_NORMALISED;
    double lag = l == SERVING_TTFT_DUE ? arm->lag_p99_s : arm->received_lag_p99_s;
    if (shared)
        lag /= fmax(arm->completion_tokens, 1);
    return lag / sliced_quantile(s, l, l == SERVING_ITL ? 0.99 : 0.5);
}

static void set_values(serving_arm *arm, const sliced_arm *s) {
    double x[SERVING_METRICS];
    sliced_metrics(s, NULL, x);
    for (int m = 0; m < SERVING_METRICS; m++)
        arm->metric[m] = (serving_estimate){x[m], {(double)NAN, (double)NAN}, 0};
    for (int l = 0; l < SERVING_TIMES; l++) {
        size_t n = s->latency[l].n;
        arm->values[l] = n;
        for (int q = SERVING_P50; q < SERVING_STATISTICS; q++) {
            size_t least = serving_values_needed((serving_statistic)q);
            serving_estimate *e = &arm->metric[l * SERVING_STATISTICS + q];
            if (n < least) {
                e->needs = least;
                e->value = (double)NAN;
            }
        }
        arm->lag_share[l] = lag_share(arm, s, (serving_time)l);
        arm->late[l] = arm->lag_share[l] > kLagShare;
        for (int k = 0; k < SERVING_CDF; k++)
            arm->cdf[l][k] = sliced_quantile(s, (serving_time)l, k / (SERVING_CDF - 1.0));
    }
    arm->rate_lag_share = arm->lag_p99_s / sliced_quantile(s, SERVING_E2E, 0.5);
    arm->cohort = (size_t)s->requests;
}

static void test_targets(serving_arm *arm, const sliced_arm *s, const serving_measure_options *o) {
    bool all = o->targets.n > 0, fails = false;
    for (size_t k = 0; k < o->targets.n && s->hits[k]; k++) {
        const slo_target *t = &o->targets.at[k];
        arm->target[k] = slo_test(
            t, s->hits[k], s->totals[k], arm->slices ? s->slices : 0,
            fmax(sliced_effect(s, t->latency), sliced_cluster_effect(s, t->latency, t->limit_s)),
            o->level);
        double logs[SLICES_MOST];
        if (!o->shares_only && arm->slices &&
            sliced_log_quantiles(s, t->latency, s->totals[k], t->quantile, logs))
            slo_test_values(t, logs, s->slices, o->level, &arm->target[k]);
        all &= arm->target[k].state == SLO_MEETS;
        fails |= arm->target[k].state == SLO_FAILS;
    }
    if (o->targets.n && (fails || arm->backlog.saturated))
        arm->state = SLO_FAILS;
    else
        arm->state = all ? SLO_MEETS : SLO_OPEN;
}

/* Copies metric @m of all draws of arm @a. */
static void column_of(const double *draws, int a, int m, double *x) {
    for (size_t d = 0; d < SLICED_DRAWS; d++)
        x[d] = draws[((size_t)a * SLICED_DRAWS + d) * SERVING_METRICS + (size_t)m];
}

static void set_intervals(serving_arm *arm, const sliced_arm *s, const double *draws, int a) {
    double x[SLICED_DRAWS];
    for (int m = 0; m < SERVING_METRICS; m++) {
        if (isnan(arm->metric[m].value))
            continue;
        column_of(draws, a, m, x);
        sliced_interval(x, SLICED_DRAWS, arm->slices, 0.95, arm->metric[m].ci95);
    }
    for (int l = 0; l < SERVING_TIMES; l++)
        for (int q = SERVING_P50; q < SERVING_STATISTICS; q++) {
            serving_estimate *e = &arm->metric[l * SERVING_STATISTICS + q];
            double p = serving_quantile_of((serving_statistic)q);
            e->ci95[0] = e->ci95[1] = (double)NAN; /* percentiles have another interval than that of
                                                      the bootstrap */
            if (!e->needs)
                sliced_quantile_interval(s, (serving_time)l, p, e->ci95);
        }
}

/* ---- differences ---- */

/* The two-sided p value of "a difference, or the logarithm of a ratio, is 0", by Student's t.
 * @value: what was measured; its standard error is that of the draws @x. */
static double p_of(const double *x, size_t n, double value, size_t slices) {
    double sum = 0, squares = 0, known = 0, s = (double)slices;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            sum += x[i];
            known++;
        }
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            squares += (x[i] - sum / known) * (x[i] - sum / known);
    double se = sqrt(squares / (known - 1) * s / (s - 1));
    if (!(known > 1) || isnan(se))
        return (double)NAN;
    if (!(se > 0))
        return fabs(value) > 0 ? 0 : 1;
    return 2 * student_cdf(-fabs(value) / se, s - 1);
}

static serving_difference compare(const serving_measured *out, int a, int m, const double *draws) {
    double base = out->arm[0].metric[m].value, value = out->arm[a].metric[m].value;
    size_t slices = out->arm[0].slices;
    double x[SLICED_DRAWS], y[SLICED_DRAWS], ratio[SLICED_DRAWS];
    serving_difference d = {.ratio = (double)NAN,
                            .ci95 = {(double)NAN, (double)NAN},
                            .ci90 = {(double)NAN, (double)NAN},
                            .delta = value - base,
                            .delta_ci95 = {(double)NAN, (double)NAN},
                            .p = (double)NAN,
                            .p_holm = (double)NAN,
                            .judged = serving_is_judged(m) && !isnan(value - base),
                            .reason = ""};
    if (base > 0 && value > 0)
        d.ratio = value / base;
    if (isnan(value - base) || !slices)
        return d;
    column_of(draws, 0, m, x);
    column_of(draws, a, m, y);
    for (size_t i = 0; i < SLICED_DRAWS; i++) {
        ratio[i] = x[i] > 0 && y[i] > 0 ? log(y[i] / x[i]) : (double)NAN;
        x[i] = y[i] - x[i];
    }
    if (isnan(d.ratio))
        d.p = p_of(x, SLICED_DRAWS, d.delta, slices);
    sliced_interval(x, SLICED_DRAWS, slices, 0.95, d.delta_ci95);
    if (isnan(d.ratio))
        return d;
    d.p = p_of(ratio, SLICED_DRAWS, log(d.ratio), slices);
    sliced_interval(ratio, SLICED_DRAWS, slices, 0.95, d.ci95);
    sliced_interval(ratio, SLICED_DRAWS, slices, 0.90, d.ci90);
    for (int i = 0; i < 2; i++) {
        d.ci95[i] = exp(d.ci95[i]);
        d.ci90[i] = exp(d.ci90[i]);
    }
    return d;
}

/* The share by which the client's lag can change a metric of one of two arms; 0 if it is at most
 * kLagShare. The rate of a closed loop changes as the whole latency of a request does. */
static double lag_of(const serving_arm *x, const serving_arm *y, int metric) {
    bool rate = metric >= serving_metric_of_rate(SERVING_OFFERED);
    int l = metric / SERVING_STATISTICS;
    double most =
        rate ? fmax(x->rate_lag_share, y->rate_lag_share) : fmax(x->lag_share[l], y->lag_share[l]);
    return most > kLagShare ? most : 0;
}

/* The verdict if the client's lag may have caused a ratio between 1 / (1 + lag) and 1 + lag. */
static serving_verdict judge(const serving_difference *d, int metric, double margin, double lag) {
    double most = (1 + margin) / (1 + lag);
    if (d->ci90[0] > 1 / most && d->ci90[1] < most)
        return SERVING_EQUAL;
    bool excluded = isnan(d->ratio) ? d->delta_ci95[0] > 0 || d->delta_ci95[1] < 0
                                    : d->ci95[0] > 1 + lag || d->ci95[1] < 1 / (1 + lag);
    if (!(d->p_holm <= 0.05) || !excluded)
        return SERVING_INCONCLUSIVE;
    return (d->delta > 0) == serving_more_is_better(metric) ? SERVING_FASTER : SERVING_SLOWER;
}

static void set_verdict(serving_measured *out, int a, int metric, double margin) {
    const serving_arm *base = &out->arm[0], *arm = &out->arm[a];
    serving_difference *d = &out->difference[a][metric];
    d->reason = serving_flag_against(serving_flags_of(base) | serving_flags_of(arm), metric);
    if (d->reason[0])
        return;
    d->verdict = judge(d, metric, margin, lag_of(base, arm, metric));
    if (d->verdict != judge(d, metric, margin, 0))
        d->reason = "client lag";
}

static void set_verdicts(serving_measured *out, double margin) {
    double p[SERVING_ARMS_MAX * SERVING_METRICS];
    size_t n = 0;
    for (int a = 1; a < out->arms; a++)
        for (int m = 0; m < SERVING_METRICS; m++)
            if (out->difference[a][m].judged)
                p[n++] = out->difference[a][m].p;
    stats_holm(p, n);
    n = 0;
    for (int a = 1; a < out->arms; a++)
        for (int m = 0; m < SERVING_METRICS; m++) {
            serving_difference *d = &out->difference[a][m];
            if (!d->judged)
                continue;
            d->p_holm = p[n++];
            set_verdict(out, a, m, margin);
        }
}

/* ---- a load point ---- */

static snap_status estimate(work *w, const serving_measure_options *o, snap_err *err) {
    serving_measured *out = w->out;
    sliced_arm *arms = arena_alloc(&w->mem, (size_t)o->arms, sizeof *arms);
    double *draws = NULL;
    slice_dependence found;
    size_t each =
        sliced_choose((const sliced_block *const *)w->block, (size_t)o->arms, w->blocks, &found);
    snap_status st = SNAP_OK;
    if (!arms)
        return no_memory(err);
    for (int a = 0; a < o->arms; a++) {
        serving_arm *arm = &out->arm[a];
        TRY(count_requests(w, a, err));
        TRY(sliced_make(&arms[a], w->block[a], w->blocks, each ? each : 1, &o->targets, o->gpus,
                        &w->mem, err));
        arm->slices = each * w->blocks;
        arm->correlated = found.left && (o->correlated_untested || found.p <= slice_test_level);
        arm->independence_p = found.p;
        set_values(arm, &arms[a]);
        test_targets(arm, &arms[a], o);
    }
    if (o->states_only)
        return SNAP_OK;
    draws = arena_alloc(&w->mem, (size_t)o->arms * SLICED_DRAWS, SERVING_METRICS * sizeof *draws);
    TRY(draws ? SNAP_OK : no_memory(err));
    if (each)
        sliced_bootstrap(arms, (size_t)o->arms, SLICED_DRAWS, o->seed, draws);
    for (int a = 0; a < o->arms; a++) {
        if (each)
            set_intervals(&out->arm[a], &arms[a], draws, a);
        for (int m = 0; a && m < SERVING_METRICS; m++)
            out->difference[a][m] = compare(out, a, m, draws);
    }
    set_verdicts(out, o->margin);
cleanup:
    return st;
}

snap_status serving_measure_point(const serving_request *requests, size_t n, int point,
                                  const serving_measure_options *o, serving_measured **out,
                                  snap_err *err) {
    work w = {.out = calloc(1, sizeof(serving_measured))};
    snap_status st = SNAP_OK;
    *out = NULL;
    if (!w.out)
        return no_memory(err);
    if (o->arms < 1 || o->arms > SERVING_ARMS_MAX)
        SNAP_BUG("a number of arms that a load point cannot have");
    w.out->point = point;
    w.out->arms = o->arms;
    TRY(select_point(&w, requests, n, point, o->arms) ? SNAP_OK : no_memory(err));
    TRY(find_blocks(&w, o->arms, err));
    TRY(find_windows(&w, o, err));
    TRY(estimate(&w, o, err));
    *out = w.out;
    w.out = NULL;
cleanup:
    arena_release(&w.mem);
    free(w.out);
    return st;
}
