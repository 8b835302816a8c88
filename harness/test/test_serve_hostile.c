/* Tests a server with clients that vanish, send too much or ask for too much, while another
 * client's answer goes on. */
#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/test/sanitized.h"
#include "harness/serve/serve_worker.h"
#include "harness/test/serve_answers.h"

#define CHAT        "/v1/chat/completions"
#define COMPLETIONS "/v1/completions"
#define RUNNING     "vllm:num_requests_running"
#define LARGE       "snapmla:large_requests"
#define ABORTED     "vllm:request_success_total{finished_reason=\"abort\""

enum { kContext = 8192 /* context of the model of serve_child.h */ };

/* An answer of drawn tokens, beside which other clients misbehave. It is longer than any test
 * needs, so that it does not end before. */
#define NEIGHBOUR(tokens)                                                                          \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Count to 900.\"}],\"seed\":11,"               \
    "\"ignore_eos\":true,\"max_tokens\":" #tokens ",\"stream\":true}"
enum { kCompared = 500 /* events of the answer that are compared */ };

/* Starts the neighbour and waits until its answer has begun. */
static int start_neighbour(const serve_child *c) {
    char byte;
    int fd = serve_connect(c);
    CU_ASSERT_FATAL(fd >= 0);
    serve_send(fd, CHAT, NULL, NEIGHBOUR(8000));
    CU_ASSERT_EQUAL(recv(fd, &byte, 1, MSG_PEEK), 1);
    return fd;
}

/* The text of the first events of the neighbour's answer. The caller frees it. */
static char *neighbour_text(int fd) {
    serve_reply r;
    serve_read_events(fd, kCompared, &r);
    CU_ASSERT_EQUAL(r.status, 200);
    serve_stream s = serve_stream_read(&r);
    CU_ASSERT_EQUAL(js_len(s.all), kCompared);
    char *text = strdup(buf_str(&s.text[0]));
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    serve_stream_release(&s);
    serve_reply_release(&r);
    return text;
}

/* The text of neighbour_text() from a server without other clients. */
static char *text_alone(const serve_child *c) {
    char *text = neighbour_text(start_neighbour(c));
    CU_ASSERT_TRUE(serve_await(c, RUNNING, 0));
    return text;
}

static void expect_same(int fd, const char *alone) {
    char *text = neighbour_text(fd);
    CU_ASSERT_STRING_EQUAL(text, alone);
    free(text);
}

/* ---- clients that vanish ---- */

/* Begins a request, reads the beginning of its answer, and ends the connection, in one of two
 * ways. */
static void vanish(const serve_child *c, int i) {
    char piece[600], body[200];
    int fd = serve_connect(c);
    CU_ASSERT_FATAL(fd >= 0);
    (void)snprintf(body, sizeof body,
                   "{\"prompt\":\"Client %d\",\"seed\":%d,\"ignore_eos\":true,\"max_tokens\":6000,"
                   "\"stream\":true,\"n\":%d}",
                   i, i, 1 + i % 2);
    serve_send(fd, COMPLETIONS, NULL, body);
    for (size_t got = 0; got < 3 * sizeof piece;) {
        ssize_t n = recv(fd, piece, sizeof piece, 0);
        CU_ASSERT_FATAL(n > 0);
        got += (size_t)n;
    }
    struct linger reset = {.l_onoff = i % 3 == 0}; /* a reset in place of an orderly end */
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    (void)close(fd);
}

static void test_neighbour_of_vanishing_clients(void) {
    enum { kVanishing = 12 };
    serve_child c;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 3);
    char *alone = text_alone(&c);
    int fd = start_neighbour(&c);
    for (int i = 0; i < kVanishing; i++)
        vanish(&c, i);
    /* Every second client has two choices. The client of text_alone() left before the end, too. */
    CU_ASSERT_TRUE(serve_await(&c, ABORTED, kVanishing + kVanishing / 2 + 1));
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 1)); /* the neighbour was there all the time */
    expect_same(fd, alone);
    free(alone);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* ---- prompts longer than the context ---- */

