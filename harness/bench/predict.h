/* predict.h - predicts decode steps of a model on several GPUs, from measured parts of a step on
 * one GPU and from exchange curves: from options to rows and a result file.
 *
 * A predicted row has the origin `predicted` and is never ranked with measured rows. With
 * `against`, the steps of measured result files are predicted, and each row also has the measured
 * time. The rules for a step of one GPU are then fitted without the steps of its batch and
 * context. */
#ifndef SNAPMLA_HARNESS_BENCH_PREDICT_H
#define SNAPMLA_HARNESS_BENCH_PREDICT_H

#include "harness/bench/predict_inputs.h"
#include "harness/record/prediction.h"

enum { PREDICT_MOST = 4096 };

typedef struct {
    predict_sources from;
    const char *model_config;
    const char *arms, *contexts, *batches; /* as in model_bench.h; batches are those of all GPUs */
    const char *layouts; /* a list of layouts. NULL = all layouts for the numbers in `gpus`, or one
                            GPU if `gpus` is NULL, too */
    const char *gpus;    /* a list of numbers of GPUs; for each, the layout with most tokens/s, and
                            which one is the second */
    const char *weights; /* "bf16", or "e4m3", which a config with blocks of 128 always means */
    double memory_gb;    /* limit of each GPU for weights, buffers and cache together, in 10^9
                            bytes; 0 = no limit */
    const char *against; /* result files of `bench model`, separated by commas; NULL = none */
    const char *out;     /* a result file, or a run's folder; NULL = none */
} predict_options;

typedef struct {
    prediction_record rows[PREDICT_MOST];
    int n;
    predict_inputs in;
    arena mem; /* owns the texts of the rows */
} predict_result;

/* @config: the resolved options, for the result file. The caller releases *out with
 * predict_release(), also after a failure. SNAP_E_USAGE, SNAP_E_UNSUPPORTED (a model that a layout
 * cannot divide), and the errors of reading and writing files. */
snap_status predict_run(const predict_options *o, const js *config, predict_result *out,
                        snap_err *err) SNAP_CHECK_RESULT;
void predict_release(predict_result *p);

/* How well the rows of a layout agree with measured ones. The errors are |predicted / measured - 1|
 * in percent. */
typedef struct {
    int n; /* number of rows with a measured time */
    double median_pct, most_pct;
    double part_pct[STEP_PARTS]; /* mean of 100 x (predicted - measured part) / measured step; NAN
                                    if the parts were not timed */
} predict_agreement;
predict_agreement predict_agreement_of(const predict_result *p, const char *layout);

/* Rows and rules as --json prints them; owned by the caller. NULL: out of memory. */
js *predict_json(const predict_result *p);

#endif
