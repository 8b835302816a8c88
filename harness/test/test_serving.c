/* Tests serving benchmarks with scripted servers. */
#include <CUnit/CUnit.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "generator/test/scripted_server.h"
#include "harness/serving/serving_results.h"
#include "harness/serving/serving_run.h"

#define USAGE(n)                                                                                   \
    {                                                                                              \
        .type = "text/event-stream",                                                               \
        .body = CHAT_DELTA("{\"content\":\"x\"}")                                                  \
            CHAT_FINISH("length") "data: {\"choices\":[],"                                         \
                                  "\"usage\":{\"prompt_tokens\":" #n                               \
                                  ",\"completion_tokens\":1}}\n\ndata: [DONE]"                     \
                                  "\n\n"                                                           \
    }
/* what the two probes of calibrate.h count: 3 tokens and one for each of the 16 and 272 words */
#define PROBES USAGE(19), USAGE(275)
#define STREAM                                                                                     \
    { .type = "text/event-stream", .body = CHAT_STREAM("So", "...") }

static const reply kGood[] = {PROBES, STREAM};

static char folder[48], run_path[80];

static void folder_open(void) {
    (void)snprintf(folder, sizeof folder, "/tmp/snapmla-serving-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    (void)snprintf(run_path, sizeof run_path, "%s/run", folder);
    term_set_quiet(true);
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static void folder_close(void) {
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static serving_options options(void) {
    return (serving_options){.concurrency = "2",
                             .prefixes = 1,
                             .turns = 1,
                             .ignore_eos = true,
                             .temperature = -1,
                             .input = "50",
                             .output = "uniform:3-40",
                             .requests = 6,
                             .blocks = 2,
                             .drain_s = 300,
                             .seed = 1,
                             .out = run_path};
}

/* Adds the arm @name, whose server is @s. */
static void add_arm(serving_options *o, const char *name, const server *s, const char *more) {
    static char arms[4][160];
    char *arm = arms[o->arms.n];
    (void)snprintf(arm, sizeof arms[0], "%s=%s/v1,model=m%s", name, server_url(s), more);
    o->arms.items[o->arms.n++] = arm;
}

static void expect_run(const serving_options *o, serving_result *res) {
    snap_err err = {0};
    if (serving_run(o, NULL, res, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The bodies of the requests from @from on, sorted. */
static int bodies_of(const server *s, int from, const char *out[64]) {
    int n = 0;
    for (int i = from; i < server_requests(s) && n < 64; i++)
        out[n++] = server_request(s, i)->body;
    qsort(out, (size_t)n, sizeof *out, by_text);
    return n;
}

/* The first row of kind load of an arm states this precision. */
static void expect_precision(const js *rows, const char *arm, const char *precision) {
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        if (strcmp(js_get_str(row, "kind"), "load") == 0 &&
            strcmp(js_get_str(row, "arm"), arm) == 0) {
            CU_ASSERT_STRING_EQUAL(js_get_str(row, "precision"), precision);
            return;
        }
    }
    CU_FAIL("no row of the arm");
}

/* Both arms get the same requests, in the order A B B A. */
static void test_two_arms(void) {
    static const char *a_bodies[64], *b_bodies[64];
    serving_options o = options();
    serving_result res;
    const serving_judgement judge = {.gpus = 1};
    results *file;
    server *a = server_start(kGood, 3), *b = server_start(kGood + 2, 1);
    folder_open();
    add_arm(&o, "bf16", a, "");
    add_arm(&o, "fp8", b, ",precision=fp8");
    o.warmup = 3;
    expect_run(&o, &res);
    CU_ASSERT_EQUAL_FATAL(res.requests.n, 24);
    static const int arms[] = {0, 1, 1, 0}, blocks[] = {0, 0, 1, 1};
    for (int i = 0; i < 24; i++) {
        const serving_request *r = &res.requests.at[i];
        CU_ASSERT(r->arm == arms[i / 6] && r->block == blocks[i / 6] && r->point == 0);
        CU_ASSERT(r->pieces == 2 && r->first_s >= r->sent_s && r->end_s >= r->first_s);
        CU_ASSERT(r->completion_tokens == 3 && r->prompt_tokens == 7 && !r->failed && !r->cut);
        CU_ASSERT(r->wanted_tokens >= 3 && r->wanted_tokens <= 40 && r->lag_s >= 0);
    }
    CU_ASSERT(res.counted && res.n_arms == 2 && res.points.n == 1);
    CU_ASSERT_FATAL(serving_results_make(&o, &res, &judge, NULL, &file, NULL) == SNAP_OK);
    const js *row = js_at(results_section(file, "serving"), 0);
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "kind"), "load");
    CU_ASSERT_EQUAL(js_get_int(row, "requests", 0), 12);
    CU_ASSERT_EQUAL(js_get_int(row, "answered", 0), 12);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(row, "completion_tokens_mean", 0), 3, 1e-12);
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "model"), "m");
    CU_ASSERT(strncmp(js_get_str(row, "endpoint"), server_url(a), strlen(server_url(a))) == 0);
    expect_precision(results_section(file, "serving"), "fp8", "fp8");
    results_free(file);
    server_stop(a);
    server_stop(b);
    int n = bodies_of(a, 2, a_bodies); /* after the probes */
    CU_ASSERT_EQUAL_FATAL(bodies_of(b, 0, b_bodies), n);
    CU_ASSERT_EQUAL_FATAL(n, 15);
    for (int i = 0; i < n; i++) {
        CU_ASSERT_STRING_EQUAL(a_bodies[i], b_bodies[i]);
        CU_ASSERT(i == 0 || strcmp(a_bodies[i - 1], a_bodies[i]) != 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(a_bodies[i], "\"ignore_eos\":true"));
        CU_ASSERT_PTR_NOT_NULL(strstr(a_bodies[i], "\"include_usage\":true"));
    }
    server_free(a);
    server_free(b);
    serving_result_release(&res);
    folder_close();
}

