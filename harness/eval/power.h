/* power.h - `eval plan`: how many samples a test of equivalence needs.
 *
 * The standard error SE of a paired difference over n problems with K samples in each arm follows
 * from
 *
 *   SE^2 = (between + within / K) / n
 *
 * within:  variance of one sample, p (1-p), as a mean over problems, summed over both arms
 * between: variance over the problems of the arms' true difference
 *
 * The plan assumes that the true difference is 0 on average. Both variances come from an earlier
 * run or from planning values: an assumed `within` for the task, and 0 for `between`. */
#ifndef SNAPMLA_HARNESS_EVAL_POWER_H
#define SNAPMLA_HARNESS_EVAL_POWER_H

#include "base/json.h"

typedef struct {
    const char *suite;      /* NULL: the tasks of `from` with a comparison whose arms differ */
    const char *from;       /* a RUN or a result file; NULL: planning values */
    int64_t samples, limit; /* samples per problem (0: the suite's, without a suite the run's);
                               problems per task (0: all) */
    double margin_pp;       /* 0: the suite's, without a suite that of the run's comparison */
    double power;           /* the wanted probability of the verdict "equivalent", 0..1 */
} power_options;

/**
 * power_plan - one row for each task
 *
 * @out: an array of rows (record/power_record.h); caller owns it
 *
 * SNAP_E_USAGE without a suite and a run; for a task of the suite on which the given run compares
 * no two arms that differ; without a suite, for a run without any such comparison; and, without a
 * run, for a task that has no planning values. SNAP_E_NOMEM. Also the errors of suite_resolve() and
 * of reading the run.
 */
snap_status power_plan(const power_options *o, js **out, snap_err *err) SNAP_CHECK_RESULT;

#endif
