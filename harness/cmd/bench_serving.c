/* bench_serving.c - `snapmla bench serving` */
#include <limits.h>
#include <stdlib.h>

#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/cmd/print_serving.h"
#include "harness/serving/serving_results.h"

static serving_options o = {.arrivals = "poisson",
                            .think = "0",
                            .prefixes = 1,
                            .turns = 1,
                            .ignore_eos = true,
                            .temperature = -1,
                            .blocks = 2,
                            .warmup = 4,
                            .drain_s = 60,
                            .margin_pp = 2,
                            .seed = 1};

static const char *slo;
static double gpus;

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Arms"},
    {OPT_LIST, "arm", 'a', &o.arms, "NAME=URL[,KEY=VALUE...]",
     "one arm; give the option once for each arm, the baseline first. URL: http(s)://HOST/v1, or "
     "several servers as URL|URL*WEIGHT. The keys are those of 'snapmla eval' for servers, for "
     "example model, key_env, header, body, api, stream and timeout, but not retries, rpm, tpm and "
     "in_flight",
     0, 0},
    {OPT_FLAG, "concurrent-arms", 0, &o.concurrent_arms, NULL,
     "send to all arms at the same time, instead of in turns", 0, 0},
    {.type = OPT_GROUP, .help = "Load (each value of these lists is one load point)"},
    {OPT_STR, "concurrency", 'c', &o.concurrency, "LIST",
     "closed loops: numbers of users; each sends its next request when its last one has ended", 0,
     0},
    {OPT_STR, "rate", 'r', &o.rate, "LIST", "open loops: conversations that start per second", 0,
     0},
    {OPT_STR, "arrivals", 0, &o.arrivals, "KIND",
     "arrivals of an open loop: constant, poisson, or gamma:SHAPE (below 1: bursts)", 0, 0},
    {OPT_STR, "ramp", 0, &o.ramp, "A-B",
     "an open loop whose rate changes from A to B within --duration", 0, 0},
    {OPT_STR, "trace", 0, &o.trace, "FILE",
     "lengths of requests from a trace: JSON lines with time, input_length, output_length and "
     "prefix; a trace of Mooncake; or a CSV file of BurstGPT or of Azure's LLM inference traces",
     0, 0},
    {OPT_STR, "speed", 0, &o.speed, "LIST",
     "the times of the trace, too, faster by these factors (1: as recorded)", 0, 0},
    {OPT_STR, "search", 0, &o.search, "RANGE",
     "instead of a list: search each arm's highest load that meets --slo, in rate:A-B (open loops) "
     "or concurrency:A-B (closed loops); all arms take turns at each load that is tried",
     0, 0},
    {OPT_STR, "think", 0, &o.think, "SECONDS",
     "pause between an answer and the next request of the same user; written like --input, or as "
     "exponential:MEAN",
     0, 0},
    {.type = OPT_GROUP, .help = "Requests"},
    {OPT_STR, "input", 0, &o.input, "TOKENS",
     "length of the prompt, with the chat template: N, uniform:A-B, lognormal:MEDIAN:SIGMA, or "
     "file:PATH (one number per line); default: 512",
     0, 0},
    {OPT_STR, "output", 0, &o.output, "TOKENS",
     "length of the answer, written like --input; default: 128, or as in the trace, or up to the "
     "limit of the task",
     0, 0},
    {OPT_FLAG, "ignore-eos", 0, &o.ignore_eos, NULL,
     "send ignore_eos, so that an answer has its full length (not with --prompts)", 0, 0},
    {OPT_STR, "tokenizer", 0, &o.tokenizer, "DIR",
     "checkpoint whose tokenizer makes prompts of exact length; without it the length is fitted to "
     "the usage that the first arm's server reports",
     0, 0},
    {OPT_NUM, "prefix-share", 0, &o.prefix_share, "X",
     "fraction of each prompt that it shares with others", 0, 1},
    {OPT_INT, "prefixes", 0, &o.prefixes, "N", "number of different shared prefixes", 1, 1 << 20},
    {OPT_INT, "turns", 0, &o.turns, "N", "turns of a conversation; --input is that of one turn", 1,
     WORK_MOST_TURNS},
    {OPT_STR, "prompts", 0, &o.prompts, "task:NAME", "prompts of a task, as in 'snapmla eval'", 0,
     0},
    {OPT_STR, "data", 'd', &o.data, "PATH",
     "with --prompts: folder of the data sets; default: the shipped datasets/", 0, 0},
    {OPT_FLAG, "grade", 0, &o.grade, NULL,
     "with --prompts: store and grade the answers, and compare the arms' accuracies at each load "
     "point",
     0, 0},
    {OPT_NUM, "margin", 0, &o.margin_pp, "PP",
     "with --grade: the largest difference in accuracy that counts as no difference, in percentage "
     "points",
     0.01, 100},
    {OPT_NUM, "temperature", 't', &o.temperature, "T",
     "temperature; -1 = 0, or as in the task's suite", -1, 100},
    {OPT_INT, "max-tokens", 0, &o.max_tokens, "N",
     "with --prompts: maximum number of completion tokens; 0 = as in the task's suite", 0, INT_MAX},
    {OPT_INT, "seed", 0, &o.seed, "N",
     "seed of arrivals, lengths, prompts and sampling, which are the same for all arms", 0,
     9007199254740991.0},
    {.type = OPT_GROUP, .help = "Measuring"},
    {OPT_NUM, "duration", 0, &o.duration_s, "S",
     "time during which a block sends requests; 0 = no limit, or 30 if --requests is 0, too", 0,
     86400},
    {OPT_INT, "requests", 'n', &o.requests, "N", "requests of a block; 0 = no limit", 0, INT_MAX},
    {OPT_INT, "blocks", 0, &o.blocks, "N",
     "turns of each arm at a load point; the arms take turns as A B B A", 1, SLICES_MOST},
    {OPT_INT, "warmup", 0, &o.warmup, "N",
     "requests before an arm's first turn at a load point, which are not recorded", 0, 10000},
    {OPT_NUM, "drain", 0, &o.drain_s, "S",
     "how long a block waits for its last answers; requests without an answer are cut", 0, 86400},
    {.type = OPT_GROUP, .help = "Targets"},
    {OPT_STR, "slo", 0, &slo, "LIST",
     "latency targets, for example ttft_p99=500ms,tpot_p99=50ms,e2e_p95=10s: a load meets them if "
     "the percentiles do, and goodput counts the requests that meet all. The latencies are ttft, "
     "ttft_due, itl, tpot, e2e and normalised. A finished run can be judged again by other "
     "targets, --gpus and --margin",
     0, 0},
    {OPT_NUM, "gpus", 0, &gpus, "N",
     "GPUs of each server, for tokens per second and GPU; 0 = not stated", 0, 1e6},
    {.type = OPT_GROUP, .help = "Several processes"},
    {OPT_STR, "part", 0, &o.part, "I/N",
     "send part I of N of the load: a share of the users, or every N-th conversation; 'snapmla "
     "merge' joins the folders of the parts",
     0, 0},
    {OPT_STR, "meet", 0, &o.meet, "HOST:PORT",
     "with --part: where part 1 listens and the others connect, so that all begin each block at "
     "the same time",
     0, 0},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &o.out, "RUN",
     "folder of the run; an interrupted run continues with the block that was not complete", 0, 0},
    {.type = OPT_END},
};

