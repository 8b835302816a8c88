/* Tests plugins with one function: the example computes a step, faulty tables are refused, and a
 * call that writes where it must not, fails or hangs is reported. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels/backend.h"
#include "kernels/formats.h"
#include "kernels/plugin/attend.h"
#include "kernels/plugin/packed.h"

enum { HEADS = 2, BATCH = 2, D = 32, PAGES = 4, WIDTH = 2, ROWS = HEADS * BATCH };

/* One step in the memory of a backend. Its tokens are zeros, so all probabilities are equal. */
typedef struct {
    mla_backend *be;
    mla_plan *plan;
    mla_step step;
    mla_cache cache;
    mla_attn attn;
} step_fixture;

static void *filled(mla_backend *be, size_t bytes) {
    void *at = mla_alloc(be, bytes, NULL);
    CU_ASSERT_FATAL(at && (uintptr_t)at % MLA_ALIGN == 0);
    memset(at, 0, bytes);
    return at;
}

static snap_status make(step_fixture *f, const char *name, snap_err *err) {
    static const int32_t lengths[BATCH] = {70, 3}, table[BATCH * WIDTH] = {3, 0, 2, -7};
    mla_capacity cap = {.precision = MLA_BF16,
                        .heads = HEADS,
                        .d_c = D,
                        .d_r = D,
                        .batch = BATCH,
                        .s_q = 1,
                        .max_tokens = 128};
    mla_backend_options one = {.threads = 1};
    *f = (step_fixture){0};
    snap_status st = mla_backend_open(&f->be, name, &one, err);
    if (st == SNAP_OK)
        st = mla_plan_create(&f->plan, f->be, &cap, err);
    if (st != SNAP_OK)
        return st;
    int32_t *l = filled(f->be, sizeof lengths), *t = filled(f->be, sizeof table);
    memcpy(l, lengths, sizeof lengths);
    memcpy(t, table, sizeof table);
    f->step = (mla_step){BATCH, 1, l, t, WIDTH};
    f->cache = (mla_cache){PAGES, filled(f->be, (size_t)PAGES * MLA_PAGE * D * 2 * 2), NULL, NULL};
    f->attn = (mla_attn){.q = filled(f->be, ROWS * D * 2 * 2),
                         .softmax_scale = 1,
                         .out = filled(f->be, ROWS * D * 2),
                         .lse = filled(f->be, ROWS * sizeof(float))};
    return mla_schedule(f->plan, &f->step, err);
}

static snap_status run(step_fixture *f, snap_err *err) {
    return mla_run(f->plan, &f->step, &f->cache, &f->attn, err);
}

static void drop(step_fixture *f) {
    void *const all[] = {(void *)(uintptr_t)f->step.seqlens,
                         (void *)(uintptr_t)f->step.block_table,
                         f->cache.content,
                         (void *)(uintptr_t)f->attn.q,
                         f->attn.out,
                         f->attn.lse};
    mla_plan_free(f->plan);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        mla_free(f->be, all[i]);
    mla_backend_close(f->be);
}

/* Tokens of zeros: the log-sum-exp is the logarithm of the length. */
static void test_example(void) {
    step_fixture f;
    snap_err err = {0};
    CU_ASSERT_FATAL(make(&f, "plugin:" PLUGINS "/plugins/attend.so", &err) == SNAP_OK);
    mla_backend_info info;
    mla_backend_describe(f.be, &info);
    CU_ASSERT_STRING_EQUAL(info.name, "attend");
    CU_ASSERT_STRING_EQUAL(info.kernel, "fp64");
    CU_ASSERT(info.host_memory && info.device[0]);
    CU_ASSERT(run(&f, &err) == SNAP_OK);
    for (int row = 0; row < ROWS; row++)
        CU_ASSERT_DOUBLE_EQUAL(f.attn.lse[row], log(row < HEADS ? 70 : 3), 1e-6);
    ((int32_t *)(uintptr_t)f.step.seqlens)[1] = INT32_MAX; /* clamped before the plugin sees it */
    CU_ASSERT(mla_schedule(f.plan, &f.step, &err) == SNAP_OK && run(&f, &err) == SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(f.attn.lse[ROWS - 1], log(128), 1e-6);
    drop(&f);
}

#define FAULTY(name) "plugin:" PLUGINS "/test/plugins/ATTEND_" name ".so"

static void test_refused(void) {
    static const struct {
        const char *name, *says;
    } cases[] = {
        {FAULTY("ABI"), "was built for ABI 99 of attention.h"},
        {FAULTY("BYTES"), "compiled against other headers"},
        {FAULTY("NAME"), "is the name of a built-in backend"},
        {FAULTY("NULL"), "attend is null"},
        {FAULTY("PRECISIONS"), "precisions must be"},
        {FAULTY("DEVICE"), "device must be \"host\" or \"cuda\", got \"abacus\""},
        {FAULTY("LIMIT"), "limit_s must be within 0..3600"},
        {FAULTY("PLAN"), "plugin faulty: plan(): only 3 heads, got 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        step_fixture f;
        snap_err err = {0};
        CU_ASSERT(make(&f, cases[i].name, &err) == SNAP_E_UNSUPPORTED);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].says));
        mla_backend_close(f.be);
    }
}

