/* generate.c - the local generator behind generator.h. Requests become sequences of the engine;
 * their tokens become text and times. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hist.h"
#include "generator/backend.h"
#include "generator/local/local.h"
#include "generator/settings.h"

typedef struct local local;

/* A request in progress. */
typedef struct task {
    struct task *next, *prev; /* list of all tasks whose result is not delivered */
    struct task *next_done;   /* list of the tasks to deliver */
    local *g;
    gen_request req;
    tok_stream stream;
    buf text;
    int64_t start_ns, last_ns, first_ns, end_ns;
    int64_t prompt_tokens, tokens;
    hist gaps;
    finish_reason why;
} task;

struct local {
    generator base;
    local_model model;
    int in_flight;
    const volatile sig_atomic_t *cancel;
    task *all;
    task *done, **done_end; /* finished tasks to deliver, in the order in which they finished */
};

static bool take_token(void *user, int32_t token, float logprob) {
    (void)logprob;
    task *t = user;
    int64_t now = clock_now_ns();
    if (!t->tokens++)
        t->first_ns = now;
    else
        hist_add(&t->gaps, now - t->last_ns);
    t->last_ns = now;
    tok_stream_push(&t->stream, token, &t->text);
    return !t->text.failed;
}

static void take_end(void *user, finish_reason why) {
    task *t = user;
    t->why = why;
    t->end_ns = clock_now_ns();
    tok_stream_finish(&t->stream, &t->text);
    *t->g->done_end = t;
    t->g->done_end = &t->next_done;
}

static void task_free(task *t) {
    tok_stream_release(&t->stream);
    buf_release(&t->text);
    free(t);
}

static void task_end(local *g, task *t) {
    if (t->prev)
        t->prev->next = t->next;
    else
        g->all = t->next;
    if (t->next)
        t->next->prev = t->prev;
    task_free(t);
}

/* Delivers a failed result for a request that never ran. */
static snap_status deliver_failure(const gen_request *req, const char *why, gen_sink_fn sink,
                                   void *ctx, snap_err *err) {
    gen_result res = {.failed = true,
                      .error = why,
                      .text = "",
                      .prompt_tokens = -1,
                      .completion_tokens = -1,
                      .reasoning_tokens = -1,
                      .start_ns = clock_now_ns(),
                      .first_token_ns = -1,
                      .itl_mean_ns = -1,
                      .itl_p50_ns = -1,
                      .itl_p99_ns = -1,
                      .attempts = 1};
    return sink(ctx, req, &res, err);
}

/* Tokenizes the messages, with the system message of the settings. */
static snap_status encode(local *g, const gen_request *req, tok_ids *ids, snap_err *err) {
    int n = gen_message_count(req);
    gen_message *messages = malloc(((size_t)n + 1) * sizeof *messages);
    if (!messages)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a request");
    for (int i = 0; i < n; i++)
        messages[i] = gen_message_at(req, i);
    snap_status st = local_prompt(&g->model, messages, n, ids, err);
    free(messages);
    return st;
}

static snap_status start(local *g, task *t, snap_err *err) {
    snap_status st;
    tok_ids ids = {0};
    const gen_sampling *s = &t->req.sampling;
    TRY(encode(g, &t->req, &ids, err));
    t->start_ns = clock_now_ns();
    t->prompt_tokens = (int64_t)ids.n;
    t->stream = tok_stream_make(g->model.tokenizer, true);
    engine_request req = {.prompt = ids.v,
                          .n_prompt = ids.n < INT32_MAX ? (int)ids.n : INT32_MAX,
                          .sampling = {.temperature = s->temperature,
                                       .top_p = s->top_p,
                                       .top_k = s->top_k,
                                       .min_p = s->min_p,
                                       .repetition_penalty = s->repetition_penalty},
                          .seed = s->seed,
                          .max_tokens = s->max_tokens,
                          .stop_ids = g->model.stop_ids,
                          .n_stop_ids = g->model.n_stop_ids,
                          .token = take_token,
                          .done = take_end,
                          .user = t};
    TRY(engine_add(g->model.engine, &req, err));
cleanup:
    tok_ids_release(&ids);
    return st;
}

/* Adds a request to the engine. Out of memory ends the run; any other error fails only this
 * request. */
