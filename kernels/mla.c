/* Sizes of the planes; argument checks of the contract, common to all backends; the dispatch to the
 * backend; and mla_check_step(). */
#include "kernels/mla.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"

const char *mla_precision_name(mla_precision p) {
    return p == MLA_FP8 ? "fp8" : "bf16";
}

const char *mla_scale_name(mla_scale s) {
    return s == MLA_SCALE_POW2 ? "pow2" : "max";
}

bool mla_scale_parse(const char *name, mla_scale *out) {
    *out = strcmp(name, mla_scale_name(MLA_SCALE_POW2)) == 0 ? MLA_SCALE_POW2 : MLA_SCALE_MAX;
    return strcmp(name, mla_scale_name(*out)) == 0;
}

mla_page_bytes mla_cache_page_bytes(mla_precision p, int d_c, int d_r) {
    size_t c = (size_t)d_c * MLA_PAGE, r = (size_t)d_r * MLA_PAGE;
    if (p == MLA_BF16)
        return (mla_page_bytes){.content = 2 * (c + r)};
    return (mla_page_bytes){.content = c, .rope = 2 * r, .scale = MLA_PAGE * sizeof(float)};
}

size_t mla_cache_token_bytes(mla_precision p, int d_c, int d_r) {
    mla_page_bytes page = mla_cache_page_bytes(p, d_c, d_r);
    return (page.content + page.rope + page.scale) / MLA_PAGE;
}

/* ---- checks of arguments -------------------------------------------------------------------- */

static snap_status check_range(const char *what, int64_t value, int64_t low, int64_t high,
                               snap_err *err) {
    if (value >= low && value <= high)
        return SNAP_OK;
    return err_set(err, SNAP_E_SHAPE, "%s must be %lld..%lld, got '%lld'", what, (long long)low,
                   (long long)high, (long long)value);
}

static snap_status check_widths(int d_c, int d_r, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_range("d_c", d_c, 32, MLA_MAX_CONTENT, err));
    TRY(check_range("d_r", d_r, 32, MLA_MAX_ROPE, err));
    if (d_c % 32 != 0 || d_r % 32 != 0)
        st = err_set(err, SNAP_E_SHAPE, "d_c and d_r must be multiples of 32, got '%d' and '%d'",
                     d_c, d_r);
cleanup:
    return st;
}

static snap_status check_pointer(const char *what, const void *p, size_t align, snap_err *err) {
    if (!p)
        return err_set(err, SNAP_E_SHAPE, "%s is null", what);
    if ((uintptr_t)p % align != 0)
        return err_set(err, SNAP_E_SHAPE, "%s must be aligned to %zu bytes", what, align);
    return SNAP_OK;
}

static snap_status check_capacity(const mla_capacity *cap, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_range("precision", cap->precision, MLA_BF16, MLA_FP8, err));
    TRY(check_range("heads", cap->heads, 1, MLA_MAX_HEADS, err));
    TRY(check_widths(cap->d_c, cap->d_r, err));
    TRY(check_range("batch", cap->batch, 1, INT32_MAX / MLA_MAX_SQ / MLA_MAX_HEADS, err));
    TRY(check_range("s_q", cap->s_q, 1, MLA_MAX_SQ, err));
    TRY(check_range("max_tokens", cap->max_tokens, 1, MLA_MAX_CONTEXT, err));
    TRY(check_range("splits", cap->splits, 0, INT32_MAX, err));
cleanup:
    return st;
}

static snap_status check_step(const mla_plan *plan, const mla_step *step, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_range("batch", step->batch, 1, plan->cap.batch, err));
    TRY(check_range("s_q", step->s_q, 1, plan->cap.s_q, err));
    TRY(check_range("table_width", step->table_width, 1, INT32_MAX, err));
    TRY(check_pointer("seqlens", step->seqlens, sizeof(int32_t), err));
    TRY(check_pointer("block_table", step->block_table, sizeof(int32_t), err));
cleanup:
    return st;
}

static snap_status check_cache(const mla_plan *plan, const mla_cache *cache, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_range("pages", cache->pages, 1, INT32_MAX, err));
    TRY(check_pointer("content plane", cache->content, MLA_ALIGN, err));
    if (plan->cap.precision == MLA_FP8) {
        TRY(check_pointer("rope plane", cache->rope, MLA_ALIGN, err));
        TRY(check_pointer("scale plane", cache->scale, MLA_ALIGN, err));
    }
cleanup:
    return st;
}

