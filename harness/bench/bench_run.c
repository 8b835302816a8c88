#include "harness/bench/bench_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/parallel.h"
#include "base/term.h"
#include "base/text.h"
#include "harness/bench/arm_spec.h"
#include "harness/bench/bench_journal.h"
#include "harness/bench/load_ceilings.h"
#include "harness/bench/scaled_shapes.h"
#include "harness/bench/sweep.h"
#include "harness/measure/code_hash.h"
#include "harness/record/arm_file.h"
#include "harness/record/device_results.h"
#include "kernels/plugin/attend.h"
#include "kernels/plugin/packed.h"

enum { kProbeRounds = 3, kRetries = 3, kMaxSamples = 10000 };
static const double kProbeSeconds = 0.15;
static const double kNoise = 0.005; /* a cell has enough samples at this relative noise
                                       (stats_median_noise()) */

/* One backend of the run, and what was measured on it. A run without named arms has one. */
typedef struct {
    device_options device;
    mla_backend *backend;
    mla_backend_info info;
    ceilings ceilings;
    arm_format *format; /* format of its cache, owned; NULL: that of mla.h */
    char hash[HASH_HEX];
    bool hashed;
} bench_device;

typedef struct {
    const bench_options *o;
    bench_grid grid;
    numbers_kind distribution;
    uint64_t seed;
    lengths_spec lengths; /* if the options name lengths */
    challenge challenge;  /* if the options name one */
    char challenge_hash[HASH_HEX];
    arena mem; /* owns the texts of named arms */
    arm_spec specs[SWEEP_ARMS];
    sweep_arm arms[SWEEP_ARMS]; /* [o->arms.n] */
    bench_device devices[SWEEP_ARMS];
    int n;          /* devices */
    parallel *pool; /* threads that all arms share which use as many as there are
                            processors */
    results *results;
    results_journal *journal; /* NULL if the options name no result file */
    js *rows;                 /* rows of the section "bench" */
    bool interrupted;         /* the sweep was cancelled */
    int shapes_done;          /* complete shapes in `rows` */
    term_progress progress;
} bench;

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

/* ---- devices ---- */

static void describe(bench_device *d) {
    mla_backend_describe(d->backend, &d->info);
    d->hashed = code_hash_of(d->device.backend, NULL, d->hash, NULL) == SNAP_OK;
}

/* Arms on the processors that use all of them share one pool of threads: idle threads spin for a
 * moment, so two pools would disturb each other. */
static snap_status open_named(bench *b, bench_device *d, snap_err *err) {
    mla_backend_options wanted = {.isa = d->device.isa, .threads = (int)d->device.threads};
    snap_status st = device_scale(&wanted.scale, d->device.scale, err);
    if (st != SNAP_OK)
        return st;
    if (!wanted.threads || wanted.threads == parallel_cpus())
        wanted.pool = b->pool;
    return mla_backend_open(&d->backend, d->device.backend, &wanted, err);
}

/* Loads the format that --arm names, or else that of the plugin unless --arm names a precision. */
static snap_status find_format(const bench *b, bench_device *d, const arm_spec *spec,
                               sweep_arm *arm, snap_err *err) {
    const char *own = spec->has_precision ? NULL : packed_own_format(d->backend);
    const char *name = spec->format ? spec->format : own;
    snap_status st = SNAP_OK;
    if (!name)
        return SNAP_OK;
    if (!packed_is_supported(d->backend))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "format %s: the plugin has no attend_packed(), which reads caches in any "
                       "format",
                       name);
    TRY(arm_format_load(&d->format, name, b->grid.d_c, b->grid.d_r, err));
    arm->format = d->format;
    arm->kind = arm_format_kind(&d->format->format);
cleanup:
    return st;
}

static void close_device(bench_device *d) {
    mla_backend_close(d->backend);
    arm_format_free(d->format);
    d->backend = NULL;
    d->format = NULL;
}

static mla_backend_info describe_built_in(const bench_device *d) {
    mla_backend_info info;
    mla_backend_describe(attend_built_in(d->backend), &info);
    return info;
}

/* The first arm with the same ceilings as arm @i. They are those of the device: a plugin or Python
 * file with one function uses the probes of a built-in backend. */
static int rates_of(const bench *b, int i) {
    const mla_backend_info x = describe_built_in(&b->devices[i]);
    for (int k = 0; k < i; k++) {
        if (!b->devices[k].backend)
            continue;
        const mla_backend_info y = describe_built_in(&b->devices[k]);
        if (strcmp(x.name, y.name) == 0 && strcmp(x.device, y.device) == 0 &&
            strcmp(x.kernel, y.kernel) == 0)
            return k;
    }
    return i;
}

