#include "harness/bench/row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/stats.h"

static const double kNoisy = 0.05; /* a row is flagged if its interquartile range exceeds this share
                                      of the median */

void row_key(const row_context *ctx, const bench_shape *s, bench_kind k, bench_scope scope,
             char out[ROW_KEY]) {
    (void)snprintf(out, ROW_KEY, "%s%s%s %s%s H%d s%d b%d c%lld d%d+%d %s%s%s, %s %s %.16s",
                   ctx->name ? ctx->name : "", ctx->name ? ": " : "", bench_kind_name(k),
                   bench_scope_name(scope), ctx->sustained ? " sustained" : "", s->heads, s->s_q,
                   s->batch, (long long)s->context, s->d_c, s->d_r, ctx->distribution,
                   s->lengths ? " " : "", s->lengths ? s->lengths_text : "", ctx->backend.name,
                   ctx->backend.kernel, ctx->kernel_hash ? ctx->kernel_hash : "");
}

/* ---- measured values of a row ---- */

static cell_shape shape_of(const bench_shape *s) {
    return (cell_shape){.heads = s->heads,
                        .s_q = s->s_q,
                        .batch = s->batch,
                        .context = s->context,
                        .d_c = s->d_c,
                        .d_r = s->d_r};
}

static void set_correctness(cell_correctness *c, const verified *v, bool without_lse) {
    if (!v || !v->error.rows)
        return;
    c->exists = true;
    c->error = v->error.out_rel;
    c->tolerance = v->bound.out_rel;
    c->lse_error = judge_lse(&v->error, v->bound);
    c->lse_tolerance = v->bound.lse_err;
    c->rows_checked = v->error.rows;
    if (!(v->error.lse_err <= v->bound.lse_err))
        c->lse_error_exact = v->error.lse_err;
    if (without_lse)
        c->lse_error = c->lse_tolerance = (double)NAN;
}

static cell_rates rates_of(const mla_ceilings *c) {
    return (cell_rates){
        .read_bandwidth = c->read.rate, .bf16_mma = c->bf16.rate, .fp8_mma = c->fp8.rate};
}

static void set_paired(cell_paired *p, const paired_probes *probes) {
    if (!probes || !probes->n)
        return;
    mla_ceilings median = paired_probes_median(probes), best = paired_probes_best(probes);
    p->exists = true;
    p->looks = (int64_t)probes->n;
    p->median = rates_of(&median);
    p->best = rates_of(&best);
}

static void set_performance(cell_performance *p, const row_context *ctx, const row_measured *m) {
    const stop_rule *t = m->timing;
    stats_summary s = stats_summarise(t->sorted, t->n);
    /* The clock of the device or, for a backend that runs on the processors, of the processors. */
    bool host = mla_on_processors(&ctx->backend);
    p->exists = true;
    p->samples_ns = (record_numbers){t->samples, t->n};
    p->min_ns = s.min;
    p->q1_ns = s.q1;
    p->median_ns = s.median;
    p->q3_ns = s.q3;
    p->max_ns = s.max;
    p->mean_ns = s.mean;
    p->p99_ns = s.p99;
    p->count = (int64_t)t->n;
    p->stop_reason = stop_reason_name(t->reason);
    p->clock_mhz_before = host ? m->before.mhz : m->gpu_before.sm_mhz;
    p->clock_mhz_during = host ? m->after.mhz : m->gpu_after.sm_mhz;
    p->power_w = m->power_w;
    p->energy_j = m->power_w * (s.median / 1e9);
    p->energy_source = m->energy_source;
    p->energy_missing = m->energy_missing;
    set_paired(&p->paired, m->probes);
}

static bool noisy(const cell_performance *p) {
    return p->q3_ns - p->q1_ns > kNoisy * p->median_ns;
}

enum { FLAGS = 7 };

/* Lists the flags of a row that passed, without those that follow from other rows (below_floor,
 * weak_baseline), and returns their number; 0 for any other row. The state of the processors
 * matters only for a backend that runs on them. */
