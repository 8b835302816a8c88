#include "harness/bench/e2e.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "generator/local/split.h"
#include "harness/bench/step_work.h"
#include "harness/bench/together.h"
#include "harness/measure/stats.h"

enum { kWarmup = 3, kLeastSamples = 5, kMostSamples = 2000, kPartSteps = 10 };
static const double kWeightsLimit = 120; /* seconds */

/* ---- a model with a full cache ---- */

typedef struct {
    const e2e_options *opt;
    kv_format arm;
    runner *r;
    const model_weights *w;
    const model_shape *shape;
    model_shape held; /* a copy of *shape, with fp8_block 0 if the device has no e4m3 weights */
    int64_t pool;     /* pages */
    int replica;      /* of this rank */
    int ranks;        /* in the group */
    int most_batch, moe_layers;
    int now;                         /* sequences that this rank decodes in the present row */
    int32_t *pages, *next, *experts; /* [pool], [most_batch], [most_batch][MoE layers][experts of a
                                        token] */
    model_piece *piece;              /* [most_batch] */
    int32_t *prompt;                 /* [opt->prompt] */
    double samples[kMostSamples + 1];
    double *rank_samples; /* [ranks][kMostSamples] */
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

/* The number of sequences that replica @replica decodes in a result row. @named > 0: its share of
 * that number, or 0 if the pool of some replica is too small for it. @named 0: as many as the pool
 * holds, but at most E2E_MOST_BATCH; 0 if it holds none. */
static int batch_of(const bench *b, int replica, int64_t named, int64_t context) {
    const rank_layout *l = &b->opt->layout;
    int64_t room = b->pool / pages_for(context);
    if (named)
        return room >= rank_layout_share(l, 0, named) ? (int)rank_layout_share(l, replica, named)
                                                      : 0;
    return (int)(room < E2E_MOST_BATCH ? room : E2E_MOST_BATCH);
}

/* The number of sequences of all replicas. */
static int whole_batch(const bench *b, int64_t named, int64_t context) {
    int all = 0;
    for (int i = 0; i < b->opt->layout.replicas; i++)
        all += batch_of(b, i, named, context);
    return all;
}

int64_t e2e_most_rows(const e2e_options *o) {
    int64_t most = 1;
    for (int j = 0; j < o->n_batches; j++)
        most = larger(most, o->batches[j] ? rank_layout_share(&o->layout, 0, o->batches[j])
                                          : E2E_MOST_BATCH);
    return larger(most + 1, o->prompt);
}

static void size_pool(bench *b, int blocks) {
    const e2e_options *o = b->opt;
    b->pool = o->prompt ? pages_for(o->prompt) : 1;
    for (int i = 0; i < o->n_contexts; i++)
        for (int j = 0; j < o->n_batches; j++)
            b->pool = larger(b->pool, rank_layout_share(&o->layout, 0, o->batches[j]) *
                                          pages_for(o->contexts[i]));
    if (o->cache_bytes)
        b->pool = larger(1, o->cache_bytes / (token_bytes(b, blocks) * MLA_PAGE));
    for (int i = 0; i < o->n_contexts; i++)
        for (int j = 0; j < o->n_batches; j++) {
            int batch = batch_of(b, 0, o->batches[j], o->contexts[i]);
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
    b->rank_samples = calloc((size_t)b->ranks * kMostSamples, sizeof *b->rank_samples);
    if (!b->pages || !b->next || !b->experts || !b->piece || !b->prompt || !b->rank_samples)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    for (int64_t i = 0; i < b->pool; i++)
        b->pages[i] = (int32_t)i;
    for (int64_t i = 0; i < b->opt->prompt; i++)
        b->prompt[i] = (int32_t)((i + b->replica) * 7919 % b->shape->vocab_size);
    return SNAP_OK;
}

/* Waits until all ranks have made their weights. That may take longer than an exchange. */
static snap_status wait_for_models(ranks *group, snap_err *err) {
    if (!group)
        return SNAP_OK;
    double before = ranks_set_limit(group, kWeightsLimit);
    snap_status st = ranks_all_gather(group, "the weights", NULL, 0, NULL, err);
    (void)ranks_set_limit(group, before);
    return st;
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
                          .isa = o->isa,
                          .comm = o->comm,
                          .experts = o->experts};
    b->w = w;
    TRY(allocate(b, err));
    TRY(runner_create(&b->r, w, &how, err));
    b->held = *b->shape;
    if (!runner_holds_e4m3(b->r))
        b->held.fp8_block = 0;
    /* Replicas have different contents, so that with EP their rows choose different experts. */
    TRY(runner_fill_cache(b->r, (uint64_t)(1 + b->replica), err));
    TRY(wait_for_models(o->group, err));
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
    free(b->rank_samples);
}

/* ---- rows ---- */

typedef snap_status (*step_fn)(bench *b, const e2e_row *row, snap_err *err);

static void set_pieces(bench *b, const e2e_row *row) {
    int64_t each = pages_for(row->context);
    for (int i = 0; i < b->now; i++)
        b->piece[i] = (model_piece){.tokens = &b->next[i],
                                    .count = 1,
                                    .position = row->context - 1,
                                    .pages = b->pages + i * each,
                                    .logits = 1};
}

/* A replica without a sequence has nothing to do. */
static snap_status decode_once(bench *b, const e2e_row *row, snap_err *err) {
    set_pieces(b, row);
    return b->now ? runner_step_greedy(b->r, b->piece, b->now, b->next, err) : SNAP_OK;
}

static snap_status prompt_once(bench *b, const e2e_row *row, snap_err *err) {
    model_piece p = {.tokens = b->prompt,
                     .count = (int)row->context,
                     .pages = b->pages,
                     .logits = 1,
                     .chunk = true};
    return runner_step_greedy(b->r, &p, 1, b->next, err);
}

/* Adds the times of a step on all ranks to the samples, and returns the longest. */
static double add_sample(bench *b, e2e_row *row, const double *ns) {
    double slowest = 0;
    for (int r = 0; r < b->ranks; r++) {
        stats_insert(b->rank_samples + (size_t)r * kMostSamples, (size_t)row->samples, ns[r]);
        slowest = fmax(slowest, ns[r]);
    }
    stats_insert(b->samples, (size_t)row->samples++, slowest);
    return slowest;
}

static void summarise(const bench *b, e2e_row *row) {
    stats_summary s = stats_summarise(b->samples, (size_t)row->samples);
    row->median_ns = s.median;
    row->best_ns = s.min;
    row->worst_ns = s.max;
    for (int r = 0; r < b->ranks && r < E2E_RANKS; r++)
        row->rank_ns[r] =
            stats_summarise(b->rank_samples + (size_t)r * kMostSamples, (size_t)row->samples)
                .median;
}

/* All ranks have the times of all, so they take the same number of samples. */
static snap_status time_row(bench *b, step_fn step, e2e_row *row, snap_err *err) {
    snap_status st;
    double spent = 0, ns[RANKS_MOST];
    for (int i = 0; i < kWarmup; i++)
        TRY(step(b, row, err));
    TRY(together_meet(b->opt->group, 0, ns, err));
    while (row->samples < kMostSamples &&
           (row->samples < kLeastSamples || spent < b->opt->seconds * 1e9)) {
        if (b->opt->cancel && *b->opt->cancel)
            TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
        int64_t start = clock_now_ns();
        TRY(step(b, row, err));
        TRY(together_meet(b->opt->group, (double)(clock_now_ns() - start), ns, err));
        spent += add_sample(b, row, ns);
    }
    summarise(b, row);
    row->cublaslt = runner_cublaslt(b->r);
cleanup:
    return st;
}

typedef struct {
    bench *b;
    const e2e_row *row;
    step_fn step;
} energy_step;

static snap_status run_energy_step(void *ctx, snap_err *err) {
    const energy_step *e = ctx;
    return e->step(e->b, e->row, err);
}

/* Measures the energy of the steps that time_row() has timed. */
static snap_status measure_energy(bench *b, step_fn step, e2e_row *row, snap_err *err) {
    const e2e_options *o = b->opt;
    energy_step of = {b, row, step};
    step_energy_options how = {.seconds = o->energy_s,
                               .step_ns = row->median_ns,
                               .group = o->group,
                               .own = o->meter,
                               .cancel = o->cancel};
    return o->energy_s > 0 ? step_energy_measure(&row->energy, &how, run_energy_step, &of, err)
                           : SNAP_OK;
}

/* Counts the different routed experts of this rank that the rows of the last step chose, and stores
 * the number in *all. */
static snap_status chosen_experts(const bench *b, double *all, snap_err *err) {
    const chosen_rows c = {.experts = b->experts,
                           .rows = b->now,
                           .layers = b->moe_layers,
                           .each = b->shape->num_experts_per_tok,
                           .first = weights_first_expert(b->w),
                           .count = weights_experts(b->w),
                           .group = b->opt->layout.whole_experts ? b->opt->group : NULL};
    return step_work_experts(&c, all, err);
}

/* FNV-1a */
static uint64_t token_digest(const int32_t *tokens, int n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < n; i++)
        h = (h ^ (uint32_t)tokens[i]) * 0x100000001b3u;
    return h;
}

