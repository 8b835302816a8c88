#include "harness/bench/e2e.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "harness/measure/stats.h"

enum { kWarmup = 3, kLeastSamples = 5, kMostSamples = 2000 };

/* ---- the work of a step ---- */

static double attention_numbers(const model_shape *s) {
    double hidden = s->hidden_size, heads = s->num_attention_heads, rank = s->kv_lora_rank,
           queries = heads * (s->qk_nope_head_dim + s->qk_rope_head_dim),
           q = s->q_lora_rank ? s->q_lora_rank * (hidden + queries) : hidden * queries;
    return q + hidden * (rank + s->qk_rope_head_dim) +
           rank * heads * (s->qk_nope_head_dim + s->v_head_dim) + heads * s->v_head_dim * hidden;
}

typedef struct {
    double attention, dense, sparse; /* number of blocks of each kind in the model */
} block_counts;

static block_counts count_blocks(const model_shape *s) {
    block_counts c = {0};
    bool longcat = s->arch == ARCH_LONGCAT_FLASH;
    for (int i = 0; i < s->num_hidden_layers; i++) {
        bool sparse = longcat || shape_is_sparse(s, i);
        c.attention += longcat ? 2 : 1;
        c.dense += longcat ? 2 : !sparse;
        c.sparse += sparse;
    }
    return c;
}

static double expert_numbers(const model_shape *s) {
    return 3.0 * s->hidden_size * s->moe_intermediate_size;
}

/* Weights of the dense products outside the routed experts and the router. */
static double fixed_numbers(const model_shape *s) {
    block_counts c = count_blocks(s);
    return c.attention * attention_numbers(s) +
           c.dense * 3.0 * s->hidden_size * s->intermediate_size +
           c.sparse * s->n_shared_experts * expert_numbers(s) +
           (double)s->vocab_size * s->hidden_size;
}

double e2e_weight_bytes(const model_shape *s, double experts) {
    double router = count_blocks(s).sparse * s->hidden_size *
                    (double)(s->n_routed_experts + s->zero_expert_num);
    return 2 * (fixed_numbers(s) + experts * expert_numbers(s)) + 4 * router;
}

double e2e_prompt_flop(const model_shape *s, double tokens) {
    block_counts c = count_blocks(s);
    double routed = s->num_experts_per_tok * (double)s->n_routed_experts /
                    fmax(1, s->n_routed_experts + s->zero_expert_num),
           head = (double)s->vocab_size * s->hidden_size,
           products = fixed_numbers(s) - head + c.sparse * routed * expert_numbers(s),
           pairs = tokens * (tokens + 1) / 2 * s->num_attention_heads,
           widths = s->qk_nope_head_dim + s->qk_rope_head_dim + s->v_head_dim;
    return 2 * (tokens * products + head + c.attention * pairs * widths);
}

/* ---- a model with a full cache ---- */

typedef struct {
    const e2e_options *opt;
    kv_format arm;
    runner *r;
    const model_shape *shape;
    int64_t pool; /* pages */
    int most_batch, moe_layers;
    int32_t *pages, *next, *experts; /* [pool], [most_batch], [most_batch][MoE layers][experts of a
                                        token] */
    model_piece *piece;              /* [most_batch] */
    int32_t *prompt;                 /* [opt->prompt] */
    double samples[kMostSamples + 1];
} bench;

