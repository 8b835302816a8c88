#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "harness/bench/fidelity.h"
#include "harness/bench/interleave.h"
#include "harness/bench/sweep.h"
#include "harness/record/results.h"
#include "kernels/backend.h"
#include "kernels/formats.h"
#include "kernels/test/plugins/wrong.h"

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-9 * (1 + fabs((double)(b))))

/* ---- rows as JSON, and a CPU backend with injected faults ---- */

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for a row");
}

static snap_status row_derive(js *row, const mla_ceilings *c, snap_err *err) {
    snap_status st = SNAP_OK;
    arena mem = {0};
    cell_record cell;
    TRY(record_read(&cell_type, row, &mem, &cell) ? SNAP_OK : no_memory(err));
    if (!cell.performance.exists)
        goto cleanup;
    TRY(cell_derive(&cell, c, &mem, err));
    TRY(row_store(row, &cell) ? SNAP_OK : no_memory(err));
cleanup:
    arena_release(&mem);
    return st;
}

static void row_raise(const js *row, mla_ceilings *c) {
    arena mem = {0};
    cell_record cell;
    if (record_read(&cell_type, row, &mem, &cell))
        cell_raise(&cell, c);
    arena_release(&mem);
}

static bool row_has_flag(const js *row, const char *flag) {
    arena mem = {0};
    cell_record cell;
    bool has = record_read(&cell_type, row, &mem, &cell) && cell_has_flag(&cell, flag);
    arena_release(&mem);
    return has;
}

static double row_number(const js *row, const char *key) {
    arena mem = {0};
    cell_record cell;
    double x = (double)NAN;
    if (record_read(&cell_type, row, &mem, &cell))
        x = record_number(&cell_performance_type, &cell.performance, key);
    arena_release(&mem);
    return x;
}

static double row_paired_pct(const js *row) {
    arena mem = {0};
    cell_record cell;
    double x = (double)NAN;
    if (record_read(&cell_type, row, &mem, &cell))
        x = cell.performance.paired.roofline_pct;
    arena_release(&mem);
    return x;
}

static double speedup_of(const js *rows, size_t i) {
    arena mem = {0};
    cell_list all;
    double times = (double)NAN;
    if (record_read_all(&cell_type, rows, &mem, &all.at, &all.n))
        times = sweep_speedup(&all, i);
    arena_release(&mem);
    return times;
}

static const mla_backend_ops *real;
static mla_backend_ops fake;
static struct {
    int runs;
    int corrupt_from;  /* first run with corrupted output; 0 = never */
    int fail_from;     /* first run that reports a broken device; 0 = never */
    bool spoil_append; /* the content of the last BF16 token of each sequence is negated */
    size_t memory;
    int clock_from; /* first time that is measured by a clock that runs backwards; 0 = never */
    int times;
    double reported_ns; /* the time that is reported for each step; 0 = the measured one */
} plot;

static void fake_describe(const mla_backend *be, mla_backend_info *out) {
    real->describe(be, out);
    out->cache_bytes = 1 << 18; /* small, so that there are few sets */
    if (plot.memory)
        out->memory_bytes = plot.memory;
}

static snap_status fake_run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                            const mla_attn *attn, snap_err *err) {
    plot.runs++;
    if (plot.fail_from && plot.runs >= plot.fail_from)
        return err_set(err, SNAP_E_DEVICE, "the device fell off the bus");
    snap_status st = real->run(plan, step, cache, attn, err);
    if (plot.corrupt_from && plot.runs >= plot.corrupt_from)
        ((uint16_t *)attn->out)[3] ^= 0x8000; /* one sign of one element */
    return st;
}

static snap_status fake_append(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                               const void *kv, snap_err *err) {
    snap_status st = real->append_kv(plan, step, cache, kv, err);
    if (plot.spoil_append)
        for (int b = 0; b < step->batch && plan->cap.precision == MLA_BF16; b++)
            if (step->seqlens[b] > 0) {
                int64_t slot = mla_slot(step->block_table + (int64_t)b * step->table_width,
                                        cache->pages, step->seqlens[b] - 1);
                uint16_t *row = (uint16_t *)cache->content + slot * (plan->cap.d_c + plan->cap.d_r);
                for (int d = 0; d < plan->cap.d_c; d++)
                    row[d] ^= 0x8000;
            }
    return st;
}

static snap_status fake_timer_stop(mla_backend *be, double *ns, snap_err *err) {
    snap_status st = real->timer_stop(be, ns, err);
    plot.times++;
    if (plot.clock_from && plot.times >= plot.clock_from)
        *ns = -*ns;
    if (plot.reported_ns > 0)
        *ns = plot.reported_ns;
    return st;
}

static snap_status fake_probe_once(mla_backend *be, mla_probe_rates *out, snap_err *err) {
    (void)be;
    (void)err;
    *out = (mla_probe_rates){.read = 1e9, .bf16 = 2e9, .fp8 = 3e9};
    return SNAP_OK;
}

static mla_backend *open_fake(void) {
    mla_backend *be = NULL;
    mla_backend_options opt = {.isa = "auto", .threads = 2};
    memset(&plot, 0, sizeof plot);
    CU_ASSERT_FATAL(mla_backend_open(&be, "cpu", &opt, NULL) == SNAP_OK);
    real = be->ops;
    fake = *real;
    fake.describe = fake_describe;
    fake.run = fake_run;
    fake.append_kv = fake_append;
    fake.probe_once = fake_probe_once;
    fake.timer_stop = fake_timer_stop;
    be->ops = &fake;
    return be;
}

static void close_fake(mla_backend *be) {
    be->ops = real;
    mla_backend_close(be);
}

static const bench_grid_text tiny = {.arms = "bf16,fp8",
                                     .scopes = "kernel,served",
                                     .heads = "2,5",
                                     .s_q = "1,2",
                                     .batch = "3",
                                     .context = "1,70",
                                     .d_c = 128,
                                     .d_r = 32};

static bench_grid parse(bench_grid_text text) {
    bench_grid g;
    CU_ASSERT_FATAL(bench_grid_parse(&g, &text, NULL) == SNAP_OK);
    return g;
}

static bench_grid one_shape(void) {
    bench_grid_text t = tiny;
    t.heads = "5";
    t.s_q = "1";
    t.context = "70";
    return parse(t);
}

static sweep_options options(mla_backend *be, const bench_grid *g) {
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    return (sweep_options){
        .backend = be,
        .grid = g,
        .distribution = NUMBERS_MLA,
        .seed = 7,
        .limits = {.noise = 1, .min_samples = 3, .max_samples = 8, .timeout_s = 1e9},
        .kernel_hash = hash};
}

static const mla_ceilings plenty = {
    .read = {.rate = 1e15}, .bf16 = {.rate = 1e18}, .fp8 = {.rate = 1e18}};

