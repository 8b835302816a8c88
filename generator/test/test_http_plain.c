/* Tests the transfers of base/http.h that this program makes without libcurl: POST over plain HTTP.
 * A header "Connection" makes libcurl send the same request, so its results can be compared. */
#include <CUnit/CUnit.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/http.h"
#include "generator/test/scripted_server.h"

typedef struct {
    http *engine;
    buf body;
    int done;
    http_outcome outcome;
    int status;
    double retry_after_s;
    char type[80], location[120], etag[40], header[40];
    int64_t ready_ns, received_ns; /* times of the last bytes of the body */
    bool arrival_known;
    int64_t sleep_ns; /* on_done() takes this long */
} taken;

static bool on_body(void *ctx, const http_response *head, const char *bytes, size_t n) {
    taken *t = ctx;
    CU_ASSERT_TRUE(head->status > 0 && n > 0);
    (void)buf_append(&t->body, bytes, n);
    t->ready_ns = http_ready_ns(t->engine);
    t->received_ns = http_received_ns(t->engine);
    t->arrival_known = http_arrival_known(t->engine);
    CU_ASSERT(http_ready_ns(t->engine) <= t->received_ns || t->arrival_known);
    return true;
}

static void on_done(void *ctx, const http_response *res) {
    taken *t = ctx;
    t->done++;
    t->outcome = res->outcome;
    t->status = res->status;
    t->retry_after_s = res->retry_after_s;
    (void)snprintf(t->type, sizeof t->type, "%s", res->type);
    (void)snprintf(t->location, sizeof t->location, "%s", res->location);
    (void)snprintf(t->etag, sizeof t->etag, "%s", res->etag);
    (void)snprintf(t->header, sizeof t->header, "%s", http_response_header(res, "x-mark"));
    CU_ASSERT_EQUAL(res->message[0] != '\0', res->outcome != HTTP_COMPLETE);
    clock_sleep_ns(t->sleep_ns);
}

static void run(http *h) {
    while (http_running(h))
        CU_ASSERT_EQUAL_FATAL(http_step(h, INT64_MAX, NULL), SNAP_OK);
}

static const char *const by_curl[] = {"Connection: keep-alive"};

static http_request post(const char *url, bool curl, taken *t) {
    return (http_request){.url = url,
                          .headers = by_curl,
                          .n_headers = curl,
                          .body = "{}",
                          .body_len = 2,
                          .on_body = on_body,
                          .on_done = on_done,
                          .ctx = t};
}

