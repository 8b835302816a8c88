/* bench_run_inside.h - the state of a benchmark of the kernels, for its source files. */
#ifndef SNAPMLA_HARNESS_BENCH_BENCH_RUN_INSIDE_H
#define SNAPMLA_HARNESS_BENCH_BENCH_RUN_INSIDE_H

#include "base/arena.h"
#include "base/parallel.h"
#include "base/term.h"
#include "harness/bench/arm_spec.h"
#include "harness/bench/bench_journal.h"
#include "harness/bench/bench_run.h"
#include "harness/bench/sweep.h"
#include "harness/measure/ceilings.h"

/* One backend of the run, and what was measured on it. A run without named arms has one. */
typedef struct {
    device_options device;
    mla_backend *backend;
    mla_backend_info info;
    ceilings ceilings;
    arm_format *format; /* format of its cache, owned; NULL: that of mla.h */
    char hash[HASH_HEX];
    bool hashed;
} bench_device;

typedef struct {
    const bench_options *o;
    bench_grid grid;
    numbers_kind distribution;
    uint64_t seed;
    lengths_spec lengths; /* if the options name lengths */
    challenge challenge;  /* if the options name one */
    char challenge_hash[HASH_HEX];
    arena mem; /* owns the texts of named arms */
    arm_spec specs[SWEEP_ARMS];
    sweep_arm arms[SWEEP_ARMS]; /* [o->arms.n] */
    bench_device devices[SWEEP_ARMS];
    int n;          /* devices */
    parallel *pool; /* threads that all arms share which use as many as there are
                            processors */
    results *results;
    results_journal *journal; /* NULL if the options name no result file */
    js *rows;                 /* rows of the section "bench" */
    bool interrupted;         /* the sweep was cancelled */
    int shapes_done;          /* complete shapes in `rows` */
    term_progress progress;
} bench;

/* Opens the backends of all arms, and begins the result and the journal. An arm that cannot be
 * opened keeps its error; if none can be opened, that of the first is returned. Also the errors of
 * the files. */
snap_status bench_open_devices(bench *b, const js *config, snap_err *err) SNAP_CHECK_RESULT;
void bench_device_close(bench_device *d);

/* The device that the result file names: that of the first arm that could be opened. NULL: none
 * could. */
const bench_device *bench_main_device(const bench *b);

/* Whether the ceilings of device @i are measured: it is open, and no device before it has the
 * same. */
bool bench_has_ceilings(const bench *b, int i);

/* Measures the ceilings of each device that has own ones, or loads them from the file that the
 * options name. */
snap_status bench_find_ceilings(bench *b, snap_err *err) SNAP_CHECK_RESULT;

/* Runs the probes of a device, and raises its ceilings if they reach more. */
snap_status bench_probe(bench_device *d, snap_err *err) SNAP_CHECK_RESULT;

/* Raises the ceilings to the best rate that was seen, and computes what the rows have from them:
 * floors, shares of the roofline, speed-ups and flags. */
snap_status bench_derive(bench *b, snap_err *err) SNAP_CHECK_RESULT;

/* Adds ceilings and rows to the result, writes it, and removes the journal. */
snap_status bench_save(bench *b, snap_err *err) SNAP_CHECK_RESULT;

/* Makes a result of the complete shapes and scopes of a run that was interrupted, and writes it,
 * unless a complete result of an earlier run would be lost. The journal stays. Returns
 * SNAP_E_CANCELLED, or another error if that fails. */
snap_status bench_keep_interrupted(bench *b, snap_err *err) SNAP_CHECK_RESULT;

#endif
