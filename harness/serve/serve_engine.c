#include "harness/serve/serve_engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

struct serve_choice {
    serve_job *job;
    serve_engine *engine;
    int index;
    tok_stream stream;
    buf text;    /* only used if there are stop strings: what they are searched in */
    size_t sent; /* bytes of `text` that were passed on */
    int64_t tokens;
    int n_top;
    int cached; /* tokens of the prompt that were in the cache, until they are passed on */
    bool stops; /* the request has stop strings. This flag is not in the job, because there it would
                   lie beside fields that the server's thread writes for each token */
    bool stopped, done;
    token_logit top[ENGINE_TOP];
};

struct serve_engine {
    local_model *m;
    int wake;
    pthread_t thread;

    /* used by the engine's thread only */
    serve_job *active;  /* jobs that have begun and not ended */
    serve_job *touched; /* jobs that ended, or that lost pieces */
    serve_news made;    /* news of all jobs since the last publication */
    int64_t begun;      /* choices of all jobs that have begun */

    pthread_mutex_t lock; /* guards what follows, and what the threads share of a job */
    pthread_cond_t work;
    serve_job *in, **in_end; /* submitted */
    serve_job *cancels;
    serve_news ready;                      /* news of all jobs, published and not collected */
    serve_job *published, **published_end; /* jobs that ended, or that lost pieces */
    bool stop;
    serve_load load;

    /* used by the server's thread only */
    serve_news taken;
};

/* ---- new tokens of jobs ---- */

void serve_news_clear(serve_news *n) {
    n->n = n->n_top = 0;
    n->failed = false;
    buf_clear(&n->text);
}

static void news_release(serve_news *n) {
    free(n->v);
    free(n->top);
    buf_release(&n->text);
    *n = (serve_news){0};
}

/* Makes room for @more elements after the first @n. */
static bool reserve(void **v, size_t *cap, size_t n, size_t more, size_t size) {
    if (n + more <= *cap)
        return true;
    size_t want = 2 * (n + more) + 6;
    void *p = realloc(*v, want * size);
    if (!p)
        return false;
    *v = p;
    *cap = want;
    return true;
}

/* Adds a piece, but not its text. */
static bool add_piece(serve_news *to, const serve_piece *p, const token_logit *top) {
    void *v = to->v, *t = to->top;
    bool ok = reserve(&v, &to->cap, to->n, 1, sizeof *to->v);
    to->v = v;
    ok = ok && reserve(&t, &to->cap_top, to->n_top, (size_t)p->n_top, sizeof *to->top);
    to->top = t;
    if (!ok)
        return false;
    to->v[to->n++] = *p;
    if (p->n_top)
        memcpy(to->top + to->n_top, top, (size_t)p->n_top * sizeof *top);
    to->n_top += (size_t)p->n_top;
    return true;
}

/* Adds a piece with its text. If memory is exhausted, the text is cut off again. */
static bool news_add(serve_news *to, const serve_piece *p, const token_logit *top,
                     const char *text) {
    size_t before = to->text.len;
    bool ok = buf_append(&to->text, text, p->text_n) && add_piece(to, p, top);
    if (!ok && to->text.len > before)
        to->text.len = before;
    return ok;
}

/* ---- callbacks of the engine ---- */

static void touch(serve_engine *e, serve_job *j) {
    if (j->touched)
        return;
    j->touched = true;
    j->next_touched = e->touched;
    e->touched = j;
}

static void lose(serve_engine *e, serve_job *j) {
    j->lost = true;
    touch(e, j);
}

/* The buffer to which the text of a choice is appended: with stop strings the choice's own, else
 * that of the news. */
static buf *text_of(serve_choice *c) {
    return c->stops ? &c->text : &c->engine->made.text;
}

/* Adds the piece @p with the text that no stop string can cut any more; with @end, all text.
 * Without stop strings the text from @seen on is already in the news. */
static void pass(serve_choice *c, serve_piece *p, size_t seen, bool end) {
    serve_job *j = c->job;
    serve_news *made = &c->engine->made;
    bool ok = !text_of(c)->failed;
    p->job = j;
    p->choice = c->index;
    p->ns = clock_now_ns();
    p->cached = c->cached;
    c->cached = 0;
    if (c->stops) {
        size_t sure = end ? c->text.len : stop_settled(&j->stop, buf_str(&c->text), c->text.len);
        p->text_n = sure > c->sent ? sure - c->sent : 0;
        ok &= news_add(made, p, c->top, buf_str(&c->text) + c->sent);
        c->sent += p->text_n;
    } else {
        p->text_n = made->text.len - seen;
        ok = ok && add_piece(made, p, c->top);
    }
    if (ok)
        return;
    if (!c->stops && made->text.len > seen)
        made->text.len = seen; /* the text of the other pieces remains in its place */
    made->text.failed = false;
    lose(c->engine, j);
}

