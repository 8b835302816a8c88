#include "harness/gate/files.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/gate/verdicts.h"
#include "harness/measure/stats.h"
#include "harness/record/run.h"

enum { kStretches = 25 };
static const double kInterval = 0.05;
static const double kMostDisturbed = 0.25; /* log-ratio; a cell that other work can have changed by
                                              more is never "ok" */
static const double kTwoRuns = 1.96 * 1.4142135623730951; /* times the standard deviation: 95 % of
                                                             differences between two runs are
                                                             smaller */

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for verdicts");
}

/* ---- pairs of rows ---- */

typedef struct {
    const cell_record *before, *after; /* after is NULL if the current run lacks the cell */
    char name[160];
    double x[kStretches], y[kStretches]; /* logarithms of the stretches' times */
    size_t n, m;
    bool disturbed;   /* other work used the processors in one of the runs */
    double threshold; /* log-ratio that counts as no change */
    gate_cell cell;   /* its first test compares the medians of the stretches */
    rank_estimate estimate;
    const char *fault; /* a verdict other than that of the test; NULL: the test decides */
    char reason[400];
} pair;

static bool is_same_cell(const cell_record *a, const cell_record *b) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->arm, b->arm) == 0 &&
           strcmp(a->scope, b->scope) == 0 && cell_same_shape(a, b) &&
           strcmp(a->mode, b->mode) == 0;
}

static bool is_measured(const cell_record *c) {
    return strcmp(c->origin, "measured") == 0;
}

