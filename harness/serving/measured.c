#include "harness/serving/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/stats.h"
#include "harness/serving/batch_means.h"
#include "harness/serving/differences.h"

const double serving_lag_share = 0.01;

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

/* ---- finding the blocks of an arm ---- */

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
            all.drift = w->block[a][b].window.drift;
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
            TRY(steady_find(at->at, at->n, &s, !o->before_units, &at->window, err));
            w->growth[b] = steady_growth_of(at->at, at->n, &s);
            arm->steady &= at->window.steady;
            arm->drift = fmax(arm->drift, at->window.drift);
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

/* ---- counting requests ---- */

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

/* ---- estimates and targets ---- */

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
        arm->late[l] = arm->lag_share[l] > serving_lag_share;
        for (int k = 0; k < SERVING_CDF; k++)
            arm->cdf[l][k] = sliced_quantile(s, (serving_time)l, k / (SERVING_CDF - 1.0));
    }
    arm->rate_lag_share = arm->lag_p99_s / sliced_quantile(s, SERVING_E2E, 0.5);
    arm->cohort = (size_t)s->requests;
}

/* The result of one target. @hits, @totals: [slices], as in sliced_arm; @each: slices of a block */
static slo_result test_target(const sliced_arm *s, const slo_target *t, const double *hits,
                              const double *totals, const serving_arm *arm, size_t each,
                              const serving_measure_options *o) {
    double logs[SLICES_MOST];
    slo_result r = slo_test(
        t, hits, totals, arm->slices ? s->slices : 0,
        fmax(sliced_effect(s, t->latency), sliced_cluster_effect(s, t->latency, t->limit_s)),
        o->level);
    if (!o->shares_only && arm->slices &&
        sliced_log_quantiles(s, t->latency, totals, t->quantile, 1, logs))
        slo_test_values(t, logs, s->slices, o->level, &r);
    if (arm->by_blocks && sliced_log_quantiles(s, t->latency, totals, t->quantile, each, logs))
        slo_test_blocks(t, logs, arm->blocks, s->slices, o->level, &r);
    return r;
}

/* Tests a target. If the server's speed drifts, the state of the target must also hold for a limit
 * that is stricter by the drift. */
static slo_result test_drifting_target(const work *w, int a, const sliced_arm *s, size_t k,
                                       size_t each, const serving_measure_options *o) {
    const serving_arm *arm = &w->out->arm[a];
    const slo_target *t = &o->targets.at[k];
    slo_result r = test_target(s, t, s->hits[k], s->totals[k], arm, each, o);
    if (!(arm->drift > 0) || r.state == SLO_OPEN)
        return r;
    double hits[SLICES_MOST] = {0}, totals[SLICES_MOST] = {0};
    double factor = 1 + arm->drift;
    slo_target strict = *t;
    strict.limit_s = r.state == SLO_MEETS ? t->limit_s / factor : t->limit_s * factor;
    sliced_count_target(w->block[a], w->blocks, each ? each : 1, &strict, hits, totals);
    if (test_target(s, &strict, hits, totals, arm, each, o).state != r.state)
        r.state = SLO_OPEN;
    return r;
}

static void test_targets(work *w, int a, const sliced_arm *s, size_t each,
                         const serving_measure_options *o) {
    serving_arm *arm = &w->out->arm[a];
    bool all = o->targets.n > 0, fails = false, all_by_blocks = true, fails_by_blocks = false;
    for (size_t k = 0; k < o->targets.n && s->hits[k]; k++) {
        slo_result r = arm->target[k] = test_drifting_target(w, a, s, k, each, o);
        all &= r.state == SLO_MEETS;
        fails |= r.state == SLO_FAILS;
        all_by_blocks &= r.by_blocks;
        fails_by_blocks |= r.state == SLO_FAILS && r.by_blocks;
    }
    if (o->targets.n && (fails || arm->backlog.saturated))
        arm->state = SLO_FAILS;
    else
        arm->state = all ? SLO_MEETS : SLO_OPEN;
    arm->state_by_blocks = arm->by_blocks && (fails ? fails_by_blocks : all_by_blocks);
}