static js *sweep_rows(mla_backend *be, const bench_grid *g, snap_status expected) {
    js *rows = js_new_array();
    sweep_options opt = options(be, g);
    snap_err err = {0};
    CU_ASSERT(sweep_run(&opt, rows, &err) == expected);
    CU_ASSERT(sweep_derive(rows, NULL, &plenty, NULL) == SNAP_OK);
    return rows;
}

static bool is(const js *row, const char *key, const char *value) {
    const char *s = js_get_str(row, key);
    return s && strcmp(s, value) == 0;
}

/* ---- order and grid ---- */

static void test_order_is_abba(void) {
    const int two[] = {0, 1, 1, 0, 0, 1, 1, 0};
    for (int i = 0; i < 8; i++) {
        CU_ASSERT(interleave_arm(i, 2) == two[i]);
        CU_ASSERT(interleave_arm(i, 1) == 0);
    }
}

/* A machine that slows down linearly must not favour an arm. */
static void test_order_cancels_drift(void) {
    double sum[2] = {0, 0};
    for (int i = 0; i < 400; i++)
        sum[interleave_arm(i, 2)] += i;
    NEAR(sum[0], sum[1]);
}

static void test_grid_product(void) {
    bench_grid g = parse(tiny);
    CU_ASSERT(bench_grid_shapes(&g) == 8);
    CU_ASSERT(sweep_count(&g) == 32);
    bench_shape first = bench_grid_shape(&g, 0), second = bench_grid_shape(&g, 1),
                last = bench_grid_shape(&g, 7);
    CU_ASSERT(first.heads == 2 && first.s_q == 1 && first.batch == 3 && first.context == 1);
    CU_ASSERT(second.heads == 2 && second.context == 70);
    CU_ASSERT(last.heads == 5 && last.s_q == 2 && last.context == 70 && last.d_c == 128);
}

static void refuse(bench_grid_text text, const char *option) {
    bench_grid g;
    snap_err err = {0};
    CU_ASSERT(bench_grid_parse(&g, &text, &err) == SNAP_E_USAGE);
    CU_ASSERT(strstr(err.text, option) != NULL);
}

static void test_grid_refuses(void) {
    bench_grid_text t;
    t = tiny, t.arms = "bf16,fp4", refuse(t, "fp4");
    t = tiny, t.scopes = "", refuse(t, "--scope");
    t = tiny, t.heads = "0", refuse(t, "--heads");
    t = tiny, t.heads = "1,129", refuse(t, "129");
    t = tiny, t.heads = "16,16", refuse(t, "twice");
    t = tiny, t.s_q = "5", refuse(t, "--s-q");
    t = tiny, t.batch = "1,,2", refuse(t, "--batch");
    t = tiny, t.context = "1048577", refuse(t, "--context");
    t = tiny, t.context = "8k", refuse(t, "8k");
    t = tiny, t.d_c = 100, refuse(t, "--d-c");
    t = tiny, t.d_r = 0, refuse(t, "--d-r");
    buf many = {0};
    for (int i = 1; i <= GRID_AXIS + 1; i++)
        (void)buf_printf(&many, i > 1 ? ",%d" : "%d", i);
    t = tiny, t.batch = buf_str(&many), refuse(t, "more than");
    buf_release(&many);
}

/* ---- the numbers ---- */

static void test_numbers_are_what_they_say(void) {
    enum { kD = 512, kR = 64, kRows = 20000 };
    numbers n;
    uint16_t row[kD + kR], again[kD + kR];
    double sum = 0, sum2 = 0, largest = 0;
    CU_ASSERT_FATAL(numbers_create(&n, NUMBERS_MLA, kD, kR, 5, NULL) == SNAP_OK);
    for (uint64_t i = 0; i < kRows; i++) {
        numbers_token(&n, i, row);
        for (int d = 0; d < kD; d++) {
            double x = (double)bf16_to_f32(row[d]);
            sum += x;
            sum2 += x * x;
        }
        for (int d = kD; d < kD + kR; d++)
            largest = fmax(largest, fabs((double)bf16_to_f32(row[d])));
    }
    double count = (double)kRows * kD;
    /* wide bounds, because the rows of the pool repeat and are not independent */
    CU_ASSERT_DOUBLE_EQUAL(sum / count, 0, 5e-3);
    CU_ASSERT_DOUBLE_EQUAL(sum2 / count, 1, 1e-2);
    CU_ASSERT(largest > 1000 && largest < 1300);
    numbers_token(&n, 17, row);
    numbers_token(&n, 17, again);
    CU_ASSERT(memcmp(row, again, sizeof row) == 0);
    numbers_token(&n, 18, again);
    CU_ASSERT(memcmp(row, again, sizeof row) != 0);
    numbers_release(&n);
}

static double logit(const uint16_t *q, const uint16_t *k, int d) {
    double sum = 0;
    for (int i = 0; i < d; i++)
        sum += (double)bf16_to_f32(q[i]) * (double)bf16_to_f32(k[i]);
    return sum / sqrt(192.0);
}

/* About one token in a thousand has a much larger logit than the others. */
static void test_sinks_are_liked(void) {
    enum { kD = 512, kR = 64, kRows = 20000 };
    numbers n;
    uint16_t token[kD + kR], query[kD + kR];
    int liked = 0;
    CU_ASSERT_FATAL(numbers_create(&n, NUMBERS_SINK, kD, kR, 5, NULL) == SNAP_OK);
    numbers_query(&n, 3, query);
    for (uint64_t i = 0; i < kRows; i++) {
        numbers_token(&n, i, token);
        liked += logit(query + kD, token + kD, kR) > 6;
    }
    CU_ASSERT(liked > 0 && liked < 80);
    numbers_release(&n);
}

/* The two large products of a query with a token cancel exactly. */
static void test_large_products_cancel(void) {
    enum { kD = 512, kR = 64 };
    numbers n;
    uint16_t token[kD + kR], query[kD + kR];
    CU_ASSERT_FATAL(numbers_create(&n, NUMBERS_ADVERSARIAL, kD, kR, 5, NULL) == SNAP_OK);
    for (uint64_t i = 0; i < 100; i++) {
        numbers_token(&n, i, token);
        numbers_query(&n, i + 7, query);
        CU_ASSERT(bf16_to_f32(token[kD]) == -bf16_to_f32(token[kD + kR / 2]));
        CU_ASSERT(bf16_to_f32(token[kD]) > 30);
        CU_ASSERT(query[kD] == query[kD + kR / 2]);
    }
    numbers_release(&n);
}

/* ---- a sweep ---- */

static void check_row(const js *row) {
    const js *perf = js_get_object(row, "performance"), *judged = js_get_object(row, "correctness");
    CU_ASSERT(is(row, "status", "passed"));
    CU_ASSERT_FATAL(perf != NULL && judged != NULL);
    CU_ASSERT(js_get_num(judged, "error", 1) <= js_get_num(judged, "tolerance", 0));
    CU_ASSERT(js_get_int(judged, "rows_checked", 0) > 0);
    CU_ASSERT((int64_t)js_len(js_get_array(perf, "samples_ns")) == js_get_int(perf, "count", -1));
    CU_ASSERT(js_get_num(perf, "min_ns", 0) > 0);
    CU_ASSERT(js_get_num(perf, "min_ns", 0) <= js_get_num(perf, "median_ns", 0));
    CU_ASSERT(js_get_num(perf, "median_ns", 0) <= js_get_num(perf, "max_ns", 0));
    CU_ASSERT(is(row, "cold", "rotate"));
}

