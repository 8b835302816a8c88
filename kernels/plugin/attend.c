#include "kernels/plugin/attend_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double kLimitS = 60, kMostS = 3600;

/* ---- the device: all of it is the inner backend's ---- */

static void describe(const mla_backend *be, mla_backend_info *out) {
    const attend_backend *a = attend_of(be);
    mla_backend_describe(a->inner, out);
    (void)snprintf(out->name, sizeof out->name, "%s", a->plugin->name);
    (void)snprintf(out->kernel, sizeof out->kernel, "%s", a->kernel);
    out->fp8_sums = (mla_cut_sums){0};
}

/* On the host, GUARD_BYTES lie before and after each allocation. */
static void *alloc_guarded(mla_backend *be, size_t bytes, snap_err *err) {
    unsigned char *at = bytes < PTRDIFF_MAX - 2 * GUARD_BYTES
                            ? mla_alloc(attend_inner(be), bytes + (size_t)2 * GUARD_BYTES, err)
                            : NULL;
    if (!at)
        return NULL;
    memset(at, 0xa5, GUARD_BYTES);
    memset(at + GUARD_BYTES + bytes, 0xa5, GUARD_BYTES);
    return at + GUARD_BYTES;
}

/* A plugin that was stopped may have threads that still write, so its memory stays until the
 * program ends. These lists keep it reachable, so that it is no leak. */
static void *kept_memory; /* each block begins with the address of the next one */
static attend_plan *kept_plans;

static void release_guarded(mla_backend *be, void *device) {
    unsigned char *block = (unsigned char *)device - GUARD_BYTES;
    if (attend_of(be)->stopped) {
        memcpy(block, &kept_memory, sizeof kept_memory);
        kept_memory = block;
    } else {
        mla_free(attend_inner(be), block);
    }
}

static snap_status copy_in(mla_backend *be, void *device, const void *host, size_t n,
                           snap_err *err) {
    return mla_copy_in(attend_inner(be), device, host, n, err);
}

static snap_status copy_out(mla_backend *be, void *host, const void *device, size_t n,
                            snap_err *err) {
    return mla_copy_out(attend_inner(be), host, device, n, err);
}

static snap_status sync(mla_backend *be, snap_err *err) {
    return mla_sync(attend_inner(be), err);
}

static snap_status timer_start(mla_backend *be, snap_err *err) {
    return mla_timer_start(attend_inner(be), err);
}

static snap_status timer_stop(mla_backend *be, double *ns, snap_err *err) {
    return mla_timer_stop(attend_inner(be), ns, err);
}

static snap_status ceilings(mla_backend *be, double seconds, mla_ceilings *out, snap_err *err) {
    return mla_ceilings_measure(out, attend_inner(be), seconds, err);
}

static snap_status probe_once(mla_backend *be, mla_probe_rates *out, snap_err *err) {
    return mla_ceilings_probe_once(out, attend_inner(be), err);
}

static snap_status limits(mla_backend *be, double seconds, mla_limits *out, snap_err *err) {
    return mla_limits_measure(out, attend_inner(be), seconds, err);
}

/* ---- plans ---- */

/* An error that a function of the plugin returned, with the plugin's name. Only errors of a device
 * are passed on as they are: a plugin must not end the run as if the user had cancelled it. */
static snap_status pass_on(const snapmla_attention *plugin, const char *function, snap_status st,
                           const snap_err *why, snap_err *err) {
    bool known = st == SNAP_E_NOMEM || st == SNAP_E_SHAPE || st == SNAP_E_UNSUPPORTED;
    int most = (int)sizeof why->text - 1;
    if (st == SNAP_OK)
        return SNAP_OK;
    return err_set(err, known ? st : SNAP_E_DEVICE, "plugin %s: %s%s%.*s", plugin->name, function,
                   why->text[0] ? ": " : " failed without a message", most, why->text);
}

static void plan_free(mla_plan *plan) {
    attend_plan *p = attend_plan_of(plan);
    const attend_backend *a = attend_of(plan->be);
    if (a->plugin->plan_free && !a->stopped)
        a->plugin->plan_free(p->state);
    mla_plan_free(p->inner);
    if (a->stopped) { /* see release_guarded() */
        p->next = kept_plans;
        kept_plans = p;
        return;
    }
    free(p->lengths);
    free(p->table);
    free(p);
}

