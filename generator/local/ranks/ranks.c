#include "generator/local/ranks/ranks.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "generator/local/ranks/ranks_inside.h"

enum {
    kBeatBytes = 16 + RANKS_WHAT,
    kBeats = 10 /* signs of life in the shorter one of silence_s and exchange_s */,
    kFailureMost = 700
};
static const double kLinger = 1; /* seconds that the others have to read the last message */

const ranks_options ranks_defaults = {
    .arrive_s = 120, .silence_s = 10, .exchange_s = 20, .stuck_s = 5};

int ranks_rank(const ranks *g) {
    return g->rank;
}

int ranks_size(const ranks *g) {
    return g->size;
}

/* The seconds between two signs of life, which also carry the progress of the rank to rank 0. */
static double beat_s(const ranks *g) {
    return (g->opt.silence_s < g->opt.exchange_s ? g->opt.silence_s : g->opt.exchange_s) / kBeats;
}

static int64_t ns_of(double s) {
    return (int64_t)(s * 1e9);
}

/* ---- failures ---- */

void ranks_send_failure(ranks *g, wire *w) {
    uint8_t bytes[4 + sizeof g->failure.text];
    size_t n = strlen(g->failure.text);
    wire_put32(bytes, g->failure.code);
    memcpy(bytes + 4, g->failure.text, n);
    /* If sending fails, the other side finds the connection closed. */
    if (wire_send(w, WIRE_FAIL, bytes, 4 + n, NULL) != SNAP_OK)
        (void)shutdown(w->fd, SHUT_RDWR);
}

void ranks_spread_failure(ranks *g, bool from_rank_0) {
    g->failed_ns = clock_now_ns();
    if (g->opt.on_failure)
        g->opt.on_failure(&g->failure, from_rank_0);
    for (int r = 0; r < g->size; r++)
        if (r != g->rank && g->of[r].here && g->of[r].w.fd >= 0)
            ranks_send_failure(g, &g->of[r].w);
    (void)pthread_cond_broadcast(&g->changed);
}

void ranks_fail_locked(ranks *g, int rank, snap_status code, const char *text) {
    if (g->failure.code != SNAP_OK)
        return;
    (void)err_set(&g->failure, code, "rank %d: %s", rank, text);
    ranks_spread_failure(g, false);
}

void ranks_take_failure(ranks *g, const wire_message *m) {
    char text[kFailureMost];
    if (g->failure.code != SNAP_OK || m->n < 4)
        return;
    uint32_t code = wire_get32(m->bytes);
    if (code == SNAP_OK || code > SNAP_E_WORSE)
        code = SNAP_E_NET;
    (void)snprintf(text, sizeof text, "%.*s", (int)(m->n - 4 < 600 ? m->n - 4 : 600),
                   (const char *)m->bytes + 4);
    (void)err_set(&g->failure, (snap_status)code, "%s", text);
    ranks_spread_failure(g, g->rank != 0 && m->type == WIRE_FAIL);
}

void ranks_fail_other(ranks *g, int rank, snap_err *why) {
    (void)pthread_mutex_lock(&g->lock);
    ranks_fail_locked(g, rank, why->code == SNAP_OK ? SNAP_E_DEVICE : why->code, why->text);
    *why = g->failure;
    (void)pthread_mutex_unlock(&g->lock);
}

void ranks_fail(ranks *g, snap_err *why) {
    ranks_fail_other(g, g->rank, why);
}

/* Returns the failure of the group, if there is one, and copies it to @err. An error that @err has
 * already is only a consequence of the failure. */
static snap_status failure_locked(const ranks *g, snap_err *err) {
    if (g->failure.code != SNAP_OK && err)
        *err = g->failure;
    return g->failure.code;
}

snap_status ranks_check(ranks *g, snap_err *err) {
    (void)pthread_mutex_lock(&g->lock);
    snap_status st = failure_locked(g, err);
    (void)pthread_mutex_unlock(&g->lock);
    return st;
}

/* ---- the thread: receives, sends signs of life, and watches the limits ---- */

