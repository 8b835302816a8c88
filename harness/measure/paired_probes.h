/* paired_probes.h - short probes of the device's ceilings between the samples of a row.
 *
 * A ceiling is the best rate of many probes. On a machine that shares its memory or its processors
 * with others, the rate may be much lower most of the time. A row's percentage of the ceiling then
 * depends on the load by others. Short runs of the same probes, alternating with the samples, have
 * about the same load. So the median of the row is compared with the medians of these probes. */
#ifndef SNAPMLA_HARNESS_MEASURE_PAIRED_PROBES_H
#define SNAPMLA_HARNESS_MEASURE_PAIRED_PROBES_H

#include <stddef.h>
#include <stdint.h>

#include "harness/measure/gpu.h"
#include "kernels/ceilings.h"

enum { PAIRED_PROBES_MAX = 512 };

typedef struct {
    double read[PAIRED_PROBES_MAX], bf16[PAIRED_PROBES_MAX], fp8[PAIRED_PROBES_MAX]; /* ascending */
    size_t n;
    int64_t ended_ns, took_ns; /* when the last probe ended (clock_now_ns()); its duration */
    const gpu *device;         /* whose clock is watched after each probe; NULL = none */
    uint64_t reasons;          /* why its clock was reduced after any of them (gpu_state) */
} paired_probes;

/* Runs the probes once and adds the rates. It does nothing if the time since the last probe is less
 * than twice that probe's duration, or if the arrays are full. If the backend has no such probes, n
 * stays 0. Errors of mla_ceilings_probe_once(). */
snap_status paired_probes_take(paired_probes *g, mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;

/* The median, or the best, of each rate. n must not be 0. */
mla_ceilings paired_probes_median(const paired_probes *g);
mla_ceilings paired_probes_best(const paired_probes *g);

#endif
