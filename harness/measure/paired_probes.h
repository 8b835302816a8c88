/* paired_probes.h - what the device gave between the samples of a row.
 *
 * A ceiling is the best rate ever seen. On a machine that shares its memory or its processors with
 * others, most moments give much less, and a row's percentage of that ceiling tells about the
 * neighbours. Short windows of the same probes, in turns with the samples, have the row's own
 * neighbours: their medians are compared with the row's median, like with like. */
#ifndef SNAPMLA_HARNESS_MEASURE_PAIRED_PROBES_H
#define SNAPMLA_HARNESS_MEASURE_PAIRED_PROBES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ceilings.h"

enum { PAIRED_PROBES_MAX = 512 };

typedef struct {
    double read[PAIRED_PROBES_MAX], bf16[PAIRED_PROBES_MAX], fp8[PAIRED_PROBES_MAX]; /* ascending */
    size_t n;
    int64_t ended_ns, took_ns; /* of the last one */
} paired_probes;

/* Looks, unless that would spend more than a third of the time since the last look, or there is no
 * room. A backend without such probes leaves n at 0. Errors of mla_ceilings_probe_once(). */
snap_status paired_probes_take(paired_probes *g, mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;

/* Rates as ceilings, medians or the best of each; n must not be 0. */
mla_ceilings paired_probes_median(const paired_probes *g);
mla_ceilings paired_probes_best(const paired_probes *g);

#endif
