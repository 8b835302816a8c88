/* Allocates the buffers of a step on the CPU once, for the largest step. */
#include "generator/local/model/model_parts.h"

typedef struct {
    runner *r;
    bool failed;
} allocator;

/* Zeroed, aligned to MLA_ALIGN, freed with the runner. NULL and a->failed if there is no memory. */
static void *take(allocator *a, int64_t count, size_t size) {
    size_t bytes = (size_t)count * size + MLA_ALIGN;
    char *p = arena_alloc(&a->r->mem, 1, bytes);
    if (!p) {
        a->failed = true;
        return NULL;
    }
    return p + (MLA_ALIGN - (uintptr_t)p % MLA_ALIGN) % MLA_ALIGN;
}

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static void take_step(allocator *a, int64_t rows) {
    step_state *s = &a->r->step;
    s->table_width = (int)((a->r->opt.context - 1) / MLA_PAGE + 1);
    s->piece = take(a, rows, sizeof *s->piece);
    s->token = take(a, rows, sizeof *s->token);
    s->position = take(a, rows, sizeof *s->position);
    s->length = take(a, rows, sizeof *s->length);
    s->table = take(a, rows * s->table_width, sizeof *s->table);
    s->cosine = take(a, rows * a->r->rope.pairs, sizeof *s->cosine);
    s->sine = take(a, rows * a->r->rope.pairs, sizeof *s->sine);
}

static void take_rows(allocator *a, int64_t rows) {
    runner *r = a->r;
    const model_shape *s = r->s;
    step_buffers *b = &r->b;
    int64_t heads = s->num_attention_heads, width = s->kv_lora_rank + s->qk_rope_head_dim,
            queries = heads * (s->qk_nope_head_dim + s->qk_rope_head_dim),
            values = heads * s->v_head_dim;
    b->x = take(a, rows * s->hidden_size, sizeof(float));
    b->h = take(a, rows * s->hidden_size, sizeof(float));
    b->out = take(a, rows * s->hidden_size, sizeof(float));
    b->shortcut = take(a, rows * s->hidden_size, sizeof(float));
    b->packed = take(a, rows * most(most(s->hidden_size, s->q_lora_rank), values), r->element);
    b->wide = take(a, rows * s->q_lora_rank, sizeof(float));
    b->kv_a = take(a, rows * width, sizeof(float));
    b->kv = take(a, rows * width, r->element);
    b->q = take(a, rows * queries, sizeof(float));
    b->q_packed = take(a, rows * queries, r->element);
    b->o = take(a, rows * values, sizeof(float));
    b->scores = take(a, rows * most(r->router.experts, 1), sizeof(float));
    b->chosen = take(a, rows * most(r->router.chosen, 1), sizeof(int32_t));
    b->weight = take(a, rows * most(r->router.chosen, 1), sizeof(float));
}

static void take_decode(allocator *a, int64_t rows) {
    runner *r = a->r;
    const model_shape *s = r->s;
    step_buffers *b = &r->b;
    int64_t queries = rows * s->num_attention_heads;
    b->absorbed = take(a, queries * (s->kv_lora_rank + s->qk_rope_head_dim), sizeof(float));
    b->q_mla = take(a, queries * (s->kv_lora_rank + s->qk_rope_head_dim), sizeof(uint16_t));
    b->q8 = take(a, queries * s->kv_lora_rank, sizeof(uint8_t));
    b->q8_rope = take(a, queries * s->qk_rope_head_dim, sizeof(uint16_t));
    b->q8_scale = take(a, queries, sizeof(float));
    b->o_mla = take(a, queries * s->kv_lora_rank, sizeof(uint16_t));
}

/* How many rows the experts of this rank get from @rows rows of each rank. */
static int64_t gathered_rows(const runner *r, int64_t rows) {
    return comm_splits(r->opt.experts) ? rows * r->opt.experts->size : rows;
}

static void take_gathered(allocator *a, int64_t rows) {
    runner *r = a->r;
    gathered_buffers *g = &r->all;
    int64_t all = gathered_rows(r, rows);
    if (!comm_splits(r->opt.experts))
        return;
    g->x = take(a, all * r->s->hidden_size, r->element);
    g->chosen = take(a, all * r->router.chosen, sizeof *g->chosen);
    g->weight = take(a, all * r->router.chosen, sizeof *g->weight);
    g->sum = take(a, all * r->s->hidden_size, sizeof *g->sum);
}

static void take_experts(allocator *a, int64_t rows) {
    runner *r = a->r;
    const model_shape *s = r->s;
    expert_buffers *e = &r->e;
    int64_t pairs = most(gathered_rows(r, rows) * r->router.chosen, 1),
            inner = most(rows * most(s->intermediate_size,
                                     (int64_t)s->n_shared_experts * s->moe_intermediate_size),
                         pairs * s->moe_intermediate_size);
    e->first = take(a, s->n_routed_experts + 1, sizeof(int));
    e->row = take(a, pairs, sizeof(int));
    e->place = take(a, pairs, sizeof(int));
    e->x = take(a, pairs * s->hidden_size, r->element);
    e->gate = take(a, inner, sizeof(float));
    e->up = take(a, inner, sizeof(float));
    e->inner = take(a, inner, r->element);
    e->down = take(a, most(rows, pairs) * s->hidden_size, sizeof(float));
    e->jobs = take(a, 2 * s->n_routed_experts + s->num_attention_heads, sizeof(gemm_job));
}

static void take_chunk(allocator *a, int64_t rows) {
    runner *r = a->r;
    const model_shape *s = r->s;
    int64_t heads = s->num_attention_heads, kv = heads * (s->qk_nope_head_dim + s->v_head_dim);
    r->c.kv = take(a, (int64_t)kKeyBlock * (s->kv_lora_rank + s->qk_rope_head_dim), r->element);
    r->c.expanded = take(a, kKeyBlock * kv, sizeof(float));
    r->c.expanded_packed = take(a, kKeyBlock * kv, r->element);
    r->c.sum = take(a, rows * heads, sizeof(float));
    r->c.max = take(a, rows * heads, sizeof(float));
    r->c.scratch_bytes = (chunk_scratch_bytes(r) + 63) / 64 * 64;
    r->c.scratch = take(a, parallel_threads(r->pool), r->c.scratch_bytes);
}

snap_status runner_take_buffers(runner *r, snap_err *err) {
    allocator a = {.r = r};
    take_step(&a, r->opt.max_rows);
    take_rows(&a, r->opt.max_rows);
    take_decode(&a, r->opt.max_decode);
    take_experts(&a, r->opt.max_rows);
    take_gathered(&a, r->opt.max_rows);
    take_chunk(&a, r->opt.max_rows);
    if (a.failed)
        return err_set(err, SNAP_E_NOMEM, "out of memory for steps of %d tokens", r->opt.max_rows);
    return SNAP_OK;
}
