/* test_arms.c - named arms of a benchmark: parsing, order, ratios, and a sweep in which one arm is
 * wrong, one fails and one cannot be opened. */
#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "harness/bench/arm_spec.h"
#include "harness/bench/interleave.h"
#include "harness/bench/sweep_inside.h"
#include "harness/measure/paired_ratio.h"
#include "harness/record/cell.h"
#include "kernels/backend.h"

/* ---- the option --arm ---- */

static snap_status parse(int n, const char *const *items, arm_spec *out, arena *mem,
                         snap_err *err) {
    opt_list list = {.n = n};
    for (int i = 0; i < n; i++)
        list.items[i] = items[i];
    return arm_specs_parse(&list, mem, out, err);
}

static void test_specs(void) {
    static const char *const items[] = {"ours=cpu",
                                        "b.2=cpu,threads=3,precision=fp8,isa=avx2",
                                        "mine=plugin:/some/where/a=b.so,precision=bf16",
                                        "page=cuda,unit=page,precision=fp8",
                                        "kept=cuda,precision=fp8,unit=kept",
                                        "p=cuda,precision=fp8,scale=pow2"};
    arm_spec arms[SWEEP_ARMS];
    arena mem = {0};
    CU_ASSERT_FATAL(parse(6, items, arms, &mem, NULL) == SNAP_OK);
    CU_ASSERT_STRING_EQUAL(arms[0].name, "ours");
    CU_ASSERT_STRING_EQUAL(arms[0].options, "cpu");
    CU_ASSERT(arms[0].kind == BENCH_BF16 && arms[0].device.threads == 0);
    CU_ASSERT_STRING_EQUAL(arms[0].device.isa, "auto");
    CU_ASSERT_STRING_EQUAL(arms[1].device.isa, "avx2");
    CU_ASSERT(arms[1].kind == BENCH_FP8 && arms[1].device.threads == 3);
    CU_ASSERT_STRING_EQUAL(arms[2].device.backend, "plugin:/some/where/a=b.so");
    CU_ASSERT_STRING_EQUAL(arms[2].options, "plugin:a=b.so,precision=bf16");
    CU_ASSERT(arms[3].kind == BENCH_PAGE_UNITS && arms[4].kind == BENCH_FP8);
    CU_ASSERT_STRING_EQUAL(arms[5].device.scale, "pow2");
    CU_ASSERT_PTR_NULL(arms[0].device.scale);
    arena_release(&mem);
}

static void test_bad_specs(void) {
    static const struct {
        const char *items[2], *says;
    } bad[] = {
        {{"cpu"}, "is not NAME=BACKEND"},
        {{"=cpu"}, "not the name of an arm"},
        {{"a b=cpu"}, "not the name of an arm"},
        {{"a=gpu"}, "must be cpu, cuda, opencl, plugin:PATH or python:FILE"},
        {{"a=opncl"}, "did you mean 'opencl'?"},
        {{"a=plugin:"}, "must be cpu, cuda"},
        {{"a=cpu,precison=fp8"}, "did you mean 'precision'?"},
        {{"a=cpu,precision=fp4"}, "must be bf16 or fp8"},
        {{"a=cpu,precision=fp8-copied"}, "must be bf16 or fp8"},
        {{"a=cuda,precision=fp8,unit=tile"}, "must be kept or page"},
        {{"a=cuda,unit=page"}, "is for cuda with precision=fp8"},
        {{"a=cpu,precision=fp8,unit=kept"}, "is for cuda with precision=fp8"},
        {{"a=cpu,threads=-1"}, "0..1024"},
        {{"a=cpu,threads=99999999999999999999"}, "0..1024"},
        {{"a=cpu,isa="}, "must be an instruction set"},
        {{"a=cpu,precision=fp8,scale=2"}, "must be max or pow2"},
        {{"a=cpu,scale=pow2"}, "'scale' is for arms with precision=fp8"},
        {{"a=cpu,fast"}, "is not key=value"},
        {{"a=cpu,"}, "empty part"},
        {{"a=\xff"}, "not UTF-8"},
        {{"a=cpu", "a=opencl"}, "two arms have the name 'a'"},
    };
    arm_spec arms[SWEEP_ARMS];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        arena mem = {0};
        snap_err err = {0};
        CU_ASSERT(parse(1 + (bad[i].items[1] != NULL), bad[i].items, arms, &mem, &err) ==
                  SNAP_E_USAGE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].says));
        arena_release(&mem);
    }
    opt_list many = {.n = SWEEP_ARMS + 1};
    snap_err err = {0};
    arena mem = {0};
    CU_ASSERT(arm_specs_parse(&many, &mem, arms, &err) == SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "at most 32 arms"));
    arena_release(&mem);
}

