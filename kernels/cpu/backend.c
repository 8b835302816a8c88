/* The CPU as a backend: a step is cut into parts of whole pages, threads take the parts, and what a
 * sequence's parts found is joined by their weights.
 *
 * Calls return when the work is done, so that "stream order" is program order. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "kernels/backend.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/probes.h"
#include "kernels/formats.h"

enum {
    kPartsPerThread =
        8, /* evens out threads that are not equally fast; 2 % of a part is fixed cost */
    kMinPartPages = 4,
    kMaxSplits = 64,
    kHugePage = 2 << 20,
};

typedef struct {
    mla_backend base;
    const cpu_isa *isa;
    parallel *pool;
    int64_t started_ns;
} cpu_backend;

/* A range of a sequence's tokens, for one group of its rows. */
typedef struct {
    int seq, row0, rows;
    int64_t length, first, end;
    int64_t
        partial; /* where its result goes in the workspace; -1: the part is the whole sequence */
} cpu_item;

/* A sequence's row group that was cut: partials first .. first + parts - 1. */
typedef struct {
    int seq, row0, rows, parts;
    int64_t partial;
} cpu_join;

typedef struct {
    mla_plan base;
    int max_parts; /* a sequence */
    int64_t max_items, max_partials;
    int batch, s_q; /* of the scheduled step; batch 0 = none yet */
    int64_t items, joins;
    cpu_item *item; /* [max_items] */
    cpu_join *join; /* [max_partials / 2 + 1] */
    size_t sums_bytes, scratch_bytes;
    char *scratch; /* [threads][scratch_bytes]; first a whole sequence's o, m and l */
    float *o;      /* [max_partials][group rows][d_c] */
    float *ml;     /* [max_partials][2][group rows]: maxima, then sums */
} cpu_plan;

static size_t aligned_size(size_t bytes) {
    return (bytes + MLA_ALIGN - 1) / MLA_ALIGN * MLA_ALIGN;
}

static int min_int(int64_t a, int64_t b) {
    return (int)(a < b ? a : b);
}

/* ---- the device ----------------------------------------------------------------------------- */

static void cpu_close(mla_backend *base) {
    cpu_backend *be = (cpu_backend *)base;
    parallel_free(be->pool);
    free(be);
}

static void cpu_describe(const mla_backend *base, mla_backend_info *out) {
    const cpu_backend *be = (const cpu_backend *)base;
    int threads = parallel_threads(be->pool);
    char model[96];
    machine_name(model, sizeof model);
    (void)snprintf(out->name, sizeof out->name, "cpu");
    (void)snprintf(out->device, sizeof out->device, "%s, %d thread%s", model, threads,
                   threads == 1 ? "" : "s");
    (void)snprintf(out->kernel, sizeof out->kernel, "%s", be->isa->kernel);
    out->host_memory = true;
    out->memory_bytes = machine_memory_bytes();
    out->cache_bytes = machine_cache_bytes();
}

