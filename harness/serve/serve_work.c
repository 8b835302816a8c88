/* serve_work.c - turns a request into a job of the engine, and the news of the job into an
 * answer. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "harness/serve/serve_parts.h"

/* ---- a request becomes a job ---- */

/* Fills *e from an error of another function and returns false. */
static bool fail_as(openai_error *e, const snap_err *err, const char *param) {
    return openai_fail(e,
                       err->code == SNAP_E_INPUT || err->code == SNAP_E_SHAPE ? 400
                       : err->code == SNAP_E_NOMEM                            ? 503
                                                                              : 500,
                       param, NULL, "%s", err->text);
}

static bool encode_chat(server *s, const openai_request *req, tok_ids *ids, openai_error *e) {
    chat_style style = s->m->style;
    snap_err err = {0};
    buf text = {0};
    if (req->thinking >= 0)
        style.thinking = req->thinking;
    bool ok = chat_render(&style, req->messages, req->n_messages, &text, &err) == SNAP_OK &&
              tok_encode(s->m->encoder, buf_str(&text), text.len,
                         style.template == CHAT_NONE ? TOK_SPECIALS : 0, ids, &err) == SNAP_OK;
    buf_release(&text);
    return ok || fail_as(e, &err, "messages");
}

static bool encode_prompt(server *s, const openai_prompt *p, tok_ids *ids, openai_error *e) {
    snap_err err = {0};
    if (p->text)
        return tok_encode(s->m->encoder, p->text, p->n, TOK_SPECIALS, ids, &err) == SNAP_OK ||
               fail_as(e, &err, "prompt");
    for (size_t i = 0; i < p->n; i++)
        if (p->ids[i] >= s->m->shape.vocab_size)
            return openai_fail(e, 400, "prompt", NULL,
                               "token %d is not in the model's vocabulary of %d", p->ids[i],
                               s->m->shape.vocab_size);
    ids->v = malloc((p->n + 1) * sizeof *ids->v);
    if (!ids->v)
        return openai_fail(e, 503, NULL, NULL, "the server is out of memory");
    memcpy(ids->v, p->ids, p->n * sizeof *ids->v);
    ids->n = ids->cap = p->n;
    return true;
}

static bool encode(server *s, const openai_request *req, int i, tok_ids *ids, openai_error *e) {
    const char *param = req->prompts ? "prompt" : "messages";
    int64_t most = req->max_tokens < 0 ? 1 : req->max_tokens;
    if (!(req->prompts ? encode_prompt(s, &req->prompts[i], ids, e) : encode_chat(s, req, ids, e)))
        return false;
    if (req->kind == OPENAI_TOKENIZE)
        return true;
    if (ids->n < 1)
        return openai_fail(e, 400, param, NULL, "the prompt has no tokens");
    if ((int64_t)ids->n >= s->context || (int64_t)ids->n + most > s->context)
        return openai_fail(e, 400, param, "context_length_exceeded",
                           "the prompt has %zu tokens and the answer at most %lld: the context of "
                           "the model is %lld tokens",
                           ids->n, (long long)most, (long long)s->context);
    return true;
}

static bool no_memory(openai_error *e) {
    return openai_fail(e, 503, NULL, NULL, "the server is out of memory");
}

