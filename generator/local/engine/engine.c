#include "generator/local/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "generator/local/engine/engine_parts.h"

enum { kDrawsPerTask = 16 }; /* draws that a thread does as one task */

static snap_status check_tokens(const engine *e, const int32_t *tokens, int n, snap_err *err) {
    for (int i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= e->vocab)
            return err_set(err, SNAP_E_SHAPE, "token %d is not in the vocabulary of %d",
                           (int)tokens[i], e->vocab);
    return SNAP_OK;
}

snap_status replica_add(engine *e, const engine_request *req, snap_err *err) {
    if (req->n_prompt < 1 || req->n_prompt >= e->context)
        return err_set(err, SNAP_E_SHAPE, "a prompt of %d tokens is out of range: 1 to %lld fit",
                       req->n_prompt, (long long)e->context - 1);
    if (req->top_logprobs < 0 || req->top_logprobs > ENGINE_TOP)
        return err_set(err, SNAP_E_SHAPE, "%d log-probabilities are out of range: 0 to %d",
                       req->top_logprobs, ENGINE_TOP);
    snap_status st = check_tokens(e, req->prompt, req->n_prompt, err);
    if (st == SNAP_OK && req->score)
        st = engine_make_score_rows(e, err);
    if (st != SNAP_OK)
        return st;
    int64_t capacity = e->context - req->n_prompt;
    capacity = req->n_prompt + (req->max_tokens < capacity ? req->max_tokens : capacity) + 1;
    sequence *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a sequence");
    s->req = *req;
    s->req.sampling.n_prompt = req->n_prompt;
    s->n = s->n_prompt = req->n_prompt;
    s->capacity = (int)capacity;
    e->tokens += sequence_tokens(s);
    s->rng = rng_make(req->seed, 0);
    s->tokens = calloc((size_t)capacity, sizeof *s->tokens);
    s->pages = calloc((size_t)e->table, sizeof *s->pages);
    s->top = req->top_logprobs ? calloc((size_t)req->top_logprobs, sizeof *s->top) : NULL;
    bool room = s->tokens && s->pages && (s->top || !req->top_logprobs);
    s->from = !room        ? NULL
              : req->score ? prompt_for_scores(e, s)
                           : prompt_join(e, req->prompt, req->n_prompt);
    if (!s->from) {
        sequence_free(e, s);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a sequence of %lld tokens",
                       (long long)capacity);
    }
    memcpy(s->tokens, req->prompt, (size_t)s->n * sizeof *s->tokens);
    list_push(&e->queue, s);
    e->given++;
    return SNAP_OK;
}

static void draw_some(void *ctx, int worker, int64_t index) {
    engine *e = ctx;
    int first = (int)index * kDrawsPerTask, n = e->running.n;
    for (int i = first; i < first + kDrawsPerTask && i < n; i++) {
        drawing *d = &e->drawing[i];
        if (e->got[i].kind == READ_LOGITS)
            engine_draw(e->sampler[worker], d, e->logits + (int64_t)i * e->vocab);
        else if (e->got[i].kind != READ_NOT_FINITE)
            *d = (drawing){.s = d->s,
                           .token = sampler_draw_read(e->sampler[worker], &d->s->req.sampling,
                                                      &e->got[i], &d->s->rng)};
    }
}

/* Passes a drawn token to the caller, unless it is a stop id. Returns whether the sequence
 * continues; if not, *why is the reason. */
static bool take_token(const engine *e, const drawing *d, finish_reason *why) {
    sequence *s = d->s;
    *why = FINISH_STOP;
    for (int i = 0; i < s->req.n_stop_ids; i++)
        if (d->token == s->req.stop_ids[i])
            return false;
    s->tokens[s->n++] = d->token;
    if (s->req.top)
        s->req.top(s->req.user, s->top, s->n_top);
    if (!s->req.token(s->req.user, d->token, d->logprob))
        return false;
    *why = FINISH_LENGTH;
    return s->n - s->n_prompt < s->req.max_tokens && s->n <= e->context - 1;
}

/* ---- admission ---- */

/* Gives a sequence the pages of its prompt, which is ready. Full pages are shared. The last page is
 * copied if it is not full, because the sequence will write to it. If only the prompt holds that
 * page, no copy is needed: the prompt does not write to it any more. *done is false if no page was
 * free for the copy. */
static snap_status fork_pages(engine *e, sequence *s, bool *done, snap_err *err) {
    snap_status st = SNAP_OK;
    prompt *p = s->from;
    int last = p->held - 1;
    bool copy = p->n % MLA_PAGE != 0 && e->pool.holders[p->pages[last]] > 1;
    *done = !copy || engine_have_pages(e, 1);
    if (!*done)
        return SNAP_OK;
    for (int i = 0; i < p->held; i++) {
        s->pages[i] = p->pages[i];
        pool_hold(&e->pool, s->pages[i]);
    }
    s->held = p->held;
    int shared = p->forks++ ? p->n : 0;
    e->stats.shared += shared;
    if (s->req.start && s->n == s->n_prompt) /* otherwise the sequence had started before, and is
                                                computed again */
        s->req.start(s->req.user, shared);
    if (copy) {
        pool_drop(&e->pool, s->pages[last]);
        s->pages[last] = pool_take(&e->pool);
        TRY(runner_copy_page(e->r, p->pages[last], s->pages[last], err));
    }
cleanup:
    return st;
}

