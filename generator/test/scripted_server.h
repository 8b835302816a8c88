/* scripted_server.h - an HTTP/1.1 server on the loopback that answers by a script.
 *
 * One thread accepts connections. One thread for each connection reads requests and sends the
 * scripted reply to the n-th request, byte for byte. So every way in which a server can fail can be
 * written as a row of a table. The requests are kept, and the test can read them after
 * server_stop(). */
#ifndef SNAPMLA_GENERATOR_TEST_SCRIPTED_SERVER_H
#define SNAPMLA_GENERATOR_TEST_SCRIPTED_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    END_KEEP,  /* the answer is complete; the connection stays open */
    END_CLOSE, /* the connection is closed after the reply */
    END_RESET, /* the connection is reset (RST) after the reply */
    END_STALL, /* the connection is kept open and silent until the client leaves */
} reply_end;

/* One answer. Zero fields mean the default: 200, application/json, a Content-Length. */
typedef struct {
    int status;
    const char *type;    /* "" = no Content-Type */
    const char *headers; /* further header lines, each with its \r\n */
    const char *body;
    const char *raw;  /* if set, exactly these bytes are sent, and the members above are ignored */
    bool chunked;     /* Transfer-Encoding: chunked, one chunk per write */
    int step;         /* bytes per write; 0 = all at once */
    int64_t pause_ns; /* pause before every write of the body after the first */
    size_t fill;      /* this many bytes 'x' after the body */
    size_t cut;       /* > 0: send only this many bytes of the body, then `end` */
    int gather;       /* > 0: wait until this many requests have been open at the same time, but at
                         most 30 s */
    bool then_tls;    /* after this reply the connection uses TLS, as after a proxy's CONNECT */
    bool forever;     /* repeats the body until the client leaves; requires chunked */
    reply_end end;
} reply;

typedef struct {
    char *head, *body; /* request line and headers; JSON; NUL-terminated */
} scripted_request;

typedef struct server server;

/* Answers request number i with replies[i]; further requests with the last reply. @replies is
 * borrowed. NULL if the loopback can't be used or memory is short. */
server *server_start(const reply *replies, int n_replies);

typedef struct ssl_ctx_st SSL_CTX; /* the same as in OpenSSL's headers */

typedef struct {
    bool ipv6;
    SSL_CTX *tls;   /* NULL = none; borrowed */
    bool tls_later; /* plain until a reply has then_tls */
} server_options;

server *server_start_with(const reply *replies, int n_replies, server_options opt);

/* The server's URL, for example "http://127.0.0.1:PORT"; https with `tls`, unless `tls_later`; host
 * [::1] with `ipv6`. */
const char *server_url(const server *s);

/* Closes all connections and joins all threads. server_free() does this, too. */
void server_stop(server *s);
void server_free(server *s);

/* Valid after server_stop(). */
int server_requests(const server *s);
int server_connections(const server *s);
int server_most_at_once(const server *s);
const scripted_request *server_request(const server *s, int i);

/* A chat completion as a string literal: whole, as JSON, or streamed, as events. */
#define CHAT_WHOLE(text, finish)                                                                   \
    "{\"id\":\"c\",\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":"          \
    "{\"role\":\"assistant\",\"content\":\"" text "\"},\"finish_reason\":\"" finish "\"}],"        \
    "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10}}"
#define CHAT_DELTA(delta)                                                                          \
    "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":" delta       \
    ",\"finish_reason\":null}]}\n\n"
#define CHAT_FINISH(finish)                                                                        \
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" finish "\"}]}\n\n"
#define CHAT_USAGE                                                                                 \
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n"
#define CHAT_STREAM(a, b)                                                                          \
    CHAT_DELTA("{\"role\":\"assistant\",\"content\":\"\"}")                                        \
    CHAT_DELTA("{\"content\":\"" a "\"}")                                                          \
    CHAT_DELTA("{\"content\":\"" b "\"}") CHAT_FINISH("stop") CHAT_USAGE "data: [DONE]\n\n"

#endif
