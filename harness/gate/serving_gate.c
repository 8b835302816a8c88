#include "harness/gate/serving_gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evals/distributions.h"
#include "harness/gate/verdicts.h"
#include "harness/record/run.h"

/* Three rates, then medians, then p99s. */
enum { RATES = 3, MEDIANS = 3, METRICS = RATES + MEDIANS + 4 };
static const char *const kMetrics[METRICS] = {
    "output_tok_s", "requests_s", "goodput_s", "ttft", "tpot", "e2e", "ttft", "itl", "tpot", "e2e"};

/* A value with its interval, whose width comes from Student's t with @df degrees of freedom;
 * HUGE_VAL: from the normal distribution. */
typedef struct {
    double value, lo, hi, df;
} estimate;

/* One metric at one load point. */
typedef struct {
    char name[160];
    int metric;
    bool decides; /* the metric must be shown not to be slower */
    estimate before, after;
    bool missing;     /* the current run lacks it */
    const char *flag; /* a flag of one of the runs that prevents a verdict; NULL = none */
    double drift;     /* logarithm of the ratio that the drifts of both runs may cause */
    double log_ratio, se, df;
    gate_cell cell;
} comparison;

static estimate of(double value, const double ci[2], double df) {
    return (estimate){value, ci[0], ci[1], df};
}

static bool is_same_load(const serving_record *a, const serving_record *b) {
    return strcmp(a->arm, b->arm) == 0 && strcmp(a->loop, b->loop) == 0 &&
           fabs(a->load - b->load) <= 1e-9 * fabs(a->load);
}

static const serving_record *find(const serving_list *all, const serving_record *like,
                                  const char *kind, const char *metric) {
    for (size_t i = 0; i < all->n; i++) {
        const serving_record *r = &all->at[i];
        if (strcmp(r->kind, kind) == 0 && is_same_load(r, like) &&
            (!metric || strcmp(r->metric, metric) == 0))
            return r;
    }
    return NULL;
}

/* Whether the intervals of a load point count whole blocks. */
static bool counts_blocks(const serving_record *load) {
    return load->units && strcmp(load->units, "blocks") == 0 && load->blocks > 1;
}

/* The value of a metric at the load point of the row @like of kind load. NANs if it is missing. */
static estimate value_of(const serving_list *all, const serving_record *like, int metric) {
    const estimate none = {(double)NAN, (double)NAN, (double)NAN, HUGE_VAL};
    const serving_record *load = find(all, like, "load", NULL),
                         *r = metric < RATES ? load : find(all, like, "latency", kMetrics[metric]);
    if (!r || !load)
        return none;
    double df = counts_blocks(load) ? (double)(load->blocks - 1) : HUGE_VAL;
    switch (metric) {
    case 0:
        return of(r->output_tok_s, r->output_tok_s_ci95, df);
    case 1:
        return of(r->requests_s, r->requests_s_ci95, df);
    case 2:
        return of(r->goodput_s, r->goodput_s_ci95, df);
    default:
        return metric < RATES + MEDIANS ? of(r->p50_ms, r->p50_ms_ci95, df)
                                        : of(r->p99_ms, r->p99_ms_ci95, df);
    }
}

/* The flag of a load point that says that its intervals are too narrow; NULL if it has none. */
static const char *flag_of(const serving_list *all, const serving_record *like) {
    const serving_record *r = find(all, like, "load", NULL);
    if (r && serving_has_flag(r, "unsteady"))
        return "unsteady";
    return r && serving_has_flag(r, "correlated") && !counts_blocks(r) ? "correlated" : NULL;
}

/* The logarithm of the change that the drift of a load point may cause (drift_pct). */
static double drift_of(const serving_list *all, const serving_record *like) {
    const serving_record *r = find(all, like, "load", NULL);
    return r && r->drift_pct > 0 ? log1p(r->drift_pct / 100) : 0; /* 0 for NAN */
}

static bool is_known(const estimate *e) {
    return e->value > 0 && e->lo > 0 && isfinite(e->hi) && e->hi >= e->lo;
}

static double quantile(double p, double df) {
    return isinf(df) ? normal_quantile(p) : student_quantile(p, df);
}

static double se_of(const estimate *e) {
    return log(e->hi / e->lo) / (2 * quantile(0.975, e->df));
}

/* The degrees of freedom of a difference of two values (Welch and Satterthwaite). */
static double joint_df(const estimate *a, const estimate *b) {
    double x = pow(se_of(a), 2), y = pow(se_of(b), 2), parts = x * x / a->df + y * y / b->df;
    return parts > 0 ? pow(x + y, 2) / parts : HUGE_VAL;
}

/* P(T > t) for t = (x - limit) / se; without spread, x itself decides. */
static double p_above(double x, double limit, double se, double df) {
    if (se > 0)
        return isinf(df) ? normal_cdf((limit - x) / se) : student_cdf((limit - x) / se, df);
    return x > limit ? 0 : 1;
}

