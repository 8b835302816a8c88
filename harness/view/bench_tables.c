#include "harness/view/bench_tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/bench/sweep.h"

/* ---- bench kernel ---- */

static void flags_text(const cell_record *c, char text[TABLE_CELL]) {
    size_t n = 0;
    text[0] = '\0';
    if (strcmp(c->status, "passed") != 0)
        (void)snprintf(text, TABLE_CELL, "%s: %s", c->status, c->reason);
    for (size_t i = 0; i < c->flags.n && n < TABLE_CELL; i++)
        n += (size_t)snprintf(text + n, TABLE_CELL - n, "%s%s", i ? " " : "", c->flags.at[i]);
}

/* "8192", or for sequences of different lengths "8192 max, 30000 sum". */
static void add_context(table *t, const cell_record *c) {
    if (c->lengths.exists)
        table_cell(t, "%lld max, %lld sum", (long long)c->shape.context,
                   (long long)c->lengths.tokens);
    else
        table_cell(t, "%lld", (long long)c->shape.context);
}

static void add_row(table *t, const cell_list *rows, size_t i) {
    const cell_record *c = &rows->at[i];
    const cell_performance *perf = &c->performance;
    double speedup = sweep_speedup(rows, i);
    char flags[TABLE_CELL];
    flags_text(c, flags);
    table_cell(t, "%s", c->arm);
    table_cell(t, "%s", c->scope);
    table_cell(t, "%lld", (long long)c->shape.heads);
    table_cell(t, "%lld", (long long)c->shape.s_q);
    table_cell(t, "%lld", (long long)c->shape.batch);
    add_context(t, c);
    table_number(t, perf->median_ns / 1e3, 1);
    table_number(t, perf->mean_ns / 1e3, 1);
    table_number(t, perf->p99_ns / 1e3, 1);
    table_number(t, perf->tflops, 3);
    table_number(t, perf->gb_s, 1);
    table_number(t, perf->roofline_pct, 1);
    table_number(t, perf->paired.roofline_pct, 1);
    table_cell(t, "%s", perf->bound);
    table_cell(t, isnan(speedup) ? "" : "%.2fx", speedup);
    table_cell(t, "%s", flags);
}

static void add_named(table *t, const cell_record *c) {
    const cell_performance *perf = &c->performance;
    const cell_against *a = &c->against;
    char flags[TABLE_CELL];
    flags_text(c, flags);
    table_cell(t, "%s", c->name);
    table_cell(t, "%s", c->arm);
    table_cell(t, "%s", c->backend);
    table_cell(t, "%s", c->scope);
    table_cell(t, "%lld", (long long)c->shape.heads);
    table_cell(t, "%lld", (long long)c->shape.s_q);
    table_cell(t, "%lld", (long long)c->shape.batch);
    add_context(t, c);
    table_number(t, perf->median_ns / 1e3, 1);
    table_number(t, perf->tflops, 3);
    table_number(t, perf->gb_s, 1);
    table_number(t, perf->roofline_pct, 1);
    table_science(t, c->correctness.exists ? c->correctness.error : (double)NAN);
    table_cell(t, a->exists ? "%.3fx" : "", a->ratio);
    table_cell(t, a->exists && !isnan(a->interval[0]) ? "%.3f..%.3f" : "", a->interval[0],
               a->interval[1]);
    table_cell(t, "%s", flags);
}

