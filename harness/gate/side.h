/* side.h - one side of `gate run`: which program, on which backend, with which precision.
 *
 *   PROGRAM[,KEY=VALUE...]    "build-old/snapmla", "self,precision=fp8", "self,isa=avx2,threads=1"
 *
 * "self" is the running program. The keys are name, backend, isa, threads, precision, delay, spike
 * and slow. The last three keys make known regressions, with which the gate itself can be tested.
 * The arm then makes steps longer by waiting:
 *
 *   delay=PCT      each step, by a share of the time of a step
 *   spike=MS/N     every N-th step, by MS milliseconds
 *   slow=PCT/N     all steps of every N-th turn, by a share of the time of a step */
#ifndef SNAPMLA_HARNESS_GATE_SIDE_H
#define SNAPMLA_HARNESS_GATE_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { GATE_SIDE_TEXT = 512 };

/* What makes the steps of an arm longer; all 0: nothing does. */
typedef struct {
    double delay_pct;
    double spike_ms, slow_pct;
    int64_t spike_every, slow_every; /* 0 = never */
} gate_slowing;

/* The nanoseconds that are added to a step. @step and @turn are consecutive numbers of the steps
 * and turns of an arm, which may begin anywhere. @step_ns: the time of a step. */
double gate_slowing_ns(const gate_slowing *s, double step_ns, int64_t step, int64_t turn);
bool gate_slowing_any(const gate_slowing *s); /* whether any step gets longer */

typedef struct {
    char name[64];
    char program[GATE_SIDE_TEXT]; /* path */
    char backend[64], isa[64];
    char precision[32]; /* "bf16", "fp8" or an arm of the ablation; "" = the precision of each cell
                           of the grid */
    int threads;        /* 0 = all cores */
    gate_slowing slowing;
} gate_side;

/* @fallback: values for the keys that are not given. SNAP_E_USAGE, naming the part that is
 * wrong. */
snap_status gate_side_parse(gate_side *out, const char *text, const gate_side *fallback,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
