#include "harness/cmd/kernel_arguments.h"

#include "harness/cmd/device_table.h"

bench_options bench_kernel_given = {.device = DEVICE_DEFAULTS,
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

const opt bench_kernel_options[] = {
    {.type = OPT_GROUP, .help = "Grid (lists separated by commas; every combination is measured)"},
    {OPT_STR, "arms", 0, &bench_kernel_given.grid.arms, "LIST", "precisions: bf16, fp8", 0, 0},
    {OPT_LIST, "arm", 'a', &bench_kernel_given.arms, "NAME=BACKEND[,KEY=VALUE...]",
     "one kernel to compare; give the option once for each, the baseline first. BACKEND: cpu, "
     "cuda, opencl, plugin:PATH or python:FILE. Keys: precision (bf16, fp8), isa, threads; scale "
     "(max, pow2) for fp8; unit (kept, page) for cuda with fp8; format (a cache format's name or "
     "file) for plugins and Python files. It replaces --arms, --backend, --isa and --threads",
     0, 0},
    {OPT_FLAG, "ablation", 0, &bench_kernel_given.grid.ablation, NULL,
     "on a GPU: also time variants of the FP8 arm that each leave out or replace one technique: "
     "FP8 arithmetic, FP32 accumulation outside the tensor cores, the deep pipeline, the unit of "
     "probabilities, the order of pages, the fused dataflow, reading FP8 from memory",
     0, 0},
    {OPT_STR, "scope", 0, &bench_kernel_given.grid.scopes, "LIST",
     "kernel: attention alone; served: also quantising, appending to the cache and scheduling", 0,
     0},
    {OPT_STR, "heads", 0, &bench_kernel_given.grid.heads, "LIST",
     "numbers of query heads on the device, 1..128", 0, 0},
    {OPT_STR, "s-q", 0, &bench_kernel_given.grid.s_q, "LIST",
     "numbers of query tokens per sequence, 1..4", 0, 0},
    {OPT_STR, "batch", 0, &bench_kernel_given.grid.batch, "LIST", "numbers of sequences", 0, 0},
    {OPT_STR, "context", 0, &bench_kernel_given.grid.context, "LIST",
     "numbers of cached tokens per sequence", 0, 0},
    {OPT_STR, "lengths", 0, &bench_kernel_given.lengths, "DIST",
     "sequences of different lengths, drawn from --seed, instead of --context: uniform:LO-HI, "
     "lognormal:MEDIAN,SIGMA, bimodal:A,B,SHARE (A with probability SHARE, else B), or a file with "
     "one length per line",
     0, 0},
    {OPT_STR, "shapes", 0, &bench_kernel_given.grid.shapes, "LIST",
     "shapes as H/s_q/batch/context, instead of the four lists above", 0, 0},
    {OPT_FLAG, "scaled", 0, &bench_kernel_given.scaled, NULL,
     "add three shapes to those of --shapes whose size follows from the device: about 2 ms of "
     "reads "
     "at the measured bandwidth, and at most 1/16 of the memory",
     0, 0},
    {OPT_INT, "d-c", 0, &bench_kernel_given.grid.d_c, "N", "latent width", 32, MLA_MAX_CONTENT},
    {OPT_INT, "d-r", 0, &bench_kernel_given.grid.d_r, "N", "RoPE width", 32, MLA_MAX_ROPE},
    {OPT_STR, "distribution", 0, &bench_kernel_given.distribution, "NAME",
     "random input; normal: N(0,1); mla: outliers up to 1e3 in the RoPE columns; sink: one token "
     "in a thousand has a large weight for every query; adversarial: norms that span powers of "
     "two, and large products that cancel",
     0, 0},
    {OPT_INT, "seed", 0, &bench_kernel_given.seed, "N", "seed of the random numbers", 0, 1e15},
    {OPT_STR, "challenge", 0, &bench_kernel_given.challenge, "SEED",
     "shapes, lengths, page order and data all follow from this text, which must be unknown when "
     "the kernels are frozen; 'snapmla verify-run' derives them again. It replaces the grid, "
     "--distribution and --seed",
     0, 0},
    {OPT_INT, "challenge-tokens", 0, &bench_kernel_given.challenge_tokens, "N",
     "with --challenge: about the largest number of tokens of one cell", 1 << 12, 1 << 24},
    DEVICE_OPTIONS(bench_kernel_given.device),
    {.type = OPT_GROUP, .help = "Measuring"},
    {OPT_NUM, "min-time", 0, &bench_kernel_given.min_time_s, "S",
     "minimum measured time of one cell, in seconds", 0, 3600},
    {OPT_NUM, "timeout", 0, &bench_kernel_given.timeout_s, "S",
     "maximum wall time of one shape and scope, in seconds", 0, 3600},
    {OPT_NUM, "time-limit", 0, &bench_kernel_given.limit_s, "S",
     "time for all cells together, in seconds; 0 = none. A shape and scope that would exceed it, "
     "by the speed of the cells before it, is skipped",
     0, 1e6},
    {OPT_NUM, "rest", 0, &bench_kernel_given.rest, "N",
     "on a GPU: idle time between blocks of samples (A B B A), as a multiple of the block's time; "
     "with pauses the clock is not lowered by the power limit",
     0, 100},
    {OPT_NUM, "sustained", 0, &bench_kernel_given.sustained_s, "S",
     "instead of single steps with a cold cache, run two loops per arm, each S seconds long "
     "without a pause; power and tokens per joule need at least 2 seconds",
     0, 600},
    {OPT_INT, "min-samples", 0, &bench_kernel_given.min_samples, "N",
     "minimum number of samples of one cell, unless --timeout ends it earlier", 1, 10000},
    {OPT_STR, "ceilings", 0, &bench_kernel_given.ceilings_path, "PATH",
     "result file or run folder with the ceilings; without it they are measured", 0, 0},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &bench_kernel_given.out, "PATH",
     "write the result to this .json file or run folder; an interrupted run continues where it "
     "stopped",
     0, 0},
    {OPT_GONE, "what", 0, verbs_of_what, "NAME", NULL, 0, 0},
    {.type = OPT_END},
};