/* The table of a run with named arms. Its ratios are relative to the first arm. */
static table named_table(const cell_list *all) {
    static const char *const heads[] = {"arm",   "precision", "backend", "scope",  "H",    "s_q",
                                        "batch", "context",   "us",      "TFLOPS", "GB/s", "% roof",
                                        "error", "speed-up",  "95 %",    "flags"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (size_t i = 0; i < all->n; i++)
        add_named(&t, &all->at[i]);
    return t;
}

table bench_table(const js *rows) {
    static const char *const heads[] = {"arm",    "scope", "H",        "s_q",    "batch", "context",
                                        "us",     "mean",  "p99",      "TFLOPS", "GB/s",  "% roof",
                                        "% then", "bound", "FP8/BF16", "flags"};
    arena mem = {0};
    cell_list all = {0};
    bool ok = record_read_all(&cell_type, rows, &mem, &all.at, &all.n);
    bool named = all.n && all.at[0].name[0];
    table t = named ? named_table(&all) : table_new(heads, sizeof heads / sizeof *heads);
    t.failed |= !ok;
    for (size_t i = 0; i < all.n && !named; i++)
        add_row(&t, &all, i);
    arena_release(&mem);
    return t;
}

/* ---- bench model ---- */

static void add_step(table *t, const model_bench *m, int i) {
    const e2e_row *r = &m->rows[i];
    double times = model_bench_gain(m->rows, m->n, i);
    table_cell(t, "%s", kv_format_name(r->arm));
    table_cell(t, "%s", r->prompt ? "prompt" : "decode");
    table_cell(t, "%lld", (long long)r->context);
    table_cell(t, "%d%s", r->batch, r->largest ? " (max)" : "");
    table_number(t, r->batch ? r->median_ns / 1e6 : (double)NAN, 3);
    table_number(t, r->batch ? model_bench_tokens_s(r) : (double)NAN, 1);
    table_number(t, r->prompt ? (double)NAN : r->weight_bytes / 1e9, 2);
    table_number(t, r->prompt ? (double)NAN : r->cache_bytes / 1e9, 2);
    table_number(t, r->prompt ? r->flop / r->median_ns / 1e3 : (double)NAN, 1);
    table_number(t, r->batch ? 100 * r->floor_ns / r->median_ns : (double)NAN, 1);
    table_cell(t, isnan(times) ? "" : "%.2fx", times);
}

/* The parts of a decode step in ms, the waiting of rank 0, and the fastest and the slowest rank. */
static void add_ranks(table *t, const e2e_row *r, int n) {
    double fastest = r->rank_ns[0], slowest = r->rank_ns[0];
    for (int i = 0; i < STEP_PARTS; i++)
        table_number(t, r->has_parts ? r->part_ns[i] / 1e6 : (double)NAN, 3);
    bool exchanges = r->has_parts && r->part_ns[STEP_EXCHANGE] != 0;
    table_number(t, exchanges ? r->waiting_ns / 1e6 : (double)NAN, 3);
    for (int i = 1; i < n; i++) {
        fastest = fmin(fastest, r->rank_ns[i]);
        slowest = fmax(slowest, r->rank_ns[i]);
    }
    table_number(t, r->batch ? fastest / 1e6 : (double)NAN, 3);
    table_number(t, r->batch ? slowest / 1e6 : (double)NAN, 3);
}

/* Joules of all GPUs. */
static void add_energy(table *t, const e2e_row *r) {
    table_number(t, r->energy.steps ? r->energy.joules : (double)NAN, 3);
    table_number(t, model_bench_joules(r), 4);
}

static bool has_parts(const model_bench *m) {
    for (int i = 0; i < m->n; i++)
        if (m->rows[i].has_parts)
            return true;
    return false;
}

static bool has_energy(const model_bench *m) {
    for (int i = 0; i < m->n; i++)
        if (m->rows[i].energy.steps)
            return true;
    return false;
}

enum { kPlainHeads = 11, kRankHeads = 7, kEnergyHeads = 2 };

table model_bench_table(const model_bench *m) {
    static const char *const plain[kPlainHeads] = {"arm",    "phase",    "context",    "batch",
                                                   "ms",     "tokens/s", "weights GB", "cache GB",
                                                   "TFLOPS", "% roof",   "FP8/BF16"};
    static const char *const split[kRankHeads] = {
        "attention", "exchange", "experts", "rest", "waiting", "fastest rank", "slowest rank"};
    static const char *const energy[kEnergyHeads] = {"J/step", "J/token"};
    const char *heads[kPlainHeads + kRankHeads + kEnergyHeads];
    bool more = m->ranks > 1 || has_parts(m), joules = has_energy(m);
    int n = kPlainHeads;
    memcpy(heads, plain, sizeof plain);
    for (int i = 0; i < kRankHeads && more; i++)
        heads[n++] = split[i];
    for (int i = 0; i < kEnergyHeads && joules; i++)
        heads[n++] = energy[i];
    table t = table_new(heads, n);
    for (int i = 0; i < m->n; i++) {
        add_step(&t, m, i);
        if (more)
            add_ranks(&t, &m->rows[i], m->ranks);
        if (joules)
            add_energy(&t, &m->rows[i]);
    }
    return t;
}

/* ---- bench exchange ---- */

table exchange_table(const exchange_record *rows, int n) {
    static const char *const heads[] = {"operation", "path", "launch", "type", "ranks",    "bytes",
                                        "us",        "best", "p99",    "GB/s", "bus GB/s", "wrong"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (int i = 0; i < n; i++) {
        const exchange_record *r = &rows[i];
        table_cell(&t, "%s", r->operation);
        table_cell(&t, "%s", r->path);
        table_cell(&t, "%s", r->launch);
        table_cell(&t, "%s", r->type);
        table_cell(&t, "%lld", (long long)r->ranks);
        table_cell(&t, "%lld", (long long)r->bytes);
        table_number(&t, r->median_ns / 1e3, 2);
        table_number(&t, r->best_ns / 1e3, 2);
        table_number(&t, r->p99_ns / 1e3, 2);
        table_number(&t, r->algorithm_bytes_s / 1e9, 2);
        table_number(&t, r->bus_bytes_s / 1e9, 2);
        table_cell(&t, "%lld", (long long)r->wrong);
    }
    return t;
}

/* ---- bench grading ---- */

table grading_table(const grading_row *rows) {
    static const char *const heads[] = {"grader", "input", "pairs", "gradings/s"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (int i = 0; i < GRADING_ROWS; i++) {
        table_cell(&t, "%s", rows[i].grader);
        table_cell(&t, "%s", rows[i].input);
        table_cell(&t, "%zu", rows[i].pairs);
        table_number(&t, rows[i].rate, 0);
    }
    return t;
}

js *grading_json(const grading_row *rows) {
    js *all = js_new_array();
    bool ok = all != NULL;
    for (int i = 0; i < GRADING_ROWS && ok; i++) {
        js *row = js_new_object();
        ok = row && js_set_str(row, "what", "grading") &&
             js_set_str(row, "grader", rows[i].grader) && js_set_str(row, "input", rows[i].input) &&
             js_set_int(row, "pairs", (int64_t)rows[i].pairs) &&
             js_set_num(row, "gradings_s", rows[i].rate);
        ok = js_push_new(all, row) && ok;
    }
    if (ok)
        return all;
    js_free(all);
    return NULL;
}

/* ---- bench tokenizer ---- */

table tokenizer_table(const tokenizing_row *r) {
    static const char *const heads[] = {"one core", "bytes", "tokens", "MB/s", "tokens/s"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (int decoding = 0; decoding < 2; decoding++) {
        table_cell(&t, "%s", decoding ? "decode" : "encode");
        table_cell(&t, "%lld", (long long)r->bytes);
        table_cell(&t, "%lld", (long long)r->tokens);
        table_number(&t, decoding ? r->decode_mb_s : r->encode_mb_s, 2);
        table_number(&t, decoding ? r->decode_tok_s : r->encode_tok_s, 0);
    }
    return t;
}

js *tokenizer_json(const tokenizing_row *r) {
    js *o = js_new_object();
    if (o && js_set_str(o, "what", "tokenizer") && js_set_int(o, "bytes", r->bytes) &&
        js_set_int(o, "tokens", r->tokens) && js_set_num(o, "encode_mb_s", r->encode_mb_s) &&
        js_set_num(o, "encode_tok_s", r->encode_tok_s) &&
        js_set_num(o, "decode_mb_s", r->decode_mb_s) &&
        js_set_num(o, "decode_tok_s", r->decode_tok_s))
        return o;
    js_free(o);
    return NULL;
}
