#include "base/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/hist.h"
#include "base/http_plain.h"
#include "base/http_url.h"

enum {
    kStepMs = 100, /* longest sleep of http_step(): a signal is noticed after at most
                                 this time */
    kConnectTimeoutS = 30,
    kSilenceS = 600,
    kEvents = 2048,        /* sockets handled per step; the next step handles the rest */
    kReadBytes = 64 << 10, /* most bytes of one read of a plain connection */
};

typedef struct transfer transfer;
struct transfer {
    transfer *next, **link; /* list of the engine's transfers; *link points to this one */
    http *engine;
    plain_exchange *plain; /* &own; NULL: libcurl makes the whole transfer */
    plain_exchange own;
    char *url;      /* the URL of a plain exchange; owned */
    char *location; /* where its response redirects to; owned by libcurl, NULL = nowhere */
    CURL *easy;     /* NULL: a plain exchange has its connection */
    struct curl_slist *headers;
    http_body_fn on_body;
    http_done_fn on_done;
    void *ctx;
    size_t body_bytes, body_limit, header_bytes;
    int64_t silence_ns, last_byte_ns; /* last_byte_ns: when the last byte was read, or the start */
    int64_t arrived_ns;               /* plain: when the last byte arrived, or the start */
    bool has_rest;                    /* plain: the last read filled its buffer */
    int64_t deadline_ns;              /* INT64_MAX = none */
    int64_t connect_limit_ns;         /* longest time until the connection exists */
    int64_t connect_ns;               /* when the connection must exist; INT64_MAX = it does */
    http_outcome aborted; /* why a callback ended the transfer; HTTP_COMPLETE = no callback
                             did */
    http_response head;   /* passed to on_body(); status 0 = not filled yet */
    char message[CURL_ERROR_SIZE];
};

struct http {
    CURLM *multi;
    http_pool *pool;   /* the connections of plain exchanges */
    int poll;          /* epoll instance with the sockets of libcurl and of the pool */
    int64_t timer_ns;  /* when libcurl's timer expires; INT64_MAX = not set */
    int64_t check_ns;  /* no transfer reaches a time limit before this */
    int64_t polled_ns; /* when the last poll began or its sleep ended; 0 = no poll yet */
    transfer *transfers;
    int running;
    const volatile sig_atomic_t *cancel;
    int64_t done, connections;
    int64_t received_ns;    /* when the bytes that are handled now were received */
    int64_t ready_ns;       /* earliest time when the events of this step could have been handled */
    int64_t event_ready_ns; /* earliest time when the event that is handled now could have been
                               handled */
    bool arrival_known;     /* received_ns is the kernel's */
    int64_t wall_ns;        /* CLOCK_REALTIME - CLOCK_MONOTONIC, at the last step */
    hist lag;
    char bytes[kReadBytes]; /* the last read of a plain connection */
};

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static CURLcode init_result;

static void init(void) {
    init_result = curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, free, realloc, strdup, calloc);
}

/* libcurl's socket callback: registers a socket, changes its direction or removes it. */
static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *unused) {
    http *h = ctx;
    struct epoll_event e = {.data.fd = fd};
    (void)easy, (void)unused;
    e.events |= what == CURL_POLL_IN || what == CURL_POLL_INOUT ? EPOLLIN : 0;
    e.events |= what == CURL_POLL_OUT || what == CURL_POLL_INOUT ? EPOLLOUT : 0;
    if (what == CURL_POLL_REMOVE)
        (void)epoll_ctl(h->poll, EPOLL_CTL_DEL, fd, NULL); /* fails if the socket is closed
                                                              already */
    else if (epoll_ctl(h->poll, EPOLL_CTL_MOD, fd, &e) != 0 &&
             epoll_ctl(h->poll, EPOLL_CTL_ADD, fd, &e) != 0)
        return -1;
    return 0;
}

/* libcurl's timer callback: libcurl wants to be called after @ms; a negative value cancels the
 * timer. */
static int set_timer(CURLM *multi, long ms, void *ctx) {
    http *h = ctx;
    (void)multi;
    h->timer_ns = ms < 0 ? INT64_MAX : clock_now_ns() + (int64_t)ms * 1000000;
    return 0;
}

static bool connect_engine(http *h) {
    return curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, watch_socket) == CURLM_OK &&
           curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h) == CURLM_OK &&
           curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, set_timer) == CURLM_OK &&
           curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h) == CURLM_OK;
}