/* The most requests that two arms with two users each, on one server, had open at the same time. */
static int most_at_once(bool concurrent) {
    reply replies[] = {PROBES, STREAM};
    serving_options o = options();
    serving_result res;
    int sent[2] = {0, 0};
    replies[2].gather = concurrent ? 4 : 0; /* the server answers when so many requests are open */
    server *s = server_start(replies, 3);
    folder_open();
    add_arm(&o, "a", s, "");
    add_arm(&o, "b", s, "");
    o.concurrent_arms = concurrent;
    expect_run(&o, &res);
    for (size_t i = 0; i < res.requests.n; i++) {
        const serving_request *r = &res.requests.at[i];
        CU_ASSERT_FATAL(r->arm == 0 || r->arm == 1);
        CU_ASSERT(!r->failed && !r->cut && r->point == 0 && r->block < 2);
        sent[r->arm]++;
    }
    CU_ASSERT(sent[0] == 12 && sent[1] == 12);
    server_stop(s);
    int most = server_most_at_once(s);
    serving_result_release(&res);
    server_free(s);
    folder_close();
    return most;
}

/* Arms take turns, except with concurrent_arms. */
static void test_concurrent_arms(void) {
    CU_ASSERT_EQUAL(most_at_once(true), 4);
    CU_ASSERT(most_at_once(false) <= 2);
}

static void path_in(char out[120], const char *name) {
    (void)snprintf(out, 120, "%s/%s", run_path, name);
}

/* Drops the last line of a file. */
static void drop_line(const char *path) {
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
    size_t n = text.len - 1;
    while (n && text.data[n - 1] != '\n')
        n--;
    CU_ASSERT_EQUAL(fs_write_atomic(path, text.data, n, NULL), SNAP_OK);
    buf_release(&text);
}

