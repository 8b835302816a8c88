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
     "the model's config.json, or the name of a file in configs/models", 0, 0},
    {OPT_STR, "arms", 0, &o.arms, "LIST", "bf16, fp8", 0, 0},
    {OPT_STR, "batch", 0, &o.batches, "LIST", "sequences; max: as many as the cache has room for",
     0, 0},
    {OPT_STR, "context", 0, &o.contexts, "LIST", "cached tokens per sequence", 0, 0},
    {OPT_NUM, "memory", 0, &o.memory_gb, "GB",
     "memory of the cache, the same for both arms; 0 = what the batches take", 0, 1e6},
    {OPT_INT, "prompt", 0, &o.prompt, "N", "time a prompt of so many tokens as well; 0 = none", 0,
     1 << 20},
    DEVICE_OPTIONS(o.device),
    {.type = OPT_GROUP, .help = "Measuring"},
    {OPT_NUM, "min-time", 0, &o.seconds, "S", "measured time of a row, at least", 0, 3600},
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
    .summary = "decode steps of a whole model with random weights, on a GPU",
    .synopsis = "--model-config FILE [options]",
    .about = "Times decode steps of a whole model in both arms, on a CUDA device. The model is\n"
             "given by its config.json; its weights are random. Each batch and context of the\n"
             "lists is one row per arm. '% roof' is the shortest possible time in percent of the\n"
             "measured one: the time to read the step's bytes at the measured bandwidth, or for a\n"
             "prompt the time of its arithmetic at the measured rate.",
    .examples = "  snapmla bench model --model-config deepseek-v2-lite --batch 1,64,max\n"
                "  snapmla bench model --model-config DIR/config.json --context 8192,131072 "
                "--out RUN",
    .options = options,
    .run = run,
    .of = &cmd_bench,
};
