/* chunk.c - attention of a prompt's chunk. One product expands a block of cache rows to K and V of
 * every head. The queries of each head then process this block with an online softmax. Blocks begin
 * at fixed positions, so the sums of a row are the same however the prompt was divided into
 * chunks. */
#include <math.h>
#include <string.h>

#include "generator/local/model/model_parts.h"

enum {
    kKeyMultiple = 16
}; /* a block has a multiple of this many keys; those past the end are
                               zeros, and masked */

typedef struct {
    runner *r;
    const step_piece *piece;
    int64_t first_key;
    int keys; /* keys of this block, a multiple of kKeyMultiple */
    int query_blocks;
} block_context;

size_t chunk_scratch_bytes(const runner *r) {
    size_t scores = (size_t)kQueryBlock * kKeyBlock;
    size_t values = (size_t)kQueryBlock * (size_t)r->s->v_head_dim;
    return (2 * scores + values) * sizeof(float) + scores * r->element;
}

static void fetch_f32(const block_context *c, int block) {
    const runner *r = c->r;
    int width = r->s->kv_lora_rank + r->s->qk_rope_head_dim;
    int64_t length = c->piece->position + c->piece->count;
    int last = c->piece->first + c->piece->count - 1; /* only its table row has all pages */
    const int32_t *table = r->step.table + (int64_t)last * r->step.table_width;
    const float *rows = kv_cache_rows_f32(r->cache, block);
    for (int j = 0; j < c->keys; j++) {
        float *to = (float *)r->c.kv + (int64_t)j * width;
        int64_t at = c->first_key + j;
        if (at < length)
            memcpy(to, rows + (table[at / MLA_PAGE] * (int64_t)MLA_PAGE + at % MLA_PAGE) * width,
                   (size_t)width * sizeof *to);
        else
            memset(to, 0, (size_t)width * sizeof *to);
    }
}

static void pack_expanded(void *ctx, int worker, int64_t j) {
    (void)worker;
    const runner *r = ctx;
    int64_t n = (int64_t)r->s->num_attention_heads * (r->s->qk_nope_head_dim + r->s->v_head_dim);
    gemm_pack(r->g, (char *)r->c.expanded_packed + (size_t)(j * n) * r->element,
              r->c.expanded + j * n, n);
}

static snap_status expand(const block_context *c, int block, snap_err *err) {
    snap_status st = SNAP_OK;
    runner *r = c->r;
    const mat *kv_b = &r->w->block[block].attention.kv_b;
    if (r->opt.format == CACHE_F32)
        fetch_f32(c, block);
    else
        TRY(mla_fetch_kv(r->append_plan, &r->step.all, kv_cache_layer(r->cache, block),
                         c->piece->first + c->piece->count - 1, c->first_key, c->keys, r->c.kv,
                         err));
    gemm_job job = {.w = *kv_b,
                    .x = r->c.kv,
                    .ldx = r->s->kv_lora_rank + r->s->qk_rope_head_dim,
                    .m = c->keys,
                    .y = r->c.expanded,
                    .ldy = kv_b->rows};
    TRY(gemm_run(r->g, &job, 1, err));
    runner_rows(r, c->keys, pack_expanded, r);
cleanup:
    return st;
}

/* The queries of one head in a block of rows, and the current block of keys. */
typedef struct {
    const block_context *c;
    int head, row, rows; /* rows row .. row + rows - 1 of the step */
    float *scores, *rope_scores, *values;
    void *p;
} query_block;

static const char *packed_at(const runner *r, const void *base, int64_t i) {
    return (const char *)base + (size_t)i * r->element;
}

static void score(const query_block *q) {
    const runner *r = q->c->r;
    const model_shape *s = r->s;
    int64_t heads = s->num_attention_heads, qk = s->qk_nope_head_dim + s->qk_rope_head_dim,
            kv = s->qk_nope_head_dim + s->v_head_dim, width = s->kv_lora_rank + s->qk_rope_head_dim;
    gemm_tile t = {.x = packed_at(r, r->b.q_packed, (q->row * heads + q->head) * qk),
                   .ldx = heads * qk,
                   .w = packed_at(r, r->c.expanded_packed, q->head * kv),
                   .ldw = heads * kv,
                   .y = q->scores,
                   .ldy = kKeyBlock,
                   .m = q->rows,
                   .n = q->c->keys,
                   .k = s->qk_nope_head_dim};
    if (t.k)
        gemm_rows(r->g, &t);
    else
        memset(q->scores, 0, (size_t)q->rows * kKeyBlock * sizeof *q->scores);
    t.x = packed_at(r, t.x, s->qk_nope_head_dim);
    t.w = packed_at(r, r->c.kv, s->kv_lora_rank);
    t.ldw = width;
    t.y = q->rope_scores;
    t.k = s->qk_rope_head_dim;
    gemm_rows(r->g, &t);
}

/* Turns the scores of row @i into unnormalised probabilities. Returns the factor by which the sums
 * of the earlier blocks have to be multiplied. */