snap_status http_create(http **out, int connections, const volatile sig_atomic_t *cancel,
                        snap_err *err) {
    *out = NULL;
    (void)pthread_once(&init_once, init);
    http *h = init_result == CURLE_OK ? calloc(1, sizeof *h) : NULL;
    if (!h)
        return err_set(err, SNAP_E_NOMEM, "libcurl cannot be initialised: out of memory");
    h->timer_ns = h->check_ns = INT64_MAX;
    h->poll = epoll_create1(EPOLL_CLOEXEC);
    h->multi = curl_multi_init();
    h->pool = http_pool_create(h->poll, connections);
    if (h->poll < 0 || !h->multi || !h->pool || !connect_engine(h)) {
        snap_status st = err_set_errno(err, "libcurl cannot be initialised");
        http_free(h);
        return st;
    }
    h->cancel = cancel;
    (void)curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)connections);
    *out = h;
    return SNAP_OK;
}

static void transfer_free(transfer *t) {
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    curl_free(t->location);
    plain_release(&t->own);
    free(t->url);
    free(t);
}

/* Removes a started transfer from its engine and frees it. */
static void transfer_end(transfer *t) {
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    if (t->easy)
        (void)curl_multi_remove_handle(t->engine->multi, t->easy);
    t->engine->running--;
    transfer_free(t);
}

void http_abandon(http *h) {
    for (transfer *t = h->transfers, *next; t; t = next) {
        next = t->next;
        transfer_end(t);
    }
}

void http_free(http *h) {
    if (!h)
        return;
    http_abandon(h);
    http_pool_free(h->pool);
    if (h->multi)
        (void)curl_multi_cleanup(h->multi);
    if (h->poll >= 0)
        (void)close(h->poll);
    free(h);
}

int64_t http_ready_ns(const http *h) {
    return h->event_ready_ns;
}

int64_t http_received_ns(const http *h) {
    return h->received_ns;
}

bool http_arrival_known(const http *h) {
    return h->arrival_known;
}

int http_running(const http *h) {
    return h->running;
}

http_stats http_stats_of(const http *h) {
    return (http_stats){.transfers = h->done,
                        .connections = h->connections,
                        .lag_p50_ns = hist_quantile_ns(&h->lag, 0.5),
                        .lag_p99_ns = hist_quantile_ns(&h->lag, 0.99),
                        .lag_max_ns = h->lag.n ? h->lag.max_ns : -1};
}

/* ---- callbacks of libcurl ---- */

/* A header of the last response; "" if absent. */
static const char *header(const transfer *t, const char *name) {
    struct curl_header *h = NULL;
    if (t->plain) {
        const char *value = http_answer_header(&t->plain->answer, name);
        return value ? value : "";
    }
    bool found = curl_easy_header(t->easy, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK;
    return found ? h->value : "";
}

const char *http_response_header(const http_response *res, const char *name) {
    return res->source ? header(res->source, name) : "";
}

/* Parses Content-Range: the body of "bytes 100-199/200" begins at 100. */
static int64_t first_byte(const transfer *t) {
    const char *range = header(t, "Content-Range");
    if (strncasecmp(range, "bytes ", 6) != 0 || range[6] < '0' || range[6] > '9')
        return -1;
    return strtoll(range + 6, NULL, 10);
}

/* The absolute URL that a redirecting response names; "" if the response is no redirect. The
 * transfer must not be one of libcurl. */
static const char *plain_location(transfer *t) {
    const char *to = header(t, "Location");
    int status = t->plain->answer.status;
    if (*to && !t->location && status >= 300 && status < 400)
        t->location = http_url_resolve(t->url, to);
    return t->location ? t->location : "";
}

/* The response as far as it is known. finish() adds outcome, message and retry_after_s. */
static http_response response(transfer *t) {
    http_response r = {.first_byte = -1, .retry_after_s = -1, .message = ""};
    long status = 0;
    const char *type, *location;
    char *of_curl = NULL;
    if (t->plain) {
        status = t->plain->answer.status;
        type = header(t, "Content-Type");
        location = plain_location(t);
    } else {
        (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        (void)curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &of_curl);
        type = of_curl;
        of_curl = NULL;
        (void)curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &of_curl);
        location = of_curl;
    }
    r.source = t;
    r.status = (int)status;
    r.type = type ? type : "";
    r.location = location ? location : "";
    r.etag = header(t, "ETag");
    r.first_byte = first_byte(t);
    return r;
}