static snap_status plan_alloc(attend_plan *p, const mla_capacity *cap, snap_err *err) {
    size_t batch = (size_t)cap->batch;
    p->table_width = (int)((cap->max_tokens + MLA_PAGE - 1) / MLA_PAGE);
    p->lengths = calloc(batch, sizeof *p->lengths);
    p->table = calloc(batch * (size_t)p->table_width, sizeof *p->table);
    return p->lengths && p->table ? SNAP_OK
                                  : err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
}

static snap_status plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                               snap_err *err) {
    attend_backend *a = attend_of(be);
    const snapmla_attention *plugin = a->plugin;
    snap_status st = SNAP_OK;
    if (!(plugin->precisions >> cap->precision & 1u))
        return err_set(err, SNAP_E_UNSUPPORTED, "plugin %s has no %s", plugin->name,
                       mla_precision_name(cap->precision));
    if (a->stopped)
        return err_set(err, SNAP_E_DEVICE, "plugin %s was stopped", plugin->name);
    attend_plan *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
    p->base = (mla_plan){.be = be, .cap = *cap};
    TRY(mla_plan_create(&p->inner, a->inner, cap, err));
    if (a->host)
        TRY(plan_alloc(p, cap, err));
    if (plugin->plan) {
        snap_err why = {0};
        st = plugin->plan(&p->state, cap, &why);
        TRY(pass_on(plugin, "plan()", st, &why, err));
    }
    *out = (mla_plan *)p; /* its first member */
    return SNAP_OK;
cleanup:
    mla_plan_free(p->inner);
    free(p->lengths);
    free(p->table);
    free(p);
    return st;
}

/* Copies lengths and table, with every number in range. */
static void keep_step(attend_plan *p, const mla_step *step, int64_t pages) {
    int64_t most = (int64_t)step->table_width * MLA_PAGE, cap = p->base.cap.max_tokens;
    most = most < cap ? most : cap;
    for (int b = 0; b < step->batch; b++) {
        int64_t n = step->seqlens[b];
        n = n < 0 ? 0 : n > most ? most : n;
        p->lengths[b] = (int32_t)n;
        for (int64_t i = 0; i < (n + MLA_PAGE - 1) / MLA_PAGE; i++) {
            int64_t page = step->block_table[(int64_t)b * step->table_width + i];
            page = page < 0 ? 0 : page >= pages ? pages - 1 : page;
            p->table[(int64_t)b * p->table_width + i] = (int32_t)page;
        }
    }
}

static snap_status schedule(mla_plan *plan, const mla_step *step, snap_err *err) {
    return mla_schedule(attend_plan_of(plan)->inner, step, err);
}

/* ---- attention ---- */

typedef struct {
    const attend_backend *be;
    attend_plan *plan;
    snapmla_step step;
    snapmla_queries q;
    const mla_cache *cache;
    void *out;
    float *lse;
    snap_status st;
    snap_err err;
} attention_call;

static void call_plugin(void *ctx) {
    attention_call *c = ctx;
    c->st = c->be->plugin->attend(c->plan->state, &c->step, &c->q, c->cache, c->out, c->lse,
                                  c->be->stream, &c->err);
}

static uint64_t sum_inputs(const attention_call *c) {
    const mla_capacity *cap = &c->plan->base.cap;
    mla_page_bytes page = mla_cache_page_bytes(cap->precision, cap->d_c, cap->d_r);
    size_t pages = (size_t)c->cache->pages, batch = (size_t)c->step.batch;
    size_t rows = batch * (size_t)c->step.s_q * (size_t)cap->heads;
    size_t d_c = (size_t)cap->d_c, d_r = (size_t)cap->d_r;
    bool fp8 = cap->precision == MLA_FP8;
    uint64_t sum = guard_sum(0, c->cache->content, pages * page.content);
    sum = guard_sum(sum, c->cache->rope, pages * page.rope);
    sum = guard_sum(sum, c->cache->scale, pages * page.scale);
    sum = guard_sum(sum, c->q.q, rows * (fp8 ? d_c : 2 * (d_c + d_r)));
    sum = guard_sum(sum, c->q.q_rope, fp8 ? rows * d_r * 2 : 0);
    sum = guard_sum(sum, c->q.q_scale, fp8 ? rows * sizeof(float) : 0);
    sum = guard_sum(sum, c->plan->lengths, batch * sizeof(int32_t));
    return guard_sum(sum, c->plan->table, batch * (size_t)c->plan->table_width * sizeof(int32_t));
}

