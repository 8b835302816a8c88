/* serve_child.h - a server in a process of its own, and a client that speaks to it in raw bytes. */
#ifndef SNAPMLA_HARNESS_TEST_SERVE_CHILD_H
#define SNAPMLA_HARNESS_TEST_SERVE_CHILD_H

#include <sys/types.h>

#include "harness/serve/serve.h"

typedef struct {
    char dir[64];              /* the checkpoint */
    const char *chat_template; /* NULL = the checkpoint's own */
    const char *layout;        /* `layout` and `precision` have the meaning that they have in
                                  local_options */
    const char *precision;
    char url[160];
    int port;
    int files; /* limit on the open files of a server that is started; 0 = the limit of the test
                  process */
    pid_t pid;
} serve_child;

/* Writes a tiny checkpoint with a tokenizer, and sets all members. */
void serve_child_make(serve_child *c);

/* Starts a server in a child process. Limits and times of @o that are 0 get values for tests.
 * @sequences becomes local_options.sequences. */
void serve_child_start(serve_child *c, const serve_options *o, int sequences);

/* Sends SIGTERM. The test fails unless the server then ends with exit code 0. */
void serve_child_stop(serve_child *c);
void serve_child_remove(serve_child *c); /* the checkpoint */

/* A connection; -1 if it is refused. Reads and writes fail after 60 seconds. */
int serve_connect(const serve_child *c);

/* serve_connect() from the local address @address, in host byte order, such as INADDR_LOOPBACK +
 * 1. */
int serve_connect_from(const serve_child *c, unsigned address);

/* Sends a request with "Connection: close". @body may be NULL: then it is a GET. @headers: more
 * header lines, each with \r\n; may be NULL. */
void serve_send(int fd, const char *path, const char *headers, const char *body);

/* An answer, read until the server closes the connection. */
typedef struct {
    int status;     /* 0 = there was none */
    buf head, body; /* the body without the frames of a chunked transfer */
} serve_reply;

void serve_read(int fd, serve_reply *r);

/* Like serve_read(), but only the first @events events of a stream are read. Then the connection is
 * closed. There are fewer if the stream ends before. */
void serve_read_events(int fd, int events, serve_reply *r);

/* Like serve_read(), but the answer ends where its headers say (Content-Length or the last chunk),
 * because the server may keep the connection open. @head: it is the answer to a HEAD request, so it
 * has no body. */
void serve_read_one(int fd, bool head, serve_reply *r);
void serve_reply_release(serve_reply *r);

/* Calls serve_connect(), serve_send() and serve_read() in turn. */
void serve_ask(const serve_child *c, const char *path, const char *headers, const char *body,
               serve_reply *r);

/* The value of a metric; -1 = absent. @name includes the labels before the model's, if any. */
double serve_metric(const serve_child *c, const char *name);

/* Waits until a metric has a value, at most a minute. */
bool serve_await(const serve_child *c, const char *name, double value);

#endif
