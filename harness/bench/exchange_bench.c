#include "harness/bench/exchange_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/text.h"
#include "harness/bench/grid.h"
#include "harness/measure/stats.h"

enum {
    kMostSamples = RANKS_BLOB_MOST / sizeof(double),
    kFewestSamples = 20,
    kProbes = 5, /* first samples of a row; they show how many more are needed */
    kUnit = 16,  /* the part of each rank is a multiple of this number of bytes */
};
static const double kMostSeconds = 4; /* for the samples of a row, far below the limit exchange_s */
static const int64_t kLargest = (int64_t)1 << 36;

static const char *const kNames[EXCHANGE_OPERATIONS] = {"all_reduce", "all_gather",
                                                        "reduce_scatter", "all_to_all"};
static const char *const kPaths[EXCHANGE_PATHS] = {"nccl", "one_shot", "step"};

/* ---- the plan ---- */

static snap_status add_operation(void *ctx, const char *part, snap_err *err) {
    exchange_plan *p = ctx;
    for (int i = 0; i < EXCHANGE_OPERATIONS; i++)
        if (strcmp(part, kNames[i]) == 0) {
            p->operations[i] = true;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_USAGE,
                   "--operations must list all_reduce, all_gather, reduce_scatter or all_to_all, "
                   "got '%s'",
                   part);
}

snap_status exchange_bench_plan(exchange_plan *out, const exchange_bench_options *o,
                                snap_err *err) {
    snap_status st;
    *out = (exchange_plan){.bf16 = strcmp(o->type, "bf16") == 0, .seconds = o->seconds};
    if (!out->bf16 && strcmp(o->type, "fp32") != 0)
        return err_set(err, SNAP_E_USAGE, "--type must be bf16 or fp32, got '%s'", o->type);
    TRY(text_split(o->operations, ',', "--operations", add_operation, out, err));
    TRY(bench_parse_list(o->sizes, "--sizes", kUnit, kLargest, out->sizes, EXCHANGE_SIZES,
                         &out->n_sizes, err));
cleanup:
    return st;
}

int64_t exchange_bench_bytes(const exchange_plan *p) {
    int64_t most = 0;
    for (int i = 0; i < p->n_sizes; i++)
        most = p->sizes[i] > most ? p->sizes[i] : most;
    return most;
}

double exchange_bus_factor(exchange_operation op, int size) {
    double others = (double)(size - 1) / size;
    return op == EXCHANGE_ALL_REDUCE ? 2 * others : others;
}

/* ---- one row ---- */

typedef struct {
    exchange *x;
    ranks *group;
    exchange_call call;
    int size;
    uint64_t *seeds; /* [size] */
    double *all;     /* [size][kMostSamples] */
    double *mine;    /* [kMostSamples] */
    exchange_record row;
} row_state;

/* What a rank found when it checked its result. */
typedef struct {
    int64_t wrong;
    uint64_t bits; /* hash of the result; 0 if it need not be the same on all ranks */
} finding;

/* How many numbers all ranks together receive. */
static int64_t received_numbers(const row_state *s) {
    int64_t bytes =
        s->call.operation == EXCHANGE_REDUCE_SCATTER ? s->call.bytes : s->call.bytes * s->size;
    return bytes / (s->call.bf16 ? 2 : 4);
}

static bool is_sum(exchange_operation op) {
    return op == EXCHANGE_ALL_REDUCE || op == EXCHANGE_REDUCE_SCATTER;
}

/* Adds the findings of all ranks to the row. A rank whose result has other bits than that of rank 0
 * counts as one more wrong number. */
static snap_status gather_findings(row_state *s, const finding *mine, snap_err *err) {
    finding all[RANKS_MOST];
    snap_status st =
        ranks_all_gather(s->group, "the findings of a check", mine, sizeof *mine, all, err);
    for (int r = 0; r < s->size && st == SNAP_OK; r++)
        s->row.wrong += all[r].wrong + (all[r].bits != all[0].bits);
    return st;
}

/* Runs the operation once on new numbers of @kind. @compare: the expected result is known,
 * so each number is compared with it. */
