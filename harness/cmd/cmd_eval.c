/* cmd_eval.c - `snapmla eval` */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/eval/eval_run.h"
#include "harness/view/run_report.h"

static eval_options o = {.seed = 1, .temperature = -1};
static int64_t in_flight;
static bool stream = true;

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Questions"},
    {OPT_STR, "suite", 's', &o.suite, "LIST",
     "tasks and suites: aime24, aime25, math500, hmmt_feb25, gsm8k, gpqa_diamond, "
     "beyond_aime, mmlu_pro, mmlu_redux, ifeval, zebralogic, arena_hard, "
     "livecodebench, humaneval, mbpp, synth_aime, synth_math, synth_gpqa, synth_code, "
     "configs/suites/NAME.json, a path",
     0, 0},
    {OPT_STR, "data", 'd', &o.data, "PATH",
     "folder of the data sets, or the one file; default: the "
     "program's own datasets/",
     0, 0},
    {OPT_INT, "samples", 'n', &o.samples, "N", "samples of each problem; 0 = the suite's", 0,
     100000},
    {OPT_INT, "limit", 0, &o.limit, "N", "the first N problems of each task; 0 = all", 0, INT_MAX},
    {OPT_STR, "gpqa-password", 0, &o.gpqa_password, "WORD",
     "of GPQA's archive; default: the one its authors publish", 0, 0},
    {OPT_FLAG, "keep-gpqa-text", 0, &o.keep_gpqa_text, NULL,
     "write GPQA's prompts into samples.jsonl; its authors ask not to publish them", 0, 0},
    {OPT_STR, "shard", 0, &o.shard, "I/N",
     "run only part I of N, in a RUN folder of its own; 'snapmla merge' joins the parts", 0, 0},
    {OPT_STR, "lcb-version", 0, &o.lcb_version, "NAME",
     "of LiveCodeBench: release_v1..release_v6, release_latest, one part (v6) or several (v2_v4); "
     "default: all files that are there",
     0, 0},
    {OPT_STR, "lcb-from", 0, &o.lcb_from, "DATE",
     "LiveCodeBench: contests from that day on, as 2024-08-01", 0, 0},
    {OPT_STR, "lcb-to", 0, &o.lcb_to, "DATE", "LiveCodeBench: contests up to that day", 0, 0},
    {.type = OPT_GROUP, .help = "Arms"},
    {OPT_LIST, "arm", 'a', &o.arms, "NAME=GENERATOR[,KEY=VALUE...]",
     "repeatable, the first is the baseline; GENERATOR: http(s)://HOST/v1, several of them as "
     "URL|URL*WEIGHT, local:DIR (a checkpoint, run here), or replay:FILE; keys: model precision "
     "stream retries timeout deadline in_flight rpm tpm (requests and tokens per minute) seed "
     "temperature top_p max_tokens; local: precision (bf16, fp8; fp32; A to F, noPV: damaged), "
     "device (cpu, cuda, opencl, plugin:PATH), context, cache_mb, threads, template",
     0, 0},
    {OPT_INT, "in-flight", 'j', &in_flight, "N",
     "requests at once for each arm; 0 = the generator's default", 0, 4096},
    {OPT_LIST, "control", 0, &o.controls, "KIND",
     "repeatable; seeds: run the baseline once more with other seeds, the noise floor of the "
     "comparison; damaged=GENERATOR[,KEY=VALUE...]: an arm that is known to be worse, which shows "
     "whether the set can see damage",
     0, 0},
    {OPT_FLAG, "stream", 0, &stream, NULL, "server-sent events, which give the time to first token",
     0, 0},
    {.type = OPT_GROUP, .help = "Sampling"},
    {OPT_NUM, "temperature", 't', &o.temperature, "T", "-1 = the suite's", -1, 100},
    {OPT_NUM, "top-p", 0, &o.top_p, "P", "0 = the suite's", 0, 1},
    {OPT_INT, "max-tokens", 0, &o.max_tokens, "N", "completion tokens at most; 0 = the suite's", 0,
     INT_MAX},
    {OPT_INT, "seed", 0, &o.seed, "N",
     "each sample's seed follows from it, the task, the problem and the sample's number", 0,
     9007199254740991.0},
    {.type = OPT_GROUP, .help = "Result"},
    {OPT_STR, "out", 'o', &o.out, "RUN", "folder of the run; a run that was stopped continues", 0,
     0},
    {OPT_NUM, "margin", 0, &o.margin_pp, "PP",
     "largest difference in accuracy that counts as none, in points; 0 = the suite's", 0, 100},
    {OPT_STR, "math-policy", 0, &o.math_policy, "NAME",
     "field: what the field's graders accept between them; strict: as prm800k; default: field", 0,
     0},
    {OPT_STR, "judge", 0, &o.judge, "KIND",
     "of programs; real: each test in a Python process of its own; lcb: as LiveCodeBench's own "
     "checker, to agree with published figures; default: real",
     0, 0},
    {OPT_INT, "judge-jobs", 0, &o.judge_jobs, "N", "programs judged at once; 0 = one per processor",
     0, 1024},
    {OPT_STR, "judge-model", 0, &o.judge_model, "GENERATOR[,KEY=VALUE...]",
     "the model that judges open answers (arena_hard), given like an arm but without a name; "
     "default: temperature 0 and 16000 tokens",
     0, 0},
    {OPT_FLAG, "regrade", 0, &o.regrade, NULL,
     "judge the samples in --out again, and generate nothing", 0, 0},
    {.type = OPT_END},
};

