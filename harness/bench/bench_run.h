/* bench_run.h - a benchmark of the kernels, from options to a result file:
 *
 *   RUN/run.json, or FILE.json             the result file, with sections "ceilings" and "bench"
 *   RUN/journal, or FILE.json.journal      the finished cells, until the run is complete
 *   RUN/arm-NAME=FILE                      a copy of the plugin or Python file of a named arm
 *
 * A run that was killed or interrupted continues when the same command is given again: it reuses
 * the journal's rows of each shape and scope whose arms were all finished. A run that was
 * interrupted also writes a result file. It has the complete shapes and scopes, and states that the
 * run was interrupted (results_save_unfinished()). It replaces an existing file only if that is
 * also of an interrupted run. */
#ifndef SNAPMLA_HARNESS_BENCH_BENCH_RUN_H
#define SNAPMLA_HARNESS_BENCH_BENCH_RUN_H

#include <signal.h>

#include "harness/bench/grid.h"
#include "harness/measure/device.h"
#include "harness/opt.h"
#include "harness/record/results.h"

typedef struct {
    device_options device; /* not used if there are named arms */
    opt_list arms;         /* named arms, NAME=BACKEND[,key=value...] (arm_spec.h); they replace
                              grid.arms */
    bench_grid_text grid;
    bool scaled;              /* add shapes that fit the device (scaled_shapes.h) */
    const char *distribution; /* distribution of the inputs: "normal", "mla" ... (numbers.h) */
    const char *lengths;      /* distribution of the sequences' lengths (lengths.h), which replaces
                                 grid.context; NULL = the sequences of a shape are equally long */
    const char *challenge; /* the text of a challenge's seed (challenge.h); NULL = none. It replaces
                              the shapes of the grid, `distribution` and `seed` */
    int64_t challenge_tokens;
    int64_t seed;
    double min_time_s, timeout_s; /* least measured time of a cell, unless a limit ends it before;
                                     limit on the wall clock of one shape and scope, all arms
                                     together, without the probes */
    double limit_s;               /* limit on the time of all cells together (sweep.h); 0 = none */
    int64_t min_samples;
    double rest;               /* idle time between blocks of samples (interleave.h) */
    double sustained_s;        /* length of a loop in seconds (sustained.h); 0 = single steps */
    const char *ceilings_path; /* a result file or a run's folder with the ceilings to begin with;
                                  NULL = they are measured. In both cases, probes of this run may
                                  raise them */
    const char *out;           /* a result file or a run's folder; NULL = none, and no journal */
    const volatile sig_atomic_t *cancel;
} bench_options;

/**
 * bench_run - time the cells of a grid and compare them with the ceilings of the device
 *
 * @config: the resolved options, for the result file and the journal (bench_journal.h)
 * @out:    the result, saved if @o names a file; caller owns it, results_free(); NULL after errors,
 *          except where stated below
 *
 * SNAP_E_DEVICE or SNAP_E_WRONG, with *out set: a cell had an error or failed (sweep_verdict()).
 * SNAP_E_USAGE: wrong options. SNAP_E_ENV: the ceilings are of another device.
 * SNAP_E_CANCELLED: the run was interrupted. *out is set if a result could be made.
 * Also the errors of opening the backend and of reading and writing the files. Of several named
 * arms, some may fail to open: their rows have that error. If none opens, the error is that of the
 * first.
 */
snap_status bench_run(const bench_options *o, const js *config, results **out,
                      snap_err *err) SNAP_CHECK_RESULT;

/* Prints warnings about the rows of a section "bench" to standard error: missing energy, kernels
 * that could not be recorded, other work, noise, weak baselines. */
void bench_warn(const js *rows);

#endif
