#include "harness/serving/block.h"

#include <stdlib.h>

#include "base/clock.h"
#include "harness/serving/block_parts.h"

enum {
    kBurst = 4,         /* most requests sent between two steps of the HTTP engine */
    kEarlyNs = 1000000, /* in ns: http_step() may sleep this much too long, so it gets an earlier
                           time to wake up */
    kIdleNs = 100000000,
};

int64_t block_now(const block *b) {
    return clock_now_ns() - b->start_ns;
}

void block_fail(block *b, snap_status st) {
    if (b->st == SNAP_OK)
        b->st = st;
}

/* ---- the heap of requests that wait for their time ---- */

static bool is_before(const load_slot *a, const load_slot *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->index < b->index;
}

static void swap(load_slot **a, load_slot **b) {
    load_slot *kept = *a;
    *a = *b;
    *b = kept;
}

void block_push(block *b, load_slot *s) {
    if (b->n_due == b->due_capacity) {
        size_t capacity = b->due_capacity ? 2 * b->due_capacity : 64;
        load_slot **grown = realloc(b->due, capacity * sizeof(load_slot *));
        if (!grown) {
            block_release_slot(b, s);
            block_fail(b, err_set(b->err, SNAP_E_NOMEM, "out of memory for the requests"));
            return;
        }
        b->due = grown;
        b->due_capacity = capacity;
    }
    size_t i = b->n_due++;
    b->due[i] = s;
    for (; i && is_before(b->due[i], b->due[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&b->due[i], &b->due[(i - 1) / 2]);
}

static load_slot *pop(block *b) {
    load_slot *first = b->due[0];
    b->due[0] = b->due[--b->n_due];
    for (size_t i = 0, least;; i = least) {
        least = i;
        for (size_t k = 2 * i + 1; k < 2 * i + 3 && k < b->n_due; k++)
            if (is_before(b->due[k], b->due[least]))
                least = k;
        if (least == i)
            return first;
        swap(&b->due[i], &b->due[least]);
    }
}

/* ---- slots for requests ---- */

void block_release_slot(block *b, load_slot *s) {
    s->next_free = b->free;
    b->free = s;
}

/* Returns a slot for a lane: a free slot of this lane or, if there is none, a new one. NULL after
 * an error. */
static load_slot *take_slot(lane *l) {
    block *b = l->block;
    for (load_slot **at = &b->free; *at; at = &(*at)->next_free)
        if ((*at)->lane == l) {
            load_slot *s = *at;
            *at = s->next_free;
            return s;
        }
    if (b->n_slots == b->slots_capacity) {
        size_t capacity = b->slots_capacity ? 2 * b->slots_capacity : 64;
        load_slot **grown = realloc(b->slots, capacity * sizeof(load_slot *));
        if (!grown) {
            block_fail(b, err_set(b->err, SNAP_E_NOMEM, "out of memory for the requests"));
            return NULL;
        }
        b->slots = grown;
        b->slots_capacity = capacity;
    }
    load_slot *s = load_slot_create(l);
    if (s)
        b->slots[b->n_slots++] = s;
    return s;
}

/* Prepares the lane's next conversation. */
static void prepare_next(lane *l) {
    block *b = l->block;
    load_slot *s = l->exhausted || b->st != SNAP_OK ? NULL : take_slot(l);
    if (s && load_slot_begin(s, 0))
        block_push(b, s);
    else if (s)
        block_release_slot(b, s);
}

/* ---- the loop of a block ---- */

/* Sends at most kBurst of the requests that are due. Returns true if more may be due. */
static bool send_due(block *b) {
    for (int i = 0; i < kBurst; i++) {
        int64_t now = block_now(b);
        if (!b->n_due || b->due[0]->due_ns > now || b->running >= BLOCK_IN_FLIGHT_MAX ||
            b->st != SNAP_OK)
            return false;
        load_slot *s = pop(b);
        bool arrived = !s->lane->plan->load.users && s->turn == 0;
        load_slot_send(s, now);
        if (arrived)
            prepare_next(s->lane);
    }
    return true;
}

/* Whether no request is left to send. A conversation that is in flight may still continue. */
static bool is_sent(const block *b, int64_t now) {
    for (int i = 0; i < b->n_lanes; i++)
        if (!b->lanes[i].exhausted && now < b->lanes[i].end_ns)
            return false;
    return !b->n_due;
}

/* When the loop must wake up at the latest. */
static int64_t wake_ns(const block *b, int64_t now, int64_t drained_ns) {
    int64_t at = now + kIdleNs;
    if (b->n_due && b->running < BLOCK_IN_FLIGHT_MAX && b->due[0]->due_ns < at)
        at = b->due[0]->due_ns;
    for (int i = 0; i < b->n_lanes; i++)
        if (b->lanes[i].end_ns > now && b->lanes[i].end_ns < at)
            at = b->lanes[i].end_ns;
    return drained_ns < at ? drained_ns : at;
}

static void cut_running(block *b) {
    http_abandon(b->opt->engine);
    for (size_t i = 0; i < b->n_slots; i++)
        if (b->slots[i]->running)
            load_slot_cut(b->slots[i]);
}

static void run(block *b, double drain_s) {
    int64_t drain_ns = (int64_t)(drain_s * 1e9), drained_ns = INT64_MAX;
    while (b->st == SNAP_OK) {
        bool more = send_due(b);
        int64_t now = block_now(b);
        bool sent = is_sent(b, now);
        if (sent && !b->running)
            return;
        if (!sent)
            drained_ns = INT64_MAX; /* a conversation has a next turn, so the drain has not begun */
        else if (drained_ns == INT64_MAX)
            drained_ns = now + drain_ns;
        if (now >= drained_ns) {
            cut_running(b);
            return;
        }
        int64_t wake = more ? 0 : wake_ns(b, now, drained_ns) - kEarlyNs;
        if (b->st == SNAP_OK)
            block_fail(b, http_step(b->opt->engine, b->start_ns + wake, b->err));
    }
}

int64_t block_users(const block_plan *plan) {
    int64_t users = plan->load.users, parts = plan->parts ? plan->parts : 1;
    return users / parts + (plan->part ? plan->part - 1 < users % parts : 0);
}

static void make_lane(block *b, lane *l, const block_plan *p) {
    *l = (lane){.block = b,
                .plan = p,
                .work = work_block_make(b->opt->work, p->point, p->block, p->load.users),
                .next_conversation = p->part ? p->part - 1 : 0,
                .end_ns = p->duration_s > 0 ? (int64_t)(p->duration_s * 1e9) : INT64_MAX};
    bool ramp = p->load.from_rate > 0;
    if (p->load.rate > 0)
        l->arrivals = arrivals_make(p->load.pattern, ramp ? p->load.from_rate : p->load.rate,
                                    p->load.rate, ramp ? p->duration_s : 0, b->opt->work->seed,
                                    l->work.input ^ rng_stream_of("arrivals"));
    int64_t slots = p->load.users ? block_users(p) : 1;
    l->exhausted = !slots; /* a warm-up can have fewer users than there are parts */
    for (int64_t i = 0; i < slots && !l->exhausted; i++)
        prepare_next(l);
}

snap_status block_run(const block_plan *plans, int n, const block_options *opt, snap_err *err) {
    block b = {.opt = opt, .n_lanes = n, .err = err};
    b.lanes = calloc((size_t)n, sizeof *b.lanes);
    if (!b.lanes)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the requests");
    for (int i = 0; i < n; i++)
        make_lane(&b, &b.lanes[i], &plans[i]);
    b.start_ns = clock_now_ns();
    run(&b, plans[0].drain_s);
    http_abandon(opt->engine);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < plans[i].target->servers.n; k++)
            plans[i].target->servers.list[k].in_flight = 0;
    for (size_t i = 0; i < b.n_slots; i++)
        load_slot_free(b.slots[i]);
    free(b.slots);
    free(b.due);
    free(b.lanes);
    return b.st;
}
