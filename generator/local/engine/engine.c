#include "generator/local/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "generator/local/engine/pool.h"

/* kStepPrompts: whose chunks one step takes. kDrawTogether: draws that a thread takes at a time. */
enum { kIdlePrompts = 4, kStepPrompts = 16, kDrawTogether = 16 };

/* A prompt that sequences start from. It holds its pages while any of them still waits to, and after
 * that until somebody needs them: the next samples may be on their way. */
typedef struct prompt {
    struct prompt *next;
    int32_t *tokens; /* owned */
    int n;
    int waiting;    /* sequences */
    int computed;   /* tokens in the cache; n = ready */
    int32_t *pages; /* owned; the first `held` are held */
    int held;
    int forks;     /* sequences that started from it since it was computed */
    float *logits; /* owned; of the last token */
} prompt;

typedef struct sequence {
    struct sequence *next, *prev; /* queue, running or swapped list */
    engine_request req;           /* its prompt pointer is not used any more */
    prompt *from;                 /* until it runs */
    rng rng;
    int32_t *tokens; /* owned: the prompt, then what was drawn */
    int n, n_prompt, room;
    int64_t cached; /* tokens in the cache: all but the last */
    int32_t *pages; /* owned [table]; the first `held` are held */
    int held;
    char *swapped; /* owned: `held` pages in host memory; NULL = in the cache */
} sequence;

/* First in, first out. */
typedef struct {
    sequence *first, *last;
    int n;
} sequence_list;

/* A running sequence's next token. */
typedef struct {
    sequence *s;
    int32_t token;
    float logprob;
} drawing;

struct engine {
    runner *r;
    kv_cache *cache;
    parallel *threads; /* the runner's */
    sampler **sampler; /* [threads] */
    page_pool pool;
    int vocab, chunk, table;
    int64_t context;
    bool recompute;
    prompt *prompts;
    sequence_list queue, running, swapped;
    model_piece *piece;            /* [max_decode + kStepPrompts] */
    float *logits;                 /* [max_decode + kStepPrompts][vocab] */
    drawing *drawing;              /* [max_decode] */
    prompt *chunked[kStepPrompts]; /* whose chunk the step's last pieces are */
    int chunks;
    engine_stats stats;
    int64_t running_steps, running_sum;
};

static void push(sequence_list *l, sequence *s) {
    s->next = NULL;
    s->prev = l->last;
    if (l->last)
        l->last->next = s;
    else
        l->first = s;
    l->last = s;
    l->n++;
}

static void push_front(sequence_list *l, sequence *s) {
    s->prev = NULL;
    s->next = l->first;
    if (l->first)
        l->first->prev = s;
    else
        l->last = s;
    l->first = s;
    l->n++;
}

static void take_out(sequence_list *l, sequence *s) {
    if (s->prev)
        s->prev->next = s->next;
    else
        l->first = s->next;
    if (s->next)
        s->next->prev = s->prev;
    else
        l->last = s->prev;
    l->n--;
}

static int pages_for(int64_t tokens) {
    return (int)((tokens + MLA_PAGE - 1) / MLA_PAGE);
}

/* ---- prompts ------------------------------------------------------------------------------------ */

static void prompt_drop_pages(engine *e, prompt *p) {
    for (int i = 0; i < p->held; i++)
        pool_drop(&e->pool, p->pages[i]);
    p->held = p->computed = p->forks = 0;
}

/* All prompts give up their pages, to be computed again. How many those were. */
static int drop_prompts(engine *e) {
    int pages = 0;
    for (prompt *p = e->prompts; p; p = p->next) {
        pages += p->held;
        prompt_drop_pages(e, p);
    }
    return pages;
}

static void prompt_free(engine *e, prompt *p) {
    if (!p)
        return;
    prompt_drop_pages(e, p);
    free(p->tokens);
    free(p->pages);
    free(p->logits);
    free(p);
}

/* Frees the prompts that nobody waits for, all but the newest @kept of them. Whether there were any. */
static bool free_idle_prompts(engine *e, int kept) {
    bool any = false;
    for (prompt **at = &e->prompts; *at;) {
        prompt *p = *at;
        if (p->waiting || kept-- > 0) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        prompt_free(e, p);
        any = true;
    }
    return any;
}

