#include "harness/gate/verdicts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

js *verdict_new(const char *kind, const char *name, const char *verdict, const char *reason) {
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "kind", kind) && js_set_str(o, "name", name) &&
              js_set_str(o, "verdict", verdict) && js_set_new(o, "reason", js_new_str(reason));
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static js *interval(double lo, double hi) {
    if (!isfinite(lo) || !isfinite(hi))
        return js_new_null();
    return js_new_nums((const double[]){lo, hi}, 2);
}

/* ---- a timed cell ---- */

static bool same_kernels(const gate_timed *t, const gate_side arms[2]) {
    const remote_cell *a = &t->about[0], *b = &t->about[1];
    return a->kernel_hash[0] && strcmp(a->kernel_hash, b->kernel_hash) == 0 &&
           strcmp(a->kernel, b->kernel) == 0 && t->precision[0] == t->precision[1] &&
           strcmp(arms[0].backend, arms[1].backend) == 0 && strcmp(arms[0].isa, arms[1].isa) == 0 &&
           arms[0].threads == arms[1].threads && !(arms[0].delay_pct > 0) &&
           !(arms[1].delay_pct > 0);
}

/* The same code under the same conditions, the part of the processor included, which launches the kernels
 * and chooses their plan: what differs then is the machine's mood. */
static bool same_code(const gate_timed *t, const gate_side arms[2]) {
    const remote_cell *a = &t->about[0], *b = &t->about[1];
    return same_kernels(t, arms) && a->program_hash[0] &&
           strcmp(a->program_hash, b->program_hash) == 0;
}

static const char *blame(const gate_timed *t, const gate_side arms[2], char text[400]) {
    for (int i = 0; i < 2; i++)
        if (strcmp(t->about[i].status, "passed") != 0) {
            (void)snprintf(text, 400, "%s: %s", arms[i].name, t->about[i].reason);
            return strcmp(t->about[i].status, "failed") == 0 ? "wrong" : "missing";
        }
    return NULL;
}

static const char *judge(const gate_timed *t, const gate_cell *c, const gate_side arms[2],
                         const char **reason, char text[400]) {
    const char *fault = blame(t, arms, text);
    *reason = fault ? text : NULL;
    if (fault)
        return fault;
    if (c->state == GATE_OK)
        return "ok";
    if (t->throttled) {
        *reason = "the machine throttled during the turns";
        return "invalid";
    }
    if (c->state == GATE_INCONCLUSIVE) {
        *reason = "neither slower nor not slower was shown: more sessions, or a quieter machine";
        return "inconclusive";
    }
    if (!same_code(t, arms)) {
        *reason = same_kernels(t, arms) ? "the kernels' machine code is the same in both arms: the "
                                          "cause is the host's part of a step, or noise"
                                        : NULL;
        return "regressed";
    }
    *reason = "the machine code is the same in both arms";
    return "noise";
}

static js *flags_of(const gate_timed *t) {
    js *a = js_new_array();
    bool ok = a && (!t->throttled || js_push_new(a, js_new_str("throttled"))) &&
              (!t->shared || js_push_new(a, js_new_str("shared")));
    if (ok)
        return a;
    js_free(a);
    return NULL;
}

static bool set_samples(js *o, const gate_timed *t) {
    return js_set_new(o, "log_ratios", js_new_nums(t->x, t->n)) &&
           js_set_new(o, "baseline_samples_ns", js_new_nums(t->ns[0], GATE_TURNS * t->n)) &&
           js_set_new(o, "current_samples_ns", js_new_nums(t->ns[1], GATE_TURNS * t->n));
}

static js *hash_json(const remote_cell *c) {
    return js_new_str(c->kernel_hash[0] ? c->kernel_hash : NULL);
}