static snap_status check_attn(const mla_plan *plan, const mla_attn *attn, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_pointer("q", attn->q, MLA_ALIGN, err));
    TRY(check_pointer("out", attn->out, MLA_ALIGN, err));
    if (attn->lse)
        TRY(check_pointer("lse", attn->lse, sizeof(float), err));
    if (plan->cap.precision == MLA_FP8) {
        TRY(check_pointer("q_rope", attn->q_rope, MLA_ALIGN, err));
        TRY(check_pointer("q_scale", attn->q_scale, sizeof(float), err));
    }
    if (!(attn->softmax_scale > 0.0f) || !isfinite(attn->softmax_scale))
        st = err_set(err, SNAP_E_SHAPE, "softmax_scale must be positive and finite, got '%g'",
                     (double)attn->softmax_scale);
cleanup:
    return st;
}

/* ---- calling the backend -------------------------------------------------------------------- */

void mla_backend_describe(const mla_backend *be, mla_backend_info *out) {
    *out = (mla_backend_info){0};
    be->ops->describe(be, out);
    out->name[sizeof out->name - 1] = out->device[sizeof out->device - 1] = '\0';
    out->kernel[sizeof out->kernel - 1] = out->pci[sizeof out->pci - 1] = '\0';
    if (out->fp8_sums.bits < 1 || out->fp8_sums.bits > DBL_MANT_DIG || out->fp8_sums.products < 1)
        out->fp8_sums = (mla_cut_sums){0}; /* invalid: without products, the loop in cut_sums.c
                                              would not end */
}

void *mla_alloc(mla_backend *be, size_t bytes, snap_err *err) {
    if (bytes < 1 || bytes > PTRDIFF_MAX) {
        (void)err_set(err, SNAP_E_SHAPE, "an allocation must have 1..%td bytes, got '%zu'",
                      PTRDIFF_MAX, bytes);
        return NULL;
    }
    void *at = be->ops->alloc(be, bytes, err);
    if (!at && (!err || err->code == SNAP_OK))
        (void)err_set(err, SNAP_E_NOMEM, "the backend has no memory for %zu bytes", bytes);
    return at;
}

void mla_free(mla_backend *be, void *device) {
    if (device)
        be->ops->free(be, device);
}

static snap_status check_copy(const void *device, const void *host, size_t bytes, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_pointer("device memory of a copy", device, 1, err));
    TRY(check_pointer("host memory of a copy", host, 1, err));
    if (bytes > PTRDIFF_MAX)
        st = err_set(err, SNAP_E_SHAPE, "a copy must have 0..%td bytes, got '%zu'", PTRDIFF_MAX,
                     bytes);
cleanup:
    return st;
}

snap_status mla_copy_in(mla_backend *be, void *device, const void *host, size_t bytes,
                        snap_err *err) {
    snap_status st = bytes ? check_copy(device, host, bytes, err) : SNAP_OK;
    return st == SNAP_OK && bytes ? be->ops->copy_in(be, device, host, bytes, err) : st;
}

snap_status mla_copy_out(mla_backend *be, void *host, const void *device, size_t bytes,
                         snap_err *err) {
    snap_status st = bytes ? check_copy(device, host, bytes, err) : SNAP_OK;
    return st == SNAP_OK && bytes ? be->ops->copy_out(be, host, device, bytes, err) : st;
}

snap_status mla_sync(mla_backend *be, snap_err *err) {
    return be->ops->sync(be, err);
}

snap_status mla_timer_start(mla_backend *be, snap_err *err) {
    return be->ops->timer_start(be, err);
}

snap_status mla_timer_stop(mla_backend *be, double *ns, snap_err *err) {
    return be->ops->timer_stop(be, ns, err);
}

/* plan->be must be the backend that created the plan: later calls on the plan go through it. */
static snap_status check_new_plan(mla_plan *plan, const mla_backend *be, snap_err *err) {
    if (!plan || plan->be != be)
        return err_set(err, SNAP_E_DEVICE, "the backend did not return a valid plan");
    plan->scheduled = (mla_step){0};
    return SNAP_OK;
}

snap_status mla_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                            snap_err *err) {
    *out = NULL;
    snap_status st = SNAP_OK;
    TRY(check_capacity(cap, err));
    TRY(be->ops->plan_create(out, be, cap, err));
    TRY(check_new_plan(*out, be, err));
cleanup:
    if (st != SNAP_OK)
        *out = NULL;
    return st;
}