static void prompt_leave(engine *e, prompt *p) {
    p->waiting--;
    (void)free_idle_prompts(e, kIdlePrompts);
}

static int32_t take_page(engine *e) {
    int32_t page = pool_take(&e->pool);
    return page < 0 && free_idle_prompts(e, 0) ? pool_take(&e->pool) : page;
}

/* Whether @n pages are free, idle prompts given up for them. */
static bool have_pages(engine *e, int n) {
    if (e->pool.n_free < n)
        (void)free_idle_prompts(e, 0);
    return e->pool.n_free >= n;
}

static prompt *prompt_new(const engine *e, const int32_t *tokens, int n) {
    prompt *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->n = n;
    p->tokens = calloc((size_t)n, sizeof *p->tokens);
    p->pages = calloc((size_t)pages_for(n), sizeof *p->pages);
    p->logits = calloc((size_t)e->vocab, sizeof *p->logits);
    if (!p->tokens || !p->pages || !p->logits) {
        free(p->tokens);
        free(p->pages);
        free(p->logits);
        free(p);
        return NULL;
    }
    memcpy(p->tokens, tokens, (size_t)n * sizeof *tokens);
    return p;
}

/* The prompt of these tokens, one more sequence waiting for it. */
static prompt *prompt_join(engine *e, const int32_t *tokens, int n) {
    prompt *p = e->prompts;
    while (p && (p->n != n || memcmp(p->tokens, tokens, (size_t)n * sizeof *tokens) != 0))
        p = p->next;
    if (!p && (p = prompt_new(e, tokens, n))) {
        p->next = e->prompts;
        e->prompts = p;
    }
    if (p)
        p->waiting++;
    return p;
}

/* ---- sequences ---------------------------------------------------------------------------------- */

static void sequence_drop_pages(engine *e, sequence *s) {
    for (int i = 0; i < s->held && !s->swapped; i++)
        pool_drop(&e->pool, s->pages[i]);
    s->held = 0;
}

static void sequence_free(engine *e, sequence *s) {
    if (!s)
        return;
    sequence_drop_pages(e, s);
    if (s->from)
        prompt_leave(e, s->from);
    free(s->tokens);
    free(s->pages);
    free(s->swapped);
    free(s);
}

static void finish(engine *e, sequence_list *l, sequence *s, finish_reason why) {
    take_out(l, s);
    s->req.done(s->req.user, why);
    sequence_free(e, s);
}

snap_status engine_add(engine *e, const engine_request *req, snap_err *err) {
    if (req->n_prompt < 1 || req->n_prompt >= e->context)
        return err_set(err, SNAP_E_SHAPE, "a prompt of %d tokens: 1 to %lld fit", req->n_prompt,
                       (long long)e->context - 1);
    for (int i = 0; i < req->n_prompt; i++)
        if (req->prompt[i] < 0 || req->prompt[i] >= e->vocab)
            return err_set(err, SNAP_E_SHAPE, "token %d is not in the vocabulary of %d",
                           (int)req->prompt[i], e->vocab);
    int64_t room = e->context - req->n_prompt;
    room = req->n_prompt + (req->max_tokens < room ? req->max_tokens : room) + 1;
    sequence *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a sequence");
    s->req = *req;
    s->n = s->n_prompt = req->n_prompt;
    s->room = (int)room;
    s->rng = rng_make(req->seed, 0);
    s->tokens = calloc((size_t)room, sizeof *s->tokens);
    s->pages = calloc((size_t)e->table, sizeof *s->pages);
    s->from = s->tokens && s->pages ? prompt_join(e, req->prompt, req->n_prompt) : NULL;
    if (!s->from) {
        sequence_free(e, s);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a sequence of %lld tokens",
                       (long long)room);
    }
    memcpy(s->tokens, req->prompt, (size_t)s->n * sizeof *s->tokens);
    push(&e->queue, s);
    return SNAP_OK;
}

