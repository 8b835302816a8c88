/* Tests what happens if the thread that runs the model of a rank stops for ever. The other thread
 * of the rank goes on giving signs of life, so only limits find this. */
#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test/sanitized.h"
#include "generator/local/answer.h"
#include "generator/test/split_ranks.h"
#include "generator/test/tiny_model.h"

enum { kSamples = 10, kTokens = 100 };

typedef enum { BEFORE_STEP, AFTER_STEP, READS_PAGE, WRITES_PAGE } hang_place;
static const char kHang[] = "SPLIT_HANG"; /* environment variable: rank, and place */

static void test_rank(void) {
    split_ranks_follow();
    split_ranks_prepare("split_hang");
}

/* ---- the rank that hangs --------------------------------------------------------------------- */

/* Writes the time, and stops the thread. */
static void hang(void) {
    (void)fprintf(stderr, "%lld\n", (long long)clock_now_ns());
    for (;;)
        (void)pause();
}

static void hang_after_block(void *ctx, const runner_block_view *v) {
    (void)ctx;
    (void)v;
    hang();
}

static snap_status hang_instead_of_answer(void *ctx, const void *bytes, size_t n, snap_err *err) {
    (void)ctx;
    (void)bytes;
    (void)n;
    hang();
    return err->code;
}

static int rank_of(const runner *r) {
    const runner_options *o = runner_limits(r);
    int parts = o->comm ? o->comm->size : 1;
    return (o->experts ? o->experts->rank : 0) * parts + (o->comm ? o->comm->rank : 0);
}

snap_status __real_runner_answer(runner *r, const void *bytes, size_t n, runner_answer_fn send,
                                 void *ctx, snap_err *err);
snap_status __wrap_runner_answer(runner *r, const void *bytes, size_t n, runner_answer_fn send,
                                 void *ctx, snap_err *err);

/* Runs a call on a rank (the linker option --wrap, see the Makefile). */
snap_status __wrap_runner_answer(runner *r, const void *bytes, size_t n, runner_answer_fn send,
                                 void *ctx, snap_err *err) {
    const char *text = getenv(kHang);
    int32_t kind;
    int rank, place;
    if (!text || sscanf(text, "%d %d", &rank, &place) != 2 || rank != rank_of(r))
        return __real_runner_answer(r, bytes, n, send, ctx, err);
    memcpy(&kind, bytes, sizeof kind);
    bool step = kind == CALL_STEP || kind == REMOTE_STEP;
    if ((place == BEFORE_STEP && step) || (place == READS_PAGE && kind == REMOTE_READ_PAGE) ||
        (place == WRITES_PAGE && kind == CALL_WRITE_PAGE))
        hang();
    bool after = place == AFTER_STEP && step;
    snap_status st =
        __real_runner_answer(r, bytes, n, after && send ? hang_instead_of_answer : send, ctx, err);
    if (after && st == SNAP_OK)
        hang();
    return st;
}

/* ---- all ranks end --------------------------------------------------------------------------- */

typedef struct {
    const char *layout;
    int rank; /* which hangs */
    hang_place place;
    const char *message; /* after "rank N: " */
} hang_case;

typedef struct {
    const hang_case *of;
    pid_t pid, others[SPLIT_RANKS_MOST]; /* its process, and those of the other ranks */
    int n_others;
    int from; /* what all ranks write to standard error */
    int status;
    int64_t end_ns; /* 0 = it has not ended */
} hang_run;

static _Noreturn void run_case(const hang_case *c, const char *dir, int64_t page_bytes) {
    local_model m;
    local_answers out;
    snap_err err = {0};
    char place[32];
    bool swaps = c->place == READS_PAGE || c->place == WRITES_PAGE;
    local_options how = {.layout = c->layout,
                         .threads = 1,
                         .precision = "fp32",
                         .sequences = kSamples,
                         .context = SPLIT_RANKS_CONTEXT,
                         .cache_bytes = swaps ? (c->layout[0] == 'T' ? 8 : 4) * page_bytes : 0};
    gen_message message = {"user", "What is 17 * 23?"};
    answer_options o = {.sampling = {.temperature = 1, .top_p = 1},
                        .seed = 7,
                        .samples = kSamples,
                        .max_tokens = kTokens};
    (void)snprintf(place, sizeof place, "%d %d", c->rank, (int)c->place);
    (void)setenv(kHang, place, 1);
    snap_status st = local_open(&m, dir, &how, &err);
    if (st == SNAP_OK && c->rank == 0)
        runner_watch_blocks(m.runner, hang_after_block, NULL);
    if (st == SNAP_OK)
        st = local_answer_prompt(&m, &message, 1, &o, &out, &err);
    local_close(&m);
    (void)fprintf(stderr, "%s\n", err.text);
    _exit(err_exit_code(st));
}

