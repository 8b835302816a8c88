/* http.h - HTTP transfers, many at once on one thread. The only caller of libcurl.
 *
 * An engine owns connections, which stay open from one transfer to the next to the same server.
 * The caller starts transfers and steps the engine, which moves bytes and calls back:
 *
 *   http_start()  ->  on_body(), as bytes come, any number of times  ->  on_done(), once
 *
 * on_done() may start further transfers, on_body() may not. An engine and its callbacks belong to
 * one thread; engines of several threads don't share anything. The program must ignore SIGPIPE.
 *
 * Only http and https are spoken. Proxies and trusted certificates (CURL_CA_BUNDLE, SSL_CERT_FILE)
 * are taken from the environment as curl(1) takes them. Credentials inside a URL are refused: they
 * would end up in messages. */
#ifndef SNAPMLA_BASE_HTTP_H
#define SNAPMLA_BASE_HTTP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct http http;

typedef enum {
    HTTP_COMPLETE,    /* an answer of any status, whole */
    HTTP_UNREACHABLE, /* no connection: name, route, refusal, connect timeout; may pass */
    HTTP_SILENT,      /* no byte came for silence_s; may pass */
    HTTP_LATE,        /* not whole after deadline_s, however busy; may pass */
    HTTP_BROKEN,      /* the connection ended before the answer did; may pass */
    HTTP_TOO_LARGE,   /* the body passed body_limit, or the headers theirs (256 KiB) */
    HTTP_STOPPED,     /* on_body() returned false */
    HTTP_REFUSED,     /* trying again can't help: certificate, protocol, too many redirects */
} http_outcome;

typedef struct {
    http_outcome outcome; /* HTTP_COMPLETE while on_body() is called */
    int status;           /* 200, 404, ...; 0 = no answer came */
    const char *type;     /* Content-Type as sent; "" = none */
    const char *location; /* where an unfollowed redirect points, absolute; "" = nowhere */
    const char *etag;     /* ETag as sent; "" = none */
    int64_t first_byte;   /* where in the file the body begins, of a 206; -1 = not stated */
    double retry_after_s; /* Retry-After, seconds or date, from now; -1 = absent */
    const char *message;  /* why it is not complete; "" if it is */
    const void *source;   /* for http_response_header(); NULL = there are none */
} http_response;          /* strings are valid during the callback only */

/* A header of the answer, in any case of letters, as sent; "" = none. Valid until the next call and
 * during the callback only. */
const char *http_response_header(const http_response *res, const char *name);

/* Takes the next @n > 0 bytes of the body; false ends the transfer as HTTP_STOPPED. */
typedef bool (*http_body_fn)(void *ctx, const http_response *head, const char *bytes, size_t n);
typedef void (*http_done_fn)(void *ctx, const http_response *res);

typedef struct {
    const char *url;
    const char *const *headers; /* "Name: value", copied */
    int n_headers;
    const void *body;         /* NULL = GET, else POST; borrowed until on_done() */
    size_t body_len;          /* bytes */
    int max_redirects;        /* followed by a GET only; 0 = none, the 3xx is the answer */
    double connect_timeout_s; /* name, TCP and TLS together; 0 = 30 */
    double silence_s;         /* longest wait without a byte; 0 = 600 */
    double deadline_s;        /* longest time from start to end; 0 = none */
    size_t body_limit;        /* bytes of body at most; 0 = 1 GiB */
    http_body_fn on_body;     /* may be NULL: the body is dropped */
    http_done_fn on_done;
    void *ctx;
} http_request;

/**
 * http_create - an engine
 *
 * @out:         caller owns it, release with http_free()
 * @connections: kept open at most; running transfers may be more
 * @cancel:      set from a signal handler to make http_step() return; may be NULL; borrowed
 *
 * SNAP_E_NOMEM.
 */
snap_status http_create(http **out, int connections, const volatile sig_atomic_t *cancel,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Drops running transfers without calling on_done(). NULL is allowed. */
void http_free(http *h);

/* SNAP_E_USAGE unless @url is absolute, http or https, without user, password or fragment. */
snap_status http_check_url(const char *url, snap_err *err) SNAP_CHECK_RESULT;

/* Begins a transfer. SNAP_E_USAGE for a URL as above or a header that would break the request;
 * SNAP_E_NOMEM. on_done() is not called for a transfer that did not begin. */
snap_status http_start(http *h, const http_request *req, snap_err *err) SNAP_CHECK_RESULT;

/* Moves what can be moved and calls back; returns after the first progress, or at @until_ns
 * (CLOCK_MONOTONIC), or after 100 ms. SNAP_E_CANCELLED when *cancel is set; SNAP_E_NET when
 * libcurl itself fails. */
snap_status http_step(http *h, int64_t until_ns, snap_err *err) SNAP_CHECK_RESULT;

int http_running(const http *h); /* transfers begun and not done */

/* How an engine has done so far. The lag of an event is the time from when its bytes could be read,
 * or its time limit was up, until its callback: at most so long, because bytes that came while the
 * engine was busy are counted from its last look. It is what this side adds to the times that it
 * measures, mostly the work of the other callbacks. */
typedef struct {
    int64_t transfers;              /* done */
    int64_t connections;            /* opened for them: fewer where they were used again */
    int64_t lag_p99_ns, lag_max_ns; /* -1 before the first event */
} http_stats;

http_stats http_stats_of(const http *h);

#endif
