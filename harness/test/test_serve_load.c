/* test_serve_load.c - a server under load, with clients that misbehave, and at its end */
#include <CUnit/CUnit.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "harness/test/serve_answers.h"

#define CHAT        "/v1/chat/completions"
#define COMPLETIONS "/v1/completions"
#define MESSAGES    "\"messages\":[{\"role\":\"user\",\"content\":\"What is 2 + 2?\"}]"
#define RUNNING     "vllm:num_requests_running"

/* An answer that takes long: 8000 tokens. */
#define LONG(more) "{" MESSAGES ",\"ignore_eos\":true,\"max_tokens\":8000" more "}"

#define ENDED   "vllm:request_success_total{finished_reason=\"length\""
#define ABORTED "vllm:request_success_total{finished_reason=\"abort\""

static void test_clients_that_vanish(void) {
    serve_child c;
    int fd[6];
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 4);
    for (int i = 0; i < 6; i++) {
        fd[i] = serve_connect(&c);
        serve_send(fd[i], CHAT, NULL, i % 2 ? LONG(",\"n\":2") : LONG(",\"stream\":true"));
    }
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 4));
    CU_ASSERT_TRUE(serve_await(&c, "vllm:num_requests_waiting", 5));
    for (int i = 0; i < 6; i++)
        (void)close(fd[i]);
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 0));
    CU_ASSERT_TRUE(serve_await(&c, "vllm:num_requests_waiting", 0));
    CU_ASSERT_EQUAL(serve_metric(&c, ABORTED), 9); /* choices */
    CU_ASSERT(serve_metric(&c, "vllm:generation_tokens_total") < 9 * 8000);
    js *v = serve_ask_json(&c, CHAT, "{" MESSAGES ",\"max_tokens\":2}");
    js_free(v);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* The engine has room for one sequence, so the three choices are made one after the other. */
static void test_choices_that_ended_are_not_aborted(void) {
    serve_child c;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 1);
    int fd = serve_connect(&c);
    serve_send(fd, CHAT, NULL, "{" MESSAGES ",\"ignore_eos\":true,\"max_tokens\":2000,\"n\":3}");
    CU_ASSERT_TRUE(serve_await(&c, ENDED, 1));
    (void)close(fd);
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 0));
    CU_ASSERT_EQUAL(serve_metric(&c, ENDED), 1);
    CU_ASSERT_EQUAL(serve_metric(&c, ABORTED), 2);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

static void test_a_full_queue(void) {
    serve_child c;
    serve_reply r;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.max_queue = 1}, 1);
    int a = serve_connect(&c), b = serve_connect(&c);
    serve_send(a, CHAT, NULL, LONG(",\"stream\":true"));
    serve_send(b, CHAT, NULL, LONG());
    CU_ASSERT_TRUE(serve_await(&c, "vllm:num_requests_waiting", 1));
    serve_ask(&c, CHAT, NULL, "{" MESSAGES "}", &r);
    CU_ASSERT_EQUAL(r.status, 429);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.head), "Retry-After: "));
    serve_reply_release(&r);
    CU_ASSERT_EQUAL(serve_metric(&c, "snapmla:requests_refused_total"), 1);
    (void)close(a);
    (void)close(b);
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 0));
    serve_child_stop(&c);
    serve_child_remove(&c);
}