/* What depends on the sequence alone: any thread may do it. */
static void draw_token(engine *e, int worker, drawing *d, const float *logits) {
    sequence *s = d->s;
    d->logprob = 0;
    d->token = sampler_draw(e->sampler[worker], &s->req.sampling, logits, s->tokens, s->n, &s->rng,
                            s->req.logprobs ? &d->logprob : NULL);
}

static void draw_some(void *ctx, int worker, int64_t index) {
    engine *e = ctx;
    int first = (int)index * kDrawTogether, n = e->running.n;
    for (int i = first; i < first + kDrawTogether && i < n; i++)
        draw_token(e, worker, &e->drawing[i], e->logits + (int64_t)i * e->vocab);
}

/* Tells of a drawn token, and whether the sequence goes on. */
static bool take_token(const engine *e, const drawing *d, finish_reason *why) {
    sequence *s = d->s;
    *why = FINISH_STOP;
    for (int i = 0; i < s->req.n_stop_ids; i++)
        if (d->token == s->req.stop_ids[i])
            return false;
    s->tokens[s->n++] = d->token;
    if (!s->req.token(s->req.user, d->token, d->logprob))
        return false;
    *why = FINISH_LENGTH;
    return s->n - s->n_prompt < s->req.max_tokens && s->n <= e->context - 1;
}

/* ---- making room ----------------------------------------------------------------------------------- */

static snap_status swap_out(engine *e, sequence *s, snap_err *err) {
    snap_status st = SNAP_OK;
    size_t bytes = kv_cache_page_bytes(e->cache);
    char *host = malloc(bytes * (size_t)s->held + 1);
    if (!host)
        return err_set(err, SNAP_E_NOMEM, "out of memory for swapping %d pages", s->held);
    for (int i = 0; i < s->held; i++)
        TRY(kv_cache_read_page(e->cache, s->pages[i], host + bytes * (size_t)i, err));
    for (int i = 0; i < s->held; i++)
        pool_drop(&e->pool, s->pages[i]);
    s->swapped = host;
    host = NULL;
    take_out(&e->running, s);
    push_front(&e->swapped, s);
    e->stats.preemptions++;
cleanup:
    free(host);
    return st;
}

static snap_status swap_in(engine *e, sequence *s, snap_err *err) {
    snap_status st = SNAP_OK;
    size_t bytes = kv_cache_page_bytes(e->cache);
    for (int i = 0; i < s->held; i++)
        s->pages[i] = pool_take(&e->pool);
    char *host = s->swapped;
    s->swapped = NULL;
    take_out(&e->swapped, s);
    push(&e->running, s);
    for (int i = 0; i < s->held; i++)
        TRY(kv_cache_write_page(e->cache, s->pages[i], host + bytes * (size_t)i, err));
cleanup:
    free(host);
    return st;
}

/* Back to the front of the queue, as a prompt of all its tokens: what follows them is drawn from its logits. */
static snap_status requeue(engine *e, sequence *s, snap_err *err) {
    prompt *p = prompt_join(e, s->tokens, s->n);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a sequence of %d tokens", s->n);
    sequence_drop_pages(e, s);
    s->from = p;
    take_out(&e->running, s);
    push_front(&e->queue, s);
    e->stats.preemptions++;
    e->stats.recomputed += s->n;
    return SNAP_OK;
}

/* ---- admission ---------------------------------------------------------------------------------- */

/* Swapped sequences come back in their order, each with a page to grow. */
static snap_status admit_swapped(engine *e, snap_err *err) {
    snap_status st = SNAP_OK;
    int most = runner_limits(e->r)->max_decode;
    while (st == SNAP_OK && e->swapped.n && e->running.n < most) {
        sequence *s = e->swapped.first;
        /* Nothing else runs: what a prompt holds for later is given up. */
        if (!have_pages(e, s->held + 1) && !e->running.n)
            (void)drop_prompts(e);
        if (e->pool.n_free < s->held + (e->running.n > 0))
            break;
        st = swap_in(e, s, err);
    }
    return st;
}

/* A prompt gets its pages. */
static void start_prompt(engine *e, prompt *p) {
    int need = pages_for(p->n);
    if (p->held)
        return;
    if (!have_pages(e, need + e->running.n) && !e->running.n)
        (void)drop_prompts(e);
    if (e->pool.n_free < need + e->running.n) /* those that run will grow */
        return;
    while (p->held < need)
        p->pages[p->held++] = pool_take(&e->pool);
}