static snap_status run(opt_shared *shared, snap_err *err) {
    const char *key = getenv("SNAPMLA_API_KEY");
    o.generate = (generate_options){.api_key = key ? key : getenv("OPENAI_API_KEY"),
                                    .in_flight = (int)in_flight,
                                    .no_stream = !stream,
                                    .cancel = &cmd_cancelled};
    o.report = run_report_write;
    (void)js_delete(shared->resolved, "gpqa-password"); /* not for the result file */
    results *r = NULL;
    snap_status st = eval_run(&o, shared->resolved, &r, err);
    snap_status printed = SNAP_OK;
    if (r)
        printed = print_evals(r, shared, st == SNAP_OK ? err : NULL);
    else if (st == SNAP_OK && o.shard && !shared->json)
        (void)printf("shard %s is done: join all with snapmla merge\n", o.shard);
    results_free(r);
    return st == SNAP_OK ? printed : st;
}

static const opt_command *const verbs[] = {&cmd_eval_plan, &cmd_eval_show, NULL};

const opt_command cmd_eval = {
    .name = "eval",
    .summary = "ask two precisions the same questions, compare the answers",
    .synopsis = "--suite LIST --arm NAME=GENERATOR... --out RUN [options]",
    .about =
        "Gives every arm the same questions with the same seeds, judges the answers, and compares\n"
        "each arm with the first one: paired differences with confidence intervals and a test of\n"
        "equivalence. Failed requests are counted and left out, never scored as wrong. An API key\n"
        "is read from SNAPMLA_API_KEY, else OPENAI_API_KEY. GPQA is read from its archive in\n"
        "memory; no text of it is written except what a model quotes.",
    .examples = "  snapmla eval --suite aime24,aime25 --data ../datasets --out RUN \\\n"
                "      --arm bf16=http://127.0.0.1:8000/v1,model=a --arm "
                "fp8=http://127.0.0.1:8001/v1,model=b\n"
                "  snapmla eval --suite demo --out RUN --arm "
                "bf16=replay:datasets/synth_aime/bf16.jsonl \\\n"
                "      --arm fp8=replay:datasets/synth_aime/fp8.jsonl\n"
                "  snapmla eval --suite aime --out RUN --control seeds \\\n"
                "      --control damaged=http://127.0.0.1:8002/v1,model=c --arm ...\n"
                "  snapmla eval --regrade --out RUN",
    .options = options,
    .run = run,
    .verbs = verbs,
};