/* Retry-After in seconds from now: a number or a date. 0 for a date in the past and for a text that
 * is neither, -1 if absent. */
static double retry_after(const transfer *t) {
    const char *value = header(t, "Retry-After");
    char *end;
    if (!*value)
        return -1;
    double seconds = (double)strtoll(value, &end, 10);
    if (end == value) {
        time_t date = curl_getdate(value, NULL);
        seconds = date < 0 ? 0 : difftime(date, time(NULL));
    }
    return seconds > 0 ? seconds : 0;
}

/* From an answer over https, a redirect must lead to https. The answer may itself be the target of
 * a redirect from http, so this is decided for each answer. */
static bool stay_private(const transfer *t) {
    char *url = NULL;
    (void)curl_easy_getinfo(t->easy, CURLINFO_EFFECTIVE_URL, &url);
    return !url || strncasecmp(url, "https:", 6) != 0 ||
           curl_easy_setopt(t->easy, CURLOPT_REDIR_PROTOCOLS_STR, "https") == CURLE_OK;
}

static size_t take_header(char *bytes, size_t one, size_t n, void *ctx) {
    (void)bytes;
    (void)one; /* always 1 */
    transfer *t = ctx;
    if (!stay_private(t))
        return 0;
    t->last_byte_ns = clock_now_ns();
    t->header_bytes += n;
    if (t->header_bytes <= HTTP_HEADERS_MAX)
        return n;
    t->aborted = HTTP_TOO_LARGE;
    return 0;
}

/* Passes bytes of the body on; false if the transfer is to be ended, for the reason in
 * t->aborted. */
static bool deliver(transfer *t, const char *bytes, size_t n) {
    if (!n || !t->on_body)
        return true;
    if (!t->head.status) {
        t->head = response(t);
        t->connect_ns = INT64_MAX;
    }
    if (n > t->body_limit - t->body_bytes)
        t->aborted = HTTP_TOO_LARGE;
    else if (!t->on_body(t->ctx, &t->head, bytes, n))
        t->aborted = HTTP_STOPPED;
    t->body_bytes += n;
    return t->aborted == HTTP_COMPLETE;
}

static size_t take_body(char *bytes, size_t one, size_t n, void *ctx) {
    (void)one;
    transfer *t = ctx;
    http *h = t->engine;
    h->received_ns = t->last_byte_ns = clock_now_ns();
    h->event_ready_ns = h->ready_ns;
    h->arrival_known = false;
    hist_add(&h->lag, t->last_byte_ns - h->ready_ns);
    return deliver(t, bytes, n) ? n : 0;
}

/* ---- transfers by libcurl ---- */

static bool add_headers(transfer *t, const char *const *headers, int n) {
    for (int i = 0; i < n; i++) {
        struct curl_slist *grown = curl_slist_append(t->headers, headers[i]);
        if (!grown)
            return false;
        t->headers = grown;
    }
    return true;
}

static bool set_headers(transfer *t, const http_request *req) {
    /* libcurl would send "Expect: 100-continue" with large requests and wait up to a second for
     * many servers; an empty header turns that off */
    t->headers = curl_slist_append(NULL, "Expect:");
    bool ok = t->headers && add_headers(t, req->headers, req->n_headers) &&
              add_headers(t, req->secrets, req->n_secrets);
    return ok && curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK;
}

static bool set_method(transfer *t, const http_request *req) {
    bool post = req->body != NULL;
    long redirects = post || req->n_secrets ? 0 : req->max_redirects;
    CURLcode rc = CURLE_OK;
    if (post) {
        rc = curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, req->body);
        if (rc == CURLE_OK)
            rc = curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body_len);
    }
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, redirects > 0 ? 1L : 0L);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(t->easy, CURLOPT_MAXREDIRS, redirects);
    return rc == CURLE_OK;
}

/* Uses the certificate file that the environment names, if any, instead of libcurl's default. */
static bool set_certificates(CURL *e) {
    const char *file = getenv("CURL_CA_BUNDLE");
    if (!file || !*file)
        file = getenv("SSL_CERT_FILE");
    return !file || !*file || curl_easy_setopt(e, CURLOPT_CAINFO, file) == CURLE_OK;
}

