#include "harness/bench/row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/stats.h"

static const double kNoisy = 0.05; /* interquartile range over median from which a row is flagged */

void row_key(const row_context *ctx, const bench_shape *s, bench_kind k, bench_scope scope,
             char out[ROW_KEY]) {
    (void)snprintf(out, ROW_KEY, "%s %s%s H%d s%d b%d c%lld d%d+%d %s, %s %s %.16s",
                   bench_kind_name(k), bench_scope_name(scope), ctx->sustained ? " sustained" : "",
                   s->heads, s->s_q, s->batch, (long long)s->context, s->d_c, s->d_r,
                   ctx->distribution, ctx->backend.name, ctx->backend.kernel,
                   ctx->kernel_hash ? ctx->kernel_hash : "");
}

/* ---- measured ---- */

static js *shape_json(const bench_shape *s) {
    js *o = js_new_object();
    bool ok = o && js_set_int(o, "heads", s->heads) && js_set_int(o, "s_q", s->s_q) &&
              js_set_int(o, "batch", s->batch) && js_set_int(o, "context", s->context) &&
              js_set_int(o, "d_c", s->d_c) && js_set_int(o, "d_r", s->d_r);
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static js *correctness_json(const verified *v) {
    if (!v || !v->error.rows)
        return js_new_null();
    js *o = js_new_object();
    bool ok = o && js_set_num(o, "error", v->error.out_rel) &&
              js_set_num(o, "tolerance", v->bound.out_rel) &&
              js_set_num(o, "lse_error", judge_lse(&v->error, v->bound)) &&
              js_set_num(o, "lse_tolerance", v->bound.lse_err) &&
              js_set_int(o, "rows_checked", v->error.rows) &&
              (v->error.lse_err <= v->bound.lse_err ||
               js_set_num(o, "lse_error_exact", v->error.lse_err));
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static js *samples_json(const stop_rule *t) {
    js *samples = js_new_array();
    for (size_t i = 0; i < t->n; i++)
        (void)js_push_new(samples, js_new_num(t->samples[i]));
    if (samples && js_len(samples) == t->n)
        return samples;
    js_free(samples);
    return NULL;
}

static bool set_quartiles(js *o, const stop_rule *t) {
    stats_summary s = stats_summarise(t->sorted, t->n);
    return js_set_num(o, "min_ns", s.min) && js_set_num(o, "q1_ns", s.q1) &&
           js_set_num(o, "median_ns", s.median) && js_set_num(o, "q3_ns", s.q3) &&
           js_set_num(o, "max_ns", s.max) && js_set_int(o, "count", (int64_t)t->n);
}

static js *rates_json(const mla_ceilings *c) {
    js *o = js_new_object();
    bool ok = o && js_set_num(o, "read_bandwidth", c->read.rate) &&
              js_set_num(o, "bf16_mma", c->bf16.rate) && js_set_num(o, "fp8_mma", c->fp8.rate);
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static js *paired_json(const paired_probes *looks) {
    if (!looks || !looks->n)
        return js_new_null();
    mla_ceilings median = paired_probes_median(looks), best = paired_probes_best(looks);
    js *o = js_new_object();
    bool ok = o && js_set_int(o, "looks", (int64_t)looks->n) &&
              js_set_new(o, "median", rates_json(&median)) &&
              js_set_new(o, "best", rates_json(&best));
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

/* The device's clock where the backend has one, else the processors'. */
static bool set_clocks(js *o, const row_context *ctx, const row_measured *m) {
    bool host = ctx->backend.host_memory;
    return js_set_num(o, "clock_mhz_before", host ? m->before.mhz : m->gpu_before.sm_mhz) &&
           js_set_num(o, "clock_mhz_during", host ? m->after.mhz : m->gpu_after.sm_mhz);
}

/* Power and the energy of one step. */
static bool set_power(js *o, const row_measured *m) {
    double step_s = stats_summarise(m->timing->sorted, m->timing->n).median / 1e9;
    return js_set_num(o, "power_w", m->power_w) && js_set_num(o, "energy_j", m->power_w * step_s);
}

static js *performance_json(const row_context *ctx, const row_measured *m) {
    if (m->status != ROW_PASSED)
        return js_new_null();
    js *o = js_new_object();
    bool ok = o && set_quartiles(o, m->timing) &&
              js_set_str(o, "stop_reason", stop_reason_name(m->timing->reason)) &&
              set_clocks(o, ctx, m) && set_power(o, m) &&
              js_set_new(o, "samples_ns", samples_json(m->timing)) &&
              js_set_new(o, "paired", paired_json(m->looks));
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static bool noisy(const stop_rule *t) {
    stats_summary s = stats_summarise(t->sorted, t->n);
    return s.q3 - s.q1 > kNoisy * s.median;
}

static bool push_if(js *flags, bool on, const char *flag) {
    return !on || js_push_new(flags, js_new_str(flag));
}

/* The processors' state tells about a backend that runs on them only. */
static js *flags_json(const row_context *ctx, const row_measured *m) {
    js *flags = js_new_array();
    env_flags env = {0};
    uint64_t reasons = m->gpu_before.reasons | m->gpu_after.reasons;
    if (ctx->backend.host_memory)
        env = env_between(&m->before, &m->after);
    bool ok = flags != NULL;
    if (m->status == ROW_PASSED)
        ok = ok && push_if(flags, env.throttled || gpu_is_slowed(reasons), "throttled") &&
             push_if(flags, gpu_is_capped(reasons), "power_capped") &&
             push_if(flags, env.shared, "shared") && push_if(flags, noisy(m->timing), "noisy");
    if (ok)
        return flags;
    js_free(flags);
    return NULL;
}

js *row_json(const row_context *ctx, const row_measured *m) {
    static const char *const names[] = {"passed", "failed", "skipped", "error"};
    js *row = js_new_object();
    bool ok =
        row && js_set_str(row, "arm", bench_kind_name(m->kind)) &&
        js_set_str(row, "backend", ctx->backend.name) &&
        js_set_str(row, "kernel", m->kernel ? m->kernel : ctx->backend.kernel) &&
        js_set_new(row, "kernel_hash", js_new_str(m->kernel ? m->kernel_hash : ctx->kernel_hash)) &&
        js_set_str(row, "mode", ctx->sustained ? "sustained" : "burst") &&
        js_set_str(row, "scope", bench_scope_name(m->scope)) &&
        js_set_new(row, "shape", shape_json(&m->shape)) &&
        js_set_str(row, "distribution", ctx->distribution) && js_set_str(row, "cold", m->cold) &&
        js_set_str(row, "origin", "measured") && js_set_new(row, "source", js_new_null()) &&
        js_set_str(row, "status", names[m->status]) &&
        js_set_new(row, "reason", js_new_str(m->status == ROW_PASSED ? NULL : m->reason)) &&
        js_set_new(row, "correctness", correctness_json(m->verdict)) &&
        js_set_new(row, "performance", performance_json(ctx, m)) &&
        js_set_new(row, "flags", flags_json(ctx, m));
    if (ok)
        return row;
    js_free(row);
    return NULL;
}

/* ---- derived ---- */

/* A number of the shape within 1 .. @high; 0 for anything else. */
static int shape_number(const js *shape, const char *key, int64_t high) {
    int64_t v = shape ? js_get_int(shape, key, 0) : 0;
    return v >= 1 && v <= high ? (int)v : 0;
}

static bool shape_parse(const js *row, bench_shape *s) {
    const js *o = js_get_object(row, "shape");
    *s = (bench_shape){.heads = shape_number(o, "heads", MLA_MAX_HEADS),
                       .s_q = shape_number(o, "s_q", MLA_MAX_SQ),
                       .batch = shape_number(o, "batch", BENCH_MAX_BATCH),
                       .context = shape_number(o, "context", MLA_MAX_CONTEXT),
                       .d_c = shape_number(o, "d_c", MLA_MAX_CONTENT),
                       .d_r = shape_number(o, "d_r", MLA_MAX_ROPE)};
    return s->heads && s->s_q && s->batch && s->context && s->d_c && s->d_r;
}

static bool work_of(const bench_shape *s, mla_precision p, mla_work *out) {
    int32_t *lengths = malloc((size_t)s->batch * sizeof *lengths);
    for (int b = 0; lengths && b < s->batch; b++)
        lengths[b] = (int32_t)s->context;
    if (lengths)
        *out = mla_work_of(p, s->heads, s->d_c, s->d_r, s->batch, s->s_q, lengths);
    free(lengths);
    return lengths != NULL;
}

bool row_has_flag(const js *row, const char *flag) {
    const js *flags = js_get_array(row, "flags");
    for (size_t i = 0; i < js_len(flags); i++) {
        const char *s = js_str(js_at(flags, i));
        if (s && strcmp(s, flag) == 0)
            return true;
    }
    return false;
}

/* Sets or clears a flag: rows are derived again when a ceiling rises. */
static bool set_flag(js *row, const char *flag, bool on) {
    const js *old = js_get_array(row, "flags");
    js *flags = js_new_array();
    bool ok = flags != NULL;
    for (size_t i = 0; i < js_len(old) && ok; i++) {
        const char *s = js_str(js_at(old, i));
        if (s && strcmp(s, flag) != 0)
            ok = js_push_new(flags, js_new_str(s));
    }
    ok = ok && (!on || js_push_new(flags, js_new_str(flag)));
    return js_set_new(row, "flags", flags) && ok;
}

double row_number(const js *row, const char *key) {
    const js *p = js_get_object(row, "performance");
    return p ? js_get_num(p, key, (double)NAN) : (double)NAN;
}

double row_paired_pct(const js *row) {
    const js *p = js_get_object(row, "performance"),
             *paired = p ? js_get_object(p, "paired") : NULL;
    return paired ? js_get_num(paired, "roofline_pct", (double)NAN) : (double)NAN;
}

static bool is_cold(const js *row) {
    const char *cold = js_get_str(row, "cold");
    return cold && strcmp(cold, "none") != 0;
}

static mla_ceilings rates_of(const js *paired, const char *which) {
    const js *o = paired ? js_get_object(paired, which) : NULL;
    return (mla_ceilings){.read.rate = o ? js_get_num(o, "read_bandwidth", 0) : 0,
                          .bf16.rate = o ? js_get_num(o, "bf16_mma", 0) : 0,
                          .fp8.rate = o ? js_get_num(o, "fp8_mma", 0) : 0};
}

static void raise_rate(mla_ceiling *c, double rate) {
    c->rate = rate > c->rate ? rate : c->rate;
}

void row_raise(const js *row, mla_ceilings *c) {
    const js *p = js_get_object(row, "performance");
    mla_ceilings best = rates_of(p ? js_get_object(p, "paired") : NULL, "best");
    raise_rate(&c->read, best.read.rate);
    raise_rate(&c->bf16, best.bf16.rate);
    raise_rate(&c->fp8, best.fp8.rate);
}

/* The floor under the rates between the samples. Windows are shorter than most steps: who loses his
 * processor now and then shows in a median of these and not of those, so a shared row has none. */
static bool derive_paired(js *row, mla_precision p, const bench_shape *s, mla_work w, double ns) {
    js *paired = js_get_object(js_get_object(row, "performance"), "paired");
    if (!paired)
        return true;
    mla_ceilings then = rates_of(paired, "median");
    double pct = 100 * mla_floor_ns(&then, p, s->d_c, s->d_r, w, NULL) / ns;
    if (row_has_flag(row, "shared") || !isfinite(pct))
        return js_set_new(paired, "roofline_pct", js_new_null());
    return js_set_num(paired, "roofline_pct", pct);
}

snap_status row_derive(js *row, const mla_ceilings *c, snap_err *err) {
    js *perf = js_get_object(row, "performance");
    const char *arm = js_get_str(row, "arm");
    double ns = row_number(row, "median_ns");
    bench_shape s;
    bench_kind kind;
    if (!perf)
        return SNAP_OK;
    if (!arm || !bench_kind_parse(arm, &kind) || !shape_parse(row, &s) || !(ns > 0))
        return err_set(err, SNAP_E_INPUT, "a row of the journal lacks its arm, shape or median");
    mla_precision p = bench_kind_precision(kind);
    mla_work w;
    if (!work_of(&s, p, &w))
        return err_set(err, SNAP_E_NOMEM, "out of memory for a row");
    bool bytes_bind;
    double floor_ns = mla_floor_ns(c, p, s.d_c, s.d_r, w, &bytes_bind);
    bool ok = js_set_num(perf, "tflops", w.flop / ns / 1e3) &&
              js_set_num(perf, "gb_s", w.bytes / ns) &&
              js_set_num(perf, "tok_s", (double)s.batch * s.s_q / ns * 1e9) &&
              js_set_num(perf, "tok_j", (double)s.batch * s.s_q / row_number(row, "energy_j")) &&
              js_set_num(perf, "floor_ns", floor_ns) &&
              js_set_num(perf, "roofline_pct", 100 * floor_ns / ns) &&
              js_set_str(perf, "bound", bytes_bind ? "bytes" : "flops") &&
              derive_paired(row, p, &s, w, ns) &&
              set_flag(row, "below_floor", ns < floor_ns && is_cold(row));
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a row");
}

double row_speedup(const js *bf16, js *fp8) {
    double times = row_number(bf16, "median_ns") / row_number(fp8, "median_ns");
    double floors = row_number(bf16, "floor_ns") / row_number(fp8, "floor_ns");
    (void)set_flag(fp8, "weak_baseline", times > floors);
    return times;
}