/* The ranks of a replica compute the same sums, so they must choose the same tokens. */
static snap_status compare_tokens(const bench *b, snap_err *err) {
    uint64_t mine, all[RANKS_MOST];
    const rank_layout *l = &b->opt->layout;
    if (!b->opt->group || l->parts < 2)
        return SNAP_OK;
    mine = token_digest(b->next, b->now);
    snap_status st =
        ranks_all_gather(b->opt->group, "the tokens of a step", &mine, sizeof mine, all, err);
    for (int r = 0; r < b->ranks && st == SNAP_OK; r++)
        if (all[r] != all[r / l->parts * l->parts])
            st = err_set(err, SNAP_E_WRONG,
                         "rank %d has chosen other tokens than the first rank of its replica", r);
    return st;
}

static snap_status time_parts(bench *b, e2e_row *row, snap_err *err) {
    if (!b->opt->parts || !b->now)
        return SNAP_OK;
    set_pieces(b, row);
    row->has_parts = true;
    return runner_time_parts(b->r, b->piece, b->now, kPartSteps, row->part_ns, &row->waiting_ns,
                             err);
}

static snap_status decode_row(bench *b, int blocks, e2e_row *row, snap_err *err) {
    snap_status st;
    double experts = 0;
    if (!row->batch)
        return SNAP_OK;
    TRY(time_row(b, decode_once, row, err));
    runner_watch_experts(b->r, b->experts);
    TRY(decode_once(b, row, err));
    runner_watch_experts(b->r, NULL);
    TRY(compare_tokens(b, err));
    TRY(time_parts(b, row, err));
    TRY(measure_energy(b, decode_once, row, err));
    TRY(chosen_experts(b, &experts, err));
    row->weight_bytes = step_work_rank_bytes(&b->held, &b->opt->layout, experts);
    row->cache_bytes = (double)(b->now * row->context * token_bytes(b, blocks));
    row->floor_ns = (row->weight_bytes + row->cache_bytes) / b->opt->ceilings->read.rate * 1e9;
cleanup:
    return st;
}

