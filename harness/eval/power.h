/* power.h - `eval plan`: how many samples a test of equivalence needs.
 *
 * With n problems and K samples of each problem in each arm, the difference of two arms has the
 * standard error SE:
 *
 *   SE^2 = (between + within / K) / n
 *
 * within:  the variance p (1-p) of one sample, averaged over the problems, summed over both arms
 * between: how much the true difference of the arms varies from problem to problem, as a variance
 *
 * SE gives the probability of the verdict "equivalent" if the true difference is 0 on average. The
 * plan states the smallest K, and the smallest n, for which this probability is large enough. Both
 * variances come from an earlier run. Without a run, `within` is a planning value, which power.c
 * assumes for each known task, and `between` is 0. */
#ifndef SNAPMLA_HARNESS_EVAL_POWER_H
#define SNAPMLA_HARNESS_EVAL_POWER_H

#include "base/json.h"

typedef struct {
    const char *suite;      /* NULL: the tasks of `from` that can be planned from it, see below */
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
 * A task can be planned from a run if the run has a comparison on it whose difference has a
 * standard error above 0. SNAP_E_USAGE in these cases:
 *   - neither a suite nor a run is given
 *   - only a suite is given, and a task of it has no planning value
 *   - only a run is given, and none of its tasks can be planned from it
 *   - both are given, and a task of the suite cannot be planned from the run
 * SNAP_E_NOMEM. Also the errors of suite_resolve() and of reading the run.
 */
snap_status power_plan(const power_options *o, js **out, snap_err *err) SNAP_CHECK_RESULT;

#endif
