#include "harness/gate/check.h"

#include <stdlib.h>

#include "base/fs.h"
#include "harness/gate/files.h"
#include "harness/gate/forecast_gate.h"
#include "harness/gate/quality.h"
#include "harness/gate/serving_gate.h"

typedef struct {
    results *run;
    char *samples; /* RUN/samples.jsonl; NULL if the argument is a file or the run has none */
} side;

static snap_status load(side *s, const char *argument, snap_err *err) {
    char *path = results_file_of(argument);
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", argument);
    snap_status st = results_load(&s->run, path, err);
    if (st == SNAP_OK && fs_is_dir(argument))
        s->samples = fs_join(argument, "samples.jsonl");
    if (s->samples && !fs_exists(s->samples)) {
        free(s->samples);
        s->samples = NULL;
    }
    free(path);
    return st;
}

static void release(side *s) {
    results_free(s->run);
    free(s->samples);
}

static snap_status open_history(gate_history **h, const char *path, const results *current,
                                snap_err *err) {
    char machine[200];
    *h = NULL;
    if (!path)
        return SNAP_OK;
    history_machine(current, machine);
    return history_load(h, path, machine, true, err);
}

/* Times and numerical errors, which only two files can show. */
static snap_status compare_files(const gate_check_options *o, const side *before, const side *now,
                                 const gate_history *history, js *rows, snap_err *err) {
    const gate_file_options files = {.limits = o->limits,
                                     .error_growth = o->error_growth,
                                     .allow_shared = o->allow_shared,
                                     .any_machine = o->any_machine,
                                     .history = history};
    snap_status st = SNAP_OK;
    TRY(gate_check_speed(before->run, now->run, &files, rows, err));
    TRY(gate_check_fidelity(before->run, now->run, &files, rows, err));
cleanup:
    return st;
}

static snap_status nothing(const gate_check_options *o, const side *before, snap_err *err) {
    if (!o->baseline)
        return err_set(err, SNAP_E_USAGE,
                       "'%s' has no comparison of arms and no prediction: give --baseline",
                       o->current);
    return err_set(err, SNAP_E_USAGE, "'%s' and '%s' have nothing to compare%s", o->baseline,
                   o->current,
                   js_len(results_section(before->run, "serving"))
                       ? ": no rate or latency of the baseline has an interval, which needs "
                         "more requests"
                       : "");
}

static snap_status compare(const gate_check_options *o, const side *before, const side *now,
                           const gate_history *history, js *rows, snap_err *err) {
    const gate_quality_options quality = {.alpha = o->limits.alpha,
                                          .baseline_samples = before->samples,
                                          .current_samples = now->samples,
                                          .seed = o->seed};
    const gate_forecast_options forecasts = {.alpha = o->limits.alpha, .margin = o->margin};
    snap_status st = SNAP_OK;
    if (before->run)
        TRY(compare_files(o, before, now, history, rows, err));
    TRY(gate_check_quality(before->run, now->run, &quality, rows, err));
    TRY(gate_check_forecasts(before->run, now->run, &forecasts, rows, err));
    if (before->run)
        TRY(gate_check_serving(before->run, now->run, &o->limits, rows, err));
    if (!js_len(rows))
        st = nothing(o, before, err);
cleanup:
    return st;
}

snap_status gate_check(const gate_check_options *o, js *rows, snap_err *err) {
    side before = {0}, now = {0};
    gate_history *history = NULL;
    snap_status st = SNAP_OK;
    if (!o->current)
        return err_set(err, SNAP_E_USAGE, "gate check needs --current");
    if (o->baseline)
        TRY(load(&before, o->baseline, err));
    TRY(load(&now, o->current, err));
    TRY(open_history(&history, o->history, now.run, err));
    TRY(compare(o, &before, &now, history, rows, err));
    if (o->history)
        TRY(history_append(o->history, now.run, err));
cleanup:
    release(&before);
    release(&now);
    history_free(history);
    return st;
}
