/* http.h - an HTTP client: many transfers at once on one thread. Only base/http.c and
 * base/http_url.c call libcurl.
 *
 * An engine owns connections, which stay open so that later transfers to the same server can use
 * them. The caller starts transfers and then calls http_step() repeatedly, which moves data and
 * runs the callbacks:
 *
 *   http_start()  ->  on_body(), any number of times as bytes arrive  ->  on_done(), once
 *
 * on_done() may start further transfers; on_body() may not. An engine and its callbacks belong to
 * one thread. Engines of different threads share nothing. The program must ignore SIGPIPE.
 *
 * Only http and https are supported. Proxies and the file of trusted certificates (CURL_CA_BUNDLE,
 * SSL_CERT_FILE) are taken from the environment. No proxy is used for localhost and loopback
 * addresses. Credentials inside a URL are refused, because they would appear in messages. A
 * redirect from https to http is not followed.
 *
 * A POST over plain HTTP without a proxy is sent, and its response read, without libcurl, which
 * only makes the connection (http_plain.h). That costs less for each event of a stream, and the
 * kernel states when the bytes arrived. A well-formed response gives the same result. Some
 * malformed ones that libcurl accepts are refused, for example two different values of
 * Content-Length. */
#ifndef SNAPMLA_BASE_HTTP_H
#define SNAPMLA_BASE_HTTP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct http http;

typedef enum {
    HTTP_COMPLETE,    /* a complete response with any status */
    HTTP_UNREACHABLE, /* no connection: name, route, refused, connect timeout; a retry may help */
    HTTP_SILENT,      /* no byte arrived for silence_s; a retry may help */
    HTTP_LATE,        /* not complete after deadline_s, even if bytes arrived; a retry may help */
    HTTP_BROKEN,      /* the connection or its TLS handshake failed before the response was
                         complete; a retry may help */
    HTTP_TOO_LARGE,   /* the body exceeds body_limit, or the headers (with those of redirects) 256
                         KiB */
    HTTP_STOPPED,     /* on_body() returned false */
    HTTP_REFUSED,     /* another failure, e.g. certificate, protocol, too many redirects; a retry
                         does not help */
} http_outcome;

typedef struct {
    http_outcome outcome; /* HTTP_COMPLETE while on_body() is called */
    int status;           /* 200, 404, ...; 0 = no response arrived */
    const char *type;     /* Content-Type as sent; "" = none */
    const char *location; /* absolute target of a redirect that was not followed; "" = none */
    const char *etag;     /* ETag as sent; "" = none */
    int64_t first_byte;   /* from Content-Range: offset of the body in the file; -1 = not stated */
    double retry_after_s; /* Retry-After (seconds or date) as seconds from now; -1 = absent, or in
                             on_body() */
    const char *message;  /* why the transfer is not complete; "" if it is */
    const void *source;   /* for http_response_header(); NULL = no headers */
} http_response;          /* strings are valid during the callback only */

/* The value of a header of the last response, as sent; "" = absent. @name matches in upper or lower
 * case. Valid until the next call, and only during the callback. */
const char *http_response_header(const http_response *res, const char *name);

/* Receives the next @n > 0 bytes of the body. Returning false ends the transfer: HTTP_STOPPED. */
typedef bool (*http_body_fn)(void *ctx, const http_response *head, const char *bytes, size_t n);
typedef void (*http_done_fn)(void *ctx, const http_response *res);