snap_status lab_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                            lab_ablation ablation, snap_err *err) {
    const mla_lab_ops *lab = be->ops->lab;
    *out = NULL;
    snap_status st = SNAP_OK;
    TRY(check_range("ablation", ablation, LAB_WHOLE, LAB_ABLATIONS - 1, err));
    if (ablation == LAB_WHOLE)
        return mla_plan_create(out, be, cap, err);
    if (!lab || !lab->plan_create)
        return err_set(err, SNAP_E_UNSUPPORTED, "the backend has no ablation");
    TRY(check_capacity(cap, err));
    if (cap->precision != MLA_FP8)
        return err_set(err, SNAP_E_UNSUPPORTED, "only FP8 has ablations");
    TRY(lab->plan_create(out, be, cap, ablation, err));
    TRY(check_new_plan(*out, be, err));
cleanup:
    if (st != SNAP_OK)
        *out = NULL;
    return st;
}

void mla_plan_free(mla_plan *plan) {
    if (plan)
        plan->be->ops->plan_free(plan);
}

/* Records the step that mla_run() must match; after a failure, none. */
static void note_scheduled(mla_plan *plan, const mla_step *step, snap_status st) {
    plan->scheduled = st == SNAP_OK ? *step : (mla_step){0};
}

snap_status mla_schedule(mla_plan *plan, const mla_step *step, snap_err *err) {
    snap_status st = check_step(plan, step, err);
    if (st != SNAP_OK)
        return st;
    st = plan->be->ops->schedule(plan, step, err);
    note_scheduled(plan, step, st);
    return st;
}

/* A kernel that used the metadata of another step could read past the end of this step's table. */
static snap_status check_scheduled(const mla_plan *plan, const mla_step *step, snap_err *err) {
    const mla_step *s = &plan->scheduled;
    if (s->batch == step->batch && s->s_q == step->s_q && s->table_width == step->table_width)
        return SNAP_OK;
    return err_set(err, SNAP_E_SHAPE,
                   "mla_run() was called with a step that is not the scheduled one");
}

snap_status mla_run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                    const mla_attn *attn, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_step(plan, step, err));
    TRY(check_cache(plan, cache, err));
    TRY(check_attn(plan, attn, err));
    TRY(check_scheduled(plan, step, err));
    TRY(plan->be->ops->run(plan, step, cache, attn, err));
cleanup:
    return st;
}

snap_status mla_quant_q(mla_backend *be, int64_t rows, int d_c, int d_r, const void *q, void *q8,
                        void *q_rope, float *q_scale, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_range("rows", rows, 0, INT32_MAX, err));
    TRY(check_widths(d_c, d_r, err));
    TRY(check_pointer("q", q, MLA_ALIGN, err));
    TRY(check_pointer("q8", q8, MLA_ALIGN, err));
    TRY(check_pointer("q_rope", q_rope, MLA_ALIGN, err));
    TRY(check_pointer("q_scale", q_scale, sizeof(float), err));
    TRY(be->ops->quant_q(be, rows, d_c, d_r, q, q8, q_rope, q_scale, err));
cleanup:
    return st;
}

snap_status mla_append_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                          const void *kv, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_step(plan, step, err));
    TRY(check_cache(plan, cache, err));
    TRY(check_pointer("kv", kv, sizeof(uint16_t), err));
    TRY(plan->be->ops->append_kv(plan, step, cache, kv, err));
cleanup:
    return st;
}

static snap_status check_fresh(const mla_plan *plan, const mla_fresh *fresh, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_pointer("kv", fresh->kv, sizeof(uint16_t), err));
    if (!fresh->q)
        goto cleanup;
    if (plan->cap.precision != MLA_FP8)
        return err_set(err, SNAP_E_SHAPE, "queries are quantised for fp8 only");
    TRY(check_pointer("q", fresh->q, MLA_ALIGN, err));
    TRY(check_pointer("q8", fresh->q8, MLA_ALIGN, err));
    TRY(check_pointer("q_rope", fresh->q_rope, MLA_ALIGN, err));
    TRY(check_pointer("q_scale", fresh->q_scale, sizeof(float), err));
cleanup:
    return st;
}

static snap_status prepare_apart(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                 const mla_fresh *fresh, snap_err *err) {
    const mla_backend_ops *ops = plan->be->ops;
    int64_t rows = (int64_t)step->batch * step->s_q * plan->cap.heads;
    snap_status st = SNAP_OK;
    if (fresh->q)
        TRY(ops->quant_q(plan->be, rows, plan->cap.d_c, plan->cap.d_r, fresh->q, fresh->q8,
                         fresh->q_rope, fresh->q_scale, err));
    TRY(ops->append_kv(plan, step, cache, fresh->kv, err));
    TRY(ops->schedule(plan, step, err));
cleanup:
    return st;
}

