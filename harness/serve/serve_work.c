/* serve_work.c - turns a request into a job of the engine, and the news of the job (new tokens and
 * ends of choices) into an answer. Small requests are read at once, large ones by the worker
 * (serve_worker.h). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "harness/serve/serve_parts.h"

/* ---- a request becomes a job ---- */

/* Makes room for the scores of each choice's prompt. */
static bool make_scores(serve_work *w, openai_error *e) {
    size_t k = (size_t)w->req.top_logprobs;
    serve_scores *all = arena_alloc(&w->scores, (size_t)w->choices, sizeof *all);
    for (int i = 0; all && i < w->choices; i++) {
        size_t n = w->prompts[i / w->req.n].n;
        serve_scores *s = &all[i];
        s->logprob = arena_alloc(&w->scores, n, sizeof *s->logprob);
        s->n_top = arena_alloc(&w->scores, n, sizeof *s->n_top);
        s->top = k ? arena_alloc(&w->scores, n * k, sizeof *s->top) : NULL;
        if (!s->logprob || !s->n_top || (k && !s->top))
            return serve_no_memory(e);
    }
    w->job.scores = all;
    return all || serve_no_memory(e);
}

static void fill_job(server *s, serve_work *w) {
    const openai_request *r = &w->req;
    serve_job *j = &w->job;
    int64_t most = r->max_tokens < 0 ? s->context - (int64_t)w->prompts[0].n : r->max_tokens;
    j->prompts = w->prompts;
    j->n_prompts = r->n_prompts;
    j->n = r->n;
    j->stop = r->stop;
    j->user = w;
    j->how = (engine_request){.sampling = r->sampling,
                              .seed = r->has_seed ? r->seed : rng_u64(&s->random),
                              .max_tokens = (int)most,
                              .min_tokens = (int)r->min_tokens,
                              .logprobs = r->logprobs,
                              .top_logprobs = r->logprobs ? r->top_logprobs : 0,
                              .stop_ids = r->ignore_eos ? NULL : s->m->stop_ids,
                              .n_stop_ids = r->ignore_eos ? 0 : s->m->n_stop_ids};
}

/* The number of sequences of a client that wait or run. A large request counts as one until it is
 * read. */
static int64_t pending_of(const server *s, const serve_client *c) {
    int64_t n = 0;
    for (const serve_work *w = s->work; w; w = w->next)
        if (memcmp(&w->client, c, sizeof *c) == 0)
            n += w->queued ? 1 : w->choices;
    return n;
}

/* Whether a client may have @choices further sequences. The work of this request is already in the
 * list, but still has 0 choices. */
static bool check_client(exchange *x, int choices, openai_error *e) {
    int most = x->s->o->max_per_client;
    int64_t has = most ? pending_of(x->s, &x->client) : 0;
    if (!most || has + choices <= most)
        return true;
    x->retry_after = 1;
    return openai_fail(e, 429, NULL, "client_limit",
                       "%lld sequences of your address wait or run, and this request would add %d: "
                       "at most %d are possible",
                       (long long)has, choices, most);
}

/* Whether the queue has room for the choices of a request. */
static bool check_queue(exchange *x, int choices, openai_error *e) {
    const server *s = x->s;
    int64_t most = (int64_t)engine_most_running(s->m->engine) * s->m->replicas + s->o->max_queue;
    if (s->pending + choices <= most)
        return true;
    x->retry_after = 1;
    return openai_fail(e, 429, NULL, "queue_full",
                       "%d sequences wait or run, and this request would add %d: at most %lld are "
                       "possible",
                       s->pending, choices, (long long)most);
}

/* Whether the request may join. Sets the number of its choices. */
static bool admit(exchange *x, serve_work *w, openai_error *e) {
    const server *s = x->s;
    int choices = w->req.n * w->req.n_prompts;
    w->queued = false;
    if (s->load.all.broken)
        return openai_fail(e, 503, NULL, NULL, "the engine has failed: %s",
                           s->load.all.reason.text);
    if (!check_client(x, choices, e) || !check_queue(x, choices, e))
        return false;
    w->choices = choices;
    return true;
}

