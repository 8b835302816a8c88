#include "harness/gate/files.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/bench/row.h"
#include "harness/gate/verdicts.h"
#include "harness/measure/stats.h"

enum { kStretches = 25 };
static const double kInterval = 0.05;
static const double kTwoRuns = 1.96 * 1.4142135623730951; /* of sd: how far two runs lie apart */

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for verdicts");
}

static const char *text_of(const js *o, const char *key) {
    const char *s = js_get_str(o, key);
    return s ? s : "";
}

/* ---- pairs of rows ---- */

typedef struct {
    const js *before, *after;
    char name[160];
    double x[kStretches], y[kStretches];
    size_t n, m;
    gate_cell cell;
    rank_estimate estimate;
    const char *fault; /* a verdict that needs no test; NULL = none */
    char reason[400];
} pair;

static bool is_same_cell(const js *a, const js *b) {
    return text_equal(text_of(a, "arm"), text_of(b, "arm")) &&
           text_equal(text_of(a, "scope"), text_of(b, "scope")) &&
           js_equal(js_get(a, "shape"), js_get(b, "shape")) &&
           strcmp(text_of(a, "mode"), text_of(b, "mode")) == 0;
}

static bool is_measured(const js *row) {
    return text_equal(text_of(row, "origin"), "measured");
}

static const js *find(const js *rows, const js *like) {
    const js *found = NULL;
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        if (!is_measured(row) || !is_same_cell(row, like))
            continue;
        if (text_equal(text_of(row, "distribution"), text_of(like, "distribution")))
            return row;
        found = found ? found : row;
    }
    return found;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Logarithms of the medians of consecutive stretches of samples. */
