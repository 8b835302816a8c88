#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/eval/merge.h"
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

static snap_status run(opt_shared *shared, snap_err *err) {
    if (!o.out)
        return err_set(err, SNAP_E_USAGE,
                       "no folder is given for the joined run: name it with --out RUN");
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
    .summary = "join the shards of an evaluation",
    .synopsis = "SHARD... --out RUN",
    .about = "Joins the folders that 'snapmla eval --shard I/N' wrote into one run. Its samples,\n"
             "statistics and report are the same as those of a run in one process. The command\n"
             "can be repeated when more shards are done. 'snapmla eval' with the options of the\n"
             "shards continues the joined run.",
    .examples = "  snapmla merge shard-* --out RUN\n"
                "  snapmla merge shard-1 shard-3 --partial --out SO_FAR",
    .options = options,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
