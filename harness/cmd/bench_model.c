/* bench_model.c - `snapmla bench model` */
#include <stdlib.h>

#include "base/term.h"
#include "harness/bench/model_bench.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/device_table.h"
#include "harness/cmd/model_layout.h"
#include "harness/cmd/model_predict.h"
#include "harness/cmd/print.h"
#include "harness/view/bench_tables.h"

static const char *devices;
static model_bench_options o = {.device = DEVICE_DEFAULTS,
                                .arms = "bf16,fp8",
                                .batches = "8",
                                .contexts = "8192",
                                .one_shot_kib = -1,
                                .seconds = 0.25};

static bool predicts;
static predict_options p = {.from = {.network = "ib-ndr"}, .weights = "bf16"};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "model-config", 0, &o.model_config, "FILE",
     "config.json of the model, or the name of a file in configs/models", 0, 0},
    {OPT_STR, "arms", 0, &o.arms, "LIST", "precisions: bf16, fp8", 0, 0},
    {OPT_STR, "batch", 0, &o.batches, "LIST",
     "numbers of sequences; max: as many as fit into the cache", 0, 0},
    {OPT_STR, "context", 0, &o.contexts, "LIST", "cached tokens per sequence", 0, 0},
    {OPT_NUM, "memory", 0, &o.memory_gb, "GB",
     "memory for the cache on each GPU in GB, the same for both arms; 0 = what the batches need", 0,
     1e6},
    {OPT_INT, "prompt", 0, &o.prompt, "N", "also time a prompt of N tokens; 0 = no prompt", 0,
     1 << 20},
    {.type = OPT_GROUP, .help = "Several GPUs"},
    {OPT_STR, "layout", 0, &o.layout, "LAYOUT",
     "how the model is divided over GPUs: DPd/TPt, DPd or TPt, which /EPn may follow, or EPn; with "
     "--predict a list",
     0, 0},
    {OPT_STR, "devices", 0, &devices, "LIST",
     "numbers of the GPUs of this machine, one for each rank; the program starts the ranks itself, "
     "unless a launcher such as mpirun or srun has started it",
     0, 0},
    {OPT_INT, "one-shot-kib", 0, &o.one_shot_kib, "N",
     "longest exchange between the ranks, in KiB, that one kernel does over peer memory; NCCL does "
     "longer ones; -1 = 2048, for sums of n ranks 2048 / (n - 1)",
     -1, 2048},
    DEVICE_OPTIONS(o.device),
    {.type = OPT_GROUP, .help = "Measuring"},
    {OPT_NUM, "min-time", 0, &o.seconds, "S", "minimum measured time of one row, in seconds", 0,
     3600},
    {OPT_FLAG, "parts", 0, &o.parts, NULL,
     "also time attention, exchange, experts and the rest of each decode step", 0, 0},
    {OPT_NUM, "energy", 0, &o.energy_s, "S",
     "also measure the joules of each row's step, in a loop of at least S seconds; at least 1, "
     "because the GPU's energy counter moves only about ten times a second; 0 = not",
     0, 3600},
    {.type = OPT_GROUP, .help = "Predicting"},
    {OPT_FLAG, "predict", 0, &predicts, NULL,
     "predict the steps from measured parts instead of measuring them; needs no GPU", 0, 0},
    {OPT_STR, "measured", 0, &p.from.measured, "LIST",
     "result files to predict from: of 'bench model --parts' and 'bench kernel' on one GPU, and of "
     "'bench exchange' on any numbers of GPUs",
     0, 0},
    {OPT_STR, "gpus", 0, &p.gpus, "LIST",
     "instead of --layout: for each number of GPUs the layout with most tokens per second", 0, 0},
    {OPT_NUM, "gpu-memory", 0, &p.memory_gb, "GB",
     "memory of each GPU for weights, buffers and cache, in GB; 0 = no limit", 0, 1e6},
    {OPT_STR, "weights", 0, &p.weights, "NAME",
     "number format of the weights: bf16 or e4m3; e4m3 if config.json has e4m3 weights in blocks "
     "of 128",
     0, 0},
    {OPT_STR, "link", 0, &p.from.link, "NAME",
     "link between the GPUs of a node, from configs/links.json, instead of the measured exchange",
     0, 0},
    {OPT_STR, "network", 0, &p.from.network, "NAME",
     "link between nodes of 8 GPUs, from configs/links.json", 0, 0},
    {OPT_FLAG, "all-to-all", 0, &p.from.all_to_all, NULL,
     "with EP, assume that rows may go only to the ranks that need them, where that is shorter; "
     "the engine sends all rows to all ranks",
     0, 0},
    {OPT_STR, "against", 0, &p.against, "LIST",
     "predict the steps in these result files of 'bench model', and print the errors", 0, 0},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &o.out, "PATH", "write the result file: a .json file or a run's folder",
     0, 0},
    {.type = OPT_END},
};

static snap_status show(opt_shared *shared, const model_bench *m, snap_err *err) {
    snap_status st;
    js *rows = NULL;
    table t = {0};
    if (shared->json) {
        rows = model_bench_json(m, &o);
        st = print_json(rows, err);
    } else {
        t = model_bench_table(m);
        st = print_table(&t, err);
    }
    if (st == SNAP_OK && m->one_shot_bytes == 0 && m->why_not[0])
        term_warn("no exchanges over peer memory: %s", m->why_not);
    if (st == SNAP_OK && m->no_energy[0])
        term_warn("the energy was not measured: %s", m->no_energy);
    table_release(&t);
    js_free(rows);
    return st;
}

