/* generate.c - the local generator behind generator.h. Requests become sequences of an engine;
 * their tokens become text and times.
 *
 * With several replicas, each runs in a thread of its own. There is one queue, which is the source:
 * a replica takes a request when it has room. A mutex keeps the calls of the source and the sink
 * apart. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hist.h"
#include "generator/backend.h"
#include "generator/local/local.h"
#include "generator/settings.h"

enum {
    kAhead = 4 /* a replica takes no request while it has this many more than another one */
};

typedef struct local local;
typedef struct replica replica;

/* A request in progress. */
typedef struct task {
    struct task *next, *prev; /* list of all tasks whose result is not delivered */
    struct task *next_done;   /* list of the tasks to deliver */
    replica *at;
    gen_request req;
    tok_stream stream;
    buf text;
    int64_t start_ns, last_ns, first_ns, end_ns;
    int64_t prompt_tokens, tokens;
    hist gaps;
    finish_reason why;
} task;

/* One replica and its part of a run. */
struct replica {
    local *g;
    local_model *model;
    pthread_t thread;
    task *all;
    task *done, **done_end; /* finished tasks to deliver, in the order in which they finished */
    int pending; /* unfinished requests, as other replicas see them; guarded by g->lock */
};

struct local {
    generator base;
    local_model model;
    int in_flight; /* most requests of one replica */
    const volatile sig_atomic_t *cancel;
    replica replica[LOCAL_REPLICAS]; /* [model.replicas] */

    /* of a run */
    gen_source_fn source;
    gen_sink_fn sink;
    void *source_ctx, *sink_ctx;
    pthread_mutex_t lock; /* held while the source or the sink is called; guards the members
                             below */
    bool more;            /* the source may have further requests */
    snap_status status;   /* the first error of a replica; the others then end, too */
    snap_err err;
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
    *t->at->done_end = t;
    t->at->done_end = &t->next_done;
}

static void task_free(task *t) {
    tok_stream_release(&t->stream);
    buf_release(&t->text);
    free(t);
}

static void task_end(replica *p, task *t) {
    if (t->prev)
        t->prev->next = t->next;
    else
        p->all = t->next;
    if (t->next)
        t->next->prev = t->prev;
    task_free(t);
}

static snap_status call_sink(local *g, const gen_request *req, const gen_result *res,
                             snap_err *err) {
    (void)pthread_mutex_lock(&g->lock);
    snap_status st = g->sink(g->sink_ctx, req, res, err);
    (void)pthread_mutex_unlock(&g->lock);
    return st;
}

/* Delivers a failed result for a request that never ran. */
static snap_status deliver_failure(local *g, const gen_request *req, const char *why,
                                   snap_err *err) {
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
    return call_sink(g, req, &res, err);
}

/* Tokenizes the messages, with the system message of the settings. */
static snap_status encode(local_model *m, const gen_request *req, tok_ids *ids, snap_err *err) {
    int n = gen_message_count(req);
    gen_message *messages = malloc(((size_t)n + 1) * sizeof *messages);
    if (!messages)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a request");
    for (int i = 0; i < n; i++)
        messages[i] = gen_message_at(req, i);
    snap_status st = local_prompt(m, messages, n, ids, err);
    free(messages);
    return st;
}

static snap_status start(local_model *m, task *t, snap_err *err) {
    snap_status st;
    tok_ids ids = {0};
    const gen_sampling *s = &t->req.sampling;
    TRY(encode(m, &t->req, &ids, err));
    t->start_ns = clock_now_ns();
    t->prompt_tokens = (int64_t)ids.n;
    t->stream = tok_stream_make(m->tokenizer, true);
    engine_request req = {.prompt = ids.v,
                          .n_prompt = ids.n < INT32_MAX ? (int)ids.n : INT32_MAX,
                          .sampling = {.temperature = s->temperature,
                                       .top_p = s->top_p,
                                       .top_k = s->top_k,
                                       .min_p = s->min_p,
                                       .repetition_penalty = s->repetition_penalty},
                          .seed = s->seed,
                          .max_tokens = s->max_tokens,
                          .stop_ids = m->stop_ids,
                          .n_stop_ids = m->n_stop_ids,
                          .token = take_token,
                          .done = take_end,
                          .user = t};
    TRY(engine_add(m->engine, &req, err));
cleanup:
    tok_ids_release(&ids);
    return st;
}

/* Adds a request to the engine. Out of memory ends the run; any other error fails only this
 * request. */
static snap_status admit(replica *p, const gen_request *req, snap_err *err) {
    snap_err why = {0};
    task *t = calloc(1, sizeof *t);
    if (!t)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a request");
    t->at = p;
    t->req = *req;
    t->next = p->all;
    if (t->next)
        t->next->prev = t;
    p->all = t;
    snap_status st = start(p->model, t, &why);
    if (st == SNAP_OK)
        return SNAP_OK;
    task_end(p, t);
    return st == SNAP_E_NOMEM ? err_set(err, st, "%s", why.text)
                              : deliver_failure(p->g, req, why.text, err);
}

static snap_status deliver(const task *t, snap_err *err) {
    snap_err why = {0};
    bool failed =
        local_finish_error(t->at->model, t->why, t->prompt_tokens + t->tokens, &why) != SNAP_OK;
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
    return st == SNAP_OK ? call_sink(t->at->g, &t->req, &res, err) : st;
}

