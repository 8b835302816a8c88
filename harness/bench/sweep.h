/* sweep.h - a whole grid: for each shape the arms are created, checked, timed in turn and freed.
 *
 * The arms of a sweep are either those of its grid (precisions and ablations) on one backend, or
 * named arms, each with a backend of its own. All arms get the same random tokens and queries,
 * packed for their precision or cache format. Samples of the arms alternate, so only one arm
 * runs at a time. An arm with an error or a wrong result gets a row that says so, and the others
 * go on. */
#ifndef SNAPMLA_HARNESS_BENCH_SWEEP_H
#define SNAPMLA_HARNESS_BENCH_SWEEP_H

#include <signal.h>

#include "harness/bench/lengths.h"
#include "harness/bench/row.h"

enum { SWEEP_ARMS = 32 }; /* most arms of one sweep */

/* A named arm. All texts are borrowed. */
typedef struct {
    const char *name;
    const char *options;      /* as the user gave them: "cpu,precision=fp8" */
    bench_kind kind;          /* BENCH_BF16, BENCH_FP8 or BENCH_PAGE_UNITS */
    const arm_format *format; /* format of its cache, borrowed; NULL: that of mla.h */
    mla_backend *backend;     /* borrowed; NULL: it could not be opened, for the reason in `why` */
    snap_err why;
    const char *kernel_hash; /* this field and the next one as in sweep_options */
    bool code_is_file;
    int rates; /* index of the first arm whose backend has the same ceilings as this arm's; often
                  its own index */
} sweep_arm;

typedef struct {
    mla_backend *backend;  /* borrowed; used if there are no named arms */
    const sweep_arm *arms; /* [n_arms] named arms, the first of them is the baseline; they replace
                              those of the grid */
    int n_arms;            /* 0: the arms are those of the grid */
    const bench_grid *grid;
    numbers_kind distribution;
    const lengths_spec *lengths; /* distribution of the sequences' lengths, which replaces the
                                    context of each shape; NULL = the sequences of a shape are
                                    equally long */
    const challenge *challenge;  /* whose shapes the grid lists; NULL = none */
    const char *challenge_hash;  /* challenge_data_hash() */
    uint64_t seed;
    stop_limits limits;                  /* when the timing of each arm ends; timeout_s limits one
                                            shape and scope, all arms together */
    double limit_s;                      /* limit on the time of the sweep; 0 = none. A shape and
                                            scope is skipped if its fewest possible steps would
                                            exceed the limit, at the highest speed that each arm
                                            had before, or if no time is left */
    double rest;                         /* idle time (interleave.h), on a backend that can flush
                                            its caches */
    double sustained_s;                  /* length of a loop in seconds (sustained.h); 0 = single
                                            steps */
    const char *kernel_hash;             /* NULL = unknown */
    bool code_is_file;                   /* kernel_hash is that of a file of the user's. Then it
                                            belongs to every row, even if the backend names a kernel
                                            on a device */
    const volatile sig_atomic_t *cancel; /* may be NULL */

    /* Callbacks; each may be NULL. `find` looks up a row, `keep` stores one, and `progress`
     * receives the number of finished rows. */
    void *ctx;
    const js *(*find)(void *ctx, const char *key); /* a row of an earlier run, borrowed; NULL =
                                                      none */
    snap_status (*keep)(void *ctx, const char *key, const js *row, snap_err *err);
    void (*progress)(void *ctx, int done, int total, const char *note);
} sweep_options;

/* How many rows a sweep of the arms of that grid has, and how many a sweep with these options. */
int sweep_count(const bench_grid *grid);
int sweep_total(const sweep_options *opt);

/**
 * sweep_run - measure all cells of a grid in order; kernel before served, BF16 before FP8, named
 *             arms in their order
 *
 * @rows: array to which the rows are appended; rows that are measured now are not derived
 *        (sweep_derive())
 *
 * A cell that cannot run or fails is a row with that status. Errors: SNAP_E_CANCELLED, those of
 * `keep`, of fault_of_process() and of numbers_upload(), SNAP_E_NOMEM. After an error @rows has the
 * rows so far. After a cancellation it has all rows of the shapes and scopes that are complete, in
 * this run or in the earlier one.
 */
snap_status sweep_run(const sweep_options *opt, js *rows, snap_err *err) SNAP_CHECK_RESULT;

/* Computes the derived fields of the rows of a named arm (@arm NULL: of all) that passed:
 * cell_derive() and cell_flag_baseline(). It may be called again. SNAP_E_NOMEM, SNAP_E_INPUT. */
snap_status sweep_derive(js *rows, const char *arm, const mla_ceilings *c,
                         snap_err *err) SNAP_CHECK_RESULT;

/* The speed-up of the FP8 row i over the BF16 row before it; NAN for other rows and named arms. */
double sweep_speedup(const cell_list *rows, size_t i);

/* Raises the ceilings to the best rates that were probed between the samples of the rows of a named
 * arm (@arm NULL: of all). SNAP_E_NOMEM. */
snap_status sweep_raise(const js *rows, const char *arm, mla_ceilings *to,
                        snap_err *err) SNAP_CHECK_RESULT;

/* How many of these rows have the flag @flag; 0 when out of memory. */
size_t sweep_count_flag(const js *rows, const char *arm, const char *flag);

/* SNAP_E_DEVICE if a cell had an error, SNAP_E_WRONG if one failed its check or was below its
 * floor. The message counts these cells and names the first. */
snap_status sweep_verdict(const js *rows, snap_err *err) SNAP_CHECK_RESULT;

#endif
