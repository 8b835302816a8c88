#include "generator/local/model/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/model/parts.h"
#include "kernels/staged.h"

enum {
    kDecodeSplits = 8
}; /* fixed: a sequence's sums are cut alike whatever else is in the batch */

/* ---- memory ------------------------------------------------------------------------------------ */

typedef struct {
    runner *r;
    bool failed;
} allocator;

/* Zeroed, 64-byte aligned, freed with the runner. */
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

static void take_experts(allocator *a, int64_t rows) {
    runner *r = a->r;
    const model_shape *s = r->s;
    expert_buffers *e = &r->e;
    int64_t pairs = most(rows * r->router.chosen, 1),
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

/* ---- create ------------------------------------------------------------------------------------ */

static snap_status create_plans(runner *r, snap_err *err) {
    snap_status st;
    const model_shape *s = r->s;
    mla_capacity cap = {.precision = cache_precision(r->opt.format),
                        .heads = s->num_attention_heads,
                        .d_c = s->kv_lora_rank,
                        .d_r = s->qk_rope_head_dim,
                        .batch = r->opt.max_rows,
                        .s_q = 1,
                        /* whole pages: chunk.c reads some way past a sequence's end */
                        .max_tokens = (r->opt.context - 1) / MLA_PAGE * MLA_PAGE + MLA_PAGE,
                        .splits = 1};
    TRY(mla_plan_create(&r->append_plan, r->be, &cap, err));
    cap.batch = r->opt.max_decode;
    cap.splits = kDecodeSplits;
    TRY(mla_plan_create(&r->decode_plan, r->be, &cap, err));
cleanup:
    return st;
}

static snap_status create_cache(runner *r, snap_err *err) {
    return kv_cache_create(&r->cache, r->be, r->opt.format, r->w->blocks, r->opt.pages,
                           r->s->kv_lora_rank, r->s->qk_rope_head_dim, err);
}

/* The processor's own, with the model's threads; any other takes attention and the cache only. */
static snap_status open_backend(runner *r, snap_err *err) {
    const char *device = r->opt.device;
    /* the kernels' name for the set that gemm.h calls avx512bf16 */
    const char *isa = r->opt.isa && strcmp(r->opt.isa, "avx512bf16") == 0 ? "avx512" : r->opt.isa;
    mla_backend_options cpu = {.isa = isa, .pool = r->pool};
    mla_backend *be = NULL;
    if (!device || strcmp(device, "cpu") == 0)
        return mla_backend_open(&r->be, "cpu", &cpu, err);
    snap_status st = mla_backend_open(&be, device, NULL, err);
    if (st != SNAP_OK)
        return st;
    mla_backend_info info;
    mla_backend_describe(be, &info);
    if (!info.host_memory && r->opt.format != CACHE_BF16 && r->opt.format != CACHE_FP8) {
        mla_backend_close(be);
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "precision '%s' needs a cache in the host's memory, '%s' has its own",
                       cache_format_name(r->opt.format), info.name);
    }
    return staged_open(&r->be, be, err);
}

static snap_status open_parts(runner *r, snap_err *err) {
    snap_status st;
    bool f32 = r->opt.format == CACHE_F32;
    TRY(parallel_create(&r->pool, r->opt.threads, err));
    TRY(gemm_create(&r->g, r->pool, f32 ? GEMM_F32 : GEMM_BF16, r->opt.isa, err));
    TRY(gemm_create(&r->g32, r->pool, GEMM_F32, r->opt.isa, err));
    TRY(open_backend(r, err));
    TRY(create_plans(r, err));
    TRY(create_cache(r, err));
cleanup:
    return st;
}

static snap_status create_on_cuda(runner *r, snap_err *err) {
    snap_status st;
    mla_backend_options be = {.isa = r->opt.isa};
    int threads = r->opt.threads ? r->opt.threads : parallel_cpus();
    if (r->opt.comm && r->opt.comm->size > 1)
        TRY(err_set(err, SNAP_E_UNSUPPORTED, "the CUDA model has no sums over ranks"));
    TRY(parallel_create(&r->pool, threads < RUNNER_HOST_THREADS ? threads : RUNNER_HOST_THREADS,
                        err));
    TRY(mla_backend_open(&r->be, "cuda", &be, err));
    TRY(create_cache(r, err));
    TRY(cuda_model_create(&r->cuda, r->be, r->w, r->cache, &r->opt, err));
cleanup:
    return st;
}