/* Large areas come in huge pages, where the system has them: a cold read then misses fewer TLBs. */
static void *aligned_memory(size_t bytes) {
    size_t align = bytes >= kHugePage ? kHugePage : MLA_ALIGN;
    if (bytes > machine_memory_bytes())
        return NULL;
    void *p = aligned_alloc(align, (bytes / align + 1) * align);
    if (p && align == kHugePage)
        (void)madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

static void *cpu_alloc(mla_backend *be, size_t bytes, snap_err *err) {
    (void)be;
    void *p = aligned_memory(bytes);
    if (!p)
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for %zu bytes", bytes);
    return p;
}

static void cpu_free(mla_backend *be, void *device) {
    (void)be;
    free(device);
}

static snap_status cpu_copy(mla_backend *be, void *to, const void *from, size_t bytes,
                            snap_err *err) {
    (void)be;
    (void)err;
    memcpy(to, from, bytes);
    return SNAP_OK;
}

static snap_status cpu_sync(mla_backend *be, snap_err *err) {
    (void)be;
    (void)err;
    return SNAP_OK;
}

static snap_status cpu_timer_start(mla_backend *base, snap_err *err) {
    (void)err;
    ((cpu_backend *)base)->started_ns = clock_now_ns();
    return SNAP_OK;
}

static snap_status cpu_timer_stop(mla_backend *base, double *ns, snap_err *err) {
    (void)err;
    *ns = (double)(clock_now_ns() - ((cpu_backend *)base)->started_ns);
    return SNAP_OK;
}

/* ---- plan ----------------------------------------------------------------------------------- */

static int64_t pages_of(int64_t tokens) {
    return (tokens + MLA_PAGE - 1) / MLA_PAGE;
}

static void cpu_plan_free(mla_plan *base) {
    cpu_plan *plan = (cpu_plan *)base;
    free(plan->item);
    free(plan->join);
    free(plan->scratch);
    free(plan->o);
    free(plan->ml);
    free(plan);
}

/* How many parts a step within the capacity can have. */
static void count_parts(cpu_plan *plan, int threads) {
    const mla_capacity *cap = &plan->base.cap;
    int64_t longest = pages_of(cap->max_tokens),
            groups = (cap->s_q * cap->heads - 1) / CPU_MAX_ROWS + 1;
    int64_t wanted = cap->splits ? cap->splits : (int64_t)threads * kPartsPerThread;
    plan->max_parts = min_int(min_int(wanted, kMaxSplits), longest);
    int64_t parts = cap->splits ? (int64_t)cap->batch * plan->max_parts
                                : cap->batch + (int64_t)threads * kPartsPerThread;
    plan->max_items = parts * groups;
    plan->max_partials = plan->max_parts > 1 ? plan->max_items : 0;
}

static snap_status cpu_plan_create(mla_plan **out, mla_backend *base, const mla_capacity *cap,
                                   snap_err *err) {
    const cpu_backend *be = (const cpu_backend *)base;
    cpu_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
    plan->base = (mla_plan){.be = base, .cap = *cap};
    int threads = parallel_threads(be->pool),
        rows = min_int((int64_t)cap->s_q * cap->heads, CPU_MAX_ROWS);
    count_parts(plan, threads);
    size_t row_floats = (size_t)rows * (size_t)cap->d_c, partials = (size_t)plan->max_partials;
    plan->sums_bytes = aligned_size((row_floats + 2 * CPU_MAX_ROWS) * sizeof(float));
    plan->scratch_bytes =
        plan->sums_bytes + aligned_size(be->isa->scratch_bytes(rows, cap->d_c, cap->d_r));
    plan->item = calloc((size_t)plan->max_items, sizeof *plan->item);
    plan->join = calloc(partials / 2 + 1, sizeof *plan->join);
    plan->scratch = aligned_memory((size_t)threads * plan->scratch_bytes);
    plan->o = aligned_memory(partials * row_floats * sizeof *plan->o);
    plan->ml = aligned_memory(partials * 2 * (size_t)rows * sizeof *plan->ml);
    if (!plan->item || !plan->join || !plan->scratch || !plan->o || !plan->ml) {
        cpu_plan_free(&plan->base);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a plan with %zu partial results",
                       partials);
    }
    *out = &plan->base;
    return SNAP_OK;
}

/* ---- schedule ------------------------------------------------------------------------------- */

/* A sequence's length as far as the step's table and the plan reach. */
static int64_t length_of(const cpu_plan *plan, const mla_step *step, int b) {
    int64_t length = step->seqlens[b], room = (int64_t)step->table_width * MLA_PAGE;
    length = length < 0 ? 0 : length;
    length = length > room ? room : length;
    return length > plan->base.cap.max_tokens ? plan->base.cap.max_tokens : length;
}

/* Parts of a sequence of @pages: as many as the caller fixed, whatever its neighbours are, or such
 * that all parts of the step are about equal. */
static int parts_of(const cpu_plan *plan, int64_t pages, int64_t total) {
    const cpu_backend *be = (const cpu_backend *)plan->base.be;
    int64_t share = total / ((int64_t)parallel_threads(be->pool) * kPartsPerThread) + 1;
    share = share > kMinPartPages ? share : kMinPartPages;
    int64_t parts = plan->base.cap.splits ? pages : (pages + share - 1) / share;
    return parts > 1 ? min_int(parts, plan->max_parts) : 1;
}

