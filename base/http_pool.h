/* http_pool.h - the plain TCP connections that an HTTP client reads and writes without libcurl.
 *
 * A pool owns connections. Each is either in use by one transfer or idle. All are registered for
 * input in the engine's epoll instance, with the descriptor as data. An idle connection is
 * registered as well, so the engine notices that the server has closed it, and closes it, too. */
#ifndef SNAPMLA_BASE_HTTP_POOL_H
#define SNAPMLA_BASE_HTTP_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct http_pool http_pool;
typedef struct http_conn http_conn;

/* @poll: the epoll instance, borrowed. @idle_max: largest number of idle connections. NULL if
 * memory is exhausted. */
http_pool *http_pool_create(int poll, int idle_max);

/* Closes all connections. NULL is allowed. */
void http_pool_free(http_pool *p);

/* Returns an idle connection to @origin ("host:port"), or NULL if there is none. The connection is
 * then in use. @user: what http_conn_user() returns from now on, not NULL. */
http_conn *http_pool_take(http_pool *p, const char *origin, void *user);

/* Adds a new connection to the pool, in use by @user. The pool owns @fd, a non-blocking socket, and
 * also closes it if this function fails: NULL with errno set. */
http_conn *http_pool_add(http_pool *p, const char *origin, int fd, void *user);

/* Makes a connection idle. If there are then more than idle_max idle ones, closes the one that has
 * been idle for the longest time. */
void http_conn_keep(http_conn *c);

void http_conn_close(http_conn *c);

/* The connection with this descriptor; NULL if the pool has none. */
http_conn *http_pool_find(const http_pool *p, int fd);

void *http_conn_user(const http_conn *c); /* NULL = the connection is idle */

/* Whether an earlier request was sent on the connection. */
bool http_conn_is_reused(const http_conn *c);

/* Sends as much as possible of @head followed by @body without blocking, beginning with byte @from
 * of the two together. Returns the number of bytes; -1 with errno set. */
ssize_t http_conn_send(http_conn *c, const char *head, size_t n_head, const char *body,
                       size_t n_body, size_t from);

/* Chooses whether the epoll instance also reports that the socket can take bytes. In case of
 * failure, false with errno set. */
bool http_conn_watch_output(http_conn *c, bool on);

/* Receives what has arrived, at most @n bytes, without blocking. *arrived_ns: when the last of
 * them arrived at this host (CLOCK_REALTIME, by the kernel); 0 = unknown. Returns what recv()
 * returns. */
ssize_t http_conn_receive(http_conn *c, char *bytes, size_t n, int64_t *arrived_ns);

#endif