/* Sets the hosts that are reached without a proxy: the loopback and those that the environment
 * names. */
static bool set_no_proxy(CURL *e) {
    const char *named = getenv("no_proxy");
    buf hosts = {0};
    if (!named)
        named = getenv("NO_PROXY");
    (void)buf_printf(&hosts, "localhost,127.0.0.0/8,::1%s%s", named && *named ? "," : "",
                     named ? named : "");
    /* libcurl accepts "*" only as the whole text */
    const char *text = named && strcmp(named, "*") == 0 ? named : buf_str(&hosts);
    bool ok = !hosts.failed && curl_easy_setopt(e, CURLOPT_NOPROXY, text) == CURLE_OK;
    buf_release(&hosts);
    return ok;
}

static bool set_transport(transfer *t, const http_request *req) {
    CURL *e = t->easy;
    return curl_easy_setopt(e, CURLOPT_URL, req->url) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           set_no_proxy(e) && curl_easy_setopt(e, CURLOPT_USERAGENT, "snapmla") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->message) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_HEADERDATA, t) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_WRITEDATA, t) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_PRIVATE, t) == CURLE_OK;
}

/* ---- plain exchanges ---- */

/* Makes libcurl connect to the server of a plain exchange. */
static bool start_connection(transfer *t) {
    CURL *e = t->easy = curl_easy_init();
    bool ok = e && curl_easy_setopt(e, CURLOPT_URL, t->url) == CURLE_OK &&
              curl_easy_setopt(e, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK &&
              curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
              curl_easy_setopt(e, CURLOPT_PROXY, "") == CURLE_OK &&
              curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
              curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->message) == CURLE_OK &&
              curl_easy_setopt(e, CURLOPT_PRIVATE, t) == CURLE_OK &&
              curl_multi_add_handle(t->engine->multi, e) == CURLM_OK;
    t->connect_ns = clock_now_ns() + t->connect_limit_ns;
    if (!ok) {
        curl_easy_cleanup(e);
        t->easy = NULL;
    }
    return ok;
}

/* Begins to send the request on its connection. */
static void begin_plain(transfer *t, http_conn *c) {
    t->plain->conn = c;
    t->connect_ns = INT64_MAX;
    plain_send(t->plain);
}

/* Prepares a plain exchange and gives it an idle connection or starts a new one. False if memory is
 * exhausted. */
static bool set_plain(transfer *t, const http_request *req, const http_url_parts *p) {
    t->plain = &t->own;
    t->url = strdup(req->url);
    if (!plain_prepare(t->plain, req, p) || !t->url)
        return false;
    http_conn *idle = http_pool_take(t->engine->pool, t->plain->origin, t);
    if (idle)
        begin_plain(t, idle);
    return idle || start_connection(t);
}

/* Takes the socket of the new connection from libcurl, and releases libcurl's handle. NULL with
 * errno set. */
static http_conn *take_socket(transfer *t) {
    http *h = t->engine;
    curl_socket_t fd = CURL_SOCKET_BAD;
    (void)curl_easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd);
    /* libcurl closes its own descriptor when the handle leaves the multi handle */
    int own = fd == CURL_SOCKET_BAD ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0), saved = errno;
    (void)epoll_ctl(h->poll, EPOLL_CTL_DEL, fd, NULL);
    (void)curl_multi_remove_handle(h->multi, t->easy);
    curl_easy_cleanup(t->easy);
    t->easy = NULL;
    if (own >= 0)
        return http_pool_add(h->pool, t->plain->origin, own, t);
    errno = saved;
    return NULL;
}

/* ---- starting a transfer ---- */

static bool set_curl(transfer *t, const http_request *req) {
    t->easy = curl_easy_init();
    return t->easy && set_transport(t, req) && set_certificates(t->easy) && set_method(t, req) &&
           set_headers(t, req) && curl_multi_add_handle(t->engine->multi, t->easy) == CURLM_OK;
}

