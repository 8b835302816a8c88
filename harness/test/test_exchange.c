/* Tests `bench exchange` with two ranks, which are real processes, and an exchange that stands in
 * for GPUs: it moves its numbers through the group's control connection, and can make mistakes. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/audit/audit.h"
#include "harness/bench/exchange_bench.h"
#include "harness/record/results.h"
#include "harness/test/report_fixture.h"
#include "harness/view/bench_tables.h"
#include "harness/view/pages.h"
#include "harness/view/tables.h"

enum {
    kRanks = 2,
    kFloats = 1024,
    kOneShot = 2048,
    kRows = 4 * 2 * 2 + 2 + (1 + 2 + 2) * 2 /* rows of kOptions: nccl, one_shot, step */
};

/* What is wrong with the exchange of rank 1. */
typedef enum {
    RIGHT,
    WRONG_BEFORE, /* one number of an all-gather is wrong in the first check of a row */
    WRONG_AFTER,  /* one number of an all-gather is wrong in the last check of a row */
    OTHER_BITS,   /* the bits of an all-reduce differ, but its integers do not */
    ONE_TOO_FEW,  /* sums are added one time too few */
    ONE_TOO_MANY, /* sums are added one time too many */
    NAN_BEFORE,   /* fill() writes NaN where sums are added */
    SUM_BEFORE,   /* fill() leaves the old numbers where sums are added */
    FAILS,        /* the device fails in the 5th operation */
} fault;

typedef struct {
    exchange base;
    ranks *group;
    fault fault;
    exchange_call call;
    int operations, checks; /* operations so far; checks of this row so far */
    float send[kFloats], recv[kFloats];
} fake;

static float number(uint64_t seed, size_t i, exchange_numbers kind) {
    int64_t x = (int64_t)((seed >> 7) * 31 + i * 2654435761u) % 17 - 8;
    return kind == EXCHANGE_INTEGERS ? (float)x : (float)x / 7;
}

static size_t part_of(const fake *f) {
    return (size_t)f->call.bytes / sizeof(float) / kRanks;
}

static void fake_close(exchange *x) {
    (void)x;
}

static void fake_describe(const exchange *x, exchange_info *out) {
    (void)x;
    *out = (exchange_info){.device = "a fake", .nccl = 22803, .one_shot_bytes = kOneShot};
}

static snap_status fake_prepare(exchange *x, const exchange_call *call, snap_err *err) {
    fake *f = (fake *)x;
    f->call = *call;
    f->checks = 0;
    return call->bytes <= (int64_t)sizeof f->send ? SNAP_OK
                                                  : err_set(err, SNAP_E_SHAPE, "too many bytes");
}

/* On the path `step`, a sum is added to the receive buffer. */
static bool adds(const fake *f) {
    return f->call.path == EXCHANGE_STEP && f->call.operation != EXCHANGE_ALL_GATHER;
}

static snap_status fake_fill(exchange *x, exchange_numbers kind, uint64_t seed, snap_err *err) {
    fake *f = (fake *)x;
    (void)err;
    for (size_t i = 0; i < kFloats; i++)
        f->send[i] = number(seed, i, kind);
    if (!adds(f) || f->fault == NAN_BEFORE)
        memset(f->recv, 0xff, sizeof f->recv);
    else if (f->fault != SUM_BEFORE)
        memset(f->recv, 0, sizeof f->recv);
    return SNAP_OK;
}

static void put_sum(fake *f, size_t at, float sum) {
    f->recv[at] = adds(f) ? f->recv[at] + sum : sum;
}

/* One operation. @all: [kRanks][kFloats], the numbers of all ranks. */
static void combine(fake *f, const float *all) {
    size_t part = part_of(f), own = (size_t)ranks_rank(f->group) * part;
    for (size_t i = 0; i < kRanks * part; i++) {
        size_t from = i / part * kFloats, in = i % part;
        if (f->call.operation == EXCHANGE_ALL_REDUCE)
            put_sum(f, i, all[i] + all[kFloats + i]);
        else if (f->call.operation == EXCHANGE_ALL_GATHER)
            f->recv[i] = all[from + in];
        else if (f->call.operation == EXCHANGE_ALL_TO_ALL)
            f->recv[i] = all[from + own + in];
        else if (i < part)
            put_sum(f, i, all[own + i] + all[kFloats + own + i]);
    }
}