static void test_reported(void) {
    static const struct {
        const char *name, *says;
    } cases[] = {
        {FAULTY("RIGHT"), ""},
        {FAULTY("ERROR"), "plugin faulty: attend(): the printer is out of paper"},
        {FAULTY("CANCELS"), "plugin faulty: attend() failed without a message"},
        {FAULTY("AFTER"), "wrote outside of 'out'"},
        {FAULTY("BEFORE"), "wrote outside of 'lse'"},
        {FAULTY("INPUTS"), "changed its inputs"},
        {FAULTY("TABLE"), "changed its inputs"},
        {FAULTY("HANGS"), "plugin faulty: attend() took more than 0.2 seconds"},
        {FAULTY("CACHE"), "attend() wrote after a buffer of"},
        {FAULTY("FAR"), "crashed (Segmentation fault) at 12289 bytes after the end of a buffer of"},
        {FAULTY("READS"), "crashed (Segmentation fault) at 12288 bytes before a buffer of"},
        {FAULTY("CRASHES"), "plugin faulty: attend() crashed (Segmentation fault) at address 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        step_fixture f;
        snap_err err = {0};
        CU_ASSERT_FATAL(make(&f, cases[i].name, &err) == SNAP_OK);
        CU_ASSERT(run(&f, &err) == (i ? SNAP_E_DEVICE : SNAP_OK));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].says));
        drop(&f);
    }
}

static void test_crash_in_plan(void) {
    step_fixture f;
    snap_err err = {0};
    CU_ASSERT(make(&f, FAULTY("PLANS"), &err) == SNAP_E_DEVICE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "plugin faulty: plan() crashed (Segmentation fault)"));
    mla_backend_close(f.be);
}

/* The capacity that a plugin was given, which its threads may still read after it was stopped. */
static const mla_capacity *given;

static snap_status plan_and_hang(void **state, const mla_capacity *cap, snap_err *err) {
    (void)state, (void)err;
    given = cap;
    for (volatile int forever = 1; forever;)
        ;
    return SNAP_OK;
}

static snap_status attend_nothing(void *state, const snapmla_step *step, const snapmla_queries *q,
                                  const mla_cache *cache, void *out, float *lse, void *stream,
                                  snap_err *err) {
    (void)state, (void)step, (void)q, (void)cache, (void)out, (void)lse, (void)stream, (void)err;
    return SNAP_OK;
}

static void test_hang_in_plan(void) {
    static const snapmla_attention hangs = {SNAPMLA_ATTENTION,       .name = "hangs",
                                            .device = "host",        .precisions = SNAPMLA_HAS_BF16,
                                            .limit_s = 0.02,         .plan = plan_and_hang,
                                            .attend = attend_nothing};
    mla_backend_options one = {.threads = 1};
    mla_capacity cap = {.precision = MLA_BF16,
                        .heads = HEADS,
                        .d_c = D,
                        .d_r = D,
                        .batch = BATCH,
                        .s_q = 1,
                        .max_tokens = 128};
    mla_backend *be;
    mla_plan *plan;
    snap_err err = {0};
    CU_ASSERT_FATAL(attend_backend_open(&be, &hangs, "test", &one, &err) == SNAP_OK);
    CU_ASSERT(mla_plan_create(&plan, be, &cap, &err) == SNAP_E_DEVICE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "plugin hangs: plan() took more than 0.02 seconds"));
    mla_backend_close(be);
    CU_ASSERT(given->heads == HEADS && given->max_tokens == 128);
}

/* The device of a plugin is the one that it names, or else that of the backend below it. */
static void test_device_name(void) {
    static const char *const names[] = {"Acme X1", "", NULL};
    mla_backend_options one = {.threads = 1};
    mla_backend_info cpu, info;
    mla_backend *be;
    CU_ASSERT_FATAL(mla_backend_open(&be, "cpu", &one, NULL) == SNAP_OK);
    mla_backend_describe(be, &cpu);
    mla_backend_close(be);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const snapmla_attention named = {SNAPMLA_ATTENTION,        .name = "named",
                                         .device = "host",         .device_name = names[i],
                                         .attend = attend_nothing, .precisions = SNAPMLA_HAS_BF16};
        CU_ASSERT_FATAL(attend_backend_open(&be, &named, "test", &one, NULL) == SNAP_OK);
        mla_backend_describe(be, &info);
        CU_ASSERT_STRING_EQUAL(info.device, i == 0 ? "Acme X1" : cpu.device);
        CU_ASSERT_STRING_EQUAL(info.name, "named");
        mla_backend_close(be);
    }
}

