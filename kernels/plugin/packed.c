#include "kernels/plugin/packed.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/plugin/attend_inside.h"

_Static_assert((int)SNAPMLA_PLANES == CACHE_PLANES && (int)SNAPMLA_PLANES == CACHE_POOLS,
               "attention.h has room for every plane and pool of a format");

bool packed_is_supported(const mla_backend *be) {
    return attend_is_backend(be) && attend_of(be)->plugin->attend_packed;
}

const char *packed_own_format(const mla_backend *be) {
    return attend_is_backend(be) ? attend_of(be)->plugin->format : NULL;
}

bool packed_has_lse(const mla_backend *be) {
    return !attend_is_backend(be) || !attend_of(be)->plugin->without_lse;
}

/* ---- plans ---- */

/* Describes the format as the plugin sees it. attend_plan_release() frees the result. NULL: out of
 * memory. */
static attend_packed *describe_format(const cache_format *f, const char *json) {
    cache_plane_name planes[CACHE_PLANES];
    attend_packed *p = calloc(1, sizeof *p);
    char *text = strdup(json), *name = strdup(f->name);
    if (!p || !text || !name) {
        free(p);
        free(text);
        free(name);
        return NULL;
    }
    p->json = text;
    p->named = name;
    p->seen = (snapmla_format){.name = p->named,
                               .json = p->json,
                               .page_tokens = f->page_tokens,
                               .planes = cache_format_planes(f, planes),
                               .pools = f->pools};
    for (int i = 0; i < p->seen.planes; i++) {
        const cache_plane *from = planes[i].plane;
        p->seen.plane[i] = (snapmla_plane){.name = planes[i].name,
                                           .type = element_name(from->type),
                                           .columns = from->columns,
                                           .pool = from->pool,
                                           .offset = from->offset,
                                           .stride = from->stride};
    }
    for (int i = 0; i < f->pools; i++)
        p->seen.pool[i] = (snapmla_pool){f->pool[i].paged, f->pool[i].bytes};
    return p;
}

typedef struct {
    const snapmla_attention *plugin;
    attend_plan *plan;
    snap_status st;
    snap_err err;
} plan_call;

static void call_plan(void *ctx) {
    plan_call *c = ctx;
    c->st = c->plugin->plan_packed(c->plugin->self, &c->plan->state, &c->plan->base.cap,
                                   &c->plan->packed->seen, &c->err);
}

/* Calls plan_packed(), if the plugin has it. */
static snap_status plan_state(attend_plan *p, snap_err *err) {
    attend_backend *a = attend_of(p->base.be);
    plan_call c = {.plugin = a->plugin, .plan = p};
    if (!a->plugin->plan_packed)
        return SNAP_OK;
    snap_status st = attend_limited(a, "plan()", call_plan, &c, err);
    return st == SNAP_OK ? attend_pass_on(a, "plan()", c.st, &c.err, err) : st;
}

snap_status packed_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                               const cache_format *f, const char *json, snap_err *err) {
    attend_plan *p = NULL;
    snap_status st = SNAP_OK;
    *out = NULL;
    if (!packed_is_supported(be))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "the backend has no attend_packed(): it reads no cache in another format");
    if (cap->precision != MLA_BF16 || cap->batch < 1 || cap->max_tokens < 1 || cap->d_c != f->d_c ||
        cap->d_r != f->d_r)
        return err_set(err, SNAP_E_SHAPE, "the capacity does not fit the format %s", f->name);
    TRY(attend_plan_new(&p, be, cap, f->page_tokens, err));
    p->packed = describe_format(f, json);
    if (!p->packed) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
        goto cleanup;
    }
    TRY(plan_state(p, err));
    *out = (mla_plan *)p; /* its first member */
    return SNAP_OK;
cleanup:
    attend_plan_release(p);
    return st;
}

/* ---- steps ---- */

typedef struct {
    const attend_backend *be;
    attend_plan *plan;
    snapmla_step step;
    snapmla_queries q;
    snapmla_packed cache;
    void *out;
    float *lse;
    snap_status st;
    snap_err err;
} packed_call;

static packed_call call_of(mla_plan *plan, const mla_step *step, const packed_cache *cache,
                           const mla_attn *attn) {
    attend_plan *p = attend_plan_of(plan);
    packed_call c = {.be = attend_of(plan->be),
                     .plan = p,
                     .step = attend_step(p, step),
                     .q = {attn->q, NULL, NULL, attn->softmax_scale},
                     .out = attn->out,
                     .lse = attn->lse,
                     .cache = {.format = &p->packed->seen, .pages = cache->pages}};
    for (int i = 0; i < p->packed->seen.pools; i++)
        c.cache.pool[i] = cache->pool[i];
    return c;
}

