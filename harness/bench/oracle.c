#include "harness/bench/oracle.h"

#include <math.h>
#include <stdlib.h>

snap_status oracle_result_init(oracle_result *r, int heads, int d_c, snap_err *err) {
    r->o = calloc((size_t)heads * (size_t)d_c, sizeof *r->o);
    r->lse = calloc((size_t)heads, sizeof *r->lse);
    return r->o && r->lse ? SNAP_OK
                          : err_set(err, SNAP_E_NOMEM, "out of memory for %d rows", heads);
}

void oracle_result_release(oracle_result *r) {
    free(r->o);
    free(r->lse);
    *r = (oracle_result){0};
}

typedef struct {
    const oracle_step *s;
    const cache_oracle *oracle;
    ref_pv pv;
    oracle_result *out;
} attend_job;

static void attend_head(void *ctx, int worker, int64_t head) {
    const attend_job *j = ctx;
    (void)worker;
    cache_oracle_attend(j->oracle, head, j->s->context, j->s->softmax_scale, j->pv,
                        j->out->o + head * j->s->d_c, j->out->lse + head);
}

snap_status oracle_attend(const oracle_step *s, const cache_format *f, oracle_result *out,
                          snap_err *err) {
    cache_bytes cache = {0};
    cache_oracle oracle = {0};
    snap_status st;
    TRY(cache_format_pack(&cache, f, s->kv, s->context, err));
    TRY(cache_oracle_init(&oracle, f, s->q, s->heads, &cache, NULL, s->context, err));
    cache_bytes_release(&cache);
    attend_job job = {.s = s, .oracle = &oracle, .pv = f->pv, .out = out};
    parallel_for(s->pool, s->heads, attend_head, &job);
cleanup:
    cache_bytes_release(&cache);
    cache_oracle_release(&oracle);
    return st;
}

typedef struct {
    const oracle_step *s;
    const ref_rows *q, *k;
    oracle_result *out;
} exact_job;

static void attend_exactly(void *ctx, int worker, int64_t head) {
    const exact_job *j = ctx;
    (void)worker;
    ref_attend(j->q, head, j->k, j->s->context, j->s->softmax_scale, REF_P_EXACT,
               j->out->o + head * j->s->d_c, j->out->lse + head);
}

snap_status oracle_exact(const oracle_step *s, oracle_result *out, snap_err *err) {
    ref_rows q = {0}, k = {0};
    snap_status st;
    TRY(ref_rows_quantise(&q, REF_PLAIN, s->q, s->heads, s->d_c, s->d_r, err));
    TRY(ref_rows_quantise(&k, REF_PLAIN, s->kv, s->context, s->d_c, s->d_r, err));
    exact_job job = {.s = s, .q = &q, .k = &k, .out = out};
    parallel_for(s->pool, s->heads, attend_exactly, &job);
cleanup:
    ref_rows_release(&q);
    ref_rows_release(&k);
    return st;
}

/* Returns the larger one, or NaN if either is NaN, so that a NaN is never hidden. */
static double worse(double a, double b) {
    return isnan(a) || a > b ? a : b;
}

oracle_errors oracle_compare(const oracle_result *now, const oracle_result *truth, int heads,
                             int d_c) {
    double diff2 = 0, ref2 = 0, out2 = 0, dot = 0;
    oracle_errors e = {0};
    int64_t n = (int64_t)heads * d_c;
    for (int64_t i = 0; i < n; i++) {
        double x = now->o[i], ref = truth->o[i];
        diff2 += (x - ref) * (x - ref);
        ref2 += ref * ref;
        out2 += x * x;
        dot += x * ref;
        e.max_abs = worse(e.max_abs, fabs(x - ref));
    }
    for (int h = 0; h < heads; h++) {
        double ref = truth->lse[h];
        e.lse_error = worse(e.lse_error, fabs(now->lse[h] - ref) / fmax(1.0, fabs(ref)));
    }
    e.rmse = sqrt(diff2 / (double)n);
    e.cosine_diff = 1.0 - dot / sqrt(ref2 * out2);
    e.rel_l2 = sqrt(diff2 / ref2);
    return e;
}
