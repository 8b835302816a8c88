/* Runs a step on the CPU: turns pieces into rows, runs them through the blocks, and computes the
 * wanted logits. With the device "cuda", only checks the pieces and passes them to cuda_model.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/model/model_parts.h"

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
    s->piece[s->pieces++] = (step_piece){s->rows, p->count, p->position, p->padding};
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

/* Whether a piece is decoded: it has one token and is not part of a prompt. CACHE_F32 has no
 * attention arm, so all its pieces are chunks. */
static bool is_decode(const runner *r, const model_piece *p) {
    return p->count == 1 && !p->chunk && r->opt.format != CACHE_F32;
}

snap_status runner_check_pieces(const runner *r, const model_piece *pieces, int count,
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

/* h (float) and packed (operand) = the normalised residual stream */
static void normalise(runner *r, const float *weight) {
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

static void report_block(runner *r, int block) {
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
    normalise(r, k->input_norm);
    TRY(attention_forward(r, block, err));
    TRY(comm_sum(r->opt.comm, r->b.h, n, err));
    add(r->b.x, r->b.h, n, branch);
    normalise(r, k->post_norm);
    /* h keeps the normalised rows unpacked: a zero-computation expert (of LongCat) returns its row
     * of h as its output. */
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
        report_block(r, block);
cleanup:
    return st;
}

/* The first row of the caller's piece @i. */
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

static snap_status run_blocks(runner *r, const model_piece *pieces, int count, snap_err *err) {
    snap_status st;
    TRY(begin(r, pieces, count, err));
    embed(r);
    for (int i = 0; i < r->w->blocks; i++)
        TRY(run_block(r, i, err));
cleanup:
    return st;
}

static snap_status run_on_cpu(runner *r, const model_piece *pieces, int count, float *logits,
                              snap_err *err) {
    snap_status st;
    TRY(run_blocks(r, pieces, count, err));
    TRY(head(r, pieces, count, logits, err));
cleanup:
    return st;
}

/* ---- logits that are not finite ---- */

/* The loop has no branch, so that the compiler can vectorise it. */
static bool is_finite(const float *x, int n) {
    uint32_t largest = 0;
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f800000u;
}

typedef struct {
    const float *logits;
    int vocab;
    reading_result *got;
} finite_context;

static void check_row(void *ctx, int worker, int64_t i) {
    (void)worker;
    const finite_context *c = ctx;
    bool finite = is_finite(c->logits + i * c->vocab, c->vocab);
    c->got[i] = (reading_result){.kind = finite ? READ_LOGITS : READ_NOT_FINITE};
}

static int64_t wanted_rows(const model_piece *pieces, int count) {
    int64_t rows = 0;
    for (int i = 0; i < count; i++)
        rows += pieces[i].logits;
    return rows;
}

/* The error for row @row of the logits of a step. */
static snap_status refuse_row(const runner *r, const model_piece *pieces, int count, int64_t row,
                              snap_err *err) {
    int i = 0;
    while (row >= pieces[i].logits)
        row -= pieces[i++].logits;
    int64_t position = pieces[i].position + pieces[i].count - pieces[i].logits + row;
    snap_status st = runner_not_finite(r, position, err);
    if (count > 1)
        err_prefix(err, "sequence %d of %d", i + 1, count);
    return st;
}

static snap_status check_rows(const runner *r, const model_piece *pieces, int count,
                              const float *logits, snap_err *err) {
    int64_t rows = wanted_rows(pieces, count);
    for (int64_t i = 0; i < rows; i++)
        if (!is_finite(logits + i * r->s->vocab_size, r->s->vocab_size))
            return refuse_row(r, pieces, count, i, err);
    return SNAP_OK;
}

/* Runs a step on "cuda" in which a row that is not finite is an error. */
static snap_status run_on_cuda(runner *r, const model_piece *pieces, int count, float *logits,
                               int32_t *next, snap_err *err) {
    int64_t bad = -1;
    cuda_model_results out = {.logits = logits,
                              .next = next,
                              .experts = r->watch,
                              .not_finite = &bad,
                              .stats = &r->stats};
    snap_status st = cuda_model_step(r->cuda, pieces, count, &out, err);
    return st == SNAP_OK && bad >= 0 ? refuse_row(r, pieces, count, bad, err) : st;
}

/* ---- steps ---- */

snap_status runner_step(runner *r, const model_piece *pieces, int count, float *logits,
                        snap_err *err) {
    snap_status st;
    TRY(runner_check_pieces(r, pieces, count, err));
    TRY(calls_send_step(r, pieces, count, err));
    if (r->cuda)
        return calls_end(r, run_on_cuda(r, pieces, count, logits, NULL, err), err);
    TRY(calls_end(r, run_on_cpu(r, pieces, count, logits, err), err));
    TRY(check_rows(r, pieces, count, logits, err));
cleanup:
    return st;
}

snap_status runner_step_unread(runner *r, const model_piece *pieces, int count, snap_err *err) {
    snap_status st;
    cuda_model_results nothing = {.stats = &r->stats};
    TRY(runner_check_pieces(r, pieces, count, err));
    TRY(r->cuda ? cuda_model_step(r->cuda, pieces, count, &nothing, err)
                : run_blocks(r, pieces, count, err));
cleanup:
    return st;
}

static snap_status step_and_read(runner *r, const model_piece *pieces, int count,
                                 const reading *wanted, reading_result *got, float *logits,
                                 snap_err *err) {
    snap_status st;
    TRY(runner_check_pieces(r, pieces, count, err));
    TRY(calls_send_step(r, pieces, count, err));
    if (r->cuda) {
        cuda_model_results out = {.logits = logits,
                                  .experts = r->watch,
                                  .wanted = wanted,
                                  .got = got,
                                  .stats = &r->stats};
        return calls_end(r, cuda_model_step(r->cuda, pieces, count, &out, err), err);
    }
    TRY(calls_end(r, run_on_cpu(r, pieces, count, logits, err), err));
    finite_context ctx = {logits, r->s->vocab_size, got};
    runner_rows(r, wanted_rows(pieces, count), check_row, &ctx);
cleanup:
    return st;
}

snap_status runner_step_read(runner *r, const model_piece *pieces, int count, const reading *wanted,
                             reading_result *got, float *logits, snap_err *err) {
    if (r->link)
        return remote_step(&(runner_batch){r, pieces, count, wanted, got, logits}, err);
    watchdog_begin_step(r->dog);
    snap_status st = step_and_read(r, pieces, count, wanted, got, logits, err);
    watchdog_end(r->dog);
    return st;
}

static int32_t likeliest(const float *logits, int vocab) {
    int32_t best = 0;
    for (int32_t i = 1; i < vocab; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

static snap_status step_and_choose(runner *r, const model_piece *pieces, int count, int32_t *next,
                                   snap_err *err) {
    int64_t rows = wanted_rows(pieces, count), vocab = r->s->vocab_size;
    float *logits = calloc((size_t)(rows * vocab) + 1, sizeof *logits);
    if (!logits)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld rows of logits", (long long)rows);
    snap_status st = runner_step(r, pieces, count, logits, err);
    for (int64_t i = 0; i < rows && st == SNAP_OK; i++)
        next[i] = likeliest(logits + i * vocab, (int)vocab);
    free(logits);
    return st;
}

snap_status runner_time_parts(runner *r, const model_piece *pieces, int count, int steps,
                              double *ns, double *waiting_ns, snap_err *err) {
    snap_status st;
    TRY(runner_check_pieces(r, pieces, count, err));
    if (!r->cuda)
        return err_set(err, SNAP_E_UNSUPPORTED, "parts of a step are timed on CUDA only");
    TRY(cuda_model_time_parts(r->cuda, pieces, count, steps, ns, waiting_ns, err));
cleanup:
    return st;
}

snap_status runner_step_greedy(runner *r, const model_piece *pieces, int count, int32_t *next,
                               snap_err *err) {
    snap_status st;
    TRY(runner_check_pieces(r, pieces, count, err));
    if (!r->cuda)
        return step_and_choose(r, pieces, count, next, err);
    TRY(calls_send_step(r, pieces, count, err));
    TRY(calls_end(r, run_on_cuda(r, pieces, count, NULL, next, err), err));
cleanup:
    return st;
}