/* Prepares the job and the answer, after the prompts have been read. */
static bool prepare(server *s, serve_work *w, openai_error *e) {
    const openai_request *r = &w->req;
    snap_err err = {0};
    w->last_ns = calloc((size_t)w->choices, sizeof *w->last_ns);
    if (!w->last_ns)
        return serve_no_memory(e);
    fill_job(s, w);
    if (!serve_job_prepare(&w->job))
        return serve_no_memory(e);
    if (openai_answer_begin(&w->answer, r, &w->job, s->m->tokenizer, ++s->number, s->o->model,
                            &err) != SNAP_OK)
        return serve_fail_as(e, &err, NULL);
    return !(r->echo && r->logprobs) || make_scores(w, e);
}

static serve_work *work_new(server *s) {
    serve_work *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->next = s->work;
    if (w->next)
        w->next->prev = w;
    s->work = w;
    return w;
}

void serve_work_free(server *s, serve_work *w) {
    if (w->prev)
        w->prev->next = w->next;
    else
        s->work = w->next;
    if (w->next)
        w->next->prev = w->prev;
    serve_job_release(&w->job);
    openai_answer_release(&w->answer);
    arena_release(&w->scores);
    free(w->last_ns);
    serve_read_release(w);
    free(w);
}

/* Ends a request without a job: with the reply that was made, or with an error. */
static void finish_at_once(exchange *x, serve_work *w, const openai_error *e) {
    x->work = NULL;
    if (e) {
        x->s->metrics.refused += e->status == 429 || e->status == 503;
        serve_fail(x, e);
    } else {
        buf_release(&x->out);
        x->out = w->reply;
        w->reply = (buf){0};
        x->status = 200;
        x->type = "application/json";
        x->complete = true;
    }
    serve_work_free(x->s, w);
}

/* Goes on with a request that has been read. */
static void launch(exchange *x, serve_work *w) {
    server *s = x->s;
    openai_error e;
    if (!prepare(s, w, &e)) {
        finish_at_once(x, w, &e);
        return;
    }
    x->status = 200;
    x->streaming = w->req.stream;
    x->type = x->streaming ? "text/event-stream; charset=utf-8" : "application/json";
    s->pending += w->choices;
    s->metrics.prompt_tokens += w->answer.prompt_tokens;
    w->submitted = true;
    serve_replicas_submit(s->replicas, &w->job);
}

static bool is_generated(openai_kind kind) {
    return kind == OPENAI_CHAT || kind == OPENAI_COMPLETION;
}

/* Runs in the worker's thread. What a refused request took is freed there, too. */
static void read_large(serve_task *t) {
    serve_work *w = t->user;
    w->read = serve_read_parse(w->s, w, &w->error) &&
              serve_read_prompts(w->s, w->s->worker_encoder, w, &w->error);
    if (!w->read)
        serve_read_release(w);
}

/* Has a large request read by the worker. */
static void read_later(exchange *x, serve_work *w) {
    server *s = x->s;
    openai_error e;
    w->task = (serve_task){.run = read_large, .user = w, .bytes = (int64_t)w->body.len};
    if (is_generated(w->kind) && (!check_client(x, 1, &e) || !check_queue(x, 1, &e))) {
        finish_at_once(x, w, &e);
    } else if (!serve_worker_put(s->worker, &w->task)) {
        x->retry_after = 1;
        (void)openai_fail(&e, 429, NULL, "queue_full", "too many large requests wait to be read");
        finish_at_once(x, w, &e);
    } else {
        w->queued = is_generated(w->kind);
    }
}

static void read_now(exchange *x, serve_work *w) {
    const server *s = x->s;
    openai_error e;
    bool generated = is_generated(w->kind);
    bool ok = serve_read_parse(s, w, &e) && (!generated || admit(x, w, &e)) &&
              serve_read_prompts(s, s->m->encoder, w, &e);
    if (ok && generated)
        launch(x, w);
    else
        finish_at_once(x, w, ok ? NULL : &e);
}

