/* serving_arguments.h - the options of `snapmla bench serving` and their values */
#ifndef SNAPMLA_HARNESS_CMD_SERVING_ARGUMENTS_H
#define SNAPMLA_HARNESS_CMD_SERVING_ARGUMENTS_H

#include "harness/opt.h"
#include "harness/serving/serving_results.h"

typedef struct {
    serving_options options;
    const char *slo;
    double gpus;
} serving_arguments;

extern serving_arguments bench_serving_given; /* the parser of options writes the values here */
extern const opt bench_serving_options[];

#endif
