#include "harness/serving/result_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/serving/flags.h"
#include "harness/serving/part_rows.h"

static const double kMs = 1e3;

static snap_status push(js *rows, const serving_record *r, snap_err *err) {
    return js_push_new(rows, record_write(&serving_type, r))
               ? SNAP_OK
               : err_set(err, SNAP_E_NOMEM, "out of memory for the rows of a server");
}

static serving_record start(const char *kind, const serving_rows_context *c, int arm) {
    serving_record r = serving_record_new(kind);
    r.arm = c->arms[arm].name;
    r.loop = c->options->open ? "open" : "closed";
    return r;
}

static serving_record start_point(const char *kind, const serving_rows_context *c, int arm,
                                  int point, double load) {
    serving_record r = start(kind, c, arm);
    r.point = point;
    r.load = load;
    return r;
}

/* The units of the intervals and tests of an arm: blocks or slices. Empty for the rule of older
 * files. */
static const char *units_of(bool by_blocks, const serving_rows_context *c) {
    return c->options->before_units ? "" : by_blocks ? "blocks" : "slices";
}

static void put_interval(double to[2], const double from[2], double scale) {
    to[0] = from[0] * scale;
    to[1] = from[1] * scale;
}

/* ---- one arm at one load point ---- */

static void set_flags(serving_record *r, unsigned flags, const char *names[SERVING_FLAGS]) {
    size_t n = 0;
    for (int i = 0; i < SERVING_FLAGS; i++)
        if (flags & (1U << i))
            names[n++] = serving_flag_name(i);
    r->flags = (record_texts){names, n};
}

static void set_rates(serving_record *r, const serving_arm *a) {
    const struct {
        double *value, *ci;
        double scale;
    } to[SERVING_RATES] = {
        {&r->offered_s, r->offered_s_ci95, 1},     {&r->requests_s, r->requests_s_ci95, 1},
        {&r->input_tok_s, r->input_tok_s_ci95, 1}, {&r->output_tok_s, r->output_tok_s_ci95, 1},
        {&r->pieces_s, r->pieces_s_ci95, 1},       {&r->gpu_tok_s, r->gpu_tok_s_ci95, 1},
        {&r->goodput_s, r->goodput_s_ci95, 1},     {&r->user_tok_s, r->user_tok_s_ci95, 1},
        {&r->good_pct, r->good_pct_ci95, 100},     {&r->failed_pct, r->failed_pct_ci95, 100}};
    for (int k = 0; k < SERVING_RATES; k++) {
        const serving_estimate *e = &a->metric[serving_metric_of_rate((serving_rate)k)];
        *to[k].value = e->value * to[k].scale;
        put_interval(to[k].ci, e->ci95, to[k].scale);
    }
}

static snap_status add_load(const serving_measured *l, int arm, const serving_rows_context *c,
                            double load, js *rows, snap_err *err) {
    const serving_arm *a = &l->arm[arm];
    const char *flags[SERVING_FLAGS];
    serving_record r = start_point("load", c, arm, l->point, load);
    r.endpoint = c->arms[arm].endpoint;
    r.model = c->arms[arm].model;
    r.precision = c->arms[arm].precision;
    r.workload = c->workload;
    r.blocks = (int64_t)a->blocks;
    r.requests = (int64_t)a->requests;
    r.answered = (int64_t)a->answered;
    r.failed = (int64_t)a->failed;
    r.cut = (int64_t)a->cut;
    r.cohort = (int64_t)a->cohort;
    r.block_s = a->block_s;
    r.window_s = a->window_s;
    r.slices = (int64_t)a->slices;
    r.units = units_of(a->by_blocks, c);
    r.independence_p = a->independence_p;
    r.steady = a->steady;
    r.drift_pct = c->options->before_units ? (double)NAN : 100 * a->drift;
    r.saturated = a->backlog.saturated;
    r.backlog_s = a->backlog.slope;
    r.backlog_pct = 100 * a->backlog.share;
    r.backlog_p = a->backlog.p;
    r.prompt_tokens_mean = a->prompt_tokens;
    r.completion_tokens_mean = a->completion_tokens;
    r.gpus = c->options->gpus > 0 ? c->options->gpus : (double)NAN;
    r.lag_p50_ms = kMs * a->lag_p50_s;
    r.lag_p99_ms = kMs * a->lag_p99_s;
    r.lag_max_ms = kMs * a->lag_max_s;
    r.state = c->options->targets.n ? slo_state_name(a->state) : "";
    set_rates(&r, a);
    set_flags(&r, serving_flags_of(a), flags);
    return push(rows, &r, err);
}