/* Opens the backend of each named arm. An arm that cannot be opened keeps its error. */
static snap_status open_arms(bench *b, snap_err *err) {
    snap_status st = parallel_create(&b->pool, 0, err);
    for (int i = 0; i < b->o->arms.n && st == SNAP_OK; i++) {
        const arm_spec *spec = &b->specs[i];
        bench_device *d = &b->devices[b->n++];
        sweep_arm *arm = &b->arms[i];
        *arm = (sweep_arm){
            .name = spec->name, .options = spec->options, .kind = spec->kind, .rates = i};
        d->device = spec->device;
        if (open_named(b, d, &arm->why) == SNAP_OK &&
            find_format(b, d, spec, arm, &arm->why) == SNAP_OK) {
            describe(d);
            arm->backend = d->backend;
            arm->kernel_hash = d->hashed ? d->hash : NULL;
            arm->code_is_file = code_is_file(d->device.backend);
            arm->rates = rates_of(b, i);
        } else {
            close_device(d);
            st = fault_of_process(SNAP_OK, err);
            term_warn("arm %s cannot be opened: %s", spec->name, arm->why.text);
        }
    }
    return st;
}

/* The device that the result file names: that of the first arm that could be opened. NULL: none
 * could. */
static const bench_device *main_device(const bench *b) {
    for (int i = 0; i < b->n; i++)
        if (b->devices[i].backend)
            return &b->devices[i];
    return NULL;
}

static snap_status no_device(const bench *b, snap_err *err) {
    return err_set(err, b->arms[0].why.code, "no arm can be opened, first: %s: %s", b->arms[0].name,
                   b->arms[0].why.text);
}

/* Copies the plugin or Python file of an arm to the run's folder, so that `pack` finds the version
 * that was measured. */
static snap_status keep_file(const bench *b, int i, snap_err *err) {
    const bench_device *d = &b->devices[i];
    char name[ARM_FILE_NAME], hex[HASH_HEX];
    buf bytes = {.limit = (size_t)1 << 30};
    char *to = NULL;
    snap_status st = SNAP_OK;
    if (!d->backend || !d->hashed || !arm_file_name(b->arms[i].name, b->arms[i].options, name))
        return SNAP_OK;
    to = fs_join(b->o->out, name);
    TRY(to ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a path"));
    TRY(fs_read_regular(strchr(d->device.backend, ':') + 1, &bytes, err));
    TRY(hash_bytes(buf_str(&bytes), bytes.len, hex, err));
    if (strcmp(hex, d->hash) != 0)
        TRY(err_set(err, SNAP_E_ENV, "the file of arm %s changes while the run begins",
                    b->arms[i].name));
    TRY(fs_write_atomic(to, bytes.data, bytes.len, err));
cleanup:
    buf_release(&bytes);
    free(to);
    return st;
}

/* A run whose result is a single file keeps no copies. */
static snap_status keep_files(const bench *b, snap_err *err) {
    char *file = b->o->out ? results_file_of(b->o->out) : NULL;
    bool folder = file && strcmp(file, b->o->out) != 0;
    snap_status st = SNAP_OK;
    if (b->o->out && !file)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    for (int i = 0; folder && st == SNAP_OK && i < b->o->arms.n; i++)
        st = keep_file(b, i, err);
    free(file);
    return st;
}

static snap_status open_device(bench *b, const js *config, snap_err *err) {
    const bench_options *o = b->o;
    const bench_device *d = NULL;
    snap_status st = SNAP_OK;
    if (o->arms.n) {
        TRY(open_arms(b, err));
    } else {
        b->n = 1;
        b->devices[0].device = o->device;
        TRY(device_open(&b->devices[0].backend, &o->device, err));
        describe(&b->devices[0]);
    }
    d = main_device(b);
    if (!d)
        return no_device(b, err);
    TRY(results_of_device(&b->results, d->backend, &d->device, "bench", config, (int64_t)b->seed,
                          err));
    if (o->out)
        TRY(bench_journal_open(&b->journal, o->out, config, err));
    TRY(keep_files(b, err));
cleanup:
    return st;
}

/* Whether the ceilings of device @i are measured: it is open, and no device before it has the
 * same. */
static bool has_ceilings(const bench *b, int i) {
    return b->devices[i].backend && (!b->o->arms.n || b->arms[i].rates == i);
}

static snap_status find_ceilings(bench *b, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < b->n && st == SNAP_OK; i++) {
        bench_device *d = &b->devices[i];
        if (!has_ceilings(b, i))
            continue;
        if (b->o->ceilings_path)
            st = load_ceilings(&d->ceilings, d->backend, b->o->ceilings_path, err);
        else
            st = ceilings_measure(&d->ceilings, d->backend, kProbeRounds, kProbeSeconds, err);
        if (st != SNAP_OK && b->o->arms.n)
            err_prefix(err, "arm %s: ceilings", b->arms[i].name);
    }
    return st;
}