/* Changes the last bit of the first sum that is no integer. The sum of two fractions may be one. */
static void change_fraction(fake *f) {
    for (size_t i = 0; i < kRanks * part_of(f); i++)
        if (f->recv[i] != rintf(f->recv[i])) {
            f->recv[i] = nextafterf(f->recv[i], 100);
            return;
        }
}

/* How many operations one run has. */
static int operations_of(const fake *f) {
    int n = f->call.graph ? f->call.graph : 1;
    return n - (f->fault == ONE_TOO_FEW) + (f->fault == ONE_TOO_MANY);
}

static snap_status fake_run(exchange *x, snap_err *err) {
    fake *f = (fake *)x;
    float all[kRanks * kFloats];
    if (f->fault == FAILS && ++f->operations == 5)
        return err_set(err, SNAP_E_DEVICE, "an illegal memory access was encountered");
    snap_status st =
        ranks_all_gather(f->group, "the fake exchange", f->send, sizeof f->send, all, err);
    for (int i = adds(f) ? operations_of(f) : 1; i > 0 && st == SNAP_OK; i--)
        combine(f, all);
    if (f->fault == OTHER_BITS && f->call.operation == EXCHANGE_ALL_REDUCE)
        change_fraction(f);
    f->checks++;
    if (f->call.operation == EXCHANGE_ALL_GATHER && ((f->fault == WRONG_BEFORE && f->checks == 1) ||
                                                     (f->fault == WRONG_AFTER && f->checks == 3)))
        f->recv[3] += 1;
    return st;
}

/* Rank 1 needs 2000 ns and more, rank 0 half of it. */
static snap_status fake_time(exchange *x, int samples, double *ns, snap_err *err) {
    fake *f = (fake *)x;
    (void)err;
    for (int i = 0; i < samples; i++)
        ns[i] = 1000 * (ranks_rank(f->group) + 1) + i;
    return SNAP_OK;
}

/* The number that results if @sum is added to 0 once for each operation of a run. */
static float added(const fake *f, float sum) {
    float total = sum; /* 0 + sum */
    for (int i = 1; adds(f) && i < f->call.graph; i++)
        total += sum;
    return total;
}

/* Goes through the numbers of each sender, unlike combine(). */
static snap_status fake_check(exchange *x, exchange_numbers kind, const uint64_t *seeds,
                              int64_t *wrong, snap_err *err) {
    fake *f = (fake *)x;
    float want[kFloats] = {0};
    size_t part = part_of(f), me = (size_t)ranks_rank(f->group), n = 2 * part;
    (void)err;
    for (size_t r = 0; r < kRanks; r++)
        for (size_t i = 0; i < 2 * part; i++) {
            float v = number(seeds[r], i, kind);
            if (f->call.operation == EXCHANGE_ALL_REDUCE)
                want[i] += v;
            else if (f->call.operation == EXCHANGE_REDUCE_SCATTER && i / part == me)
                want[i % part] += v;
            else if (f->call.operation == EXCHANGE_ALL_GATHER && i < part)
                want[r * part + i] = v;
            else if (f->call.operation == EXCHANGE_ALL_TO_ALL && i / part == me)
                want[r * part + i % part] = v;
        }
    if (f->call.operation == EXCHANGE_REDUCE_SCATTER)
        n = part;
    *wrong = 0;
    for (size_t i = 0; i < n; i++)
        *wrong += f->recv[i] != added(f, want[i]);
    return SNAP_OK;
}

static snap_status fake_digest(exchange *x, uint64_t *out, snap_err *err) {
    fake *f = (fake *)x;
    (void)err;
    *out = 1;
    for (size_t i = 0; i < 2 * part_of(f); i++) {
        uint32_t bits;
        memcpy(&bits, &f->recv[i], sizeof bits);
        *out = *out * 31 + bits;
    }
    return SNAP_OK;
}