/* Makes one transfer with its own engine and a server that has one reply. */
static taken exchange(const reply *r, bool curl) {
    taken t = {.outcome = (http_outcome)-1};
    server *s = server_start(r, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_EQUAL_FATAL(http_create(&t.engine, 4, NULL, NULL), SNAP_OK);
    http_request req = post(server_url(s), curl, &t);
    CU_ASSERT_EQUAL(http_start(t.engine, &req, NULL), SNAP_OK);
    run(t.engine);
    CU_ASSERT_EQUAL(t.done, 1);
    http_free(t.engine);
    server_free(s);
    return t;
}

#define OK      "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

static const reply replies[] = {
    {.body = "{}", .headers = "X-Mark: 1\r\nETag: \"e\"\r\n"},
    {.body = "abc", .chunked = true, .step = 1},
    {.fill = 300000},
    {.fill = 300000, .chunked = true, .step = 7777},
    {.status = 429, .body = "{}", .headers = "Retry-After: 3\r\n"},
    {.status = 503, .body = "{}", .headers = "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n"},
    {.status = 503, .body = "{}", .headers = "Retry-After: soon\r\n"},
    {.status = 302, .headers = "Location: /there?a=b\r\n"},
    {.status = 307, .headers = "Location: https://example.org/x\r\n"},
    {.status = 200, .headers = "Location: /there\r\n"},
    {.raw = OK "Content-Type: text/plain; charset=x\r\n\r\nuntil the end", .end = END_CLOSE},
    {.raw = "HTTP/1.0 200 OK\r\nX-Mark:a\r\nX-Mark: b\r\n\r\nuntil the end", .end = END_CLOSE},
    {.raw = "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 2\r\n\r\nab"},
    {.raw = "HTTP/1.1 204 No Content\r\n\r\n"},
    {.raw = CHUNKED "2;x=y\r\nab\r\n0\r\nX-Mark: late\r\n\r\n"},
    {.raw = OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"},
    {.raw = OK "Content-Length: 2\r\n\r\nab and more"},
    /* failures */
    {.body = "0123456789", .cut = 4, .end = END_CLOSE},
    {.body = "0123456789", .cut = 4, .end = END_RESET},
    {.body = "0123456789", .chunked = true, .cut = 4, .end = END_CLOSE},
    {.raw = CHUNKED "zz\r\nx", .end = END_CLOSE},
    {.raw = CHUNKED "2\r\nabc\r\n", .end = END_CLOSE},
    {.raw = OK "Content-Length: x\r\n\r\nab", .end = END_CLOSE},
    {.raw = OK "no colon\r\n\r\nab", .end = END_CLOSE},
    {.raw = "", .end = END_CLOSE},
    {.raw = "", .end = END_RESET},
    {.raw = "SSH-2.0-OpenSSH_9.2\r\n", .end = END_CLOSE},
};

static void test_same_results_as_libcurl(void) {
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        taken own = exchange(&replies[i], false), curl = exchange(&replies[i], true);
        CU_ASSERT_EQUAL(own.outcome, curl.outcome);
        if (own.outcome != curl.outcome || own.status != curl.status)
            (void)printf("reply %zu: outcome %d and %d, status %d and %d\n", i, (int)own.outcome,
                         (int)curl.outcome, own.status, curl.status);
        CU_ASSERT_STRING_EQUAL(buf_str(&own.body), buf_str(&curl.body));
        if (own.outcome == HTTP_COMPLETE) {
            CU_ASSERT_EQUAL(own.status, curl.status);
            CU_ASSERT_EQUAL(own.retry_after_s, curl.retry_after_s);
            CU_ASSERT_STRING_EQUAL(own.type, curl.type);
            CU_ASSERT_STRING_EQUAL(own.etag, curl.etag);
            CU_ASSERT_STRING_EQUAL(own.header, curl.header);
            /* the two servers have different ports */
            const char *a = strchr(own.location, '/'), *b = strchr(curl.location, '/');
            CU_ASSERT_EQUAL(a != NULL, b != NULL);
            CU_ASSERT(!a || (b && strcmp(strrchr(a, '/'), strrchr(b, '/')) == 0));
        }
        buf_release(&own.body);
        buf_release(&curl.body);
    }
}

/* ---- what is sent ---- */

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Splits a request's head into its lines, sorts the headers, and leaves out @without. */
static void sort_lines(char *head, const char *without, buf *out) {
    char *lines[32], *rest = head;
    int n = 0;
    for (char *line; (line = strsep(&rest, "\n")) && n < 32;)
        if (line[0] > '\r' && strncasecmp(line, without, strlen(without)) != 0)
            lines[n++] = line;
    qsort(lines + 1, (size_t)(n - 1), sizeof *lines, by_text);
    for (int i = 0; i < n; i++)
        (void)buf_printf(out, "%s\n", lines[i]);
}

static void test_same_request_as_libcurl(void) {
    static const reply r = {.body = "{}"};
    static const char *const headers[][3] = {
        {"Content-Type: application/json", "X-A: b", "Empty:"},
        {"X-Content-Type: x", "Host: example.org", "Accept:text/event-stream"},
        {"User-Agent: other", "Accept: ", "X-B:\tc"}};
    static const char *const secret[] = {"Authorization: Bearer s"};
    static const char *const paths[] = {"", "/v1/chat/../completions?a=b&c=%20d", "/?q"};
    for (int i = 0; i < 3; i++) {
        server *s = server_start(&r, 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(s);
        buf url = {0}, sorted[2] = {{0}};
        (void)buf_printf(&url, "%s%s", server_url(s), paths[i]);
        taken t = {0};
        CU_ASSERT_EQUAL_FATAL(http_create(&t.engine, 4, NULL, NULL), SNAP_OK);
        for (int curl = 0; curl < 2; curl++) {
            http_request req = post(buf_str(&url), false, &t);
            const char *all[4] = {headers[i][0], headers[i][1], headers[i][2], by_curl[0]};
            req.headers = all;
            req.n_headers = 3 + curl;
            req.secrets = secret;
            req.n_secrets = 1;
            CU_ASSERT_EQUAL(http_start(t.engine, &req, NULL), SNAP_OK);
            run(t.engine);
        }
        http_free(t.engine);
        server_stop(s);
        for (int k = 0; k < 2; k++) {
            sort_lines(server_request(s, k)->head, "Connection:", &sorted[k]);
            CU_ASSERT_STRING_EQUAL(server_request(s, k)->body, "{}");
        }
        CU_ASSERT_STRING_EQUAL(buf_str(&sorted[0]), buf_str(&sorted[1]));
        for (int k = 0; k < 2; k++)
            buf_release(&sorted[k]);
        buf_release(&url);
        buf_release(&t.body);
        server_free(s);
    }
}

/* ---- connections ---- */

/* Sends @n requests one after the other. Returns the number of connections that the server saw. */
static int connections_of(const reply *r, int n_replies, int n, int *requests) {
    server *s = server_start(r, n_replies);
    taken t = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_EQUAL_FATAL(http_create(&t.engine, 4, NULL, NULL), SNAP_OK);
    http_request req = post(server_url(s), false, &t);
    for (int i = 0; i < n; i++) {
        CU_ASSERT_EQUAL(http_start(t.engine, &req, NULL), SNAP_OK);
        run(t.engine);
        CU_ASSERT_EQUAL(t.outcome, HTTP_COMPLETE);
    }
    CU_ASSERT_EQUAL(t.done, n);
    http_stats stats = http_stats_of(t.engine);
    CU_ASSERT_EQUAL(stats.transfers, n);
    http_free(t.engine);
    server_stop(s);
    int connections = server_connections(s);
    CU_ASSERT_EQUAL(stats.connections, connections);
    *requests = server_requests(s);
    server_free(s);
    buf_release(&t.body);
    return connections;
}

static void test_connections_are_kept(void) {
    static const reply kept[] = {{.body = "x"}, {.body = "abc", .chunked = true}};
    static const reply closed[] = {{.body = "x", .headers = "Connection: close\r\n"}};
    static const reply surplus[] = {{.raw = OK "Content-Length: 1\r\n\r\nab"}};
    int requests;
    CU_ASSERT_EQUAL(connections_of(kept, 2, 5, &requests), 1);
    CU_ASSERT_EQUAL(connections_of(closed, 1, 3, &requests), 3);
    CU_ASSERT_EQUAL(connections_of(surplus, 1, 3, &requests), 3);
    CU_ASSERT_EQUAL(requests, 3);
}

/* The second request reaches the server on the first connection, which the server closes without an
 * answer, as if it had closed it just before. The client sends it again on another connection. */
static void test_a_closed_connection_is_replaced(void) {
    static const reply once[] = {{.body = "x"}, {.raw = "", .end = END_CLOSE}, {.body = "y"}};
    static const reply reset[] = {{.body = "x"}, {.raw = "", .end = END_RESET}, {.body = "y"}};
    int requests;
    CU_ASSERT_EQUAL(connections_of(once, 3, 2, &requests), 2);
    CU_ASSERT_EQUAL(requests, 3);
    CU_ASSERT_EQUAL(connections_of(reset, 3, 2, &requests), 2);
    CU_ASSERT_EQUAL(requests, 3);
}

/* No more connections than the engine's limit stay open. */
static void test_idle_connections_have_a_limit(void) {
    enum { kAtOnce = 6, kKept = 2 };
    static const reply gathered = {.body = "x", .gather = kAtOnce};
    server *s = server_start(&gathered, 1);
    taken t = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_EQUAL_FATAL(http_create(&t.engine, kKept, NULL, NULL), SNAP_OK);
    http_request req = post(server_url(s), false, &t);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < kAtOnce; i++)
            CU_ASSERT_EQUAL(http_start(t.engine, &req, NULL), SNAP_OK);
        run(t.engine);
    }
    CU_ASSERT_EQUAL(t.done, 2 * kAtOnce);
    CU_ASSERT_EQUAL(http_stats_of(t.engine).connections, 2 * kAtOnce - kKept);
    http_free(t.engine);
    server_free(s);
    buf_release(&t.body);
}

