/* change.h - where a series of run times changed for good: E-divisive with means (Matteson and
 * James 2014, "A nonparametric approach for multiple change point analysis", as used for
 * performance by Daly et al. 2020).
 *
 * A segment is split where the energy distance of its two sides, weighted by their sizes, is
 * largest; the split stands if few permutations of the values reach as much; then both sides are
 * looked at in turn. */
#ifndef SNAPMLA_HARNESS_GATE_CHANGE_H
#define SNAPMLA_HARNESS_GATE_CHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CHANGE_MAX = 64, CHANGE_SERIES = 1024 };

typedef struct {
    size_t at; /* index of the first value of the new level */
    double p;  /* of the permutation test */
} change_point;

/* The weighted energy distance of x[0 .. at) and x[at .. n), 1 <= at < n. */
double change_distance(const double *x, size_t n, size_t at);

/**
 * change_find - the change points of a series, ascending
 *
 * @n:     up to CHANGE_SERIES; of longer ones the last so many count, and `at` is in the whole
 *         series
 * @alpha: 0.05
 * @out:   [CHANGE_MAX]; *found of them
 *
 * A segment has 3 values at least. SNAP_E_NOMEM.
 */
snap_status change_find(const double *x, size_t n, double alpha, uint64_t seed, change_point *out,
                        size_t *found, snap_err *err) SNAP_CHECK_RESULT;

#endif
