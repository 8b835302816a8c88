#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/eval/eval_run.h"
#include "harness/eval/power.h"
#include "harness/view/eval_plan.h"
#include "harness/view/eval_show.h"
#include "harness/view/eval_text.h"
#include "harness/view/run_report.h"

static eval_options o = {.seed = 1, .temperature = -1};
static int64_t in_flight;
static bool stream = true;
static double power;
static const char *from;
static show_options looking = {.sample = -1, .rows = 50};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "What is asked"},
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
     "ask part I of N only, in a RUN folder of its own; 'snapmla merge' joins the parts", 0, 0},
    {OPT_STR, "lcb-version", 0, &o.lcb_version, "NAME",
     "of LiveCodeBench: release_v1..release_v6, release_latest, one part (v6) or several (v2_v4); "
     "default: all files that are there",
     0, 0},
    {OPT_STR, "lcb-from", 0, &o.lcb_from, "DATE",
     "LiveCodeBench: contests from that day on, as 2024-08-01", 0, 0},
    {OPT_STR, "lcb-to", 0, &o.lcb_to, "DATE", "LiveCodeBench: contests up to that day", 0, 0},
    {.type = OPT_GROUP, .help = "Of whom"},
    {OPT_LIST, "arm", 'a', &o.arms, "NAME=GENERATOR[,KEY=VALUE...]",
     "repeatable, the first is the baseline; GENERATOR: http(s)://HOST/v1, several "
     "of them as URL|URL*WEIGHT, local:DIR (a checkpoint, run here), or replay:FILE; keys: "
     "model precision stream retries timeout deadline in_flight rpm tpm (requests and tokens a "
     "minute) seed temperature top_p max_tokens; "
     "local: precision (bf16, fp8; fp32; A to F, noPV: damaged), device (cpu, cuda, opencl, "
     "plugin:PATH), context, "
     "cache_mb, threads, "
     "template",
     0, 0},
    {OPT_INT, "in-flight", 'j', &in_flight, "N",
     "requests at once for each arm; 0 = the generator's default", 0, 4096},
    {OPT_LIST, "control", 0, &o.controls, "KIND",
     "repeatable; seeds: ask the baseline once more with other seeds, the noise floor of the "
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
    {OPT_STR, "out", 'o', &o.out, "RUN",
     "folder of the run; one that exists goes on where it stopped", 0, 0},
    {OPT_NUM, "margin", 0, &o.margin_pp, "PP",
     "largest difference in accuracy that counts as none, in points; 0 = the suite's", 0, 100},
    {OPT_STR, "math-policy", 0, &o.math_policy, "NAME",
     "field: what the field's graders accept between them; strict: as prm800k; default: field", 0,
     0},
    {OPT_STR, "judge", 0, &o.judge, "KIND",
     "of programs; real: each test in a Python process of its own; lcb: as LiveCodeBench's own "
     "checker, to agree with published figures; default: real",
     0, 0},
    {OPT_INT, "judge-jobs", 0, &o.judge_jobs, "N", "programs judged at once; 0 = one a processor",
     0, 1024},
    {OPT_STR, "judge-model", 0, &o.judge_model, "GENERATOR[,KEY=VALUE...]",
     "who judges open answers (arena_hard), as an arm is given, without a name; temperature 0 and "
     "16000 tokens unless its keys say otherwise",
     0, 0},
    {OPT_FLAG, "regrade", 0, &o.regrade, NULL,
     "judge the samples in --out again, and generate nothing", 0, 0},
    {.type = OPT_GROUP, .help = "eval plan: how many samples it takes to show equivalence"},
    {OPT_NUM, "power", 0, &power, "P", "chance to show it when there is no difference; 0 = 0.9", 0,
     0.999},
    {OPT_STR, "from", 0, &from, "RUN",
     "take the variances from an earlier run; default: planning values", 0, 0},
    {.type = OPT_GROUP,
     .help = "eval show RUN: the questions and answers, of --suite and --arm NAME if given"},
    {OPT_STR, "only", 0, &looking.only, "LIST",
     "questions of these kinds: differs (one arm right, another not), wrong, unparsed, truncated, "
     "empty, failed, correct",
     0, 0},
    {OPT_STR, "problem", 0, &looking.problem, "ID", "of that problem", 0, 0},
    {OPT_INT, "sample", 0, &looking.sample, "K",
     "of that sample, from 0; with --problem the answers in full; -1 = all", -1, INT_MAX},
    {OPT_FLAG, "full", 0, &looking.full, NULL, "the answers themselves, arms side by side", 0, 0},
    {OPT_INT, "rows", 0, &looking.rows, "N", "so many questions at most; 0 = all", 0, INT_MAX},
    {.type = OPT_END},
};