static const exchange_ops kFake = {fake_close, fake_describe, fake_prepare, fake_fill,
                                   fake_run,   fake_time,     fake_check,   fake_digest};

/* ---- two processes ---- */

typedef struct {
    snap_err err;
    exchange_bench bench;
} outcome;

static const exchange_bench_options kOptions = {"all_reduce,all_gather,reduce_scatter,all_to_all",
                                                "1000,4096", "fp32", 1e-4};

/* Writes or reads all of @o, which is larger than a pipe holds. */
static bool move(int fd, outcome *o, bool write_it) {
    size_t done = 0;
    while (done < sizeof *o) {
        char *at = (char *)o + done;
        ssize_t k = write_it ? write(fd, at, sizeof *o - done) : read(fd, at, sizeof *o - done);
        if (k <= 0)
            return false;
        done += (size_t)k;
    }
    return true;
}

static void run_rank(int rank, int port, int listener, const exchange_plan *plan, fault wrong,
                     outcome *o) {
    rank_place place = {.rank = rank,
                        .size = kRanks,
                        .address = "127.0.0.1",
                        .port = port,
                        .listener = rank ? -1 : listener};
    fake f = {.base.ops = &kFake, .fault = rank ? wrong : RIGHT};
    *o = (outcome){0};
    snap_status st = ranks_join(&f.group, &place, "test=exchange\n", &ranks_defaults, &o->err);
    if (st == SNAP_OK)
        st = exchange_bench_run(plan, &f.base, f.group, NULL, &o->bench, &o->err);
    if (st != SNAP_OK && f.group)
        ranks_fail(f.group, &o->err);
    if (ranks_close(f.group, NULL) != st)
        o->err.code = SNAP_E_WRONG;
}

/* Runs two ranks with a plan. @of [2] gets what each of them returns. The texts in the rows are
 * constants of this program, so their addresses are valid here, too. */
