#include "harness/bench/model_diverge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { kBins = 13 }; /* powers of two up to DIVERGE_STEPS */

struct model_diverge {
    model_diverge_options opt;
    int vocab, places, done; /* done: places so far */
    int64_t *place;          /* [places] positions, increasing */
    int *equal;      /* [n][ways][places] tokens before the first that differs; the length of
                                the first format's continuation if none differs */
    int *length;     /* [ways][places] tokens of the first format's continuation */
    int32_t *tokens; /* [ways][steps] tokens that the first format chose at the current place */
    float *logits;   /* [vocab] */
};

static int *equal_at(const model_diverge *d, int format, int way, int place) {
    return &d->equal[((int64_t)format * DIVERGE_WAYS + way) * d->places + place];
}

/* ---- where continuations begin ---- */

/* Chooses the places after which continuations begin. A place is the last token of a page.
 * @possible is the number of pages that are followed by enough tokens of the text. If there are
 * more of them than wanted places, the places are spread evenly. */
static void choose_places(model_diverge *d, int64_t possible) {
    for (int i = 0; i < d->places; i++) {
        int64_t page = ((int64_t)i * possible + possible / 2) / d->places;
        d->place[i] = (page + 1) * MLA_PAGE - 1;
    }
}

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for continuations");
}

snap_status model_diverge_create(model_diverge **out, const model_diverge_options *opt,
                                 snap_err *err) {
    int64_t possible = (opt->tokens - opt->steps) / MLA_PAGE;
    snap_status st = SNAP_OK;
    model_diverge *d = NULL;
    *out = NULL;
    if (possible < 1)
        return err_set(err, SNAP_E_INPUT,
                       "the text has %lld tokens: continuations of %d tokens need at least %d",
                       (long long)opt->tokens, opt->steps, opt->steps + MLA_PAGE);
    d = calloc(1, sizeof *d);
    if (!d)
        return no_memory(err);
    d->opt = *opt;
    d->vocab = opt->models[0].shape.vocab_size;
    d->places = possible < opt->places ? (int)possible : opt->places;
    size_t places = (size_t)d->places, n = (size_t)opt->n;
    d->place = calloc(places, sizeof *d->place);
    d->equal = calloc(n * DIVERGE_WAYS * places, sizeof *d->equal);
    d->length = calloc(DIVERGE_WAYS * places, sizeof *d->length);
    d->tokens = calloc(DIVERGE_WAYS * (size_t)opt->steps, sizeof *d->tokens);
    d->logits = calloc((size_t)d->vocab, sizeof *d->logits);
    if (!d->place || !d->equal || !d->length || !d->tokens || !d->logits) {
        st = no_memory(err);
        goto cleanup;
    }
    choose_places(d, possible);
    *out = d;
    d = NULL;
cleanup:
    model_diverge_free(d);
    return st;
}

void model_diverge_free(model_diverge *d) {
    if (!d)
        return;
    free(d->place);
    free(d->equal);
    free(d->length);
    free(d->tokens);
    free(d->logits);
    free(d);
}

/* ---- continuations ---- */

/* A number with the standard Gumbel distribution. */
static double gumbel(rng *r) {
    return -log(-log(((double)rng_u32(r) + 0.5) * 0x1p-32)); /* Gumbel noise from a uniform number
                                                                between 0 and 1 */
}

/* Chooses token number @step of a continuation. The token with the largest sum of logit and Gumbel
 * noise is a draw from the softmax. Each token of the vocabulary has noise of its own, the same in
 * all formats. */
static int32_t choose(const model_diverge *d, int way, int step, const float *logits) {
    uint64_t stream = (uint64_t)d->place[d->done] * DIVERGE_STEPS + (uint64_t)step;
    rng r = rng_make(d->opt.seed, stream);
    double most = -INFINITY;
    int32_t best = 0;
    for (int32_t i = 0; i < d->vocab; i++) {
        double x = (double)logits[i] + (way == DIVERGE_SAMPLED ? gumbel(&r) : 0);
        if (x > most) {
            most = x;
            best = i;
        }
    }
    return best;
}

static bool is_end(const local_model *m, int32_t token) {
    for (int i = 0; i < m->n_stop_ids; i++)
        if (m->stop_ids[i] == token)
            return true;
    return false;
}