static snap_status add_latency(const serving_measured *l, int arm, serving_time which,
                               const serving_rows_context *c, double load, js *rows,
                               snap_err *err) {
    const serving_arm *a = &l->arm[arm];
    serving_record r = start_point("latency", c, arm, l->point, load);
    double needed[SERVING_STATISTICS - 1], least[SERVING_STATISTICS - 1], cdf[SERVING_CDF];
    const struct {
        double *value, *ci;
    } to[SERVING_STATISTICS] = {{&r.mean_ms, r.mean_ms_ci95}, {&r.p50_ms, r.p50_ms_ci95},
                                {&r.p90_ms, r.p90_ms_ci95},   {&r.p95_ms, r.p95_ms_ci95},
                                {&r.p99_ms, r.p99_ms_ci95},   {&r.p999_ms, r.p999_ms_ci95}};
    for (int s = 0; s < SERVING_STATISTICS; s++) {
        const serving_estimate *e = &a->metric[serving_metric_of(which, (serving_statistic)s)];
        *to[s].value = kMs * e->value;
        bool open = isinf(e->ci95[1]);
        if (!open)
            put_interval(to[s].ci, e->ci95, kMs);
        if (s) {
            needed[s - 1] = (double)e->needs;
            least[s - 1] = open ? kMs * e->ci95[0] : 0;
        }
    }
    for (int k = 0; k < SERVING_CDF; k++)
        cdf[k] = kMs * a->cdf[which][k];
    r.metric = serving_time_name(which);
    r.values = (int64_t)a->values[which];
    r.needed = (record_numbers){needed, SERVING_STATISTICS - 1};
    r.least_ms = (record_numbers){least, SERVING_STATISTICS - 1};
    r.cdf_ms = (record_numbers){cdf, SERVING_CDF};
    r.late = a->late[which];
    return push(rows, &r, err);
}

static snap_status add_target(const serving_measured *l, int arm, size_t k,
                              const serving_rows_context *c, double load, js *rows, snap_err *err) {
    const slo_target *t = &c->options->targets.at[k];
    const slo_result *result = &l->arm[arm].target[k];
    serving_record r = start_point("target", c, arm, l->point, load);
    buf name = {0};
    slo_name(t, &name);
    r.target = buf_str(&name);
    r.limit_ms = kMs * t->limit_s;
    r.values = (int64_t)result->n;
    r.values_needed = (int64_t)result->needed;
    r.share_pct = 100 * result->share;
    r.share_pct_ci[0] = 100 * result->lo;
    r.share_pct_ci[1] = 100 * result->hi;
    r.level_pct = 100 * c->options->level;
    r.percentile_ms = kMs * result->value;
    r.percentile_ms_ci[0] = kMs * result->value_ci[0];
    r.percentile_ms_ci[1] = kMs * result->value_ci[1];
    r.percentile_level_pct =
        100 * (result->by_blocks ? c->options->level : slo_value_level(c->options->level));
    r.units = units_of(result->by_blocks, c);
    r.state = slo_state_name(result->state);
    snap_status st = buf_check(&name, "the name of a target", err);
    if (st == SNAP_OK)
        st = push(rows, &r, err);
    buf_release(&name);
    return st;
}

static snap_status add_difference(const serving_measured *l, int arm, int metric,
                                  const serving_rows_context *c, double load, js *rows,
                                  snap_err *err) {
    const serving_difference *d = &l->difference[arm][metric];
    bool latency = metric < serving_metric_of_rate(SERVING_OFFERED);
    char name[32];
    serving_record r = start_point("difference", c, arm, l->point, load);
    if (isnan(d->delta))
        return SNAP_OK;
    serving_metric_name(metric, name);
    r.baseline = c->arms[0].name;
    r.metric = name;
    r.ratio = d->ratio;
    put_interval(r.ratio_ci95, d->ci95, 1);
    put_interval(r.ratio_ci90, d->ci90, 1);
    r.delta = d->delta * (latency ? kMs : 1);
    put_interval(r.delta_ci95, d->delta_ci95, latency ? kMs : 1);
    r.margin_pct = 100 * c->options->margin;
    r.p = d->p;
    r.p_holm = d->p_holm;
    r.verdict = d->judged ? serving_verdict_name(d->verdict) : "";
    r.reason = d->reason;
    r.units = units_of(l->arm[0].by_blocks, c);
    return push(rows, &r, err);
}

