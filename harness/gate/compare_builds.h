/* compare_builds.h - `gate run`: two arms, interleaved, until every cell is judged or the blocks
 * are spent. */
#ifndef SNAPMLA_HARNESS_GATE_COMPARE_BUILDS_H
#define SNAPMLA_HARNESS_GATE_COMPARE_BUILDS_H

#include "base/json.h"
#include "harness/gate/cells.h"

typedef struct {
    gate_side arms[2]; /* baseline, current */
    const bench_grid *grid;
    gate_limits limits;
    remote_options remote;
    /* @done of @total cells of look @look; may be NULL */
    void (*progress)(void *ctx, size_t done, size_t total, const char *note);
    void *ctx;
} gate_run_options;

/* What was measured, and the tests on it: the same index is the same cell. */
typedef struct {
    gate_timed *timed;
    gate_cell *cells;
    rank_estimate *estimates;
    size_t n;
    remote_about about[2];
} gate_measured;
void gate_measured_release(gate_measured *m); /* the struct is reusable; initialise with {0} */

/* Errors: those of remote.h, SNAP_E_USAGE, SNAP_E_NOMEM, SNAP_E_CANCELLED. @out to be released also
 * on failure. */
snap_status gate_run(const gate_run_options *opt, gate_measured *out,
                     snap_err *err) SNAP_CHECK_RESULT;

/* The rows of it for `verdicts`, appended: a row a cell and the geometric mean. SNAP_E_NOMEM. */
snap_status gate_run_rows(const gate_run_options *opt, const gate_measured *m, js *rows,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