/* Adds shapes that fit the first device. The result has them as rows, and the other shapes in its
 * configuration. */
static snap_status add_scaled(bench *b, snap_err *err) {
    const bench_device *d = main_device(b);
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

/* ---- what follows from the samples ---- */

/* Derives the rows of each arm whose ceilings are those of device @i. */
static snap_status derive_arms(bench *b, int i, snap_err *err) {
    const mla_ceilings *best = &b->devices[i].ceilings.best;
    if (!b->o->arms.n)
        return sweep_derive(b->rows, NULL, best, err);
    snap_status st = SNAP_OK;
    for (int k = 0; k < b->o->arms.n && st == SNAP_OK; k++)
        if (b->arms[k].rates == i)
            st = sweep_derive(b->rows, b->arms[k].name, best, err);
    return st;
}

static snap_status raise_arms(const bench *b, int i, mla_ceilings *to, snap_err *err) {
    if (!b->o->arms.n)
        return sweep_raise(b->rows, NULL, to, err);
    snap_status st = SNAP_OK;
    for (int k = 0; k < b->o->arms.n && st == SNAP_OK; k++)
        if (b->arms[k].rates == i)
            st = sweep_raise(b->rows, b->arms[k].name, to, err);
    return st;
}

static size_t count_below(const bench *b, int i) {
    if (!b->o->arms.n)
        return sweep_count_flag(b->rows, NULL, "below_floor");
    size_t n = 0;
    for (int k = 0; k < b->o->arms.n; k++)
        if (b->arms[k].rates == i)
            n += sweep_count_flag(b->rows, b->arms[k].name, "below_floor");
    return n;
}

/* A ceiling is the best rate known, also from probes between samples. If a row is below its floor,
 * either the probes ran at a busy moment and reach more when repeated, or the row is wrong.
 * The probes are therefore repeated up to kRetries times. */
static snap_status derive_device(bench *b, int i, snap_err *err) {
    bench_device *d = &b->devices[i];
    mla_ceilings probed = {0};
    snap_status st = SNAP_OK;
    TRY(raise_arms(b, i, &probed, err));
    ceilings_add(&d->ceilings,
                 (mla_probe_rates){probed.read.rate, probed.bf16.rate, probed.fp8.rate});
    TRY(derive_arms(b, i, err));
    for (int k = 0; k < kRetries && count_below(b, i) && !b->interrupted; k++) {
        TRY(ceilings_measure(&d->ceilings, d->backend, kProbeRounds, kProbeSeconds, err));
        TRY(derive_arms(b, i, err));
    }
cleanup:
    return st;
}

static snap_status derive(bench *b, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < b->n && st == SNAP_OK; i++)
        if (has_ceilings(b, i))
            st = derive_device(b, i, err);
    return st;
}

/* Adds the ceilings of each device; those of a named arm have its name. */
static snap_status save_ceilings(bench *b, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < b->n && st == SNAP_OK; i++) {
        if (!has_ceilings(b, i))
            continue;
        js *rows = ceilings_json(&b->devices[i].ceilings);
        bool ok = rows != NULL;
        for (size_t k = 0; ok && b->o->arms.n && k < js_len(rows); k++)
            ok = js_set_str(js_at(rows, k), "arm", b->arms[i].name);
        if (ok) {
            st = results_add_all(b->results, "ceilings", rows, err);
        } else {
            js_free(rows);
            st = err_set(err, SNAP_E_NOMEM, "out of memory for ceilings");
        }
    }
    return st;
}

static snap_status add_sections(bench *b, snap_err *err) {
    snap_status st = save_ceilings(b, err);
    return st == SNAP_OK ? results_add_all(b->results, "bench", js_copy(b->rows), err) : st;
}

static snap_status save(bench *b, snap_err *err) {
    snap_status st = add_sections(b, err);
    if (st == SNAP_OK && b->o->out)
        st = results_save_run(b->results, b->o->out, err);
    if (st == SNAP_OK && b->journal) {
        st = results_journal_remove(b->journal, err);
        b->journal = NULL;
    }
    return st;
}

