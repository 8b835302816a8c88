/* decide.h - decides from the sessions of two arms which cells became slower, which did not, and
 * which need more sessions.
 *
 * The log-ratio of a session, ln(current / baseline) (cells.h), is positive if the current arm is
 * slower. The threshold of a cell is the larger of a share and a time, because neither a tenth of a
 * microsecond nor half a percent should fail a build.
 *
 *   REGRESSED      The hypothesis "slower by at most the threshold" is rejected, with Holm's
 *                  correction over all cells of the run.
 *   OK             The hypothesis "slower by at least the threshold" is rejected. The run is good
 *                  only if every cell is OK. This needs no correction (intersection-union test).
 *   INCONCLUSIVE   Neither is rejected. More sessions are measured: there are up to `looks` looks
 *                  at the data, and each doubles the number of sessions.
 *
 * Each look gets an equal share of alpha (Bonferroni), so that repeated looks do not raise the rate
 * of false alarms. The tests are the rank tests of rank.h. They assume only that sessions are
 * independent and that their noise is symmetric. It is symmetric because the arms swap places. */
#ifndef SNAPMLA_HARNESS_GATE_DECIDE_H
#define SNAPMLA_HARNESS_GATE_DECIDE_H

#include <stdbool.h>

#include "harness/measure/rank.h"

typedef enum { GATE_INCONCLUSIVE, GATE_OK, GATE_REGRESSED } gate_state;

typedef struct {
    double share;    /* 0.02 = 2 % */
    double ns;       /* nanoseconds; a smaller difference never counts */
    double alpha;    /* of the whole run, over all looks */
    size_t sessions; /* of the first look */
    int looks;       /* sessions double with each look; sessions << (looks - 1) <= RANK_MAX */
} gate_limits;
#define GATE_DEFAULTS                                                                              \
    { .share = 0.02, .ns = 500, .alpha = 0.05, .sessions = 12, .looks = 3 }

/* SNAP_E_USAGE naming the limit that is out of its range. */
snap_status gate_limits_check(const gate_limits *l, snap_err *err) SNAP_CHECK_RESULT;

/* The log-ratio that a cell with this baseline may reach. */
double gate_threshold(const gate_limits *l, double baseline_ns);

typedef struct {
    const double *x; /* [n] log-ratios so far, borrowed */
    size_t n;
    double threshold; /* gate_threshold() */
    gate_state state; /* starts as GATE_INCONCLUSIVE */
    double p_slower;  /* p value of "at most the threshold", before and after Holm */
    double p_holm;
    double p_within; /* p value of "at least the threshold" */
} gate_cell;

/* One look: tests the open cells with their sessions so far and sets the states that are decided. A
 * decided cell keeps its state, p_slower and p_within. */
void gate_look(gate_cell *cells, size_t n, const gate_limits *l);

/* The second half of a look: sets p_holm of all cells, and the states of the open cells from p_holm
 * and p_within at level @alpha. */
void gate_settle(gate_cell *cells, size_t n, double alpha);
size_t gate_open(const gate_cell *cells, size_t n); /* number of inconclusive cells */

/* The number of sessions of a cell at look 0, 1, ... */
size_t gate_sessions_at(const gate_limits *l, int look);

/* The geometric mean of the ratios of @n cells, and its 90 % interval, from each cell's estimate
 * and the spread that its interval implies. All are NAN if there are no cells. */
typedef struct {
    double ratio, lo, hi;
} gate_mean;
gate_mean gate_mean_of(const rank_estimate *cells, size_t n);

#endif