/* All cells of a small grid pass their checks. Each row must satisfy the schema. */
static void test_sweep_end_to_end(void) {
    mla_backend *be = open_fake();
    bench_grid g = parse(tiny);
    js *rows = sweep_rows(be, &g, SNAP_OK);
    results *r = NULL;
    CU_ASSERT_FATAL(results_new(&r, "bench", NULL, 1, NULL) == SNAP_OK);
    CU_ASSERT((int)js_len(rows) == sweep_count(&g));
    CU_ASSERT(sweep_verdict(rows, NULL) == SNAP_OK);
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        snap_err err = {0};
        check_row(row);
        mla_ceilings seen = {0};
        row_raise(row, &seen);
        CU_ASSERT(seen.read.rate == 1e9 && seen.bf16.rate == 2e9 && seen.fp8.rate == 3e9);
        CU_ASSERT(is(row, "arm", i % 2 ? "fp8" : "bf16"));
        CU_ASSERT(is(row, "scope", i / 2 % 2 ? "served" : "kernel"));
        CU_ASSERT(results_add(r, "bench", js_copy(row), &err) == SNAP_OK);
        CU_ASSERT_STRING_EQUAL(err.text, "");
        if (i % 2) { /* alternating arms have equally many samples */
            NEAR(row_number(row, "count"), row_number(js_at(rows, i - 1), "count"));
            CU_ASSERT(speedup_of(rows, i) > 0);
        } else {
            CU_ASSERT(isnan(speedup_of(rows, i)));
        }
    }
    results_free(r);
    js_free(rows);
    close_fake(be);
}

/* ---- faults ---- */

static void expect_failed(const js *rows, const char *arm, const char *scope, bool failed) {
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        if (!is(row, "arm", arm) || !is(row, "scope", scope))
            continue;
        CU_ASSERT(is(row, "status", failed ? "failed" : "passed"));
        CU_ASSERT((js_get(row, "performance") == NULL) == failed);
        CU_ASSERT((js_get_str(row, "reason") != NULL) == failed);
    }
}

static void test_wrong_output_has_no_speed(void) {
    mla_backend *be = open_fake();
    bench_grid g = one_shape();
    plot.corrupt_from = 1;
    js *rows = sweep_rows(be, &g, SNAP_OK);
    expect_failed(rows, "bf16", "kernel", true);
    expect_failed(rows, "fp8", "served", true);
    CU_ASSERT(plot.runs == 4); /* each of the four cells is checked once and never timed */
    snap_err err = {0};
    CU_ASSERT(err_exit_code(sweep_verdict(rows, &err)) == 7);
    CU_ASSERT(strstr(err.text, "4 of 4") != NULL);
    results *r = NULL;
    CU_ASSERT_FATAL(results_new(&r, "bench", NULL, 1, NULL) == SNAP_OK);
    CU_ASSERT(results_add_all(r, "bench", js_copy(rows), NULL) == SNAP_OK);
    results_free(r);
    js_free(rows);
    close_fake(be);
}

/* ---- a backend that computes something else than it was asked for ---- */

/* @sustained_s: seconds of each loop; 0 = single steps */
static js *rows_with(wrong_fault fault, const bench_grid *g, double sustained_s) {
    mla_backend *be = open_fake();
    mla_backend_ops table = wrong_ops(&fake, fault);
    be->ops = &table;
    js *rows = js_new_array();
    sweep_options opt = options(be, g);
    opt.sustained_s = sustained_s;
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK);
    wrong_release();
    close_fake(be);
    return rows;
}

static void expect_reason(const js *rows, const char *arm, const char *part) {
    for (size_t i = 0; i < js_len(rows); i++) {
        const char *why = js_get_str(js_at(rows, i), "reason");
        if (is(js_at(rows, i), "arm", arm)) {
            CU_ASSERT(is(js_at(rows, i), "status", "failed"));
            CU_ASSERT(why && strstr(why, part));
        }
    }
}

/* The backend returns the first result of each plan again and again. The check before timing, which
 * is of this result, passes. */
static void test_remembered_results(void) {
    bench_grid g = one_shape();
    js *rows = rows_with(WRONG_REMEMBERS, &g, 0);
    expect_reason(rows, "bf16", "timed step");
    expect_reason(rows, "fp8", "timed step");
    js_free(rows);
}

/* All steps of a loop have the same queries, so the output of the last one is right. The planted
 * tokens are the input that the backend has not had before. */
static void test_remembered_loops(void) {
    bench_grid g = one_shape();
    js *rows = rows_with(WRONG_REMEMBERS, &g, 0.02);
    expect_reason(rows, "bf16", "planted");
    expect_reason(rows, "fp8", "planted");
    for (size_t i = 0; i < js_len(rows); i++)
        CU_ASSERT(is(js_at(rows, i), "mode", "sustained"));
    CU_ASSERT(js_len(rows) == 4);
    js_free(rows);
}

/* Checks the state of the cache in loops over one sequence of @context tokens, whose arms are
 * @arms. The fake backend's cache has 256 KiB. */
static void expect_loops(const char *arms, const char *context, const char *cold) {
    bench_grid_text t = tiny;
    t.arms = arms;
    t.scopes = "kernel";
    t.heads = t.s_q = t.batch = "1";
    t.context = context;
    bench_grid g = parse(t);
    mla_backend *be = open_fake();
    js *rows = js_new_array();
    sweep_options opt = options(be, &g);
    opt.sustained_s = 1e-9;
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK);
    CU_ASSERT((int)js_len(rows) == sweep_count(&g));
    for (size_t i = 0; i < js_len(rows); i++)
        CU_ASSERT(is(js_at(rows, i), "status", "passed") && is(js_at(rows, i), "cold", cold));
    js_free(rows);
    close_fake(be);
}

/* 4096 tokens have 1.25 MiB in BF16 and less than 1 MiB in FP8. So a loop of the BF16 arm alone
 * starts cold, and beside an FP8 arm neither arm is called cold. */
static void test_loops_are_cold_together(void) {
    expect_loops("bf16", "4096", "rotate");
    expect_loops("fp8", "4096", "none");
    expect_loops("bf16,fp8", "4096", "none");
    expect_loops("bf16,fp8", "8192", "rotate");
    expect_loops("bf16,fp8", "1024", "none");
}

/* ---- a time limit ---- */

/* Runs a sweep over three contexts in the scope kernel, with steps that are reported to take 1000
 * seconds each. Checks the statuses of the shapes. */
