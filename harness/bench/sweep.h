/* sweep.h - a whole grid: for each shape the arms are created, checked, timed in turn and freed. */
#ifndef SNAPMLA_HARNESS_BENCH_SWEEP_H
#define SNAPMLA_HARNESS_BENCH_SWEEP_H

#include <signal.h>

#include "harness/bench/row.h"

typedef struct {
    mla_backend *backend; /* borrowed */
    const bench_grid *grid;
    numbers_kind distribution;
    uint64_t seed;
    stop_limits limits;                  /* of each arm; timeout_s: of one shape and scope, all arms
                                            together */
    double rest;                         /* idle time (interleave.h), on a backend that can flush
                                            its caches */
    double sustained_s;                  /* length of a loop in seconds (sustained.h); 0 = single
                                            steps */
    const char *kernel_hash;             /* NULL = unknown */
    const volatile sig_atomic_t *cancel; /* may be NULL */

    /* Callbacks; each may be NULL. `find` looks up a row, `keep` stores one, `progress` is told how
     * far the sweep is. */
    void *ctx;
    const js *(*find)(void *ctx, const char *key); /* a row of an earlier run, borrowed; NULL =
                                                      none */
    snap_status (*keep)(void *ctx, const char *key, const js *row, snap_err *err);
    void (*progress)(void *ctx, int done, int total, const char *note);
} sweep_options;

/* How many rows a sweep of that grid has. */
int sweep_count(const bench_grid *grid);

/**
 * sweep_run - measure all cells of a grid in order; kernel before served, BF16 before FP8
 *
 * @rows: array to which the rows are appended; rows that are measured now are not derived
 *        (sweep_derive())
 *
 * A cell that cannot run or fails is a row with that status. Errors: SNAP_E_CANCELLED, those of
 * `keep`, of fault_of_process() and of numbers_upload(), SNAP_E_NOMEM. After an error @rows has the
 * rows so far.
 */
snap_status sweep_run(const sweep_options *opt, js *rows, snap_err *err) SNAP_CHECK_RESULT;

/* Computes the derived fields of all rows that passed: cell_derive() and cell_flag_baseline(). It
 * may be called again. SNAP_E_NOMEM, SNAP_E_INPUT. */
snap_status sweep_derive(js *rows, const mla_ceilings *c, snap_err *err) SNAP_CHECK_RESULT;

/* The speed-up of the FP8 row i over the BF16 row before it; NAN for other rows. */
double sweep_speedup(const cell_list *rows, size_t i);

/* Raises the ceilings to the best rates that were probed between the samples of all rows.
 * SNAP_E_NOMEM. */
snap_status sweep_raise(const js *rows, mla_ceilings *to, snap_err *err) SNAP_CHECK_RESULT;

/* How many rows have the flag; 0 when out of memory. */
size_t sweep_count_flag(const js *rows, const char *flag);

/* SNAP_E_DEVICE if a cell had an error, SNAP_E_WRONG if one failed its check or was below its
 * floor. The message counts these cells and names the first. */
snap_status sweep_verdict(const js *rows, snap_err *err) SNAP_CHECK_RESULT;

#endif
