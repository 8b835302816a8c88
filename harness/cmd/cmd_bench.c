/* cmd_bench.c - `snapmla bench`, and its verb kernel, which is the default. */
#include "harness/bench/bench_run.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/device_table.h"
#include "harness/cmd/print.h"
#include "harness/view/bench_tables.h"

static bench_options o = {.device = DEVICE_DEFAULTS,
                          .grid = {.arms = "bf16,fp8",
                                   .scopes = "kernel,served",
                                   .heads = "1,2,16,128",
                                   .s_q = "1",
                                   .batch = "8",
                                   .context = "8192",
                                   .d_c = 512,
                                   .d_r = 64},
                          .distribution = "normal",
                          .challenge_tokens = 65536,
                          .seed = 1,
                          .min_time_s = 0.25,
                          .timeout_s = 5,
                          .min_samples = 10,
                          .rest = 2};

/* The verbs that replaced the values of the removed option --what. */
static opt_gone verbs_of_what[] = {{"kernel", "snapmla bench kernel"},
                                   {"e2e", "snapmla bench model"},
                                   {"grading", "snapmla bench grading"},
                                   {"tokenizer", "snapmla bench tokenizer"},
                                   {NULL, NULL}};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Grid (lists separated by commas; every combination is measured)"},
    {OPT_STR, "arms", 0, &o.grid.arms, "LIST", "precisions: bf16, fp8", 0, 0},
    {OPT_LIST, "arm", 'a', &o.arms, "NAME=BACKEND[,KEY=VALUE...]",
     "one kernel to compare; give the option once for each, the baseline first. BACKEND: cpu, "
     "cuda, opencl, plugin:PATH or python:FILE. Keys: precision (bf16, fp8), isa, threads; scale "
     "(max, pow2) for fp8; unit (kept, page) for cuda with fp8; format (a cache format's name or "
     "file) for plugins and Python files. It replaces --arms, --backend, --isa and --threads",
     0, 0},
    {OPT_FLAG, "ablation", 0, &o.grid.ablation, NULL,
     "on a GPU: also time variants of the FP8 arm that each leave out or replace one technique: "
     "FP8 arithmetic, FP32 accumulation outside the tensor cores, the deep pipeline, the unit of "
     "probabilities, the order of pages, the fused dataflow, reading FP8 from memory",
     0, 0},
    {OPT_STR, "scope", 0, &o.grid.scopes, "LIST",
     "kernel: attention alone; served: also quantising, appending to the cache and scheduling", 0,
     0},
    {OPT_STR, "heads", 0, &o.grid.heads, "LIST", "numbers of query heads on the device, 1..128", 0,
     0},
    {OPT_STR, "s-q", 0, &o.grid.s_q, "LIST", "numbers of query tokens per sequence, 1..4", 0, 0},
    {OPT_STR, "batch", 0, &o.grid.batch, "LIST", "numbers of sequences", 0, 0},
    {OPT_STR, "context", 0, &o.grid.context, "LIST", "numbers of cached tokens per sequence", 0, 0},
    {OPT_STR, "lengths", 0, &o.lengths, "DIST",
     "sequences of different lengths, drawn from --seed, instead of --context: uniform:LO-HI, "
     "lognormal:MEDIAN,SIGMA, bimodal:A,B,SHARE (A with probability SHARE, else B), or a file with "
     "one length per line",
     0, 0},
    {OPT_STR, "shapes", 0, &o.grid.shapes, "LIST",
     "shapes as H/s_q/batch/context, instead of the four lists above", 0, 0},
    {OPT_FLAG, "scaled", 0, &o.scaled, NULL,
     "add three shapes to those of --shapes whose size follows from the device: about 2 ms of "
     "reads "
     "at the measured bandwidth, and at most 1/16 of the memory",
     0, 0},
    {OPT_INT, "d-c", 0, &o.grid.d_c, "N", "latent width", 32, MLA_MAX_CONTENT},
    {OPT_INT, "d-r", 0, &o.grid.d_r, "N", "RoPE width", 32, MLA_MAX_ROPE},
    {OPT_STR, "distribution", 0, &o.distribution, "NAME",
     "random input; normal: N(0,1); mla: outliers up to 1e3 in the RoPE columns; sink: one token "
     "in a thousand has a large weight for every query; adversarial: norms that span powers of "
     "two, and large products that cancel",
     0, 0},
    {OPT_INT, "seed", 0, &o.seed, "N", "seed of the random numbers", 0, 1e15},
    {OPT_STR, "challenge", 0, &o.challenge, "SEED",
     "shapes, lengths, page order and data all follow from this text, which must be unknown when "
     "the kernels are frozen; 'snapmla verify-run' derives them again. It replaces the grid, "
     "--distribution and --seed",
     0, 0},
    {OPT_INT, "challenge-tokens", 0, &o.challenge_tokens, "N",
     "with --challenge: about the largest number of tokens of one cell", 1 << 12, 1 << 24},
    DEVICE_OPTIONS(o.device),
    {.type = OPT_GROUP, .help = "Measuring"},
    {OPT_NUM, "min-time", 0, &o.min_time_s, "S", "minimum measured time of one cell, in seconds", 0,
     3600},
    {OPT_NUM, "timeout", 0, &o.timeout_s, "S",
     "maximum wall time of one shape and scope, in seconds", 0, 3600},
    {OPT_NUM, "rest", 0, &o.rest, "N",
     "on a GPU: idle time between blocks of samples (A B B A), as a multiple of the block's time; "
     "with pauses the clock is not lowered by the power limit",
     0, 100},
    {OPT_NUM, "sustained", 0, &o.sustained_s, "S",
     "instead of single steps with a cold cache, run two loops per arm, each S seconds long "
     "without a pause; power and tokens per joule need at least 2 seconds",
     0, 600},
    {OPT_INT, "min-samples", 0, &o.min_samples, "N",
     "minimum number of samples of one cell, unless --timeout ends it earlier", 1, 10000},
    {OPT_STR, "ceilings", 0, &o.ceilings_path, "PATH",
     "result file or run folder with the ceilings; without it they are measured", 0, 0},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &o.out, "PATH",
     "write the result to this .json file or run folder; an interrupted run continues where it "
     "stopped",
     0, 0},
    {OPT_GONE, "what", 0, verbs_of_what, "NAME", NULL, 0, 0},
    {.type = OPT_END},
};

