/* remote.h - an arm of the gate: a child process that answers one line at a time (worker.h).
 *
 * The child writes to the gate's standard error. Its answers are checked like any input, because an
 * older or broken program must not crash the gate. */
#ifndef SNAPMLA_HARNESS_GATE_REMOTE_H
#define SNAPMLA_HARNESS_GATE_REMOTE_H

#include <signal.h>

#include "base/buf.h"
#include "base/hash.h"
#include "harness/bench/grid.h"
#include "harness/gate/side.h"

typedef struct gate_remote gate_remote;

typedef struct {
    const char *distribution;
    bool cold; /* use rotating copies of the data if the device cannot flush its caches */
    int64_t seed;
    double timeout_s;                    /* longest wait for an answer */
    const volatile sig_atomic_t *cancel; /* may be NULL */
} remote_options;

/* The description that an arm sent of itself. Texts are cut to fit. */
typedef struct {
    char version[32], commit[64], device[128], backend[64], kernel[128];
} remote_about;

typedef struct {
    char status[16];  /* "passed", "failed", "skipped" */
    char reason[256]; /* "" = none */
    char kernel[128], kernel_hash[HASH_HEX], program_hash[HASH_HEX], cold[16];
    double error, tolerance, step_ns;
    double cpu_s; /* processor time of the child since its start */
    int64_t rows_checked;
} remote_cell;

/* Starts the program and sends the first message. SNAP_E_IO if the program cannot be started,
 * SNAP_E_UNSUPPORTED if it is not a snapmla or has another protocol, SNAP_E_DEVICE if it reports an
 * error or does not answer in time. SNAP_E_INPUT, SNAP_E_CANCELLED, SNAP_E_NOMEM. */
snap_status remote_open(gate_remote **out, const gate_side *arm, const remote_options *opt,
                        snap_err *err) SNAP_CHECK_RESULT;
void remote_close(gate_remote *r); /* ends the child; NULL is allowed */
const remote_about *remote_describe(const gate_remote *r);

/* Makes the child build a cell and check its output. A wrong result, or a shape that cannot run, is
 * a status in @out and not an error. */
snap_status remote_begin(gate_remote *r, const bench_shape *s, const char *precision,
                         bench_scope scope, remote_cell *out, snap_err *err) SNAP_CHECK_RESULT;
/* Takes @n timed steps, n <= GATE_STEPS. ns: [n]. */
snap_status remote_steps(gate_remote *r, int n, double *ns, snap_err *err) SNAP_CHECK_RESULT;
/* Checks the output again. Sets status, reason and cpu_s of @out. */
snap_status remote_end(gate_remote *r, remote_cell *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
