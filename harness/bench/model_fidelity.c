#include "harness/bench/model_fidelity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/parallel.h"
#include "base/text.h"

/* One format at one position: its -ln p(next token), and its differences from the first format. */
typedef struct {
    double nll, kl, moved;
    bool flip;
} difference;

typedef struct {
    const model_fidelity_options *opt;
    model_fidelity_row *rows;
    int n;
    char *precision[MODEL_FIDELITY_FORMATS]; /* as the options name it; owned */
    local_model model[MODEL_FIDELITY_FORMATS];
    float *logits[MODEL_FIDELITY_FORMATS]; /* [piece][vocab] */
    difference *difference;                /* [formats][positions of the current piece] */
    int64_t at, count;                     /* first position of the piece; how many of its positions
                                              predict a token */
    parallel *threads;
    int32_t *pages;
    tok_ids ids;
    int64_t tokens;
    int piece, vocab;
    model_layers *layers;   /* NULL: the layers are not studied */
    model_diverge *diverge; /* NULL: no continuations */
} comparison;

static snap_status add_format(void *ctx, const char *name, snap_err *err) {
    comparison *c = ctx;
    kv_format f;
    snap_status st = kv_format_parse(name, &f, err);
    if (st != SNAP_OK)
        return st;
    if (c->n == MODEL_FIDELITY_FORMATS)
        return err_set(err, SNAP_E_USAGE, "at most %d precisions", MODEL_FIDELITY_FORMATS);
    c->rows[c->n] = (model_fidelity_row){0};
    c->precision[c->n] = strdup(name);
    return c->precision[c->n++] ? SNAP_OK
                                : err_set(err, SNAP_E_NOMEM, "out of memory for a precision");
}

/* Tokenises the text with the tokenizer of the first model and limits the number of tokens. */
static snap_status encode(comparison *c, int64_t longest, snap_err *err) {
    local_model *m = &c->model[0];
    int64_t limit = c->opt->max_tokens ? c->opt->max_tokens : longest;
    snap_status st =
        tok_encode(m->encoder, c->opt->text, strlen(c->opt->text), TOK_SPECIALS, &c->ids, err);
    if (st != SNAP_OK)
        return st;
    limit = limit < longest ? limit : longest;
    c->tokens = (int64_t)c->ids.n < limit ? (int64_t)c->ids.n : limit;
    return c->tokens > 1 ? SNAP_OK
                         : err_set(err, SNAP_E_INPUT, "the text has fewer than two tokens");
}

static void describe(model_fidelity_row *row, const kv_cache *cache) {
    (void)snprintf(row->format, sizeof row->format, "%s", kv_cache_precision(cache));
    (void)snprintf(row->format_sha256, HASH_HEX, "%s", kv_cache_format_sha256(cache));
    row->cache_bytes = kv_cache_token_bytes(cache);
}

static snap_status open_models(comparison *c, snap_err *err) {
    snap_status st = SNAP_OK;
    const model_fidelity_options *o = c->opt;
    for (int i = 0; i < c->n; i++) {
        local_model *m = &c->model[i];
        local_options how = {.precision = c->precision[i],
                             .context = i ? c->tokens : o->max_tokens,
                             .sequences = 1,
                             .threads = o->threads,
                             .device = local_device_of(o->device, i),
                             .chat_template = "none"};
        TRY(local_open(m, o->dir, &how, err));
        if (i == 0)
            TRY(encode(c, runner_limits(m->runner)->context, err));
        c->vocab = m->shape.vocab_size;
        describe(&c->rows[i], runner_cache(m->runner));
        int64_t need = (c->tokens - 1) / MLA_PAGE + 1;
        if (kv_cache_pages(runner_cache(m->runner)) < need)
            TRY(err_set(err, SNAP_E_NOMEM, "the cache has no room for %lld tokens",
                        (long long)c->tokens));
    }
    c->piece = o->chunks ? LOCAL_CHUNK : 1;
    for (int i = 0; i < c->n; i++) {
        c->logits[i] = calloc((size_t)c->piece * (size_t)c->vocab, sizeof *c->logits[i]);
        if (!c->logits[i])
            TRY(err_set(err, SNAP_E_NOMEM, "out of memory for logits"));
    }
    c->pages = calloc((size_t)(c->tokens / MLA_PAGE + 1), sizeof *c->pages);
    c->difference = calloc((size_t)c->n * (size_t)c->piece, sizeof *c->difference);
    if (!c->pages || !c->difference)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a comparison"));
    TRY(parallel_create(&c->threads, o->threads, err));
    for (int32_t i = 0; i <= c->tokens / MLA_PAGE; i++)
        c->pages[i] = i;
cleanup:
    return st;
}

