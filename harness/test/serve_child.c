#include "harness/test/serve_child.h"

#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "generator/test/tiny_model.h"

enum { kContext = 8192 };

/* Gives the model a context in which an answer takes long. */
static void lengthen_context(const char *dir) {
    char path[128];
    buf text = {0};
    (void)snprintf(path, sizeof path, "%s/config.json", dir);
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
    js *config = js_parse(text.data, text.len, path, NULL);
    CU_ASSERT_FATAL(js_set_int(config, "max_position_embeddings", kContext));
    CU_ASSERT_EQUAL_FATAL(js_write_file(config, path, NULL), SNAP_OK);
    js_free(config);
    buf_release(&text);
}

void serve_child_make(serve_child *c) {
    *c = (serve_child){0};
    tiny_folder(c->dir, "v3");
    lengthen_context(c->dir);
}

void serve_child_remove(serve_child *c) {
    tiny_remove(c->dir);
}

/* ---- the child ---- */

static volatile sig_atomic_t cancelled;

static void on_signal(int number) {
    (void)number;
    cancelled = 1;
}

static void tell_url(void *ctx, const char *url) {
    const int *fd = ctx;
    if (write(*fd, url, strlen(url)) < 0)
        _exit(9);
    (void)close(*fd);
}

static int serve(const serve_child *c, serve_options o, int sequences, int fd) {
    local_model m;
    snap_err err = {0};
    local_options how = {.context = kContext,
                         .sequences = sequences,
                         .threads = 1,
                         .layout = c->layout,
                         .precision = c->precision,
                         .cache_bytes = 1 << 26,
                         .chat_template = c->chat_template};
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGPIPE, SIG_IGN);
    o.cancel = &cancelled;
    o.ready = tell_url;
    o.ctx = &fd;
    snap_status st = local_open(&m, c->dir, &how, &err);
    if (st == SNAP_OK)
        st = serve_run(&m, &o, &err);
    if (st != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    local_close(&m);
    return st == SNAP_OK ? 0 : 1;
}

void serve_child_start(serve_child *c, const serve_options *given, int sequences) {
    int ends[2];
    serve_options o = *given;
    o.host = "127.0.0.1";
    o.model = o.model ? o.model : "tiny";
    o.version = "1.2.3";
    o.max_body = o.max_body ? o.max_body : 1 << 20;
    o.max_queue = o.max_queue ? o.max_queue : 100;
    o.drain_s = o.drain_s > 0 ? o.drain_s : 60;
    o.receive_s = o.receive_s > 0 ? o.receive_s : 120;
    o.max_connections = o.max_connections ? o.max_connections : 1000;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    (void)fflush(NULL);
    c->pid = fork();
    CU_ASSERT_FATAL(c->pid >= 0);
    if (c->pid == 0) {
        struct rlimit files = {(rlim_t)c->files, (rlim_t)c->files};
        if (c->files && setrlimit(RLIMIT_NOFILE, &files) != 0)
            _exit(9);
        (void)close(ends[0]);
        exit(serve(c, o, sequences, ends[1]));
    }
    (void)close(ends[1]);
    ssize_t n = read(ends[0], c->url, sizeof c->url - 1);
    CU_ASSERT_FATAL(n > 0);
    c->url[n] = '\0';
    (void)close(ends[0]);
    c->port = atoi(strrchr(c->url, ':') + 1);
}

