/* change.h - finds where the level of a series of run times changed: E-divisive with means
 * (Matteson and James 2014, "A nonparametric approach for multiple change point analysis"; used for
 * performance tests by Daly et al. 2020).
 *
 * A segment is split where the energy distance of its two sides, weighted by their sizes, is
 * largest. The split is accepted if few random permutations of the values reach such a distance.
 * Then both sides are searched in the same way. */
#ifndef SNAPMLA_HARNESS_GATE_CHANGE_H
#define SNAPMLA_HARNESS_GATE_CHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CHANGE_MAX = 64, CHANGE_SERIES = 1024 };

typedef struct {
    size_t at; /* index of the first value of the new level */
    double p;  /* p value of the permutation test */
} change_point;

/* The weighted energy distance between x[0 .. at) and x[at .. n), 1 <= at < n. */
double change_distance(const double *x, size_t n, size_t at);

/**
 * change_find - the change points of a series, ascending
 *
 * @n:     if greater than CHANGE_SERIES, only the last CHANGE_SERIES values are used; `at` is still
 *         an index of the whole series
 * @alpha: level of the permutation test, for instance 0.05
 * @out:   [CHANGE_MAX]; *found is the number of points
 *
 * Each side of a split has at least 3 values. SNAP_E_NOMEM.
 */
snap_status change_find(const double *x, size_t n, double alpha, uint64_t seed, change_point *out,
                        size_t *found, snap_err *err) SNAP_CHECK_RESULT;

#endif
