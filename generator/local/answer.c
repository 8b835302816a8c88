#include "generator/local/answer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"

/* One answer while it is generated. */
typedef struct {
    local_answer *to;
    const answer_options *o;
    hist *gaps;
    tok_stream stream;
    int64_t last_ns;
    size_t shown;    /* bytes of the text that were passed to part() */
    bool stopped;    /* a stop string has ended the answer */
    bool out_of_ids; /* no memory for an id */
} growing;

/* What one replica contributes to the answers of a prompt. */
typedef struct {
    local_model *m;
    const answer_options *o;
    atomic_bool *failed; /* a replica has failed: the others end, too */
    hist gaps;
    pthread_t thread;
    snap_status status;
    snap_err err;
} share;

static bool is_cancelled(const answer_options *o) {
    return o->cancel && *o->cancel;
}

/* Passes to part() the bytes that no stop string can cut any more and that were not passed before.
 * @end: the text is complete. */
static void show(growing *g, bool end) {
    const buf *text = &g->to->text;
    if (!g->o->part || g->o->samples != 1)
        return;
    size_t sure = end ? text->len : stop_settled(&g->o->stop, buf_str(text), text->len);
    if (sure > g->shown) {
        g->o->part(g->o->ctx, text->data + g->shown, sure - g->shown);
        g->shown = sure;
    }
}

static bool take_token(void *user, int32_t token, float logprob) {
    (void)logprob;
    growing *g = user;
    local_answer *a = g->to;
    int64_t now = clock_now_ns();
    if (!a->tokens++)
        a->first_ns = now;
    else
        hist_add(g->gaps, now - g->last_ns);
    g->last_ns = now;
    size_t seen = a->text.len;
    tok_stream_push(&g->stream, token, &a->text);
    g->out_of_ids = g->o->keep_ids && !js_push_new(a->ids, js_new_int(token));
    if (g->out_of_ids)
        return false;
    g->stopped = stop_cut(&g->o->stop, &a->text, seen);
    if (!g->stopped)
        show(g, false);
    return !g->stopped && !is_cancelled(g->o);
}

static void take_end(void *user, finish_reason why) {
    growing *g = user;
    g->to->why = why;
    if (!g->stopped)
        tok_stream_finish(&g->stream, &g->to->text);
    show(g, true);
}

static snap_status queue(local_model *m, const tok_ids *ids, growing *g, int64_t i, snap_err *err) {
    const answer_options *o = g->o;
    engine_request req = {.prompt = ids->v,
                          .n_prompt = ids->n < INT32_MAX ? (int)ids->n : INT32_MAX,
                          .sampling = o->sampling,
                          .seed = (uint64_t)(o->seed + i),
                          .max_tokens = o->max_tokens,
                          .stop_ids = m->stop_ids,
                          .n_stop_ids = m->n_stop_ids,
                          .token = take_token,
                          .done = take_end,
                          .user = g};
    g->stream = tok_stream_make(m->tokenizer, true);
    g->to->ids = o->keep_ids ? js_new_array() : NULL;
    g->to->start_ns = clock_now_ns();
    return engine_add(m->engine, &req, err);
}

static snap_status check(const local_model *m, const growing *all, const local_answers *out,
                         snap_err *err) {
    snap_status st = SNAP_OK;
    for (int64_t i = 0; i < out->n; i++) {
        const local_answer *a = &out->all[i];
        TRY(buf_check(&a->text, "an answer", err));
        if (all[i].out_of_ids)
            TRY(err_set(err, SNAP_E_NOMEM, "out of memory for the answers"));
        TRY(local_finish_error(m, a->why, out->prompt_tokens + a->tokens, err));
    }
cleanup:
    return st;
}

static snap_status run_steps(share *s) {
    snap_status st;
    TRY(runner_use(s->m->runner, &s->err));
    while (engine_pending(s->m->engine) && !is_cancelled(s->o) && !atomic_load(s->failed))
        TRY(engine_step(s->m->engine, &s->err));
cleanup:
    if (st != SNAP_OK && *s->m->name)
        err_prefix(&s->err, "%s", s->m->name);
    return st;
}