js *verdict_of_cell(const gate_timed *t, const gate_cell *c, const rank_estimate *est,
                    const gate_side arms[2]) {
    char text[400];
    const char *reason, *verdict = judge(t, c, arms, &reason, text);
    js *o = verdict_new("speed", t->name, verdict, reason);
    bool ok = o && js_set_str(o, "baseline", arms[0].name) &&
              js_set_str(o, "current", arms[1].name) && js_set_num(o, "ratio", exp(est->centre)) &&
              js_set_new(o, "ci90", interval(exp(est->lo), exp(est->hi))) &&
              js_set_num(o, "threshold", exp(c->threshold)) &&
              js_set_int(o, "sessions", (int64_t)t->n) && js_set_num(o, "p_slower", c->p_slower) &&
              js_set_num(o, "p_holm", c->p_holm) && js_set_num(o, "p_within", c->p_within) &&
              js_set_num(o, "baseline_ns", gate_timed_median(t, 0)) &&
              js_set_num(o, "current_ns", gate_timed_median(t, 1)) &&
              js_set_new(o, "baseline_hash", hash_json(&t->about[0])) &&
              js_set_new(o, "current_hash", hash_json(&t->about[1])) && set_samples(o, t) &&
              js_set_new(o, "flags", flags_of(t));
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

js *verdict_of_mean(const rank_estimate *cells, size_t n) {
    gate_mean mean = gate_mean_of(cells, n);
    js *o = verdict_new("geomean", "geometric mean", "ok", NULL);
    bool ok = o && js_set_num(o, "ratio", mean.ratio) &&
              js_set_new(o, "ci90", interval(mean.lo, mean.hi)) &&
              js_set_int(o, "cells", (int64_t)n);
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

/* ---- what they come to ---- */

static bool is(const js *row, const char *kind, const char *verdict) {
    return (!kind || text_equal(js_get_str(row, "kind"), kind)) &&
           text_equal(js_get_str(row, "verdict"), verdict);
}

size_t verdict_count(const js *rows, const char *kind, const char *verdict) {
    size_t n = 0;
    for (size_t i = 0; i < js_len(rows); i++)
        n += is(js_at(rows, i), kind, verdict);
    return n;
}

bool verdict_is_bad(const js *row) {
    return !is(row, NULL, "ok") && !is(row, NULL, "noise");
}

typedef struct {
    const char *kind, *verdict; /* kind NULL = any */
    snap_status status;
    const char *says;
} outcome;

static const outcome kOutcomes[] = {
    {NULL, "wrong", SNAP_E_WRONG, "gave a wrong result"},
    {NULL, "invalid", SNAP_E_ENV, "can't be judged"},
    {"quality", "regressed", SNAP_E_WORSE, "regressed in quality"},
    {"fidelity", "regressed", SNAP_E_WORSE, "regressed in numerical error"},
    {"speed", "regressed", SNAP_E_SLOWER, "regressed in speed"},
    {NULL, "inconclusive", SNAP_E_OPEN, "are inconclusive"},
    {NULL, "missing", SNAP_E_OPEN, "are missing"},
};

static snap_status report(const js *rows, const outcome *o, size_t n, snap_err *err) {
    const js *first = NULL;
    for (size_t i = 0; i < js_len(rows) && !first; i++)
        if (is(js_at(rows, i), o->kind, o->verdict))
            first = js_at(rows, i);
    const char *reason = js_get_str(first, "reason");
    double ratio = js_get_num(first, "ratio", (double)NAN);
    char by[48] = "";
    if (!isnan(ratio))
        (void)snprintf(by, sizeof by, " (%+.1f %%)", 100 * (ratio - 1));
    return err_set(err, o->status, "%zu of %zu verdicts %s, first: %s%s%s%s", n, js_len(rows),
                   o->says, js_get_str(first, "name"), by, reason ? ": " : "",
                   reason ? reason : "");
}

snap_status verdict_status(const js *rows, snap_err *err) {
    for (size_t i = 0; i < sizeof kOutcomes / sizeof *kOutcomes; i++) {
        size_t n = verdict_count(rows, kOutcomes[i].kind, kOutcomes[i].verdict);
        if (n)
            return report(rows, &kOutcomes[i], n, err);
    }
    return SNAP_OK;
}
