/* cmd_gate.c - `snapmla gate`: the options, and which of its verbs is meant. */
#include <stdio.h>
#include <string.h>

#include "harness/cmd/gate.h"
#include "harness/gate/worker.h"

gate_flags gate_flags_now = {.grid = {.arms = "bf16,fp8",
                                      .scopes = "kernel",
                                      .heads = "1,16,128",
                                      .s_q = "1",
                                      .batch = "1",
                                      .context = "1024",
                                      .d_c = 512,
                                      .d_r = 64},
                             .device = {.backend = "auto", .isa = "auto", .threads = 1},
                             .distribution = "normal",
                             .annotations = "auto",
                             .seed = 1,
                             .share_pct = 2,
                             .us = 0.5,
                             .alpha_pct = 5,
                             .sessions = 12,
                             .looks = 3,
                             .error_growth_pct = 10,
                             .minutes = 3};
#define F gate_flags_now

static const opt options[] = {
    {.type = OPT_GROUP, .help = "gate check: two result files or runs' folders"},
    {OPT_STR, "baseline", 0, &F.baseline, "PATH", "what is compared with", 0, 0},
    {OPT_STR, "current", 0, &F.current, "PATH", "what is judged", 0, 0},
    {OPT_NUM, "error-growth", 0, &F.error_growth_pct, "PCT",
     "growth of a numerical error that counts as none", 0, 1e6},
    {OPT_FLAG, "allow-shared", 0, &F.allow_shared, NULL,
     "judge cells as well during which other work used the processors", 0, 0},
    {OPT_FLAG, "any-machine", 0, &F.any_machine, NULL, "compare results of different machines", 0,
     0},
    {OPT_STR, "history", 0, &F.history, "FILE",
     "append this run's times to a history, and widen thresholds by its spread from run to run", 0,
     0},
    {.type = OPT_GROUP, .help = "gate run, gate selftest: what is timed (comma lists)"},
    {OPT_STR, "arms", 0, &F.grid.arms, "LIST", "precisions: bf16, fp8", 0, 0},
    {OPT_STR, "scope", 0, &F.grid.scopes, "LIST", "kernel, served", 0, 0},
    {OPT_STR, "heads", 0, &F.grid.heads, "LIST", "query heads, 1..128", 0, 0},
    {OPT_STR, "s-q", 0, &F.grid.s_q, "LIST", "query tokens a sequence, 1..4", 0, 0},
    {OPT_STR, "batch", 0, &F.grid.batch, "LIST", "sequences", 0, 0},
    {OPT_STR, "context", 0, &F.grid.context, "LIST", "tokens in the cache of each", 0, 0},
    {OPT_STR, "shapes", 0, &F.grid.shapes, "LIST",
     "H/s_q/batch/context, instead of the four lists above", 0, 0},
    {OPT_STR, "distribution", 0, &F.distribution, "NAME", "normal, mla, sink, adversarial", 0, 0},
    {OPT_FLAG, "cold", 0, &F.cold, NULL,
     "cpu: steps on a cold cache, through copies of the data; they take longer to make, and times "
     "waver "
     "with the neighbours' use of memory; a GPU flushes always",
     0, 0},
    {OPT_INT, "seed", 0, &F.seed, "N", "of the random numbers", 0, 1e15},
    {OPT_NUM, "minutes", 0, &F.minutes, "N", "selftest: time to spend, about", 0.1, 600},
    DEVICE_OPTIONS(F.device),
    {.type = OPT_GROUP, .help = "Deciding"},
    {OPT_NUM, "threshold", 0, &F.share_pct, "PCT", "slow-down that counts as none", 0, 900},
    {OPT_NUM, "threshold-us", 0, &F.us, "US", "and in microseconds; the larger one holds", 0, 1e9},
    {OPT_NUM, "alpha", 0, &F.alpha_pct, "PCT", "chance of a false alarm of the whole gate", 1e-4,
     49},
    {OPT_INT, "sessions", 0, &F.sessions, "N",
     "pairs of processes at first, each with mirrored turns of every cell", 5, 512},
    {OPT_INT, "looks", 0, &F.looks, "N",
     "open cells get as many sessions again, and are looked at up to so many times", 1, 7},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &F.out, "PATH", "write the result file, verdicts with all samples", 0, 0},
    {OPT_STR, "junit", 0, &F.junit, "FILE", "JUnit XML", 0, 0},
    {OPT_STR, "markdown", 0, &F.markdown, "FILE", "a summary as Markdown", 0, 0},
    {OPT_STR, "code-quality", 0, &F.code_quality, "FILE", "GitLab's code quality report", 0, 0},
    {OPT_STR, "annotations", 0, &F.annotations, "KIND",
     "github: ::error lines on standard error, and the job's summary; none; auto: github where "
     "GITHUB_ACTIONS is true",
     0, 0},
    {.type = OPT_END},
};

static const opt_command spec = {
    .name = "gate",
    .synopsis = "[check|run A B|selftest|history FILE] [options]",
    .about = "Fails when something became slower or worse, and proves how far it can be believed.\n"
             "check compares two result files. run times two arms in mirrored turns: PROGRAM, or\n"
             "self, with keys name backend isa threads precision delay. selftest runs this build\n"
             "against itself, as it is and delayed by 1, 2 and 5 %, and tells the rate of false\n"
             "alarms and the smallest effect that it finds. history shows when times changed.",
    .exits =
        "0 good, 1 slower, 2 usage or configuration, 3 runtime, 4 undecided, 5 worse in quality, "
        "6 invalid, 7 wrong",
    .examples = "  snapmla gate run old/snapmla,name=old self,name=new --junit gate.xml\n"
                "  snapmla gate run self,precision=bf16 self,precision=fp8 --heads 16\n"
                "  snapmla gate check --baseline base.json --current now.json\n"
                "  snapmla gate selftest --out selftest.json\n"
                "  snapmla gate history times.jsonl",
    .options = options,
    .max_args = 3,
};

static snap_status expect_args(const opt_shared *shared, int n, snap_err *err) {
    if (shared->n_args == n)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "'gate %s' takes %d more argument%s", shared->args[0], n - 1,
                   n == 2 ? "" : "s");
}

static snap_status run(opt_shared *shared, snap_err *err) {
    static const struct {
        const char *verb;
        int args;
        cmd_fn run;
    } verbs[] = {{"check", 1, gate_cmd_check},
                 {"run", 3, gate_cmd_run},
                 {"selftest", 1, gate_cmd_selftest},
                 {"history", 2, gate_cmd_history}};
    if (!shared->n_args)
        return gate_cmd_check(shared, err);
    if (strcmp(shared->args[0], "worker") == 0) /* the other end of an arm, not for people */
        return gate_worker_run(stdin, stdout, err);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(shared->args[0], verbs[i].verb) != 0)
            continue;
        snap_status st = expect_args(shared, verbs[i].args, err);
        return st == SNAP_OK ? verbs[i].run(shared, err) : st;
    }
    return err_set(err, SNAP_E_USAGE, "'gate %s' is unknown: check, run, selftest or history",
                   shared->args[0]);
}

const cmd cmd_gate = {&spec, run, "fail on a regression in speed or quality"};