/* Makes room for the scores of each choice's prompt. */
static bool make_scores(serve_work *w, openai_error *e) {
    size_t k = (size_t)w->req.top_logprobs;
    w->scores = calloc((size_t)w->choices, sizeof *w->scores);
    if (!w->scores)
        return no_memory(e);
    for (int i = 0; i < w->choices; i++) {
        size_t n = w->prompts[i / w->req.n].n;
        serve_scores *s = &w->scores[i];
        s->logprob = calloc(n, sizeof *s->logprob);
        s->n_top = calloc(n, sizeof *s->n_top);
        s->top = k ? calloc(n * k, sizeof *s->top) : NULL;
        if (!s->logprob || !s->n_top || (k && !s->top))
            return no_memory(e);
    }
    w->job.scores = w->scores;
    return true;
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

static bool check_model(const server *s, const openai_request *r, openai_error *e) {
    return !r->model || strcmp(r->model, s->o->model) == 0 ||
           openai_fail(e, 404, "model", "model_not_found",
                       "the model '%.100s' does not exist: this server has '%.100s'", r->model,
                       s->o->model);
}

/* The number of sequences of a client that wait or run. */
static int64_t pending_of(const server *s, const serve_client *c) {
    int64_t n = 0;
    for (const serve_work *w = s->work; w; w = w->next)
        if (memcmp(&w->client, c, sizeof *c) == 0)
            n += w->choices;
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
    int64_t most = runner_limits(s->m->runner)->max_decode + (int64_t)s->o->max_queue;
    if (s->pending + choices <= most)
        return true;
    x->retry_after = 1;
    return openai_fail(e, 429, NULL, "queue_full",
                       "%d sequences wait or run, and this request would add %d: at most %lld are "
                       "possible",
                       s->pending, choices, (long long)most);
}

static bool prepare(exchange *x, serve_work *w, openai_error *e) {
    server *s = x->s;
    const openai_request *r = &w->req;
    if (s->load.broken)
        return openai_fail(e, 503, NULL, NULL, "the engine has failed: %s", s->load.reason.text);
    if (!check_model(s, r, e))
        return false;
    int choices = r->n * r->n_prompts;
    if (!check_client(x, choices, e) || !check_queue(x, choices, e))
        return false;
    w->client = x->client;
    w->choices = choices;
    w->prompts = calloc((size_t)r->n_prompts, sizeof *w->prompts);
    w->last_ns = calloc((size_t)w->choices, sizeof *w->last_ns);
    if (!w->prompts || !w->last_ns)
        return no_memory(e);
    for (int i = 0; i < r->n_prompts; i++)
        if (!encode(s, r, i, &w->prompts[i], e))
            return false;
    fill_job(s, w);
    if (!serve_job_prepare(&w->job))
        return no_memory(e);
    if (r->echo && r->logprobs && !make_scores(w, e))
        return false;
    snap_err err = {0};
    return openai_answer_begin(&w->answer, r, &w->job, s->m->tokenizer, ++s->number, s->o->model,
                               &err) == SNAP_OK ||
           fail_as(e, &err, NULL);
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
    for (int i = 0; w->prompts && i < w->req.n_prompts; i++)
        tok_ids_release(&w->prompts[i]);
    for (int i = 0; w->scores && i < w->choices; i++) {
        free(w->scores[i].logprob);
        free(w->scores[i].top);
        free(w->scores[i].n_top);
    }
    free(w->prompts);
    free(w->scores);
    free(w->last_ns);
    openai_request_release(&w->req);
    free(w);
}

void serve_submit(exchange *x, openai_kind kind) {
    server *s = x->s;
    openai_error e;
    serve_work *w = work_new(s);
    bool ok = w ? openai_request_read(&w->req, kind, buf_str(&x->body), x->body.len, &e) &&
                      prepare(x, w, &e)
                : no_memory(&e);
    buf_release(&x->body);
    if (!ok) {
        s->metrics.refused += e.status == 429 || e.status == 503;
        serve_fail(x, &e);
        if (w)
            serve_work_free(s, w);
        return;
    }
    w->x = x;
    x->work = w;
    x->status = 200;
    x->streaming = w->req.stream;
    x->type = x->streaming ? "text/event-stream; charset=utf-8" : "application/json";
    s->pending += w->choices;
    s->metrics.prompt_tokens += w->answer.prompt_tokens;
    serve_engine_submit(s->engine, &w->job);
}

void serve_tokenize(exchange *x) {
    openai_error e;
    openai_request r;
    tok_ids ids = {0};
    bool ok = openai_request_read(&r, OPENAI_TOKENIZE, buf_str(&x->body), x->body.len, &e) &&
              check_model(x->s, &r, &e) && encode(x->s, &r, 0, &ids, &e);
    if (ok) {
        (void)buf_printf(&x->out, "{\"count\":%zu,\"max_model_len\":%lld,\"tokens\":[", ids.n,
                         (long long)x->s->context);
        for (size_t i = 0; i < ids.n; i++)
            (void)buf_printf(&x->out, "%s%d", i ? "," : "", (int)ids.v[i]);
        (void)buf_puts(&x->out, "]}\n");
        x->status = 200;
        x->type = "application/json";
        x->complete = true;
    } else {
        serve_fail(x, &e);
    }
    tok_ids_release(&ids);
    openai_request_release(&r);
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
    serve_engine_cancel(s->engine, &w->job);
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

void serve_leave(exchange *x) {
    serve_work *w = x->work;
    if (!w)
        return;
    x->work = NULL;
    w->x = NULL;
    w->left = !x->complete;
    cancel(x->s, w);
}
