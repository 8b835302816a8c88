/* http_plain.h - one request and its response on a connection without encryption and proxy.
 *
 * base/http.c makes connections with libcurl, and uses this for what follows. A read of an event
 * stream then costs one system call and no timers, and it has the time at which the kernel received
 * the bytes. */
#ifndef SNAPMLA_BASE_HTTP_PLAIN_H
#define SNAPMLA_BASE_HTTP_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/http.h"
#include "base/http_answer.h"
#include "base/http_pool.h"
#include "base/http_url.h"

typedef struct {
    char *origin;     /* "host:port" of the server, owned */
    buf head;         /* request line and headers */
    const char *body; /* borrowed */
    size_t body_len;
    size_t sent;      /* bytes of head and body */
    bool output_ends; /* sending failed, but the server may have sent a response before */
    http_conn *conn;  /* NULL = none; closed by plain_release() */
    http_answer answer;
    char why[160]; /* why the connection failed, "" = it did not */
} plain_exchange;

/* Whether this file can send the request: it is a POST, and no header of the caller concerns its
 * length, its transfer encoding or the connection. */
bool plain_can_send(const http_request *req);

/* Writes the request line and headers as libcurl does. The body is borrowed. False if memory is
 * exhausted. plain_release() frees what @x owns. */
bool plain_prepare(plain_exchange *x, const http_request *req, const http_url_parts *url);
void plain_release(plain_exchange *x);

/* What plain_receive() has received. */
typedef struct {
    bool came;          /* bytes or the end of the connection have come */
    bool is_full;       /* the buffer was too small for all bytes, or just large enough */
    size_t n_body;      /* bytes of the body, at the front of the buffer */
    int64_t arrived_ns; /* when the last byte arrived, by CLOCK_REALTIME; 0 = unknown */
} plain_input;

/* Sends what can be sent without blocking. The caller calls it again when the socket can take more.
 * plain_receive() reports a failure. */
void plain_send(plain_exchange *x);

/* Receives what has come, at most @n bytes. */
answer_state plain_receive(plain_exchange *x, char *bytes, size_t n, plain_input *in);

/* Whether a connection that had been idle failed before any byte of a response. The server most
 * likely closed it before it read the request, so the request may be sent again on a new
 * connection. libcurl does the same. */
bool plain_may_retry(const plain_exchange *x);

/* Gives up the connection and what has come of a response, to begin again. */
void plain_restart(plain_exchange *x);

/* The exchange has ended: keeps the connection for the next one if it can be used, otherwise closes
 * it. */
void plain_end(plain_exchange *x);

#endif