static void run_ranks(const exchange_bench_options *options, fault wrong, outcome *of) {
    exchange_plan plan;
    int port = 0, listener = -1, ends[kRanks][2];
    CU_ASSERT_EQUAL_FATAL(exchange_bench_plan(&plan, options, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(ranks_listen("127.0.0.1", &port, &listener, NULL), SNAP_OK);
    pid_t pids[kRanks];
    for (int r = 0; r < kRanks; r++) {
        CU_ASSERT_EQUAL_FATAL(pipe(ends[r]), 0);
        pids[r] = fork();
        CU_ASSERT_FATAL(pids[r] >= 0);
        if (pids[r] == 0) {
            run_rank(r, port, listener, &plan, wrong, &of[r]);
            _exit(move(ends[r][1], &of[r], true) ? 0 : 1);
        }
        (void)close(ends[r][1]);
    }
    (void)close(listener);
    for (int r = 0; r < kRanks; r++) {
        CU_ASSERT(move(ends[r][0], &of[r], false));
        (void)close(ends[r][0]);
        (void)waitpid(pids[r], NULL, 0);
    }
}

static outcome *new_outcomes(void) {
    outcome *of = calloc(kRanks, sizeof *of);
    CU_ASSERT_PTR_NOT_NULL_FATAL(of);
    return of;
}

/* ---- tests ---- */

static void expect_row(const exchange_record *r, const char *operation, const char *path,
                       const char *launch, int64_t bytes) {
    bool graph = strcmp(launch, "graph") == 0, reduce = strcmp(operation, "all_reduce") == 0;
    int64_t samples = graph ? 20 : 49; /* 0.1 ms / 2002 ns for each operation, at least 20 */
    double median = 2000 + (double)(samples - 1) / 2, rate = (double)bytes / median * 1e9;
    CU_ASSERT_STRING_EQUAL(r->operation, operation);
    CU_ASSERT_STRING_EQUAL(r->path, path);
    CU_ASSERT_STRING_EQUAL(r->launch, launch);
    CU_ASSERT_STRING_EQUAL(r->type, "fp32");
    CU_ASSERT(r->ranks == 2 && r->bytes == bytes && r->wrong == 0 && r->parts == EXCHANGE_TIMED);
    CU_ASSERT(r->samples == samples && r->operations == (graph ? 32 : 1));
    CU_ASSERT_DOUBLE_EQUAL(r->median_ns, median, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(r->best_ns, 2000, 1e-9);
    CU_ASSERT(isnan(r->p99_ns));
    CU_ASSERT_DOUBLE_EQUAL(r->algorithm_bytes_s, rate, rate * 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(r->bus_bytes_s, reduce ? rate : rate / 2, rate * 1e-12);
}

/* The part of a rank has half of the bytes. */
static bool has_step(int op, int64_t bytes) {
    return op == EXCHANGE_ALL_REDUCE ? bytes <= kOneShot : op != EXCHANGE_ALL_TO_ALL;
}

static void test_rows(void) {
    static const char *const operations[] = {"all_reduce", "all_gather", "reduce_scatter",
                                             "all_to_all"};
    outcome *of = new_outcomes();
    run_ranks(&kOptions, RIGHT, of);
    const exchange_bench *b = &of[0].bench;
    CU_ASSERT_STRING_EQUAL(of[0].err.text, "");
    CU_ASSERT_EQUAL_FATAL(b->n, kRows);
    CU_ASSERT_EQUAL(of[1].bench.n, b->n);
    for (int i = 0; i < b->n; i++)
        CU_ASSERT(record_equal(&exchange_type, &b->rows[i], &of[1].bench.rows[i]));
    int at = 0;
    for (int op = 0; op < 4; op++)
        for (int size = 0; size < 2; size++) {
            int64_t bytes = size ? 4096 : 992; /* 1000, rounded down to parts of 16 bytes */
            expect_row(&b->rows[at++], operations[op], "nccl", "eager", bytes);
            expect_row(&b->rows[at++], operations[op], "nccl", "graph", bytes);
            if (op == 0 && bytes <= kOneShot) {
                expect_row(&b->rows[at++], operations[op], "one_shot", "eager", bytes);
                expect_row(&b->rows[at++], operations[op], "one_shot", "graph", bytes);
            }
            if (has_step(op, bytes)) {
                expect_row(&b->rows[at++], operations[op], "step", "eager", bytes);
                expect_row(&b->rows[at++], operations[op], "step", "graph", bytes);
            }
        }
    /* NCCL's sums: integers, before and after, on two ranks. Others: fractions, too. */
    CU_ASSERT_EQUAL(b->rows[0].checked, 2 * 2 * 992 / 4);
    CU_ASSERT_EQUAL(b->rows[2].checked, 2 * 2 * 2 * 992 / 4);
    CU_ASSERT_EQUAL(b->rows[4].checked, 2 * 2 * 2 * 992 / 4);
    free(of);
}

/* The path `step` moves FP32 numbers only. */
static void test_rows_of_bf16(void) {
    exchange_bench_options options = kOptions;
    outcome *of = new_outcomes();
    options.type = "bf16";
    run_ranks(&options, RIGHT, of);
    const exchange_bench *b = &of[0].bench;
    CU_ASSERT_STRING_EQUAL(of[0].err.text, "");
    CU_ASSERT_EQUAL_FATAL(b->n, 4 * 2 * 2 + 2);
    for (int i = 0; i < b->n; i++)
        CU_ASSERT_STRING_NOT_EQUAL(b->rows[i].path, "step");
    free(of);
}

/* Checks that rows of @operation (NULL = all sums) on @path (NULL = all paths) have wrong numbers
 * and no time, and that the other rows are right. */
static void expect_wrong(fault wrong, const char *operation, const char *path) {
    outcome *of = new_outcomes();
    run_ranks(&kOptions, wrong, of);
    const exchange_bench *b = &of[0].bench;
    int bad = 0;
    CU_ASSERT_STRING_EQUAL(of[0].err.text, "");
    CU_ASSERT_EQUAL_FATAL(b->n, kRows);
    for (int i = 0; i < b->n; i++) {
        const exchange_record *row = &b->rows[i];
        bool sum = strstr(row->operation, "reduce") != NULL;
        bool faulty = (operation ? strcmp(row->operation, operation) == 0 : sum) &&
                      (!path || strcmp(row->path, path) == 0);
        CU_ASSERT_EQUAL(b->rows[i].parts, faulty ? 0 : EXCHANGE_TIMED);
        CU_ASSERT(faulty == (b->rows[i].wrong > 0));
        bad += faulty;
    }
    CU_ASSERT(bad > 0 && b->wrong == bad);
    free(of);
}

static void test_wrong(void) {
    expect_wrong(WRONG_BEFORE, "all_gather", NULL);
    expect_wrong(WRONG_AFTER, "all_gather", NULL);
    expect_wrong(OTHER_BITS, "all_reduce", NULL);
}

/* The program must find sums that are added to other numbers than zeros, or too often, or too
 * rarely. */
static void test_wrong_additions(void) {
    expect_wrong(ONE_TOO_FEW, NULL, "step");
    expect_wrong(ONE_TOO_MANY, NULL, "step");
    expect_wrong(NAN_BEFORE, NULL, "step");
    expect_wrong(SUM_BEFORE, NULL, "step");
}

static void test_failure(void) {
    outcome *of = new_outcomes();
    run_ranks(&kOptions, FAILS, of);
    for (int r = 0; r < kRanks; r++) {
        CU_ASSERT_EQUAL(of[r].err.code, SNAP_E_DEVICE);
        CU_ASSERT_STRING_EQUAL(of[r].err.text, "rank 1: an illegal memory access was encountered");
    }
    free(of);
}

static void test_too_small(void) {
    static const exchange_bench_options small = {"all_reduce", "31", "bf16", 1e-4};
    outcome *of = new_outcomes();
    run_ranks(&small, RIGHT, of);
    for (int r = 0; r < kRanks; r++) {
        CU_ASSERT_EQUAL(of[r].err.code, SNAP_E_USAGE);
        CU_ASSERT_PTR_NOT_NULL(strstr(of[r].err.text, "--sizes: 31 bytes are too few for 2 ranks"));
    }
    free(of);
}

/* The factors that nccl-tests document. */
static void test_bus_factor(void) {
    CU_ASSERT_DOUBLE_EQUAL(exchange_bus_factor(EXCHANGE_ALL_REDUCE, 2), 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(exchange_bus_factor(EXCHANGE_ALL_REDUCE, 8), 1.75, 0);
    CU_ASSERT_DOUBLE_EQUAL(exchange_bus_factor(EXCHANGE_ALL_GATHER, 8), 0.875, 0);
    CU_ASSERT_DOUBLE_EQUAL(exchange_bus_factor(EXCHANGE_REDUCE_SCATTER, 4), 0.75, 0);
    CU_ASSERT_DOUBLE_EQUAL(exchange_bus_factor(EXCHANGE_ALL_TO_ALL, 2), 0.5, 0);
}

/* Sums of the largest integers over all ranks have at most 8 bits, so BF16 holds them. */
static void test_largest(void) {
    for (int size = 1; size <= RANKS_MOST; size++)
        CU_ASSERT(exchange_largest(size) >= 1 && exchange_largest(size) * size <= 256);
}

/* Over peer memory, the limit applies to the bytes that a rank sends to one other rank. */
static void test_paths(void) {
    exchange_call c = {.operation = EXCHANGE_ALL_REDUCE, .path = EXCHANGE_STEP, .bytes = 4096};
    CU_ASSERT(exchange_allows(&c, 4, 4096) && !exchange_allows(&c, 4, 4095));
    CU_ASSERT(!exchange_allows(&c, 4, 0));
    c.operation = EXCHANGE_ALL_GATHER;
    CU_ASSERT(exchange_allows(&c, 4, 1024) && !exchange_allows(&c, 4, 1023));
    c.operation = EXCHANGE_REDUCE_SCATTER;
    CU_ASSERT(exchange_allows(&c, 4, 1024) && !exchange_allows(&c, 4, 1023));
    c.bf16 = true;
    CU_ASSERT(!exchange_allows(&c, 4, 4096));
    c.path = EXCHANGE_ONE_SHOT;
    CU_ASSERT(!exchange_allows(&c, 4, 4096));
    c.operation = EXCHANGE_ALL_REDUCE;
    CU_ASSERT(exchange_allows(&c, 4, 4096) && !exchange_allows(&c, 4, 4095));
    c = (exchange_call){.operation = EXCHANGE_ALL_TO_ALL, .path = EXCHANGE_STEP, .bytes = 4096};
    CU_ASSERT(!exchange_allows(&c, 4, 4096));
    c.path = EXCHANGE_NCCL;
    CU_ASSERT(exchange_allows(&c, 4, 0));
}

/* Only sums on the path `step` are added, once for each operation of a graph. */
static void test_additions(void) {
    for (int op = 0; op < EXCHANGE_OPERATIONS; op++)
        for (int path = 0; path < EXCHANGE_PATHS; path++) {
            exchange_call c = {.operation = (exchange_operation)op, .path = (exchange_path)path};
            bool adds_sum = path == EXCHANGE_STEP &&
                            (op == EXCHANGE_ALL_REDUCE || op == EXCHANGE_REDUCE_SCATTER);
            CU_ASSERT_EQUAL(exchange_additions(&c), adds_sum ? 1 : 0);
            c.graph = 32;
            CU_ASSERT_EQUAL(exchange_additions(&c), adds_sum ? 32 : 0);
        }
}

static void test_plan(void) {
    exchange_plan p;
    exchange_bench_options o = kOptions;
    CU_ASSERT_EQUAL(exchange_bench_plan(&p, &o, NULL), SNAP_OK);
    CU_ASSERT(p.n_sizes == 2 && !p.bf16 && p.operations[EXCHANGE_ALL_TO_ALL]);
    CU_ASSERT_EQUAL(exchange_bench_bytes(&p), 4096);
    o.operations = "broadcast";
    CU_ASSERT_EQUAL(exchange_bench_plan(&p, &o, NULL), SNAP_E_USAGE);
    o = kOptions;
    o.sizes = "1024,8";
    CU_ASSERT_EQUAL(exchange_bench_plan(&p, &o, NULL), SNAP_E_USAGE);
    o = kOptions;
    o.type = "fp64";
    CU_ASSERT_EQUAL(exchange_bench_plan(&p, &o, NULL), SNAP_E_USAGE);
}

/* Rows with and without a time fit the schema, and come back from the file. */
static void test_result(void) {
    outcome *of = new_outcomes();
    results *r = NULL;
    arena mem = {0};
    run_ranks(&kOptions, WRONG_BEFORE, of);
    const exchange_bench *b = &of[0].bench;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    for (int i = 0; i < b->n; i++)
        CU_ASSERT_EQUAL(results_add(r, "exchange", record_write(&exchange_type, &b->rows[i]), NULL),
                        SNAP_OK);
    const js *rows = results_section(r, "exchange");
    CU_ASSERT_EQUAL_FATAL(js_len(rows), (size_t)b->n);
    for (int i = 0; i < b->n; i++) {
        exchange_record again;
        CU_ASSERT(record_read(&exchange_type, js_at(rows, (size_t)i), &mem, &again));
        CU_ASSERT(record_equal(&exchange_type, &b->rows[i], &again));
    }
    table t = exchange_table(b->rows, b->n);
    CU_ASSERT_EQUAL(t.n_rows, (size_t)b->n);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 0), "all_reduce");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 6), "2.02"); /* us */
    table_release(&t);
    arena_release(&mem);
    results_free(r);
    free(of);
}

/* A report has the rows as a table and in its CSV file. */
static void test_report(void) {
    outcome *of = new_outcomes();
    results *r = NULL;
    arena mem = {0};
    table t;
    buf csv = {0};
    run_ranks(&kOptions, WRONG_BEFORE, of);
    const exchange_bench *b = &of[0].bench;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    for (int i = 0; i < b->n; i++)
        CU_ASSERT_EQUAL(results_add(r, "exchange", record_write(&exchange_type, &b->rows[i]), NULL),
                        SNAP_OK);
    report_model *m = fixture_model(r);
    CU_ASSERT_FATAL(report_table_exchange(m, &mem, &t));
    CU_ASSERT_EQUAL(t.n_rows, (size_t)b->n);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 6), "2.02");
    for (int i = 0; i < b->n; i++)
        CU_ASSERT((b->rows[i].wrong > 0) == (strcmp(table_at(&t, (size_t)i, 6), "–") == 0));
    write_csv_section(m, "exchange", &csv);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), "median_ns"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), "all_reduce,one_shot,graph,fp32,2,992,22803"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), "all_gather,step,graph,fp32,2,4096,22803"));
    buf_release(&csv);
    report_model_free(m);
    arena_release(&mem);
    results_free(r);
    free(of);
}