static snap_status check_options(const runner_options *o, const model_shape *s, snap_err *err) {
    if (o->context < 1 || o->context > MLA_MAX_CONTEXT || o->context > s->max_position_embeddings)
        return err_set(err, SNAP_E_SHAPE, "a context of %lld tokens: the model takes %d",
                       (long long)o->context, s->max_position_embeddings);
    if (o->pages < 1 || o->pages > INT32_MAX || o->max_rows < 1 || o->max_decode < 1)
        return err_set(err, SNAP_E_SHAPE, "pages, rows and decode rows must be positive");
    return SNAP_OK;
}

static snap_status create_on_cpu(runner *r, snap_err *err) {
    snap_status st;
    if (!r->w->embed.w)
        return err_set(err, SNAP_E_UNSUPPORTED, "weights without a checkpoint need a CUDA device");
    TRY(open_parts(r, err));
    r->element = gemm_element(r->g);
    r->rope = rope_make(r->s);
    r->router = router_make(r->s);
    r->softmax_scale =
        (float)(rope_softmax_factor(r->s) / sqrt(r->s->qk_nope_head_dim + r->s->qk_rope_head_dim));
    allocator a = {.r = r};
    take_step(&a, r->opt.max_rows);
    take_rows(&a, r->opt.max_rows);
    take_decode(&a, r->opt.max_decode);
    take_experts(&a, r->opt.max_rows);
    take_chunk(&a, r->opt.max_rows);
    if (a.failed)
        return err_set(err, SNAP_E_NOMEM, "out of memory for steps of %d tokens", r->opt.max_rows);
cleanup:
    return st;
}

static snap_status choose_device(const char *name, bool *cuda, snap_err *err) {
    *cuda = name && strcmp(name, "cuda") == 0;
    if (*cuda || !name || strcmp(name, "cpu") == 0 || strcmp(name, "opencl") == 0 ||
        text_starts(name, "plugin:"))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "unknown device '%s' (cpu, cuda, opencl, plugin:PATH)", name);
}

snap_status runner_create(runner **out, const model_weights *w, const runner_options *opt,
                          snap_err *err) {
    *out = NULL;
    snap_status st;
    bool on_cuda;
    runner *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a model");
    *r = (runner){.w = w, .s = &w->shape, .opt = *opt};
    TRY(choose_device(opt->device, &on_cuda, err));
    TRY(check_options(opt, r->s, err));
    if (r->opt.max_decode > r->opt.max_rows)
        r->opt.max_decode = r->opt.max_rows;
    for (int i = 0; i < w->blocks; i++)
        r->moe_layers += w->block[i].moe;
    TRY(on_cuda ? create_on_cuda(r, err) : create_on_cpu(r, err));
    *out = r;
    r = NULL;
cleanup:
    runner_free(r);
    return st;
}

void runner_free(runner *r) {
    if (!r)
        return;
    cuda_model_free(r->cuda);
    mla_plan_free(r->append_plan);
    mla_plan_free(r->decode_plan);
    kv_cache_free(r->cache);
    mla_backend_close(r->be);
    gemm_free(r->g);
    gemm_free(r->g32);
    parallel_free(r->pool);
    arena_release(&r->mem);
    free(r);
}

kv_cache *runner_cache(runner *r) {
    return r->cache;
}

const model_shape *runner_shape(const runner *r) {
    return r->s;
}

const runner_options *runner_limits(const runner *r) {
    return &r->opt;
}

parallel *runner_pool(runner *r) {
    return r->pool;
}

snap_status runner_copy_page(runner *r, int32_t from, int32_t to, snap_err *err) {
    if (r->cuda)
        return cuda_model_copy_page(r->cuda, from, to, err);
    return kv_cache_copy_page(r->cache, from, to, err);
}

mla_backend *runner_backend(runner *r) {
    return r->be;
}