snap_status serving_rows_of_point(const serving_measured *l, const serving_rows_context *c,
                                  double load, js *rows, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int a = 0; a < l->arms; a++) {
        TRY(add_load(l, a, c, load, rows, err));
        for (int k = 0; k < SERVING_TIMES; k++)
            if (l->arm[a].values[k])
                TRY(add_latency(l, a, (serving_time)k, c, load, rows, err));
        for (size_t k = 0; k < c->options->targets.n; k++)
            TRY(add_target(l, a, k, c, load, rows, err));
    }
    for (int a = 1; a < l->arms; a++)
        for (int m = 0; m < SERVING_METRICS; m++)
            TRY(add_difference(l, a, m, c, load, rows, err));
cleanup:
    return st;
}

/* ---- the course of blocks ---- */

/* Copies the requests of one block. Returns their number. */
static size_t take_block(const serving_request *all, size_t n, int point, int arm, int block,
                         serving_request *to) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (all[i].point == point && all[i].arm == arm && all[i].block == block)
            to[k++] = all[i];
    return k;
}

static snap_status add_block(const serving_request *r, size_t n, int arm, int point,
                             const serving_rows_context *c, double load, js *rows, snap_err *err) {
    steady_series s;
    steady_window w;
    serving_record row = start_point("series", c, arm, point, load);
    steady_series_of(r, n, &s);
    snap_status st = steady_find(r, n, &s, !c->options->before_units, &w, err);
    if (st != SNAP_OK)
        return st;
    row.block = r[0].block;
    row.step_s = s.step_s;
    row.window[0] = w.from;
    row.window[1] = w.to;
    row.steady_block = w.steady;
    row.in_flight = (record_numbers){s.in_flight, STEADY_STEPS};
    row.course_tok_s = (record_numbers){s.tokens_s, STEADY_STEPS};
    row.course_requests_s = (record_numbers){s.ended_s, STEADY_STEPS};
    return push(rows, &row, err);
}

snap_status serving_rows_of_blocks(const serving_request *requests, size_t n, int point, int arm,
                                   const serving_rows_context *c, double load, js *rows,
                                   snap_err *err) {
    serving_request *own = malloc((n + 1) * sizeof *own);
    snap_status st = SNAP_OK;
    if (!own)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the rows of a server");
    for (int block = 0; block < SLICES_MOST; block++) {
        size_t k = take_block(requests, n, point, arm, block, own);
        if (k)
            TRY(add_block(own, k, arm, point, c, load, rows, err));
    }
cleanup:
    free(own);
    return st;
}

/* ---- knees ---- */