static snap_status step(model_diverge *d, int format, int32_t token, int64_t position,
                        snap_err *err) {
    model_piece p = {
        .tokens = &token, .count = 1, .position = position, .pages = d->opt.pages, .logits = 1};
    if (d->opt.cancel && *d->opt.cancel)
        return err_set(err, SNAP_E_CANCELLED, "cancelled");
    return runner_step(d->opt.models[format].runner, &p, 1, d->logits, err);
}

/* Lets a format continue. The first one stores its tokens; the others stop at the first token that
 * differs from it. */
static snap_status continue_format(model_diverge *d, int format, int way, const float *logits,
                                   snap_err *err) {
    int32_t *first = d->tokens + (int64_t)way * d->opt.steps;
    int *length = &d->length[way * d->places + d->done];
    int most = format ? *length : d->opt.steps, n = 0;
    memcpy(d->logits, logits, (size_t)d->vocab * sizeof *logits);
    while (n < most) {
        int32_t token = choose(d, way, n, d->logits);
        if (!format)
            first[n] = token;
        else if (token != first[n])
            break;
        n++;
        if (n == most || is_end(&d->opt.models[0], token))
            break;
        snap_status st = step(d, format, token, d->place[d->done] + n, err);
        if (st != SNAP_OK)
            return st;
    }
    *equal_at(d, format, way, d->done) = n;
    if (!format)
        *length = n;
    return SNAP_OK;
}

snap_status model_diverge_at(model_diverge *d, int64_t position, float *const *logits,
                             snap_err *err) {
    snap_status st = SNAP_OK;
    if (d->done == d->places || d->place[d->done] != position)
        return SNAP_OK;
    for (int way = 0; way < DIVERGE_WAYS; way++)
        for (int f = 0; f < d->opt.n; f++)
            TRY(continue_format(d, f, way, logits[f], err));
    d->done++;
cleanup:
    return st;
}

/* ---- rows ---- */

static int by_size(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* The number of the first token that differs, counted from 1; INT_MAX if none does. */
static int first_change(const model_diverge *d, int format, int way, int place) {
    int equal = *equal_at(d, format, way, place), length = d->length[way * d->places + place];
    return equal < length ? equal + 1 : INT32_MAX;
}

/* The shares of places whose continuations are equal for the first 1, 2, 4, ... tokens. */
static size_t survival(const int *change, int places, int steps, record_bin *bins) {
    size_t n = 0;
    for (int64_t tokens = 1; tokens <= steps; tokens *= 2) {
        int same = 0;
        for (int i = 0; i < places; i++)
            same += change[i] > tokens;
        bins[n] = (record_bin){.exponent = (int64_t)n, .share = (double)same / places};
        n++;
    }
    return n;
}

static snap_status emit_one(const model_diverge *d, int format, int way, int *change,
                            const char *const *names, model_fidelity_emit emit, void *ctx,
                            snap_err *err) {
    static const char *const ways[] = {"greedy", "sampled"};
    record_bin bins[kBins];
    model_record row = model_record_new("divergence");
    double equal = 0;
    int changed = 0;
    for (int i = 0; i < d->places; i++) {
        change[i] = first_change(d, format, way, i);
        changed += change[i] < INT32_MAX;
        equal += *equal_at(d, format, way, i);
    }
    qsort(change, (size_t)d->places, sizeof *change, by_size);
    int middle = change[(d->places - 1) / 2];
    row.precision = names[format];
    row.reference = names[0];
    row.continuation = ways[way];
    row.places = d->places;
    row.steps = d->opt.steps;
    row.changed_pct = 100.0 * changed / d->places;
    row.first_change = middle < INT32_MAX ? middle : (double)NAN;
    row.equal_tokens = equal / d->places;
    row.survival = (record_bins){bins, survival(change, d->places, d->opt.steps, bins)};
    return emit(ctx, &row, err);
}

snap_status model_diverge_emit(const model_diverge *d, const char *const *names,
                               model_fidelity_emit emit, void *ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    int *change = calloc((size_t)d->places, sizeof *change);
    if (!change)
        return no_memory(err);
    for (int f = 1; f < d->opt.n; f++)
        for (int way = 0; way < DIVERGE_WAYS; way++)
            TRY(emit_one(d, f, way, change, names, emit, ctx, err));
cleanup:
    free(change);
    return st;
}
