#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/cmd/print_serving.h"
#include "harness/eval/merge.h"
#include "harness/serving/join_parts.h"
#include "harness/view/run_report.h"

static merge_options o;

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Input"},
    {OPT_STR, "data", 'd', &o.data, "PATH",
     "folder of the data sets; default: the folder that the first shard used", 0, 0},
    {OPT_STR, "gpqa-password", 0, &o.gpqa_password, "WORD",
     "password of GPQA's archive; default: the one that its authors publish", 0, 0},
    {OPT_FLAG, "partial", 0, &o.partial, NULL,
     "continue if shards are absent; their samples count as missing", 0, 0},
    {.type = OPT_GROUP, .help = "Result"},
    {OPT_STR, "out", 'o', &o.out, "RUN", "folder of the joined run", 0, 0},
    {.type = OPT_END},
};

/* Joins the parts of a serving benchmark, judges the joined run and prints the result. */
static snap_status join_parts(opt_shared *shared, snap_err *err) {
    const join_options join = {.parts = shared->args, .n = (size_t)shared->n_args, .out = o.out};
    js *config = NULL;
    serving_options run_options;
    serving_judgement judge = {0};
    serving_result res = {0};
    results *r = NULL;
    snap_status st;
    TRY(serving_join(&join, &config, err));
    TRY(serving_options_read(config, &run_options, err));
    judge.gpus = js_get_num(config, "gpus", 0);
    const char *slo = js_get_str(config, "slo");
    if (slo && *slo)
        TRY(slo_parse(slo, &judge.targets, err));
    TRY(serving_run_read(&run_options, &res, err));
    TRY(serving_results_make(&run_options, &res, &judge, config, &r, err));
    TRY(print_serving(r, &res, shared->json, err));
cleanup:
    results_free(r);
    serving_result_release(&res);
    js_free(config);
    return st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    if (!o.out)
        return err_set(err, SNAP_E_USAGE,
                       "no folder is given for the joined run: name it with --out RUN");
    if (serving_has_requests(shared->args[0]))
        return join_parts(shared, err);
    o.shards = shared->args;
    o.n = (size_t)shared->n_args;
    o.cancel = &cmd_cancelled;
    o.report = run_report_write;
    results *r = NULL;
    snap_status printed = SNAP_OK, st = merge_shards(&o, shared->resolved, &r, err);
    if (r)
        printed = print_evals(r, shared, st == SNAP_OK ? err : NULL);
    results_free(r);
    return st == SNAP_OK ? printed : st;
}

const opt_command cmd_merge = {
    .name = "merge",
    .summary = "join the shards of an evaluation or the parts of a serving benchmark",
    .synopsis = "SHARD... --out RUN",
    .about =
        "Joins the folders that 'snapmla eval --shard I/N' wrote into one run. Its samples,\n"
        "statistics and report are the same as those of a run in one process. The command\n"
        "can be repeated when more shards are done. 'snapmla eval' with the options of the\n"
        "shards continues the joined run.\n\n"
        "Also joins the folders that 'snapmla bench serving --part I/N' wrote. All parts must\n"
        "be complete. Their requests become one run with one result.",
    .examples = "  snapmla merge shard-* --out RUN\n"
                "  snapmla merge shard-1 shard-3 --partial --out SO_FAR\n"
                "  snapmla merge part-1 part-2 --out RUN",
    .options = options,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