static void add_items(cpu_plan *plan, int b, int row0, int rows, int64_t length, int parts,
                      int64_t *partials) {
    int64_t pages = pages_of(length);
    if (parts > 1)
        plan->join[plan->joins++] = (cpu_join){b, row0, rows, parts, *partials};
    for (int i = 0; i < parts; i++) {
        int64_t first = pages * i / parts * MLA_PAGE, end = pages * (i + 1) / parts * MLA_PAGE;
        plan->item[plan->items++] = (cpu_item){.seq = b,
                                               .row0 = row0,
                                               .rows = rows,
                                               .length = length,
                                               .first = first,
                                               .end = end < length ? end : length,
                                               .partial = parts > 1 ? (*partials)++ : -1};
    }
}

static snap_status cpu_schedule(mla_plan *base, const mla_step *step, snap_err *err) {
    (void)err;
    cpu_plan *plan = (cpu_plan *)base;
    int64_t total = 0, partials = 0;
    for (int b = 0; b < step->batch; b++)
        total += pages_of(length_of(plan, step, b));
    plan->batch = step->batch;
    plan->s_q = step->s_q;
    plan->items = plan->joins = 0;
    int rows = step->s_q * base->cap.heads;
    for (int b = 0; b < step->batch; b++) {
        int64_t length = length_of(plan, step, b);
        int parts = parts_of(plan, pages_of(length), total);
        for (int row0 = 0; row0 < rows; row0 += CPU_MAX_ROWS)
            add_items(plan, b, row0, min_int(rows - row0, CPU_MAX_ROWS), length, parts, &partials);
    }
    return SNAP_OK;
}

/* ---- run ------------------------------------------------------------------------------------ */

typedef struct {
    const cpu_backend *be;
    const cpu_plan *plan;
    const mla_step *step;
    const mla_cache *cache;
    const mla_attn *attn;
} cpu_run;

/* Joins the results of a row's parts: o and (m, l) of part i at i * stride and i * ml_stride. */
static void finish_row(const cpu_run *run, int64_t row, const float *o, int64_t stride,
                       const float *m, const float *l, int64_t ml_stride, int parts) {
    float weight[kMaxSplits] = {0}, largest = -INFINITY;
    double sum = 0.0;
    for (int i = 0; i < parts; i++)
        largest = fmaxf(largest, m[i * ml_stride]);
    for (int i = 0; i < parts; i++) {
        weight[i] = l[i * ml_stride] > 0.0f ? exp2f(m[i * ml_stride] - largest) : 0.0f;
        sum += (double)weight[i] * (double)l[i * ml_stride];
    }
    for (int i = 0; i < parts; i++)
        weight[i] = sum > 0.0 ? (float)((double)weight[i] / sum) : 0.0f;
    int d_c = run->plan->base.cap.d_c;
    run->be->isa->combine((uint16_t *)run->attn->out + row * d_c, o, stride, weight, parts, d_c);
    if (run->attn->lse)
        run->attn->lse[row] =
            sum > 0.0 ? (float)(0.69314718055994530942 * ((double)largest + log2(sum))) : -INFINITY;
}

static void run_item(void *ctx, int worker, int64_t index) {
    const cpu_run *run = ctx;
    const cpu_plan *plan = run->plan;
    const mla_capacity *cap = &plan->base.cap;
    const cpu_item *item = &plan->item[index];
    size_t per_row = (size_t)(run->step->s_q * cap->heads) * (size_t)item->seq;
    size_t width = (size_t)(cap->precision == MLA_FP8 ? cap->d_c : 2 * (cap->d_c + cap->d_r));
    cpu_part part = {
        .precision = cap->precision,
        .d_c = cap->d_c,
        .d_r = cap->d_r,
        .cache = *run->cache,
        .table = run->step->block_table + (int64_t)item->seq * run->step->table_width,
        .length = item->length,
        .first = item->first,
        .end = item->end,
        .s_q = run->step->s_q,
        .heads = cap->heads,
        .row0 = item->row0,
        .rows = item->rows,
        .q = (const char *)run->attn->q + per_row * width,
        .softmax_scale = run->attn->softmax_scale,
    };
    if (cap->precision == MLA_FP8) {
        part.q_rope = (const uint16_t *)run->attn->q_rope + per_row * (size_t)cap->d_r;
        part.q_scale = run->attn->q_scale + per_row;
    }
    int group = min_int((int64_t)cap->s_q * cap->heads, CPU_MAX_ROWS);
    char *memory = plan->scratch + (size_t)worker * plan->scratch_bytes;
    float *o = (float *)(void *)memory, *m = o + (int64_t)group * cap->d_c, *l = m + CPU_MAX_ROWS;
    if (item->partial >= 0) {
        o = plan->o + item->partial * group * cap->d_c;
        m = plan->ml + item->partial * 2 * group;
        l = m + group;
    }
    run->be->isa->attend(&part, memory + plan->sums_bytes, o, m, l);
    for (int i = 0; item->partial < 0 && i < item->rows; i++)
        finish_row(run, (int64_t)per_row + item->row0 + i, o + (int64_t)i * cap->d_c, 0, m + i,
                   l + i, 0, 1);
}

