/* gate_run.c - `snapmla gate run A B` */
#include <stdio.h>

#include "base/term.h"
#include "harness/cmd/gate.h"

static gate_timing timing = GATE_TIMING_DEFAULTS;
static gate_deciding deciding = GATE_DECIDING_DEFAULTS;
static gate_output output = GATE_OUTPUT_DEFAULTS;

static const opt options[] = {
    GATE_TIMING_OPTIONS(timing),     DEVICE_OPTIONS(timing.device), GATE_DECIDING_OPTIONS(deciding),
    GATE_SESSIONS_OPTIONS(deciding), GATE_OUTPUT_OPTIONS(output),   {.type = OPT_END},
};

static snap_status parse_arms(gate_side arms[2], const opt_shared *shared, snap_err *err) {
    for (int i = 0; i < 2; i++) {
        gate_side fallback = {.threads = (int)timing.device.threads};
        (void)snprintf(fallback.name, sizeof fallback.name, "%s", i ? "B" : "A");
        (void)snprintf(fallback.backend, sizeof fallback.backend, "%s", timing.device.backend);
        (void)snprintf(fallback.isa, sizeof fallback.isa, "%s", timing.device.isa);
        snap_status st = gate_side_parse(&arms[i], shared->args[i], &fallback, err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

/* The result file names the backend of the second arm, which is the one being judged. */
static snap_status describe(results *r, const gate_run_options *o, const gate_measured *m,
                            snap_err *err) {
    const remote_about *now = &m->about[1];
    snap_status st =
        results_set_backend(r, now->backend, now->device, now->kernel, o->arms[1].threads, err);
    return st == SNAP_OK ? results_set_plugin(r, o->arms[1].backend, err) : st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    bench_grid grid = {0};
    gate_run_options o = gate_run_options_of(&timing, &deciding, &grid);
    gate_measured m = {0};
    results *r = NULL;
    js *rows = js_new_array();
    snap_status st = SNAP_OK;
    TRY(bench_grid_parse(&grid, &timing.grid, err));
    TRY(parse_arms(o.arms, shared, err));
    TRY(results_new(&r, "gate", shared->resolved, timing.seed, err));
    term_progress progress = term_progress_start("gate", 1);
    o.ctx = &progress;
    st = gate_run(&o, &m, err);
    term_progress_end(&progress);
    TRY(st);
    TRY(describe(r, &o, &m, err));
    TRY(gate_run_rows(&o, &m, rows, err));
    st = gate_finish(r, rows, &output, shared, err);
cleanup:
    gate_measured_release(&m);
    results_free(r);
    js_free(rows);
    return st;
}

const opt_command cmd_gate_run = {
    .name = "gate run",
    .summary = "time two builds, backends or precisions in alternating turns",
    .synopsis = "A B [options]",
    .about = "Times two arms in alternating turns until every cell has a verdict. An arm is the\n"
             "path of a program, or 'self' for this program, followed by any of these keys:\n"
             "name, backend, isa, threads, precision. A is the baseline. Three statistics of\n"
             "the steps' times are compared: the lower quartile, which must not be slower, and\n"
             "the mean and the 99th percentile, which show rare slow steps. To test the gate\n"
             "itself, an arm can be slowed: delay=PCT (each step), spike=MS/N (every N-th step,\n"
             "by MS milliseconds), slow=PCT/N (every N-th turn).",
    .exits = GATE_EXITS,
    .examples = "  snapmla gate run old/snapmla,name=old self,name=new --junit gate.xml\n"
                "  snapmla gate run self,precision=bf16 self,precision=fp8 --heads 16",
    .options = options,
    .min_args = 2,
    .max_args = 2,
    .run = run,
    .of = &cmd_gate,
};
