#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "generator/http/client.h"
#include "generator/test/drive.h"
#include "generator/test/scripted_server.h"
#include "generator/test/show.h"

#define WHOLE_REPLY                                                                                \
    { .body = CHAT_WHOLE("42", "stop") }
#define SSE(...)                                                                                   \
    { .type = "text/event-stream", .body = __VA_ARGS__ }

/* Retry delays of milliseconds instead of seconds, so that the tests are fast. */
static const retry_policy quick = {.base_s = 0.002, .cap_s = 0.01, .server_cap_s = 0.5};
static const generator_options whole = {.no_stream = true, .max_retries = -1};
static const generator_options stream = {.max_retries = -1};

/* Runs @total requests against a server with these replies, and stops the server. The caller frees
 * it and releases @d. */
static server *play(const reply *replies, int n, const generator_options *opt, int total, drive *d,
                    snap_status want) {
    server *s = server_start(replies, n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    char url[100];
    (void)snprintf(url, sizeof url, "%s/v1/", server_url(s));
    generator *g;
    CU_ASSERT_EQUAL_FATAL(client_open(&g, url, opt, &quick, &d->err), SNAP_OK);
    CU_ASSERT_EQUAL(drive_run(d, g, total), want);
    generator_close(g);
    server_stop(s);
    return s;
}

/* Runs one request, which must succeed with @text after @attempts. */
static void expect_text(const reply *replies, int n, const generator_options *opt, const char *text,
                        int attempts) {
    drive d = {0};
    server *s = play(replies, n, opt, 1, &d, SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(d.n_kept, 1);
    CU_ASSERT_FALSE(d.kept[0].failed);
    CU_ASSERT_STRING_EQUAL(d.kept[0].text, text);
    CU_ASSERT_EQUAL(d.kept[0].res.attempts, attempts);
    CU_ASSERT_EQUAL(server_requests(s), attempts);
    show_row(&replies[0], "answered", attempts);
    drive_release(&d);
    server_free(s);
}

/* Runs one request, which must fail after @attempts with a message that begins with @error. */
static void expect_failure(reply r, const generator_options *opt, const char *error, int attempts) {
    drive d = {0};
    server *s = play(&r, 1, opt, 1, &d, SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(d.n_kept, 1);
    CU_ASSERT_TRUE_FATAL(d.kept[0].failed);
    CU_ASSERT_PTR_NULL(d.kept[0].finish_reason);
    CU_ASSERT_EQUAL(strncmp(d.kept[0].error, error, strlen(error)), 0);
    CU_ASSERT_EQUAL(d.kept[0].res.attempts, attempts);
    CU_ASSERT_EQUAL(server_requests(s), attempts);
    show_row(&r, d.kept[0].error, attempts);
    drive_release(&d);
    server_free(s);
}

/* ---- plain answers ---- */

static void test_whole_answer(void) {
    static const reply r = WHOLE_REPLY;
    drive d = {0};
    server *s = play(&r, 1, &whole, 1, &d, SNAP_OK);
    const kept *k = &d.kept[0];
    CU_ASSERT_STRING_EQUAL(k->text, "42");
    CU_ASSERT_STRING_EQUAL(k->finish_reason, "stop");
    CU_ASSERT_PTR_NULL(k->reasoning);
    CU_ASSERT(k->res.prompt_tokens == 7 && k->res.completion_tokens == 3);
    CU_ASSERT(k->res.first_token_ns == -1 && k->res.total_ns > 0 && k->res.start_ns > 0);
    drive_release(&d);
    server_free(s);
}

static void test_stream_at_every_split(void) {
    static const char body[] = ": ping\n\n" CHAT_STREAM("h\\u00e9\\ud83d\\ude00", "\xE2\x88\x91!");
    for (int step = 1; step <= 40; step += step < 4 ? 1 : 9) {
        reply r = SSE(body, .step = step, .chunked = step % 2);
        drive d = {0};
        server *s = play(&r, 1, &stream, 1, &d, SNAP_OK);
        const kept *k = &d.kept[0];
        CU_ASSERT_STRING_EQUAL(k->text, "h\xC3\xA9\xF0\x9F\x98\x80\xE2\x88\x91!");
        CU_ASSERT_STRING_EQUAL(k->finish_reason, "stop");
        CU_ASSERT(k->res.prompt_tokens == 7 && k->res.completion_tokens == 3);
        CU_ASSERT(k->res.first_token_ns > 0 && k->res.first_token_ns <= k->res.total_ns);
        drive_release(&d);
        server_free(s);
    }
}

static void test_reasoning_is_kept_apart(void) {
    static const reply r = SSE(
        CHAT_DELTA("{\"reasoning_content\":\"hm \"}") CHAT_DELTA("{\"reasoning_content\":\"so\"}")
            CHAT_DELTA("{\"content\":\"42\"}") CHAT_FINISH("length") CHAT_USAGE "data: [DONE]\n\n");
    drive d = {0};
    server *s = play(&r, 1, &stream, 1, &d, SNAP_OK);
    CU_ASSERT_STRING_EQUAL(d.kept[0].text, "42");
    CU_ASSERT_STRING_EQUAL(d.kept[0].reasoning, "hm so");
    CU_ASSERT_STRING_EQUAL(d.kept[0].finish_reason, "length");
    drive_release(&d);
    server_free(s);
}

/* The body arrives in four parts, 100 ms apart. The first token arrives before the last part, and
 * the total time covers all parts. */
static void test_times_of_a_stream(void) {
    static const char body[] = CHAT_STREAM("a", "b");
    static const reply r = SSE(body, .step = (int)(sizeof body - 1) / 4 + 1, .pause_ns = 100000000);
    drive d = {0};
    server *s = play(&r, 1, &stream, 1, &d, SNAP_OK);
    CU_ASSERT(d.kept[0].res.total_ns >= 300000000);
    CU_ASSERT(d.kept[0].res.first_token_ns < 290000000);
    drive_release(&d);
    server_free(s);
}

/* The server sends eleven pieces 30 ms apart. The mean and median gap between tokens must be at
 * least 29 ms. A stream of a single piece has no gap, so its figures are -1. */
static void test_gaps_of_a_stream(void) {
    static reply script[1];
    static char body[4000];
    char *at = body;
    enum { kPieces = 11 };
    size_t step = strlen(CHAT_DELTA("{\"content\":\"a\"}"));
    for (int i = 0; i < kPieces; i++)
        at += sprintf(at, "%s", CHAT_DELTA("{\"content\":\"a\"}"));
    (void)sprintf(at, CHAT_FINISH("stop") "data: [DONE]\n\n");
    script[0] = (reply)SSE(body, .step = (int)step, .pause_ns = 30000000);
    drive d = {0};
    server *s = play(script, 1, &stream, 1, &d, SNAP_OK);
    const gen_result *r = &d.kept[0].res;
    CU_ASSERT(r->itl_p50_ns >= 29000000 && r->itl_p50_ns < 300000000);
    CU_ASSERT(r->itl_mean_ns >= 29000000 && r->itl_p99_ns >= r->itl_p50_ns);
    CU_ASSERT(r->first_token_ns + (kPieces - 1) * r->itl_mean_ns <= r->total_ns);
    drive_release(&d);
    server_free(s);

    static const reply single = SSE(CHAT_DELTA("{\"content\":\"4\"}") CHAT_FINISH("stop"));
    s = play(&single, 1, &stream, 1, &d, SNAP_OK);
    CU_ASSERT(d.kept[0].res.itl_mean_ns == -1 && d.kept[0].res.itl_p99_ns == -1);
    drive_release(&d);
    server_free(s);
}

static double number(js *object, const char *key) {
    return js_get_num(object, key, -1);
}

static void test_what_is_sent(void) {
    static const reply r = WHOLE_REPLY, sse = SSE(CHAT_STREAM("4", "2"));
    generator_options opt = whole;
    opt.model = "m-1";
    opt.api_key = "sk-secret-0123456789";
    drive d = {0};
    server *s = play(&r, 1, &opt, 1, &d, SNAP_OK);
    const scripted_request *a = server_request(s, 0);
    CU_ASSERT_EQUAL(strncmp(a->head, "POST /v1/chat/completions HTTP/1.1\r\n", 36), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(a->head, "\r\nAuthorization: Bearer sk-secret-0123456789\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(a->head, "\r\nContent-Type: application/json\r\n"));
    js *v = js_parse(a->body, strlen(a->body), "request", NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    js *messages = js_get_array(v, "messages");
    CU_ASSERT_STRING_EQUAL(js_get_str(v, "model"), "m-1");
    CU_ASSERT_EQUAL_FATAL(js_len(messages), 2);
    CU_ASSERT_STRING_EQUAL(js_get_str(js_at(messages, 0), "role"), "system");
    CU_ASSERT_STRING_EQUAL(js_get_str(js_at(messages, 1), "content"), "1+1? \xE2\x88\x91");
    CU_ASSERT(number(v, "temperature") == 0.5 && number(v, "top_p") == 0.95);
    CU_ASSERT(number(v, "max_tokens") == 100 && number(v, "seed") == 1000);
    CU_ASSERT(!js_get(v, "top_k") && !js_get(v, "stream") && !js_get(v, "stream_options"));
    js_free(v);
    drive_release(&d);
    server_free(s);

    s = play(&sse, 1, &stream, 1, &d, SNAP_OK);
    a = server_request(s, 0);
    CU_ASSERT_PTR_NULL(strstr(a->head, "Authorization"));
    v = js_parse(a->body, strlen(a->body), "request", NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_TRUE(js_get_bool(v, "stream", false));
    CU_ASSERT_TRUE(js_get_bool(js_get_object(v, "stream_options"), "include_usage", false));
    CU_ASSERT_PTR_NULL(js_get(v, "model"));
    js_free(v);
    drive_release(&d);
    server_free(s);
}

/* ---- failures after which another attempt succeeds ---- */

static void test_failures_that_pass(void) {
    static const reply firsts[] = {
        {.status = 429, .headers = "Retry-After: 0\r\n", .body = "{\"error\":\"slow down\"}"},
        {.status = 500, .body = "oops", .type = "text/plain"},
        {.status = 429, .body = "slow down", .type = "text/plain"},
        {.status = 429, .headers = "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n"},
        {.status = 503},
        {.status = 408},
        {.body = CHAT_WHOLE("gone", "stop"), .cut = 60, .end = END_CLOSE},
        {.body = CHAT_WHOLE("gone", "stop"), .cut = 60, .end = END_RESET},
        {.raw = "", .end = END_CLOSE},
        {.body = "{\"choices\":[{\"message\""},
        {.body = "{}"},
        {.body = ""},
        {.body = "{\"error\":{\"message\":\"engine died\"}}"},
        {.body = CHAT_WHOLE("gone", "abort")},
    };
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        const reply script[] = {firsts[i], firsts[i], WHOLE_REPLY};
        expect_text(script, 3, &whole, "42", 3);
    }
}

static void test_stream_failures_that_pass(void) {
    static const char good[] = CHAT_STREAM("4", "2");
    static const reply firsts[] = {
        SSE(CHAT_STREAM("go", "ne"), .cut = 250, .end = END_CLOSE),
        SSE(CHAT_STREAM("go", "ne"), .cut = 250, .end = END_RESET),
        SSE(CHAT_STREAM("go", "ne"), .cut = 250, .chunked = true, .end = END_CLOSE),
        SSE(CHAT_DELTA("{\"content\":\"gone\"}")),
        SSE(CHAT_DELTA("{\"content\":\"gone\"}") "data: [DONE]\n\n"),
        SSE(CHAT_DELTA("{\"content\":\"gone\"}") "data: {\"error\":{\"message\":\"died\"}}\n\n"),
        SSE(CHAT_DELTA("{\"content\":\"gone\"}") CHAT_FINISH("abort") "data: [DONE]\n\n"),
        SSE(CHAT_DELTA("{\"content\":\"gone\"}") "data: {\"choices\":[{\n\n"),
        SSE(CHAT_DELTA("{\"content\":\"gone\"}") "data: \xFF\xFE\n\n"),
        SSE(""),
    };
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        const reply script[] = {firsts[i], SSE(good)};
        expect_text(script, 2, &stream, "42", 2);
    }
}

static void test_silence_passes(void) {
    static const reply script[] = {SSE(CHAT_STREAM("go", "ne"), .cut = 250, .end = END_STALL),
                                   SSE(CHAT_STREAM("4", "2"))};
    generator_options opt = stream;
    opt.timeout_s = 3; /* the second answer must begin within it on a busy machine, too */
    expect_text(script, 2, &opt, "42", 2);
}

/* After the finish reason the answer is complete, so the request must not be repeated. */
static void test_a_lost_end_of_a_stream_is_no_failure(void) {
    static const char body[] = CHAT_DELTA("{\"content\":\"42\"}") CHAT_FINISH("stop");
    static const reply ends[] = {SSE(body),
                                 SSE(body, .chunked = true, .end = END_CLOSE),
                                 SSE(body, .chunked = true, .end = END_RESET),
                                 {.type = "", .body = body}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        expect_text(&ends[i], 1, &stream, "42", 1);
}

/* The server sends bytes without a long pause, but its answer never ends. The deadline ends the
 * attempt. */
static void test_a_drip_has_a_deadline(void) {
    static const char pings[] =
        ": ping\n\n: ping\n\n: ping\n\n: ping\n\n: ping\n\n: ping\n\n: ping\n\n";
    static const reply drips[] = {
        SSE(pings, .fill = 40000, .step = 8, .pause_ns = 5000000),
        SSE(CHAT_DELTA("{\"content\":\"4\"}"), .fill = 40000, .step = 2, .pause_ns = 5000000)};
    for (int i = 0; i < 2; i++) {
        const reply script[] = {drips[i], SSE(CHAT_STREAM("4", "2"))};
        generator_options opt = stream;
        opt.timeout_s = 60;
        opt.deadline_s = 3; /* the second attempt has the same deadline, on a busy machine, too */
        expect_text(script, 2, &opt, "42", 2);
        opt.deadline_s = 0.6;
        opt.max_retries = 0;
        expect_failure(drips[i], &opt, "the response was not complete before the deadline", 1);
    }
}

/* The server sends as fast as it can, so the limit on bytes ends the attempt, not the time
 * limit. */
static void test_an_endless_stream_ends(void) {
    static char pings[1 << 16], nothing[1 << 16];
    for (size_t i = 0; i + 8 < sizeof pings; i += 8)
        memcpy(pings + i, ": ping\n\n", 8);
    for (size_t i = 0; i + 24 < sizeof nothing; i += 22)
        memcpy(nothing + i, "data: {\"choices\":[]}\n\n", 22);
    const char *const bodies[] = {pings, nothing};
    generator_options opt = stream;
    for (int i = 0; i < 2; i++) {
        const reply endless = SSE(bodies[i], .chunked = true, .forever = true);
        const reply script[] = {endless, SSE(CHAT_STREAM("4", "2"))};
        opt.max_retries = 0;
        expect_failure(endless, &opt, "16777216 bytes of the stream held no text of the answer", 1);
        opt.max_retries = 1;
        expect_text(script, 2, &opt, "42", 2);
    }
}

/* An endless error response, and endless data after a complete answer, are not read to the end. */
static void test_what_follows_is_left_unread(void) {
    static char words[1 << 14];
    memset(words, 'x', sizeof words - 1);
    const reply refusal = {.status = 400, .body = words, .chunked = true, .forever = true};
    expect_failure(refusal, &whole, "HTTP 400", 1);
    const reply answered = SSE(CHAT_STREAM("4", "2"), .chunked = true, .forever = true);
    expect_text(&answered, 1, &stream, "42", 1);
}

static void test_retry_after_is_awaited(void) {
    static const reply script[] = {{.status = 429, .headers = "Retry-After: 3600\r\n"},
                                   WHOLE_REPLY};
    int64_t start = clock_now_ns();
    expect_text(script, 2, &whole, "42", 2); /* waits 0.5 s, the server_cap_s of `quick` */
    double s = (double)(clock_now_ns() - start) * 1e-9;
    CU_ASSERT(s >= 0.5 && s < 60); /* the server requested 3600 */
}

/* ---- failures that end a request ---- */

static void test_failures_that_last(void) {
    expect_failure((reply){.status = 500, .body = "{\"error\":{\"message\":\"no pages\"}}"}, &whole,
                   "HTTP 500: no pages (after 6 attempts)", 6);
    generator_options once = whole;
    once.max_retries = 0;
    expect_failure((reply){.body = "{"}, &once, "answer:1:", 1);
    once.no_stream = false;
    expect_failure(
        (reply)SSE(CHAT_STREAM("go", "ne"), .cut = 250, .chunked = true, .end = END_CLOSE), &once,
        "the connection ended in the middle of the answer", 1);
}

static void test_refusals_are_not_repeated(void) {
    static const struct {
        int status;
        const char *error;
    } cases[] = {{400, "HTTP 400: no; check the model name"},
                 {403, "HTTP 403: no; set SNAPMLA_API_KEY"},
                 {404, "HTTP 404: no; check that the URL"},
                 {413, "HTTP 413: no"},
                 {422, "HTTP 422: no; check the model name"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        reply r = {.status = cases[i].status, .body = "{\"error\":{\"message\":\"no\"}}"};
        expect_failure(r, &whole, cases[i].error, 1);
        expect_failure(r, &stream, cases[i].error, 1);
    }
    expect_failure((reply){.status = 301, .headers = "Location: http://b/v1\r\n"}, &whole,
                   "HTTP 301: the server redirects the request, which is not followed for a "
                   "POST; use the URL "
                   "that it points to: http://b/v1",
                   1);
}

static void test_wrong_types_are_not_repeated(void) {
    expect_failure((reply){.type = "text/html", .body = "<html>hello</html>"}, &whole,
                   "the server answered with text/html; check that the URL", 1);
    expect_failure((reply){.type = "text/html", .body = "<html>hello</html>"}, &stream,
                   "the server answered with text/html instead of a stream; check that", 1);
}

static void test_huge_answers_are_not_repeated(void) {
    expect_failure((reply){.fill = (64 << 20) + 1}, &whole, "the answer is longer than", 1);
    expect_failure((reply)SSE("data: ", .fill = 5 << 20), &stream,
                   "an event of the stream is longer than", 1);
}

/* An arm's own headers are sent. Their values are masked where the server repeats them: in messages
 * always, in answers if they have at least 8 bytes. */
static void test_headers_are_sent_and_masked(void) {
    static const char *const headers[] = {"X-Key: another-secret-42", "X-Team: red"};
    static const reply echo = {
        .body = "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
                "\"you sent another-secret-42, team red\",\"reasoning_content\":"
                "\"sk-secret-0123456789 it was\"},\"finish_reason\":\"another-secret-42\"}]}"};
    generator_options opt = whole;
    opt.api_key = "sk-secret-0123456789";
    opt.headers = headers;
    opt.n_headers = 2;
    drive d = {0};
    server *s = play(&echo, 1, &opt, 1, &d, SNAP_OK);
    const char *head = server_request(s, 0)->head;
    CU_ASSERT_PTR_NOT_NULL(strstr(head, "\r\nAuthorization: Bearer sk-secret-0123456789\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(head, "\r\nX-Key: another-secret-42\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(head, "\r\nX-Team: red\r\n"));
    CU_ASSERT_EQUAL_FATAL(d.n_kept, 1);
    CU_ASSERT_STRING_EQUAL(d.kept[0].text, "you sent ***, team red"); /* "red" is too short */
    CU_ASSERT_STRING_EQUAL(d.kept[0].finish_reason, "***");
    CU_ASSERT_STRING_EQUAL(d.kept[0].reasoning, "*** it was");
    drive_release(&d);
    server_free(s);
    expect_failure((reply){.status = 403, .body = "{\"error\":\"bad another-secret, team red\"}"},
                   &opt, "HTTP 403: bad ***, team ***; set", 1);
}

static void test_the_key_is_never_shown(void) {
    generator_options opt = whole;
    opt.api_key = "sk-secret-0123456789";
    expect_failure(
        (reply){.status = 403,
                .body = "{\"error\":\"bad key sk-secret-0123456789, or sk-secret-0123\"}"},
        &opt, "HTTP 403: bad key ***, or ***; set", 1);
}

/* The key expires during the run. Earlier answers are kept, and no request is repeated. */
static void test_a_refused_key_ends_the_run(void) {
    static const reply script[] = {
        WHOLE_REPLY,
        WHOLE_REPLY,
        WHOLE_REPLY,
        {.status = 401, .body = "{\"error\":{\"message\":\"sk-secret-0123456789 expired\"}}"}};
    generator_options opt = whole;
    opt.api_key = "sk-secret-0123456789";
    opt.in_flight = 1;
    drive d = {0};
    server *s = play(script, 4, &opt, 200, &d, SNAP_E_NET);
    CU_ASSERT_EQUAL(d.n_kept, 3);
    CU_ASSERT_EQUAL(server_requests(s), 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(d.err.text, "does not accept the API key (any more): HTTP "
                                              "401: *** expired; set SNAPMLA_API_KEY"));
    CU_ASSERT_PTR_NULL(strstr(d.err.text, "secret"));
    show_row(&script[3], d.err.text, 0);
    drive_release(&d);
    server_free(s);
}

static void test_an_unreachable_server_ends_the_run(void) {
    static const reply none = {0};
    server *s = server_start(&none, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    server_stop(s);
    drive d = {0};
    generator *g;
    generator_options opt = {.max_retries = 2};
    CU_ASSERT_EQUAL_FATAL(client_open(&g, server_url(s), &opt, &quick, &d.err), SNAP_OK);
    CU_ASSERT_EQUAL(drive_run(&d, g, 40), SNAP_E_NET);
    CU_ASSERT_EQUAL(d.n_kept, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(d.err.text, "/chat/completions cannot be reached: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(d.err.text, "(after 3 attempts)"));
    show_row(NULL, d.err.text, 3);
    drive_release(&d);
    generator_close(g);
    server_free(s);
}

static void test_what_is_no_http_server_ends_the_run(void) {
    static const reply r = {.raw = "SSH-2.0-OpenSSH_9.2\r\n", .end = END_CLOSE};
    drive d = {0};
    server *s = play(&r, 1, &whole, 40, &d, SNAP_E_NET);
    CU_ASSERT_EQUAL(d.n_kept, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(d.err.text, "/v1/chat/completions cannot be reached: "));
    show_row(&r, d.err.text, 0);
    drive_release(&d);
    server_free(s);
}

/* ---- many requests ---- */

static void test_256_in_flight_on_kept_connections(void) {
    static const reply r = SSE(CHAT_STREAM("4", "2"), .gather = 256);
    generator_options opt = stream;
    opt.in_flight = 256;
    drive d = {0};
    server *s = server_start(&r, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    generator *g;
    CU_ASSERT_EQUAL_FATAL(client_open(&g, server_url(s), &opt, &quick, &d.err), SNAP_OK);
    CU_ASSERT_EQUAL(drive_run(&d, g, 512), SNAP_OK);
    generator_load load;
    CU_ASSERT_TRUE(generator_load_of(g, &load));
    generator_close(g);
    server_stop(s);
    CU_ASSERT_EQUAL(d.n_kept, 512);
    CU_ASSERT_EQUAL(server_most_at_once(s), 256);
    CU_ASSERT_EQUAL(server_connections(s), 256);
    CU_ASSERT(load.transfers == 512 && load.connections == 256 && load.outages == 0);
    CU_ASSERT(load.lag_p99_ns >= 0 && load.lag_p99_ns <= load.lag_max_ns);
    for (int i = 0; i < 512; i++)
        CU_ASSERT(drive_result(&d, i) && !drive_result(&d, i)->failed);
    drive_release(&d);
    server_free(s);
}

static void test_in_flight_is_a_limit(void) {
    static const reply r = {.body = CHAT_WHOLE("42", "stop"), .step = 50, .pause_ns = 1000000};
    generator_options opt = whole;
    opt.in_flight = 3;
    drive d = {0};
    server *s = play(&r, 1, &opt, 30, &d, SNAP_OK);
    CU_ASSERT_EQUAL(d.n_kept, 30);
    CU_ASSERT_EQUAL(server_most_at_once(s), 3);
    drive_release(&d);
    server_free(s);
}

/* The first request waits 0.5 s for its second attempt. All others finish before it. */
static void test_a_wait_holds_nobody_up(void) {
    static const reply script[] = {{.status = 503, .headers = "Retry-After: 60\r\n"}, WHOLE_REPLY};
    generator_options opt = whole;
    opt.in_flight = 2;
    drive d = {0};
    server *s = play(script, 2, &opt, 50, &d, SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(d.n_kept, 50);
    CU_ASSERT_EQUAL(d.kept[49].res.attempts, 2);
    CU_ASSERT_FALSE(d.kept[49].failed);
    CU_ASSERT(d.kept[48].res.start_ns < d.kept[49].res.start_ns + 500000000);
    drive_release(&d);
    server_free(s);
}

/* Every third reply is an error status, and every ninth is cut off. Each request must get the text
 * of one good reply, and no two requests the same text. */
static void test_failures_do_not_mix_requests_up(void) {
    enum { kReplies = 400 };
    static reply script[kReplies];
    static char bodies[kReplies][1024];
    for (int i = 0; i < kReplies; i++) {
        (void)snprintf(bodies[i], sizeof bodies[i], CHAT_STREAM("reply ", "%d"), i);
        script[i] = (reply)SSE(bodies[i], .chunked = true, .step = 97);
        if (i % 3 == 0)
            script[i] = (reply){.status = 500 + i % 5};
        if (i % 9 == 1)
            script[i].cut = 300, script[i].end = END_RESET;
    }
    generator_options opt = stream;
    opt.max_retries = 40;
    drive d = {0};
    server *s = play(script, kReplies, &opt, 150, &d, SNAP_OK);
    CU_ASSERT_EQUAL(d.n_kept, 150);
    static bool seen[kReplies];
    long wrong = 0;
    for (int i = 0; i < d.n_kept; i++) {
        int from = -1;
        if (sscanf(d.kept[i].text, "reply %d", &from) != 1 || from < 0 || from >= kReplies ||
            seen[from] || from % 3 == 0 || from % 9 == 1)
            wrong++;
        else
            seen[from] = true;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    drive_release(&d);
    server_free(s);
}

/* ---- stopping ---- */

static void test_a_failing_sink_ends_the_run(void) {
    static const reply r = WHOLE_REPLY;
    drive d = {.fail_after = 5};
    server *s = play(&r, 1, &whole, 200, &d, SNAP_E_IO);
    CU_ASSERT_STRING_EQUAL(d.err.text, "the disk is full");
    CU_ASSERT_TRUE(d.n_kept >= 5 && d.n_kept < 200);
    drive_release(&d);
    server_free(s);
}

static void test_cancel(void) {
    static const reply stall = {.raw = "", .end = END_STALL};
    volatile sig_atomic_t cancel = 1;
    generator_options opt = {.cancel = &cancel};
    drive d = {0};
    server *s = play(&stall, 1, &opt, 200, &d, SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(d.n_kept, 0);
    drive_release(&d);
    server_free(s);
}

static void test_options_are_checked(void) {
    static const struct {
        const char *url;
        generator_options opt;
    } cases[] = {{"http://a/v1", {.in_flight = -1}},
                 {"http://a/v1", {.in_flight = 100000}},
                 {"http://a/v1", {.max_retries = -2}},
                 {"http://a/v1", {.timeout_s = -1}},
                 {"http://a/v1", {.deadline_s = -1}},
                 {"http://a/v1|", {0}},
                 {"http://a/v1|ftp://b/", {0}},
                 {"http://a/v1|http://a/v1/", {0}},
                 {"http://a/v1|http://u:secret@b/v1", {0}},
                 {"http://a/v1", {.api_key = "secret\r\nX-Y: z"}},
                 {"http://a/v1?x=y", {0}},
                 {"http://u:secret@a/v1", {0}},
                 {"http://", {0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snap_err err = {0};
        generator *g;
        CU_ASSERT_EQUAL(generator_open(&g, cases[i].url, &cases[i].opt, &err), SNAP_E_USAGE);
        CU_ASSERT_PTR_NULL(g);
        CU_ASSERT_PTR_NULL(strstr(err.text, "secret"));
    }
}

CU_TestInfo tests_client[] = {
    {"whole answer", test_whole_answer},
    {"stream at every split", test_stream_at_every_split},
    {"reasoning is kept apart from the answer", test_reasoning_is_kept_apart},
    {"times of a stream", test_times_of_a_stream},
    {"gaps of a stream", test_gaps_of_a_stream},
    {"the request has all settings and the key", test_what_is_sent},
    {"failures after which another attempt succeeds", test_failures_that_pass},
    {"failed streams after which another attempt succeeds", test_stream_failures_that_pass},
    {"another attempt after a silent server", test_silence_passes},
    {"a lost end of a stream", test_a_lost_end_of_a_stream_is_no_failure},
    {"an answer that never ends meets the deadline", test_a_drip_has_a_deadline},
    {"an endless stream ends", test_an_endless_stream_ends},
    {"endless data after an answer are not read", test_what_follows_is_left_unread},
    {"the next attempt waits for Retry-After", test_retry_after_is_awaited},
    {"failures of all attempts", test_failures_that_last},
    {"refusals are not repeated", test_refusals_are_not_repeated},
    {"wrong types are not repeated", test_wrong_types_are_not_repeated},
    {"huge answers are not repeated", test_huge_answers_are_not_repeated},
    {"headers of an arm", test_headers_are_sent_and_masked},
    {"the key is never shown", test_the_key_is_never_shown},
    {"a refused key ends the run", test_a_refused_key_ends_the_run},
    {"an unreachable server", test_an_unreachable_server_ends_the_run},
    {"no HTTP server", test_what_is_no_http_server_ends_the_run},
    {"256 in flight, kept alive", test_256_in_flight_on_kept_connections},
    {"in_flight limits the open requests", test_in_flight_is_a_limit},
    {"a request that waits does not delay others", test_a_wait_holds_nobody_up},
    {"failures don't mix requests up", test_failures_do_not_mix_requests_up},
    {"a failing sink", test_a_failing_sink_ends_the_run},
    {"a request that gets no answer can be cancelled", test_cancel},
    {"options are checked", test_options_are_checked},
    CU_TEST_INFO_NULL};