static void test(comparison *c, double threshold) {
    c->cell.test[GATE_QUARTILE].p_slower = c->cell.p_within = 1;
    c->missing = !is_known(&c->after);
    if (c->missing)
        return;
    double sign = c->metric < RATES ? -1 : 1;
    c->log_ratio = sign * log(c->after.value / c->before.value);
    c->se = hypot(se_of(&c->before), se_of(&c->after));
    c->df = joint_df(&c->before, &c->after);
    if (c->flag)
        return;
    c->cell.test[GATE_QUARTILE].p_slower =
        p_above(c->log_ratio, threshold + c->drift, c->se, c->df);
    c->cell.p_within = p_above(-c->log_ratio, c->drift - threshold, c->se, c->df);
}

static js *row_of(const comparison *c, double threshold) {
    char reason[200] = "";
    const char *verdict = "ok";
    bool rate = c->metric < RATES;
    if (c->missing) {
        verdict = "missing";
        (void)snprintf(reason, sizeof reason, "the current run has no value with an interval");
    } else if (c->flag) {
        verdict = "inconclusive";
        (void)snprintf(reason, sizeof reason,
                       "one of the runs has the flag '%s': measure longer or more blocks", c->flag);
    } else if (c->cell.state == GATE_REGRESSED) {
        verdict = "regressed";
        (void)snprintf(reason, sizeof reason, "was %.4g, is %.4g%s", c->before.value,
                       c->after.value, rate ? " per second" : " ms");
    } else if (c->decides && c->cell.state == GATE_INCONCLUSIVE) {
        verdict = "inconclusive";
        (void)snprintf(reason, sizeof reason,
                       "not enough evidence for either slower or not slower: measure more blocks");
    }
    verdict_record v = verdict_start("serving", c->name, verdict, reason, VERDICT_COMPARED);
    v.threshold = exp(threshold);
    if (!c->missing) {
        v.ratio = exp(c->log_ratio);
        v.ci90[0] = exp(c->log_ratio - quantile(0.95, c->df) * c->se);
        v.ci90[1] = exp(c->log_ratio + quantile(0.95, c->df) * c->se);
    }
    if (!c->missing && !c->flag) {
        v.p_slower = c->cell.test[GATE_QUARTILE].p_slower;
        v.p_holm = c->cell.test[GATE_QUARTILE].p_holm;
        v.p_within = c->decides ? c->cell.p_within : (double)NAN;
    }
    if (!rate) {
        v.baseline_ns = 1e6 * c->before.value;
        v.current_ns = c->missing ? (double)NAN : 1e6 * c->after.value;
    }
    return record_write(&verdict_type, &v);
}

static size_t compare(const run_record *before, const run_record *after, double threshold,
                      comparison *out) {
    size_t n = 0;
    for (size_t i = 0; i < before->serving.n; i++) {
        const serving_record *r = &before->serving.at[i];
        bool open = strcmp(r->loop, "open") == 0;
        for (int k = 0; k < METRICS && strcmp(r->kind, "load") == 0; k++) {
            comparison *c = &out[n];
            *c = (comparison){.metric = k,
                              .decides = k < RATES ? !open : k < RATES + MEDIANS,
                              .before = value_of(&before->serving, r, k)};
            if (!is_known(&c->before))
                continue;
            c->after = value_of(&after->serving, r, k);
            c->drift = drift_of(&before->serving, r) + drift_of(&after->serving, r);
            c->flag = flag_of(&before->serving, r);
            c->flag = c->flag ? c->flag : flag_of(&after->serving, r);
            (void)snprintf(c->name, sizeof c->name, "%.60s %.4g%s %s%s", r->arm, r->load,
                           open ? "/s" : " at a time", kMetrics[k],
                           k < RATES             ? ""
                           : k < RATES + MEDIANS ? "_p50"
                                                 : "_p99");
            test(c, threshold);
            n++;
        }
    }
    return n;
}

static snap_status check(const run_record *before, const run_record *after,
                         const gate_limits *limits, js *rows, snap_err *err) {
    double threshold = log1p(fmax(limits->share, SERVING_GATE_SHARE));
    comparison *all = calloc(before->serving.n * METRICS + 1, sizeof *all);
    gate_cell *cells = calloc(before->serving.n * METRICS + 1, sizeof *cells);
    bool ok = all && cells;
    size_t n = ok ? compare(before, after, threshold, all) : 0;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n; i++)
        cells[i] = all[i].cell;
    if (n)
        st = gate_settle(cells, n, 1, limits->alpha, err);
    for (size_t i = 0; i < n && ok && st == SNAP_OK; i++) {
        all[i].cell = cells[i];
        ok = js_push_new(rows, row_of(&all[i], threshold));
    }
    free(all);
    free(cells);
    return ok ? st : err_set(err, SNAP_E_NOMEM, "out of memory for verdicts");
}

snap_status gate_check_serving(const results *baseline, const results *current,
                               const gate_limits *limits, js *rows, snap_err *err) {
    arena mem = {0};
    run_record before, after;
    snap_status st = SNAP_OK;
    TRY(run_read(&before, baseline, &mem, err));
    TRY(run_read(&after, current, &mem, err));
    st = check(&before, &after, limits, rows, err);
cleanup:
    arena_release(&mem);
    return st;
}
