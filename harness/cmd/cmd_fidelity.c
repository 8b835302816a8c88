/* cmd_fidelity.c - `snapmla fidelity` */
#include "base/term.h"
#include "harness/bench/fidelity.h"
#include "harness/bench/model_diverge.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/device_table.h"
#include "harness/cmd/fidelity_model.h"
#include "harness/cmd/print.h"
#include "harness/record/device_results.h"
#include "harness/view/fidelity_tables.h"

static device_options device = DEVICE_DEFAULTS;
static const char *formats = "bf16,snapmla,A,B,C,D,E,F,noPV";
static const char *distributions = "normal,mla";
static const char *contexts = "1024,4096,32768";
static int64_t heads = 16, seed = 1;
static const char *out;
static fidelity_model_args model = {.precisions = "bf16,fp8,A", .places = 32, .temperature = -1};

static opt_gone no_configs[] = {{NULL, "--formats LIST"}};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "formats", 0, &formats, "LIST",
     "cache formats: names of shipped ones, which 'snapmla formats' lists, and paths of .json "
     "files; A to F are snapmla with other scales, noPV is snapmla with P in bf16",
     0, 0},
    {OPT_GONE, "configs", 0, no_configs, "LIST", NULL, 0, 0},
    {OPT_STR, "contexts", 0, &contexts, "LIST", "numbers of cached tokens", 0, 0},
    {OPT_STR, "distribution", 0, &distributions, "LIST",
     "random input; normal: N(0,1); mla: outliers up to 1e3 in the RoPE columns; sink: one token "
     "in a thousand has a large weight for every query; adversarial: norms that span powers of "
     "two, and large products that cancel",
     0, 0},
    {OPT_INT, "heads", 0, &heads, "N", "query heads; each one is a row that is compared", 1,
     MLA_MAX_HEADS},
    {OPT_INT, "seed", 0, &seed, "N", "seed of the random numbers", 0, 1e15},
    {.type = OPT_GROUP, .help = "Predictions of a model"},
    {OPT_STR, "model", 'm', &model.dir, "DIR",
     "folder of a checkpoint: measure perplexity, KL divergence and changed tokens on --text; on "
     "the CPU, or on a device with --backend cuda (bf16 and fp8 only)",
     0, 0},
    {OPT_STR, "text", 0, &model.text, "FILE", "file with the text; - = standard input", 0, 0},
    {OPT_STR, "precisions", 0, &model.precisions, "LIST",
     "cache formats of the model: bf16, fp8, fp32, noPV, names that 'snapmla formats' lists, and "
     "paths of .json files; the first is the reference",
     0, 0},
    {OPT_INT, "max-tokens", 0, &model.max_tokens, "N",
     "maximum number of tokens of the text (0 = 32768), or of an answer of --predict (0 = as in "
     "the suite)",
     0, MLA_MAX_CONTEXT},
    {OPT_FLAG, "prefill", 0, &model.prefill, NULL,
     "process the text as a prompt instead of decoding it token by token", 0, 0},
    {OPT_INT, "diverge", 0, &model.diverge, "N",
     "also let each precision continue the text for N tokens from some places, with the tokens "
     "that "
     "it chooses itself, and compare with the reference: by the likeliest tokens, and by draws "
     "with the same random noise; 0 = off",
     0, DIVERGE_STEPS},
    {OPT_INT, "places", 0, &model.places, "N", "places of --diverge, spread over the text", 1,
     DIVERGE_PLACES},
    {OPT_FLAG, "layers", 0, &model.layers, NULL,
     "also measure each layer, at --contexts and at the end of the text: the errors of all cache "
     "formats on the layer's own values, the magnitudes of these values, and an error bound from "
     "the norms of W_UK and W_UV",
     0, 0},
    {.type = OPT_GROUP, .help = "Accuracy of a model"},
    {OPT_STR, "predict", 0, &model.predict, "SUITE",
     "with --model, in place of --text: let the first precision answer the problems of these tasks "
     "or suites, let the others read its answers, and predict how much accuracy they lose",
     0, 0},
    {OPT_STR, "data", 'd', &model.data, "PATH",
     "folder of the data sets, or the file of the only task; default: the shipped datasets/", 0, 0},
    {OPT_INT, "samples", 'n', &model.samples, "N",
     "answers to each problem; 0 = as in the suite, or else in the task", 0, LOCAL_SEQUENCES},
    {OPT_INT, "limit", 0, &model.limit, "N", "use only the first N problems of each task; 0 = all",
     0, 1000000},
    {OPT_STR, "lengths", 0, &model.lengths, "LIST",
     "lengths in tokens of the texts that the program makes (long_needle and others); default: "
     "those of the task",
     0, 0},
    {OPT_NUM, "temperature", 't', &model.temperature, "T", "temperature; -1 = as in the suite", -1,
     100},
    DEVICE_OPTIONS(device),
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &out, "PATH", "write the result to this .json file or run folder", 0, 0},
    {.type = OPT_END},
};

typedef struct {
    results *r;
    table *t;
    term_progress progress;
    int64_t done;
} sink;

static snap_status take_row(void *ctx, const fidelity_record *r, snap_err *err) {
    sink *s = ctx;
    js *row = record_write(&fidelity_type, r);
    if (row)
        fidelity_table_add(s->t, row);
    term_progress_update(&s->progress, ++s->done, r->config);
    return results_add(s->r, "fidelity", row, err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    if (model.dir) {
        model.contexts = contexts;
        model.seed = seed;
        model.device = &device;
        model.out = out;
        return fidelity_model_run(&model, shared, err);
    }
    mla_backend *be = NULL;
    results *r = NULL;
    table t = fidelity_table();
    fidelity_options what = {.heads = (int)heads,
                             .d_c = 512,
                             .d_r = 64,
                             .seed = (uint64_t)seed,
                             .threads = (int)device.threads,
                             .cancel = &cmd_cancelled};
    snap_status st = SNAP_OK;
    TRY(fidelity_parse(&what, formats, distributions, contexts, err));
    TRY(device_open(&be, &device, err));
    what.backend = be;
    TRY(results_of_device(&r, be, &device, "fidelity", shared->resolved, seed, err));
    sink s = {.r = r, .t = &t, .progress = term_progress_start("fidelity", fidelity_count(&what))};
    st = fidelity_run(&what, take_row, &s, err);
    term_progress_end(&s.progress);
    TRY(st);
    TRY(out ? results_save_run(r, out, err) : SNAP_OK);
    TRY(print_results(r, shared, &t, err));
cleanup:
    table_release(&t);
    fidelity_release(&what);
    results_free(r);
    mla_backend_close(be);
    return st;
}

const opt_command cmd_fidelity = {
    .name = "fidelity",
    .summary = "measure the numerical error of each cache format",
    .synopsis = "[options]",
    .about = "Measures the numerical error of attention in each cache format against FP64\n"
             "attention over unquantised values. The error of the FP64 oracle of a format's\n"
             "arithmetic is the cost of the format. The error of the backend's arms shows what\n"
             "this implementation adds to it. With --model it measures how the formats change a\n"
             "model's predictions of a text, or predicts how they change its accuracy.",
    .examples =
        "  snapmla fidelity\n"
        "  snapmla fidelity --model DIR --text book.txt --max-tokens 8192\n"
        "  snapmla fidelity --model DIR --text book.txt --prefill --layers --out RUN\n"
        "  snapmla fidelity --model DIR --predict synth_gpqa --limit 40 --precisions bf16,fp8,A\n"
        "  snapmla fidelity --formats snapmla,nvfp4,my.json --contexts 1024,131072 --out RUN",
    .options = options,
    .run = run,
};