/* The first flag of the ends of two knees; "" = there is none. */
static const char *first_doubt(const knee_step *a, const knee_step *b) {
    const char *all[] = {a->doubt[0], a->doubt[1], b->doubt[0], b->doubt[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            return all[i];
    return "";
}

static snap_status add_ratio(const knee_step *knees, int arm, const serving_quality *quality,
                             const serving_rows_context *c, js *rows, snap_err *err) {
    headline_facts facts = {.baseline = c->arms[0].name,
                            .arm = c->arms[arm].name,
                            .knee = {knees[0], knees[arm]},
                            .quality = ""};
    if (quality) {
        facts.quality = quality[arm].verdict;
        facts.margin_pp = quality[arm].margin_pp;
        facts.delta_pp = quality[arm].delta_pp;
        put_interval(facts.ci95_pp, quality[arm].ci95_pp, 1);
    }
    buf text = {0};
    serving_record r = start("ratio", c, arm);
    knee_ratio ratio = knee_ratio_of(&knees[0], &knees[arm]);
    serving_headline(&facts, &text);
    r.baseline = c->arms[0].name;
    r.ratio = ratio.ratio;
    r.ratio_lo = ratio.lo > 0 ? ratio.lo : (double)NAN;
    r.ratio_hi = ratio.hi;
    r.reason = first_doubt(&knees[0], &knees[arm]);
    r.quality = facts.quality;
    r.headline = buf_str(&text);
    snap_status st = buf_check(&text, "the headline", err);
    if (st == SNAP_OK)
        st = push(rows, &r, err);
    buf_release(&text);
    return st;
}

snap_status serving_rows_of_knees(const knee_step *knees, const serving_quality *quality,
                                  const serving_rows_context *c, js *rows, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int a = 0; a < c->options->arms; a++) {
        serving_record r = start("knee", c, a);
        r.knee_lo = knees[a].lo > 0 ? knees[a].lo : (double)NAN;
        r.knee_hi = knees[a].hi;
        TRY(push(rows, &r, err));
    }
    for (int a = 1; a < c->options->arms; a++)
        TRY(add_ratio(knees, a, quality, c, rows, err));
cleanup:
    return st;
}

/* ---- a run ---- */

/* Adds the rows of one load point. known[arm] is set to what they show about the targets. */
static snap_status add_point(const serving_request *requests, size_t n, int point,
                             const serving_point *at, const serving_rows_context *c,
                             knee_point *known, js *rows, snap_err *err) {
    serving_measured *l;
    double load = at->load;
    snap_status st = serving_measure_point(requests, n, point, c->options, &l, err);
    if (st != SNAP_OK)
        return st;
    if (!(load > 0))
        load = l->arm[0].metric[serving_metric_of_rate(SERVING_OFFERED)].value;
    if (!(load > 0))
        load = (double)NAN;
    st = serving_rows_of_point(l, c, load, rows, err);
    for (int a = 0; a < c->options->arms; a++) {
        known[a] = (knee_point){.load = load,
                                .state = l->arm[a].state,
                                .turns = 1,
                                .doubt = serving_flag_against_state(&l->arm[a])};
        const serving_record base = start_point("part", c, a, point, load);
        if (st == SNAP_OK)
            st = serving_rows_of_parts(requests, n, a, &base, rows, err);
        if (st == SNAP_OK)
            st = serving_rows_of_blocks(requests, n, point, a, c, load, rows, err);
    }
    free(l);
    return st;
}

/* Marks a load point that was not measured, so that no knee depends on it. */
static void not_measured(knee_point *known, int arms) {
    for (int a = 0; a < arms; a++)
        known[a].load = (double)NAN;
}

/* The knee of one arm from all load points of one kind of loop. Returns false if there are none. */
static bool knee_of(const knee_point *known, const serving_point *points, int n, int arms, int arm,
                    bool open, knee_point *own, knee_step *out) {
    size_t k = 0;
    for (int p = 0; p < n; p++)
        if (points[p].open == open && !isnan(known[p * arms + arm].load))
            own[k++] = known[p * arms + arm];
    *out = knee_next(own, k, &(knee_options)KNEE_DEFAULTS);
    return k > 0;
}

/* Copies the requests in the order of their load points. The requests of point p are
 * [first[p], first[p + 1]). Requests of other points are left out. @first: [n_points + 1] */
static serving_request *sort_by_point(const serving_request *requests, size_t n, int n_points,
                                      size_t *first) {
    serving_request *sorted = malloc((n + 1) * sizeof *sorted);
    size_t at = 0, *next = calloc((size_t)n_points + 1, sizeof *next);
    if (sorted && next) {
        for (size_t i = 0; i < n; i++)
            if (requests[i].point >= 0 && requests[i].point < n_points)
                next[requests[i].point]++;
        for (int p = 0; p < n_points; p++) {
            first[p] = at;
            at += next[p];
            next[p] = first[p];
        }
        first[n_points] = at;
        for (size_t i = 0; i < n; i++)
            if (requests[i].point >= 0 && requests[i].point < n_points)
                sorted[next[requests[i].point]++] = requests[i];
    }
    bool complete = next;
    free(next);
    if (complete)
        return sorted;
    free(sorted);
    return NULL;
}

snap_status serving_rows_of_run(const serving_request *requests, size_t n,
                                const serving_point *points, int n_points,
                                const serving_rows_context *c, const serving_quality *quality,
                                js *rows, snap_err *err) {
    int arms = c->options->arms;
    serving_measure_options options = *c->options;
    serving_rows_context own = {&options, c->arms, c->workload};
    knee_step knees[SERVING_ARMS_MAX];
    knee_point *known = calloc((size_t)(n_points + 1) * (size_t)arms, sizeof *known);
    knee_point *some = calloc((size_t)n_points + 1, sizeof *some);
    size_t *first = calloc((size_t)n_points + 1, sizeof *first);
    serving_request *sorted = first ? sort_by_point(requests, n, n_points, first) : NULL;
    snap_status st = SNAP_OK;
    if (!known || !some || !sorted) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for the rows of a server");
        goto cleanup;
    }
    for (int p = 0; p < n_points; p++) {
        const serving_request *at = sorted + first[p];
        size_t k = first[p + 1] - first[p];
        options.open = points[p].open;
        if (serving_is_measured(at, k, p, arms))
            TRY(add_point(at, k, p, &points[p], &own, known + p * arms, rows, err));
        else
            not_measured(known + p * arms, arms);
    }
    for (int open = 0; open < 2 && options.targets.n; open++) {
        bool any = false;
        options.open = open;
        for (int a = 0; a < arms; a++)
            any = knee_of(known, points, n_points, arms, a, open, some, &knees[a]);
        if (any)
            TRY(serving_rows_of_knees(knees, quality, &own, rows, err));
    }
cleanup:
    free(known);
    free(some);
    free(first);
    free(sorted);
    return st;
}