static transfer *transfer_create(http *h, const http_request *req) {
    transfer *t = calloc(1, sizeof *t);
    http_url_parts parts = {0};
    if (!t)
        return NULL;
    double silence_s = req->silence_s > 0 ? req->silence_s : kSilenceS;
    double connect_s = req->connect_timeout_s > 0 ? req->connect_timeout_s : kConnectTimeoutS;
    t->engine = h;
    t->on_body = req->on_body;
    t->on_done = req->on_done;
    t->ctx = req->ctx;
    t->body_limit = req->body_limit ? req->body_limit : (size_t)1 << 30;
    t->silence_ns = (int64_t)(silence_s * 1e9);
    t->connect_limit_ns = (int64_t)(connect_s * 1e9);
    t->last_byte_ns = t->arrived_ns = clock_now_ns();
    t->deadline_ns =
        req->deadline_s > 0 ? t->last_byte_ns + (int64_t)(req->deadline_s * 1e9) : INT64_MAX;
    t->connect_ns = t->last_byte_ns + t->connect_limit_ns;
    bool ok = plain_can_send(req) && http_url_plain(req->url, &parts) ? set_plain(t, req, &parts)
                                                                      : set_curl(t, req);
    http_url_parts_release(&parts);
    if (ok)
        return t;
    transfer_free(t);
    return NULL;
}

/* When a transfer reaches its first time limit if no further byte arrives. *why: which one. */
static int64_t end_of(const transfer *t, http_outcome *why) {
    int64_t end_ns = t->last_byte_ns + t->silence_ns;
    *why = HTTP_SILENT;
    if (t->deadline_ns < end_ns) {
        end_ns = t->deadline_ns;
        *why = HTTP_LATE;
    }
    if (t->connect_ns < end_ns) {
        end_ns = t->connect_ns;
        *why = HTTP_UNREACHABLE;
    }
    return end_ns;
}

/* Makes sure that the next check for overdue transfers is at @end_ns or earlier. */
static void check_by(http *h, int64_t end_ns) {
    h->check_ns = end_ns < h->check_ns ? end_ns : h->check_ns;
}

static snap_status check_headers(const char *const *headers, int n, snap_err *err) {
    for (int i = 0; i < n; i++)
        if (strpbrk(headers[i], "\r\n") || !strchr(headers[i], ':'))
            return err_set(err, SNAP_E_USAGE, "header %d contains a line break or has no colon",
                           i + 1);
    return SNAP_OK;
}

snap_status http_start(http *h, const http_request *req, snap_err *err) {
    snap_status st = http_check_url(req->url, err);
    if (st == SNAP_OK)
        st = check_headers(req->headers, req->n_headers, err);
    if (st == SNAP_OK)
        st = check_headers(req->secrets, req->n_secrets, err);
    if (st != SNAP_OK)
        return st;
    transfer *t = transfer_create(h, req);
    if (!t)
        return err_set(err, SNAP_E_NOMEM, "cannot set up a transfer: out of memory");
    t->next = h->transfers;
    t->link = &h->transfers;
    if (t->next)
        t->next->link = &t->next;
    h->transfers = t;
    h->running++;
    http_outcome why;
    check_by(h, end_of(t, &why));
    return SNAP_OK;
}

/* ---- http_step() ---- */

static http_outcome outcome_of(CURLcode rc) {
    switch (rc) {
    case CURLE_OK:
        return HTTP_COMPLETE;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT: /* libcurl has its own limit for a connection, 300 s */
        return HTTP_UNREACHABLE;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return HTTP_BROKEN;
    default:
        return HTTP_REFUSED;
    }
}

static const char *message_of(const transfer *t, http_outcome outcome, CURLcode rc) {
    switch (outcome) {
    case HTTP_COMPLETE:
        return "";
    case HTTP_SILENT:
        return "the server sent nothing for too long";
    case HTTP_LATE:
        return "the response was not complete before the deadline";
    case HTTP_TOO_LARGE:
        return "the response is larger than its limit";
    case HTTP_STOPPED:
        return "stopped";
    default:
        if (t->plain && t->plain->answer.why)
            return t->plain->answer.why;
        if (t->plain && t->plain->why[0])
            return t->plain->why;
        if (rc == CURLE_UNSUPPORTED_PROTOCOL)
            return "the server redirects from https to http, or to another protocol, which is not "
                   "followed";
        return t->message[0] ? t->message : curl_easy_strerror(rc);
    }
}

static void count_connections(transfer *t) {
    long opened = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &opened);
    t->engine->connections += opened;
}