static void take_beat(rank_state *p, const wire_message *m) {
    if (m->n != kBeatBytes)
        return;
    uint64_t begun = wire_get64(m->bytes);
    if (begun != p->begun)
        p->begun_ns = clock_now_ns();
    p->begun = begun;
    p->ended = wire_get64(m->bytes + 8);
    memcpy(p->what, m->bytes + 16, RANKS_WHAT);
    p->what[RANKS_WHAT - 1] = '\0';
}

/* Keeps the numbers until an all-gather takes them. A rank sends its next numbers only after it has
 * received the result of the all-gather, so there is never a second message to keep. */
static void take_data(ranks *g, int r, const wire_message *m) {
    rank_state *p = &g->of[r];
    if (p->has_data || m->n > p->data_room) {
        ranks_fail_locked(g, r, SNAP_E_NET, "it sent numbers out of turn");
        return;
    }
    memcpy(p->data, m->bytes, m->n);
    p->data_n = m->n;
    p->has_data = true;
}

static void take_message(ranks *g, int r, const wire_message *m) {
    rank_state *p = &g->of[r];
    p->received_ns = clock_now_ns();
    if (m->type == WIRE_FAIL)
        ranks_take_failure(g, m);
    else if (m->type == WIRE_BEAT)
        take_beat(p, m);
    else if (m->type == WIRE_DATA)
        take_data(g, r, m);
    else if (m->type == WIRE_BYE)
        p->left = true;
    else
        ranks_fail_locked(g, r, SNAP_E_NET, "it sent a message out of turn");
    (void)pthread_cond_broadcast(&g->changed);
}

static void read_rank(ranks *g, int r) {
    rank_state *p = &g->of[r];
    bool open = wire_read(&p->w);
    wire_message m;
    wire_result got;
    while ((got = wire_next(&p->w, &m)) == WIRE_MESSAGE)
        take_message(g, r, &m);
    if (got == WIRE_GARBAGE)
        ranks_fail_locked(g, r, SNAP_E_NET, "it sent something that is no message");
    else if (!open && p->w.no_memory)
        ranks_fail_locked(g, g->rank, SNAP_E_NOMEM, "out of memory for a message of another rank");
    else if (!open && !p->left)
        ranks_fail_locked(g, r, SNAP_E_NET, "its process has ended without a message");
    if (got == WIRE_GARBAGE || !open)
        wire_close(&p->w);
}

static void send_beats(ranks *g, int64_t now) {
    const rank_state *me = &g->of[g->rank];
    uint8_t bytes[kBeatBytes];
    if (now - g->beat_ns < ns_of(beat_s(g)))
        return;
    g->beat_ns = now;
    wire_put64(bytes, me->begun);
    wire_put64(bytes + 8, me->ended);
    memcpy(bytes + 16, me->what, RANKS_WHAT);
    for (int r = 0; r < g->size && g->failure.code == SNAP_OK; r++) {
        snap_err why = {0};
        rank_state *p = &g->of[r];
        if (r == g->rank || p->w.fd < 0 || p->left ||
            wire_send(&p->w, WIRE_BEAT, bytes, sizeof bytes, &why) == SNAP_OK)
            continue;
        read_rank(g, r); /* a failure that the rank has sent says more than the failed send */
        if (!p->left)
            ranks_fail_locked(g, r, SNAP_E_NET, why.text);
    }
}

static void watch_silence(ranks *g, int64_t now) {
    char text[80];
    (void)snprintf(text, sizeof text, "no sign of life for %g s", g->opt.silence_s);
    for (int r = 0; r < g->size; r++) {
        const rank_state *p = &g->of[r];
        if (r != g->rank && p->w.fd >= 0 && !p->left &&
            now - p->received_ns > ns_of(g->opt.silence_s))
            ranks_fail_locked(g, r, SNAP_E_NET, text);
    }
}

/* Runs on rank 0, which receives the progress of each rank. If an exchange takes too long on a
 * rank, the rank that has begun the fewest exchanges is named. If none has begun fewer than this
 * rank, this rank itself is named. */
