/* eval_import.c - `snapmla eval import NAME=LOG...` */
#include "base/text.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/eval/import.h"

static import_options o;

static const opt options[] = {
    {OPT_STR, "out", 'o', &o.out, "DIR", "folder for the task file and the recordings", 0, 0},
    {OPT_STR, "metric", 0, &o.metric, "NAME",
     "take the verdicts of the log: a metric of lm-eval or lighteval, such as exact_match or acc, "
     "or the name of Inspect's scorer",
     0, 0},
    {OPT_STR, "filter", 0, &o.filter, "NAME",
     "lm-eval: the filter that found the answers; default: the only one, or with --task the first",
     0, 0},
    {OPT_STR, "task", 0, &o.task, "TASK",
     "judge the answers again, as this task file does; also the name of a task that is such a "
     "file, for example gsm8k",
     0, 0},
    {.type = OPT_END},
};

static void append_summary(const js *summary, buf *out) {
    const js *arms = js_get_array(summary, "arms");
    const char *by = js_get_str(summary, "by");
    const char *task = js_get_str(summary, "task");
    text_append_shown_printf(out, "%s: %lld problems", task,
                             (long long)js_get_int(summary, "problems", 0));
    if (by)
        text_append_shown_printf(out, ", judged by %s", by);
    (void)buf_puts(out, "\n");
    for (size_t i = 0; i < js_len(arms); i++) {
        const js *arm = js_at(arms, i);
        text_append_shown_printf(out, "%s: %lld samples, %lld failed", js_get_str(arm, "file"),
                                 (long long)js_get_int(arm, "samples", 0),
                                 (long long)js_get_int(arm, "failed", 0));
        if (by)
            text_append_shown_printf(out, ", %lld correct",
                                     (long long)js_get_int(arm, "correct", 0));
        (void)buf_puts(out, "\n");
    }
    text_append_shown_printf(out, "compare them: snapmla eval --suite %s", task);
    for (size_t i = 0; i < js_len(arms); i++)
        text_append_shown_printf(out, " --arm %s=replay:%s", js_get_str(js_at(arms, i), "name"),
                                 js_get_str(js_at(arms, i), "file"));
    (void)buf_puts(out, " --out RUN\n");
}

static snap_status run(opt_shared *shared, snap_err *err) {
    js *summary = NULL;
    buf text = {0};
    snap_status st;
    o.logs = shared->args;
    o.n = shared->n_args;
    TRY(import_logs(&o, &summary, err));
    if (shared->json) {
        TRY(print_json(summary, err));
    } else {
        append_summary(summary, &text);
        TRY(print_text(&text, "the summary", err));
    }
cleanup:
    buf_release(&text);
    js_free(summary);
    return st;
}

const opt_command cmd_eval_import = {
    .name = "eval import",
    .summary = "read logs of lm-evaluation-harness, Inspect or lighteval as recordings",
    .synopsis = "NAME=LOG... --out DIR (--metric NAME | --task TASK)",
    .about = "Reads one task's per-sample logs of several runs: samples_TASK_DATE.jsonl of\n"
             "lm-evaluation-harness (--log_samples), .json and .eval logs of Inspect, or\n"
             "details_TASK_DATE.parquet of lighteval (--save-details). Writes a task file and one\n"
             "recording for each log, which 'snapmla eval' compares in pairs. Logs with different\n"
             "prompts, right answers or samples are refused. The verdicts are those of the other\n"
             "program, or --task judges the answers again.",
    .examples = "  snapmla eval import bf16=a/samples_gsm8k_DATE.jsonl \\\n"
                "      fp8=b/samples_gsm8k_DATE.jsonl --metric exact_match \\\n"
                "      --filter strict-match --out DIR\n"
                "  snapmla eval import bf16=a.eval fp8=b.eval --task gsm8k --out DIR",
    .options = options,
    .min_args = 1,
    .max_args = -1,
    .run = run,
    .of = &cmd_eval,
};