/* ---- the hash of the code ---- */

/* An arm whose code is the user's file keeps the file's hash if its kernel has a name, as on a CUDA
 * device, even if the program has device code of that name. Other arms get the hash of that
 * code. */
static void test_code_of_an_arm(void) {
    static const char file[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const char *const kernels[] = {"mine", "sm90_fp8", "mine"};
    lane l = {.of = {.kernel_hash = file, .code_is_file = true}};
    for (int i = 0; i < 3; i++) {
        sweep_find_code(&l, kernels[i]);
        CU_ASSERT_STRING_EQUAL(l.code.kernel, kernels[i]);
        CU_ASSERT(l.code.known);
        CU_ASSERT_STRING_EQUAL(l.code.hash, file);
    }
    lane unknown = {.of = {.code_is_file = true}};
    sweep_find_code(&unknown, "mine");
    CU_ASSERT(!unknown.code.known);
    lane ours = {.of = {.kernel_hash = file}};
    sweep_find_code(&ours, "no_such_kernel");
    CU_ASSERT(!ours.code.known);
    sweep_find_code(&ours, NULL);
    CU_ASSERT_PTR_NULL(ours.code.kernel);
}

/* ---- the order of the arms ---- */

/* In n consecutive blocks each arm has the same number of steps, both halves of a block hold each
 * arm once, and within the halves each arm follows each other arm equally often. */
static void test_order_is_balanced(void) {
    for (int n = 2; n <= 9; n++) {
        int follows[9][9] = {{0}}, steps[9] = {0};
        for (int64_t half = 0; half < (int64_t)2 * n; half++) {
            unsigned seen = 0;
            for (int k = 0; k < n; k++) {
                int arm = interleave_arm(half * n + k, n);
                CU_ASSERT_FATAL(arm >= 0 && arm < n);
                seen |= 1u << arm;
                steps[arm]++;
                if (k)
                    follows[interleave_arm(half * n + k - 1, n)][arm]++;
            }
            CU_ASSERT(seen == (1u << n) - 1);
        }
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++) {
                CU_ASSERT(steps[a] == 2 * n);
                CU_ASSERT(a == b ? !follows[a][b] : follows[a][b] == 2);
            }
    }
}

/* ---- the ratio ---- */

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-9 * fabs((double)(b)))

/* The machine becomes three times slower during the run, which must not hide the ratio: each sample
 * of the second arm takes 0.8 of the time of the first arm's sample, with 1 % of alternating
 * noise. */
static void test_ratio_of_pairs(void) {
    enum { kN = 200 };
    double base[kN], arm[kN];
    paired_ratio r;
    for (int i = 0; i < kN; i++) {
        base[i] = 1000 + 10 * i;
        arm[i] = 0.8 * base[i] * (i % 2 ? 1.01 : 0.99);
    }
    CU_ASSERT(paired_ratio_of(base, kN, arm, kN, &r, NULL) == SNAP_OK);
    CU_ASSERT(r.lo > 1.24 && r.hi < 1.26 && r.lo <= r.ratio && r.hi >= r.ratio);
    CU_ASSERT_DOUBLE_EQUAL(r.ratio, 1.25, 0.01);
    /* The signed ranks of 6 values: the interval reaches from the lowest to the highest. */
    const double x[] = {1, 1, 1, 1, 1, 1}, y[] = {1, 2, 4, 8, 16, 32};
    CU_ASSERT(paired_ratio_of(x, 6, y, 6, &r, NULL) == SNAP_OK);
    NEAR(r.lo, 1.0 / 32);
    NEAR(r.hi, 1);
    CU_ASSERT(paired_ratio_of(x, 5, y, 5, &r, NULL) == SNAP_OK);
    CU_ASSERT(isnan(r.lo) && isnan(r.hi));
    NEAR(r.ratio, 0.25);
    CU_ASSERT(paired_ratio_of(x, 5, y, 3, &r, NULL) == SNAP_OK);
    CU_ASSERT(isnan(r.lo));
    NEAR(r.ratio, 0.5);
    CU_ASSERT(paired_ratio_of(x, 0, y, 3, &r, NULL) == SNAP_OK && isnan(r.ratio));
}

