/* power.h - `eval plan`: how many samples a test of equivalence needs.
 *
 * The standard error of a paired difference over n problems with K samples in each arm is
 *
 *   SE^2 = (between + within / K) / n
 *
 * within: the sampling variances p (1-p) of a sample, mean over problems, of both arms together;
 * between: by how much the arms really differ from problem to problem. Planned is with no true
 * difference on average. Both come from an earlier run, or from planning values: what is usual for
 * a task, and no difference between. */
#ifndef SNAPMLA_HARNESS_EVAL_POWER_H
#define SNAPMLA_HARNESS_EVAL_POWER_H

#include "base/json.h"

typedef struct {
    const char *suite;      /* NULL: the tasks of `from` that compare something */
    const char *from;       /* a RUN or result file; NULL: planning values */
    int64_t samples, limit; /* of each problem, problems of each task; 0: the suite's, all */
    double margin_pp;       /* 0: the suite's */
    double power;           /* 0..1 */
} power_options;

/**
 * power_plan - a row a task
 *
 * @out: [{"task", "source", "problems", "samples", "margin_pp", "within", "between", "se_pp",
 *       "ci95_pp" (half width), "power" (of these samples), "power_wanted", "samples_needed" (at
 *       these problems), "problems_needed" (at these samples)}]; null where no number is enough;
 *       caller owns it
 *
 * SNAP_E_USAGE without a suite or a run, for a task that the run does not compare, and for one of
 * unknown size; what reading the run gives.
 */
snap_status power_plan(const power_options *o, js **out, snap_err *err) SNAP_CHECK_RESULT;

#endif
