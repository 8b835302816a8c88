#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/term.h"
#include "harness/bench/grading.h"
#include "harness/bench/sweep.h"
#include "harness/cmd/bench_e2e.h"
#include "harness/cmd/bench_tokenizer.h"
#include "harness/cmd/device.h"
#include "harness/measure/ceilings.h"
#include "harness/measure/code_hash.h"

enum { kProbeRounds = 3, kRetries = 3, kMaxSamples = 10000 };
static const double kProbeSeconds = 0.15;
static const double kNoise = 0.005;

static device_options device = DEVICE_DEFAULTS;
static bench_grid_text grid_text = {.arms = "bf16,fp8",
                                    .scopes = "kernel,served",
                                    .heads = "1,2,16,128",
                                    .s_q = "1",
                                    .batch = "8",
                                    .context = "8192",
                                    .d_c = 512,
                                    .d_r = 64};
static const char *distribution = "normal";
static int64_t seed = 1, min_samples = 10;
static double min_time = 0.25, timeout = 5, rest = 2, sustained;
static const char *ceilings_path, *out;
static const char *what = "kernel", *model_dir, *text_path;
static bench_e2e_options e2e;

static const opt options[] = {
    {OPT_STR, "what", 0, &what, "NAME",
     "kernel: MLA decode steps; grading: verdicts a second on one core, of pairs made up here; of "
     "the options below it takes --seed and --min-time; e2e: decode steps of whole models with "
     "random weights, by --model-config, --arms, --batch (which may list max) and --context; "
     "tokenizer: a checkpoint's on one core, by --model, --text, --seed and --min-time",
     0, 0},
    {.type = OPT_GROUP, .help = "Grid (comma lists; the sweep is their product)"},
    {OPT_STR, "arms", 0, &grid_text.arms, "LIST", "bf16, fp8", 0, 0},
    {OPT_FLAG, "ablation", 0, &grid_text.ablation, NULL,
     "on a GPU: beside the arms the FP8 one with a technique left out: BF16 arithmetic on what is "
     "dequantised on chip, sums in place, no deep pipeline, the dataflow unfused, the cache copied "
     "to BF16",
     0, 0},
    {OPT_STR, "scope", 0, &grid_text.scopes, "LIST",
     "kernel: attention alone; served: quantising, append and metadata as well", 0, 0},
    {OPT_STR, "heads", 0, &grid_text.heads, "LIST", "query heads on the device, 1..128", 0, 0},
    {OPT_STR, "s-q", 0, &grid_text.s_q, "LIST", "query tokens a sequence, 1..4", 0, 0},
    {OPT_STR, "batch", 0, &grid_text.batch, "LIST", "sequences", 0, 0},
    {OPT_STR, "context", 0, &grid_text.context, "LIST", "tokens in the cache of each", 0, 0},
    {OPT_STR, "shapes", 0, &grid_text.shapes, "LIST",
     "H/s_q/batch/context, instead of the four lists above", 0, 0},
    {OPT_INT, "d-c", 0, &grid_text.d_c, "N", "latent width", 32, MLA_MAX_CONTENT},
    {OPT_INT, "d-r", 0, &grid_text.d_r, "N", "RoPE width", 32, MLA_MAX_ROPE},
    {OPT_STR, "distribution", 0, &distribution, "NAME",
     "normal: N(0,1); mla: RoPE columns with outliers up to 1e3; sink: a token in a thousand that "
     "all "
     "queries like; adversarial: norms over octaves, large products that cancel",
     0, 0},
    {OPT_INT, "seed", 0, &seed, "N", "of the random numbers", 0, 1e15},
    {.type = OPT_GROUP, .help = "Whole models"},
    {OPT_STR, "model-config", 0, &e2e.model_config, "FILE",
     "a model's config.json, or a name of configs/models", 0, 0},
    {OPT_NUM, "memory", 0, &e2e.memory_gb, "GB",
     "of the cache, the same for both arms; 0 = what the batches take", 0, 1e6},
    {OPT_INT, "prompt", 0, &e2e.prompt, "N", "time a prompt of so many tokens as well", 0, 1 << 20},
    {.type = OPT_GROUP, .help = "A tokenizer"},
    {OPT_STR, "model", 'm', &model_dir, "DIR", "the folder of its checkpoint", 0, 0},
    {OPT_STR, "text", 0, &text_path, "FILE", "default: 4 MiB of words drawn letter by letter", 0,
     0},
    DEVICE_OPTIONS(device),
    {.type = OPT_GROUP, .help = "Measuring"},
    {OPT_NUM, "min-time", 0, &min_time, "S", "measured time of a cell, at least", 0, 3600},
    {OPT_NUM, "timeout", 0, &timeout, "S", "wall time of a shape and scope, at most", 0, 3600},
    {OPT_NUM, "rest", 0, &rest, "N",
     "on a GPU: idle time between samples, in times of theirs: steps then run at the clock of a "
     "burst "
     "and not at the one that the power limit allows in the long run",
     0, 100},
    {OPT_NUM, "sustained", 0, &sustained, "S",
     "instead of single steps on a cold cache: loops of so many seconds without a pause, two an "
     "arm; "
     "2 or more for power and tokens per joule",
     0, 600},
    {OPT_INT, "min-samples", 0, &min_samples, "N", "samples of a cell, unless time runs out", 1,
     10000},
    {OPT_STR, "ceilings", 0, &ceilings_path, "PATH",
     "take the ceilings from this result file or run's folder instead of measuring them", 0, 0},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &out, "PATH",
     "write the result file: a .json file or a run's folder; a run that was killed goes on where "
     "it "
     "stopped",
     0, 0},
    {.type = OPT_END},
};

