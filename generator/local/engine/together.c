/* together.c - engines with one replica or with several ones that take all steps together: creating
 * them, distributing requests, padding, and running a step. */
#include <stdlib.h>

#include "base/clock.h"
#include "generator/local/engine/balance.h"
#include "generator/local/engine/engine_parts.h"

enum { kReplicas = 256 };

/* ---- padding --------------------------------------------------------------------------------- */

/* The most tokens of a padding piece: it begins at position 0, and must fit into the context. */
static int span_of(const runner_options *o) {
    return o->context < o->max_rows ? (int)o->context : o->max_rows;
}

static int pad_pieces(const runner_options *o) {
    return (o->max_rows - 1) / span_of(o) + 1;
}

int64_t engine_padding_pages(const runner_options *o) {
    return (int64_t)pad_pieces(o) * pages_for(span_of(o));
}

static int rows_of(const engine *e) {
    int rows = 0;
    for (int i = 0; i < e->pieces; i++)
        rows += e->piece[i].count;
    return rows;
}

/* Adds @rows decoded padding rows. Row i of a span has position i, so all rows write to different
 * places in the cache, and attend to places that padding rows of this step have written. All their
 * logits are wanted, which a recorded CUDA graph needs. */
static void pad_decoding(engine *e, int rows) {
    for (int i = 0; i < rows; i++, e->padding++) {
        int at = e->pieces + e->padding;
        e->wanted[at] = (reading){.kind = READ_BEST};
        e->piece[at] = (model_piece){.tokens = e->pad_token,
                                     .count = 1,
                                     .position = i % e->pad_span,
                                     .pages = e->pad_page +
                                              (int64_t)(i / e->pad_span) * pages_for(e->pad_span),
                                     .logits = 1,
                                     .padding = true};
    }
}

/* Adds @rows padding rows as chunks of prompts. */
static void pad_chunks(engine *e, int rows) {
    for (int i = 0; i < rows; i += e->pad_span, e->padding++)
        e->piece[e->pieces + e->padding] = (model_piece){
            .tokens = e->pad_token,
            .count = rows - i < e->pad_span ? rows - i : e->pad_span,
            .pages = e->pad_page + (int64_t)(i / e->pad_span) * pages_for(e->pad_span),
            .chunk = true,
            .padding = true};
}

/* Whether a replica has chunks in the step. On a GPU, a step without chunks is a recorded graph. */
static bool any_chunks(const engine *e) {
    while (e && !e->chunks)
        e = e->next;
    return e != NULL;
}

/* Gives all replicas the same number of rows. If one has chunks, each gets at least one chunk, so
 * that the step is recorded on all of them or on none. */