static snap_status check_once(row_state *s, exchange_numbers kind, bool compare, snap_err *err) {
    snap_status st;
    uint64_t seed = 0;
    finding f = {0};
    bool same =
        s->call.operation == EXCHANGE_ALL_REDUCE || s->call.operation == EXCHANGE_ALL_GATHER;
    const exchange_ops *ops = s->x->ops;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return err_set_errno(err, "cannot get a random seed");
    TRY(ops->fill(s->x, kind, seed, err));
    TRY(ops->run(s->x, err));
    TRY(ranks_all_gather(s->group, "the seeds of a check", &seed, sizeof seed, s->seeds, err));
    if (compare) {
        TRY(ops->check(s->x, kind, s->seeds, &f.wrong, err));
        s->row.checked += received_numbers(s);
    }
    if (same)
        TRY(ops->digest(s->x, &f.bits, err));
    TRY(gather_findings(s, &f, err));
cleanup:
    return st;
}

/* Sums of fractions are rounded. NCCL may add in any order, so only integers have known sums. */
static snap_status check(row_state *s, snap_err *err) {
    bool any_order = is_sum(s->call.operation) && s->call.path == EXCHANGE_NCCL;
    snap_status st = check_once(s, EXCHANGE_INTEGERS, true, err);
    return st == SNAP_OK ? check_once(s, EXCHANGE_FRACTIONS, !any_order, err) : st;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Takes @n samples, ascending in s->mine: each is the longest time of all ranks. */
static snap_status take_samples(row_state *s, int n, snap_err *err) {
    snap_status st;
    size_t bytes = (size_t)n * sizeof *s->mine;
    TRY(s->x->ops->time(s->x, n, s->mine, err));
    TRY(ranks_all_gather(s->group, "the times of a row", s->mine, bytes, s->all, err));
    for (int r = 0; r < s->size; r++)
        for (int i = 0; i < n; i++)
            s->mine[i] = fmax(s->mine[i], s->all[r * n + i]);
    qsort(s->mine, (size_t)n, sizeof *s->mine, by_value);
cleanup:
    return st;
}

/* How many samples of @ns each take about @seconds, within kFewestSamples..kMostSamples. Fewer than
 * that if they would take more than kMostSeconds. */
static int samples_for(double ns, double seconds) {
    double wanted = fmin(fmax(seconds * 1e9 / ns, kFewestSamples), kMostSamples);
    double possible = fmax(kMostSeconds * 1e9 / ns, kProbes);
    return (int)fmin(wanted, possible);
}

static snap_status measure(row_state *s, double seconds, snap_err *err) {
    snap_status st;
    int each = s->call.graph ? s->call.graph : 1;
    TRY(take_samples(s, kProbes, err));
    int n = samples_for(s->mine[kProbes / 2] * each, seconds);
    TRY(take_samples(s, n, err));
    stats_summary sum = stats_summarise(s->mine, (size_t)n);
    s->row.parts = EXCHANGE_TIMED;
    s->row.samples = n;
    s->row.operations = each;
    s->row.median_ns = sum.median;
    s->row.p99_ns = sum.p99;
    s->row.best_ns = sum.min;
    s->row.algorithm_bytes_s = (double)s->call.bytes / sum.median * 1e9;
    s->row.bus_bytes_s = s->row.algorithm_bytes_s * exchange_bus_factor(s->call.operation, s->size);
cleanup:
    return st;
}

static void describe_row(row_state *s, int nccl) {
    record_init(&exchange_type, &s->row);
    s->row.operation = kNames[s->call.operation];
    s->row.path = kPaths[s->call.path];
    s->row.launch = s->call.graph ? "graph" : "eager";
    s->row.type = s->call.bf16 ? "bf16" : "fp32";
    s->row.ranks = s->size;
    s->row.bytes = s->call.bytes;
    s->row.nccl = nccl;
    s->row.checked = s->row.wrong = 0;
}

static snap_status measure_row(row_state *s, const exchange_plan *p, exchange_bench *out,
                               snap_err *err) {
    snap_status st;
    describe_row(s, out->info.nccl);
    TRY(s->x->ops->prepare(s->x, &s->call, err));
    TRY(check(s, err));
    if (s->row.wrong == 0)
        TRY(measure(s, p->seconds, err));
    if (s->row.wrong == 0)
        TRY(check(s, err));
    if (s->row.wrong != 0) {
        s->row.parts = 0;
        out->wrong++;
    }
    out->rows[out->n++] = s->row;
cleanup:
    return st;
}

/* ---- measuring all rows ---- */

/* The number of operations in one graph. It is large enough that the launch of the graph takes a
 * small part of its time. */
static int graph_operations(int64_t bytes) {
    return bytes <= 1 << 20 ? 32 : bytes <= 1 << 26 ? 8 : 2;
}

static snap_status cancelled(const volatile sig_atomic_t *cancel, snap_err *err) {
    return cancel && *cancel ? err_set(err, SNAP_E_CANCELLED, "stopped by a signal") : SNAP_OK;
}

/* Measures one operation, size and path: first launched one by one, then in a graph. */
static snap_status measure_launches(row_state *s, const exchange_plan *p,
                                    const volatile sig_atomic_t *cancel, exchange_bench *out,
                                    snap_err *err) {
    snap_status st = SNAP_OK;
    for (int graph = 0; graph < 2 && st == SNAP_OK; graph++) {
        s->call.graph = graph ? graph_operations(s->call.bytes) : 0;
        st = cancelled(cancel, err);
        if (st == SNAP_OK && out->n == EXCHANGE_ROWS)
            st = err_set(err, SNAP_E_USAGE, "more than %d rows", EXCHANGE_ROWS);
        if (st == SNAP_OK)
            st = measure_row(s, p, out, err);
    }
    return st;
}

/* Measures one operation and size on all paths that have it. */
static snap_status measure_paths(row_state *s, const exchange_plan *p,
                                 const volatile sig_atomic_t *cancel, exchange_bench *out,
                                 snap_err *err) {
    snap_status st = SNAP_OK;
    for (int path = 0; path < EXCHANGE_PATHS && st == SNAP_OK; path++) {
        s->call.path = (exchange_path)path;
        if (exchange_allows(&s->call, s->size, out->info.one_shot_bytes))
            st = measure_launches(s, p, cancel, out, err);
    }
    return st;
}

static snap_status measure_operation(row_state *s, const exchange_plan *p, exchange_operation op,
                                     const volatile sig_atomic_t *cancel, exchange_bench *out,
                                     snap_err *err) {
    snap_status st = SNAP_OK;
    int64_t unit = (int64_t)kUnit * s->size;
    for (int i = 0; i < p->n_sizes && st == SNAP_OK; i++) {
        int64_t bytes = p->sizes[i] / unit * unit;
        if (bytes == 0)
            return err_set(err, SNAP_E_USAGE, "--sizes: %lld bytes are too few for %d ranks",
                           (long long)p->sizes[i], s->size);
        s->call = (exchange_call){.operation = op, .bf16 = p->bf16, .bytes = bytes};
        st = measure_paths(s, p, cancel, out, err);
    }
    return st;
}

snap_status exchange_bench_run(const exchange_plan *p, exchange *x, ranks *group,
                               const volatile sig_atomic_t *cancel, exchange_bench *out,
                               snap_err *err) {
    snap_status st = SNAP_OK;
    size_t size = (size_t)ranks_size(group);
    row_state s = {.x = x, .group = group, .size = (int)size};
    out->n = out->wrong = 0;
    x->ops->describe(x, &out->info);
    s.seeds = malloc(size * sizeof *s.seeds);
    s.all = malloc(size * kMostSamples * sizeof *s.all);
    s.mine = malloc(kMostSamples * sizeof *s.mine);
    if (!s.seeds || !s.all || !s.mine)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    for (int op = 0; op < EXCHANGE_OPERATIONS && st == SNAP_OK; op++)
        if (p->operations[op])
            st = measure_operation(&s, p, (exchange_operation)op, cancel, out, err);
    free(s.seeds);
    free(s.all);
    free(s.mine);
    return st;
}