typedef snap_status (*view_fn)(const js *rows, bool color, buf *out, snap_err *err);

/* @document with --json, else @rows as a table. */
static snap_status print(const opt_shared *shared, const js *document, const js *rows, view_fn view,
                         snap_err *err) {
    buf out = {0};
    snap_status st;
    if (shared->json) {
        st = js_write(document, JS_PRETTY, &out, err);
        (void)buf_puts(&out, "\n");
    } else {
        st = view(rows, term_use_color(1), &out, err);
    }
    if (st == SNAP_OK)
        (void)fputs(buf_str(&out), stdout);
    buf_release(&out);
    return st;
}

static snap_status plan(const opt_shared *shared, snap_err *err) {
    const power_options asked = {.suite = o.suite,
                                 .from = from,
                                 .samples = o.samples,
                                 .limit = o.limit,
                                 .margin_pp = o.margin_pp,
                                 .power = power > 0 ? power : 0.9};
    js *rows = NULL;
    snap_status st = power_plan(&asked, &rows, err);
    if (st == SNAP_OK)
        st = print(shared, rows, rows, eval_plan_text, err);
    js_free(rows);
    return st;
}

static snap_status print_piece(void *ctx, const buf *text, snap_err *err) {
    (void)ctx;
    if (fwrite(buf_str(text), 1, text->len, stdout) == text->len)
        return SNAP_OK;
    return err_set_errno(err, "cannot write standard output");
}

static snap_status show(const opt_shared *shared, snap_err *err) {
    looking.run = shared->n_args > 1 ? shared->args[1] : o.out;
    if (!looking.run)
        return err_set(err, SNAP_E_USAGE, "eval show: no folder of a run is given");
    if (o.arms.n > 1)
        return err_set(err, SNAP_E_USAGE, "eval show takes one --arm NAME, or none");
    looking.tasks = o.suite;
    looking.arm = o.arms.n ? o.arms.items[0] : NULL;
    looking.json = shared->json;
    looking.color = term_use_color(1);
    looking.width = term_width(1);
    return eval_show(&looking, print_piece, NULL, err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    const char *verb = shared->n_args ? shared->args[0] : NULL;
    if (verb && strcmp(verb, "show") == 0)
        return show(shared, err);
    if (verb && (strcmp(verb, "plan") != 0 || shared->n_args > 1))
        return err_set(err, SNAP_E_USAGE, "'eval %s' is unknown: eval, eval plan or eval show RUN",
                       verb);
    if (verb)
        return plan(shared, err);
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
        printed = print(shared, results_document(r), results_section(r, "evals"), eval_view,
                        st == SNAP_OK ? err : NULL);
    else if (st == SNAP_OK && o.shard && !shared->json)
        (void)printf("shard %s is done: join all with snapmla merge\n", o.shard);
    results_free(r);
    return st == SNAP_OK ? printed : st;
}

const opt_command cmd_eval = {
    .name = "eval",
    .summary = "ask two precisions the same questions, compare the answers",
    .synopsis = "[plan | show RUN] --suite LIST --arm NAME=GENERATOR... --out RUN [options]",
    .max_args = 2,
    .about =
        "Asks every arm the same questions with the same seeds, judges the answers, and compares\n"
        "each arm with the first one: paired differences with confidence intervals and a test of\n"
        "equivalence. Failed requests are counted and left out, never scored as wrong. An API key\n"
        "is read from SNAPMLA_API_KEY, else OPENAI_API_KEY. GPQA is read from its archive in "
        "memory;\nof its text nothing is written but what a model says.",
    .examples = "  snapmla eval --suite aime24,aime25 --data ../datasets --out RUN \\\n"
                "      --arm bf16=http://127.0.0.1:8000/v1,model=a --arm "
                "fp8=http://127.0.0.1:8001/v1,model=b\n"
                "  snapmla eval --suite demo --out RUN --arm "
                "bf16=replay:datasets/synth_aime/bf16.jsonl \\\n"
                "      --arm fp8=replay:datasets/synth_aime/fp8.jsonl\n"
                "  snapmla eval --suite aime --out RUN --control seeds \\\n"
                "      --control damaged=http://127.0.0.1:8002/v1,model=c --arm ...\n"
                "  snapmla eval --regrade --out RUN\n"
                "  snapmla eval show RUN --only differs,unparsed\n"
                "  snapmla eval show RUN --problem 2024-II-4 --sample 3\n"
                "  snapmla eval plan --suite aime24,math500 --margin 2 --power 0.9",
    .options = options,
    .run = run,
};
