#include "harness/bench/bench_run.h"

#include <stdlib.h>

#include "harness/bench/bench_run_inside.h"
#include "harness/bench/scaled_shapes.h"
#include "harness/measure/code_hash.h"

enum { kMaxSamples = 10000 };
static const double kNoise = 0.005; /* a cell has enough samples at this relative noise
                                       (stats_median_noise()) */

static snap_status read_lengths(bench *b, snap_err *err) {
    if (!b->o->lengths)
        return SNAP_OK;
    if (b->grid.n_list || b->o->grid.ablation)
        return err_set(err, SNAP_E_USAGE,
                       "--lengths takes the place of --context: leave out --shapes and --ablation");
    b->grid.n_context = 1; /* one context: the sweep uses the longest drawn length */
    return lengths_parse(&b->lengths, b->o->lengths, err);
}

/* Replaces the shapes of the grid, the distribution of the numbers and the seed by those of the
 * challenge. */
static snap_status read_challenge(bench *b, snap_err *err) {
    const bench_options *o = b->o;
    bench_grid *g = &b->grid;
    challenge *c = &b->challenge;
    snap_status st = SNAP_OK;
    if (!o->challenge)
        return SNAP_OK;
    if (o->lengths || g->n_list || o->grid.ablation)
        return err_set(err, SNAP_E_USAGE,
                       "--challenge chooses the shapes and lengths: leave out --shapes, --lengths "
                       "and --ablation");
    TRY(challenge_derive(c, o->challenge, o->challenge_tokens, g->d_c, g->d_r, err));
    TRY(challenge_data_hash(c, g->d_c, g->d_r, b->challenge_hash, err));
    for (int i = 0; i < CHALLENGE_CELLS; i++) {
        g->list[i] = c->cell[i].shape;
        g->list[i].lengths_text = c->cell[i].distribution;
    }
    g->n_list = CHALLENGE_CELLS;
    b->distribution = c->distribution;
    b->seed = c->seed;
cleanup:
    return st;
}

static snap_status check_scaled(const bench *b, snap_err *err) {
    if (b->o->scaled && (b->o->lengths || b->o->challenge || !b->grid.n_list))
        return err_set(err, SNAP_E_USAGE,
                       "--scaled adds shapes to those of --shapes: name some there, and leave out "
                       "--lengths and --challenge");
    return SNAP_OK;
}

static snap_status read_options(bench *b, snap_err *err) {
    b->seed = (uint64_t)b->o->seed;
    snap_status st = bench_grid_parse(&b->grid, &b->o->grid, err);
    if (st == SNAP_OK)
        st = read_lengths(b, err);
    if (st == SNAP_OK)
        st = check_scaled(b, err);
    if (st == SNAP_OK)
        st = numbers_kind_parse(b->o->distribution, &b->distribution, err);
    if (st == SNAP_OK)
        st = read_challenge(b, err);
    if (st == SNAP_OK)
        st = arm_specs_parse(&b->o->arms, &b->mem, b->specs, err);
    if (st == SNAP_OK && b->o->arms.n && b->o->grid.ablation)
        st = err_set(err, SNAP_E_USAGE, "--ablation needs the arms of --arms: leave out --arm");
    b->rows = js_new_array();
    if (st == SNAP_OK && !b->rows)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for rows");
    return st;
}

/* Adds shapes that fit the first device. The result has them as rows, and the other shapes in its
 * configuration. */
static snap_status add_scaled(bench *b, snap_err *err) {
    const bench_device *d = bench_main_device(b);
    if (!b->o->scaled)
        return SNAP_OK;
    return scaled_shapes_add(&b->grid, d->ceilings.best.read.rate, d->info.memory_bytes, err);
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
    const bench_device *d = &b->devices[0];
    sweep_options sweep = {.backend = d->backend,
                           .arms = b->arms,
                           .n_arms = o->arms.n,
                           .grid = &b->grid,
                           .distribution = b->distribution,
                           .lengths = o->lengths ? &b->lengths : NULL,
                           .challenge = o->challenge ? &b->challenge : NULL,
                           .challenge_hash = b->challenge_hash,
                           .seed = b->seed,
                           .limits = {.noise = kNoise,
                                      .min_samples = (size_t)o->min_samples,
                                      .max_samples = kMaxSamples,
                                      .min_time_s = o->min_time_s,
                                      .timeout_s = o->timeout_s},
                           .limit_s = o->limit_s,
                           .rest = o->rest,
                           .sustained_s = o->sustained_s,
                           .kernel_hash = d->hashed ? d->hash : NULL,
                           .code_is_file = code_is_file(d->device.backend),
                           .cancel = o->cancel,
                           .ctx = b,
                           .find = find_row,
                           .keep = keep_row,
                           .progress = show_progress};
    b->progress = term_progress_start("bench", sweep_total(&sweep));
    snap_err why = {0};
    snap_status st = sweep_run(&sweep, b->rows, &why);
    term_progress_end(&b->progress);
    int each = sweep_total(&sweep) / bench_grid_shapes(&b->grid);
    b->interrupted = st == SNAP_E_CANCELLED;
    b->shapes_done = each ? (int)js_len(b->rows) / each : 0;
    return b->interrupted || st == SNAP_OK ? SNAP_OK : err_set(err, st, "%s", why.text);
}

/* ---- a run ---- */

/* Removes the journal of a run that failed before its first row, so that the run can be repeated
 * with other options. An error here is ignored: the error of the run is reported instead. */
static void drop_empty_journal(bench *b) {
    if (b->journal && results_journal_is_empty(b->journal)) {
        snap_status st = results_journal_remove(b->journal, NULL);
        (void)st;
        b->journal = NULL;
    }
}

static void release(bench *b, snap_status st) {
    if (st != SNAP_OK && st != SNAP_E_CANCELLED)
        drop_empty_journal(b);
    results_journal_close(b->journal);
    js_free(b->rows);
    results_free(b->results);
    for (int i = 0; i < b->n; i++)
        bench_device_close(&b->devices[i]);
    parallel_free(b->pool);
    lengths_release(&b->lengths);
    arena_release(&b->mem);
    free(b);
}

snap_status bench_run(const bench_options *o, const js *config, results **out, snap_err *err) {
    snap_status st;
    bench *b = calloc(1, sizeof *b);
    *out = NULL;
    if (!b)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    b->o = o;
    TRY(read_options(b, err));
    TRY(bench_open_devices(b, config, err));
    TRY(bench_find_ceilings(b, err));
    TRY(add_scaled(b, err));
    TRY(sweep_grid(b, err));
    if (b->interrupted) {
        st = bench_keep_interrupted(b, err);
    } else {
        TRY(bench_derive(b, err));
        TRY(bench_save(b, err));
        st = sweep_verdict(b->rows, err);
    }
    if (js_len(b->rows)) {
        *out = b->results;
        b->results = NULL;
    }
cleanup:
    release(b, st);
    return st;
}