void serve_submit(exchange *x, openai_kind kind) {
    server *s = x->s;
    openai_error e;
    serve_work *w = work_new(s);
    if (!w) {
        (void)serve_no_memory(&e);
        s->metrics.refused++;
        serve_fail(x, &e);
        return;
    }
    w->s = s;
    w->kind = kind;
    w->client = x->client;
    w->body = x->body;
    x->body = (buf){0};
    w->x = x;
    x->work = w;
    (w->body.len > SERVE_LARGE ? read_later : read_now)(x, w);
}

void serve_take_read(serve_work *w) {
    exchange *x = w->x;
    openai_error e;
    if (!x)
        serve_work_free(w->s, w);
    else if (!w->read)
        finish_at_once(x, w, &w->error);
    else if (!is_generated(w->kind))
        finish_at_once(x, w, NULL);
    else if (!admit(x, w, &e))
        finish_at_once(x, w, &e);
    else
        launch(x, w);
}

/* ---- news become an answer ---- */

/* Counts the pieces. Returns whether a choice has failed or pieces are missing. */
static bool count_pieces(server *s, serve_work *w, int64_t start_ns) {
    bool failed = w->job.news.failed;
    for (size_t i = 0; i < w->job.news.n; i++) {
        const serve_piece *p = &w->job.news.v[i];
        int64_t *last = &w->last_ns[p->choice];
        if (p->kind != PIECE_TOKEN) {
            s->metrics.finished[p->kind]++;
            w->ended++;
            failed |= p->kind == PIECE_FAILED;
            continue;
        }
        s->metrics.generation_tokens++;
        if (*last)
            metric_add_token_gap(&s->metrics.between, (double)(p->ns - *last) / 1e9);
        else if (start_ns)
            metric_add_latency(&s->metrics.first_token, (double)(p->ns - start_ns) / 1e9);
        *last = p->ns;
    }
    return failed;
}

static void cancel(server *s, serve_work *w) {
    if (w->cancelled || w->job.released)
        return;
    w->cancelled = true;
    serve_replicas_cancel(s->replicas, &w->job);
}

static void answer(server *s, serve_work *w, bool failed) {
    exchange *x = w->x;
    openai_error e;
    openai_answer_take(&w->answer, &w->job.news, &x->out);
    if (failed || w->answer.failed) {
        (void)openai_fail(&e, 500, NULL, NULL, "%s",
                          w->job.error[0]        ? w->job.error
                          : w->answer.not_finite ? "a log-probability is NaN or infinite"
                                                 : "the server is out of memory");
        if (!x->streaming)
            buf_clear(&x->out);
        serve_fail(x, &e);
        cancel(s, w);
    } else if (w->job.released) {
        openai_answer_end(&w->answer, &x->out);
        x->complete = true;
        metric_add_latency(&s->metrics.request, (double)(clock_now_ns() - x->start_ns) / 1e9);
    }
}

void serve_take(server *s, serve_work *w) {
    bool failed = count_pieces(s, w, w->x ? w->x->start_ns : 0);
    if (w->x && !w->x->complete)
        answer(s, w, failed);
    serve_news_clear(&w->job.news);
    if (!w->job.released)
        return;
    s->metrics.finished[w->left ? PIECE_TOKEN : PIECE_FAILED] += w->choices - w->ended;
    s->pending -= w->choices;
    if (w->x)
        w->x->work = NULL;
    serve_work_free(s, w);
}

/* Drops a request that the worker has. If it is being read, serve_take_read() frees it. */
static void drop_reading(serve_work *w) {
    if (serve_worker_take_back(w->s->worker, &w->task))
        serve_work_free(w->s, w);
}

void serve_leave(exchange *x) {
    serve_work *w = x->work;
    if (!w)
        return;
    x->work = NULL;
    w->x = NULL;
    w->left = !x->complete;
    if (w->submitted)
        cancel(x->s, w);
    else
        drop_reading(w);
}