static int64_t pages_for(int64_t tokens) {
    return (tokens - 1) / MLA_PAGE + 1;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t token_bytes(const bench *b, int blocks) {
    return (int64_t)mla_cache_token_bytes(cache_precision(b->arm), b->shape->kv_lora_rank,
                                          b->shape->qk_rope_head_dim) *
           blocks;
}

/* The number of sequences that a result row decodes. @named > 0: that number, or 0 if the pool is
 * too small for it. @named 0: as many as the pool holds, but at most E2E_MOST_BATCH; 0 if it holds
 * none. */
static int batch_of(const bench *b, int64_t named, int64_t context) {
    int64_t room = b->pool / pages_for(context);
    if (named)
        return room >= named ? (int)named : 0;
    return (int)(room < E2E_MOST_BATCH ? room : E2E_MOST_BATCH);
}

static void size_pool(bench *b, int blocks) {
    const e2e_options *o = b->opt;
    b->pool = o->prompt ? pages_for(o->prompt) : 1;
    for (int i = 0; i < o->n_contexts; i++)
        for (int j = 0; j < o->n_batches; j++)
            b->pool = larger(b->pool, o->batches[j] * pages_for(o->contexts[i]));
    if (o->cache_bytes)
        b->pool = larger(1, o->cache_bytes / (token_bytes(b, blocks) * MLA_PAGE));
    for (int i = 0; i < o->n_contexts; i++)
        for (int j = 0; j < o->n_batches; j++) {
            int batch = batch_of(b, o->batches[j], o->contexts[i]);
            b->most_batch = batch > b->most_batch ? batch : b->most_batch;
        }
    b->most_batch = b->most_batch ? b->most_batch : 1;
}

/* Refuses a --memory that is too small for the prompt. (A decode row that does not fit gets batch 0
 * and no times, because others of the list may fit.) */
static snap_status check_prompt(bench *b, int blocks, snap_err *err) {
    int64_t page = token_bytes(b, blocks) * MLA_PAGE, need = pages_for(b->opt->prompt);
    size_pool(b, blocks);
    if (!b->opt->prompt || b->pool >= need)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "%s: a prompt of %lld tokens needs %.2g GB of cache, --memory gives %.2g GB",
                   kv_format_name(b->arm), (long long)b->opt->prompt, (double)(need * page) * 1e-9,
                   (double)b->opt->cache_bytes * 1e-9);
}

static snap_status allocate(bench *b, snap_err *err) {
    size_t batch = (size_t)b->most_batch,
           chosen = (size_t)b->moe_layers * (size_t)b->shape->num_experts_per_tok;
    b->pages = calloc((size_t)b->pool, sizeof *b->pages);
    b->next = calloc(batch, sizeof *b->next);
    b->experts = calloc(batch * chosen + 1, sizeof *b->experts);
    b->piece = calloc(batch, sizeof *b->piece);
    b->prompt = calloc((size_t)b->opt->prompt + 1, sizeof *b->prompt);
    if (!b->pages || !b->next || !b->experts || !b->piece || !b->prompt)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    for (int64_t i = 0; i < b->pool; i++)
        b->pages[i] = (int32_t)i;
    for (int64_t i = 0; i < b->opt->prompt; i++)
        b->prompt[i] = (int32_t)(i * 7919 % b->shape->vocab_size);
    return SNAP_OK;
}

static snap_status bench_open(bench *b, const model_weights *w, snap_err *err) {
    snap_status st;
    const e2e_options *o = b->opt;
    int64_t longest = o->prompt;
    for (int i = 0; i < o->n_contexts; i++)
        longest = larger(longest, o->contexts[i]);
    for (int i = 0; i < w->blocks; i++)
        b->moe_layers += w->block[i].moe;
    size_pool(b, w->blocks);
    runner_options how = {.format = b->arm,
                          .pages = b->pool,
                          .context = longest,
                          .max_rows = (int)larger(b->most_batch + 1, o->prompt),
                          .max_decode = b->most_batch,
                          .device = o->device,
                          .isa = o->isa};
    TRY(allocate(b, err));
    TRY(runner_create(&b->r, w, &how, err));
    TRY(runner_fill_cache(b->r, 1, err));
cleanup:
    return st;
}

static void bench_close(bench *b) {
    runner_free(b->r);
    free(b->pages);
    free(b->next);
    free(b->experts);
    free(b->piece);
    free(b->prompt);
}

/* ---- rows ---- */

typedef snap_status (*step_fn)(bench *b, const e2e_row *row, snap_err *err);

static snap_status decode_once(bench *b, const e2e_row *row, snap_err *err) {
    int64_t each = pages_for(row->context);
    for (int i = 0; i < row->batch; i++)
        b->piece[i] = (model_piece){.tokens = &b->next[i],
                                    .count = 1,
                                    .position = row->context - 1,
                                    .pages = b->pages + i * each,
                                    .logits = 1};
    return runner_step_greedy(b->r, b->piece, row->batch, b->next, err);
}

static snap_status prompt_once(bench *b, const e2e_row *row, snap_err *err) {
    model_piece p = {.tokens = b->prompt,
                     .count = (int)row->context,
                     .pages = b->pages,
                     .logits = 1,
                     .chunk = true};
    return runner_step_greedy(b->r, &p, 1, b->next, err);
}

