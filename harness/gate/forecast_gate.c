#include "harness/gate/forecast_gate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evals/distributions.h"
#include "evals/forecast.h"
#include "harness/gate/verdicts.h"
#include "harness/record/run.h"

/* Above this percentage of diverged answers, predicted losses are too small. An evaluation of both
 * formats with as many answers is then more exact (docs/lab/2026-11-28-forecast.md). So the verdict
 * is not "ok". */
static const double kMostDiverged = 30;

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for verdicts");
}

/* A prediction that is judged. The figures are percentage points. */
typedef struct {
    char name[200];
    forecast_loss figures;
    double accuracy;   /* accuracy of the format that this one is compared with, in percent */
    double diverged;   /* share of answers that diverge, in percent */
    const char *fault; /* a verdict that does not depend on the figures; NULL: they decide */
    char reason[300];
} prediction;

SNAP_PRINTF(3, 4)
static void blame(prediction *x, const char *verdict, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(x->reason, sizeof x->reason, fmt, ap);
    va_end(ap);
    x->fault = verdict;
}

/* ---- one prediction ---- */

static bool is_forecast(const model_record *row) {
    return strcmp(row->kind, "forecast") == 0;
}

/* A row whose figures cannot be read. */
static void check_format(prediction *x, const model_record *row) {
    if (!row->seen_pp.n)
        blame(x, "invalid", "an older version wrote this prediction: run fidelity --predict again");
    else if (row->seen_pp.n != (size_t)row->problems)
        blame(x, "invalid", "the prediction has %lld problems and %zu covariances",
              (long long)row->problems, row->seen_pp.n);
}

/* A row whose prediction says too little. No loss can be larger than the share of answers that
 * diverge. */
static void check_row(prediction *x, const model_record *row, double margin) {
    bool greedy = row->answers == row->problems;
    if (!x->fault)
        check_format(x, row);
    if (x->fault)
        return;
    if (isnan(row->delta_pp))
        blame(x, "inconclusive", "more than half of the greedy answers change: run eval");
    else if (isnan(row->se_pp) || row->problems < 2)
        blame(x, "inconclusive",
              "there is no interval: the reference needs right and wrong answers, and the task "
              "two or more problems");
    else if (row->accuracy_pct <= margin)
        blame(x, "inconclusive",
              "the reference answers only %.3g %% right, so it cannot lose more than the margin: "
              "use an easier task",
              row->accuracy_pct);
    else if (greedy && row->diverged_pct > margin)
        blame(x, "inconclusive",
              "greedy answers do not show how often changed answers are right: use a temperature "
              "above 0 with two or more samples, or run eval");
    else if (!greedy && row->diverged_pct > margin && row->mixed_problems < FORECAST_GATE_MIXED)
        blame(x, "inconclusive",
              "only %lld problems have both right and wrong answers, of at least %d: use more "
              "problems or samples, or another task or temperature",
              (long long)row->mixed_problems, FORECAST_GATE_MIXED);
}

static prediction of_row(const model_record *row, double margin) {
    prediction x = {.accuracy = row->accuracy_pct,
                    .diverged = row->diverged_pct,
                    .figures = {.loss = -row->delta_pp,
                                .se = row->se_pp,
                                .assumed_se = row->assumed_se_pp,
                                .problems = (size_t)row->problems}};
    (void)snprintf(x.name, sizeof x.name, "%.60s: %.60s against %.60s", row->task, row->precision,
                   row->reference);
    check_row(&x, row, margin);
    return x;
}

/* ---- the same format in two files ---- */

static bool is_same_format(const model_record *a, const model_record *b) {
    return is_forecast(a) && is_forecast(b) && strcmp(a->task, b->task) == 0 &&
           strcmp(a->precision, b->precision) == 0 && strcmp(a->reference, b->reference) == 0;
}

static bool is_same_checkpoint(const model_record *a, const model_record *b) {
    return strcmp(a->checkpoint_sha256, b->checkpoint_sha256) == 0;
}

/* The row of the current run for the row @like of the baseline, if possible with the same
 * checkpoint. */
static const model_record *find(const model_list *rows, const model_record *like) {
    const model_record *found = NULL;
    for (size_t i = 0; i < rows->n; i++) {
        const model_record *row = &rows->at[i];
        if (is_same_format(row, like) && (!found || is_same_checkpoint(row, like)))
            found = row;
    }
    return found;
}

static const char *why_not(const model_record *a, const model_record *b) {
    if (!is_same_checkpoint(a, b))
        return "the checkpoints differ";
    if (strcmp(a->data_sha256, b->data_sha256) != 0 || a->problems != b->problems)
        return "the problems differ";
    if (a->answers != b->answers)
        return "the numbers of answers differ";
    if (a->temperature != b->temperature || a->top_p != b->top_p)
        return "the sampling differs";
    if (a->accuracy_pct != b->accuracy_pct) /* each loss is relative to these answers */
        return "the reference's answers differ";
    return NULL;
}

static forecast_summary summary_of(const model_record *row) {
    return (forecast_summary){.delta = row->delta_pp,
                              .se = row->se_pp,
                              .assumed_se = row->assumed_se_pp,
                              .seen = row->seen_pp.at,
                              .problems = row->seen_pp.n};
}