static void expect_too_long(const serve_child *c, const char *path, const char *body) {
    serve_reply r;
    serve_ask(c, path, NULL, body, &r);
    CU_ASSERT_EQUAL(r.status, 400);
    js *v = serve_parse(&r);
    const char *code = js_get_str(js_get_object(v, "error"), "code");
    CU_ASSERT_PTR_NOT_NULL_FATAL(code);
    CU_ASSERT_STRING_EQUAL(code, "context_length_exceeded");
    js_free(v);
    serve_reply_release(&r);
}

/* A request for one token after a prompt of @n equal ids. */
static void make_ids(int n, buf *out) {
    buf_clear(out);
    (void)buf_puts(out, "{\"max_tokens\":1,\"ignore_eos\":true,\"prompt\":[5");
    for (int i = 1; i < n; i++)
        (void)buf_puts(out, ",5");
    (void)buf_puts(out, "]}");
}

/* A prompt of 8 tokens, and an answer of @tokens. */
#define FILLING(tokens)                                                                            \
    "{\"prompt\":[1,2,3,4,5,6,7,8],\"stream\":true,\"ignore_eos\":true,\"max_tokens\":" #tokens "}"

static void test_prompts_longer_than_the_context(void) {
    serve_child c;
    buf body = {0}, text = {0};
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 3);
    char *alone = text_alone(&c);
    int fd = start_neighbour(&c);
    for (int i = 0; i < 20000; i++)
        (void)buf_printf(&text, "%d ", 7919 * i);
    (void)buf_printf(&body, "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}",
                     buf_str(&text));
    expect_too_long(&c, CHAT, buf_str(&body));
    buf_clear(&body);
    (void)buf_printf(&body, "{\"prompt\":[\"x\",\"%s\"],\"max_tokens\":1}", buf_str(&text));
    expect_too_long(&c, COMPLETIONS, buf_str(&body));
    make_ids(300000, &body);
    expect_too_long(&c, COMPLETIONS, buf_str(&body));
    make_ids(kContext, &body);
    expect_too_long(&c, COMPLETIONS, buf_str(&body));
    expect_too_long(&c, COMPLETIONS, FILLING(8185)); /* one token too much for the context */
    int fits = serve_connect(&c);
    serve_send(fits, COMPLETIONS, NULL, FILLING(8184));
    serve_reply r;
    serve_read_events(fits, 3, &r);
    CU_ASSERT_EQUAL(r.status, 200);
    serve_reply_release(&r);
    expect_same(fd, alone);
    buf_release(&body);
    buf_release(&text);
    free(alone);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* ---- bodies of 1 GB ---- */

/* Memory of a process that is in use, in MiB. */
static double resident_mb(pid_t pid) {
    char path[64];
    buf text = {0};
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
    const char *at = strstr(buf_str(&text), "VmRSS:");
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    double kb = strtod(at + strlen("VmRSS:"), NULL);
    buf_release(&text);
    return kb / 1024;
}

/* Sends @head and then pieces until 1 GB is sent or the server ends the connection. Returns the
 * bytes that were sent. */
static double send_much(const serve_child *c, const char *head, const char *piece, size_t n) {
    const double all = 1e9;
    double sent = 0;
    int fd = serve_connect(c);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(send(fd, head, strlen(head), MSG_NOSIGNAL), (ssize_t)strlen(head));
    while (sent < all && send(fd, piece, n, MSG_NOSIGNAL) == (ssize_t)n)
        sent += (double)n;
    (void)close(fd);
    return sent;
}

static void test_bodies_of_a_gigabyte(void) {
    enum { kPiece = 1 << 16 };
    serve_child c;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 3);
    char *alone = text_alone(&c), *piece = malloc(kPiece + 20);
    CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
    int fd = start_neighbour(&c);
    double before = resident_mb(c.pid);
    (void)snprintf(piece, kPiece + 20, "%x\r\n%*s\r\n", kPiece, kPiece, "");
    for (int i = 0; i < 4; i++) {
        double sent =
            i % 2 ? send_much(&c,
                              "POST " CHAT " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n"
                              "\r\n",
                              piece, kPiece)
                  : send_much(&c,
                              "POST " CHAT " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                              "\r\n",
                              piece, strlen(piece));
        CU_ASSERT(sent < 1e8); /* the server did not read all of it */
    }
    CU_ASSERT(resident_mb(c.pid) - before < 64);
    expect_same(fd, alone);
    free(alone);
    free(piece);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* ---- many bodies that do not end ---- */

