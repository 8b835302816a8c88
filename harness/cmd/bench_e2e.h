/* bench_e2e.h - `bench --what e2e`: whole models from their config.json, in either arm. */
#ifndef SNAPMLA_HARNESS_CMD_BENCH_E2E_H
#define SNAPMLA_HARNESS_CMD_BENCH_E2E_H

#include "harness/cmd/device.h"

typedef struct {
    const char *model_config;              /* a path, or a name of configs/models */
    const char *arms, *contexts, *batches; /* comma lists; a batch may be "max" */
    int64_t prompt;                        /* tokens; 0 = none */
    double memory_gb;                      /* of the cache; 0 = what the batches take in BF16 */
    double seconds;                        /* measured time of a row, at least */
    const char *out;                       /* a result file, or a run's folder; NULL = none */
} bench_e2e_options;

/* SNAP_E_USAGE for a list or model that is wrong; what e2e_run() can give. */
snap_status bench_e2e(const bench_e2e_options *o, const device_options *device,
                      const opt_shared *shared, snap_err *err) SNAP_CHECK_RESULT;

#endif