static void test_one_client_has_too_many(void) {
    serve_child c;
    serve_reply r;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.max_per_client = 3}, 2);
    int a = serve_connect(&c), b = serve_connect(&c);
    serve_send(a, CHAT, NULL, LONG(",\"stream\":true"));
    serve_send(b, CHAT, NULL, LONG());
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 2));
    serve_ask(&c, CHAT, NULL, "{" MESSAGES ",\"n\":2}", &r);
    CU_ASSERT_EQUAL(r.status, 429);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.head), "Retry-After: "));
    js *v = serve_parse(&r);
    CU_ASSERT_TRUE(text_equal(js_get_str(js_get_object(v, "error"), "code"), "client_limit"));
    js_free(v);
    serve_reply_release(&r);
    int other = serve_connect_from(&c, INADDR_LOOPBACK + 1), own = serve_connect(&c);
    serve_send(other, CHAT, NULL, LONG(",\"n\":3"));
    CU_ASSERT_TRUE(serve_await(&c, "vllm:num_requests_waiting", 3));
    serve_send(own, CHAT, NULL, LONG());
    CU_ASSERT_TRUE(serve_await(&c, "vllm:num_requests_waiting", 4));
    (void)close(a);
    (void)close(b);
    (void)close(own);
    (void)close(other);
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 0));
    CU_ASSERT_TRUE(serve_await(&c, "vllm:num_requests_waiting", 0));
    js_free(serve_ask_json(
        &c, CHAT, "{" MESSAGES ",\"n\":3,\"max_tokens\":2}")); /* nothing is left of them */
    CU_ASSERT_EQUAL(serve_metric(&c, "snapmla:requests_refused_total"), 1);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

static void test_the_end_waits_for_streams(void) {
    serve_child c;
    serve_reply r;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.drain_s = 600}, 4);
    int fd = serve_connect(&c);
    serve_send(fd, CHAT, NULL,
               "{" MESSAGES ",\"ignore_eos\":true,\"max_tokens\":600,\"stream\":true}");
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 1));
    CU_ASSERT_EQUAL(kill(c.pid, SIGTERM), 0);
    do
        serve_ask(&c, "/health", NULL, NULL, &r);
    while (r.status == 200 && (serve_reply_release(&r), true));
    CU_ASSERT_EQUAL(r.status, 503);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.head), "Retry-After: "));
    serve_reply_release(&r);
    serve_ask(&c, CHAT, NULL, "{" MESSAGES "}", &r);
    CU_ASSERT_EQUAL(r.status, 503);
    serve_reply_release(&r);
    serve_read(fd, &r);
    serve_stream s = serve_stream_read(&r);
    CU_ASSERT_EQUAL(s.done, 1);
    CU_ASSERT_TRUE(text_equal(s.finish[0], "length"));
    serve_stream_release(&s);
    serve_reply_release(&r);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

static void test_the_end_does_not_wait_for_ever(void) {
    serve_child c;
    serve_reply r;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.drain_s = 0.05}, 4);
    int stream = serve_connect(&c), whole = serve_connect(&c);
    serve_send(stream, CHAT, NULL, LONG(",\"stream\":true,\"n\":2"));
    serve_send(whole, CHAT, NULL, LONG(",\"n\":2"));
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 4));
    serve_child_stop(&c);
    serve_read(stream, &r);
    CU_ASSERT_EQUAL(r.status, 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.body), "data: {\"error\":"));
    CU_ASSERT_PTR_NULL(strstr(buf_str(&r.body), "[DONE]"));
    serve_reply_release(&r);
    serve_read(whole, &r);
    CU_ASSERT_EQUAL(r.status, 503);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.head), "Retry-After: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.body), "\"draining\""));
    serve_reply_release(&r);
    serve_child_remove(&c);
}

static void test_time_limit(void) {
    serve_child c;
    serve_reply r;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.timeout_s = 0.3}, 4);
    serve_ask(&c, CHAT, NULL, LONG(",\"n\":4"), &r);
    CU_ASSERT_EQUAL(r.status, 504);
    serve_reply_release(&r);
    serve_ask(&c, CHAT, NULL, LONG(",\"n\":4,\"stream\":true"), &r);
    CU_ASSERT_EQUAL(r.status, 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.body), "data: {\"error\":"));
    CU_ASSERT_PTR_NULL(strstr(buf_str(&r.body), "[DONE]"));
    serve_reply_release(&r);
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 0));
    serve_child_stop(&c);
    serve_child_remove(&c);
}

static void send_text(int fd, const char *s) {
    (void)send(fd, s, strlen(s), MSG_NOSIGNAL);
}

