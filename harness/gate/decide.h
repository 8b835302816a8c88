/* decide.h - decides from the sessions of two arms which cells became slower, which did not, and
 * which need more sessions.
 *
 * Three statistics of a cell's steps are tested. The lower quartile shows a constant slow-down. The
 * mean and the 99th percentile (p99) show rare slow steps, which no lower quartile shows.
 *
 * The log-ratio of a session, ln(current / baseline) (cells.h), is positive if the current arm is
 * slower. The threshold of the lower quartile is the larger of a share and a time, because neither
 * a tenth of a microsecond nor half a percent should fail a build. The thresholds of the mean and
 * of p99 are at least what the baseline differs from itself between sessions (tail.h).
 *
 *   REGRESSED      For one of the statistics, the hypothesis "slower by at most the threshold" is
 *                  rejected, with Holm's correction over all statistics of all cells.
 *   OK             For the lower quartile, the hypothesis "slower by at least the threshold" is
 *                  rejected. The run is good only if every cell is OK. This needs no correction
 *                  (intersection-union test). The mean and p99 can only raise an alarm, because
 *                  they often vary too much to show that they did not grow.
 *   INCONCLUSIVE   Neither. More sessions are measured: there are up to `looks` looks at the data,
 *                  and each further look doubles the number of sessions.
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
    double alpha;    /* accepted probability of a false alarm in the whole run, over all looks */
    size_t sessions; /* number of sessions of the first look */
    int looks;       /* sessions double with each look; sessions << (looks - 1) <= RANK_MAX */
} gate_limits;
#define GATE_DEFAULTS                                                                              \
    { .share = 0.02, .ns = 500, .alpha = 0.05, .sessions = 12, .looks = 3 }

/* SNAP_E_USAGE if a limit is out of its range, or if one of @cells cells could not become REGRESSED
 * at the last look, even if all its sessions were slow. In that case the message proposes a number
 * of sessions for the first look, or a larger alpha if no number suffices. */
snap_status gate_limits_check(const gate_limits *l, size_t cells, snap_err *err) SNAP_CHECK_RESULT;

/* The log-ratio that a cell with this baseline may reach. */
double gate_threshold(const gate_limits *l, double baseline_ns);

typedef enum { GATE_QUARTILE, GATE_MEAN, GATE_P99, GATE_STATISTICS } gate_statistic;

/* "lower quartile", "mean", "p99" */
const char *gate_statistic_name(gate_statistic s);

typedef struct {
    const double *x;  /* [n of the cell] one value for each session, borrowed; NULL: the test has
                         too little data, and its p value is 1 */
    double threshold; /* centres of @x up to this value count as no slow-down */
    double p_slower;  /* p value of "at most the threshold", before and after Holm */
    double p_holm;
    gate_state state; /* REGRESSED or INCONCLUSIVE; for the lower quartile also OK */
} gate_test;

typedef struct {
    size_t n; /* sessions so far */
    gate_test test[GATE_STATISTICS];
    double p_within;  /* p value of "the lower quartile is slower by at least the threshold" */
    gate_state state; /* state of the cell; starts as GATE_INCONCLUSIVE */
} gate_cell;

/* One look: tests the open cells with their sessions so far and sets the states that are decided. A
 * decided cell keeps its states and p values, except p_holm. SNAP_E_NOMEM. */
snap_status gate_look(gate_cell *cells, size_t n, const gate_limits *l,
                      snap_err *err) SNAP_CHECK_RESULT;

/* The second half of a look: sets p_holm of the first @statistics tests of all cells, and the
 * states of the open cells from p_holm and p_within at level @alpha. SNAP_E_NOMEM. */
snap_status gate_settle(gate_cell *cells, size_t n, int statistics, double alpha,
                        snap_err *err) SNAP_CHECK_RESULT;

/* The level of the strictest test of one look at @cells cells: alpha, divided by the number of
 * looks and of tests. */
double gate_strictest(const gate_limits *l, size_t cells);

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
