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
 * quartile of its turns. On a machine with other load, disturbances only make steps longer, so the
 * lower quartile varies less between sessions than the mean or the median. */
#ifndef SNAPMLA_HARNESS_GATE_CELLS_H
#define SNAPMLA_HARNESS_GATE_CELLS_H

#include "harness/gate/decide.h"
#include "harness/gate/remote.h"

enum { GATE_CELLS = 256, GATE_NAME = 128, GATE_BLOCKS = 4, GATE_TURNS = 2 * GATE_BLOCKS };

typedef struct {
    bench_shape shape;
    bench_scope scope;
    const char *precision[2]; /* static; equal unless the arms name different precisions */
    char name[GATE_NAME];     /* "fp8 kernel H16 s1 b8 c8192" */

    double *x;              /* [n] log-ratio of each session, owned */
    double *ns[2];          /* [n][GATE_TURNS] times of the turns of arms A and B, in order;
                      owned */
    size_t n;               /* number of sessions */
    int steps;              /* steps of one turn; 0 before the first session that passed its
                               check */
    remote_cell about[2];   /* the arms' answers; the status is that of the last session */
    bool throttled, shared; /* in any session */
} gate_timed;

/* Makes the cells of a grid and two arms: shapes x scopes x precisions. The caller owns them:
 * gate_timed_free(). SNAP_E_USAGE for more than GATE_CELLS, SNAP_E_NOMEM. */
snap_status gate_timed_new(gate_timed **out, size_t *n, const bench_grid *grid,
                           const gate_side arms[2], snap_err *err) SNAP_CHECK_RESULT;
void gate_timed_free(gate_timed *cells, size_t n);

/* Whether the output of both arms passed its last check. False before the first session. */
bool gate_timed_passed(const gate_timed *c);

/**
 * gate_timed_extend - measure one more session, if the output of both arms passes
 *
 * The arms build the cell and check its output before and after the steps. Errors: those of
 * remote.h, SNAP_E_NOMEM, SNAP_E_USAGE for more than RANK_MAX sessions.
 */
snap_status gate_timed_extend(gate_timed *c, gate_remote *const arms[2],
                              snap_err *err) SNAP_CHECK_RESULT;

/* The median time of an arm's turns, in nanoseconds per step; NAN without sessions. */
double gate_timed_median(const gate_timed *c, int arm);

#endif
