/* Tests base/http.h against the scripted server. The tests are in this folder because the server is
 * here. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/http.h"
#include "generator/test/certificates.h"
#include "generator/test/scripted_server.h"

typedef struct {
    buf body;
    int done;
    bool stop; /* on_body() returns false */
    http_outcome outcome;
    int status;
    double retry_after_s;
    char type[80], location[120], message[200];
} taken;

/* The tests marked POSTED run a second time with POST instead of GET: this program then reads the
 * response itself (base/http_plain.h). */
static bool posts;

static void set_body(http_request *req) {
    if (posts && !req->body) {
        req->body = "x";
        req->body_len = 1;
    }
}

static bool on_body(void *ctx, const http_response *head, const char *bytes, size_t n) {
    taken *t = ctx;
    CU_ASSERT_TRUE(head->status >= 200);
    (void)buf_append(&t->body, bytes, n);
    return !t->stop;
}

static void on_done(void *ctx, const http_response *res) {
    taken *t = ctx;
    t->done++;
    t->outcome = res->outcome;
    t->status = res->status;
    t->retry_after_s = res->retry_after_s;
    (void)snprintf(t->type, sizeof t->type, "%s", res->type);
    (void)snprintf(t->location, sizeof t->location, "%s", res->location);
    (void)snprintf(t->message, sizeof t->message, "%s", res->message);
}

static void run(http *h) {
    while (http_running(h))
        CU_ASSERT_EQUAL_FATAL(http_step(h, INT64_MAX, NULL), SNAP_OK);
}

/* Runs one transfer of @url on its own engine. The url, callbacks and context of @req are
 * replaced. */
static void transfer(const char *url, http_request req, taken *t) {
    http *h;
    CU_ASSERT_EQUAL_FATAL(http_create(&h, 4, NULL, NULL), SNAP_OK);
    req.url = url;
    req.on_body = on_body;
    req.on_done = on_done;
    req.ctx = t;
    set_body(&req);
    CU_ASSERT_EQUAL(http_start(h, &req, NULL), SNAP_OK);
    run(h);
    CU_ASSERT_EQUAL(t->done, 1);
    http_free(h);
}