/* A run whose last block was not complete repeats that block only. */
static void test_resume(void) {
    char journal[120], lines[120];
    serving_options o = options();
    serving_result res;
    snap_err err = {0};
    server *a = server_start(kGood, 3);
    folder_open();
    path_in(journal, "journal");
    path_in(lines, "requests.jsonl");
    add_arm(&o, "a", a, "");
    expect_run(&o, &res);
    CU_ASSERT_EQUAL(res.requests.n, 12);
    serving_result_release(&res);
    drop_line(journal);
    drop_line(lines); /* 5 of 6 requests of the block were written */
    expect_run(&o, &res);
    CU_ASSERT_EQUAL(res.requests.n, 12);
    for (int i = 0; i < 12; i++)
        CU_ASSERT_EQUAL(res.requests.at[i].block, i / 6);
    serving_result_release(&res);
    expect_run(&o, &res); /* nothing is left to do */
    CU_ASSERT_EQUAL(res.requests.n, 12);
    serving_result_release(&res);
    drop_line(lines);
    CU_ASSERT_EQUAL(serving_run(&o, NULL, &res, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "requests are lost"));
    serving_result_release(&res);
    server_stop(a);
    CU_ASSERT_EQUAL(server_requests(a), 2 + 12 + 6);
    server_free(a);
    folder_close();
}

/* Options that only judge the requests may change after a run. Options that decide what is sent may
 * not. */
static void test_judge_again(void) {
    static const struct {
        const char *option;
        bool may;
    } kOptions[] = {{"out", true},    {"slo", true},   {"gpus", true},
                    {"margin", true}, {"seed", false}, {"input", false}};
    serving_options o = options();
    serving_result res;
    server *a = server_start(kGood, 3);
    js *config = js_new_object();
    folder_open();
    add_arm(&o, "a", a, "");
    CU_ASSERT_EQUAL_FATAL(serving_run(&o, config, &res, NULL), SNAP_OK);
    serving_result_release(&res);
    for (size_t i = 0; i < sizeof kOptions / sizeof *kOptions; i++) {
        js *other = js_copy(config);
        CU_ASSERT_FATAL(js_set_str(other, kOptions[i].option, "changed"));
        CU_ASSERT_EQUAL(serving_run(&o, other, &res, NULL),
                        kOptions[i].may ? SNAP_OK : SNAP_E_USAGE);
        serving_result_release(&res);
        js_free(other);
    }
    js_free(config);
    server_stop(a);
    CU_ASSERT_EQUAL(server_requests(a), 2 + 12); /* none was sent again */
    server_free(a);
    folder_close();
}

/* Each load is one load point. */
static void expect_points(const serving_result *res, int n) {
    CU_ASSERT_EQUAL_FATAL(res->points.n, n);
    for (int p = 0; p < n; p++)
        for (int k = 0; k < p; k++)
            CU_ASSERT(res->points.at[p].load.users != res->points.at[k].load.users);
}

/* All arms are measured at each load that is tried. An interrupted search goes on with the block
 * that was not complete, and a finished one sends nothing. */
static void test_search(void) {
    char journal[120];
    serving_options o = options();
    serving_result res;
    serving_judgement judge = {.gpus = 0};
    results *file;
    server *a = server_start(kGood, 3), *b = server_start(kGood + 2, 1);
    folder_open();
    path_in(journal, "journal");
    add_arm(&o, "a", a, "");
    add_arm(&o, "b", b, "");
    o.concurrency = NULL;
    o.search = "concurrency:1-4";
    o.requests = 200;
    CU_ASSERT_FATAL(slo_parse("ttft_p50=10s", &o.targets, NULL) == SNAP_OK);
    judge.targets = o.targets;
    expect_run(&o, &res);
    int points = res.points.n;
    size_t requests = res.requests.n;
    CU_ASSERT(points >= 2 && requests >= (size_t)points * 800);
    expect_points(&res, points);
    serving_result_release(&res);
    drop_line(journal); /* the last block is repeated */
    expect_run(&o, &res);
    CU_ASSERT(res.requests.n >= requests);
    requests = res.requests.n;
    serving_result_release(&res);
    expect_run(&o, &res);
    CU_ASSERT_EQUAL(res.requests.n, requests);
    CU_ASSERT_FATAL(serving_results_make(&o, &res, &judge, NULL, &file, NULL) == SNAP_OK);
    const js *rows = results_section(file, "serving");
    int knees = 0, ratios = 0;
    for (size_t i = 0; i < js_len(rows); i++) {
        knees += strcmp(js_get_str(js_at(rows, i), "kind"), "knee") == 0;
        ratios += strcmp(js_get_str(js_at(rows, i), "kind"), "ratio") == 0;
    }
    CU_ASSERT(knees == 2 && ratios == 1);
    results_free(file);
    serving_result_release(&res);
    server_free(a);
    server_free(b);
    folder_close();
}