static snap_status print_part(snap_err *err) {
    buf text = {0};
    (void)buf_printf(&text,
                     "part %s is complete in %s; 'snapmla merge' joins the folders of all parts\n",
                     o.part, o.out);
    snap_status st = print_text(&text, "the result", err);
    buf_release(&text);
    return st;
}

/* Writes run.json of a run that was interrupted. Returns the reason for the interruption, unless
 * writing fails. */
static snap_status keep_interrupted(const serving_result *res, const serving_judgement *judge,
                                    const js *config, snap_status why, snap_err *err) {
    snap_err own = {0};
    results *r = NULL;
    snap_status st = serving_results_make(&o, res, judge, config, &r, &own);
    results_free(r);
    if (st != SNAP_OK)
        *err = own;
    return st == SNAP_OK ? why : st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    const char *from = getenv("SNAPMLA_API_KEY") ? "SNAPMLA_API_KEY" : "OPENAI_API_KEY";
    serving_judgement judge = {.gpus = gpus};
    serving_result res = {0};
    results *r = NULL;
    snap_status st = SNAP_OK;
    o.generate =
        (generate_options){.api_key = getenv(from), .api_key_from = from, .cancel = &cmd_cancelled};
    if (slo)
        TRY(slo_parse(slo, &judge.targets, err));
    o.targets = judge.targets;
    st = serving_run(&o, shared->resolved, &res, err);
    if (res.interrupted && !o.part)
        st = keep_interrupted(&res, &judge, shared->resolved, st, err);
    TRY(st);
    if (o.part) {
        TRY(print_part(err));
        goto cleanup;
    }
    TRY(serving_results_make(&o, &res, &judge, shared->resolved, &r, err));
    TRY(print_serving(r, &res, shared->json, err));
cleanup:
    results_free(r);
    serving_result_release(&res);
    return st;
}

const opt_command cmd_bench_serving = {
    .name = "bench serving",
    .summary = "load OpenAI-compatible servers, and time their answers",
    .synopsis = "--arm NAME=URL... --out RUN --concurrency LIST|--rate LIST [options]",
    .about = "Sends requests to servers at stated loads and records each answer's times. The\n"
             "arms take turns, with the same prompts, lengths and due times. No request is\n"
             "repeated. Latencies are in milliseconds: TTFT is the time to the first piece of\n"
             "text, TPOT the time per output token after the first, ITL the time between two\n"
             "pieces, and E2E the time to the end. The lag is the delay that this program adds\n"
             "to the times it measures; a latency is flagged if the lag may have changed it by\n"
             "more than 1 %. Figures are those of the steady part of each block, with 95 %\n"
             "intervals; RUN/run.json has all of them, and 'snapmla report RUN' shows them. The\n"
             "API key is read from SNAPMLA_API_KEY or else from OPENAI_API_KEY, and is sent as by\n"
             "'snapmla eval'.",
    .examples =
        "  snapmla bench serving --out RUN --concurrency 1,8,64 --input 512 --output 128 \\\n"
        "      --arm bf16=http://127.0.0.1:8000/v1,model=a --arm "
        "fp8=http://127.0.0.1:8001/v1,model=b\n"
        "  snapmla bench serving --out RUN --rate 1,2,4 --arrivals gamma:0.5 --duration 60 "
        "--arm ...\n"
        "  snapmla bench serving --out RUN --search rate:0.5-16 --slo ttft_p99=500ms --arm ...\n"
        "  snapmla bench serving --out RUN --trace mooncake.jsonl --speed 1 --arm ...",
    .options = options,
    .run = run,
    .of = &cmd_bench,
};
