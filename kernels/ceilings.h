/* ceilings.h - the measured peak rates of a device, and the lower bound on a step's time.
 *
 * A ceiling is the best rate that any of the backend's probe loops reached, in repeated short
 * windows. A kernel is not expected to exceed it. The lower bound (floor) of a step's time is
 * max(FLOP / peak, bytes / bandwidth). A measured time below the floor, with a cold cache, is a
 * measuring error.
 *
 * Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009. */
#ifndef SNAPMLA_KERNELS_CEILINGS_H
#define SNAPMLA_KERNELS_CEILINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/mla.h"

enum { MLA_CEILING_HOW = 96 };

typedef struct {
    double rate;               /* bytes/s or FLOP/s, of all cores of the device together */
    char how[MLA_CEILING_HOW]; /* the fastest loop, such as "vdpbf16ps zmm" */
    int64_t windows;           /* number of repetitions, over all loops */
    double worst_window;       /* the fastest loop's lowest rate in one window: shows how steady the
                                  rate is */
} mla_ceiling;

typedef struct {
    mla_ceiling read;  /* cold reads from device memory */
    mla_ceiling bf16;  /* multiply-accumulate: bf16 operands, FP32 sums */
    mla_ceiling fp8;   /* multiply-accumulate: e4m3 operands, FP32 sums; the bf16 rate if fp8_native
                          is false */
    bool fp8_native;   /* the device has e4m3 multiply instructions */
    size_t read_bytes; /* working set of the read probe */
} mla_ceilings;

/**
 * mla_ceilings_measure - run the probes
 *
 * @seconds: time for each probe, > 0; 1 is enough
 *
 * Allocates and synchronises. Errors: SNAP_E_NOMEM, SNAP_E_DEVICE, SNAP_E_USAGE.
 */
snap_status mla_ceilings_measure(mla_ceilings *out, mla_backend *be, double seconds,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* The rates of a device at one moment: one short window of each probe, in the units of mla_ceiling.
 * The bench command takes them between the samples of a measurement. Their medians show whether
 * other processes used the machine's memory or processors meanwhile. Ceilings cannot show that,
 * because each is the best rate of its whole measurement. */
typedef struct {
    double read, bf16, fp8;
} mla_probe_rates;

/**
 * mla_ceilings_probe_once - measure one short window of each probe
 *
 * The first call may take a second or two, because it allocates and may have to find the fastest
 * loops. Errors: SNAP_E_UNSUPPORTED if the backend has no such probe, SNAP_E_NOMEM, SNAP_E_DEVICE.
 */
snap_status mla_ceilings_probe_once(mla_probe_rates *out, mla_backend *be,
                                    snap_err *err) SNAP_CHECK_RESULT;

/* Fixed costs that measured times contain, and the rates that the device sustains. */
typedef struct {
    double timer_ns;     /* measured time if the timer starts and stops with no work between */
    double launch_ns;    /* measured time if an empty kernel, enqueued while the device is busy,
                            runs between */
    double cold_read_ns; /* latency of one dependent read of device memory, missing all caches */
    double bf16, fp8;    /* FLOP/s of a loop that runs for seconds: what the power limit allows */
} mla_limits;

/**
 * mla_limits_measure - measure the figures of mla_limits
 *
 * @seconds: time for each loop, > 0; the power limit shows after about two seconds
 *
 * Allocates and synchronises. Errors: SNAP_E_UNSUPPORTED if the backend has no such probes,
 * SNAP_E_NOMEM, SNAP_E_DEVICE, SNAP_E_USAGE.
 */
snap_status mla_limits_measure(mla_limits *out, mla_backend *be, double seconds,
                               snap_err *err) SNAP_CHECK_RESULT;

/* The arithmetic and memory traffic of one step. */
typedef struct {
    double flop;  /* 2 (2 d_c + d_r) per row and visible token, in both precisions */
    double bytes; /* every cached token once, plus Q, O and LSE */
} mla_work;

/* @seqlens: [batch], host memory. */
mla_work mla_work_of(mla_precision p, int heads, int d_c, int d_r, int batch, int s_q,
                     const int32_t *seqlens);

/* The peak FLOP/s for the products of one arm. For MLA_BF16, all products have the bf16 rate. For
 * MLA_FP8, products of the RoPE part have the bf16 rate, and all others the fp8 rate. */
double mla_peak_flop_s(const mla_ceilings *c, mla_precision p, int d_c, int d_r);

/* max(FLOP / peak, bytes / bandwidth) in nanoseconds. *bytes_bind (may be NULL) becomes true if the
 * bandwidth term is the larger. */
double mla_floor_ns(const mla_ceilings *c, mla_precision p, int d_c, int d_r, mla_work work,
                    bool *bytes_bind);

#endif
