#include "kernels/conformance/conformance.h"

#include <math.h>
#include <stdio.h>

#include "kernels/conformance/check.h"

static const check *const kSuites[] = {
    checks_contract, checks_dataflow,   checks_arms,  checks_same,
    checks_edges,    checks_not_finite, checks_reach, NULL};

const char *conformance_verdict_name(conformance_verdict v) {
    return v == CONFORMANCE_PASSED ? "passed" : v == CONFORMANCE_FAILED ? "FAILED" : "skipped";
}

snap_status check_count(const check_context *c, snap_status st, snap_err *err) {
    if (st == SNAP_OK) {
        c->row->cases++;
        return SNAP_OK;
    }
    if (st != SNAP_E_UNSUPPORTED)
        return st;
    if (!c->row->unsupported++ && err)
        (void)snprintf(c->row->reason, sizeof c->row->reason, "%.200s", err->text);
    if (err)
        *err = (snap_err){0};
    return SNAP_OK;
}

snap_status check_figure(const check_context *c, const char *what, double value, double bound,
                         snap_err *err) {
    c->row->bound = bound;
    if (!(value <= c->row->worst)) /* also true if `worst` or `value` is NaN */
        c->row->worst = value;
    return value <= bound
               ? SNAP_OK
               : err_set(err, SNAP_E_WRONG, "%s is %.3g, above %.3g", what, value, bound);
}

step_spec check_spec(const check_context *c, int batch, const int *length) {
    step_spec s = {.precision = c->precision, .batch = batch};
    for (int b = 0; b < batch; b++) {
        s.length[b] = length[b];
        s.id[b] = b;
    }
    return s;
}

static conformance_row run_check(mla_backend *be, const check *k, int arm) {
    conformance_row row = {.check = k->name,
                           .arm = k->both_arms ? mla_precision_name((mla_precision)arm) : "-",
                           .worst = (double)NAN,
                           .bound = (double)NAN,
                           .lse = (double)NAN,
                           .lse_alike = (double)NAN,
                           .lse_bound = (double)NAN};
    check_context c = {be, (mla_precision)arm, &row};
    snap_err err = {0};
    snap_status st = k->run(&c, &err);
    if (st == SNAP_OK && row.cases == 0 && row.unsupported > 0) {
        row.verdict = CONFORMANCE_SKIPPED;
    } else if (st != SNAP_OK) {
        row.verdict = CONFORMANCE_FAILED;
        (void)snprintf(row.reason, sizeof row.reason, "%.230s",
                       err.text[0] ? err.text : "failed without a message");
    }
    return row;
}

int conformance_count(void) {
    int n = 0;
    for (const check *const *suite = kSuites; *suite; suite++)
        for (const check *k = *suite; k->name; k++)
            n += k->both_arms ? 2 : 1;
    return n;
}

snap_status conformance_run(mla_backend *be, conformance_fn on_row, void *ctx, snap_err *err) {
    for (const check *const *suite = kSuites; *suite; suite++)
        for (const check *k = *suite; k->name; k++)
            for (int arm = MLA_BF16; arm <= (k->both_arms ? MLA_FP8 : MLA_BF16); arm++) {
                conformance_row row = run_check(be, k, arm);
                if (!on_row(ctx, &row))
                    return err_set(err, SNAP_E_CANCELLED, "stopped before all checks were done");
            }
    return SNAP_OK;
}