static void expect_within(double limit_s, const char *const status[3], const char *reason) {
    bench_grid_text t = tiny;
    t.scopes = "kernel";
    t.heads = "5";
    t.s_q = "1";
    t.context = "70,140,1";
    bench_grid g = parse(t);
    mla_backend *be = open_fake();
    plot.reported_ns = 1e12;
    js *rows = js_new_array();
    sweep_options opt = options(be, &g);
    opt.limit_s = limit_s;
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK && js_len(rows) == 6);
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        bool skipped = strcmp(status[i / 2], "skipped") == 0;
        const char *why = js_get_str(row, "reason");
        CU_ASSERT(is(row, "status", status[i / 2]));
        CU_ASSERT((js_get(row, "performance") == NULL) == skipped);
        CU_ASSERT(skipped ? why && strstr(why, reason) : !why);
    }
    CU_ASSERT(sweep_verdict(rows, NULL) == SNAP_OK);
    js_free(rows);
    close_fake(be);
}

/* The second shape needs 7 steps of both arms, of 2000 s each; the third 14 of 1000 / 70 s. */
static void test_time_limit(void) {
    static const char *const all[] = {"passed", "passed", "passed"},
                             *const some[] = {"passed", "skipped", "passed"},
                             *const none[] = {"skipped", "skipped", "skipped"};
    expect_within(0, all, "");
    expect_within(40000, all, "");
    expect_within(20000, some, "it would take 2.8e+04 s or more");
    expect_within(1e-9, none, "0 s are left of the time limit of 1e-09 s");
}

/* One shape in two scopes, with steps of 1000 seconds. @limit_s: of the time */
static js *rows_within(double limit_s) {
    mla_backend *be = open_fake();
    const bench_grid g = one_shape();
    plot.reported_ns = 1e12;
    js *rows = js_new_array();
    sweep_options opt = options(be, &g);
    opt.limit_s = limit_s;
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(js_len(rows), 4);
    close_fake(be);
    return rows;
}

/* A scope that is skipped after another one has nothing of it in its rows: they are as if the time
 * had been over from the beginning. */
static void test_skipped_scope_is_empty(void) {
    static const char *const keys[] = {"status", "correctness", "performance", "flags"};
    js *all = rows_within(0), *half = rows_within(10000), *none = rows_within(1e-9);
    for (size_t i = 0; i < 4; i++) {
        const js *row = js_at(half, i), *skipped = js_at(none, i);
        CU_ASSERT(is(js_at(all, i), "status", "passed") && is(skipped, "status", "skipped"));
        CU_ASSERT_PTR_NOT_NULL(js_get(js_at(all, i), "correctness"));
        CU_ASSERT(is(row, "status", is(row, "scope", "kernel") ? "passed" : "skipped"));
        for (size_t k = 0; k < sizeof keys / sizeof *keys && is(row, "status", "skipped"); k++) {
            const js *value = js_get(row, keys[k]), *wanted = js_get(skipped, keys[k]);
            CU_ASSERT(value && wanted ? js_equal(value, wanted) : !value && !wanted);
        }
    }
    js_free(all);
    js_free(half);
    js_free(none);
}

/* One page of 4096 changes the row by less than the FP8 bound. A planted page shows. */
static void test_missing_page(void) {
    bench_grid_text t = tiny;
    t.arms = "fp8";
    t.heads = t.s_q = t.batch = "1";
    t.context = "262144";
    bench_grid g = parse(t);
    js *rows = rows_with(WRONG_DROP_40000, &g, 0);
    CU_ASSERT(js_len(rows) == 2);
    expect_reason(rows, "fp8", "planted");
    js_free(rows);
}

static void test_wrong_page(void) {
    bench_grid_text t = tiny;
    t.heads = t.s_q = "1";
    t.batch = "70";
    t.context = "200";
    bench_grid g = parse(t);
    js *rows = rows_with(WRONG_PAGE_64, &g, 0);
    expect_failed(rows, "bf16", "kernel", true);
    expect_failed(rows, "fp8", "kernel", true);
    js_free(rows);
}

/* The output is right when it is checked and wrong when it is timed. This must be found
 * afterwards. */
static void test_wrong_after_judging(void) {
    mla_backend *be = open_fake();
    bench_grid g = one_shape();
    plot.corrupt_from = 5; /* runs 1 to 4 check both arms and warm them up */
    sweep_options opt = options(be, &g);
    opt.limits.min_samples = opt.limits.max_samples = 200; /* enough to use set 0 again */
    js *rows = js_new_array();
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK);
    expect_failed(rows, "bf16", "kernel", true);
    expect_failed(rows, "fp8", "kernel", true);
    CU_ASSERT(sweep_verdict(rows, NULL) == SNAP_E_WRONG);
    js_free(rows);
    close_fake(be);
}

/* A wrong append must be found in the served scope, although attention itself is right. */
static void test_wrong_append(void) {
    mla_backend *be = open_fake();
    bench_grid g = one_shape();
    g.scope[BENCH_KERNEL] = false;
    plot.spoil_append = true;
    js *rows = sweep_rows(be, &g, SNAP_OK);
    expect_failed(rows, "bf16", "served", true);
    expect_failed(rows, "fp8", "served", false);
    js_free(rows);
    close_fake(be);
}

static void test_broken_device(void) {
    mla_backend *be = open_fake();
    bench_grid g = one_shape();
    plot.fail_from = 1;
    js *rows = sweep_rows(be, &g, SNAP_OK);
    snap_err err = {0};
    CU_ASSERT(js_len(rows) == 4);
    CU_ASSERT(is(js_at(rows, 0), "status", "error"));
    CU_ASSERT(js_get(js_at(rows, 0), "performance") == NULL);
    CU_ASSERT(err_exit_code(sweep_verdict(rows, &err)) == 3);
    CU_ASSERT(strstr(err.text, "fell off the bus") != NULL);
    js_free(rows);
    close_fake(be);
}

static void test_too_large_is_skipped(void) {
    mla_backend *be = open_fake();
    bench_grid g = one_shape();
    plot.memory = 100000;
    js *rows = sweep_rows(be, &g, SNAP_OK);
    CU_ASSERT(js_len(rows) == 4);
    CU_ASSERT(is(js_at(rows, 3), "status", "skipped"));
    CU_ASSERT(strstr(js_get_str(js_at(rows, 3), "reason"), "GiB") != NULL);
    CU_ASSERT(sweep_verdict(rows, NULL) == SNAP_OK);
    js_free(rows);
    close_fake(be);
}

/* ---- resuming ---- */

typedef struct {
    js *kept; /* object: key -> row */
    volatile sig_atomic_t cancel;
    int cancel_after; /* number of rows after which the run is cancelled; 0 = never */
} diary;

static const js *diary_find(void *ctx, const char *key) {
    return js_get(((diary *)ctx)->kept, key);
}

static snap_status diary_keep(void *ctx, const char *key, const js *row, snap_err *err) {
    diary *d = ctx;
    (void)err;
    CU_ASSERT(js_get(d->kept, key) == NULL);
    CU_ASSERT(js_set_new(d->kept, key, js_copy(row)));
    d->cancel = d->cancel_after && --d->cancel_after == 0;
    return SNAP_OK;
}