static const opt_command spec = {
    .name = "bench",
    .synopsis = "[options]",
    .about = "Times one MLA decode step of both arms over a grid of shapes. A cell is timed only\n"
             "after its output passed against the FP64 oracle of its own arithmetic; the two arms\n"
             "take turns in one run, on a cold cache. '% roof' is against the ceilings, the best\n"
             "rates that any probe reached; '% then' is against the median of short windows of\n"
             "the same probes between the row's own samples: on a machine that is shared with\n"
             "others it tells the kernel from the neighbours.",
    .examples = "  snapmla bench --heads 16,128 --batch 8 --context 8192\n"
                "  snapmla bench --config configs/cpu.json --out RUN\n"
                "  snapmla bench --what grading\n"
                "  snapmla bench --what tokenizer --model DIR\n"
                "  snapmla bench --what e2e --model-config deepseek-v2-lite --batch 1,64,max",
    .options = options,
};

/* ---- the journal ---- */

typedef struct {
    results_journal *journal; /* NULL without --out */
    term_progress progress;
} run_state;

static const js *find_row(void *ctx, const char *key) {
    const run_state *s = ctx;
    return s->journal ? results_journal_find(s->journal, key) : NULL;
}

static snap_status keep_row(void *ctx, const char *key, const js *row, snap_err *err) {
    const run_state *s = ctx;
    return s->journal ? results_journal_append(s->journal, key, row, err) : SNAP_OK;
}

static void show_progress(void *ctx, int done, int total, const char *note) {
    run_state *s = ctx;
    s->progress.total = total;
    term_progress_update(&s->progress, done, note);
}

/* What rows depend on: the configuration without where ceilings come from and results go. */
static snap_status rows_hash(const js *config, char hash[HASH_HEX], snap_err *err) {
    buf text = {0};
    js *copy = js_copy(config);
    snap_status st = copy ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory");
    (void)js_delete(copy, "out");
    (void)js_delete(copy, "ceilings");
    if (st == SNAP_OK)
        st = js_write(copy, JS_COMPACT, &text, err);
    if (st == SNAP_OK)
        st = hash_bytes(text.data, text.len, hash, err);
    js_free(copy);
    buf_release(&text);
    return st;
}

