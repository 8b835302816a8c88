#include <string.h>

#include "generator/local/model/model_parts.h"

static gemm_job job(const mat *w, const void *x, int64_t ldx, int64_t rows, float *y, int64_t ldy) {
    return (gemm_job){.w = *w, .side = MAT_ROWS, .x = x, .ldx = ldx, .m = rows, .y = y, .ldy = ldy};
}

static int query_width(const model_shape *s) {
    return s->qk_nope_head_dim + s->qk_rope_head_dim;
}

static int cache_width(const model_shape *s) {
    return s->kv_lora_rank + s->qk_rope_head_dim;
}

/* ---- queries, and the new rows of the cache ------------------------------------------------- */

typedef struct {
    runner *r;
    const attention_weights *a;
} row_context;

static void normalise_q_a(void *ctx, int worker, int64_t i) {
    (void)worker;
    const row_context *c = ctx;
    runner *r = c->r;
    int rank = r->s->q_lora_rank;
    float *row = r->b.wide + i * rank;
    rms_norm(row, c->a->q_a_norm, rank, r->s->latent_norm_eps, (float)r->s->mla_scale_q, row);
    gemm_pack(r->g, (char *)r->b.packed + (size_t)(i * rank) * r->element, row, rank);
}

/* One row: normalises the latent if the model does, applies RoPE to the new cache row and to the
 * queries, and packs both. */
static void finish_row(void *ctx, int worker, int64_t i) {
    (void)worker;
    const row_context *c = ctx;
    runner *r = c->r;
    const model_shape *s = r->s;
    const float *cosine = r->step.cosine + i * r->rope.pairs,
                *sine = r->step.sine + i * r->rope.pairs;
    int width = cache_width(s), heads = s->num_attention_heads, qk = query_width(s);
    int plain = s->rotated_dim ? 0 : s->qk_nope_head_dim; /* columns of a query without RoPE */
    float *kv = r->b.kv_a + i * width, *q = r->b.q + i * heads * qk;
    if (!s->plain_latent)
        rms_norm(kv, c->a->kv_a_norm, s->kv_lora_rank, s->latent_norm_eps, (float)s->mla_scale_kv,
                 kv);
    rope_turn(&r->rope, cosine, sine, kv + s->rotated_first, s->rotated_dim);
    rope_turn(&r->rope, cosine, sine, kv + s->kv_lora_rank, s->qk_rope_head_dim);
    gemm_pack(r->g, (char *)r->b.kv + (size_t)(i * width) * r->element, kv, width);
    for (int h = 0; h < heads; h++)
        rope_turn(&r->rope, cosine, sine, q + h * qk + plain, qk - plain);
    gemm_pack(r->g, (char *)r->b.q_packed + (size_t)(i * heads * qk) * r->element, q, heads * qk);
}

static snap_status project(runner *r, const attention_weights *a, snap_err *err) {
    snap_status st;
    const model_shape *s = r->s;
    row_context ctx = {r, a};
    int rows = r->step.rows, queries = s->num_attention_heads * query_width(s);
    const mat *first = s->q_lora_rank ? &a->q_a : &a->q;
    float *to = s->q_lora_rank ? r->b.wide : r->b.q;
    gemm_job both[] = {
        job(first, r->b.packed, s->hidden_size, rows, to, first->rows),
        job(&a->kv_a, r->b.packed, s->hidden_size, rows, r->b.kv_a, cache_width(s)),
    };
    TRY(gemm_run(r->g, both, 2, err));
    if (s->q_lora_rank) {
        runner_rows(r, rows, normalise_q_a, &ctx);
        gemm_job second = job(&a->q_b, r->b.packed, s->q_lora_rank, rows, r->b.q, queries);
        TRY(gemm_run(r->g, &second, 1, err));
    }
    runner_rows(r, rows, finish_row, &ctx);
cleanup:
    return st;
}

static void append_f32(const runner *r, int block) {
    int width = cache_width(r->s);
    float *rows = kv_cache_rows_f32(r->cache, block);
    for (int i = 0; i < r->step.rows; i++) {
        int64_t at = r->step.position[i];
        int32_t page = r->step.table[(int64_t)i * r->step.table_width + at / MLA_PAGE];
        memcpy(rows + (page * (int64_t)MLA_PAGE + at % MLA_PAGE) * width,
               (const float *)r->b.kv + (int64_t)i * width, (size_t)width * sizeof *rows);
    }
}

static void round_new_rows(const runner *r, int block) {
    for (int i = 0; i < r->step.pieces; i++) {
        const step_piece *p = &r->step.piece[i];
        int64_t first = p->first; /* the table row of `first` has the pages up to the piece's
                                     position */
        int32_t page = r->step.table[first * r->step.table_width + p->position / MLA_PAGE];
        kv_cache_round_rows(r->cache, block, (uint16_t *)r->b.kv + first * cache_width(r->s),
                            p->count, p->position, page);
    }
}