static snap_status prompt_row(bench *b, e2e_row *row, snap_err *err) {
    const rank_layout *l = &b->opt->layout;
    double tokens = (double)row->context, e4m3 = step_work_rank_e4m3_flop(&b->held, l, tokens);
    row->flop = step_work_rank_flop(b->shape, l, tokens);
    row->floor_ns =
        ((row->flop - e4m3) / b->opt->ceilings->bf16.rate + e4m3 / b->opt->ceilings->fp8.rate) *
        1e9;
    snap_status st = time_row(b, prompt_once, row, err);
    return st == SNAP_OK ? measure_energy(b, prompt_once, row, err) : st;
}

static snap_status run_arm(bench *b, int blocks, e2e_row *rows, int *n, snap_err *err) {
    snap_status st = SNAP_OK;
    const e2e_options *o = b->opt;
    for (int i = 0; i < o->n_contexts; i++)
        for (int j = 0; j < o->n_batches; j++) {
            e2e_row *row = &rows[*n];
            *row = (e2e_row){.arm = b->arm,
                             .context = o->contexts[i],
                             .batch = whole_batch(b, o->batches[j], o->contexts[i]),
                             .largest = o->batches[j] == 0};
            b->now = batch_of(b, b->replica, o->batches[j], o->contexts[i]);
            TRY(decode_row(b, blocks, row, err));
            ++*n;
        }
    if (o->prompt) {
        rows[*n] = (e2e_row){
            .arm = b->arm, .context = o->prompt, .batch = o->layout.replicas, .prompt = true};
        TRY(prompt_row(b, &rows[*n], err));
        ++*n;
    }
cleanup:
    return st;
}

/* The ranks of split replicas count their steps together, so no replica may be idle. */
static snap_status check_batches(const e2e_options *o, snap_err *err) {
    for (int j = 0; j < o->n_batches && o->layout.whole_experts; j++)
        if (o->batches[j] % o->layout.replicas)
            return err_set(err, SNAP_E_USAGE,
                           "--batch %lld: with EP, all ranks must have equally many sequences, and "
                           "%d replicas do not divide it",
                           (long long)o->batches[j], o->layout.replicas);
    for (int j = 0; j < o->n_batches && o->layout.parts > 1; j++)
        if (o->batches[j] && o->batches[j] < o->layout.replicas)
            return err_set(err, SNAP_E_USAGE,
                           "--batch %lld is too small: each of %d split replicas needs a sequence",
                           (long long)o->batches[j], o->layout.replicas);
    return SNAP_OK;
}

static bench bench_of(const e2e_options *opt, int arm) {
    int rank = opt->group ? ranks_rank(opt->group) : 0;
    return (bench){.opt = opt,
                   .arm = opt->arms[arm],
                   .shape = opt->shape,
                   .replica = rank / opt->layout.parts,
                   .ranks = opt->group ? ranks_size(opt->group) : 1};
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
    TRY(check_batches(opt, err));
    TRY(weights_outline(&w, opt->shape, err));
    w.share = split_share(&opt->layout, opt->group ? ranks_rank(opt->group) : 0);
    for (int a = 0; a < opt->n_arms; a++) {
        *b = bench_of(opt, a);
        TRY(check_prompt(b, w.blocks, err));
    }
    for (int a = 0; a < opt->n_arms; a++) {
        *b = bench_of(opt, a);
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
