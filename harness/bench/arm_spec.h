/* arm_spec.h - parses the arms of `bench kernel`, as --arm gives them. */
#ifndef SNAPMLA_HARNESS_BENCH_ARM_SPEC_H
#define SNAPMLA_HARNESS_BENCH_ARM_SPEC_H

#include "base/arena.h"
#include "harness/bench/sweep.h"
#include "harness/measure/device.h"
#include "harness/opt.h"

/* One arm. An arena owns the texts. */
typedef struct {
    const char *name;
    const char *options; /* the text after the name, with absolute paths shortened to their last
                            name: "cpu,precision=fp8,threads=1" */
    device_options device;
    bench_kind kind;    /* BENCH_BF16, BENCH_FP8 or BENCH_PAGE_UNITS */
    bool has_precision; /* the user's text names a precision */
    const char *unit;   /* "kept" or "page"; NULL: not given */
    const char *format; /* name or path of the format of its cache; NULL: not given */
} arm_spec;

/**
 * arm_specs_parse - parse "NAME=BACKEND[,key=value...]", once for each arm
 *
 * @out: array with SWEEP_ARMS places; the first @list->n of them are set
 *
 * NAME consists of 1 to 40 letters, digits, '.', '_' and '-', and no two arms have the same one.
 * BACKEND is "cpu", "cuda", "opencl", "plugin:PATH" or "python:FILE", without commas. The keys are:
 * precision (bf16, which is the default, or fp8; not for Python files), isa, threads (0 to 1024),
 * with precision=fp8 also scale (max, which is the default, or pow2) and, for cuda, unit (kept,
 * which is the default, or page), and, for plugins and Python files, format, which excludes
 * precision. SNAP_E_USAGE: a wrong arm, which the message quotes, or more than SWEEP_ARMS.
 * SNAP_E_NOMEM.
 */
snap_status arm_specs_parse(const opt_list *list, arena *mem, arm_spec *out,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