static int likeliest(const float *x, int n) {
    int at = 0;
    for (int i = 1; i < n; i++)
        at = x[i] > x[at] ? i : at;
    return at;
}

/* |q - p| / |p| */
static double distance(const float *p, const float *q, int n) {
    double apart = 0, size = 0;
    for (int i = 0; i < n; i++) {
        apart += pow((double)q[i] - (double)p[i], 2);
        size += pow((double)p[i], 2);
    }
    return size > 0 ? sqrt(apart / size) : 0;
}

static void add(model_fidelity_sums *s, difference d) {
    s->tokens++;
    s->nll += d.nll;
    s->kl += d.kl;
    s->kl_max = d.kl > s->kl_max ? d.kl : s->kl_max;
    s->flips += d.flip;
    s->moved += d.moved;
}

static int range_of(int64_t position) {
    int r = 0;
    for (int64_t end = MODEL_FIDELITY_FIRST; position >= end && r < MODEL_FIDELITY_RANGES - 1;
         end *= 2)
        r++;
    return r;
}

/* Compares the logits of one format at one position of the piece with those of the first format. */
static void compare_one(void *ctx, int worker, int64_t index) {
    (void)worker;
    comparison *c = ctx;
    int64_t f = index / c->count, i = index % c->count;
    const float *p = c->logits[0] + i * c->vocab, *q = c->logits[f] + i * c->vocab;
    difference d = {.nll = -token_logprob(q, c->vocab, c->ids.v[c->at + i + 1])};
    if (f) {
        d.kl = logits_divergence(p, q, c->vocab);
        d.moved = distance(p, q, c->vocab);
        d.flip = likeliest(p, c->vocab) != likeliest(q, c->vocab);
    }
    c->difference[index] = d;
}

static void compare(comparison *c, int64_t at, int count) {
    int64_t left = c->tokens - 1 - at; /* the last token of the text has no successor */
    c->at = at;
    c->count = count < left ? count : left;
    parallel_for(c->threads, c->n * c->count, compare_one, c);
    for (int f = 0; f < c->n; f++)
        for (int64_t i = 0; i < c->count; i++) {
            difference d = c->difference[f * c->count + i];
            add(&c->rows[f].all, d);
            add(&c->rows[f].range[range_of(at + i)], d);
        }
}

/* The index of the first model in BF16: its queries and cached rows are the numbers that the
 * formats round. -1 if there is none. */
static int source_of(const comparison *c) {
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->rows[i].format, "bf16") == 0)
            return i;
    return -1;
}

static snap_status watch_layers(comparison *c, snap_err *err) {
    const char *names[MODEL_FIDELITY_FORMATS];
    for (int i = 0; i < c->n; i++)
        names[i] = c->rows[i].format;
    return c->opt->layers ? model_layers_create(&c->layers, c->model, names, c->n, source_of(c),
                                                c->opt->threads, err)
                          : SNAP_OK;
}

static snap_status prepare_continuations(comparison *c, snap_err *err) {
    const model_diverge_options o = {.models = c->model,
                                     .n = c->n,
                                     .tokens = c->tokens,
                                     .pages = c->pages,
                                     .steps = c->opt->diverge,
                                     .places = c->opt->diverge_places,
                                     .seed = c->opt->seed,
                                     .cancel = c->opt->cancel};
    return o.steps ? model_diverge_create(&c->diverge, &o, err) : SNAP_OK;
}

static snap_status emit_continuations(const comparison *c, snap_err *err) {
    const char *names[MODEL_FIDELITY_FORMATS];
    for (int i = 0; i < c->n; i++)
        names[i] = c->rows[i].format;
    return c->diverge ? model_diverge_emit(c->diverge, names, c->opt->emit, c->opt->ctx, err)
                      : SNAP_OK;
}

/* The first position from @at on at which the layers are studied. After the last moment of the
 * options this is the last token of the text. INT64_MAX if the layers are not studied. */
static int64_t next_moment(const comparison *c, int64_t at) {
    if (!c->layers)
        return INT64_MAX;
    int64_t next = c->tokens - 1;
    for (int i = 0; i < c->opt->n_moments; i++)
        if (c->opt->moments[i] > at && c->opt->moments[i] <= next)
            next = c->opt->moments[i] - 1;
    return next;
}

