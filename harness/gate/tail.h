/* tail.h - rare slow steps of two arms, which the lower quartile of the steps does not show.
 *
 * Disturbances by other processes are rare slow steps too. They hit both arms alike, but change the
 * mean and the 99th percentile (p99) from session to session. So the thresholds of these statistics
 * are at least what the baseline typically differs from itself between two neighbouring sessions
 * (tail_wander). */
#ifndef SNAPMLA_HARNESS_GATE_TAIL_H
#define SNAPMLA_HARNESS_GATE_TAIL_H

#include <stddef.h>

#include "base/err.h"

/* Number of steps of an arm from which its p99 is used: five steps lie above it. */
enum { TAIL_FEWEST = 500 };

/* Times of the steps of both arms in nanoseconds, in order: [sessions][steps]. Borrowed. */
typedef struct {
    const float *ns[2];
    size_t sessions, steps; /* steps of one arm in one session */
} tail_steps;

/* The mean of each session of an arm. out: [sessions]. */
void tail_means(const tail_steps *t, int arm, double *out);

/* The p99 of all steps of an arm, and of each session (NULL: not needed). each: [sessions].
 * SNAP_E_NOMEM. */
snap_status tail_p99(const tail_steps *t, int arm, double *all, double *each,
                     snap_err *err) SNAP_CHECK_RESULT;

/* How much a positive value differs between neighbouring sessions: the median of |ln(next / this)|
 * over the n sessions, n <= RANK_MAX; 0 for fewer than 2 sessions. */
double tail_wander(const double *each, size_t n);

/**
 * tail_shares - compare the p99 of both arms within each session
 *
 * A step is slow if it is among the slowest 0.5 % of the steps of both arms and all sessions. If
 * they are all steps of one arm, they are the steps above its p99.
 * x[k] is the share of slow steps of arm B in session k, minus that of arm A. The times of B are
 * divided by exp(@threshold) first. So if B's steps are distributed as A's times exp(@threshold),
 * exchanging the arms of a session changes the sign of x[k] and nothing else, and x is symmetric
 * about 0. x: [sessions]. SNAP_E_NOMEM.
 */
snap_status tail_shares(const tail_steps *t, double threshold, double *x,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