/* The bodies of several clients stop before their end. The server keeps only the bodies that came
 * last, closes the connections of the others, and answers further clients. */
static void test_bodies_that_stop(void) {
    enum { kClients = 12, kKept = 3, kBody = 22000, kPart = 20000 };
    serve_child c;
    serve_reply r;
    int fd[kClients];
    char byte;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.max_bodies = kKept * kPart + 3000}, 3);
    char *piece = malloc(kBody);
    CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
    memset(piece, ' ', kBody);
    for (int i = 0; i < kClients; i++) {
        static const char head[] =
            "POST " CHAT " HTTP/1.1\r\nHost: x\r\nContent-Length: 22000\r\n\r\n";
        fd[i] = serve_connect(&c);
        CU_ASSERT_FATAL(fd[i] >= 0);
        CU_ASSERT_EQUAL(send(fd[i], head, strlen(head), MSG_NOSIGNAL), (ssize_t)strlen(head));
        CU_ASSERT_EQUAL(send(fd[i], piece, kPart, MSG_NOSIGNAL), kPart);
        for (int k = 0; k < 5; k++) /* meanwhile the server reads the body */
            (void)serve_metric(&c, RUNNING);
    }
    for (int i = 0; i < kClients - kKept; i++)
        CU_ASSERT(recv(fd[i], &byte, 1, 0) <= 0);
    js_free(serve_ask_json(&c, COMPLETIONS, "{\"prompt\":\"x\",\"max_tokens\":1}"));
    for (int i = kClients - kKept; i < kClients; i++) {
        CU_ASSERT_EQUAL(send(fd[i], piece, kBody - kPart, MSG_NOSIGNAL), kBody - kPart);
        serve_read_one(fd[i], false, &r);
        CU_ASSERT_EQUAL(r.status, 400); /* the body has only spaces, which are no JSON */
        serve_reply_release(&r);
    }
    for (int i = 0; i < kClients - kKept; i++)
        (void)close(fd[i]);
    free(piece);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* ---- large requests ---- */

/* A request of almost a megabyte for the tokens of a text. */
static void make_large(buf *out) {
    (void)buf_puts(out, "{\"prompt\":\"");
    for (int i = 0; out->len < 1000000; i++)
        (void)buf_printf(out, "%d word", 7919 * i);
    (void)buf_puts(out, "\"}");
}

/* Sends the request @n times, each time on a connection of its own. */
static void send_large(const serve_child *c, const buf *body, int *fd, int n) {
    for (int i = 0; i < n; i++) {
        fd[i] = serve_connect(c);
        CU_ASSERT_FATAL(fd[i] >= 0);
        serve_send(fd[i], "/tokenize", NULL, buf_str(body));
    }
}

static void expect_tokens(int fd) {
    serve_reply r;
    serve_read(fd, &r);
    CU_ASSERT_EQUAL(r.status, 200);
    js *v = serve_parse(&r);
    CU_ASSERT(js_get_int(v, "count", 0) > 100000);
    js_free(v);
    serve_reply_release(&r);
}