void serve_child_stop(serve_child *c) {
    int status = 0;
    CU_ASSERT_EQUAL(kill(c->pid, SIGTERM), 0);
    CU_ASSERT_EQUAL(waitpid(c->pid, &status, 0), c->pid);
    CU_ASSERT_TRUE(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

/* ---- the client ---- */

int serve_connect_from(const serve_child *c, unsigned address) {
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)c->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = 60};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CU_ASSERT_FATAL(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

int serve_connect(const serve_child *c) {
    return serve_connect_from(c, INADDR_LOOPBACK);
}

void serve_send(int fd, const char *path, const char *headers, const char *body) {
    buf b = {0};
    (void)buf_printf(&b, "%s %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n%s",
                     body ? "POST" : "GET", path, headers ? headers : "");
    if (body)
        (void)buf_printf(&b, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    else
        (void)buf_puts(&b, "\r\n");
    CU_ASSERT_EQUAL(send(fd, buf_str(&b), b.len, MSG_NOSIGNAL), (ssize_t)b.len);
    buf_release(&b);
}

/* Takes the pieces of a chunked transfer together. Returns whether the last one is complete. */
static bool unchunk(const char *s, buf *out) {
    for (;;) {
        const char *from = strstr(s, "\r\n");
        size_t n = strtoul(s, NULL, 16);
        if (!from)
            return false;
        from += 2;
        if (!n)
            return strncmp(from, "\r\n", 2) == 0;
        size_t left = strlen(from);
        (void)buf_append(out, from, n < left ? n : left);
        if (left < n + 2)
            return false;
        s = from + n + 2;
    }
}

/* Splits what was read into head and body. Returns whether the answer is complete, if it announces
 * its end. */
static bool take_reply(const buf *all, bool head, serve_reply *r) {
    const char *text = buf_str(all), *end = strstr(text, "\r\n\r\n");
    *r = (serve_reply){0};
    if (!end)
        return false;
    (void)buf_append(&r->head, text, (size_t)(end - text) + 2);
    r->status = atoi(text + strlen("HTTP/1.1 "));
    if (head)
        return true;
    if (strcasestr(buf_str(&r->head), "transfer-encoding: chunked"))
        return unchunk(end + 4, &r->body);
    (void)buf_puts(&r->body, end + 4);
    const char *length = strcasestr(buf_str(&r->head), "content-length: ");
    return length && r->body.len >= strtoul(strchr(length, ' '), NULL, 10);
}

void serve_read_one(int fd, bool head, serve_reply *r) {
    char piece[1 << 14];
    buf all = {0};
    ssize_t n;
    *r = (serve_reply){0};
    do {
        serve_reply_release(r);
        n = recv(fd, piece, sizeof piece, 0);
        if (n > 0)
            (void)buf_append(&all, piece, (size_t)n);
    } while (!take_reply(&all, head, r) && n > 0);
    (void)close(fd);
    buf_release(&all);
}

void serve_read_events(int fd, int events, serve_reply *r) {
    static const char begin[] = "data: {";
    char piece[1 << 14];
    buf all = {0};
    size_t seen = 0;
    ssize_t n;
    int begun = 0;
    while (begun <= events && (n = recv(fd, piece, sizeof piece, 0)) > 0) {
        (void)buf_append(&all, piece, (size_t)n);
        for (const char *at; (at = strstr(buf_str(&all) + seen, begin)); begun++)
            seen = (size_t)(at - buf_str(&all)) + strlen(begin);
    }
    (void)close(fd);
    serve_reply whole;
    (void)take_reply(&all, false, &whole);
    const char *from = buf_str(&whole.body), *at = from;
    for (int i = 0; i < events && strstr(at, "\n\n"); i++)
        at = strstr(at, "\n\n") + 2;
    *r = (serve_reply){.status = whole.status, .head = whole.head};
    (void)buf_append(&r->body, from, (size_t)(at - from));
    buf_release(&whole.body);
    buf_release(&all);
}

void serve_read(int fd, serve_reply *r) {
    char piece[1 << 14];
    buf all = {0};
    ssize_t n;
    while ((n = recv(fd, piece, sizeof piece, 0)) > 0)
        (void)buf_append(&all, piece, (size_t)n);
    (void)close(fd);
    (void)take_reply(&all, false, r);
    buf_release(&all);
}

void serve_reply_release(serve_reply *r) {
    buf_release(&r->head);
    buf_release(&r->body);
}

void serve_ask(const serve_child *c, const char *path, const char *headers, const char *body,
               serve_reply *r) {
    int fd = serve_connect(c);
    CU_ASSERT_FATAL(fd >= 0);
    serve_send(fd, path, headers, body);
    serve_read(fd, r);
}

double serve_metric(const serve_child *c, const char *name) {
    serve_reply r;
    char line[128];
    serve_ask(c, "/metrics", NULL, NULL, &r);
    (void)snprintf(line, sizeof line, "\n%s", name);
    const char *at = strstr(buf_str(&r.body), line);
    at = at ? strchr(at, '}') : NULL;
    double x = at ? strtod(at + 1, NULL) : -1;
    serve_reply_release(&r);
    return x;
}

bool serve_await(const serve_child *c, const char *name, double value) {
    for (int i = 0; i < 6000; i++) {
        if (serve_metric(c, name) == value)
            return true;
        clock_sleep_ns(10000000);
    }
    return false;
}
