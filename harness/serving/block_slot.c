/* Prepares, sends and receives the requests of a slot, one after another, and passes on their
 * results. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "generator/http/chat_request.h"
#include "harness/serving/block_parts.h"

static snap_status no_memory(const block *b) {
    return err_set(b->err, SNAP_E_NOMEM, "out of memory for the requests");
}

static const serving_work *work_of(const load_slot *s) {
    return s->lane->work.work;
}

/* ---- pieces ---- */

static bool grow_gaps(load_slot *s) {
    size_t capacity = s->gap_capacity ? 2 * s->gap_capacity : 64;
    float *gaps = realloc(s->gaps, capacity * sizeof *gaps);
    if (!gaps)
        return false;
    s->gaps = gaps;
    s->gap_capacity = capacity;
    return true;
}

static void on_piece(void *ctx, int64_t now_ns) {
    load_slot *s = ctx;
    if (s->pieces == INT_MAX)
        return;
    if (s->pieces) {
        size_t at = (size_t)s->pieces - 1;
        if (at == s->gap_capacity && !grow_gaps(s)) {
            block_fail(s->lane->block, no_memory(s->lane->block));
            return;
        }
        s->gaps[at] = (float)((double)(now_ns - s->last_piece_ns) * 1e-9);
    }
    s->last_piece_ns = now_ns;
    s->pieces++;
}

/* ---- creating and releasing a slot ---- */

load_slot *load_slot_create(lane *l) {
    load_slot *s = calloc(1, sizeof *s);
    if (!s) {
        block_fail(l->block, no_memory(l->block));
        return NULL;
    }
    s->lane = l;
    attempt_init(&s->at, l->plan->target->stream, false);
    s->at.on_piece = on_piece;
    s->at.piece_ctx = s;
    s->at.drop_text = !l->block->opt->keep_text && l->work.work->turns == 1;
    return s;
}

static void forget_texts(load_slot *s) {
    buf_clear(&s->texts);
    s->n_texts = 0;
}

void load_slot_free(load_slot *s) {
    buf_release(&s->texts);
    attempt_release(&s->at);
    buf_release(&s->body);
    buf_release(&s->error);
    free(s->gaps);
    free(s);
}

/* ---- preparing a request ---- */

/* Adds a text to the conversation; false if memory is exhausted. */
static bool add_text(load_slot *s, const char *text) {
    s->n_texts++;
    return buf_append(&s->texts, text, strlen(text) + 1);
}

static snap_status write_body(load_slot *s, const gen_message *messages, int n) {
    const serving_target *t = s->lane->plan->target;
    gen_request req = {.id = s->index,
                       .messages = messages,
                       .n_messages = n,
                       .sampling = t->sampling,
                       .settings = &t->settings};
    req.sampling.seed = work_sampling_seed(&s->lane->work, s->index);
    if (s->wanted >= 0)
        req.sampling.max_tokens = (int)s->wanted;
    buf_clear(&s->body);
    return chat_request_write(&req, t->model, t->stream, &s->body, s->lane->block->err);
}

/* Writes the body of a request whose prompt is made: the conversation so far and a new text. */
static snap_status write_made(load_slot *s) {
    block *b = s->lane->block;
    buf text = {0};
    gen_message *messages = calloc((size_t)s->n_texts + 1, sizeof *messages);
    snap_status st = SNAP_OK;
    if (!messages)
        return no_memory(b);
    work_text(&s->lane->work, s->index, &text);
    TRY(buf_check(&text, "a prompt", b->err));
    const char *at = buf_str(&s->texts);
    for (int i = 0; i < s->n_texts; i++, at += strlen(at) + 1)
        messages[i] = (gen_message){i % 2 ? "assistant" : "user", at};
    messages[s->n_texts] = (gen_message){"user", buf_str(&text)};
    TRY(write_body(s, messages, s->n_texts + 1));
    if (work_of(s)->turns > 1)
        TRY(add_text(s, buf_str(&text)) ? SNAP_OK : no_memory(b));
cleanup:
    free(messages);
    buf_release(&text);
    return st;
}

/* Prepares the request of the slot's conversation and turn. False after an error. */
static bool prepare(load_slot *s) {
    const serving_work *w = work_of(s);
    s->index = s->conversation * w->turns + s->turn;
    s->wanted = work_output(&s->lane->work, s->index);
    s->problem = work_problem(&s->lane->work, s->index);
    snap_status st =
        s->problem ? write_body(s, s->problem->messages, s->problem->n_messages) : write_made(s);
    block_fail(s->lane->block, st);
    return st == SNAP_OK;
}