static snap_status measure_and_show(opt_shared *shared, bool shows, snap_err *err) {
    model_bench *m = malloc(sizeof *m);
    if (!m)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    snap_status st = model_bench_run(&o, shared->resolved, m, err);
    if (st == SNAP_OK && shows)
        st = show(shared, m, err);
    free(m);
    return st;
}

/* Options that the other kind of run would ignore are refused. */
static snap_status check_options(snap_err *err) {
    if (predicts && (devices || o.prompt || o.parts || o.memory_gb > 0 || o.energy_s > 0))
        return err_set(err, SNAP_E_USAGE,
                       "--predict measures nothing: leave out --devices, --prompt, --parts, "
                       "--energy and --memory (--gpu-memory limits the batch)");
    if (!predicts && (p.from.measured || p.gpus || p.against || p.from.link || p.from.all_to_all ||
                      p.memory_gb > 0))
        return err_set(err, SNAP_E_USAGE,
                       "--measured, --gpus, --gpu-memory, --link, --all-to-all and --against need "
                       "--predict");
    return SNAP_OK;
}

static snap_status predict(opt_shared *shared, snap_err *err) {
    p.model_config = o.model_config;
    p.arms = o.arms;
    p.contexts = o.contexts;
    p.batches = o.batches;
    p.layouts = o.layout;
    p.out = o.out;
    return model_predict_run(&p, shared, err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    snap_status st;
    rank_layout l = {1, 1, false};
    TRY(check_options(err));
    if (predicts)
        return predict(shared, err);
    o.cancel = &cmd_cancelled;
    if (devices && !o.layout)
        return err_set(err, SNAP_E_USAGE, "--devices needs --layout");
    if (o.layout)
        TRY(rank_layout_parse(&l, o.layout, err));
    st = model_layout_run(&o, devices, &l, shared, measure_and_show, err);
cleanup:
    return st;
}

const opt_command cmd_bench_model = {
    .name = "bench model",
    .summary = "time decode steps of a whole model with random weights, on one GPU or several",
    .synopsis = "--model-config FILE [options]",
    .about =
        "Times decode steps of a whole model in both arms, on CUDA devices. The model is\n"
        "given by its config.json, and its weights are random. They are e4m3 if the file\n"
        "has a quantization_config with blocks of 128 by 128, else BF16. Each pair of a\n"
        "batch and a context from the lists is one row per arm. The column '% roof' is\n"
        "the shortest possible time in percent of the measured time. For a decode step,\n"
        "the shortest possible time is the time to read the step's bytes at the measured\n"
        "bandwidth. For a prompt, it is the time of the arithmetic at the measured rate.\n"
        "\n"
        "With --layout, each GPU is a rank. DP2 has two replicas of the model, which divide\n"
        "the sequences. TP2 splits one replica over two GPUs: the heads of attention and\n"
        "the inner width of each feed-forward. DP2/EP2 (or EP2) is DP2 with half of the\n"
        "routed experts on each GPU, whole: rows go to them by an all-gather, and the\n"
        "results come back by a reduce-scatter. TP2/EP2 splits the heads, and has whole\n"
        "experts. DP2/TP2/EP4 has two such replicas, and a quarter of the experts on each\n"
        "GPU. All ranks begin each step together, and the time of a step is that of the\n"
        "slowest rank. The columns of bytes are those of rank 0. NCCL is loaded only if an\n"
        "exchange between the ranks needs it: libnccl.so.2, or the file that the environment\n"
        "variable SNAPMLA_NCCL names. If one rank fails, all end within 30 seconds, and the\n"
        "message names the rank.\n"
        "\n"
        "With --energy S, each row's step runs again in a loop of at least S seconds, and\n"
        "the GPU's energy counter (NVML) is read before and after it. J/token is the energy\n"
        "of all GPUs divided by the tokens. Where there is no counter, the cell is empty.\n"
        "\n"
        "With --predict, nothing is measured. The time of a step follows from measured parts\n"
        "of a step on one GPU, cells of the attention kernel and exchange curves, by the\n"
        "rules that are printed below the rows. Rows have the origin 'predicted'. With EP,\n"
        "'waiting' is how long a rank waits for the rank that reads the most experts, if rows\n"
        "choose experts at random. An interval covers the errors of the rules for measured\n"
        "steps that were left out, the range of the exchange, and 0 to 2 times the waiting.\n"
        "With --gpus, each row also has the second fastest layout. 'of best' is its share of\n"
        "the tokens/s, and 'ties' is the number of layouts whose intervals overlap that of the\n"
        "best one.",
    .examples = "  snapmla bench model --model-config deepseek-v2-lite --batch 1,64,max\n"
                "  snapmla bench model --model-config DIR/config.json --context 8192,131072 "
                "--out RUN\n"
                "  snapmla bench model --model-config deepseek-v2-lite --layout TP2 --devices 0,1\n"
                "  snapmla bench model --model-config deepseek-v2-lite --layout EP2 --devices 0,1 "
                "--energy 2\n"
                "  snapmla bench model --predict --model-config deepseek-v3 --weights e4m3 \\\n"
                "      --layout DP8/TP1/EP8,DP4/TP2/EP8 --batch max --gpu-memory 138 \\\n"
                "      --measured parts.json,kernel.json,exchange.json",
    .options = options,
    .run = run,
    .of = &cmd_bench,
};
