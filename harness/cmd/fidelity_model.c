#include "harness/cmd/fidelity_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/share.h"
#include "base/term.h"
#include "base/text.h"
#include "generator/local/checkpoint/digest.h"
#include "harness/bench/grid.h"
#include "harness/bench/model_fidelity.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/eval/forecast_run.h"
#include "harness/record/device_results.h"
#include "harness/view/fidelity_tables.h"

typedef struct {
    const fidelity_model_args *args;
    char text_sha256[HASH_HEX], checkpoint_sha256[HASH_HEX];
    results *r;
    term_progress progress;
} sink;

/* The last component of the path, with slashes at its end if there are any. It is used as the name
 * of the model. */
static const char *name_of(const char *dir) {
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    const char *start = dir + n;
    while (start > dir && start[-1] != '/')
        start--;
    return *start ? start : dir;
}

static snap_status take_row(void *ctx, const model_record *measured, snap_err *err) {
    const sink *s = ctx;
    model_record row = *measured;
    if (!s->args->predict)
        row.parts |= MODEL_TEXT;
    row.model = name_of(s->args->dir);
    row.origin = "measured";
    row.text_sha256 = s->text_sha256;
    row.checkpoint_sha256 = s->checkpoint_sha256;
    row.decoded = !s->args->prefill;
    return results_add(s->r, "model_fidelity", record_write(&model_type, &row), err);
}

static void show_progress(void *ctx, int64_t done, int64_t all) {
    sink *s = ctx;
    (void)all;
    term_progress_update(&s->progress, done, "tokens");
}

/* Prints the table of one kind, or nothing if the kind has no rows. */
static snap_status print_kind(const js *rows, model_fidelity_kind kind, snap_err *err) {
    table t = model_fidelity_table(rows, kind);
    snap_status st = SNAP_OK;
    if (t.n_rows) {
        (void)puts(model_fidelity_title(kind));
        st = print_table(&t, err);
        (void)puts("");
    }
    table_release(&t);
    return st;
}

/* A CUDA device is used only if it is named. The default is the CPU on every machine, so that
 * results of different machines are comparable. */
static bool on_cuda(const fidelity_model_args *a) {
    return text_equal(a->device->backend, "cuda");
}

static snap_status open_results(sink *s, const opt_shared *shared, snap_err *err) {
    mla_backend *be = NULL;
    device_options where = *s->args->device;
    if (!on_cuda(s->args))
        where.backend = "cpu";
    snap_status st = device_open(&be, &where, err);
    if (st == SNAP_OK)
        st = results_of_device(&s->r, be, &where, "fidelity", shared->resolved,
                               s->args->diverge || s->args->predict ? s->args->seed : 0, err);
    mla_backend_close(be);
    return st;
}

static snap_status measure(sink *s, const char *text, snap_err *err) {
    snap_status st = SNAP_OK;
    const fidelity_model_args *a = s->args;
    model_fidelity_row rows[MODEL_FIDELITY_FORMATS];
    int n = 0;
    char *shipped = share_find(a->dir);
    model_fidelity_options what = {.dir = shipped ? shipped : a->dir,
                                   .text = text,
                                   .formats = a->precisions,
                                   .max_tokens = a->max_tokens,
                                   .chunks = a->prefill,
                                   .threads = (int)a->device->threads,
                                   .device = on_cuda(a) ? "cuda" : NULL,
                                   .diverge = (int)a->diverge,
                                   .diverge_places = (int)a->places,
                                   .seed = (uint64_t)a->seed,
                                   .layers = a->layers,
                                   .emit = take_row,
                                   .cancel = &cmd_cancelled,
                                   .progress = show_progress,
                                   .ctx = s};
    if (a->layers)
        TRY(bench_parse_list(a->contexts, "--contexts", 1, MLA_MAX_CONTEXT, what.moments,
                             MODEL_FIDELITY_MOMENTS, &what.n_moments, err));
    TRY(checkpoint_digest(what.dir, s->checkpoint_sha256, err));
    s->progress = term_progress_start("fidelity", 0);
    st = model_fidelity_run(&what, rows, &n, err);
    term_progress_end(&s->progress);
    TRY(st);
    TRY(model_fidelity_emit_rows(rows, n, take_row, s, err));
cleanup:
    free(shipped);
    return st;
}