static size_t list_flags(const char *flags[FLAGS], const cell_performance *p,
                         const row_context *ctx, const row_measured *m) {
    size_t n = 0;
    env_flags env = {0};
    uint64_t reasons = m->gpu_before.reasons | m->gpu_during | m->gpu_after.reasons;
    if (m->status != ROW_PASSED)
        return 0;
    if (mla_on_processors(&ctx->backend))
        env = env_between(&m->before, &m->after);
    if (env.throttled || gpu_is_slowed(reasons))
        flags[n++] = "throttled";
    if (gpu_is_capped(reasons))
        flags[n++] = "power_capped";
    if (env.shared)
        flags[n++] = "shared";
    if (noisy(p))
        flags[n++] = "noisy";
    if (m->not_captured)
        flags[n++] = "not_captured";
    if (m->host_limited)
        flags[n++] = "host_limited";
    if (m->without_lse)
        flags[n++] = "lse_not_checked";
    return n;
}

static void set_format(cell_format *c, const arm_format *f) {
    if (f)
        *c = (cell_format){.exists = true,
                           .name = f->format.name,
                           .sha256 = f->sha256,
                           .bytes_per_token = cache_format_token_bytes(&f->format),
                           .page_tokens = f->format.page_tokens,
                           .descriptor = f->json};
}

/* Sets the fields that only the rows of named arms have. */
static void set_named(cell_record *c, const row_context *ctx, const row_measured *m) {
    c->name = ctx->name;
    c->options = ctx->options;
    c->device = ctx->backend.device;
    c->ceilings = ctx->ceilings;
    set_format(&c->format, ctx->format);
    if (isnan(m->against.ratio))
        return;
    c->against = (cell_against){.exists = true,
                                .baseline = m->baseline,
                                .ratio = m->against.ratio,
                                .interval = {m->against.lo, m->against.hi}};
}

/* The lengths of the sequences, if they differ. @each [batch] receives them. */
static void set_lengths(cell_record *c, const bench_shape *s, double *each) {
    if (!s->lengths)
        return;
    for (int b = 0; b < s->batch; b++)
        each[b] = s->lengths[b];
    c->lengths = (cell_lengths){.exists = true,
                                .distribution = s->lengths_text,
                                .tokens = bench_shape_tokens(s),
                                .each = {each, (size_t)s->batch}};
}

/* Finds the cell of the challenge by its lengths, which the challenge owns. */
static void set_challenge(cell_record *c, const row_context *ctx, const bench_shape *s) {
    for (int i = 0; ctx->challenge && i < CHALLENGE_CELLS; i++)
        if (ctx->challenge->cell[i].lengths == s->lengths)
            c->challenge = (cell_challenge){.exists = true,
                                            .seed = ctx->challenge->text,
                                            .tokens = ctx->challenge->tokens,
                                            .cell = i,
                                            .sha256 = ctx->challenge_hash};
}

js *row_json(const row_context *ctx, const row_measured *m) {
    static const char *const names[] = {"passed", "failed", "skipped", "error"};
    const char *flags[FLAGS];
    double each[BENCH_MAX_BATCH];
    cell_record c;
    record_init(&cell_type, &c);
    c.arm = bench_kind_name(m->kind);
    c.backend = ctx->backend.name[0] ? ctx->backend.name : "none";
    c.kernel = m->kernel ? m->kernel : ctx->backend.kernel;
    c.kernel_hash = m->kernel ? m->kernel_hash : ctx->kernel_hash;
    c.mode = ctx->sustained ? "sustained" : "burst";
    c.scope = bench_scope_name(m->scope);
    c.shape = shape_of(&m->shape);
    set_lengths(&c, &m->shape, each);
    set_challenge(&c, ctx, &m->shape);
    c.distribution = ctx->distribution;
    c.cold = m->cold;
    c.origin = "measured";
    c.status = names[m->status];
    c.reason = m->status == ROW_PASSED ? NULL : m->reason;
    set_correctness(&c.correctness, m->verdict, m->without_lse);
    if (m->status == ROW_PASSED)
        set_performance(&c.performance, ctx, m);
    if (ctx->name)
        set_named(&c, ctx, m);
    c.flags = (record_texts){flags, list_flags(flags, &c.performance, ctx, m)};
    return record_write(&cell_type, &c);
}

