/* http.c - the event loop of the server. GNU libmicrohttpd runs inside it, so one thread handles
 * all connections. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/serve/http_parts.h"

enum {
    kConnectionMemory = 32 << 10, /* bytes that the library uses for one connection */
    kEvents = 256,
    kPollMs = 100,  /* longest wait for events, shortest time between checks of the clocks */
    kBurst = 256,   /* connections allowed beyond the limit while idle ones are closed for them */
    kLastMs = 1000, /* time to send the errors of answers that do not end within drain_s */
    kOtherFiles = 64 + kBurst
};

/* ---- the loop of the server's thread ---- */

/* Goes on with the requests that the worker has read, and adds the engine's news (new tokens and
 * ends of choices) to the answers. */
static void deliver(http *h) {
    serve_job *next = NULL;
    for (serve_task *t; (t = serve_worker_collect(h->s.worker));) {
        serve_work *w = t->user;
        exchange *x = w->x;
        serve_take_read(w);
        if (x && (x->complete || x->streaming))
            http_resume(x);
    }
    for (serve_job *j = serve_replicas_collect(h->s.replicas, &h->s.load); j; j = next) {
        serve_work *w = j->user;
        exchange *x = w->x;
        next = j->next_news;
        serve_take(&h->s, w);
        if (x && (x->complete || (x->streaming && x->out.len > x->sent)))
            http_resume(x);
    }
}

static bool is_being_made(const exchange *x) {
    return x->work && !x->complete;
}

/* Ends an answer that is being made with an error. */
static void give_up(exchange *x, const openai_error *e) {
    serve_leave(x);
    serve_fail(x, e);
    http_resume(x);
}

/* Ends answers that take too long, and connections on which no complete request arrives. */
static void check_clocks(http *h) {
    int64_t now = clock_now_ns();
    const serve_options *o = h->s.o;
    while (h->first && (double)(now - h->first->since_ns) / 1e9 > o->receive_s)
        http_hang_up(h, h->first);
    for (exchange *x = h->s.exchanges; x && o->timeout_s > 0; x = x->next) {
        double age = (double)(now - x->start_ns) / 1e9;
        openai_error e;
        if (!is_being_made(x) || age < o->timeout_s)
            continue;
        (void)openai_fail(&e, 504, NULL, "timeout", "the answer took longer than %g s",
                          o->timeout_s);
        give_up(x, &e);
    }
}

/* Ends all answers that are being made, because the server ends. */
static void give_up_all(http *h) {
    openai_error e;
    (void)openai_fail(&e, 503, NULL, "draining",
                      "the server shut down before the answer was complete");
    for (exchange *x = h->s.exchanges; x; x = x->next)
        if (is_being_made(x)) {
            x->retry_after = SERVE_RETRY_S;
            give_up(x, &e);
        }
}

/* Waits for events, at most kPollMs. Ends the exchanges whose clients have left. */
static void wait_for_events(http *h) {
    struct epoll_event ev[kEvents];
    MHD_UNSIGNED_LONG_LONG left;
    uint64_t count;
    /* at the limit on connections, a new client may wait: check again soon */
    int ms = h->s.connections < h->s.o->max_connections ? kPollMs : 1;
    if (MHD_get_timeout(h->daemon, &left) == MHD_YES && left < (unsigned)ms)
        ms = (int)left;
    int n = epoll_wait(h->events, ev, kEvents, ms);
    for (int i = 0; i < n; i++) {
        if (ev[i].data.ptr == h->daemon)
            continue;
        if (ev[i].data.ptr == h) {
            if (read(h->wake, &count, sizeof count) < 0 && errno != EAGAIN)
                return; /* deliver() collects the news in any case */
        } else {
            http_lose(ev[i].data.ptr);
        }
    }
}

/* Whether answers are being made, or were made and not sent to their end. */
static bool is_busy(const http *h) {
    for (const exchange *x = h->s.exchanges; x; x = x->next)
        if (x->handled)
            return true;
    return false;
}

static snap_status loop(http *h, snap_err *err) {
    int64_t end_ns = 0, checked_ns = 0;
    bool given_up = false;
    for (;;) {
        wait_for_events(h);
        deliver(h);
        if (MHD_run(h->daemon) != MHD_YES)
            return err_set(err, SNAP_E_IO, "the HTTP library failed");
        int64_t now = clock_now_ns();
        if (now - checked_ns > kPollMs * 1000000LL) {
            checked_ns = now;
            check_clocks(h);
        }
        if (!h->s.draining && (h->s.load.all.broken || (h->s.o->cancel && *h->s.o->cancel))) {
            h->s.draining = true;
            end_ns = now + (int64_t)(h->s.o->drain_s * 1e9);
        }
        if (h->s.draining && !is_busy(h) && !h->s.work)
            break;
        if (h->s.draining && now > end_ns) {
            if (given_up)
                break;
            give_up_all(h);
            given_up = true;
            end_ns = now + kLastMs * 1000000LL;
        }
    }
    return h->s.load.all.broken
               ? err_set(err, h->s.load.all.reason.code, "%s", h->s.load.all.reason.text)
               : SNAP_OK;
}

