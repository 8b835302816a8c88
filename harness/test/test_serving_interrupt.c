/* Tests runs of `bench serving` that are not complete: runs that were interrupted, and load points
 * in whose blocks no request is due. */
#include <CUnit/CUnit.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/term.h"
#include "generator/test/scripted_server.h"
#include "harness/audit/audit.h"
#include "harness/serving/serving_results.h"

#define PROBE(n)                                                                                   \
    {                                                                                              \
        .type = "text/event-stream",                                                               \
        .body = CHAT_DELTA("{\"content\":\"x\"}")                                                  \
            CHAT_FINISH("length") "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":" #n         \
                                  ",\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"                 \
    }
#define STREAM                                                                                     \
    { .type = "text/event-stream", .body = CHAT_STREAM("So", "...") }

static const reply kGood[] = {PROBE(19), PROBE(275), STREAM};

static char folder[48], run_path[80];

static void folder_open(void) {
    (void)snprintf(folder, sizeof folder, "/tmp/snapmla-interrupt-XXXXXX");
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

static serving_options options(const server *s) {
    static char arms[2][120];
    serving_options o = {.prefixes = 1,
                         .turns = 1,
                         .ignore_eos = true,
                         .temperature = -1,
                         .input = "50",
                         .output = "8",
                         .arrivals = "constant",
                         .blocks = 2,
                         .drain_s = 300,
                         .seed = 1,
                         .out = run_path};
    for (int i = 0; i < 2; i++) {
        (void)snprintf(arms[i], sizeof arms[i], "%c=%s/v1,model=m", 'a' + i, server_url(s));
        o.arms.items[o.arms.n++] = arms[i];
    }
    return o;
}

/* Whether a file of the run contains a text. */
static bool file_has(const char *name, const char *text) {
    char path[120];
    buf content = {0};
    (void)snprintf(path, sizeof path, "%s/%s", run_path, name);
    bool has = fs_read(path, &content, NULL) == SNAP_OK && strstr(buf_str(&content), text);
    buf_release(&content);
    return has;
}

static volatile sig_atomic_t cancelled;

static void cancel(int number) {
    (void)number;
    cancelled = 1;
}

/* Interrupts the run once each arm has a complete block, with a signal to the thread @ctx, as a
 * user does. */
static void *interrupt(void *ctx) {
    for (int i = 0; i < 30000 && !file_has("journal", "block 0 1 0"); i++)
        clock_sleep_ns(1000000);
    CU_ASSERT_EQUAL(pthread_kill(*(pthread_t *)ctx, SIGUSR1), 0);
    return NULL;
}

static int count_rows(const results *r, const char *kind, int64_t point) {
    const js *rows = results_section(r, "serving");
    int n = 0;
    for (size_t i = 0; i < js_len(rows); i++)
        n += strcmp(js_get_str(js_at(rows, i), "kind"), kind) == 0 &&
             js_get_int(js_at(rows, i), "point", -1) == point;
    return n;
}

/* The rows of the file follow from its requests. */
static void expect_verified(const results *r) {
    char path[120];
    verify_findings f = {0};
    (void)snprintf(path, sizeof path, "%s/requests.jsonl", run_path);
    CU_ASSERT_EQUAL(verify_serving(r, path, &f, NULL), SNAP_OK);
    CU_ASSERT(!f.rows && f.checks > 0);
    verify_release(&f);
}

/* The last reply never ends, so the second block of an arm cannot be complete. The run that was
 * interrupted there has a result of the first blocks, and it goes on with the second ones. */
static void test_interrupted(void) {
    reply replies[2 + 12 + 3 + 1] = {kGood[0], kGood[1]};
    serving_judgement judge = {.gpus = 0};
    serving_result res;
    results *file = NULL;
    snap_err err = {0};
    struct sigaction on_signal = {.sa_handler = cancel}, before;
    pthread_t thread, main_thread = pthread_self();
    for (int i = 2; i < 17; i++)
        replies[i] = kGood[2];
    replies[17] = (reply){.raw = "HTTP/1.1 200 OK\r\n", .end = END_STALL};
    server *a = server_start(replies, 18), *b = server_start(kGood + 2, 1);
    folder_open();
    serving_options o = options(a);
    o.concurrency = "1";
    o.requests = 6;
    o.generate.cancel = &cancelled;
    cancelled = 0;
    CU_ASSERT_EQUAL_FATAL(sigaction(SIGUSR1, &on_signal, &before), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, interrupt, &main_thread), 0);
    CU_ASSERT_EQUAL(serving_run(&o, NULL, &res, &err), SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL(sigaction(SIGUSR1, &before, NULL), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "interrupted: complete blocks are kept in"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the same command continues"));
    CU_ASSERT_FATAL(res.interrupted && res.requests.n == 12);
    CU_ASSERT_EQUAL_FATAL(serving_results_make(&o, &res, &judge, NULL, &file, NULL), SNAP_OK);
    results_free(file);
    serving_result_release(&res);
    char path[120];
    (void)snprintf(path, sizeof path, "%s/run.json", run_path);
    CU_ASSERT_EQUAL_FATAL(results_load(&file, path, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(count_rows(file, "load", 0), 2);
    const js *provenance = js_get_object(results_document(file), "provenance");
    CU_ASSERT_PTR_NULL(js_get_str(provenance, "ended"));
    expect_verified(file);
    results_free(file);
    o = options(b); /* a server that answers */
    o.concurrency = "1";
    o.requests = 6;
    CU_ASSERT_EQUAL_FATAL(serving_run(&o, NULL, &res, NULL), SNAP_OK);
    CU_ASSERT(!res.interrupted && res.requests.n == 24);
    CU_ASSERT_EQUAL_FATAL(serving_results_make(&o, &res, &judge, NULL, &file, NULL), SNAP_OK);
    provenance = js_get_object(results_document(file), "provenance");
    CU_ASSERT_PTR_NOT_NULL(js_get_str(provenance, "ended"));
    expect_verified(file);
    results_free(file);
    serving_result_release(&res);
    server_stop(b);
    CU_ASSERT_EQUAL(server_requests(b), 12); /* neither the probes nor the complete blocks */
    server_free(a);
    server_free(b);
    folder_close();
}

/* In 0.05 s, 10 requests are due at 200/s and none at 0.001/s. */
static void test_idle_point(void) {
    serving_judgement judge = {.gpus = 0};
    serving_result res;
    results *file = NULL;
    snap_err err = {0};
    server *a = server_start(kGood, 3), *b = server_start(kGood, 3);
    folder_open();
    serving_options o = options(a);
    o.rate = "0.001,200";
    o.duration_s = 0.05;
    CU_ASSERT_FATAL(slo_parse("ttft_p50=10s", &judge.targets, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(serving_run(&o, NULL, &res, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(serving_results_make(&o, &res, &judge, NULL, &file, NULL), SNAP_OK);
    CU_ASSERT(count_rows(file, "load", 0) == 0 && count_rows(file, "load", 1) == 2);
    CU_ASSERT(count_rows(file, "series", 0) == 0 && count_rows(file, "series", 1) == 4);
    expect_verified(file);
    results_free(file);
    serving_result_release(&res);
    folder_close();
    folder_open();
    o = options(b);
    o.rate = "0.001";
    o.duration_s = 0.05;
    CU_ASSERT_EQUAL_FATAL(serving_run(&o, NULL, &res, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(serving_results_make(&o, &res, &judge, NULL, &file, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no request was due in any block"));
    CU_ASSERT_PTR_NULL(file);
    serving_result_release(&res);
    server_free(a);
    server_free(b);
    folder_close();
}

/* The search begins at 10/s, where no request is due within 0.05 s. It tries that load three
 * times and then goes on with another load. */
static void test_idle_search(void) {
    serving_judgement judge = {.gpus = 0};
    serving_result res;
    results *file = NULL;
    server *a = server_start(kGood, 3);
    folder_open();
    serving_options o = options(a);
    o.search = "rate:0.5-200";
    o.duration_s = 0.05;
    o.blocks = 1;
    CU_ASSERT_FATAL(slo_parse("ttft_p50=10s", &o.targets, NULL) == SNAP_OK);
    judge.targets = o.targets;
    CU_ASSERT_EQUAL_FATAL(serving_run(&o, NULL, &res, NULL), SNAP_OK);
    CU_ASSERT_FATAL(res.points.n >= 2);
    CU_ASSERT_STRING_EQUAL(res.points.at[0].name, "rate 10");
    CU_ASSERT(file_has("journal", "block 0 1 2")); /* three turns at the first load */
    CU_ASSERT_EQUAL_FATAL(serving_results_make(&o, &res, &judge, NULL, &file, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(count_rows(file, "load", 0), 0);
    int measured = 0; /* which load is the last one depends on the time of the answers */
    for (int p = 1; p < res.points.n; p++)
        measured += count_rows(file, "load", p) == 2;
    CU_ASSERT(measured > 0);
    expect_verified(file);
    results_free(file);
    serving_result_release(&res);
    server_free(a);
    folder_close();
}

CU_TestInfo tests_serving_interrupt[] = {
    {"an interrupted run has its complete blocks", test_interrupted},
    {"load points without requests", test_idle_point},
    {"search with loads without requests", test_idle_search},
    CU_TEST_INFO_NULL,
};