/* Judges the loss from row @a of the baseline to row @b. */
static snap_status pair(prediction *x, const model_record *a, const model_record *b,
                        snap_err *err) {
    const forecast_summary before = summary_of(a), now = summary_of(b);
    snap_status st = forecast_loss_between(&before, &now, &x->figures, err);
    x->accuracy = fmax(0, fmin(100, a->accuracy_pct + a->delta_pp));
    if (st == SNAP_OK && x->figures.se > 0) /* otherwise no answer diverges between the files */
        x->diverged = fmax(a->diverged_pct, b->diverged_pct);
    return st;
}

static snap_status of_pair(prediction *x, const model_record *a, const model_list *current,
                           double margin, snap_err *err) {
    const model_record *b = find(current, a);
    *x = (prediction){0};
    (void)snprintf(x->name, sizeof x->name, "%.60s: %.60s, now against before", a->task,
                   a->precision);
    const char *why = b ? why_not(a, b) : NULL;
    if (!b)
        blame(x, "missing", "the current run does not have it");
    else if (why)
        blame(x, "invalid", "not comparable: %s", why);
    if (b) {
        check_row(x, a, margin);
        check_row(x, b, margin);
    }
    return x->fault ? SNAP_OK : pair(x, a, b, err);
}

/* ---- verdicts ---- */

/* What would decide: more problems, or the evaluation itself. */
static void advise(prediction *x, const gate_forecast_options *opt) {
    size_t n = strlen(x->reason);
    size_t needed = forecast_problems_needed(&x->figures, opt->margin, opt->alpha);
    char *to = x->reason + n;
    if (x->diverged > kMostDiverged)
        (void)snprintf(to, sizeof x->reason - n,
                       "; %.0f %% of the answers diverge, which is too many for a prediction: run "
                       "eval",
                       x->diverged);
    else if (needed)
        (void)snprintf(to, sizeof x->reason - n,
                       "; about %zu problems decide with probability 90 %% if the loss is as "
                       "predicted",
                       needed);
    else
        (void)snprintf(to, sizeof x->reason - n,
                       "; the predicted loss is too near to the margin for more problems to "
                       "decide: run eval");
}

static const char *judge(prediction *x, double p_holm, const gate_forecast_options *opt) {
    if (x->fault)
        return x->fault;
    double above = forecast_loss_above(&x->figures, opt->margin);
    (void)snprintf(x->reason, sizeof x->reason, "P(loss > %.3g pp) %s %.3f", opt->margin,
                   above < 0.001   ? "<"
                   : above > 0.999 ? ">"
                                   : "=",
                   fmin(fmax(above, 0.001), 0.999));
    if (p_holm <= opt->alpha)
        return "regressed";
    if (above <= opt->alpha && x->diverged <= kMostDiverged)
        return "ok";
    advise(x, opt);
    return "inconclusive";
}

static js *row_of(prediction *x, double p_holm, const gate_forecast_options *opt) {
    const char *verdict = judge(x, p_holm, opt);
    verdict_record v = verdict_start("forecast", x->name, verdict, x->reason, VERDICT_FORECAST);
    v.margin_pp = opt->margin;
    if (!x->fault) {
        const forecast_loss *l = &x->figures;
        double half = student_quantile(0.95, (double)l->problems - 1) * l->se;
        v.delta_pp = 0 - l->loss;
        v.ci90[0] = fmax(v.delta_pp - half, 0 - x->accuracy); /* where no answer is right */
        v.ci90[1] = fmin(v.delta_pp + half, 100 - x->accuracy);
        v.p_holm = p_holm;
        v.p_loss = forecast_loss_above(l, opt->margin);
    }
    return record_write(&verdict_type, &v);
}

static snap_status judge_all(prediction *all, size_t n, const gate_forecast_options *opt, js *rows,
                             snap_err *err) {
    double *p = malloc((n + 1) * sizeof *p);
    bool ok = p != NULL;
    for (size_t i = 0; i < n && ok; i++)
        p[i] = all[i].fault ? (double)NAN : 1 - forecast_loss_above(&all[i].figures, opt->margin);
    if (ok)
        stats_holm(p, n);
    for (size_t i = 0; i < n && ok; i++)
        ok = js_push_new(rows, row_of(&all[i], p[i], opt));
    free(p);
    return ok ? SNAP_OK : no_memory(err);
}

/* @before: NULL = no baseline. */
static snap_status check(const model_list *before, const model_list *now,
                         const gate_forecast_options *opt, js *rows, snap_err *err) {
    size_t n = 0;
    prediction *all = calloc(now->n + (before ? before->n : 0) + 1, sizeof *all);
    snap_status st = SNAP_OK;
    if (!all)
        return no_memory(err);
    for (size_t i = 0; i < now->n; i++)
        if (is_forecast(&now->at[i]))
            all[n++] = of_row(&now->at[i], opt->margin);
    for (size_t i = 0; before && i < before->n && st == SNAP_OK; i++)
        if (is_forecast(&before->at[i]))
            st = of_pair(&all[n++], &before->at[i], now, opt->margin, err);
    if (st == SNAP_OK)
        st = judge_all(all, n, opt, rows, err);
    free(all);
    return st;
}

snap_status gate_check_forecasts(const results *baseline, const results *current,
                                 const gate_forecast_options *opt, js *rows, snap_err *err) {
    arena mem = {0};
    run_record before, now;
    snap_status st = SNAP_OK;
    if (baseline)
        TRY(run_read(&before, baseline, &mem, err));
    TRY(run_read(&now, current, &mem, err));
    TRY(check(baseline ? &before.model_fidelity : NULL, &now.model_fidelity, opt, rows, err));
cleanup:
    arena_release(&mem);
    return st;
}