/* Whether an answer has arrived. */
static bool has_answer(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

/* Waits until all of the large requests have arrived: they wait, are being read or are answered. */
static void await_arrival(const serve_child *c, const int *fd, int n) {
    int found = 0;
    for (int i = 0; i < 6000 && found < n; i++) {
        found = 0;
        for (int k = 0; k < n; k++)
            found += has_answer(fd[k]);
        found += (int)serve_metric(c, LARGE);
    }
    CU_ASSERT_EQUAL(found, n);
}

/* Reads @events events of a stream, after those that have arrived. */
static void read_more(int fd, int events) {
    char piece[1 << 14];
    while (recv(fd, piece, sizeof piece, MSG_DONTWAIT) > 0)
        continue;
    for (int i = 0; i < events;) {
        ssize_t n = recv(fd, piece, sizeof piece - 1, 0);
        CU_ASSERT_FATAL(n > 0);
        piece[n] = '\0';
        for (const char *at = piece; (at = strstr(at, "data: {")); at++)
            i++;
    }
}

/* A task that waits for a byte. */
static void run_task(serve_task *t) {
    char byte;
    if (read(*(const int *)t->user, &byte, 1) != 1)
        abort();
}

static serve_task *await_task(serve_worker *w, int wake) {
    uint64_t count;
    CU_ASSERT_EQUAL(read(wake, &count, sizeof count), (ssize_t)sizeof count);
    return serve_worker_collect(w);
}

/* The first task runs while the others are taken back, refused or wait. */
static void test_worker(void) {
    int ends[2], wake = eventfd(0, EFD_CLOEXEC);
    serve_worker *w;
    serve_task t[4];
    CU_ASSERT_FATAL(pipe(ends) == 0 && wake >= 0);
    for (int i = 0; i < 4; i++)
        t[i] = (serve_task){.run = run_task, .user = &ends[0], .bytes = 10};
    t[0].bytes = 50; /* more than the limit, but alone */
    CU_ASSERT_EQUAL_FATAL(serve_worker_start(&w, wake, 30, NULL), SNAP_OK);
    CU_ASSERT(serve_worker_put(w, &t[0]));
    CU_ASSERT(!serve_worker_put(w, &t[1]));
    CU_ASSERT_EQUAL(write(ends[1], "x", 1), 1);
    CU_ASSERT_PTR_EQUAL(await_task(w, wake), &t[0]);
    for (int i = 0; i < 3; i++)
        CU_ASSERT(serve_worker_put(w, &t[i + 1]));
    CU_ASSERT(!serve_worker_put(w, &t[0]));
    CU_ASSERT(serve_worker_take_back(w, &t[3])); /* t[3] was the last of the list: it must be put
                                                    after t[2] again */
    CU_ASSERT(serve_worker_put(w, &t[3]));
    CU_ASSERT(serve_worker_take_back(w, &t[2]));
    CU_ASSERT(!serve_worker_take_back(w, &t[2]));
    CU_ASSERT_EQUAL(serve_worker_pending(w), 2);
    CU_ASSERT_EQUAL(write(ends[1], "x", 1), 1);
    CU_ASSERT_PTR_EQUAL(await_task(w, wake), &t[1]);
    CU_ASSERT(!serve_worker_take_back(w, &t[1]));
    CU_ASSERT_EQUAL(write(ends[1], "x", 1), 1);
    CU_ASSERT_PTR_EQUAL(await_task(w, wake), &t[3]);
    CU_ASSERT_PTR_NULL(serve_worker_collect(w));
    CU_ASSERT_EQUAL(serve_worker_pending(w), 0);
    serve_worker_stop(w);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(wake);
}

/* The thread of HTTP answers others, and a stream goes on, before the large requests are read. With
 * the thread sanitizer, reading one takes several times as long, so fewer are enough. */
static void test_streams_beside_large_requests(void) {
    enum { kLarge = kThreadSanitized ? 4 : 12 };
    serve_child c;
    buf body = {0};
    int fd[kLarge];
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 3);
    int stream = start_neighbour(&c);
    make_large(&body);
    send_large(&c, &body, fd, kLarge);
    await_arrival(&c, fd, kLarge);
    read_more(stream, 3);
    CU_ASSERT(serve_metric(&c, LARGE) > 0);
    CU_ASSERT(!has_answer(fd[kLarge - 1]));
    for (int i = 0; i < kLarge; i++)
        expect_tokens(fd[i]);
    CU_ASSERT_EQUAL(serve_metric(&c, LARGE), 0);
    (void)close(stream);
    buf_release(&body);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* If clients leave, their requests are not read any more, except the one that is being read. */
static void test_clients_of_large_requests_leave(void) {
    enum { kLarge = 6 };
    serve_child c;
    buf body = {0};
    int fd[kLarge];
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 3);
    make_large(&body);
    send_large(&c, &body, fd, kLarge);
    await_arrival(&c, fd, kLarge);
    for (int i = 0; i + 1 < kLarge; i++)
        (void)close(fd[i]);
    expect_tokens(fd[kLarge - 1]);
    CU_ASSERT_EQUAL(serve_metric(&c, LARGE), 0);
    js_free(serve_ask_json(&c, COMPLETIONS, "{\"prompt\":\"x\",\"max_tokens\":1}"));
    send_large(&c, &body, fd, kLarge); /* once more, but now the server ends while requests wait */
    await_arrival(&c, fd, kLarge);
    for (int i = 0; i < kLarge; i++)
        (void)close(fd[i]);
    buf_release(&body);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* A server that drains answers the large requests that it has. */
static void test_drain_of_large_requests(void) {
    enum { kLarge = 4 };
    serve_child c;
    buf body = {0};
    int fd[kLarge], status;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 3);
    make_large(&body);
    send_large(&c, &body, fd, kLarge);
    await_arrival(&c, fd, kLarge);
    CU_ASSERT_EQUAL(kill(c.pid, SIGTERM), 0);
    for (int i = 0; i < kLarge; i++)
        expect_tokens(fd[i]);
    CU_ASSERT_EQUAL(waitpid(c.pid, &status, 0), c.pid);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    buf_release(&body);
    serve_child_remove(&c);
}