static float softmax_row(const query_block *q, int i) {
    const runner *r = q->c->r;
    int64_t at = (int64_t)(q->row + i) * r->s->num_attention_heads + q->head;
    int64_t visible = r->step.position[q->row + i] + 1 - q->c->first_key;
    float *x = q->scores + i * kKeyBlock, *turned = q->rope_scores + i * kKeyBlock;
    float scale = r->softmax_scale * 1.44269504088896340736f, before = r->c.max[at],
          largest = before;
    for (int j = 0; j < q->c->keys; j++) {
        x[j] = j < visible ? (x[j] + turned[j]) * scale : -INFINITY;
        largest = x[j] > largest ? x[j] : largest;
    }
    float shrink = before == -INFINITY ? 0.0f : exp2f(before - largest);
    r->c.max[at] = largest;
    r->c.sum[at] = r->c.sum[at] * shrink + gemm_exp2(r->g, x, q->c->keys, largest);
    return shrink;
}

static void attend(const query_block *q) {
    const runner *r = q->c->r;
    const model_shape *s = r->s;
    int64_t heads = s->num_attention_heads, kv = s->qk_nope_head_dim + s->v_head_dim;
    float shrink[kQueryBlock];
    score(q);
    for (int i = 0; i < q->rows; i++) {
        bool any = r->step.position[q->row + i] >= q->c->first_key;
        float *x = q->scores + i * kKeyBlock;
        shrink[i] = 1;
        if (any)
            shrink[i] = softmax_row(q, i);
        else
            memset(x, 0, (size_t)q->c->keys * sizeof *x);
        gemm_pack(r->g, (char *)q->p + (size_t)(i * kKeyBlock) * r->element, x, q->c->keys);
    }
    gemm_tile t = {.x = q->p,
                   .ldx = kKeyBlock,
                   .w = packed_at(r, r->c.expanded_packed, q->head * kv + s->qk_nope_head_dim),
                   .ldw = heads * kv,
                   .y = q->values,
                   .ldy = s->v_head_dim,
                   .m = q->rows,
                   .n = s->v_head_dim,
                   .k = q->c->keys};
    gemm_cols(r->g, &t);
    for (int i = 0; i < q->rows; i++) {
        float *o = r->b.o + ((int64_t)(q->row + i) * heads + q->head) * s->v_head_dim;
        for (int d = 0; d < s->v_head_dim; d++)
            o[d] = o[d] * shrink[i] + q->values[i * s->v_head_dim + d];
    }
}

static void attend_item(void *ctx, int worker, int64_t index) {
    const block_context *c = ctx;
    const runner *r = c->r;
    char *memory = (char *)r->c.scratch + (size_t)worker * r->c.scratch_bytes;
    int from = (int)(index % c->query_blocks) * kQueryBlock, left = c->piece->count - from;
    query_block q = {.c = c,
                     .head = (int)(index / c->query_blocks),
                     .row = c->piece->first + from,
                     .rows = left < kQueryBlock ? left : kQueryBlock};
    if (r->step.position[q.row + q.rows - 1] < c->first_key)
        return;
    q.scores = (float *)(void *)memory;
    q.rope_scores = q.scores + kQueryBlock * kKeyBlock;
    q.values = q.rope_scores + kQueryBlock * kKeyBlock;
    q.p = q.values + kQueryBlock * r->s->v_head_dim;
    attend(&q);
}

static void start(const runner *r, const step_piece *piece) {
    int64_t heads = r->s->num_attention_heads, from = piece->first * heads,
            n = piece->count * heads;
    memset(r->b.o + from * r->s->v_head_dim, 0, (size_t)(n * r->s->v_head_dim) * sizeof *r->b.o);
    for (int64_t i = from; i < from + n; i++) {
        r->c.sum[i] = 0;
        r->c.max[i] = -INFINITY;
    }
}

static void finish(const runner *r, const step_piece *piece) {
    int64_t heads = r->s->num_attention_heads, v = r->s->v_head_dim;
    for (int64_t i = piece->first * heads; i < (piece->first + piece->count) * heads; i++)
        for (int64_t d = 0; d < v; d++)
            r->b.o[i * v + d] /= r->c.sum[i];
}

snap_status chunks_forward(runner *r, int block, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int p = 0; p < r->step.pieces; p++) {
        const step_piece *piece = &r->step.piece[p];
        if (piece->first < r->step.decode)
            continue;
        int64_t length = piece->position + piece->count;
        start(r, piece);
        for (int64_t key = 0; key < length; key += kKeyBlock) {
            int64_t left = (length - key + kKeyMultiple - 1) / kKeyMultiple * kKeyMultiple;
            block_context c = {.r = r,
                               .piece = piece,
                               .first_key = key,
                               .keys = left < kKeyBlock ? (int)left : kKeyBlock,
                               .query_blocks = (piece->count - 1) / kQueryBlock + 1};
            TRY(expand(&c, block, err));
            parallel_for(r->pool, (int64_t)r->s->num_attention_heads * c.query_blocks, attend_item,
                         &c);
        }
        finish(r, piece);
    }
cleanup:
    return st;
}
