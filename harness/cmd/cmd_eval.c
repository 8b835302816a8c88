/* cmd_eval.c - `snapmla eval` */
#include <stdio.h>
#include <stdlib.h>

#include "harness/cmd/cmd.h"
#include "harness/cmd/eval_arguments.h"
#include "harness/cmd/print.h"
#include "harness/view/run_report.h"

static snap_status run(opt_shared *shared, snap_err *err) {
    eval_options *o = &cmd_eval_given.options;
    const char *from = getenv("SNAPMLA_API_KEY") ? "SNAPMLA_API_KEY" : "OPENAI_API_KEY";
    const char *in_file = js_get_str(shared->file, "judge-model");
    o->generate = (generate_options){.api_key = getenv(from),
                                     .api_key_from = from,
                                     .judge_from_file = in_file && o->judge_model == in_file,
                                     .in_flight = (int)cmd_eval_given.in_flight,
                                     .no_stream = !cmd_eval_given.stream,
                                     .cancel = &cmd_cancelled};
    o->report = run_report_write;
    (void)js_delete(shared->resolved, "gpqa-password"); /* not for the result file */
    results *r = NULL;
    snap_status st = eval_run(o, shared->resolved, &r, err);
    snap_status printed = SNAP_OK;
    if (r)
        printed = print_evals(r, shared, st == SNAP_OK ? err : NULL);
    else if (st == SNAP_OK && o->shard && !shared->json)
        (void)printf("shard %s is done: join all shards with 'snapmla merge'\n", o->shard);
    results_free(r);
    return st == SNAP_OK ? printed : st;
}

static const opt_command *const verbs[] = {&cmd_eval_plan, &cmd_eval_show, &cmd_eval_check_task,
                                           &cmd_eval_import, NULL};

const opt_command cmd_eval = {
    .name = "eval",
    .summary = "compare the answers of two precisions to the same questions",
    .synopsis = "--suite LIST --arm NAME=GENERATOR... --out RUN [options]",
    .about = "Gives every arm the same questions with the same seeds, grades the answers, and\n"
             "compares each arm with the first one. The result has paired differences with\n"
             "confidence intervals and a test of equivalence. Failed requests are counted and\n"
             "left out; they are never graded as wrong. The API key is read from SNAPMLA_API_KEY\n"
             "or else from OPENAI_API_KEY. It is sent only over https or on this machine, to arms\n"
             "of the command line without key_env and header. GPQA is read from its archive in\n"
             "memory, and its text is not written to the disk; only the answer of a model may\n"
             "quote it.",
    .examples = "  snapmla eval --suite aime24,aime25 --data ../datasets --out RUN \\\n"
                "      --arm bf16=http://127.0.0.1:8000/v1,model=a --arm "
                "fp8=http://127.0.0.1:8001/v1,model=b\n"
                "  snapmla eval --suite demo --out RUN --arm "
                "bf16=replay:datasets/synth_aime/bf16.jsonl \\\n"
                "      --arm fp8=replay:datasets/synth_aime/fp8.jsonl\n"
                "  snapmla eval --suite aime --out RUN --control seeds \\\n"
                "      --control damaged=http://127.0.0.1:8002/v1,model=c --arm ...\n"
                "  snapmla eval --regrade --out RUN",
    .options = cmd_eval_options,
    .run = run,
    .verbs = verbs,
};
