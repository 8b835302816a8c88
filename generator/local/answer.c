#include "generator/local/answer.h"

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
    int64_t start_ns = clock_now_ns();
    for (int64_t i = 0; i < o->samples; i++) {
        all[i] = (growing){.to = &out->all[i], .o = o, .gaps = &out->gaps};
        TRY(queue(m, &ids, &all[i], i, err));
    }
    while (engine_pending(m->engine) && !is_cancelled(o))
        TRY(engine_step(m->engine, err));
    out->ns = clock_now_ns() - start_ns;
    out->stats = engine_stats_of(m->engine);
    if (is_cancelled(o))
        TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
    st = check(m, all, out, err);
cleanup:
    engine_clear(m->engine);
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
