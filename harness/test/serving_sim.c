#include "harness/test/serving_sim.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "harness/serving/arrivals.h"

void sim_release(sim_log *log) {
    for (size_t i = 0; i < log->n; i++)
        free((void *)(uintptr_t)log->at[i].gap_s);
    free(log->at);
    *log = (sim_log){0};
}

/* Adds a request that has not been sent; returns its number. */
static size_t add(sim_log *log, const sim_block *b, int index, double due) {
    if (log->n == log->capacity) {
        log->capacity = log->capacity ? 2 * log->capacity : 1024;
        log->at = realloc(log->at, log->capacity * sizeof *log->at);
        if (!log->at)
            abort();
    }
    log->at[log->n] = (serving_request){.arm = b->arm,
                                        .point = b->point,
                                        .block = b->block,
                                        .index = index,
                                        .due_s = due,
                                        .sent_s = due,
                                        .first_s = -1,
                                        .end_s = -1,
                                        .prompt_tokens = 100,
                                        .completion_tokens = -1,
                                        .wanted_tokens = -1,
                                        .lag_s = 1e-6,
                                        .received_lag_s = 1e-6};
    return log->n++;
}

static float *gaps_of(int pieces) {
    float *gaps = calloc((size_t)pieces, sizeof *gaps);
    if (!gaps)
        abort();
    return gaps;
}

static double exponential(rng *r, double rate) {
    return -log1p(-rng_uniform(r)) / rate;
}

void sim_mm1(sim_log *log, const sim_block *b, double service_rate, int pieces) {
    rng come = rng_make(b->seed, 1), service = rng_make(b->noise, 2);
    double free_at = 0, due = exponential(&come, b->rate);
    for (int index = 0; due < b->seconds; index++) {
        size_t at = add(log, b, index, due); /* add() may move the list */
        serving_request *r = &log->at[at];
        double time = exponential(&service, service_rate), begin = fmax(due, free_at);
        float *gaps = gaps_of(pieces);
        for (int i = 0; i + 1 < pieces; i++)
            gaps[i] = (float)(time / 2 / (pieces - 1));
        free_at = r->end_s = begin + time;
        r->first_s = begin + time / 2;
        r->pieces = pieces;
        r->completion_tokens = pieces;
        r->gap_s = gaps;
        due += exponential(&come, b->rate);
    }
}

void sim_gamma_queue(sim_log *log, const sim_block *b, const sim_queue *q) {
    arrivals come =
        arrivals_make((arrival_pattern){q->arrival_shape}, b->rate, b->rate, 0, b->seed, 1);
    arrivals served = arrivals_make((arrival_pattern){q->service_shape}, 1, 1, 0, b->noise, 2);
    double free_at[64] = {0}, due = arrivals_next(&come), before = 0;
    for (int index = 0; due < b->seconds; index++, due = arrivals_next(&come)) {
        size_t at = add(log, b, index, due); /* add() may move the list */
        serving_request *r = &log->at[at];
        double *first = free_at, sum = arrivals_next(&served), time = sum - before;
        for (int k = 1; k < q->servers; k++)
            first = free_at[k] < *first ? &free_at[k] : first;
        before = sum;
        r->first_s = fmax(due, *first) + time / 2;
        *first = r->end_s = fmax(due, *first) + time;
        r->pieces = 2;
        r->completion_tokens = 2;
        float *gaps = gaps_of(1);
        gaps[0] = (float)(time / 2);
        r->gap_s = gaps;
    }
}

/* ---- a server that works in steps ---- */

typedef struct {
    size_t request;
    int made;
    double last;
} slot;

typedef struct {
    sim_log *log;
    const sim_block *b;
    const sim_engine *e;
    rng arrivals, noise;
    slot *active;
    int n_active, index;
    size_t begun; /* requests of the log before this one are in service or done */
    double now, next;
} engine;

/* Appends the requests that are due by now. */
static void arrive(engine *g) {
    while (!g->b->concurrent && g->next <= g->now && g->next < g->b->seconds) {
        (void)add(g->log, g->b, g->index++, g->next);
        g->next += exponential(&g->arrivals, g->b->rate);
    }
}