/* ---- starting and stopping the server ---- */

/* Raises the limit on open files as far as possible. Returns how many connections to allow, at most
 * @wanted. */
static int connections_possible(int wanted) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0)
        return wanted;
    l.rlim_cur = l.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &l);
    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur > (rlim_t)wanted + kOtherFiles)
        return wanted;
    int possible = l.rlim_cur > 2 * kOtherFiles ? (int)l.rlim_cur - kOtherFiles : kOtherFiles;
    return possible < wanted ? possible : wanted;
}

static snap_status resolve(const serve_options *o, struct addrinfo **out, snap_err *err) {
    struct addrinfo want = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    char port[16];
    (void)snprintf(port, sizeof port, "%d", o->port);
    int e = getaddrinfo(o->host, port, &want, out);
    if (e == EAI_MEMORY)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the address of a server");
    return e == 0 ? SNAP_OK
                  : err_set(err, SNAP_E_USAGE, "the host '%s' cannot be used: %s", o->host,
                            gai_strerror(e));
}

static snap_status start_daemon(http *h, const struct sockaddr *at, snap_err *err) {
    const serve_options *o = h->s.o;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    if (at->sa_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    h->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, http_on_request, h, MHD_OPTION_SOCK_ADDR, at,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->max_connections + kBurst,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->receive_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)kConnectionMemory, MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, h,
        MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, h, MHD_OPTION_END);
    if (!h->daemon)
        return err_set_errno(err, "cannot listen on %s, port %d", o->host, o->port);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = h->daemon};
    if (!info || epoll_ctl(h->events, EPOLL_CTL_ADD, info->epoll_fd, &ev) != 0)
        return err_set_errno(err, "cannot wait for connections");
    return SNAP_OK;
}

static snap_status listen_on(http *h, snap_err *err) {
    snap_status st;
    struct addrinfo *list = NULL;
    TRY(resolve(h->s.o, &list, err));
    TRY(start_daemon(h, list->ai_addr, err));
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);
    char url[160];
    bool six = list->ai_family == AF_INET6;
    (void)snprintf(url, sizeof url, "http://%s%.100s%s:%u", six ? "[" : "", h->s.o->host,
                   six ? "]" : "", info ? info->port : 0);
    if (h->s.o->ready)
        h->s.o->ready(h->s.o->ctx, url);
cleanup:
    if (list)
        freeaddrinfo(list);
    return st;
}

static snap_status make_events(http *h, snap_err *err) {
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = h};
    h->events = epoll_create1(EPOLL_CLOEXEC);
    h->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return h->events >= 0 && h->wake >= 0 && epoll_ctl(h->events, EPOLL_CTL_ADD, h->wake, &ev) == 0
               ? SNAP_OK
               : err_set_errno(err, "cannot make the server's events");
}

static void close_all(http *h) {
    for (exchange *x = h->s.exchanges; x; x = x->next)
        http_lose(x);
    if (h->daemon)
        MHD_stop_daemon(h->daemon);
    serve_replicas_stop(h->s.replicas);
    serve_worker_stop(h->s.worker);
    while (h->s.work)
        serve_work_free(&h->s, h->s.work);
    tok_encoder_free(h->s.worker_encoder);
    if (h->events >= 0)
        (void)close(h->events);
    if (h->wake >= 0)
        (void)close(h->wake);
}

snap_status serve_run(local_model *m, const serve_options *given, snap_err *err) {
    snap_status st;
    serve_options o = *given;
    http h = {.s = {.o = &o, .m = m, .started = time(NULL)}, .events = -1, .wake = -1};
    uint64_t seed = (uint64_t)clock_now_ns();
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed ^= (uint64_t)clock_now_ns() << 20; /* the time alone */
    h.s.random = rng_make(seed, 0);
    h.s.number = seed << 32;
    h.s.context = runner_limits(m->runner)->context;
    for (int i = 0; i < m->replicas; i++) {
        int64_t fits = engine_longest(local_replica(m, i)->engine);
        if (fits < h.s.context)
            h.s.context = fits;
    }
    o.max_connections = connections_possible(o.max_connections);
    if (!o.max_bodies)
        o.max_bodies = 4 * o.max_body > SERVE_BODIES ? 4 * o.max_body : SERVE_BODIES;
    TRY(make_events(&h, err));
    TRY(serve_replicas_start(&h.s.replicas, m, h.wake, err));
    TRY(tok_encoder_create(&h.s.worker_encoder, m->tokenizer, err));
    TRY(serve_worker_start(&h.s.worker, h.wake, o.max_bodies, err));
    TRY(listen_on(&h, err));
    st = loop(&h, err);
cleanup:
    close_all(&h);
    return st;
}
