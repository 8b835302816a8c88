/* worker.h - the child process of an arm: it builds cells and runs steps on request.
 *
 * `snapmla gate worker` reads one line of JSON and answers with one line, until its input ends:
 *
 *   {"protocol":1,"backend","isa","threads","delay_pct","spike_ms","spike_every","slow_pct",
 *    "slow_every","distribution","cold","seed"}
 *        -> {"protocol":1,"version","commit","device","backend","kernel"}
 *   {"cell":{"precision","scope","heads","s_q","batch","context","d_c","d_r"}}
 *        -> {"status":"passed"|"failed"|"skipped","reason","kernel","kernel_hash",
 *            "program_hash","cold","error","tolerance","rows_checked","step_ns","cpu_s"}
 *        The worker builds the cell, checks its output against FP64 and, if
 *        it passes, warms up.
 *   {"steps":N}  -> {"ns":[N times]}, after one untimed step
 *   {"end":true} -> {"status","reason","cpu_s"}
 *        The worker checks the timed output and two further steps (verify_timed()), and frees the
 *        cell.
 *
 * The answer {"fatal":"..."} ends the worker. Both arms of a gate are such processes, even if they
 * are the same program, so that neither has an advantage. */
#ifndef SNAPMLA_HARNESS_GATE_WORKER_H
#define SNAPMLA_HARNESS_GATE_WORKER_H

#include <stdio.h>

#include "base/err.h"

enum { GATE_PROTOCOL = 1, GATE_LINE = 1 << 16, GATE_STEPS = 1024 };

/* Serves until @in ends or an error occurs. The error is sent to the gate, and SNAP_OK is returned.
 * SNAP_E_NOMEM if it cannot begin. */
snap_status gate_worker_run(FILE *in, FILE *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