/* A proxy gets the request for a server elsewhere, and none for this machine. */
static void test_a_proxy_is_used(void) {
    static const reply r = {.body = "x"};
    server *s = server_start(&r, 1);
    taken t = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_EQUAL(setenv("http_proxy", server_url(s), 1), 0);
    CU_ASSERT_EQUAL_FATAL(http_create(&t.engine, 4, NULL, NULL), SNAP_OK);
    http_request req = post("http://elsewhere.invalid/v1", false, &t);
    CU_ASSERT_EQUAL(http_start(t.engine, &req, NULL), SNAP_OK);
    run(t.engine);
    CU_ASSERT(t.outcome == HTTP_COMPLETE && !t.arrival_known);
    req.url = server_url(s);
    CU_ASSERT_EQUAL(http_start(t.engine, &req, NULL), SNAP_OK);
    run(t.engine);
    CU_ASSERT_EQUAL(t.outcome, HTTP_COMPLETE);
    CU_ASSERT_EQUAL(unsetenv("http_proxy"), 0);
    http_free(t.engine);
    server_stop(s);
    CU_ASSERT_EQUAL_FATAL(server_requests(s), 2);
    CU_ASSERT_EQUAL(
        strncmp(server_request(s, 0)->head, "POST http://elsewhere.invalid/v1 HTTP/1.1\r\n", 43),
        0);
    CU_ASSERT_EQUAL(strncmp(server_request(s, 1)->head, "POST / HTTP/1.1\r\n", 17), 0);
    buf_release(&t.body);
    server_free(s);
}

