/* side.h - one side of `gate run`: which program, on which backend, with which precision.
 *
 *   PROGRAM[,KEY=VALUE...]    "build-old/snapmla", "self,precision=fp8", "self,isa=avx2,threads=1"
 *
 * Keys: name backend isa threads precision delay. "self" is the running program. `delay`, a
 * percentage, makes each step so much longer by waiting: a known regression, to see whether the
 * gate sees it. */
#ifndef SNAPMLA_HARNESS_GATE_SIDE_H
#define SNAPMLA_HARNESS_GATE_SIDE_H

#include "base/err.h"

enum { GATE_SIDE_TEXT = 512 };

typedef struct {
    char name[64];
    char program[GATE_SIDE_TEXT]; /* path */
    char backend[64], isa[64];
    char precision[32]; /* "bf16", "fp8", an ablation's; "" = all of the grid, cell by cell */
    int threads;        /* 0 = all cores */
    double delay_pct;
} gate_side;

/* @fallback: the values of keys that are absent. SNAP_E_USAGE naming the part that is wrong. */
snap_status gate_side_parse(gate_side *out, const char *text, const gate_side *fallback,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