/* Whether the plan has a request with this number. */
static bool is_planned(const lane *l, int64_t index) {
    return index < INT_MAX && (!l->plan->requests || index < l->plan->requests);
}

/* Sets *due_ns to when the next conversation of an open loop is due. Returns false after the end of
 * a trace. */
static bool next_arrival(lane *l, int64_t *due_ns) {
    const trace *t = l->work.work->trace;
    double s = 0;
    if (l->plan->load.rate > 0) {
        for (; l->arrived <= l->next_conversation; l->arrived++)
            s = arrivals_next(&l->arrivals);
    } else {
        if (l->next_conversation >= (int64_t)t->n)
            return false;
        s = t->rows[l->next_conversation].time_s / l->plan->load.speed;
    }
    *due_ns = s < 9e9 ? (int64_t)(s * 1e9) : INT64_MAX;
    return true;
}

bool load_slot_begin(load_slot *s, int64_t due_ns) {
    lane *l = s->lane;
    forget_texts(s);
    if (!is_planned(l, l->next_conversation * work_of(s)->turns) ||
        (!l->plan->load.users && !next_arrival(l, &due_ns))) {
        l->exhausted = true;
        return false;
    }
    s->conversation = l->next_conversation;
    l->next_conversation += l->plan->parts ? l->plan->parts : 1;
    s->turn = 0;
    s->due_ns = due_ns;
    if (due_ns < l->end_ns)
        return prepare(s);
    l->exhausted = l->exhausted || !l->plan->load.users; /* later arrivals are due even later */
    return false;
}

/* ---- after the end of a request ---- */

static double seconds(const load_slot *s, int64_t monotonic_ns) {
    return (double)(monotonic_ns - s->lane->block->start_ns) * 1e-9;
}

static void describe(load_slot *s, serving_request *r) {
    const attempt *a = &s->at;
    const serving_work *w = work_of(s);
    buf_clear(&s->error);
    secrets_mask_message(s->lane->plan->target->secrets, a->why.text, &s->error);
    const char *shown = buf_str(&s->error);
    r->failed = true;
    r->error = s->problem ? task_public_message(w->task, s->problem, shown) : shown;
}

static void pass_on(load_slot *s, bool cut, int64_t end_ns) {
    const block_plan *p = s->lane->plan;
    const block *b = s->lane->block;
    const attempt *a = &s->at;
    double send_lag_s = (double)s->send_lag_ns * 1e-9;
    double received_lag_s = (double)s->received_lag_ns * 1e-9;
    serving_request r = {
        .arm = p->arm,
        .point = p->point,
        .block = p->block,
        .index = (int)s->index,
        .part = p->part,
        .due_s = (double)s->due_ns * 1e-9,
        .sent_s = (double)s->sent_ns * 1e-9,
        .first_s = a->first_token_ns < 0 ? -1 : seconds(s, a->first_token_ns),
        .end_s = cut ? -1 : seconds(s, end_ns),
        .prompt_tokens = a->answer.prompt_tokens,
        .completion_tokens = a->answer.completion_tokens,
        .wanted_tokens = s->wanted,
        .pieces = s->pieces,
        .gap_s = s->gaps,
        .lag_s = fmax(send_lag_s, received_lag_s),
        .received_lag_s = received_lag_s,
        .cut = cut,
    };
    if (!cut && a->end != ATTEMPT_OK)
        describe(s, &r);
    block_fail(s->lane->block, b->opt->sink(b->opt->sink_ctx, &r, s->problem, &a->answer, b->err));
}

/* Prepares the next turn of the conversation. False if there is none, if it is due too late, or
 * after an error. */
static bool next_turn(load_slot *s, int64_t now) {
    const serving_work *w = work_of(s);
    if (s->turn + 1 >= w->turns || !is_planned(s->lane, s->index + 1))
        return false;
    if (!s->problem && !add_text(s, buf_str(&s->at.answer.text))) {
        block_fail(s->lane->block, no_memory(s->lane->block));
        return false;
    }
    s->turn++;
    s->due_ns = now + llround(work_think_s(&s->lane->work, s->index + 1) * 1e9);
    return s->due_ns < s->lane->end_ns && prepare(s);
}