static snap_status admit(local *g, const gen_request *req, gen_sink_fn sink, void *ctx,
                         snap_err *err) {
    snap_err why = {0};
    task *t = calloc(1, sizeof *t);
    if (!t)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a request");
    t->g = g;
    t->req = *req;
    t->next = g->all;
    if (t->next)
        t->next->prev = t;
    g->all = t;
    snap_status st = start(g, t, &why);
    if (st == SNAP_OK)
        return SNAP_OK;
    task_end(g, t);
    return st == SNAP_E_NOMEM ? err_set(err, st, "%s", why.text)
                              : deliver_failure(req, why.text, sink, ctx, err);
}

static snap_status deliver(const task *t, gen_sink_fn sink, void *ctx, snap_err *err) {
    snap_err why = {0};
    bool failed =
        local_finish_error(&t->g->model, t->why, t->prompt_tokens + t->tokens, &why) != SNAP_OK;
    gen_result res = {
        .failed = failed,
        .error = failed ? why.text : NULL,
        .text = buf_str(&t->text),
        .finish_reason = failed                  ? NULL
                         : t->why == FINISH_STOP ? "stop"
                                                 : "length",
        .prompt_tokens = t->prompt_tokens,
        .completion_tokens = t->tokens,
        .reasoning_tokens = -1,
        .start_ns = t->start_ns,
        .first_token_ns = t->tokens ? t->first_ns - t->start_ns : -1,
        .total_ns = t->end_ns - t->start_ns,
        .itl_mean_ns = hist_mean_ns(&t->gaps),
        .itl_p50_ns = hist_quantile_ns(&t->gaps, 0.5),
        .itl_p99_ns = hist_quantile_ns(&t->gaps, 0.99),
        .attempts = 1,
    };
    snap_status st = buf_check(&t->text, "an answer", err);
    return st == SNAP_OK ? sink(ctx, &t->req, &res, err) : st;
}

static snap_status deliver_all(local *g, gen_sink_fn sink, void *ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    while (st == SNAP_OK && g->done) {
        task *t = g->done;
        g->done = t->next_done;
        if (!g->done)
            g->done_end = &g->done;
        st = deliver(t, sink, ctx, err);
        task_end(g, t);
    }
    return st;
}

/* Drops all requests of the engine, and frees the tasks that are left if a run ended early. */
static void drop_all(local *g) {
    engine_clear(g->model.engine);
    for (task *t = g->all, *next; t; t = next) {
        next = t->next;
        task_free(t);
    }
    g->all = NULL;
    g->done = NULL;
    g->done_end = &g->done;
}

static snap_status local_run(generator *base, gen_source_fn source, void *source_ctx,
                             gen_sink_fn sink, void *sink_ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    local *g = (local *)(void *)base;
    bool more = true;
    while (more || engine_pending(g->model.engine)) {
        gen_request req;
        if (g->cancel && *g->cancel)
            TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
        while (more && engine_pending(g->model.engine) < g->in_flight) {
            more = source(source_ctx, &req);
            if (more)
                TRY(admit(g, &req, sink, sink_ctx, err));
        }
        TRY(engine_step(g->model.engine, err));
        TRY(deliver_all(g, sink, sink_ctx, err));
    }
cleanup:
    drop_all(g);
    return st;
}

static void local_shut(generator *base) {
    local *g = (local *)(void *)base;
    local_close(&g->model);
    free(g);
}

static const generator_ops local_ops = {.run = local_run, .close = local_shut};

snap_status gen_local_open(generator **out, const char *spec, const generator_options *opt,
                           snap_err *err) {
    *out = NULL;
    snap_status st;
    local *g = calloc(1, sizeof *g);
    if (!g)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a generator");
    g->base.ops = &local_ops;
    g->cancel = opt->cancel;
    g->done_end = &g->done;
    local_options how = {.device = opt->device,
                         .precision = opt->precision,
                         .cache_bytes = opt->cache_bytes,
                         .context = opt->context,
                         .sequences = opt->in_flight,
                         .threads = opt->threads,
                         .chat_template = opt->chat_template};
    TRY(local_open(&g->model, spec + sizeof "local:" - 1, &how, err));
    g->in_flight = runner_limits(g->model.runner)->max_decode;
    *out = &g->base;
    g = NULL;
cleanup:
    if (g)
        local_shut(&g->base);
    return st;
}
