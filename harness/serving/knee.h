/* knee.h - the search for the knee: the highest load at which a server meets its targets.
 *
 *   for (;;) {
 *       knee_step s = knee_next(points, n, &options);
 *       if (s.done)
 *           break;              // s.lo .. s.hi is the interval of the knee
 *       measure at s.load, set the state from all blocks at that load so far (serving_arm.state)
 *   }
 *
 * The search is a pure function of what was measured. A load is a rate per second or a concurrency.
 * It assumes that a server which fails at some load also fails at a higher one.
 *
 *   1. From the first load, it doubles until a load fails, or halves until a load meets.
 *   2. Between the highest load that meets and the lowest that fails, it bisects (geometric mean).
 *   3. A load near the knee is often open: the data decide neither "meets" nor "fails". Then the
 *      search continues in the larger of the gaps below the open loads and above them, which
 *      tightens both ends.
 *   4. When both gaps are narrow, or if a load has too few values for "meets", more blocks are
 *      measured at the open load.
 *
 * Interval: the knee lies between the highest load that meets and the lowest that fails. Each
 * decision is wrong with a probability of at most 0.55 (1 - level), with the level of the tests of
 * targets (slo_test_values()). So d decisions give an interval that holds the knee with a
 * probability of at least 1 - 0.55 d (1 - level). */
#ifndef SNAPMLA_HARNESS_SERVING_KNEE_H
#define SNAPMLA_HARNESS_SERVING_KNEE_H

#include "harness/serving/slo.h"

/* What was measured at one load. */
typedef struct {
    double load; /* > 0 */
    slo_state state;
    bool few;  /* open, and too few values for "meets" even if all were within the limits, or
                          too few blocks (slo_result.unconfirmed) */
    int turns; /* how often the search chose this load, >= 1 */
    const char *doubt; /* the flag that puts the state in doubt (flags.h); NULL or "" = none does */
} knee_point;

typedef struct {
    double first;       /* load to begin with, > 0 */
    double least, most; /* the search stays within them */
    double resolution;  /* the ratio hi / lo - 1 that is narrow enough: 0.05 */
    bool whole;         /* loads are whole numbers: a concurrency */
    int turns_each;     /* most turns at one load */
    int turns;          /* most turns of the whole search */
} knee_options;
#define KNEE_DEFAULTS                                                                              \
    { .first = 1, .least = 1e-3, .most = 1e6, .resolution = 0.05, .turns_each = 3, .turns = 12 }

typedef struct {
    bool done;
    double load;     /* the load to measure next; NAN if done */
    double lo, hi;   /* the interval so far; 0 and INFINITY: not found */
    const char *why; /* "narrow enough", "no more turns", "open loads", "meets at the highest load",
                        "fails at the lowest load"; "" if not done */
    const char *doubt[2]; /* the flags that put the states of the loads lo and hi in doubt; NULL =
                             none. They do not change the search, because more blocks do not end a
                             disturbance. */
} knee_step;

/* @points: [n] one for each load, in any order. */
knee_step knee_next(const knee_point *points, size_t n, const knee_options *o);

/* The ratio of two knees: arm over baseline, the geometric means of their intervals, and the
 * interval that their ends give. A missing end gives 0 or INFINITY, and then the ratio is NAN. */
typedef struct {
    double ratio, lo, hi;
} knee_ratio;
knee_ratio knee_ratio_of(const knee_step *baseline, const knee_step *arm);

#endif
