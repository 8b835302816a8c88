/* gate_selftest.c - `snapmla gate selftest` */
#include <stdio.h>
#include <unistd.h>

#include "base/term.h"
#include "harness/cmd/gate.h"
#include "harness/cmd/print.h"
#include "harness/gate/selftest.h"
#include "harness/gate/verdicts.h"
#include "harness/record/device_results.h"
#include "harness/view/gate_selftest.h"

static gate_timing timing = GATE_TIMING_DEFAULTS;
static gate_deciding deciding = GATE_DECIDING_DEFAULTS;
static double minutes = 3;
static gate_output output;

static const opt options[] = {
    GATE_TIMING_OPTIONS(timing),
    {OPT_NUM, "minutes", 0, &minutes, "N", "approximate run time in minutes", 0.1, 600},
    DEVICE_OPTIONS(timing.device),
    GATE_DECIDING_OPTIONS(deciding),
    GATE_SESSIONS_OPTIONS(deciding),
    {.type = OPT_GROUP, .help = "Output"},
    GATE_OUT_OPTION(output),
    {.type = OPT_END},
};

static snap_status print(const results *r, const selftest *s, const opt_shared *shared,
                         snap_err *err) {
    buf text = {0};
    if (shared->json)
        return print_json(results_document(r), err);
    snap_status st = selftest_text(s, term_use_color(STDOUT_FILENO), &text, err);
    if (st == SNAP_OK)
        st = print_text(&text, "a table", err);
    buf_release(&text);
    return st;
}

/* Both arms are this program with the same options. selftest_run() slows the second one in all
 * cases but the first. */
static void set_arms(gate_run_options *o) {
    for (int i = 0; i < 2; i++) {
        gate_side *a = &o->arms[i];
        a->threads = (int)timing.device.threads;
        (void)snprintf(a->name, sizeof a->name, "%s", i ? "B" : "A");
        (void)snprintf(a->program, sizeof a->program, "/proc/self/exe");
        (void)snprintf(a->backend, sizeof a->backend, "%s", timing.device.backend);
        (void)snprintf(a->isa, sizeof a->isa, "%s", timing.device.isa);
    }
}

static snap_status run(opt_shared *shared, snap_err *err) {
    bench_grid grid = {0};
    gate_run_options o = gate_run_options_of(&timing, &deciding, &grid);
    selftest s = {0};
    results *r = NULL;
    js *rows = NULL;
    snap_status st = SNAP_OK;
    TRY(bench_grid_parse(&grid, &timing.grid, err));
    TRY(results_new(&r, "gate", shared->resolved, timing.seed, err));
    set_arms(&o);
    term_progress progress = term_progress_start("gate selftest", 1);
    o.ctx = &progress;
    st = selftest_run(&o, 60 * minutes, &s, err);
    term_progress_end(&progress);
    TRY(st);
    TRY(results_set_backend(r, s.about.backend, s.about.device, s.about.kernel, o.arms[1].threads,
                            err));
    TRY(results_set_plugin(r, o.arms[1].backend, err));
    rows = selftest_rows(&s, &o.limits);
    TRY(results_add_all(r, "verdicts", js_copy(rows), err));
    if (output.out)
        TRY(results_save_run(r, output.out, err));
    TRY(print(r, &s, shared, err));
    st = verdict_status(rows, err);
cleanup:
    selftest_release(&s);
    results_free(r);
    js_free(rows);
    return st;
}

const opt_command cmd_gate_selftest = {
    .name = "gate selftest",
    .summary = "measure the gate's false alarms and detection on this machine",
    .synopsis = "[options]",
    .about = "Runs this build against itself, unchanged and slowed: by 1, 2 and 5 %, by 20 ms in\n"
             "every 97th step, and by 8 % in every 10th turn. Reports the rate of false alarms,\n"
             "how often each case is detected, and the smallest constant slow-down that is. The\n"
             "exit code says whether this machine can be used for a gate.",
    .exits = GATE_EXITS,
    .examples = "  snapmla gate selftest --out selftest.json\n"
                "  snapmla gate selftest --minutes 10 --heads 16 --context 8192",
    .options = options,
    .run = run,
    .of = &cmd_gate,
};
