/* Tests several replicas of a checkpoint in one process. */
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test/sanitized.h"
#include "base/text.h"
#include "generator/local/answer.h"
#include "generator/test/drive.h"
#include "generator/test/tiny_model.h"

enum { kRequests = 40 };

static generator *open_layout(const char *dir, const char *layout, const char *precision,
                              const volatile sig_atomic_t *cancel) {
    generator_options opt = {
        .threads = 1, .in_flight = 6, .layout = layout, .precision = precision, .cancel = cancel};
    char spec[128];
    generator *g = NULL;
    snap_err err = {0};
    (void)snprintf(spec, sizeof spec, "local:%s", dir);
    if (generator_open(&g, spec, &opt, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    return g;
}

static void test_devices(void) {
    static const struct {
        const char *device, *layout, *kind;
        int n, ranks; /* independent replicas, and ranks of each; 0: refused */
        int number[4];
    } cases[] = {
        {NULL, NULL, NULL, 1, 1, {0}},
        {"cpu", "DP3", "cpu", 3, 1, {0, 1, 2}},
        {"cuda", NULL, "cuda", 1, 1, {0}},
        {"cuda", "DP2", "cuda", 2, 1, {0, 1}},
        {"cuda:5", NULL, "cuda", 1, 1, {5}},
        {"cuda:5", "DP1/TP1", "cuda", 1, 1, {5}},
        {"cuda:1,0", "DP2", "cuda", 2, 1, {1, 0}},
        {"cuda:2,2,7", "DP3", "cuda", 3, 1, {2, 2, 7}},
        {"opencl", "DP1", "opencl", 1, 1, {0}},
        {"cuda:1,0", "TP2", "cuda", 1, 2, {1, 0}},
        {"cuda", "TP3", "cuda", 1, 3, {0, 1, 2}},
        {"cpu", "TP2", "cpu", 1, 2, {0}},
        {"cuda:7,6,5,4", "DP2/TP2", "cuda", 2, 2, {7, 6, 5, 4}},
        {"cuda:0,1,0,1", "DP2/TP2", "cuda", 2, 2, {0, 1, 0, 1}},
        {"cpu", "DP4/TP4", "cpu", 4, 4, {0}},
        {"cuda:0,1", "EP2", "cuda", 1, 2, {0, 1}},
        {"cpu", "DP2/EP2", "cpu", 1, 2, {0}},
        {"cpu", "TP2/EP2", "cpu", 1, 2, {0}},
        {"cuda", "DP2/TP2/EP4", "cuda", 1, 4, {0, 1, 2, 3}},
        {"cpu", "EP1", "cpu", 1, 1, {0}},
        {"cuda:0,1", NULL, NULL, 0, 0, {0}},
        {"cuda:0,1", "DP3", NULL, 0, 0, {0}},
        {"cuda:0", "TP2", NULL, 0, 0, {0}},
        {"cuda:0,1", "DP2/TP2", NULL, 0, 0, {0}},
        {"cuda:0,1", "EP4", NULL, 0, 0, {0}},
        {"cuda:0,1", "DP2/EP4", NULL, 0, 0, {0}},
        {"cpu", "TP17", NULL, 0, 0, {0}},
        {"cpu", "EP17", NULL, 0, 0, {0}},
        {"cpu", "DP9/TP2", NULL, 0, 0, {0}},
        {"opencl", "TP2", NULL, 0, 0, {0}},
        {"opencl", "EP2", NULL, 0, 0, {0}},
        {"cuda:", NULL, NULL, 0, 0, {0}},
        {"cuda:0,", "DP2", NULL, 0, 0, {0}},
        {"cuda:-1", NULL, NULL, 0, 0, {0}},
        {"cuda:256", NULL, NULL, 0, 0, {0}},
        {"cpu", "DP17", NULL, 0, 0, {0}},
        {"cpu", "2", NULL, 0, 0, {0}},
        {"opencl", "DP2", NULL, 0, 0, {0}},
        {"plugin:x.so", "DP2", NULL, 0, 0, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        replica_devices d;
        snap_err err = {0};
        snap_status st = replica_devices_parse(&d, cases[i].device, cases[i].layout, &err);
        CU_ASSERT_EQUAL(st == SNAP_OK, cases[i].n > 0);
        CU_ASSERT_EQUAL(st == SNAP_OK, !err.text[0]);
        if (st != SNAP_OK)
            continue;
        int count = cases[i].n * cases[i].ranks;
        CU_ASSERT_EQUAL(d.n, cases[i].n);
        CU_ASSERT_EQUAL(replica_devices_ranks(&d), cases[i].ranks);
        CU_ASSERT_EQUAL(replica_devices_count(&d), count);
        CU_ASSERT(text_equal(d.device, cases[i].kind));
        CU_ASSERT(strcmp(cases[i].device ? cases[i].device : "cpu", "cpu") == 0 ||
                  memcmp(d.number, cases[i].number, (size_t)count * sizeof *d.number) == 0);
        CU_ASSERT_PTR_EQUAL(replica_devices_of(&d, d.n - 1), d.number + count - cases[i].ranks);
    }
}

/* The sequences that one replica decodes at once, and the prompts that it shares, differ between
 * the layouts. The answers do not. */
static void test_layouts_give_the_same_answers(void) {
    static drive one, several;
    static const char *const layouts[] = {"DP2", "DP3"}, *const precisions[] = {"bf16", "fp8"};
    char dir[64];
    tiny_folder(dir, "v3");
    /* With the thread sanitizer, one precision only: it does not change how
     * threads synchronise. */
    for (int p = kThreadSanitized ? 1 : 0; p < 2; p++) {
        generator *g = open_layout(dir, NULL, precisions[p], NULL);
        CU_ASSERT_EQUAL(drive_run(&one, g, kRequests), SNAP_OK);
        generator_close(g);
        g = open_layout(dir, layouts[p], precisions[p], NULL);
        CU_ASSERT_EQUAL(drive_run(&several, g, kRequests), SNAP_OK);
        generator_close(g);
        CU_ASSERT_EQUAL(several.n_kept, kRequests);
        for (int i = 0; i < kRequests; i++) {
            const kept *a = drive_result(&one, i), *b = drive_result(&several, i);
            CU_ASSERT_FATAL(a && b);
            CU_ASSERT_FALSE(a->failed || b->failed);
            CU_ASSERT_STRING_EQUAL(a->text, b->text);
            CU_ASSERT_STRING_EQUAL(a->finish_reason, b->finish_reason);
            CU_ASSERT_EQUAL(a->res.completion_tokens, b->res.completion_tokens);
            CU_ASSERT_EQUAL(a->res.prompt_tokens, b->res.prompt_tokens);
        }
        drive_release(&one);
        drive_release(&several);
    }
    tiny_remove(dir);
}

/* A source without an end until each of two threads has delivered kEach results. */
typedef struct {
    int64_t given;
    pthread_t thread[2];
    int threads, results[2];
} endless;

enum { kEach = 10, kEnough = 20000 };

static bool give(void *ctx, gen_request *out) {
    static const gen_message message = {"user", "1 + 1?"};
    endless *e = ctx;
    if ((e->results[0] >= kEach && e->results[1] >= kEach) || e->given == kEnough)
        return false;
    *out = (gen_request){
        .id = e->given,
        .messages = &message,
        .n_messages = 1,
        .sampling = {.temperature = 1, .top_p = 1, .max_tokens = 4, .seed = (uint64_t)e->given}};
    e->given++;
    return true;
}

static snap_status count(void *ctx, const gen_request *req, const gen_result *res, snap_err *err) {
    endless *e = ctx;
    int i = 0;
    (void)req;
    (void)err;
    CU_ASSERT_FALSE(res->failed);
    while (i < e->threads && !pthread_equal(e->thread[i], pthread_self()))
        i++;
    CU_ASSERT_FATAL(i < 2);
    if (i == e->threads)
        e->thread[e->threads++] = pthread_self();
    e->results[i]++;
    return SNAP_OK;
}

static void test_each_replica_takes_requests(void) {
    endless e = {0};
    char dir[64];
    tiny_folder(dir, "minicpm3");
    generator *g = open_layout(dir, "DP2", NULL, NULL);
    CU_ASSERT_EQUAL(generator_run(g, give, &e, count, &e, NULL), SNAP_OK);
    CU_ASSERT(e.results[0] >= kEach && e.results[1] >= kEach);
    CU_ASSERT_EQUAL(e.results[0] + e.results[1], e.given);
    generator_close(g);
    tiny_remove(dir);
}

static void test_a_run_that_ends_early(void) {
    static drive d;
    volatile sig_atomic_t cancel = 0;
    char dir[64];
    tiny_folder(dir, "minicpm3");
    generator *g = open_layout(dir, "DP2", NULL, &cancel);
    d = (drive){.fail_after = 3};
    CU_ASSERT_EQUAL(drive_run(&d, g, kRequests), SNAP_E_IO);
    CU_ASSERT_STRING_EQUAL(d.err.text, "the disk is full");
    drive_release(&d);
    cancel = 1;
    CU_ASSERT_EQUAL(drive_run(&d, g, kRequests), SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(d.n_kept, 0);
    drive_release(&d);
    cancel = 0;
    CU_ASSERT_EQUAL(drive_run(&d, g, kRequests), SNAP_OK);
    CU_ASSERT_EQUAL(d.n_kept, kRequests);
    drive_release(&d);
    generator_close(g);
    tiny_remove(dir);
}

/* Five samples of a prompt. @spoil: a step of the second replica refuses its tokens. */
static snap_status answer_with(const char *dir, const local_options *how, int max_tokens,
                               bool spoil, local_answers *out, snap_err *err) {
    local_model m;
    gen_message message = {"user", "1 + 1?"};
    answer_options o = {.sampling = {.temperature = 1, .top_p = 1, .repetition_penalty = 1},
                        .seed = 7,
                        .samples = 5,
                        .max_tokens = max_tokens};
    CU_ASSERT_EQUAL_FATAL(local_open(&m, dir, how, err), SNAP_OK);
    if (spoil)
        m.more[0].weights.shape.vocab_size = 1;
    snap_status st = local_answer_prompt(&m, &message, 1, &o, out, err);
    local_close(&m);
    return st;
}

static snap_status answer(const char *dir, const char *layout, bool spoil, local_answers *out,
                          snap_err *err) {
    const local_options how = {.threads = 1, .sequences = 4, .layout = layout};
    return answer_with(dir, &how, 40, spoil, out, err);
}

static void test_samples_of_a_prompt(void) {
    static local_answers one, two;
    snap_err err = {0};
    char dir[64];
    tiny_folder(dir, "v3");
    CU_ASSERT_EQUAL_FATAL(answer(dir, NULL, false, &one, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(answer(dir, "DP2", false, &two, &err), SNAP_OK);
    CU_ASSERT_EQUAL(two.n, 5);
    for (int i = 0; i < 5; i++)
        CU_ASSERT_STRING_EQUAL(buf_str(&one.all[i].text), buf_str(&two.all[i].text));
    CU_ASSERT_EQUAL(two.gaps.n, one.gaps.n);
    CU_ASSERT_EQUAL(two.stats.decoded, one.stats.decoded);
    CU_ASSERT_EQUAL(two.stats.prefilled, 2 * one.stats.prefilled); /* in each cache */
    local_answers_release(&one);
    local_answers_release(&two);
    CU_ASSERT_EQUAL(answer(dir, "DP2", true, &two, &err), SNAP_E_SHAPE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "replica 1 (cpu): "));
    local_answers_release(&two);
    tiny_remove(dir);
}

/* The cache of each replica has four pages and needs two for each sample, so samples are
 * swapped out and in. The texts are those of one replica with a large cache. */
static void test_swapping(void) {
    static local_answers one, two;
    static const char *const precisions[] = {"bf16", "fp8"};
    snap_err err = {0};
    char dir[64];
    tiny_folder(dir, "v3");
    for (int p = 0; p < 2; p++) {
        local_options how = {.threads = 1, .sequences = 4, .precision = precisions[p]};
        local_model m;
        CU_ASSERT_EQUAL_FATAL(local_open(&m, dir, &how, &err), SNAP_OK);
        int64_t page = (int64_t)kv_cache_page_bytes(runner_cache(m.runner));
        local_close(&m);
        CU_ASSERT_EQUAL_FATAL(answer_with(dir, &how, 100, false, &one, &err), SNAP_OK);
        CU_ASSERT_EQUAL(one.stats.preemptions, 0);
        how.layout = "DP2";
        how.cache_bytes = 4 * page;
        CU_ASSERT_EQUAL_FATAL(answer_with(dir, &how, 100, false, &two, &err), SNAP_OK);
        CU_ASSERT(two.stats.preemptions > 0);
        CU_ASSERT(two.stats.shared > 0); /* samples of a replica share the pages of the prompt */
        CU_ASSERT_EQUAL(two.n, 5);
        for (int i = 0; i < two.n; i++)
            CU_ASSERT_STRING_EQUAL(buf_str(&one.all[i].text), buf_str(&two.all[i].text));
        local_answers_release(&one);
        local_answers_release(&two);
    }
    tiny_remove(dir);
}

/* ---- a replica that hangs -------------------------------------------------------------------- */

typedef enum { IN_STEP, READS_PAGE, WRITES_PAGE } hang_place;

static const double kLimit = 0.5; /* seconds for a step, or a copy of a page */
static const kv_cache *hangs_in_read, *hangs_in_write;

static void hang(void) {
    for (;;)
        (void)pause();
}

/* The first step takes longer than the limit, and a later one does not end. */
static void hang_in_step(void *ctx, const runner_block_view *v) {
    int64_t steps = engine_stats_of(ctx).steps;
    if (steps == 0 && v->block == 0 && v->row == 0)
        clock_sleep_ns((int64_t)(3 * kLimit * 1e9));
    if (steps > WATCHDOG_FREE)
        hang();
}

snap_status __real_kv_cache_read_page(kv_cache *c, int32_t page, void *host, snap_err *err);
snap_status __wrap_kv_cache_read_page(kv_cache *c, int32_t page, void *host, snap_err *err);
snap_status __real_kv_cache_write_page(kv_cache *c, int32_t page, const void *host, snap_err *err);
snap_status __wrap_kv_cache_write_page(kv_cache *c, int32_t page, const void *host, snap_err *err);

/* The linker puts these in place of the functions of cache.h (option --wrap, see the Makefile). */
snap_status __wrap_kv_cache_read_page(kv_cache *c, int32_t page, void *host, snap_err *err) {
    if (c == hangs_in_read)
        hang();
    return __real_kv_cache_read_page(c, page, host, err);
}

snap_status __wrap_kv_cache_write_page(kv_cache *c, int32_t page, const void *host, snap_err *err) {
    if (c == hangs_in_write)
        hang();
    return __real_kv_cache_write_page(c, page, host, err);
}

static void end_with_message(const snap_err *why) {
    (void)fprintf(stderr, "%s", why->text);
    _exit(err_exit_code(why->code));
}

/* Replica 1 hangs. Replica 0 goes on. The cache of each has four pages, so samples are swapped. */
static _Noreturn void run_hanging_replica(const char *dir, int64_t page_bytes, hang_place place) {
    local_model m;
    local_answers out;
    snap_err err = {0};
    local_options how = {.layout = "DP2",
                         .threads = 2,
                         .sequences = 4,
                         .cache_bytes = place == IN_STEP ? 0 : 4 * page_bytes};
    gen_message message = {"user", "What is 17 * 23?"};
    answer_options o = {
        .sampling = {.temperature = 1, .top_p = 1}, .samples = 8, .max_tokens = 100};
    split_set_program(&(split_program){.end = end_with_message});
    if (local_open(&m, dir, &how, &err) != SNAP_OK || local_limit_steps(&m, 20, &err) != SNAP_OK ||
        local_limit_steps(local_replica(&m, 1), kLimit, &err) != SNAP_OK)
        end_with_message(&err);
    local_model *hangs = local_replica(&m, 1);
    if (place == IN_STEP)
        runner_watch_blocks(hangs->runner, hang_in_step, hangs->engine);
    else
        *(place == READS_PAGE ? &hangs_in_read : &hangs_in_write) = runner_cache(hangs->runner);
    (void)!local_answer_prompt(&m, &message, 1, &o, &out, &err);
    _exit(0);
}

static void check_hanging_replica(const char *dir, int64_t page_bytes, hang_place place,
                                  const char *what) {
    char text[700], expected[200];
    int ends[2], status = 0;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        run_hanging_replica(dir, page_bytes, place);
    }
    (void)close(ends[1]);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    (void)snprintf(expected, sizeof expected,
                   "replica 1 (cpu): %s did not end within 0.5 s: the GPU hangs, or is too slow",
                   what);
    CU_ASSERT_STRING_EQUAL(text, expected);
    (void)close(ends[0]);
}

static void test_a_replica_that_hangs(void) {
    snap_err err = {0};
    char dir[64];
    local_model m;
    tiny_folder(dir, "v3");
    CU_ASSERT_EQUAL_FATAL(local_open(&m, dir, &(local_options){.threads = 1}, &err), SNAP_OK);
    int64_t page = (int64_t)kv_cache_page_bytes(runner_cache(m.runner));
    local_close(&m);
    check_hanging_replica(dir, page, IN_STEP, "a step");
    check_hanging_replica(dir, page, READS_PAGE, "a copy of a page of the cache");
    check_hanging_replica(dir, page, WRITES_PAGE, "a copy of a page of the cache");
    tiny_remove(dir);
}

CU_TestInfo tests_replicas[] = {
    {"devices and layouts", test_devices},
    {"layouts give the same answers", test_layouts_give_the_same_answers},
    {"each replica takes requests", test_each_replica_takes_requests},
    {"a run that ends early", test_a_run_that_ends_early},
    {"samples of a prompt, and a replica that fails", test_samples_of_a_prompt},
    {"swapping and shared prompts", test_swapping},
    {"a replica that hangs", test_a_replica_that_hangs},
    CU_TEST_INFO_NULL,
};