static size_t stretches(const js *row, double out[kStretches], snap_err *err) {
    const js *samples = js_get_array(js_get_object(row, "performance"), "samples_ns");
    size_t n = js_len(samples), parts = n < kStretches ? n : kStretches;
    double *sorted = malloc((n + 1) * sizeof *sorted);
    if (!sorted) {
        (void)no_memory(err);
        return 0;
    }
    for (size_t k = 0; k < parts; k++) {
        size_t from = n * k / parts, to = n * (k + 1) / parts;
        for (size_t i = from; i < to; i++)
            sorted[i - from] = js_num(js_at(samples, i));
        qsort(sorted, to - from, sizeof *sorted, by_value);
        out[k] = log(stats_quantile(sorted, to - from, 0.5));
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

/* What must agree before two times say anything of each other. */
static void compare_conditions(pair *p) {
    static const char *const keys[] = {"distribution", "cold"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !p->fault; i++)
        if (strcmp(text_of(p->before, keys[i]), text_of(p->after, keys[i])) != 0) {
            blame(p, "invalid", "not comparable: %s differs", keys[i]);
            return;
        }
}

static void heed_flags(pair *p, const gate_file_options *opt) {
    const js *rows[2] = {p->before, p->after};
    static const char *const sides[2] = {"the baseline", "the current run"};
    for (int i = 0; i < 2 && !p->fault; i++) {
        if (row_has_flag(rows[i], "throttled"))
            blame(p, "invalid", "%s throttled", sides[i]);
        else if (row_has_flag(rows[i], "shared") && !opt->allow_shared)
            blame(
                p, "invalid",
                "other work used the processors during %s (--allow-shared judges it all the same)",
                sides[i]);
    }
}

static void heed_status(pair *p) {
    const char *status = p->after ? text_of(p->after, "status") : "";
    if (!p->after)
        blame(p, "missing", "the current run does not have it");
    else if (strcmp(status, "failed") == 0)
        blame(p, "wrong", "%s", text_of(p->after, "reason"));
    else if (strcmp(status, "passed") != 0)
        blame(p, "missing", "%s: %s", status, text_of(p->after, "reason"));
}

static double threshold_of(const pair *p, const gate_file_options *opt) {
    double limit = gate_threshold(&opt->limits, row_number(p->before, "median_ns"));
    char name[160];
    if (!opt->history)
        return limit;
    history_cell_name(p->before, name);
    return fmax(limit, kTwoRuns * history_spread(opt->history, name)); /* NAN: limit stands */
}

static snap_status prepare(pair *p, const js *before, const js *rows, const gate_file_options *opt,
                           snap_err *err) {
    snap_err why = {0};
    p->before = before;
    p->after = find(rows, before);
    history_cell_name(before, p->name);
    heed_status(p);
    if (!p->fault)
        compare_conditions(p);
    if (!p->fault)
        heed_flags(p, opt);
    p->cell.threshold = threshold_of(p, opt);
    p->cell.p_slower = p->cell.p_within = 1;
    p->estimate = (rank_estimate){(double)NAN, (double)NAN, (double)NAN};
    if (p->fault)
        return SNAP_OK;
    p->n = stretches(before, p->x, &why);
    p->m = stretches(p->after, p->y, &why);
    if (why.code != SNAP_OK)
        return err_set(err, why.code, "%s", why.text);
    p->cell.p_slower = rank_p_shift_above(p->x, p->n, p->y, p->m, p->cell.threshold);
    p->cell.p_within = rank_p_shift_below(p->x, p->n, p->y, p->m, p->cell.threshold);
    return rank_shift(p->x, p->n, p->y, p->m, kInterval, &p->estimate, err);
}

/* ---- rows ---- */

static bool same_backend(const results *a, const results *b) {
    return js_equal(js_get(js_get_object(results_document(a), "provenance"), "backend"),
                    js_get(js_get_object(results_document(b), "provenance"), "backend"));
}

/* One commit, and nothing beside it. */
static bool same_program(const results *a, const results *b) {
    const js *p = js_get_object(js_get_object(results_document(a), "provenance"), "program");
    const js *q = js_get_object(js_get_object(results_document(b), "provenance"), "program");
    const char *commit = js_get_str(p, "commit");
    return commit && strcmp(commit, "unknown") != 0 && !js_get_bool(p, "dirty", true) &&
           js_equal(p, q);
}

/* What both files have in common. */
typedef struct {
    bool backend, program;
} common;

static bool same_kernels(const pair *p, const common *same) {
    const char *a = js_get_str(p->before, "kernel_hash"), *b = js_get_str(p->after, "kernel_hash");
    return same->backend && a && b && strcmp(a, b) == 0 &&
           text_equal(text_of(p->before, "kernel"), text_of(p->after, "kernel"));
}

/* On a GPU the hash is of the kernels alone; the processor launches them and chooses their plan. */
static bool same_code(const pair *p, const common *same) {
    bool whole = strcmp(text_of(p->before, "backend"), "cuda") != 0;
    return same_kernels(p, same) && (whole || same->program);
}

static const char *judge(pair *p, const common *same) {
    if (p->fault)
        return p->fault;
    if (p->cell.state == GATE_OK)
        return "ok";
    if (p->cell.state == GATE_INCONCLUSIVE) {
        blame(p, "inconclusive",
              "neither slower nor not slower was shown: more samples, or gate run, which takes "
              "turns");
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

static js *interval(const rank_estimate *e) {
    js *a = js_new_array();
    if (!isfinite(e->lo) || !isfinite(e->hi) || !a) {
        js_free(a);
        return js_new_null();
    }
    bool ok = js_push_new(a, js_new_num(exp(e->lo))) && js_push_new(a, js_new_num(exp(e->hi)));
    if (ok)
        return a;
    js_free(a);
    return NULL;
}

static js *row_of(pair *p, const common *same) {
    const char *verdict = judge(p, same);
    js *o = verdict_new("speed", p->name, verdict, p->reason[0] ? p->reason : NULL);
    bool ok =
        o && js_set_num(o, "ratio", exp(p->estimate.centre)) &&
        js_set_new(o, "ci90", interval(&p->estimate)) &&
        js_set_num(o, "threshold", exp(p->cell.threshold)) &&
        js_set_num(o, "p_slower", p->cell.p_slower) && js_set_num(o, "p_holm", p->cell.p_holm) &&
        js_set_num(o, "p_within", p->cell.p_within) &&
        js_set_num(o, "baseline_ns", row_number(p->before, "median_ns")) &&
        js_set_num(o, "current_ns", p->after ? row_number(p->after, "median_ns") : (double)NAN) &&
        js_set_new(o, "baseline_hash", js_new_str(js_get_str(p->before, "kernel_hash"))) &&
        js_set_new(o, "current_hash",
                   js_new_str(p->after ? js_get_str(p->after, "kernel_hash") : NULL));
    if (ok)
        return o;
    js_free(o);
    return NULL;
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

static bool check_machine(const results *a, const results *b, js *rows) {
    char before[200], after[200], reason[500];
    history_machine(a, before);
    history_machine(b, after);
    if (strcmp(before, after) == 0)
        return true;
    (void)snprintf(reason, sizeof reason,
                   "the baseline is of '%s', the current run of '%s' (--any-machine compares them)",
                   before, after);
    return js_push_new(rows, verdict_new("environment", "machine", "invalid", reason));
}

/* Wrong results count also where the baseline has no such cell. */
static bool add_new_failures(const js *before, const js *after, js *rows) {
    bool ok = true;
    for (size_t i = 0; i < js_len(after) && ok; i++) {
        const js *row = js_at(after, i), *known = find(before, row);
        char name[160];
        if (strcmp(text_of(row, "status"), "failed") != 0 ||
            (known && strcmp(text_of(known, "status"), "passed") == 0))
            continue;
        history_cell_name(row, name);
        ok = js_push_new(rows, verdict_new("speed", name, "wrong", text_of(row, "reason")));
    }
    return ok;
}

/* The tests of all pairs, which Holm's correction needs together. */
static snap_status settle(pair *pairs, size_t n, const gate_limits *l, snap_err *err) {
    gate_cell *cells = calloc(n + 1, sizeof *cells);
    if (!cells)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        cells[i] = pairs[i].cell;
    gate_settle(cells, n, l->alpha);
    for (size_t i = 0; i < n; i++)
        pairs[i].cell = cells[i];
    free(cells);
    return SNAP_OK;
}

snap_status gate_check_speed(const results *baseline, const results *current,
                             const gate_file_options *opt, js *rows, snap_err *err) {
    const js *before = results_section(baseline, "bench"),
             *after = results_section(current, "bench");
    pair *pairs = calloc(js_len(before) + 1, sizeof *pairs);
    const common same = {same_backend(baseline, current), same_program(baseline, current)};
    bool ok = pairs != NULL;
    size_t n = 0;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < js_len(before) && ok; i++) {
        const js *row = js_at(before, i);
        if (is_measured(row) && strcmp(text_of(row, "status"), "passed") == 0)
            TRY(prepare(&pairs[n++], row, after, opt, err));
    }
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

/* ---- fidelity ---- */

static bool is_same_question(const js *a, const js *b) {
    static const char *const keys[] = {"kind",    "config", "source", "distribution",
                                       "context", "heads",  "seed",   "origin"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!js_equal(js_get(a, keys[i]), js_get(b, keys[i])))
            return false;
    return true;
}

static js *fidelity_row(const js *before, const js *after, const gate_file_options *opt) {
    char name[200], reason[120] = "";
    double a = js_get_num(before, "rel_l2", (double)NAN),
           b = js_get_num(after, "rel_l2", (double)NAN);
    const char *verdict = "ok";
    (void)snprintf(name, sizeof name, "%.40s %.40s, %.40s, context %lld, %lld heads",
                   text_of(before, "config"), text_of(before, "source"),
                   text_of(before, "distribution"), (long long)js_get_int(before, "context", 0),
                   (long long)js_get_int(before, "heads", 0));
    if (isnan(a) != isnan(b) || b > a * (1 + opt->error_growth)) {
        verdict = "regressed";
        (void)snprintf(reason, sizeof reason, "relative L2 error was %.3g, is %.3g", a, b);
    }
    js *o = verdict_new("fidelity", name, verdict, reason[0] ? reason : NULL);
    bool ok =
        o && js_set_num(o, "ratio", b / a) && js_set_num(o, "threshold", 1 + opt->error_growth);
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

snap_status gate_check_fidelity(const results *baseline, const results *current,
                                const gate_file_options *opt, js *rows, snap_err *err) {
    const js *before = results_section(baseline, "fidelity"),
             *after = results_section(current, "fidelity");
    bool ok = true;
    for (size_t i = 0; i < js_len(before) && ok; i++)
        for (size_t k = 0; k < js_len(after); k++)
            if (is_same_question(js_at(before, i), js_at(after, k))) {
                ok = js_push_new(rows, fidelity_row(js_at(before, i), js_at(after, k), opt));
                break;
            }
    return ok ? SNAP_OK : no_memory(err);
}