static void take_start(void *user, int cached) {
    serve_choice *c = user;
    c->cached = cached;
}

static void take_top(void *user, const token_logit *top, int n) {
    serve_choice *c = user;
    c->n_top = n;
    memcpy(c->top, top, (size_t)n * sizeof *top);
}

/* Cuts the text before the first stop string in it. The bytes from @seen on are new. False if there
 * is none, or if the choice has fewer than min_tokens tokens. */
static bool cut(serve_choice *c, size_t seen) {
    const serve_job *j = c->job;
    return c->stops && c->tokens >= j->how.min_tokens && stop_cut(&j->stop, &c->text, seen);
}

static bool take_token(void *user, int32_t token, float logprob) {
    serve_choice *c = user;
    buf *text = text_of(c);
    size_t seen = text->len;
    tok_stream_push(&c->stream, token, text);
    c->tokens++;
    c->stopped = cut(c, seen);
    serve_piece p = {.kind = PIECE_TOKEN, .token = token, .logprob = logprob, .n_top = c->n_top};
    pass(c, &p, seen, c->stopped);
    return !c->stopped;
}

static void take_score(void *user, int position, float logprob, const token_logit *top, int n) {
    serve_choice *c = user;
    serve_scores *to = &c->job->scores[c->index];
    size_t k = (size_t)c->job->how.top_logprobs;
    to->logprob[position] = logprob;
    if (n)
        memcpy(to->top + (size_t)position * k, top, (size_t)n * sizeof *top);
    to->n_top[position] = n;
}

/* Ends a choice. tok_stream_finish() appends the text of an incomplete character, and a stop string
 * may end in it. */
static void end_choice(serve_choice *c, piece_kind kind) {
    serve_piece p = {.kind = kind};
    buf *text = text_of(c);
    size_t seen = text->len;
    c->done = true;
    c->job->left--;
    if (!c->stopped)
        tok_stream_finish(&c->stream, text);
    if (!c->stopped && kind == PIECE_LENGTH && cut(c, seen))
        p.kind = PIECE_STOP;
    pass(c, &p, seen, true);
    if (!c->job->left)
        touch(c->engine, c->job);
    tok_stream_release(&c->stream);
    buf_release(&c->text);
}

/* Ends a choice with a failure. The first failure of a job becomes its error, and then does not
 * change. */
static void fail_choice(serve_choice *c, const snap_err *err) {
    if (!c->job->error[0])
        (void)snprintf(c->job->error, sizeof c->job->error, "%.299s", err->text);
    end_choice(c, PIECE_FAILED);
}

static void take_end(void *user, finish_reason why) {
    serve_choice *c = user;
    const serve_job *j = c->job;
    snap_err err = {0};
    int64_t tokens = (int64_t)j->prompts[c->index / j->n].n + c->tokens;
    if (local_finish_error(c->engine->m, why, tokens, &err) != SNAP_OK)
        fail_choice(c, &err);
    else
        end_choice(c, why == FINISH_STOP ? PIECE_STOP : PIECE_LENGTH);
}

/* ---- jobs ---- */

static void add_choice(serve_engine *e, serve_job *j, int i) {
    serve_choice *c = &j->choice[i];
    const tok_ids *prompt = &j->prompts[i / j->n];
    snap_err err = {0};
    *c = (serve_choice){.job = j, .engine = e, .index = i, .stops = j->stop.n > 0};
    c->stream = tok_stream_make(e->m->tokenizer, true);
    engine_request req = j->how;
    req.prompt = prompt->v;
    req.n_prompt = prompt->n < INT32_MAX ? (int)prompt->n : INT32_MAX;
    req.seed += (uint64_t)(i % j->n);
    req.start = take_start;
    req.token = take_token;
    req.done = take_end;
    req.top = req.logprobs ? take_top : NULL;
    req.score = j->scores ? take_score : NULL;
    req.user = c;
    if (engine_add(e->m->engine, &req, &err) != SNAP_OK)
        fail_choice(c, &err);
}

static void begin_job(serve_engine *e, serve_job *j) {
    int n = j->n_prompts * j->n;
    j->next = e->active;
    if (j->next)
        j->next->prev = j;
    e->active = j;
    j->left = n;
    e->begun += n;
    for (int i = 0; i < n; i++)
        add_choice(e, j, i);
}