/* ---- a sweep ---- */

enum { FAKES = 4 };
static const mla_backend_ops *real;
static mla_backend_ops fakes[FAKES];
static int runs[FAKES];

static int index_of(const mla_plan *plan) {
    return (int)(plan->be->ops - fakes);
}

/* Fake 1 negates an element of the output. Fake 2 fails from its fourth step on, which is timed. */
static snap_status fake_run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                            const mla_attn *attn, snap_err *err) {
    int i = index_of(plan);
    if (i == 2 && ++runs[i] > 3)
        return err_set(err, SNAP_E_DEVICE, "the second device fell off the bus");
    snap_status st = real->run(plan, step, cache, attn, err);
    if (i == 1)
        ((uint16_t *)attn->out)[0] ^= 0x8000;
    return st;
}

static void fake_describe(const mla_backend *be, mla_backend_info *out) {
    real->describe(be, out);
    /* One backend of the four reports the size of the cache. */
    out->cache_bytes = be->ops == &fakes[0] ? 1 << 18 : 0;
}

static mla_backend *open_fake(int i) {
    mla_backend *be = NULL;
    mla_backend_options wanted = {.isa = "auto", .threads = 1};
    CU_ASSERT_FATAL(mla_backend_open(&be, "cpu", &wanted, NULL) == SNAP_OK);
    real = be->ops;
    fakes[i] = *real;
    fakes[i].run = fake_run;
    fakes[i].describe = fake_describe;
    be->ops = &fakes[i];
    runs[i] = 0;
    return be;
}