/* In an open loop, requests are due at the times of the arrival process. */
static void test_open_loop(void) {
    serving_options o = options();
    serving_result res;
    server *a = server_start(kGood, 3);
    folder_open();
    add_arm(&o, "a", a, "");
    o.concurrency = NULL;
    o.rate = "200";
    o.arrivals = "constant";
    o.requests = 20;
    o.blocks = 1;
    expect_run(&o, &res);
    CU_ASSERT_EQUAL_FATAL(res.requests.n, 20);
    bool seen[20] = {false};
    for (int i = 0; i < 20; i++) {
        const serving_request *r = &res.requests.at[i];
        CU_ASSERT_FATAL(r->index >= 0 && r->index < 20);
        seen[r->index] = true;
        CU_ASSERT_DOUBLE_EQUAL(r->due_s, (r->index + 1) * 0.005, 2e-6);
        CU_ASSERT(r->sent_s >= r->due_s - 2e-6 && r->lag_s >= r->sent_s - r->due_s - 2e-6);
        CU_ASSERT(r->received_lag_s >= 0 && r->received_lag_s <= r->lag_s);
    }
    for (int i = 0; i < 20; i++)
        CU_ASSERT(seen[i]);
    serving_result_release(&res);
    server_free(a);
    folder_close();
}

/* The last request of a conversation repeats all of it. */
static void test_conversation(void) {
    serving_options o = options();
    serving_result res;
    server *a = server_start(kGood, 3);
    folder_open();
    add_arm(&o, "a", a, "");
    o.concurrency = "1";
    o.turns = 3;
    o.blocks = 1;
    o.think = "0.001";
    expect_run(&o, &res);
    CU_ASSERT_EQUAL(res.requests.n, 6);
    server_stop(a);
    CU_ASSERT_EQUAL_FATAL(server_requests(a), 8);
    static const char *const roles[] = {"user", "assistant", "user", "assistant", "user"};
    js *talk[6];
    for (int i = 0; i < 6; i++) {
        const char *body = server_request(a, i + 2)->body;
        talk[i] = js_parse(body, strlen(body), "body", NULL);
        const js *messages = js_get_array(talk[i], "messages");
        CU_ASSERT_EQUAL_FATAL(js_len(messages), (size_t)(2 * (i % 3) + 1));
        for (size_t k = 0; k < js_len(messages); k++)
            CU_ASSERT_STRING_EQUAL(js_get_str(js_at(messages, k), "role"), roles[k]);
        if (i % 3) /* begins with the request before, and its answer */
            for (size_t k = 0; k + 2 < js_len(messages); k++)
                CU_ASSERT(
                    js_equal(js_at(messages, k), js_at(js_get_array(talk[i - 1], "messages"), k)));
        if (i % 3)
            CU_ASSERT_STRING_EQUAL(js_get_str(js_at(messages, js_len(messages) - 2), "content"),
                                   "So...");
    }
    for (int i = 0; i < 6; i++)
        js_free(talk[i]);
    serving_result_release(&res);
    server_free(a);
    folder_close();
}

/* Answers to a task's problems are graded, and the arms compared. Arm b answers 1 to all of four
 * problems, of which one has that answer; arm a does not answer. */