static snap_status run(opt_shared *shared, snap_err *err) {
    results *r = NULL;
    snap_err unprinted = {0};
    o.cancel = &cmd_cancelled;
    snap_status st = bench_run(&o, shared->resolved, &r, err);
    if (r) {
        const js *rows = results_section(r, "bench");
        table t = bench_table(rows);
        snap_status printed = print_results(r, shared, &t, st == SNAP_OK ? err : &unprinted);
        st = st == SNAP_OK ? printed : st;
        bench_warn(rows);
        table_release(&t);
    }
    results_free(r);
    return st;
}

#define ABOUT_KERNEL                                                                               \
    "Times one MLA decode step of both arms over a grid of shapes. A cell is timed only\n"         \
    "after its output agrees with an FP64 reference. The two arms take turns in one run,\n"        \
    "with a cold cache. Times are in microseconds: 'us' is the median of the steps, next\n"        \
    "to it are their mean and 99th percentile. The column '% roof' is relative to the\n"           \
    "ceilings, the best rates that any probe reached. The column '% then' is relative to\n"        \
    "the median of short runs of the same probes between the row's own samples. On a\n"            \
    "shared machine, '% then' separates the speed of the kernel from the load of other\n"          \
    "programs.\n"                                                                                  \
    "\n"                                                                                           \
    "With --arm, any kernels are compared in one table: the program's own on several\n"            \
    "backends, and those of plugins and Python files, each with a cache format of its\n"           \
    "own. 'speed-up' is the time of the first arm divided by that of the arm, with its\n"          \
    "95 % interval."

static const opt_command verb_kernel = {
    .name = "bench kernel",
    .summary = "time one MLA decode step of both arms over a grid of shapes",
    .synopsis = "[options]",
    .about = ABOUT_KERNEL,
    .examples = "  snapmla bench kernel --heads 16,128 --batch 8 --context 8192\n"
                "  snapmla bench kernel --config h200-table --out RUN",
    .options = options,
    .run = run,
    .of = &cmd_bench,
};

static const opt_command *const verbs[] = {&verb_kernel,
                                           &cmd_bench_model,
                                           &cmd_bench_exchange,
                                           &cmd_bench_grading,
                                           &cmd_bench_tokenizer,
                                           &cmd_bench_serving,
                                           NULL};

const opt_command cmd_bench = {
    .name = "bench",
    .summary = "time both arms over a grid of shapes",
    .synopsis = "[VERB] [options]",
    .about = ABOUT_KERNEL,
    .examples = "  snapmla bench --heads 16,128 --batch 8 --context 8192\n"
                "  snapmla bench --config cpu --out RUN\n"
                "  snapmla bench model --model-config deepseek-v2-lite --batch 1,64,max",
    .options = options,
    .run = run,
    .verbs = verbs,
};
