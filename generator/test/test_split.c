/* Tests a model that is divided over processes of this test program (layouts with TP and EP), on
 * the CPU. */
#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test/failing_alloc.h"
#include "base/test/sanitized.h"
#include "generator/local/answer.h"
#include "generator/test/drive.h"
#include "generator/test/random_model.h"
#include "generator/test/split_ranks.h"
#include "generator/test/tiny_model.h"

enum { kRequests = kSanitized ? 8 : 24, kSamples = 6, kTokens = kSanitized ? 8 : 40 };
static const char kShipped[] = "models/snapmla-10m";

static void test_rank(void) {
    split_ranks_follow();
    split_ranks_prepare("split");
}

/* ---- answers --------------------------------------------------------------------------------- */

static void run_arm(drive *d, const char *dir, const char *layout, const char *precision) {
    generator_options opt = {
        .threads = 1, .in_flight = 6, .layout = layout, .precision = precision};
    char spec[128];
    generator *g = NULL;
    snap_err err = {0};
    (void)snprintf(spec, sizeof spec, "local:%s", dir);
    if (generator_open(&g, spec, &opt, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_EQUAL(drive_run(d, g, kRequests), SNAP_OK);
    generator_close(g);
}

static void expect_same_results(const drive *one, const drive *two) {
    CU_ASSERT_EQUAL(two->n_kept, kRequests);
    for (int i = 0; i < kRequests; i++) {
        const kept *a = drive_result(one, i), *b = drive_result(two, i);
        CU_ASSERT_FATAL(a && b);
        CU_ASSERT_FALSE(a->failed || b->failed);
        CU_ASSERT_STRING_EQUAL(a->text, b->text);
        CU_ASSERT_EQUAL(a->res.completion_tokens, b->res.completion_tokens);
    }
}

/* Batches, shared prompts and copied pages: in FP32, the texts of a divided model are those of the
 * whole one. Under sanitizers, only one model and its last two layouts are tested. Their ranks run
 * all code of the other layouts, too. */
static void test_generators(void) {
    static drive one, other;
    static const struct {
        const char *model, *layouts[6];
    } cases[] = {{"v3", {"TP2", "EP2", "DP2/TP2", "TP2/EP2", "DP2/TP2/EP4", NULL}},
                 {"longcat", {"TP2", "TP2/EP2", "EP4", NULL}},
                 {"minicpm3", {"TP2", "DP3/TP2", NULL}}};
    for (int m = 0; m < (kSanitized ? 1 : 3); m++) {
        char dir[64];
        split_ranks_model(dir, cases[m].model);
        run_arm(&one, dir, NULL, "fp32");
        for (int i = kSanitized ? 3 : 0; cases[m].layouts[i]; i++) {
            run_arm(&other, dir, cases[m].layouts[i], "fp32");
            expect_same_results(&one, &other);
            drive_release(&other);
            split_ranks_expect_none();
        }
        drive_release(&one);
        tiny_remove(dir);
    }
}

/* Generates @samples answers to one prompt, with the options @how and the layout @layout. The first
 * answer has the seed @seed. */
static void answer_some(local_answers *out, const char *dir, const char *layout, local_options how,
                        double temperature, int tokens, int64_t seed, int samples) {
    local_model m;
    snap_err err = {0};
    gen_message message = {"user", "What is 17 * 23?"};
    answer_options o = {.sampling = {.temperature = temperature, .top_p = 1},
                        .seed = seed,
                        .samples = samples,
                        .max_tokens = tokens};
    how.threads = 2;
    how.layout = layout;
    CU_ASSERT_EQUAL(local_open(&m, dir, &how, &err), SNAP_OK);
    if (err.code == SNAP_OK)
        CU_ASSERT_EQUAL(local_answer_prompt(&m, &message, 1, &o, out, &err), SNAP_OK);
    if (err.code != SNAP_OK)
        (void)fprintf(stderr, "%s: %s\n", layout ? layout : "whole", err.text);
    local_close(&m);
}

static void answer(local_answers *out, const char *dir, const char *layout, local_options how,
                   double temperature, int tokens) {
    answer_some(out, dir, layout, how, temperature, tokens, 7, kSamples);
}

static int differing(const local_answers *a, const local_answers *b) {
    int n = 0;
    CU_ASSERT_FATAL(a->n == kSamples && b->n == kSamples);
    for (int i = 0; i < kSamples; i++)
        n += strcmp(buf_str(&a->all[i].text), buf_str(&b->all[i].text)) != 0;
    return n;
}

/* The number of texts that differ between the whole model and the layout. With several replicas,
 * no sequence of the whole model is preempted. */
static int compare(const char *dir, const char *layout, const local_options *how,
                   double temperature, int tokens) {
    local_answers one = {0}, two = {0};
    local_options whole = *how;
    bool is_tp = layout[0] == 'T'; /* one replica, as in the whole model */
    whole.cache_bytes = is_tp ? how->cache_bytes : 0;
    answer(&one, dir, NULL, whole, temperature, tokens);
    answer(&two, dir, layout, *how, temperature, tokens);
    int n = differing(&one, &two);
    CU_ASSERT_EQUAL(one.stats.preemptions, is_tp ? two.stats.preemptions : 0);
    if (how->cache_bytes)
        CU_ASSERT(two.stats.preemptions > 0);
    CU_ASSERT(two.stats.shared > 0); /* samples of a replica share the pages of the prompt */
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n%s, %s, temperature %g: %d of %d texts differ", layout,
                     how->precision ? how->precision : "bf16", temperature, n, (int)kSamples);
    local_answers_release(&one);
    local_answers_release(&two);
    return n;
}

/* In FP32, a sum in another order does not change a token here. In BF16 it may: a sum that is
 * rounded in another way may change the next token, and all after it. */
static void test_shipped_model(void) {
    local_options f32 = {.precision = "fp32", .sequences = 8},
                  bf16 = {.precision = "bf16", .sequences = 8},
                  fp8 = {.precision = "fp8", .sequences = 8};
    if (kThreadSanitized) { /* precision and ranks do not change how threads synchronise */
        CU_ASSERT_EQUAL(compare(kShipped, "TP4", &f32, 1, 2), 0);
        CU_ASSERT_EQUAL(compare(kShipped, "EP2", &f32, 1, 2), 0);
        split_ranks_expect_none();
        return;
    }
    CU_ASSERT_EQUAL(compare(kShipped, "TP4", &f32, 1, kTokens), 0);
    CU_ASSERT_EQUAL(compare(kShipped, "DP2/TP2/EP4", &f32, 1, kTokens), 0);
    CU_ASSERT(compare(kShipped, "TP2", &fp8, 1, kTokens) < kSamples);
    if (!kSanitized) {
        CU_ASSERT_EQUAL(compare(kShipped, "TP2", &f32, 0, kTokens), 0);
        CU_ASSERT_EQUAL(compare(kShipped, "EP2", &f32, 0, kTokens), 0);
        CU_ASSERT(compare(kShipped, "TP2", &bf16, 1, kTokens) < kSamples);
        CU_ASSERT(compare(kShipped, "EP2", &bf16, 1, kTokens) < kSamples);
        CU_ASSERT(compare(kShipped, "EP2", &fp8, 1, kTokens) < kSamples);
    }
    split_ranks_expect_none();
}

/* With EP, a sample alone has the bits that it has beside others: it does not matter on which
 * replica it runs, nor how many rows of the steps are padding. */
static void test_idle_replicas(void) {
    static const char *const precisions[] = {"bf16", "fp8"};
    local_answers all, alone;
    for (int p = kThreadSanitized ? 1 : 0; p < 2; p++) {
        local_options how = {.precision = precisions[p], .sequences = 2};
        answer(&all, kShipped, "EP4", how, 1, kTokens);
        CU_ASSERT_EQUAL_FATAL(all.n, kSamples);
        for (int i = 0; i < (kSanitized ? 1 : kSamples); i++) {
            answer_some(&alone, kShipped, "EP4", how, 1, kTokens, 7 + i, 1);
            CU_ASSERT_EQUAL_FATAL(alone.n, 1);
            CU_ASSERT_STRING_EQUAL(buf_str(&all.all[i].text), buf_str(&alone.all[0].text));
            local_answers_release(&alone);
        }
        local_answers_release(&all);
    }
    split_ranks_expect_none();
}

/* The cache has room for some of the samples, so sequences are swapped out and in. */
static void test_swapping(void) {
    char dir[64];
    split_ranks_model(dir, "v3");
    local_options how = {
        .precision = "fp32", .sequences = kSamples, .context = SPLIT_RANKS_CONTEXT};
    local_model m;
    CU_ASSERT_EQUAL_FATAL(local_open(&m, dir, &how, NULL), SNAP_OK);
    how.cache_bytes = 8 * (int64_t)kv_cache_page_bytes(runner_cache(m.runner));
    local_close(&m);
    const int tokens = kSanitized ? 100 : 200;
    CU_ASSERT_EQUAL(compare(dir, "TP2", &how, 1, tokens), 0);
    how.cache_bytes /= 2; /* each replica has half of the samples */
    CU_ASSERT_EQUAL(compare(dir, "EP2", &how, 1, tokens), 0);
    if (!kThreadSanitized) {
        CU_ASSERT_EQUAL(compare(dir, "DP2/TP2", &how, 1, tokens), 0);
        CU_ASSERT_EQUAL(compare(dir, "DP2/TP2/EP4", &how, 1, tokens), 0);
    }
    how.recompute = true;
    if (!kThreadSanitized) { /* the contents of the cache do not change how threads synchronise */
        CU_ASSERT_EQUAL(compare(dir, "EP2", &how, 1, tokens), 0);
        how.cache_bytes *= 2;
        CU_ASSERT_EQUAL(compare(dir, "TP2", &how, 1, tokens), 0);
    }
    tiny_remove(dir);
}

static void test_random_weights(void) {
    /* Threads share the drawing of weights in the same way for models of all sizes. */
    const char *config = kThreadSanitized ? random_narrow_v2 : random_wide_v3;
    model_shape shape;
    CU_ASSERT_EQUAL_FATAL(model_shape_parse(&shape, config, strlen(config), "config", NULL),
                          SNAP_OK);
    local_options how = {.random = &shape, .precision = "fp32", .context = 128, .sequences = 4};
    CU_ASSERT_EQUAL(compare("random", "TP2", &how, 1, kTokens / 4), 0);
    CU_ASSERT_EQUAL(compare("random", "EP2", &how, 1, kTokens / 4), 0);
}

/* ---- failures -------------------------------------------------------------------------------- */

typedef struct {
    pid_t pid;
    int from; /* its error, when it has ended */
} child;

/* Generates answers without an end in a child process, or waits without a step if @idle. */
static void start(child *c, const char *layout, bool idle) {
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    (void)fflush(NULL);
    c->pid = fork();
    CU_ASSERT_FATAL(c->pid >= 0);
    if (c->pid == 0) {
        local_model m;
        local_answers out;
        snap_err err = {0};
        local_options how = {.layout = layout, .threads = 1, .sequences = kSamples};
        gen_message message = {"user", "1 + 1?"};
        answer_options o = {
            .sampling = {.temperature = 1, .top_p = 1}, .samples = 20000, .max_tokens = 1000};
        (void)dup2(ends[1], STDERR_FILENO);
        snap_status st = local_open(&m, kShipped, &how, &err);
        while (idle && st == SNAP_OK)
            clock_sleep_ns(100000000);
        if (st == SNAP_OK)
            st = local_answer_prompt(&m, &message, 1, &o, &out, &err);
        local_close(&m);
        (void)fprintf(stderr, "%s\n", err.text);
        _exit(err_exit_code(st));
    }
    (void)close(ends[1]);
    c->from = ends[0];
}

/* Waits until the child has @n further ranks, which work. Returns the last one. */
static pid_t last_rank_of(const child *c, int n) {
    pid_t ranks[SPLIT_RANKS_MOST], last = 0;
    int got = 0;
    for (int i = 0; i < 1000 && (got = split_ranks_of(c->pid, ranks)) != n; i++)
        clock_sleep_ns(10000000);
    CU_ASSERT_EQUAL_FATAL(got, n);
    for (int i = 0; i < n; i++)
        last = ranks[i] > last ? ranks[i] : last;
    clock_sleep_ns(1000000000);
    return last;
}

static pid_t rank_of(const child *c) {
    return last_rank_of(c, 1);
}

/* Sends a signal to the last one of @n further ranks. Then all processes must end within 30 s, and
 * the message names the rank. */
static void check_failure(const char *layout, int n, int signal_number, bool idle,
                          const char *message) {
    child c;
    char text[700];
    int status = 0;
    pid_t ranks[SPLIT_RANKS_MOST];
    start(&c, layout, idle);
    pid_t rank = last_rank_of(&c, n);
    CU_ASSERT_EQUAL_FATAL(split_ranks_of(c.pid, ranks), n);
    int64_t begun_ns = clock_now_ns();
    CU_ASSERT_EQUAL(kill(rank, signal_number), 0);
    CU_ASSERT_EQUAL(waitpid(c.pid, &status, 0), c.pid);
    CU_ASSERT((double)(clock_now_ns() - begun_ns) < 30e9);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    for (int i = 0; i < n; i++)
        CU_ASSERT_TRUE(split_ranks_gone(ranks[i]));
    ssize_t got = read(c.from, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    CU_ASSERT_PTR_NOT_NULL(strstr(text, message));
    if (!strstr(text, message))
        (void)fprintf(stderr, "%s: %s", layout, text);
    (void)close(c.from);
}

static void test_killed(void) {
    check_failure("TP2", 1, SIGKILL, false, "rank 1: its process has ended without a message");
    check_failure("TP2", 1, SIGKILL, true, "rank 1: its process has ended without a message");
}

/* Of several replicas that are split, the message names the replica, too. */
static void test_killed_in_other_layouts(void) {
    static const char ended[] = ": its process has ended without a message";
    static const struct {
        const char *layout, *who;
        int n;
    } cases[] = {{"EP2", "rank 1", 1},
                 {"DP2/TP2/EP4", "rank 3", 3},
                 {"DP2/TP2", "replica 1 (cpu): rank 1", 2}};
    for (int i = 0; i < (kThreadSanitized ? 1 : 3); i++)
        for (int idle = 0; idle < 2; idle++) {
            char message[100];
            (void)snprintf(message, sizeof message, "%s%s", cases[i].who, ended);
            check_failure(cases[i].layout, cases[i].n, SIGKILL, idle, message);
        }
}

static void test_stopped(void) {
    check_failure("TP2", 1, SIGSTOP, false, "rank 1: no sign of life for 10 s");
    if (!kThreadSanitized)
        check_failure("EP2", 1, SIGSTOP, false, "rank 1: no sign of life for 10 s");
}

/* A rank runs out of memory while the model generates. */
static void test_no_memory_in_a_step(void) {
    if (!failing_alloc_works())
        return;
    check_failure("TP2", 1, SPLIT_RANKS_NO_MEMORY, false, "rank 1: out of memory for ");
    check_failure("EP2", 1, SPLIT_RANKS_NO_MEMORY, false, "rank 1: out of memory for ");
    check_failure("DP2/TP2/EP4", 3, SPLIT_RANKS_NO_MEMORY, false, "rank 3: out of memory for ");
}

/* If rank 0 is killed, the other rank ends, too, even if it is stopped (SIGSTOP). */
static void test_rank_0_killed(void) {
    for (int stops = 0; stops < 2; stops++) {
        child c;
        start(&c, stops ? "EP2" : "TP2", false);
        pid_t rank = rank_of(&c);
        if (stops)
            CU_ASSERT_EQUAL(kill(rank, SIGSTOP), 0);
        CU_ASSERT_EQUAL(kill(c.pid, SIGKILL), 0);
        CU_ASSERT_EQUAL(waitpid(c.pid, NULL, 0), c.pid);
        CU_ASSERT_TRUE(split_ranks_gone(rank));
        (void)close(c.from);
    }
}

/* A process group gets SIGINT together. Only rank 0 decides what happens then. */
static void test_signals_are_ignored(void) {
    child c;
    int status;
    start(&c, "TP2", false);
    pid_t rank = rank_of(&c);
    CU_ASSERT_EQUAL(kill(rank, SIGINT), 0);
    CU_ASSERT_EQUAL(kill(rank, SIGTERM), 0);
    clock_sleep_ns(300000000);
    CU_ASSERT_EQUAL(waitpid(c.pid, &status, WNOHANG), 0);
    CU_ASSERT_EQUAL(kill(c.pid, SIGTERM), 0);
    CU_ASSERT_EQUAL(waitpid(c.pid, &status, 0), c.pid);
    CU_ASSERT_TRUE(split_ranks_gone(rank));
    (void)close(c.from);
}

CU_TestInfo tests_split[] = {
    {"a rank of the tests below", test_rank}, /* must be the first one */
    {"generators", test_generators},
    {"the shipped model", test_shipped_model},
    {"swapping and recomputing", test_swapping},
    {"random weights", test_random_weights},
    {"idle replicas", test_idle_replicas},
    {"a killed rank", test_killed},
    {"a killed rank of EP and of DP2/TP2", test_killed_in_other_layouts},
    {"a stopped rank", test_stopped},
    {"a rank runs out of memory", test_no_memory_in_a_step},
    {"rank 0 is killed", test_rank_0_killed},
    {"signals", test_signals_are_ignored},
    CU_TEST_INFO_NULL,
};
