/* gate_history.c - `snapmla gate history FILE` */
#include <stdio.h>

#include "harness/cmd/gate.h"
#include "harness/cmd/print.h"
#include "harness/gate/history.h"
#include "harness/record/device_results.h"
#include "harness/view/gate_verdicts.h"

static gate_output output;

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Output"}, GATE_OUT_OPTION(output), {.type = OPT_END}};

static snap_status run(opt_shared *shared, snap_err *err) {
    gate_history *h = NULL;
    results *r = NULL;
    js *rows = NULL;
    table t = {0};
    snap_status st = SNAP_OK;
    TRY(history_load(&h, shared->args[0], NULL, false, err));
    TRY(history_changes(h, &rows, err));
    TRY(results_new(&r, "gate", shared->resolved, 0, err));
    TRY(results_add_all(r, "verdicts", js_copy(rows), err));
    if (output.out)
        TRY(results_save_run(r, output.out, err));
    t = changes_table(rows);
    TRY(print_results(r, shared, &t, err));
    if (!shared->json)
        (void)printf("%zu changes in %zu runs\n", js_len(rows), history_runs(h));
cleanup:
    table_release(&t);
    history_free(h);
    results_free(r);
    js_free(rows);
    return st;
}

const opt_command cmd_gate_history = {
    .name = "gate history",
    .summary = "list lasting changes of the times in a history",
    .synopsis = "FILE [options]",
    .about = "Lists the runs in a history of times after which a cell stayed faster or slower\n"
             "(change-point test: E-divisive). 'snapmla gate check --history FILE' writes the\n"
             "history.",
    .exits = GATE_EXITS,
    .examples = "  snapmla gate history times.jsonl\n"
                "  snapmla gate history times.jsonl --json",
    .options = options,
    .min_args = 1,
    .max_args = 1,
    .run = run,
    .of = &cmd_gate,
};