/* A sequence gets a ready prompt's pages: full ones together with the others, of the last one a copy,
 * or the page itself where only the prompt has it, which will not write there. */
static snap_status fork_pages(engine *e, sequence *s, bool *done, snap_err *err) {
    snap_status st = SNAP_OK;
    prompt *p = s->from;
    int last = p->held - 1;
    bool copy = p->n % MLA_PAGE != 0 && e->pool.holders[p->pages[last]] > 1;
    *done = !copy || have_pages(e, 1);
    if (!*done)
        return SNAP_OK;
    for (int i = 0; i < p->held; i++) {
        s->pages[i] = p->pages[i];
        pool_hold(&e->pool, s->pages[i]);
    }
    s->held = p->held;
    e->stats.shared += p->forks++ ? p->n : 0;
    if (copy) {
        pool_drop(&e->pool, s->pages[last]);
        s->pages[last] = pool_take(&e->pool);
        TRY(runner_copy_page(e->r, p->pages[last], s->pages[last], err));
    }
cleanup:
    return st;
}

/* Drawn from what its prompt left. Whether the sequence goes on. */
static bool first_token(engine *e, sequence *s, finish_reason *why) {
    drawing d = {.s = s};
    draw_token(e, 0, &d, s->from->logits);
    return take_token(e, &d, why);
}

static snap_status admit_queue(engine *e, snap_err *err) {
    snap_status st = SNAP_OK;
    int most = runner_limits(e->r)->max_decode;
    while (e->queue.n && !e->swapped.n && e->running.n < most) {
        sequence *s = e->queue.first;
        prompt *p = s->from;
        bool done;
        finish_reason why = FINISH_LENGTH;
        if (pages_for(p->n) > e->pool.pages) {
            finish(e, &e->queue, s, FINISH_NO_ROOM);
            continue;
        }
        start_prompt(e, p);
        if (p->computed < p->n)
            break;
        TRY(fork_pages(e, s, &done, err));
        if (!done)
            break;
        s->cached = s->n;
        bool on = s->req.max_tokens > 0 && first_token(e, s, &why);
        prompt_leave(e, p);
        s->from = NULL;
        if (on) {
            take_out(&e->queue, s);
            push(&e->running, s);
        } else {
            finish(e, &e->queue, s, why);
        }
    }
cleanup:
    return st;
}

/* ---- step --------------------------------------------------------------------------------------- */

/* A page for the next token of every running sequence; those that came last make room. */
static snap_status make_room(engine *e, snap_err *err) {
    snap_status st = SNAP_OK;
    bool gone = false; /* the one at hand was the last, and made room itself */
    for (sequence *s = e->running.first; s; s = gone ? NULL : s->next)
        while (!gone && s->held < pages_for(s->cached + 1)) {
            int32_t page = take_page(e);
            if (page >= 0) {
                s->pages[s->held++] = page;
            } else if (e->running.n > 1) {
                gone = s == e->running.last;
                TRY((e->recompute ? requeue : swap_out)(e, e->running.last, err));
            } else if (!drop_prompts(e)) {
                finish(e, &e->running, s, FINISH_NO_ROOM);
                return SNAP_OK;
            }
        }
cleanup:
    return st;
}

/* A prompt is cut at multiples of e->chunk, whatever else a step does. */
static int chunk_of(const engine *e, const prompt *p) {
    int left = p->n - p->computed;
    return left < e->chunk ? left : e->chunk;
}

static bool is_chunked(const engine *e, const prompt *p) {
    for (int i = 0; i < e->chunks; i++)
        if (e->chunked[i] == p)
            return true;
    return false;
}

/* The prompts that this step goes on with: the first in the queue's, and those behind it while their chunks
 * fit beside it and pages are plenty. */