snap_status mla_prepare(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                        const mla_fresh *fresh, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_step(plan, step, err));
    TRY(check_cache(plan, cache, err));
    TRY(check_fresh(plan, fresh, err));
    st = plan->be->ops->prepare ? plan->be->ops->prepare(plan, step, cache, fresh, err)
                                : prepare_apart(plan, step, cache, fresh, err);
    note_scheduled(plan, step, st);
cleanup:
    return st;
}

snap_status mla_fetch_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache, int seq,
                         int64_t first, int64_t count, void *kv, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(check_step(plan, step, err));
    TRY(check_cache(plan, cache, err));
    TRY(check_range("seq", seq, 0, step->batch - 1, err));
    TRY(check_range("first", first, 0, plan->cap.max_tokens, err));
    TRY(check_range("count", count, 0, plan->cap.max_tokens, err));
    TRY(check_pointer("kv", kv, sizeof(uint16_t), err));
    TRY(plan->be->ops->fetch_kv(plan, step, cache, seq, first, count, kv, err));
cleanup:
    return st;
}

snap_status mla_ceilings_measure(mla_ceilings *out, mla_backend *be, double seconds,
                                 snap_err *err) {
    *out = (mla_ceilings){0};
    if (!(seconds > 0.0) || !isfinite(seconds))
        return err_set(err, SNAP_E_USAGE, "seconds must be positive, got '%g'", seconds);
    return be->ops->ceilings(be, seconds, out, err);
}

/* ---- checks of device data ------------------------------------------------------------------ */

static snap_status check_sequence(const mla_plan *plan, const mla_step *step,
                                  const mla_cache *cache, int b, int64_t tokens,
                                  const int32_t *table_row, snap_err *err) {
    int64_t room = (int64_t)step->table_width * MLA_PAGE;
    int64_t longest = plan->cap.max_tokens < room ? plan->cap.max_tokens : room;
    if (tokens < 0 || tokens > longest)
        return err_set(err, SNAP_E_SHAPE, "length of sequence %d must be 0..%lld, got '%lld'", b,
                       (long long)longest, (long long)tokens);
    for (int64_t i = 0; i * MLA_PAGE < tokens; i++)
        if (table_row[i] < 0 || table_row[i] >= cache->pages)
            return err_set(err, SNAP_E_SHAPE, "page %lld of sequence %d must be 0..%lld, got '%d'",
                           (long long)i, b, (long long)cache->pages - 1, (int)table_row[i]);
    return SNAP_OK;
}

snap_status mla_check_step(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                           snap_err *err) {
    snap_status st = SNAP_OK;
    int32_t *lengths = NULL, *table = NULL;
    TRY(check_step(plan, step, err));
    TRY(check_cache(plan, cache, err));
    size_t batch = (size_t)step->batch, width = (size_t)step->table_width;
    lengths = malloc(batch * sizeof *lengths);
    table = malloc(batch * width * sizeof *table);
    if (!lengths || !table) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a block table of %zu x %zu", batch,
                     width);
        goto cleanup;
    }
    TRY(mla_copy_out(plan->be, lengths, step->seqlens, batch * sizeof *lengths, err));
    TRY(mla_copy_out(plan->be, table, step->block_table, batch * width * sizeof *table, err));
    for (int b = 0; b < step->batch; b++)
        TRY(check_sequence(plan, step, cache, b, lengths[b], table + (size_t)b * width, err));
cleanup:
    free(lengths);
    free(table);
    return st;
}

snap_status mla_limits_measure(mla_limits *out, mla_backend *be, double seconds, snap_err *err) {
    *out = (mla_limits){0};
    if (!(seconds > 0.0) || !isfinite(seconds))
        return err_set(err, SNAP_E_USAGE, "seconds must be positive, got '%g'", seconds);
    if (!be->ops->limits)
        return err_set(err, SNAP_E_UNSUPPORTED, "the backend can't measure its limits");
    return be->ops->limits(be, seconds, out, err);
}

snap_status mla_ceilings_probe_once(mla_probe_rates *out, mla_backend *be, snap_err *err) {
    *out = (mla_probe_rates){0};
    if (!be->ops->probe_once)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "the backend has no short probes of its peak rates");
    return be->ops->probe_once(be, out, err);
}