/* @arms: named arms; NULL: those of the grid */
static snap_status sweep_arms_with(diary *d, mla_backend *be, const bench_grid *g,
                                   const sweep_arm *arms, int n_arms, js *rows) {
    sweep_options opt = options(be, g);
    opt.arms = arms;
    opt.n_arms = n_arms;
    opt.ctx = d;
    opt.find = diary_find;
    opt.keep = diary_keep;
    opt.cancel = &d->cancel;
    return sweep_run(&opt, rows, NULL);
}

static snap_status sweep_with(diary *d, mla_backend *be, const bench_grid *g, js *rows) {
    return sweep_arms_with(d, be, g, NULL, 0, rows);
}

/* If the backend has no ablation, its rows say so, and the two main arms still run. */
static void test_ablation_is_the_gpus(void) {
    bench_grid_text t = tiny;
    t.heads = "5", t.s_q = "1", t.context = "70", t.ablation = true;
    bench_grid g = parse(t);
    mla_backend *be = open_fake();
    js *rows = sweep_rows(be, &g, SNAP_OK);
    CU_ASSERT(sweep_count(&g) == 16); /* two arms have no kernel scope */
    CU_ASSERT_FATAL(js_len(rows) == 16);
    for (size_t i = 0; i < 16; i++) {
        const js *row = js_at(rows, i);
        bench_kind kind = BENCH_ARMS;
        CU_ASSERT(bench_kind_parse(js_get_str(row, "arm"), &kind));
        CU_ASSERT(is(row, "status", kind < BENCH_COMPARED ? "passed" : "skipped"));
        CU_ASSERT(kind < BENCH_COMPARED || is(row, "reason", "the backend has no ablation"));
        CU_ASSERT(bench_kind_has(kind, is(row, "scope", "kernel") ? BENCH_KERNEL : BENCH_SERVED));
        CU_ASSERT(isnan(speedup_of(rows, i)) == (kind != BENCH_FP8));
    }
    mla_plan *plan = NULL;
    mla_capacity cap = {.precision = MLA_FP8,
                        .heads = 1,
                        .d_c = 128,
                        .d_r = 32,
                        .batch = 1,
                        .s_q = 1,
                        .max_tokens = 64};
    CU_ASSERT(lab_plan_create(&plan, be, &cap, LAB_SHALLOW, NULL) == SNAP_E_UNSUPPORTED);
    CU_ASSERT(lab_plan_create(&plan, be, &cap, LAB_ABLATIONS, NULL) == SNAP_E_SHAPE);
    js_free(rows);
    close_fake(be);
}

static void test_resume(void) {
    mla_backend *be = open_fake();
    bench_grid g = parse(tiny);
    diary d = {.kept = js_new_object(), .cancel_after = 6};
    js *first = js_new_array(), *second = js_new_array(), *third = js_new_array();
    CU_ASSERT(sweep_with(&d, be, &g, first) == SNAP_E_CANCELLED);
    CU_ASSERT(js_len(first) == 6);
    d.cancel = 0;
    CU_ASSERT(sweep_with(&d, be, &g, second) == SNAP_OK);
    CU_ASSERT((int)js_len(second) == sweep_count(&g));
    for (size_t i = 0; i < 6; i++)
        CU_ASSERT(js_equal(js_at(first, i), js_at(second, i)));
    plot.runs = 0;
    CU_ASSERT(sweep_with(&d, be, &g, third) == SNAP_OK);
    CU_ASSERT(plot.runs == 0);
    CU_ASSERT(js_equal(second, third));
    js_free(first);
    js_free(second);
    js_free(third);
    js_free(d.kept);
    close_fake(be);
}

/* Runs a sweep twice. The second time, all rows are taken over: no arm runs, and the rows are equal
 * to those of the first time. */
static void expect_taken_over(mla_backend *be, const bench_grid *g, const sweep_arm *arms,
                              int n_arms) {
    diary d = {.kept = js_new_object()};
    js *first = js_new_array(), *second = js_new_array();
    CU_ASSERT(sweep_arms_with(&d, be, g, arms, n_arms, first) == SNAP_OK);
    CU_ASSERT(js_len(first) > 0 && plot.runs > 0);
    plot.runs = 0;
    CU_ASSERT(sweep_arms_with(&d, be, g, arms, n_arms, second) == SNAP_OK);
    CU_ASSERT(plot.runs == 0);
    CU_ASSERT(js_equal(first, second));
    js_free(first);
    js_free(second);
    js_free(d.kept);
}

/* The backend has no ablation, so these arms are skipped. */
static void test_resume_with_skipped_arms(void) {
    bench_grid_text t = tiny;
    t.heads = "5", t.s_q = "1", t.context = "70", t.ablation = true;
    mla_backend *be = open_fake();
    bench_grid g = parse(t);
    expect_taken_over(be, &g, NULL, 0);
    close_fake(be);
}

static void test_resume_without_an_arm(void) {
    mla_backend *be = open_fake();
    bench_grid g = one_shape();
    const sweep_arm arms[] = {
        {.name = "a", .options = "cpu", .kind = BENCH_BF16, .backend = be},
        {.name = "b", .options = "gone", .why = {.code = SNAP_E_ENV, .text = "it is gone"}},
    };
    expect_taken_over(be, &g, arms, 2);
    close_fake(be);
}

/* ---- devices that misbehave ---- */

/* The clock of the timer runs backwards from the @from-th measured time on. The rows that are timed
 * with it have an error, and the sweep goes on. @sustained_s as in rows_with(). */
static void expect_backwards(int from, double sustained_s) {
    mla_backend *be = open_fake();
    bench_grid g = parse(tiny);
    js *rows = js_new_array();
    sweep_options opt = options(be, &g);
    opt.sustained_s = sustained_s;
    plot.clock_from = from;
    CU_ASSERT(sweep_run(&opt, rows, NULL) == SNAP_OK);
    CU_ASSERT((int)js_len(rows) == sweep_count(&g));
    size_t errors = 0;
    for (size_t i = 0; i < js_len(rows); i++)
        if (is(js_at(rows, i), "status", "error")) {
            errors++;
            CU_ASSERT_PTR_NOT_NULL(strstr(js_get_str(js_at(rows, i), "reason"), "ran backwards"));
        }
    CU_ASSERT(errors > 0 && errors < js_len(rows));
    js_free(rows);
    close_fake(be);
}

static void test_backwards_clock(void) {
    expect_backwards(60, 0);
    expect_backwards(60, 1e-9);
}

