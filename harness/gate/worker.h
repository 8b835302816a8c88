/* worker.h - the program at the other end of an arm: builds cells and runs their steps on
 * request.
 *
 * `snapmla gate worker` reads a line of JSON and answers with one, until its input ends:
 *
 *   {"protocol":1,"backend","isa","threads","delay_pct","distribution","cold","seed"}
 *        -> {"protocol":1,"version","commit","device","backend","kernel"}
 *   {"cell":{"precision","scope","heads","s_q","batch","context","d_c","d_r"}}
 *        -> {"status":"passed"|"failed"|"skipped","reason","kernel","kernel_hash","program_hash",
 *            "cold","error","tolerance","rows_checked","step_ns","cpu_s"}
 *        The cell is built, checked against FP64 and warmed up.
 *   {"steps":N}  -> {"ns":[N times]}, after a step that is not timed
 *   {"end":true} -> {"status","reason","cpu_s"}: whether the output is still the checked one. The
 *        cell is released.
 *
 * An answer {"fatal":"..."} ends the worker. Both arms of a gate are such processes, also where
 * they are the same program: neither is at an advantage. */
#ifndef SNAPMLA_HARNESS_GATE_WORKER_H
#define SNAPMLA_HARNESS_GATE_WORKER_H

#include <stdio.h>

#include "base/err.h"

enum { GATE_PROTOCOL = 1, GATE_LINE = 1 << 16, GATE_STEPS = 1024 };

/* Serves until @in ends or something fails; the reason goes to the gate, not to the terminal.
 * SNAP_E_NOMEM. */
snap_status gate_worker_run(FILE *in, FILE *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
