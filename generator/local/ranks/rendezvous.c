/* rendezvous.c - connects the ranks to rank 0, which compares what must be equal on all of them. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "generator/local/ranks/ranks_inside.h"

enum { kPending = 64, kBacklog = 128, kFactsMost = 4000, kHelloHead = 8 };
static const int64_t kIntroduce = 5000000000;      /* ns in which a hello must arrive */
static const double kSendLimit = 5, kRetry = 0.05; /* seconds */

static int64_t after(double s) {
    return clock_now_ns() + (int64_t)(s * 1e9);
}

static int ms_until(int64_t end) {
    int64_t left = (end - clock_now_ns()) / 1000000 + 1;
    return (int)(left < 0 ? 0 : left > 100 ? 100 : left); /* to call cancelled() every 0.1 s */
}

static snap_status cancelled(const ranks *g, snap_err *err) {
    return g->opt.cancel && *g->opt.cancel
               ? err_set(err, SNAP_E_CANCELLED, "stopped by a signal before all ranks had arrived")
               : SNAP_OK;
}

static snap_status resolve(const char *address, int port, struct addrinfo **out, snap_err *err) {
    char service[16];
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    (void)snprintf(service, sizeof service, "%d", port);
    int e = getaddrinfo(address, service, &want, out);
    if (e == EAI_MEMORY)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the address of rank 0");
    if (e != 0)
        return err_set(err, SNAP_E_NET, "cannot find the host '%s' of rank 0 (MASTER_ADDR): %s",
                       address, gai_strerror(e));
    return SNAP_OK;
}

static int port_of(int fd) {
    char service[16];
    struct sockaddr_storage at = {0};
    socklen_t n = sizeof at;
    int64_t port = 0;
    if (getsockname(fd, (struct sockaddr *)&at, &n) != 0 ||
        getnameinfo((struct sockaddr *)&at, n, NULL, 0, service, sizeof service, NI_NUMERICSERV) ||
        !text_to_int(service, &port))
        return 0;
    return (int)port;
}

snap_status ranks_listen(const char *address, int *port, int *fd, snap_err *err) {
    const int one = 1;
    struct addrinfo *at = NULL;
    snap_status st = resolve(address, *port, &at, err);
    *fd = -1;
    if (st != SNAP_OK)
        return st;
    int s = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s >= 0)
        (void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (s < 0 || bind(s, at->ai_addr, at->ai_addrlen) != 0 || listen(s, kBacklog) != 0) {
        st = err_set(err, SNAP_E_NET, "rank 0 cannot listen at %s, port %d: %s", address, *port,
                     strerror(errno));
        if (s >= 0)
            (void)close(s);
    } else {
        *fd = s;
        *port = port_of(s);
    }
    freeaddrinfo(at);
    return st;
}

/* ---- comparing ---- */

/* The value of the line "name=..." in @facts, and its length. NULL: there is none. */
static const char *fact_of(const char *facts, const char *name, size_t name_n, size_t *n) {
    for (const char *line = facts; *line;) {
        size_t length = strcspn(line, "\n");
        if (length > name_n && line[name_n] == '=' && strncmp(line, name, name_n) == 0) {
            *n = length - name_n - 1;
            return line + name_n + 1;
        }
        line += length + (line[length] == '\n');
    }
    return NULL;
}

/* Writes the first difference between @mine (rank 0) and @theirs to @text. False: there is none. */
static bool find_difference(const char *mine, const char *theirs, char *text, size_t size) {
    for (const char *line = mine; *line;) {
        size_t length = strcspn(line, "\n"), name_n = strcspn(line, "="), n = 0, m = 0;
        const char *a = fact_of(mine, line, name_n, &n), *b = fact_of(theirs, line, name_n, &m);
        if (a && (!b || n != m || strncmp(a, b, n) != 0)) {
            (void)snprintf(text, size, "its %.*s is '%.*s', and that of rank 0 is '%.*s'",
                           (int)name_n, line, b ? (int)(m < 200 ? m : 200) : 0, b ? b : "",
                           (int)(n < 200 ? n : 200), a);
            return true;
        }
        line += length + (line[length] == '\n');
    }
    if (strlen(mine) == strlen(theirs))
        return false;
    (void)snprintf(text, size, "it has other facts to compare than rank 0");
    return true;
}

/* ---- rank 0 ---- */

typedef struct {
    wire w;
    int64_t end; /* time until which its hello must have arrived */
} candidate;

