#include "kernels/staged.h"

#include <stdlib.h>

#include "kernels/backend.h"

/* Staging buffers on the device. Each grows to the largest size it has held. */
typedef enum {
    PLACE_Q,
    PLACE_Q8,
    PLACE_Q_ROPE,
    PLACE_Q_SCALE,
    PLACE_OUT,
    PLACE_LSE,
    PLACE_ROWS,
    PLACES
} place_name;

typedef struct {
    void *at;
    size_t bytes;
} place;

typedef struct {
    mla_backend base;
    mla_backend *inner;
    place places[PLACES];
} staged;

/* Lengths and block table of a step. */
typedef struct {
    place lengths, table;
} step_places;

typedef struct {
    mla_plan base;
    mla_plan *inner;
    step_places scheduled; /* places of the step that was scheduled last */
    step_places other;     /* places of the step that was last given to another operation */
} staged_plan;

/* ---- memory ---------------------------------------------------------------------------------- */

static staged *of(mla_backend *be) {
    return (staged *)be;
}

static void *staged_alloc(mla_backend *be, size_t bytes, snap_err *err) {
    return mla_alloc(of(be)->inner, bytes, err);
}

static void staged_free(mla_backend *be, void *device) {
    mla_free(of(be)->inner, device);
}

static snap_status staged_copy_in(mla_backend *be, void *device, const void *host, size_t bytes,
                                  snap_err *err) {
    return mla_copy_in(of(be)->inner, device, host, bytes, err);
}

static snap_status staged_copy_out(mla_backend *be, void *host, const void *device, size_t bytes,
                                   snap_err *err) {
    return mla_copy_out(of(be)->inner, host, device, bytes, err);
}

static snap_status make_room(mla_backend *inner, place *p, size_t bytes, snap_err *err) {
    if (p->bytes >= bytes)
        return SNAP_OK;
    mla_free(inner, p->at);
    p->at = mla_alloc(inner, bytes, err);
    p->bytes = p->at ? bytes : 0;
    return p->at ? SNAP_OK : SNAP_E_NOMEM;
}

/* Copies @bytes of @host into a staging buffer. *device is its address, or NULL if @host is
 * NULL. */
static snap_status bring(mla_backend *inner, place *p, const void *host, size_t bytes,
                         const void **device, snap_err *err) {
    *device = NULL;
    if (!host)
        return SNAP_OK;
    snap_status st = make_room(inner, p, bytes, err);
    if (st == SNAP_OK && bytes)
        st = mla_copy_in(inner, p->at, host, bytes, err);
    *device = p->at;
    return st;
}

/* ---- forwarded calls ------------------------------------------------------------------------- */

static void staged_close(mla_backend *be) {
    staged *s = of(be);
    for (int i = 0; i < PLACES; i++)
        mla_free(s->inner, s->places[i].at);
    mla_backend_close(s->inner);
    free(s);
}

static void staged_describe(const mla_backend *be, mla_backend_info *out) {
    mla_backend_describe(((const staged *)be)->inner, out);
}

static snap_status staged_sync(mla_backend *be, snap_err *err) {
    return mla_sync(of(be)->inner, err);
}

static snap_status staged_timer_start(mla_backend *be, snap_err *err) {
    return mla_timer_start(of(be)->inner, err);
}

static snap_status staged_timer_stop(mla_backend *be, double *ns, snap_err *err) {
    return mla_timer_stop(of(be)->inner, ns, err);
}

static snap_status staged_ceilings(mla_backend *be, double seconds, mla_ceilings *out,
                                   snap_err *err) {
    return mla_ceilings_measure(out, of(be)->inner, seconds, err);
}

/* ---- plans and steps ------------------------------------------------------------------------- */

static void staged_plan_free(mla_plan *plan) {
    staged_plan *p = (staged_plan *)plan;
    mla_backend *inner = of(plan->be)->inner;
    mla_plan_free(p->inner);
    mla_free(inner, p->scheduled.lengths.at);
    mla_free(inner, p->scheduled.table.at);
    mla_free(inner, p->other.lengths.at);
    mla_free(inner, p->other.table.at);
    free(p);
}

