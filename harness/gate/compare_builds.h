/* compare_builds.h - `gate run`: measures two arms in alternation until every cell has a verdict,
 * all sessions are used, or the deadline is too near for another look. */
#ifndef SNAPMLA_HARNESS_GATE_COMPARE_BUILDS_H
#define SNAPMLA_HARNESS_GATE_COMPARE_BUILDS_H

#include "base/json.h"
#include "harness/gate/cells.h"

typedef struct {
    gate_side arms[2]; /* baseline, current */
    const bench_grid *grid;
    gate_limits limits;
    remote_options remote;
    int64_t
        deadline_ns; /* a time of clock_now_ns(); a look that would end later, at the pace so far,
                        is left out; 0 = no deadline */
    /* called before the cell of index @done of @total is measured in a session; may be NULL */
    void (*progress)(void *ctx, size_t done, size_t total, const char *note);
    void *ctx;
} gate_run_options;

/* The measurements and the tests on them. The same index is the same cell. */
typedef struct {
    gate_timed *timed;
    gate_cell *cells;
    gate_estimate (*estimates)[GATE_STATISTICS];
    size_t n;
    remote_about about[2];
} gate_measured;
void gate_measured_release(gate_measured *m); /* the struct is reusable; initialise with {0} */

/* Errors: those of remote.h, SNAP_E_USAGE, SNAP_E_NOMEM, SNAP_E_CANCELLED. Release @out also after
 * a failure. */
snap_status gate_run(const gate_run_options *opt, gate_measured *out,
                     snap_err *err) SNAP_CHECK_RESULT;

/* Appends the rows for `verdicts`: those of verdicts_of_cell() for each cell, and one for the
 * geometric mean of the lower quartiles if a cell has sessions. SNAP_E_NOMEM. */
snap_status gate_run_rows(const gate_run_options *opt, const gate_measured *m, js *rows,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
