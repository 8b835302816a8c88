/* ceilings.h - what a device can do at most, measured, and the floor that puts under a step's time.
 *
 * A ceiling is the best that any loop of ours reached in repeated short windows on random data:
 * nothing else that runs on the device may beat it. floor = max(FLOP / peak, bytes / bandwidth); a
 * time below the floor with a cold cache is a measuring error.
 *
 * Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009. */
#ifndef SNAPMLA_KERNELS_CEILINGS_H
#define SNAPMLA_KERNELS_CEILINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/mla.h"

enum { MLA_CEILING_HOW = 96 };

typedef struct {
    double rate;               /* bytes/s or FLOP/s, all cores of the device */
    char how[MLA_CEILING_HOW]; /* the loop that won: "512-bit loads, 4 streams, prefetch 2 KB" */
    int64_t windows;           /* repetitions over all loops tried */
    double worst_window;       /* rate of the winner's slowest repetition: how steady it is */
} mla_ceiling;

typedef struct {
    mla_ceiling read;  /* cold reads from device memory */
    mla_ceiling bf16;  /* multiply-accumulate, bf16 operands, FP32 sums */
    mla_ceiling fp8;   /* the same with e4m3 operands; the bf16 rate where fp8_native is false */
    bool fp8_native;   /* the device multiplies e4m3 itself */
    size_t read_bytes; /* working set of the read probe */
} mla_ceilings;

/**
 * mla_ceilings_measure - run the probes
 *
 * @seconds: time for each of the probes, > 0; 1 is plenty
 *
 * Allocates and synchronises. Errors: SNAP_E_NOMEM, SNAP_E_DEVICE, SNAP_E_USAGE.
 */
snap_status mla_ceilings_measure(mla_ceilings *out, mla_backend *be, double seconds,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* What a device gives at one moment: rates of one short window of each probe, in the units of
 * mla_ceiling. Medians of these beside the samples of a row tell a slow kernel from a machine that
 * shares its memory or processors with others; ceilings, the best ever seen, can't. */
typedef struct {
    double read, bf16, fp8;
} mla_probe_rates;

/**
 * mla_ceilings_probe_once - one window of some milliseconds of each probe
 *
 * The first call may take a second or two: it allocates, and finds the fastest loops unless
 * mla_ceilings_measure() has. Errors: SNAP_E_UNSUPPORTED from a backend that has no such probe,
 * SNAP_E_NOMEM.
 */
snap_status mla_ceilings_probe_once(mla_probe_rates *out, mla_backend *be,
                                    snap_err *err) SNAP_CHECK_RESULT;

/* What no time can be free of, and what is left of the rates in the long run. */
typedef struct {
    double timer_ns;     /* the clock started and stopped with nothing between */
    double launch_ns;    /* with an empty kernel between, enqueued while the device is busy */
    double cold_read_ns; /* a read of device memory that waits for another, beyond the caches */
    double bf16, fp8;    /* FLOP/s of a loop of seconds: what the power limit allows */
} mla_limits;

/**
 * mla_limits_measure - figures of mla_limits
 *
 * @seconds: of each loop, > 0; power limits take two to show
 *
 * Allocates and synchronises. Errors: SNAP_E_UNSUPPORTED from a backend that has no such probes,
 * SNAP_E_NOMEM, SNAP_E_DEVICE, SNAP_E_USAGE.
 */
snap_status mla_limits_measure(mla_limits *out, mla_backend *be, double seconds,
                               snap_err *err) SNAP_CHECK_RESULT;

/* The work of one step. */
typedef struct {
    double flop;  /* 2 (2 d_c + d_r) a row and token it sees, for both precisions */
    double bytes; /* cached tokens once, and Q, O and LSE */
} mla_work;

/* @seqlens: host memory, [batch]. */
mla_work mla_work_of(mla_precision p, int heads, int d_c, int d_r, int batch, int s_q,
                     const int32_t *seqlens);

/* FLOP/s of the arm's mix of products: both at the bf16 rate for MLA_BF16; for MLA_FP8 the RoPE
 * part at the bf16 rate, the rest at the fp8 rate. */
double mla_peak_flop_s(const mla_ceilings *c, mla_precision p, int d_c, int d_r);

/* max(FLOP / peak, bytes / bandwidth) in nanoseconds; *bytes_bind (may be NULL) says which. */
double mla_floor_ns(const mla_ceilings *c, mla_precision p, int d_c, int d_r, mla_work work,
                    bool *bytes_bind);

#endif
