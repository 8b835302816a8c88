#include "base/http_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* A connection that was idle for this long is not used again. A router on the way may have dropped
 * its entry for it, and then the request gets no response. libcurl has the same limit. */
static const int64_t kIdleNs = INT64_C(118) * 1000000000;

/* The idle connections to one server, in a list. Its first is the one that became idle last. */
typedef struct origin origin;
struct origin {
    origin *next;
    http_conn *newest, *oldest;
    char name[]; /* "host:port" */
};

struct http_conn {
    http_pool *pool;
    origin *origin;
    http_conn *newer, *older; /* neighbours in the list of idle connections */
    void *user;
    int64_t idle_since_ns;
    int fd;
    bool reused, watches_output;
};

struct http_pool {
    int poll, n_idle, idle_max;
    http_conn **by_fd; /* [n_by_fd], NULL where there is no connection */
    size_t n_by_fd;
    origin *origins;
};

http_pool *http_pool_create(int poll, int idle_max) {
    http_pool *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->poll = poll;
    p->idle_max = idle_max;
    return p;
}

void http_pool_free(http_pool *p) {
    if (!p)
        return;
    for (size_t fd = 0; fd < p->n_by_fd; fd++)
        if (p->by_fd[fd])
            http_conn_close(p->by_fd[fd]);
    for (origin *o = p->origins, *next; o; o = next) {
        next = o->next;
        free(o);
    }
    free(p->by_fd);
    free(p);
}

/* Returns the origin with this name, and creates it if needed. NULL if memory is exhausted. */
static origin *origin_of(http_pool *p, const char *name) {
    for (origin *o = p->origins; o; o = o->next)
        if (strcmp(o->name, name) == 0)
            return o;
    size_t n = strlen(name) + 1;
    origin *o = calloc(1, sizeof *o + n);
    if (!o)
        return NULL;
    memcpy(o->name, name, n);
    o->next = p->origins;
    return p->origins = o;
}

/* ---- the lists of idle connections ---- */

static void remove_idle(http_conn *c) {
    *(c->newer ? &c->newer->older : &c->origin->newest) = c->older;
    *(c->older ? &c->older->newer : &c->origin->oldest) = c->newer;
    c->newer = c->older = NULL;
    c->pool->n_idle--;
}

static void insert_idle(http_conn *c) {
    origin *o = c->origin;
    c->older = o->newest;
    *(o->newest ? &o->newest->newer : &o->oldest) = c;
    o->newest = c;
    c->pool->n_idle++;
}

void http_conn_close(http_conn *c) {
    if (!c->user)
        remove_idle(c);
    c->pool->by_fd[c->fd] = NULL;
    (void)close(c->fd); /* also removes it from the epoll instance */
    free(c);
}

/* Whether an idle connection can take a request: it was not idle for too long, no byte has arrived
 * on it, and the server has not closed it. */
static bool is_alive(const http_conn *c) {
    char byte;
    return clock_now_ns() - c->idle_since_ns < kIdleNs &&
           recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

http_conn *http_pool_take(http_pool *p, const char *name, void *user) {
    origin *o = origin_of(p, name);
    for (http_conn *c; o && (c = o->newest);) {
        o->newest = c->older;
        *(c->older ? &c->older->newer : &o->oldest) = NULL;
        c->older = NULL;
        p->n_idle--;
        c->user = user;
        c->reused = true;
        if (is_alive(c))
            return c;
        http_conn_close(c);
    }
    return NULL;
}

static void close_oldest(http_pool *p) {
    http_conn *oldest = NULL;
    for (const origin *o = p->origins; o; o = o->next)
        if (o->oldest && (!oldest || o->oldest->idle_since_ns < oldest->idle_since_ns))
            oldest = o->oldest;
    if (oldest)
        http_conn_close(oldest);
}

void http_conn_keep(http_conn *c) {
    http_pool *p = c->pool;
    c->user = NULL;
    c->idle_since_ns = clock_now_ns();
    insert_idle(c);
    if (p->n_idle > p->idle_max)
        close_oldest(p);
}

/* ---- new connections ---- */

static bool has_place(http_pool *p, int fd) {
    size_t n = p->n_by_fd ? p->n_by_fd : 64;
    if ((size_t)fd < p->n_by_fd)
        return true;
    while (n <= (size_t)fd)
        n *= 2;
    http_conn **grown = realloc(p->by_fd, n * sizeof(http_conn *));
    if (!grown)
        return false;
    memset(grown + p->n_by_fd, 0, (n - p->n_by_fd) * sizeof(http_conn *));
    p->by_fd = grown;
    p->n_by_fd = n;
    return true;
}

http_conn *http_pool_add(http_pool *p, const char *name, int fd, void *user) {
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    origin *o = origin_of(p, name);
    http_conn *c = o && has_place(p, fd) ? calloc(1, sizeof *c) : NULL;
    int one = 1;
    if (!c || epoll_ctl(p->poll, EPOLL_CTL_ADD, fd, &e) != 0) {
        int saved = errno;
        free(c);
        (void)close(fd);
        errno = saved;
        return NULL;
    }
    /* if this option cannot be set, times of arrival are unknown */
    (void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    *c = (http_conn){.pool = p, .origin = o, .user = user, .fd = fd};
    p->by_fd[fd] = c;
    return c;
}

http_conn *http_pool_find(const http_pool *p, int fd) {
    return (size_t)fd < p->n_by_fd ? p->by_fd[fd] : NULL;
}

void *http_conn_user(const http_conn *c) {
    return c->user;
}

bool http_conn_is_reused(const http_conn *c) {
    return c->reused;
}

/* ---- sending and receiving bytes ---- */

ssize_t http_conn_send(http_conn *c, const char *head, size_t n_head, const char *body,
                       size_t n_body, size_t from) {
    size_t of_head = from < n_head ? from : n_head;
    size_t of_body = from - of_head;
    /* sendmsg() takes pointers without const but does not write to the texts */
    struct iovec parts[2] = {{(char *)(uintptr_t)(head + of_head), n_head - of_head},
                             {(char *)(uintptr_t)(body + of_body), n_body - of_body}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool http_conn_watch_output(http_conn *c, bool on) {
    struct epoll_event e = {.events = EPOLLIN | (on ? EPOLLOUT : 0), .data.fd = c->fd};
    if (on == c->watches_output)
        return true;
    c->watches_output = on;
    return epoll_ctl(c->pool->poll, EPOLL_CTL_MOD, c->fd, &e) == 0;
}

ssize_t http_conn_receive(http_conn *c, char *bytes, size_t n, int64_t *arrived_ns) {
    union {
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
        struct cmsghdr aligned;
    } control;
    struct iovec to = {bytes, n};
    struct msghdr m = {.msg_iov = &to,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(c->fd, &m, MSG_DONTWAIT);
    *arrived_ns = 0;
    if (got <= 0)
        return got;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(h), sizeof t);
            *arrived_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
        }
    return got;
}
