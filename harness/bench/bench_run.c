#include "harness/bench/bench_run.h"

#include "base/term.h"
#include "harness/bench/bench_journal.h"
#include "harness/bench/load_ceilings.h"
#include "harness/bench/sweep.h"
#include "harness/measure/code_hash.h"
#include "harness/record/device_results.h"

enum { kProbeRounds = 3, kRetries = 3, kMaxSamples = 10000 };
static const double kProbeSeconds = 0.15;
static const double kNoise = 0.005; /* a cell has enough samples at this relative noise
                                       (stats_median_noise()) */

typedef struct {
    const bench_options *o;
    bench_grid grid;
    numbers_kind distribution;
    mla_backend *backend;
    results *results;
    results_journal *journal; /* NULL if the options name no result file */
    ceilings ceilings;
    js *rows; /* of the section "bench" */
    term_progress progress;
} bench;

static snap_status read_options(bench *b, snap_err *err) {
    snap_status st = bench_grid_parse(&b->grid, &b->o->grid, err);
    if (st == SNAP_OK)
        st = numbers_kind_parse(b->o->distribution, &b->distribution, err);
    b->rows = js_new_array();
    if (st == SNAP_OK && !b->rows)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for rows");
    return st;
}

static snap_status open_device(bench *b, const js *config, snap_err *err) {
    const bench_options *o = b->o;
    snap_status st = device_open(&b->backend, &o->device, err);
    if (st == SNAP_OK)
        st = results_of_device(&b->results, b->backend, &o->device, "bench", config, o->seed, err);
    if (st == SNAP_OK && o->out)
        st = bench_journal_open(&b->journal, o->out, config, err);
    return st;
}

static snap_status find_ceilings(bench *b, snap_err *err) {
    if (b->o->ceilings_path)
        return load_ceilings(&b->ceilings, b->backend, b->o->ceilings_path, err);
    return ceilings_measure(&b->ceilings, b->backend, kProbeRounds, kProbeSeconds, err);
}

/* ---- the sweep ---- */

static const js *find_row(void *ctx, const char *key) {
    const bench *b = ctx;
    return b->journal ? results_journal_find(b->journal, key) : NULL;
}

static snap_status keep_row(void *ctx, const char *key, const js *row, snap_err *err) {
    const bench *b = ctx;
    return b->journal ? results_journal_append(b->journal, key, row, err) : SNAP_OK;
}

static void show_progress(void *ctx, int done, int total, const char *note) {
    bench *b = ctx;
    b->progress.total = total;
    term_progress_update(&b->progress, done, note);
}

static snap_status sweep_grid(bench *b, snap_err *err) {
    const bench_options *o = b->o;
    char hash[HASH_HEX];
    bool known = code_hash_of(o->device.backend, NULL, hash, NULL) == SNAP_OK;
    sweep_options sweep = {.backend = b->backend,
                           .grid = &b->grid,
                           .distribution = b->distribution,
                           .seed = (uint64_t)o->seed,
                           .limits = {.noise = kNoise,
                                      .min_samples = (size_t)o->min_samples,
                                      .max_samples = kMaxSamples,
                                      .min_time_s = o->min_time_s,
                                      .timeout_s = o->timeout_s},
                           .rest = o->rest,
                           .sustained_s = o->sustained_s,
                           .kernel_hash = known ? hash : NULL,
                           .cancel = o->cancel,
                           .ctx = b,
                           .find = find_row,
                           .keep = keep_row,
                           .progress = show_progress};
    b->progress = term_progress_start("bench", sweep_count(&b->grid));
    snap_status st = sweep_run(&sweep, b->rows, err);
    term_progress_end(&b->progress);
    if (st == SNAP_E_CANCELLED && b->journal)
        err_prefix(err, "%zu of %d rows are kept for the next run of this command", js_len(b->rows),
                   sweep_count(&b->grid));
    return st;
}

/* ---- what follows from the samples ---- */

/* A ceiling is the best rate known, also from probes between samples. If a row is below its floor,
 * either the probes ran at a busy moment and reach more when repeated, or the row is wrong.
 * The probes are therefore repeated up to kRetries times. */
static snap_status derive(bench *b, snap_err *err) {
    const mla_ceilings *best = &b->ceilings.best;
    mla_ceilings probed = {0};
    snap_status st = SNAP_OK;
    TRY(sweep_raise(b->rows, &probed, err));
    ceilings_add(&b->ceilings,
                 (mla_probe_rates){probed.read.rate, probed.bf16.rate, probed.fp8.rate});
    TRY(sweep_derive(b->rows, best, err));
    for (int i = 0; i < kRetries && sweep_count_flag(b->rows, "below_floor"); i++) {
        TRY(ceilings_measure(&b->ceilings, b->backend, kProbeRounds, kProbeSeconds, err));
        TRY(sweep_derive(b->rows, best, err));
    }
cleanup:
    return st;
}

static snap_status save(bench *b, snap_err *err) {
    snap_status st = results_add_all(b->results, "ceilings", ceilings_json(&b->ceilings), err);
    if (st == SNAP_OK)
        st = results_add_all(b->results, "bench", js_copy(b->rows), err);
    if (st == SNAP_OK && b->o->out)
        st = results_save_run(b->results, b->o->out, err);
    if (st == SNAP_OK && b->journal) {
        st = results_journal_remove(b->journal, err);
        b->journal = NULL;
    }
    return st;
}

static void release(bench *b) {
    results_journal_close(b->journal);
    js_free(b->rows);
    results_free(b->results);
    mla_backend_close(b->backend);
}

snap_status bench_run(const bench_options *o, const js *config, results **out, snap_err *err) {
    snap_status st;
    bench b = {.o = o};
    *out = NULL;
    TRY(read_options(&b, err));
    TRY(open_device(&b, config, err));
    TRY(find_ceilings(&b, err));
    TRY(sweep_grid(&b, err));
    TRY(derive(&b, err));
    TRY(save(&b, err));
    st = sweep_verdict(b.rows, err);
    *out = b.results;
    b.results = NULL;
cleanup:
    release(&b);
    return st;
}

/* ---- warnings ---- */

void bench_warn(const js *rows) {
    int all = (int)js_len(rows), shared = (int)sweep_count_flag(rows, "shared");
    int noisy = (int)sweep_count_flag(rows, "noisy"),
        weak = (int)sweep_count_flag(rows, "weak_baseline");
    if (shared)
        term_warn("other work shared the processors during %d of %d rows: their times may be too "
                  "long; repeat on an idle machine",
                  shared, all);
    if (noisy > shared)
        term_warn("%d of %d rows are noisy (quartiles more than 5 %% of the median apart); more "
                  "samples may help: --min-time, --timeout",
                  noisy, all);
    if (weak)
        term_warn("%d speed-ups exceed the ratio of the two floors: there the BF16 arm is further "
                  "from its roofline than the FP8 arm",
                  weak);
}
