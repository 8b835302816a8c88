/* decide.h - from the sessions of two arms to verdicts: which cells became slower, which did not,
 * which are open.
 *
 * A session's log-ratio ln(current / baseline) (cells.h) is positive where the current one is
 * slower. A cell's threshold is the larger of a share and a time: neither a tenth of a microsecond
 * nor half a percent is worth a red build.
 *
 *   REGRESSED      "slower by at most the threshold" is rejected, Holm over all cells of the run
 *   OK             "slower by at least the threshold" is rejected. The run is good only if every
 *                  cell is, which needs no correction (an intersection-union test)
 *   INCONCLUSIVE   neither: more sessions are measured, in up to `looks` rounds that double them
 *
 * Each look gets an equal share of alpha (Bonferroni), so that looking again does not raise the
 * rate of false alarms. Rank tests of rank.h; nothing is assumed but that sessions are independent
 * and their noise symmetric, which arms that swap places make it. */
#ifndef SNAPMLA_HARNESS_GATE_DECIDE_H
#define SNAPMLA_HARNESS_GATE_DECIDE_H

#include <stdbool.h>

#include "harness/measure/rank.h"

typedef enum { GATE_INCONCLUSIVE, GATE_OK, GATE_REGRESSED } gate_state;

typedef struct {
    double share;    /* 0.02 = 2 % */
    double ns;       /* time that counts as none, nanoseconds */
    double alpha;    /* of the whole run, all looks */
    size_t sessions; /* of the first look */
    int looks;       /* sessions double from look to look; sessions << (looks - 1) <= RANK_MAX */
} gate_limits;
#define GATE_DEFAULTS                                                                              \
    { .share = 0.02, .ns = 500, .alpha = 0.05, .sessions = 12, .looks = 3 }

/* SNAP_E_USAGE naming the limit that is out of its range. */
snap_status gate_limits_check(const gate_limits *l, snap_err *err) SNAP_CHECK_RESULT;

/* ln of the ratio that a cell with that baseline may reach. */
double gate_threshold(const gate_limits *l, double baseline_ns);

typedef struct {
    const double *x; /* [n] log-ratios so far, borrowed */
    size_t n;
    double threshold; /* gate_threshold() */
    gate_state state; /* GATE_INCONCLUSIVE at first */
    double p_slower;  /* one-sided, of "at most the threshold"; before and after Holm */
    double p_holm;
    double p_within; /* of "at least the threshold" */
} gate_cell;

/* One look: tests the open cells with what they have and settles those it can. Cells that are
 * settled stay so, and keep their p values. */
void gate_look(gate_cell *cells, size_t n, const gate_limits *l);

/* The second half of a look: from p_slower and p_within to verdicts, at that look's level. */
void gate_settle(gate_cell *cells, size_t n, double alpha);
size_t gate_open(const gate_cell *cells, size_t n); /* how many are inconclusive */

/* Sessions that a cell has at look 0, 1, ... */
size_t gate_sessions_at(const gate_limits *l, int look);

/* Geometric mean of the ratios of @n cells and its 90 % interval, from each cell's estimate and the
 * spread that its interval tells; NANs for none. */
typedef struct {
    double ratio, lo, hi;
} gate_mean;
gate_mean gate_mean_of(const rank_estimate *cells, size_t n);

#endif
