/* http_parts.h - what the files that call libmicrohttpd share. Private to http.c and
 * http_requests.c. */
#ifndef SNAPMLA_HARNESS_SERVE_HTTP_PARTS_H
#define SNAPMLA_HARNESS_SERVE_HTTP_PARTS_H

#include <microhttpd.h>

#include "harness/serve/serve_parts.h"

/* An open connection. */
typedef struct peer {
    struct peer *next, *prev; /* list of idle connections; the first has been idle longest */
    struct MHD_Connection *connection;
    exchange *x; /* the request that has begun; NULL = none */
    int fd;
    serve_client client;
    bool idle;        /* no complete request is in progress */
    int64_t since_ns; /* when it became idle */
} peer;

typedef struct {
    server s;
    struct MHD_Daemon *daemon;
    int events, wake; /* epoll; eventfd */
    peer *first, *last;
    int64_t arriving; /* bytes of bodies that are not complete */
} http;

/* ---- http_requests.c ---- */

/* Callbacks of the library. The first argument of each is a pointer to the http. */
void http_on_connection(void *cls, struct MHD_Connection *c, void **context,
                        enum MHD_ConnectionNotificationCode what);
enum MHD_Result http_on_request(void *cls, struct MHD_Connection *c, const char *url,
                                const char *method, const char *version, const char *body,
                                size_t *n, void **context);
void http_on_completed(void *cls, struct MHD_Connection *c, void **context,
                       enum MHD_RequestTerminationCode why);

/* Makes the library close an idle connection. */
void http_hang_up(http *h, peer *p);

/* Resumes the connection of an exchange if it is suspended. */
void http_resume(exchange *x);

/* Ends an exchange whose client has left: cancels its work and makes the library close its
 * connection. */
void http_lose(exchange *x);

#endif
