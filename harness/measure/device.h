/* device.h - the choice of a backend, as the measuring commands share it. */
#ifndef SNAPMLA_HARNESS_MEASURE_DEVICE_H
#define SNAPMLA_HARNESS_MEASURE_DEVICE_H

#include <stdint.h>

#include "kernels/mla.h"

typedef struct {
    const char *backend; /* "auto", a name of mla_backend_list(), "plugin:PATH", "python:FILE" */
    const char *isa;     /* "auto", or the name of an instruction set or a device */
    int64_t threads;     /* threads of the CPU backend; 0 = all processors */
    const char *scale;   /* "max" or "pow2", see mla_scale; NULL = "max" */
} device_options;

/* Checks the name of a rule for scales. SNAP_E_USAGE. */
snap_status device_scale(mla_scale *out, const char *name, snap_err *err) SNAP_CHECK_RESULT;

/* Opens a backend. "auto" takes the first one other than the CPU and OpenCL that opens, else the
 * CPU. */
snap_status device_open(mla_backend **out, const device_options *d,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
