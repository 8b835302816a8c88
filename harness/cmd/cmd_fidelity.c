/* cmd_fidelity.c - `snapmla fidelity` */
#include "harness/bench/model_diverge.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/device_table.h"
#include "harness/cmd/fidelity_model.h"
#include "harness/cmd/fidelity_random.h"

static device_options device = DEVICE_DEFAULTS;
static fidelity_random_args input = {.formats = "bf16,snapmla,A,B,C,D,E,F,noPV",
                                     .distributions = "normal,mla",
                                     .contexts = "1024,4096,32768",
                                     .heads = 16,
                                     .seed = 1};
static fidelity_model_args model = {.precisions = "bf16,fp8,A", .places = 32, .temperature = -1};

static opt_gone no_configs[] = {{NULL, "--formats LIST"}};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "formats", 0, &input.formats, "LIST",
     "cache formats: names of shipped ones, which 'snapmla formats' lists, and paths of .json "
     "files; A to F are snapmla with other scales, noPV is snapmla with P in bf16",
     0, 0},
    {OPT_GONE, "configs", 0, no_configs, "LIST", NULL, 0, 0},
    {OPT_STR, "contexts", 0, &input.contexts, "LIST", "numbers of cached tokens", 0, 0},
    {OPT_STR, "distribution", 0, &input.distributions, "LIST",
     "random input; normal: N(0,1); mla: outliers up to 1e3 in the RoPE columns; sink: one token "
     "in a thousand has a large weight for every query; adversarial: norms that span powers of "
     "two, and large products that cancel",
     0, 0},
    {OPT_INT, "heads", 0, &input.heads, "N", "query heads; each one is a row that is compared", 1,
     MLA_MAX_HEADS},
    {OPT_INT, "seed", 0, &input.seed, "N", "seed of the random numbers", 0, 1e15},
    {.type = OPT_GROUP, .help = "Predictions of a model"},
    {OPT_STR, "model", 'm', &model.dir, "DIR",
     "folder of a checkpoint: measure perplexity, KL divergence and changed tokens on --text; on "
     "the CPU, or on a device with --backend cuda (not fp32); with --backend opencl or "
     "plugin:PATH, "
     "all precisions but the first use its attention kernel in decode steps",
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
     "that it chooses itself, and compare with the reference: by the likeliest tokens, and by "
     "draws with the same random noise; 0 = off",
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
    {OPT_STR, "out", 'o', &input.out, "PATH", "write the result to this .json file or run folder",
     0, 0},
    {.type = OPT_END},
};

static snap_status run(opt_shared *shared, snap_err *err) {
    input.device = model.device = &device;
    if (!model.dir)
        return fidelity_random_run(&input, shared, err);
    model.contexts = input.contexts;
    model.seed = input.seed;
    model.out = input.out;
    return fidelity_model_run(&model, shared, err);
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
