/* device.h - what the measuring commands share: the choice of a backend, and how results leave. */
#ifndef SNAPMLA_HARNESS_CMD_DEVICE_H
#define SNAPMLA_HARNESS_CMD_DEVICE_H

#include "harness/cmd/cmd.h"
#include "harness/record/results.h"
#include "harness/view/writers.h"
#include "kernels/mla.h"

typedef struct {
    const char *backend, *isa;
    int64_t threads;
} device_options;
#define DEVICE_DEFAULTS                                                                            \
    { .backend = "auto", .isa = "auto" }

/* The rows of a command's option table for a device_options @d. */
#define DEVICE_OPTIONS(d)                                                                          \
    {.type = OPT_GROUP, .help = "Device"},                                                         \
        {OPT_STR, "backend",                                                                       \
         0,       &(d).backend,                                                                    \
         "NAME",  "auto, a name that info lists, or plugin:PATH",                                  \
         0,       0},                                                                              \
        {OPT_INT, "threads", 0, &(d).threads, "N", "cpu: threads, 0 = all cores", 0, 1024}, {      \
        OPT_STR, "isa", 0, &(d).isa, "NAME",                                                       \
            "auto, portable; cpu: avx512, avx512f, avx2; cuda: sm90a; opencl: gpu, cpu, or part "  \
            "of a device's name",                                                                  \
            0, 0                                                                                   \
    }

/* "auto" takes the first backend other than the CPU and OpenCL that opens, else the CPU. */
snap_status device_open(mla_backend **out, const device_options *d,
                        snap_err *err) SNAP_CHECK_RESULT;

/* A result document that names the command, its configuration and the backend. */
snap_status device_results(results **out, const mla_backend *be, const device_options *d,
                           const char *command, const opt_shared *shared, int64_t seed,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Writes the result file at @out_path, a file or a run's folder, with the folders above it. */
snap_status device_save(results *r, const char *out_path, snap_err *err) SNAP_CHECK_RESULT;

/* Saves to @out_path (a file or a run's folder; NULL = nowhere) and prints: the document with
 * --json, else the table. */
snap_status device_finish(results *r, const char *out_path, const opt_shared *shared,
                          const table *t, snap_err *err) SNAP_CHECK_RESULT;

#endif
