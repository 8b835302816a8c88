/* device_table.h - the options by which commands choose a device. */
#ifndef SNAPMLA_HARNESS_CMD_DEVICE_TABLE_H
#define SNAPMLA_HARNESS_CMD_DEVICE_TABLE_H

#include "harness/measure/device.h"
#include "harness/opt.h"

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

#endif