static void call_attend(void *ctx) {
    packed_call *c = ctx;
    c->st = c->be->plugin->attend_packed(c->plan->state, &c->step, &c->q, &c->cache, c->out, c->lse,
                                         c->be->stream, &c->err);
}

static void call_schedule(void *ctx) {
    packed_call *c = ctx;
    c->st = c->be->plugin->schedule_packed(c->plan->state, &c->step, &c->q, &c->cache,
                                           c->be->stream, &c->err);
}

static snap_status stopped(const attend_backend *a, snap_err *err) {
    return err_set(err, SNAP_E_DEVICE,
                   "plugin %s was stopped: an earlier call crashed or took too long",
                   a->plugin->name);
}

snap_status packed_schedule(mla_plan *plan, const mla_step *step, const packed_cache *cache,
                            const mla_attn *attn, snap_err *err) {
    attend_plan *p = attend_plan_of(plan);
    attend_backend *a = attend_of(plan->be);
    if (a->stopped)
        return stopped(a, err);
    if (a->host)
        attend_keep_step(p, step, cache->pages);
    packed_call c = call_of(plan, step, cache, attn);
    if (!a->plugin->schedule_packed)
        return SNAP_OK;
    snap_status st = attend_limited(a, "schedule()", call_schedule, &c, err);
    return st == SNAP_OK ? attend_pass_on(a, "schedule()", c.st, &c.err, err) : st;
}

static size_t pool_bytes(const snapmla_packed *cache, int pool) {
    const snapmla_pool *p = &cache->format->pool[pool];
    return (size_t)(p->paged ? cache->pages * p->bytes : p->bytes);
}

static size_t query_bytes(const packed_call *c) {
    const snapmla_step *s = &c->step;
    return (size_t)s->batch * (size_t)s->s_q * (size_t)s->heads * (size_t)(s->d_c + s->d_r) * 2;
}

static size_t table_bytes(const packed_call *c) {
    return (size_t)c->step.batch * (size_t)c->step.table_width * sizeof(int32_t);
}

static uint64_t sum_inputs(const void *ctx) {
    const packed_call *c = ctx;
    uint64_t sum = guard_sum(0, c->q.q, query_bytes(c));
    for (int i = 0; i < c->cache.format->pools; i++)
        sum = guard_sum(sum, c->cache.pool[i], pool_bytes(&c->cache, i));
    sum = guard_sum(sum, c->step.seqlens, (size_t)c->step.batch * sizeof(int32_t));
    return guard_sum(sum, c->step.block_table, table_bytes(c));
}

/* ---- what is checked in the first call of a plan, and after the timed steps ---- */

/* Adds at most @bytes of device memory to the checksum. */
static snap_status sum_device(uint64_t *sum, const attend_backend *a, const void *at, size_t bytes,
                              snap_err *err) {
    enum { kChunk = 1 << 22 };
    unsigned char *chunk = malloc(kChunk);
    snap_status st = SNAP_OK;
    if (!chunk)
        return err_set(err, SNAP_E_NOMEM, "out of memory for checking a plugin");
    for (size_t i = 0; i < bytes && st == SNAP_OK; i += kChunk) {
        size_t n = bytes - i < kChunk ? bytes - i : kChunk;
        st = mla_copy_out(a->inner, chunk, (const unsigned char *)at + i, n, err);
        *sum = guard_sum(*sum, chunk, st == SNAP_OK ? n : 0);
    }
    free(chunk);
    return st;
}

/* Adds the first PACKED_SUMMED bytes of the cache. */
static snap_status sum_cache(uint64_t *sum, const attend_backend *a, const snapmla_packed *cache,
                             snap_err *err) {
    size_t left = PACKED_SUMMED;
    for (int i = 0; i < cache->format->pools; i++) {
        size_t bytes = pool_bytes(cache, i);
        bytes = bytes < left ? bytes : left;
        snap_status st = sum_device(sum, a, cache->pool[i], bytes, err);
        if (st != SNAP_OK)
            return st;
        left -= bytes;
    }
    return SNAP_OK;
}

static snap_status sum_device_inputs(uint64_t *sum, const packed_call *c, snap_err *err) {
    snap_status st = SNAP_OK;
    *sum = 0;
    TRY(sum_device(sum, c->be, c->q.q, query_bytes(c), err));
    TRY(sum_cache(sum, c->be, &c->cache, err));
    TRY(sum_device(sum, c->be, c->step.seqlens, (size_t)c->step.batch * sizeof(int32_t), err));
    TRY(sum_device(sum, c->be, c->step.block_table, table_bytes(c), err));
cleanup:
    return st;
}

