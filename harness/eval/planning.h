/* planning.h - makes a plan from options: tasks with their data, arms, controls, shard. */
#ifndef SNAPMLA_HARNESS_EVAL_PLANNING_H
#define SNAPMLA_HARNESS_EVAL_PLANNING_H

#include "base/arena.h"
#include "harness/eval/eval_run.h"

/**
 * planning_make - plan a run: tasks, problems, arms and sampling
 *
 * @plan:    must be all zero; release with plan_release(), also after a failure. Its texts are
 *           borrowed from @options and @mem
 * @options: the data folder is set if it was not given, and arms and controls that name a file get
 *           its content in place of @FILE
 *
 * SNAP_E_USAGE: an option is wrong. Also the errors of reading the suites, the data and the files
 * that arms name, and of checking that programs can be judged.
 */
snap_status planning_make(eval_plan *plan, eval_options *options, arena *mem,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
