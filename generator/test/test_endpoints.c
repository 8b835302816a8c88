/* Several servers behind one generator: who gets what, and what happens when one goes. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "generator/http/client.h"
#include "generator/http/endpoints.h"
#include "generator/test/drive.h"
#include "generator/test/scripted_server.h"

static const retry_policy quick = {.base_s = 0.002, .cap_s = 0.01, .server_cap_s = 0.5};
static const reply good = {.body = CHAT_WHOLE("42", "stop"), .step = 400, .pause_ns = 1000000};

/* ---- the choice ---- */

static void test_the_least_loaded_is_chosen(void) {
    endpoints e = {0};
    CU_ASSERT_EQUAL_FATAL(endpoints_parse(&e, "http://a/v1|http://b/v1/|https://c", NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(e.n, 3);
    CU_ASSERT_STRING_EQUAL(e.list[1].chat_url, "http://b/v1/chat/completions");
    CU_ASSERT_STRING_EQUAL(e.list[2].models_url, "https://c/models");
    for (int i = 0; i < 30; i++) {
        endpoint *at = endpoints_choose(&e);
        at->in_flight++;
        at->started++;
    }
    CU_ASSERT(e.list[0].in_flight == 10 && e.list[1].in_flight == 10 && e.list[2].in_flight == 10);
    e.list[1].in_flight = 3;
    CU_ASSERT_PTR_EQUAL(endpoints_choose(&e), &e.list[1]);
    CU_ASSERT_TRUE(endpoints_failure(&e, &e.list[1], true));
    CU_ASSERT_PTR_NOT_EQUAL(endpoints_choose(&e), &e.list[1]);
    CU_ASSERT_FALSE(endpoints_failure(&e, &e.list[1], true)); /* once */
    endpoints_success(&e.list[1]);
    CU_ASSERT_PTR_EQUAL(endpoints_choose(&e), &e.list[1]);
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
            endpoints_success(&e.list[0]); /* begins anew */
    }
    CU_ASSERT_TRUE(endpoints_failure(&e, &e.list[0], false));
    for (int i = 0; i < ENDPOINT_STRIKES; i++)
        (void)endpoints_failure(&e, &e.list[1], false);
    CU_ASSERT_PTR_NOT_NULL(endpoints_choose(&e)); /* nobody left: one of them all the same */
    endpoints_release(&e);

    CU_ASSERT_EQUAL_FATAL(endpoints_parse(&e, "http://alone", NULL), SNAP_OK);
    for (int i = 0; i < 10; i++)
        CU_ASSERT_FALSE(endpoints_failure(&e, &e.list[0], true));
    endpoints_release(&e);
}

/* ---- over the network ---- */

/* Runs @total requests over both servers, at most @in_flight at once; @load may be NULL. */
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
        n += strncmp(server_asked(s, i)->head, start, strlen(start)) == 0;
    return n;
}

static void test_two_servers_share_the_work(void) {
    server *a = server_start(&good, 1), *b = server_start(&good, 1);
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

/* A slow server gets less: each of its answers takes 160 ms, the other's none. */
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

/* Four answers of 500, then whole ones: out after three, asked for its models, and in again. */
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

CU_TestInfo tests_endpoints[] = {
    {"the least loaded is chosen", test_the_least_loaded_is_chosen},
    {"strikes", test_strikes},
    {"two servers share the work", test_two_servers_share_the_work},
    {"a slow server gets less", test_a_slow_server_gets_less},
    {"the run goes on without a dead server", test_the_run_goes_on_without_a_dead_server},
    {"a server that recovers", test_a_server_that_recovers_is_used_again},
    CU_TEST_INFO_NULL};