static void finish(transfer *t, http_outcome outcome, CURLcode rc) {
    http_response res = response(t);
    if (t->easy)
        count_connections(t);
    if (t->plain)
        plain_end(t->plain); /* on_done() may start a transfer that uses the connection */
    t->engine->done++;
    res.outcome = outcome;
    res.retry_after_s = retry_after(t);
    res.message = message_of(t, outcome, rc);
    t->on_done(t->ctx, &res);
    transfer_end(t);
}

/* libcurl has connected to the server of a plain exchange. */
static void take_over(transfer *t) {
    count_connections(t);
    http_conn *c = take_socket(t);
    if (c) {
        begin_plain(t, c);
        return;
    }
    char text[100];
    (void)snprintf(t->message, sizeof t->message, "the connection cannot be used: %s",
                   strerror_r(errno, text, sizeof text));
    finish(t, HTTP_UNREACHABLE, CURLE_OK);
}

static http_outcome plain_outcome(answer_state state) {
    switch (state) {
    case ANSWER_COMPLETE:
        return HTTP_COMPLETE;
    case ANSWER_BROKEN:
        return HTTP_BROKEN;
    case ANSWER_TOO_LARGE:
        return HTTP_TOO_LARGE;
    default:
        return HTTP_REFUSED;
    }
}

/* Begins again on a new connection: the server had closed the idle one. */
static void restart_plain(transfer *t) {
    plain_restart(t->plain);
    http_outcome why;
    if (start_connection(t))
        check_by(t->engine, end_of(t, &why));
    else
        finish(t, HTTP_REFUSED, CURLE_OUT_OF_MEMORY);
}

/* Sets the times of bytes that were received now. @arrived_ns is the kernel's time of their arrival
 * (CLOCK_REALTIME); 0 = unknown. */
static void set_arrival(transfer *t, int64_t arrived_ns) {
    http *h = t->engine;
    int64_t now = clock_now_ns(), at = arrived_ns - h->wall_ns;
    /* the bytes came after those of the last read and, unless it left some, after the last poll */
    int64_t earliest = t->has_rest || t->arrived_ns > h->ready_ns ? t->arrived_ns : h->ready_ns;
    h->arrival_known = arrived_ns > 0;
    h->event_ready_ns = earliest;
    h->received_ns = now;
    if (h->arrival_known) /* the wall clock may have been set in between */
        h->received_ns = at > now ? now : at < t->arrived_ns ? t->arrived_ns : at;
    hist_add(&h->lag, now - (h->arrival_known ? h->received_ns : earliest));
    /* the engine woke up late: bytes on the next sockets may be as old as these */
    if (h->received_ns < h->ready_ns)
        h->ready_ns = h->received_ns;
    t->last_byte_ns = now;
    t->arrived_ns = h->received_ns;
}

static void receive_plain(transfer *t) {
    http *h = t->engine;
    plain_input in;
    answer_state state = plain_receive(t->plain, h->bytes, sizeof h->bytes, &in);
    if (!in.came)
        return;
    if (state == ANSWER_BROKEN && plain_may_retry(t->plain)) {
        restart_plain(t);
        return;
    }
    set_arrival(t, in.arrived_ns);
    t->has_rest = in.is_full;
    if (!deliver(t, h->bytes, in.n_body))
        finish(t, t->aborted, CURLE_OK);
    else if (state != ANSWER_OPEN)
        finish(t, plain_outcome(state), CURLE_OK);
}

/* Handles an event of a connection of the pool. */
static void serve_plain(http_conn *c, uint32_t events) {
    transfer *t = http_conn_user(c);
    if (!t) { /* the server has closed an idle connection, or sent bytes without a request */
        http_conn_close(c);
        return;
    }
    if (events & EPOLLOUT)
        plain_send(t->plain);
    if (events & ~(uint32_t)EPOLLOUT)
        receive_plain(t);
}

static void finish_ended(http *h) {
    int left;
    const CURLMsg *m;
    while ((m = curl_multi_info_read(h->multi, &left))) {
        char *owner = NULL;
        CURLcode rc = m->data.result;
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &owner);
        transfer *t = (transfer *)(void *)owner;
        if (t->plain && rc == CURLE_OK) {
            take_over(t);
            continue;
        }
        h->received_ns = clock_now_ns();
        h->event_ready_ns = h->ready_ns;
        h->arrival_known = false;
        hist_add(&h->lag, h->received_ns - h->ready_ns);
        finish(t, t->aborted == HTTP_COMPLETE ? outcome_of(rc) : t->aborted, rc);
    }
}