/* Runs one transfer with a server that has one reply. */
static void exchange(reply r, http_request req, taken *t) {
    server *s = server_start(&r, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    transfer(server_url(s), req, t);
    server_free(s);
}

static void test_get_and_post(void) {
    static const reply replies[] = {{.body = "one", .type = "text/plain; charset=utf-8"},
                                    {.status = 404, .body = "two", .chunked = true, .step = 1}};
    server *s = server_start(replies, 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    taken t = {0};
    transfer(server_url(s), (http_request){0}, &t);
    CU_ASSERT(t.outcome == HTTP_COMPLETE && t.status == 200);
    CU_ASSERT_STRING_EQUAL(buf_str(&t.body), "one");
    CU_ASSERT_STRING_EQUAL(t.type, "text/plain; charset=utf-8");
    CU_ASSERT_STRING_EQUAL(t.message, "");
    CU_ASSERT(t.retry_after_s < 0);
    buf_release(&t.body);

    t = (taken){0};
    const char *headers[] = {"X-A: b"};
    transfer(server_url(s),
             (http_request){.body = "{}", .body_len = 2, .headers = headers, .n_headers = 1}, &t);
    CU_ASSERT(t.outcome == HTTP_COMPLETE && t.status == 404);
    CU_ASSERT_STRING_EQUAL(buf_str(&t.body), "two");
    buf_release(&t.body);
    server_stop(s);
    CU_ASSERT_EQUAL(strncmp(server_request(s, 0)->head, "GET / HTTP/1.1\r\n", 16), 0);
    CU_ASSERT_EQUAL(strncmp(server_request(s, 1)->head, "POST / HTTP/1.1\r\n", 17), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(server_request(s, 1)->head, "\r\nX-A: b\r\n"));
    CU_ASSERT_STRING_EQUAL(server_request(s, 1)->body, "{}");
    server_free(s);
}

static void test_broken_transfers(void) {
    static const struct {
        reply r;
        http_outcome want;
    } cases[] = {
        {{.body = "0123456789", .cut = 4, .end = END_CLOSE}, HTTP_BROKEN},
        {{.body = "0123456789", .cut = 4, .end = END_RESET}, HTTP_BROKEN},
        {{.body = "0123456789", .chunked = true, .cut = 4, .end = END_CLOSE}, HTTP_BROKEN},
        {{.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx", .end = END_CLOSE},
         HTTP_BROKEN},
        {{.raw = "", .end = END_CLOSE}, HTTP_BROKEN},
        {{.raw = "", .end = END_RESET}, HTTP_BROKEN},
        {{.raw = "SSH-2.0-OpenSSH_9.2\r\n", .end = END_CLOSE}, HTTP_REFUSED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        taken t = {0};
        exchange(cases[i].r, (http_request){0}, &t);
        CU_ASSERT_EQUAL(t.outcome, cases[i].want);
        CU_ASSERT_NOT_EQUAL(t.message[0], '\0');
        buf_release(&t.body);
    }
}

static void test_silence_ends_a_transfer(void) {
    static const reply stalls[] = {{.raw = "", .end = END_STALL},
                                   {.body = "0123456789", .cut = 4, .end = END_STALL}};
    for (int i = 0; i < 2; i++) {
        taken t = {0};
        int64_t start = clock_now_ns();
        exchange(stalls[i], (http_request){.silence_s = 0.1}, &t);
        double s = (double)(clock_now_ns() - start) * 1e-9;
        CU_ASSERT_EQUAL(t.outcome, HTTP_SILENT);
        CU_ASSERT(s >= 0.1 && s < 2);
        buf_release(&t.body);
    }
}

/* One byte every 60 ms for 0.54 s is slow, but never silent for 0.5 s. */
static void test_slow_is_not_silent(void) {
    taken t = {0};
    exchange((reply){.body = "0123456789", .step = 1, .pause_ns = 60000000},
             (http_request){.silence_s = 0.5}, &t);
    CU_ASSERT_EQUAL(t.outcome, HTTP_COMPLETE);
    CU_ASSERT_STRING_EQUAL(buf_str(&t.body), "0123456789");
    buf_release(&t.body);
}

static void test_a_transfer_has_a_deadline(void) {
    taken t = {0};
    int64_t start = clock_now_ns();
    exchange((reply){.fill = 10000, .step = 1, .pause_ns = 10000000},
             (http_request){.silence_s = 5, .deadline_s = 0.2}, &t);
    double s = (double)(clock_now_ns() - start) * 1e-9;
    CU_ASSERT(t.outcome == HTTP_LATE && t.status == 200 && t.body.len > 0);
    CU_ASSERT(s >= 0.2 && s < 2);
    buf_release(&t.body);
}

/* A callback takes 100 ms, and the other transfer, whose bytes have arrived, has to wait for it. */
static void slow_done(void *ctx, const http_response *res) {
    on_done(ctx, res);
    clock_sleep_ns(100000000);
}

static void test_lag_is_what_callbacks_take(void) {
    static const reply r = {.body = "x", .gather = 2};
    server *s = server_start(&r, 1);
    http *h;
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_EQUAL_FATAL(http_create(&h, 4, NULL, NULL), SNAP_OK);
    CU_ASSERT(http_stats_of(h).lag_max_ns == -1 && http_stats_of(h).transfers == 0);
    taken t = {0};
    http_request req = {.url = server_url(s), .on_body = on_body, .on_done = slow_done, .ctx = &t};
    set_body(&req);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(http_start(h, &req, NULL), SNAP_OK);
    run(h);
    http_stats stats = http_stats_of(h);
    CU_ASSERT_EQUAL(t.done, 2);
    CU_ASSERT_EQUAL(stats.transfers, 2);
    CU_ASSERT(stats.lag_max_ns >= 90000000 && stats.lag_p99_ns <= stats.lag_max_ns);
    http_free(h);
    buf_release(&t.body);
    server_free(s);
}

static void test_bodies_have_a_ceiling(void) {
    taken t = {0};
    exchange((reply){.fill = 1000}, (http_request){.body_limit = 1000}, &t);
    CU_ASSERT(t.outcome == HTTP_COMPLETE && t.body.len == 1000);
    buf_release(&t.body);
    t = (taken){0};
    exchange((reply){.fill = 1001}, (http_request){.body_limit = 1000}, &t);
    CU_ASSERT(t.outcome == HTTP_TOO_LARGE && t.body.len <= 1000);
    buf_release(&t.body);
}

static void test_headers_have_a_ceiling(void) {
    buf raw = {0};
    (void)buf_puts(&raw, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 20000; i++)
        (void)buf_printf(&raw, "X-%d: endless\r\n", i);
    taken t = {0};
    exchange((reply){.raw = raw.data, .end = END_STALL}, (http_request){.silence_s = 5}, &t);
    CU_ASSERT_EQUAL(t.outcome, HTTP_TOO_LARGE);
    buf_release(&t.body);
    buf_release(&raw);
}

static void test_on_body_can_stop(void) {
    taken t = {.stop = true};
    exchange((reply){.body = "x"}, (http_request){0}, &t);
    CU_ASSERT_EQUAL(t.outcome, HTTP_STOPPED);
    buf_release(&t.body);
}

static void test_redirects(void) {
    static const reply replies[] = {{.status = 302, .headers = "Location: /there\r\n"},
                                    {.body = "here"}};
    static const struct {
        http_request req;
        int status;
    } cases[] = {{{.max_redirects = 3}, 200},
                 {{.max_redirects = 0}, 302},
                 {{.body = "x", .body_len = 1, .max_redirects = 3}, 302}};
    for (int i = 0; i < 3; i++) {
        server *s = server_start(replies, 2);
        CU_ASSERT_PTR_NOT_NULL_FATAL(s);
        char there[100];
        (void)snprintf(there, sizeof there, "%s/there", server_url(s));
        taken t = {0};
        transfer(server_url(s), cases[i].req, &t);
        CU_ASSERT(t.outcome == HTTP_COMPLETE && t.status == cases[i].status);
        CU_ASSERT_STRING_EQUAL(t.location, t.status == 302 ? there : "");
        buf_release(&t.body);
        server_free(s);
    }
}

static void test_a_redirect_cannot_leave_http(void) {
    taken t = {0};
    exchange((reply){.status = 302, .headers = "Location: file:///etc/passwd\r\n"},
             (http_request){.max_redirects = 3}, &t);
    CU_ASSERT_EQUAL(t.outcome, HTTP_REFUSED);
    CU_ASSERT_EQUAL(t.body.len, 0);
    buf_release(&t.body);
}

/* Sends a request to the first server, which redirects to the second, and checks the outcome and
 * whether the second server was reached. @tls: [2], NULL = none. */
static void redirect_between(SSL_CTX *const tls[2], http_request req, http_outcome outcome,
                             bool followed) {
    char location[120];
    const reply here = {.body = "here"};
    server *to = server_start_with(&here, 1, (server_options){.tls = tls[1]});
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    (void)snprintf(location, sizeof location, "Location: %s/there\r\n", server_url(to));
    const reply there = {.status = 302, .headers = location};
    server *from = server_start_with(&there, 1, (server_options){.tls = tls[0]});
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    taken t = {0};
    transfer(server_url(from), req, &t);
    CU_ASSERT_EQUAL(t.outcome, outcome);
    CU_ASSERT(outcome != HTTP_REFUSED || strstr(t.message, "redirects from https to http"));
    server_stop(to);
    CU_ASSERT_EQUAL(server_requests(to), followed ? 1 : 0);
    buf_release(&t.body);
    server_free(from);
    server_free(to);
}

/* A redirect may lead from http to https, but not back. */
static void test_a_redirect_stays_private(void) {
    authority *a = authority_new();
    SSL_CTX *tls = certificate_for(a, "IP:127.0.0.1", -86400, 86400);
    http_request req = {.max_redirects = 3};
    CU_ASSERT_EQUAL_FATAL(setenv("CURL_CA_BUNDLE", authority_file(a), 1), 0);
    redirect_between((SSL_CTX *[]){NULL, NULL}, req, HTTP_COMPLETE, true);
    redirect_between((SSL_CTX *[]){NULL, tls}, req, HTTP_COMPLETE, true);
    redirect_between((SSL_CTX *[]){tls, tls}, req, HTTP_COMPLETE, true);
    redirect_between((SSL_CTX *[]){tls, NULL}, req, HTTP_REFUSED, false);
    CU_ASSERT_EQUAL(unsetenv("CURL_CA_BUNDLE"), 0);
    SSL_CTX_free(tls);
    authority_free(a);
}

/* http, then https, then http: the last step is refused. */
static void test_no_redirect_back_to_http(void) {
    authority *a = authority_new();
    SSL_CTX *tls = certificate_for(a, "IP:127.0.0.1", -86400, 86400);
    char to_last[120], to_middle[120];
    const reply end = {.body = "here"};
    server *last = server_start(&end, 1);
    (void)snprintf(to_last, sizeof to_last, "Location: %s/\r\n", server_url(last));
    const reply second = {.status = 302, .headers = to_last};
    server *middle = server_start_with(&second, 1, (server_options){.tls = tls});
    (void)snprintf(to_middle, sizeof to_middle, "Location: %s/\r\n", server_url(middle));
    const reply first = {.status = 302, .headers = to_middle};
    server *s = server_start(&first, 1);
    taken t = {0};
    CU_ASSERT_EQUAL_FATAL(setenv("CURL_CA_BUNDLE", authority_file(a), 1), 0);
    transfer(server_url(s), (http_request){.max_redirects = 5}, &t);
    CU_ASSERT_EQUAL(unsetenv("CURL_CA_BUNDLE"), 0);
    CU_ASSERT_EQUAL(t.outcome, HTTP_REFUSED);
    server_stop(middle);
    server_stop(last);
    CU_ASSERT_EQUAL(server_requests(middle), 1);
    CU_ASSERT_EQUAL(server_requests(last), 0);
    buf_release(&t.body);
    server_free(s);
    server_free(middle);
    server_free(last);
    SSL_CTX_free(tls);
    authority_free(a);
}

/* A secret header reaches the server of the URL. With such a header, a redirect to another server
 * is not followed. */
static void test_a_secret_is_not_redirected(void) {
    SSL_CTX *none[2] = {NULL, NULL};
    const char *const secret[] = {"X-Key: secret"};
    http_request req = {.max_redirects = 3, .secrets = secret, .n_secrets = 1};
    redirect_between(none, req, HTTP_COMPLETE, false);
    const reply here = {.body = "here"};
    server *s = server_start(&here, 1);
    taken t = {0};
    transfer(server_url(s), req, &t);
    server_stop(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(server_request(s, 0)->head, "\r\nX-Key: secret\r\n"));
    buf_release(&t.body);
    server_free(s);
}

static void test_private_urls(void) {
    static const char *const yes[] = {"https://example.org/v1", "http://127.0.0.1:8000/v1",
                                      "http://127.9.9.9/",      "http://localhost:1/v1",
                                      "HTTP://LocalHost/",      "http://a.localhost/",
                                      "http://[::1]:8000/v1",   "http://127.1:80/"};
    static const char *const no[] = {"http://example.org/v1",
                                     "http://10.0.0.1/",
                                     "http://128.0.0.1/",
                                     "http://localhost.example.org/",
                                     "http://127.0.0.1.example.org/",
                                     "http://[::2]/",
                                     "http://notlocalhost/",
                                     "http://https/",
                                     "http://[::ffff:10.0.0.1]/",
                                     "127.0.0.1",
                                     ""};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        CU_ASSERT_TRUE(http_is_private(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        CU_ASSERT_FALSE(http_is_private(no[i]));
}

static void test_retry_after(void) {
    char date[64], header[100];
    time_t then = time(NULL) + 100;
    struct tm tm;
    (void)gmtime_r(&then, &tm);
    (void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    (void)snprintf(header, sizeof header, "Retry-After: %s\r\n", date);
    const struct {
        const char *header;
        double least, most;
    } cases[] = {{"Retry-After: 17\r\n", 17, 17},
                 {"retry-after:0\r\n", 0, 0},
                 {"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n", 0, 0},
                 {"Retry-After: soon\r\n", 0, 0},
                 {header, 97, 100},
                 {"", -1, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        taken t = {0};
        exchange((reply){.status = 429, .headers = cases[i].header}, (http_request){0}, &t);
        CU_ASSERT(t.retry_after_s >= cases[i].least && t.retry_after_s <= cases[i].most);
        buf_release(&t.body);
    }
}

static void test_unreachable(void) {
    static const reply none = {0};
    server *s = server_start(&none, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    server_stop(s); /* its port is now closed */
    taken t = {0};
    transfer(server_url(s), (http_request){0}, &t);
    CU_ASSERT(t.outcome == HTTP_UNREACHABLE && t.status == 0);
    server_free(s);
    t = (taken){0};
    transfer("http://no-such-host.invalid/", (http_request){0}, &t);
    CU_ASSERT_EQUAL(t.outcome, HTTP_UNREACHABLE);
}

/* Fills the queue of a listener that accepts nothing: the kernel then ignores further clients. */
static void fill_queue(const struct sockaddr_in *at, int clients[], int n) {
    for (int i = 0; i < n; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        CU_ASSERT_FATAL(clients[i] >= 0);
        (void)connect(clients[i], (const struct sockaddr *)at, sizeof *at);
    }
}

/* The connect timeout limits the time until there is a connection. It does not limit the answer. */
static void test_connect_timeout(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), clients[4];
    char url[64];
    CU_ASSERT_FATAL(bind(listener, (struct sockaddr *)&at, n) == 0 && listen(listener, 0) == 0 &&
                    getsockname(listener, (struct sockaddr *)&at, &n) == 0);
    fill_queue(&at, clients, 4);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(at.sin_port));
    taken t = {0};
    int64_t start = clock_now_ns();
    transfer(url, (http_request){.connect_timeout_s = 0.2, .deadline_s = 60}, &t);
    CU_ASSERT_EQUAL(t.outcome, HTTP_UNREACHABLE);
    CU_ASSERT(clock_now_ns() - start >= 200000000);
    for (int i = 0; i < 4; i++)
        (void)close(clients[i]);
    (void)close(listener);
    t = (taken){0};
    exchange((reply){.raw = "", .end = END_STALL},
             (http_request){.connect_timeout_s = 0.5, .silence_s = 1.5}, &t);
    CU_ASSERT_EQUAL(t.outcome, HTTP_SILENT);
}

static void test_many_at_once_and_keep_alive(void) {
    enum { kAtOnce = 8, kRounds = 5 };
    static const reply gathered = {.body = "x", .gather = kAtOnce};
    server *s = server_start(&gathered, 1);
    http *h;
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_EQUAL_FATAL(http_create(&h, kAtOnce, NULL, NULL), SNAP_OK);
    taken t = {0};
    http_request req = {.url = server_url(s), .on_done = on_done, .ctx = &t};
    set_body(&req);
    for (int round = 0; round < kRounds; round++) {
        for (int i = 0; i < kAtOnce; i++)
            CU_ASSERT_EQUAL(http_start(h, &req, NULL), SNAP_OK);
        run(h);
    }
    CU_ASSERT_EQUAL(t.done, kAtOnce * kRounds);
    http_free(h);
    server_stop(s);
    CU_ASSERT_EQUAL(server_requests(s), kAtOnce * kRounds);
    CU_ASSERT_EQUAL(server_most_at_once(s), kAtOnce);
    CU_ASSERT_EQUAL(server_connections(s), kAtOnce);
    server_free(s);
}

static void test_cancel_and_drop(void) {
    static const reply stall = {.raw = "", .end = END_STALL};
    volatile sig_atomic_t cancel = 0;
    server *s = server_start(&stall, 1);
    http *h;
    snap_err err = {0};
    taken t = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_EQUAL_FATAL(http_create(&h, 1, &cancel, NULL), SNAP_OK);
    http_request req = {.url = server_url(s), .on_done = on_done, .ctx = &t};
    set_body(&req);
    CU_ASSERT_EQUAL(http_start(h, &req, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(http_step(h, clock_now_ns() + 50000000, &err), SNAP_OK);
    cancel = 1;
    CU_ASSERT_EQUAL(http_step(h, INT64_MAX, &err), SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(http_running(h), 1);
    http_free(h);
    CU_ASSERT_EQUAL(t.done, 0);
    server_free(s);
}

static void test_urls(void) {
    static const char *const good[] = {"http://localhost:8000/v1", "HTTPS://a.b/c?d=e",
                                       "http://[::1]:80/"};
    static const char *const bad[] = {"",
                                      "localhost:8000/v1",
                                      "127.0.0.1/v1",
                                      "ftp://a/",
                                      "file:///etc/passwd",
                                      "http://",
                                      "http://a:99999/",
                                      "http://a b/",
                                      "http://a/\n",
                                      "http://a/#b",
                                      "http://u@a/",
                                      "http://u:secret@a/"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CU_ASSERT_EQUAL(http_check_url(good[i], NULL), SNAP_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL(http_check_url(bad[i], &err), SNAP_E_USAGE);
        CU_ASSERT_PTR_NULL(strstr(err.text, "secret"));
    }
}

static void test_headers_cannot_be_smuggled(void) {
    const char *headers[] = {"X-A: b\r\nX-B: c"};
    http *h;
    CU_ASSERT_EQUAL_FATAL(http_create(&h, 1, NULL, NULL), SNAP_OK);
    http_request req = {.url = "http://127.0.0.1:1/", .headers = headers, .n_headers = 1};
    CU_ASSERT_EQUAL(http_start(h, &req, NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(http_running(h), 0);
    http_free(h);
}

#define POSTED(test)                                                                               \
    static void test##_posted(void) {                                                              \
        posts = true;                                                                              \
        test();                                                                                    \
        posts = false;                                                                             \
    }
POSTED(test_broken_transfers)
POSTED(test_silence_ends_a_transfer)
POSTED(test_slow_is_not_silent)
POSTED(test_a_transfer_has_a_deadline)
POSTED(test_lag_is_what_callbacks_take)
POSTED(test_bodies_have_a_ceiling)
POSTED(test_headers_have_a_ceiling)
POSTED(test_on_body_can_stop)
POSTED(test_retry_after)
POSTED(test_unreachable)
POSTED(test_connect_timeout)
POSTED(test_many_at_once_and_keep_alive)
POSTED(test_cancel_and_drop)

CU_TestInfo tests_http[] = {
    {"GET and POST give the server's answer", test_get_and_post},
    {"broken transfers fail", test_broken_transfers},
    {"broken transfers fail (POST)", test_broken_transfers_posted},
    {"silence ends a transfer", test_silence_ends_a_transfer},
    {"silence ends a transfer (POST)", test_silence_ends_a_transfer_posted},
    {"a slow transfer does not count as silent", test_slow_is_not_silent},
    {"a slow transfer does not count as silent (POST)", test_slow_is_not_silent_posted},
    {"a transfer ends at its deadline", test_a_transfer_has_a_deadline},
    {"a transfer ends at its deadline (POST)", test_a_transfer_has_a_deadline_posted},
    {"the lag is the time that callbacks take", test_lag_is_what_callbacks_take},
    {"the lag is the time that callbacks take (POST)", test_lag_is_what_callbacks_take_posted},
    {"a body beyond its limit is refused", test_bodies_have_a_ceiling},
    {"a body beyond its limit is refused (POST)", test_bodies_have_a_ceiling_posted},
    {"headers beyond their limit are refused", test_headers_have_a_ceiling},
    {"headers beyond their limit are refused (POST)", test_headers_have_a_ceiling_posted},
    {"on_body() can stop a transfer", test_on_body_can_stop},
    {"on_body() can stop a transfer (POST)", test_on_body_can_stop_posted},
    {"redirects are followed", test_redirects},
    {"a redirect cannot leave http", test_a_redirect_cannot_leave_http},
    {"a redirect cannot lead from https to http", test_a_redirect_stays_private},
    {"several redirects cannot lead from https to http", test_no_redirect_back_to_http},
    {"a secret is not redirected", test_a_secret_is_not_redirected},
    {"which URLs are private", test_private_urls},
    {"the header Retry-After is read", test_retry_after},
    {"the header Retry-After is read (POST)", test_retry_after_posted},
    {"an unreachable server", test_unreachable},
    {"an unreachable server (POST)", test_unreachable_posted},
    {"the connect timeout", test_connect_timeout},
    {"the connect timeout (POST)", test_connect_timeout_posted},
    {"many transfers at once keep connections", test_many_at_once_and_keep_alive},
    {"many transfers at once keep connections (POST)", test_many_at_once_and_keep_alive_posted},
    {"transfers are cancelled and dropped", test_cancel_and_drop},
    {"transfers are cancelled and dropped (POST)", test_cancel_and_drop_posted},
    {"which URLs are accepted", test_urls},
    {"headers with line breaks are refused", test_headers_cannot_be_smuggled},
    CU_TEST_INFO_NULL};