static const cell_record *find(const cell_list *rows, const cell_record *like) {
    const cell_record *found = NULL;
    for (size_t i = 0; i < rows->n; i++) {
        const cell_record *row = &rows->at[i];
        if (!is_measured(row) || !is_same_cell(row, like))
            continue;
        if (strcmp(row->distribution, like->distribution) == 0)
            return row;
        found = found ? found : row;
    }
    return found;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Splits the samples into consecutive stretches and writes the logarithm of quantile @q of each
 * stretch to @out. Returns the number of stretches; when out of memory 0, with @err set. */
static size_t stretches(const cell_record *row, double q, double out[kStretches], snap_err *err) {
    record_numbers samples = row->performance.samples_ns;
    size_t n = samples.n, parts = n < kStretches ? n : kStretches;
    double *sorted = malloc((n + 1) * sizeof *sorted);
    if (!sorted) {
        (void)no_memory(err);
        return 0;
    }
    for (size_t k = 0; k < parts; k++) {
        size_t from = n * k / parts, to = n * (k + 1) / parts;
        for (size_t i = from; i < to; i++)
            sorted[i - from] = samples.at[i];
        qsort(sorted, to - from, sizeof *sorted, by_value);
        out[k] = log(stats_quantile(sorted, to - from, q));
    }
    free(sorted);
    return parts;
}

SNAP_PRINTF(3, 4)
static void blame(pair *p, const char *verdict, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(p->reason, sizeof p->reason, fmt, ap);
    va_end(ap);
    p->fault = verdict;
}

/* Two times can be compared only if these fields agree. */
static void compare_conditions(pair *p) {
    static const char *const keys[] = {"distribution", "cold"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !p->fault; i++)
        if (strcmp(record_text(&cell_type, p->before, keys[i]),
                   record_text(&cell_type, p->after, keys[i])) != 0) {
            blame(p, "invalid", "not comparable: %s differs", keys[i]);
            return;
        }
}

static void check_flags(pair *p, const gate_file_options *opt) {
    const cell_record *rows[2] = {p->before, p->after};
    static const char *const sides[2] = {"the baseline", "the current run"};
    for (int i = 0; i < 2 && !p->fault; i++) {
        if (cell_has_flag(rows[i], "throttled"))
            blame(p, "invalid", "%s throttled", sides[i]);
        p->disturbed |= cell_has_flag(rows[i], "shared") && !opt->allow_shared;
    }
}

static void check_status(pair *p) {
    const char *status = p->after ? p->after->status : "";
    if (!p->after)
        blame(p, "missing", "the current run does not have it");
    else if (strcmp(status, "failed") == 0)
        blame(p, "wrong", "%s", p->after->reason);
    else if (strcmp(status, "passed") != 0)
        blame(p, "missing", "%s: %s", status, p->after->reason);
}

static double threshold_of(const pair *p, const gate_file_options *opt) {
    double limit = gate_threshold(&opt->limits, p->before->performance.median_ns);
    char name[160];
    if (!opt->history)
        return limit;
    history_cell_name(p->before, name);
    /* Without a history of this cell the spread is NAN, and fmax() returns the limit. */
    return fmax(limit, kTwoRuns * history_spread(opt->history, name));
}

static snap_status prepare(pair *p, const cell_record *before, const cell_list *rows,
                           const gate_file_options *opt, snap_err *err) {
    snap_err why = {0};
    p->before = before;
    p->after = find(rows, before);
    history_cell_name(before, p->name);
    check_status(p);
    if (!p->fault)
        compare_conditions(p);
    if (!p->fault)
        check_flags(p, opt);
    p->threshold = threshold_of(p, opt);
    p->cell.test[GATE_QUARTILE].p_slower = p->cell.p_within = 1;
    p->estimate = (rank_estimate){(double)NAN, (double)NAN, (double)NAN};
    if (p->fault)
        return SNAP_OK;
    /* Disturbances make steps longer only, so they change the lower quartile less. */
    p->n = stretches(before, p->disturbed ? 0.25 : 0.5, p->x, &why);
    p->m = stretches(p->after, p->disturbed ? 0.25 : 0.5, p->y, &why);
    return why.code == SNAP_OK ? SNAP_OK : err_set(err, why.code, "%s", why.text);
}

/* The range of most values: the difference between their quantiles 0.9 and 0.1. */
static double range_of(const double *x, size_t n) {
    double sorted[kStretches];
    memcpy(sorted, x, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return n ? stats_quantile(sorted, n, 0.9) - stats_quantile(sorted, n, 0.1) : 0;
}

/* How far other work can have shifted the times of a cell, as a log-ratio. For each cell with other
 * work and each of the two runs, range_of() gives the range of the cell's stretches. The result is
 * the largest of these ranges and counts for all cells, because the load by others often stays the
 * same while one cell is measured, and changes between cells. */
static double disturbance_of(const pair *pairs, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (pairs[i].disturbed && !pairs[i].fault)
            most = fmax(most,
                        fmax(range_of(pairs[i].x, pairs[i].n), range_of(pairs[i].y, pairs[i].m)));
    return most;
}

/* Computes the p values and the estimate. @disturbance: log-ratio that a disturbed cell may
 * reach. */
static snap_status test_pair(pair *p, double disturbance, snap_err *err) {
    if (p->disturbed)
        p->threshold = fmax(p->threshold, disturbance);
    p->cell.test[GATE_QUARTILE].p_slower = rank_p_shift_above(p->x, p->n, p->y, p->m, p->threshold);
    p->cell.p_within = rank_p_shift_below(p->x, p->n, p->y, p->m, p->threshold);
    return rank_shift(p->x, p->n, p->y, p->m, kInterval, &p->estimate, err);
}

/* ---- rows ---- */

static bool same_backend(const run_record *a, const run_record *b) {
    const origin_backend *x = &a->provenance.backend, *y = &b->provenance.backend;
    return x->exists && record_equal(&origin_backend_type, x, y);
}

/* Whether both files come from the same program, built from a known commit without uncommitted
 * changes. */
static bool same_program(const run_record *a, const run_record *b) {
    const origin_program *x = &a->provenance.program, *y = &b->provenance.program;
    return x->commit[0] && strcmp(x->commit, "unknown") != 0 && !x->dirty &&
           record_equal(&origin_program_type, x, y);
}

/* What both files share. */
typedef struct {
    bool backend, program;
} common;

static bool same_kernels(const pair *p, const common *same) {
    const cell_record *a = p->before, *b = p->after;
    return same->backend && a->kernel_hash[0] && strcmp(a->kernel_hash, b->kernel_hash) == 0 &&
           strcmp(a->kernel, b->kernel) == 0;
}

/* With the backend cuda the hash covers the kernels only. The host launches them and plans the
 * split-KV work, so the program must be the same too. */
static bool same_code(const pair *p, const common *same) {
    bool whole = strcmp(p->before->backend, "cuda") != 0;
    return same_kernels(p, same) && (whole || same->program);
}

/* Judges a cell that other work disturbed and that is not shown to be slower. The threshold
 * contains the largest change that the disturbance can explain. The cell is "ok" only if that
 * change is small, and if the cell is shown not to be slower by more than it. */
static const char *judge_disturbed(pair *p) {
    double pct = 100 * expm1(p->threshold);
    if (p->cell.state == GATE_INCONCLUSIVE || p->threshold > kMostDisturbed)
        blame(p, "invalid",
              "other work used the processors: it can explain changes up to %.0f %% (use gate run, "
              "which times both arms alternately, or a quieter machine)",
              pct);
    else
        blame(p, "ok", "other work used the processors: changes up to %.0f %% are not seen", pct);
    return p->fault;
}

static const char *judge(pair *p, const common *same) {
    if (p->fault)
        return p->fault;
    if (p->disturbed && p->cell.state != GATE_REGRESSED)
        return judge_disturbed(p);
    if (p->cell.state == GATE_OK)
        return "ok";
    if (p->cell.state == GATE_INCONCLUSIVE) {
        blame(p, "inconclusive",
              "not enough evidence for either slower or not slower: take more samples, or use gate "
              "run, which times both arms alternately");
        return p->fault;
    }
    if (!same_code(p, same)) {
        if (same_kernels(p, same))
            blame(p, "regressed",
                  "the kernels' machine code is the same in both: the cause is the host's part of "
                  "a step, or noise");
        return "regressed";
    }
    blame(p, "noise", "the machine code is the same in both");
    return p->fault;
}

static js *row_of(pair *p, const common *same) {
    const char *verdict = judge(p, same);
    verdict_record v = verdict_start("speed", p->name, verdict, p->reason, VERDICT_COMPARED);
    v.ratio = exp(p->estimate.centre);
    v.ci90[0] = exp(p->estimate.lo);
    v.ci90[1] = exp(p->estimate.hi);
    v.threshold = exp(p->threshold);
    v.statistic = p->disturbed ? "lower quartile" : "median";
    v.p_slower = p->cell.test[GATE_QUARTILE].p_slower;
    v.p_holm = p->cell.test[GATE_QUARTILE].p_holm;
    v.p_within = p->cell.p_within;
    v.baseline_ns = p->before->performance.median_ns;
    v.baseline_hash = p->before->kernel_hash;
    if (p->after) {
        v.current_ns = p->after->performance.median_ns;
        v.current_hash = p->after->kernel_hash;
    }
    return record_write(&verdict_type, &v);
}

static bool add_mean(js *rows, const pair *pairs, size_t n) {
    rank_estimate *known = calloc(n + 1, sizeof *known);
    size_t k = 0;
    for (size_t i = 0; known && i < n; i++)
        if (isfinite(pairs[i].estimate.lo) && isfinite(pairs[i].estimate.hi))
            known[k++] = pairs[i].estimate;
    bool ok = known && (!k || js_push_new(rows, verdict_of_mean(known, k)));
    free(known);
    return ok;
}

static bool check_machine(const run_record *a, const run_record *b, js *rows) {
    char before[200], after[200], reason[500];
    history_machine_of(&a->provenance, before);
    history_machine_of(&b->provenance, after);
    if (strcmp(before, after) == 0)
        return true;
    (void)snprintf(reason, sizeof reason,
                   "the baseline ran on '%s', the current run on '%s' (--any-machine compares "
                   "them anyway)",
                   before, after);
    return js_push_new(rows, verdict_new("environment", "machine", "invalid", reason));
}

/* Adds a row for each cell with a wrong result that the baseline lacks, or in which it had not
 * passed. */
static bool add_new_failures(const cell_list *before, const cell_list *after, js *rows) {
    bool ok = true;
    for (size_t i = 0; i < after->n && ok; i++) {
        const cell_record *row = &after->at[i], *known = find(before, row);
        char name[160];
        if (strcmp(row->status, "failed") != 0 || (known && strcmp(known->status, "passed") == 0))
            continue;
        history_cell_name(row, name);
        ok = js_push_new(rows, verdict_new("speed", name, "wrong", row->reason));
    }
    return ok;
}

/* Decides all cells together, because Holm's correction needs all p-values. */
static snap_status settle(pair *pairs, size_t n, const gate_limits *l, snap_err *err) {
    gate_cell *cells = calloc(n + 1, sizeof *cells);
    if (!cells)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        cells[i] = pairs[i].cell;
    snap_status st = gate_settle(cells, n, 1, l->alpha, err);
    for (size_t i = 0; i < n; i++)
        pairs[i].cell = cells[i];
    free(cells);
    return st;
}

static snap_status check_cells(const run_record *baseline, const run_record *current,
                               const gate_file_options *opt, js *rows, snap_err *err) {
    const cell_list *before = &baseline->bench, *after = &current->bench;
    pair *pairs = calloc(before->n + 1, sizeof *pairs);
    const common same = {same_backend(baseline, current), same_program(baseline, current)};
    bool ok = pairs != NULL;
    size_t n = 0;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < before->n && ok; i++) {
        const cell_record *row = &before->at[i];
        if (is_measured(row) && strcmp(row->status, "passed") == 0)
            TRY(prepare(&pairs[n++], row, after, opt, err));
    }
    double disturbance = disturbance_of(pairs, n);
    for (size_t i = 0; i < n && ok; i++)
        if (!pairs[i].fault)
            TRY(test_pair(&pairs[i], disturbance, err));
    if (ok && n && !opt->any_machine)
        ok = check_machine(baseline, current, rows);
    if (ok)
        TRY(settle(pairs, n, &opt->limits, err));
    for (size_t i = 0; i < n && ok; i++)
        ok = js_push_new(rows, row_of(&pairs[i], &same));
    ok = ok && add_mean(rows, pairs, n) && add_new_failures(before, after, rows);
    st = ok ? SNAP_OK : no_memory(err);
cleanup:
    free(pairs);
    return st;
}

snap_status gate_check_speed(const results *baseline, const results *current,
                             const gate_file_options *opt, js *rows, snap_err *err) {
    arena mem = {0};
    run_record before, after;
    snap_status st = SNAP_OK;
    TRY(run_read(&before, baseline, &mem, err));
    TRY(run_read(&after, current, &mem, err));
    TRY(check_cells(&before, &after, opt, rows, err));
cleanup:
    arena_release(&mem);
    return st;
}

/* ---- fidelity ---- */

static bool is_same_case(const fidelity_record *a, const fidelity_record *b) {
    return strcmp(a->kind, b->kind) == 0 && strcmp(a->config, b->config) == 0 &&
           strcmp(a->source, b->source) == 0 && strcmp(a->distribution, b->distribution) == 0 &&
           a->context == b->context && a->heads == b->heads && a->seed == b->seed &&
           strcmp(a->origin, b->origin) == 0;
}

static js *fidelity_row(const fidelity_record *before, const fidelity_record *after,
                        const gate_file_options *opt) {
    char name[200], reason[120] = "";
    double a = before->rel_l2, b = after->rel_l2;
    const char *verdict = "ok";
    (void)snprintf(name, sizeof name, "%.40s %.40s, %.40s, context %lld, %lld heads",
                   before->config, before->source, before->distribution, (long long)before->context,
                   (long long)before->heads);
    if (isnan(a) != isnan(b) || b > a * (1 + opt->error_growth)) {
        verdict = "regressed";
        (void)snprintf(reason, sizeof reason, "relative L2 error was %.3g, is %.3g", a, b);
    }
    verdict_record v = verdict_start("fidelity", name, verdict, reason, VERDICT_ERROR);
    v.ratio = a > 0 && b > 0 ? b / a : (double)NAN; /* an error may be exactly 0 */
    v.threshold = 1 + opt->error_growth;
    return record_write(&verdict_type, &v);
}

snap_status gate_check_fidelity(const results *baseline, const results *current,
                                const gate_file_options *opt, js *rows, snap_err *err) {
    arena mem = {0};
    run_record before, after;
    bool ok = true;
    snap_status st = SNAP_OK;
    TRY(run_read(&before, baseline, &mem, err));
    TRY(run_read(&after, current, &mem, err));
    for (size_t i = 0; i < before.fidelity.n && ok; i++)
        for (size_t k = 0; k < after.fidelity.n; k++) {
            const fidelity_record *a = &before.fidelity.at[i], *b = &after.fidelity.at[k];
            if (is_same_case(a, b)) {
                ok = js_push_new(rows, fidelity_row(a, b, opt));
                break;
            }
        }
    st = ok ? SNAP_OK : no_memory(err);
cleanup:
    arena_release(&mem);
    return st;
}