static snap_status staged_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                                      snap_err *err) {
    staged_plan *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
    p->base = (mla_plan){.be = be, .cap = *cap};
    snap_status st = mla_plan_create(&p->inner, of(be)->inner, cap, err);
    if (st == SNAP_OK)
        *out = (mla_plan *)p;
    else
        free(p);
    return st;
}

/* Makes *out the same step with its lengths and table on the device, at @to. */
static snap_status bring_step(const staged_plan *p, step_places *to, const mla_step *step,
                              mla_step *out, snap_err *err) {
    mla_backend *inner = of(p->base.be)->inner;
    const void *lengths, *table;
    size_t rows = (size_t)step->batch, width = (size_t)step->table_width;
    snap_status st = SNAP_OK;
    TRY(bring(inner, &to->lengths, step->seqlens, rows * sizeof *step->seqlens, &lengths, err));
    TRY(bring(inner, &to->table, step->block_table, rows * width * sizeof *step->block_table,
              &table, err));
    *out = *step;
    out->seqlens = lengths;
    out->block_table = table;
cleanup:
    return st;
}

static snap_status staged_schedule(mla_plan *plan, const mla_step *step, snap_err *err) {
    staged_plan *p = (staged_plan *)plan;
    mla_step there;
    snap_status st = bring_step(p, &p->scheduled, step, &there, err);
    return st == SNAP_OK ? mla_schedule(p->inner, &there, err) : st;
}

/* Copies the query planes to the device and reserves buffers for the results. */
static snap_status bring_attn(const staged_plan *p, int64_t rows, const mla_attn *attn,
                              mla_attn *out, snap_err *err) {
    staged *s = of(p->base.be);
    const mla_capacity *cap = &p->base.cap;
    size_t n = (size_t)rows, content = n * (size_t)cap->d_c, rope = n * (size_t)cap->d_r;
    bool fp8 = cap->precision == MLA_FP8;
    const void *q, *q_rope, *q_scale;
    snap_status st = SNAP_OK;
    TRY(bring(s->inner, &s->places[PLACE_Q], attn->q, fp8 ? content : 2 * (content + rope), &q,
              err));
    TRY(bring(s->inner, &s->places[PLACE_Q_ROPE], fp8 ? attn->q_rope : NULL, 2 * rope, &q_rope,
              err));
    TRY(bring(s->inner, &s->places[PLACE_Q_SCALE], fp8 ? attn->q_scale : NULL, n * sizeof(float),
              &q_scale, err));
    TRY(make_room(s->inner, &s->places[PLACE_OUT], 2 * content, err));
    TRY(make_room(s->inner, &s->places[PLACE_LSE], n * sizeof(float), err));
    *out = (mla_attn){.q = q,
                      .q_rope = q_rope,
                      .q_scale = q_scale,
                      .softmax_scale = attn->softmax_scale,
                      .out = s->places[PLACE_OUT].at,
                      .lse = attn->lse ? s->places[PLACE_LSE].at : NULL};
cleanup:
    return st;
}

static snap_status staged_run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                              const mla_attn *attn, snap_err *err) {
    staged_plan *p = (staged_plan *)plan;
    staged *s = of(plan->be);
    int64_t rows = (int64_t)step->batch * step->s_q * plan->cap.heads;
    mla_step there = *step;
    mla_attn what;
    snap_status st = SNAP_OK;
    there.seqlens = p->scheduled.lengths.at;
    there.block_table = p->scheduled.table.at;
    TRY(bring_attn(p, rows, attn, &what, err));
    TRY(mla_run(p->inner, &there, cache, &what, err));
    TRY(mla_copy_out(s->inner, attn->out, what.out, 2 * (size_t)rows * (size_t)plan->cap.d_c, err));
    if (attn->lse)
        TRY(mla_copy_out(s->inner, attn->lse, what.lse, (size_t)rows * sizeof(float), err));
cleanup:
    return st;
}

/* ---- dataflow -------------------------------------------------------------------------------- */