static snap_status reported(const attention_call *c, snap_err *err) {
    return pass_on(c->be->plugin, "attend()", c->st, &c->err, err);
}

static snap_status call_guarded(attention_call *c, snap_err *err) {
    attend_backend *a = attend_of(c->plan->base.be);
    const mla_capacity *cap = &c->plan->base.cap;
    size_t rows = (size_t)c->step.batch * (size_t)c->step.s_q * (size_t)cap->heads;
    bool sums = c->plan->calls++ < GUARD_CALLS;
    guard_range around[GUARD_RANGES];
    snap_err why = {0};
    guard_range_note(&around[0], c->out, rows * (size_t)cap->d_c * 2);
    guard_range_note(&around[1], c->lse, rows * sizeof(float));
    uint64_t before = sums ? sum_inputs(c) : 0;
    if (!guard_call(call_plugin, c, a->limit_s, &why)) {
        a->stopped = true;
        return err_set(err, SNAP_E_DEVICE, "plugin %s: %s", a->plugin->name, why.text);
    }
    static const char *const names[GUARD_RANGES] = {"out", "lse"};
    for (int i = 0; i < GUARD_RANGES; i++)
        if (!guard_range_holds(&around[i]))
            return err_set(err, SNAP_E_DEVICE, "plugin %s: attend() wrote outside of '%s'",
                           a->plugin->name, names[i]);
    if (sums && sum_inputs(c) != before)
        return err_set(err, SNAP_E_DEVICE,
                       "plugin %s: attend() changed its inputs (queries, cache, lengths or table)",
                       a->plugin->name);
    return reported(c, err);
}

static snap_status run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                       const mla_attn *attn, snap_err *err) {
    attend_plan *p = attend_plan_of(plan);
    const attend_backend *a = attend_of(plan->be);
    const mla_capacity *cap = &plan->cap;
    if (a->stopped)
        return err_set(err, SNAP_E_DEVICE, "plugin %s was stopped: an earlier call took too long",
                       a->plugin->name);
    if (a->host)
        keep_step(p, step, cache->pages);
    attention_call c = {
        .be = a,
        .plan = p,
        .step = {.precision = cap->precision,
                 .heads = cap->heads,
                 .d_c = cap->d_c,
                 .d_r = cap->d_r,
                 .max_tokens = cap->max_tokens,
                 .batch = step->batch,
                 .s_q = step->s_q,
                 .seqlens = a->host ? p->lengths : step->seqlens,
                 .block_table = a->host ? p->table : step->block_table,
                 .table_width = a->host ? p->table_width : step->table_width},
        .q = {attn->q, attn->q_rope, attn->q_scale, attn->softmax_scale},
        .cache = cache,
        .out = attn->out,
        .lse = attn->lse,
    };
    if (a->host)
        return call_guarded(&c, err);
    call_plugin(&c);
    return reported(&c, err);
}

/* ---- dataflow ---- */

static snap_status quant_q(mla_backend *be, int64_t rows, int d_c, int d_r, const void *q, void *q8,
                           void *q_rope, float *q_scale, snap_err *err) {
    if (!(attend_of(be)->plugin->precisions & SNAPMLA_HAS_FP8))
        return err_set(err, SNAP_E_UNSUPPORTED, "plugin %s has no fp8",
                       attend_of(be)->plugin->name);
    return mla_quant_q(attend_inner(be), rows, d_c, d_r, q, q8, q_rope, q_scale, err);
}

static snap_status append_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                             const void *kv, snap_err *err) {
    return mla_append_kv(attend_plan_of(plan)->inner, step, cache, kv, err);
}