static snap_status run_piece(comparison *c, model_piece *p, snap_err *err) {
    snap_status st = SNAP_OK;
    bool watched = p->position == next_moment(c, p->position);
    p->chunk = c->opt->chunks && !watched;
    if (watched)
        model_layers_start(c->layers);
    for (int f = 0; f < c->n; f++)
        TRY(runner_step(c->model[f].runner, p, 1, c->logits[f], err));
    compare(c, p->position, p->count);
    if (c->diverge)
        TRY(model_diverge_at(c->diverge, p->position, c->logits, err));
    if (watched) {
        model_layers_stop(c->layers);
        TRY(model_layers_emit(c->layers, p->position + 1, c->opt->emit, c->opt->ctx, c->opt->cancel,
                              err));
    }
cleanup:
    return st;
}

static snap_status run_text(comparison *c, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int64_t at = 0, count; at < c->tokens; at += count) {
        int64_t moment = next_moment(c, at), left = c->tokens - at;
        count = left < c->piece ? left : c->piece;
        if (moment < at + count)
            count = moment > at ? moment - at : 1; /* the token of a moment is decoded alone */
        model_piece p = {.tokens = c->ids.v + at,
                         .count = (int)count,
                         .position = at,
                         .pages = c->pages,
                         .logits = (int)count};
        if (c->opt->cancel && *c->opt->cancel)
            TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
        TRY(run_piece(c, &p, err));
        if (c->opt->progress)
            c->opt->progress(c->opt->ctx, at + count, c->tokens);
    }
cleanup:
    return st;
}

snap_status model_fidelity_run(const model_fidelity_options *opt, model_fidelity_row *rows, int *n,
                               snap_err *err) {
    snap_status st;
    comparison *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a comparison");
    c->opt = opt;
    c->rows = rows;
    TRY(text_split(opt->formats, ',', "precisions", add_format, c, err));
    TRY(open_models(c, err));
    TRY(watch_layers(c, err));
    TRY(prepare_continuations(c, err));
    TRY(run_text(c, err));
    TRY(emit_continuations(c, err));
    *n = c->n;
cleanup:
    model_layers_free(c->layers);
    model_diverge_free(c->diverge);
    for (int i = 0; i < c->n; i++) {
        local_close(&c->model[i]);
        free(c->logits[i]);
        free(c->precision[i]);
    }
    parallel_free(c->threads);
    tok_ids_release(&c->ids);
    free(c->difference);
    free(c->pages);
    free(c);
    return st;
}

/* ---- rows of the result file ---- */

/* Peak memory of this process in bytes; 0 = unknown. */
static int64_t peak_bytes(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (int64_t)u.ru_maxrss * 1024 : 0;
}

/* @reference: the row of the first format */
static model_record row_of(const model_fidelity_row *r, const model_fidelity_sums *s,
                           const model_fidelity_row *reference) {
    double n = (double)s->tokens;
    model_record row = model_record_new("predictions");
    row.precision = r->format;
    row.format_sha256 = r->format_sha256;
    row.reference = reference->format;
    row.cache_bytes_a_token = (int64_t)ceil(r->cache_bytes);
    row.tokens = s->tokens;
    row.perplexity = exp(s->nll / n);
    row.kl_mean = s->kl / n;
    row.kl_max = s->kl_max;
    row.flips_pct = 100 * (double)s->flips / n;
    row.logits_rel_l2 = s->moved / n;
    return row;
}

static snap_status emit_format(const model_fidelity_row *r, const model_fidelity_row *reference,
                               model_fidelity_emit emit, void *ctx, snap_err *err) {
    snap_status st;
    model_record row = row_of(r, &r->all, reference);
    row.peak_rss_bytes = peak_bytes();
    TRY(emit(ctx, &row, err));
    int64_t from = 0, end = MODEL_FIDELITY_FIRST;
    for (int i = 0; i < MODEL_FIDELITY_RANGES; i++, from = end, end *= 2) {
        if (!r->range[i].tokens)
            continue;
        row = row_of(r, &r->range[i], reference);
        row.first = from;
        row.last = end - 1;
        TRY(emit(ctx, &row, err));
    }
cleanup:
    return st;
}

snap_status model_fidelity_emit_rows(const model_fidelity_row *rows, int n,
                                     model_fidelity_emit emit, void *ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < n && st == SNAP_OK; i++)
        st = emit_format(&rows[i], rows, emit, ctx, err);
    return st;
}