static void pad_all(engine *first) {
    int most = 0;
    bool chunks = any_chunks(first);
    for (engine *e = first; e; e = e->next) {
        int rows = rows_of(e) + (chunks && !e->chunks);
        most = rows > most ? rows : most;
    }
    for (engine *e = first; e; e = e->next) {
        e->padding = 0;
        if (e->pad_page)
            (chunks ? pad_chunks : pad_decoding)(e, most - rows_of(e));
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static int most_of(const engine *e) {
    return runner_limits(e->r)->max_decode;
}

/* Chooses a replica for a request as engine.h says. */
static engine *choose(engine *first, const engine_request *req) {
    replica_use of[kReplicas];
    int n = 0;
    for (const engine *e = first; e; e = e->next) {
        replica_use *u = &of[n++];
        *u = (replica_use){
            .most = most_of(e), .held = replica_pending(e), .tokens = e->tokens, .given = e->given};
        u->has_same =
            !req->score && u->held < u->most && prompt_is_known(e, req->prompt, req->n_prompt);
    }
    int number = balance_choose(of, n, 1, ENGINE_AHEAD);
    engine *chosen = first;
    while (number-- > 0 && chosen->next)
        chosen = chosen->next;
    return chosen;
}

snap_status engine_add(engine *e, const engine_request *req, snap_err *err) {
    bool valid = e->next && req->n_prompt >= 1 && req->n_prompt < e->context;
    return replica_add(valid ? choose(e, req) : e, req, err);
}

/* ---- moving requests that wait --------------------------------------------------------------- */

/* The first sequence of the queue whose prompt has no pages. If @moves, it must not be scored.
 * NULL: there is none. */
static sequence *without_pages(const engine *e, bool moves) {
    sequence *s = e->queue.first;
    while (s && (s->from->held || (moves && s->from->scored_for)))
        s = s->next;
    return s;
}

/* The pages that such a sequence needs to start, or a preempted one to go on. */
static int pages_to_start(const sequence *s) {
    return s->swapped ? s->held + 1 : pages_for(s->from->n);
}

/* The pages that are free, or become free when they are needed, beside one for each running
 * sequence. */
static int spare_pages(const engine *e) {
    return e->pool.n_free + prompts_idle_pages(e) - e->running.n;
}

/* Whether a sequence of @e has to wait until other sequences end. */
static bool must_wait(const engine *e, const sequence *s) {
    return replica_pending(e) > most_of(e) || (e->swapped.n && !s->swapped) ||
           spare_pages(e) < pages_to_start(s);
}

/* Whether a sequence of another replica could start on @e at once. */
static bool can_start(const engine *e, const sequence *s) {
    return replica_pending(e) < most_of(e) && !e->swapped.n && !without_pages(e, false) &&
           spare_pages(e) - e->queue.n >= pages_to_start(s);
}

/* The sequence that moves from one replica to another one: one that was preempted, or else one of
 * the queue. NULL: none. */
static sequence *to_move(const engine *from, const engine *to) {
    sequence *waiting[] = {from->swapped.first, without_pages(from, true)};
    for (int i = 0; i < 2; i++)
        if (waiting[i] && must_wait(from, waiting[i]) && can_start(to, waiting[i]))
            return waiting[i];
    return NULL;
}

static snap_status move(engine *from, engine *to, sequence *s, snap_err *err) {
    bool swapped = s->swapped != NULL;
    if (!swapped) {
        prompt *p = prompt_join(to, s->tokens, s->n);
        if (!p)
            return err_set(err, SNAP_E_NOMEM, "out of memory for a prompt of %d tokens", s->n);
        prompt_leave(from, s->from);
        s->from = p;
    }
    list_take_out(swapped ? &from->swapped : &from->queue, s);
    list_push(swapped ? &to->swapped : &to->queue, s);
    from->tokens -= sequence_tokens(s);
    to->tokens += sequence_tokens(s);
    return SNAP_OK;
}

/* Moves sequences that have to wait to replicas where they can start at once. */
static snap_status balance(engine *first, snap_err *err) {
    snap_status st = SNAP_OK;
    for (engine *from = first; from; from = from->next)
        for (engine *to = first; to; to = to->next) {
            sequence *s;
            while (from != to && (s = to_move(from, to)))
                TRY(move(from, to, s, err));
        }
cleanup:
    return st;
}

bool engine_remove(engine *e, const void *user) {
    bool found = false;
    for (; e && !found; e = e->next)
        found = replica_remove(e, user);
    return found;
}

int engine_pending(const engine *e) {
    int n = 0;
    for (; e; e = e->next)
        n += replica_pending(e);
    return n;
}

void engine_clear(engine *e) {
    for (; e; e = e->next)
        replica_clear(e);
}

void engine_recompute(engine *e, bool on) {
    for (; e; e = e->next)
        e->recompute = on;
}

int engine_most_running(const engine *e) {
    int n = 0;
    for (; e; e = e->next)
        n += most_of(e);
    return n;
}

int64_t engine_longest(const engine *e) {
    return (int64_t)e->pool.pages * MLA_PAGE;
}

/* ---- a step ---------------------------------------------------------------------------------- */

snap_status engine_admit(engine *first, snap_err *err) {
    snap_status st = first->next ? balance(first, err) : SNAP_OK;
    for (engine *e = first; e && st == SNAP_OK; e = e->next)
        st = replica_admit(e, err);
    return st;
}

/* Runs the step of all replicas. */
static snap_status run_together(engine *first, snap_err *err) {
    runner_batch batch[kReplicas];
    int n = 0;
    int64_t begun_ns = clock_now_ns();
    pad_all(first);
    for (engine *e = first; e; e = e->next)
        batch[n++] =
            (runner_batch){e->r, e->piece, e->pieces + e->padding, e->wanted, e->got, e->logits};
    snap_status st = runner_step_together(batch, n, err);
    first->stats.model_ns += clock_now_ns() - begun_ns;
    return st;
}

snap_status engine_step(engine *first, snap_err *err) {
    snap_status st = SNAP_OK;
    int pieces = 0;
    if (first->next)
        TRY(balance(first, err));
    for (engine *e = first; e; e = e->next) {
        TRY(replica_begin_step(e, err));
        pieces += e->pieces;
    }
    if (!pieces)
        return SNAP_OK;
    TRY(run_together(first, err));
    first->steps++;
    for (engine *e = first; e; e = e->next)
        TRY(replica_end_step(e, err));
cleanup:
    return st;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static runner_stats runner_stats_sum(runner_stats a, runner_stats b) {
    return (runner_stats){.launch_ns = a.launch_ns + b.launch_ns,
                          .wait_ns = a.wait_ns + b.wait_ns,
                          .recorded = a.recorded + b.recorded,
                          .record_ns = a.record_ns + b.record_ns,
                          .layers = a.layers + b.layers,
                          .experts = a.experts + b.experts};
}

engine_stats engine_stats_sum(engine_stats a, engine_stats b) {
    double steps = (double)(a.steps + b.steps);
    double running = a.mean_running * (double)a.steps + b.mean_running * (double)b.steps;
    return (engine_stats){.steps = a.steps + b.steps,
                          .decoded = a.decoded + b.decoded,
                          .prefilled = a.prefilled + b.prefilled,
                          .shared = a.shared + b.shared,
                          .preemptions = a.preemptions + b.preemptions,
                          .recomputed = a.recomputed + b.recomputed,
                          .model_ns = a.model_ns + b.model_ns,
                          .model = runner_stats_sum(a.model, b.model),
                          .most_running =
                              a.most_running > b.most_running ? a.most_running : b.most_running,
                          .most_pages = a.most_pages > b.most_pages ? a.most_pages : b.most_pages,
                          .mean_running = steps > 0 ? running / steps : 0};
}

engine_stats engine_stats_of(const engine *first) {
    engine_stats sum = replica_stats(first);
    runner_stats model = sum.model;
    for (const engine *e = first->next; e; e = e->next)
        sum = engine_stats_sum(sum, replica_stats(e));
    /* All replicas take a step at the same time, so their steps and times are not added up. */
    model.layers = sum.model.layers;
    model.experts = sum.model.experts;
    sum.model = model;
    sum.steps = first->steps;
    return sum;
}

engine_load engine_load_of(const engine *e) {
    engine_load sum = replica_load(e);
    while ((e = e->next)) {
        engine_load l = replica_load(e);
        sum.running += l.running;
        sum.queued += l.queued;
        sum.swapped += l.swapped;
        sum.pages += l.pages;
        sum.pages_used += l.pages_used;
        sum.pages_kept += l.pages_kept;
    }
    return sum;
}

/* ---- life ------------------------------------------------------------------------------------ */

static snap_status create_samplers(engine *e, snap_err *err) {
    snap_status st = SNAP_OK;
    int n = parallel_threads(e->threads);
    sampler **all = calloc((size_t)n, sizeof(void *));
    if (!all)
        return err_set(err, SNAP_E_NOMEM, "out of memory for sampling");
    e->sampler = all;
    for (int i = 0; i < n; i++)
        TRY(sampler_create(&all[i], e->vocab, err));
cleanup:
    return st;
}

static void free_replica(engine *e) {
    replica_clear(e);
    for (int i = 0; e->sampler && i < parallel_threads(e->threads); i++)
        sampler_free(e->sampler[i]);
    free(e->sampler);
    pool_release(&e->pool);
    free(e->pad_page);
    free(e->pad_token);
    free(e->piece);
    free(e->logits);
    free(e->drawing);
    free(e->wanted);
    free(e->got);
    free(e);
}

void engine_free(engine *e) {
    for (engine *next; e; e = next) {
        next = e->next;
        free_replica(e);
    }
}

/* Takes the last pages of the cache for padding rows. *pages: how many are left. */
static snap_status reserve_padding(engine *e, int64_t *pages, snap_err *err) {
    const runner_options *o = runner_limits(e->r);
    int64_t n = engine_padding_pages(o);
    *pages = o->pages - n;
    if (*pages < 1)
        return err_set(err, SNAP_E_NOMEM,
                       "a cache of %lld pages has no page beside %lld for padding",
                       (long long)o->pages, (long long)n);
    e->pad_span = span_of(o);
    e->pad_page = calloc((size_t)n, sizeof *e->pad_page);
    e->pad_token = calloc((size_t)e->pad_span, sizeof *e->pad_token);
    if (!e->pad_page || !e->pad_token)
        return err_set(err, SNAP_E_NOMEM, "out of memory for padding");
    for (int64_t i = 0; i < n; i++)
        e->pad_page[i] = (int32_t)(*pages + i);
    return SNAP_OK;
}

static snap_status make_room(engine *e, bool pads, snap_err *err) {
    const runner_options *o = runner_limits(e->r);
    int64_t pages = o->pages;
    snap_status st = SNAP_OK;
    if (pads)
        TRY(reserve_padding(e, &pages, err));
    TRY(pool_init(&e->pool, (int32_t)pages, err));
    size_t rows = (size_t)o->max_decode + ENGINE_STEP_PROMPTS,
           pieces = rows + (pads ? (size_t)pad_pieces(o) : 0);
    e->piece = calloc(pieces, sizeof *e->piece);
    e->logits = calloc(rows * (size_t)e->vocab, sizeof *e->logits);
    e->drawing = calloc((size_t)o->max_decode, sizeof *e->drawing);
    e->wanted = calloc(rows, sizeof *e->wanted);
    e->got = calloc(rows, sizeof *e->got);
    if (!e->piece || !e->logits || !e->drawing || !e->wanted || !e->got)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for %d sequences", o->max_decode));
cleanup:
    return st;
}

/* Creates the engine of one replica. *out: freed by the caller, also after an error. */
static snap_status create_replica(engine **out, runner *r, bool pads, snap_err *err) {
    snap_status st;
    const runner_options *o = runner_limits(r);
    engine *e = *out = calloc(1, sizeof *e);
    if (!e)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an engine");
    e->r = r;
    e->vocab = runner_shape(r)->vocab_size;
    e->context = o->context;
    e->table = pages_for(o->context);
    e->threads = runner_pool(r);
    e->chunk = o->max_rows - o->max_decode;
    if (e->chunk < 1)
        TRY(err_set(err, SNAP_E_SHAPE,
                    "steps of %d tokens leave no room for prompts beside %d sequences", o->max_rows,
                    o->max_decode));
    TRY(create_samplers(e, err));
    TRY(make_room(e, pads, err));
cleanup:
    return st;
}

snap_status engine_create_together(engine **out, runner *const *r, int n, snap_err *err) {
    snap_status st = SNAP_OK;
    engine *first = NULL, **end = &first;
    *out = NULL;
    if (n > kReplicas)
        return err_set(err, SNAP_E_SHAPE, "an engine of %d replicas: at most %d are possible", n,
                       (int)kReplicas);
    for (int i = 0; i < n; i++, end = &(*end)->next)
        TRY(create_replica(end, r[i], n > 1, err));
    *out = first;
    first = NULL;
cleanup:
    engine_free(first);
    return st;
}

snap_status engine_create(engine **out, runner *r, snap_err *err) {
    return engine_create_together(out, &r, 1, err);
}