static void drop_choices(serve_engine *e, serve_job *j) {
    for (int i = 0; i < j->n_prompts * j->n; i++) {
        serve_choice *c = &j->choice[i];
        if (c->done)
            continue;
        (void)engine_remove(e->m->engine, c);
        tok_stream_release(&c->stream);
        buf_release(&c->text);
        c->done = true;
    }
    j->left = 0;
}

static void cancel_job(serve_engine *e, serve_job *j) {
    if (j->ended)
        return;
    drop_choices(e, j);
    touch(e, j);
}

/* Takes the job off the lists of active and cancelled jobs, because the server's thread may free it
 * once it is published. */
static void end_job(serve_engine *e, serve_job *j) {
    serve_job **at = &e->cancels;
    while (*at && *at != j)
        at = &(*at)->next_cancel;
    if (*at)
        *at = j->next_cancel;
    if (j->prev)
        j->prev->next = j->next;
    else
        e->active = j->next;
    if (j->next)
        j->next->prev = j->prev;
    j->ended = true;
}

/* Fails all choices that have not ended, after a failed step. */
static void fail_all(serve_engine *e, const snap_err *err) {
    engine_clear(e->m->engine);
    for (serve_job *j = e->active; j; j = j->next)
        for (int i = 0; i < j->n_prompts * j->n; i++)
            if (!j->choice[i].done)
                fail_choice(&j->choice[i], err);
}

/* ---- the engine's thread ---- */

/* Moves the new pieces to those that are published. The caller holds the lock. */
static void publish_pieces(serve_engine *e) {
    serve_news *from = &e->made, *to = &e->ready;
    size_t text = 0, top = 0;
    if (!to->n) {
        serve_news empty = *to;
        *to = *from;
        *from = empty;
    } else {
        for (size_t i = 0; i < from->n; i++) {
            const serve_piece *p = &from->v[i];
            if (!news_add(to, p, from->top + top, buf_str(&from->text) + text)) {
                to->text.failed = false;
                lose(e, p->job);
            }
            text += p->text_n;
            top += (size_t)p->n_top;
        }
    }
    serve_news_clear(from);
}

/* Hands the new pieces and ends to the server's thread. The caller holds the lock. */
static void publish(serve_engine *e) {
    bool any = e->touched || e->made.n;
    publish_pieces(e);
    while (e->touched) {
        serve_job *j = e->touched;
        e->touched = j->next_touched;
        j->touched = false;
        j->lost_published = j->lost;
        if (!j->left)
            end_job(e, j);
        if (!j->published) {
            j->published = true;
            j->next_published = NULL;
            *e->published_end = j;
            e->published_end = &j->next_published;
        }
    }
    e->load.now = engine_load_of(e->m->engine);
    e->load.stats = engine_stats_of(e->m->engine);
    e->load.begun = e->begun;
    uint64_t one = 1;
    if (any && write(e->wake, &one, sizeof one) < 0) {
        /* The write fails only if the counter of the eventfd is full. Then the server's thread has
         * not read it yet, and will wake up. */
    }
}

/* Begins and cancels jobs, then runs one step. What exists before the step is published before it,
 * such as the first tokens of prompts that are in the cache. */
static snap_status turn(serve_engine *e, serve_job *in, serve_job *cancels, snap_err *err) {
    snap_status st = runner_use(e->m->runner, err);
    for (serve_job *j = in, *next; j; j = next) {
        next = j->next_in;
        begin_job(e, j);
    }
    for (serve_job *j = cancels, *next; j; j = next) {
        next = j->next_cancel;
        cancel_job(e, j);
    }
    if (st == SNAP_OK)
        st = engine_admit(e->m->engine, err);
    if (st == SNAP_OK && (e->touched || e->made.n)) {
        (void)pthread_mutex_lock(&e->lock);
        publish(e);
        (void)pthread_mutex_unlock(&e->lock);
    }
    if (st == SNAP_OK)
        st = engine_step(e->m->engine, err);
    if (st == SNAP_OK)
        return SNAP_OK;
    if (*e->m->name)
        err_prefix(err, "%s", e->m->name);
    fail_all(e, err);
    return st;
}