static void test_grade(void) {
    static const reply nothing[] = {STREAM};
    static const reply one[] = {{.type = "text/event-stream",
                                 .body = CHAT_DELTA("{\"content\":\"\\\\boxed{\"}")
                                     CHAT_DELTA("{\"content\":\"1}\"}") CHAT_FINISH("stop")
                                         CHAT_USAGE "data: [DONE]\n\n"}};
    serving_options o = options();
    serving_result res;
    char data[120];
    buf rows = {0};
    server *a = server_start(nothing, 1), *b = server_start(one, 1);
    folder_open();
    for (int i = 0; i < 4; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"is it %d?\", \"answer\": %d}\n",
                         i, i, i);
    (void)snprintf(data, sizeof data, "%s/problems.jsonl", folder);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(data, buf_str(&rows), rows.len, NULL), SNAP_OK);
    add_arm(&o, "a", a, "");
    add_arm(&o, "b", b, "");
    o.prompts = "task:synth_aime";
    o.data = data;
    o.output = NULL;
    o.grade = true;
    o.margin_pp = 2;
    o.requests = 8;
    for (int i = 0; i < 2; i++) { /* the second time from the files alone */
        expect_run(&o, &res);
        CU_ASSERT_EQUAL_FATAL(res.n_parity, 1);
        const parity_row *p = &res.parity[0];
        CU_ASSERT(p->point == 0 && p->arm == 1 && p->diff.n == 4);
        CU_ASSERT(p->answers[0] == 16 && p->answers[1] == 16);
        CU_ASSERT_DOUBLE_EQUAL(p->accuracy[0], 0, 0);
        CU_ASSERT_DOUBLE_EQUAL(p->accuracy[1], 0.25, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(p->diff.delta, 0.25, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(p->truncated[1], 0, 0);
        CU_ASSERT_EQUAL(p->diff.verdict, STATS_NOT_SHOWN);
        serving_result_release(&res);
    }
    server_stop(b);
    CU_ASSERT_EQUAL(server_requests(b), 16);
    CU_ASSERT_PTR_NULL(strstr(server_request(b, 0)->body, "ignore_eos"));
    server_free(a);
    server_free(b);
    buf_release(&rows);
    folder_close();
}

/* ---- servers that fail ---- */

typedef struct {
    reply answer;
    bool cut;
    const char *error; /* part of the message; NULL: the request does not fail */
} hostile;

#define EVENTS .type = "text/event-stream"

static const hostile kHostile[] = {
    {{.status = 500, .body = "{\"error\":{\"message\":\"out of order\"}}"}, false, "out of order"},
    {{.status = 429, .headers = "Retry-After: 60\r\n", .body = "{}"}, false, "HTTP 429"},
    {{.type = "text/html", .body = "<html>hello</html>"}, false, "text/html"},
    {{EVENTS, .body = "data: {\"choices\":[{\"delta\":\n\n"}, false, "stream chunk"},
    {{EVENTS, .body = "\x01\x02garbage\xff\n\n"}, false, "ended before the answer did"},
    {{EVENTS, .body = CHAT_DELTA("{\"content\":\"a\"}")}, false, "ended before the answer did"},
    {{EVENTS, .body = CHAT_DELTA("{\"content\":\"a\"}"), .chunked = true, .end = END_RESET},
     false,
     "the connection ended in the middle"},
    {{.raw = "", .end = END_CLOSE}, false, ""},
    {{.raw = "nonsense\r\n\r\n", .end = END_CLOSE}, false, ""},
    {{EVENTS, .body = CHAT_FINISH("length") CHAT_USAGE}, false, NULL}, /* an answer without text */
    {{.raw = "HTTP/1.1 200 OK\r\n", .end = END_STALL}, true, NULL},
    {{EVENTS, .body = CHAT_DELTA("{\"content\":\"a\"}"), .chunked = true, .forever = true,
      .pause_ns = 1000000, .step = 50},
     true,
     NULL},
};

static void test_hostile(void) {
    for (size_t i = 0; i < sizeof kHostile / sizeof *kHostile; i++) {
        const hostile *h = &kHostile[i];
        const reply replies[] = {PROBES, h->answer};
        serving_options o = options();
        serving_result res;
        server *a = server_start(replies, 3);
        folder_open();
        add_arm(&o, "a", a, "");
        o.requests = 1;
        o.blocks = 1;
        o.drain_s = h->cut ? 0.2 : 300;
        expect_run(&o, &res);
        CU_ASSERT_EQUAL_FATAL(res.requests.n, 1);
        const serving_request *r = &res.requests.at[0];
        CU_ASSERT_EQUAL(r->cut, h->cut);
        CU_ASSERT_EQUAL(r->failed, h->error != NULL);
        if (r->failed != (h->error != NULL) || (h->error && !strstr(r->error, h->error)))
            printf("\n%zu: %s\n", i, r->error ? r->error : "no error");
        CU_ASSERT(!h->error || strstr(r->error, h->error));
        CU_ASSERT(r->cut ? r->end_s < 0 : r->end_s >= r->sent_s);
        serving_result_release(&res);
        server_free(a);
        folder_close();
    }
}

/* A server that fails from the start ends the run; one that is silent is given up by timeout=. */
static void test_give_up(void) {
    const reply broken[] = {PROBES, {.status = 503, .body = "{}"}};
    const reply silent[] = {{.raw = "HTTP/1.1 200 OK\r\n", .end = END_STALL}};
    serving_options o = options();
    serving_result res;
    snap_err err = {0};
    server *a = server_start(broken, 3), *b = server_start(silent, 1);
    folder_open();
    add_arm(&o, "a", a, "");
    o.requests = 100000;
    CU_ASSERT_EQUAL(serving_run(&o, NULL, &res, &err), SNAP_E_NET);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "requests failed: HTTP 503"));
    serving_result_release(&res);
    server_free(a);
    folder_close();
    folder_open();
    err = (snap_err){0};
    o.arms.n = 0;
    add_arm(&o, "b", b, ",timeout=0.1");
    CU_ASSERT_EQUAL(serving_run(&o, NULL, &res, &err), SNAP_E_NET);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "sent nothing for too long"));
    serving_result_release(&res);
    server_free(b);
    folder_close();
}