static snap_status staged_quant_q(mla_backend *be, int64_t rows, int d_c, int d_r, const void *q,
                                  void *q8, void *q_rope, float *q_scale, snap_err *err) {
    staged *s = of(be);
    place *p = s->places;
    size_t n = (size_t)rows, content = n * (size_t)d_c, rope = 2 * n * (size_t)d_r;
    const void *from;
    snap_status st = SNAP_OK;
    TRY(bring(s->inner, &p[PLACE_Q], q, 2 * content + rope, &from, err));
    TRY(make_room(s->inner, &p[PLACE_Q8], content, err));
    TRY(make_room(s->inner, &p[PLACE_Q_ROPE], rope, err));
    TRY(make_room(s->inner, &p[PLACE_Q_SCALE], n * sizeof *q_scale, err));
    TRY(mla_quant_q(s->inner, rows, d_c, d_r, from, p[PLACE_Q8].at, p[PLACE_Q_ROPE].at,
                    p[PLACE_Q_SCALE].at, err));
    TRY(mla_copy_out(s->inner, q8, p[PLACE_Q8].at, content, err));
    TRY(mla_copy_out(s->inner, q_rope, p[PLACE_Q_ROPE].at, rope, err));
    TRY(mla_copy_out(s->inner, q_scale, p[PLACE_Q_SCALE].at, n * sizeof *q_scale, err));
cleanup:
    return st;
}

/* Size of @rows cached tokens in bf16. */
static size_t row_bytes(const mla_plan *plan, int64_t rows) {
    return 2 * (size_t)rows * (size_t)(plan->cap.d_c + plan->cap.d_r);
}

static snap_status staged_append_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                    const void *kv, snap_err *err) {
    staged_plan *p = (staged_plan *)plan;
    staged *s = of(plan->be);
    const void *rows;
    mla_step there;
    snap_status st = SNAP_OK;
    TRY(bring_step(p, &p->other, step, &there, err));
    TRY(bring(s->inner, &s->places[PLACE_ROWS], kv,
              row_bytes(plan, (int64_t)step->batch * step->s_q), &rows, err));
    TRY(mla_append_kv(p->inner, &there, cache, rows, err));
cleanup:
    return st;
}

static snap_status staged_fetch_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                   int seq, int64_t first, int64_t count, void *kv, snap_err *err) {
    staged_plan *p = (staged_plan *)plan;
    staged *s = of(plan->be);
    place *rows = &s->places[PLACE_ROWS];
    mla_step there;
    snap_status st = SNAP_OK;
    TRY(bring_step(p, &p->other, step, &there, err));
    TRY(make_room(s->inner, rows, row_bytes(plan, count), err));
    TRY(mla_fetch_kv(p->inner, &there, cache, seq, first, count, rows->at, err));
    TRY(mla_copy_out(s->inner, kv, rows->at, row_bytes(plan, count), err));
cleanup:
    return st;
}

/* ---- opening --------------------------------------------------------------------------------- */

static const mla_backend_ops kOps = {
    .close = staged_close,
    .describe = staged_describe,
    .alloc = staged_alloc,
    .free = staged_free,
    .copy_in = staged_copy_in,
    .copy_out = staged_copy_out,
    .sync = staged_sync,
    .timer_start = staged_timer_start,
    .timer_stop = staged_timer_stop,
    .plan_create = staged_plan_create,
    .plan_free = staged_plan_free,
    .schedule = staged_schedule,
    .run = staged_run,
    .quant_q = staged_quant_q,
    .append_kv = staged_append_kv,
    .fetch_kv = staged_fetch_kv,
    .ceilings = staged_ceilings,
};

snap_status staged_open(mla_backend **out, mla_backend *inner, snap_err *err) {
    mla_backend_info info;
    mla_backend_describe(inner, &info);
    *out = info.host_memory ? inner : NULL;
    if (info.host_memory)
        return SNAP_OK;
    staged *s = calloc(1, sizeof *s);
    if (!s) {
        mla_backend_close(inner);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a backend");
    }
    *s = (staged){.base.ops = &kOps, .inner = inner};
    *out = (mla_backend *)s;
    return SNAP_OK;
}
