/* model_bench.h - decode steps and prompts of a whole model (e2e.h), from options to rows and a
 * result file. */
#ifndef SNAPMLA_HARNESS_BENCH_MODEL_BENCH_H
#define SNAPMLA_HARNESS_BENCH_MODEL_BENCH_H

#include "harness/bench/e2e.h"
#include "harness/measure/ceilings.h"
#include "harness/measure/device.h"

typedef struct {
    device_options device;
    const char *model_config;              /* a path, or a name of configs/models */
    const char *arms, *contexts, *batches; /* comma lists; a batch may be "max" */
    int64_t prompt;                        /* tokens; 0 = none */
    double memory_gb;                      /* of the cache; 0 = what the batches take in BF16 */
    double seconds;                        /* measured time of a row, at least */
    const char *out;                       /* a result file, or a run's folder; NULL = none */
    const volatile sig_atomic_t *cancel;
} model_bench_options;

typedef struct {
    e2e_row rows[E2E_ROWS];
    int n;
    char device[128]; /* its name */
    ceilings ceilings;
} model_bench;

/* Measures, and writes the result file where the options name one. @config: the resolved options,
 * for that file. SNAP_E_USAGE for a list or model that is wrong; what e2e_run() can give. */
snap_status model_bench_run(const model_bench_options *o, const js *config, model_bench *out,
                            snap_err *err) SNAP_CHECK_RESULT;

double model_bench_tokens_s(const e2e_row *r);

/* FP8 over BF16: tokens per second of row @at over those of the BF16 row of the same measurement;
 * NAN for BF16 rows and where there is none. */
double model_bench_gain(const e2e_row *rows, int n, int at);

/* The rows with the ceilings that they are held against, as --json prints them. NULL when out of
 * memory. */
js *model_bench_json(const model_bench *m, const model_bench_options *o);

#endif
