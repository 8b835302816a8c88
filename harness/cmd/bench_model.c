/* bench_model.c - `snapmla bench model` */
#include <stdlib.h>

#include "harness/bench/model_bench.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/device_table.h"
#include "harness/cmd/print.h"
#include "harness/view/bench_tables.h"

static model_bench_options o = {.device = DEVICE_DEFAULTS,
                                .arms = "bf16,fp8",
                                .batches = "8",
                                .contexts = "8192",
                                .seconds = 0.25};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "model-config", 0, &o.model_config, "FILE",
     "config.json of the model, or the name of a file in configs/models", 0, 0},
    {OPT_STR, "arms", 0, &o.arms, "LIST", "precisions: bf16, fp8", 0, 0},
    {OPT_STR, "batch", 0, &o.batches, "LIST",
     "numbers of sequences; max: as many as fit into the cache", 0, 0},
    {OPT_STR, "context", 0, &o.contexts, "LIST", "cached tokens per sequence", 0, 0},
    {OPT_NUM, "memory", 0, &o.memory_gb, "GB",
     "memory for the cache in GB, the same for both arms; 0 = what the batches need", 0, 1e6},
    {OPT_INT, "prompt", 0, &o.prompt, "N", "also time a prompt of N tokens; 0 = no prompt", 0,
     1 << 20},
    DEVICE_OPTIONS(o.device),
    {.type = OPT_GROUP, .help = "Measuring"},
    {OPT_NUM, "min-time", 0, &o.seconds, "S", "minimum measured time of one row, in seconds", 0,
     3600},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &o.out, "PATH", "write the result file: a .json file or a run's folder",
     0, 0},
    {.type = OPT_END},
};

static snap_status run(opt_shared *shared, snap_err *err) {
    snap_status st;
    js *rows = NULL;
    table t = {0};
    model_bench *m = malloc(sizeof *m);
    if (!m)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    o.cancel = &cmd_cancelled;
    TRY(model_bench_run(&o, shared->resolved, m, err));
    if (shared->json) {
        rows = model_bench_json(m, &o);
        TRY(print_json(rows, err));
    } else {
        t = model_bench_table(m->rows, m->n);
        TRY(print_table(&t, err));
    }
cleanup:
    table_release(&t);
    js_free(rows);
    free(m);
    return st;
}

const opt_command cmd_bench_model = {
    .name = "bench model",
    .summary = "time decode steps of a whole model with random weights, on a GPU",
    .synopsis = "--model-config FILE [options]",
    .about = "Times decode steps of a whole model in both arms, on a CUDA device. The model is\n"
             "given by its config.json, and its weights are random. Each pair of a batch and a\n"
             "context from the lists is one row per arm. The column '% roof' is the shortest\n"
             "possible time in percent of the measured time. For a decode step, the shortest\n"
             "possible time is the time to read the step's bytes at the measured bandwidth. For\n"
             "a prompt, it is the time of the arithmetic at the measured rate.",
    .examples = "  snapmla bench model --model-config deepseek-v2-lite --batch 1,64,max\n"
                "  snapmla bench model --model-config DIR/config.json --context 8192,131072 "
                "--out RUN",
    .options = options,
    .run = run,
    .of = &cmd_bench,
};
