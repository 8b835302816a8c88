#include "harness/cmd/fidelity_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/share.h"
#include "base/text.h"
#include "generator/local/checkpoint/digest.h"
#include "harness/bench/grid.h"
#include "harness/bench/model_fidelity.h"
#include "harness/cmd/cmd.h"
#include "harness/eval/forecast_run.h"

const char *fidelity_device(const fidelity_model_args *a) {
    const char *name = a->device->backend;
    return text_equal(name, "auto") || text_equal(name, "cpu") ? NULL : name;
}

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
    const fidelity_rows *s = ctx;
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
    fidelity_rows *s = ctx;
    (void)all;
    term_progress_update(&s->progress, done, "tokens");
}

static snap_status measure(fidelity_rows *s, const char *text, snap_err *err) {
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
                                   .device = fidelity_device(a),
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
    fidelity_rows *s = ctx;
    term_progress_update(&s->progress, answers, "answers");
}

static snap_status predict(fidelity_rows *s, snap_err *err) {
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
                                   .device = fidelity_device(a),
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
static snap_status read_and_measure(fidelity_rows *s, snap_err *err) {
    snap_status st;
    buf text = {0};
    TRY(fs_read(s->args->text, &text, err));
    TRY(hash_bytes(text.data, text.len, s->text_sha256, err));
    st = measure(s, buf_str(&text), err);
cleanup:
    buf_release(&text);
    return st;
}

snap_status fidelity_rows_make(fidelity_rows *s, snap_err *err) {
    return s->args->predict ? predict(s, err) : read_and_measure(s, err);
}
