/* http_plain.h - one request and its response on a connection without encryption or a proxy.
 *
 * base/http.c makes the connection with libcurl. Then it sends and receives with these functions
 * instead of libcurl. So a read of an event stream costs one system call and sets no timer, and the
 * time at which the kernel received the bytes is known. */
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
    size_t sent;      /* bytes of head and body that were sent */
    bool output_ends; /* sending failed. The server may still have sent a response before that */
    http_conn *conn;  /* NULL = none; closed by plain_release() */
    http_answer answer;
    char why[160]; /* why the connection failed, "" = it did not */
} plain_exchange;

/* Whether these functions can send the request: it is a POST, and the caller sets none of the
 * headers Content-Length, Transfer-Encoding, Connection, Expect, Upgrade and TE. */
bool plain_can_send(const http_request *req);

/* Writes the request line and headers as libcurl does. The body is borrowed. False if memory is
 * exhausted. plain_release() frees what @x owns. */
bool plain_prepare(plain_exchange *x, const http_request *req, const http_url_parts *url);
void plain_release(plain_exchange *x);

/* What plain_receive() has received. */
typedef struct {
    bool came;          /* bytes or the end of the connection have come */
    bool is_full;       /* the bytes filled the buffer, so more may be waiting */
    size_t n_body;      /* number of bytes of the body; they are at the front of the buffer */
    int64_t arrived_ns; /* when the last byte arrived, by CLOCK_REALTIME; 0 = unknown */
} plain_input;

/* Sends as much of the request as is possible without blocking. To be called again when the socket
 * can take more. After a failure, plain_receive() still reads what the server had sent before, and
 * then returns ANSWER_BROKEN. */
void plain_send(plain_exchange *x);

/* Receives what has arrived, at most @n bytes, without blocking. */
answer_state plain_receive(plain_exchange *x, char *bytes, size_t n, plain_input *in);

/* Whether a connection that had been idle failed before any byte of a response. The server most
 * likely closed it before it read the request, so the request may be sent again on a new
 * connection. libcurl does the same. */
bool plain_may_retry(const plain_exchange *x);

/* Closes the connection and drops what has come of the response, so that the request can be sent
 * again. */
void plain_restart(plain_exchange *x);

/* Ends the exchange. Makes the connection idle if it can take another request, otherwise closes
 * it. */
void plain_end(plain_exchange *x);

#endif
