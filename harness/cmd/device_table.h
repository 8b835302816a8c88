/* device_table.h - the command-line options that choose a device. */
#ifndef SNAPMLA_HARNESS_CMD_DEVICE_TABLE_H
#define SNAPMLA_HARNESS_CMD_DEVICE_TABLE_H

#include "harness/measure/device.h"
#include "harness/opt.h"

#define DEVICE_DEFAULTS                                                                            \
    { .backend = "auto", .isa = "auto" }

/* These rows of a command's option table fill a device_options @d. */
/* clang-format off */
#define DEVICE_OPTIONS(d)                                                                          \
    {.type = OPT_GROUP, .help = "Device"},                                                         \
    {OPT_STR, "backend", 0, &(d).backend, "NAME",                                                  \
     "auto, a name that 'snapmla info' lists, or plugin:PATH", 0, 0},                              \
    {OPT_INT, "threads", 0, &(d).threads, "N", "CPU threads; 0 = all cores", 0, 1024},             \
    {OPT_STR, "isa", 0, &(d).isa, "NAME",                                                          \
     "instruction set or device: auto, portable; cpu: amx, avx512, avx512f, avx2; cuda: sm90a; "   \
     "opencl: gpu, cpu, or a part of the device's name", 0, 0}
/* clang-format on */

#endif
