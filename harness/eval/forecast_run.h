/* forecast_run.h - predicts from a few answers of a local model how much accuracy other cache
 * formats would lose on a suite.
 *
 * The model answers problems with the first cache format of a list. The same checkpoint with each
 * of the other formats reads the tokens of these answers (generator/local/follow.h). The forecast
 * follows from its probabilities of the tokens (evals/forecast.h). The other formats draw no
 * answers. */
#ifndef SNAPMLA_HARNESS_EVAL_FORECAST_RUN_H
#define SNAPMLA_HARNESS_EVAL_FORECAST_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/record/model_record.h"

enum { FORECAST_FORMATS = 40 };

typedef struct {
    const char *dir;        /* the checkpoint */
    const char *suite;      /* as in suite_resolve() */
    const char *data;       /* folder or file; NULL: the program's own datasets/ */
    const char *lengths;    /* for tasks whose problems the program makes; NULL: the task's own */
    const char *formats;    /* comma-separated names and paths as in cache.h; the first one
                                  answers */
    int64_t samples, limit; /* answers to each problem, and problems of each task; 0: those of
                                  the suite, and all */
    int64_t max_tokens;     /* longest answer, in tokens; 0: as in the suite */
    double temperature;     /* below 0: as in the suite */
    uint64_t seed;
    int threads;
    const char *device;                  /* as in local_options; local_device_of() says which
                                            formats use it */
    const volatile sig_atomic_t *cancel; /* may be NULL */
    snap_status (*emit)(void *ctx, const model_record *row, snap_err *err);
    void (*progress)(void *ctx, int64_t answers); /* answers so far, all tasks; may be NULL */
    void *ctx;                                    /* for emit and progress */
} forecast_options;

/**
 * forecast_run - emit a row of kind "forecast" for each task and each format except the first
 *
 * SNAP_E_USAGE: fewer than two formats, more than FORECAST_FORMATS, or a task that cannot be
 * predicted. A task cannot be predicted if its answers are programs, if a judge model grades them,
 * if its conversations continue with the arm's own answers, if its sampling has penalties, if a
 * problem has more than 32 answers, or if it has only one at a temperature above 0.
 * SNAP_E_CANCELLED. Also the errors of reading the suite and its data, of opening and running the
 * model, and of @emit.
 */
snap_status forecast_run(const forecast_options *opt, snap_err *err) SNAP_CHECK_RESULT;

#endif