/* After a step, packed_check() fails if a byte before a buffer has changed, and passes again once
 * the byte has its old value. */
static void test_check_later(void) {
    step_fixture f;
    snap_err err = {0};
    CU_ASSERT_FATAL(make(&f, "plugin:" PLUGINS "/plugins/attend.so", &err) == SNAP_OK);
    CU_ASSERT(run(&f, &err) == SNAP_OK && packed_check(f.plan, &err) == SNAP_OK);
    unsigned char *lse = (unsigned char *)f.attn.lse, was = lse[-GUARD_BYTES];
    lse[-GUARD_BYTES] ^= 1;
    CU_ASSERT(packed_check(f.plan, &err) == SNAP_E_DEVICE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "plugin attend: attend() wrote before a buffer of"));
    lse[-GUARD_BYTES] = was;
    CU_ASSERT(packed_check(f.plan, &err) == SNAP_OK);
    drop(&f);
}

static void sleep_a_moment(void *ctx) {
    struct timespec t = {.tv_nsec = 60000000};
    (void)nanosleep(&t, NULL);
    ++*(int *)ctx;
}

static void read_far_away(void *ctx) {
    volatile uintptr_t far_away = UINT64_C(0xa5a5a5a5a5a5a5a5);
    *(char *)ctx = *(const volatile char *)far_away;
}

/* x86 does not report such an address: the message must not state address 0 instead. The signals
 * of crashes must not stay blocked: the second crash would end the process. */
static void test_unknown_address(void) {
    for (int i = 0; i < 2; i++) {
        const void *address = NULL;
        snap_err err = {0};
        char byte;
        CU_ASSERT(guard_call(read_far_away, &byte, 60, &address, &err) == SNAP_E_DEVICE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "crashed ("));
        CU_ASSERT_PTR_NULL(strstr(err.text, "address 0"));
    }
}

/* Crashes in a child process, and waits for it. */
static void crash_in_child(void *ctx) {
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        volatile uintptr_t nowhere = 64;
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)close(STDERR_FILENO);
        *(volatile char *)nowhere = 1;
    }
    CU_ASSERT(waitpid(child, ctx, 0) == child);
}

/* A child process of a plugin that crashes does not go on with the program. */
static void test_crash_of_a_child(void) {
    const void *address = NULL;
    pid_t own = getpid();
    int status = 0;
    bool returned = guard_call(crash_in_child, &status, 60, &address, NULL) == SNAP_OK;
    if (getpid() != own)
        _exit(0);
    CU_ASSERT(returned && (WIFSIGNALED(status) || WEXITSTATUS(status) != 0));
}

/* A crash outside of a plugin still ends the process. */
static void test_other_crashes(void) {
    int status = 0, calls = 0;
    const void *address = NULL;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        volatile char *volatile nowhere = NULL;
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)close(STDERR_FILENO);
        if (guard_call(sleep_a_moment, &calls, 60, &address, NULL) == SNAP_OK)
            *nowhere = 1;
        _exit(0);
    }
    CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
    CU_ASSERT(WIFSIGNALED(status) || WEXITSTATUS(status) != 0); /* sanitizers exit */
}

/* A plugin that was stopped is not called again, and another plugin still works after that. */
static void test_after_a_hang(void) {
    step_fixture f, other;
    snap_err err = {0};
    CU_ASSERT_FATAL(make(&f, FAULTY("HANGS"), &err) == SNAP_OK);
    CU_ASSERT(run(&f, NULL) == SNAP_E_DEVICE);
    CU_ASSERT(run(&f, &err) == SNAP_E_DEVICE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "an earlier call crashed or took too long"));
    err = (snap_err){0};
    CU_ASSERT_FATAL(make(&other, "plugin:" PLUGINS "/plugins/attend.so", &err) == SNAP_OK);
    CU_ASSERT(run(&other, &err) == SNAP_OK);
    drop(&other);
    drop(&f);
}

static void sleep_long(void *ctx) {
    struct timespec t = {.tv_sec = 600};
    (void)nanosleep(&t, NULL);
    ++*(int *)ctx;
}