/* RUN/journal, or FILE.journal. */
static snap_status open_journal(results_journal **journal, const char *run, const js *config,
                                snap_err *err) {
    char hash[HASH_HEX];
    buf path = {0};
    char *file = results_file_of(run);
    snap_status st = SNAP_OK;
    if (!file)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    if (strcmp(file, run) == 0) {
        (void)buf_printf(&path, "%s.journal", run);
    } else {
        (void)buf_printf(&path, "%s/journal", run);
        st = fs_mkdirs(run, err);
    }
    TRY(st);
    TRY(buf_check(&path, "a path", err));
    TRY(rows_hash(config, hash, err));
    TRY(results_journal_open(journal, buf_str(&path), hash, err));
cleanup:
    free(file);
    buf_release(&path);
    return st;
}

/* ---- ceilings ---- */

static snap_status check_device(const results *from, const mla_backend *be, const char *path,
                                snap_err *err) {
    const js *provenance = js_get_object(results_document(from), "provenance");
    const js *backend = js_get_object(provenance, "backend");
    const char *device_name = backend ? js_get_str(backend, "device") : NULL;
    mla_backend_info info;
    mla_backend_describe(be, &info);
    if (device_name && strcmp(device_name, info.device) == 0)
        return SNAP_OK;
    return err_set(err, SNAP_E_ENV, "%s: its ceilings are of '%s', this device is '%s'", path,
                   device_name ? device_name : "none", info.device);
}

static snap_status load_ceilings(ceilings *c, const mla_backend *be, snap_err *err) {
    results *from = NULL;
    char *path = results_file_of(ceilings_path);
    snap_status st = SNAP_OK;
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    TRY(results_load(&from, path, err));
    TRY(check_device(from, be, path, err));
    TRY(ceilings_parse(c, results_section(from, "ceilings"), path, err));
cleanup:
    results_free(from);
    free(path);
    return st;
}

static snap_status first_ceilings(ceilings *c, mla_backend *be, snap_err *err) {
    if (ceilings_path)
        return load_ceilings(c, be, err);
    return ceilings_measure(c, be, kProbeRounds, kProbeSeconds, err);
}

/* A ceiling is the best rate ever seen, between samples too. Where a row undercuts its floor, either the probes met a busy
 * moment, and see more when they look again, or the row is wrong. */
static snap_status derive(js *rows, ceilings *c, mla_backend *be, snap_err *err) {
    for (size_t i = 0; i < js_len(rows); i++)
        row_raise(js_at(rows, i), &c->best);
    snap_status st = sweep_derive(rows, &c->best, err);
    for (int i = 0; i < kRetries && st == SNAP_OK && sweep_has_flag(rows, "below_floor"); i++) {
        TRY(ceilings_measure(c, be, kProbeRounds, kProbeSeconds, err));
        TRY(sweep_derive(rows, &c->best, err));
    }
cleanup:
    return st;
}

/* ---- the table ---- */

static void flags_text(const js *row, char text[TABLE_CELL]) {
    size_t n = 0;
    const js *flags = js_get_array(row, "flags");
    const char *status = js_get_str(row, "status"), *reason = js_get_str(row, "reason");
    text[0] = '\0';
    if (strcmp(status, "passed") != 0)
        (void)snprintf(text, TABLE_CELL, "%s: %s", status, reason ? reason : "");
    for (size_t i = 0; i < js_len(flags) && n < TABLE_CELL; i++)
        n += (size_t)snprintf(text + n, TABLE_CELL - n, "%s%s", i ? " " : "",
                              js_str(js_at(flags, i)));
}