/* Draws the first token from the prompt's logits and passes it to the caller. Returns whether the
 * sequence continues. */
static bool first_token(engine *e, sequence *s, finish_reason *why) {
    drawing d = {.s = s};
    prompt *p = s->from;
    reading part = engine_reading(e, s);
    if (part.kind == READ_SHARE) {
        d.token = block_sums_draw(&p->sums, p->logits, e->vocab, part.temperature, part.share);
        (void)rng_uniform(&s->rng);
    } else {
        engine_draw(e->sampler[0], &d, p->logits);
    }
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
            engine_finish(e, &e->queue, s, FINISH_NO_PAGES);
            continue;
        }
        prompt_start(e, p);
        if (p->computed < p->n)
            break;
        TRY(fork_pages(e, s, &done, err));
        if (!done)
            break;
        s->cached = s->n;
        bool on = false;
        if (!p->finite) /* also if only the scores of the prompt are wanted */
            why = FINISH_NOT_FINITE;
        else if (s->req.max_tokens > 0)
            on = first_token(e, s, &why);
        prompt_leave(e, p);
        s->from = NULL;
        if (on) {
            list_take_out(&e->queue, s);
            list_push(&e->running, s);
        } else {
            engine_finish(e, &e->queue, s, why);
        }
    }
cleanup:
    return st;
}

/* ---- one step of the engine ---- */

/* The length of the prompt's next chunk. A prompt is divided at multiples of e->chunk, whatever
 * else is in the step. A scored prompt is divided at multiples of ENGINE_SCORE_CHUNK if this is
 * less than e->chunk. */
static int chunk_of(const engine *e, const prompt *p) {
    int left = p->n - p->computed;
    int most = p->scored_for && e->chunk > ENGINE_SCORE_CHUNK ? ENGINE_SCORE_CHUNK : e->chunk;
    return left < most ? left : most;
}

static bool is_chunked(const engine *e, const prompt *p) {
    for (int i = 0; i < e->chunks; i++)
        if (e->chunked[i] == p)
            return true;
    return false;
}

/* Chooses the prompts that this step continues, at most ENGINE_STEP_PROMPTS, in the order of the
 * queue, while their chunks fit into the step. At most one of them is scored. The first one gets
 * its pages in admit_queue(). A later prompt without pages gets them here, if more than twice as
 * many pages are free as this prompt and the running sequences need. */
static void add_chunks(engine *e) {
    int capacity = e->chunk;
    bool scored = false;
    e->chunks = 0;
    for (sequence *s = e->queue.first; s && e->chunks < ENGINE_STEP_PROMPTS; s = s->next) {
        prompt *p = s->from;
        if (p->computed == p->n || is_chunked(e, p))
            continue;
        if (e->chunks && e->pool.n_free > 2 * (pages_for(p->n) + e->running.n))
            prompt_start(e, p);
        if (!p->held || chunk_of(e, p) > capacity || (scored && p->scored_for))
            break;
        scored |= p->scored_for != NULL;
        capacity -= chunk_of(e, p);
        e->chunked[e->chunks++] = p;
    }
}

static int build_step(engine *e) {
    int n = 0;
    for (sequence *s = e->running.first; s; s = s->next) {
        e->wanted[n] = engine_reading(e, s);
        e->piece[n++] = (model_piece){.tokens = s->tokens + s->cached,
                                      .count = 1,
                                      .position = s->cached,
                                      .pages = s->pages,
                                      .logits = 1};
    }
    for (int i = 0; i < ENGINE_STEP_PROMPTS + (e->can_score ? ENGINE_SCORE_CHUNK : 0); i++)
        e->wanted[n + i] = (reading){.kind = READ_LOGITS};
    add_chunks(e);
    for (int i = 0; i < e->chunks; i++) {
        const prompt *p = e->chunked[i];
        int count = chunk_of(e, p);
        e->piece[n++] = (model_piece){.tokens = p->tokens + p->computed,
                                      .count = count,
                                      .position = p->computed,
                                      .pages = p->pages,
                                      .logits = p->scored_for                 ? count
                                                : p->computed + count == p->n ? 1
                                                                              : 0,
                                      .chunk = true};
    }
    return n;
}

static void count_step(engine *e) {
    engine_stats *s = &e->stats;
    int pages = e->pool.pages - e->pool.n_free;
    s->steps++;
    s->decoded += e->running.n;
    for (int i = e->running.n; i < e->pieces; i++)
        s->prefilled += e->piece[i].count;
    s->most_running = e->running.n > s->most_running ? e->running.n : s->most_running;
    s->most_pages = pages > s->most_pages ? pages : s->most_pages;
    if (e->running.n) {
        e->running_steps++;
        e->running_sum += e->running.n;
    }
}

