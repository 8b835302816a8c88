#include "base/http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/hist.h"

enum {
    kHeaderLimit = 256 << 10, /* limit for all headers of one transfer, redirects included, in
                                 bytes */
    kStepMs = 100,            /* longest sleep of http_step(): a signal is noticed after at most
                                 this time */
    kConnectTimeoutS = 30,
    kSilenceS = 600,
    kEvents = 2048, /* sockets handled per step; the next step handles the rest */
};

typedef struct transfer transfer;
struct transfer {
    transfer *next, **link; /* list of the engine's transfers; *link points to this one */
    http *engine;
    CURL *easy;
    struct curl_slist *headers;
    http_body_fn on_body;
    http_done_fn on_done;
    void *ctx;
    size_t body_bytes, body_limit, header_bytes;
    int64_t silence_ns, last_byte_ns; /* last_byte_ns: when the last byte arrived, or the start */
    int64_t deadline_ns;              /* INT64_MAX = none */
    int64_t connect_ns;               /* when the connection must exist; INT64_MAX = it does */
    http_outcome aborted; /* why a callback ended the transfer; HTTP_COMPLETE = no callback
                             did */
    http_response head;   /* passed to on_body(); status 0 = not filled yet */
    char message[CURL_ERROR_SIZE];
};

struct http {
    CURLM *multi;
    int poll;          /* epoll instance with the sockets that libcurl registered */
    int64_t timer_ns;  /* when libcurl's timer expires; INT64_MAX = not set */
    int64_t check_ns;  /* no transfer reaches a time limit before this */
    int64_t polled_ns; /* when the last poll began or its sleep ended; 0 = no poll yet */
    transfer *transfers;
    int running;
    const volatile sig_atomic_t *cancel;
    int64_t done, connections;
    int64_t received_ns; /* when the bytes that are handled now were received */
    int64_t ready_ns;    /* earliest time when the events handled now could have been handled */
    hist lag;
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
    if (h->poll < 0 || !h->multi || !connect_engine(h)) {
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
    free(t);
}

/* Removes a started transfer from its engine and frees it. */
static void transfer_end(transfer *t) {
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
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
    if (h->multi)
        (void)curl_multi_cleanup(h->multi);
    if (h->poll >= 0)
        (void)close(h->poll);
    free(h);
}

int64_t http_ready_ns(const http *h) {
    return h->ready_ns;
}

int64_t http_received_ns(const http *h) {
    return h->received_ns;
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

/* ---- URLs ---- */

/* Gets a part of a URL, to be freed with curl_free(). Notes a fault if memory is exhausted, so that
 * credentials are not overlooked. */
static bool get_part(CURLU *u, CURLUPart part, char **value) {
    CURLUcode rc = curl_url_get(u, part, value, 0);
    if (rc == CURLUE_OUT_OF_MEMORY)
        fault_note(SNAP_E_NOMEM, "out of memory for a URL");
    return rc == CURLUE_OK;
}

static bool has_part(CURLU *u, CURLUPart part) {
    char *value = NULL;
    bool found = get_part(u, part, &value);
    curl_free(value);
    return found;
}

static bool is_http(CURLU *u) {
    char *scheme = NULL;
    bool ok = get_part(u, CURLUPART_SCHEME, &scheme) &&
              (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0);
    curl_free(scheme);
    return ok;
}

snap_status http_check_url(const char *url, snap_err *err) {
    CURLU *u = curl_url();
    if (!u)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a URL");
    snap_status st = SNAP_OK;
    fault_mark before = fault_begin();
    CURLUcode rc = curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
    if (rc == CURLUE_OUT_OF_MEMORY)
        fault_note(SNAP_E_NOMEM, "out of memory for a URL");
    /* checked first, with a message that does not quote the URL: it must not show the
     * credentials */
    if (rc == CURLUE_OK && (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD)))
        st = err_set(err, SNAP_E_USAGE, "a URL must not contain a user or a password");
    else if (rc != CURLUE_OK || !has_part(u, CURLUPART_HOST))
        st = err_set(err, SNAP_E_USAGE, "'%s' is not an absolute URL", url);
    else if (!is_http(u))
        st = err_set(err, SNAP_E_USAGE, "'%s' is neither an http nor an https URL", url);
    else if (has_part(u, CURLUPART_FRAGMENT))
        st = err_set(err, SNAP_E_USAGE, "'%s' must not have a '#' part", url);
    curl_url_cleanup(u);
    return fault_result(before, st, err);
}

/* True if the host is a loopback address, "localhost" or a name that ends in ".localhost". libcurl
 * itself resolves these names to the loopback. */
static bool is_loopback(CURLU *u) {
    char *host = NULL;
    struct in_addr v4;
    struct in6_addr v6;
    bool found = get_part(u, CURLUPART_HOST, &host);
    size_t n = found ? strlen(host) : 0;
    bool is_v6 = n > 2 && host[0] == '[';
    if (is_v6)
        host[n - 1] = '\0';
    bool yes =
        found && (strcasecmp(host, "localhost") == 0 ||
                  (n > 10 && strcasecmp(host + n - 10, ".localhost") == 0) ||
                  (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127) ||
                  (is_v6 && inet_pton(AF_INET6, host + 1, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6)));
    curl_free(host);
    return yes;
}

static bool is_https(CURLU *u) {
    char *scheme = NULL;
    bool yes = get_part(u, CURLUPART_SCHEME, &scheme) && strcasecmp(scheme, "https") == 0;
    curl_free(scheme);
    return yes;
}

bool http_is_private(const char *url) {
    CURLU *u = curl_url();
    if (!u)
        fault_note(SNAP_E_NOMEM, "out of memory for a URL");
    bool yes =
        u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK && (is_https(u) || is_loopback(u));
    curl_url_cleanup(u);
    return yes;
}

/* ---- callbacks of libcurl ---- */

/* A header of the last response; "" if absent. */
static const char *header(const transfer *t, const char *name) {
    struct curl_header *h = NULL;
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

/* The response as far as it is known. finish() adds outcome, message and retry_after_s. */
static http_response response(const transfer *t) {
    http_response r = {.first_byte = -1, .retry_after_s = -1, .message = ""};
    long status = 0;
    char *type = NULL, *location = NULL;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
    (void)curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &location);
    r.source = t;
    r.status = (int)status;
    r.type = type ? type : "";
    r.location = location ? location : "";
    r.etag = header(t, "ETag");
    r.first_byte = first_byte(t);
    return r;
}

/* Retry-After in seconds from now; 0 for a date in the past, -1 if absent. libcurl returns 0 both
 * for an absent header and for "0", so the header itself is looked up first. */
static double retry_after(const transfer *t) {
    curl_off_t seconds = 0;
    struct curl_header *header = NULL;
    if (curl_easy_header(t->easy, "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return -1;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &seconds);
    return seconds > 0 ? (double)seconds : 0;
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
    if (t->header_bytes <= kHeaderLimit)
        return n;
    t->aborted = HTTP_TOO_LARGE;
    return 0;
}

static size_t take_body(char *bytes, size_t one, size_t n, void *ctx) {
    (void)one;
    transfer *t = ctx;
    t->engine->received_ns = t->last_byte_ns = clock_now_ns();
    hist_add(&t->engine->lag, t->last_byte_ns - t->engine->ready_ns);
    if (!n || !t->on_body)
        return n;
    if (!t->head.status) {
        t->head = response(t);
        t->connect_ns = INT64_MAX;
    }
    if (n > t->body_limit - t->body_bytes)
        t->aborted = HTTP_TOO_LARGE;
    else if (!t->on_body(t->ctx, &t->head, bytes, n))
        t->aborted = HTTP_STOPPED;
    t->body_bytes += n;
    return t->aborted == HTTP_COMPLETE ? n : 0;
}

/* ---- starting a transfer ---- */

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

static transfer *transfer_create(http *h, const http_request *req) {
    transfer *t = calloc(1, sizeof *t);
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
    t->last_byte_ns = clock_now_ns();
    t->deadline_ns =
        req->deadline_s > 0 ? t->last_byte_ns + (int64_t)(req->deadline_s * 1e9) : INT64_MAX;
    t->connect_ns = t->last_byte_ns + (int64_t)(connect_s * 1e9);
    t->easy = curl_easy_init();
    if (!t->easy || !set_transport(t, req) || !set_certificates(t->easy) || !set_method(t, req) ||
        !set_headers(t, req) || curl_multi_add_handle(h->multi, t->easy) != CURLM_OK) {
        transfer_free(t);
        return NULL;
    }
    return t;
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
        if (rc == CURLE_UNSUPPORTED_PROTOCOL)
            return "the server redirects from https to http, or to another protocol, which is not "
                   "followed";
        return t->message[0] ? t->message : curl_easy_strerror(rc);
    }
}

static void finish(transfer *t, http_outcome outcome, CURLcode rc) {
    http_response res = response(t);
    long opened = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &opened);
    t->engine->connections += opened;
    t->engine->done++;
    res.outcome = outcome;
    res.retry_after_s = retry_after(t);
    res.message = message_of(t, outcome, rc);
    t->on_done(t->ctx, &res);
    transfer_end(t);
}

static void finish_ended(http *h) {
    int left;
    const CURLMsg *m;
    while ((m = curl_multi_info_read(h->multi, &left))) {
        char *owner = NULL;
        CURLcode rc = m->data.result;
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &owner);
        transfer *t = (transfer *)(void *)owner;
        hist_add(&h->lag, clock_now_ns() - h->ready_ns);
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
    for (int i = 0; i < n && rc == CURLM_OK; i++)
        rc = curl_multi_socket_action(h->multi, events[i].data.fd, actions_of(events[i].events),
                                      &running);
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
    CURLMcode rc = move_bytes(h, events, n);
    finish_ended(h);
    if (h->check_ns <= clock_now_ns())
        finish_overdue(h);
    if (rc != CURLM_OK)
        return err_set(err, SNAP_E_NET, "libcurl failed: %s", curl_multi_strerror(rc));
    return SNAP_OK;
}
