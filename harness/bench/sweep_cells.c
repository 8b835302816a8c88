/* sweep_cells.c - the rows of a sweep: made from what was measured, or taken from an earlier
 * run. */
#include <math.h>

#include "harness/bench/sweep_inside.h"
#include "harness/measure/stats.h"

bool sweep_is_requested(const lane *l, bench_scope scope) {
    return bench_kind_has(l->of.kind, scope);
}

void sweep_take_moment(const sweep *s, moment *m) {
    m->env = env_now();
    for (int i = 0; i < s->n; i++)
        m->gpu[i] = gpu_now(s->lanes[i].device);
}

/* Compares a named arm with the first one, if both passed. */
static snap_status compare_arms(const sweep *s, const lane *l, paired_ratio *out, snap_err *err) {
    const cell *base = &s->lanes[0].cell, *c = &l->cell;
    *out = (paired_ratio){(double)NAN, (double)NAN, (double)NAN};
    if (!l->of.name || l == s->lanes || base->status != ROW_PASSED || c->status != ROW_PASSED)
        return SNAP_OK;
    /* The loops of sustained arms run one after the other, so their samples are no pairs. */
    size_t n = s->opt->sustained_s > 0 ? 0 : c->timing.n;
    if (n)
        return paired_ratio_of(base->timing.samples, base->timing.n, c->timing.samples, n, out,
                               err);
    out->ratio = stats_quantile(base->timing.sorted, base->timing.n, 0.5) /
                 stats_quantile(c->timing.sorted, c->timing.n, 0.5);
    return SNAP_OK;
}

snap_status sweep_add_row(sweep *s, int i, bench_scope scope, const moment *before,
                          const moment *after, snap_err *err) {
    const lane *l = &s->lanes[i];
    const cell *c = &l->cell;
    row_measured m = {.shape = s->shape,
                      .kind = l->of.kind,
                      .scope = scope,
                      .status = c->status,
                      .reason = c->why.text,
                      .kernel = l->code.kernel,
                      .kernel_hash = l->code.known ? l->code.hash : NULL,
                      .cold = l->of.backend ? s->cold : NULL,
                      .not_captured = c->arm && !bench_arm_is_captured(c->arm),
                      .host_limited = c->host_limited,
                      .without_lse = c->arm && !bench_arm_has_lse(c->arm),
                      .verdict = &c->verdict,
                      .timing = &c->timing,
                      .probes = &s->lanes[l->of.rates].probes,
                      .before = before->env,
                      .after = after->env,
                      .gpu_before = before->gpu[i],
                      .gpu_during = s->lanes[l->of.rates].probes.reasons,
                      .gpu_after = after->gpu[i],
                      .power_w = c->power_w,
                      .baseline = s->lanes[0].of.name};
    if (l->context.sustained && l->meter) {
        m.gpu_during |= energy_take_reasons(l->meter);
        m.energy_source = energy_source(l->meter);
        m.energy_missing = isnan(c->power_w) ? energy_missing(l->meter) : NULL;
    }
    char key[ROW_KEY];
    snap_status st = compare_arms(s, l, &m.against, err);
    if (st != SNAP_OK)
        return st;
    row_key(&l->context, &s->shape, m.kind, scope, key);
    js *row = row_json(&l->context, &m);
    if (!row)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a row");
    bool final = c->status == ROW_PASSED || c->status == ROW_FAILED;
    if (s->opt->keep && final) /* cells that were skipped or had an error are tried again by a
                                  resumed run */
        st = s->opt->keep(s->opt->ctx, key, row, err);
    if (!js_push_new(s->rows, row) && st == SNAP_OK)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a row");
    s->done++;
    return st;
}

/* ---- what an earlier run has finished ---- */

static const js *found(const sweep *s, const lane *l, bench_scope scope) {
    char key[ROW_KEY];
    row_key(&l->context, &s->shape, l->of.kind, scope, key);
    return s->opt->find ? s->opt->find(s->opt->ctx, key) : NULL;
}

bool sweep_scope_found(const sweep *s, bench_scope scope) {
    for (int i = 0; i < s->n; i++)
        if (sweep_is_requested(&s->lanes[i], scope) && !found(s, &s->lanes[i], scope))
            return false;
    return true;
}

snap_status sweep_take_over(sweep *s, bench_scope scope, snap_err *err) {
    for (int i = 0; i < s->n; i++) {
        if (!sweep_is_requested(&s->lanes[i], scope))
            continue;
        if (!js_push_new(s->rows, js_copy(found(s, &s->lanes[i], scope))))
            return err_set(err, SNAP_E_NOMEM, "out of memory for a row");
        s->done++;
    }
    return SNAP_OK;
}