static snap_status append(runner *r, int block, snap_err *err) {
    if (r->opt.format == CACHE_F32) {
        append_f32(r, block);
        return SNAP_OK;
    }
    round_new_rows(r, block);
    return mla_append_kv(r->append_plan, &r->step.all, kv_cache_layer(r->cache, block), r->b.kv,
                         err);
}

/* ---- decode: absorbed, through mla.h --------------------------------------------------------- */

/* W_UV of a head if @values, else its W_UK. */
static mat head_rows(const runner *r, const attention_weights *a, int head, bool values) {
    const model_shape *s = r->s;
    int64_t at = (int64_t)head * (s->qk_nope_head_dim + s->v_head_dim);
    return values ? mat_rows(&a->kv_b, at + s->qk_nope_head_dim, s->v_head_dim)
                  : mat_rows(&a->kv_b, at, s->qk_nope_head_dim);
}

static void pack_queries(void *ctx, int worker, int64_t i) {
    (void)worker;
    runner *r = ctx;
    const model_shape *s = r->s;
    int heads = s->num_attention_heads, width = cache_width(s), qk = query_width(s);
    float *to = r->b.absorbed + i * heads * width;
    for (int h = 0; h < heads; h++) {
        if (!s->qk_nope_head_dim)
            memset(to + h * width, 0, (size_t)s->kv_lora_rank * sizeof *to);
        memcpy(to + h * width + s->kv_lora_rank,
               r->b.q + (i * heads + h) * qk + s->qk_nope_head_dim,
               (size_t)s->qk_rope_head_dim * sizeof *to);
    }
    gemm_pack(r->g, r->b.q_mla + i * heads * width, to, (int64_t)heads * width);
}

static snap_status absorb(runner *r, const attention_weights *a, snap_err *err) {
    const model_shape *s = r->s;
    int heads = s->num_attention_heads, width = cache_width(s), qk = query_width(s);
    for (int h = 0; h < heads; h++)
        r->e.jobs[h] = (gemm_job){.w = head_rows(r, a, h, false),
                                  .side = MAT_COLS,
                                  .x = (const char *)r->b.q_packed + (size_t)(h * qk) * r->element,
                                  .ldx = (int64_t)heads * qk,
                                  .m = r->step.decode,
                                  .y = r->b.absorbed + h * width,
                                  .ldy = (int64_t)heads * width};
    snap_status st = s->qk_nope_head_dim ? gemm_run(r->g, r->e.jobs, heads, err) : SNAP_OK;
    if (st == SNAP_OK)
        runner_rows(r, r->step.decode, pack_queries, r);
    return st;
}

static snap_status decode(runner *r, const attention_weights *a, int block, snap_err *err) {
    snap_status st;
    const model_shape *s = r->s;
    int heads = s->num_attention_heads, rank = s->kv_lora_rank;
    mla_attn attn = {.q = r->b.q_mla, .softmax_scale = r->softmax_scale, .out = r->b.o_mla};
    TRY(absorb(r, a, err));
    if (cache_precision(r->opt.format) == MLA_FP8) {
        TRY(mla_quant_q(r->be, (int64_t)r->step.decode * heads, rank, s->qk_rope_head_dim,
                        r->b.q_mla, r->b.q8, r->b.q8_rope, r->b.q8_scale, err));
        attn.q = r->b.q8;
        attn.q_rope = r->b.q8_rope;
        attn.q_scale = r->b.q8_scale;
    }
    TRY(mla_run(r->decode_plan, &r->step.decoding, kv_cache_layer(r->cache, block), &attn, err));
    for (int h = 0; h < heads; h++) {
        mat values = head_rows(r, a, h, true);
        r->e.jobs[h] = job(&values, r->b.o_mla + h * rank, (int64_t)heads * rank, r->step.decode,
                           r->b.o + h * s->v_head_dim, (int64_t)heads * s->v_head_dim);
    }
    TRY(gemm_run(r->g, r->e.jobs, heads, err));
cleanup:
    return st;
}

static void pack_output(void *ctx, int worker, int64_t i) {
    (void)worker;
    runner *r = ctx;
    int64_t n = (int64_t)r->s->num_attention_heads * r->s->v_head_dim;
    gemm_pack(r->g, (char *)r->b.packed + (size_t)(i * n) * r->element, r->b.o + i * n, n);
}

snap_status attention_forward(runner *r, int block, snap_err *err) {
    snap_status st;
    const attention_weights *a = &r->w->block[block].attention;
    TRY(project(r, a, err));
    TRY(append(r, block, err));
    if (r->step.decode)
        TRY(decode(r, a, block, err));
    if (r->step.decode < r->step.rows)
        TRY(chunks_forward(r, block, err));
    runner_rows(r, r->step.rows, pack_output, r);
    gemm_job out = job(&a->o, r->b.packed, a->o.cols, r->step.rows, r->b.h, r->s->hidden_size);
    TRY(gemm_run(r->g, &out, 1, err));
cleanup:
    return st;
}