typedef struct {
    const char *url;
    const char *const *headers; /* "Name: value", copied */
    int n_headers;
    const char *const *secrets; /* headers that only this URL's host may receive, copied; a request
                                   with secrets follows no redirect */
    int n_secrets;
    const void *body;         /* NULL = GET, else POST; borrowed until on_done() or http_free() */
    size_t body_len;          /* bytes */
    int max_redirects;        /* applies to GET only; 0 = a 3xx response is not followed */
    double connect_timeout_s; /* for name lookup, TCP and TLS together, before any redirect; 0 = 30;
                                 the connections that redirects need have 300 s each */
    double silence_s;         /* longest wait without a byte; 0 = 600 */
    double deadline_s;        /* longest time from start to end; 0 = none */
    size_t body_limit;        /* largest body in bytes; 0 = 1 GiB; not checked if on_body is NULL */
    http_body_fn on_body;     /* may be NULL: the body is discarded */
    http_done_fn on_done;
    void *ctx;
} http_request;

/**
 * http_create - create an engine
 *
 * @out:         the caller owns it and releases it with http_free()
 * @connections: largest number of idle connections kept open; more transfers may run
 * @cancel:      a signal handler sets it to make http_step() return; may be NULL; borrowed
 *
 * SNAP_E_NOMEM, SNAP_E_IO.
 */
snap_status http_create(http **out, int connections, const volatile sig_atomic_t *cancel,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Ends running transfers without calling on_done(). NULL is allowed. */
void http_free(http *h);

/* Ends running transfers without calling on_done(). Not for callbacks. */
void http_abandon(http *h);

/* SNAP_E_USAGE unless @url is an absolute http or https URL without user, password and fragment.
 * SNAP_E_NOMEM. */
snap_status http_check_url(const char *url, snap_err *err) SNAP_CHECK_RESULT;

/* True if what is sent to @url cannot be read on the way: the URL is https, or its host is this
 * machine (127.0.0.0/8, ::1, "localhost" and names that end in ".localhost"). False, too, for a
 * text that is not a URL. Memory that is exhausted is noted as a fault (fault.h). */
bool http_is_private(const char *url);

/* Starts a transfer. SNAP_E_USAGE if http_check_url() refuses the URL, or if a header contains a
 * line break or has no colon; SNAP_E_NOMEM. on_done() is not called for a transfer that did not
 * start. */
snap_status http_start(http *h, const http_request *req, snap_err *err) SNAP_CHECK_RESULT;

/* Waits for events, sends and receives what is possible and runs the callbacks. Waits until
 * @until_ns (CLOCK_MONOTONIC) at most, rounded up to a millisecond, and never more than 100 ms.
 * SNAP_E_CANCELLED if *cancel is set when the function is called; SNAP_E_NET if libcurl itself
 * fails. */
snap_status http_step(http *h, int64_t until_ns, snap_err *err) SNAP_CHECK_RESULT;

/* For callbacks: the event that is handled now was not there before this time: no byte of it had
 * arrived, or the time limit had not passed. CLOCK_MONOTONIC, ns. The exception is an engine that
 * was waiting: this is then the time at which it woke up or, if that is earlier, the first known
 * arrival that it handled since. The first bytes arrived before that, because the operating
 * system needs time to wake the engine. */
int64_t http_ready_ns(const http *h);

/* For callbacks: the time when the bytes were received, in on_done() the last bytes or the failure.
 * CLOCK_MONOTONIC, ns. */
int64_t http_received_ns(const http *h);

/* For callbacks: whether http_received_ns() is the time at which the kernel received the last of
 * these bytes. Otherwise it is the time at which this program read them. */
bool http_arrival_known(const http *h);

int http_running(const http *h); /* transfers started and not done */

/* Statistics of an engine. The lag of an event is the time from when it could have been handled
 * (bytes had arrived, or a time limit had passed) until its callback, for example because other
 * callbacks were running. If the time of arrival is not known, bytes that arrive while the engine
 * is busy are counted from the engine's last poll of the sockets, so the lag is an upper bound. */
typedef struct {
    int64_t transfers;   /* done */
    int64_t connections; /* opened by these transfers; fewer than `transfers` if some were reused */
    int64_t lag_p50_ns, lag_p99_ns, lag_max_ns; /* -1 before the first event */
} http_stats;

http_stats http_stats_of(const http *h);

#endif
