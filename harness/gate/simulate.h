/* simulate.h - simulates comparisons from recorded noise to find how often a gate is wrong and how
 * small a slow-down it finds.
 *
 * The noise is a list of sessions on a machine, in order. A comparison draws the sessions of each
 * cell with the stationary bootstrap (Politis and Romano 1994): it takes stretches of consecutive
 * sessions, so that lasting disturbances stay together. Then an effect is added. Noise of equal
 * arms has each session twice, once with the arms exchanged, because equal arms can swap names. */
#ifndef SNAPMLA_HARNESS_GATE_SIMULATE_H
#define SNAPMLA_HARNESS_GATE_SIMULATE_H

#include <stdint.h>

#include "harness/gate/decide.h"

typedef struct {
    const double *x[GATE_STATISTICS]; /* [n] values of the sessions of one cell (cells.h), n >= 1,
                                         borrowed; NULL = this test has too little data */
    size_t n;
    double baseline_ns; /* time of a step; the threshold depends on it */
    double mean_limit;  /* log-ratio that the mean may reach, if above the threshold */
} gate_noise;

typedef struct {
    size_t comparisons;
    size_t alarms;   /* comparisons with at least one cell REGRESSED */
    size_t good;     /* comparisons with all cells OK */
    size_t cells;    /* cells REGRESSED, over all comparisons */
    double sessions; /* mean number of sessions of a cell */
} gate_rates;

/* @effects: [n] log-ratio by which the lower quartile and the mean of the current arm are larger in
 * each cell. SNAP_E_NOMEM. */
snap_status gate_simulate(const gate_noise *noise, const double *effects, size_t n,
                          const gate_limits *l, size_t comparisons, uint64_t seed, gate_rates *out,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Finds, by bisection up to 1, the smallest slow-down of one cell, as a share (0.034 = 3.4 %), that
 * the lower quartile shows with a probability of at least @power in every cell. NAN if there is
 * none. SNAP_E_NOMEM. */
snap_status gate_smallest_effect(const gate_noise *noise, size_t n, const gate_limits *l,
                                 double power, size_t comparisons, uint64_t seed, double *share,
                                 snap_err *err) SNAP_CHECK_RESULT;

#endif
