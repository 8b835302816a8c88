/* http_requests.c - the library's callbacks: connections begin and end, requests come in pieces,
 * and answers leave in pieces.
 *
 * A connection whose answer is not ready is suspended: the library does not watch it. So the event
 * loop itself watches for clients that close such a connection. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "harness/serve/http_parts.h"

enum { kPiece = 16 << 10 /* most bytes of a stream that are passed on at once */ };

/* ---- connections ---- */

static void idle_remove(http *h, peer *p) {
    if (!p->idle)
        return;
    p->idle = false;
    *(p->prev ? &p->prev->next : &h->first) = p->next;
    *(p->next ? &p->next->prev : &h->last) = p->prev;
}

static void idle_add(http *h, peer *p) {
    idle_remove(h, p);
    p->idle = true;
    p->since_ns = clock_now_ns();
    p->next = NULL;
    p->prev = h->last;
    *(h->last ? &h->last->next : &h->first) = p;
    h->last = p;
}

/* Shuts a connection down. The library reads from a resumed connection and so finds its end. */
void http_hang_up(http *h, peer *p) {
    idle_remove(h, p);
    (void)shutdown(p->fd, SHUT_RDWR);
    MHD_suspend_connection(p->connection);
    MHD_resume_connection(p->connection);
}

static serve_client client_of(struct MHD_Connection *c) {
    serve_client out = {{0}};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *at = info ? info->client_addr : NULL;
    if (at && at->sa_family == AF_INET)
        memcpy(out.bytes, &((const struct sockaddr_in *)(const void *)at)->sin_addr, 4);
    else if (at && at->sa_family == AF_INET6)
        memcpy(out.bytes, &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr, 8);
    return out;
}

void http_on_connection(void *cls, struct MHD_Connection *c, void **context,
                        enum MHD_ConnectionNotificationCode what) {
    http *h = cls;
    peer *p = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        h->s.connections++;
        p = calloc(1, sizeof *p);
        *context = p;
        if (!p) {
            (void)shutdown(info->connect_fd, SHUT_RDWR);
            return;
        }
        p->connection = c;
        p->fd = info->connect_fd;
        p->client = client_of(c);
        if (h->s.connections > h->s.o->max_connections && h->first)
            http_hang_up(h, h->first);
        idle_add(h, p);
        return;
    }
    h->s.connections--;
    if (p)
        idle_remove(h, p);
    free(p);
}

/* Watches for the end of a connection while its answer is made. */
static void watch(http *h, exchange *x) {
    struct epoll_event ev = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = x};
    x->watched = epoll_ctl(h->events, EPOLL_CTL_ADD, x->fd, &ev) == 0;
}

static void unwatch(http *h, exchange *x) {
    if (x->watched)
        (void)epoll_ctl(h->events, EPOLL_CTL_DEL, x->fd, NULL);
    x->watched = false;
}

static void suspend(exchange *x) {
    x->suspended = true;
    MHD_suspend_connection(x->connection);
}

void http_resume(exchange *x) {
    if (!x->suspended)
        return;
    x->suspended = false;
    MHD_resume_connection(x->connection);
}

/* ---- answers ---- */

static ssize_t next_bytes(void *cls, uint64_t position, char *out, size_t most) {
    exchange *x = cls;
    size_t n = x->out.len - x->sent;
    (void)position;
    if (x->gone || x->out.failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!n && x->complete)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!n) {
        suspend(x);
        return 0;
    }
    n = n < most ? n : most;
    memcpy(out, x->out.data + x->sent, n);
    x->sent += n;
    if (x->sent == x->out.len) {
        buf_clear(&x->out);
        x->sent = 0;
    }
    return (ssize_t)n;
}

static bool add_headers(const exchange *x, struct MHD_Response *r) {
    char seconds[16];
    bool ok = MHD_add_response_header(r, "Content-Type", x->type) == MHD_YES;
    if (x->retry_after) {
        (void)snprintf(seconds, sizeof seconds, "%d", x->retry_after);
        ok &= MHD_add_response_header(r, "Retry-After", seconds) == MHD_YES;
    }
    if (x->allow)
        ok &= MHD_add_response_header(r, "Allow", x->allow) == MHD_YES;
    if (x->status == 401)
        ok &= MHD_add_response_header(r, "WWW-Authenticate", "Bearer") == MHD_YES;
    if (x->streaming)
        ok &= MHD_add_response_header(r, "Cache-Control", "no-cache") == MHD_YES;
    if (x->s->draining || x->too_much)
        ok &= MHD_add_response_header(r, "Connection", "close") == MHD_YES;
    return ok;
}

static enum MHD_Result reply(exchange *x) {
    if (x->out.failed)
        return MHD_NO;
    struct MHD_Response *r =
        x->streaming
            ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kPiece, next_bytes, x, NULL)
            : MHD_create_response_from_buffer(x->out.len, x->out.data, MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    enum MHD_Result ok =
        add_headers(x, r) ? MHD_queue_response(x->connection, (unsigned)x->status, r) : MHD_NO;
    MHD_destroy_response(r);
    return ok;
}