static void *run(void *ctx) {
    serve_engine *e = ctx;
    (void)pthread_mutex_lock(&e->lock);
    while (!e->stop) {
        if (!e->in && !e->cancels && !engine_pending(e->m->engine)) {
            (void)pthread_cond_wait(&e->work, &e->lock);
            continue;
        }
        serve_job *in = e->in, *cancels = e->cancels;
        snap_err err = {0};
        int64_t begun_ns = clock_now_ns();
        e->in = e->cancels = NULL;
        e->in_end = &e->in;
        (void)pthread_mutex_unlock(&e->lock);
        bool failed = turn(e, in, cancels, &err) != SNAP_OK;
        (void)pthread_mutex_lock(&e->lock);
        if (failed && !e->load.broken) {
            e->load.broken = true;
            e->load.reason = err;
        }
        publish(e);
        e->load.busy_ns += clock_now_ns() - begun_ns;
    }
    (void)pthread_mutex_unlock(&e->lock);
    engine_clear(e->m->engine);
    for (serve_job *j = e->active; j; j = j->next)
        drop_choices(e, j);
    return NULL;
}

/* ---- for the server's thread ---- */

bool serve_job_prepare(serve_job *j) {
    j->choice = calloc((size_t)j->n_prompts * (size_t)j->n, sizeof *j->choice);
    return j->choice != NULL;
}

void serve_engine_submit(serve_engine *e, serve_job *j) {
    (void)pthread_mutex_lock(&e->lock);
    j->next_in = NULL;
    *e->in_end = j;
    e->in_end = &j->next_in;
    (void)pthread_cond_signal(&e->work);
    (void)pthread_mutex_unlock(&e->lock);
}

void serve_engine_cancel(serve_engine *e, serve_job *j) {
    (void)pthread_mutex_lock(&e->lock);
    if (!j->cancelled && !j->ended) {
        j->cancelled = true;
        j->next_cancel = e->cancels;
        e->cancels = j;
        (void)pthread_cond_signal(&e->work);
    }
    (void)pthread_mutex_unlock(&e->lock);
}

/* Appends a job to the list that serve_engine_collect() returns, unless it is in it already.
 * Returns the new end of the list. */
static serve_job **list_job(serve_job **end, serve_job *j) {
    if (j->listed)
        return end;
    j->listed = true;
    j->next_news = NULL;
    *end = j;
    return &j->next_news;
}

/* Gives the collected pieces to their jobs. */
static serve_job **sort_by_jobs(const serve_news *all, serve_job **end) {
    const char *text = buf_str(&all->text);
    const token_logit *top = all->top;
    for (size_t i = 0; i < all->n; i++) {
        const serve_piece *p = &all->v[i];
        if (!news_add(&p->job->news, p, top, text))
            p->job->news.failed = true;
        end = list_job(end, p->job);
        text += p->text_n;
        top += p->n_top;
    }
    return end;
}

serve_job *serve_engine_collect(serve_engine *e, serve_load *load) {
    serve_job *list = NULL, **end = &list;
    (void)pthread_mutex_lock(&e->lock);
    serve_news empty = e->taken;
    e->taken = e->ready;
    e->ready = empty;
    for (serve_job *j = e->published; j; j = j->next_published) {
        j->published = false;
        j->released = j->ended;
        j->news.failed |= j->lost_published;
        end = list_job(end, j); /* the engine may publish a job of the list again */
    }
    e->published = NULL;
    e->published_end = &e->published;
    *load = e->load;
    (void)pthread_mutex_unlock(&e->lock);
    (void)sort_by_jobs(&e->taken, end);
    serve_news_clear(&e->taken);
    for (serve_job *j = list; j; j = j->next_news)
        j->listed = false;
    return list;
}

void serve_job_release(serve_job *j) {
    news_release(&j->news);
    free(j->choice);
    j->choice = NULL;
}

snap_status serve_engine_start(serve_engine **out, local_model *m, int wake, snap_err *err) {
    serve_engine *e = calloc(1, sizeof *e);
    *out = NULL;
    if (!e)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a server");
    e->m = m;
    e->wake = wake;
    e->in_end = &e->in;
    e->published_end = &e->published;
    e->load.now = engine_load_of(m->engine);
    (void)pthread_mutex_init(&e->lock, NULL);
    (void)pthread_cond_init(&e->work, NULL);
    if (pthread_create(&e->thread, NULL, run, e) != 0) {
        free(e);
        return err_set(
            err, SNAP_E_IO,
            "cannot start the engine's thread: there is too little memory, or there are too "
            "many threads");
    }
    *out = e;
    return SNAP_OK;
}

void serve_engine_stop(serve_engine *e) {
    if (!e)
        return;
    (void)pthread_mutex_lock(&e->lock);
    e->stop = true;
    (void)pthread_cond_signal(&e->work);
    (void)pthread_mutex_unlock(&e->lock);
    (void)pthread_join(e->thread, NULL);
    (void)pthread_mutex_destroy(&e->lock);
    (void)pthread_cond_destroy(&e->work);
    news_release(&e->made);
    news_release(&e->ready);
    news_release(&e->taken);
    free(e);
}
