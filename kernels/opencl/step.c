/* Plans and launches. No schedule is stored: every work-group computes its part from the
 * lengths. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/opencl/opencl.h"

enum { kMaxParts = 64, kGroupsPerUnit = 4 };

typedef struct {
    mla_plan base;
    int rows; /* rows per work-group */
    int max_parts;
    cl_object attend, combine;
    void *sums;   /* fp32 [batch][s_q * heads][max_parts][d_c] */
    void *maxima; /* fp32 [batch][s_q * heads][max_parts][2]: maximum in base 2, sum */
} opencl_plan;

static int64_t at_most(int64_t x, int64_t most) {
    return x < most ? x : most;
}

/* The most parts per sequence: as the caller fixed it, or enough for kGroupsPerUnit work-groups per
 * compute unit; in both cases at most kMaxParts and at most one per page. */
static int parts_of(const mla_capacity *cap, const opencl_backend *be, int rows) {
    int64_t pages = (cap->max_tokens + MLA_PAGE - 1) / MLA_PAGE;
    int64_t groups = (int64_t)cap->batch * ((cap->s_q * cap->heads + rows - 1) / rows);
    int64_t wanted = cap->splits ? cap->splits : (int64_t)be->units * kGroupsPerUnit / groups + 1;
    return (int)at_most(at_most(wanted, kMaxParts), pages);
}

/* Rows per work-group. A GPU keeps the sums of 8 rows in registers. A processor keeps them in its
 * cache, and decodes the cached tokens for fewer work-groups with 16. */
static int rows_of(const mla_capacity *cap, const opencl_backend *be) {
    int rows = cap->s_q * cap->heads;
    return rows == 1 ? 1 : rows > 8 && be->processor ? 16 : 8;
}

static snap_status build(opencl_plan *plan, opencl_backend *be, snap_err *err) {
    const mla_capacity *cap = &plan->base.cap;
    char options[OPENCL_OPTIONS];
    (void)snprintf(options, sizeof options,
                   "-cl-std=CL1.2 -DATTEND -DFP8=%d -DROWS=%d -DD_C=%d -DD_R=%d",
                   cap->precision == MLA_FP8, plan->rows, cap->d_c, cap->d_r);
    snap_status st = opencl_kernel(&plan->attend, be, options, "attend", err);
    return st == SNAP_OK ? opencl_kernel(&plan->combine, be, options, "combine", err) : st;
}

static snap_status reserve(opencl_plan *plan, opencl_backend *be, snap_err *err) {
    const mla_capacity *cap = &plan->base.cap;
    plan->rows = rows_of(cap, be);
    plan->max_parts = parts_of(cap, be, plan->rows);
    size_t partials =
        (size_t)cap->batch * (size_t)cap->s_q * (size_t)cap->heads * (size_t)plan->max_parts;
    snap_status st = build(plan, be, err);
    if (st != SNAP_OK)
        return st;
    plan->sums = be->base.ops->alloc(&be->base, partials * (size_t)cap->d_c * sizeof(float), err);
    if (plan->sums)
        plan->maxima = be->base.ops->alloc(&be->base, partials * 2 * sizeof(float), err);
    return plan->maxima ? SNAP_OK : SNAP_E_NOMEM;
}

snap_status opencl_plan_create(mla_plan **out, mla_backend *base, const mla_capacity *cap,
                               snap_err *err) {
    opencl_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
    plan->base = (mla_plan){.be = base, .cap = *cap};
    snap_status st = reserve(plan, (opencl_backend *)base, err);
    if (st == SNAP_OK)
        *out = (mla_plan *)plan;
    else
        opencl_plan_free((mla_plan *)plan);
    return st;
}

void opencl_plan_free(mla_plan *base) {
    opencl_plan *plan = (opencl_plan *)base;
    opencl_backend *be = (opencl_backend *)base->be;
    (void)be->cl->Finish(be->queue);
    if (plan->attend)
        (void)be->cl->ReleaseKernel(plan->attend);
    if (plan->combine)
        (void)be->cl->ReleaseKernel(plan->combine);
    mla_free(base->be, plan->sums);
    mla_free(base->be, plan->maxima);
    free(plan);
}

snap_status opencl_schedule(mla_plan *base, const mla_step *step, snap_err *err) {
    (void)base;
    (void)step;
    (void)err;
    return SNAP_OK;
}

static int64_t room_of(const mla_plan *plan, const mla_step *step) {
    return at_most((int64_t)step->table_width * MLA_PAGE, plan->cap.max_tokens);
}

/* ---- attention ------------------------------------------------------------------------------- */