static void add_row(table *t, const js *rows, size_t i) {
    const js *row = js_at(rows, i), *shape = js_get_object(row, "shape");
    const js *perf = js_get_object(row, "performance");
    char flags[TABLE_CELL];
    flags_text(row, flags);
    table_cell(t, "%s", js_get_str(row, "arm"));
    table_cell(t, "%s", js_get_str(row, "scope"));
    table_cell(t, "%lld", (long long)js_get_int(shape, "heads", 0));
    table_cell(t, "%lld", (long long)js_get_int(shape, "s_q", 0));
    table_cell(t, "%lld", (long long)js_get_int(shape, "batch", 0));
    table_cell(t, "%lld", (long long)js_get_int(shape, "context", 0));
    table_number(t, row_number(row, "median_ns") / 1e3, 1);
    table_number(t, row_number(row, "tflops"), 3);
    table_number(t, row_number(row, "gb_s"), 1);
    table_number(t, row_number(row, "roofline_pct"), 1);
    table_number(t, row_paired_pct(row), 1);
    table_cell(t, "%s", perf ? js_get_str(perf, "bound") : "");
    double speedup = sweep_speedup(rows, i);
    table_cell(t, isnan(speedup) ? "" : "%.2fx", speedup);
    table_cell(t, "%s", flags);
}

static void fill_table(table *t, const js *rows) {
    static const char *const heads[] = {"arm",     "scope", "H",        "s_q",  "batch",
                                        "context", "us",    "TFLOPS",   "GB/s", "% roof",
                                        "% then",  "bound", "FP8/BF16", "flags"};
    *t = table_new(heads, 14);
    for (size_t i = 0; i < js_len(rows); i++)
        add_row(t, rows, i);
}

static int count_flagged(const js *rows, const char *flag) {
    int n = 0;
    for (size_t i = 0; i < js_len(rows); i++)
        n += row_has_flag(js_at(rows, i), flag);
    return n;
}