int runner_cublaslt(const runner *r) {
    return r->cuda ? cuda_model_cublaslt(r->cuda) : 0;
}

snap_status runner_fill_cache(runner *r, uint64_t seed, snap_err *err) {
    if (!r->cuda)
        return err_set(err, SNAP_E_UNSUPPORTED, "the cache is filled at random on CUDA only");
    return cuda_model_fill_cache(r->cuda, seed, err);
}

void runner_watch_experts(runner *r, int32_t *experts) {
    r->watch = experts;
}

void runner_watch_blocks(runner *r, runner_block_fn fn, void *ctx) {
    r->watch_block = fn;
    r->watch_ctx = ctx;
}

/* ---- step -------------------------------------------------------------------------------------- */

static snap_status check_piece(const runner *r, const model_piece *p, int64_t rows, snap_err *err) {
    if (p->count < 1 || p->count > r->opt.max_rows - rows || p->logits < 0 ||
        p->logits > p->count || p->position < 0 || p->position > r->opt.context - p->count)
        return err_set(err, SNAP_E_SHAPE,
                       "a piece of %d tokens at position %lld does not fit %d rows, context %lld",
                       p->count, (long long)p->position, r->opt.max_rows,
                       (long long)r->opt.context);
    for (int i = 0; i < p->count; i++)
        if (p->tokens[i] < 0 || p->tokens[i] >= r->s->vocab_size)
            return err_set(err, SNAP_E_SHAPE, "token %d is not in the vocabulary of %d",
                           (int)p->tokens[i], r->s->vocab_size);
    for (int64_t i = 0; i <= (p->position + p->count - 1) / MLA_PAGE; i++)
        if (p->pages[i] < 0 || p->pages[i] >= r->opt.pages)
            return err_set(err, SNAP_E_SHAPE, "page %d is not in the pool of %lld",
                           (int)p->pages[i], (long long)r->opt.pages);
    return SNAP_OK;
}

static void add_piece(runner *r, const model_piece *p) {
    step_state *s = &r->step;
    s->piece[s->pieces++] = (step_piece){s->rows, p->count, p->position};
    for (int i = 0; i < p->count; i++) {
        int row = s->rows++;
        int64_t at = p->position + i;
        s->token[row] = p->tokens[i];
        s->position[row] = at;
        s->length[row] = (int32_t)(at + 1);
        memcpy(s->table + (int64_t)row * s->table_width, p->pages,
               (size_t)(at / MLA_PAGE + 1) * sizeof *s->table);
        rope_angles(&r->rope, at, s->cosine + (int64_t)row * r->rope.pairs,
                    s->sine + (int64_t)row * r->rope.pairs);
    }
}

/* A piece that is decoded: of one token that no prompt brought; the debugging cache has no arm. */
static bool is_decode(const runner *r, const model_piece *p) {
    return p->count == 1 && !p->chunk && r->opt.format != CACHE_F32;
}

static snap_status check_pieces(const runner *r, const model_piece *pieces, int count,
                                snap_err *err) {
    int64_t rows = 0;
    for (int i = 0; i < count; i++) {
        snap_status st = check_piece(r, &pieces[i], rows, err);
        if (st != SNAP_OK)
            return st;
        rows += pieces[i].count;
    }
    return SNAP_OK;
}

static snap_status begin(runner *r, const model_piece *pieces, int count, snap_err *err) {
    step_state *s = &r->step;
    s->rows = s->decode = s->pieces = r->moe_layer = 0;
    for (int i = 0; i < count; i++)
        if (is_decode(r, &pieces[i]))
            add_piece(r, &pieces[i]);
    s->decode = s->rows;
    for (int i = 0; i < count; i++)
        if (!is_decode(r, &pieces[i]))
            add_piece(r, &pieces[i]);
    if (s->decode > r->opt.max_decode)
        return err_set(err, SNAP_E_SHAPE, "%d sequences in a step of at most %d", s->decode,
                       r->opt.max_decode);
    s->all = (mla_step){s->rows, 1, s->length, s->table, s->table_width};
    s->decoding = s->all;
    s->decoding.batch = s->decode;
    return s->decode ? mla_schedule(r->decode_plan, &s->decoding, err) : SNAP_OK;
}