static void run_sweep(cell_list *all, arena *mem, js *rows) {
    static const char *const names[] = {"base", "wrong", "broken", "same", "gone"};
    bench_grid_text text = {.arms = "bf16",
                            .scopes = "kernel",
                            .heads = "2",
                            .s_q = "1",
                            .batch = "2",
                            .context = "70",
                            .d_c = 128,
                            .d_r = 32};
    bench_grid grid;
    sweep_arm arms[FAKES + 1];
    CU_ASSERT_FATAL(bench_grid_parse(&grid, &text, NULL) == SNAP_OK);
    for (int i = 0; i <= FAKES; i++)
        arms[i] = (sweep_arm){.name = names[i],
                              .options = "cpu",
                              .kind = i == 3 ? BENCH_FP8 : BENCH_BF16,
                              .backend = i < FAKES ? open_fake(i) : NULL};
    (void)err_set(&arms[FAKES].why, SNAP_E_IO, "no such plugin");
    sweep_options wanted = {
        .arms = arms,
        .n_arms = FAKES + 1,
        .grid = &grid,
        .distribution = NUMBERS_NORMAL,
        .seed = 3,
        .limits = {.noise = 1, .min_samples = 8, .max_samples = 8, .timeout_s = 1e9}};
    CU_ASSERT(sweep_total(&wanted) == FAKES + 1);
    CU_ASSERT(sweep_run(&wanted, rows, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(record_read_all(&cell_type, rows, mem, &all->at, &all->n));
    for (int i = 0; i < FAKES; i++) {
        arms[i].backend->ops = real;
        mla_backend_close(arms[i].backend);
    }
}

static void test_sweep_of_named_arms(void) {
    arena mem = {0};
    cell_list all;
    snap_err err = {0};
    js *rows = js_new_array();
    run_sweep(&all, &mem, rows);
    CU_ASSERT_FATAL(all.n == FAKES + 1);
    const cell_record *base = &all.at[0], *same = &all.at[3];
    CU_ASSERT_STRING_EQUAL(base->status, "passed");
    CU_ASSERT(!base->against.exists && base->device[0]);
    CU_ASSERT_STRING_EQUAL(all.at[1].status, "failed");
    CU_ASSERT_STRING_EQUAL(all.at[2].status, "error");
    CU_ASSERT_STRING_EQUAL(all.at[2].reason, "the second device fell off the bus");
    CU_ASSERT_STRING_EQUAL(all.at[4].status, "error");
    CU_ASSERT_STRING_EQUAL(all.at[4].reason, "no such plugin");
    CU_ASSERT(!all.at[1].against.exists && !all.at[2].against.exists);
    CU_ASSERT_STRING_EQUAL(same->status, "passed");
    CU_ASSERT_STRING_EQUAL(same->arm, "fp8");
    CU_ASSERT_STRING_EQUAL(same->against.baseline, "base");
    /* The two arms without a fault were timed again together, after the third had failed. */
    CU_ASSERT(base->performance.count == same->performance.count);
    paired_ratio want;
    record_numbers x = base->performance.samples_ns, y = same->performance.samples_ns;
    CU_ASSERT(paired_ratio_of(x.at, x.n, y.at, y.n, &want, NULL) == SNAP_OK);
    NEAR(same->against.ratio, want.ratio);
    for (size_t i = 0; i < FAKES; i++) /* all arms use the cache size that one backend reports */
        CU_ASSERT_STRING_EQUAL(all.at[i].cold, "rotate");
    CU_ASSERT(sweep_verdict(rows, &err) == SNAP_E_DEVICE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "broken kernel"));
    js_free(rows);
    arena_release(&mem);
}

/* ---- the host's part of a step ---- */

static mla_backend_ops timed;
static double reported_ns; /* what the device's clock says about each step */
static bool in_host;

static snap_status reported_stop(mla_backend *be, double *ns, snap_err *err) {
    snap_status st = real->timer_stop(be, ns, err);
    *ns = reported_ns;
    return st;
}

static void describe_timed(const mla_backend *be, mla_backend_info *out) {
    real->describe(be, out);
    out->host_memory = in_host;
}

/* Whether the row of the only arm has the flag "host_limited". */
static bool is_marked(double ns, bool host_memory, double sustained_s) {
    bench_grid_text text = {.arms = "bf16",
                            .scopes = "kernel",
                            .heads = "2",
                            .s_q = "1",
                            .batch = "2",
                            .context = "70",
                            .d_c = 128,
                            .d_r = 32};
    mla_backend_options threads = {.isa = "auto", .threads = 1};
    mla_backend *be = NULL;
    bench_grid grid;
    cell_list all;
    arena mem = {0};
    js *rows = js_new_array();
    CU_ASSERT_FATAL(bench_grid_parse(&grid, &text, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(mla_backend_open(&be, "cpu", &threads, NULL) == SNAP_OK);
    real = be->ops;
    timed = *real;
    timed.timer_stop = reported_stop;
    timed.describe = describe_timed;
    be->ops = &timed;
    reported_ns = ns;
    in_host = host_memory;
    sweep_arm arm = {.name = "one", .options = "cpu", .kind = BENCH_BF16, .backend = be};
    sweep_options wanted = {
        .arms = &arm,
        .n_arms = 1,
        .grid = &grid,
        .distribution = NUMBERS_NORMAL,
        .seed = 3,
        .sustained_s = sustained_s,
        .limits = {.noise = 1, .min_samples = 2, .max_samples = 2, .timeout_s = 1e9}};
    CU_ASSERT(sweep_run(&wanted, rows, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(record_read_all(&cell_type, rows, &mem, &all.at, &all.n) && all.n == 1);
    CU_ASSERT_STRING_EQUAL(all.at[0].status, "passed");
    bool marked = cell_has_flag(&all.at[0], "host_limited");
    be->ops = real;
    mla_backend_close(be);
    js_free(rows);
    arena_release(&mem);
    return marked;
}

/* The device's clock reports a step of 10^6 seconds, but after enqueueing the step the host waits
 * much less. So most of the step must have passed before, and the row is marked. With a reported
 * step of 1 ns the host waits longer than the step, so the row is not marked. */
static void test_host_limit(void) {
    static const double kLong = 1e15, kShort = 1;
    CU_ASSERT(is_marked(kLong, false, 0));
    if (kSanitized) /* each run takes ten seconds */
        return;
    CU_ASSERT(!is_marked(kShort, false, 0));
    CU_ASSERT(!is_marked(kLong, true, 0)); /* the host is the device */
    CU_ASSERT(is_marked(kLong, false, 1e-9));
}

CU_TestInfo tests_arms[] = {
    {"the option --arm", test_specs},
    {"bad options --arm are refused", test_bad_specs},
    {"the hash of an arm's code", test_code_of_an_arm},
    {"each arm follows each other arm equally often", test_order_is_balanced},
    {"the ratio of paired samples and its interval", test_ratio_of_pairs},
    {"a sweep goes on without the arms that fail", test_sweep_of_named_arms},
    {"arms that the host limits are marked", test_host_limit},
    CU_TEST_INFO_NULL,
};
