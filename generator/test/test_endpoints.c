/* Tests several servers of one generator: which gets a request, and what happens when one fails. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "generator/http/client.h"
#include "generator/http/client_parts.h"
#include "generator/http/endpoints.h"
#include "generator/test/drive.h"
#include "generator/test/scripted_server.h"

static const retry_policy quick = {.base_s = 0.002, .cap_s = 0.01, .server_cap_s = 0.5};
static const reply good = {.body = CHAT_WHOLE("42", "stop"), .step = 400, .pause_ns = 1000000};

/* ---- choosing a server ---- */

static void test_the_least_loaded_is_chosen(void) {
    endpoints e = {0};
    CU_ASSERT_EQUAL_FATAL(endpoints_parse(&e, "http://a/v1|http://b/v1/|https://c", NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(e.n, 3);
    CU_ASSERT_STRING_EQUAL(e.list[1].chat_url, "http://b/v1/chat/completions");
    CU_ASSERT_STRING_EQUAL(e.list[2].models_url, "https://c/models");
    for (int i = 0; i < 30; i++) {
        endpoint *at = endpoints_choose(&e, 0);
        at->in_flight++;
        at->started++;
    }
    CU_ASSERT(e.list[0].in_flight == 10 && e.list[1].in_flight == 10 && e.list[2].in_flight == 10);
    e.list[1].in_flight = 3;
    CU_ASSERT_PTR_EQUAL(endpoints_choose(&e, 0), &e.list[1]);
    CU_ASSERT_TRUE(endpoints_failure(&e, &e.list[1], true));
    CU_ASSERT_PTR_NOT_EQUAL(endpoints_choose(&e, 0), &e.list[1]);
    CU_ASSERT_FALSE(endpoints_failure(&e, &e.list[1], true)); /* counted only once */
    endpoints_success(&e.list[1]);
    CU_ASSERT_PTR_EQUAL(endpoints_choose(&e, 0), &e.list[1]);
    CU_ASSERT_EQUAL(e.outages, 1);
    endpoints_release(&e);
}

static void test_strikes(void) {
    endpoints e = {0};
    CU_ASSERT_EQUAL_FATAL(endpoints_parse(&e, "http://a|http://b", NULL), SNAP_OK);
    for (int round = 0; round < 2; round++) {
        for (int i = 1; i < ENDPOINT_STRIKES; i++)
            CU_ASSERT_FALSE(endpoints_failure(&e, &e.list[0], false));
        if (round == 0)
            endpoints_success(&e.list[0]); /* resets the count */
    }
    CU_ASSERT_TRUE(endpoints_failure(&e, &e.list[0], false));
    for (int i = 0; i < ENDPOINT_STRIKES; i++)
        (void)endpoints_failure(&e, &e.list[1], false);
    CU_ASSERT_PTR_NOT_NULL(endpoints_choose(&e, 0)); /* all are out of service: one is chosen
                                                        anyway */
    endpoints_release(&e);

    CU_ASSERT_EQUAL_FATAL(endpoints_parse(&e, "http://alone", NULL), SNAP_OK);
    for (int i = 0; i < 10; i++)
        CU_ASSERT_FALSE(endpoints_failure(&e, &e.list[0], true));
    endpoints_release(&e);
}

/* The weights are 1, 3 and 0.5, so of 90 requests in flight the servers get 20, 60 and 10. */
static void test_weights(void) {
    endpoints e = {0};
    CU_ASSERT_EQUAL_FATAL(endpoints_parse(&e, "http://a/v1|http://b/v1*3|http://c/v1*0.5", NULL),
                          SNAP_OK);
    CU_ASSERT_STRING_EQUAL(e.list[1].chat_url, "http://b/v1/chat/completions");
    for (int i = 0; i < 90; i++) {
        endpoint *at = endpoints_choose(&e, 0);
        at->in_flight++;
        at->started++;
    }
    CU_ASSERT(e.list[0].in_flight == 20 && e.list[1].in_flight == 60 && e.list[2].in_flight == 10);
    for (int i = 0; i < 3; i++)
        e.list[i].in_flight = 0;
    for (int i = 0; i < 90; i++) /* with none in flight, the numbers of earlier requests decide */
        endpoints_choose(&e, 0)->started++;
    CU_ASSERT(e.list[1].started > 2 * e.list[0].started);
    endpoints_release(&e);
    static const char *const bad[] = {"http://a*0", "http://a*1e9", "http://a*5000",
                                      "http://a*1.2.3", "http://a*2|http://a*3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT_EQUAL(endpoints_parse(&e, bad[i], NULL), SNAP_E_USAGE);
        endpoints_release(&e);
    }
    CU_ASSERT_EQUAL(endpoints_parse(&e, "http://a/v*x/y", NULL), SNAP_OK); /* the star is part of
                                                                              the path */
    CU_ASSERT_STRING_EQUAL(e.list[0].chat_url, "http://a/v*x/y/chat/completions");
    endpoints_release(&e);
}

/* After a 429 a server gets no request until the time it named, then at most half as many at once
 * as before, then one more in each round. */
static void test_a_server_that_refuses_is_spared(void) {
    endpoints e = {0};
    CU_ASSERT_EQUAL_FATAL(endpoints_parse(&e, "http://a|http://b", NULL), SNAP_OK);
    endpoint *a = &e.list[0], *b = &e.list[1];
    a->in_flight = 16;
    b->in_flight = 1000;
    CU_ASSERT_PTR_EQUAL(endpoints_choose(&e, 100), a);
    for (int i = 0; i < 16; i++) { /* refused together, so they count once */
        endpoints_hold(a, 100 + i, 1000, true);
        CU_ASSERT_PTR_EQUAL(endpoints_choose(&e, 100 + i), b);
    }
    CU_ASSERT_DOUBLE_EQUAL(a->window, 8, 1e-9);
    endpoints_hold(b, 200, 700, false); /* b only reports that its limit is used up, so its window
                                           stays unlimited */
    CU_ASSERT_PTR_NULL(endpoints_choose(&e, 200));
    CU_ASSERT_EQUAL(endpoints_next_ns(&e, 200), 700);
    CU_ASSERT_PTR_EQUAL(endpoints_choose(&e, 700), b);
    CU_ASSERT_EQUAL(endpoints_next_ns(&e, 1000), INT64_MAX);
    CU_ASSERT_PTR_EQUAL(endpoints_choose(&e, 1000), b); /* a has more than its window in flight */
    a->in_flight = 7;
    CU_ASSERT_PTR_EQUAL(endpoints_choose(&e, 1000), a);
    a->in_flight = 8;
    for (int i = 0; i < 8; i++)
        endpoints_success(a);
    CU_ASSERT(a->window > 8.5 && a->window < 9);
    double before = a->window;
    endpoints_refusal(a); /* no success, so it does not raise the limit */
    CU_ASSERT_DOUBLE_EQUAL(a->window, before, 0);
    endpoints_success(a);
    CU_ASSERT_PTR_EQUAL(endpoints_choose(&e, 1000), a); /* the ninth request */
    endpoints_release(&e);
}

/* ---- over the network ---- */

/* Runs @total requests over both servers, at most @in_flight at once. All must succeed. */
static void run_both(const server *a, const server *b, int in_flight, int total, drive *d,
                     generator_load *load) {
    char urls[200];
    (void)snprintf(urls, sizeof urls, "%s/v1|%s/v1", server_url(a), server_url(b));
    generator *g;
    generator_options opt = {.no_stream = true, .max_retries = 5, .in_flight = in_flight};
    CU_ASSERT_EQUAL_FATAL(client_open(&g, urls, &opt, &quick, &d->err), SNAP_OK);
    CU_ASSERT_EQUAL(drive_run(d, g, total), SNAP_OK);
    CU_ASSERT_TRUE(generator_load_of(g, load));
    generator_close(g);
    CU_ASSERT_EQUAL(d->n_kept, total);
    for (int i = 0; i < d->n_kept; i++)
        CU_ASSERT_FALSE(d->kept[i].failed);
}

static int count_asked(const server *s, const char *start) {
    int n = 0;
    for (int i = 0; i < server_requests(s); i++)
        n += strncmp(server_request(s, i)->head, start, strlen(start)) == 0;
    return n;
}

/* An answer takes 20 ms on either server. So a thread that has to wait for a processor changes
 * little. */
static void test_two_servers_share_the_work(void) {
    static const reply even = {.body = CHAT_WHOLE("42", "stop"), .step = 20, .pause_ns = 2000000};
    server *a = server_start(&even, 1), *b = server_start(&even, 1);
    CU_ASSERT_FATAL(a && b);
    drive d = {0};
    generator_load load;
    run_both(a, b, 16, 200, &d, &load);
    server_stop(a);
    server_stop(b);
    CU_ASSERT_EQUAL(server_requests(a) + server_requests(b), 200);
    CU_ASSERT(server_requests(a) >= 50 && server_requests(b) >= 50);
    CU_ASSERT(server_most_at_once(a) <= 16 && server_most_at_once(b) <= 16);
    CU_ASSERT_EQUAL(load.outages, 0);
    drive_release(&d);
    server_free(a);
    server_free(b);
}

/* A slow server gets fewer requests: its answers take 180 ms, those of the other no time. */
static void test_a_slow_server_gets_less(void) {
    static const reply slow = {.body = CHAT_WHOLE("42", "stop"), .step = 20, .pause_ns = 20000000};
    static const reply fast = {.body = CHAT_WHOLE("42", "stop")};
    server *a = server_start(&slow, 1), *b = server_start(&fast, 1);
    CU_ASSERT_FATAL(a && b);
    drive d = {0};
    generator_load load;
    run_both(a, b, 8, 200, &d, &load);
    server_stop(a);
    server_stop(b);
    CU_ASSERT(server_requests(a) >= 4 && server_requests(a) < server_requests(b) / 2);
    drive_release(&d);
    server_free(a);
    server_free(b);
}

static void test_the_run_goes_on_without_a_dead_server(void) {
    server *a = server_start(&good, 1), *b = server_start(&good, 1);
    CU_ASSERT_FATAL(a && b);
    server_stop(a);
    drive d = {0};
    generator_load load;
    run_both(a, b, 8, 100, &d, &load);
    server_stop(b);
    CU_ASSERT_EQUAL(server_requests(b), 100);
    CU_ASSERT_EQUAL(load.outages, 1);
    drive_release(&d);
    server_free(a);
    server_free(b);
}

/* A server answers three times with 500 and once with 503, and then normally. It is taken out of
 * service after three failures, probed, and used again. */
static void test_a_server_that_recovers_is_used_again(void) {
    static const reply ill[] = {{.status = 500},
                                {.status = 500},
                                {.status = 500},
                                {.status = 503},
                                {.body = CHAT_WHOLE("42", "stop")}};
    static const reply slow = {.body = CHAT_WHOLE("42", "stop"), .step = 100, .pause_ns = 2000000};
    server *a = server_start(ill, 5), *b = server_start(&slow, 1);
    CU_ASSERT_FATAL(a && b);
    drive d = {0};
    generator_load load;
    run_both(a, b, 2, 200, &d, &load);
    server_stop(a);
    server_stop(b);
    CU_ASSERT(load.outages >= 1);
    CU_ASSERT(count_asked(a, "GET /v1/models HTTP/1.1\r\n") >= 1);
    CU_ASSERT(count_asked(a, "POST /v1/chat/completions") > 10);
    CU_ASSERT_EQUAL(count_asked(b, "GET "), 0);
    drive_release(&d);
    server_free(a);
    server_free(b);
}

/* A server refuses four requests and names a delay of 60 ms, and later reports a used-up limit with
 * a delay of 80 ms. Every request must be answered in the end, and the run must take at least
 * as long as both delays together. */
static void test_limits_of_the_server(void) {
    static const reply busy = {.status = 429, .headers = "retry-after-ms: 60\r\n"};
    static const reply spent = {.body = CHAT_WHOLE("42", "stop"),
                                .headers = "X-RateLimit-Remaining-Requests: 0\r\n"
                                           "X-RateLimit-Reset-Requests: 80ms\r\n"};
    const reply replies[] = {
        busy, busy, busy, busy, spent, spent, {.body = CHAT_WHOLE("42", "stop")}};
    server *s = server_start(replies, 7);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    char url[100];
    drive d = {0};
    generator *g;
    generator_options opt = {.no_stream = true, .max_retries = 5, .in_flight = 4};
    (void)snprintf(url, sizeof url, "%s/v1", server_url(s));
    CU_ASSERT_EQUAL_FATAL(client_open(&g, url, &opt, &quick, &d.err), SNAP_OK);
    int64_t start = clock_now_ns();
    CU_ASSERT_EQUAL(drive_run(&d, g, 12), SNAP_OK);
    CU_ASSERT(clock_now_ns() - start >= 140 * 1000000); /* 60 ms, then 80 */
    generator_close(g);
    server_stop(s);
    CU_ASSERT_EQUAL(d.n_kept, 12);
    for (int i = 0; i < d.n_kept; i++)
        CU_ASSERT_FALSE(d.kept[i].failed);
    CU_ASSERT_EQUAL(server_requests(s), 16);
    drive_release(&d);
    server_free(s);
}

/* A server refuses eight requests at once, and its headers say that its limit is used up. The first
 * refusal leaves seven in flight, so the limit of requests in flight becomes three. The other seven
 * refusals do not change it. Each of the eight answers that follow raises it by 1 / limit. */
static void test_a_refusal_with_headers(void) {
    static const retry_policy patient = {.base_s = 0.002, .cap_s = 0.01, .server_cap_s = 5};
    static const reply busy = {.status = 429,
                               .headers = "X-RateLimit-Remaining-Requests: 0\r\n"
                                          "X-RateLimit-Reset-Requests: 1s\r\n",
                               .gather = 8};
    const reply replies[] = {
        busy, busy, busy, busy, busy, busy, busy, busy, {.body = CHAT_WHOLE("42", "stop")}};
    server *s = server_start(replies, 9);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    char url[100];
    drive d = {0};
    generator *g;
    generator_options opt = {.no_stream = true, .max_retries = 5, .in_flight = 8};
    (void)snprintf(url, sizeof url, "%s/v1", server_url(s));
    CU_ASSERT_EQUAL_FATAL(client_open(&g, url, &opt, &patient, &d.err), SNAP_OK);
    CU_ASSERT_EQUAL(drive_run(&d, g, 8), SNAP_OK);
    double limit = 3;
    for (int i = 0; i < 8; i++)
        limit += 1 / limit;
    CU_ASSERT_DOUBLE_EQUAL(((const client *)g)->servers.list[0].window, limit, 1e-9);
    generator_close(g);
    server_stop(s);
    CU_ASSERT_EQUAL(d.n_kept, 8);
    CU_ASSERT_EQUAL(server_requests(s), 16);
    drive_release(&d);
    server_free(s);
}

/* A limit of 1200 requests per minute lets one request start every 50 ms, however many may be in
 * flight. A client that wakes up late starts at most the requests of the last 100 ms at once. */
static void test_limits_of_the_user(void) {
    static const reply fast = {.body = CHAT_WHOLE("42", "stop")};
    server *s = server_start(&fast, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    for (int by_tokens = 0; by_tokens < 2; by_tokens++) {
        char url[100];
        drive d = {0};
        generator *g;
        generator_options opt = {.no_stream = true, .in_flight = 16};
        if (by_tokens)
            opt.tokens_per_minute = 12000; /* 10 tokens per answer */
        else
            opt.requests_per_minute = 1200;
        (void)snprintf(url, sizeof url, "%s/v1", server_url(s));
        CU_ASSERT_EQUAL_FATAL(client_open(&g, url, &opt, &quick, &d.err), SNAP_OK);
        int64_t start = clock_now_ns();
        CU_ASSERT_EQUAL(drive_run(&d, g, 10), SNAP_OK);
        CU_ASSERT(clock_now_ns() - start >= (9 * 50 - 100) * INT64_C(1000000));
        CU_ASSERT_EQUAL(d.n_kept, 10);
        generator_close(g);
        drive_release(&d);
    }
    server_stop(s);
    server_free(s);
}

CU_TestInfo tests_endpoints[] = {
    {"requests are divided by the servers' weights", test_weights},
    {"a server that refuses gets no requests for a while", test_a_server_that_refuses_is_spared},
    {"limits of the server", test_limits_of_the_server},
    {"a refusal with headers of limits", test_a_refusal_with_headers},
    {"limits of the user", test_limits_of_the_user},
    {"the least loaded is chosen", test_the_least_loaded_is_chosen},
    {"several failures in a row take a server out of service", test_strikes},
    {"two servers share the work", test_two_servers_share_the_work},
    {"a slow server gets less", test_a_slow_server_gets_less},
    {"the run goes on without a dead server", test_the_run_goes_on_without_a_dead_server},
    {"a server that recovers", test_a_server_that_recovers_is_used_again},
    CU_TEST_INFO_NULL};