static snap_status time_row(bench *b, step_fn step, e2e_row *row, snap_err *err) {
    snap_status st;
    double spent = 0;
    for (int i = 0; i < kWarmup; i++)
        TRY(step(b, row, err));
    while (row->samples < kMostSamples &&
           (row->samples < kLeastSamples || spent < b->opt->seconds * 1e9)) {
        if (b->opt->cancel && *b->opt->cancel)
            TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
        int64_t start = clock_now_ns();
        TRY(step(b, row, err));
        double ns = (double)(clock_now_ns() - start);
        stats_insert(b->samples, (size_t)row->samples++, ns);
        spent += ns;
    }
    stats_summary s = stats_summarise(b->samples, (size_t)row->samples);
    row->median_ns = s.median;
    row->cublaslt = runner_cublaslt(b->r);
    row->best_ns = s.min;
    row->worst_ns = s.max;
cleanup:
    return st;
}

/* How many different routed experts the tokens of the last step chose, summed over the layers. */
static double chosen_experts(const bench *b, int batch) {
    double all = 0;
    int k = b->shape->num_experts_per_tok, routed = b->shape->n_routed_experts;
    for (int l = 0; l < b->moe_layers; l++)
        for (int e = 0; e < routed; e++) {
            bool any = false;
            for (int i = 0; i < batch * k && !any; i++)
                any = b->experts[((int64_t)(i / k) * b->moe_layers + l) * k + i % k] == e;
            all += any;
        }
    return all;
}

static snap_status decode_row(bench *b, int blocks, e2e_row *row, snap_err *err) {
    snap_status st;
    if (!row->batch)
        return SNAP_OK;
    TRY(time_row(b, decode_once, row, err));
    runner_watch_experts(b->r, b->experts);
    TRY(decode_once(b, row, err));
    runner_watch_experts(b->r, NULL);
    row->weight_bytes = e2e_weight_bytes(b->shape, chosen_experts(b, row->batch));
    row->cache_bytes = (double)(row->batch * row->context * token_bytes(b, blocks));
    row->floor_ns = (row->weight_bytes + row->cache_bytes) / b->opt->ceilings->read.rate * 1e9;
cleanup:
    return st;
}

static snap_status prompt_row(bench *b, e2e_row *row, snap_err *err) {
    row->flop = e2e_prompt_flop(b->shape, (double)row->context);
    row->floor_ns = row->flop / b->opt->ceilings->bf16.rate * 1e9;
    return time_row(b, prompt_once, row, err);
}

static snap_status run_arm(bench *b, int blocks, e2e_row *rows, int *n, snap_err *err) {
    snap_status st = SNAP_OK;
    const e2e_options *o = b->opt;
    for (int i = 0; i < o->n_contexts; i++)
        for (int j = 0; j < o->n_batches; j++) {
            e2e_row *row = &rows[*n];
            *row = (e2e_row){.arm = b->arm,
                             .context = o->contexts[i],
                             .batch = batch_of(b, o->batches[j], o->contexts[i]),
                             .largest = o->batches[j] == 0};
            TRY(decode_row(b, blocks, row, err));
            ++*n;
        }
    if (o->prompt) {
        rows[*n] = (e2e_row){.arm = b->arm, .context = o->prompt, .batch = 1, .prompt = true};
        TRY(prompt_row(b, &rows[*n], err));
        ++*n;
    }
cleanup:
    return st;
}

snap_status e2e_run(const e2e_options *opt, e2e_row *rows, int *n, snap_err *err) {
    snap_status st;
    model_weights w = {0};
    bench *b = calloc(1, sizeof *b);
    *n = 0;
    if (!b)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    if (opt->n_arms * (opt->n_contexts * opt->n_batches + 1) > E2E_ROWS) {
        st = err_set(err, SNAP_E_USAGE, "more than %d rows", E2E_ROWS);
        goto cleanup;
    }
    TRY(weights_outline(&w, opt->shape, err));
    for (int a = 0; a < opt->n_arms; a++) {
        *b = (bench){.opt = opt, .arm = opt->arms[a], .shape = opt->shape};
        TRY(check_prompt(b, w.blocks, err));
    }
    for (int a = 0; a < opt->n_arms; a++) {
        *b = (bench){.opt = opt, .arm = opt->arms[a], .shape = opt->shape};
        st = bench_open(b, &w, err);
        if (st == SNAP_OK)
            st = run_arm(b, w.blocks, rows, n, err);
        bench_close(b);
        TRY(st);
    }
cleanup:
    free(b);
    weights_release(&w);
    return st;
}