typedef struct {
    ranks *g;
    const char *facts;
    int listener;
    candidate pending[kPending];
    int64_t end;
    int refused;      /* connections that were not those of a rank */
    char doubled[64]; /* "; a second rank 1 was refused" */
} rendezvous;

static int missing(const ranks *g) {
    int n = 0;
    for (int r = 1; r < g->size; r++)
        n += !g->of[r].here;
    return n;
}

static candidate *place_for_candidate(rendezvous *m) {
    candidate *oldest = &m->pending[0];
    for (int i = 0; i < kPending; i++) {
        if (m->pending[i].w.fd < 0)
            return &m->pending[i];
        if (m->pending[i].end < oldest->end)
            oldest = &m->pending[i];
    }
    m->refused++;
    wire_close(&oldest->w);
    return oldest;
}

static void accept_candidate(rendezvous *m) {
    int fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    candidate *n = place_for_candidate(m);
    n->w = wire_of(fd, WIRE_HELLO_MOST, kSendLimit);
    n->end = clock_now_ns() + kIntroduce;
}

/* After a failure, rank 0 waits half of silence_s at most, so that ranks that arrive a little later
 * still get the message. */
static void shorten(rendezvous *m) {
    int64_t soon = after(m->g->opt.silence_s / 2);
    if (soon < m->end)
        m->end = soon;
}

static void refuse(rendezvous *m, int rank, snap_status code, const char *why) {
    if (m->g->failure.code == SNAP_OK)
        shorten(m);
    ranks_fail_locked(m->g, rank, code, why);
}

static void refuse_second(rendezvous *m, candidate *n, int rank) {
    uint8_t bytes[128];
    wire_put32(bytes, SNAP_E_USAGE);
    int k = snprintf((char *)bytes + 4, sizeof bytes - 4,
                     "rank %d: another process has arrived as this rank", rank);
    if (wire_send(&n->w, WIRE_REFUSED, bytes, 4 + (size_t)k, NULL) != SNAP_OK)
        m->refused++;
    (void)snprintf(m->doubled, sizeof m->doubled, "; a second rank %d was refused", rank);
    wire_close(&n->w);
}

/* Handles a hello, which consists of rank, number of ranks, and the facts as text. */
static void admit(rendezvous *m, candidate *n, const wire_message *hello) {
    char theirs[WIRE_HELLO_MOST + 1], why[500];
    ranks *g = m->g;
    uint32_t rank = wire_get32(hello->bytes), size = wire_get32(hello->bytes + 4);
    size_t facts_n = hello->n - kHelloHead;
    memcpy(theirs, hello->bytes + kHelloHead, facts_n);
    theirs[facts_n] = '\0';
    if (rank == 0 || rank >= size || size > RANKS_MOST) {
        m->refused++;
        wire_close(&n->w);
    } else if (size != (uint32_t)g->size) {
        (void)snprintf(why, sizeof why, "its group has %u ranks, and that of rank 0 has %d", size,
                       g->size);
        refuse(m, (int)rank, SNAP_E_USAGE, why);
        ranks_send_failure(g, &n->w);
        wire_close(&n->w);
    } else if (g->of[rank].here) {
        refuse_second(m, n, (int)rank);
    } else {
        n->w.most = WIRE_MOST;
        g->of[rank].w = n->w;
        g->of[rank].here = true;
        n->w = WIRE_CLOSED;
        if (g->failure.code != SNAP_OK)
            ranks_send_failure(g, &g->of[rank].w);
        else if (find_difference(m->facts, theirs, why, sizeof why))
            refuse(m, (int)rank, SNAP_E_USAGE, why);
    }
}

static void read_candidate(rendezvous *m, candidate *n) {
    wire_message hello;
    bool open = wire_read(&n->w);
    wire_result got = wire_next(&n->w, &hello);
    if (got == WIRE_MESSAGE && hello.type == WIRE_HELLO && hello.n >= kHelloHead) {
        admit(m, n, &hello);
    } else if (got != WIRE_NOTHING || !open || clock_now_ns() > n->end) {
        m->refused++;
        wire_close(&n->w);
    }
}

/* Reads from a rank that has arrived. It sends nothing before the welcome, unless it fails. */
static void read_waiting(rendezvous *m, int r) {
    rank_state *p = &m->g->of[r];
    wire_message failed;
    bool open = wire_read(&p->w);
    if (wire_next(&p->w, &failed) == WIRE_MESSAGE && failed.type == WIRE_FAIL) {
        if (m->g->failure.code == SNAP_OK)
            shorten(m);
        ranks_take_failure(m->g, &failed);
    } else if (!open) {
        refuse(m, r, SNAP_E_NET, "its process ended before all ranks had arrived");
    }
    if (!open)
        wire_close(&p->w);
}

