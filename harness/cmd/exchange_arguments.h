/* exchange_arguments.h - the arguments of `snapmla bench exchange`, and one rank of it. */
#ifndef SNAPMLA_HARNESS_CMD_EXCHANGE_ARGUMENTS_H
#define SNAPMLA_HARNESS_CMD_EXCHANGE_ARGUMENTS_H

#include "generator/local/ranks/place.h"
#include "harness/bench/exchange_bench.h"
#include "harness/cmd/rank_process.h"
#include "harness/opt.h"

typedef struct {
    exchange_bench_options options;
    exchange_plan plan; /* made from the options */
    const char *out;    /* path of the result file; NULL = none */
    rank_devices devices;
} exchange_arguments;

/* Joins the group as the rank that @place says, and measures. Rank 0 prints and saves the result.
 * After an error, the process ends here, unless its message still has to be printed.
 * SNAP_E_WRONG for a wrong result, and the errors of the group, the device and saving. */
snap_status exchange_rank(const exchange_arguments *a, opt_shared *shared, const rank_place *place,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
