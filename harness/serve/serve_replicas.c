#include "harness/serve/serve_replicas.h"

#include <stdlib.h>
#include <string.h>

#include "generator/local/engine/balance.h"

typedef struct {
    serve_engine *engine;
    int most;                       /* sequences that it decodes at once */
    int64_t given;                  /* sequences that it has got */
    int64_t tokens;                 /* sum of serve_job.tokens of its jobs that are not released */
    serve_load load;                /* its state at the last collection */
    uint64_t prompt[SERVE_PROMPTS]; /* hashes of the last prompts, a ring; 0 = none */
    int next_prompt;
} replica;

struct serve_replicas {
    replica at[LOCAL_REPLICAS];
    int n;
    serve_job *queue, **queue_end;
    int waiting; /* sequences in the queue */
};

static int sequences_of(const serve_job *j) {
    return j->n_prompts * j->n;
}

/* The sequences that a replica holds: those of its last published state, and those that it has got
 * since then. */
static int64_t held_by(const replica *p) {
    const engine_load *l = &p->load.now;
    return l->running + l->queued + l->swapped + p->given - p->load.begun;
}

/* The most tokens of prompts and answers that the sequences of a job can have. */
static int64_t tokens_of(const serve_job *j) {
    int64_t tokens = 0;
    for (int i = 0; i < j->n_prompts; i++)
        tokens += j->n * ((int64_t)j->prompts[i].n + j->how.max_tokens);
    return tokens;
}

/* FNV-1a of the first prompt of a job; 0 if the job shares no prompt. */
static uint64_t hash_prompt(const serve_job *j) {
    const tok_ids *ids = &j->prompts[0];
    uint64_t h = 0xcbf29ce484222325u;
    if (j->scores)
        return 0;
    for (size_t i = 0; i < ids->n; i++)
        h = (h ^ (uint32_t)ids->v[i]) * 0x100000001b3u;
    return h ? h : 1;
}

static bool had_prompt(const replica *p, uint64_t hash) {
    for (int i = 0; hash && i < SERVE_PROMPTS; i++)
        if (p->prompt[i] == hash)
            return true;
    return false;
}

/* The state of a replica, for the choice of one for @j. */
static replica_use use_of(const replica *p, const serve_job *j) {
    return (replica_use){.broken = p->load.broken,
                         .has_same = had_prompt(p, j->prompt_hash),
                         .most = p->most,
                         .held = held_by(p),
                         .tokens = p->tokens,
                         .given = p->given};
}

static replica *choose(serve_replicas *r, const serve_job *j) {
    replica_use of[LOCAL_REPLICAS];
    for (int i = 0; i < r->n; i++)
        of[i] = use_of(&r->at[i], j);
    return &r->at[balance_choose(of, r->n, sequences_of(j), SERVE_AHEAD)];
}

static void give(replica *p, serve_job *j) {
    uint64_t hash = j->prompt_hash;
    if (hash && !had_prompt(p, hash)) {
        p->prompt[p->next_prompt] = hash;
        p->next_prompt = (p->next_prompt + 1) % SERVE_PROMPTS;
    }
    p->given += sequences_of(j);
    p->tokens += j->tokens;
    j->engine = p->engine;
    serve_engine_submit(p->engine, j);
}

/* Gives jobs of the queue to replicas, in order, while one has room. */
static void distribute(serve_replicas *r) {
    while (r->queue) {
        serve_job *j = r->queue;
        replica *p = choose(r, j);
        if (r->n > 1 && !balance_has_room(held_by(p), p->most))
            break;
        r->queue = j->next_in;
        if (!r->queue)
            r->queue_end = &r->queue;
        r->waiting -= sequences_of(j);
        give(p, j);
    }
}

void serve_replicas_submit(serve_replicas *r, serve_job *j) {
    j->engine = NULL;
    j->prompt_hash = hash_prompt(j);
    j->tokens = tokens_of(j);
    j->next_in = NULL;
    *r->queue_end = j;
    r->queue_end = &j->next_in;
    r->waiting += sequences_of(j);
    distribute(r);
}

/* Takes a job out of the queue. */
static void take_out(serve_replicas *r, serve_job *j) {
    serve_job **at = &r->queue;
    while (*at != j)
        at = &(*at)->next_in;
    *at = j->next_in;
    if (!*at)
        r->queue_end = at;
    r->waiting -= sequences_of(j);
}

void serve_replicas_cancel(serve_replicas *r, serve_job *j) {
    if (!j->engine) { /* an engine releases a job, so the job goes through one */
        take_out(r, j);
        give(choose(r, j), j);
    }
    serve_engine_cancel(j->engine, j);
}

static void add_load(serve_load *sum, const serve_load *l) {
    sum->now.running += l->now.running;
    sum->now.queued += l->now.queued;
    sum->now.swapped += l->now.swapped;
    sum->now.pages += l->now.pages;
    sum->now.pages_used += l->now.pages_used;
    sum->now.pages_kept += l->now.pages_kept;
    sum->stats = engine_stats_sum(sum->stats, l->stats);
    sum->busy_ns += l->busy_ns;
    sum->begun += l->begun;
    if (l->broken && !sum->broken) {
        sum->broken = true;
        sum->reason = l->reason;
    }
}

serve_job *serve_replicas_collect(serve_replicas *r, serve_totals *out) {
    serve_job *list = NULL, **end = &list;
    *out = (serve_totals){.replicas = r->n};
    for (int i = 0; i < r->n; i++) {
        replica *p = &r->at[i];
        *end = serve_engine_collect(p->engine, &p->load);
        for (; *end; end = &(*end)->next_news)
            if ((*end)->released)
                p->tokens -= (*end)->tokens;
        add_load(&out->all, &p->load);
        out->begun[i] = p->load.begun;
    }
    distribute(r);
    out->all.now.queued += r->waiting;
    return list;
}

snap_status serve_replicas_start(serve_replicas **out, local_model *m, int wake, snap_err *err) {
    snap_status st = SNAP_OK;
    serve_replicas *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a server");
    r->queue_end = &r->queue;
    for (; r->n < m->replicas; r->n++) {
        local_model *x = local_replica(m, r->n);
        replica *p = &r->at[r->n];
        p->most = engine_most_running(x->engine);
        p->load.now = engine_load_of(x->engine);
        TRY(serve_engine_start(&p->engine, x, wake, err));
    }
    *out = r;
    r = NULL;
cleanup:
    serve_replicas_stop(r);
    return st;
}

void serve_replicas_stop(serve_replicas *r) {
    for (int i = 0; r && i < r->n; i++)
        serve_engine_stop(r->at[i].engine);
    free(r);
}
