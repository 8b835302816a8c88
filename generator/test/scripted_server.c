#include "generator/test/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

enum { kConnectionsMax = 4096, kAskedMax = 2048, kStack = 256 << 10 };

typedef struct {
    server *server;
    int fd;
    pthread_t thread;
    SSL *tls; /* NULL = plain */
    buf in;   /* received, not yet used */
} connection;

struct server {
    const reply *replies;
    int n_replies;
    server_options opt;
    int listener;
    int wake[2]; /* closing wake[1] wakes every poll() */
    char url[64];
    pthread_t thread;
    bool stopped;

    pthread_mutex_t lock; /* guards scripted_request, n_asked, answering and most_at_once */
    pthread_cond_t changed;
    connection connections[kConnectionsMax];
    int n_connections;
    scripted_request scripted_request[kAskedMax];
    int n_asked, answering, most_at_once;
};

/* ---- sending and receiving bytes ---- */

/* Waits for @fd to be readable; false when the server stops. */
static bool readable(const server *s, int fd, int timeout_ms) {
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = s->wake[0], .events = POLLIN}};
    return poll(p, 2, timeout_ms) > 0 && p[1].revents == 0;
}

/* Starts TLS on the connection; false if the handshake fails. */
static bool start_tls(connection *c) {
    c->tls = SSL_new(c->server->opt.tls);
    return c->tls && SSL_set_fd(c->tls, c->fd) == 1 && SSL_accept(c->tls) == 1;
}

static bool receive(connection *c) {
    char chunk[1 << 14];
    if (!(c->tls && SSL_pending(c->tls)) && !readable(c->server, c->fd, -1))
        return false;
    ssize_t n =
        c->tls ? SSL_read(c->tls, chunk, sizeof chunk) : recv(c->fd, chunk, sizeof chunk, 0);
    return n > 0 && buf_append(&c->in, chunk, (size_t)n);
}

static bool send_all(connection *c, const char *bytes, size_t n) {
    while (n) {
        ssize_t w = c->tls ? SSL_write(c->tls, bytes, (int)n) : send(c->fd, bytes, n, MSG_NOSIGNAL);
        if (w <= 0)
            return false;
        bytes += w;
        n -= (size_t)w;
    }
    return true;
}

/* ---- requests ---- */

static size_t content_length(const char *head) {
    const char *p = strcasestr(head, "\r\ncontent-length:");
    return p ? strtoul(p + strlen("\r\ncontent-length:"), NULL, 10) : 0;
}

/* Whether a client starts TLS with a plain server. The server answers it in plain text, as real
 * servers do. */
static bool is_hello_of_tls(const connection *c) {
    return !c->tls && c->in.len && c->in.data[0] == 0x16;
}

/* Reads one request from the connection; false at its end. */
static bool read_request(connection *c, scripted_request *out) {
    const char *end;
    while (!(end = strstr(buf_str(&c->in), "\r\n\r\n"))) {
        if (!receive(c))
            return false;
        if (is_hello_of_tls(c)) {
            *out = (scripted_request){strdup(""), strdup("")};
            buf_clear(&c->in);
            return true;
        }
    }
    size_t head = (size_t)(end - c->in.data) + 4;
    out->head = strndup(c->in.data, head);
    size_t body = content_length(out->head);
    while (c->in.len < head + body)
        if (!receive(c)) {
            free(out->head);
            return false;
        }
    out->body = strndup(c->in.data + head, body);
    size_t rest = c->in.len - head - body;
    char *left = strndup(c->in.data + head + body, rest);
    buf_clear(&c->in);
    (void)buf_append(&c->in, left, rest);
    free(left);
    return true;
}

/* Stores the request, waits as reply.gather says, and returns the reply. */
static const reply *file_request(server *s, const scripted_request *request) {
    (void)pthread_mutex_lock(&s->lock);
    int i = s->n_asked++;
    bool kept = i < kAskedMax;
    if (kept)
        s->scripted_request[i] = *request;
    if (++s->answering > s->most_at_once)
        s->most_at_once = s->answering;
    const reply *r = &s->replies[i < s->n_replies ? i : s->n_replies - 1];
    struct timespec limit;
    (void)clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 30;
    (void)pthread_cond_broadcast(&s->changed);
    while (s->most_at_once < r->gather)
        if (pthread_cond_timedwait(&s->changed, &s->lock, &limit) != 0)
            break;
    (void)pthread_mutex_unlock(&s->lock);
    if (!kept) {
        free(request->head);
        free(request->body);
    }
    return r;
}

/* ---- replies ---- */

static bool send_piece(connection *c, const reply *r, const char *bytes, size_t n) {
    char frame[32];
    if (!r->chunked)
        return send_all(c, bytes, n);
    int len = snprintf(frame, sizeof frame, "%zx\r\n", n);
    return send_all(c, frame, (size_t)len) && send_all(c, bytes, n) && send_all(c, "\r\n", 2);
}

static bool send_body(connection *c, const reply *r, const char *bytes, size_t n) {
    size_t step = r->step ? (size_t)r->step : n;
    for (size_t i = 0; i < n; i += step) {
        size_t len = n - i < step ? n - i : step;
        if (i)
            clock_sleep_ns(r->pause_ns);
        if (!send_piece(c, r, bytes + i, len))
            return false;
    }
    return true;
}

static void write_head(const reply *r, size_t body, buf *out) {
    int status = r->status ? r->status : 200;
    const char *type = r->type ? r->type : "application/json";
    (void)buf_printf(out, "HTTP/1.1 %d Scripted\r\n", status);
    if (*type)
        (void)buf_printf(out, "Content-Type: %s\r\n", type);
    if (r->chunked)
        (void)buf_puts(out, "Transfer-Encoding: chunked\r\n");
    else
        (void)buf_printf(out, "Content-Length: %zu\r\n", body);
    (void)buf_printf(out, "%s\r\n", r->headers ? r->headers : "");
}