/* NVML's reason for a reduced clock counts also if the clock is back when the row ends. */
static bool is_flagged(uint64_t before, uint64_t during, uint64_t after, const char *flag) {
    stop_limits limits = {.noise = 1, .min_samples = 1, .max_samples = 3, .timeout_s = 1e9};
    const bench_shape shape = {
        .heads = 16, .s_q = 1, .batch = 1, .context = 64, .d_c = 512, .d_r = 64};
    stop_rule timing;
    verified v = {.error = {.rows = 1}, .bound = {.out_rel = 1, .lse_err = 1}};
    row_context ctx = {.backend = {.name = "cuda"}, .distribution = "normal"};
    row_measured m = {.shape = shape,
                      .cold = "flush",
                      .verdict = &v,
                      .timing = &timing,
                      .gpu_before.reasons = before,
                      .gpu_during = during,
                      .gpu_after.reasons = after};
    stop_init(&timing, &limits);
    CU_ASSERT(stop_add(&timing, 1e6, 0, NULL) == SNAP_OK);
    js *row = row_json(&ctx, &m);
    const js *flags = js_get_array(row, "flags");
    bool found = false;
    for (size_t i = 0; i < js_len(flags); i++)
        found |= strcmp(js_str(js_at(flags, i)), flag) == 0;
    stop_release(&timing);
    js_free(row);
    return found;
}

static void test_throttling_in_the_middle(void) {
    enum { kPowerCap = 0x4, kThermal = 0x40 }; /* NVML: SW power cap, HW thermal slowdown */
    CU_ASSERT_FALSE(is_flagged(0, 0, 0, "throttled"));
    CU_ASSERT(is_flagged(kThermal, 0, 0, "throttled"));
    CU_ASSERT(is_flagged(0, kThermal, 0, "throttled"));
    CU_ASSERT(is_flagged(0, 0, kThermal, "throttled"));
    CU_ASSERT(is_flagged(0, kPowerCap, 0, "power_capped"));
    CU_ASSERT_FALSE(is_flagged(0, kPowerCap, 0, "throttled"));
}

/* ---- values derived from the ceilings ---- */

static js *made_row_on(const mla_backend_info *backend, mla_precision p, const bench_shape *shape,
                       double ns, const paired_probes *looks, double others_s) {
    stop_limits limits = {.noise = 1, .min_samples = 1, .max_samples = 3, .timeout_s = 1e9};
    stop_rule timing;
    verified v = {.error = {.rows = 1}, .bound = {.out_rel = 1, .lse_err = 1}};
    row_context ctx = {.backend = *backend, .distribution = "normal"};
    row_measured m = {.shape = *shape,
                      .kind = p == MLA_FP8 ? BENCH_FP8 : BENCH_BF16,
                      .cold = "rotate",
                      .verdict = &v,
                      .timing = &timing,
                      .probes = looks,
                      .before = {.mhz = (double)NAN},
                      .after = {.mhz = (double)NAN, .busy_s = others_s, .wall_s = 1}};
    stop_init(&timing, &limits);
    for (int i = 0; i < 3; i++)
        CU_ASSERT(stop_add(&timing, ns, 0, NULL) == SNAP_OK);
    js *row = row_json(&ctx, &m);
    stop_release(&timing);
    CU_ASSERT_FATAL(row != NULL);
    return row;
}

static js *made_row_beside(mla_precision p, const bench_shape *shape, double ns,
                           const paired_probes *looks, double others_s) {
    const mla_backend_info cpu = {.name = "cpu", .kernel = "none", .host_memory = true};
    return made_row_on(&cpu, p, shape, ns, looks, others_s);
}

static js *made_row(mla_precision p, const bench_shape *shape, double ns) {
    return made_row_beside(p, shape, ns, NULL, (double)NAN);
}

/* H 128, batch 1, 65536 tokens of 512 + 64: FLOP = 2176 * 128 * 65536. Bytes: 1152 (BF16) or 644
 * (FP8) per token, and 128 rows of query (1152 or 644) and output (1028). */
static const bench_shape known = {
    .heads = 128, .s_q = 1, .batch = 1, .context = 65536, .d_c = 512, .d_r = 64};
static const double known_flop = 2176.0 * 128 * 65536;

static void test_floor_by_arithmetic(void) {
    mla_ceilings c = {.read = {.rate = 1e15}, .bf16 = {.rate = 4e11}, .fp8 = {.rate = 8e11}};
    js *bf16 = made_row(MLA_BF16, &known, 1e8), *fp8 = made_row(MLA_FP8, &known, 1e8);
    CU_ASSERT(row_derive(bf16, &c, NULL) == SNAP_OK);
    CU_ASSERT(row_derive(fp8, &c, NULL) == SNAP_OK);
    NEAR(row_number(bf16, "floor_ns"), known_flop / 4e11 * 1e9);
    NEAR(row_number(fp8, "floor_ns"), known_flop / (4e11 * 17 / 9) * 1e9);
    NEAR(row_number(bf16, "tflops"), known_flop / 0.1 / 1e12);
    NEAR(row_number(bf16, "roofline_pct"), 100 * known_flop / 4e11 / 0.1);
    NEAR(row_number(bf16, "tok_s"), 10);
    CU_ASSERT(is(js_get_object(bf16, "performance"), "bound", "flops"));
    js_free(bf16);
    js_free(fp8);
}

static void test_floor_by_bytes(void) {
    mla_ceilings c = {.read = {.rate = 5e10}, .bf16 = {.rate = 1e18}, .fp8 = {.rate = 1e18}};
    js *bf16 = made_row(MLA_BF16, &known, 1e8), *fp8 = made_row(MLA_FP8, &known, 1e8);
    double bf16_bytes = 65536.0 * 1152 + 128 * (1152 + 1028);
    double fp8_bytes = 65536.0 * 644 + 128 * (644 + 1028);
    CU_ASSERT(row_derive(bf16, &c, NULL) == SNAP_OK);
    CU_ASSERT(row_derive(fp8, &c, NULL) == SNAP_OK);
    NEAR(row_number(bf16, "floor_ns"), bf16_bytes / 5e10 * 1e9);
    NEAR(row_number(fp8, "floor_ns"), fp8_bytes / 5e10 * 1e9);
    NEAR(row_number(fp8, "gb_s"), fp8_bytes / 0.1 / 1e9);
    CU_ASSERT(is(js_get_object(fp8, "performance"), "bound", "bytes"));
    js_free(bf16);
    js_free(fp8);
}

/* Between the samples, the median read rate was half of the read ceiling. So relative to that rate
 * the row is twice as good. A row with load by other processes has no such figure. */