static void add_chunks(engine *e) {
    int room = e->chunk;
    e->chunks = 0;
    for (sequence *s = e->queue.first; s && e->chunks < kStepPrompts; s = s->next) {
        prompt *p = s->from;
        if (p->computed == p->n || is_chunked(e, p))
            continue;
        if (e->chunks && e->pool.n_free > 2 * (pages_for(p->n) + e->running.n))
            start_prompt(e, p);
        if (!p->held || chunk_of(e, p) > room)
            break;
        room -= chunk_of(e, p);
        e->chunked[e->chunks++] = p;
    }
}

static int build_step(engine *e) {
    int n = 0;
    for (sequence *s = e->running.first; s; s = s->next)
        e->piece[n++] = (model_piece){.tokens = s->tokens + s->cached,
                                      .count = 1,
                                      .position = s->cached,
                                      .pages = s->pages,
                                      .logits = 1};
    add_chunks(e);
    for (int i = 0; i < e->chunks; i++) {
        const prompt *p = e->chunked[i];
        int count = chunk_of(e, p);
        e->piece[n++] = (model_piece){.tokens = p->tokens + p->computed,
                                      .count = count,
                                      .position = p->computed,
                                      .pages = p->pages,
                                      .logits = p->computed + count == p->n,
                                      .chunk = true};
    }
    return n;
}

static void count_step(engine *e, int pieces) {
    engine_stats *s = &e->stats;
    int pages = e->pool.pages - e->pool.n_free;
    s->steps++;
    s->decoded += e->running.n;
    for (int i = e->running.n; i < pieces; i++)
        s->prefilled += e->piece[i].count;
    s->most_running = e->running.n > s->most_running ? e->running.n : s->most_running;
    s->most_pages = pages > s->most_pages ? pages : s->most_pages;
    if (e->running.n) {
        e->running_steps++;
        e->running_sum += e->running.n;
    }
}

static void take_chunks(engine *e, const float *logits) {
    for (int i = 0; i < e->chunks; i++) {
        prompt *p = e->chunked[i];
        p->computed += chunk_of(e, p);
        if (p->computed < p->n)
            continue;
        memcpy(p->logits, logits, (size_t)e->vocab * sizeof *p->logits);
        logits += e->vocab;
    }
}

/* What the step gave: a token for each that ran, the prompts' progress. */
static void take_results(engine *e) {
    int n = 0, tasks = (e->running.n + kDrawTogether - 1) / kDrawTogether;
    for (sequence *s = e->running.first; s; s = s->next)
        e->drawing[n++].s = s;
    if (tasks > 1)
        parallel_for(e->threads, tasks, draw_some, e);
    else
        draw_some(e, 0, 0);
    take_chunks(e, e->logits + (int64_t)n * e->vocab);
    for (int i = 0; i < n; i++) {
        finish_reason why;
        e->drawing[i].s->cached++;
        if (!take_token(e, &e->drawing[i], &why))
            finish(e, &e->running, e->drawing[i].s, why);
    }
}

snap_status engine_step(engine *e, snap_err *err) {
    snap_status st;
    TRY(admit_swapped(e, err));
    TRY(admit_queue(e, err));
    TRY(make_room(e, err));
    int pieces = build_step(e);
    if (pieces) {
        TRY(runner_step(e->r, e->piece, pieces, e->logits, err));
        count_step(e, pieces);
        take_results(e);
    }
cleanup:
    return st;
}

int engine_pending(const engine *e) {
    return e->queue.n + e->running.n + e->swapped.n;
}

engine_stats engine_stats_of(const engine *e) {
    engine_stats s = e->stats;
    s.mean_running = e->running_steps ? (double)e->running_sum / (double)e->running_steps : 0;
    return s;
}

/* ---- life --------------------------------------------------------------------------------------- */

static snap_status create_samplers(engine *e, snap_err *err) {
    snap_status st = SNAP_OK;
    int n = parallel_threads(e->threads);
    e->sampler = calloc((size_t)n, sizeof(void *));
    if (!e->sampler)
        return err_set(err, SNAP_E_NOMEM, "out of memory for sampling");
    for (int i = 0; i < n; i++)
        TRY(sampler_create(&e->sampler[i], e->vocab, err));
cleanup:
    return st;
}

