/* conformance_run.h - runs the checks of kernels/conformance on one backend, or on all backends
 * that open on this machine. */
#ifndef SNAPMLA_HARNESS_BENCH_CONFORMANCE_RUN_H
#define SNAPMLA_HARNESS_BENCH_CONFORMANCE_RUN_H

#include <signal.h>

#include "base/arena.h"
#include "harness/measure/device.h"
#include "kernels/conformance/conformance.h"

enum { CONFORMANCE_BACKENDS = 17 };

/* The results of one backend. */
typedef struct {
    mla_backend_info info;
    conformance_row *rows; /* [n]; room for conformance_count() */
    int n, failed, skipped;
} conformance_backend;

typedef struct {
    conformance_backend backends[CONFORMANCE_BACKENDS];
    int n;
    arena mem; /* owns the rows */
} conformance_result;

/**
 * conformance_run_on - check the backends that @d names
 *
 * @d:   backend "all" means each backend that opens here, and the CPU with each instruction set
 *       that it supports. A backend that does not open is then left out
 * @out: release with conformance_release(), also after an error
 *
 * Errors: those of opening and running a backend, SNAP_E_USAGE for more than CONFORMANCE_BACKENDS
 * backends, SNAP_E_NOMEM, SNAP_E_CANCELLED. A failed check is not an error; see
 * conformance_status().
 */
snap_status conformance_run_on(conformance_result *out, const device_options *d,
                               const volatile sig_atomic_t *cancel,
                               snap_err *err) SNAP_CHECK_RESULT;
void conformance_release(conformance_result *r);

/* SNAP_E_WRONG if a check failed. */
snap_status conformance_status(const conformance_result *r, snap_err *err) SNAP_CHECK_RESULT;

#endif
