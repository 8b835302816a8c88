/* model_bench.h - times decode steps and prompts of a whole model (e2e.h): from options to rows and
 * a result file. On several GPUs, each rank calls it, and rank 0 writes the file. */
#ifndef SNAPMLA_HARNESS_BENCH_MODEL_BENCH_H
#define SNAPMLA_HARNESS_BENCH_MODEL_BENCH_H

#include "harness/bench/e2e.h"
#include "harness/measure/ceilings.h"
#include "harness/measure/device.h"

typedef struct {
    device_options device;
    const char *model_config;              /* a path, or a name from configs/models */
    const char *arms, *contexts, *batches; /* comma-separated lists; a batch may be "max" */
    int64_t prompt;                        /* tokens; 0 = none */
    double memory_gb;                      /* size of each arm's cache, in 10^9 bytes; 0 = what the
                                              largest given batch or the prompt needs */
    double seconds;                        /* least measured time of a row (e2e.h) */
    const char *out;                       /* a result file, or a run's folder; NULL = none */
    bool parts;                            /* also time the parts of decode steps */
    double energy_s;                       /* seconds of a loop that also measures the energy of
                                              each row's step; 0 = no */
    const char *layout;                    /* as rank_layout_parse() reads it; NULL = one GPU */
    ranks *group;                          /* all ranks of the layout; NULL = one GPU */
    int64_t one_shot_kib; /* longest exchange between ranks without NCCL; -1 = the default */
    const volatile sig_atomic_t *cancel;
} model_bench_options;

typedef struct {
    e2e_row rows[E2E_ROWS];
    int n;
    char device[128]; /* name of the device */
    ceilings ceilings;
    rank_layout layout; /* of the rows */
    int ranks;
    int64_t one_shot_bytes; /* sums_cuda_one_shot() of the communicator that was opened last: that
                               of the experts, if there are two */
    char why_not[300];      /* why it is 0 */
    char no_energy[400];    /* why the energy of this rank's GPU is missing; "" if it is not */
} model_bench;

/* Measures, and writes the result file if the options name one. @config: the resolved options, for
 * that file. SNAP_E_USAGE: a wrong list, or no model is named. SNAP_E_UNSUPPORTED: the backend's
 * memory is host memory. Also the errors of reading the model's file, opening the backend,
 * measuring its ceilings, e2e_run() and saving. */
snap_status model_bench_run(const model_bench_options *o, const js *config, model_bench *out,
                            snap_err *err) SNAP_CHECK_RESULT;

/* Tokens of one step, of all replicas together. */
double model_bench_tokens(const e2e_row *r);
double model_bench_tokens_s(const e2e_row *r);

/* Joules of all GPUs for one token; NAN = not measured. */
double model_bench_joules(const e2e_row *r);

/* Speed-up of FP8 over BF16: tokens per second of row @at over those of the matching BF16 row. NAN
 * for a row of another format than FP8, and if there is no match. */
double model_bench_gain(const e2e_row *rows, int n, int at);

/* The rows and the ceilings as --json prints them; owned by the caller. NULL: out of memory. */
js *model_bench_json(const model_bench *m, const model_bench_options *o);

#endif