static void run_join(void *ctx, int worker, int64_t index) {
    (void)worker;
    const cpu_run *run = ctx;
    const cpu_plan *plan = run->plan;
    const mla_capacity *cap = &plan->base.cap;
    const cpu_join *join = &plan->join[index];
    int64_t group = min_int((int64_t)cap->s_q * cap->heads, CPU_MAX_ROWS);
    const float *o = plan->o + join->partial * group * cap->d_c,
                *m = plan->ml + join->partial * 2 * group;
    int64_t row = (int64_t)join->seq * run->step->s_q * cap->heads + join->row0;
    for (int i = 0; i < join->rows; i++)
        finish_row(run, row + i, o + (int64_t)i * cap->d_c, group * cap->d_c, m + i, m + group + i,
                   2 * group, join->parts);
}

static snap_status cpu_run_step(mla_plan *base, const mla_step *step, const mla_cache *cache,
                                const mla_attn *attn, snap_err *err) {
    cpu_plan *plan = (cpu_plan *)base;
    const cpu_backend *be = (const cpu_backend *)base->be;
    if (plan->batch != step->batch || plan->s_q != step->s_q)
        return err_set(err, SNAP_E_SHAPE, "mla_run() got a step that mla_schedule() did not");
    cpu_run run = {be, plan, step, cache, attn};
    parallel_for(be->pool, plan->items, run_item, &run);
    parallel_for(be->pool, plan->joins, run_join, &run);
    return SNAP_OK;
}

/* ---- dataflow ------------------------------------------------------------------------------- */

typedef struct {
    const cpu_isa *isa;
    const cpu_plan *plan;
    const mla_step *step;
    const mla_cache *cache;
    int d_c, d_r, seq;
    int64_t first;
    const uint16_t *in;
    uint16_t *out, *rope;
    uint8_t *c8;
    float *scale;
} cpu_rows;

static void quant_row_item(void *ctx, int worker, int64_t i) {
    (void)worker;
    const cpu_rows *r = ctx;
    r->scale[i] = r->isa->quant(r->in + i * (r->d_c + r->d_r), r->d_c, r->d_r, r->c8 + i * r->d_c,
                                r->rope + i * r->d_r);
}

static snap_status cpu_quant_q(mla_backend *base, int64_t rows, int d_c, int d_r, const void *q,
                               void *q8, void *q_rope, float *q_scale, snap_err *err) {
    (void)err;
    const cpu_backend *be = (const cpu_backend *)base;
    cpu_rows r = {.isa = be->isa,
                  .d_c = d_c,
                  .d_r = d_r,
                  .in = q,
                  .c8 = q8,
                  .rope = q_rope,
                  .scale = q_scale};
    parallel_for(be->pool, rows, quant_row_item, &r);
    return SNAP_OK;
}

static void append_item(void *ctx, int worker, int64_t i) {
    (void)worker;
    const cpu_rows *r = ctx;
    int s_q = r->step->s_q, b = (int)(i / s_q);
    int64_t token = length_of(r->plan, r->step, b) - s_q + i % s_q;
    if (token < 0)
        return;
    int64_t slot =
        mla_slot(r->step->block_table + (int64_t)b * r->step->table_width, r->cache->pages, token);
    const uint16_t *row = r->in + i * (r->d_c + r->d_r);
    if (r->plan->base.cap.precision == MLA_BF16)
        memcpy((uint16_t *)r->cache->content + slot * (r->d_c + r->d_r), row,
               (size_t)(r->d_c + r->d_r) * sizeof *row);
    else
        r->cache->scale[slot] =
            r->isa->quant(row, r->d_c, r->d_r, (uint8_t *)r->cache->content + slot * r->d_c,
                          (uint16_t *)r->cache->rope + slot * r->d_r);
}