static void start(hang_run *c, const char *dir, int64_t page_bytes) {
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    (void)fflush(NULL);
    c->pid = fork();
    CU_ASSERT_FATAL(c->pid >= 0);
    if (c->pid == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        run_case(c->of, dir, page_bytes);
    }
    (void)close(ends[1]);
    c->from = ends[0];
}

/* Notes the other ranks of a run, and whether it has ended. */
static void look_at(hang_run *c) {
    int others = c->of->layout[0] == 'D' ? 3 : 1;
    if (c->n_others < others)
        c->n_others = split_ranks_of(c->pid, c->others);
    if (waitpid(c->pid, &c->status, WNOHANG) == c->pid)
        c->end_ns = clock_now_ns();
}

/* Waits for the ends of all processes together, because each hang lasts as long as its limit. After
 * 60 s, kills those that are left. */
static void wait_for_all(hang_run *all, int n) {
    int64_t end_ns = clock_now_ns() + (int64_t)60e9;
    for (int left = n; left > 0; clock_sleep_ns(100000000)) {
        left = 0;
        for (int i = 0; i < n; i++) {
            if (!all[i].end_ns)
                look_at(&all[i]);
            if (!all[i].end_ns && clock_now_ns() > end_ns)
                (void)kill(all[i].pid, SIGKILL);
            left += !all[i].end_ns;
        }
    }
}

static void check(const hang_run *c) {
    const hang_case *of = c->of;
    char text[2000], message[200];
    ssize_t got;
    size_t n = 0;
    while (n < sizeof text - 1 && (got = read(c->from, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    (void)close(c->from);
    (void)snprintf(message, sizeof message, "rank %d: %s within 20 s\n", of->rank, of->message);
    int64_t hung_ns = strtoll(text, NULL, 10);
    bool good = WIFEXITED(c->status) && WEXITSTATUS(c->status) == 3 && hung_ns > 0 &&
                (double)(c->end_ns - hung_ns) < 30e9 && strstr(text, message) != NULL;
    CU_ASSERT_TRUE(good);
    if (!good)
        (void)fprintf(stderr, "%s, rank %d, place %d: status %d after %.1f s: %s", of->layout,
                      of->rank, (int)of->place, c->status, (double)(c->end_ns - hung_ns) / 1e9,
                      text);
    CU_ASSERT(c->n_others > 0);
    for (int i = 0; i < c->n_others; i++)
        CU_ASSERT_TRUE(split_ranks_gone(c->others[i]));
}

static int64_t page_bytes_of(const char *dir) {
    local_options how = {.precision = "fp32", .context = SPLIT_RANKS_CONTEXT};
    local_model m;
    CU_ASSERT_EQUAL_FATAL(local_open(&m, dir, &how, NULL), SNAP_OK);
    int64_t bytes = (int64_t)kv_cache_page_bytes(runner_cache(m.runner));
    local_close(&m);
    return bytes;
}

/* If rank 0 hangs, its own second thread finds it. If a rank hangs whose answer rank 0 does not
 * need, this is found in the next step. */
static void test_hangs(void) {
    static const char sum[] = "a sum of the model: it did not begin",
                      gather[] = "an all-gather of the model: it did not begin",
                      answer[] = "it did not answer";
    static const hang_case cases[] = {
        {"EP2", 0, BEFORE_STEP, gather},       {"EP2", 1, BEFORE_STEP, gather},
        {"EP2", 1, AFTER_STEP, answer},        {"EP2", 1, READS_PAGE, answer},
        {"TP2", 1, BEFORE_STEP, sum},          {"TP2", 1, AFTER_STEP, sum},
        {"TP2", 1, WRITES_PAGE, sum},          {"DP2/TP2/EP4", 3, BEFORE_STEP, sum},
        {"DP2/TP2/EP4", 3, AFTER_STEP, sum},   {"DP2/TP2/EP4", 2, AFTER_STEP, answer},
        {"DP2/TP2/EP4", 2, READS_PAGE, answer}};
    enum { kCases = kThreadSanitized ? 4 : sizeof cases / sizeof *cases };
    hang_run all[kCases];
    char dir[64];
    split_ranks_model(dir, "v3");
    int64_t page_bytes = page_bytes_of(dir);
    for (int i = 0; i < kCases; i++) {
        all[i] = (hang_run){.of = &cases[i]};
        start(&all[i], dir, page_bytes);
    }
    wait_for_all(all, kCases);
    for (int i = 0; i < kCases; i++)
        check(&all[i]);
    tiny_remove(dir);
}

CU_TestInfo tests_split_hang[] = {
    {"a rank of the tests below", test_rank}, /* must be the first one */
    {"the thread of a model stops", test_hangs},
    CU_TEST_INFO_NULL,
};