static int admit(engine *g) {
    int begun = 0;
    while (g->n_active < g->e->slots && g->begun < g->log->n) {
        g->active[g->n_active++] = (slot){.request = g->begun++};
        begun++;
    }
    return begun;
}

static void take(engine *g, int i) {
    slot *s = &g->active[i];
    serving_request *r = &g->log->at[s->request];
    if (!s->made) {
        r->first_s = g->now;
        r->gap_s = gaps_of(g->e->tokens);
    } else {
        ((float *)(uintptr_t)r->gap_s)[s->made - 1] = (float)(g->now - s->last);
    }
    s->last = g->now;
    r->pieces = ++s->made;
}

static void step(engine *g) {
    int begun = admit(g);
    double time = g->e->step_s + g->e->token_s * g->n_active + g->e->prefill_s * begun;
    g->now += time * exp(g->e->jitter * rng_normal(&g->noise));
    for (int i = 0; i < g->n_active; i++)
        take(g, i);
    for (int i = g->n_active; i-- > 0;) {
        if (g->active[i].made < g->e->tokens)
            continue;
        serving_request *r = &g->log->at[g->active[i].request];
        r->end_s = g->now;
        r->completion_tokens = g->e->tokens;
        g->active[i] = g->active[--g->n_active];
        if (g->b->concurrent && g->now < g->b->seconds)
            (void)add(g->log, g->b, g->index++, g->now);
    }
    arrive(g);
}

void sim_batches(sim_log *log, const sim_block *b, const sim_engine *e) {
    engine g = {.log = log,
                .b = b,
                .e = e,
                .arrivals = rng_make(b->seed, 1),
                .noise = rng_make(b->noise, 2),
                .active = calloc((size_t)e->slots, sizeof(slot)),
                .begun = log->n};
    if (!g.active)
        abort();
    for (int i = 0; i < b->concurrent; i++)
        (void)add(log, b, g.index++, 0);
    g.next = b->concurrent ? 0 : exponential(&g.arrivals, b->rate);
    arrive(&g);
    for (;;) {
        if (!g.n_active && g.begun == log->n) { /* idle */
            if (b->concurrent || !(g.next < b->seconds))
                break;
            g.now = g.next;
            arrive(&g);
        }
        step(&g);
    }
    free(g.active);
}

/* Adds a request of 32 tokens in two pieces that takes @tpot for each token. */
static void add_even(sim_log *log, const sim_block *b, int index, double due, double tpot) {
    enum { kTokens = 32 };
    size_t i = add(log, b, index, due); /* add() may move the list */
    serving_request *r = &log->at[i];
    float *gaps = gaps_of(1);
    gaps[0] = (float)((kTokens - 1) * tpot);
    r->first_s = due + tpot;
    r->end_s = due + kTokens * tpot;
    r->completion_tokens = kTokens;
    r->pieces = 2;
    r->gap_s = gaps;
}

void sim_drifting(sim_log *log, const sim_block *b, double tpot_s, double spread) {
    const double keeps = 0.8, step_s = 0.5; /* the drift keeps this share of itself for each step */
    rng random = rng_make(b->noise, (uint64_t)b->block);
    double drift = spread * rng_normal(&random), at = 0;
    for (int index = 0; index / b->rate < b->seconds; index++) {
        double due = index / b->rate;
        for (; at + step_s < due; at += step_s)
            drift = keeps * drift + sqrt(1 - keeps * keeps) * spread * rng_normal(&random);
        add_even(log, b, index, due, tpot_s * exp(drift + 1e-4 * rng_normal(&random)));
    }
}

void sim_wave(sim_log *log, const sim_block *b, double tpot_s, double amplitude, double period_s) {
    const double circle = 6.283185307179586;
    rng random = rng_make(b->noise, (uint64_t)b->block);
    double phase = circle * rng_uniform(&random);
    for (int index = 0; index / b->rate < b->seconds; index++) {
        double due = index / b->rate, wave = sin(phase + circle * due / period_s);
        add_even(log, b, index, due, tpot_s * exp(amplitude * wave + 1e-4 * rng_normal(&random)));
    }
}
