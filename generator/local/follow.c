#include "generator/local/follow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An answer while it is drawn. */
typedef struct {
    follow_answer out;
    rng draws;
    tok_stream stream;
    int32_t token; /* the last one drawn */
    bool ended;
} line;

struct follow {
    follow_options opt;
    int vocab;
    sampler *sampler;
    line *lines;           /* [answers] */
    follow_answer *result; /* [answers] copies of line.out */
    float *logits;         /* [n][answers][vocab] */
    double *p, *q;         /* [vocab] */
    model_piece *pieces;   /* [answers] */
    int *alive;            /* [answers] first the indices of the lines that have not ended */
    int32_t *pages;        /* [answers][pages of an answer], for the current prompt */
    tok_ids prompt;
};

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for answers");
}

snap_status follow_create(follow **out, const follow_options *opt, snap_err *err) {
    snap_status st;
    follow *f = calloc(1, sizeof *f);
    size_t answers = (size_t)opt->answers, n = (size_t)opt->n;
    *out = NULL;
    if (!f)
        return no_memory(err);
    f->opt = *opt;
    f->vocab = opt->models[0].shape.vocab_size;
    TRY(sampler_create(&f->sampler, f->vocab, err));
    f->lines = calloc(answers, sizeof *f->lines);
    f->result = calloc(answers, sizeof *f->result);
    f->logits = calloc(n * answers * (size_t)f->vocab, sizeof *f->logits);
    f->p = calloc((size_t)f->vocab, sizeof *f->p);
    f->q = calloc((size_t)f->vocab, sizeof *f->q);
    f->pieces = calloc(answers, sizeof *f->pieces);
    f->alive = calloc(answers, sizeof *f->alive);
    if (!f->lines || !f->result || !f->logits || !f->p || !f->q || !f->pieces || !f->alive) {
        st = no_memory(err);
        goto cleanup;
    }
    for (size_t i = 0; i < answers; i++) {
        f->lines[i].out.reading = calloc(n, sizeof *f->lines[i].out.reading);
        if (!f->lines[i].out.reading)
            TRY(no_memory(err));
    }
    *out = f;
    f = NULL;
cleanup:
    follow_free(f);
    return st;
}

void follow_free(follow *f) {
    if (!f)
        return;
    for (int i = 0; f->lines && i < f->opt.answers; i++) {
        tok_stream_release(&f->lines[i].stream);
        buf_release(&f->lines[i].out.text);
        free(f->lines[i].out.reading);
    }
    sampler_free(f->sampler);
    tok_ids_release(&f->prompt);
    free(f->lines);
    free(f->result);
    free(f->logits);
    free(f->p);
    free(f->q);
    free(f->pieces);
    free(f->alive);
    free(f->pages);
    free(f);
}

/* ---- the prompt ---- */

static int64_t pages_for(int64_t tokens) {
    return (tokens - 1) / MLA_PAGE + 1;
}

/* Gives each answer its cache pages. All answers share the full pages of the prompt. @longest:
 * tokens of the prompt and of the longest answer. */
static snap_status place(follow *f, int64_t longest, snap_err *err) {
    int64_t shared = (int64_t)f->prompt.n / MLA_PAGE, each = pages_for(longest),
            own = each - shared, need = shared + own * f->opt.answers;
    for (int m = 0; m < f->opt.n; m++)
        if (kv_cache_pages(runner_cache(f->opt.models[m].runner)) < need)
            return err_set(err, SNAP_E_NOMEM,
                           "the cache has no room for %d answers of up to %lld tokens",
                           f->opt.answers, (long long)longest);
    free(f->pages);
    f->pages = calloc((size_t)(each * f->opt.answers), sizeof *f->pages);
    if (!f->pages)
        return no_memory(err);
    for (int a = 0; a < f->opt.answers; a++)
        for (int64_t i = 0; i < each; i++) {
            int64_t page = i < shared ? i : shared + a * own + (i - shared);
            f->pages[a * each + i] = (int32_t)page;
        }
    for (int a = 0; a < f->opt.answers; a++)
        f->pieces[a].pages = f->pages + a * each;
    return SNAP_OK;
}

/* If the last page of the prompt is not full, copies it for every answer except the first, whose
 * page it is. */
static snap_status copy_last_page(follow *f, int model, snap_err *err) {
    snap_status st = SNAP_OK;
    size_t full = f->prompt.n / MLA_PAGE;
    if (f->prompt.n % MLA_PAGE == 0)
        return SNAP_OK;
    for (int a = 1; a < f->opt.answers; a++)
        TRY(runner_copy_page(f->opt.models[model].runner, f->pieces[0].pages[full],
                             f->pieces[a].pages[full], err));
cleanup:
    return st;
}

static float *logits_of(follow *f, int model, int row) {
    return f->logits + ((int64_t)model * f->opt.answers + row) * f->vocab;
}

/* Runs one model on the prompt, in chunks of LOCAL_CHUNK tokens. Copies the logits after the last
 * token for every answer. */
static snap_status read_prompt(follow *f, int model, snap_err *err) {
    snap_status st = SNAP_OK;
    int64_t n = (int64_t)f->prompt.n;
    for (int64_t at = 0; at < n; at += LOCAL_CHUNK) {
        int64_t left = n - at;
        model_piece p = {.tokens = f->prompt.v + at,
                         .count = (int)(left < LOCAL_CHUNK ? left : LOCAL_CHUNK),
                         .position = at,
                         .pages = f->pieces[0].pages,
                         .logits = left <= LOCAL_CHUNK,
                         .chunk = true};
        if (f->opt.cancel && *f->opt.cancel)
            TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
        TRY(runner_step(f->opt.models[model].runner, &p, 1, logits_of(f, model, 0), err));
    }
    for (int a = 1; a < f->opt.answers; a++)
        memcpy(logits_of(f, model, a), logits_of(f, model, 0), (size_t)f->vocab * sizeof(float));
    st = copy_last_page(f, model, err);
cleanup:
    return st;
}