static void warn(const js *rows) {
    int all = (int)js_len(rows), shared = count_flagged(rows, "shared");
    int noisy = count_flagged(rows, "noisy"), weak = count_flagged(rows, "weak_baseline");
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

/* ---- the run ---- */

static snap_status sweep_all(mla_backend *be, const bench_grid *grid, numbers_kind kind,
                             run_state *state, js *rows, snap_err *err) {
    char hash[HASH_HEX];
    bool known = code_hash_of(device.backend, NULL, hash, NULL) == SNAP_OK;
    sweep_options sweep = {.backend = be,
                           .grid = grid,
                           .distribution = kind,
                           .seed = (uint64_t)seed,
                           .limits = {.noise = kNoise,
                                      .min_samples = (size_t)min_samples,
                                      .max_samples = kMaxSamples,
                                      .min_time_s = min_time,
                                      .timeout_s = timeout},
                           .rest = rest,
                           .sustained_s = sustained,
                           .kernel_hash = known ? hash : NULL,
                           .cancel = &cmd_cancelled,
                           .ctx = state,
                           .find = find_row,
                           .keep = keep_row,
                           .progress = show_progress};
    state->progress = term_progress_start("bench", sweep_count(grid));
    snap_status st = sweep_run(&sweep, rows, err);
    term_progress_end(&state->progress);
    if (st == SNAP_E_CANCELLED && state->journal)
        err_prefix(err, "%zu of %d rows are kept for the next run of this command", js_len(rows),
                   sweep_count(grid));
    return st;
}

static snap_status add_results(results *r, const ceilings *c, const js *rows, snap_err *err) {
    snap_status st = results_add_all(r, "ceilings", ceilings_json(c), err);
    if (st == SNAP_OK)
        st = results_add_all(r, "bench", js_copy(rows), err);
    return st;
}

static snap_status run_kernel(opt_shared *shared, snap_err *err) {
    mla_backend *be = NULL;
    results *r = NULL;
    run_state state = {0};
    ceilings c = {0};
    bench_grid grid;
    numbers_kind kind = NUMBERS_NORMAL;
    table t = {0};
    js *rows = js_new_array();
    snap_status st = SNAP_OK;
    TRY(bench_grid_parse(&grid, &grid_text, err));
    TRY(numbers_kind_parse(distribution, &kind, err));
    TRY(device_open(&be, &device, err));
    TRY(device_results(&r, be, &device, "bench", shared, seed, err));
    if (out)
        TRY(open_journal(&state.journal, out, shared->resolved, err));
    TRY(first_ceilings(&c, be, err));
    TRY(sweep_all(be, &grid, kind, &state, rows, err));
    TRY(derive(rows, &c, be, err));
    TRY(add_results(r, &c, rows, err));
    fill_table(&t, rows);
    TRY(device_finish(r, out, shared, &t, err));
    warn(rows);
    st = state.journal ? results_journal_remove(state.journal, err) : SNAP_OK;
    state.journal = NULL;
    if (st == SNAP_OK)
        st = sweep_verdict(rows, err);
cleanup:
    results_journal_close(state.journal);
    table_release(&t);
    js_free(rows);
    results_free(r);
    mla_backend_close(be);
    return st;
}

/* ---- grading ---- */

static snap_status print_grading_json(const grading_row *rows, snap_err *err) {
    buf text = {0};
    js *all = js_new_array();
    bool ok = all != NULL;
    for (int i = 0; i < GRADING_ROWS && ok; i++) {
        js *row = js_new_object();
        ok = row && js_set_str(row, "what", "grading") &&
             js_set_str(row, "grader", rows[i].grader) && js_set_str(row, "input", rows[i].input) &&
             js_set_int(row, "pairs", (int64_t)rows[i].pairs) &&
             js_set_num(row, "gradings_s", rows[i].rate);
        ok = js_push_new(all, row) && ok;
    }
    snap_status st = ok ? js_write(all, JS_PRETTY, &text, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the result");
    if (st == SNAP_OK)
        (void)puts(buf_str(&text));
    js_free(all);
    buf_release(&text);
    return st;
}

static snap_status print_grading(const grading_row *rows, snap_err *err) {
    static const char *const heads[] = {"grader", "input", "pairs", "gradings/s"};
    table t = table_new(heads, 4);
    buf text = {0};
    for (int i = 0; i < GRADING_ROWS; i++) {
        table_cell(&t, "%s", rows[i].grader);
        table_cell(&t, "%s", rows[i].input);
        table_cell(&t, "%zu", rows[i].pairs);
        table_number(&t, rows[i].rate, 0);
    }
    snap_status st = write_text(&t, term_use_color(1), &text, err);
    (void)fputs(buf_str(&text), stdout);
    table_release(&t);
    buf_release(&text);
    return st;
}

static snap_status run_grading(const opt_shared *shared, snap_err *err) {
    grading_row rows[GRADING_ROWS];
    if (out)
        return err_set(err, SNAP_E_USAGE, "--out: what grading reaches is printed only");
    snap_status st = grading_bench((uint64_t)seed, min_time, rows, err);
    if (st != SNAP_OK)
        return st;
    return shared->json ? print_grading_json(rows, err) : print_grading(rows, err);
}

static snap_status run_e2e(const opt_shared *shared, snap_err *err) {
    e2e.out = out;
    e2e.arms = grid_text.arms;
    e2e.contexts = grid_text.context;
    e2e.batches = grid_text.batch;
    e2e.seconds = min_time;
    return bench_e2e(&e2e, &device, shared, err);
}

static snap_status run_tokenizer(const opt_shared *shared, snap_err *err) {
    if (out)
        return err_set(err, SNAP_E_USAGE, "--out: what a tokenizer reaches is printed only");
    return bench_tokenizer(model_dir, text_path, seed, min_time, shared, err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    if (strcmp(what, "e2e") == 0)
        return run_e2e(shared, err);
    if (strcmp(what, "grading") == 0)
        return run_grading(shared, err);
    if (strcmp(what, "tokenizer") == 0)
        return run_tokenizer(shared, err);
    if (strcmp(what, "kernel") == 0)
        return run_kernel(shared, err);
    return err_set(err, SNAP_E_USAGE, "unknown --what '%s' (kernel, e2e, tokenizer, grading)",
                   what);
}

const cmd cmd_bench = {&spec, run, "time both arms over a grid of shapes"};
