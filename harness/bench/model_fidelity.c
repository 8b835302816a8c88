#include "harness/bench/model_fidelity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/local.h"

typedef struct {
    const model_fidelity_options *opt;
    model_fidelity_row *rows;
    int n;
    local_model model[MODEL_FIDELITY_FORMATS];
    float *logits[MODEL_FIDELITY_FORMATS]; /* [piece][vocab] */
    int32_t *pages;
    tok_ids ids;
    int64_t tokens;
    int piece, vocab;
} comparison;

static snap_status add_format(void *ctx, const char *name, snap_err *err) {
    comparison *c = ctx;
    cache_format f;
    snap_status st = cache_format_parse(name, &f, err);
    if (st != SNAP_OK)
        return st;
    if (c->n == MODEL_FIDELITY_FORMATS)
        return err_set(err, SNAP_E_USAGE, "at most %d precisions", MODEL_FIDELITY_FORMATS);
    c->rows[c->n++] = (model_fidelity_row){.format = cache_format_name(f)};
    return SNAP_OK;
}

/* The text's ids, by the tokenizer of the first model that is opened. */
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

static snap_status open_models(comparison *c, snap_err *err) {
    snap_status st = SNAP_OK;
    const model_fidelity_options *o = c->opt;
    for (int i = 0; i < c->n; i++) {
        local_model *m = &c->model[i];
        local_options how = {.precision = c->rows[i].format,
                             .context = i ? c->tokens : o->max_tokens,
                             .sequences = 1,
                             .threads = o->threads,
                             .chat_template = "none"};
        TRY(local_open(m, o->dir, &how, err));
        if (i == 0)
            TRY(encode(c, runner_limits(m->runner)->context, err));
        c->vocab = m->shape.vocab_size;
        c->rows[i].cache_bytes = (int64_t)kv_cache_page_bytes(runner_cache(m->runner)) / MLA_PAGE;
        int64_t need = (c->tokens - 1) / MLA_PAGE + 1;
        if (kv_cache_pages(runner_cache(m->runner)) < need)
            TRY(err_set(err, SNAP_E_NOMEM, "a cache of 4 GiB has no room for %lld tokens",
                        (long long)c->tokens));
    }
    c->piece = o->chunks ? LOCAL_CHUNK : 1;
    for (int i = 0; i < c->n; i++) {
        c->logits[i] = calloc((size_t)c->piece * (size_t)c->vocab, sizeof *c->logits[i]);
        if (!c->logits[i])
            TRY(err_set(err, SNAP_E_NOMEM, "out of memory for logits"));
    }
    c->pages = calloc((size_t)(c->tokens / MLA_PAGE + 1), sizeof *c->pages);
    if (!c->pages) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for pages");
        goto cleanup;
    }
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

/* ln of the sum of exponentials. */
static double log_sum(const float *x, int n) {
    double most = (double)x[likeliest(x, n)], sum = 0;
    for (int i = 0; i < n; i++)
        sum += exp((double)x[i] - most);
    return most + log(sum);
}

static double divergence(const float *p, const float *q, int n) {
    double zp = log_sum(p, n), zq = log_sum(q, n), sum = 0;
    for (int i = 0; i < n; i++) {
        double lp = (double)p[i] - zp;
        sum += exp(lp) * (lp - ((double)q[i] - zq));
    }
    return sum > 0 ? sum : 0;
}

static void add(model_fidelity_sums *s, double nll, double kl, bool flip) {
    s->tokens++;
    s->nll += nll;
    s->kl += kl;
    s->kl_max = kl > s->kl_max ? kl : s->kl_max;
    s->flips += flip;
}

static int range_of(int64_t position) {
    int r = 0;
    for (int64_t end = MODEL_FIDELITY_FIRST; position >= end && r < MODEL_FIDELITY_RANGES - 1;
         end *= 2)
        r++;
    return r;
}

static void compare(comparison *c, int64_t at, int count) {
    for (int f = 0; f < c->n; f++)
        for (int i = 0; i < count && at + i + 1 < c->tokens; i++) {
            const float *p = c->logits[0] + (int64_t)i * c->vocab,
                        *q = c->logits[f] + (int64_t)i * c->vocab;
            double nll = -token_logprob(q, c->vocab, c->ids.v[at + i + 1]);
            double kl = f ? divergence(p, q, c->vocab) : 0;
            bool flip = f && likeliest(p, c->vocab) != likeliest(q, c->vocab);
            add(&c->rows[f].all, nll, kl, flip);
            add(&c->rows[f].range[range_of(at + i)], nll, kl, flip);
        }
}

static snap_status run_text(comparison *c, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int64_t at = 0; at < c->tokens; at += c->piece) {
        int count = c->tokens - at < c->piece ? (int)(c->tokens - at) : c->piece;
        model_piece p = {.tokens = c->ids.v + at,
                         .count = count,
                         .position = at,
                         .pages = c->pages,
                         .logits = count,
                         .chunk = c->opt->chunks};
        if (c->opt->cancel && *c->opt->cancel)
            TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
        for (int f = 0; f < c->n; f++)
            TRY(runner_step(c->model[f].runner, &p, 1, c->logits[f], err));
        compare(c, at, count);
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
    TRY(run_text(c, err));
    *n = c->n;
cleanup:
    for (int i = 0; i < c->n; i++) {
        local_close(&c->model[i]);
        free(c->logits[i]);
    }
    tok_ids_release(&c->ids);
    free(c->pages);
    free(c);
    return st;
}