/* Makes the result of a run, and reads what that prints to standard error. */
static void warnings_of(const serving_options *o, const serving_result *res, buf *out) {
    const serving_judgement judge = {.gpus = 0};
    results *file = NULL;
    char path[] = "/tmp/snapmla-warnings-XXXXXX";
    const int fd = mkstemp(path), kept = dup(STDERR_FILENO);
    CU_ASSERT_FATAL(fd >= 0 && kept >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    term_set_quiet(false);
    CU_ASSERT_EQUAL(serving_results_make(o, res, &judge, NULL, &file, NULL), SNAP_OK);
    term_set_quiet(true);
    CU_ASSERT(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    (void)close(fd);
    CU_ASSERT_EQUAL(fs_read(path, out, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(unlink(path), 0);
    results_free(file);
}

/* The body is that of vLLM 0.32.0. */
static void test_failures_are_warned_of(void) {
    const reply refused = {
        .status = 400,
        .body = "{\"error\":{\"message\":\"max_tokens=3000 cannot be greater than "
                "max_model_len=2048. (parameter=max_tokens, value=3000)\","
                "\"type\":\"BadRequestError\",\"param\":\"max_tokens\",\"code\":400}}"};
    const reply replies[] = {PROBES, STREAM, refused};
    serving_options o = options();
    serving_result res;
    buf printed = {0};
    server *a = server_start(replies, 4), *b = server_start(kGood + 2, 1);
    folder_open();
    add_arm(&o, "a", a, "");
    add_arm(&o, "b", b, "");
    expect_run(&o, &res);
    warnings_of(&o, &res, &printed);
    const char *text = buf_str(&printed);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "arm 'a': 11 of 12 requests failed; the first error: HTTP "
                                        "400: max_tokens=3000 cannot be greater"));
    CU_ASSERT_PTR_NULL(strstr(text, "arm 'b'"));
    buf_release(&printed);
    serving_result_release(&res);
    server_free(a);
    server_free(b);
    folder_close();
}

/* A server that echoes the key does not get it into the files. */
static void test_secret(void) {
    const reply echo[] = {PROBES,
                          {.status = 400, .body = "{\"error\":\"no: sk-serving-secret-1\"}"}};
    serving_options o = options();
    serving_result res;
    server *a = server_start(echo, 3);
    folder_open();
    CU_ASSERT_EQUAL_FATAL(setenv("SERVING_TEST_KEY", "sk-serving-secret-1", 1), 0);
    add_arm(&o, "a", a, ",key_env=SERVING_TEST_KEY");
    o.requests = 1;
    o.blocks = 1;
    expect_run(&o, &res);
    CU_ASSERT_EQUAL_FATAL(res.requests.n, 1);
    CU_ASSERT(res.requests.at[0].failed && !strstr(res.requests.at[0].error, "secret"));
    serving_result_release(&res);
    server_stop(a);
    CU_ASSERT_PTR_NOT_NULL(strstr(server_request(a, 2)->head, "Bearer sk-serving-secret-1"));
    server_free(a);
    folder_close();
}

static void test_cancelled(void) {
    volatile sig_atomic_t cancel = 1;
    serving_options o = options();
    serving_result res;
    snap_err err = {0};
    server *a = server_start(kGood, 3);
    folder_open();
    add_arm(&o, "a", a, "");
    o.generate.cancel = &cancel;
    CU_ASSERT_EQUAL(serving_run(&o, NULL, &res, &err), SNAP_E_CANCELLED);
    serving_result_release(&res);
    server_free(a);
    folder_close();
}

static void test_refused_options(void) {
    serving_result res;
    server *a = server_start(kGood, 3);
    for (int i = 0; i < 12; i++) {
        serving_options o = options();
        snap_err err = {0};
        folder_open();
        add_arm(&o, "a", a, i == 0 ? ",retries=3" : i == 1 ? ",device=cpu" : "");
        if (i == 2)
            add_arm(&o, "a", a, ""); /* the same name again */
        o.concurrency = i == 3 ? NULL : o.concurrency;
        o.speed = i == 4 ? "1" : NULL;
        o.ramp = i == 5 ? "1-2" : NULL;
        o.prompts = i == 6 ? "nothing" : NULL;
        o.input = i == 7 ? "0" : o.input;
        o.out = i == 8 ? NULL : o.out;
        o.search = i >= 9 ? i == 11 ? "rate" : "rate:1-2" : NULL; /* case 9 has no targets */
        o.concurrency = i == 9 || i == 11 ? NULL : o.concurrency;
        if (i >= 10)
            CU_ASSERT_FATAL(slo_parse("ttft_p50=1s", &o.targets, NULL) == SNAP_OK);
        CU_ASSERT_EQUAL(serving_run(&o, NULL, &res, &err), SNAP_E_USAGE);
        CU_ASSERT(err.text[0] != '\0');
        serving_result_release(&res);
        folder_close();
    }
    server_stop(a);
    CU_ASSERT_EQUAL(server_requests(a), 0);
    server_free(a);
}

CU_TestInfo tests_serving[] = {
    {"two arms take turns", test_two_arms},
    {"an interrupted run repeats only its last block", test_resume},
    {"a finished run is judged with other targets", test_judge_again},
    {"a search measures all arms at each load", test_search},
    {"requests of an open loop are due at the arrivals", test_open_loop},
    {"a request repeats its conversation", test_conversation},
    {"graded answers", test_grade},
    {"arms at the same time", test_concurrent_arms},
    {"hostile servers", test_hostile},
    {"servers that are given up", test_give_up},
    {"failures are warned of", test_failures_are_warned_of},
    {"no key gets into the files", test_secret},
    {"a run can be cancelled", test_cancelled},
    {"bad options are refused", test_refused_options},
    CU_TEST_INFO_NULL,
};