/* ---- values derived from a row ---- */

/* @v if it is within 1 .. @high, else 0. */
static int shape_number(int64_t v, int64_t high) {
    return v >= 1 && v <= high ? (int)v : 0;
}

static bool shape_from(const cell_shape *c, bench_shape *s) {
    *s = (bench_shape){.heads = shape_number(c->heads, MLA_MAX_HEADS),
                       .s_q = shape_number(c->s_q, MLA_MAX_SQ),
                       .batch = shape_number(c->batch, BENCH_MAX_BATCH),
                       .context = shape_number(c->context, MLA_MAX_CONTEXT),
                       .d_c = shape_number(c->d_c, MLA_MAX_CONTENT),
                       .d_r = shape_number(c->d_r, MLA_MAX_ROPE)};
    return s->heads && s->s_q && s->batch && s->context && s->d_c && s->d_r;
}

/* The bytes that a step reads of caches of the given lengths, and its queries and results. The
 * values that all tokens share are read once. */
static double format_bytes(const cache_format *f, const bench_shape *s, const int32_t *lengths) {
    double shared = cache_format_read_bytes(f, 0), bytes = shared;
    double rows = (double)s->batch * s->s_q * s->heads;
    for (int b = 0; b < s->batch; b++)
        bytes += cache_format_read_bytes(f, lengths[b]) - shared;
    return bytes + rows * (2.0 * (s->d_c + s->d_r) + 2.0 * s->d_c + (double)sizeof(float));
}

/* Sets *out to the operations and bytes of a step. @each: the lengths of the sequences, if they
 * differ; their number is the batch. @f: the format of the cache, or NULL. False if memory is
 * exhausted. */
static bool work_of(const bench_shape *s, record_numbers each, mla_precision p,
                    const cache_format *f, mla_work *out) {
    int32_t *lengths = malloc((size_t)s->batch * sizeof *lengths);
    for (int b = 0; lengths && b < s->batch; b++)
        lengths[b] = (int32_t)(each.n ? each.at[b] : (double)s->context);
    if (lengths)
        *out = mla_work_of(p, s->heads, s->d_c, s->d_r, s->batch, s->s_q, lengths);
    if (lengths && f)
        out->bytes = format_bytes(f, s, lengths);
    free(lengths);
    return lengths != NULL;
}

/* Whether there is no list of lengths, or one for the whole batch with lengths up to the
 * context. */
static bool lengths_fit(const bench_shape *s, record_numbers each) {
    bool fit = !each.n || each.n == (size_t)s->batch;
    for (size_t i = 0; fit && i < each.n; i++)
        fit = each.at[i] >= 0 && each.at[i] <= (double)s->context;
    return fit;
}

static bool set_flag(cell_record *c, const char *flag, bool on, arena *mem) {
    const char **flags = arena_alloc(mem, c->flags.n + 1, sizeof *flags);
    size_t n = 0;
    for (size_t i = 0; flags && i < c->flags.n; i++)
        if (strcmp(c->flags.at[i], flag) != 0)
            flags[n++] = c->flags.at[i];
    if (flags && on)
        flags[n++] = flag;
    c->flags = (record_texts){flags, n};
    return flags != NULL;
}

static mla_ceilings ceilings_of(const cell_rates *r, bool exist) {
    return (mla_ceilings){.read.rate = exist ? r->read_bandwidth : 0,
                          .bf16.rate = exist ? r->bf16_mma : 0,
                          .fp8.rate = exist ? r->fp8_mma : 0};
}

static void raise_rate(mla_ceiling *c, double rate) {
    c->rate = rate > c->rate ? rate : c->rate;
}

