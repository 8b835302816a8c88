/* cells.h - the cells that a gate times: two arms on one shape, in alternation.
 *
 * A turn is several consecutive steps of one arm. A block is four turns, A B B A or B A A B, so
 * that neither a drift of the machine nor the first place favours an arm. Which arm is started
 * first, and which builds a cell first, also alternates.
 *
 * A session is GATE_BLOCKS blocks of two processes that were started for it. The memory layout of a
 * process can change its times by 2 % and more as long as it runs. So turns of one process are not
 * independent, but sessions are (Kalibera and Jones 2013). The log-ratio of a session is
 * ln(B) - ln(A) of the arms' times.
 *
 * The time of a turn is the lower quartile of its steps, and the time of a session is the lower
 * quartile of its turns. On a machine with other load, disturbances only make steps longer, so they
 * change the lower quartile less than the mean. Rare slow steps are seen in the mean of all steps
 * of a session, and in the 99th percentile of all steps of all sessions (tail.h). */
#ifndef SNAPMLA_HARNESS_GATE_CELLS_H
#define SNAPMLA_HARNESS_GATE_CELLS_H

#include "harness/gate/decide.h"
#include "harness/gate/remote.h"
#include "harness/gate/tail.h"

enum { GATE_CELLS = 256, GATE_NAME = 128, GATE_BLOCKS = 4, GATE_TURNS = 2 * GATE_BLOCKS };

typedef struct {
    bench_shape shape;
    bench_scope scope;
    const char *precision[2]; /* static; equal unless the arms name different precisions */
    char name[GATE_NAME];     /* "fp8 kernel H16 s1 b8 c8192" */

    double *x[GATE_STATISTICS];    /* [n] values of each session, owned: log-ratios of the lower
                                   quartiles and of the means; tail_shares() for p99 */
    double *ns[2];                 /* [n][GATE_TURNS] times of the turns of arms A and B, in order;
                                   owned */
    float *steps_ns[2];            /* [n][GATE_TURNS][steps] times of their steps; owned */
    size_t n;                      /* number of sessions; 0 again after a failed check */
    int steps;                     /* steps of one turn; 0 until both arms have passed the check
                                   before the steps once */
    double mean[2], p99[2];        /* means and 99th percentiles of all steps of arm A and of arm B,
                                      in ns; set by gate_timed_tests() */
    double limit[GATE_STATISTICS]; /* log-ratio that each statistic may reach; set by
                                      gate_timed_tests(), too */
    remote_cell about[2];          /* what the arms answered; `status` is from the last session */
    bool throttled, shared;        /* true if this was so in any session */
} gate_timed;

/* Makes the cells of a grid and two arms: shapes x scopes x precisions. The caller owns them:
 * gate_timed_free(). SNAP_E_USAGE for more than GATE_CELLS, SNAP_E_NOMEM. */
snap_status gate_timed_new(gate_timed **out, size_t *n, const bench_grid *grid,
                           const gate_side arms[2], snap_err *err) SNAP_CHECK_RESULT;
void gate_timed_free(gate_timed *cells, size_t n);

/* Makes @out the cell that would have been measured if @slowing had slowed the current arm. @swap:
 * the arms are exchanged before. @out has times only; the caller owns it: gate_timed_free_one().
 * SNAP_E_NOMEM. */
snap_status gate_timed_slowed(const gate_timed *c, bool swap, const gate_slowing *slowing,
                              uint64_t seed, gate_timed *out, snap_err *err) SNAP_CHECK_RESULT;
void gate_timed_free_one(gate_timed *c);

/* Whether the output of both arms passed its last check. False before the first session. */
bool gate_timed_passed(const gate_timed *c);

/**
 * gate_timed_extend - measure one more session, if the output of both arms passes
 *
 * The arms build the cell and check its output before and after the steps. A cell of which a check
 * fails has no time: all its sessions are dropped. Errors: those of remote.h, SNAP_E_NOMEM,
 * SNAP_E_USAGE for more than RANK_MAX sessions.
 */
snap_status gate_timed_extend(gate_timed *c, gate_remote *const arms[2],
                              snap_err *err) SNAP_CHECK_RESULT;

/* The steps of all sessions. */
tail_steps gate_timed_steps(const gate_timed *c);

/* Sets the tests of @out from the sessions so far, which it borrows. SNAP_E_NOMEM. */
snap_status gate_timed_tests(gate_timed *c, const gate_limits *l, gate_cell *out,
                             snap_err *err) SNAP_CHECK_RESULT;

/* What the sessions of a cell say about one statistic. */
typedef struct {
    rank_estimate ratio; /* log-ratio and its 90 % interval; all NAN for p99 */
    double visible; /* the smallest value of the same kind as x that would have been reported as
                            a regression, given how much x varies; infinite: none would have been */
} gate_estimate;

/* @level: gate_strictest(). NAN values where a statistic has no test. SNAP_E_NOMEM. */
snap_status gate_timed_estimate(const gate_cell *c, double level,
                                gate_estimate out[GATE_STATISTICS],
                                snap_err *err) SNAP_CHECK_RESULT;

/* The median time of an arm's turns, in nanoseconds per step; NAN without sessions. */
double gate_timed_median(const gate_timed *c, int arm);

#endif