static void watch_exchanges(ranks *g, int64_t now) {
    int last = 0;
    char text[RANKS_WHAT + 80];
    for (int r = 1; r < g->size; r++)
        if (g->of[r].begun < g->of[last].begun)
            last = r;
    for (int r = 0; r < g->size; r++) {
        const rank_state *p = &g->of[r];
        if (p->begun == p->ended || now - p->begun_ns <= ns_of(g->opt.exchange_s))
            continue;
        bool absent = g->of[last].begun < p->begun;
        (void)snprintf(text, sizeof text, "%s: %s within %g s", p->what,
                       absent ? "it did not begin" : "it did not end", g->opt.exchange_s);
        ranks_fail_locked(g, absent ? last : r, SNAP_E_DEVICE, text);
    }
}

/* Waits for messages, but at most half the time between two signs of life. */
static void wait_for_messages(ranks *g, bool ready[RANKS_MOST]) {
    struct pollfd fds[RANKS_MOST + 1] = {{.fd = g->wake, .events = POLLIN}};
    int limit_ms = (int)(beat_s(g) * 500) + 1;
    for (int r = 0; r < g->size; r++)
        fds[r + 1] = (struct pollfd){.fd = g->of[r].w.fd, .events = POLLIN};
    (void)pthread_mutex_unlock(&g->lock);
    (void)poll(fds, (nfds_t)g->size + 1, limit_ms);
    (void)pthread_mutex_lock(&g->lock);
    for (int r = 0; r < g->size; r++)
        ready[r] = fds[r + 1].revents != 0 && g->of[r].w.fd >= 0;
}