/* ---- requests ---- */

/* Compares in a time that depends on the lengths only. */
static bool same_secret(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    unsigned differ = n != m;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned char)a[i] ^ (unsigned)(unsigned char)b[m ? i % m : 0];
    return !differ;
}

static bool is_authorized(const http *h, struct MHD_Connection *c) {
    const char *given = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    if (!h->s.o->api_key)
        return true;
    return given && strncasecmp(given, "Bearer ", 7) == 0 &&
           same_secret(given + 7, h->s.o->api_key);
}

static exchange *exchange_new(http *h, struct MHD_Connection *c, const char *url,
                              const char *method) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    exchange *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->url = strdup(url);
    x->peer = info->socket_context;
    if (!x->url || !x->peer) {
        free(x->url);
        free(x);
        return NULL;
    }
    x->s = &h->s;
    ((peer *)x->peer)->x = x;
    x->connection = c;
    x->fd = ((peer *)x->peer)->fd;
    x->client = ((peer *)x->peer)->client;
    x->method = method;
    x->authorized = is_authorized(h, c);
    x->next = h->s.exchanges;
    if (x->next)
        x->next->prev = x;
    h->s.exchanges = x;
    return x;
}

/* Called at the end of the headers. Refuses the request before its body comes if the announced
 * length is too large or malformed. */
static enum MHD_Result begin(http *h, exchange *x) {
    int64_t n = 0;
    const char *length =
        MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "Content-Length");
    if (!length || (text_to_int(length, &n) && n <= h->s.o->max_body))
        return MHD_YES;
    x->too_much = true;
    x->handled = true;
    serve_handle(x);
    return reply(x);
}

/* A body that is not complete is dropped. */
static void drop_body(http *h, exchange *x) {
    h->arriving -= (int64_t)x->body.len;
    buf_release(&x->body);
}

/* Closes connections whose bodies are not complete, until @n more bytes are possible. */
static void make_room(http *h, const exchange *own, size_t n) {
    peer *next = NULL;
    for (peer *p = h->first; p && h->arriving + (int64_t)n > h->s.o->max_bodies; p = next) {
        next = p->next;
        if (!p->x || p->x == own || !p->x->body.len)
            continue;
        drop_body(h, p->x);
        p->x->gone = true;
        http_hang_up(h, p);
    }
}

/* Takes a piece of the body. A body without an announced length may turn out to be too large. Up to
 * max_body further bytes are then read and dropped, so that the client gets an answer. If more
 * come, the connection is closed. */
static enum MHD_Result take_body(http *h, exchange *x, const char *bytes, size_t n) {
    int64_t most = h->s.o->max_body;
    x->received += (int64_t)n;
    if (x->gone || x->received > 2 * most)
        return MHD_NO;
    if (x->received > most) {
        x->too_much = true;
        drop_body(h, x);
        return MHD_YES;
    }
    make_room(h, x, n);
    if (!buf_append(&x->body, bytes, n))
        return MHD_NO;
    h->arriving += (int64_t)n;
    return MHD_YES;
}

enum MHD_Result http_on_request(void *cls, struct MHD_Connection *c, const char *url,
                                const char *method, const char *version, const char *body,
                                size_t *n, void **context) {
    http *h = cls;
    exchange *x = *context;
    (void)version;
    if (!x) {
        *context = x = exchange_new(h, c, url, method);
        return x ? begin(h, x) : MHD_NO;
    }
    if (*n) {
        size_t given = *n;
        *n = 0;
        return take_body(h, x, body, given);
    }
    if (x->gone)
        return MHD_NO;
    if (!x->handled) {
        x->handled = true;
        x->start_ns = clock_now_ns();
        h->arriving -= (int64_t)x->body.len;
        idle_remove(h, x->peer);
        serve_handle(x);
        if (x->work)
            watch(h, x);
    }
    if (x->streaming || x->complete)
        return reply(x);
    suspend(x);
    return MHD_YES;
}

void http_on_completed(void *cls, struct MHD_Connection *c, void **context,
                       enum MHD_RequestTerminationCode why) {
    http *h = cls;
    exchange *x = *context;
    (void)c;
    (void)why;
    if (!x)
        return;
    *context = NULL;
    ((peer *)x->peer)->x = NULL;
    if (!x->handled)
        drop_body(h, x);
    unwatch(h, x);
    serve_leave(x);
    idle_add(h, x->peer);
    *(x->prev ? &x->prev->next : &h->s.exchanges) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    buf_release(&x->body);
    buf_release(&x->out);
    free(x->url);
    free(x);
}

void http_lose(exchange *x) {
    if (x->gone)
        return;
    x->gone = true;
    serve_leave(x);
    http_resume(x);
}