/* Uses the slot for the next turn or, in a closed loop, for the next conversation of the user. If
 * there is none, releases it. */
static void follow(load_slot *s, int64_t now) {
    lane *l = s->lane;
    bool more = s->at.end == ATTEMPT_OK && next_turn(s, now);
    if (!more && l->plan->load.users) {
        double think_s = work_think_s(&l->work, s->index + 1);
        more = load_slot_begin(s, now + llround(think_s * 1e9));
    }
    if (more)
        block_push(l->block, s);
    else
        block_release_slot(l->block, s);
}

/* Counts failed requests. Ends the block if the first BLOCK_GIVE_UP requests of an arm failed. */
static void count_failure(load_slot *s) {
    lane *l = s->lane;
    block *b = l->block;
    l->succeeded = l->succeeded || s->at.end == ATTEMPT_OK;
    if (l->succeeded || ++l->failures < BLOCK_GIVE_UP)
        return;
    buf_clear(&s->error);
    secrets_mask_message(l->plan->target->secrets, s->at.why.text, &s->error);
    block_fail(b, err_set(b->err, SNAP_E_NET, "arm '%s': the first %d requests failed: %s",
                          l->plan->target->name, l->failures, buf_str(&s->error)));
}

/* ---- sending and receiving ---- */

/* Notes that a time of the request is @at_ns, but may be as early as when the event was ready. */
static void note_lag(load_slot *s, int64_t at_ns) {
    int64_t lag = at_ns - http_ready_ns(s->lane->block->opt->engine);
    s->received_lag_ns = lag > s->received_lag_ns ? lag : s->received_lag_ns;
}

static bool on_body(void *ctx, const http_response *head, const char *bytes, size_t n) {
    load_slot *s = ctx;
    const http *engine = s->lane->block->opt->engine;
    int64_t received_ns = http_received_ns(engine);
    bool more = attempt_take(&s->at, head, bytes, n, received_ns);
    /* The arrival of the last event of a read is exact. Events before it have the same time, but
     * may have come at any time since the socket was last found empty. */
    if (!http_arrival_known(engine) || !attempt_times_are_exact(&s->at))
        note_lag(s, received_ns);
    return more;
}

static void on_done(void *ctx, const http_response *res) {
    load_slot *s = ctx;
    block *b = s->lane->block;
    int64_t end_ns = http_received_ns(b->opt->engine);
    if (!http_arrival_known(b->opt->engine))
        note_lag(s, end_ns);
    attempt_judge(&s->at, res);
    s->running = false;
    s->server->in_flight--;
    b->running--;
    pass_on(s, false, s->at.finish_ns >= 0 ? s->at.finish_ns : end_ns);
    count_failure(s);
    if (b->st == SNAP_OK)
        follow(s, end_ns - b->start_ns);
}

void load_slot_send(load_slot *s, int64_t now) {
    block *b = s->lane->block;
    serving_target *t = s->lane->plan->target;
    const char *headers[] = {"Content-Type: application/json",
                             t->stream ? "Accept: text/event-stream" : "Accept: application/json"};
    attempt_begin(&s->at);
    s->pieces = 0;
    s->sent_ns = now;
    /* the users of a closed loop all begin at 0, and cannot all send at once */
    s->send_lag_ns = s->due_ns || !s->lane->plan->load.users ? now - s->due_ns : 0;
    s->received_lag_ns = 0;
    s->server = endpoints_choose(&t->servers, INT64_MAX);
    s->server->in_flight++;
    s->server->started++;
    http_request req = {.url = t->settings.completions ? s->server->text_url : s->server->chat_url,
                        .headers = headers,
                        .n_headers = 2,
                        .secrets = t->secrets.lines,
                        .n_secrets = t->secrets.n,
                        .body = s->body.data,
                        .body_len = s->body.len,
                        .silence_s = t->silence_s,
                        .deadline_s = t->deadline_s,
                        .on_body = on_body,
                        .on_done = on_done,
                        .ctx = s};
    s->running = true;
    b->running++;
    block_fail(b, http_start(b->opt->engine, &req, b->err));
}

void load_slot_cut(load_slot *s) {
    s->running = false;
    s->server->in_flight--;
    s->lane->block->running--;
    pass_on(s, true, 0);
}