void cell_raise(const cell_record *c, mla_ceilings *to) {
    const cell_paired *p = &c->performance.paired;
    mla_ceilings best = ceilings_of(&p->best, p->exists);
    raise_rate(&to->read, best.read.rate);
    raise_rate(&to->bf16, best.bf16.rate);
    raise_rate(&to->fp8, best.fp8.rate);
}

/* The floor at the median rates between the samples, as a percentage of the median time. On shared
 * processors, a long step contains interruptions that the median of the short probes misses. So a
 * row with the flag "shared" gets no such figure. */
static void derive_paired(cell_record *c, mla_precision p, const bench_shape *s, mla_work w) {
    cell_performance *perf = &c->performance;
    mla_ceilings then = ceilings_of(&perf->paired.median, perf->paired.exists);
    if (!perf->paired.exists)
        return;
    double pct = 100 * mla_floor_ns(&then, p, s->d_c, s->d_r, w, NULL) / perf->median_ns;
    perf->paired.parts |= CELL_DERIVED;
    perf->paired.roofline_pct = cell_has_flag(c, "shared") ? (double)NAN : pct;
}

snap_status cell_derive(cell_record *c, const mla_ceilings *ceilings, arena *mem, snap_err *err) {
    cell_performance *p = &c->performance;
    double ns = p->median_ns;
    bench_shape s;
    bench_kind kind;
    if (!p->exists)
        return SNAP_OK;
    if (!bench_kind_parse(c->arm, &kind) || !shape_from(&c->shape, &s) || !(ns > 0))
        return err_set(err, SNAP_E_INPUT, "a row of the journal lacks its arm, shape or median");
    mla_precision precision = bench_kind_precision(kind);
    record_numbers each = c->lengths.exists ? c->lengths.each : (record_numbers){0};
    mla_work w;
    cache_format format;
    bool packed = c->format.exists;
    if (packed) {
        snap_status st = arm_format_parse(&format, c->format.descriptor, "the format of a row",
                                          s.d_c, s.d_r, err);
        if (st != SNAP_OK)
            return st;
    }
    if (!lengths_fit(&s, each))
        return err_set(err, SNAP_E_INPUT, "a row of the journal has lengths that do not fit it");
    if (!work_of(&s, each, precision, packed ? &format : NULL, &w))
        return err_set(err, SNAP_E_NOMEM, "out of memory for a row");
    bool bytes_bind, cold = c->cold[0] && strcmp(c->cold, "none") != 0;
    p->parts |= CELL_DERIVED;
    p->floor_ns = mla_floor_ns(ceilings, precision, s.d_c, s.d_r, w, &bytes_bind);
    p->tflops = w.flop / ns / 1e3;
    p->gb_s = w.bytes / ns;
    p->tok_s = (double)s.batch * s.s_q / ns * 1e9;
    p->tok_j = (double)s.batch * s.s_q / p->energy_j;
    p->roofline_pct = 100 * p->floor_ns / ns;
    p->bound = bytes_bind ? "bytes" : "flops";
    derive_paired(c, precision, &s, w);
    bool ok = set_flag(c, "below_floor", ns < p->floor_ns && cold, mem);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a row");
}

double cell_speedup(const cell_record *bf16, const cell_record *fp8) {
    return bf16->performance.median_ns / fp8->performance.median_ns;
}

bool cell_flag_baseline(const cell_record *bf16, cell_record *fp8, arena *mem) {
    double floors = bf16->performance.floor_ns / fp8->performance.floor_ns;
    return set_flag(fp8, "weak_baseline", cell_speedup(bf16, fp8) > floors, mem);
}

bool row_store(js *row, const cell_record *c) {
    js *now = record_write(&cell_type, c);
    bool ok = now && js_set_new(row, "performance", js_copy(js_get(now, "performance"))) &&
              js_set_new(row, "flags", js_copy(js_get(now, "flags")));
    js_free(now);
    return ok;
}