static void test_paired(void) {
    mla_ceilings c = {.read = {.rate = 5e10}, .bf16 = {.rate = 1e18}, .fp8 = {.rate = 1e18}};
    paired_probes looks = {.n = 3, .read = {2e10, 2.5e10, 4e10}, .bf16 = {1e18, 1e18, 1e18}};
    memcpy(looks.fp8, looks.bf16, sizeof looks.fp8);
    js *row = made_row_beside(MLA_BF16, &known, 1e8, &looks, 0);
    js *shared = made_row_beside(MLA_BF16, &known, 1e8, &looks, 0.5), *none;
    none = made_row(MLA_BF16, &known, 1e8);
    CU_ASSERT(row_derive(row, &c, NULL) == SNAP_OK && row_derive(shared, &c, NULL) == SNAP_OK &&
              row_derive(none, &c, NULL) == SNAP_OK);
    NEAR(row_paired_pct(row), 2 * row_number(row, "roofline_pct"));
    mla_ceilings low = {.read = {.rate = 1e10}, .bf16 = {.rate = 2e18}, .fp8 = {.rate = 1e17}};
    row_raise(none, &low);
    NEAR(low.read.rate, 1e10);
    row_raise(row, &low); /* rises to the best probe; a better ceiling stays */
    NEAR(low.read.rate, 4e10);
    NEAR(low.bf16.rate, 2e18);
    NEAR(low.fp8.rate, 1e18);
    CU_ASSERT(isnan(row_paired_pct(shared)) && isnan(row_paired_pct(none)));
    js_free(row);
    js_free(shared);
    js_free(none);
}

static void test_flags(void) {
    mla_ceilings low = {.read = {.rate = 1e10}, .bf16 = {.rate = 1e12}, .fp8 = {.rate = 1e12}};
    mla_ceilings high = {.read = {.rate = 1e12}, .bf16 = {.rate = 1e18}, .fp8 = {.rate = 1e18}};
    js *rows = js_new_array();
    /* floors with `high`: 76 and 42 us, ratio 1.79; times: 5 and 1 ms, ratio 5 */
    js_push_new(rows, made_row(MLA_BF16, &known, 5e6));
    js_push_new(rows, made_row(MLA_FP8, &known, 1e6));
    CU_ASSERT(sweep_derive(rows, NULL, &low, NULL) == SNAP_OK);
    CU_ASSERT(row_has_flag(js_at(rows, 0), "below_floor"));
    CU_ASSERT(row_has_flag(js_at(rows, 1), "below_floor"));
    CU_ASSERT(err_exit_code(sweep_verdict(rows, NULL)) == 7);
    CU_ASSERT(sweep_derive(rows, NULL, &high, NULL) == SNAP_OK);
    CU_ASSERT(!sweep_count_flag(rows, NULL, "below_floor"));
    CU_ASSERT(sweep_verdict(rows, NULL) == SNAP_OK);
    CU_ASSERT(row_has_flag(js_at(rows, 1), "weak_baseline"));
    CU_ASSERT(!row_has_flag(js_at(rows, 0), "weak_baseline"));
    NEAR(speedup_of(rows, 1), 5);
    js_free(rows);
    rows = js_new_array(); /* 1.5x is below the ratio of the floors */
    js_push_new(rows, made_row(MLA_BF16, &known, 1.5e6));
    js_push_new(rows, made_row(MLA_FP8, &known, 1e6));
    CU_ASSERT(sweep_derive(rows, NULL, &high, NULL) == SNAP_OK);
    CU_ASSERT(!sweep_count_flag(rows, NULL, "weak_baseline"));
    js_free(rows);
}