static snap_status deliver_all(replica *p, snap_err *err) {
    snap_status st = SNAP_OK;
    while (st == SNAP_OK && p->done) {
        task *t = p->done;
        p->done = t->next_done;
        if (!p->done)
            p->done_end = &p->done;
        st = deliver(t, err);
        task_end(p, t);
    }
    return st;
}

/* Drops all requests of the engine, and frees the tasks that are left if a run ended early. */
static void drop_all(replica *p) {
    engine_clear(p->model->engine);
    for (task *t = p->all, *next; t; t = next) {
        next = t->next;
        task_free(t);
    }
    p->all = NULL;
    p->done = NULL;
    p->done_end = &p->done;
}

/* ---- the replicas of a run ---- */

/* Whether a replica takes a request now. It needs room, and no other replica may have kAhead
 * requests less, because such a replica should take the request. A replica without requests always
 * takes one. The caller holds the lock. */
static bool takes_request(const replica *p) {
    const local *g = p->g;
    if (!g->more || p->pending >= g->in_flight)
        return false;
    for (int i = 0; i < g->model.replicas; i++)
        if (p->pending >= g->replica[i].pending + kAhead)
            return false;
    return true;
}

/* Gets the next request of the source for a replica. */
static bool next_request(replica *p, gen_request *out) {
    local *g = p->g;
    (void)pthread_mutex_lock(&g->lock);
    p->pending = engine_pending(p->model->engine);
    bool takes = takes_request(p);
    if (takes)
        takes = g->more = g->source(g->source_ctx, out);
    p->pending += takes;
    (void)pthread_mutex_unlock(&g->lock);
    return takes;
}

/* Whether a replica has nothing to do any more, or another one has failed. */
static bool is_over(replica *p) {
    (void)pthread_mutex_lock(&p->g->lock);
    bool over = p->g->status != SNAP_OK || (!p->g->more && !engine_pending(p->model->engine));
    (void)pthread_mutex_unlock(&p->g->lock);
    return over;
}

static snap_status run_steps(replica *p, snap_err *err) {
    snap_status st;
    const local *g = p->g;
    TRY(runner_use(p->model->runner, err));
    while (!is_over(p)) {
        gen_request req;
        if (g->cancel && *g->cancel)
            TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
        while (next_request(p, &req))
            TRY(admit(p, &req, err));
        if ((st = engine_step(p->model->engine, err)) != SNAP_OK) {
            if (*p->model->name)
                err_prefix(err, "%s", p->model->name);
            goto cleanup;
        }
        TRY(deliver_all(p, err));
    }
cleanup:
    return st;
}

static void *run_replica(void *ctx) {
    replica *p = ctx;
    local *g = p->g;
    snap_err err = {0};
    snap_status st = run_steps(p, &err);
    (void)pthread_mutex_lock(&g->lock);
    if (st != SNAP_OK && g->status == SNAP_OK) {
        g->status = st;
        g->err = err;
    }
    (void)pthread_mutex_unlock(&g->lock);
    drop_all(p);
    return NULL;
}

static void fail_run(local *g) {
    (void)pthread_mutex_lock(&g->lock);
    if (g->status == SNAP_OK)
        g->status = err_set(&g->err, SNAP_E_NOMEM,
                            "cannot start a thread for a replica: memory or the limit on threads "
                            "is exhausted");
    (void)pthread_mutex_unlock(&g->lock);
}

static snap_status local_run(generator *base, gen_source_fn source, void *source_ctx,
                             gen_sink_fn sink, void *sink_ctx, snap_err *err) {
    local *g = (local *)(void *)base;
    int started = 1;
    g->source = source;
    g->source_ctx = source_ctx;
    g->sink = sink;
    g->sink_ctx = sink_ctx;
    g->more = true;
    g->status = SNAP_OK;
    for (int i = 0; i < g->model.replicas; i++)
        g->replica[i].pending = 0;
    (void)pthread_mutex_init(&g->lock, NULL);
    for (; started < g->model.replicas; started++) {
        replica *p = &g->replica[started];
        if (pthread_create(&p->thread, NULL, run_replica, p) != 0) {
            fail_run(g);
            break;
        }
    }
    (void)run_replica(&g->replica[0]);
    for (int i = 1; i < started; i++)
        (void)pthread_join(g->replica[i].thread, NULL);
    (void)pthread_mutex_destroy(&g->lock);
    return g->status == SNAP_OK ? SNAP_OK : err_set(err, g->status, "%s", g->err.text);
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
    replica_devices d;
    local *g = calloc(1, sizeof *g);
    if (!g)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a generator");
    g->base.ops = &local_ops;
    g->cancel = opt->cancel;
    local_options how = {.device = opt->device,
                         .layout = opt->layout,
                         .precision = opt->precision,
                         .cache_bytes = opt->cache_bytes,
                         .context = opt->context,
                         .threads = opt->threads,
                         .chat_template = opt->chat_template};
    TRY(replica_devices_parse(&d, opt->device, opt->layout, err));
    int replicas = d.n * d.ranks.replicas;
    how.sequences = (opt->in_flight + replicas - 1) / replicas;
    TRY(local_open(&g->model, spec + sizeof "local:" - 1, &how, err));
    g->in_flight = engine_most_running(g->model.engine);
    for (int i = 0; i < d.n; i++) {
        replica *p = &g->replica[i];
        *p = (replica){.g = g, .model = local_replica(&g->model, i)};
        p->done_end = &p->done;
    }
    *out = &g->base;
    g = NULL;
cleanup:
    if (g)
        local_shut(&g->base);
    return st;
}
