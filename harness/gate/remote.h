/* remote.h - an arm as the gate sees it: a child process that answers lines (worker.h).
 *
 * Its standard error is the gate's. What it answers is checked like any input: an older or broken
 * program must not take the gate down. */
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
    bool cold; /* rotate, where the device can't flush */
    int64_t seed;
    double timeout_s;                    /* longest wait for an answer */
    const volatile sig_atomic_t *cancel; /* may be NULL */
} remote_options;

/* What an arm said of itself; strings are cut to fit. */
typedef struct {
    char version[32], commit[64], device[128], backend[64], kernel[128];
} remote_about;

typedef struct {
    char status[16];  /* "passed", "failed", "skipped" */
    char reason[256]; /* "" = none */
    char kernel[128], kernel_hash[HASH_HEX], program_hash[HASH_HEX], cold[16];
    double error, tolerance, step_ns;
    double cpu_s; /* processor time of the child so far */
    int64_t rows_checked;
} remote_cell;

/* Starts the program and greets it. SNAP_E_IO where it can't be started, SNAP_E_UNSUPPORTED where
 * it is no such program or too old, else what it answers. */
snap_status remote_open(gate_remote **out, const gate_side *arm, const remote_options *opt,
                        snap_err *err) SNAP_CHECK_RESULT;
void remote_close(gate_remote *r); /* ends the child; NULL is allowed */
const remote_about *remote_describe(const gate_remote *r);

/* A wrong result or a shape that can't run is a status in @out, not an error. */
snap_status remote_begin(gate_remote *r, const bench_shape *s, const char *precision,
                         bench_scope scope, remote_cell *out, snap_err *err) SNAP_CHECK_RESULT;
/* @n timed steps, n <= GATE_STEPS; ns[n]. */
snap_status remote_steps(gate_remote *r, int n, double *ns, snap_err *err) SNAP_CHECK_RESULT;
/* Judges the output again: status, reason and cpu_s in @out. */
snap_status remote_end(gate_remote *r, remote_cell *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
