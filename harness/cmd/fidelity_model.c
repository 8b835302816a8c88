#include "harness/cmd/fidelity_model.h"

#include <stdio.h>

#include "base/text.h"
#include "harness/bench/model_fidelity.h"
#include "harness/cmd/fidelity_rows.h"
#include "harness/cmd/print.h"
#include "harness/record/device_results.h"
#include "harness/view/fidelity_tables.h"

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

static snap_status open_results(fidelity_rows *s, const opt_shared *shared, snap_err *err) {
    mla_backend *be = NULL;
    device_options where = *s->args->device;
    if (!fidelity_device(s->args))
        where.backend = "cpu";
    snap_status st = device_open(&be, &where, err);
    if (st == SNAP_OK)
        st = results_of_device(&s->r, be, &where, "fidelity", shared->resolved,
                               s->args->diverge || s->args->predict ? s->args->seed : 0, err);
    mla_backend_close(be);
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
    if (a->layers && fidelity_device(a))
        return err_set(err, SNAP_E_USAGE, "--layers works on the CPU only: leave out --backend %s",
                       fidelity_device(a));
    if (a->prefill && fidelity_device(a) && !text_equal(fidelity_device(a), "cuda"))
        return err_set(err, SNAP_E_USAGE,
                       "--backend %s computes the attention of decode steps only: leave out "
                       "--prefill",
                       fidelity_device(a));
    if (a->diverge && a->prefill)
        return err_set(err, SNAP_E_USAGE,
                       "--diverge decodes the text token by token: leave out --prefill");
    return SNAP_OK;
}

snap_status fidelity_model_run(const fidelity_model_args *a, const opt_shared *shared,
                               snap_err *err) {
    snap_status st;
    table last = {0};
    fidelity_rows s = {.args = a};
    model_fidelity_kind main = a->predict ? MODEL_FIDELITY_FORECASTS : MODEL_FIDELITY_PREDICTIONS;
    TRY(check(a, err));
    TRY(open_results(&s, shared, err));
    TRY(fidelity_rows_make(&s, err));
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