void runner_rows(runner *r, int64_t count, parallel_fn fn, void *ctx) {
    if (count > kFewRows) {
        parallel_for(r->pool, count, fn, ctx);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        fn(ctx, 0, i);
}

void rms_norm(const float *x, const float *weight, int n, double eps, float factor, float *out) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    float scale = (float)(1 / sqrt(sum / n + eps)) * factor;
    for (int i = 0; i < n; i++)
        out[i] = x[i] * scale * weight[i];
}

typedef struct {
    runner *r;
    const float *weight;
} norm_context;

static void normalise_row(void *ctx, int worker, int64_t i) {
    (void)worker;
    const norm_context *c = ctx;
    runner *r = c->r;
    int n = r->s->hidden_size;
    rms_norm(r->b.x + i * n, c->weight, n, r->s->rms_norm_eps, 1, r->b.h + i * n);
    gemm_pack(r->g, (char *)r->b.packed + (size_t)(i * n) * r->element, r->b.h + i * n, n);
}

void runner_normalise(runner *r, const float *weight) {
    norm_context ctx = {r, weight};
    runner_rows(r, r->step.rows, normalise_row, &ctx);
}

static void embed(runner *r) {
    int n = r->s->hidden_size;
    for (int i = 0; i < r->step.rows; i++) {
        float *x = r->b.x + (int64_t)i * n;
        mat_read_row(&r->w->embed, r->step.token[i], x);
        for (int j = 0; j < n; j++)
            x[j] *= (float)r->s->scale_emb;
    }
}

/* x += scale * h */
static void add(float *x, const float *h, int64_t n, float scale) {
    for (int64_t i = 0; i < n; i++)
        x[i] += scale * h[i];
}

static void tell_block(runner *r, int block) {
    const model_shape *s = r->s;
    int64_t heads = s->num_attention_heads, width = s->kv_lora_rank + s->qk_rope_head_dim,
            qk = s->qk_nope_head_dim + s->qk_rope_head_dim;
    for (int64_t i = 0; i < r->step.rows; i++) {
        runner_block_view v = {.block = block,
                               .row = (int)i,
                               .query = r->b.q + i * heads * qk,
                               .absorbed =
                                   i < r->step.decode ? r->b.absorbed + i * heads * width : NULL,
                               .x = r->b.x + i * s->hidden_size};
        r->watch_block(r->watch_ctx, &v);
    }
}

static snap_status run_block(runner *r, int block, snap_err *err) {
    snap_status st;
    const model_shape *s = r->s;
    const block_weights *k = &r->w->block[block];
    bool joins = block > 0 && r->w->block[block - 1].shortcut;
    int64_t n = (int64_t)r->step.rows * s->hidden_size;
    float branch = s->arch == ARCH_MINICPM3
                       ? (float)(s->scale_depth / sqrt((double)s->num_hidden_layers))
                       : 1.0f;
    runner_normalise(r, k->input_norm);
    TRY(attention_forward(r, block, err));
    TRY(comm_sum(r->opt.comm, r->b.h, n, err));
    add(r->b.x, r->b.h, n, branch);
    runner_normalise(r, k->post_norm);
    /* The normalised rows stay in h, which the zero-computation experts give back. */
    float *sum = k->shortcut ? r->b.shortcut : r->b.out;
    if (k->moe) {
        memset(sum, 0, (size_t)n * sizeof *sum);
        TRY(moe_forward(r, &k->experts, sum, err));
        TRY(comm_sum(r->opt.comm, sum, n, err));
    }
    if (k->dense) {
        memset(r->b.out, 0, (size_t)n * sizeof *r->b.out);
        TRY(ffn_forward(r, &k->ffn, s->intermediate_size, r->b.out, err));
        TRY(comm_sum(r->opt.comm, r->b.out, n, err));
    }
    add(r->b.x, r->b.out, n, branch);
    if (joins)
        add(r->b.x, r->b.shortcut, n, 1);
    if (r->watch_block)
        tell_block(r, block);
cleanup:
    return st;
}