static snap_status launch_attend(opencl_plan *plan, const mla_step *step, const mla_cache *cache,
                                 const mla_attn *attn, snap_err *err) {
    const mla_capacity *cap = &plan->base.cap;
    float scale_log2 = attn->softmax_scale * 1.44269504f;
    opencl_call c = {.be = (opencl_backend *)plan->base.be, .kernel = plan->attend};
    bool fp8 = cap->precision == MLA_FP8;
    const void *buffers[] = {attn->q,        fp8 ? attn->q_rope : NULL, fp8 ? attn->q_scale : NULL,
                             cache->content, fp8 ? cache->rope : NULL,  fp8 ? cache->scale : NULL,
                             step->seqlens,  step->block_table,         plan->sums,
                             plan->maxima};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        opencl_buffer(&c, buffers[i]);
    opencl_int(&c, step->table_width);
    opencl_int(&c, cache->pages);
    opencl_int(&c, room_of(&plan->base, step));
    opencl_int(&c, step->s_q);
    opencl_int(&c, cap->heads);
    opencl_int(&c, plan->max_parts);
    opencl_value(&c, &scale_log2, sizeof scale_log2);
    int tiles = (step->s_q * cap->heads + plan->rows - 1) / plan->rows;
    return opencl_launch(
        &c, (size_t[]){(size_t)tiles, (size_t)plan->max_parts, (size_t)step->batch}, err);
}

static snap_status launch_combine(opencl_plan *plan, const mla_step *step, const mla_attn *attn,
                                  snap_err *err) {
    opencl_call c = {.be = (opencl_backend *)plan->base.be, .kernel = plan->combine};
    opencl_buffer(&c, plan->sums);
    opencl_buffer(&c, plan->maxima);
    opencl_buffer(&c, step->seqlens);
    opencl_buffer(&c, attn->out);
    opencl_buffer(&c, attn->lse);
    opencl_int(&c, attn->lse != NULL);
    opencl_int(&c, room_of(&plan->base, step));
    opencl_int(&c, plan->max_parts);
    size_t rows = (size_t)step->s_q * (size_t)plan->base.cap.heads;
    return opencl_launch(&c, (size_t[]){rows, (size_t)step->batch, 1}, err);
}

snap_status opencl_run(mla_plan *base, const mla_step *step, const mla_cache *cache,
                       const mla_attn *attn, snap_err *err) {
    opencl_plan *plan = (opencl_plan *)base;
    snap_status st = launch_attend(plan, step, cache, attn, err);
    return st == SNAP_OK ? launch_combine(plan, step, attn, err) : st;
}

/* ---- dataflow -------------------------------------------------------------------------------- */

snap_status opencl_quant_q(mla_backend *base, int64_t rows, int d_c, int d_r, const void *q,
                           void *q8, void *q_rope, float *q_scale, snap_err *err) {
    opencl_backend *be = (opencl_backend *)base;
    opencl_call c = {.be = be, .kernel = be->quant_q};
    opencl_buffer(&c, q);
    opencl_buffer(&c, q8);
    opencl_buffer(&c, q_rope);
    opencl_buffer(&c, q_scale);
    opencl_int(&c, d_c);
    opencl_int(&c, d_r);
    opencl_int(&c, be->scale == MLA_SCALE_POW2);
    return opencl_launch(&c, (size_t[]){(size_t)rows, 1, 1}, err);
}

/* Passes the arguments that appending and fetching have in common. */
static opencl_call rows_call(const mla_plan *plan, cl_object kernel, const mla_step *step,
                             const mla_cache *cache, const void *kv) {
    opencl_call c = {.be = (opencl_backend *)plan->be, .kernel = kernel};
    bool fp8 = plan->cap.precision == MLA_FP8;
    opencl_buffer(&c, kv);
    opencl_buffer(&c, cache->content);
    opencl_buffer(&c, fp8 ? cache->rope : NULL);
    opencl_buffer(&c, fp8 ? cache->scale : NULL);
    opencl_buffer(&c, step->seqlens);
    opencl_buffer(&c, step->block_table);
    opencl_int(&c, fp8);
    opencl_int(&c, plan->cap.d_c);
    opencl_int(&c, plan->cap.d_r);
    opencl_int(&c, step->table_width);
    opencl_int(&c, cache->pages);
    opencl_int(&c, room_of(plan, step));
    return c;
}

snap_status opencl_append_kv(mla_plan *base, const mla_step *step, const mla_cache *cache,
                             const void *kv, snap_err *err) {
    opencl_call c = rows_call(base, ((opencl_backend *)base->be)->append, step, cache, kv);
    opencl_int(&c, step->s_q);
    opencl_int(&c, c.be->scale == MLA_SCALE_POW2);
    return opencl_launch(&c, (size_t[]){(size_t)step->batch * (size_t)step->s_q, 1, 1}, err);
}

snap_status opencl_fetch_kv(mla_plan *base, const mla_step *step, const mla_cache *cache, int seq,
                            int64_t first, int64_t count, void *kv, snap_err *err) {
    opencl_call c = rows_call(base, ((opencl_backend *)base->be)->fetch, step, cache, kv);
    opencl_int(&c, seq);
    opencl_int(&c, first);
    return opencl_launch(&c, (size_t[]){(size_t)count, 1, 1}, err);
}