/* Copies the bytes around a result, if there is one. */
static snap_status copy_around(guard_range *g, const attend_backend *a, snap_err *err) {
    snap_status st = SNAP_OK;
    if (!g->at)
        return st;
    TRY(mla_copy_out(a->inner, g->before, g->at - GUARD_BYTES, GUARD_BYTES, err));
    TRY(mla_copy_out(a->inner, g->after, g->at + g->bytes, GUARD_BYTES, err));
cleanup:
    return st;
}

static snap_status note_around(packed_call *c, snap_err *err) {
    attend_packed *p = c->plan->packed;
    size_t rows = (size_t)c->step.batch * (size_t)c->step.s_q * (size_t)c->step.heads;
    snap_status st = SNAP_OK;
    p->around[0] = (guard_range){.at = c->out, .bytes = rows * (size_t)c->step.d_c * 2};
    p->around[1] = (guard_range){.at = (unsigned char *)c->lse, .bytes = rows * sizeof(float)};
    for (int i = 0; i < GUARD_RANGES; i++)
        TRY(copy_around(&p->around[i], c->be, err));
    p->noted = true;
cleanup:
    return st;
}

static snap_status check_around(const attend_backend *a, const attend_packed *p, snap_err *err) {
    static const char *const names[GUARD_RANGES] = {"out", "lse"};
    for (int i = 0; p->noted && i < GUARD_RANGES; i++) {
        guard_range now = p->around[i];
        snap_status st = copy_around(&now, a, err);
        if (st != SNAP_OK)
            return st;
        if (memcmp(now.before, p->around[i].before, GUARD_BYTES) != 0 ||
            memcmp(now.after, p->around[i].after, GUARD_BYTES) != 0)
            return err_set(err, SNAP_E_DEVICE, "plugin %s: attend() wrote outside of '%s'",
                           a->plugin->name, names[i]);
    }
    return SNAP_OK;
}

static snap_status note_cache(packed_call *c, snap_err *err) {
    attend_packed *p = c->plan->packed;
    p->cache_sum = 0;
    snap_status st = sum_cache(&p->cache_sum, c->be, &c->cache, err);
    p->summed = st == SNAP_OK;
    p->cache = c->cache;
    return st;
}

static snap_status check_cache(const attend_backend *a, const attend_packed *p, snap_err *err) {
    uint64_t sum = 0;
    snap_status st = p->summed ? sum_cache(&sum, a, &p->cache, err) : SNAP_OK;
    if (st == SNAP_OK && p->summed && sum != p->cache_sum)
        st = err_set(err, SNAP_E_DEVICE, "plugin %s: a later call of attend() changed the cache",
                     a->plugin->name);
    return st;
}

snap_status packed_check(mla_plan *plan, snap_err *err) {
    if (!attend_is_backend(plan->be))
        return SNAP_OK;
    const attend_backend *a = attend_of(plan->be);
    const attend_packed *p = attend_plan_of(plan)->packed;
    snap_status st = p ? check_around(a, p, err) : SNAP_OK;
    if (st == SNAP_OK)
        st = attend_check_memory(a, err);
    return st == SNAP_OK && p ? check_cache(a, p, err) : st;
}

static snap_status first_on_device(packed_call *c, snap_err *err) {
    uint64_t before, after;
    snap_status st = SNAP_OK;
    TRY(note_around(c, err));
    TRY(sum_device_inputs(&before, c, err));
    call_attend(c);
    TRY(attend_pass_on(c->be, "attend()", c->st, &c->err, err));
    TRY(mla_sync(c->be->inner, err));
    TRY(check_around(c->be, c->plan->packed, err));
    TRY(attend_check_memory(c->be, err));
    TRY(sum_device_inputs(&after, c, err));
    if (after != before)
        st = err_set(err, SNAP_E_DEVICE,
                     "plugin %s: attend() changed its inputs (queries, cache, lengths or table)",
                     c->be->plugin->name);
cleanup:
    return st;
}

snap_status packed_run(mla_plan *plan, const mla_step *step, const packed_cache *cache,
                       const mla_attn *attn, snap_err *err) {
    const attend_backend *a = attend_of(plan->be);
    if (a->stopped)
        return stopped(a, err);
    packed_call c = call_of(plan, step, cache, attn);
    guarded_call guarded = {.plan = c.plan,
                            .call = call_attend,
                            .sum = sum_inputs,
                            .ctx = &c,
                            .out = c.out,
                            .lse = c.lse,
                            .rows =
                                (size_t)step->batch * (size_t)step->s_q * (size_t)plan->cap.heads};
    snap_status st = c.plan->calls ? SNAP_OK : note_cache(&c, err);
    if (st != SNAP_OK)
        return st;
    if (!a->host && !c.plan->calls++)
        return first_on_device(&c, err);
    if (!a->host)
        call_attend(&c);
    else if (attend_guarded(&guarded, err) != SNAP_OK)
        return SNAP_E_DEVICE;
    return attend_pass_on(a, "attend()", c.st, &c.err, err);
}