static cpu_rows rows_of(const mla_plan *base, const mla_step *step, const mla_cache *cache) {
    const cpu_backend *be = (const cpu_backend *)base->be;
    return (cpu_rows){.isa = be->isa,
                      .plan = (const cpu_plan *)base,
                      .step = step,
                      .cache = cache,
                      .d_c = base->cap.d_c,
                      .d_r = base->cap.d_r};
}

static snap_status cpu_append_kv(mla_plan *base, const mla_step *step, const mla_cache *cache,
                                 const void *kv, snap_err *err) {
    (void)err;
    cpu_rows r = rows_of(base, step, cache);
    r.in = kv;
    parallel_for(((const cpu_backend *)base->be)->pool, (int64_t)step->batch * step->s_q,
                 append_item, &r);
    return SNAP_OK;
}

static void fetch_item(void *ctx, int worker, int64_t i) {
    (void)worker;
    const cpu_rows *r = ctx;
    int width = r->d_c + r->d_r;
    uint16_t *row = r->out + i * width;
    int64_t token = r->first + i;
    if (token >= length_of(r->plan, r->step, r->seq)) {
        memset(row, 0, (size_t)width * sizeof *row);
        return;
    }
    int64_t slot = mla_slot(r->step->block_table + (int64_t)r->seq * r->step->table_width,
                            r->cache->pages, token);
    if (r->plan->base.cap.precision == MLA_BF16)
        memcpy(row, (const uint16_t *)r->cache->content + slot * width,
               (size_t)width * sizeof *row);
    else
        r->isa->dequant((const uint8_t *)r->cache->content + slot * r->d_c,
                        (const uint16_t *)r->cache->rope + slot * r->d_r, r->cache->scale[slot],
                        r->d_c, r->d_r, row);
}

static snap_status cpu_fetch_kv(mla_plan *base, const mla_step *step, const mla_cache *cache,
                                int seq, int64_t first, int64_t count, void *kv, snap_err *err) {
    (void)err;
    cpu_rows r = rows_of(base, step, cache);
    r.seq = seq;
    r.first = first;
    r.out = kv;
    parallel_for(((const cpu_backend *)base->be)->pool, count, fetch_item, &r);
    return SNAP_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static snap_status cpu_ceilings(mla_backend *base, double seconds, mla_ceilings *out,
                                snap_err *err) {
    const cpu_backend *be = (const cpu_backend *)base;
    return cpu_probe(out, be->pool, seconds, err);
}

static const mla_backend_ops kOps = {
    .close = cpu_close,
    .describe = cpu_describe,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .sync = cpu_sync,
    .timer_start = cpu_timer_start,
    .timer_stop = cpu_timer_stop,
    .plan_create = cpu_plan_create,
    .plan_free = cpu_plan_free,
    .schedule = cpu_schedule,
    .run = cpu_run_step,
    .quant_q = cpu_quant_q,
    .append_kv = cpu_append_kv,
    .fetch_kv = cpu_fetch_kv,
    .ceilings = cpu_ceilings,
};

static snap_status choose_isa(const cpu_isa **out, const char *name, snap_err *err) {
    bool any = !name || strcmp(name, "auto") == 0, known = any;
    for (const cpu_isa *const *isa = machine_isas(); *isa; isa++) {
        bool named = name && strcmp(name, (*isa)->name) == 0;
        known = known || named;
        if ((any || named) && (*isa)->usable()) {
            *out = *isa;
            return SNAP_OK;
        }
    }
    if (known)
        return err_set(err, SNAP_E_UNSUPPORTED, "this processor lacks what isa '%s' needs", name);
    return err_set(err, SNAP_E_USAGE,
                   "unknown isa '%s'; one of auto, avx512, avx512f, avx2, portable", name);
}

snap_status cpu_backend_open(mla_backend **out, const mla_backend_options *opt, snap_err *err) {
    const cpu_isa *isa = NULL;
    snap_status st = choose_isa(&isa, opt->isa, err);
    if (st != SNAP_OK)
        return st;
    cpu_backend *be = calloc(1, sizeof *be);
    if (!be)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a backend");
    be->base.ops = &kOps;
    be->isa = isa;
    st = parallel_create(&be->pool, opt->threads, err);
    if (st == SNAP_OK)
        *out = &be->base;
    else
        free(be);
    return st;
}