static snap_status prepare(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                           const mla_fresh *fresh, snap_err *err) {
    return mla_prepare(attend_plan_of(plan)->inner, step, cache, fresh, err);
}

static snap_status fetch_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache, int seq,
                            int64_t first, int64_t count, void *kv, snap_err *err) {
    return mla_fetch_kv(attend_plan_of(plan)->inner, step, cache, seq, first, count, kv, err);
}

static void close_backend(mla_backend *be) {
    mla_backend_close(attend_inner(be));
    free(be);
}

#define COMMON_OPS                                                                                 \
    .close = close_backend, .describe = describe, .copy_in = copy_in, .copy_out = copy_out,        \
    .sync = sync, .timer_start = timer_start, .timer_stop = timer_stop,                            \
    .plan_create = plan_create, .plan_free = plan_free, .schedule = schedule, .run = run,          \
    .quant_q = quant_q, .append_kv = append_kv, .prepare = prepare, .fetch_kv = fetch_kv,          \
    .ceilings = ceilings, .probe_once = probe_once, .limits = limits

static const mla_backend_ops kHostOps = {COMMON_OPS, .alloc = alloc_guarded,
                                         .free = release_guarded, .host_memory = true};

#ifdef SNAPMLA_CUDA
static void *alloc(mla_backend *be, size_t bytes, snap_err *err) {
    return mla_alloc(attend_inner(be), bytes, err);
}

static void release(mla_backend *be, void *device) {
    mla_free(attend_inner(be), device);
}

static const mla_backend_ops kCudaOps = {COMMON_OPS, .alloc = alloc, .free = release,
                                         .lab = &attend_lab};
#endif

/* ---- opening ---- */

static snap_status check_table(const snapmla_attention *p, const char *path, snap_err *err) {
    if (!p->attend)
        return err_set(err, SNAP_E_UNSUPPORTED, "plugin '%s': attend is null", path);
    if (!p->precisions || p->precisions & ~(unsigned)(SNAPMLA_HAS_BF16 | SNAPMLA_HAS_FP8))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "plugin '%s': precisions must be SNAPMLA_HAS_BF16, SNAPMLA_HAS_FP8 or both",
                       path);
    if (!(p->limit_s >= 0 && p->limit_s <= kMostS))
        return err_set(err, SNAP_E_UNSUPPORTED, "plugin '%s': limit_s must be within 0..%g", path,
                       kMostS);
    return SNAP_OK;
}

static snap_status open_inner(attend_backend *a, const mla_backend_options *opt, const char *path,
                              snap_err *err) {
    mla_backend_options wanted = {.threads = opt->threads, .pool = opt->pool};
    const char *device = a->plugin->device ? a->plugin->device : "";
    if (strcmp(device, "host") == 0) {
        a->host = true;
        a->base.ops = &kHostOps;
        return mla_backend_open(&a->inner, "cpu", &wanted, err);
    }
    if (strcmp(device, "cuda") != 0)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "plugin '%s': device must be \"host\" or \"cuda\", got \"%.40s\"", path,
                       device);
#ifdef SNAPMLA_CUDA
    a->base.ops = &kCudaOps;
    snap_status st = mla_backend_open(&a->inner, "cuda", &wanted, err);
    if (st == SNAP_OK)
        a->stream = cuda_backend_stream(a->inner);
    return st;
#else
    return err_set(err, SNAP_E_UNSUPPORTED,
                   "plugin '%s' needs the device cuda, and this build has no CUDA", path);
#endif
}

snap_status attend_backend_open(mla_backend **out, const snapmla_attention *plugin,
                                const char *path, const mla_backend_options *opt, snap_err *err) {
    snap_status st = check_table(plugin, path, err);
    if (st != SNAP_OK)
        return st;
    attend_backend *a = calloc(1, sizeof *a);
    if (!a)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a backend");
    a->plugin = plugin;
    a->kernel = plugin->kernel && plugin->kernel[0] ? plugin->kernel : plugin->name;
    a->limit_s = plugin->limit_s > 0 ? plugin->limit_s : kLimitS;
    st = open_inner(a, opt, path, err);
    if (st == SNAP_OK)
        *out = (mla_backend *)a; /* its first member */
    else
        free(a);
    return st;
}