snap_status engine_create(engine **out, runner *r, snap_err *err) {
    *out = NULL;
    snap_status st;
    const runner_options *o = runner_limits(r);
    engine *e = calloc(1, sizeof *e);
    if (!e)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an engine");
    e->r = r;
    e->cache = runner_cache(r);
    e->vocab = runner_shape(r)->vocab_size;
    e->context = o->context;
    e->table = pages_for(o->context);
    e->chunk = o->max_rows - o->max_decode;
    if (e->chunk < 1)
        TRY(err_set(err, SNAP_E_SHAPE, "steps of %d tokens leave no room for prompts beside %d",
                    o->max_rows, o->max_decode));
    e->threads = runner_pool(r);
    TRY(create_samplers(e, err));
    TRY(pool_init(&e->pool, (int32_t)o->pages, err));
    size_t pieces = (size_t)o->max_decode + kStepPrompts;
    e->piece = calloc(pieces, sizeof *e->piece);
    e->logits = calloc(pieces * (size_t)e->vocab, sizeof *e->logits);
    e->drawing = calloc((size_t)o->max_decode, sizeof *e->drawing);
    if (!e->piece || !e->logits || !e->drawing)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for %d sequences", o->max_decode));
    *out = e;
    e = NULL;
cleanup:
    engine_free(e);
    return st;
}

static void free_list(engine *e, sequence_list *l) {
    for (sequence *s = l->first, *next; s; s = next) {
        next = s->next;
        sequence_free(e, s);
    }
    *l = (sequence_list){0};
}

void engine_recompute(engine *e, bool on) {
    e->recompute = on;
}

void engine_clear(engine *e) {
    free_list(e, &e->queue);
    free_list(e, &e->running);
    free_list(e, &e->swapped);
    (void)free_idle_prompts(e, 0);
}

void engine_free(engine *e) {
    if (!e)
        return;
    engine_clear(e);
    for (int i = 0; e->sampler && i < parallel_threads(e->threads); i++)
        sampler_free(e->sampler[i]);
    free(e->sampler);
    pool_release(&e->pool);
    free(e->piece);
    free(e->logits);
    free(e->drawing);
    free(e);
}

/* ---- teacher forcing ----------------------------------------------------------------------------- */

/* What a scored text asks for. */
typedef struct {
    int n;
    float *rows, *logprobs;
    engine_logits_fn fn;
    void *ctx;
} scoring;

static snap_status score_piece(engine *e, const scoring *s, const model_piece *p, snap_err *err) {
    snap_status st = runner_step(e->r, p, 1, s->rows, err);
    for (int i = 0; st == SNAP_OK && i < p->count; i++) {
        const float *row = s->rows + (int64_t)i * e->vocab;
        if (p->position + i + 1 < s->n)
            s->logprobs[p->position + i] = (float)token_logprob(row, e->vocab, p->tokens[i + 1]);
        if (s->fn)
            s->fn(s->ctx, p->position + i, row);
    }
    return st;
}

snap_status engine_score(engine *e, const int32_t *tokens, int n, int piece, float *logprobs,
                         engine_logits_fn logits, void *ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    int held = 0, need = pages_for(n);
    int32_t *pages = calloc((size_t)need + 1, sizeof *pages);
    float *rows = calloc((size_t)piece * (size_t)e->vocab, sizeof *rows);
    scoring s = {.n = n, .rows = rows, .logprobs = logprobs, .fn = logits, .ctx = ctx};
    if (!pages || !rows) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for scoring %d tokens", n);
        goto cleanup;
    }
    if (engine_pending(e) || !have_pages(e, need))
        TRY(err_set(err, SNAP_E_SHAPE, "%d tokens need %d pages, %d are free", n, need,
                    (int)e->pool.n_free));
    while (held < need)
        pages[held++] = pool_take(&e->pool);
    for (int64_t at = 0; at < n; at += piece) {
        int count = n - at < piece ? (int)(n - at) : piece;
        model_piece p = {.tokens = tokens + at,
                         .count = count,
                         .position = at,
                         .pages = pages,
                         .logits = count,
                         .chunk = piece > 1};
        TRY(score_piece(e, &s, &p, err));
    }
cleanup:
    for (int i = 0; i < held; i++)
        pool_drop(&e->pool, pages[i]);
    free(pages);
    free(rows);
    return st;
}