static void show_answers(void *ctx, int64_t answers) {
    sink *s = ctx;
    term_progress_update(&s->progress, answers, "answers");
}

static snap_status predict(sink *s, snap_err *err) {
    const fidelity_model_args *a = s->args;
    char *shipped = share_find(a->dir);
    const forecast_options what = {.dir = shipped ? shipped : a->dir,
                                   .suite = a->predict,
                                   .data = a->data,
                                   .lengths = a->lengths,
                                   .formats = a->precisions,
                                   .samples = a->samples,
                                   .limit = a->limit,
                                   .max_tokens = a->max_tokens,
                                   .temperature = a->temperature,
                                   .seed = (uint64_t)a->seed,
                                   .threads = (int)a->device->threads,
                                   .device = on_cuda(a) ? "cuda" : NULL,
                                   .cancel = &cmd_cancelled,
                                   .emit = take_row,
                                   .progress = show_answers,
                                   .ctx = s};
    snap_status st = checkpoint_digest(what.dir, s->checkpoint_sha256, err);
    if (st == SNAP_OK) {
        s->progress = term_progress_start("fidelity", 0);
        st = forecast_run(&what, err);
        term_progress_end(&s->progress);
    }
    free(shipped);
    return st;
}

/* Reads the text and measures on it. */
static snap_status read_and_measure(sink *s, snap_err *err) {
    snap_status st;
    buf text = {0};
    TRY(fs_read(s->args->text, &text, err));
    TRY(hash_bytes(text.data, text.len, s->text_sha256, err));
    st = measure(s, buf_str(&text), err);
cleanup:
    buf_release(&text);
    return st;
}

static snap_status check(const fidelity_model_args *a, snap_err *err) {
    if (!a->text && !a->predict)
        return err_set(err, SNAP_E_USAGE,
                       "neither a text nor a suite is given for --model: name a file with --text "
                       "FILE, or a suite with --predict SUITE");
    if (a->predict && (a->text || a->layers || a->diverge || a->prefill))
        return err_set(err, SNAP_E_USAGE,
                       "--predict answers the problems of a suite: leave out --text, --layers, "
                       "--diverge and --prefill");
    if (a->layers && on_cuda(a))
        return err_set(err, SNAP_E_USAGE,
                       "--layers works on the CPU only: leave out --backend cuda");
    if (a->diverge && a->prefill)
        return err_set(err, SNAP_E_USAGE,
                       "--diverge decodes the text token by token: leave out --prefill");
    return SNAP_OK;
}

snap_status fidelity_model_run(const fidelity_model_args *a, const opt_shared *shared,
                               snap_err *err) {
    snap_status st;
    table last = {0};
    sink s = {.args = a};
    model_fidelity_kind main = a->predict ? MODEL_FIDELITY_FORECASTS : MODEL_FIDELITY_PREDICTIONS;
    TRY(check(a, err));
    TRY(open_results(&s, shared, err));
    TRY(a->predict ? predict(&s, err) : read_and_measure(&s, err));
    for (int k = 0; k < MODEL_FIDELITY_PREDICTIONS && !shared->json; k++)
        TRY(print_kind(results_section(s.r, "model_fidelity"), k, err));
    last = model_fidelity_table(results_section(s.r, "model_fidelity"), main);
    TRY(a->out ? results_save_run(s.r, a->out, err) : SNAP_OK);
    TRY(print_results(s.r, shared, &last, err));
cleanup:
    table_release(&last);
    results_free(s.r);
    return st;
}
