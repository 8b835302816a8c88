#include "kernels/plugin/attend_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double kLimitS = 60, kMostS = 3600;

/* ---- the device, which is that of the inner backend ---- */

static void describe(const mla_backend *be, mla_backend_info *out) {
    const attend_backend *a = attend_of(be);
    mla_backend_describe(a->inner, out);
    (void)snprintf(out->name, sizeof out->name, "%s", a->plugin->name);
    (void)snprintf(out->kernel, sizeof out->kernel, "%s", a->kernel);
    if (a->plugin->device_name && a->plugin->device_name[0])
        (void)snprintf(out->device, sizeof out->device, "%s", a->plugin->device_name);
    out->fp8_sums = (mla_cut_sums){0};
}

static snap_status copy_in(mla_backend *be, void *device, const void *host, size_t n,
                           snap_err *err) {
    return mla_copy_in(attend_inner(be), device, host, n, err);
}

static snap_status copy_out(mla_backend *be, void *host, const void *device, size_t n,
                            snap_err *err) {
    guard_rest();
    return mla_copy_out(attend_inner(be), host, device, n, err);
}

static snap_status sync(mla_backend *be, snap_err *err) {
    guard_rest();
    return mla_sync(attend_inner(be), err);
}

static snap_status timer_start(mla_backend *be, snap_err *err) {
    guard_rest();
    return mla_timer_start(attend_inner(be), err);
}

