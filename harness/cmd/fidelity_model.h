/* fidelity_model.h - `fidelity --model`: how the cache formats change a model's predictions. */
#ifndef SNAPMLA_HARNESS_CMD_FIDELITY_MODEL_H
#define SNAPMLA_HARNESS_CMD_FIDELITY_MODEL_H

#include "harness/measure/device.h"
#include "harness/opt.h"

typedef struct {
    const char *dir, *text, *precisions, *contexts, *out;
    int64_t max_tokens, diverge, places, seed;
    bool prefill, layers;
    const char *predict, *data, *lengths; /* the options --predict (a suite whose accuracy is
                                             predicted, instead of reading a text), --data (the
                                             folder of its data) and --lengths */
    int64_t samples, limit;               /* number of answers to each problem; number of problems.
                                             0: as the suite says */
    double temperature;                   /* below 0: as the suite says */
    const device_options *device;
} fidelity_model_args;

/* Measures a model, prints the tables and saves the result file if @a names one. SNAP_E_USAGE if
 * neither a text nor a suite is given, for --layers on a device other than the CPU, for --prefill
 * on a plugin or OpenCL, for --diverge with --prefill, and for a suite together with options of a
 * text. Also the errors of reading, running and saving. */
snap_status fidelity_model_run(const fidelity_model_args *a, const opt_shared *shared,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