/* ---- a server that answers before it has read the request ---- */

enum { kLargeBody = 32 << 20 };

static int listen_on_loopback(char *url, size_t size) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CU_ASSERT_FATAL(bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 4) == 0 &&
                    getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    (void)snprintf(url, size, "http://127.0.0.1:%d/", ntohs(at.sin_port));
    return fd;
}

/* Sends a request with a large body, of which the server reads nothing. The server sends @text and,
 * if @resets, closes the connection, which resets it. */
static taken early_response(const char *text, bool resets) {
    char url[64], *body = calloc(kLargeBody, 1);
    int listener = listen_on_loopback(url, sizeof url);
    taken t = {0};
    CU_ASSERT_FATAL(body != NULL);
    CU_ASSERT_EQUAL_FATAL(http_create(&t.engine, 4, NULL, NULL), SNAP_OK);
    http_request req = post(url, false, &t);
    req.body = body;
    req.body_len = kLargeBody;
    CU_ASSERT_EQUAL(http_start(t.engine, &req, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(http_step(t.engine, INT64_MAX, NULL), SNAP_OK);
    int fd = accept(listener, NULL, NULL);
    size_t n = strlen(text);
    CU_ASSERT_FATAL(fd >= 0 && send(fd, text, n, 0) == (ssize_t)n);
    if (resets)
        (void)close(fd);
    run(t.engine);
    http_free(t.engine);
    if (!resets)
        (void)close(fd);
    (void)close(listener);
    free(body);
    return t;
}

static void test_an_early_refusal(void) {
    for (int resets = 0; resets < 2; resets++) {
        taken t =
            early_response("HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nlarge", resets);
        CU_ASSERT_EQUAL(t.outcome, HTTP_COMPLETE);
        CU_ASSERT_EQUAL(t.status, 413);
        CU_ASSERT_STRING_EQUAL(buf_str(&t.body), "large");
        buf_release(&t.body);
    }
}

/* A response without a length ends with its connection. If the connection was reset, the response
 * counts as broken, and not as complete. */
static void test_a_reset_while_sending(void) {
    taken t = early_response(OK "\r\nhalf", true);
    CU_ASSERT_EQUAL(t.outcome, HTTP_BROKEN);
    CU_ASSERT_STRING_EQUAL(buf_str(&t.body), "half");
    buf_release(&t.body);
}

/* A server sends @n bytes of a body whose length it has not stated, and closes the connection
 * before the client reads. */
static taken sent_and_closed(size_t n) {
    char url[64], request[4096], *body = calloc(n, 1);
    int listener = listen_on_loopback(url, sizeof url), buffered = 1 << 20;
    taken t = {0};
    CU_ASSERT_EQUAL_FATAL(http_create(&t.engine, 4, NULL, NULL), SNAP_OK);
    http_request req = post(url, false, &t);
    CU_ASSERT_EQUAL(http_start(t.engine, &req, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(http_step(t.engine, INT64_MAX, NULL), SNAP_OK);
    int fd = accept(listener, NULL, NULL);
    CU_ASSERT_FATAL(fd >= 0 && body != NULL);
    while (recv(fd, request, sizeof request, MSG_DONTWAIT) < 0)
        CU_ASSERT_EQUAL_FATAL(http_step(t.engine, clock_now_ns(), NULL), SNAP_OK);
    CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffered, sizeof buffered), 0);
    CU_ASSERT_EQUAL(send(fd, OK "\r\n", sizeof OK + 1, MSG_MORE), sizeof OK + 1);
    CU_ASSERT_EQUAL(send(fd, body, n, 0), (ssize_t)n);
    (void)close(fd);
    run(t.engine);
    http_free(t.engine);
    (void)close(listener);
    free(body);
    return t;
}

/* The bytes and the end of a connection arrive before the client reads for the first time. It must
 * read both. */
static void test_the_end_has_come_too(void) {
    static const size_t sizes[] = {1, 200000}; /* the second needs several reads */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        taken t = sent_and_closed(sizes[i]);
        CU_ASSERT_EQUAL(t.outcome, HTTP_COMPLETE);
        CU_ASSERT_EQUAL(t.body.len, sizes[i]);
        buf_release(&t.body);
    }
}

/* A body that does not fit into the socket's buffer arrives whole. */
static void test_a_large_body(void) {
    static const reply r = {.body = "ok"};
    enum { kBytes = 8 << 20 };
    server *s = server_start(&r, 1);
    char *body = malloc(kBytes + 1);
    CU_ASSERT_FATAL(s && body);
    for (int i = 0; i < kBytes; i++)
        body[i] = (char)('a' + (i >> 10) % 26);
    body[kBytes] = '\0';
    taken t = {0};
    CU_ASSERT_EQUAL_FATAL(http_create(&t.engine, 4, NULL, NULL), SNAP_OK);
    http_request req = post(server_url(s), false, &t);
    req.body = body;
    req.body_len = kBytes;
    CU_ASSERT_EQUAL(http_start(t.engine, &req, NULL), SNAP_OK);
    run(t.engine);
    CU_ASSERT_EQUAL(t.outcome, HTTP_COMPLETE);
    http_free(t.engine);
    server_stop(s);
    CU_ASSERT(strcmp(server_request(s, 0)->body, body) == 0);
    server_free(s);
    buf_release(&t.body);
    free(body);
}

/* ---- times ---- */

enum { kRounds = 100 };

/* Two responses are sent. The client reads them 20 ms later, but their times are those at which
 * they were sent. The kernel begins to record times a little after the first socket asks for them,
 * so in the first rounds the times may be missing. */
static void test_times_are_those_of_the_arrival(void) {
    static const char kReply[] = OK "Content-Length: 1\r\n\r\nx";
    static const int64_t kErrorNs = 1000000; /* error of the conversion between two clocks */
    char url[64];
    int listener = listen_on_loopback(url, sizeof url), fds[2], known = 0;
    http *h;
    CU_ASSERT_EQUAL_FATAL(http_create(&h, 4, NULL, NULL), SNAP_OK);
    for (int round = 0; round < kRounds && known < 2; round++) {
        taken t[2] = {{.engine = h}, {.engine = h}};
        known = 0;
        for (int i = 0; i < 2; i++) {
            http_request req = post(url, false, &t[i]);
            CU_ASSERT_EQUAL(http_start(h, &req, NULL), SNAP_OK);
            if (round == 0) {
                CU_ASSERT_EQUAL(http_step(h, INT64_MAX, NULL), SNAP_OK);
                fds[i] = accept(listener, NULL, NULL);
            }
        }
        char request[4096]; /* a whole request: the client sends it with one call */
        for (int i = 0; i < 2; i++)
            while (recv(fds[i], request, sizeof request, MSG_DONTWAIT) <= 0)
                CU_ASSERT_EQUAL_FATAL(http_step(h, INT64_MAX, NULL), SNAP_OK);
        int64_t begin = clock_now_ns();
        for (int i = 0; i < 2; i++)
            CU_ASSERT_EQUAL(send(fds[i], kReply, sizeof kReply - 1, 0), sizeof kReply - 1);
        int64_t end = clock_now_ns();
        clock_sleep_ns(20000000);
        run(h);
        for (int i = 0; i < 2; i++) {
            known += t[i].arrival_known;
            CU_ASSERT(t[i].outcome == HTTP_COMPLETE && t[i].received_ns >= begin - kErrorNs);
            CU_ASSERT(!t[i].arrival_known || t[i].received_ns <= end + kErrorNs);
            buf_release(&t[i].body);
        }
    }
    CU_ASSERT_EQUAL(known, 2); /* Linux 4.14 and later record times of arrival */
    CU_ASSERT(http_stats_of(h).lag_max_ns >= 19000000);
    http_free(h);
    for (int i = 0; i < 2; i++)
        (void)close(fds[i]);
    (void)close(listener);
}

static volatile int64_t signalled_ns;

static void note_signal(int signal) {
    (void)signal;
    signalled_ns = clock_now_ns();
}

/* A signal interrupts the client. Bytes may have arrived meanwhile, so they count as if they had
 * arrived before the signal. */
static void test_a_stop_counts_as_lag(void) {
    static const char kReply[] = OK "Content-Length: 1\r\n\r\nx";
    struct sigaction act = {.sa_handler = note_signal}, old;
    struct itimerval every_5_ms = {{0, 5000}, {0, 5000}}, off = {{0, 0}, {0, 0}};
    char url[64], request[4096];
    int listener = listen_on_loopback(url, sizeof url);
    taken t = {0};
    CU_ASSERT_EQUAL_FATAL(http_create(&t.engine, 4, NULL, NULL), SNAP_OK);
    http_request req = post(url, false, &t);
    CU_ASSERT_EQUAL(http_start(t.engine, &req, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(http_step(t.engine, INT64_MAX, NULL), SNAP_OK);
    int fd = accept(listener, NULL, NULL);
    while (recv(fd, request, sizeof request, MSG_DONTWAIT) <= 0)
        CU_ASSERT_EQUAL_FATAL(http_step(t.engine, INT64_MAX, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(sigaction(SIGALRM, &act, &old), 0);
    CU_ASSERT_EQUAL(setitimer(ITIMER_REAL, &every_5_ms, NULL), 0);
    CU_ASSERT_EQUAL(http_step(t.engine, INT64_MAX, NULL), SNAP_OK); /* has nothing to receive */
    CU_ASSERT_EQUAL(setitimer(ITIMER_REAL, &off, NULL), 0);
    CU_ASSERT_EQUAL(send(fd, kReply, sizeof kReply - 1, 0), sizeof kReply - 1);
    run(t.engine);
    CU_ASSERT(t.outcome == HTTP_COMPLETE && t.ready_ns < signalled_ns);
    CU_ASSERT_EQUAL(sigaction(SIGALRM, &old, NULL), 0);
    http_free(t.engine);
    (void)close(fd);
    (void)close(listener);
    buf_release(&t.body);
}

CU_TestInfo tests_http_plain[] = {
    {"the same results as libcurl", test_same_results_as_libcurl},
    {"the same request as libcurl", test_same_request_as_libcurl},
    {"connections are kept", test_connections_are_kept},
    {"a closed connection is replaced", test_a_closed_connection_is_replaced},
    {"limit of idle connections", test_idle_connections_have_a_limit},
    {"a proxy is used", test_a_proxy_is_used},
    {"an early refusal", test_an_early_refusal},
    {"a reset while sending", test_a_reset_while_sending},
    {"bytes and the end at once", test_the_end_has_come_too},
    {"a large body", test_a_large_body},
    {"a stop counts as lag", test_a_stop_counts_as_lag},
    {"times of arrival", test_times_are_those_of_the_arrival},
    CU_TEST_INFO_NULL};
