/* exchange_arguments.h - the parts of `snapmla bench exchange`: the process that starts the
 * ranks, and a rank. */
#ifndef SNAPMLA_HARNESS_CMD_EXCHANGE_ARGUMENTS_H
#define SNAPMLA_HARNESS_CMD_EXCHANGE_ARGUMENTS_H

#include "generator/local/ranks/place.h"
#include "harness/bench/exchange_bench.h"
#include "harness/opt.h"

enum { EXCHANGE_MOST_DEVICES = 64 };

typedef struct {
    exchange_bench_options options;
    exchange_plan plan; /* made from the options */
    const char *out;    /* path of the result file; NULL = none */
    int devices[EXCHANGE_MOST_DEVICES];
    int n_devices; /* 0 = not given */
} exchange_arguments;

/* Starts one rank for each device, with the arguments of this process, and waits for all of them.
 * SNAP_E_USAGE for fewer than two devices, SNAP_E_UNSUPPORTED without CUDA, and the errors of
 * launch_ranks(). */
snap_status exchange_launch(const exchange_arguments *a, snap_err *err) SNAP_CHECK_RESULT;

/* Joins the group as the rank that @place says, and measures. Rank 0 prints and saves the result.
 * After an error, the process may end here if the launcher prints the message of the group.
 * SNAP_E_WRONG for a wrong result, and the errors of the group, the device and saving. */
snap_status exchange_rank(const exchange_arguments *a, opt_shared *shared, const rank_place *place,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
