/* bench_serving.c - `snapmla bench serving` */
#include <stdlib.h>

#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/cmd/print_serving.h"
#include "harness/cmd/serving_arguments.h"

static snap_status print_part(const serving_options *o, snap_err *err) {
    buf text = {0};
    (void)buf_printf(&text,
                     "part %s is complete in %s; 'snapmla merge' joins the folders of all parts\n",
                     o->part, o->out);
    snap_status st = print_text(&text, "the result", err);
    buf_release(&text);
    return st;
}

/* Writes run.json of a run that was interrupted. Returns the reason for the interruption, unless
 * writing fails. */
static snap_status keep_interrupted(const serving_options *o, const serving_result *res,
                                    const serving_judgement *judge, const js *config,
                                    snap_status why, snap_err *err) {
    snap_err own = {0};
    results *r = NULL;
    snap_status st = serving_results_make(o, res, judge, config, &r, &own);
    results_free(r);
    if (st != SNAP_OK)
        *err = own;
    return st == SNAP_OK ? why : st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    serving_options *o = &bench_serving_given.options;
    const char *from = getenv("SNAPMLA_API_KEY") ? "SNAPMLA_API_KEY" : "OPENAI_API_KEY";
    serving_judgement judge = {.gpus = bench_serving_given.gpus};
    serving_result res = {0};
    results *r = NULL;
    snap_status st = SNAP_OK;
    o->generate =
        (generate_options){.api_key = getenv(from), .api_key_from = from, .cancel = &cmd_cancelled};
    if (bench_serving_given.slo)
        TRY(slo_parse(bench_serving_given.slo, &judge.targets, err));
    o->targets = judge.targets;
    st = serving_run(o, shared->resolved, &res, err);
    /* serving_results_make() reads them again, and a run can have millions of gaps. */
    request_list_release(&res.requests);
    if (res.interrupted && !o->part)
        st = keep_interrupted(o, &res, &judge, shared->resolved, st, err);
    TRY(st);
    if (o->part) {
        TRY(print_part(o, err));
        goto cleanup;
    }
    TRY(serving_results_make(o, &res, &judge, shared->resolved, &r, err));
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
    .options = bench_serving_options,
    .run = run,
    .of = &cmd_bench,
};
