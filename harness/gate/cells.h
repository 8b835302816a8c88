/* cells.h - what a gate times: two arms on one shape, in mirrored turns.
 *
 * A turn is some steps of one arm in a row. Turns stand in blocks of four, A B B A and B A A B in
 * alternation, so that drift and being first are nobody's advantage; who is started and who builds
 * a cell first takes turns as well. A session is GATE_BLOCKS blocks of two processes that were
 * started for it: where a process's memory happens to lie is worth 2 % and more as long as it
 * lives, so turns of one process are no independent evidence, and sessions are (Kalibera and Jones
 * 2013). Its log-ratio is ln(B) - ln(A) of the arms' times in it.
 *
 * The time of a turn is the lower quartile of its steps, of a session that of its turns: on a
 * machine that others use too, what disturbs a step makes it longer. With ten busy neighbours on
 * two processors the ratio of means wavered by 8 % from session to session, of medians by 6 to 8 %,
 * of lower quartiles by 1.5 to 5 %. */
#ifndef SNAPMLA_HARNESS_GATE_CELLS_H
#define SNAPMLA_HARNESS_GATE_CELLS_H

#include "harness/gate/decide.h"
#include "harness/gate/remote.h"

enum { GATE_CELLS = 256, GATE_NAME = 128, GATE_BLOCKS = 4, GATE_TURNS = 2 * GATE_BLOCKS };

typedef struct {
    bench_shape shape;
    bench_scope scope;
    const char *precision[2]; /* static; the same in both unless the arms say otherwise */
    char name[GATE_NAME];     /* "fp8 kernel H16 s1 b8 c8192" */

    double *x;              /* [n] log-ratios of sessions, owned */
    double *ns[2];          /* [n][GATE_TURNS] times of turns, A's and B's, in order; owned */
    size_t n;               /* sessions */
    int steps;              /* of a turn */
    remote_cell about[2];   /* what the arms said; status of the last look */
    bool throttled, shared; /* in any look */
} gate_timed;

/* The cells of a grid and two arms: shapes x scopes x precisions. Caller owns them:
 * gate_timed_free(). SNAP_E_USAGE for more than GATE_CELLS, SNAP_E_NOMEM. */
snap_status gate_timed_new(gate_timed **out, size_t *n, const bench_grid *grid,
                           const gate_side arms[2], snap_err *err) SNAP_CHECK_RESULT;
void gate_timed_free(gate_timed *cells, size_t n);

/* Both judged right so far? */
bool gate_timed_passed(const gate_timed *c);

/**
 * gate_timed_extend - one more session, if both arms' output passes
 *
 * The arms build the cell and check its output before and after. Errors: those of remote.h,
 * SNAP_E_NOMEM, SNAP_E_USAGE for more than RANK_MAX sessions.
 */
snap_status gate_timed_extend(gate_timed *c, gate_remote *const arms[2],
                              snap_err *err) SNAP_CHECK_RESULT;

/* Median time of an arm's turns, nanoseconds a step; NAN without sessions. */
double gate_timed_median(const gate_timed *c, int arm);

#endif
