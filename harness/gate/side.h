/* side.h - one side of `gate run`: which program, on which backend, with which precision.
 *
 *   PROGRAM[,KEY=VALUE...]    "build-old/snapmla", "self,precision=fp8", "self,isa=avx2,threads=1"
 *
 * The keys are name, backend, isa, threads, precision and delay. "self" is the running program.
 * `delay`, a percentage, makes each step longer by waiting. It is a known regression, with which
 * the gate itself can be tested. */
#ifndef SNAPMLA_HARNESS_GATE_SIDE_H
#define SNAPMLA_HARNESS_GATE_SIDE_H

#include "base/err.h"

enum { GATE_SIDE_TEXT = 512 };

typedef struct {
    char name[64];
    char program[GATE_SIDE_TEXT]; /* path */
    char backend[64], isa[64];
    char precision[32]; /* "bf16", "fp8" or an arm of the ablation; "" = the precision of each cell
                           of the grid */
    int threads;        /* 0 = all cores */
    double delay_pct;
} gate_side;

/* @fallback: values for the keys that are not given. SNAP_E_USAGE, naming the part that is
 * wrong. */
snap_status gate_side_parse(gate_side *out, const char *text, const gate_side *fallback,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
