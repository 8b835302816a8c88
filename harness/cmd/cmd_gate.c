/* cmd_gate.c - `snapmla gate`, and its verb check, which is the default. */
#include <stdio.h>

#include "harness/cmd/gate.h"
#include "harness/gate/check.h"
#include "harness/gate/worker.h"

static gate_check_options o = {.margin = 2};
static int64_t seed = 1;
static double error_growth_pct = 10;
static gate_deciding deciding = GATE_DECIDING_DEFAULTS;
static gate_output output = GATE_OUTPUT_DEFAULTS;

static const opt options[] = {
    {.type = OPT_GROUP, .help = "One or two result files or run folders"},
    {OPT_STR, "baseline", 0, &o.baseline, "PATH",
     "the result to compare with; without it, only the comparisons of arms and the predictions in "
     "the current result are judged",
     0, 0},
    {OPT_STR, "current", 0, &o.current, "PATH", "the result to judge", 0, 0},
    {OPT_NUM, "error-growth", 0, &error_growth_pct, "PCT",
     "largest growth of a numerical error that counts as no change, in percent", 0, 1e6},
    {OPT_NUM, "margin", 0, &o.margin, "PP",
     "largest loss of accuracy that counts as no change in a prediction of 'fidelity --predict', "
     "in percentage points",
     0.01, 100},
    {OPT_FLAG, "allow-shared", 0, &o.allow_shared, NULL,
     "judge cells that were measured while other programs used the processors by the ordinary "
     "thresholds; without this option, only changes above the measured disturbance are judged",
     0, 0},
    {OPT_FLAG, "any-machine", 0, &o.any_machine, NULL, "allow results of two different machines", 0,
     0},
    {OPT_STR, "history", 0, &o.history, "FILE",
     "append the times of the current result to this history, and widen the thresholds by the "
     "history's spread from run to run",
     0, 0},
    {OPT_INT, "seed", 0, &seed, "N",
     "seed of the resampling for the confidence intervals of quality", 0, 1e15},
    GATE_DECIDING_OPTIONS(deciding),
    GATE_OUTPUT_OPTIONS(output),
    {.type = OPT_END},
};

static snap_status run(opt_shared *shared, snap_err *err) {
    results *r = NULL;
    js *rows = js_new_array();
    snap_status st = SNAP_OK;
    o.limits = gate_limits_of(&deciding);
    o.error_growth = error_growth_pct / 100;
    o.seed = (uint64_t)seed;
    TRY(gate_check(&o, rows, err));
    TRY(results_new(&r, "gate", shared->resolved, seed, err));
    st = gate_finish(r, rows, &output, shared, err);
cleanup:
    results_free(r);
    js_free(rows);
    return st;
}

static const opt_command verb_check = {
    .name = "gate check",
    .summary = "compare two result files in speed, numerical error, quality and serving",
    .synopsis = "[--baseline PATH] --current PATH [options]",
    .about = "Compares two result files or runs by their samples, and fails if the current one\n"
             "is slower or worse than the baseline by more than the thresholds. If other\n"
             "programs used the processors, the threshold is at least the disturbance that the\n"
             "samples of both files show. Predictions of 'snapmla fidelity --predict' fail if\n"
             "the predicted loss of accuracy is above --margin with probability 95 % (--alpha),\n"
             "and pass if it is not above it with the same probability. They and the comparisons\n"
             "of arms in a run need no --baseline.",
    .exits = GATE_EXITS,
    .examples = "  snapmla gate check --baseline base.json --current now.json\n"
                "  snapmla gate check --current predicted.json --margin 1\n"
                "  snapmla gate check --baseline OLD_RUN --current RUN --history times.jsonl",
    .options = options,
    .run = run,
    .of = &cmd_gate,
};

/* ---- the other end of `gate run` and `gate selftest`, started by the program itself ---- */

static snap_status serve(opt_shared *shared, snap_err *err) {
    (void)shared;
    return gate_worker_run(stdin, stdout, err);
}

static const opt no_options[] = {{.type = OPT_END}};

static const opt_command verb_worker = {
    .name = "gate worker",
    .synopsis = "",
    .about = "Builds and times cells for 'snapmla gate run', which writes one request per line.",
    .examples = "  snapmla gate worker",
    .options = no_options,
    .run = serve,
    .of = &cmd_gate,
};

static const opt_command *const verbs[] = {&verb_check,       &cmd_gate_run, &cmd_gate_selftest,
                                           &cmd_gate_history, &verb_worker,  NULL};

const opt_command cmd_gate = {
    .name = "gate",
    .summary = "detect regressions in speed and quality",
    .synopsis = "[VERB] [options]",
    .about = "Fails if something became slower or worse, and measures how reliable its own\n"
             "verdicts are. 'check' compares two result files. 'run' times two builds, backends\n"
             "or precisions in alternating turns. 'selftest' runs this build against itself,\n"
             "unchanged and slowed in known ways, and reports the rate of false alarms and the\n"
             "smallest slow-down that it detects. 'history' lists when times changed.",
    .exits = GATE_EXITS,
    .examples = "  snapmla gate run old/snapmla,name=old self,name=new --junit gate.xml\n"
                "  snapmla gate check --baseline base.json --current now.json\n"
                "  snapmla gate selftest --out selftest.json",
    .options = options,
    .run = run,
    .verbs = verbs,
};