/* ---- verify-run ---- */

static const exchange_record kHonest = {.parts = EXCHANGE_TIMED,
                                        .operation = "all_reduce",
                                        .ranks = 4,
                                        .bytes = 16384,
                                        .checked = 100,
                                        .median_ns = 8000,
                                        .best_ns = 7000,
                                        .p99_ns = 9000,
                                        .algorithm_bytes_s = 2.048e9,
                                        .bus_bytes_s = 3.072e9};

/* How many findings of each kind a row has. */
static void expect_findings(const exchange_record *row, size_t form, size_t correctness,
                            size_t physics) {
    exchange_record copy = *row;
    run_record run = {.exchange = {&copy, 1}};
    verify_findings f = {0};
    verify_exchange(&run, &f);
    CU_ASSERT_EQUAL(f.n[VERIFY_FORM], form);
    CU_ASSERT_EQUAL(f.n[VERIFY_CORRECTNESS], correctness);
    CU_ASSERT_EQUAL(f.n[VERIFY_PHYSICS], physics);
    CU_ASSERT(f.checks > 0);
    verify_release(&f);
}

static void test_verify(void) {
    exchange_record row = kHonest;
    expect_findings(&row, 0, 0, 0);
    row.wrong = 1;
    expect_findings(&row, 0, 1, 0);
    row.parts = 0;
    expect_findings(&row, 0, 0, 0);
    row.wrong = 0;
    expect_findings(&row, 1, 0, 0);
    row = kHonest;
    row.checked = 0;
    expect_findings(&row, 0, 1, 0);
    row = kHonest;
    row.p99_ns = 7500;
    expect_findings(&row, 1, 0, 0);
    row.p99_ns = (double)NAN;
    expect_findings(&row, 0, 0, 0);
    row.bus_bytes_s = 2.048e9;
    expect_findings(&row, 0, 0, 1);
    row = kHonest;
    row.median_ns = 7999;
    expect_findings(&row, 0, 0, 2);
    row = kHonest;
    row.operation = "all_to_all";
    row.bus_bytes_s = 1.536e9;
    expect_findings(&row, 0, 0, 0);
}

CU_TestInfo tests_exchange[] = {
    {"each operation and size has a row", test_rows},
    {"rows of BF16 numbers", test_rows_of_bf16},
    {"wrong numbers", test_wrong},
    {"sums that are added wrongly", test_wrong_additions},
    {"a rank fails", test_failure},
    {"a size is too small", test_too_small},
    {"factors of the bus bandwidth", test_bus_factor},
    {"the largest integers", test_largest},
    {"paths over peer memory", test_paths},
    {"additions of a sum", test_additions},
    {"options become sizes and operations", test_plan},
    {"rows come back from the result file", test_result},
    {"the report shows the rows", test_report},
    {"rows that do not fit together", test_verify},
    CU_TEST_INFO_NULL,
};
