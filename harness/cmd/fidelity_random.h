/* fidelity_random.h - `fidelity` without a model: the error of each cache format on random input */
#ifndef SNAPMLA_HARNESS_CMD_FIDELITY_RANDOM_H
#define SNAPMLA_HARNESS_CMD_FIDELITY_RANDOM_H

#include "harness/measure/device.h"
#include "harness/opt.h"

typedef struct {
    const char *formats, *distributions, *contexts, *out; /* @out: NULL = no result file */
    int64_t heads, seed;
    const device_options *device;
} fidelity_random_args;

/* Measures, prints the table and saves the result file if @a names one. Errors: those of the
 * options, the device and saving, and SNAP_E_CANCELLED. */
snap_status fidelity_random_run(const fidelity_random_args *a, const opt_shared *shared,
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