static void *run_share(void *ctx) {
    share *s = ctx;
    s->status = run_steps(s);
    if (s->status != SNAP_OK)
        atomic_store(s->failed, true);
    return NULL;
}

/* Runs the engines of all replicas, each in a thread, until their answers are done. */
static snap_status run_engines(share *all, int n, snap_err *err) {
    int started = 1;
    for (; started < n; started++)
        if (pthread_create(&all[started].thread, NULL, run_share, &all[started]) != 0) {
            all[started].status = err_set(&all[started].err, SNAP_E_NOMEM,
                                          "cannot start a thread for a replica: memory or the "
                                          "limit on threads is exhausted");
            atomic_store(all->failed, true);
            break;
        }
    (void)run_share(&all[0]);
    for (int i = 1; i < started; i++)
        (void)pthread_join(all[i].thread, NULL);
    for (int i = 0; i < n; i++)
        if (all[i].status != SNAP_OK)
            return err_set(err, all[i].status, "%s", all[i].err.text);
    return SNAP_OK;
}

/* Generates the answers: answer i with replica i modulo the number of replicas. */
static snap_status generate(local_model *m, const tok_ids *ids, growing *all,
                            const answer_options *o, local_answers *out, snap_err *err) {
    snap_status st;
    atomic_bool failed = false;
    int64_t start_ns = clock_now_ns();
    share *shares = calloc((size_t)m->replicas, sizeof *shares);
    if (!shares)
        return err_set(err, SNAP_E_NOMEM, "out of memory for answers");
    shares[0] = (share){.m = m, .o = o, .failed = &failed};
    for (int i = 1; i < m->replicas; i++)
        shares[i] = (share){.m = local_replica(m, i), .o = o, .failed = &failed};
    for (int64_t i = 0; i < o->samples; i++) {
        int at = (int)(i % m->replicas);
        all[i] = (growing){.to = &out->all[i], .o = o, .gaps = &shares[at].gaps};
        TRY(queue(local_replica(m, at), ids, &all[i], i, err));
    }
    TRY(run_engines(shares, m->replicas, err));
    out->ns = clock_now_ns() - start_ns;
    for (int i = 0; i < m->replicas; i++) {
        engine_stats stats = engine_stats_of(local_replica(m, i)->engine);
        out->stats = i ? engine_stats_sum(out->stats, stats) : stats;
        hist_merge(&out->gaps, &shares[i].gaps);
    }
cleanup:
    free(shares);
    return st;
}

snap_status local_answer_prompt(local_model *m, const gen_message *messages, int n,
                                const answer_options *o, local_answers *out, snap_err *err) {
    snap_status st;
    tok_ids ids = {0};
    growing *all = calloc((size_t)o->samples, sizeof *all);
    *out = (local_answers){.all = calloc((size_t)o->samples, sizeof *out->all)};
    if (!all || !out->all) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for answers");
        goto cleanup;
    }
    TRY(local_prompt(m, messages, n, &ids, err));
    out->n = o->samples;
    out->prompt_tokens = (int64_t)ids.n;
    TRY(generate(m, &ids, all, o, out, err));
    if (is_cancelled(o))
        TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
    st = check(m, all, out, err);
cleanup:
    for (int i = 0; i < m->replicas; i++)
        engine_clear(local_replica(m, i)->engine);
    for (int64_t i = 0; all && i < o->samples; i++)
        tok_stream_release(&all[i].stream);
    free(all);
    tok_ids_release(&ids);
    return st;
}

void local_answers_release(local_answers *a) {
    for (int64_t i = 0; i < a->n; i++) {
        js_free(a->all[i].ids);
        buf_release(&a->all[i].text);
    }
    free(a->all);
    *a = (local_answers){0};
}