/* Sends one reply; false if the connection can't be used any more. */
static bool send_reply(connection *c, const reply *r) {
    if (r->raw)
        return send_all(c, r->raw, strlen(r->raw)) && r->end == END_KEEP;
    buf head = {0}, body = {0};
    (void)buf_puts(&body, r->body ? r->body : "");
    char filling[4096];
    memset(filling, 'x', sizeof filling);
    for (size_t left = r->fill; left;) {
        size_t n = left < sizeof filling ? left : sizeof filling;
        (void)buf_append(&body, filling, n);
        left -= n;
    }
    write_head(r, body.len, &head);
    size_t n = r->cut ? r->cut : body.len;
    bool ok = send_all(c, buf_str(&head), head.len) && send_body(c, r, buf_str(&body), n);
    while (ok && r->forever)
        ok = send_body(c, r, buf_str(&body), n);
    if (ok && r->chunked && !r->cut && r->end == END_KEEP)
        ok = send_all(c, "0\r\n\r\n", 5);
    buf_release(&head);
    buf_release(&body);
    return ok && r->end == END_KEEP;
}

static void end_connection(connection *c, const reply *r) {
    char byte;
    if (r && r->end == END_STALL)
        while (readable(c->server, c->fd, -1) && recv(c->fd, &byte, 1, 0) > 0) {
        }
    struct linger now = {.l_onoff = 1};
    if (r && r->end == END_RESET) {
        clock_sleep_ns(20000000); /* the client must receive what was sent before the reset discards
                                     it */
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    (void)close(c->fd);
}

static void *serve(void *ctx) {
    connection *c = ctx;
    server *s = c->server;
    const reply *r = NULL;
    scripted_request request;
    bool more = !s->opt.tls || s->opt.tls_later || start_tls(c);
    while (more && read_request(c, &request)) {
        r = file_request(s, &request);
        more = send_reply(c, r) && (!r->then_tls || start_tls(c));
        (void)pthread_mutex_lock(&s->lock);
        s->answering--;
        (void)pthread_mutex_unlock(&s->lock);
    }
    end_connection(c, more ? NULL : r);
    SSL_free(c->tls);
    buf_release(&c->in);
    return NULL;
}

static void *accept_all(void *ctx) {
    server *s = ctx;
    int one = 1;
    pthread_attr_t small;
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, kStack);
    while (readable(s, s->listener, -1)) {
        int fd = accept(s->listener, NULL, NULL);
        if (fd < 0 || s->n_connections == kConnectionsMax)
            abort();
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        connection *c = &s->connections[s->n_connections++];
        *c = (connection){.server = s, .fd = fd};
        if (pthread_create(&c->thread, &small, serve, c) != 0)
            abort();
    }
    (void)pthread_attr_destroy(&small);
    return NULL;
}

/* ---- the server ---- */

/* Starts the thread that accepts connections. It and the threads of connections receive no signal,
 * because a signal would end their poll() and with it the server. */
static bool start_accepting(server *s) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    bool started = pthread_create(&s->thread, NULL, accept_all, s) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Listens on a free port of the loopback; returns the port, or -1. */
static int listen_on_loopback(server *s) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr *at = s->opt.ipv6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t len = s->opt.ipv6 ? sizeof v6 : sizeof v4;
    s->listener = socket(at->sa_family, SOCK_STREAM, 0);
    if (s->listener < 0 || bind(s->listener, at, len) != 0 || listen(s->listener, 512) != 0 ||
        getsockname(s->listener, at, &len) != 0)
        return -1;
    return ntohs(s->opt.ipv6 ? v6.sin6_port : v4.sin_port);
}

server *server_start(const reply *replies, int n_replies) {
    return server_start_with(replies, n_replies, (server_options){0});
}

server *server_start_with(const reply *replies, int n_replies, server_options opt) {
    server *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    (void)setenv("no_proxy", "127.0.0.1,::1", 0); /* unless a test has set it */
    (void)signal(SIGPIPE, SIG_IGN);
    s->replies = replies;
    s->n_replies = n_replies;
    s->opt = opt;
    int port = listen_on_loopback(s);
    if (port < 0 || pipe(s->wake) != 0 || pthread_mutex_init(&s->lock, NULL) != 0 ||
        pthread_cond_init(&s->changed, NULL) != 0 || !start_accepting(s)) {
        free(s);
        return NULL;
    }
    (void)snprintf(s->url, sizeof s->url, "%s://%s:%d",
                   opt.tls && !opt.tls_later ? "https" : "http", opt.ipv6 ? "[::1]" : "127.0.0.1",
                   port);
    return s;
}

const char *server_url(const server *s) {
    return s->url;
}

void server_stop(server *s) {
    if (s->stopped)
        return;
    s->stopped = true;
    (void)close(s->wake[1]); /* closing it makes the other end readable for every thread */
    (void)pthread_join(s->thread, NULL);
    for (int i = 0; i < s->n_connections; i++)
        (void)pthread_join(s->connections[i].thread, NULL);
    (void)close(s->listener);
    (void)close(s->wake[0]);
}

void server_free(server *s) {
    if (!s)
        return;
    server_stop(s);
    for (int i = 0; i < s->n_asked && i < kAskedMax; i++) {
        free(s->scripted_request[i].head);
        free(s->scripted_request[i].body);
    }
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

int server_requests(const server *s) {
    return s->n_asked;
}

int server_connections(const server *s) {
    return s->n_connections;
}

int server_most_at_once(const server *s) {
    return s->most_at_once;
}

const scripted_request *server_request(const server *s, int i) {
    return &s->scripted_request[i];
}