static snap_status timer_stop(mla_backend *be, double *ns, snap_err *err) {
    snap_status st = mla_timer_stop(attend_inner(be), ns, err);
    guard_rest();
    return st;
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

/* The plans of plugins that were stopped. Threads of such a plugin may still use them, as they may
 * use its memory (attend_memory.c). */
static attend_plan *kept_plans;

void attend_plan_release(attend_plan *p) {
    if (!p)
        return;
    if (attend_of(p->base.be)->stopped) {
        p->next = kept_plans;
        kept_plans = p;
        return;
    }
    if (p->packed) {
        free(p->packed->json);
        free(p->packed->named);
    }
    free(p->packed);
    free(p->lengths);
    free(p->table);
    free(p);
}

static void plan_free(mla_plan *plan) {
    attend_plan *p = attend_plan_of(plan);
    const attend_backend *a = attend_of(plan->be);
    guard_rest();
    if (a->plugin->plan_free && !a->stopped)
        a->plugin->plan_free(p->state);
    mla_plan_free(p->inner);
    attend_plan_release(p);
}

static snap_status plan_alloc(attend_plan *p, const mla_capacity *cap, snap_err *err) {
    size_t batch = (size_t)cap->batch;
    p->table_width = (int)((cap->max_tokens + p->page_tokens - 1) / p->page_tokens);
    p->lengths = calloc(batch, sizeof *p->lengths);
    p->table = calloc(batch * (size_t)p->table_width, sizeof *p->table);
    return p->lengths && p->table ? SNAP_OK
                                  : err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
}

snap_status attend_plan_new(attend_plan **out, mla_backend *be, const mla_capacity *cap,
                            int page_tokens, snap_err *err) {
    const attend_backend *a = attend_of(be);
    *out = NULL;
    if (a->stopped) {
        (void)err_set(err, SNAP_E_DEVICE, "plugin %s was stopped", a->plugin->name);
        return SNAP_E_DEVICE;
    }
    attend_plan *p = calloc(1, sizeof *p);
    if (!p) {
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
        return SNAP_E_NOMEM;
    }
    p->base = (mla_plan){.be = be, .cap = *cap};
    p->page_tokens = page_tokens;
    snap_status st = a->host ? plan_alloc(p, cap, err) : SNAP_OK;
    if (st == SNAP_OK)
        *out = p;
    else
        attend_plan_release(p);
    return st;
}

typedef struct {
    attend_plan *plan;
    snap_status st;
    snap_err err;
} plan_call;

static void call_plan(void *ctx) {
    plan_call *c = ctx;
    c->st = attend_of(c->plan->base.be)->plugin->plan(&c->plan->state, &c->plan->base.cap, &c->err);
}

static snap_status plan_state(attend_plan *p, snap_err *err) {
    attend_backend *a = attend_of(p->base.be);
    plan_call c = {.plan = p};
    if (!a->plugin->plan)
        return SNAP_OK;
    snap_status st = attend_limited(a, "plan()", call_plan, &c, err);
    return st == SNAP_OK ? attend_pass_on(a, "plan()", c.st, &c.err, err) : st;
}

static snap_status plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                               snap_err *err) {
    attend_backend *a = attend_of(be);
    const snapmla_attention *plugin = a->plugin;
    attend_plan *p = NULL;
    snap_status st = SNAP_OK;
    if (!(plugin->precisions >> cap->precision & 1u))
        return err_set(err, SNAP_E_UNSUPPORTED, "plugin %s has no %s%s", plugin->name,
                       mla_precision_name(cap->precision),
                       plugin->precisions ? "" : ": it reads packed caches, see format=");
    TRY(attend_plan_new(&p, be, cap, MLA_PAGE, err));
    TRY(mla_plan_create(&p->inner, a->inner, cap, err));
    TRY(plan_state(p, err));
    *out = (mla_plan *)p; /* its first member */
    return SNAP_OK;
cleanup:
    if (p)
        mla_plan_free(p->inner);
    attend_plan_release(p);
    return st;
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

static uint64_t sum_inputs(const void *ctx) {
    const attention_call *c = ctx;
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

static snap_status run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                       const mla_attn *attn, snap_err *err) {
    attend_plan *p = attend_plan_of(plan);
    const attend_backend *a = attend_of(plan->be);
    if (a->stopped)
        return err_set(err, SNAP_E_DEVICE,
                       "plugin %s was stopped: an earlier call crashed or took too long",
                       a->plugin->name);
    if (a->host)
        attend_keep_step(p, step, cache->pages);
    attention_call c = {
        .be = a,
        .plan = p,
        .step = attend_step(p, step),
        .q = {attn->q, attn->q_rope, attn->q_scale, attn->softmax_scale},
        .cache = cache,
        .out = attn->out,
        .lse = attn->lse,
    };
    guarded_call guarded = {.plan = p,
                            .call = call_plugin,
                            .sum = sum_inputs,
                            .ctx = &c,
                            .out = attn->out,
                            .lse = attn->lse,
                            .rows =
                                (size_t)step->batch * (size_t)step->s_q * (size_t)plan->cap.heads};
    if (!a->host)
        call_plugin(&c);
    else if (attend_guarded(&guarded, err) != SNAP_OK)
        return SNAP_E_DEVICE;
    return attend_pass_on(a, "attend()", c.st, &c.err, err);
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
    attend_backend *a = attend_of(be);
    guard_rest();
    if (a->drop && !a->stopped)
        a->drop(a->plugin->self);
    mla_backend_close(attend_inner(be));
    free(be);
}

#define COMMON_OPS                                                                                 \
    .close = close_backend, .describe = describe, .alloc = attend_alloc, .free = attend_free,      \
    .copy_in = copy_in, .copy_out = copy_out, .sync = sync, .timer_start = timer_start,            \
    .timer_stop = timer_stop, .plan_create = plan_create, .plan_free = plan_free,                  \
    .schedule = schedule, .run = run, .quant_q = quant_q, .append_kv = append_kv,                  \
    .prepare = prepare, .fetch_kv = fetch_kv, .ceilings = ceilings, .probe_once = probe_once,      \
    .limits = limits

static const mla_backend_ops kHostOps = {COMMON_OPS, .host_memory = true};

#ifdef SNAPMLA_CUDA
static const mla_backend_ops kCudaOps = {COMMON_OPS, .lab = &attend_lab};
#endif

bool attend_is_backend(const mla_backend *be) {
    return be->ops->close == close_backend;
}

mla_backend *attend_built_in(mla_backend *be) {
    return attend_is_backend(be) ? attend_inner(be) : be;
}

/* ---- opening ---- */

static snap_status check_table(const snapmla_attention *p, const char *path, snap_err *err) {
    bool packed = p->attend_packed && !p->precisions;
    if (!p->attend && !p->attend_packed)
        return err_set(err, SNAP_E_UNSUPPORTED, "plugin '%s': attend is null", path);
    if (!p->attend && p->precisions)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "plugin '%s': it has precisions, but attend is null", path);
    if (!packed &&
        (!p->precisions || p->precisions & ~(unsigned)(SNAPMLA_HAS_BF16 | SNAPMLA_HAS_FP8)))
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
    mla_backend_options wanted = {.threads = opt->threads, .pool = opt->pool, .scale = opt->scale};
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
    attend_backend *a = NULL;
    snap_status st = SNAP_OK;
    TRY(check_table(plugin, path, err));
    a = calloc(1, sizeof *a);
    if (!a)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a backend");
    a->plugin = plugin;
    a->kernel = plugin->kernel && plugin->kernel[0] ? plugin->kernel : plugin->name;
    a->limit_s = plugin->limit_s > 0 ? plugin->limit_s : kLimitS;
    TRY(open_inner(a, opt, path, err));
    *out = (mla_backend *)a; /* its first member */
    return SNAP_OK;
cleanup:
    free(a);
    return st;
}

snap_status attend_backend_make(mla_backend **out, const snapmla_attention *maker, const char *path,
                                const mla_backend_options *opt, snap_err *err) {
    const snapmla_attention *made = NULL;
    snap_err why = {0};
    if (!maker->make)
        return err_set(err, SNAP_E_UNSUPPORTED, "plugin %s cannot run a file", maker->name);
    snap_status st = maker->make(&made, path, opt->isa ? opt->isa : "auto", &why);
    if (st != SNAP_OK)
        return attend_pass_on(&(attend_backend){.plugin = maker}, path, st, &why, err);
    st = attend_backend_open(out, made, path, opt, err);
    if (st == SNAP_OK)
        attend_of(*out)->drop = maker->drop;
    else if (maker->drop)
        maker->drop(made->self);
    return st;
}