static void poll_once(rendezvous *m) {
    struct pollfd fds[1 + kPending + RANKS_MOST] = {{.fd = m->listener, .events = POLLIN}};
    struct pollfd *of = fds + 1 + kPending;
    for (int i = 0; i < kPending; i++)
        fds[1 + i] = (struct pollfd){.fd = m->pending[i].w.fd, .events = POLLIN};
    for (int r = 0; r < m->g->size; r++)
        of[r] = (struct pollfd){.fd = m->g->of[r].w.fd, .events = POLLIN};
    (void)poll(fds, 1 + kPending + (nfds_t)m->g->size, ms_until(m->end));
    for (int i = 0; i < kPending; i++)
        if (m->pending[i].w.fd >= 0 && (fds[1 + i].revents || clock_now_ns() > m->pending[i].end))
            read_candidate(m, &m->pending[i]);
    for (int r = 0; r < m->g->size; r++)
        if (of[r].revents)
            read_waiting(m, r);
    if (fds[0].revents)
        accept_candidate(m);
}

static void name_missing(const rendezvous *m, const rank_place *place, snap_err *err) {
    buf text = {0};
    int n = missing(m->g);
    for (int r = 1; r < m->g->size; r++)
        if (!m->g->of[r].here)
            (void)buf_printf(&text, "%s%d", text.len ? ", " : "", r);
    char refused[64] = "";
    if (m->refused)
        (void)snprintf(refused, sizeof refused, "; %d connections were not those of a rank",
                       m->refused);
    (void)err_set(err, SNAP_E_NET, "%s %.200s of %d did not arrive at %s, port %d, within %g s%s%s",
                  n == 1 ? "rank" : "ranks", text.failed ? "" : buf_str(&text), m->g->size,
                  place->address, place->port, m->g->opt.arrive_s, m->doubled, refused);
    buf_release(&text);
}

static snap_status welcome(ranks *g) {
    for (int r = 1; r < g->size && g->failure.code == SNAP_OK; r++) {
        snap_err why = {0};
        if (wire_send(&g->of[r].w, WIRE_WELCOME, NULL, 0, &why) != SNAP_OK)
            ranks_fail_locked(g, r, SNAP_E_NET, why.text);
    }
    return g->failure.code;
}

static snap_status lead(rendezvous *m, const rank_place *place, snap_err *err) {
    snap_status st = SNAP_OK;
    ranks *g = m->g;
    while (missing(g) > 0 && clock_now_ns() < m->end && st == SNAP_OK) {
        poll_once(m);
        st = cancelled(g, err);
    }
    if (st == SNAP_OK && g->failure.code == SNAP_OK && missing(g) > 0) {
        name_missing(m, place, &g->failure);
        ranks_spread_failure(g, false);
    }
    if (st == SNAP_OK)
        st = welcome(g);
    for (int i = 0; i < kPending; i++)
        wire_close(&m->pending[i].w);
    return st;
}

/* ---- the other ranks ---- */

/* Tries once to connect, for 1 s at most. Returns the socket, or -1. */
static int try_connect(const struct addrinfo *at, int64_t end) {
    int error = 0;
    socklen_t n = sizeof error;
    int s = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0)
        return -1;
    if (connect(s, at->ai_addr, at->ai_addrlen) != 0) {
        struct pollfd fd = {.fd = s, .events = POLLOUT};
        int64_t left = (end - clock_now_ns()) / 1000000;
        error = errno;
        if (error == EINPROGRESS) {
            error = ETIMEDOUT;
            if (poll(&fd, 1, left < 0 ? 0 : left > 1000 ? 1000 : (int)left) > 0)
                (void)getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &n);
        }
    }
    if (error == 0 && fcntl(s, F_SETFL, 0) == 0)
        return s;
    (void)close(s);
    errno = error;
    return -1;
}