/* Whether the connection exists, and its TLS session. libcurl is given no time limit for this: it
 * would keep a timer for each transfer in a tree that it searches at each event. */
static bool is_connected(const transfer *t) {
    curl_off_t us = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &us);
    return us > 0;
}

/* Ends the transfers that have reached a time limit. Bytes that arrive later only move a limit
 * further away, so no check is needed before the earliest limit found here. */
static void finish_overdue(http *h) {
    int64_t now = clock_now_ns();
    transfer *t = h->transfers;
    h->check_ns = INT64_MAX;
    while (t) {
        transfer *after = t->next; /* on_done() may insert transfers before t, not after it */
        http_outcome why;
        int64_t end_ns = end_of(t, &why);
        if (now >= end_ns && why == HTTP_UNREACHABLE && is_connected(t)) {
            t->connect_ns = INT64_MAX;
            end_ns = end_of(t, &why);
        }
        if (now >= end_ns) {
            hist_add(&h->lag, now - end_ns);
            h->received_ns = now;
            h->event_ready_ns = end_ns;
            h->arrival_known = false;
            finish(t, why, CURLE_OPERATION_TIMEDOUT);
        } else {
            check_by(h, end_ns);
        }
        t = after;
    }
}

static int wait_ms(int64_t until_ns) {
    int64_t left = until_ns - clock_now_ns();
    if (left <= 0)
        return 0;
    return left > kStepMs * INT64_C(1000000) ? kStepMs : (int)((left + 999999) / 1000000);
}

/* Collects the sockets with events and records when these events could have been handled. The first
 * poll does not sleep: its events may have been waiting since the previous poll. If there are none,
 * a second poll sleeps, and its events are handled as soon as they arrive. */
static int wait_for_sockets(http *h, int64_t until_ns, struct epoll_event events[kEvents]) {
    int64_t polled_ns = clock_now_ns();
    int n = epoll_wait(h->poll, events, kEvents, 0), ms = wait_ms(until_ns);
    /* the events may have been waiting since the previous poll */
    h->ready_ns = h->polled_ns ? h->polled_ns : polled_ns;
    if (n == 0 && ms > 0) {
        n = epoll_wait(h->poll, events, kEvents, ms);
        if (n >= 0) /* otherwise a signal interrupted the wait, perhaps SIGSTOP for a long time */
            h->ready_ns = polled_ns = clock_now_ns();
    }
    if (n < kEvents || !h->polled_ns) /* if the array is full, more sockets may have events since
                                         the previous poll */
        h->polled_ns = polled_ns;
    return n; /* negative if a signal interrupted the wait */
}

static int actions_of(uint32_t events) {
    return (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
           (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
}

static CURLMcode move_bytes(http *h, const struct epoll_event *events, int n) {
    CURLMcode rc = CURLM_OK;
    int running;
    for (int i = 0; i < n && rc == CURLM_OK; i++) {
        http_conn *c = http_pool_find(h->pool, events[i].data.fd);
        if (c)
            serve_plain(c, events[i].events);
        else
            rc = curl_multi_socket_action(h->multi, events[i].data.fd, actions_of(events[i].events),
                                          &running);
    }
    if (rc == CURLM_OK && h->timer_ns <= clock_now_ns()) {
        h->timer_ns = INT64_MAX; /* libcurl sets the timer again if it needs it */
        rc = curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    return rc;
}

snap_status http_step(http *h, int64_t until_ns, snap_err *err) {
    struct epoll_event events[kEvents];
    if (h->cancel && *h->cancel)
        return err_set(err, SNAP_E_CANCELLED, "cancelled");
    int64_t due_ns = h->timer_ns < h->check_ns ? h->timer_ns : h->check_ns;
    int n = wait_for_sockets(h, due_ns < until_ns ? due_ns : until_ns, events);
    h->wall_ns = clock_wall_offset_ns();
    CURLMcode rc = move_bytes(h, events, n);
    finish_ended(h);
    if (h->check_ns <= clock_now_ns())
        finish_overdue(h);
    if (rc != CURLM_OK)
        return err_set(err, SNAP_E_NET, "libcurl failed: %s", curl_multi_strerror(rc));
    return SNAP_OK;
}
