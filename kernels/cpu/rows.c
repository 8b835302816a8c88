/* The dataflow operations: rows of queries and tokens, distributed over the threads. */
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/formats.h"

typedef struct {
    const cpu_isa *isa;
    mla_scale rule;
    const mla_plan *plan;
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
    r->scale[i] = r->isa->quant(r->in + i * (r->d_c + r->d_r), r->d_c, r->d_r, r->rule,
                                r->c8 + i * r->d_c, r->rope + i * r->d_r);
}

snap_status cpu_quant_q(mla_backend *base, int64_t rows, int d_c, int d_r, const void *q, void *q8,
                        void *q_rope, float *q_scale, snap_err *err) {
    (void)err;
    const cpu_backend *be = (const cpu_backend *)base;
    cpu_rows r = {.isa = be->isa,
                  .rule = be->scale,
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
    int64_t token = cpu_length(r->plan, r->step, b) - s_q + i % s_q;
    if (token < 0)
        return;
    int64_t slot =
        mla_slot(r->step->block_table + (int64_t)b * r->step->table_width, r->cache->pages, token);
    const uint16_t *row = r->in + i * (r->d_c + r->d_r);
    if (r->plan->cap.precision == MLA_BF16)
        memcpy((uint16_t *)r->cache->content + slot * (r->d_c + r->d_r), row,
               (size_t)(r->d_c + r->d_r) * sizeof *row);
    else
        r->cache->scale[slot] = r->isa->quant(row, r->d_c, r->d_r, r->rule,
                                              (uint8_t *)r->cache->content + slot * r->d_c,
                                              (uint16_t *)r->cache->rope + slot * r->d_r);
}

static cpu_rows rows_of(const mla_plan *base, const mla_step *step, const mla_cache *cache) {
    const cpu_backend *be = (const cpu_backend *)base->be;
    return (cpu_rows){.isa = be->isa,
                      .rule = be->scale,
                      .plan = base,
                      .step = step,
                      .cache = cache,
                      .d_c = base->cap.d_c,
                      .d_r = base->cap.d_r};
}

snap_status cpu_append_kv(mla_plan *base, const mla_step *step, const mla_cache *cache,
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
    if (token >= cpu_length(r->plan, r->step, r->seq)) {
        memset(row, 0, (size_t)width * sizeof *row);
        return;
    }
    int64_t slot = mla_slot(r->step->block_table + (int64_t)r->seq * r->step->table_width,
                            r->cache->pages, token);
    if (r->plan->cap.precision == MLA_BF16)
        memcpy(row, (const uint16_t *)r->cache->content + slot * width,
               (size_t)width * sizeof *row);
    else
        r->isa->dequant((const uint8_t *)r->cache->content + slot * r->d_c,
                        (const uint16_t *)r->cache->rope + slot * r->d_r, r->cache->scale[slot],
                        r->d_c, r->d_r, row);
}

snap_status cpu_fetch_kv(mla_plan *base, const mla_step *step, const mla_cache *cache, int seq,
                         int64_t first, int64_t count, void *kv, snap_err *err) {
    (void)err;
    cpu_rows r = rows_of(base, step, cache);
    r.seq = seq;
    r.first = first;
    r.out = kv;
    parallel_for(((const cpu_backend *)base->be)->pool, count, fetch_item, &r);
    return SNAP_OK;
}