static void test_large_bodies(void) {
    serve_child c;
    serve_reply r;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.max_body = 5000}, 4);
    int fd = serve_connect(&c); /* the body never comes */
    send_text(fd, "POST " CHAT " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
    serve_read(fd, &r);
    CU_ASSERT_EQUAL(r.status, 413);
    serve_reply_release(&r);
    char piece[1100];
    memset(piece, ' ', sizeof piece);
    (void)snprintf(piece, sizeof piece, "400\r\n%1024s\r\n", "");
    for (int pieces = 6; pieces < 1000; pieces += 500) {
        fd = serve_connect(&c);
        send_text(fd, "POST " CHAT " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < pieces; i++)
            send_text(fd, piece);
        send_text(fd, "0\r\n\r\n");
        serve_read(fd, &r);
        CU_ASSERT_EQUAL(r.status, pieces < 10 ? 413 : 0); /* far too much: the connection ends */
        serve_reply_release(&r);
    }
    buf head = {0};
    (void)buf_puts(&head, "GET /health HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 1000; i++)
        (void)buf_printf(&head, "X-%d: %0100d\r\n", i, i);
    fd = serve_connect(&c);
    send_text(fd, buf_str(&head));
    send_text(fd, "\r\n");
    serve_read(fd, &r);
    CU_ASSERT(r.status == 431 || r.status == 0); /* the rest of the headers may reset it */
    serve_reply_release(&r);
    serve_ask(&c, "/health", NULL, NULL, &r);
    CU_ASSERT_EQUAL(r.status, 200);
    serve_reply_release(&r);
    buf_release(&head);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* Waits until there are at most @most connections, the one that reads the metric included. */
static void await_connections(const serve_child *c, int most) {
    int tries = 0;
    while (serve_metric(c, "snapmla:connections") > most && tries < 6000) {
        clock_sleep_ns(10000000);
        tries++;
    }
    CU_ASSERT(tries < 6000);
}

/* A low limit on open files must not allow more connections than the options do. */
static void test_few_open_files(void) {
    enum { kIdle = 40 };
    serve_child c;
    int fd[kIdle];
    serve_child_make(&c);
    c.files = 300;
    serve_child_start(&c, &(serve_options){.max_connections = 20}, 4);
    for (int i = 0; i < kIdle; i++)
        fd[i] = serve_connect(&c);
    await_connections(&c, 21);
    for (int i = 0; i < kIdle; i++)
        (void)close(fd[i]);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

static void test_idle_and_slow_connections(void) {
    enum { kIdle = 60 };
    serve_child c;
    serve_reply r;
    int fd[kIdle];
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.max_connections = 20}, 4);
    int busy = serve_connect(&c);
    serve_send(busy, CHAT, NULL,
               "{" MESSAGES ",\"ignore_eos\":true,\"max_tokens\":1000,\"stream\":true}");
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 1));
    for (int i = 0; i < kIdle; i++) {
        fd[i] = serve_connect(&c);
        CU_ASSERT_FATAL(fd[i] >= 0);
        if (i % 2)
            send_text(fd[i], "POST " CHAT " HTTP/1.1\r\nHost: x\r\nContent-Le");
    }
    await_connections(&c, 21);
    js *v = serve_ask_json(&c, CHAT, "{" MESSAGES ",\"max_tokens\":2}");
    js_free(v);
    serve_read(busy, &r); /* the stream goes on undisturbed */
    serve_stream s = serve_stream_read(&r);
    CU_ASSERT_EQUAL(s.done, 1);
    CU_ASSERT_TRUE(text_equal(s.finish[0], "length"));
    serve_stream_release(&s);
    serve_reply_release(&r);
    for (int i = 0; i < kIdle; i++)
        (void)close(fd[i]);
    serve_child_stop(&c);
    /* A request that does not arrive in time. */
    serve_child_start(&c, &(serve_options){.receive_s = 1}, 4);
    int slow = serve_connect(&c);
    int64_t from = clock_now_ns();
    send_text(slow, "POST " CHAT " HTTP/1.1\r\n");
    for (int i = 0; i < 300; i++) {
        char byte;
        send_text(slow, "X");
        if (recv(slow, &byte, 1, MSG_DONTWAIT) == 0)
            break;
        clock_sleep_ns(100000000);
    }
    serve_read(slow, &r);
    CU_ASSERT_EQUAL(r.status, 0);
    CU_ASSERT((double)(clock_now_ns() - from) / 1e9 > 0.9);
    serve_reply_release(&r);
    CU_ASSERT_TRUE(serve_await(&c, "snapmla:connections", 1));
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* Two requests on one connection, sent at once. */
static void test_one_connection_for_many_requests(void) {
    static const char *const pair =
        "POST " COMPLETIONS " HTTP/1.1\r\nHost: x\r\nContent-Length: 47\r\n\r\n"
        "{\"prompt\":\"x\",\"max_tokens\":1,\"ignore_eos\":true}"
        "GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    serve_child c;
    serve_reply r;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 4);
    int fd = serve_connect(&c);
    send_text(fd, pair);
    serve_read(fd, &r);
    CU_ASSERT_EQUAL(r.status, 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.body), "\"finish_reason\":\"length\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.body), "\"version\":\"1.2.3\""));
    serve_reply_release(&r);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

