#include "harness/cmd/eval_arguments.h"

#include <limits.h>

eval_arguments cmd_eval_given = {.options = {.seed = 1, .temperature = -1, .max_lost_pct = -1},
                                 .stream = true};

const opt cmd_eval_options[] = {
    {.type = OPT_GROUP, .help = "Questions"},
    {OPT_STR, "suite", 's', &cmd_eval_given.options.suite, "LIST",
     "tasks or suites: aime24, aime25, math500, hmmt_feb25, gsm8k, gpqa_diamond, beyond_aime, "
     "mmlu_pro, mmlu_redux, ifeval, zebralogic, arena_hard, livecodebench, humaneval, mbpp, "
     "synth_aime, synth_math, synth_gpqa, synth_code, long_needle, long_keys, long_values, "
     "long_lookup, long_variables, long_count, long_frequent, long_order, long_copy, long_turns, "
     "long_turns_own, longbench_v2, mrcr, ruler, ruler_qa, the NAME of a file "
     "configs/suites/NAME.json, or the path of a suite file or of a task file of your own (see "
     "'eval check-task')",
     0, 0},
    {OPT_STR, "data", 'd', &cmd_eval_given.options.data, "PATH",
     "folder of the data sets, or the file of the only task; default: the shipped datasets/", 0, 0},
    {OPT_INT, "samples", 'n', &cmd_eval_given.options.samples, "N",
     "samples per problem; 0 = as in the suite, or else in the task", 0, 100000},
    {OPT_INT, "limit", 0, &cmd_eval_given.options.limit, "N",
     "use only the first N problems of each task; 0 = all", 0, INT_MAX},
    {OPT_STR, "lengths", 0, &cmd_eval_given.options.lengths, "LIST",
     "lengths in tokens of the texts that the program makes (long_needle and others), for example "
     "16384,65536; default: those of the task",
     0, 0},
    {OPT_STR, "tokenizer", 0, &cmd_eval_given.options.tokenizer, "DIR",
     "folder of a checkpoint whose tokenizer counts these tokens; default: that of the first local "
     "arm",
     0, 0},
    {OPT_NUM, "chars-per-token", 0, &cmd_eval_given.options.chars_per_token, "X",
     "count characters instead: X of them are one token, for servers whose tokenizer is not here; "
     "0 = use the tokenizer, or without one 4",
     0, 100},
    {OPT_STR, "gpqa-password", 0, &cmd_eval_given.options.gpqa_password, "WORD",
     "password of GPQA's archive; default: the one that its authors publish", 0, 0},
    {OPT_FLAG, "keep-gpqa-text", 0, &cmd_eval_given.options.keep_gpqa_text, NULL,
     "also write the prompts of GPQA into samples.jsonl; its authors ask not to publish them", 0,
     0},
    {OPT_STR, "shard", 0, &cmd_eval_given.options.shard, "I/N",
     "run only part I of N, into a separate RUN folder; 'snapmla merge' joins the parts", 0, 0},
    {OPT_STR, "lcb-version", 0, &cmd_eval_given.options.lcb_version, "NAME",
     "version of LiveCodeBench: release_v1..release_v6, release_latest, one part (v6) or several "
     "parts (v2_v4); default: all files that are present",
     0, 0},
    {OPT_STR, "lcb-from", 0, &cmd_eval_given.options.lcb_from, "DATE",
     "LiveCodeBench: only contests on or after this day, for example 2024-08-01", 0, 0},
    {OPT_STR, "lcb-to", 0, &cmd_eval_given.options.lcb_to, "DATE",
     "LiveCodeBench: only contests on or before this day", 0, 0},
    {.type = OPT_GROUP, .help = "Arms"},
    {OPT_LIST, "arm", 'a', &cmd_eval_given.options.arms, "NAME=GENERATOR[,KEY=VALUE...]",
     "one arm; give the option once for each arm, the baseline first. GENERATOR: "
     "http(s)://HOST/v1, several servers as URL|URL*WEIGHT, local:DIR (a checkpoint that this "
     "program runs), or replay:FILE (recorded answers). Keys: model precision stream retries "
     "timeout deadline in_flight rpm tpm (requests and tokens per minute) seed temperature top_p "
     "top_k min_p presence_penalty frequency_penalty repetition_penalty max_tokens "
     "max_completion_tokens system=TEXT. Keys of requests to servers: body=JSON (further members "
     "of each request), api (chat; completions), template=JSON (the text of a prompt for "
     "completions), content (text; parts), reasoning (tagged; opened: the prompt opens it), "
     "thinking_budget with server (vllm, sglang, llamacpp, template, dashscope, openrouter, "
     "anthropic, nim). system, body and template also take @FILE; a value that begins with a "
     "brace or a quote is JSON and may contain commas. Keys of a server that needs a secret: "
     "key_env=NAME (the API key is in this "
     "environment variable; none: no key), header=NAME:VARIABLE or header=NAME:@FILE (may be given "
     "again). Keys of local: precision (bf16; fp8; fp32; noPV; a name that 'snapmla formats' "
     "lists, "
     "or a .json file: the cache is rounded through that format), device (cpu, cuda, cuda:0,1, "
     "opencl, plugin:PATH), layout (DPn: n replicas of the model, each on one of the devices; TPn: "
     "one model, split over the devices; DPm/TPn; EPn, TPn/EPn: the experts are divided over the "
     "devices; for cpu or cuda), context, cache_mb (of each replica), "
     "threads, template",
     0, 0},
    {OPT_INT, "in-flight", 'j', &cmd_eval_given.in_flight, "N",
     "requests in flight for each arm; 0 = the default of the generator", 0, 4096},
    {OPT_LIST, "control", 0, &cmd_eval_given.options.controls, "KIND",
     "control arm; may be given again. seeds: the baseline with other seeds, which shows the noise "
     "of the comparison. damaged=GENERATOR[,KEY=VALUE...]: an arm that is known to be worse, which "
     "shows whether the task detects damage. damaged=auto: a local baseline with a coarser cache",
     0, 0},
    {OPT_FLAG, "stream", 0, &cmd_eval_given.stream, NULL,
     "receive answers as server-sent events, which gives the time to first token", 0, 0},
    {.type = OPT_GROUP, .help = "Sampling"},
    {OPT_NUM, "temperature", 't', &cmd_eval_given.options.temperature, "T",
     "temperature; -1 = as in the suite", -1, 100},
    {OPT_NUM, "top-p", 0, &cmd_eval_given.options.top_p, "P", "top-p; 0 = as in the suite", 0, 1},
    {OPT_INT, "max-tokens", 0, &cmd_eval_given.options.max_tokens, "N",
     "maximum number of completion tokens; 0 = as in the suite", 0, INT_MAX},
    {OPT_INT, "thinking-budget", 0, &cmd_eval_given.options.thinking_budget, "N",
     "maximum number of reasoning tokens, for arms with server=FAMILY; 0 = as in the suite", 0,
     INT_MAX},
    {OPT_INT, "seed", 0, &cmd_eval_given.options.seed, "N",
     "seed of the run; the seed of each sample is computed from it, the task, the problem and the "
     "number of the sample",
     0, 9007199254740991.0},
    {.type = OPT_GROUP, .help = "Result"},
    {OPT_STR, "out", 'o', &cmd_eval_given.options.out, "RUN",
     "folder of the run; an interrupted run continues", 0, 0},
    {OPT_NUM, "margin", 0, &cmd_eval_given.options.margin_pp, "PP",
     "equivalence margin: the largest difference in accuracy that counts as no difference, in "
     "percentage points; 0 = as in the first suite that has one, or else in the first such task, "
     "or else 2",
     0, 100},
    {OPT_NUM, "max-lost", 0, &cmd_eval_given.options.max_lost_pct, "PCT",
     "if an arm lost more than PCT percent of its samples, no verdict is 'equivalent'; -1 = 1, or "
     "as in the run that is graded again",
     -1, 100},
    {OPT_STR, "may-differ", 0, &cmd_eval_given.options.may_differ, "LIST",
     "what the requests of compared arms may differ in, for example body,max_tokens; arms that "
     "differ in anything else are not compared",
     0, 0},
    {OPT_STR, "math-policy", 0, &cmd_eval_given.options.math_policy, "NAME",
     "grading of mathematics; truth: accepts what is mathematically equal; field: gives the "
     "verdict of the usual graders where they agree; strict: as prm800k; default: truth",
     0, 0},
    {OPT_STR, "judge", 0, &cmd_eval_given.options.judge, "KIND",
     "how programs are tested; real: one Python process for each test, or for all assertions of a "
     "problem; lcb: like LiveCodeBench's own checker, to match published figures; default: real",
     0, 0},
    {OPT_INT, "judge-jobs", 0, &cmd_eval_given.options.judge_jobs, "N",
     "programs that are tested at the same time; 0 = one per processor", 0, 1024},
    {OPT_STR, "judge-model", 0, &cmd_eval_given.options.judge_model, "GENERATOR[,KEY=VALUE...]",
     "a judge model, written like an arm without its name; default: temperature 0 and at most "
     "16000 tokens. It judges open answers (arena_hard). It also gives a second opinion about "
     "mathematical answers that the rules cannot decide; these are counted separately and change "
     "no verdict",
     0, 0},
    {OPT_FLAG, "regrade", 0, &cmd_eval_given.options.regrade, NULL,
     "grade the samples in --out again, and generate nothing", 0, 0},
    {.type = OPT_END},
};