/* Whether the result file exists, unless it is known to be that of an interrupted run. A file that
 * cannot be read may be complete, too. */
static bool has_complete_file(const bench *b) {
    char *path = results_file_of(b->o->out);
    results *r = NULL;
    bool interrupted =
        path && results_load(&r, path, NULL) == SNAP_OK && results_interrupted(r) != NULL;
    bool complete = !path || (fs_exists(path) && !interrupted);
    results_free(r);
    free(path);
    return complete;
}

/* Makes a result of the complete shapes and scopes of a run that was interrupted, and writes it,
 * unless a complete result of an earlier run would be lost. The journal stays. Returns
 * SNAP_E_CANCELLED, or another error if that fails. */
static snap_status keep_interrupted(bench *b, snap_err *err) {
    char has[64];
    bool keeps = b->o->out && js_len(b->rows), complete = keeps && has_complete_file(b);
    snap_status st = SNAP_OK;
    (void)snprintf(has, sizeof has, "%d of %d shapes", b->shapes_done, bench_grid_shapes(&b->grid));
    TRY(derive(b, err));
    TRY(add_sections(b, err));
    if (keeps && !complete)
        TRY(results_save_run_unfinished(b->results, has, b->o->out, err));
    if (complete)
        st = err_set(err, SNAP_E_CANCELLED,
                     "interrupted: %s are kept in the journal, because '%s' is the complete result "
                     "of an earlier run; the same command continues",
                     has, b->o->out);
    else if (keeps)
        st =
            err_set(err, SNAP_E_CANCELLED,
                    "interrupted: %s are kept in '%s'; the same command continues", has, b->o->out);
    else
        st = err_set(err, SNAP_E_CANCELLED, "interrupted: %s", has);
cleanup:
    return st;
}

static void release(bench *b) {
    results_journal_close(b->journal);
    js_free(b->rows);
    results_free(b->results);
    for (int i = 0; i < b->n; i++)
        close_device(&b->devices[i]);
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
    TRY(open_device(b, config, err));
    TRY(find_ceilings(b, err));
    TRY(add_scaled(b, err));
    TRY(sweep_grid(b, err));
    if (b->interrupted) {
        st = keep_interrupted(b, err);
    } else {
        TRY(derive(b, err));
        TRY(save(b, err));
        st = sweep_verdict(b->rows, err);
    }
    if (js_len(b->rows)) {
        *out = b->results;
        b->results = NULL;
    }
cleanup:
    release(b);
    return st;
}

/* ---- warnings ---- */

/* The first reason why a row has no energy; NULL if there is none. */
static const char *energy_missing_of(const js *rows) {
    const char *why = NULL;
    for (size_t i = 0; i < js_len(rows) && !why; i++)
        why = js_get_str(js_get_object(js_at(rows, i), "performance"), "energy_missing");
    return why;
}

/* The number of timed single steps that may have found their input in the cache. */
static int count_warm(const js *rows) {
    int n = 0;
    for (size_t i = 0; i < js_len(rows); i++) {
        const char *cold = js_get_str(js_at(rows, i), "cold"),
                   *mode = js_get_str(js_at(rows, i), "mode"),
                   *status = js_get_str(js_at(rows, i), "status");
        n += cold && mode && status && text_equal(cold, "none") && text_equal(mode, "burst") &&
             text_equal(status, "passed");
    }
    return n;
}

void bench_warn(const js *rows) {
    const char *no_energy = energy_missing_of(rows);
    if (no_energy)
        term_warn("energy was not measured: %s", no_energy);
    int all = (int)js_len(rows), warm = count_warm(rows),
        shared = (int)sweep_count_flag(rows, NULL, "shared");
    int noisy = (int)sweep_count_flag(rows, NULL, "noisy"),
        weak = (int)sweep_count_flag(rows, NULL, "weak_baseline"),
        uncaptured = (int)sweep_count_flag(rows, NULL, "not_captured"),
        late = (int)sweep_count_flag(rows, NULL, "host_limited");
    if (warm)
        term_warn(
            "%d of %d rows are of a warm cache, because the backend does not know its size (a "
            "plugin sets cache_bytes in describe()): 'snapmla compare' shows no speed "
            "relative to rows of a cold cache",
            warm, all);
    if (uncaptured)
        term_warn(
            "%d of %d rows are of kernels that no CUDA graph could record: their times contain "
            "what the host does for each step",
            uncaptured, all);
    if (late)
        term_warn("in %d of %d rows the device could begin a step before the host had enqueued all "
                  "of it: their times can contain waiting for the host",
                  late, all);
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