static void *watch(void *arg) {
    ranks *g = arg;
    bool ready[RANKS_MOST] = {false}, reported = false;
    (void)pthread_mutex_lock(&g->lock);
    while (!g->stop) {
        wait_for_messages(g, ready);
        for (int r = 0; r < g->size; r++)
            if (ready[r])
                read_rank(g, r);
        int64_t now = clock_now_ns();
        if (g->failure.code == SNAP_OK) {
            send_beats(g, now);
            watch_silence(g, now);
            if (g->rank == 0)
                watch_exchanges(g, now);
        } else if (!reported && !g->stop && g->opt.on_stuck &&
                   now - g->failed_ns > ns_of(g->opt.stuck_s)) {
            snap_err why = g->failure;
            reported = true;
            if (g->opt.name && *g->opt.name)
                err_prefix(&why, "%s", g->opt.name);
            (void)pthread_mutex_unlock(&g->lock);
            g->opt.on_stuck(&why);
            (void)pthread_mutex_lock(&g->lock);
        }
    }
    (void)pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* ---- joining and closing ---- */

static void release(ranks *g) {
    for (int r = 0; g->of && r < g->size; r++) {
        wire_close(&g->of[r].w);
        free(g->of[r].data);
    }
    free(g->of);
    if (g->wake >= 0)
        (void)close(g->wake);
    (void)pthread_cond_destroy(&g->changed);
    (void)pthread_mutex_destroy(&g->lock);
    free(g);
}

/* Allocates the buffers for numbers: rank 0 receives those of one rank over each connection, and
 * each other rank receives those of all ranks from rank 0. */
static snap_status make_room(ranks *g, snap_err *err) {
    size_t room = g->rank == 0 ? RANKS_BLOB_MOST : (size_t)g->size * RANKS_BLOB_MOST;
    for (int r = g->rank == 0 ? 1 : 0; r < (g->rank == 0 ? g->size : 1); r++) {
        g->of[r].data = malloc(room);
        if (!g->of[r].data)
            return err_set(err, SNAP_E_NOMEM, "out of memory for a group of ranks");
        g->of[r].data_room = room;
    }
    return SNAP_OK;
}

static snap_status start(ranks *g, snap_err *err) {
    int64_t now = clock_now_ns();
    for (int r = 0; r < g->size; r++)
        g->of[r].received_ns = now;
    if (pthread_create(&g->thread, NULL, watch, g) != 0)
        return err_set(err, SNAP_E_IO, "cannot start the thread of a rank");
    return SNAP_OK;
}

snap_status ranks_join(ranks **out, const rank_place *place, const char *facts,
                       const ranks_options *opt, snap_err *err) {
    snap_status st = SNAP_OK;
    *out = NULL;
    ranks *g = calloc(1, sizeof *g);
    rank_state *of = calloc((size_t)place->size, sizeof *of);
    if (!g || !of) {
        free(of);
        free(g);
        if (place->listener >= 0)
            (void)close(place->listener);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a group of ranks");
    }
    *g = (ranks){.opt = *opt, .rank = place->rank, .size = place->size, .of = of};
    for (int r = 0; r < g->size; r++)
        of[r].w = WIRE_CLOSED;
    (void)pthread_mutex_init(&g->lock, NULL);
    (void)pthread_cond_init(&g->changed, NULL);
    g->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    st = make_room(g, err);
    if (st == SNAP_OK)
        st = ranks_rendezvous(g, place, facts, err);
    else if (place->listener >= 0)
        (void)close(place->listener);
    if (st == SNAP_OK && g->wake < 0)
        st = err_set(err, SNAP_E_IO, "cannot make an eventfd");
    if (st == SNAP_OK)
        st = start(g, err);
    if (st == SNAP_OK)
        *out = g;
    else
        release(g);
    return st;
}

/* After a failure, closes the connections in such a way that the others can still read the last
 * message: a socket that is closed with unread input resets the connection. */
static void linger(ranks *g) {
    int64_t end = clock_now_ns() + ns_of(kLinger);
    for (int r = 0; r < g->size; r++)
        if (g->of[r].w.fd >= 0)
            (void)shutdown(g->of[r].w.fd, SHUT_WR);
    for (int r = 0; r < g->size; r++) {
        wire *w = &g->of[r].w;
        wire_message m;
        int64_t left = end - clock_now_ns();
        struct pollfd at = {.fd = w->fd, .events = POLLIN};
        while (w->fd >= 0 && left > 0 && poll(&at, 1, (int)(left / 1000000) + 1) > 0 &&
               wire_read(w)) {
            while (wire_next(w, &m) == WIRE_MESSAGE)
                continue;
            left = end - clock_now_ns();
        }
        wire_close(w);
    }
}

static bool others_left(const ranks *g) {
    for (int r = 0; r < g->size; r++)
        if (r != g->rank && g->of[r].here && !g->of[r].left)
            return false;
    return true;
}

static void send_bye(ranks *g) {
    for (int r = 0; r < g->size; r++)
        if (r != g->rank && g->of[r].w.fd >= 0 &&
            wire_send(&g->of[r].w, WIRE_BYE, NULL, 0, NULL) != SNAP_OK)
            read_rank(g, r);
}

snap_status ranks_close(ranks *g, snap_err *err) {
    if (!g)
        return SNAP_OK;
    snap_status st = ranks_begin(g, "the end of the work", NULL);
    (void)pthread_mutex_lock(&g->lock);
    if (g->rank != 0 && st == SNAP_OK)
        send_bye(g);
    while (g->failure.code == SNAP_OK && !others_left(g))
        (void)pthread_cond_wait(&g->changed, &g->lock);
    if (g->rank == 0 && g->failure.code == SNAP_OK)
        send_bye(g);
    st = failure_locked(g, err);
    g->stop = true;
    (void)eventfd_write(g->wake, 1);
    (void)pthread_mutex_unlock(&g->lock);
    (void)pthread_join(g->thread, NULL);
    if (st != SNAP_OK)
        linger(g);
    release(g);
    return st;
}

/* ---- exchanges ---- */

snap_status ranks_begin(ranks *g, const char *what, snap_err *err) {
    (void)pthread_mutex_lock(&g->lock);
    rank_state *me = &g->of[g->rank];
    me->begun++;
    me->begun_ns = clock_now_ns();
    (void)snprintf(me->what, sizeof me->what, "%s", what);
    snap_status st = failure_locked(g, err);
    (void)pthread_mutex_unlock(&g->lock);
    return st;
}

snap_status ranks_end(ranks *g, snap_err *err) {
    (void)pthread_mutex_lock(&g->lock);
    g->of[g->rank].ended = g->of[g->rank].begun;
    snap_status st = failure_locked(g, err);
    (void)pthread_mutex_unlock(&g->lock);
    return st;
}

double ranks_set_limit(ranks *g, double exchange_s) {
    (void)pthread_mutex_lock(&g->lock);
    double before = g->opt.exchange_s;
    int64_t now = clock_now_ns();
    g->opt.exchange_s = exchange_s;
    /* The signs of life that have arrived may still show an exchange that has ended. It began under
     * the previous limit. */
    for (int r = 0; r < g->size; r++)
        g->of[r].begun_ns = now;
    (void)pthread_mutex_unlock(&g->lock);
    return before;
}

void ranks_set_stuck(ranks *g, double s) {
    (void)pthread_mutex_lock(&g->lock);
    g->opt.stuck_s = s;
    g->failed_ns = clock_now_ns();
    (void)pthread_mutex_unlock(&g->lock);
}

/* Waits until rank @r has sent numbers, which must be @n bytes. */
static snap_status wait_for_data(ranks *g, int r, size_t n) {
    rank_state *p = &g->of[r];
    while (g->failure.code == SNAP_OK && !p->has_data)
        (void)pthread_cond_wait(&g->changed, &g->lock);
    if (g->failure.code == SNAP_OK && p->data_n != n)
        ranks_fail_locked(g, r, SNAP_E_SHAPE, "it gathers another number of bytes than this rank");
    p->has_data = false;
    return g->failure.code;
}

/* Sends to rank @r. A failure that the rank has sent before says more than the failed send. */
static snap_status send_data(ranks *g, int r, const void *bytes, size_t n) {
    snap_err why = {0};
    if (wire_send(&g->of[r].w, WIRE_DATA, bytes, n, &why) != SNAP_OK) {
        if (g->of[r].w.fd >= 0)
            read_rank(g, r);
        ranks_fail_locked(g, r, SNAP_E_NET, why.text);
    }
    return g->failure.code;
}

static snap_status gather_on_rank_0(ranks *g, const void *mine, size_t n, uint8_t *all) {
    memcpy(all, mine, n);
    for (int r = 1; r < g->size; r++) {
        if (wait_for_data(g, r, n) != SNAP_OK)
            return g->failure.code;
        memcpy(all + (size_t)r * n, g->of[r].data, n);
    }
    for (int r = 1; r < g->size; r++)
        if (send_data(g, r, all, n * (size_t)g->size) != SNAP_OK)
            return g->failure.code;
    return SNAP_OK;
}

static snap_status gather_elsewhere(ranks *g, const void *mine, size_t n, uint8_t *all) {
    size_t total = n * (size_t)g->size;
    if (send_data(g, 0, mine, n) != SNAP_OK || wait_for_data(g, 0, total) != SNAP_OK)
        return g->failure.code;
    memcpy(all, g->of[0].data, total);
    return SNAP_OK;
}

snap_status ranks_all_gather(ranks *g, const char *what, const void *mine, size_t n, void *all,
                             snap_err *err) {
    static const uint8_t nothing[1];
    uint8_t ignored[1];
    if (n > RANKS_BLOB_MOST)
        return err_set(err, SNAP_E_SHAPE, "%s: %zu bytes are too many to gather", what, n);
    snap_status st = ranks_begin(g, what, err);
    if (st != SNAP_OK)
        return st;
    (void)pthread_mutex_lock(&g->lock);
    if (g->rank == 0)
        st = gather_on_rank_0(g, n ? mine : nothing, n, n ? all : ignored);
    else
        st = gather_elsewhere(g, n ? mine : nothing, n, n ? all : ignored);
    (void)failure_locked(g, err);
    (void)pthread_mutex_unlock(&g->lock);
    return st == SNAP_OK ? ranks_end(g, err) : st;
}
