/* kernel_arguments.h - the options of `snapmla bench kernel` and their values */
#ifndef SNAPMLA_HARNESS_CMD_KERNEL_ARGUMENTS_H
#define SNAPMLA_HARNESS_CMD_KERNEL_ARGUMENTS_H

#include "harness/bench/bench_run.h"
#include "harness/opt.h"

extern bench_options bench_kernel_given; /* the parser of options writes the values here */
extern const opt bench_kernel_options[];

#endif