/* Counts the computed chunks, passes on the scores if a chunk is scored, and stores the logits of
 * the prompts that are ready now. @row: the first row of the chunks in e->got and e->logits. */
static void take_chunks(engine *e, int row) {
    for (int i = 0; i < e->chunks; i++) {
        prompt *p = e->chunked[i];
        int count = chunk_of(e, p);
        if (p->scored_for) {
            engine_take_scores(e, p, count, row);
            row += count - (p->computed + count == p->n);
        }
        p->computed += count;
        if (p->computed < p->n)
            continue;
        p->finite = e->got[row].kind == READ_LOGITS && !p->bad_score;
        block_sums_clear(&p->sums);
        if (p->finite)
            memcpy(p->logits, e->logits + (int64_t)row * e->vocab,
                   (size_t)e->vocab * sizeof *p->logits);
        row++;
    }
}

/* Whether the model has already chosen the token, or none can be drawn. Such a draw takes less time
 * than another thread needs to wake up. */
static bool is_chosen(const reading_result *got) {
    return got->kind == READ_BEST || got->kind == READ_SHARE || got->kind == READ_NOT_FINITE;
}

/* Draws the next tokens of the first @n rows of the step. */
static void draw_all(engine *e, int n) {
    int tasks = (n + kDrawsPerTask - 1) / kDrawsPerTask, slow = 0;
    for (int i = 0; i < n; i++)
        slow += !is_chosen(&e->got[i]);
    if (slow > kDrawsPerTask)
        parallel_for(e->threads, tasks, draw_some, e);
    else
        for (int i = 0; i < tasks; i++)
            draw_some(e, 0, i);
}

/* Uses the results of a step: draws a token for each running sequence, updates the prompts, passes
 * the tokens to the callers, and ends the sequences that are done. */
static void take_results(engine *e) {
    int n = 0;
    for (sequence *s = e->running.first; s; s = s->next)
        e->drawing[n++].s = s;
    draw_all(e, n);
    take_chunks(e, n);
    for (int i = 0; i < n; i++) {
        finish_reason why = FINISH_NOT_FINITE;
        e->drawing[i].s->cached++;
        if (e->got[i].kind == READ_NOT_FINITE || !take_token(e, &e->drawing[i], &why))
            engine_finish(e, &e->running, e->drawing[i].s, why);
    }
}

/* Whether this step has computed the last chunk of a prompt. */
static bool prompt_is_ready(const engine *e) {
    for (int i = 0; i < e->chunks; i++)
        if (e->chunked[i]->computed == e->chunked[i]->n)
            return true;
    return false;
}

snap_status replica_admit(engine *e, snap_err *err) {
    snap_status st = engine_admit_swapped(e, err);
    return st == SNAP_OK ? admit_queue(e, err) : st;
}

snap_status replica_begin_step(engine *e, snap_err *err) {
    snap_status st;
    TRY(replica_admit(e, err));
    TRY(engine_reserve_pages(e, err));
    e->pieces = build_step(e);
cleanup:
    return st;
}

snap_status replica_end_step(engine *e, snap_err *err) {
    if (!e->running.n && !e->chunks)
        return SNAP_OK;
    count_step(e);
    take_results(e);
    return prompt_is_ready(e) ? admit_queue(e, err) : SNAP_OK; /* its first token need not wait for
                                                                  the next step */
}

/* ---- statistics and removal ---- */

int replica_pending(const engine *e) {
    return e->queue.n + e->running.n + e->swapped.n;
}

engine_stats replica_stats(const engine *e) {
    engine_stats s = e->stats;
    s.model = runner_stats_of(e->r);
    s.mean_running = e->running_steps ? (double)e->running_sum / (double)e->running_steps : 0;
    return s;
}

engine_load replica_load(const engine *e) {
    return (engine_load){.running = e->running.n,
                         .queued = e->queue.n,
                         .swapped = e->swapped.n,
                         .pages = e->pool.pages,
                         .pages_used = e->pool.pages - e->pool.n_free,
                         .pages_kept = prompts_idle_pages(e)};
}

static bool remove_from(engine *e, sequence_list *l, const void *user) {
    sequence *s = l->first;
    while (s && s->req.user != user)
        s = s->next;
    if (!s)
        return false;
    list_take_out(l, s);
    sequence_free(e, s);
    return true;
}

bool replica_remove(engine *e, const void *user) {
    return remove_from(e, &e->running, user) || remove_from(e, &e->queue, user) ||
           remove_from(e, &e->swapped, user);
}

static void free_list(engine *e, sequence_list *l) {
    for (sequence *s = l->first, *next; s; s = next) {
        next = s->next;
        sequence_free(e, s);
    }
    *l = (sequence_list){0};
}

void replica_clear(engine *e) {
    free_list(e, &e->queue);
    free_list(e, &e->running);
    free_list(e, &e->swapped);
    (void)prompts_free_idle(e, 0);
}
