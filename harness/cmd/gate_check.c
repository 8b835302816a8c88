/* gate_check.c - `gate check` and `gate history` */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/term.h"
#include "harness/cmd/gate.h"
#include "harness/gate/files.h"
#include "harness/gate/quality.h"

#define F gate_flags_now

/* ---- gate check ---- */

typedef struct {
    results *run;
    char *samples; /* RUN/samples.jsonl; NULL = the argument is a file, or has none */
} side;

static snap_status load(side *s, const char *option, const char *argument, snap_err *err) {
    if (!argument)
        return err_set(err, SNAP_E_USAGE, "gate check needs %s", option);
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

static snap_status open_history(gate_history **h, const results *current, snap_err *err) {
    char machine[200];
    *h = NULL;
    if (!F.history)
        return SNAP_OK;
    history_machine(current, machine);
    return history_load(h, F.history, machine, true, err);
}

static snap_status check(const side *before, const side *now, const gate_history *history, js *rows,
                         snap_err *err) {
    const gate_file_options files = {.limits = gate_flags_limits(),
                                     .error_growth = F.error_growth_pct / 100,
                                     .allow_shared = F.allow_shared,
                                     .any_machine = F.any_machine,
                                     .history = history};
    const gate_quality_options quality = {.alpha = F.alpha_pct / 100,
                                          .baseline_samples = before->samples,
                                          .current_samples = now->samples,
                                          .seed = (uint64_t)F.seed};
    snap_status st = SNAP_OK;
    TRY(gate_check_speed(before->run, now->run, &files, rows, err));
    TRY(gate_check_fidelity(before->run, now->run, &files, rows, err));
    TRY(gate_check_quality(before->run, now->run, &quality, rows, err));
    if (!js_len(rows))
        st = err_set(err, SNAP_E_USAGE, "'%s' and '%s' have nothing to compare", F.baseline,
                     F.current);
cleanup:
    return st;
}

snap_status gate_cmd_check(opt_shared *shared, snap_err *err) {
    side before = {0}, now = {0};
    gate_history *history = NULL;
    results *r = NULL;
    js *rows = js_new_array();
    snap_status st = SNAP_OK;
    TRY(load(&before, "--baseline", F.baseline, err));
    TRY(load(&now, "--current", F.current, err));
    TRY(open_history(&history, now.run, err));
    TRY(results_new(&r, "gate", shared->resolved, F.seed, err));
    TRY(check(&before, &now, history, rows, err));
    if (F.history)
        TRY(history_append(F.history, now.run, err));
    st = gate_cmd_finish(r, rows, shared, err);
cleanup:
    release(&before);
    release(&now);
    history_free(history);
    results_free(r);
    js_free(rows);
    return st;
}

/* ---- gate history ---- */

static void fill_table(table *t, const js *rows) {
    static const char *const heads[] = {"cell",      "run",      "started", "commit",
                                        "us before", "us after", "change",  "p"};
    *t = table_new(heads, 8);
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        table_cell(t, "%s", js_get_str(row, "name"));
        table_cell(t, "%lld", (long long)js_get_int(row, "at", 0));
        table_cell(t, "%s", js_get_str(row, "started"));
        table_cell(t, "%.12s", js_get_str(row, "commit"));
        table_number(t, js_get_num(row, "baseline_ns", 0) / 1e3, 1);
        table_number(t, js_get_num(row, "current_ns", 0) / 1e3, 1);
        table_cell(t, "%+.1f %%", 100 * (js_get_num(row, "ratio", 1) - 1));
        table_number(t, js_get_num(row, "p", 1), 3);
    }
}

snap_status gate_cmd_history(opt_shared *shared, snap_err *err) {
    gate_history *h = NULL;
    results *r = NULL;
    js *rows = NULL;
    table t = {0};
    snap_status st = SNAP_OK;
    TRY(history_load(&h, shared->args[1], NULL, false, err));
    TRY(history_changes(h, &rows, err));
    TRY(results_new(&r, "gate", shared->resolved, F.seed, err));
    TRY(results_add_all(r, "verdicts", js_copy(rows), err));
    fill_table(&t, rows);
    TRY(device_finish(r, F.out, shared, &t, err));
    if (!shared->json)
        (void)printf("%zu changes in %zu runs\n", js_len(rows), history_runs(h));
cleanup:
    table_release(&t);
    history_free(h);
    results_free(r);
    js_free(rows);
    return st;
}
