#include <stdlib.h>
#include <string.h>

#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/device_table.h"
#include "harness/cmd/print.h"
#include "harness/measure/ceilings.h"
#include "harness/measure/env.h"
#include "harness/measure/stats.h"
#include "harness/record/ceiling.h"
#include "harness/record/device_results.h"

static device_options device = DEVICE_DEFAULTS;
static int64_t rounds = 5;
static double seconds = 0.3, sustained = 2;
static const char *out;

static const opt options[] = {
    DEVICE_OPTIONS(device),
    {.type = OPT_GROUP, .help = "Measuring"},
    {OPT_INT, "rounds", 0, &rounds, "N", "repetitions of each probe; the best one is the ceiling",
     1, 64},
    {OPT_NUM, "seconds", 0, &seconds, "S", "time of one repetition of a probe, in seconds", 0.01,
     60},
    {OPT_NUM, "sustained", 0, &sustained, "S",
     "on a GPU: seconds of each loop that measures the rates under the power limit; 0 = no such "
     "loops, and no latencies",
     0, 60},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &out, "PATH", "write the result to this .json file or run folder", 0, 0},
    {.type = OPT_END},
};

static int compare_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Adds the best, median and lowest round in GB/s, GFLOP/s or ns. */
static void add_row(table *t, const ceiling_record *row) {
    double v[CEILINGS_MAX_ROUNDS];
    bool bytes = strcmp(row->unit, "B/s") == 0, time = strcmp(row->unit, "ns") == 0;
    double factor = time ? 1 : 1e-9;
    size_t n = row->samples.n < CEILINGS_MAX_ROUNDS ? row->samples.n : CEILINGS_MAX_ROUNDS;
    for (size_t i = 0; i < n; i++)
        v[i] = row->samples.at[i] * factor;
    qsort(v, n, sizeof *v, compare_double);
    table_cell(t, "%s", row->name);
    table_number(t, row->value * factor, 1);
    table_cell(t, "%s", time ? "ns" : bytes ? "GB/s" : "GFLOP/s");
    table_number(t, stats_quantile(v, n, 0.5), 1);
    table_number(t, v[0], 1);
    table_cell(t, "%s", row->method);
}

static snap_status add_rows(table *t, const results *r, snap_err *err) {
    arena mem = {0};
    ceiling_list all = {0};
    bool ok = record_read_all(&ceiling_type, results_section(r, "ceilings"), &mem, &all.at, &all.n);
    for (size_t i = 0; i < all.n; i++)
        add_row(t, &all.at[i]);
    arena_release(&mem);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the ceilings");
}

/* If the backend runs on the host's processors, other programs lower the measured rates. */
static void warn_if_shared(const mla_backend *be, const env_state *before) {
    mla_backend_info info;
    mla_backend_describe(be, &info);
    env_state after = env_now();
    if (mla_on_processors(&info) && env_between(before, &after).shared)
        term_warn(
            "other programs used the processors, so the ceilings may be too low; measure again on "
            "an idle machine, or repeat the probes more often with --rounds");
}

static snap_status measure(ceilings *c, mla_backend *be, snap_err *err) {
    env_state before = env_now();
    term_progress p = term_progress_start("roofline", rounds);
    snap_status st = SNAP_OK;
    for (int64_t i = 0; i < rounds && st == SNAP_OK; i++) {
        st = cmd_cancelled ? err_set(err, SNAP_E_CANCELLED, "stopped by a signal")
                           : ceilings_measure(c, be, 1, seconds, err);
        term_progress_update(&p, i + 1, NULL);
    }
    term_progress_end(&p);
    if (st == SNAP_OK)
        warn_if_shared(be, &before);
    return st;
}

static snap_status add_limits(results *r, mla_backend *be, snap_err *err) {
    mla_limits limits;
    snap_err why = {0};
    if (!(sustained > 0))
        return SNAP_OK;
    snap_status st = mla_limits_measure(&limits, be, sustained, &why);
    if (st == SNAP_E_UNSUPPORTED)
        return SNAP_OK;
    if (st != SNAP_OK)
        return err_set(err, st, "%s", why.text);
    return results_add_all(r, "ceilings", ceilings_limits_json(&limits), err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    static const char *const heads[] = {"ceiling", "best", "unit", "median", "lowest", "method"};
    mla_backend *be = NULL;
    results *r = NULL;
    ceilings c = {0};
    table t = table_new(heads, 6);
    snap_status st = SNAP_OK;
    TRY(device_open(&be, &device, err));
    TRY(results_of_device(&r, be, &device, "roofline", shared->resolved, 0, err));
    TRY(measure(&c, be, err));
    TRY(results_add_all(r, "ceilings", ceilings_json(&c), err));
    TRY(add_limits(r, be, err));
    TRY(add_rows(&t, r, err));
    TRY(out ? results_save_run(r, out, err) : SNAP_OK);
    TRY(print_results(r, shared, &t, err));
cleanup:
    table_release(&t);
    results_free(r);
    mla_backend_close(be);
    return st;
}

const opt_command cmd_roofline = {
    .name = "roofline",
    .summary = "measure the highest rates of this device",
    .synopsis = "[options]",
    .about = "Measures the highest rates that this device reaches, on random data: reading\n"
             "memory with a cold cache, and multiply-accumulate of BF16 and of FP8 operands with\n"
             "FP32 sums. These ceilings are the 100 % of the column '% roof' of 'snapmla bench',\n"
             "which measures them itself unless --ceilings names this result.",
    .examples = "  snapmla roofline\n"
                "  snapmla roofline --threads 1 --out roofline.json",
    .options = options,
    .run = run,
};