/* Other programs disturb a row if the processors compute it, also through OpenCL. */
static void test_shared_processors(void) {
    static const struct {
        mla_backend_info backend;
        bool flagged;
    } cases[] = {
        {{.name = "cpu", .kernel = "none", .host_memory = true}, true},
        {{.name = "opencl", .kernel = "none", .processors = true}, true},
        {{.name = "opencl", .kernel = "none"}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        js *row = made_row_on(&cases[i].backend, MLA_BF16, &known, 1e8, NULL, 0.5);
        CU_ASSERT_EQUAL(row_has_flag(row, "shared"), cases[i].flagged);
        js_free(row);
    }
}

/* A journal is a file, so its contents may be malicious. */
static void test_rows_of_others(void) {
    static const char *const rows[] = {
        "{\"performance\": {}}",
        "{\"arm\": \"fp8\", \"performance\": {\"median_ns\": 5}}",
        "{\"arm\": \"fp8\", \"performance\": {\"median_ns\": -5}, \"shape\": {\"heads\": 1, "
        "\"s_q\": 1, \"batch\": 1, \"context\": 1, \"d_c\": 512, \"d_r\": 64}}",
        "{\"arm\": \"fp8\", \"performance\": {\"median_ns\": 5}, \"shape\": {\"heads\": 1, "
        "\"s_q\": 1, \"batch\": 2147483647, \"context\": 1, \"d_c\": 512, \"d_r\": 64}}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        js *row = js_parse(rows[i], strlen(rows[i]), "test", NULL);
        CU_ASSERT_FATAL(row != NULL);
        CU_ASSERT(row_derive(row, &plenty, NULL) == SNAP_E_INPUT);
        js_free(row);
    }
}

/* ---- fidelity ---- */

typedef struct {
    js *rows;
} collected;

static snap_status collect(void *ctx, const fidelity_record *row, snap_err *err) {
    (void)err;
    js *rows = ((collected *)ctx)->rows;
    return js_push_new(rows, record_write(&fidelity_type, row)) ? SNAP_OK : SNAP_E_NOMEM;
}

static double figure(const js *rows, const char *config, const char *source, const char *key) {
    for (size_t i = 0; i < js_len(rows); i++)
        if (is(js_at(rows, i), "config", config) && is(js_at(rows, i), "source", source))
            return js_get_num(js_at(rows, i), key, (double)NAN);
    return (double)NAN;
}

/* With RoPE outliers, snapmla has a larger error than bf16 and noPV, and less than half of the
 * error of A. The backend's error is close to that of its format's oracle. */
static void test_fidelity(void) {
    mla_backend *be = open_fake();
    fidelity_options opt = {
        .heads = 8, .d_c = 512, .d_r = 64, .seed = 1, .backend = be, .threads = 2};
    collected c = {.rows = js_new_array()};
    CU_ASSERT_FATAL(fidelity_parse(&opt, "bf16,snapmla,A,B,C,D,E,F,noPV", "mla", "500", NULL) ==
                    SNAP_OK);
    CU_ASSERT(fidelity_run(&opt, collect, &c, NULL) == SNAP_OK);
    CU_ASSERT((int)js_len(c.rows) == fidelity_count(&opt) && js_len(c.rows) == 11);
    double bf16 = figure(c.rows, "bf16", "reference", "rel_l2");
    double snapmla = figure(c.rows, "snapmla", "reference", "rel_l2");
    CU_ASSERT(bf16 > 0 && bf16 < 5e-3);
    CU_ASSERT(snapmla > bf16);
    CU_ASSERT(figure(c.rows, "A", "reference", "rel_l2") > 2 * snapmla);
    CU_ASSERT(figure(c.rows, "noPV", "reference", "rel_l2") < snapmla);
    CU_ASSERT_DOUBLE_EQUAL(figure(c.rows, "bf16", "cpu", "rel_l2"), bf16, 2.5e-3);
    CU_ASSERT_DOUBLE_EQUAL(figure(c.rows, "snapmla", "cpu", "rel_l2"), snapmla, 0.1 * snapmla);
    js_free(c.rows);
    fidelity_release(&opt);
    close_fake(be);
}

/* The fewer bits a format has, the larger its error. Tokens at the end that do not fill a group of
 * 32 stay exact: with 31 tokens, kivi2 is bf16. */
static void test_fidelity_of_coded_formats(void) {
    fidelity_options opt = {.heads = 8, .d_c = 512, .d_r = 64, .seed = 1, .threads = 1};
    collected many = {.rows = js_new_array()}, few = {.rows = js_new_array()};
    CU_ASSERT_FATAL(fidelity_parse(&opt,
                                   "bf16,residual,turboquant4,turboquant3,turboquant2,kivi4,kivi2,"
                                   "kvquant4,kvquant3,kvquant2,int8",
                                   "normal", "320", NULL) == SNAP_OK);
    CU_ASSERT(fidelity_run(&opt, collect, &many, NULL) == SNAP_OK);
    CU_ASSERT((int)js_len(many.rows) == fidelity_count(&opt) && js_len(many.rows) == 11);
    double last = figure(many.rows, "bf16", "reference", "rel_l2");
    for (int i = 1; i < 5; i++) {
        double error = figure(many.rows, opt.format[i].name, "reference", "rel_l2");
        CU_ASSERT(error > last && error < 1); /* an output of zeros has the error 1 */
        last = error;
    }
    for (int i = 6; i < 10; i++)
        if (i != 7) /* i - 1 has more bits */
            CU_ASSERT(figure(many.rows, opt.format[i].name, "reference", "rel_l2") >
                      figure(many.rows, opt.format[i - 1].name, "reference", "rel_l2"));
    CU_ASSERT_EQUAL(figure(many.rows, "kivi4", "reference", "bytes_per_token"), 448);
    opt.context[0] = 31;
    CU_ASSERT(fidelity_run(&opt, collect, &few, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(figure(few.rows, "kivi2", "reference", "rel_l2"),
                    figure(few.rows, "bf16", "reference", "rel_l2"));
    js_free(many.rows);
    js_free(few.rows);
    fidelity_release(&opt);
}

static void refuse_fidelity(const char *formats, const char *distributions, const char *contexts,
                            const char *said) {
    fidelity_options opt = {.d_c = 512, .d_r = 64};
    snap_err err = {0};
    CU_ASSERT(fidelity_parse(&opt, formats, distributions, contexts, &err) == SNAP_E_USAGE);
    CU_ASSERT(strstr(err.text, said) != NULL);
    fidelity_release(&opt);
}

static void test_fidelity_refuses(void) {
    refuse_fidelity("bf16,G", "mla", "500", "'G'");
    refuse_fidelity("bf16,configs/formats/bf16.json", "mla", "500", "two formats with the name");
    refuse_fidelity("bf16", "gauss", "500", "gauss");
    refuse_fidelity("bf16", "mla", "-1", "-1");
}

static bool shapes_parse(const char *shapes, bench_grid *g) {
    bench_grid_text t = {.arms = "bf16,fp8",
                         .scopes = "kernel",
                         .heads = "1",
                         .s_q = "1",
                         .batch = "1",
                         .context = "64",
                         .shapes = shapes,
                         .d_c = 512,
                         .d_r = 64};
    return bench_grid_parse(g, &t, NULL) == SNAP_OK;
}

static void test_grid_list(void) {
    static const char *const bad[] = {"16",         "16/1/1",      "16/1/1/64/2", "0/1/1/64",
                                      "129/1/1/64", "16/5/1/64",   "16/1/0/64",   "16/1/1/2000000",
                                      "16/x/1/64",  "16/1/1/64,,", "/1/1/64",     "16/1/1/"};
    bench_grid g;
    CU_ASSERT_FATAL(shapes_parse("16/2/8/1024,128/1/1/65536", &g));
    CU_ASSERT(bench_grid_shapes(&g) == 2);
    bench_shape a = bench_grid_shape(&g, 0), b = bench_grid_shape(&g, 1);
    CU_ASSERT(a.heads == 16 && a.s_q == 2 && a.batch == 8 && a.context == 1024 && a.d_c == 512);
    CU_ASSERT(b.heads == 128 && b.s_q == 1 && b.batch == 1 && b.context == 65536 && b.d_r == 64);
    CU_ASSERT_FATAL(shapes_parse("", &g));
    CU_ASSERT(bench_grid_shapes(&g) == 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(!shapes_parse(bad[i], &g));
    char many[(GRID_LIST + 1) * 16] = "";
    for (int i = 1; i <= GRID_LIST; i++)
        (void)snprintf(many + strlen(many), 16, "%s1/1/1/%d", i > 1 ? "," : "", i);
    CU_ASSERT(shapes_parse(many, &g) && bench_grid_shapes(&g) == GRID_LIST);
    strcat(many, ",2/1/1/1");
    CU_ASSERT(!shapes_parse(many, &g));
}

CU_TestInfo tests_bench[] = {
    {"shapes in a list", test_grid_list},
    {"the arms run in the order A B B A", test_order_is_abba},
    {"the order cancels a linear drift", test_order_cancels_drift},
    {"grid", test_grid_product},
    {"bad grids are refused", test_grid_refuses},
    {"the random numbers have their distributions", test_numbers_are_what_they_say},
    {"all queries give much weight to sinks", test_sinks_are_liked},
    {"large products cancel", test_large_products_cancel},
    {"a whole sweep", test_sweep_end_to_end},
    {"wrong output has no speed", test_wrong_output_has_no_speed},
    {"output that becomes wrong after its check", test_wrong_after_judging},
    {"remembered results are found", test_remembered_results},
    {"a clock that runs backwards", test_backwards_clock},
    {"a device that throttles in the middle", test_throttling_in_the_middle},
    {"results that a backend remembers from loops", test_remembered_loops},
    {"shapes that exceed the time limit", test_time_limit},
    {"a skipped scope has nothing of the one before", test_skipped_scope_is_empty},
    {"loops are called cold for all arms or for none", test_loops_are_cold_together},
    {"a missing page of 4096 is found", test_missing_page},
    {"a wrong page of the last sequences is found", test_wrong_page},
    {"a wrong append is found", test_wrong_append},
    {"a broken device ends the sweep", test_broken_device},
    {"shapes that are too large are skipped", test_too_large_is_skipped},
    {"a backend without ablation skips its arms", test_ablation_is_the_gpus},
    {"a sweep can be resumed", test_resume},
    {"a sweep with skipped arms can be resumed", test_resume_with_skipped_arms},
    {"a sweep without one of its arms can be resumed", test_resume_without_an_arm},
    {"time floor from arithmetic", test_floor_by_arithmetic},
    {"time floor from bytes", test_floor_by_bytes},
    {"time floor from paired probes", test_paired},
    {"flags", test_flags},
    {"other programs on the processors", test_shared_processors},
    {"rows of other files", test_rows_of_others},
    {"fidelity", test_fidelity},
    {"fidelity of coded formats", test_fidelity_of_coded_formats},
    {"bad options of fidelity are refused", test_fidelity_refuses},
    CU_TEST_INFO_NULL,
};