/* Rows of the step by the order of the caller's pieces: the first row of piece @i. */
static int first_row(const runner *r, const model_piece *pieces, int i) {
    int row = is_decode(r, &pieces[i]) ? 0 : r->step.decode;
    for (int j = 0; j < i; j++)
        if (is_decode(r, &pieces[j]) == is_decode(r, &pieces[i]))
            row += pieces[j].count;
    return row;
}

static snap_status head(runner *r, const model_piece *pieces, int count, float *logits,
                        snap_err *err) {
    const model_shape *s = r->s;
    int n = s->hidden_size, rows = 0;
    float factor = s->arch == ARCH_MINICPM3 ? (float)(s->dim_model_base / n) : 1.0f;
    for (int i = 0; i < count; i++) {
        int end = first_row(r, pieces, i) + pieces[i].count;
        for (int row = end - pieces[i].logits; row < end; row++, rows++) {
            float *h = r->b.h + (int64_t)rows * n;
            rms_norm(r->b.x + (int64_t)row * n, r->w->norm, n, s->rms_norm_eps, factor, h);
            gemm_pack(r->g, (char *)r->b.packed + (size_t)rows * (size_t)n * r->element, h, n);
        }
    }
    gemm_job job = {
        .w = r->w->head, .x = r->b.packed, .ldx = n, .m = rows, .y = logits, .ldy = s->vocab_size};
    return gemm_run(r->g, &job, 1, err);
}

snap_status runner_step(runner *r, const model_piece *pieces, int count, float *logits,
                        snap_err *err) {
    snap_status st;
    TRY(check_pieces(r, pieces, count, err));
    if (r->cuda) {
        cuda_model_results out = {.logits = logits, .experts = r->watch};
        return cuda_model_step(r->cuda, pieces, count, &out, err);
    }
    TRY(begin(r, pieces, count, err));
    embed(r);
    for (int i = 0; i < r->w->blocks; i++)
        TRY(run_block(r, i, err));
    TRY(head(r, pieces, count, logits, err));
cleanup:
    return st;
}

snap_status runner_step_read(runner *r, const model_piece *pieces, int count, const reading *wanted,
                             reading_answer *got, float *logits, snap_err *err) {
    snap_status st;
    int64_t rows = 0;
    TRY(check_pieces(r, pieces, count, err));
    if (r->cuda) {
        cuda_model_results out = {
            .logits = logits, .experts = r->watch, .wanted = wanted, .got = got};
        return cuda_model_step(r->cuda, pieces, count, &out, err);
    }
    for (int i = 0; i < count; i++)
        rows += pieces[i].logits;
    for (int64_t i = 0; i < rows; i++)
        got[i] = (reading_answer){.kind = READ_LOGITS};
    TRY(runner_step(r, pieces, count, logits, err));
cleanup:
    return st;
}

static int32_t likeliest(const float *logits, int vocab) {
    int32_t best = 0;
    for (int32_t i = 1; i < vocab; i++)
        if (logits[i] > logits[best] || (isnan(logits[best]) && !isnan(logits[i])))
            best = i;
    return best;
}

static snap_status step_and_choose(runner *r, const model_piece *pieces, int count, int32_t *next,
                                   snap_err *err) {
    int64_t rows = 0, vocab = r->s->vocab_size;
    for (int i = 0; i < count; i++)
        rows += pieces[i].logits;
    float *logits = calloc((size_t)(rows * vocab) + 1, sizeof *logits);
    if (!logits)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld rows of logits", (long long)rows);
    snap_status st = runner_step(r, pieces, count, logits, err);
    for (int64_t i = 0; i < rows && st == SNAP_OK; i++)
        next[i] = likeliest(logits + i * vocab, (int)vocab);
    free(logits);
    return st;
}

snap_status runner_step_greedy(runner *r, const model_piece *pieces, int count, int32_t *next,
                               snap_err *err) {
    snap_status st;
    TRY(check_pieces(r, pieces, count, err));
    if (!r->cuda)
        return step_and_choose(r, pieces, count, next, err);
    cuda_model_results out = {.next = next, .experts = r->watch};
    TRY(cuda_model_step(r->cuda, pieces, count, &out, err));
cleanup:
    return st;
}