/* ---- the answers ---- */

/* Adds a drawn token to the reading of a model. @p, @q: probabilities of all tokens in the first
 * model and in this one. */
static void take(follow_reading *r, const double *p, const double *q, int vocab, int32_t token) {
    double outside = 0, ratio = q[token] / p[token];
    for (int i = 0; i < vocab; i++)
        outside += p[i] > 0 ? 0 : q[i];
    r->unseen += exp(r->log_ratio) * outside;
    r->log_ratio += log(ratio);
    r->diverged = 1 - (1 - r->diverged) * fmin(1, ratio);
}

static bool is_stop(const local_model *m, int32_t token) {
    for (int i = 0; i < m->n_stop_ids; i++)
        if (m->stop_ids[i] == token)
            return true;
    return false;
}

/* Draws the next token of a line and compares the models. @row: its row in each model's logits. */
static void draw(follow *f, line *l, int row, const sampling *how) {
    const float *first = logits_of(f, 0, row);
    sampler_distribution(f->sampler, how, first, f->p);
    l->token = sampler_draw(f->sampler, how, first, NULL, 0, &l->draws, NULL);
    for (int m = 1; m < f->opt.n; m++) {
        const float *other = logits_of(f, m, row);
        sampler_distribution(f->sampler, how, other, f->q);
        take(&l->out.reading[m], f->p, f->q, f->vocab, l->token);
        l->out.reading[m].kl += logits_divergence(first, other, f->vocab);
    }
    l->out.tokens++;
    l->ended = is_stop(&f->opt.models[0], l->token);
    if (!l->ended)
        tok_stream_push(&l->stream, l->token, &l->out.text);
}

/* Runs every model on the last token of each line that has not ended. @alive: number of these. */
static snap_status step(follow *f, int alive, snap_err *err) {
    snap_status st = SNAP_OK;
    model_piece pieces[LOCAL_SEQUENCES];
    if (f->opt.cancel && *f->opt.cancel)
        return err_set(err, SNAP_E_CANCELLED, "cancelled");
    for (int i = 0; i < alive; i++) {
        const line *l = &f->lines[f->alive[i]];
        pieces[i] = (model_piece){.tokens = &l->token,
                                  .count = 1,
                                  .position = (int64_t)f->prompt.n + l->out.tokens - 1,
                                  .pages = f->pieces[f->alive[i]].pages,
                                  .logits = 1};
    }
    for (int m = 0; m < f->opt.n; m++)
        TRY(runner_step(f->opt.models[m].runner, pieces, alive, logits_of(f, m, 0), err));
cleanup:
    return st;
}

static void start_lines(follow *f, uint64_t seed) {
    for (int a = 0; a < f->opt.answers; a++) {
        line *l = &f->lines[a];
        follow_reading *kept = l->out.reading;
        memset(kept, 0, (size_t)f->opt.n * sizeof *kept);
        buf_clear(&l->out.text);
        tok_stream_release(&l->stream);
        *l = (line){.out = {.text = l->out.text, .reading = kept},
                    .draws = rng_make(seed, (uint64_t)a),
                    .stream = tok_stream_make(f->opt.models[0].tokenizer, true)};
        f->alive[a] = a;
    }
}

static snap_status answer(follow *f, const sampling *how, int64_t most, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int alive = f->opt.answers; alive;) {
        int left = 0;
        for (int i = 0; i < alive; i++) {
            line *l = &f->lines[f->alive[i]];
            draw(f, l, i, how);
            l->out.truncated = !l->ended && l->out.tokens >= most;
            if (!l->ended && !l->out.truncated)
                f->alive[left++] = f->alive[i];
        }
        alive = left;
        if (alive)
            TRY(step(f, alive, err));
    }
cleanup:
    return st;
}

static snap_status collect(follow *f, snap_err *err) {
    for (int a = 0; a < f->opt.answers; a++) {
        line *l = &f->lines[a];
        tok_stream_finish(&l->stream, &l->out.text);
        snap_status st = buf_check(&l->out.text, "an answer", err);
        if (st != SNAP_OK)
            return st;
        f->result[a] = l->out;
    }
    return SNAP_OK;
}

snap_status follow_prompt(follow *f, const gen_message *messages, int n, const sampling *how,
                          uint64_t seed, int max_tokens, const follow_answer **out, snap_err *err) {
    snap_status st;
    int64_t room;
    f->prompt.n = 0;
    *out = f->result;
    TRY(local_prompt(&f->opt.models[0], messages, n, &f->prompt, err));
    room = runner_limits(f->opt.models[0].runner)->context - (int64_t)f->prompt.n;
    if (!f->prompt.n || room < 1)
        TRY(err_set(err, SNAP_E_INPUT,
                    "a prompt has %zu tokens, which leaves no room in a context "
                    "of %lld",
                    f->prompt.n, (long long)runner_limits(f->opt.models[0].runner)->context));
    if (room > max_tokens)
        room = max_tokens;
    TRY(place(f, (int64_t)f->prompt.n + room, err));
    for (int m = 0; m < f->opt.n; m++)
        TRY(read_prompt(f, m, err));
    start_lines(f, seed);
    TRY(answer(f, how, room, err));
    st = collect(f, err);
cleanup:
    return st;
}
