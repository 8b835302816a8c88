/* simulate.h - how often a gate is wrong, and what it finds: comparisons made up from recorded
 * noise.
 *
 * The noise is what sessions of equal arms showed on a machine, in order. A comparison takes each
 * cell's sessions by the stationary bootstrap (Politis and Romano 1994), so that what lasts (a busy
 * neighbour) stays together, with a sign for each stretch, as equal arms may swap names, and adds
 * an effect. */
#ifndef SNAPMLA_HARNESS_GATE_SIMULATE_H
#define SNAPMLA_HARNESS_GATE_SIMULATE_H

#include <stdint.h>

#include "harness/gate/decide.h"

typedef struct {
    const double *x; /* [n] log-ratios of one cell's sessions, n >= 1, borrowed */
    size_t n;
    double baseline_ns; /* of a step: decides the threshold */
} gate_noise;

typedef struct {
    size_t comparisons;
    size_t alarms;   /* comparisons with at least one cell REGRESSED */
    size_t good;     /* comparisons with all cells OK */
    size_t cells;    /* cells REGRESSED, over all comparisons */
    double sessions; /* mean of a cell */
} gate_rates;

/* @effects: [n] log-ratio by which each cell's current arm is slower. SNAP_E_NOMEM. */
snap_status gate_simulate(const gate_noise *noise, const double *effects, size_t n,
                          const gate_limits *l, size_t comparisons, uint64_t seed, gate_rates *out,
                          snap_err *err) SNAP_CHECK_RESULT;

/* The smallest slow-down of one cell, as a share (0.034 = 3.4 %), that is found with @power, by
 * bisection up to 1; the worst cell counts. NAN where none is found. SNAP_E_NOMEM. */
snap_status gate_smallest_effect(const gate_noise *noise, size_t n, const gate_limits *l,
                                 double power, size_t comparisons, uint64_t seed, double *share,
                                 snap_err *err) SNAP_CHECK_RESULT;

#endif