static snap_status connect_to_rank_0(ranks *g, const rank_place *place, snap_err *err) {
    struct addrinfo *all = NULL;
    int64_t end = after(g->opt.arrive_s);
    int s = -1;
    snap_status st = resolve(place->address, place->port, &all, err);
    while (st == SNAP_OK && s < 0) {
        for (const struct addrinfo *at = all; at && s < 0; at = at->ai_next)
            s = try_connect(at, end);
        if (s < 0 && clock_now_ns() > end)
            st = err_set(err, SNAP_E_NET, "rank 0 did not arrive at %s, port %d, within %g s: %s",
                         place->address, place->port, g->opt.arrive_s, strerror(errno));
        else if (s < 0)
            clock_sleep_ns((int64_t)(kRetry * 1e9));
        if (st == SNAP_OK)
            st = cancelled(g, err);
    }
    if (all)
        freeaddrinfo(all);
    if (s >= 0)
        g->of[0].w = wire_of(s, WIRE_MOST, kSendLimit);
    return st;
}

static snap_status introduce(ranks *g, const char *facts, snap_err *err) {
    uint8_t hello[WIRE_HELLO_MOST];
    size_t n = strlen(facts);
    wire_put32(hello, (uint32_t)g->rank);
    wire_put32(hello + 4, (uint32_t)g->size);
    (void)snprintf((char *)hello + kHelloHead, sizeof hello - kHelloHead, "%s", facts);
    snap_status st = wire_send(&g->of[0].w, WIRE_HELLO, hello, kHelloHead + n, err);
    err_prefix(err, "rank 0 does not take this rank");
    return st;
}

/* Reads the answer of rank 0. *welcome becomes true if it is the welcome, and stays false if
 * nothing has arrived yet. Any other answer is an error. */
static snap_status read_welcome(ranks *g, const rank_place *place, bool *welcome, snap_err *err) {
    wire *w = &g->of[0].w;
    wire_message m;
    bool open = wire_read(w);
    wire_result got = wire_next(w, &m);
    if (got == WIRE_MESSAGE && (m.type == WIRE_FAIL || m.type == WIRE_REFUSED)) {
        ranks_take_failure(g, &m);
        *err = g->failure;
        return g->failure.code;
    }
    *welcome = got == WIRE_MESSAGE && m.type == WIRE_WELCOME;
    if (got != WIRE_NOTHING && !*welcome)
        return err_set(err, SNAP_E_NET, "what listens at %s, port %d, is not rank 0 of snapmla",
                       place->address, place->port);
    if (!open && !*welcome)
        return err_set(err, SNAP_E_NET,
                       "rank 0 closed the connection before all ranks had arrived");
    return SNAP_OK;
}

static snap_status follow(ranks *g, const rank_place *place, const char *facts, snap_err *err) {
    snap_status st;
    bool welcome = false;
    TRY(connect_to_rank_0(g, place, err));
    TRY(introduce(g, facts, err));
    int64_t end = after(g->opt.arrive_s + g->opt.silence_s);
    while (!welcome) {
        struct pollfd at = {.fd = g->of[0].w.fd, .events = POLLIN};
        if (poll(&at, 1, ms_until(end)) > 0)
            TRY(read_welcome(g, place, &welcome, err));
        TRY(cancelled(g, err));
        if (!welcome && clock_now_ns() > end)
            TRY(err_set(err, SNAP_E_NET, "rank 0 at %s, port %d, did not answer within %g s",
                        place->address, place->port, g->opt.arrive_s + g->opt.silence_s));
    }
    g->of[0].here = true;
cleanup:
    return st;
}

static snap_status lead_rendezvous(ranks *g, const rank_place *place, int listener,
                                   const char *facts, snap_err *err) {
    rendezvous *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the connections of ranks");
    *m = (rendezvous){.g = g, .facts = facts, .listener = listener, .end = after(g->opt.arrive_s)};
    for (int i = 0; i < kPending; i++)
        m->pending[i].w = WIRE_CLOSED;
    g->of[0].here = true;
    snap_status st = lead(m, place, err);
    free(m);
    return st;
}

snap_status ranks_rendezvous(ranks *g, const rank_place *place, const char *facts, snap_err *err) {
    snap_status st = SNAP_OK;
    snap_err own = {0};
    int port = place->port, listener = place->listener;
    if (strlen(facts) > kFactsMost)
        st = err_set(&own, SNAP_E_SHAPE, "too many facts to compare between ranks");
    else if (g->rank > 0)
        st = follow(g, place, facts, &own);
    else if (listener < 0 && g->size > 1)
        st = ranks_listen(place->address, &port, &listener, &own);
    if (st == SNAP_OK && g->rank == 0)
        st = lead_rendezvous(g, place, listener, facts, &own);
    if (listener >= 0)
        (void)close(listener);
    if (st != SNAP_OK && err)
        *err = g->failure.code != SNAP_OK ? g->failure : own;
    return st;
}