/* Large requests that wait to be read have the limit max_bodies, too. Requests beyond it are
 * refused with 429. */
static void test_too_many_large_requests(void) {
    enum { kLarge = 8 };
    serve_child c;
    buf body = {0};
    int fd[kLarge], refused = 0, answered = 0, rounds = 0;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.max_bodies = 2500000}, 3);
    make_large(&body);
    for (; rounds < 10 && !refused; rounds++) { /* a fast thread may have read each one in time */
        for (int i = 0; i < kLarge; i++) {
            send_large(&c, &body, fd + i, 1);
            for (int k = 0; k < 5; k++) /* meanwhile the server reads the body */
                (void)serve_metric(&c, RUNNING);
        }
        for (int i = 0; i < kLarge; i++) {
            serve_reply r;
            serve_read(fd[i], &r);
            answered += r.status == 200;
            refused += r.status == 429;
            CU_ASSERT(r.status != 429 || strcasestr(buf_str(&r.head), "Retry-After: 1\r\n"));
            serve_reply_release(&r);
        }
    }
    CU_ASSERT_EQUAL(answered + refused, rounds * kLarge);
    CU_ASSERT(answered >= 2 && refused >= 1);
    buf_release(&body);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* Large requests get the same answers and errors as small ones. */
static void test_answers_to_large_requests(void) {
    serve_child c;
    buf large = {0}, small = {0}, ids = {0};
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 3);
    for (int i = 0; i < 2000; i++)
        (void)buf_printf(&ids, "%s%d", i ? "," : "", 5 + i % 90);
    const char *rest = "\"max_tokens\":8,\"seed\":3,\"ignore_eos\":true,\"echo\":true";
    (void)buf_printf(&small, "{\"prompt\":[%s],%s}", buf_str(&ids), rest);
    (void)buf_printf(&large, "{\"prompt\":[%s],%s,\"user\":\"%09000d\"}", buf_str(&ids), rest, 0);
    js *a = serve_ask_json(&c, COMPLETIONS, buf_str(&small));
    js *b = serve_ask_json(&c, COMPLETIONS, buf_str(&large));
    CU_ASSERT_STRING_EQUAL(js_get_str(serve_choice(a, 0), "text"),
                           js_get_str(serve_choice(b, 0), "text"));
    CU_ASSERT_EQUAL(serve_usage(a, "prompt_tokens"), 2000);
    CU_ASSERT_EQUAL(serve_usage(b, "prompt_tokens"), 2000);
    serve_reply r;
    serve_ask(&c, COMPLETIONS, NULL, buf_str(&large) + 1, &r); /* no JSON */
    CU_ASSERT_EQUAL(r.status, 400);
    serve_reply_release(&r);
    js_free(a);
    js_free(b);
    buf_release(&large);
    buf_release(&small);
    buf_release(&ids);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

CU_TestInfo tests_serve_hostile[] = {
    {"tasks of the worker thread can be taken back", test_worker},
    {"streams beside large requests", test_streams_beside_large_requests},
    {"clients of large requests leave", test_clients_of_large_requests_leave},
    {"drain of large requests", test_drain_of_large_requests},
    {"too many large requests", test_too_many_large_requests},
    {"answers to large requests", test_answers_to_large_requests},
    {"clients that vanish do not disturb another client", test_neighbour_of_vanishing_clients},
    {"prompts longer than the context", test_prompts_longer_than_the_context},
    {"bodies of a gigabyte", test_bodies_of_a_gigabyte},
    {"bodies that stop before their end", test_bodies_that_stop},
    CU_TEST_INFO_NULL,
};
