/* scripted_server.h - an HTTP/1.1 server on the loopback that answers by script.
 *
 * A thread accepts, a thread a connection reads requests and sends what the script says for the
 * n-th of them, byte for byte: so every way in which servers fail can be written down in a table.
 * Everything that was asked is kept for the test to read after server_stop(). */
#ifndef SNAPMLA_GENERATOR_TEST_SCRIPTED_SERVER_H
#define SNAPMLA_GENERATOR_TEST_SCRIPTED_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    END_KEEP,  /* the answer is whole; the connection stays for the next request */
    END_CLOSE, /* closed after what was sent */
    END_RESET, /* RST after what was sent */
    END_STALL, /* kept open and silent until the client leaves */
} reply_end;

/* One answer. Zero fields are the plain case: 200, application/json, a Content-Length. */
typedef struct {
    int status;
    const char *type;    /* "" = no Content-Type */
    const char *headers; /* further header lines, each with its \r\n */
    const char *body;
    const char *raw;  /* instead of all above: these bytes */
    bool chunked;     /* Transfer-Encoding: chunked, one chunk a write */
    int step;         /* bytes a write; 0 = all at once */
    int64_t pause_ns; /* before every write after the first */
    size_t fill;      /* so many bytes 'x' after the body */
    size_t cut;       /* > 0: only so many bytes of the body are sent, then `end` */
    int gather;       /* > 0: wait until so many requests are being answered at once (30 s) */
    bool then_tls;    /* after it the connection speaks TLS: what a proxy's CONNECT leads to */
    bool forever;     /* the body again and again, until the client leaves; wants chunked */
    reply_end end;
} reply;

typedef struct {
    char *head, *body; /* request line and headers; JSON; NUL-terminated */
} asked;

typedef struct server server;

/* Answers request number i with replies[i], those after the last with the last. @replies is
 * borrowed. NULL when the loopback can't be used. */
server *server_start(const reply *replies, int n_replies);

typedef struct ssl_ctx_st SSL_CTX; /* as in OpenSSL's headers */

typedef struct {
    bool ipv6;
    SSL_CTX *tls;   /* NULL = none; borrowed */
    bool tls_later; /* plain until a reply says then_tls */
} server_options;

server *server_start_with(const reply *replies, int n_replies, server_options opt);

/* "http://127.0.0.1:PORT", "https://...", "http://[::1]:PORT" */
const char *server_url(const server *s);

/* Closes all connections and joins all threads; server_free() does, too. */
void server_stop(server *s);
void server_free(server *s);

/* After server_stop(). */
int server_requests(const server *s);
int server_connections(const server *s);
int server_most_at_once(const server *s);
const asked *server_asked(const server *s, int i);

/* A chat completion and a stream of one, as JSON and as events; static strings. */
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