static void set_intervals(serving_arm *arm, const sliced_arm *s, const double *draws, int a) {
    double x[SLICED_DRAWS];
    for (int m = 0; m < SERVING_METRICS; m++) {
        if (isnan(arm->metric[m].value))
            continue;
        difference_draws(draws, a, m, x);
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

/* Widens the intervals of all metrics to hold those by blocks (batch_means.h). The means are those
 * of the logarithms or, if a value is 0, of the values. @by_block: [blocks][SERVING_METRICS] */
static void widen_intervals(serving_arm *arm, const double *by_block) {
    double value[SLICES_MOST], logs[SLICES_MOST], own[2];
    for (int m = 0; m < SERVING_METRICS; m++) {
        bool positive = true;
        for (size_t b = 0; b < arm->blocks; b++) {
            value[b] = by_block[b * SERVING_METRICS + (size_t)m];
            logs[b] = log(value[b]);
            positive &= value[b] > 0;
        }
        batch_interval(positive ? logs : value, arm->blocks, 0.95, own);
        for (int i = 0; i < 2; i++)
            own[i] = positive ? exp(own[i]) : own[i] < 0 ? 0 : own[i]; /* a NAN stays */
        if (!isnan(arm->metric[m].value))
            batch_widen(arm->metric[m].ci95, own);
    }
}

/* ---- a load point ---- */

/* Sets intervals, differences and verdicts. @each: slices of a block; 0: there are no intervals */
static snap_status set_uncertainty(work *w, const sliced_arm *arms, size_t each,
                                   const serving_measure_options *o, snap_err *err) {
    serving_measured *out = w->out;
    size_t n = (size_t)o->arms;
    double *draws = arena_alloc(&w->mem, n * SLICED_DRAWS, SERVING_METRICS * sizeof *draws);
    double *by_block = arena_alloc(&w->mem, n * w->blocks, SERVING_METRICS * sizeof *by_block);
    if (!draws || !by_block)
        return no_memory(err);
    if (each)
        sliced_bootstrap(arms, n, SLICED_DRAWS, o->seed, draws);
    for (int a = 0; a < o->arms && each; a++) {
        double *own = by_block + (size_t)a * w->blocks * SERVING_METRICS;
        set_intervals(&out->arm[a], &arms[a], draws, a);
        sliced_block_metrics(&arms[a], w->blocks, own);
        if (out->arm[a].by_blocks)
            widen_intervals(&out->arm[a], own);
    }
    differences_set(out, &(difference_sources){draws, by_block, w->blocks, o->margin});
    return SNAP_OK;
}

static snap_status estimate(work *w, const serving_measure_options *o, snap_err *err) {
    sliced_arm *arms = arena_alloc(&w->mem, (size_t)o->arms, sizeof *arms);
    slice_dependence found;
    size_t each =
        sliced_choose((const sliced_block *const *)w->block, (size_t)o->arms, w->blocks, &found);
    snap_status st = SNAP_OK;
    if (!arms)
        return no_memory(err);
    for (int a = 0; a < o->arms; a++) {
        serving_arm *arm = &w->out->arm[a];
        TRY(count_requests(w, a, err));
        TRY(sliced_make(&arms[a], w->block[a], w->blocks, each ? each : 1, &o->targets, o->gpus,
                        &w->mem, err));
        arm->slices = each * w->blocks;
        arm->correlated = found.left && (o->correlated_untested || found.p <= slice_test_level);
        arm->by_blocks = arm->correlated && w->blocks >= 2 && !o->before_units;
        arm->independence_p = found.p;
        set_values(arm, &arms[a]);
        test_targets(w, a, &arms[a], each, o);
    }
    if (!o->states_only)
        TRY(set_uncertainty(w, arms, each, o, err));
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