/* The timer of one limit may still run when a call with a longer or shorter limit begins. */
static void test_limits_in_turn(void) {
    int calls = 0;
    const void *address = NULL;
    snap_err err = {0};
    CU_ASSERT(guard_call(sleep_a_moment, &calls, 60, &address, &err) == SNAP_OK && calls == 1);
    CU_ASSERT(guard_call(sleep_a_moment, &calls, 120, &address, &err) == SNAP_OK);
    CU_ASSERT(guard_call(sleep_long, &calls, 0.02, &address, NULL) == SNAP_E_DEVICE && calls == 2);
    CU_ASSERT(guard_call(sleep_a_moment, &calls, 120, &address, &err) == SNAP_OK && calls == 3);
}

/* Runs a plugin's function where the system allows no more timers. Returns the process's exit code:
 * 0 if that is an error of the system, and not the plugin's. */
static int call_without_timer(void) {
    const struct rlimit none = {0, 0};
    int calls = 0;
    const void *address = NULL;
    snap_err err = {0};
    if (setrlimit(RLIMIT_SIGPENDING, &none) != 0) /* each timer needs room for its signal */
        return 1;
    snap_status st = guard_call(sleep_a_moment, &calls, 60, &address, &err);
    return st == SNAP_E_IO && calls == 0 && strstr(err.text, "no timer") ? 0 : 2;
}

static void test_no_timer(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(call_without_timer());
    CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* One thread that calls the plugin and then one function of the backend. */
typedef struct {
    step_fixture f;
    snap_status (*then)(step_fixture *f); /* NULL = none */
    bool fired;                           /* the timer of the plugin's limit has run out */
} rest_case;

static snap_status then_wait(step_fixture *f) {
    return mla_sync(f->be, NULL);
}

static snap_status then_start(step_fixture *f) {
    return mla_timer_start(f->be, NULL);
}

static snap_status then_stop(step_fixture *f) {
    double ns;
    return mla_timer_stop(f->be, &ns, NULL);
}

static snap_status then_copy(step_fixture *f) {
    float lse[ROWS];
    return mla_copy_out(f->be, lse, f->attn.lse, sizeof lse, NULL);
}

static snap_status then_free(step_fixture *f) {
    mla_plan_free(f->plan);
    f->plan = NULL;
    return SNAP_OK;
}

/* The plugin's limit is 4 s. With all signals blocked, one that a timer sends stays pending. */
static void *call_and_wait(void *ctx) {
    rest_case *c = ctx;
    struct timespec t = {.tv_sec = 4, .tv_nsec = 500000000};
    sigset_t all, pending;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    bool ok = run(&c->f, NULL) == SNAP_OK && (!c->then || c->then(&c->f) == SNAP_OK);
    (void)nanosleep(&t, NULL);
    (void)sigpending(&pending);
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        c->fired |= sigismember(&pending, i) == 1;
    return ok ? c : NULL;
}

/* After a call of the plugin, the timer of its time limit is still set. When it fires, its signal
 * can interrupt system calls of code that has nothing to do with plugins. So each function of the
 * backend after which such code can run stops the timer. Without such a function, it fires. */
static void test_rest(void) {
    rest_case cases[] = {{.then = NULL},      {.then = then_wait}, {.then = then_start},
                         {.then = then_stop}, {.then = then_copy}, {.then = then_free}};
    enum { N = sizeof cases / sizeof *cases };
    pthread_t threads[N];
    for (int i = 0; i < N; i++) {
        CU_ASSERT_FATAL(make(&cases[i].f, FAULTY("SHORT"), NULL) == SNAP_OK);
        CU_ASSERT_FATAL(mla_timer_start(cases[i].f.be, NULL) == SNAP_OK);
    }
    for (int i = 0; i < N; i++)
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, call_and_wait, &cases[i]) == 0);
    for (int i = 0; i < N; i++) {
        void *done = NULL;
        CU_ASSERT(pthread_join(threads[i], &done) == 0 && done);
        CU_ASSERT_EQUAL(cases[i].fired, i == 0);
        drop(&cases[i].f);
    }
}

CU_TestInfo tests_attention[] = {
    {"the example with one function", test_example},
    {"tables that are refused", test_refused},
    {"calls that are reported", test_reported},
    {"after a call that hangs", test_after_a_hang},
    {"time limits in turn", test_limits_in_turn},
    {"no timer for the time limit", test_no_timer},
    {"no timer runs between calls", test_rest},
    {"a crash in plan()", test_crash_in_plan},
    {"plan() that hangs", test_hang_in_plan},
    {"the name of the device", test_device_name},
    {"a check after the steps", test_check_later},
    {"crashes elsewhere", test_other_crashes},
    {"a crash in a child process", test_crash_of_a_child},
    {"a crash at an unknown address", test_unknown_address},
    CU_TEST_INFO_NULL,
};