static void test_many_streams(void) {
    enum { kStreams = 200 };
    static int fd[kStreams];
    serve_child c;
    serve_reply r;
    buf first = {0};
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.max_queue = 300}, 16);
    for (int i = 0; i < kStreams; i++) {
        fd[i] = serve_connect(&c);
        CU_ASSERT_FATAL(fd[i] >= 0);
        serve_send(fd[i], CHAT, NULL,
                   "{" MESSAGES ",\"temperature\":0,\"ignore_eos\":true,\"max_tokens\":12,"
                   "\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    }
    for (int i = 0; i < kStreams; i++) {
        serve_read(fd[i], &r);
        serve_stream s = serve_stream_read(&r);
        CU_ASSERT_EQUAL(s.done, 1);
        CU_ASSERT_EQUAL(s.completion, 12);
        if (!i)
            (void)buf_puts(&first, buf_str(&s.text[0]));
        CU_ASSERT_STRING_EQUAL(buf_str(&s.text[0]), buf_str(&first));
        serve_stream_release(&s);
        serve_reply_release(&r);
    }
    buf_release(&first);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

static void test_places_that_cannot_be_used(void) {
    serve_child c;
    local_model m;
    snap_err err = {0};
    volatile sig_atomic_t cancel = 1;
    local_options how = {.context = 256, .sequences = 1, .threads = 1};
    serve_options o = {.host = "256.1.1.1",
                       .model = "tiny",
                       .version = "1",
                       .max_body = 100,
                       .receive_s = 1,
                       .max_connections = 4,
                       .cancel = &cancel};
    serve_child_make(&c);
    CU_ASSERT_EQUAL_FATAL(local_open(&m, c.dir, &how, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(serve_run(&m, &o, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "256.1.1.1"));
    err = (snap_err){0};
    o.host = "192.0.2.1"; /* no machine has this address */
    CU_ASSERT_EQUAL(serve_run(&m, &o, &err), SNAP_E_IO);
    serve_child_start(&c, &(serve_options){0}, 1);
    o.host = "127.0.0.1";
    o.port = c.port; /* another server has this port */
    err = (snap_err){0};
    CU_ASSERT_EQUAL(serve_run(&m, &o, &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "Address already in use"));
    serve_child_stop(&c);
    local_close(&m);
    serve_child_remove(&c);
}

CU_TestInfo tests_serve_load[] = {
    {"clients that vanish", test_clients_that_vanish},
    {"choices that ended are not aborted", test_choices_that_ended_are_not_aborted},
    {"a full queue refuses requests", test_a_full_queue},
    {"one client has too many sequences", test_one_client_has_too_many},
    {"the end waits for streams", test_the_end_waits_for_streams},
    {"the end does not wait for ever", test_the_end_does_not_wait_for_ever},
    {"a request beyond the time limit gets status 504", test_time_limit},
    {"large bodies and headers", test_large_bodies},
    {"few open files allow fewer connections", test_few_open_files},
    {"idle and slow connections", test_idle_and_slow_connections},
    {"one connection for many requests", test_one_connection_for_many_requests},
    {"many streams at once", test_many_streams},
    {"addresses that cannot be used", test_places_that_cannot_be_used},
    CU_TEST_INFO_NULL,
};
