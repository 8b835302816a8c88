/* sweep.h - a whole grid: for each shape both arms are built, judged, timed in turns and let go. */
#ifndef SNAPMLA_HARNESS_BENCH_SWEEP_H
#define SNAPMLA_HARNESS_BENCH_SWEEP_H

#include <signal.h>

#include "harness/bench/row.h"

typedef struct {
    mla_backend *backend; /* borrowed */
    const bench_grid *grid;
    numbers_kind distribution;
    uint64_t seed;
    stop_limits limits;                  /* of one shape and scope, both arms together */
    double rest;                         /* of interleave.h, on a device that flushes */
    double sustained_s;                  /* of a loop of sustained.h; 0 = single steps */
    const char *kernel_hash;             /* NULL = unknown */
    const volatile sig_atomic_t *cancel; /* may be NULL */

    /* What happens around the cells; each may be NULL. */
    void *ctx;
    const js *(*find)(void *ctx, const char *key); /* row of an earlier run, borrowed; or NULL */
    snap_status (*keep)(void *ctx, const char *key, const js *row, snap_err *err);
    void (*progress)(void *ctx, int done, int total, const char *note);
} sweep_options;

/* Rows that a sweep of that grid has. */
int sweep_count(const bench_grid *grid);

/**
 * sweep_run - all cells of a grid, in its order; kernel before served, BF16 before FP8
 *
 * @rows: array that gets them, not derived yet (sweep_derive)
 *
 * A cell that can't run, or fails, is a row with that status. Errors: SNAP_E_CANCELLED, those of
 * `keep`, SNAP_E_NOMEM; the rows so far are in @rows.
 */
snap_status sweep_run(const sweep_options *opt, js *rows, snap_err *err) SNAP_CHECK_RESULT;

/* Completes all rows against the ceilings: cell_derive() and cell_flag_baseline(). May be
 * repeated. */
snap_status sweep_derive(js *rows, const mla_ceilings *c, snap_err *err) SNAP_CHECK_RESULT;

/* A row's FP8 speed-up over the BF16 row before it; NAN for other rows. */
double sweep_speedup(const cell_list *rows, size_t i);

/* Raises the ceilings to the best rates that were probed between the samples of any row.
 * SNAP_E_NOMEM. */
snap_status sweep_raise(const js *rows, mla_ceilings *to, snap_err *err) SNAP_CHECK_RESULT;

/* How many rows have that flag. */
size_t sweep_count_flag(const js *rows, const char *flag);

/* What the sweep comes to: SNAP_E_DEVICE when a cell had an error, SNAP_E_WRONG when one failed its
 * check or undercut the floor; the message counts them and quotes the first. */
snap_status sweep_verdict(const js *rows, snap_err *err) SNAP_CHECK_RESULT;

#endif
